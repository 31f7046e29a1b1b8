/* report.c: the output of a member: headers for peers, terms for readers, tables for people; and the saved state. */
#include "core/clock/clock_private.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SAVED_AGE_NS_MAX (600 * NS_PER_S)

void clock_published(const struct clock *c, struct nic_time now, struct clock_published *p)
{
    const double line = c->line.valid ? line_minus_map(c, now) : 0;
    const double h = bound_published_ns(c);

    *p = (struct clock_published){
        .phase = c->phase,
        .settled = c->settled,
        .tight = c->tight,
        .core = c->core,
        .timeline = c->timeline,
        .founder = c->founder,
        .epoch = c->epoch,
        .timeline_age_s = (uint32_t)fmax(0, (double)(now.ns - c->born.ns) * 1e-9),
        .map = c->map,
        .map_seq = c->map_seq,
        .line_minus_map_ns = floor(fmin(1e8, fmax(-1e8, line)) * 16 + 0.5) / 16,
        .sqrt_p_ns = bank_deviation_ns(&c->bank),
        .scale_ns = c->scale_own_ns,
        .h_ns = h < 0 ? UINT32_MAX : (uint32_t)fmin(4e9, ceil(h)),
        .anchor = anchor_publish(c),
    };
}

void clock_terms(const struct clock *c, struct clock_terms *t)
{
    const bool alone = !c->line.valid;

    *t = (struct clock_terms){
        .status = c->status, .timeline = c->timeline, .epoch = c->epoch, .h_ns = -1};
    t->line = (struct clock_line){c->line.r, c->line.x_ns, c->line.x_fraction,
                                  c->line.y, c->line.slew, c->line.until};
    if (alone) {
        t->line =
            (struct clock_line){c->map.r, c->map.x_ns, c->map.x_fraction, c->map.y, 0, c->map.r};
    }
    if (c->h_known) {
        t->h_ns = bound_aged_ns(c, t->line.r);
    }
    t->rate_limit = bound_rate_limit(c);
    t->rate_drift = c->config.rate_drift_ppb_s * 1e-9;
    bank_variance(&c->bank, &t->p00, &t->p01, &t->p11, &t->q2);
    t->spread2_ns = bound_spread2(c);
    t->shift_ns = c->queue_ns + fabs(line_minus_map(c, t->line.r));
    t->guarded = c->guard_seen && t->line.r.ns - c->guard_at.ns < NS_PER_S;
    t->guard = c->guard_at;
    t->guard_ns = c->guard_ns;
    t->guard_rate = c->guard_rate;
    t->utc_known = c->utc_known;
    t->utc_minus_ns = c->utc_minus_ns;
    t->utc_bound_ns = c->utc_bound_ns + fabs(line_minus_map(c, t->line.r));
}

struct fleet_time clock_stamp(const struct clock *c, struct nic_time stamp)
{
    return clock_map_apply(&c->map, stamp);
}

void clock_report(const struct clock *c, struct nic_time now, struct clock_report *r)
{
    double witness = 0;
    int witnesses = 0;

    *r = (struct clock_report){
        .status = c->status,
        .phase = c->phase,
        .settled = c->settled,
        .tight = c->tight,
        .core = c->core,
        .queued = c->queued,
        .timeline = c->timeline,
        .founder = c->founder,
        .epoch = c->epoch,
        .timeline_age_s = (uint32_t)fmax(0, (double)(now.ns - c->born.ns) * 1e-9),
        .edges = c->edge_count,
        .edges_live = c->live,
        .edges_parked = c->parked,
        .edges_in_gate = c->in_gate,
        .peers_live = c->peers_live,
        .liars_max = c->liars_max,
        .sqrt_p_ns = bank_deviation_ns(&c->bank),
        .scale_ns = c->scale_ns,
        .park_limit_ns = park_limit(c, NULL),
        .edge_limit_ns = (double)c->config.edge_limit_ns,
        .hard_ns = c->h_known ? c->h_ns : -1,
        .statistical_ns = bound_statistical_ns(c),
        .rate_ppb = c->map.y * 1e9,
        .wander_ppb = bank_wander(&c->bank),
        .witness_ns = -1,
        .points = c->points,
        .points_refused = c->points_refused,
        .steps = c->steps,
        .peers_refused = c->peers_refused,
        .fault = c->fault,
        .fault_seen = c->fault_seen,
    };
    for (int i = 0; i < c->capacity; i++) {
        if (c->edges[i].used && c->edges[i].config.witness && c->edges[i].witness_ms > 0) {
            witness += c->edges[i].witness_ms;
            witnesses++;
        }
    }
    if (witnesses > 0) {
        r->witness_ns = sqrt(witness / witnesses);
    }
}

int clock_edge_capacity(const struct clock *c)
{
    return c->capacity;
}

