/* scheduler.c: see scheduler.h. */
#include "core/traffic/scheduler.h"

#include <math.h>
#include <string.h>

#define BUCKET_NS    (5 * NS_PER_S)
#define COLD_NS      (200 * NS_PER_MS)
#define FRESH_NS     (10 * NS_PER_MS)
#define OLD_NS       NS_PER_S /* the results of a spare lane's last chunks are too old */
#define RATE_MEMORY  7        /* in chunks: earlier knowledge counts for so many */
#define LATE_GAIN    0.25
#define BACK_GAIN    0.25
#define SPARE_CHUNKS 4 /* beyond rate * floor */
#define SPARE_NS                                                                                   \
    (8 * NS_PER_MS) /* and at most so long at its rate (chunks take 1 ms), except for one */
#define FLOOR_NS    (100 * NS_PER_US) /* until something was measured */
#define HOLD        2                 /* times the excess of a longer route: reports come late */
#define HEDGE       3                 /* E */
#define SLOW        2                 /* times E of the best lane */
#define DOUBLE_EACH 50                /* one in so many chunks may be sent twice */
#define DOUBLE_MOST 256               /* and so many consecutive ones */
/* the set's own lanes must be so many times slower than another NIC before that one carries */
#define AWAY        4
#define HOME        2 /* and it stops at so many */
#define AWAY_NS     (50 * NS_PER_MS)
#define AWAY_CHUNKS 4 /* and for the time in which the other NIC carries so many */
#define BETTER      2 /* a path must be so many times faster, if no better one was known */
#define WEIGHT_MIN  0.01
#define ONE_WAY_BYTES                                                                              \
    1048576 /* one way: unacknowledged on a lane without a doubt; others are checked less often */
#define CHUNK_LEAST 32768 /* if a lane takes at most 1 ms for it, or writes */
#define CHUNK_FAST  65536 /* if it takes at most 100 us: fewer system calls */

void scheduler_init(struct scheduler *s, struct mono now)
{
    (void)now;
    memset(s, 0, sizeof(*s));
    s->owed = DOUBLE_MOST * DOUBLE_EACH;
    s->away_since = MONO_NEVER;
    s->share = 1;
}

void scheduler_loads(struct scheduler *s, const struct lane_load *loads)
{
    s->loads = loads;
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        s->lanes[i].load = s->lanes[i].open ? &loads[i] : NULL;
    }
}

static uint64_t unacked(const struct scheduler_lane *x)
{
    return x->load != NULL ? x->load->bytes : 0;
}

static uint32_t chunks(const struct scheduler_lane *x)
{
    return x->load != NULL ? x->load->chunks : 0;
}

void scheduler_round_robin(struct scheduler *s, bool on)
{
    s->round_robin = on;
}

void scheduler_on_lanes(struct scheduler *s, uint32_t count)
{
    s->wanted = count > s->wanted ? count : s->wanted;
}

void scheduler_one_way(struct scheduler *s, bool on)
{
    s->one_way = on;
}

static int64_t floor_of(const struct scheduler_lane *x)
{
    const int64_t least = least_get(&x->floor_ns);

    return least == LEAST_NONE ? FLOOR_NS : least;
}

/* rtt < 0: not known. */
static void floor_sample(struct scheduler_lane *x, struct mono now, int64_t rtt)
{
    least_add(&x->floor_ns, now, span_ns(BUCKET_NS), rtt >= 0 ? rtt : LEAST_NONE);
}

void scheduler_lane_open(struct scheduler *s, struct mono now, uint32_t lane, struct span rtt)
{
    uint32_t spare = SPARE_CHUNKS;

    if (lane >= LANE_MAX) {
        return;
    }
    s->lane_count += !s->lanes[lane].open;
    s->lanes_open |= 1u << lane;
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        spare = i != lane && s->lanes[i].open && s->lanes[i].rate > 0 ? 1 : spare;
    }
    s->lanes[lane] = (struct scheduler_lane){.open = true,
                                             .load = s->loads != NULL ? &s->loads[lane] : NULL,
                                             .bound_at = now,
                                             .acked_at = now,
                                             .spare = spare,
                                             .run_at = now};
    least_init(&s->lanes[lane].floor_ns, now);
    floor_sample(&s->lanes[lane], now, rtt.ns);
}

