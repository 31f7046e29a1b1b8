/* priority.h: jobs that share links: who yields, by how much, without asking anybody.
 *
 * In a host: weights 8 : 4 : 1 (high, normal, bulk) of a rate shared through shared memory. Across
 * hosts: a delay target. t = half the floor of the round trip, at least 20 us. A job of low
 * priority yields when its queueing delay q exceeds t, a normal one at 8 t, a high one never: rate
 * *= 1 - (q - target) / (2 q), at most once per round trip; else + one chunk per round trip. Never
 * below 5 % of the lane's own best rate: nobody starves. Plain struct, one per lane set. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum priority_class { PRIORITY_BULK, PRIORITY_NORMAL, PRIORITY_HIGH, PRIORITY_COUNT };

struct priority {
    enum priority_class class;
    double rate;      /* bytes per ns; 0: no limit */
    double rate_best; /* most delivered, decaying: what the floor of 5 % is of */
    int64_t rtt_floor_ns;
    struct mono changed; /* last step */
};

void priority_init(struct priority *p, enum priority_class class, struct mono now);
uint32_t priority_weight(enum priority_class class);
/* "bulk", "normal", "high", also 0..2; -EINVAL. */
int priority_parse(const char *text, enum priority_class *ret_class);
/* DSCP where the network allows marking: CS1, default, AF41. */
uint8_t priority_dscp(enum priority_class class);
/* Each acknowledgement: the set's queueing delay c (detector's base), its delivered rate, and round
 * trip floor. No wish to send more than it does (pool empty): idle. */
void priority_on_delay(struct priority *p, struct mono now, int64_t queue_ns, double delivered,
                       struct span rtt, uint32_t chunk, bool idle);
/* For pacing: bytes per ns, 0: no limit. */
double priority_rate(const struct priority *p);
/* Share of a rate that `class` gets beside the others that are busy: counts[k] jobs of class k. */
double priority_share(enum priority_class class, const uint32_t counts[PRIORITY_COUNT]);
