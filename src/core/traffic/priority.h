/* priority.h: jobs that share links: who yields, by how much, without asking anybody.
 *
 * A job of low priority takes what the others leave (as LEDBAT, RFC 6817, and in the same way: by delay). It alone yields; whom
 * to doesn't matter, and nobody tells it. Per lane, for each path has its own neighbours: once a step, from the least
 * queueing delay q of its chunks in that step,
 *
 *   q > target   rate *= 1 - (q - target) / (2 q)
 *   else         rate += 1/16 of the lane's best rate; no limit from twice that rate on
 *
 * target = max(half a round trip, two chunks at the best rate, 20 us): alone on a path it keeps that full. A step is a round
 * trip and q, two chunks or 1 ms, whichever is longest. Never below 5 % of the best rate: nobody starves.
 *
 * Plain struct, one per lane; no allocation. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/time.h"

enum priority_class { PRIORITY_LOW, PRIORITY_NORMAL, PRIORITY_HIGH, PRIORITY_COUNT };

struct priority {
    double rate;      /* bytes per ns; 0: no limit */
    double rate_best; /* most delivered, decaying: what the floor of 5 % is of */
    int64_t queue_ns; /* least of the present step; INT64_MAX: none */
    struct mono changed;
    struct span step; /* the present one's length */
    struct bug_note bug;
};

/* What an acknowledgement says of a lane. */
struct priority_sample {
    int64_t queue_ns; /* its delay above the least of all lanes between these NICs */
    double delivered; /* bytes per ns: what the path carries for us */
    struct span rtt;  /* floor */
    uint32_t chunk;
    uint32_t
        lanes; /* that this job may have on the same link: all of them step up, and none goes below its floor */
};

void priority_init(struct priority *p, struct mono now);
/* DSCP where the network allows marking: CS1, default, AF41. */
uint8_t priority_dscp(enum priority_class class);
void priority_on_delay(struct priority *p, struct mono now, const struct priority_sample *sample);
/* For pacing: bytes per ns, 0: no limit. */
double priority_rate(const struct priority *p);
const struct bug_note *priority_bug(const struct priority *p);
