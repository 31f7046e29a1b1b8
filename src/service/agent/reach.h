/* reach.h: can this host reach some others over the front end, and with packets of full size? Asked by an audit (audit.c).
 *
 * For each a TCP connection to a port where nobody listens: that its end is told is the answer. Who listens is as good; what a
 * filter tells is none. Then short UDP packets there, and packets as large as the interface's MTU that must not be cut: each is
 * tried three times, and what comes back for one (that nobody listens) tells that it came. At most PEERS * 7 packets in
 * three seconds; nothing is waited for. */
#pragma once
#include <netinet/in.h>

#include "core/audit/fact.h"

#define REACH_PORT 18598

enum { AGENT_REACH_MAX = 8, REACH_WORDS = 96, REACH_NAME = 64 };

struct reach_peer {
    char host[REACH_NAME];
    struct sockaddr_storage to;
    socklen_t size;
    /* its own */
    int tcp, udp;            /* -1: ended */
    uint8_t tries;           /* of this size */
    bool full;               /* short ones came */
    uint32_t mtu;            /* of the interface, known with the first full one */
    int64_t next_ns, end_ns; /* when to send another one; when it is given up */
    char reached[REACH_WORDS], path[REACH_WORDS];
};

struct agent_reach {
    struct reach_peer peers[AGENT_REACH_MAX];
    uint32_t count;
};

/* Peers have host, to and size. now: of CLOCK_MONOTONIC. */
void reach_begin(struct agent_reach *r, int64_t now_ns);
/* Every 20 ms or so. True: it has ended, and nothing is open any more. */
bool reach_look(struct agent_reach *r, int64_t now_ns);
void reach_stop(struct agent_reach *r);
/* The facts fe.peer and fe.path of each. */
void reach_facts(const struct agent_reach *r, struct sheet *sheet);
