/* swarm.h: worlds drawn at random from the whole scenario language. They are judged by conditions that must hold in any world
 * (invariant.h), and shrunk if they break one. One seed gives one world, on any machine. */
#pragma once
#include "service/scenario/scenario.h"
#include "sim/invariant.h"

/* The results of one world. */
struct swarm_result {
    uint64_t broken[INVARIANT_COUNT];
    int64_t first[INVARIANT_COUNT]; /* when, true ns; -1: it holds */
    char text[INVARIANT_COUNT][200];
    uint64_t trace, probes;
    double p99_ratio; /* error divided by the allowed error; 0: not judged */
    double seconds;   /* processor time */
};

/* Draws the world of that seed; its bounds are all invariants. */
void swarm_draw(uint64_t seed, struct scenario *ret);
/* Draws a world that the lab can play with real packets, up to eight hosts; its bounds are metrics that the lab measures. */
void swarm_draw_lab(uint64_t seed, struct scenario *ret);
/* Plays the world; stops early when `until` is broken (INVARIANT_COUNT: never). -ENOMEM. */
MUST_CHECK int swarm_play(const struct scenario *s, enum invariant until, struct swarm_result *ret);
/* Makes the world as small as possible while `broken` is still broken: fewer faults, less load, fewer hosts and NICs, simpler
 * fabric and clocks, less time. Plays at most `tries` worlds; returns how many. -ENOMEM. */
MUST_CHECK int swarm_shrink(struct scenario *s, enum invariant broken, int tries);
/* One line of JSON for a world. file: "" if none was written. */
struct json_writer;
void swarm_json(const struct scenario *s, const struct swarm_result *r, const char *file,
                struct json_writer *j);
