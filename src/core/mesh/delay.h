/* delay.h: one-way delays of one path and direction, in windows of a mergeable histogram.
 *
 * There are three windows: the current one and the last one, each of OWD_WINDOW_NS (people see these: 10..20 s), and a long
 * one. Expiring windows are merged into the long one, which is halved every few minutes (it shows the past). Delays are
 * differences of fleet time: a delay below the clock's error may be negative. It counts in the lowest bucket, and the minimum
 * keeps its value. */
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
#define DELAY_RECENT  128 /* samples that are kept exactly: 10..20 s at the default rate */

struct delay_window {
    struct mono start;
    int64_t last;
    uint32_t single_count; /* since the start */
    uint32_t recent_count;
    int64_t singles[DELAY_SINGLES]; /* the newest ones, a ring */
    struct delay_counts now;
    int64_t recent[DELAY_RECENT]; /* a ring: while it holds both windows, quantiles are exact */
    struct delay_counts before, longer;
};
/* The data that another delay changes, except the counter and the place in the ring. */
#define DELAY_FETCH (offsetof(struct delay_window, now) + sizeof(struct histogram))

/* True if a sample in the windows is from the last two `window`s: windows only turn when samples come. */
bool delay_is_fresh(const struct delay_window *w, struct mono now, struct span window);
void delay_init(struct delay_window *w, struct mono now);
void delay_add(struct delay_window *w, struct mono now, struct span window, int64_t owd_ns);
/* A single packet. It is kept apart, because it has another class and, with software stamps, reads microseconds late. */
void delay_add_single(struct delay_window *w, int64_t owd_ns);
/* Median and maximum of the newest ones; INT64_MIN: there are none. */
void delay_singles(const struct delay_window *w, int64_t *ret_p50, int64_t *ret_max);
/* 90 % of the newest DELAY_SPREAD delays exceed the lowest delay of the windows by at most this; INT64_MIN: too few. */
int64_t delay_spread(const struct delay_window *w);
/* Exact while the windows hold at most DELAY_RECENT samples; beyond that from buckets (1.6 %). Over the current and the last
 * window together (longer: over the long one); INT64_MIN if empty. q in 0..1. */
int64_t delay_quantile(const struct delay_window *w, double q);
int64_t delay_quantile_longer(const struct delay_window *w, double q);
