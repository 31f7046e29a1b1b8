/* priority.c: see priority.h. */
#include "core/traffic/priority.h"

#include <errno.h>
#include <string.h>

#define TARGET_MIN_NS (20 * NS_PER_US)
#define FLOOR_SHARE   0.05
#define BEST_DECAY    0.999

void priority_init(struct priority *p, enum priority_class class, struct mono now)
{
    *p = (struct priority){.class = class, .changed = now};
}

uint32_t priority_weight(enum priority_class class)
{
    static const uint32_t weights[PRIORITY_COUNT] = {1, 4, 8};

    return (unsigned)class < PRIORITY_COUNT ? weights[class] : weights[PRIORITY_NORMAL];
}

int priority_parse(const char *text, enum priority_class *ret_class)
{
    static const char *const names[PRIORITY_COUNT][2] = {
        {"bulk", "0"}, {"normal", "1"}, {"high", "2"}};

    for (int i = 0; i < PRIORITY_COUNT; i++) {
        if (strcmp(text, names[i][0]) == 0 || strcmp(text, names[i][1]) == 0) {
            *ret_class = (enum priority_class)i;
            return 0;
        }
    }
    return -EINVAL;
}

uint8_t priority_dscp(enum priority_class class)
{
    static const uint8_t marks[PRIORITY_COUNT] = {8, 0, 34};

    return (unsigned)class < PRIORITY_COUNT ? marks[class] : 0;
}

void priority_on_delay(struct priority *p, struct mono now, int64_t queue_ns, double delivered,
                       struct span rtt, uint32_t chunk, bool idle)
{
    const int64_t half = rtt.ns / 2 > TARGET_MIN_NS ? rtt.ns / 2 : TARGET_MIN_NS;
    const int64_t target = p->class == PRIORITY_BULK ? half : 8 * half;
    const int64_t step = rtt.ns > TARGET_MIN_NS ? rtt.ns : TARGET_MIN_NS;

    p->rate_best = delivered > p->rate_best * BEST_DECAY ? delivered : p->rate_best * BEST_DECAY;
    if (p->class == PRIORITY_HIGH || mono_sub(now, p->changed).ns < step) {
        return;
    }
    p->changed = now;
    if (queue_ns > target) {
        const double from = p->rate > 0 ? p->rate : delivered;
        p->rate = from * (1 - (double)(queue_ns - target) / (2.0 * (double)queue_ns));
    } else if (p->rate > 0 && !idle) {
        p->rate += (double)chunk / (double)step;
    }
    if (p->rate > 0 && p->rate < FLOOR_SHARE * p->rate_best) {
        p->rate = FLOOR_SHARE * p->rate_best;
    }
    if (p->rate > 2 * p->rate_best && queue_ns <= target) {
        p->rate = 0; /* far above what it can use: no limit */
    }
}

double priority_rate(const struct priority *p)
{
    return p->rate;
}

double priority_share(enum priority_class class, const uint32_t counts[PRIORITY_COUNT])
{
    double all = 0;

    for (int i = 0; i < PRIORITY_COUNT; i++) {
        all += (double)counts[i] * priority_weight((enum priority_class)i);
    }
    return all > 0 ? priority_weight(class) / all : 1;
}
