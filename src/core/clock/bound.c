/* bound.c: how wrong the readers' line can be. The hard bound comes only from the fastest packets and the graph's width. The
 * statistical bound comes from the filter and from the disagreement of the edges.
 *
 * Hard bound of an edge: theta is carried from its fastest points to now, by the rate of one raw clock against the other. Stamps
 * alone bound that rate (drift.h), so the maps' rates, right or wrong, don't matter. Points are used, never fitted lines.
 *
 * Levels. W_L = W 2^(L/4), W is the fleet's edge limit. A member is tight at the lowest level at which 9 of 16 of its peers
 * (hosts) are tight, at that level or below, over edges no wider than W_L. It is core if it has been tight for longer than the
 * graph is wide and 3/4 of its peers answer. Members that are core at level a are also core at any b above. At b they differ by
 * at most H W_b along honest edges. So a member at level L publishes h = H W_L - H W / 2, and at level 0 H W / 2. The bounds of
 * any two members then add up to at least their possible difference, and by Helly's theorem all F_i +- h_i share a common time. A
 * member behind full queues has a wide bound, and only its own bound suffers. No member needs to know the widest one. A liar's
 * level can only cost edges. If every member probes every other one, H is 1, and a member that can't reach all others must be
 * wide enough for two edges (level_of_mesh).
 *
 * The h in a probe shows the level that its sender claims. A higher level counts at once. A lower level is first claimed on own
 * edges. It counts for the own bound when enough neighbours have claimed it for long enough. */
#include "core/clock/clock_private.h"

#include <math.h>
#include <string.h>

#include "stats/sample.h"

#define TICKS_PER_HOP  2 /* within so many ticks all neighbours have received a claim */
#define GRACE_TICKS    60
#define REST_TICKS     10
#define FALL_TICKS     20
#define LEVELS         64
#define LEVEL_NONE     LEVELS
#define LEVEL_STEPS    4.0 /* a factor of two */
#define RESTLESS_S     0.5
#define RESTLESS_DT_S  0.05
#define PEER_H_NS      (4 * NS_PER_S) /* longer than a claim lasts that is not held */
#define SCATTER        0.15
#define CALM_RATE      1e-6
#define UNGUARDED_RATE 60e-6
#define UNGUARDED_S    0.2

/* ns/s: the rate at which lines follow and maps move. A line that must move faster jumps. */
#define RESTLESS_MOST (1e9 * (CLOCK_SLEW_MAX + CLOCK_MOVE_NS_MAX / CLOCK_TICK_NS))

double bound_rate_limit(const struct clock *c)
{
    return fmax(c->config.rate_limit_ppm * 1e-6, c->h_rate);
}

double bound_growth_ns(const struct clock *c, double age_s)
{
    return clock_drift_ns(bound_rate_limit(c), c->config.rate_drift_ppb_s * 1e-9, fmax(0, age_s));
}

/* The bound is about the line at that time, continued. The readers' line has been moved since by what the map learned, and no
 * bound covers that. */
double bound_aged_ns(const struct clock *c, struct nic_time now)
{
    const double age_ns = (double)(now.ns - c->h_at.ns);

    if (age_ns <= 0) {
        return c->h_ns;
    }
    const double map = clock_map_difference(&c->map, now, &c->h_map, now);
    const double line = map + line_minus_map(c, now);

    return c->h_ns + fmax(fabs(map), fabs(line)) + bound_growth_ns(c, age_ns * 1e-9);
}

void bound_renew(struct clock *c, double h_ns, struct nic_time now)
{
    ASSERT(h_ns >= 0); /* half a width */
    c->h_ns = h_ns;
    c->h_at = now;
    c->h_known = true;
    c->h_map = c->map;
    c->h_map.x_fraction += line_minus_map(c, now); /* h is about the line */
}

static void rate_note(struct steady_rate *s, double y, struct nic_time now)
{
    if (fabs(y - s->y) > CALM_RATE) {
        s->y = y;
        s->since = now;
    }
}

