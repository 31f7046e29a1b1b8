/* drift.h: the rate of another clock against the own one, from stamps alone.
 *
 * phi = other clock - own clock, at one instant of the own clock. Each packet (or read of a clock) bounds phi from above or from
 * below. Two such bounds, some time apart, bound phi's mean rate between them. No map, no filter and no report of a peer is used.
 * The tightest bounds of each second are kept for sixteen seconds.
 *
 * The result is about the past. The present rate may differ by the change of both clocks that the caller allows.
 *
 * Cost: 700 bytes, all in place; O(1) for a bound, 256 divisions once a second. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define DRIFT_SLOTS 16
#define DRIFT_MOST  1e-3 /* no two clocks differ more */

struct drift_bound {
    int64_t at_ns, phi_ns; /* own time; other - own */
    bool seen;
};
struct drift {
    struct {
        int64_t slot; /* own time in whole seconds */
        struct drift_bound upper, lower;
    } slots[DRIFT_SLOTS];
    double low, high; /* phi's rate, no unit */
    int64_t judged;   /* the slot in which the rate was computed */
    int filled;
};

void drift_init(struct drift *d);
/* At own time at_ns, phi was at most (upper) or at least phi_ns. Bounds older than the slots are ignored. */
void drift_add(struct drift *d, int64_t at_ns, int64_t phi_ns, bool upper);
/* Computes the rate. At any time in between, and now, it was within low - change ... high + change, if it changes by at most
 * `change` (low may be above high: it did change). False: no such rate exists, so one of the clocks stepped or stamps are wrong.
 * Then all bounds are forgotten. */
bool drift_judge(struct drift *d, int64_t now_ns, double change);
