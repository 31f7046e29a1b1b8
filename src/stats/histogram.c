/* histogram.c: see histogram.h. */
#include "stats/histogram.h"

#include <stdbool.h>
#include <string.h>

static uint32_t bucket_count(struct histogram_shape shape)
{
    return HISTOGRAM_BUCKETS(shape.sub_bits, (uint32_t)shape.octaves);
}

static uint32_t bucket_of(struct histogram_shape shape, int64_t value)
{
    const uint32_t linear = 2u << shape.sub_bits;

    if (value < (int64_t)linear) {
        return value < 0 ? 0 : (uint32_t)value;
    }
    const uint32_t octave = 62u - (uint32_t)__builtin_clzll((uint64_t)value) - shape.sub_bits;
    if (octave >= shape.octaves) {
        return bucket_count(shape) - 1;
    }
    const uint32_t sub = (uint32_t)(value >> (octave + 1)) - (1u << shape.sub_bits);
    return linear + (octave << shape.sub_bits) + sub;
}

/* Also valid for the bucket after the last one: the end of that one. */
static int64_t bucket_low(struct histogram_shape shape, uint32_t bucket)
{
    const uint32_t linear = 2u << shape.sub_bits, part = 1u << shape.sub_bits;

    if (bucket < linear) {
        return bucket;
    }
    const uint32_t octave = (bucket - linear) >> shape.sub_bits;
    return (int64_t)(part + ((bucket - linear) & (part - 1))) << (octave + 1);
}

static uint32_t counter(const struct histogram *h, uint32_t bucket)
{
    const void *counters = h + 1;

    return h->shape.counter_size == 2 ? ((const uint16_t *)counters)[bucket]
                                      : ((const uint32_t *)counters)[bucket];
}

/* A counter that would overflow stays at its maximum. Returns its content. */
static uint32_t counter_set(struct histogram *h, uint32_t bucket, uint64_t count)
{
    void *counters = h + 1;

    if (h->shape.counter_size == 2) {
        return ((uint16_t *)counters)[bucket] = (uint16_t)(count < UINT16_MAX ? count : UINT16_MAX);
    }
    return ((uint32_t *)counters)[bucket] = (uint32_t)(count < UINT32_MAX ? count : UINT32_MAX);
}

static bool same_shape(const struct histogram *a, const struct histogram *b)
{
    return a->shape.sub_bits == b->shape.sub_bits && a->shape.octaves == b->shape.octaves;
}

static void widen(struct histogram *h, int64_t low, int64_t high)
{
    h->min = low < h->min ? low : h->min;
    h->max = high > h->max ? high : h->max;
}

void histogram_init(struct histogram *h, struct histogram_shape shape)
{
    ASSERT(shape.sub_bits > 0 && shape.sub_bits <= HISTOGRAM_SUB_BITS_MAX);
    ASSERT(shape.sub_bits + shape.octaves <= 61);
    ASSERT(shape.counter_size == 2 || shape.counter_size == 4);
    *h = (struct histogram){.shape = shape, .min = INT64_MAX, .max = INT64_MIN};
    memset(h + 1, 0, (size_t)bucket_count(shape) * shape.counter_size);
}

void histogram_add(struct histogram *h, int64_t value)
{
    const uint32_t bucket = bucket_of(h->shape, value), was = counter(h, bucket);

    h->count += counter_set(h, bucket, (uint64_t)was + 1) - was;
    widen(h, value, value);
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
    ASSERT(same_shape(to, from));
    to->count = 0;
    for (uint32_t i = 0; i < bucket_count(to->shape); i++) {
        to->count += counter_set(to, i, (uint64_t)counter(to, i) + counter(from, i));
    }
    widen(to, from->min, from->max);
}

void histogram_halve(struct histogram *h)
{
    int64_t low = INT64_MAX, high = INT64_MIN;

    h->count = 0;
    for (uint32_t i = 0; i < bucket_count(h->shape); i++) {
        const uint32_t left = counter_set(h, i, counter(h, i) / 2);
        if (left > 0) {
            /* the outermost buckets hold all values beyond */
            low = low == INT64_MAX ? (i == 0 ? h->min : bucket_low(h->shape, i)) : low;
            high = i + 1 == bucket_count(h->shape) ? h->max : bucket_low(h->shape, i + 1) - 1;
            h->count += left;
        }
    }
    h->min = h->count == 0 || low > h->min ? low : h->min;
    h->max = h->count == 0 || high < h->max ? high : h->max;
}

/* b: NULL for none. */
static int64_t quantile(const struct histogram *a, const struct histogram *b, double q)
{
    const uint64_t count = a->count + (b ? b->count : 0);
    const int64_t low = b && b->min < a->min ? b->min : a->min;
    const int64_t high = b && b->max > a->max ? b->max : a->max;
    const double wanted = q * (double)count;
    uint64_t rank = wanted > 0 ? (uint64_t)wanted : 0, below = 0;

    if (count == 0) {
        return INT64_MIN;
    }
    rank -= rank > 0 && (double)rank >= wanted; /* ceil(wanted) - 1 */
    if (!(wanted > 0) || rank + 1 >= count) {
        return wanted > 0 ? high : low;
    }
    for (uint32_t i = 0; i < bucket_count(a->shape); i++) {
        const uint64_t here = (uint64_t)counter(a, i) + (b ? counter(b, i) : 0);
        if (below + here > rank) {
            /* as if the values of a bucket were spread evenly */
            const int64_t from = bucket_low(a->shape, i), to = bucket_low(a->shape, i + 1);
            const double share = ((double)(rank - below) + 0.5) / (double)here;
            const int64_t value = from + (int64_t)((double)(to - from) * share);
            return value < low ? low : value > high ? high : value;
        }
        below += here;
    }
    return high;
}

int64_t histogram_quantile(const struct histogram *h, double q)
{
    return quantile(h, NULL, q);
}

int64_t histogram_quantile_both(const struct histogram *a, const struct histogram *b, double q)
{
    ASSERT(same_shape(a, b));
    return quantile(a, b, q);
}