void scheduler_lane_down(struct scheduler *s, uint32_t lane)
{
    if (lane >= LANE_MAX) {
        return;
    }
    s->writes &= ~(1u << lane);
    if (s->lanes[lane].open) {
        s->lanes[lane].open = false;
        s->lanes[lane].load = NULL;
        s->lane_count--;
        s->lanes_open &= ~(1u << lane);
    }
}

void scheduler_lane_writes(struct scheduler *s, uint32_t lane)
{
    if (lane < LANE_MAX) {
        s->writes |= 1u << lane;
    }
}

void scheduler_on_bound(struct scheduler *s, struct mono now, uint32_t lane)
{
    if (lane >= LANE_MAX || !s->lanes[lane].open) {
        return;
    }
    struct scheduler_lane *x = &s->lanes[lane];
    if (chunks(x) <= 1) { /* it was empty */
        x->cold = mono_sub(now, x->acked_at).ns >= COLD_NS;
        x->run_at = now;
        x->run_bytes = x->run_chunks = 0;
        x->silent_at = now;
    }
    x->bound_at = now;
    s->owed += s->owed < DOUBLE_MOST * DOUBLE_EACH;
}

/* Bytes over time while the lane was never empty: the rate of the path, if there was enough data. The time is at least the whole
 * life of a chunk: reports come in bunches, and two that arrive together cover more than the time between them. */
static void rate_sample(struct scheduler_lane *x, struct mono now,
                        const struct scheduler_acked *acked)
{
    const int64_t ns = mono_sub(now, x->run_at).ns;

    x->run_bytes += acked->bytes;
    x->run_chunks += acked->chunks;
    if (ns <= 0 || mono_before(acked->sent, x->run_at)) {
        return;
    }
    double rate = (double)x->run_bytes / (double)ns;
    if (x->rate <= 0) {
        x->rate = rate;
    } else if (!x->limited || rate > x->rate) {
        x->rate += (rate - x->rate) * x->run_chunks / (x->run_chunks + RATE_MEMORY);
    }
    x->limited = false;
    x->run_at = now;
    x->run_bytes = x->run_chunks = 0;
}

/* The excess of the newest chunk's time over the floor, and the load before it. Sums are kept, not a mean of quotients: chunks
 * behind an own queue show best how fast it drains. */
static void late_sample(struct scheduler_lane *x, int64_t life_ns, uint64_t load)
{
    const int64_t late = life_ns - floor_of(x);

    x->late_ns += (late > 0 ? (double)late : 0) - LATE_GAIN * x->late_ns;
    x->late_bytes += (double)load - LATE_GAIN * x->late_bytes;
}

/* Two clocks measure the way back. So it counts for at most the chunk's whole delay, which one clock measures. */
static int64_t back_sample(struct scheduler_lane *x, int64_t life_ns, int64_t back_ns)
{
    const int64_t late = life_ns - floor_of(x);
    const int64_t least = back_ns < late ? back_ns : late, back = least > 0 ? least : 0;

    x->back_ns += ((double)back - x->back_ns) * BACK_GAIN;
    return back;
}

void scheduler_on_acked(struct scheduler *s, struct mono now, uint32_t lane,
                        const struct scheduler_acked *acked)
{
    if (lane >= LANE_MAX || !s->lanes[lane].open || acked->chunks == 0) {
        return;
    }
    struct scheduler_lane *x = &s->lanes[lane];
    if (!HOLDS(&s->bug, acked->bytes <= acked->load)) { /* all of them were there with the newest */
        return;
    }
    const int64_t life = mono_sub(now, acked->sent).ns;
    x->limited = x->limited || acked->alone;
    floor_sample(x, now, life);
    late_sample(x, life, acked->load);
    const int64_t back = back_sample(x, life, acked->back_ns);
    rate_sample(x, (struct mono){now.ns - back}, acked);
    x->acked_at = x->silent_at = now;
    x->cold = false;
    x->spare += x->spare < SPARE_CHUNKS;
}

void scheduler_on_idle(struct scheduler *s)
{
    for (uint32_t lanes = s->lanes_open; lanes != 0; lanes &= lanes - 1) {
        s->lanes[__builtin_ctz(lanes)].limited = true;
    }
}

