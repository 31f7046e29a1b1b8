/* watch_answer.c: the watch's judgement of its lanes: which carry, how much, which are doubted. */
#include "core/failover/watch_internal.h"

#define TRIAL_PINGS 16

/* For a lane that isn't doubted, and is no standby. */
static double own_weight(struct mono now, const struct wlane *x)
{
    if (!x->used || !lane_takes_chunks(x->state) || x->state == LANE_SUSPECT) {
        return 0;
    }
    if (x->state == LANE_TRIAL) {
        return x->trial_pongs >= TRIAL_PINGS ? damping_ramp(span_ns(0)) : 0;
    }
    return x->failovers == 0 ? 1 : damping_ramp(mono_sub(now, x->active_at));
}

/* Standbys carry until the others carry half of their capacity. A lane that is connected but on trial carries nearly nothing: if
 * it counted, no lane would carry until the trial is over. */
static bool standbys_wanted(const struct watch *w, struct mono now)
{
    uint32_t others = 0;
    double carry = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *x = &w->lanes[i];
        if (x->used && !x->standby && x->state != LANE_CLOSED && x->state != LANE_DRAINING) {
            others++;
            carry += own_weight(now, x);
        }
    }
    return 2 * carry < others || others == 0;
}

/* For a lane that isn't doubted. */
static double weight(const struct watch *w, struct mono now, const struct wlane *x)
{
    return x->standby && !standbys_wanted(w, now) ? 0 : own_weight(now, x);
}

uint32_t watch_carriers(const struct watch *w, struct mono now)
{
    const bool standbys = standbys_wanted(w, now);
    uint32_t lanes = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *x = &w->lanes[i];
        lanes |= x->used && (standbys || !x->standby) && own_weight(now, x) > 0 ? 1u << i : 0;
    }
    return lanes != 0 ? lanes : watch_doubted(w); /* better than nothing */
}

uint32_t watch_spares(const struct watch *w, struct mono now)
{
    const bool standbys = standbys_wanted(w, now);
    uint32_t lanes = 0;

    for (uint32_t i = 0; i < LANE_MAX && !standbys; i++) {
        lanes |= w->lanes[i].standby && own_weight(now, &w->lanes[i]) >= 1 ? 1u << i : 0;
    }
    return lanes;
}

uint32_t watch_doubted(const struct watch *w)
{
    uint32_t lanes = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        lanes |= w->lanes[i].used && w->lanes[i].state == LANE_SUSPECT ? 1u << i : 0;
    }
    return lanes;
}

void watch_lane_get(const struct watch *w, struct mono now, uint32_t lane,
                    struct watch_lane *ret_lane)
{
    const struct wlane *x = &w->lanes[lane < LANE_MAX ? lane : 0];
    const bool doubted = x->state == LANE_SUSPECT;

    *ret_lane = (struct watch_lane){.used = lane < LANE_MAX && x->used,
                                    .standby = x->standby,
                                    .cut = watch_cut(w, x),
                                    .state = x->state,
                                    .reason = x->reason,
                                    .epoch = x->epoch,
                                    .weight = doubted ? watch_carriers(w, now) >> lane & 1
                                                      : weight(w, now, x),
                                    .probe_only = doubted,
                                    .timeout = watch_timeout(w, x),
                                    .failovers = x->failovers,
                                    .since = x->since};
}

uint32_t watch_connected(const struct watch *w)
{
    uint32_t lanes = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        lanes |= w->lanes[i].used && lane_connected(w->lanes[i].state) ? 1u << i : 0;
    }
    return lanes;
}

void watch_doubts(const struct watch *w, uint32_t *ret_doubts, uint32_t *ret_mistakes)
{
    *ret_doubts = w->doubts;
    *ret_mistakes = w->mistakes;
}