static bool rate_is_calm(const struct steady_rate *s, struct nic_time now)
{
    return s->since.ns != 0 && now.ns - s->since.ns >= DRIFT_SLOTS * NS_PER_S;
}

bool bound_rate_held(const struct clock *c)
{
    return rate_is_calm(&c->own_rate, c->now);
}

/* The edge's stamps contradict the premises: one of its two clocks has broken them. Stamps of other edges between the same clocks
 * are as old. */
static void begin_anew(struct clock *c, struct clock_edge *e, struct nic_time now)
{
    for (int i = e->leader; i >= 0; i = c->edges[i].next_of_peer) {
        struct clock_edge *other = &c->edges[i];
        memset(other->buckets, 0, sizeof(other->buckets));
        drift_init(&other->drift); /* across a step they look like a rate */
        other->bounded = other->proven = false;
        for (int p = 0; p < CLOCK_PATH_MAX; p++) {
            other->paths[p].round_at = 0;
        }
    }
    e->crossed_at = now;
}

double bound_rate_change(const struct clock *c)
{
    return 2e-6 * fmax(c->config.rate_limit_ppm, c->config.rate_drift_ppb_s * 1e-3 * DRIFT_SLOTS);
}

static void bound_edge(struct clock *c, struct clock_edge *e, struct nic_time now)
{
    double best[2] = {INFINITY, INFINITY};

    e->bounded = e->proven = false;
    if (!edge_live(c, e) || e->config.witness || e->peer.phase < CLOCK_TRACK) {
        return;
    }
    if (!drift_judge(&e->drift, now.ns, bound_rate_change(c))) { /* one of the clocks stepped */
        begin_anew(c, e, now);
        return;
    }
    /* rates that both ends have published for long are the rates of their clocks, if stamps allow it: clocks change their rates
     * by no more */
    const double limit = 2e-6 * c->config.rate_limit_ppm;
    rates_of_theta(c, e, &e->rate_lower, &e->rate_upper);
    const bool calm = rate_is_calm(&c->own_rate, now) && rate_is_calm(&e->peer_rate, now) &&
                      e->rate_lower <= limit && e->rate_upper >= -limit;
    const double most = calm ? limit : INFINITY;
    const double rate[2] = {fmin(most, -e->rate_lower), fmin(most, e->rate_upper)};
    for (int i = 0; i < BOUND_BUCKETS; i++) {
        const struct bucket *b = &e->buckets[i];
        for (int d = 0; d < 2; d++) {
            const double age = (double)(now.ns - b->local_ns[d]) * 1e-9;
            if (!b->seen[d] || age > 2 || age < -BOUND_HORIZON_S) {
                continue;
            }
            const double ahead =
                clock_map_difference(&e->peer.map, (struct nic_time){b->remote_ns[d]}, &c->map,
                                     (struct nic_time){b->local_ns[d]});
            const double p = (d == 1 ? ahead : -ahead) +
                             (age * rate[d] + BOUND_HORIZON_S * fmax(0, rate[d])) * 1e9;
            best[d] = p < best[d] ? p : best[d];
        }
    }
    if (!isfinite(best[0]) || !isfinite(best[1])) {
        return;
    }
    const double header_s = (double)(now.ns - e->heard_at.ns) * 1e-9;
    const double slack = (double)(c->config.stamp_error_ns - e->config.delay_ns_min) +
                         e->restless * (header_s + BOUND_HORIZON_S);
    const double own = line_minus_map(c, now), peer = e->peer.line_minus_map_ns;
    e->map_upper_ns = best[1] + slack;
    e->map_lower_ns = -best[0] - slack;
    /* a line lies between its map and its last published distance from the map */
    e->upper_ns = best[1] + slack + fmax(0, peer) - fmin(0, own);
    e->lower_ns = -best[0] - slack + fmin(0, peer) - fmax(0, own);
    e->proven = e->map_upper_ns >= e->map_lower_ns;
    e->bounded = e->proven;
    if (!e->proven) { /* a rate changed by more than it may: earlier stamps prove nothing now */
        begin_anew(c, e, now);
    }
}

