/* traffic_run.h: carries flows between the NICs of a lab: one process, one thread, sockets in many namespaces.
 *
 * Its cost must be low, because the fleet's agents share its two cores. The kernel paces TCP (SO_MAX_PACING_RATE; no fq qdisc
 * needed). TCP is sent with sendfile() from one memory file, and received by truncation without a copy. UDP is sent as
 * segmented bursts each TRAFFIC_TICK_NS.
 *
 * The payload depends on its position: byte k of a flow is pattern[(k + flow offset) % TRAFFIC_PATTERN_SIZE]. So a receiver
 * that checks detects loss, repetition and mixed streams, not only flipped bits.
 *
 * Source ports are chosen so that the flows of a pair and of a leaf share the trunks evenly: the leaf's kernel is asked for
 * its ECMP decision. */
#pragma once
#include "lab/lab.h"
#include "lab/traffic_plan.h"

#include <signal.h>
#include <stdint.h>

#define TRAFFIC_PATTERN_SIZE 1048573 /* prime: a shift by a round number is detected */
#define TRAFFIC_TICK_NS      (4 * 1000 * 1000)

struct traffic_config {
    const struct lab *lab;
    const struct traffic_nic *nics;
    int nic_count;
    const struct traffic_flow *flows;
    int flow_count;
    bool udp;
    bool check;      /* TCP: compare every byte that arrives */
    bool high_class; /* DSCP CS6, as for probes */
    bool ipv6;
    bool any_port;     /* don't balance the trunks */
    int64_t job_bytes; /* > 0: each flow carries this many, again and again; else until stopped */
};

struct traffic_flow_state {
    int64_t sent, received; /* bytes since the last traffic_mark() */
    uint64_t bad;           /* bytes that differ from the sent ones */
    uint16_t port;          /* source port */
    int trunk;              /* the leaf's interface to the spine of the flow; 0: not known */
};

struct traffic;

/* Opens and connects all flows. NULL: the error was printed. */
struct traffic *traffic_new(const struct traffic_config *config);
void traffic_free(struct traffic *t);
/* Runs for `duration_ns` (0: for ever), or until *stop is set, or (job_bytes) until each flow has arrived in full. -errno: a
 * connection broke. With jobs each call runs one more. */
MUST_CHECK int traffic_run(struct traffic *t, int64_t duration_ns,
                           const volatile sig_atomic_t *stop);
/* Sets the counters to zero. */
void traffic_mark(struct traffic *t);
const struct traffic_flow_state *traffic_flow_state(const struct traffic *t, int flow);
