/* wave.h: one host's part in a measurement on demand: its next pairs, the time at which it is given up, and the plausible limits
 * of its answers.
 *
 * A host has a list of pairs to measure. It gets the next few with the answer to a report: a wave, within limits of pairs and
 * packets that agents also check themselves. A later report of the host shows that they are done, and it gets the next ones. A
 * host that isn't done within the wave's time plus WAVE_PATIENCE_NS is given up: its remaining pairs stay unmeasured.
 *
 * Pure; time is an argument. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"
#include "core/fleet/freshness.h"

#define WAVE_PATIENCE_NS (20 * NS_PER_S) /* for beats, and a restart of the agent */

struct wave_plan {    /* for each pair */
    uint32_t ports;   /* paths */
    uint32_t packets; /* on each path */
    uint32_t rate;    /* packets a second of the host */
};

/* One host's pairs, by their numbers from 0 on. {.count = …}: all are still to be measured. */
struct wave_asker {
    uint32_t count, next; /* count: pairs; next: those that are measured, or given up */
    uint32_t wave, run;   /* wave: pairs that it has now; run: their number; 0: none */
    struct mono until;    /* at that time it is given up */
    uint32_t wave_sent;   /* packets of them so far */
};

/* The pairs that it must measure now: so many from a->next on. A new wave gets the number `run`, not 0. 0: it is done. */
uint32_t wave_next(struct wave_asker *a, const struct wave_plan *plan, uint32_t run,
                   struct mono now);
/* It has sent so many packets of its wave; it is done with the wave; it gets no more. */
void wave_on_progress(struct wave_asker *a, const struct wave_plan *plan, uint32_t packets);
void wave_on_done(struct wave_asker *a);
void wave_give_up(struct wave_asker *a);
bool wave_is_late(const struct wave_asker *a, struct mono now);
/* Packets sent so far, and the approximate remaining time if it reports once in `beat`. */
uint64_t wave_packets(const struct wave_asker *a, const struct wave_plan *plan);
struct span wave_left(const struct wave_asker *a, const struct wave_plan *plan, struct span beat);

/* One path, as its sender reports it, and as it is accepted: never more answers than packets, never more than was asked. */
struct wave_told {
    uint32_t sent, answered;
    int32_t lost;     /* on the way out; -1: not known */
    int32_t p50, p99; /* delay codes */
};
struct wave_row {
    int16_t p50, p99; /* delay codes; DELAY_CODE_NONE: not known, or no possible delay */
    uint16_t sent, answered, lost;
    bool measured, lost_known;
};
struct wave_row wave_row(const struct wave_plan *plan, const struct wave_told *told);

/* NULL: it can take part; otherwise the reason, in words. */
struct wave_host {
    bool member, reported;
    bool able;  /* its agent supports it */
    bool timed; /* its clock is in step */
    enum freshness freshness;
};
const char *wave_unfit(const struct wave_host *h);