bool clock_edge_report(const struct clock *c, struct nic_time now, int edge,
                       struct clock_edge_report *r)
{
    if (edge < 0 || edge >= c->capacity || !c->edges[edge].used) {
        return false;
    }
    const struct clock_edge *e = &c->edges[edge];
    const uint64_t packets = e->packets_in_gate + e->packets_alike + e->packets_out;
    double queue = 0;
    for (int p = 0; p < e->config.path_count; p++) {
        queue = fmax(queue, e->paths[p].known ? e->paths[p].excess_ns : 0);
    }
    *r = (struct clock_edge_report){
        .peer = e->config.peer,
        .local_nic = e->config.local_nic,
        .peer_nic = e->config.peer_nic,
        .live = e->heard && now.ns - e->heard_at.ns < PEER_SILENT_NS &&
                now.ns - e->point_at.ns < PEER_SILENT_NS,
        .witness = e->config.witness,
        .parked = e->parked,
        .peer_phase = e->peer.phase,
        .theta_ns = e->has_e ? e->e_ns : e->raw_ns,
        .level_ns = e->level_ns,
        .noise_ns = noise_sigma_ns(&c->noise),
        .delay_ns = edge_m_mean(e),
        .bound_ns = e->bounded ? e->w_ns : -1,
        .pure_share = e->pairs > 0 ? (double)e->pairs_pure / (double)e->pairs : 0,
        .gate_share = packets > 0 ? (double)e->packets_in_gate / (double)packets : 0,
        .queue_ns = queue,
        .points = e->points,
    };
    return true;
}

void clock_save(const struct clock *c, struct nic_time now, struct clock_saved *s)
{
    memset(s, 0, sizeof(*s));
    s->version = CLOCK_SAVED_VERSION;
    s->member = c->config.member;
    s->saved = now;
    s->timeline = c->phase == CLOCK_TRACK && c->settled ? c->timeline : CLOCK_TIMELINE_NONE;
    s->founder = c->founder;
    s->epoch = c->epoch;
    s->timeline_born = c->born;
    s->map = c->map;
    s->line_minus_map_ns = line_minus_map(c, now);
    s->h_ns = c->h_known ? bound_aged_ns(c, now) : -1;
    bank_variance(&c->bank, &s->p00, &s->p01, &s->p11, &s->noise_ns);
    s->scale_ns = c->scale_own_ns;
    s->noise_ns = noise_sigma_ns(&c->noise);
    for (int i = 0; i < c->capacity && s->edge_count < CLOCK_SAVED_EDGES; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (!e->used || !e->level_known) {
            continue;
        }
        struct clock_saved_edge *to = &s->edges[s->edge_count++];
        to->peer = e->config.peer;
        to->local_nic = e->config.local_nic.index;
        to->peer_nic = e->config.peer_nic.index;
        to->path_count = e->config.path_count;
        to->parked = e->parked;
        to->level_ns = e->level_ns;
        for (int p = 0; p < e->config.path_count; p++) {
            to->m_ns[p] = e->paths[p].known ? e->paths[p].m_ns : NAN;
        }
    }
}

static bool plausible(const struct clock *c, struct nic_time now, const struct clock_saved *s)
{
    const int64_t age = now.ns - s->saved.ns;

    return s->version == CLOCK_SAVED_VERSION && s->member == c->config.member && age >= 0 &&
           age <= SAVED_AGE_NS_MAX && s->timeline != CLOCK_TIMELINE_NONE &&
           fabs(s->map.y) <= CLOCK_RATE_MAX && s->map.x_fraction >= 0 && s->map.x_fraction < 1 &&
           isfinite(s->p00) && s->p00 >= 0 && isfinite(s->noise_ns) && s->noise_ns > 0 &&
           isfinite(s->h_ns) && s->edge_count <= CLOCK_SAVED_EDGES;
}

static void restore_edge(struct clock *c, const struct clock_saved_edge *from, struct nic_time now)
{
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        if (!e->used || e->config.peer != from->peer ||
            e->config.local_nic.index != from->local_nic ||
            e->config.peer_nic.index != from->peer_nic ||
            e->config.path_count != from->path_count || !isfinite(from->level_ns)) {
            continue;
        }
        e->level_known = true;
        e->level_ns = e->expected_ns = from->level_ns;
        e->level_weight = 20;
        e->parked = from->parked != 0;
        for (int p = 0; p < e->config.path_count; p++) {
            if (isfinite(from->m_ns[p])) {
                e->paths[p] = (struct path){.known = true,
                                            .m_ns = from->m_ns[p],
                                            .info = 20 * c->noise.info,
                                            .window = now,
                                            .low = {INFINITY, INFINITY}};
            }
        }
        return;
    }
}

int clock_restore(struct clock *c, struct nic_time now, const struct clock_saved *s)
{
    if (!plausible(c, now, s)) {
        return -EINVAL;
    }
    c->now = now;
    noise_reshape(&c->noise, s->noise_ns);
    for (int i = 0; i < s->edge_count; i++) {
        restore_edge(c, &s->edges[i], now);
    }
    const double age_s = (double)(now.ns - s->saved.ns) * 1e-9;
    c->map = s->map;
    clock_move(c, now, 0, 0);
    bank_start(&c->bank, s->p00, s->p11);
    bank_predict(&c->bank, age_s, true);
    c->timeline = s->timeline;
    c->founder = s->founder;
    c->epoch = s->epoch;
    c->born = s->timeline_born;
    c->scale_own_ns = c->scale_ns = fmax(0, s->scale_ns);
    clock_set_phase(c, CLOCK_TRACK);
    c->restored = true;
    c->restored_at = now;
    c->settled = true;
    line_restart(c, now);
    if (s->h_ns >= 0) {
        bound_renew(c, s->h_ns + fabs(s->line_minus_map_ns), s->saved);
    }
    c->status = CLOCK_HOLDOVER;
    c->hold_since = s->saved;
    return 0;
}
