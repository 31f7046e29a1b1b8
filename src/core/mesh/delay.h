/* delay.h: one-way delays of one path and direction, in windows of a mergeable histogram.
 *
 * Three windows: the current and the last of OWD_WINDOW_NS (what people see: 10..20 s), and a long
 * one that the expiring windows are merged into, halved each few minutes (what it was before).
 * Delays are fleet time differences: a delay below the clock's error may come out negative; it
 * counts in the lowest bucket and the minimum keeps it. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time.h"
#include "stats/histogram.h"

#define DELAY_SUB_BITS 5  /* exact below 64 ns, then to 3.1 % */
#define DELAY_OCTAVES  27 /* to 8.6 s */

struct delay_counts {
    struct histogram head;
    uint16_t counters[HISTOGRAM_BUCKETS(DELAY_SUB_BITS, DELAY_OCTAVES)];
};
#define DELAY_SINGLES 16
#define DELAY_SPREAD  32
#define DELAY_RECENT  128 /* samples kept as they are: 10..20 s at the default rate */

struct delay_window {
    struct mono start;
    int64_t last;
    uint32_t single_count; /* ever */
    uint32_t recent_count;
    int64_t singles[DELAY_SINGLES]; /* the newest, a ring */
    struct delay_counts now;
    int64_t recent[DELAY_RECENT]; /* ring: while it holds both windows, quantiles are exact */
    struct delay_counts before, longer;
};
/* What one more delay touches, but for the counter and the place in the ring. */
#define DELAY_FETCH (offsetof(struct delay_window, now) + sizeof(struct histogram))

/* Whether anything in the windows is of the last two `window`s: they turn with samples only. */
bool delay_is_fresh(const struct delay_window *w, struct mono now, struct span window);
void delay_init(struct delay_window *w, struct mono now);
void delay_add(struct delay_window *w, struct mono now, struct span window, int64_t owd_ns);
/* A single: kept apart, for it rides in another class and, with software stamps, reads microseconds
 * late. */
void delay_add_single(struct delay_window *w, int64_t owd_ns);
/* Median and maximum of the newest; INT64_MIN: none. */
void delay_singles(const struct delay_window *w, int64_t *ret_p50, int64_t *ret_max);
/* 90 % of the newest DELAY_SPREAD delays are no more than that above the lowest of the windows; INT64_MIN: too few. */
int64_t delay_spread(const struct delay_window *w);
/* Exact while the windows hold at most DELAY_RECENT samples; of buckets (1.6 %) beyond.
 * Of now and before together (longer: that one alone); INT64_MIN when empty. q in 0..1. */
int64_t delay_quantile(const struct delay_window *w, double q);
int64_t delay_quantile_longer(const struct delay_window *w, double q);
