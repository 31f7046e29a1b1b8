/* damping.h: how long a path or NIC that failed stays away, and how fast it is trusted again.
 *
 * Counts failovers, not flaps: a flap while nothing uses the path costs nothing but restarts the
 * quiet that is waited for. Penalty p: + 1 per failover, - 1 per 20 s of quiet. Hold h = min(0.2 s
 * * 6^(p - 1), 8 s) of quiet since the last failover or movement of the carrier. Nothing is given
 * up for good: h has a ceiling. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define DAMPING_HOLD_MAX_NS (8 * NS_PER_S)

struct damping {
    uint32_t penalty;
    struct mono moved;   /* last failover, or carrier movement */
    struct mono decayed; /* since when the present penalty counts down */
    bool ever;           /* anything happened at all */
};

void damping_init(struct damping *d);
/* A lane in use went down. */
void damping_on_failover(struct damping *d, struct mono now);
/* Its carrier moved, up or down. */
void damping_on_movement(struct damping *d, struct mono now);
/* The present hold, 0 if nothing ever happened. */
struct span damping_hold(const struct damping *d, struct mono now);
/* Since last moved, quiet for less than the hold. */
bool damping_held(const struct damping *d, struct mono now);

/* A lane's share after its return, 0..1: 0.05 while on trial, then doubling every 20 ms. */
double damping_ramp(struct span since_active);