/* An interval in which an edge proves something to lie. */
struct ends {
    double *lower, *upper;
};

static struct ends between_maps(struct clock_edge *e)
{
    return (struct ends){&e->map_lower_ns, &e->map_upper_ns};
}

static struct ends between_lines(struct clock_edge *e)
{
    return (struct ends){&e->lower_ns, &e->upper_ns};
}

static struct ends of_rate(struct clock_edge *e)
{
    return (struct ends){&e->rate_lower, &e->rate_upper};
}

/* Edges to one peer are between the same two clocks and use the same header, so what one edge proves holds for the others. If
 * they contradict each other, one of the clocks is just breaking a premise, and each edge keeps its own interval. */
static void share_proof(struct clock *c, struct ends (*ends_of)(struct clock_edge *))
{
    double *lower = c->values, *upper = c->weights;

    for (int i = 0; i < c->capacity; i++) {
        lower[i] = -INFINITY;
        upper[i] = INFINITY;
    }
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        if (e->used && e->proven) {
            const struct ends of = ends_of(e);
            lower[e->leader] = fmax(lower[e->leader], *of.lower);
            upper[e->leader] = fmin(upper[e->leader], *of.upper);
        }
    }
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        if (e->used && e->proven && lower[e->leader] <= upper[e->leader]) {
            const struct ends of = ends_of(e);
            *of.lower = lower[e->leader];
            *of.upper = upper[e->leader];
        }
    }
}

static void share_proofs(struct clock *c)
{
    share_proof(c, between_maps);
    share_proof(c, between_lines);
    share_proof(c, of_rate);
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        if (e->used && e->bounded) {
            e->w_ns = fmax(fabs(e->upper_ns), fabs(e->lower_ns));
        }
    }
}

/* ---- levels ---- */

static double width_of(const struct clock *c, int level)
{
    return (double)c->config.edge_limit_ns * exp2(level / LEVEL_STEPS);
}

static double bound_of(const struct clock *c, int level)
{
    const double half = c->config.hops * (double)c->config.edge_limit_ns / 2;

    return level == 0 ? half : c->config.hops * width_of(c, level) - half;
}

/* The lowest level that allows such a width; LEVEL_NONE: no bound is possible. */
static int level_of(const struct clock *c, double width_ns)
{
    const double level =
        ceil(LEVEL_STEPS * log2(width_ns / (double)c->config.edge_limit_ns) - 1e-6);

    if (!(level > 0)) {
        return 0;
    }
    return level < LEVELS && bound_of(c, (int)level) <= BOUND_H_NS_MAX ? (int)level : LEVEL_NONE;
}

/* The level that a tight peer claims, from its published bound. */
static int level_claimed(const struct clock *c, const struct clock_published *peer)
{
    const double half = bound_of(c, 0);

    if (peer->h_ns == UINT32_MAX || peer->h_ns <= half + 1) {
        return 0;
    }
    return level_of(c, (peer->h_ns - 1 + half) / c->config.hops);
}

/* For each host the width of its furthest clock, by that clock's best edge. */
static void widths_of_hosts(const struct clock *c)
{
    /* leaders come last, because they are the lowest */
    for (int i = c->capacity - 1; i >= 0; i--) {
        const struct clock_edge *e = &c->edges[i];
        if (!e->used || e->leader != i || e->host_leader == i || isinf(c->values[i])) {
            continue;
        }
        double *host = &c->values[e->host_leader];
        *host = isinf(*host) ? c->values[i] : fmax(*host, c->values[i]);
        c->values[i] = INFINITY;
    }
}

/* The widths of the edges to each host (not clock), in c->values, ascending. INFINITY: beyond any level. A host counts by those
 * of its clocks that are heard. TIGHT: only hosts that report to be tight. CLAIMED: and none is narrower than its claim. */
