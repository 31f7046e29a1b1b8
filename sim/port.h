/* port.h: one output queue of the simulated fabric: a FIFO of bytes, filled by cross traffic and visited by probes.
 *
 * Cross traffic is a fluid of bursts. Each burst arrives at its own rate for a while, and many overlap. The queue grows by
 * what the link can't carry, and drains at link rate. It is computed only when a probe comes, so an unvisited port costs
 * nothing. If the buffer is full, lossless fabrics let the sender wait; lossy ones drop. A probe in its own class overtakes
 * the queue, but not the frame that is being sent.
 *
 * Not modelled: bursts at different ports are independent (an incast's burst isn't followed hop by hop), and probes add no
 * load. After a long pause the state of a busy port is drawn near its steady state, and computed from there.
 *
 * Cost: about 15 ns for each burst since the last visit, for at most PORT_CATCH_UP bursts. */
#pragma once
#include "base/prng.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    PORT_STREAMS = 4,
    PORT_ACTIVE = 64,
    PORT_CATCH_UP = 400, /* bursts computed for one visit */
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
    double work;         /* bytes that wait, with those that senders hold back */
    double at;           /* true time of `work` */
    double probe_end[2]; /* when the last probe left, in the jobs' class and in the probes' */
};

void port_init(struct port *p, uint64_t seed, double rate_mbps, double buffer_bytes,
               double frame_bytes, bool lossless);
/* Removes all cross traffic (the queue drains by itself). */
void port_clear(struct port *p);
/* Adds a stream with that share of the link. */
void port_add(struct port *p, double now, double load, double burst_bytes, double burst_mbps);
void port_rate(struct port *p, double rate_mbps);

/* A probe of `size` bytes comes at true time `at` (not before the last visit; a small difference is allowed). Returns the time
 * when its last bit has left; < 0: it was dropped. high: in the probes' own class. */
double port_pass(struct port *p, double at, double size, bool high);
/* The bytes that wait at `at`. */
double port_queue(struct port *p, double at);
