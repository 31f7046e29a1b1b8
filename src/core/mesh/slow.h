/* slow.h: detects a shift of the one-way delay of one path and direction.
 *
 * A new way or a broken lane adds a constant: it moves the whole distribution with its floor, and keeps its shape. A queue widens
 * the distribution. So a shift is likely if all delays of SLOW_HOLD_NS and more are away from the baseline by more than twice the
 * clock's bound, five times the path's own noise and SLOW_LEAST_NS. They must also lie no further apart than in usual windows of
 * this path, and so close together that queues are unlikely. With a queue of random length (exponential delays), one more delay
 * lies within a band of width s, S above the baseline, with a chance of at most s / (e S), however deep the queue is. So of n
 * delays, one left out, n - 2 lie in the band that the first one begins with a chance of at most n (s / (e S))^(n - 2). The odds
 * against that must be SLOW_ODDS, 10^10. A fleet of 10^5 paths, all behind queues all day, has 2 10^10 delays of pairs; the
 * further conditions of watch.c leave few of these. Close delays need six samples; delays that are a fifth of the shift apart
 * need twelve. The baseline is a slow mean, which is frozen while the delays are away. Delays that stay away without a shift
 * become the baseline after SLOW_NORMAL_NS.
 *
 * A path's own delays can't show whether the path is the cause: a clock's error, or a queue of constant length at a NIC, shifts
 * many paths alike. The caller compares it with the other direction and with other peers' paths (watch.c). It passes no delays
 * while a clock isn't synchronised or an agent was late (slow_pause). All zero is the initial state. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define SLOW_RING    12
#define SLOW_BASE    12 /* delays that make a baseline */
#define SLOW_HOLD_NS (5 * NS_PER_S / 2)
#define SLOW_GAP_NS  (3 * NS_PER_S)
/* after a pause nothing is judged for so long: clocks settle */
#define SLOW_CALM_NS   (10 * NS_PER_S)
#define SLOW_NORMAL_NS (10 * NS_PER_S)
#define SLOW_LEAST_NS  1000.0
#define SLOW_WIDER     3.0
#define SLOW_ODDS      23.0 /* ln 10^10 */
#define SLOW_SOME      3    /* delays since the moment that show whether other paths moved, too */

enum slow_change { SLOW_SAME, SLOW_LIKELY, SLOW_ENDED };
struct slow_watch {
    bool slow, away, paused;
    uint16_t port;                /* the path of the baseline */
    uint32_t count;               /* in the ring */
    uint32_t learned;             /* delays in the baseline */
    struct mono last, left, calm; /* left: when it was first away; calm: nothing is judged before */
    struct mono born;             /* when the first baseline was complete */
    double bound; /* of the clock; while away the earlier value, because a shift itself widens it */
    double base, base_low, base_spread, noise;
    double median, low, spread; /* of a full ring */
    /* the median when the path was reported as slow, and when that began */
    double told;
    struct mono began;
    int64_t ring[SLOW_RING];
    int64_t at[SLOW_RING];
};

/* Adds one delay, within bound_ns by the clock. Returns SLOW_LIKELY again and again until slow_begin(). */
enum slow_change slow_add(struct slow_watch *w, struct mono now, uint16_t port, int64_t owd_ns,
                          double bound_ns);
/* The caller agrees: the path is slow until SLOW_ENDED, also with another port, because the common way may be slow. */
void slow_begin(struct slow_watch *w);
/* Ports changed: as far as known, another path of the two NICs takes the slow way now. Its delays equal those of the slow path,
 * and it has no history. True: a window that isn't full leaves it open. */
bool slow_elsewhere(const struct slow_watch *w, struct mono now, const struct slow_watch *other);
/* It was slow when it was last heard, and that is long ago. */
bool slow_unheard(const struct slow_watch *w, struct mono now);
/* A delay that can't be trusted was left out. */
void slow_pause(struct slow_watch *w, struct mono now);
/* Median of the delays since then minus the baseline; false: too few delays, or the baseline is younger than `since`. */
bool slow_shift(const struct slow_watch *w, struct mono now, struct mono since,
                double *ret_shift_ns);