/* The floor of round trips over the set's own NICs. A lane's result counts for ten seconds at most. LEAST_NONE: not known. */
static double least_floor(const struct scheduler *s, struct mono now, uint32_t apart)
{
    int64_t least = LEAST_NONE;

    for (uint32_t lanes = s->lanes_open & ~apart; lanes != 0; lanes &= lanes - 1) {
        const struct scheduler_lane *x = &s->lanes[__builtin_ctz(lanes)];
        const int64_t one = least_at(&x->floor_ns, now, span_ns(BUCKET_NS));
        least = one < least ? one : least;
    }
    return (double)least;
}

static double share_of(const struct scheduler *s, const struct scheduler_choice *c)
{
    uint32_t carry = 0;

    for (uint32_t lanes = c->usable & ~c->spare; lanes != 0; lanes &= lanes - 1) {
        carry++;
    }
    return carry > 0 && carry < s->wanted ? (double)s->wanted / carry : 1;
}

/* The round trip of the lane's path without a queue. A lane that was made over a full path never saw it empty. But a fast lane
 * that would be held back by the least floor and `spare` bytes has a longer route. */
static double empty_path(const struct scheduler *s, const struct scheduler_lane *x, double spare)
{
    const double own = (double)floor_of(x), least = fmin(own, s->floor_ns);
    const bool fast = x->rate * (double)NS_PER_MS >= CHUNK_LEAST;

    return fast && HOLD * x->rate * (own - least) > spare ? own : least;
}

static bool full(const struct scheduler *s, const struct scheduler_lane *x, uint32_t size, bool one)
{
    if (one || x->cold) {
        return chunks(x) > 0;
    }
    double spare = (double)x->spare * size;
    const double most = fmax(x->rate * (double)SPARE_NS, size);

    spare = x->rate > 0 ? fmin(spare, most) : spare;
    spare = s->share * (spare + size) - size; /* one chunk more than that is bound */
    return (double)unacked(x) >= x->rate * (empty_path(s, x, spare) + x->back_ns) + spare;
}

struct span scheduler_backlog(const struct scheduler *s, uint32_t lane)
{
    const struct scheduler_lane *x = &s->lanes[lane < LANE_MAX ? lane : 0];

    return span_ns(x->rate > 0 ? (int64_t)((double)unacked(x) / x->rate) : 0);
}

static double all_rates(const struct scheduler *s)
{
    double sum = 0;

    for (uint32_t lanes = s->lanes_open; lanes != 0; lanes &= lanes - 1) {
        sum += s->lanes[__builtin_ctz(lanes)].rate;
    }
    return sum;
}

/* E with the weight. A lane without a rate counts with its floor until it has one chunk to report. */
static double expected(const struct scheduler_lane *x, uint32_t size, double weight, double rates)
{
    const double w = weight > WEIGHT_MIN ? weight : WEIGHT_MIN;

    if (x->rate <= 0 || x->late_bytes <= 0) {
        return (double)floor_of(x) * (1 + chunks(x)) / w;
    }
    const double slow = x->late_ns / x->late_bytes, least = 1 / rates;
    return (double)(unacked(x) + size) * (slow > least ? slow : least) / w + (double)floor_of(x);
}

/* A lane that has owed an answer for some time takes at least as long. Its older results don't hold any more. */
static double silent(const struct scheduler_lane *x, struct mono now)
{
    return chunks(x) > 0 ? (double)mono_sub(now, x->silent_at).ns : 0;
}

struct span scheduler_expected(const struct scheduler *s, uint32_t lane, uint32_t size)
{
    return span_ns((int64_t)expected(&s->lanes[lane < LANE_MAX ? lane : 0], size, 1, all_rates(s)));
}

static int pick_turn(struct scheduler *s, uint32_t size, const struct scheduler_choice *c)
{
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const uint32_t lane = (s->turn + i) % LANE_MAX;
        if ((c->usable & c->room) >> lane & 1 && s->lanes[lane].open &&
            !full(s, &s->lanes[lane], size, c->one >> lane & 1)) {
            s->turn = lane + 1;
            return (int)lane;
        }
    }
    return -1;
}

