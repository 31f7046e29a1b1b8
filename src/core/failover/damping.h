/* damping.h: how long a path or NIC stays unused after a failure, and how fast its share grows again.
 *
 * Failovers are counted, not flaps: a flap of an unused path costs nothing, but restarts the required quiet time. Penalty p: + 1
 * per failover, - 1 per 20 s of quiet. Hold h = min(0.2 s * 6^(p - 1), 8 s) of quiet since the last failover or movement of the
 * carrier. No path is given up for good, because h has a ceiling. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define DAMPING_HOLD_MAX_NS (8 * NS_PER_S)

struct damping {
    uint32_t penalty;
    struct mono moved;   /* last failover, or carrier movement */
    struct mono decayed; /* the time since which the present penalty decreases */
    bool ever;           /* false: nothing ever happened */
};

void damping_init(struct damping *d);
/* A lane in use went down. */
void damping_on_failover(struct damping *d, struct mono now);
/* Its carrier changed, up or down. */
void damping_on_movement(struct damping *d, struct mono now);
/* The present hold; 0 if nothing ever happened. */
struct span damping_hold(const struct damping *d, struct mono now);
/* True if the quiet time since the last movement is shorter than the hold. */
bool damping_held(const struct damping *d, struct mono now);

/* A lane's share after its return, 0..1: 0.05 while on trial, then doubling every 20 ms. */
double damping_ramp(struct span since_active);