enum counted { ANY, TIGHT, CLAIMED };
static void sort_widths(const struct clock *c, enum counted counted)
{
    int count = 0;

    for (int i = 0; i < c->capacity; i++) {
        c->values[i] = INFINITY;
    }
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (!e->used || !e->bounded || (counted != ANY && !e->peer.tight)) {
            continue;
        }
        const double claimed = counted == CLAIMED ? width_of(c, level_claimed(c, &e->peer)) : 0;
        const double width = fmax(e->w_ns, claimed);
        if (level_of(c, width) != LEVEL_NONE) {
            c->values[e->leader] = fmin(c->values[e->leader], width);
        }
    }
    widths_of_hosts(c);
    for (int i = 0; i < c->capacity; i++) {
        const double width = c->values[i];
        c->values[i] = INFINITY;
        if (isfinite(width)) {
            c->values[count++] = width;
        }
    }
    sample_sort(c->values, (size_t)count);
}

/* It reported so a moment ago, so it can't be core before this member's next tick. */
static bool is_loose(const struct clock *c, const struct clock_edge *e)
{
    const int64_t wait_ns = TICKS_PER_HOP * (c->config.hops + 1) * CLOCK_TICK_NS;

    return e->heard && !e->peer.tight && c->now.ns - e->heard_at.ns < wait_ns - CLOCK_TICK_NS;
}

/* The width of the furthest clock that may be core; INFINITY: one is beyond any bound. */
static double widest(const struct clock *c)
{
    double most = 0;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        double best = INFINITY;
        if (!e->used || e->leader != i || e->config.witness || is_loose(c, e)) {
            continue;
        }
        for (int k = i; k >= 0; k = c->edges[k].next_of_peer) {
            best = c->edges[k].bounded ? fmin(best, c->edges[k].w_ns) : best;
        }
        most = fmax(most, best);
    }
    return most;
}

/* In a full mesh H is 1. But two members may not reach each other. Then both reach so many others that one of those is common and
 * honest, and they differ by at most both edges to it. So each of them needs an h of its own edge. A member that reaches all
 * others needs only the widest of its edges. */
static int level_of_mesh(const struct clock *c, enum counted counted, int need)
{
    const int hosts = c->hosts_chosen, third = (hosts - 1) / 3;
    const int liars = third < 4 ? third : 4;
    const int two = need > (hosts + liars + 1) / 2 ? need : (hosts + liars + 1) / 2;
    const double half = bound_of(c, 0);

    sort_widths(c, counted);
    const double common = c->values[two - 1];
    const int by_common = common <= half ? 0 : level_of(c, common + half);
    const int by_own = level_of(c, widest(c));

    return by_common < by_own ? by_common : by_own;
}

/* The lowest level at which enough hosts are within reach and, with CLAIMED, claim it. */
static int lowest_level(const struct clock *c, enum counted counted)
{
    const int need = (9 * c->hosts_chosen + 15) / 16;

    sort_widths(c, counted);
    const int level = level_of(c, c->values[need - 1]);
    if (c->config.hops > 1) {
        return level;
    }
    const int mesh = level_of_mesh(c, counted == CLAIMED ? TIGHT : counted, need);

    return level > mesh ? level : mesh;
}

/* Claims a level, or withdraws the claim. At first a claim stands on own edges alone, so that a fleet can begin to be tight, or
 * can come down. Later it needs enough neighbours that claim it, too. */
static void claim_level(struct clock *c, int own, int held)
{
    c->claim = c->claim > own ? c->claim : own;
    c->calm_edges = own < c->claim ? c->calm_edges + 1 : 0;
    if (held <= c->claim) {
        c->claim_ticks = 0;
        if (c->calm_edges > FALL_TICKS) {
            c->claim = own;
            c->calm_edges = 0;
        }
    } else if (++c->claim_ticks > GRACE_TICKS) {
        c->claim = held; /* LEVEL_NONE: the caller withdraws it */
        c->claim_ticks = c->calm_edges = 0;
    }
}

