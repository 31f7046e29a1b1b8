/* nights.h: one scenario after the other, then the last of them with seed after seed, a process per processor, until
 * enough path-hours are reached. What is done is kept in a journal: a run that was cut short goes on where it
 * stopped, as long as the code is the same. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define NIGHT_SCENARIOS 8
#define NIGHT_SEEDS     4096 /* beyond that a run taken up again doesn't know what was done */

struct night {
    char scenario[64];
    uint64_t seed; /* 0: the scenario's own */
    double path_hours, wrong;
    int holds; /* all bounds of the scenario */
};

/* To be zeroed and filled down to `code` by the caller. */
struct nights {
    char *const *scenarios; /* each with its own seed; more seeds of the last */
    int count;
    bool seeds_only;
    uint64_t seed, last;
    double enough;       /* path-hours */
    const char *journal; /* a file; NULL: none is kept */
    const char
        *code; /* names what decides (tools/run-bench): nights of another count for nothing */
    /* so far */
    double path_hours, wrong;
    char wrong_in[80];         /* the last that had a wrong verdict */
    int held[NIGHT_SCENARIOS]; /* with its own seed: 1, 0; -1: not played yet */
    int begun;
    bool done[NIGHT_SEEDS];
};

/* play: runs in a child. told: after each night; may be NULL. A night that dies is said, isn't counted, and lets no
 * other begin. */
void nights_run(struct nights *n, struct night (*play)(const char *scenario, uint64_t seed),
                void (*told)(const struct nights *n));
