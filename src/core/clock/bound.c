/* bound.c: how wrong the readers' line can be: hard, from the fastest packets and the graph's width
 * alone; statistical, from the filter and from how much the edges disagree.
 *
 * Hard. An edge: theta <= min(p_k + g(age_k)) - D_min + delta, and likewise below; points, never
 * fitted lines. A member is tight if 9 of 16 of its peers are tight and within W of it; core, if it
 * has been for longer than the graph is wide and 3/4 of its peers answer. Core members differ by no
 * more than H W along honest edges, so by Helly all F_i +- H W / 2 share a common time. No liar's
 * word enters; it can only cost edges. */
#include "core/clock/clock_private.h"

#include <math.h>

#include "stats/sample.h"

#define HORIZON_S      0.15 /* an edge's bound holds until the next tick at the latest */
#define TICKS_PER_HOP  2    /* a claim is heard by all neighbours within that */
#define GRACE_TICKS    40
#define REST_TICKS     10
#define SCATTER        0.15
#define UNGUARDED_RATE 60e-6
#define UNGUARDED_S    0.2

double bound_growth_ns(const struct clock *c, double age_s)
{
    return clock_drift_ns(c->config.rate_limit_ppm * 1e-6, c->config.rate_drift_ppb_s * 1e-9,
                          fmax(0, age_s));
}

static void bound_edge(const struct clock *c, struct clock_edge *e, struct nic_time now)
{
    double best[2] = {INFINITY, INFINITY};

    e->bounded = false;
    if (!edge_live(c, e) || e->config.witness || e->peer.phase < CLOCK_TRACK) {
        return;
    }
    for (int i = 0; i < BOUND_BUCKETS; i++) {
        const struct bucket *b = &e->buckets[i];
        for (int d = 0; d < 2; d++) {
            const double age = (double)(now.ns - b->local_ns[d]) * 1e-9;
            if (!b->seen[d] || age > 2 || age < -HORIZON_S) {
                continue;
            }
            const double ahead =
                clock_map_difference(&e->peer.map, (struct nic_time){b->remote_ns[d]}, &c->map,
                                     (struct nic_time){b->local_ns[d]});
            const double p = (d == 1 ? ahead : -ahead) + 2 * bound_growth_ns(c, age + HORIZON_S);
            best[d] = p < best[d] ? p : best[d];
        }
    }
    if (!isfinite(best[0]) || !isfinite(best[1])) {
        return;
    }
    const double slack = (double)(c->config.stamp_error_ns - e->config.delay_ns_min);
    const double own = line_minus_map(c, now), peer = e->peer.line_minus_map_ns;
    /* lines lie between map and their last published distance */
    e->upper_ns = best[1] + slack + fmax(0, peer) - fmin(0, own);
    e->lower_ns = -best[0] - slack + fmin(0, peer) - fmax(0, own);
    e->w_ns = fmax(fabs(e->upper_ns), fabs(e->lower_ns));
    e->bounded = e->upper_ns >= e->lower_ns;
}

/* Peers (not edges) within the limit; `claims`: only those that say tight, or core. */
enum claim { ANY, SAYS_TIGHT };
static int peers_within(const struct clock *c, enum claim claim)
{
    int count = 0;

    for (int i = 0; i < c->capacity; i++) {
        c->order[i] = 0;
    }
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (e->used && e->bounded && e->w_ns <= (double)c->config.edge_limit_ns &&
            (claim == ANY || e->peer.tight) && c->order[e->leader]++ == 0) {
            count++;
        }
    }
    return count;
}

static void update_core(struct clock *c)
{
    const int need = (9 * c->peers_chosen + 15) / 16;
    const bool fine = c->phase == CLOCK_TRACK && !c->disrupted && c->peers_chosen > 0;

    if (!fine) {
        c->tight = c->core = false;
        c->tight_ticks = c->held_ticks = 0;
        return;
    }
    /* Claim, then withdraw: a claim stands for a while on own edges alone, so that a fleet can
     * begin to be tight; then it needs enough neighbours that claim it too. A claim that fell rests
     * a little. */
    if (c->tight_ticks < 0) {
        c->tight_ticks++;
        c->held_ticks = 0;
    } else {
        const bool held = peers_within(c, SAYS_TIGHT) >= need;
        const bool may = held || (c->tight_ticks <= GRACE_TICKS && peers_within(c, ANY) >= need);
        c->held_ticks = held ? c->held_ticks + 1 : 0;
        c->tight_ticks = may ? (held ? 1 : c->tight_ticks + 1) : c->tight ? -REST_TICKS : 0;
    }
    c->tight = c->tight_ticks > 0;
    c->core = c->tight && c->held_ticks > TICKS_PER_HOP * (c->config.hops + 1) &&
              4 * c->peers_live >= 3 * c->peers_chosen;
}

static bool leaf_bound(struct clock *c, double *ret_h)
{
    int count = 0;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (!e->used || !e->bounded || !e->peer.core) {
            continue;
        }
        sample_insert(c->values, (size_t)count++, e->w_ns);
    }
    const int need = (3 * c->edge_count + 3) / 4;
    if (count < need || need == 0) {
        return false;
    }
    *ret_h = c->config.hops * (double)c->config.edge_limit_ns / 2 + c->values[need - 1];
    return true;
}

void bound_tick(struct clock *c, struct nic_time now)
{
    double h;

    for (int i = 0; i < c->capacity; i++) {
        if (c->edges[i].used) {
            bound_edge(c, &c->edges[i], now);
        }
    }
    update_core(c);
    const bool guarded = c->guard_seen && now.ns - c->guard_at.ns < NS_PER_S;
    const double unguarded = guarded ? 0 : UNGUARDED_RATE * UNGUARDED_S * 1e9;
    if (c->core) {
        h = c->config.hops * (double)c->config.edge_limit_ns / 2 + unguarded;
    } else if (c->phase == CLOCK_TRACK && !c->disrupted && leaf_bound(c, &h)) {
        h += unguarded;
    } else if (c->h_known) {
        return; /* the last one ages; clock_terms() adds the growth */
    } else if (c->config.alone_is_fine && c->edge_count == 0) {
        h = 0;
    } else {
        return;
    }
    ASSERT(h >= 0); /* half a width */
    c->h_ns = h;
    c->h_at = now;
    c->h_known = true;
}

/* What disagreement adds to the variance of the filter, which already knows the packets' noise: the
 * levels of three quarters of the edges, parked ones too, and a tenth of what the edges scatter in
 * one tick. The first seconds' noise is not known yet: twice as wide. */
double bound_spread2(const struct clock *c)
{
    const double rho2 = c->level_q75_ns * c->level_q75_ns + SCATTER * c->rms_ns * c->rms_ns;
    const double early = c->now.ns - c->phase_since.ns < 2 * EARLY_NS ? 4 : 1;

    return early * 2 * rho2 / fmax(1, c->in_gate);
}

double bound_statistical_ns(const struct clock *c)
{
    double p00, p01, p11, q2;

    bank_variance(&c->bank, &p00, &p01, &p11, &q2);
    return 6 * sqrt(p00 + bound_spread2(c)) + c->queue_ns;
}
