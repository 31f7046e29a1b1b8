/* swarm.h: worlds drawn at random over the whole space of the scenario language, judged by what must hold in any of them
 * (invariant.h), and shrunk where they break it. One seed, one world, the same on any machine. */
#pragma once
#include "service/scenario/scenario.h"
#include "sim/invariant.h"

/* What became of one world. */
struct swarm_result {
    uint64_t broken[INVARIANT_COUNT];
    int64_t first[INVARIANT_COUNT]; /* when, true ns; -1: it holds */
    char text[INVARIANT_COUNT][200];
    uint64_t trace, probes;
    double p99_ratio; /* of the error, over what is allowed; 0: not judged */
    double seconds;   /* of the processor */
};

/* Draws the world of that seed, its bounds being all invariants. */
void swarm_draw(uint64_t seed, struct scenario *ret);
/* One that the lab can play with real packets, up to eight hosts; its bounds are metrics that the lab measures. */
void swarm_draw_lab(uint64_t seed, struct scenario *ret);
/* Plays it; stops early when `until` is broken (INVARIANT_COUNT: never). -ENOMEM. */
MUST_CHECK int swarm_play(const struct scenario *s, enum invariant until, struct swarm_result *ret);
/* Makes it as small as it can be while `broken` is still broken: fewer faults, less load, fewer hosts and NICs, plainer fabric
 * and clocks, less time. At most `tries` worlds are played; returns how many were. -ENOMEM. */
MUST_CHECK int swarm_shrink(struct scenario *s, enum invariant broken, int tries);
/* One world's line of JSON; file: "" if none was written. */
struct json_writer;
void swarm_json(const struct scenario *s, const struct swarm_result *r, const char *file,
                struct json_writer *j);
