/* repath.h: when a lane leaves a contended path, so that two jobs do not chase each other.
 *
 * Contention on lane i for max(50 ms, 16 chunks), and a better path to go to, and not frozen, and a
 * coin (1/2, seeded): repath i. One lane per peer at a time: the old one drains while its successor
 * is on trial. Then frozen for U[1, 2] * 50 ms, doubled up to 2 s each time its excess didn't
 * halve, back to 50 ms when it did. With contention and congestion together (BOTH), only after 2 s.
 *
 * A starved lane (detector.h) goes after max(50 ms, 48 c) whatever else is congested, and isn't held
 * back by what moves of the other kind did. c is the least queue: where paths are slow, 50 ms are one
 * round trip, and lanes that left after that chased each other.
 *
 * Lanes that wait alike (detector.h), or whose least queue has risen, may all have the same path: none is better than another
 * then. After 500 ms one of them is asked to try another path beside its own. The caller keeps the new one if it is much better
 * (detector_better, scheduler_better, gain.h) and tells 0 then, else -1. Four tries follow each other at once: if half of the
 * paths are better, one of the four finds such a path in 15 of 16. Each further try is twice as long away. A risen queue is usual
 * after some ten seconds; a minute after the last try the next fault is another one.
 *
 * Waiting alike is counted as time, less half the time without it: a queue that stands is at times below the threshold.
 *
 * One per set; plain struct, no allocation. */
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
    struct mono since[LANE_MAX];         /* contended since; MONO_NEVER not */
    uint32_t chunks[LANE_MAX];           /* acknowledged since then */
    struct mono starved_since[LANE_MAX]; /* as since */
    struct mono alike_since;             /* the least queue has risen; MONO_NEVER not */
    int64_t alike_ns;                    /* that all waited alike; less the time that they didn't */
    struct mono alike_at;
    struct mono frozen[REPATH_WHY_COUNT]; /* until */
    struct span freeze[REPATH_WHY_COUNT]; /* the next one's base */
    int busy;                             /* lane on its way, -1 none */
    enum repath_why why;                  /* of that one */
    uint32_t tries; /* of other paths while all lanes wait alike, in a row: none was better */
    int64_t excess_before_ns; /* of the lane last moved */
    struct mono coin_at;      /* tossed at most once per 50 ms */
    uint64_t count;
};

void repath_init(struct repath *r, uint64_t seed, struct mono now);
void repath_on_acked(struct repath *r, uint32_t lane, uint32_t chunks);
/* finding: detector_judge's; better: bit k: for lane k there is a signature believed better, or an
 * entropy not yet tried. Returns the lane to move now, or -1. */
int repath_decide(struct repath *r, struct mono now, const struct detector_finding *finding,
                  uint32_t better);
/* The lane that was moved carries again (or failed to): excess_ns: its e on the new path, < 0 if it
 * failed. */
void repath_on_moved(struct repath *r, struct mono now, int64_t excess_ns);
