/* drift.h: how fast another clock runs against the own one, from stamps alone.
 *
 * phi = other clock - own clock, at one instant of the own. Each packet (or read of a clock) bounds it from above or from
 * below. Of two such bounds a time apart follows one of phi's mean rate in between: no map, no filter and no word of a
 * peer enters. The tightest of each second is kept for sixteen.
 *
 * What it gives is of the past: what the rate is now may differ by as much as the caller allows both clocks to change.
 *
 * Cost: 700 bytes, all in place; O(1) a bound, 256 divisions once a second. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define DRIFT_SLOTS 16
#define DRIFT_MOST  1e-3 /* no two clocks run further apart */

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
    int64_t judged;   /* slot in which that was worked out */
    int filled;
};

void drift_init(struct drift *d);
/* phi was at most, or at least, phi_ns at own time at_ns. Bounds older than the slots are left out. */
void drift_add(struct drift *d, int64_t at_ns, int64_t phi_ns, bool upper);
/* Works the rate out: at any time in between, and now, it was within low - change ... high + change, if it changes by no
 * more than `change` (low may be above high: it did change). False: by no such rate, so one of the clocks was stepped or
 * stamps are wrong. Then all is forgotten. */
bool drift_judge(struct drift *d, int64_t now_ns, double change);
