/* job_net.h: the fabric of simulated jobs: NICs, leaves, spines, and what happens to a packet.
 *
 * Each NIC has a link to its leaf, and each leaf has a link to every spine. A link has two directions, each with its own rate,
 * delay, queue of 10 ms and faults. A hash of addresses and ports selects the spine of a packet between leaves (ECMP). So a
 * connection's two directions take different spines, and another source port is another draw. A cut link drops its packets
 * without notice. The state that NICs and routing *report* (carriers, spines taken out of the hash) is separate from the true
 * state.
 *
 * Packets that are sent at once are a train. Trains go from link to link, in the order in which they come to each link. Their
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
    uint32_t slow;    /* fault: the rate is divided by this; 0: no fault */
    uint32_t loss_ppm, damage_ppm;
    uint16_t cut; /* number of faults that cut it now */
};

struct job_nic {
    struct job_link out, in;
    uint16_t leaf;
    bool carrier;
    uint32_t downs;
    uint32_t removed; /* number of faults that removed its RDMA device */
};

struct job_net_config {
    uint32_t hosts, nics; /* per host */
    uint32_t leaves, spines;
    int64_t host_bps, trunk_bps, delay_ns; /* of a link */
    int64_t queue_ns;                      /* longest wait before a link; 0: 10 ms */
};

struct job_way {
    uint32_t from, to; /* NICs */
    uint16_t from_port, to_port;
};

/* A fault of one flow on any path: its packets are lost or held. */
struct job_sieve {
    uint32_t count; /* number of its paths; 0: no fault */
    struct job_way ways[2];
    uint32_t lost_ppm; /* share of trains */
    int64_t held_ns;
};

struct job_net {
    struct job_net_config config;
    struct prng prng;
    struct job_nic *nics;    /* [host * nics + k] */
    struct job_link *trunks; /* [(leaf * spines + spine) * 2]: up, then down */
    struct job_sieve sieve;
    uint64_t withdrawn;              /* spines that routing does not use */
    uint64_t packets, lost, damaged; /* so far */
};

int job_net_init(struct job_net *net, const struct job_net_config *config, uint64_t seed);
void job_net_done(struct job_net *net);
/* The NIC with that address; -1: none. */
int job_net_nic(const struct job_net *net, const struct io_address *address);
struct io_address job_net_address(const struct job_net *net, uint32_t nic);
struct job_link *job_net_trunk(struct job_net *net, uint32_t leaf, uint32_t spine, bool down);
/* The spine that the flow takes between leaves. */
uint32_t job_net_spine(const struct job_net *net, const struct job_way *way);
/* A train that waits to be sent, or is on its way. */
struct job_train {
    struct job_way way;
    uint32_t bytes;
    uint32_t spine;
    uint8_t links; /* behind it */
    bool there;
    bool damaged; /* some of its bits were flipped */
    int64_t last; /* when its last packet is where its first one is now */
};

/* Sends the train over its next link. Returns the time when it is at the following link, to be forwarded again. If
 * train->there, it is the time when all of the train has arrived. -1: it is lost. */
int64_t job_net_forward(struct job_net *net, int64_t now, struct job_train *train);
