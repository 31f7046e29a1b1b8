/* yield.c: a job of low priority gives way: its lanes are paced by what core/traffic/priority.h makes of their delays.
 *
 *   delays in STATE ─► q, above the least of all lanes ─► struct priority ─► rate ─► struct pacing: may a chunk go now?
 *
 * Ours, and not SO_MAX_PACING_RATE: a chunk that waits in the kernel is late for its lane and can't go by another one. What
 * is sent once more because a lane was lost waits for nothing. In mode full only. */
#include "transport/internal.h"

#define BUCKET_NS (5 * NS_PER_S)
#define BURST     2 /* chunks that may leave at once */

void yield_init(struct set *set, struct mono now)
{
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        priority_init(&set->yield.lanes[i].priority, now);
        pacing_init(&set->yield.lanes[i].pacing, now, 0, 0);
    }
    for (uint32_t i = 0; i < YIELD_SIZES; i++) {
        set->yield.floors[i] = (struct yield_floor){.ns = {UINT32_MAX, UINT32_MAX}, .began = now};
    }
}

static bool wanted(const struct set *set)
{
    return set->transport->config.priority == PRIORITY_LOW && set->mode == TRANSPORT_FULL;
}

/* The least that a chunk of about that size needed of late, by whichever lane: all between two NICs have about as far to go, and
 * a new one never saw its path empty. By size, for a large chunk's own time on each link is no queue. */
static int64_t floor_of(struct set *set, struct mono now, uint32_t lane, uint32_t owd_ns,
                        uint32_t bytes)
{
    const uint32_t log2 = bytes > 0 ? 31 - (uint32_t)__builtin_clz(bytes) : 0;
    const uint32_t size = log2 < YIELD_SIZE_MIN ? 0 : log2 - YIELD_SIZE_MIN;
    struct yield_floor *floor = &set->yield.floors[size < YIELD_SIZES ? size : YIELD_SIZES - 1];

    if (mono_sub(now, floor->began).ns >= BUCKET_NS) {
        floor->ns[1] = mono_sub(now, floor->began).ns < 2 * BUCKET_NS ? floor->ns[0] : UINT32_MAX;
        floor->ns[0] = UINT32_MAX;
        floor->began = now;
    }
    if (!set->lane_nics[lane].standby) {
        floor->ns[0] = owd_ns < floor->ns[0] ? owd_ns : floor->ns[0];
    }
    return floor->ns[0] < floor->ns[1] ? floor->ns[0] : floor->ns[1];
}

void yield_on_lane(struct set *set, struct mono now, const struct lane_state_lane *seen,
                   uint32_t bytes)
{
    struct yield_lane *own = &set->yield.lanes[seen->lane];
    const double before = priority_rate(&own->priority);

    if (!wanted(set) || seen->owd_ns == LANE_OWD_UNKNOWN || bytes == 0) {
        return;
    }
    const int64_t queue_ns = seen->owd_ns - floor_of(set, now, seen->lane, seen->owd_ns, bytes);
    const struct priority_sample sample = {
        .queue_ns = queue_ns > 0 ? queue_ns : 0,
        .delivered = scheduler_rate_bps(&set->scheduler, seen->lane) / 8e9,
        .rtt = span_ns(set->traffic.detector.rtt_floor_ns),
        .chunk = set->yield.chunk,
        .lanes = set->scheduler.lane_count};
    priority_on_delay(&own->priority, now, &sample);
    if (priority_rate(&own->priority) != before) {
        own->pacing.burst = BURST * (double)set->yield.chunk;
        pacing_rate(&own->pacing, now, priority_rate(&own->priority));
    }
    set->yield.paced = priority_rate(&own->priority) > 0 ? set->yield.paced | 1u << seen->lane
                                                         : set->yield.paced & ~(1u << seen->lane);
}

uint32_t yield_lanes(struct set *set, struct mono now)
{
    uint32_t lanes = 0;

    if (set->yield.paced != 0 && !wanted(set)) {
        yield_init(set, now);
        set->yield.paced = 0;
    }
    for (uint32_t paced = set->yield.paced; paced != 0; paced &= paced - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(paced);
        if (pacing_deadline(&set->yield.lanes[lane].pacing, now).ns > now.ns) {
            lanes |= 1u << lane;
        }
    }
    return lanes;
}

void yield_on_sent(struct set *set, struct mono now, uint32_t lane, uint32_t bytes)
{
    if (set->transport->config.priority != PRIORITY_LOW) {
        return;
    }
    set->yield.chunk -= set->yield.chunk / 64; /* largest of late */
    set->yield.chunk = bytes > set->yield.chunk ? bytes : set->yield.chunk;
    if ((set->yield.paced >> lane & 1) != 0) {
        pacing_spend(&set->yield.lanes[lane].pacing, now, bytes);
    }
}

struct mono yield_deadline(const struct set *set, struct mono now)
{
    struct mono at = MONO_NEVER;

    if (set->yield.paced == 0 || !sender_waiting(set->sender)) {
        return at;
    }
    for (uint32_t paced = set->yield.paced & set->present; paced != 0; paced &= paced - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(paced);
        at = mono_min(at, pacing_deadline(&set->yield.lanes[lane].pacing, now));
    }
    return at;
}
