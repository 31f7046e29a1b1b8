/* slow.h: has the one-way delay of one path and direction shifted?
 *
 * A new way or a broken lane adds a constant: it moves the whole distribution, its floor too, and
 * leaves its shape. A queue widens it. So a shift is likely when all delays of SLOW_HOLD_NS and more are away from the
 * baseline by more than twice the clock's bound, five times the path's own noise and SLOW_LEAST_NS, while they lie no further
 * apart than windows of this path do, and so close together that queues don't look so. Of a queue of random length (its
 * delays exponential) one more delay lies within a band of width s, S above the baseline, with a chance of at most s / (e S),
 * however deep the queue is. So of n delays, one of them left out, n - 2 lie in the band that the first one begins with a
 * chance of at most n (s / (e S))^(n - 2): SLOW_ODDS, 10^10, must be against that. A fleet of 10^5 paths, all of them behind
 * queues all day, has 2 10^10 delays of pairs in it; what watch.c asks besides makes that few. Close ones are
 * told by six delays, and those a fifth of the shift apart by twelve. The baseline is a slow mean, frozen while
 * away from it; what stays away without being a shift becomes the baseline after SLOW_NORMAL_NS.
 *
 * Whether it is the path's doing its own delays can't tell: a clock's error, or a queue of constant
 * length at a NIC, shifts many paths alike. The caller holds it against the other direction and
 * against other peers' paths (watch.c), and gives no delays while a clock isn't synchronised or
 * somebody was late (slow_pause). All zero is the initial state. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define SLOW_RING      12
#define SLOW_BASE      12 /* delays that make a baseline */
#define SLOW_HOLD_NS   (5 * NS_PER_S / 2)
#define SLOW_GAP_NS    (3 * NS_PER_S)
#define SLOW_CALM_NS   (10 * NS_PER_S) /* after a pause nothing is judged: clocks settle */
#define SLOW_NORMAL_NS (10 * NS_PER_S)
#define SLOW_LEAST_NS  1000.0
#define SLOW_WIDER     3.0
#define SLOW_ODDS      23.0 /* ln 10^10 */
#define SLOW_SOME      3    /* delays since the moment that tell whether others moved, too */

enum slow_change { SLOW_SAME, SLOW_LIKELY, SLOW_ENDED };
struct slow_watch {
    bool slow, away, paused;
    uint16_t port;                /* the path that the baseline is of */
    uint32_t count;               /* in the ring */
    uint32_t learned;             /* delays behind the baseline */
    struct mono last, left, calm; /* left: when it was away first; calm: nothing is judged before */
    struct mono born;             /* when there was a baseline first */
    double bound; /* of the clock; while away that of before, for a shift makes it wide by itself */
    double base, base_low, base_spread, noise;
    double median, low, spread; /* of a full ring */
    double told;                /* the median when it was told to be slow, and when that began */
    struct mono began;
    int64_t ring[SLOW_RING];
    int64_t at[SLOW_RING];
};

/* One delay, within bound_ns by the clock. SLOW_LIKELY again and again until slow_begin. */
enum slow_change slow_add(struct slow_watch *w, struct mono now, uint16_t port, int64_t owd_ns,
                          double bound_ns);
/* The caller agrees: it is slow until SLOW_ENDED, by whichever port: what a port goes by may be slow, too. */
void slow_begin(struct slow_watch *w);
/* Ports changed: another path of the two NICs takes the way that was slow, as far as is known. Its delays are what those of the
 * slow one were, and nothing is known of it from before. A window that isn't full leaves it open: true. */
bool slow_elsewhere(const struct slow_watch *w, struct mono now, const struct slow_watch *other);
/* Slow when it was heard last, and that is long ago. */
bool slow_unheard(const struct slow_watch *w, struct mono now);
/* A delay that can't be trusted was left out. */
void slow_pause(struct slow_watch *w, struct mono now);
/* Median of the delays since then minus baseline; false: they are too few, or the baseline is younger than `since`. */
bool slow_shift(const struct slow_watch *w, struct mono now, struct mono since,
                double *ret_shift_ns);
