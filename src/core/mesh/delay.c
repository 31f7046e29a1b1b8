/* delay.c: see delay.h. */
#include "core/mesh/delay.h"

#include <string.h>

static uint32_t bucket_of(int64_t ns)
{
    uint32_t octave;

    if (ns < (1 << DELAY_LOW_BITS)) {
        return ns < 0 ? 0 : (uint32_t)ns;
    }
    octave = 63 - (uint32_t)__builtin_clzll((uint64_t)ns) - DELAY_LOW_BITS;
    if (octave >= DELAY_OCTAVES) {
        return DELAY_BUCKETS - 1;
    }
    return (1u << DELAY_LOW_BITS) + (octave << DELAY_SUB_BITS) +
           (uint32_t)((ns >> (octave + DELAY_LOW_BITS - DELAY_SUB_BITS)) &
                      ((1 << DELAY_SUB_BITS) - 1));
}

static int64_t bucket_low(uint32_t bucket)
{
    uint32_t octave, sub;

    if (bucket < (1u << DELAY_LOW_BITS)) {
        return bucket;
    }
    bucket -= 1u << DELAY_LOW_BITS;
    octave = bucket >> DELAY_SUB_BITS;
    sub = bucket & ((1u << DELAY_SUB_BITS) - 1);
    return (int64_t)((1u << DELAY_SUB_BITS) + sub) << (octave + DELAY_LOW_BITS - DELAY_SUB_BITS);
}

static void counts_clear(struct delay_counts *c)
{
    memset(c, 0, sizeof *c);
    c->min = INT64_MAX;
    c->max = INT64_MIN;
}

static void counts_add(struct delay_counts *c, int64_t ns)
{
    const uint32_t bucket = bucket_of(ns);

    c->bucket[bucket] += c->bucket[bucket] < UINT16_MAX;
    c->count++;
    c->min = ns < c->min ? ns : c->min;
    c->max = ns > c->max ? ns : c->max;
}

static void counts_merge(struct delay_counts *to, const struct delay_counts *from)
{
    const bool halve = to->count > 3000; /* about 5 minutes at 10 a second */

    to->count = 0;
    for (uint32_t i = 0; i < DELAY_BUCKETS; i++) {
        const uint32_t sum =
            (halve ? to->bucket[i] / 2u : to->bucket[i]) + (uint32_t)from->bucket[i];
        to->bucket[i] = sum > UINT16_MAX ? UINT16_MAX : (uint16_t)sum;
        to->count += to->bucket[i];
    }
    to->min = halve || from->min < to->min ? from->min : to->min;
    to->max = halve || from->max > to->max ? from->max : to->max;
}

void delay_init(struct delay_window *w, struct mono now)
{
    counts_clear(&w->now);
    counts_clear(&w->before);
    counts_clear(&w->longer);
    w->start = now;
    w->last = INT64_MIN;
    w->single_count = 0;
}

void delay_add(struct delay_window *w, struct mono now, struct span window, int64_t owd_ns)
{
    const int64_t age = mono_sub(now, w->start).ns;

    if (age >= window.ns) {
        if (w->before.count > 0) {
            counts_merge(&w->longer, &w->before);
        }
        w->before = w->now;
        counts_clear(&w->now);
        if (age >= 2 * window.ns) {
            counts_clear(&w->before);
        }
        w->start = now;
    }
    counts_add(&w->now, owd_ns);
    w->last = owd_ns;
}

void delay_add_single(struct delay_window *w, int64_t owd_ns)
{
    w->singles[w->single_count++ % DELAY_SINGLES] = owd_ns;
}

void delay_singles(const struct delay_window *w, int64_t *ret_p50, int64_t *ret_max)
{
    const uint32_t count = w->single_count < DELAY_SINGLES ? w->single_count : DELAY_SINGLES;
    int64_t sorted[DELAY_SINGLES];

    *ret_p50 = *ret_max = INT64_MIN;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;

        for (; at > 0 && sorted[at - 1] > w->singles[i]; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = w->singles[i];
    }
    if (count > 0) {
        *ret_p50 = sorted[count / 2];
        *ret_max = sorted[count - 1];
    }
}

static int64_t quantile(const struct delay_counts *a, const struct delay_counts *b, double q)
{
    const uint32_t count = a->count + (b ? b->count : 0);
    const int64_t low = b && b->min < a->min ? b->min : a->min;
    const int64_t high = b && b->max > a->max ? b->max : a->max;
    const double rank = q * (count - 1) + 0.5;
    double below = 0;

    if (count == 0) {
        return INT64_MIN;
    }
    if (q <= 0 || q >= 1) {
        return q <= 0 ? low : high;
    }
    for (uint32_t i = 0; i < DELAY_BUCKETS; i++) {
        const double here = a->bucket[i] + (b ? b->bucket[i] : 0);
        if (here > 0 && below + here >= rank) {
            const double from = (double)bucket_low(i), to = (double)bucket_low(i + 1);
            const int64_t value = (int64_t)(from + (to - from) * (rank - below) / here);
            return value < low ? low : value > high ? high : value;
        }
        below += here;
    }
    return high;
}

int64_t delay_quantile(const struct delay_window *w, double q)
{
    return quantile(&w->now, &w->before, q);
}

int64_t delay_quantile_longer(const struct delay_window *w, double q)
{
    return quantile(&w->longer, NULL, q);
}
