/* damping.c: see damping.h. */
#include "core/failover/damping.h"

#define DECAY_NS   (20 * NS_PER_S)
#define HOLD_NS    (200 * NS_PER_MS)
#define HOLD_BASE  6
#define RAMP_NS    (20 * NS_PER_MS)
#define RAMP_FIRST 0.05

void damping_init(struct damping *d)
{
    *d = (struct damping){.ever = false};
}

/* The reduction by quiet time: one for each DECAY_NS since the last movement. */
static uint32_t penalty_now(const struct damping *d, struct mono now)
{
    const int64_t quiet = mono_sub(now, d->decayed).ns;
    const int64_t off = quiet > 0 ? quiet / DECAY_NS : 0;

    return off >= d->penalty ? 0 : d->penalty - (uint32_t)off;
}

void damping_on_failover(struct damping *d, struct mono now)
{
    d->penalty = penalty_now(d, now) + 1;
    d->decayed = d->moved = now;
    d->ever = true;
}

void damping_on_movement(struct damping *d, struct mono now)
{
    d->penalty = penalty_now(d, now);
    d->decayed = d->moved = now;
    d->ever = true;
}

struct span damping_hold(const struct damping *d, struct mono now)
{
    const uint32_t penalty = d->ever ? penalty_now(d, now) : 0;
    int64_t hold = HOLD_NS;

    if (penalty == 0) {
        return span_ns(0);
    }
    for (uint32_t i = 1; i < penalty && hold < DAMPING_HOLD_MAX_NS; i++) {
        hold *= HOLD_BASE;
    }
    return span_ns(hold < DAMPING_HOLD_MAX_NS ? hold : DAMPING_HOLD_MAX_NS);
}

bool damping_held(const struct damping *d, struct mono now)
{
    return d->ever && mono_sub(now, d->moved).ns < damping_hold(d, now).ns;
}

double damping_ramp(struct span since_active)
{
    double share = RAMP_FIRST;

    for (int64_t ns = since_active.ns; ns >= RAMP_NS && share < 1; ns -= RAMP_NS) {
        share *= 2;
    }
    return share < 1 ? share : 1;
}
