/* anchor.c: UTC. Members with an upstream publish UTC - F and a bound; all hand the freshest on and
 * steer alike, slowly: the fleet's one timeline leans towards UTC without anybody leading it. */
#include "core/clock/clock_private.h"

#include <math.h>

#include "stats/sample.h"

#define ANCHORS    8
#define AGE_MS_MAX 60000
#define STEER_MAX  100e-9
#define STEER_S    100.0
/* Fleet time runs at the mean of free oscillators (100 ppm each at worst), UTC at its own rate: what an anchor said
 * is worth less with every second. */
#define UTC_RATE 200e-6

static int find_slot(const struct clock *c, uint32_t member, struct nic_time now)
{
    int oldest = 0;

    for (int i = 0; i < ANCHORS; i++) {
        if (c->anchors[i].member == member) {
            return i;
        }
        if (c->anchors[i].member == UINT32_MAX) {
            oldest = i;
        } else if (c->anchors[oldest].member != UINT32_MAX &&
                   c->anchor_at[i].ns < c->anchor_at[oldest].ns) {
            oldest = i;
        }
    }
    return oldest;
}

/* anchor_at is when it was measured, by the own clock. */
void anchor_hear(struct clock *c, struct nic_time now, const struct clock_anchor *a)
{
    if (a->member == UINT32_MAX || a->age_ms > AGE_MS_MAX || a->member == c->config.member) {
        return;
    }
    const struct nic_time measured = {now.ns - (int64_t)a->age_ms * NS_PER_MS};
    const int i = find_slot(c, a->member, now);

    if (c->anchors[i].member == a->member && c->anchor_at[i].ns >= measured.ns) {
        return;
    }
    c->anchors[i] = *a;
    c->anchor_at[i] = measured;
}

void clock_on_utc(struct clock *c, struct nic_time now, int64_t utc_minus_ns, double bound_ns)
{
    const int i = find_slot(c, c->config.member, now);

    if (bound_ns < 0 || bound_ns > 4e9) {
        if (c->anchors[i].member == c->config.member) {
            c->anchors[i].member = UINT32_MAX;
        }
        return;
    }
    c->anchors[i] =
        (struct clock_anchor){c->config.member, (uint32_t)ceil(bound_ns), utc_minus_ns, 0};
    c->anchor_at[i] = now;
}

void anchor_tick(struct clock *c, struct nic_time now)
{
    int64_t offsets[ANCHORS];
    int count = 0;
    double bound = 0;

    for (int i = 0; i < ANCHORS; i++) {
        if (c->anchors[i].member == UINT32_MAX) {
            continue;
        }
        if (now.ns - c->anchor_at[i].ns > (int64_t)AGE_MS_MAX * NS_PER_MS) {
            c->anchors[i].member = UINT32_MAX;
            continue;
        }
        sample_insert_int(offsets, (size_t)count++, c->anchors[i].utc_minus_ns);
        bound =
            fmax(bound, c->anchors[i].bound_ns + UTC_RATE * (double)(now.ns - c->anchor_at[i].ns));
    }
    c->utc_known = count > 0;
    c->steer = 0;
    if (count == 0) {
        return;
    }
    c->utc_minus_ns = offsets[(count - 1) / 2];
    c->utc_bound_ns = bound + (double)(offsets[count - 1] - offsets[0]);
    c->steer = fmin(STEER_MAX, fmax(-STEER_MAX, (double)c->utc_minus_ns * 1e-9 / STEER_S));
}

/* The known ones in turn. */
struct clock_anchor anchor_publish(const struct clock *c, struct nic_time now)
{
    struct clock_anchor none = {.member = UINT32_MAX};
    int known[ANCHORS], count = 0;

    for (int i = 0; i < ANCHORS; i++) {
        const int64_t age = now.ns - c->anchor_at[i].ns;
        if (c->anchors[i].member != UINT32_MAX && age >= 0 &&
            age <= (int64_t)AGE_MS_MAX * NS_PER_MS) {
            known[count++] = i;
        }
    }
    if (count == 0) {
        return none;
    }
    const int i = known[c->map_seq % (uint32_t)count];
    struct clock_anchor a = c->anchors[i];
    a.age_ms = (uint32_t)((now.ns - c->anchor_at[i].ns) / NS_PER_MS);
    return a;
}
