/* clock_lie.c: changes a liar's messages: its time, or any single field that a peer sends. */
#include <math.h>

#include "sim/clock_world_private.h"

_Static_assert(sizeof(struct clock_published) == 128,
               "a new field is a new lie: put it into FIELDS");

#define DAY_NS (86400 * NS_PER_S)

/* name, change of the field. `r` is uniform in 0 ... 1. */
#define FIELDS(X)                                                                                  \
    X("phase.hold", p->phase = CLOCK_HOLD)                                                         \
    X("phase.cold", p->phase = CLOCK_COLD)                                                         \
    X("phase.random", p->phase = (enum clock_phase)(4 * r))                                        \
    X("settled", p->settled = false)                                                               \
    X("tight", p->tight = false)                                                                   \
    X("core", p->core = false)                                                                     \
    X("claims.random", p->settled = r < 0.5, p->tight = r<0.7, p->core = r> 0.4)                   \
    X("timeline", p->timeline ^= 1, p->timeline_age_s = UINT32_MAX)                                \
    X("timeline.none", p->timeline = CLOCK_TIMELINE_NONE)                                          \
    X("timeline.random", p->timeline = (uint64_t)(r * 0x1p60), p->timeline_age_s = 1u << 31)       \
    X("founder", p->founder = 0, p->timeline = 1u << 30)                                           \
    X("epoch", p->epoch = UINT32_MAX)                                                              \
    X("timeline_age.zero", p->timeline_age_s = 0)                                                  \
    X("timeline_age.most", p->timeline_age_s = UINT32_MAX)                                         \
    X("map.r", p->map.r.ns += DAY_NS)                                                              \
    X("map.x", p->map.x_ns += DAY_NS)                                                              \
    X("map.x.near", p->map.x_ns += 60)                                                             \
    X("map.x.random", p->map.x_ns += (int64_t)(20000 * (2 * r - 1)))                               \
    X("map.x_fraction", p->map.x_fraction = 1 - 0x1p-32)                                           \
    X("map.y", p->map.y = CLOCK_RATE_MAX)                                                          \
    X("map.y.near", p->map.y += 1e-6)                                                              \
    X("map_seq.stuck", p->map_seq = 1)                                                             \
    X("map_seq.random", p->map_seq = (uint32_t)(r * 0x1p32))                                       \
    X("line.ahead", p->line_minus_map_ns = 1e8)                                                    \
    X("line.behind", p->line_minus_map_ns = -1e8)                                                  \
    X("sqrt_p.zero", p->sqrt_p_ns = 0)                                                             \
    X("sqrt_p.most", p->sqrt_p_ns = 6553.5)                                                        \
    X("sqrt_p.random", p->sqrt_p_ns = 6553.5 * r)                                                  \
    X("scale.zero", p->scale_ns = 0)                                                               \
    X("scale.most", p->scale_ns = 6553.5)                                                          \
    X("h.zero", p->h_ns = 0)                                                                       \
    X("h.none", p->h_ns = UINT32_MAX)                                                              \
    X("anchor", p->anchor = (struct clock_anchor){(uint32_t)(8 * r), 144000, DAY_NS, 0})           \
    X("answer", (void)p)

const char *clock_lie_field(int field)
{
#define NAME(name, ...) name,
    static const char *const names[] = {FIELDS(NAME)};

    return field >= 0 && field < (int)ARRAY_COUNT(names) ? names[field] : NULL;
}

static void lie_in_field(int field, double r, struct clock_published *p)
{
    int i = 0;
#define LIE(name, ...)                                                                             \
    if (field == i++) {                                                                            \
        __VA_ARGS__;                                                                               \
        return;                                                                                    \
    }
    FIELDS(LIE)
}

void clock_lie(struct clock_world *w, int to, struct clock_published *p)
{
    const struct clock_world_config *g = &w->config;
    const double since_s = (double)w->t_ns * 1e-9 - g->lie_from_s;
    double lie = 0;

    switch (g->lie) {
    case LIE_DENIES:
        p->core = p->tight = false;
        lie = g->lie_ns;
        break;
    case LIE_COLLUDING:
        lie = g->lie_ns;
        break;
    case LIE_DRIFTING:
        lie = g->lie_ns * fmin(1, since_s / g->lie_ramp_s);
        break;
    case LIE_TWO_FACED:
        lie = (to & 1) != 0 ? g->lie_ns : -g->lie_ns;
        break;
    case LIE_RANDOM:
        lie = g->lie_ns * (2 * prng_uniform(&w->prng) - 1);
        break;
    case LIE_OLDEST:
        lie = 1e6;
        p->timeline = 4711;
        p->founder = 0;
        p->timeline_age_s = 1000000000;
        p->settled = true;
        break;
    case LIE_FIELD:
        lie_in_field(g->lie_field, prng_uniform(&w->prng), p);
        break;
    default:
        break;
    }
    const double moved = p->map.x_fraction + lie;
    p->map.x_ns += (int64_t)floor(moved);
    p->map.x_fraction = floor((moved - floor(moved)) * 0x1p32) * 0x1p-32;
}

/* Liars support each other and accuse the others. */
void clock_lie_answer(const struct clock_world *w, struct clock_answer *answer)
{
    answer->known = true;
    answer->parked = !w->members[answer->about].liar;
}
