/* fleet_time.h: fleet time as its hosts tell it, for who is no host: the middle of what many of them told last.
 *
 * A host has one word: one that lies moves the middle by no more than its neighbour in order. */
#pragma once
#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

#define FLEET_TIME_WORDS  31
#define FLEET_TIME_OLD_NS (60 * NS_PER_S)

struct fleet_words {
    struct fleet_word {
        int64_t fleet_ns; /* 0: none */
        struct mono at;
    } words
        [FLEET_TIME_WORDS]; /* by the host's number, modulo: of hosts that share one, who told last */
};

/* Words that can't be a time (<= 0) are not taken. */
void fleet_time_hear(struct fleet_words *t, int64_t host, int64_t fleet_ns, struct mono now);
/* False: nobody told it within FLEET_TIME_OLD_NS. Of two words it is the later one. */
bool fleet_time_now(const struct fleet_words *t, struct mono now, int64_t *ret_ns);
