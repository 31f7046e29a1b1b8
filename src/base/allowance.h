/* allowance.h: a limit: so many at once, and so many a second on average. {0} is a full one. */
#pragma once
#include <stdbool.h>

#include "base/time.h"

struct allowance {
    double left;
    struct mono at;
};

/* Returns the present number. A caller that takes some subtracts them from `left`. */
static inline double allowance_left(struct allowance *a, double rate, double burst, struct mono now)
{
    a->left = a->at.ns == 0 ? burst : a->left + (double)mono_sub(now, a->at).ns * 1e-9 * rate;
    a->at = now;
    a->left = a->left > burst ? burst : a->left;
    return a->left;
}

/* Takes one; false: none is left. */
static inline bool allowance_take(struct allowance *a, double rate, double burst, struct mono now)
{
    if (allowance_left(a, rate, burst, now) < 1) {
        return false;
    }
    a->left -= 1;
    return true;
}
