/* repath.c: see repath.h. */
#include "core/traffic/repath.h"

#define HELD_NS        (50 * NS_PER_MS)
#define HELD_CHUNKS    16
#define STARVED_QUEUES 48 /* in so many queues of the best lane */
#define BOTH_NS        (2 * NS_PER_S)
#define FREEZE_NS      (50 * NS_PER_MS)
#define FREEZE_MAX     (2 * NS_PER_S)
#define COIN_NS        (50 * NS_PER_MS)
#define ALIKE_NS       (500 * NS_PER_MS)
/* the longest time that one look adds: there may be a pause between two */
#define ALIKE_STEP (20 * NS_PER_MS)
#define ALIKE_TRIES                                                                                \
    4 /* tries in a row without success: if half of the paths are better, one succeeds in 15 of 16 */

static const struct {
    int64_t least_ns, most_ns;
} freezes[REPATH_WHY_COUNT] = {[REPATH_CONTENDED] = {FREEZE_NS, FREEZE_MAX},
                               [REPATH_STARVED] = {FREEZE_NS, FREEZE_MAX},
                               [REPATH_ALIKE] = {ALIKE_NS, 60 * NS_PER_S}};

void repath_init(struct repath *r, uint64_t seed, struct mono now)
{
    *r = (struct repath){.busy = -1, .coin_at = now, .alike_since = MONO_NEVER};
    for (int why = 0; why < REPATH_WHY_COUNT; why++) {
        r->frozen[why] = now;
        r->freeze[why] = span_ns(freezes[why].least_ns);
    }
    prng_init(&r->prng, seed);
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        r->since[i] = r->starved_since[i] = MONO_NEVER;
    }
}

void repath_on_acked(struct repath *r, uint32_t lane, uint32_t chunks)
{
    if (lane < LANE_MAX && r->since[lane].ns != INT64_MAX) {
        r->chunks[lane] += chunks;
    }
}

/* Updates the time since which it is ill. True: it began now. */
static bool keep_since(struct mono *since, struct mono now, bool ill)
{
    const bool begins = ill && since->ns == INT64_MAX;

    *since = begins ? now : ill ? *since : MONO_NEVER;
    return begins;
}

static void remember(struct repath *r, struct mono now, uint32_t contended, uint32_t starved)
{
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        (void)keep_since(&r->starved_since[i], now, (contended & starved) >> i & 1);
        if (keep_since(&r->since[i], now, contended >> i & 1)) {
            r->chunks[i] = 0;
        }
    }
}

/* One of those lanes that has been ill for long enough; the worst one, if it has been. */
static int pick_held(const struct mono *since, struct mono now, uint32_t lanes, int64_t held,
                     int worst)
{
    int lane = -1;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        if (lanes >> i & 1 && since[i].ns != INT64_MAX && mono_sub(now, since[i]).ns >= held &&
            (lane < 0 || (int)i == worst)) {
            lane = (int)i;
        }
    }
    return lane;
}

static void remember_alike(struct repath *r, struct mono now, bool risen, bool alike)
{
    const int64_t elapsed = mono_sub(now, r->alike_at).ns;
    const int64_t step = elapsed < 0 ? 0 : elapsed < ALIKE_STEP ? elapsed : ALIKE_STEP;

    r->alike_ns += alike ? step : -step / 2;
    r->alike_ns = r->alike_ns < 0 ? 0 : r->alike_ns > ALIKE_NS ? ALIKE_NS : r->alike_ns;
    r->alike_at = now;
    (void)keep_since(&r->alike_since, now, risen);
    if (!risen && !alike &&
        mono_sub(now, r->frozen[REPATH_ALIKE]).ns > freezes[REPATH_ALIKE].most_ns) {
        r->freeze[REPATH_ALIKE] = span_ns(freezes[REPATH_ALIKE].least_ns); /* another fault */
        r->tries = 0;
    }
}

/* Any of them: none is known to be worse. */
static int pick_alike(struct repath *r, struct mono now, uint32_t lanes)
{
    const bool risen =
        r->alike_since.ns != INT64_MAX && mono_sub(now, r->alike_since).ns >= ALIKE_NS;

    if (lanes == 0 || mono_before(now, r->frozen[REPATH_ALIKE]) ||
        (!risen && r->alike_ns < ALIKE_NS)) {
        return -1;
    }
    const uint32_t begin = (uint32_t)prng_below(&r->prng, LANE_MAX),
                   after = lanes >> begin << begin;
    return __builtin_ctz(after != 0 ? after : lanes);
}

/* The lanes with enough reports since they became contended. */
static uint32_t heard(const struct repath *r)
{
    uint32_t lanes = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        lanes |= r->chunks[i] >= HELD_CHUNKS ? 1u << i : 0;
    }
    return lanes;
}

int repath_decide(struct repath *r, struct mono now, const struct detector_finding *f,
                  uint32_t better)
{
    const bool both = f->verdict == DETECTOR_BOTH;
    int lane = -1;

    remember(r, now, f->verdict == DETECTOR_CONTENTION || both ? f->contended : 0, f->starved);
    remember_alike(r, now, f->risen, f->alike);
    if (r->busy >= 0) {
        return -1;
    }
    if (!mono_before(now, r->frozen[REPATH_STARVED])) {
        const int64_t queues = STARVED_QUEUES * f->base_ns;
        lane =
            pick_held(r->starved_since, now, better, queues > HELD_NS ? queues : HELD_NS, f->worst);
        r->why = REPATH_STARVED;
    }
    if (lane < 0 && !mono_before(now, r->frozen[REPATH_CONTENDED])) {
        lane = pick_held(r->since, now, f->contended & better & heard(r), both ? BOTH_NS : HELD_NS,
                         f->worst);
        r->why = REPATH_CONTENDED;
    }
    if (lane < 0 && (lane = pick_alike(r, now, better)) >= 0) {
        r->why = REPATH_ALIKE;
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

    if (r->busy < 0) {
        return;
    }
    r->since[r->busy] = r->starved_since[r->busy] = MONO_NEVER;
    r->busy = -1;
    r->tries = r->why == REPATH_ALIKE ? (helped ? 0 : r->tries + 1) : r->tries;
    if (r->why == REPATH_ALIKE && !helped && r->tries < ALIKE_TRIES) {
        r->frozen[REPATH_ALIKE] =
            mono_add(now, span_ns((int64_t)((1 + prng_uniform(&r->prng)) * (double)FREEZE_NS)));
        return;
    }
    struct span *freeze = &r->freeze[r->why];
    freeze->ns = helped                                     ? freezes[r->why].least_ns
                 : freeze->ns * 2 < freezes[r->why].most_ns ? freeze->ns * 2
                                                            : freezes[r->why].most_ns;
    r->frozen[r->why] =
        mono_add(now, span_ns((int64_t)((1 + prng_uniform(&r->prng)) * (double)freeze->ns)));
}
