/* port.h: one output queue of the simulated fabric: a FIFO of bytes fed by cross traffic, looked at by probes.
 *
 * Cross traffic is a fluid of bursts: each arrives at its own rate for a while, many overlap, the queue grows by
 * what the link can't carry and drains at link rate. It is worked out only when a probe comes by, so an
 * unvisited port costs nothing. Lossless fabrics hold back what the buffer can't take (the sender waits);
 * lossy ones drop it. A probe in its own class overtakes the queue but not the frame being sent.
 *
 * What this leaves out: bursts at different ports are independent (one incast's burst isn't followed hop by hop),
 * and probes add no load. After a long pause the state of a busy port is drawn near its steady state and worked
 * out from there.
 *
 * Cost: about 15 ns per burst since the last visit, at most PORT_CATCH_UP of them. */
#pragma once
#include "base/prng.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    PORT_STREAMS = 4,
    PORT_ACTIVE = 64,
    PORT_CATCH_UP = 400, /* bursts worked out for one visit */
};

/* Bursts that start at random: on average one per `gap_ns`, each `size` bytes at `rate` bytes per ns. */
struct port_stream {
    double gap_ns, size, rate;
    double next; /* true time of the next start */
};

struct port {
    double rate;   /* bytes per ns */
    double buffer; /* bytes */
    double frame;  /* bytes of one cross traffic frame */
    bool lossless;
    double standing; /* bytes that always wait */
    struct prng random;
    struct port_stream streams[PORT_STREAMS];
    unsigned stream_count;
    double active_end[PORT_ACTIVE], active_rate[PORT_ACTIVE];
    unsigned active_count;
    double inflow;       /* sum of active rates */
    double work;         /* bytes that wait, those held back by senders included */
    double at;           /* true time that work is of */
    double probe_end[2]; /* when the last probe has left, of the jobs' class and of the probes' */
};

void port_init(struct port *p, uint64_t seed, double rate_mbps, double buffer_bytes,
               double frame_bytes, bool lossless);
/* Takes all cross traffic away (the queue drains by itself). */
void port_clear(struct port *p);
/* Adds a stream of that share of the link. */
void port_add(struct port *p, double now, double load, double burst_bytes, double burst_mbps);
void port_rate(struct port *p, double rate_mbps);

/* A probe of `size` bytes comes at true time `at` (not before the last visit; a little is forgiven). Returns the
 * time at which its last bit has left, or < 0: dropped. high: in the probes' own class. */
double port_pass(struct port *p, double at, double size, bool high);
/* Bytes that wait at `at`. */
double port_queue(struct port *p, double at);
