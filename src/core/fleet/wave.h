/* wave.h: a measurement on demand, as one host takes part: which of its pairs it measures next, when it is given up, and how far
 * what it answers may be true.
 *
 * A host has a list of pairs to measure. It is given the next few with the answer to a report: a wave, within bounds of pairs and
 * packets that agents keep themselves too. It tells with a later report that they are done, and gets the next. Who doesn't
 * within what the wave takes and WAVE_PATIENCE_NS more is given up: what it didn't get to stays not measured.
 *
 * Pure, told the time. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "core/fleet/freshness.h"

#define WAVE_PATIENCE_NS (20 * NS_PER_S) /* beats, a restart of the agent */

struct wave_plan {    /* of each pair */
    uint32_t ports;   /* paths */
    uint32_t packets; /* on each */
    uint32_t rate;    /* packets a second of the host */
};

/* One host's pairs, by their numbers from 0 on. {.count = …} has all before it. */
struct wave_asker {
    uint32_t count, next; /* pairs; of these are measured, or given up */
    uint32_t wave, run;   /* pairs that it has now, and their number; 0: none */
    struct mono until;    /* then it is given up */
    uint32_t wave_sent;   /* packets of them, so far */
};

/* What it is to measure now: so many pairs from a->next on. A new wave has the number `run`, not 0. 0: it is through. */
uint32_t wave_next(struct wave_asker *a, const struct wave_plan *plan, uint32_t run,
                   struct mono now);
/* It has sent so many packets of its wave; it is done with it; it gets no more. */
void wave_on_progress(struct wave_asker *a, const struct wave_plan *plan, uint32_t packets);
void wave_on_done(struct wave_asker *a);
void wave_give_up(struct wave_asker *a);
bool wave_is_late(const struct wave_asker *a, struct mono now);
/* Sent so far, and about how long the rest takes if it reports once in `beat`. */
uint64_t wave_packets(const struct wave_asker *a, const struct wave_plan *plan);
struct span wave_left(const struct wave_asker *a, const struct wave_plan *plan, struct span beat);

/* One path, as its sender tells it, and as it is taken: never more answers than packets, never more than was asked. */
struct wave_told {
    uint32_t sent, answered;
    int32_t lost;     /* on the way there; -1: not known */
    int32_t p50, p99; /* delay codes */
};
struct wave_row {
    int16_t p50, p99; /* delay codes; DELAY_CODE_NONE: not known, or no delay */
    uint16_t sent, answered, lost;
    bool measured, lost_known;
};
struct wave_row wave_row(const struct wave_plan *plan, const struct wave_told *told);

/* NULL: it can take part; else why not, in words. */
struct wave_host {
    bool member, reported;
    bool able;  /* its agent knows how to */
    bool timed; /* its clock is in step */
    enum freshness freshness;
};
const char *wave_unfit(const struct wave_host *h);
