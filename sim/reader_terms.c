/* reader_terms.c: computes the line, and the growth of both bounds, in long double. */
#include "sim/reader_terms.h"

#include <math.h>

/* The ns that a rate of max(limit, drift s) adds in t seconds. */
static long double grown(const struct clock_terms *terms, long double t)
{
    const long double limit = terms->rate_limit, drift = terms->rate_drift;
    const long double above = drift * t > limit ? drift * t - limit : 0;

    return (limit * t + (above > 0 ? above * above / (2 * drift) : 0)) * 1e9L;
}

struct clock_reading reader_terms(const struct clock_terms *terms, struct nic_time at)
{
    const struct clock_line *line = &terms->line;
    const int64_t since = at.ns - line->r.ns, until = line->until.ns - line->r.ns;
    const long double t = fabsl((long double)since) * 1e-9L;
    struct clock_reading r = {.status = terms->status, .hard_ns = -1, .statistical_ns = -1};

    if (terms->status == CLOCK_UNKNOWN) {
        return r;
    }
    const long double moved = (long double)line->x_fraction + (long double)line->y * since +
                              (long double)line->slew * (since < until ? since : until);
    r.time.ns = at.ns + line->x_ns + (int64_t)floorl(moved);
    const long double variance =
        terms->p00 + 2 * terms->p01 * t + terms->p11 * t * t + terms->q2 * t * t * t / 3;
    r.statistical_ns =
        (double)(6 * sqrtl((variance > 0 ? variance : 0) + terms->spread2_ns) + terms->shift_ns);
    if (terms->h_ns >= 0) {
        long double hard = terms->h_ns + grown(terms, t);
        if (terms->guarded) {
            const int64_t silent = at.ns > terms->guard.ns ? at.ns - terms->guard.ns : 0;
            hard += terms->guard_ns + terms->guard_rate * (long double)silent;
        }
        r.hard_ns = (double)hard;
        r.statistical_ns = r.statistical_ns < r.hard_ns ? r.statistical_ns : r.hard_ns;
    }
    return r;
}
