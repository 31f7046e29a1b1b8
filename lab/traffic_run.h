/* traffic_run.h: carries flows between the NICs of a lab: one process, one thread, sockets in many
 * namespaces.
 *
 * It must cost little, for the fleet's agents share its two cores: TCP is paced by the kernel
 * (SO_MAX_PACING_RATE; no fq qdisc needed), sent by sendfile() out of one memory file and received
 * by truncation without a copy; UDP goes as segmented bursts each TRAFFIC_TICK_NS.
 *
 * Payload is position-coded: byte k of a flow is pattern[(k + flow offset) % TRAFFIC_PATTERN_SIZE],
 * so a receiver that checks sees loss, repetition and mixing of streams, not only flipped bits.
 *
 * Source ports are chosen so that flows of a pair and of a leaf share the trunks evenly: the leaf's
 * own ECMP decision is asked for. */
#pragma once
#include "lab/lab.h"
#include "lab/traffic_plan.h"

#include <signal.h>
#include <stdint.h>

#define TRAFFIC_PATTERN_SIZE 1048573 /* prime: no shift by a round number goes unseen */
#define TRAFFIC_TICK_NS      (4 * 1000 * 1000)

struct traffic_config {
    const struct lab *lab;
    const struct traffic_nic *nics;
    int nic_count;
    const struct traffic_flow *flows;
    int flow_count;
    bool udp;
    bool check;      /* TCP: compare every byte received */
    bool high_class; /* DSCP CS6, as the probes */
    bool ipv6;
    bool any_port;     /* don't balance, let ECMP fall as it falls */
    int64_t job_bytes; /* > 0: each flow carries this many, over and over; else until stopped */
};

struct traffic_flow_state {
    int64_t sent, received; /* bytes since the last traffic_mark() */
    uint64_t bad;           /* bytes that weren't what was sent */
    uint16_t port;          /* source port */
    int trunk;              /* the leaf's interface towards the spine it takes; 0: not known */
};

struct traffic;

/* Opens and connects all; NULL: it said why on stderr. */
struct traffic *traffic_new(const struct traffic_config *config);
void traffic_free(struct traffic *t);
/* Runs for `duration_ns` (0: for ever), or until *stop is set, or (job_bytes) until each flow has
 * arrived in full. -errno when a connection broke. Jobs: each call is one more. */
MUST_CHECK int traffic_run(struct traffic *t, int64_t duration_ns,
                           const volatile sig_atomic_t *stop);
/* Counters from zero. */
void traffic_mark(struct traffic *t);
const struct traffic_flow_state *traffic_flow_state(const struct traffic *t, int flow);
