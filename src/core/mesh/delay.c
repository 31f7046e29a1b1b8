/* delay.c: see delay.h. */
#include "core/mesh/delay.h"

#include "base/bug.h"
#include "stats/sample.h"

#define LONGER_COUNT 3000 /* about 5 minutes at 10 a second */

static void counts_clear(struct delay_counts *c)
{
    histogram_init(&c->head, (struct histogram_shape){.sub_bits = DELAY_SUB_BITS,
                                                      .octaves = DELAY_OCTAVES,
                                                      .counter_size = sizeof(c->counters[0])});
}

void delay_init(struct delay_window *w, struct mono now)
{
    counts_clear(&w->now);
    counts_clear(&w->before);
    counts_clear(&w->longer);
    w->start = now;
    w->last = INT64_MIN;
    w->single_count = 0;
    w->recent_count = 0;
}

bool delay_is_fresh(const struct delay_window *w, struct mono now, struct span window)
{
    return mono_sub(now, w->start).ns < 2 * window.ns;
}

void delay_add(struct delay_window *w, struct mono now, struct span window, int64_t owd_ns)
{
    const int64_t age = mono_sub(now, w->start).ns;

    ASSERT(window.ns > 0); /* otherwise each sample would be a window of its own */
    if (age >= window.ns) {
        if (w->before.head.count > 0) {
            if (w->longer.head.count > LONGER_COUNT) {
                histogram_halve(&w->longer.head);
            }
            histogram_merge(&w->longer.head, &w->before.head);
        }
        w->before = w->now;
        counts_clear(&w->now);
        if (age >= 2 * window.ns) {
            counts_clear(&w->before);
        }
        w->start = now;
    }
    histogram_add(&w->now.head, owd_ns);
    w->recent[w->recent_count++ % DELAY_RECENT] = owd_ns;
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
        sample_insert_int(sorted, i, w->singles[i]);
    }
    if (count > 0) {
        *ret_p50 = sorted[count / 2];
        *ret_max = sorted[count - 1];
    }
}

/* Quickselect: afterwards values[rank] is the value of that rank, and no smaller one comes after it. */
static void select_rank(int64_t *values, uint32_t count, uint32_t rank)
{
    int64_t low = 0, high = (int64_t)count - 1;

    ASSERT(rank < count);

    while (low < high) {
        const int64_t pivot = values[(low + high) / 2];
        int64_t i = low, j = high;

        while (i <= j) {
            for (; values[i] < pivot; i++) {
            }
            for (; values[j] > pivot; j--) {
            }
            if (i <= j) {
                const int64_t value = values[i];
                values[i++] = values[j];
                values[j--] = value;
            }
        }
        if (rank <= j) {
            high = j;
        } else if (rank >= i) {
            low = i;
        } else {
            return;
        }
    }
}

int64_t delay_spread(const struct delay_window *w)
{
    const uint32_t count = w->recent_count < DELAY_SPREAD ? w->recent_count : DELAY_SPREAD;
    const int64_t low = delay_quantile(w, 0);
    int64_t recent[DELAY_SPREAD];

    if (count < DELAY_SPREAD / 2 || low == INT64_MIN) {
        return INT64_MIN;
    }
    for (uint32_t i = 0; i < count; i++) {
        recent[i] = w->recent[(w->recent_count - 1 - i) % DELAY_RECENT];
    }
    select_rank(recent, count, count * 9 / 10);
    return recent[count * 9 / 10] - low;
}

int64_t delay_quantile(const struct delay_window *w, double q)
{
    const uint64_t count = w->now.head.count + w->before.head.count;
    int64_t recent[DELAY_RECENT];

    if (count == 0 || count > DELAY_RECENT || count > w->recent_count || q <= 0 || q >= 1) {
        return histogram_quantile_both(&w->now.head, &w->before.head, q);
    }
    for (uint32_t i = 0; i < count; i++) {
        recent[i] = w->recent[(w->recent_count - 1 - i) % DELAY_RECENT];
    }
    const double rank = q * (double)(count - 1);
    const uint32_t i = (uint32_t)rank;
    int64_t next = INT64_MAX;
    select_rank(recent, (uint32_t)count, i);
    for (uint32_t k = i + 1; k < count; k++) {
        next = recent[k] < next ? recent[k] : next;
    }
    next = i + 1 < count ? next : recent[i];
    return recent[i] + (int64_t)((rank - i) * (double)(next - recent[i]));
}

int64_t delay_quantile_longer(const struct delay_window *w, double q)
{
    return histogram_quantile(&w->longer.head, q);
}