static int pick_first(const struct scheduler *s, uint32_t size, const struct scheduler_choice *c)
{
    for (uint32_t lanes = c->usable & c->room; lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        const struct scheduler_lane *x = &s->lanes[lane];
        const bool one = c->one >> lane & 1;
        if (x->open && c->weights[lane] >= 1 &&
            ((!one && unacked(x) + size <= ONE_WAY_BYTES) || !full(s, x, size, one))) {
            return (int)lane;
        }
    }
    return -1;
}

/* The time of one chunk on an empty lane. */
static double alone(const struct scheduler_lane *x, uint32_t size)
{
    const double slow = x->late_bytes > 0 ? x->late_ns / x->late_bytes : 0;

    return (double)size * slow + (double)floor_of(x);
}

/* Old results of idle lanes don't hold any more. Such a lane counts with its floor, until one chunk has measured it again. */
static void forget(struct scheduler *s, struct mono now, uint32_t lanes)
{
    for (; lanes != 0; lanes &= lanes - 1) {
        struct scheduler_lane *x = &s->lanes[__builtin_ctz(lanes)];
        if (chunks(x) == 0 && mono_sub(now, x->acked_at).ns >= OLD_NS) {
            x->late_ns = x->late_bytes = 0;
        }
    }
}

/* Decides whether the set's own pair of NICs is so slow that another one must carry, or not any longer. */
static void look_away(struct scheduler *s, struct mono now, uint32_t size,
                      const struct scheduler_choice *c)
{
    double own = INFINITY, other = INFINITY;

    for (uint32_t lanes = c->usable; lanes != 0; lanes &= lanes - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(lanes);
        const struct scheduler_lane *x = &s->lanes[i];
        const bool spare = c->spare >> i & 1;
        if (!x->open || (spare && x->late_bytes <= 0)) {
            continue;
        }
        const double e = fmax(alone(x, size), silent(x, now));
        own = !spare && e < own ? e : own;
        other = spare && e < other ? e : other;
    }
    /* it goes back only if the other lanes' results are known: they may be forgotten */
    const bool change =
        s->away ? other < INFINITY && own < HOME * other : own < INFINITY && own > AWAY * other;
    if (!change) {
        s->away_since = MONO_NEVER;
    } else if (s->away_since.ns == INT64_MAX) {
        s->away_since = now;
    } else if (mono_sub(now, s->away_since).ns >=
               AWAY_NS + (int64_t)(other < INFINITY ? AWAY_CHUNKS * other : 0)) {
        s->away = !s->away;
        s->away_since = MONO_NEVER;
    }
}

int scheduler_pick(struct scheduler *s, struct mono now, uint32_t size,
                   const struct scheduler_choice *choice)
{
    const uint32_t chunk = size > 0 ? size : 1;
    int best = -1, stale = -1;
    double least = 0, asked = 0, rates;

    s->slow = false;
    s->share = share_of(s, choice);
    s->floor_ns = least_floor(s, now, choice->apart);
    if (s->round_robin || s->bug.condition != NULL) {
        return pick_turn(s, chunk, choice);
    }
    if (s->one_way && (best = pick_first(s, chunk, choice)) >= 0) {
        return best;
    }
    rates = all_rates(s);
    s->spare = choice->spare;
    if (choice->spare != 0) {
        forget(s, now, choice->spare);
        look_away(s, now, chunk, choice);
    }
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct scheduler_lane *x = &s->lanes[i];
        const bool one = choice->one >> i & 1, spare = choice->spare >> i & 1;
        if (!x->open || !(choice->usable >> i & 1)) {
            continue;
        }
        if (one && full(s, x, chunk, true)) {
            continue; /* a suspect with its one chunk is never the first choice */
        }
        if (spare && (x->cold || x->late_bytes <= 0) &&
            (full(s, x, chunk, false) || !(choice->room >> i & 1))) {
            continue; /* urgent chunks don't wait for a lane without results */
        }
        double e = expected(x, chunk, choice->weights[i], rates) * (spare && !s->away ? AWAY : 1);
        e = choice->spare != 0 ? fmax(e, silent(x, now)) : e;
        if (stale < 0 && !choice->urgent && !spare && chunks(x) == 0 &&
            mono_sub(now, x->bound_at).ns >= FRESH_NS && choice->room >> i & 1) {
            stale = (int)i;
            asked = e;
        }
        if (best < 0 || e < least) {
            best = (int)i;
            least = e;
        }
    }
    if (stale >= 0 && (asked <= SLOW * least ||
                       s->owed >= DOUBLE_EACH)) { /* so that an improved lane is noticed */
        s->slow = asked > SLOW * least;
        s->owed -= s->slow ? DOUBLE_EACH : 0;
        return stale;
    }
    if (best < 0 || !(choice->room >> best & 1) ||
        full(s, &s->lanes[best], chunk, choice->one >> best & 1)) {
        return -1; /* waiting for the best lane is better than the next best one */
    }
    return best;
}

