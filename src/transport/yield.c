/* yield.c: a job of low priority gives way: core/traffic/priority.h sets by a lane's delays how much it may have under way.
 *
 *   delays in STATE ─► q, above the least of all lanes ─► struct priority ─► window, or aside: struct pacing: may a chunk go now?
 *
 * It doesn't use SO_MAX_PACING_RATE: a chunk that waits in the kernel is late for its lane and can't take another one. Chunks
 * that are sent once more don't wait. In mode full only. */
#include "transport/internal.h"

#define BUCKET_NS (5 * NS_PER_S)
#define CHUNK_NS                                                                                   \
    NS_PER_MS /* of the set's goodput: small chunks, because data under way can't be held back */

void yield_init(struct lane_set *set, struct mono now)
{
    goodput_init(&set->yield.goodput, now);
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        priority_init(&set->yield.lanes[i].priority, now);
        pacing_init(&set->yield.lanes[i].pacing, now, 0, 0);
    }
    for (uint32_t i = 0; i < YIELD_SIZES; i++) {
        least_init(&set->yield.floors[i].owd_ns, now);
        least_init(&set->yield.floors[i].life_ns, now);
    }
}

static bool wanted(const struct lane_set *set)
{
    return set->transport->config.priority == PRIORITY_LOW && set->mode == TRANSPORT_FULL;
}

/* The least that a chunk of about that size needed recently, over any lane: all lanes between two NICs have similar distances,
 * and a new one never saw its path empty. It is by size, because a large chunk's own time on each link is not a queue. */
static struct yield_floor *floor_of(struct lane_set *set, uint32_t bytes)
{
    const uint32_t log2 = bytes > 0 ? 31 - (uint32_t)__builtin_clz(bytes) : 0;
    const uint32_t size = log2 < YIELD_SIZE_MIN ? 0 : log2 - YIELD_SIZE_MIN;

    return &set->yield.floors[size < YIELD_SIZES ? size : YIELD_SIZES - 1];
}

void yield_on_lane(struct lane_set *set, struct mono now, const struct lane_state_lane *seen,
                   const struct sender_acked *acked)
{
    struct yield_lane *own = &set->yield.lanes[seen->lane];

    if (!wanted(set) || acked->chunks == 0) {
        return;
    }
    struct span life = out_life(set, now, acked->sent, 0);
    goodput_on_arrived(&set->yield.goodput, now, acked->bytes, life, set->yield.paced != 0);
    if (seen->owd_ns == LANE_OWD_UNKNOWN) {
        return;
    }
    uint32_t bytes = (uint32_t)(acked->bytes / acked->chunks);
    const bool own_path = !set->lane_nics[seen->lane].standby;
    struct yield_floor *floor = floor_of(set, bytes);
    least_add(&floor->owd_ns, now, span_ns(BUCKET_NS), own_path ? seen->owd_ns : LEAST_NONE);
    least_add(&floor->life_ns, now, span_ns(BUCKET_NS), own_path ? life.ns : LEAST_NONE);
    const int64_t queue_ns = seen->owd_ns - least_get(&floor->owd_ns);
    life = out_life(set, now, acked->sent, queue_ns);
    if (queue_ns > life.ns) { /* it can't wait for longer than its life: a clock was set */
        least_init(&floor->owd_ns, now);
        return;
    }
    const struct priority_sample sample = {
        .sent = acked->sent,
        .queue_ns = queue_ns > 0 ? queue_ns : 0,
        .life_ns_min = least_get(&floor->life_ns),
        .goodput = set->yield.goodput.best,
        /* a small chunk waits behind other chunks of this job: by its own size, that would look long */
        .chunk = bytes > LANE_EAGER_SIZE_MAX ? bytes : LANE_EAGER_SIZE_MAX,
        .lanes = set->scheduler.lane_count};
    priority_on_delay(&own->priority, now, &sample);
    if (priority_rate(&own->priority) <= 0) {
        set->yield.paced &= ~(1u << seen->lane);
    } else if ((set->yield.paced >> seen->lane & 1) == 0) {
        set->yield.paced |= 1u << seen->lane;
        pacing_init(&own->pacing, now, priority_rate(&own->priority), 1);
        pacing_spend(&own->pacing, now, sample.chunk); /* the sampled chunk counts as sent now */
    }
}

/* May it carry one more, with regard to others? */
static bool may_carry(const struct lane_set *set, struct mono now, uint32_t lane)
{
    const struct yield_lane *own = &set->yield.lanes[lane];
    const uint32_t chunks = sender_loads(set->sender)[lane].chunks;

    return priority_rate(&own->priority) > 0
               ? chunks == 0 && pacing_deadline(&own->pacing, now).ns <= now.ns
               : chunks < priority_window(&own->priority);
}

uint32_t yield_lanes(struct lane_set *set, struct mono now)
{
    uint32_t lanes = 0;

    if (!wanted(set)) {
        if (set->yield.goodput.best > 0) {
            yield_init(set, now);
            set->yield.paced = 0;
        }
        return 0;
    }
    for (uint32_t all = set->present; all != 0; all &= all - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(all);
        lanes |= may_carry(set, now, lane) ? 0 : 1u << lane;
    }
    return lanes;
}

uint32_t yield_chunk_size(const struct lane_set *set, uint32_t size)
{
    const double most = set->yield.goodput.best * CHUNK_NS;

    return wanted(set) && most < size
               ? (most > LANE_EAGER_SIZE_MAX ? (uint32_t)most : LANE_EAGER_SIZE_MAX)
               : size;
}

void yield_on_sent(struct lane_set *set, struct mono now, uint32_t lane, uint32_t bytes)
{
    if ((set->yield.paced >> lane & 1) != 0) {
        pacing_spend(&set->yield.lanes[lane].pacing, now, bytes);
    }
}

struct mono yield_deadline(const struct lane_set *set, struct mono now)
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
