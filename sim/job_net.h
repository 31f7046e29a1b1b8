/* job_net.h: the fabric that simulated jobs run over: NICs, leaves, spines, and what becomes of a packet.
 *
 * Each NIC has a link to its leaf, each leaf one to every spine; a link has two directions, each with a rate, a
 * delay, a queue of 10 ms and faults of its own. A packet between leaves goes over the spine that a hash of its
 * addresses and ports says (ECMP), so a connection's two directions take different spines, and another source
 * port is another draw. A cut link swallows what is sent into it: nobody is told. What NICs and routing
 * *say* of that (carriers, spines taken out of the hash) is told apart from what is so.
 *
 * What is sent at once is a train of packets. It goes from link to link, in the order in which trains come to each, and its
 * packets are forwarded one by one: a train's head is on the next link while its tail is on this one. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"
#include "base/time.h"
#include "transport/io.h"

#define JOB_NIC_MAX 8 /* of one host */

struct job_link {
    int64_t rate_bps;
    int64_t delay_ns;
    int64_t busy_until;
    int64_t extra_ns; /* fault: delay */
    uint32_t slow;    /* fault: the rate is divided by that; 0: no */
    uint32_t loss_ppm, damage_ppm;
    uint16_t cut; /* how many faults cut it now */
};

struct job_nic {
    struct job_link out, in;
    uint16_t leaf;
    bool carrier;
    uint32_t downs;
    uint32_t removed; /* faults that took its RDMA device away */
};

struct job_net_config {
    uint32_t hosts, nics; /* per host */
    uint32_t leaves, spines;
    int64_t host_bps, trunk_bps, delay_ns; /* of a link */
    int64_t queue_ns;                      /* most that waits before a link; 0: 10 ms */
};

struct job_way {
    uint32_t from, to; /* NICs */
    uint16_t from_port, to_port;
};

/* A fault of one flow, wherever it goes: its packets are lost or held. */
struct job_sieve {
    uint32_t count; /* of the ways that it is for; 0: none */
    struct job_way ways[2];
    uint32_t lost_ppm; /* of what is sent at once */
    int64_t held_ns;
};

struct job_net {
    struct job_net_config config;
    struct prng prng;
    struct job_nic *nics;    /* [host * nics + k] */
    struct job_link *trunks; /* [(leaf * spines + spine) * 2]: up, then down */
    struct job_sieve sieve;
    uint64_t withdrawn;              /* spines that routing knows not to use */
    uint64_t packets, lost, damaged; /* so far */
};

int job_net_init(struct job_net *net, const struct job_net_config *config, uint64_t seed);
void job_net_done(struct job_net *net);
/* The NIC with that address, -1: there is none. */
int job_net_nic(const struct job_net *net, const struct io_address *address);
struct io_address job_net_address(const struct job_net *net, uint32_t nic);
struct job_link *job_net_trunk(struct job_net *net, uint32_t leaf, uint32_t spine, bool down);
/* The spine that it takes between leaves. */
uint32_t job_net_spine(const struct job_net *net, const struct job_way *way);
/* A train that is to be sent, or under way. */
struct job_train {
    struct job_way way;
    uint32_t bytes;
    uint32_t spine;
    uint8_t links; /* behind it */
    bool there;
    bool damaged; /* some bit of it isn't what it was */
    int64_t last; /* when its last packet is where its first one is now */
};

/* Sends it over its next link. When it is at the one after it, to be forwarded again; or, train->there, when all of it has
 * arrived; -1: it is lost. */
int64_t job_net_forward(struct job_net *net, int64_t now, struct job_train *train);
