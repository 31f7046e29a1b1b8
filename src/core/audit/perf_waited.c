/* perf_waited.c: what remains of the differences between the runs of a collective without the time that hosts waited for their
 * processors. */
#include <math.h>

#include "core/audit/perf_internal.h"

enum { ITERATIONS = 64 }; /* with five runs a step leaves at most four fifths of an error */

struct reports {
    double most, second, third; /* of the other hosts, 1/10000 */
};

/* The second largest is what two hosts reported, or more. */
static struct reports reports_of(const struct perf *p, uint32_t host, uint32_t part)
{
    struct reports of = {.most = 0};

    for (uint32_t i = 0; i < p->count; i++) {
        const struct perf_result *r = &p->rows[i];
        if (i != host && r->outcome == PERF_DONE && part < r->parts) {
            const double waited = r->part_waited[part];
            of.third = fmax(of.third, fmin(of.second, waited));
            of.second = fmax(of.second, fmin(of.most, waited));
            of.most = fmax(of.most, waited);
        }
    }
    return of;
}

/* A run that waited for a share w of its time could have been up to 1 / (1 - w) times as fast, and not faster than the fastest.
 * Returns the smallest spread that is possible with such rates: each rate is as near to their mean as it can be. A longer wait
 * never makes this larger. So no host's report of a wait makes another host fail. */
static double spread_without(const struct perf_result *r, const double waited[PERF_PARTS])
{
    double high[PERF_PARTS], fastest = 0, sum = 0, squares = 0;

    for (uint32_t i = 0; i < r->parts; i++) {
        fastest = fmax(fastest, r->part_rate[i]);
    }
    for (uint32_t i = 0; i < r->parts; i++) {
        const double share = waited[i] * 1e-4;
        high[i] = share < 1 ? fmin(r->part_rate[i] / (1 - share), fastest) : fastest;
    }
    double target = fastest;
    for (int k = 0; k < ITERATIONS; k++) {
        sum = 0;
        for (uint32_t i = 0; i < r->parts; i++) {
            sum += fmin(fmax(target, r->part_rate[i]), high[i]);
        }
        target = sum / r->parts;
    }
    sum = 0;
    for (uint32_t i = 0; i < r->parts; i++) {
        const double rate = fmin(fmax(target, r->part_rate[i]), high[i]);
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
        /* waits of two others add up; the largest may be false, so it counts only in ret_one */
        const struct reports of = reports_of(p, host, i);
        two[i] = r->part_waited[i] + of.second + of.third;
        one[i] = r->part_waited[i] + of.second + of.most;
    }
    *ret_two = spread_without(r, two);
    *ret_one = spread_without(r, one);
    return true;
}
