/* repath.c: see repath.h. */
#include "core/traffic/repath.h"

#define HELD_NS     (50 * NS_PER_MS)
#define HELD_CHUNKS 16
#define BOTH_NS     (2 * NS_PER_S)
#define FREEZE_NS   (50 * NS_PER_MS)
#define FREEZE_MAX  (2 * NS_PER_S)
#define COIN_NS     (50 * NS_PER_MS)

void repath_init(struct repath *r, uint64_t seed, struct mono now)
{
    *r = (struct repath){
        .busy = -1, .freeze = {{FREEZE_NS}, {FREEZE_NS}}, .frozen = {now, now}, .coin_at = now};
    prng_init(&r->prng, seed);
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        r->since[i] = MONO_NEVER;
    }
}

void repath_on_acked(struct repath *r, uint32_t lane, uint32_t chunks)
{
    if (lane < LANE_MAX && r->since[lane].ns != INT64_MAX) {
        r->chunks[lane] += chunks;
    }
}

static void remember(struct repath *r, struct mono now, uint32_t contended)
{
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        if (!(contended >> i & 1)) {
            r->since[i] = MONO_NEVER;
        } else if (r->since[i].ns == INT64_MAX) {
            r->since[i] = now;
            r->chunks[i] = 0;
        }
    }
}

/* The lane that has been ill for long enough. */
static int pick_held(const struct repath *r, struct mono now, const struct detector_finding *f,
                     uint32_t lanes, int64_t held, uint32_t chunks)
{
    int lane = -1;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        if (lanes >> i & 1 && r->since[i].ns != INT64_MAX &&
            mono_sub(now, r->since[i]).ns >= held && r->chunks[i] >= chunks &&
            (lane < 0 || (int)i == f->worst)) {
            lane = (int)i;
        }
    }
    return lane;
}

int repath_decide(struct repath *r, struct mono now, const struct detector_finding *f,
                  uint32_t better)
{
    const bool both = f->verdict == DETECTOR_BOTH;
    int lane = -1;

    remember(r, now, f->verdict == DETECTOR_CONTENTION || both ? f->contended : 0);
    if (r->busy >= 0) {
        return -1;
    }
    if (!mono_before(now, r->frozen[REPATH_STARVED])) {
        lane = pick_held(r, now, f, f->starved & better, HELD_NS, 0);
        r->why = REPATH_STARVED;
    }
    if (lane < 0 && !mono_before(now, r->frozen[REPATH_CONTENDED])) {
        lane = pick_held(r, now, f, f->contended & better, both ? BOTH_NS : HELD_NS, HELD_CHUNKS);
        r->why = REPATH_CONTENDED;
    }
    if (lane < 0 || mono_before(now, r->coin_at)) {
        return -1;
    }
    r->coin_at = mono_add(now, span_ns(COIN_NS));
    if (prng_below(&r->prng, 2) == 0) { /* the other job may have left meanwhile */
        return -1;
    }
    r->busy = lane;
    r->excess_before_ns = f->excess_ns;
    r->count++;
    return lane;
}

void repath_on_moved(struct repath *r, struct mono now, int64_t excess_ns)
{
    const bool helped = excess_ns >= 0 && excess_ns <= r->excess_before_ns / 2;
    struct span *freeze;

    if (r->busy < 0) {
        return;
    }
    r->since[r->busy] = MONO_NEVER;
    r->busy = -1;
    freeze = &r->freeze[r->why];
    freeze->ns = helped ? FREEZE_NS : (freeze->ns * 2 < FREEZE_MAX ? freeze->ns * 2 : FREEZE_MAX);
    r->frozen[r->why] =
        mono_add(now, span_ns((int64_t)((1 + prng_uniform(&r->prng)) * (double)freeze->ns)));
}
