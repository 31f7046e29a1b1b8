/* slow.c: see slow.h. */
#include "core/mesh/slow.h"

#include <math.h>

#include "stats/sample.h"

/* The delays since then, sorted. Returns their number. */
static uint32_t sorted_since(const struct slow_watch *w, struct mono since,
                             int64_t sorted[static SLOW_RING])
{
    uint32_t count = 0;

    while (count < SLOW_RING && count < w->count) {
        const uint32_t i = (w->count - 1 - count) % SLOW_RING;

        if (w->at[i] < since.ns) {
            break;
        }
        sample_insert_int(sorted, count++, w->ring[i]);
    }
    return count;
}

static double median_of(const int64_t *sorted, uint32_t count)
{
    return ((double)sorted[(count - 1) / 2] + (double)sorted[count / 2]) / 2;
}

static void ring_add(struct slow_watch *w, struct mono now, int64_t owd_ns)
{
    int64_t sorted[SLOW_RING];

    w->at[w->count % SLOW_RING] = now.ns;
    w->ring[w->count++ % SLOW_RING] = owd_ns;
    if (w->count < SLOW_RING) {
        return;
    }
    sorted_since(w, (struct mono){INT64_MIN}, sorted);
    w->low = (double)sorted[1];
    w->median = median_of(sorted, SLOW_RING);
    w->spread = (double)(sorted[SLOW_RING - 2] - sorted[1]);
}

static void learn(struct slow_watch *w, struct mono now, double owd, double threshold)
{
    const double share = w->learned < 128 ? 1.0 / (w->learned + 1.0) : 1.0 / 128;

    if (w->learned == 0) {
        w->base = w->median;
        w->base_low = w->low;
        w->base_spread = w->spread;
        w->noise = w->spread / 2;
    }
    w->base += (w->median - w->base) * share;
    w->base_low += (w->low - w->base_low) * share;
    w->base_spread += (w->spread - w->base_spread) * share;
    /* one extreme delay shows little about the noise */
    w->noise += (fmin(fabs(owd - w->base), threshold) - w->noise) * share;
    w->born = ++w->learned == SLOW_BASE ? now : w->born;
}

/* True if the floor moved and the shape did not: by all delays since it left the baseline, except the highest. */
static bool shifted(const struct slow_watch *w, double threshold, double *ret_median)
{
    int64_t sorted[SLOW_RING];
    const uint32_t count = sorted_since(w, w->left, sorted);

    if (count < 3) {
        return false;
    }
    const double spread = fmax(1, fmax(w->noise, (double)(sorted[count - 2] - sorted[0])));
    const double floor = (double)sorted[0] - w->base;

    *ret_median = median_of(sorted, count);
    return floor > threshold && (double)sorted[0] - w->base_low > threshold &&
           spread <= SLOW_WIDER * w->base_spread + SLOW_LEAST_NS / 2 &&
           (count - 2) * (1 + log(floor / spread)) - log(count) > SLOW_ODDS;
}

static void note_away(struct slow_watch *w, struct mono now, bool away)
{
    if (away && !w->away) {
        w->left = now;
    }
    w->away = away;
}

static bool away_for(const struct slow_watch *w, struct mono now, int64_t ns)
{
    return w->away && mono_sub(now, w->left).ns >= ns;
}

enum slow_change slow_add(struct slow_watch *w, struct mono now, uint16_t port, int64_t owd_ns,
                          double bound_ns)
{
    const bool was = w->slow;
    double median;

    w->paused = false;
    if (w->port != port && w->slow) {
        w->port = port; /* it stays slow until a window of the new port decides */
        w->count = 0;
        w->last = now;
        ring_add(w, now, owd_ns);
        return SLOW_SAME;
    }
    if (w->port != port) {
        *w = (struct slow_watch){.port = port, .calm = w->calm};
    } else if (w->count > 0 && mono_sub(now, w->last).ns > SLOW_GAP_NS) {
        w->count = 0;
        w->slow = w->away = false;
    }
    w->bound = w->away ? w->bound : bound_ns;
    const double threshold = fmax(SLOW_LEAST_NS, fmax(2 * w->bound, 5 * w->noise));
    w->last = now;
    ring_add(w, now, owd_ns);
    if (w->count < SLOW_RING) {
        return was && !w->slow ? SLOW_ENDED : SLOW_SAME;
    }
    note_away(w, now, w->learned > 0 && (double)owd_ns - w->base > threshold);
    if (w->slow) {
        w->slow = w->median - w->base > threshold / 2;
        return w->slow ? SLOW_SAME : SLOW_ENDED;
    }
    if (w->learned < SLOW_BASE && away_for(w, now, SLOW_HOLD_NS)) {
        w->learned = 0; /* no baseline yet: the first samples were untypical */
    }
    if (w->learned >= SLOW_BASE && w->away && shifted(w, threshold, &median)) {
        w->median = median; /* some of the window is not away yet */
        return away_for(w, now, SLOW_HOLD_NS) && now.ns >= w->calm.ns ? SLOW_LIKELY : SLOW_SAME;
    }
    if (!w->away || w->learned == 0 || away_for(w, now, SLOW_NORMAL_NS)) {
        learn(w, now, (double)owd_ns, threshold);
    }
    return SLOW_SAME;
}

void slow_begin(struct slow_watch *w)
{
    w->slow = true;
    w->told = w->median;
    w->began = w->left;
}

bool slow_elsewhere(const struct slow_watch *w, struct mono now, const struct slow_watch *other)
{
    const bool before = other->learned >= SLOW_BASE && other->born.ns <= w->began.ns;

    if (other->slow || before || other->count == 0 || mono_sub(now, other->last).ns > SLOW_GAP_NS) {
        return false;
    }
    return other->count < SLOW_RING || fabs(other->median - w->told) < (w->told - w->base) / 2;
}

bool slow_unheard(const struct slow_watch *w, struct mono now)
{
    return w->slow && mono_sub(now, w->last).ns > SLOW_GAP_NS;
}

void slow_pause(struct slow_watch *w, struct mono now)
{
    w->calm = mono_add(now, span_ns(SLOW_CALM_NS));
    w->away = false;
    if (!w->paused && !w->slow) {
        w->count = 0; /* delays before and after the pause aren't one window */
    }
    w->paused = true;
}

bool slow_shift(const struct slow_watch *w, struct mono now, struct mono since,
                double *ret_shift_ns)
{
    int64_t sorted[SLOW_RING];
    const uint32_t count = sorted_since(w, since, sorted);

    if (w->learned < SLOW_BASE || w->born.ns > since.ns || count < SLOW_SOME || w->paused ||
        mono_sub(now, w->last).ns > SLOW_GAP_NS) {
        return false;
    }
    *ret_shift_ns = median_of(sorted, count) - w->base;
    return true;
}