uint32_t scheduler_chunk_size(const struct scheduler *s, uint64_t pending)
{
    const uint32_t lanes = s->lane_count > 0 ? s->lane_count : 1;
    double rate = 0, wanted = (double)(pending / (4 * lanes)), least;
    bool writes = false;

    if (s->one_way) {
        return 1u << LANE_CHUNK_SHIFT_MAX;
    }
    for (uint32_t open = s->lanes_open; open != 0; open &= open - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(open);
        if (s->lanes[lane].rate > rate) {
            rate = s->lanes[lane].rate;
            writes = s->writes >> lane & 1;
        }
    }
    if (rate <= 0) {
        return 1u << LANE_CHUNK_SHIFT_MIN; /* paths may be slow, and many may begin at once */
    }
    least = rate * 100 * NS_PER_US >= CHUNK_FAST ? CHUNK_FAST : CHUNK_LEAST;
    wanted = wanted > least ? wanted : least;
    if (rate * (double)NS_PER_MS < wanted) {
        wanted = rate * (double)NS_PER_MS;
    }
    least = writes ? CHUNK_LEAST : 1u << LANE_CHUNK_SHIFT_MIN;
    wanted = wanted > least ? wanted : least;
    return wanted > (double)(1u << LANE_CHUNK_SHIFT_MAX) ? 1u << LANE_CHUNK_SHIFT_MAX
                                                         : (uint32_t)wanted;
}

/* Chunks that test a lane which messages avoid are hedged early. So are the rest on NICs that others replace: nobody should wait
 * for them longer than for any other lane. */
struct mono scheduler_hedge_before(const struct scheduler *s, struct mono now, uint32_t lane)
{
    const struct scheduler_lane *x = &s->lanes[lane < LANE_MAX ? lane : 0];

    if (!x->open || x->rate <= 0) {
        return (struct mono){INT64_MIN};
    }
    double rates = all_rates(s);
    double e = expected(x, 0, 1, rates);
    const bool left = s->away && (s->spare >> lane & 1) == 0;
    for (uint32_t i = 0; i < LANE_MAX && (chunks(x) == 1 || left); i++) {
        const double other = s->lanes[i].open ? expected(&s->lanes[i], 0, 1, rates) : e;
        e = other < e ? other : e;
    }
    return mono_add(now, span_ns(-HEDGE * (int64_t)e));
}

int scheduler_better(const struct scheduler *s, uint32_t lane, uint32_t than)
{
    const struct scheduler_lane *x = &s->lanes[lane < LANE_MAX ? lane : 0];
    const struct scheduler_lane *y = &s->lanes[than < LANE_MAX ? than : 0];

    if (!x->open || !y->open || x->late_bytes <= 0 || y->late_bytes <= 0) {
        return -1;
    }
    return BETTER * x->late_ns * y->late_bytes < y->late_ns * x->late_bytes;
}

uint64_t scheduler_unacked(const struct scheduler *s)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        sum += s->lanes[i].open ? unacked(&s->lanes[i]) : 0;
    }
    return sum;
}

double scheduler_rate_bps(const struct scheduler *s, uint32_t lane)
{
    return lane < LANE_MAX ? s->lanes[lane].rate * 8e9 : 0;
}

const struct bug_note *scheduler_bug(const struct scheduler *s)
{
    return s->bug.condition != NULL ? &s->bug : NULL;
}