static void follow_level(struct clock *c, int held)
{
    c->held_ticks = held != LEVEL_NONE ? c->held_ticks + 1 : 0;
    c->lower_ticks = held <= c->claim ? c->lower_ticks + 1 : 0;
    if (held > c->level && held != LEVEL_NONE) {
        c->level = held;
    } else if (c->lower_ticks > TICKS_PER_HOP * (c->config.hops + 1)) {
        c->level = c->claim;
    }
}

static void update_core(struct clock *c)
{
    const bool fine = c->phase == CLOCK_TRACK && !c->disrupted && c->peers_chosen > 0;
    const int own = fine ? lowest_level(c, ANY) : LEVEL_NONE;
    const int held = own != LEVEL_NONE ? lowest_level(c, CLAIMED) : LEVEL_NONE;

    if (!fine) {
        c->tight_ticks = 0;
    }
    if (own == LEVEL_NONE || c->tight_ticks < 0) {
        c->tight_ticks = c->tight && fine     ? -REST_TICKS
                         : c->tight_ticks < 0 ? c->tight_ticks + 1
                                              : 0;
        c->tight = c->core = false;
        c->held_ticks = c->lower_ticks = 0;
        return;
    }
    if (!c->tight) {
        c->tight = true;
        c->claim = c->level = own;
        c->claim_ticks = c->calm_edges = 0;
    }
    claim_level(c, own, held);
    /* too few neighbours share it: after a failed claim, the next one waits a little */
    if (c->claim == LEVEL_NONE) {
        c->tight = c->core = false;
        c->tight_ticks = -REST_TICKS;
        c->held_ticks = c->lower_ticks = 0;
        return;
    }
    follow_level(c, held);
    c->core = c->held_ticks > TICKS_PER_HOP * (c->config.hops + 1) &&
              4 * c->hosts_live >= 3 * c->hosts_chosen;
}

double bound_published_ns(const struct clock *c)
{
    return c->tight ? bound_of(c, c->claim) : c->h_known ? c->h_ns : -1;
}

/* ---- reports of peers ---- */

/* A peer's line lies between its map and the line's last published distance. How far the new map and line reach beyond the old
 * ones. */
static double reaches_beyond(const struct clock_published *was, const struct clock_published *is)
{
    const double moved = clock_map_difference(&is->map, is->map.r, &was->map, is->map.r);
    const double high = moved + fmax(0, is->line_minus_map_ns) - fmax(0, was->line_minus_map_ns);
    const double low = moved + fmin(0, is->line_minus_map_ns) - fmin(0, was->line_minus_map_ns);

    return fmax(0, fmax(high, -low));
}

void bound_hear(struct clock_edge *e, const struct clock_published *heard, struct nic_time now)
{
    const double dt_s = (double)(now.ns - e->heard_at.ns) * 1e-9;

    rate_note(&e->peer_rate, heard->phase == CLOCK_TRACK ? heard->map.y : INFINITY, now);
    if (heard->phase != CLOCK_TRACK || e->peer.phase != CLOCK_TRACK) {
        e->restless = 0; /* it is not bounded, or nothing can be compared */
    } else {
        const double moved =
            heard->map_seq != e->peer.map_seq ? reaches_beyond(&e->peer, heard) : 0;
        const double rate = fmin(RESTLESS_MOST, moved / fmax(dt_s, RESTLESS_DT_S));
        e->restless = fmax(rate, e->restless * exp(-dt_s / RESTLESS_S));
    }
    if (heard->h_ns >= e->peer_h_ns || !e->heard || now.ns - e->peer_h_at.ns > PEER_H_NS) {
        e->peer_h_ns = heard->h_ns;
        e->peer_h_at = now;
    }
}

/* ---- the member ---- */

