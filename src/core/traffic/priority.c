/* priority.c: see priority.h. */
#include "core/traffic/priority.h"

#define TARGET_MIN_NS (20 * NS_PER_US)
#define STEP_MIN_NS   NS_PER_MS
#define FLOOR_SHARE   0.05
#define MORE_SHARE    (1.0 / 2)
#define FREE          2 /* times the best rate: no limit any more */
#define BEST_DECAY    0.999

void priority_init(struct priority *p, struct mono now)
{
    *p = (struct priority){.queue_ns = INT64_MAX, .changed = now, .step = span_ns(STEP_MIN_NS)};
}

uint8_t priority_dscp(enum priority_class class)
{
    static const uint8_t marks[PRIORITY_COUNT] = {8, 0, 34};

    return (unsigned)class < PRIORITY_COUNT ? marks[class] : 0;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void adjust(struct priority *p, int64_t target, const struct priority_sample *sample)
{
    const double best = p->rate_best / (sample->lanes > 0 ? sample->lanes : 1);
    const double least = FLOOR_SHARE * best, delivered = sample->delivered;

    if (p->queue_ns > target) {
        const double from = p->rate > 0 && p->rate < delivered ? p->rate : delivered;
        p->rate = from * (1 - (double)(p->queue_ns - target) / (2.0 * (double)p->queue_ns));
        p->rate = p->rate > least ? p->rate : least;
    } else if (p->rate > 0) {
        p->rate += MORE_SHARE * best * (double)(target - p->queue_ns) / (double)target;
        p->rate = p->rate < FREE * p->rate_best ? p->rate : 0;
    }
}

void priority_on_delay(struct priority *p, struct mono now, const struct priority_sample *sample)
{
    const double delivered = sample->delivered;
    int64_t chunks, target;

    if (p->bug.condition != NULL || delivered <= 0) {
        return;
    }
    p->queue_ns = sample->queue_ns < p->queue_ns ? sample->queue_ns : p->queue_ns;
    if (mono_sub(now, p->changed).ns < p->step.ns) {
        return;
    }
    p->rate_best = delivered > p->rate_best * BEST_DECAY ? delivered : p->rate_best * BEST_DECAY;
    chunks = (int64_t)(3.0 * sample->chunk / p->rate_best);
    target = larger(larger(sample->rtt.ns / 2, chunks), TARGET_MIN_NS);
    adjust(p, target, sample);
    if (!HOLDS(&p->bug, p->rate >= 0 && p->queue_ns >= 0)) {
        p->rate = 0;
        return;
    }
    p->step.ns = larger(larger(sample->rtt.ns + p->queue_ns, chunks), STEP_MIN_NS);
    p->step.ns = p->step.ns < 100 * NS_PER_MS ? p->step.ns : 100 * NS_PER_MS;
    p->changed = now;
    p->queue_ns = INT64_MAX;
}

double priority_rate(const struct priority *p)
{
    return p->rate;
}

const struct bug_note *priority_bug(const struct priority *p)
{
    return p->bug.condition != NULL ? &p->bug : NULL;
}
