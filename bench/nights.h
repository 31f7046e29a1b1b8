/* nights.h: plays one scenario after the other, then the last of them with more seeds, one process per processor, until enough
 * path-hours are reached. A journal has the finished nights: an interrupted run continues there, as long as the code is the
 * same. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define NIGHT_SCENARIOS 8
#define NIGHT_SEEDS     4096 /* a continued run does not remember more nights than this */

struct night {
    char scenario[64];
    uint64_t seed; /* 0: the scenario's own seed */
    double path_hours, wrong;
    int holds; /* whether all bounds of the scenario hold */
};

/* The caller zeroes it and fills the fields down to `code`. */
struct nights {
    char *const *scenarios; /* each with its own seed; then more seeds of the last one */
    int count;
    bool seeds_only;
    uint64_t seed, last;
    double enough;       /* path-hours */
    const char *journal; /* a file; NULL: no journal */
    const char
        *code; /* the code that decides (tools/run-bench): nights of other code don't count */
    /* so far */
    double path_hours, wrong;
    char wrong_in[80];         /* the last night with a wrong verdict */
    int held[NIGHT_SCENARIOS]; /* with its own seed: 1, 0; -1: not played yet */
    int begun;
    bool done[NIGHT_SEEDS];
};

/* play: runs in a child. told: called after each night; may be NULL. A night that dies is printed, isn't counted, and no other
 * night begins after it. */
void nights_run(struct nights *n, struct night (*play)(const char *scenario, uint64_t seed),
                void (*told)(const struct nights *n));
