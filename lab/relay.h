/* relay.h: delays packets on a link by a program, because some kernels lack netem.
 *
 * A filter at the port's hook sends UDP and TCP packets into a veth pair. The relay reads them at its far end, holds each for
 * delay plus jitter, and puts it back: out of the port (egress), or in, as if it had just arrived (ingress). Order is kept.
 * All other packets (ARP, neighbour discovery, ICMP) bypass the relay. A delay of 0 can be placed before a trial: then the
 * packets' detour (about 10 us) is there before and during the trial.
 *
 * The kernel stamps probes (the high class) when they come and when they leave. So the real delay is known. */
#pragma once
#include "lab/spot.h"

#define RELAY_SAMPLE_MAX 16384
#define RELAY_SPOT_MAX   4

struct relay_sample {
    int64_t raw_ns;   /* when it left, true time */
    int64_t delay_ns; /* leave stamp minus come stamp */
};
/* LAB_ROOT/NAME/fault/<ID>.relay, mapped: it holds the settings and the measurements. */
struct relay_log {
    /* another process may change them; they are read for every packet */
    int64_t delay_ns, jitter_ns;
    uint64_t packets;
    uint64_t sample_count; /* the newest is sample[(sample_count - 1) % RELAY_SAMPLE_MAX] */
    struct relay_sample sample[RELAY_SAMPLE_MAX];
};

/* Runs in the port's namespace until stop_fd is readable. `id` is the fault's: it is its filter's priority, and part of its
 * veths' names. Calls ready() when packets go through it. */
MUST_CHECK int relay_run(const struct lab_spot *spot, int id, struct relay_log *log, int stop_fd,
                         void (*ready)(void *data), void *data);
/* Removes its filter and veths, also those of another process. */
void relay_clear(const struct lab_spot *spot, int id);
