/* perf_waited.c: what remains of the differences between the runs of a collective without the time that hosts waited for their
 * processors. */
#include <math.h>

#include "core/audit/perf_internal.h"

/* What two hosts reported, or more: the second largest. *ret_most: what one reported. */
static double second_of(const struct perf *p, uint32_t host, uint32_t part, double *ret_most)
{
    double most = 0, second = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        const struct perf_result *r = &p->rows[i];
        if (i != host && r->outcome == PERF_DONE && part < r->parts) {
            const double waited = r->part_waited[part];
            second = fmax(second, fmin(most, waited));
            most = fmax(most, waited);
        }
    }
    *ret_most = most;
    return second;
}

/* A run that waited for a share w of its time could have been 1 / (1 - w) times as fast, and not faster than the fastest. */
static double spread_without(const struct perf_result *r, const double waited[PERF_PARTS])
{
    double fastest = 0, sum = 0, squares = 0;

    for (uint32_t i = 0; i < r->parts; i++) {
        fastest = fmax(fastest, r->part_rate[i]);
    }
    for (uint32_t i = 0; i < r->parts; i++) {
        const double share = waited[i] * 1e-4;
        const double rate = share < 1 ? fmin(r->part_rate[i] / (1 - share), fastest) : fastest;
        sum += rate;
        squares += rate * rate;
    }
    const double mean = sum / r->parts;
    return mean > 0 ? 100 * sqrt(fmax(squares / r->parts - mean * mean, 0)) / mean : 0;
}

bool perf_spread_left(const struct perf *p, uint32_t host, double *ret_two, double *ret_one)
{
    const struct perf_result *r = &p->rows[host];
    double two[PERF_PARTS], one[PERF_PARTS];

    if (r->outcome != PERF_DONE || r->parts == 0) {
        return false;
    }
    for (uint32_t i = 0; i < r->parts; i++) {
        double most;
        const double second = second_of(p, host, i, &most);
        two[i] = r->part_waited[i] + 2 * second;
        one[i] = r->part_waited[i] + second + most;
    }
    *ret_two = spread_without(r, two);
    *ret_one = spread_without(r, one);
    return true;
}
