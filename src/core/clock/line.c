/* line.c: the readers' line. At each tick it starts at its present value and meets the map within a tick. So fleet time never
 * runs backwards within an epoch while the map is corrected. */
#include "core/clock/clock_private.h"

#include <math.h>
#include <stdlib.h>

#define SLEW_MAX 500e-6 /* |slew|: the line runs at 1 + y +- this at most */
#define FAR_NS   20e3
#define JUMP_NS  1e6
#define MEET_S   (CLOCK_TICK_NS * 1e-9)

static void line_at(const struct line *line, int64_t at_ns, int64_t *ret_ns, double *ret_fraction)
{
    const int64_t slewed = (at_ns < line->until.ns ? at_ns : line->until.ns) - line->r.ns;
    const double moved =
        line->x_fraction + line->y * (double)(at_ns - line->r.ns) + line->slew * (double)slewed;
    const double whole = floor(moved);

    *ret_ns = line->x_ns + (int64_t)whole;
    *ret_fraction = moved - whole;
}

double line_minus_map(const struct clock *c, struct nic_time at)
{
    int64_t ns;
    double fraction;

    if (!c->line.valid) {
        return 0;
    }
    line_at(&c->line, at.ns, &ns, &fraction);
    const double map = c->map.x_fraction + c->map.y * (double)(at.ns - c->map.r.ns);
    return (double)(ns - c->map.x_ns) + (fraction - map);
}

void line_restart(struct clock *c, struct nic_time now)
{
    const double moved = c->map.x_fraction + c->map.y * (double)(now.ns - c->map.r.ns);

    c->line = (struct line){.r = now, .y = c->map.y, .until = now, .valid = true};
    c->line.x_ns = c->map.x_ns + (int64_t)floor(moved);
    c->line.x_fraction = moved - floor(moved);
}

void line_rejoin(struct clock *c, struct nic_time now)
{
    const double ahead = line_minus_map(c, now);

    if (c->line.valid && fabs(ahead) <= JUMP_NS) {
        return; /* the line meets it slowly */
    }
    c->epoch += c->line.valid && ahead > 0; /* the line jumps back */
    line_restart(c, now);
}

void line_follow(struct clock *c, struct nic_time now)
{
    if (!c->line.valid) {
        line_restart(c, now);
        return;
    }
    int64_t ns;
    double fraction;
    const double ahead = line_minus_map(c, now);
    line_at(&c->line, now.ns, &ns, &fraction);
    const double most = fabs(ahead) > FAR_NS ? CLOCK_SLEW_MAX : SLEW_MAX;
    const double within = fmin(most, fmax(-most, -ahead / (MEET_S * 1e9)));
    /* as much as a clock's own rate may change */
    const double least = c->config.rate_limit_ppm * 1e-6;
    const double slew = fabs(within) < least ? copysign(least, within) : within;
    const double reach_s = fabs(ahead) / (fmax(1e-30, fabs(slew)) * 1e9);
    ASSERT(fabs(slew) <= CLOCK_SLEW_MAX); /* far above -1: time never runs backwards */
    c->line = (struct line){
        .r = now, .x_ns = ns, .x_fraction = fraction, .y = c->map.y, .slew = slew, .valid = true};
    c->line.until.ns = now.ns + (int64_t)(fmin(reach_s, 10) * 1e9);
}
