/* gain.h: does a set carry more since one of its lanes tries another path?
 *
 * A new lane on a better path takes most chunks at once, and has a queue of its own soon. So its delay may be as long as the
 * old lane's, and its rate is higher whether the path is better or not: where all lanes wait before the same NIC, the new one
 * takes from the others. What tells is the rate of all lanes together: before the trial, and with the new lane.
 *
 * One per lane set, sender's end; plain struct. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

struct gain {
    uint64_t bytes; /* acknowledged on all lanes */
    struct {
        struct mono at;
        uint64_t bytes;
    } marks[2];         /* of before: the older one is MARK_NS to twice that old */
    double before;      /* bytes per ns, at its beginning; 0: not known */
    struct mono begun;  /* the new lane carries since then; MONO_NEVER: not yet */
    uint64_t had_bytes; /* at that time */
};

void gain_init(struct gain *g, struct mono now);
void gain_on_acked(struct gain *g, struct mono now, uint64_t bytes);
/* A lane is about to try another path. */
void gain_begin(struct gain *g, struct mono now);
/* Called while the new lane carries: 1: the set carries more, by a sixth; 0: it doesn't; -1: too early to tell. */
int gain_seen(struct gain *g, struct mono now);
