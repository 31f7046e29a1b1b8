/* map.c: arithmetic of maps and of readers' terms. Whole nanoseconds stay in int64 until a difference is small. */
#include "core/clock/clock_private.h"

#include <math.h>

/* F(at) in two parts. */
struct split_time {
    int64_t ns;
    double fraction;
};

static struct split_time split(int64_t at_ns, int64_t x_ns, double x_fraction, double y,
                               int64_t r_ns)
{
    /* |at - r| is seconds, up to minutes in holdover: y times it is far below 2^53 */
    const double moved = x_fraction + y * (double)(at_ns - r_ns);
    const int64_t toward_zero =
        (int64_t)moved; /* floor() would be a call, and this runs for each point */
    const int64_t whole = toward_zero - (moved < (double)toward_zero);

    return (struct split_time){at_ns + x_ns + whole, moved - (double)whole};
}

struct fleet_time clock_map_apply(const struct clock_map *map, struct nic_time at)
{
    const struct split_time f = split(at.ns, map->x_ns, map->x_fraction, map->y, map->r.ns);

    return (struct fleet_time){f.ns + (f.fraction >= 0.5)};
}

double clock_map_difference(const struct clock_map *a, struct nic_time at_a,
                            const struct clock_map *b, struct nic_time at_b)
{
    const struct split_time fa = split(at_a.ns, a->x_ns, a->x_fraction, a->y, a->r.ns);
    const struct split_time fb = split(at_b.ns, b->x_ns, b->x_fraction, b->y, b->r.ns);

    return (double)(fa.ns - fb.ns) + (fa.fraction - fb.fraction);
}

double clock_drift_ns(double rate_limit, double rate_drift, double age_s)
{
    const double crossing = rate_drift > 0 ? rate_limit / rate_drift : INFINITY;
    const double age = fabs(age_s);

    if (age <= crossing) {
        return rate_limit * age * 1e9;
    }
    return (rate_limit * crossing + rate_drift * (age * age - crossing * crossing) / 2) * 1e9;
}

/* The same result as clock_page_at() (wire) for these terms: all readers see one bound. */
static double hard_bound(const struct clock_terms *t, struct nic_time at, double age_s)
{
    if (t->h_ns < 0) {
        return -1;
    }
    double h = t->h_ns + clock_drift_ns(t->rate_limit, t->rate_drift, age_s);
    if (t->guarded) {
        const double since_s = fmax(0, (double)(at.ns - t->guard.ns) * 1e-9);
        h += t->guard_ns + t->guard_rate * since_s * 1e9;
    }
    return h;
}

struct clock_reading clock_terms_read(const struct clock_terms *t, struct nic_time at)
{
    struct clock_reading reading = {t->status, {0}, -1, -1};
    const struct clock_line *line = &t->line;

    if (t->status == CLOCK_UNKNOWN) {
        return reading;
    }
    const int64_t slewed_ns = (at.ns < line->until.ns ? at.ns : line->until.ns) - line->r.ns;
    const double moved =
        line->x_fraction + line->y * (double)(at.ns - line->r.ns) + line->slew * (double)slewed_ns;
    reading.time.ns = at.ns + line->x_ns + (int64_t)floor(moved);
    const double age_s = fabs((double)(at.ns - line->r.ns) * 1e-9);
    reading.hard_ns = hard_bound(t, at, age_s);
    const double p = t->p00 + age_s * (2 * t->p01 + age_s * (t->p11 + age_s * t->q2 / 3));
    reading.statistical_ns = 6 * sqrt(fmax(0, p) + t->spread2_ns) + t->shift_ns;
    if (reading.hard_ns >= 0) {
        reading.statistical_ns = fmin(reading.statistical_ns, reading.hard_ns);
    }
    return reading;
}