static bool leaf_bound(struct clock *c, double *ret_h)
{
    int count = 0;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (!e->used || !e->bounded || !e->peer.core) {
            continue;
        }
        sample_insert(c->values, (size_t)count++, e->w_ns + fmax(bound_of(c, 0), e->peer_h_ns));
    }
    const int need = (3 * c->edge_count + 3) / 4;
    if (count < need || need == 0) {
        return false;
    }
    *ret_h = c->values[need - 1];
    return *ret_h <= BOUND_H_NS_MAX;
}

static double hush_of(const struct clock_edge *e)
{
    return e->hush_s;
}

/* How far an island may have drifted away, in ns^2. */
static double island2(const struct clock *c)
{
    double p00, p01, p11, q2;
    const int silent = consensus_silent(c, hush_of);

    if (silent == 0) {
        return 0;
    }
    const double t = c->values[3 * silent / 4];
    bank_variance(&c->bank, &p00, &p01, &p11, &q2);
    return t * t * (p11 + q2 * t / 3);
}

/* The largest error of the own map's rate. If the rate was constant for as long as stamps reach back, premise 1 gives it. If it
 * still moves, its error is as large as the stamps of the middle edge allow. */
static double rate_proven(const struct clock *c)
{
    int count = 0;

    for (int i = 0; i < c->capacity && !bound_rate_held(c); i++) {
        const struct clock_edge *e = &c->edges[i];
        if (e->used && e->bounded) {
            sample_insert(c->values, (size_t)count++,
                          fmax(fabs(e->rate_lower), fabs(e->rate_upper)));
        }
    }
    return count > 0 ? fmin(CLOCK_RATE_MAX, c->values[count / 2]) : 0;
}

void bound_edges(struct clock *c, struct nic_time now)
{
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        if (!e->used) {
            continue;
        }
        bound_edge(c, e, now);
        if (c->phase < CLOCK_TRACK && e->crossed_at.ns == now.ns) {
            clock_forget_stamps_of_peer(c, e); /* no line fits both parts of the stamps */
        }
    }
    share_proofs(c);
}

void bound_tick(struct clock *c, struct nic_time now)
{
    double h;

    rate_note(&c->own_rate, c->phase == CLOCK_TRACK ? c->map.y : INFINITY, now);
    bound_edges(c, now);
    if (contain_tick(c, now)) {
        bound_edges(c, now);
    }
    update_core(c);
    c->island2 = island2(c);
    const bool guarded = c->guard_seen && now.ns - c->guard_at.ns < NS_PER_S;
    const double unguarded = guarded ? 0 : UNGUARDED_RATE * UNGUARDED_S * 1e9;
    if (c->core) {
        h = bound_of(c, c->level) + unguarded;
    } else if (c->phase == CLOCK_TRACK && !c->disrupted && leaf_bound(c, &h)) {
        h += unguarded;
    } else if (c->h_known) {
        return; /* the last bound ages: bound_aged_ns() */
    } else if (c->config.alone_is_fine && c->edge_count == 0) {
        h = 0;
    } else {
        return;
    }
    bound_renew(c, h, now);
    c->h_rate = rate_proven(c);
}

/* The variance from disagreement, beside the filter's own, which includes the packets' noise. It comes from the levels of three
 * quarters of the edges, also parked ones, and from a tenth of the edges' scatter in one tick. In the first seconds the noise is
 * not known yet, so it is twice as wide. */
double bound_spread2(const struct clock *c)
{
    const double rho2 = c->level_q75_ns * c->level_q75_ns + SCATTER * c->rms_ns * c->rms_ns;
    const double early = c->now.ns - c->phase_since.ns < 2 * EARLY_NS ? 4 : 1;

    return early * 2 * rho2 / fmax(1, c->in_gate) + c->island2;
}

double bound_statistical_ns(const struct clock *c)
{
    double p00, p01, p11, q2;

    bank_variance(&c->bank, &p00, &p01, &p11, &q2);
    return 6 * sqrt(p00 + bound_spread2(c)) + c->queue_ns;
}
