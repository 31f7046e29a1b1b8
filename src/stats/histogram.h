/* histogram.h: counts whole numbers in log-linear buckets: quantiles of a stream in fixed memory. Two histograms of one shape can
 * be merged; the result is the same as if one had seen all numbers.
 *
 * Below 2^(sub_bits + 1) each number has a bucket of its own; above, each octave is cut into 2^sub_bits buckets of equal width.
 * So a quantile is exact below, and above within 2^-sub_bits of the sample's own, on either side (5 bits: 3.1 %, 8 bits: 0.4 %).
 * Minimum and maximum are exact. Numbers beyond the last octave count in the last bucket, negative ones in the first; their
 * quantiles are only known to be between there and the maximum (minimum).
 *
 * The head doesn't contain the counters. They follow directly in its owner's struct, so that the owner chooses their number and
 * width:
 *
 *     struct delays {
 *         struct histogram head;
 *         uint16_t counters[HISTOGRAM_BUCKETS(5, 27)];
 *     };
 *     histogram_init(&d.head, (struct histogram_shape){5, 27, sizeof(d.counters[0])});
 *
 * and copies it by assignment. A full counter stays full: further numbers in it count only for minimum and maximum. Adding costs
 * a few ns, all other functions a pass over the counters. */
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
    int64_t min, max; /* INT64_MAX, INT64_MIN if nothing was added */
};
_Static_assert(sizeof(struct histogram) % sizeof(uint64_t) == 0, "the counters follow at once");

/* Empties it. */
void histogram_init(struct histogram *h, struct histogram_shape shape);
void histogram_add(struct histogram *h, int64_t value);
/* Adds the content of `from` to `to`. Both have one shape. */
void histogram_merge(struct histogram *to, const struct histogram *from);
/* Forgets half: each counter is halved, rounded down; minimum and maximum are then those of the remaining buckets. */
void histogram_halve(struct histogram *h);
/* The smallest number that a share q (0 … 1) of all don't exceed; q 0: the minimum. INT64_MIN: empty. */
int64_t histogram_quantile(const struct histogram *h, double q);
/* The same for the union of two of one shape. */
int64_t histogram_quantile_both(const struct histogram *a, const struct histogram *b, double q);
