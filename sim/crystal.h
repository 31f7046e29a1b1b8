/* crystal.h: a simulated oscillator: it turns true time into its reading.
 *
 * The rate (constant part, random walk, temperature ramps) is integrated over pieces of 10 ms. Changes that are known
 * beforehand are added: steps, rate jumps, a standstill (suspend), a restart from zero (reboot). The reading depends only on
 * the seed and the changes, not on the order of readings. A reading may be up to about 80 ms before the latest one.
 *
 * This is the simulator's own model. It shares no code with the lab's oscillators or with the core. */
#pragma once
#include "base/bug.h"
#include <stdbool.h>
#include <stdint.h>

struct crystal_config {
    uint64_t seed;
    int64_t offset_ns; /* its reading at true time 0 */
    double ppm;
    double wander;     /* ppb per square root of a second */
    double ramp_ppb_s; /* 0: no ramps */
    int64_t ramp_for_ns, ramp_every_ns, ramp_phase_ns;
};

enum crystal_change_kind {
    CRYSTAL_STEP,  /* amount: ns */
    CRYSTAL_RATE,  /* amount: ppm added from now on */
    CRYSTAL_STOP,  /* stands still */
    CRYSTAL_GO,    /* runs again */
    CRYSTAL_RESET, /* reads amount */
};
struct crystal_change {
    int64_t at;
    enum crystal_change_kind kind;
    double amount;
};

enum {
    CRYSTAL_PIECES = 8,
    CRYSTAL_PIECE_NS = 10000000,
};

struct crystal_piece {
    int64_t at;      /* true time where it begins */
    int64_t reading; /* then */
    double fraction;
    double rate; /* reading's excess per true ns */
};

struct crystal {
    struct crystal_config config;
    struct crystal_piece pieces[CRYSTAL_PIECES]; /* the latest at `head` */
    unsigned head;
    int64_t end;  /* of the latest piece */
    int64_t grid; /* index of its 10 ms cell */
    double walk_ppb;
    double jump_ppm;
    bool stopped;
    struct crystal_change *changes; /* sorted by time */
    unsigned change_count, change_next;
};

void crystal_init(struct crystal *c, const struct crystal_config *config);
void crystal_done(struct crystal *c);
/* Call it only before the first reading at or after change->at. */
void crystal_add(struct crystal *c, const struct crystal_change *change);
/* The reading at true time `at`, ns. *ret_fraction gets the fraction of a ns, unless it is NULL. */
int64_t crystal_read(struct crystal *c, int64_t at, double *ret_fraction);
/* The present rate: ns of reading per true ns, minus 1. */
double crystal_rate(const struct crystal *c);
