/* reach.h: can this host reach some others over the front end, and with packets of full size? An audit asks for it (audit.c).
 *
 * For each peer:
 * - a TCP connection to a port without a listener. A refusal by the peer's TCP means that the peer is reached, and so does an
 *   accepted connection. An error from a filter does not;
 * - then short UDP packets, and then packets as large as the interface's MTU that must not be fragmented. Each size is tried
 *   three times. If the peer answers (also with "port unreachable"), the packet arrived.
 *
 * At most PEERS * 7 packets are sent, within three seconds. Nothing in this module waits. */
#pragma once
#include <netinet/in.h>

#include "core/audit/fact.h"

#define REACH_PORT 18598

enum { AGENT_REACH_MAX = 8, REACH_WORDS = 96, REACH_NAME = 64 };

struct reach_peer {
    char host[REACH_NAME];
    struct sockaddr_storage to;
    socklen_t size;
    /* set by reach.c */
    int tcp, udp;            /* -1: ended */
    uint8_t tries;           /* tries with the present size */
    bool full;               /* a short packet arrived; full ones are next */
    uint32_t mtu;            /* of the interface; known with the first full packet */
    int64_t next_ns, end_ns; /* time of the next packet; time to give up */
    char reached[REACH_WORDS], path[REACH_WORDS];
};

struct agent_reach {
    struct reach_peer peers[AGENT_REACH_MAX];
    uint32_t count;
};

/* The caller has set host, to and size of each peer. now_ns: CLOCK_MONOTONIC. */
void reach_begin(struct agent_reach *r, int64_t now_ns);
/* Call it about every 20 ms. True: all peers are done, and nothing is open any more. */
bool reach_look(struct agent_reach *r, int64_t now_ns);
void reach_stop(struct agent_reach *r);
/* Adds the facts fe.peer and fe.path of each peer. */
void reach_facts(const struct agent_reach *r, struct sheet *sheet);
