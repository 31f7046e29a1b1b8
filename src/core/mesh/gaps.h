/* gaps.h: the gap that pairs of many paths agree on, as a slow link leaves it.
 *
 * Of the wide pairs (spread.h) of the last GAPS_NS those count that are alike. Frames between the two of a pair leave gaps of any
 * length, so some are alike by chance: as many as the gaps around them, up to a third longer or shorter, let expect. More than
 * that, by odds of e^GAPS_ODDS, are a link's. It counts as slow since they are most surprising: what was sent before tells
 * nothing of it.
 *
 * Frames of one size before full ports leave gaps that are alike, too. What tells them from a slow link are waits (spread.h).
 * One gap at a time; memory is fixed, and a pair that isn't wide costs nothing until a gap is known. */
#pragma once
#include "core/mesh/spread.h"

#define GAPS_RING    1024
#define GAPS_NS      (5 * NS_PER_S)
#define GAPS_LEAST   3
#define GAPS_ONCE_NS NS_PER_S /* within it they are no more surprising */
#define GAPS_ODDS    16.0
#define GAPS_NEAR    1.3
#define GAPS_LOW     2 /* so many pairs closer together than least_ns may have been stamped badly */

struct gaps {
    double slow_ns; /* 0: none is known */
    double
        least_ns; /* what a packet takes on a link at full rate, at least: pairs that a queue pushed together show it */
    struct mono since; /* the first pair that agreed */
    struct mono looked;
    uint64_t count; /* ever */
    struct spread_pair ring[GAPS_RING];
};

enum gaps_hold {
    GAPS_FREE,
    GAPS_KEEP,
    GAPS_FIXED
}; /* may be lost or replaced; replaced; neither */

void gaps_add(struct gaps *g, const struct spread_pair *pair);
/* True: slow_ns is another one, and all pairs that are kept are to be judged anew. */
bool gaps_look(struct gaps *g, struct mono now, enum gaps_hold hold);
/* The pairs that are kept, oldest first; NULL: no more. */
const struct spread_pair *gaps_pair(const struct gaps *g, uint32_t index);
