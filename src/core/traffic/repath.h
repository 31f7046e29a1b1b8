/* repath.h: decides when a lane leaves a contended path, so that two jobs do not chase each other.
 *
 * Lane i is repathed after contention for max(50 ms, 16 chunks), if a better path exists, if it isn't frozen, and if a coin (1/2,
 * seeded) says yes. One lane for each peer at a time: the old one drains while its successor is on trial. Then lanes are frozen
 * for U[1, 2] * 50 ms, doubled up to 2 s each time the excess was not halved, and back to 50 ms when it was. With contention and
 * congestion together (BOTH), only after 2 s.
 *
 * A starved lane (detector.h) leaves after max(50 ms, 48 c), whatever else is congested, and repaths of the other kind don't
 * freeze it. c is the least queue: on slow paths 50 ms are one round trip, and lanes that left after that chased each other.
 *
 * Lanes that wait alike (detector.h), or whose least queue has risen, may all have the same path: then none is better than
 * another. After 500 ms one of them must try another path beside its own. The caller keeps the new one if it is much better
 * (detector_better, scheduler_better, gain.h), and then reports 0, otherwise -1. Four tries follow at once: if half of the paths
 * are better, one of the four finds such a path in 15 of 16. Each further try waits twice as long. A risen queue becomes usual
 * after some ten seconds; a minute after the last try, a fault counts as another one.
 *
 * Waiting alike is counted as time, minus half the time without it: a standing queue is sometimes below the threshold.
 *
 * One for each set; plain struct, no allocation. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/limits.h"
#include "base/prng.h"
#include "base/time.h"
#include "core/traffic/detector.h"

enum repath_why { REPATH_CONTENDED, REPATH_STARVED, REPATH_ALIKE, REPATH_WHY_COUNT };

struct repath {
    struct prng prng;
    struct mono since[LANE_MAX];         /* contended since; MONO_NEVER: not contended */
    uint32_t chunks[LANE_MAX];           /* acknowledged since then */
    struct mono starved_since[LANE_MAX]; /* the same for starved lanes */
    /* the least queue has risen since; MONO_NEVER: it hasn't */
    struct mono alike_since;
    /* the time in which all waited alike, minus half of the other time */
    int64_t alike_ns;
    struct mono alike_at;
    struct mono frozen[REPATH_WHY_COUNT]; /* until that time */
    struct span freeze[REPATH_WHY_COUNT]; /* the base of the next one */
    int busy;                             /* the lane that is being moved; -1: none */
    enum repath_why why;                  /* the reason for that one */
    /* consecutive tries of other paths while all lanes waited alike, without success */
    uint32_t tries;
    int64_t excess_before_ns; /* of the last moved lane */
    struct mono coin_at;      /* tossed at most once per 50 ms */
    uint64_t count;
};

void repath_init(struct repath *r, uint64_t seed, struct mono now);
void repath_on_acked(struct repath *r, uint32_t lane, uint32_t chunks);
/* finding: from detector_judge(); better: bit k: for lane k a path is known that is probably better, or an entropy that wasn't
 * tried yet. Returns the lane to move now, or -1. */
int repath_decide(struct repath *r, struct mono now, const struct detector_finding *finding,
                  uint32_t better);
/* The moved lane carries again (or failed): excess_ns: its e on the new path, < 0 if it failed. */
void repath_on_moved(struct repath *r, struct mono now, int64_t excess_ns);
