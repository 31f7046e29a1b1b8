/* priority.c: see priority.h. */
#include "core/traffic/priority.h"

#define TARGET_MIN_NS (20 * NS_PER_US)
#define TARGET_CHUNKS 5
#define STANDING      2 /* consecutive samples that waited although only one chunk was in flight */
#define SPARE_CHUNKS                                                                               \
    1.5 /* more than the present amount: with less, a window of one would stay one on any path */
#define FLOOR_SHARE 0.05
#define PROBE_NS    (200 * NS_PER_MS)

void priority_init(struct priority *p, struct mono now)
{
    *p = (struct priority){.window = 1, .changed = now};
}

uint8_t priority_dscp(enum priority_class class)
{
    static const uint8_t dscp[PRIORITY_COUNT] = {8, 0, 34}; /* CS1, default, AF41 */

    return class >= 0 && class < PRIORITY_COUNT ? dscp[class] : 0;
}

static double floor_of(const struct priority_sample *sample)
{
    const double share = FLOOR_SHARE * sample->goodput / (sample->lanes > 0 ? sample->lanes : 1);
    const double probe = (double)sample->chunk / (double)PROBE_NS;

    return share > probe ? share : probe;
}

static int64_t target_of(const struct priority_sample *sample)
{
    const double chunks =
        sample->goodput > 0 ? TARGET_CHUNKS * (double)sample->chunk / sample->goodput : 0;
    const double half = (double)sample->life_ns_min / 2, own = chunks > half ? chunks : half;

    return own > TARGET_MIN_NS ? (int64_t)own : TARGET_MIN_NS;
}

static uint32_t window_max(const struct priority_sample *sample)
{
    const double share = sample->goodput / (sample->lanes > 0 ? sample->lanes : 1);
    const double chunks = SPARE_CHUNKS + share * (double)sample->life_ns_min /
                                             (sample->chunk > 0 ? sample->chunk : 1);

    return chunks < PRIORITY_WINDOW_MAX ? (uint32_t)chunks : PRIORITY_WINDOW_MAX;
}

static uint32_t window_of(struct priority *p, const struct priority_sample *sample)
{
    const int64_t target = target_of(sample);
    const uint32_t most = window_max(sample);

    if (sample->queue_ns <= target) {
        p->over = 0;
        return p->window < most ? p->window + 1 : most;
    }
    p->over += p->window == 1;
    if (p->window == 0 || sample->queue_ns > 2 * target || p->over >= STANDING) {
        p->over = 0;
        return 0;
    }
    return p->window > 1 ? p->window / 2 : 1;
}

void priority_on_delay(struct priority *p, struct mono now, const struct priority_sample *sample)
{
    if (p->bug.condition != NULL || mono_before(sample->sent, p->changed)) {
        return;
    }
    if (!HOLDS(&p->bug,
               p->rate >= 0 && sample->queue_ns >= 0 && p->window <= PRIORITY_WINDOW_MAX)) {
        return;
    }
    p->window = window_of(p, sample);
    p->rate = p->window == 0 ? floor_of(sample) : 0;
    p->changed = now;
}

uint32_t priority_window(const struct priority *p)
{
    return p->bug.condition != NULL ? PRIORITY_WINDOW_MAX : p->window;
}

double priority_rate(const struct priority *p)
{
    return p->bug.condition != NULL ? 0 : p->rate;
}

const struct bug_note *priority_bug(const struct priority *p)
{
    return p->bug.condition != NULL ? &p->bug : NULL;
}
