/* histogram.h: counts of whole numbers in log-linear buckets: quantiles of a stream in fixed memory,
 * and two histograms of one shape merge into what one would have been that had seen both.
 *
 * Below 2^(sub_bits + 1) each number has a bucket of its own; above, each octave is cut into
 * 2^sub_bits buckets of one width. So a quantile is exact below, and within 2^-sub_bits of the
 * sample's own above, on either side (5 bits: 3.1 %, 8 bits: 0.4 %); minimum and maximum are exact.
 * What lies beyond the last octave counts in the last bucket, what is negative in the first; their
 * quantiles are only known to lie between there and the maximum (minimum).
 *
 * The head doesn't hold the counters: they follow it at once in its owner's struct, so that the
 * owner chooses how many and how wide:
 *
 *     struct delays {
 *         struct histogram head;
 *         uint16_t counters[HISTOGRAM_BUCKETS(5, 27)];
 *     };
 *     histogram_init(&d.head, (struct histogram_shape){5, 27, sizeof(d.counters[0])});
 *
 * and copies it by assignment. A counter that is full stays so: a number that finds it full counts
 * only for minimum and maximum. Adding costs a few ns, the rest a pass over the counters. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define HISTOGRAM_SUB_BITS_MAX               16
#define HISTOGRAM_BUCKETS(sub_bits, octaves) ((2u << (sub_bits)) + ((octaves) * (1u << (sub_bits))))

struct histogram_shape {
    uint8_t sub_bits;     /* 1 … HISTOGRAM_SUB_BITS_MAX */
    uint8_t octaves;      /* sub_bits + octaves <= 61 */
    uint8_t counter_size; /* bytes: 2 or 4 */
};
struct histogram {
    struct histogram_shape shape;
    uint64_t count;
    int64_t min, max; /* INT64_MAX, INT64_MIN when nothing was added */
};
_Static_assert(sizeof(struct histogram) % sizeof(uint64_t) == 0, "the counters follow at once");

/* Empties it. */
void histogram_init(struct histogram *h, struct histogram_shape shape);
void histogram_add(struct histogram *h, int64_t value);
/* `to` becomes what it would be had it also seen what `from` has seen. Of one shape. */
void histogram_merge(struct histogram *to, const struct histogram *from);
/* Forgets half: each counter, rounded down; minimum and maximum are then those of the buckets left. */
void histogram_halve(struct histogram *h);
/* The smallest number that a share q (0 … 1) of all don't exceed; q 0: the minimum. INT64_MIN: empty. */
int64_t histogram_quantile(const struct histogram *h, double q);
/* The same of the union of two of one shape. */
int64_t histogram_quantile_both(const struct histogram *a, const struct histogram *b, double q);
