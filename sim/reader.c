/* reader.c: computes the page's three lines and two bounds in long double: 64 bits of mantissa hold a nanosecond in 500 years. */
#include "sim/reader.h"

#include <math.h>

static long double at(const struct linear_map *map, int64_t raw)
{
    const long double since = (long double)(raw - map->r);
    return (long double)map->x + (long double)map->x_fraction * 0x1p-32L +
           (long double)map->y * 0x1p-42L * since;
}

static double rate_part(const struct clock_page_terms *page, double t)
{
    /* integral of max(limit, drift s) from 0 to t */
    const double knee = page->rate_drift > 0 ? page->rate_limit / page->rate_drift : INFINITY;
    if (t <= knee) {
        return page->rate_limit * t * 1e9;
    }
    return (page->rate_limit * knee + page->rate_drift * (t * t - knee * knee) / 2) * 1e9;
}

struct reading reader_read(const struct clock_page_terms *page, int64_t raw)
{
    struct reading r = {.status = (enum clock_page_status)page->status};
    const double t = fabs((double)(raw - page->written)) * 1e-9;

    if (page->status == CLOCK_PAGE_UNKNOWN || raw < page->since ||
        raw < page->written - CLOCK_PAGE_EARLY_NS) {
        r.status = CLOCK_PAGE_UNKNOWN;
        return r;
    }
    const struct linear_map *map = raw < page->line_from  ? &page->prior
                                   : raw < page->map_from ? &page->line
                                                          : &page->map;
    const long double offset = at(map, raw);
    const long double whole = floorl(offset);
    r.fleet_ns = raw + (int64_t)whole;
    r.fraction = (double)(offset - whole);
    r.hard_ns = page->h_ns + rate_part(page, t);
    if (page->guard != INT64_MAX) {
        r.hard_ns += page->guard_ns;
        r.hard_ns += raw > page->guard ? page->guard_rate * (double)(raw - page->guard) : 0;
    }
    const double p = page->p00 + 2 * page->p01 * t + page->p11 * t * t + page->q2 * t * t * t / 3;
    r.statistical_ns = 6 * sqrt(p + page->spread2) + page->shift_ns;
    r.statistical_ns = r.statistical_ns < r.hard_ns ? r.statistical_ns : r.hard_ns;
    if (raw > page->void_after) {
        r.status = CLOCK_PAGE_DISRUPTED;
    } else if (raw - page->written > CLOCK_PAGE_UNKNOWN_NS || r.hard_ns > CLOCK_PAGE_HARD_NS_MAX) {
        r.status = CLOCK_PAGE_UNKNOWN;
    } else if (raw - page->written > CLOCK_PAGE_HOLDOVER_NS && r.status == CLOCK_PAGE_SYNCED) {
        r.status = CLOCK_PAGE_HOLDOVER;
    }
    return r;
}
