/* tally.h: the checkers' counts of errors: a histogram of picoseconds, read and written in ns. All zero means empty. */
#pragma once
#include <math.h>

#include "stats/histogram.h"

struct tally {
    struct histogram head;
    uint32_t counters[HISTOGRAM_BUCKETS(8, 40)];
};

/* value >= 0 */
static inline void tally_add(struct tally *t, double value_ns)
{
    if (t->head.shape.counter_size == 0) {
        histogram_init(&t->head, (struct histogram_shape){8, 40, sizeof(t->counters[0])});
    }
    histogram_add(&t->head, (int64_t)fmin(value_ns * 1e3, 4e18));
}

/* NAN when empty. */
static inline double tally_quantile(const struct tally *t, double q)
{
    return t->head.count > 0 ? 1e-3 * (double)histogram_quantile(&t->head, q) : NAN;
}
