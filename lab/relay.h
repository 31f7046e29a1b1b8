/* relay.h: delay on a link, by a program of our own: kernels without netem have no other way.
 *
 * A filter at the port's hook hands UDP and TCP packets to a veth pair; the relay reads them at its far end,
 * holds each for delay plus jitter, and puts it back: out of the port (egress), or in, as if it had just come
 * (ingress). Order is kept. Everything else (ARP, neighbour discovery, ICMP) goes straight on.
 * A delay of 0 can be placed before the trial: the packet's detour (about 10 us) is then there before and after.
 *
 * What the delay really was: it stamps probes (the high class) by the kernel as they come and as they leave. */
#pragma once
#include "lab/spot.h"

#define RELAY_SAMPLE_MAX 16384
#define RELAY_SPOT_MAX   4

struct relay_sample {
    int64_t raw_ns;   /* when it left, true time */
    int64_t delay_ns; /* leave stamp minus come stamp */
};
/* LAB_ROOT/NAME/fault/<ID>.relay, mapped: settings in, measurements out. */
struct relay_log {
    int64_t delay_ns, jitter_ns; /* written by whoever changes the delay; read at every packet */
    uint64_t packets;
    uint64_t sample_count; /* the newest is sample[(sample_count - 1) % RELAY_SAMPLE_MAX] */
    struct relay_sample sample[RELAY_SAMPLE_MAX];
};

/* Runs in the port's namespace until stop_fd is readable. `id` is the fault's: priority of its filter, name of
 * its veths. ready() is called once packets go through it. */
MUST_CHECK int relay_run(const struct lab_spot *spot, int id, struct relay_log *log, int stop_fd,
                         void (*ready)(void *data), void *data);
/* Takes its filter and veths away, whoever made them. */
void relay_clear(const struct lab_spot *spot, int id);
