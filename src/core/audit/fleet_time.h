/* fleet_time.h: the fleet time for a program that is not on a host: the median of what many hosts reported last.
 *
 * Each host has one report: a host that lies moves the median by no more than one place. */
#pragma once
#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

#define FLEET_TIME_WORDS  31
#define FLEET_TIME_OLD_NS (60 * NS_PER_S)

struct fleet_words {
    struct fleet_word {
        int64_t fleet_ns; /* 0: no report */
        struct mono at;
    } words
        [FLEET_TIME_WORDS]; /* index: the host's number, modulo the size; of hosts that share a place, the last report counts */
};

/* Ignores values that can't be a time (<= 0). */
void fleet_time_hear(struct fleet_words *t, int64_t host, int64_t fleet_ns, struct mono now);
/* False: nobody reported it within FLEET_TIME_OLD_NS. Of two reports it takes the later one. */
bool fleet_time_now(const struct fleet_words *t, struct mono now, int64_t *ret_ns);
