/* answer_clock.c: "clock" and "selftest". */
#include "service/agent/answers.h"

#include <math.h>
#include <string.h>

static const char *state_word(const struct clock_report *r)
{
    switch (r->phase) {
    case CLOCK_COLD:
        return r->peers_live > 0 ? "coarse" : "cold";
    case CLOCK_ACQUIRE:
        return "acquire";
    case CLOCK_TRACK:
        return "track";
    case CLOCK_HOLD:
        return "holdover";
    }
    return "cold";
}

void answer_put_edge_ends(struct agent *a, struct json_writer *j, struct nic_id local,
                          struct nic_id peer)
{
    const struct agent_config *c = a->config;
    uint32_t index = 0;
    json_put_uint(j, "local_nic", local.index);
    json_put_string(j, "local_name",
                    agent_config_find(c, local, &index) ? c->more[index].nic_name : NULL);
    json_put_uint(j, "peer_nic", peer.index);
    const bool known = agent_config_find(c, peer, &index);
    json_put_string(j, "peer_name", known ? c->more[index].nic_name : NULL);
    json_put_string(j, "peer_host", known ? agent_config_host_name(c, c->peers[index].host) : NULL);
}

static void put_known(struct json_writer *j, const char *key, double value, bool known)
{
    json_put_int_if(j, key, known && isfinite(value),
                    isfinite(value) ? (int64_t)llround(value) : 0);
}

static const char *role_word(const struct clock_edge_report *e)
{
    return !e->live                                                        ? "silent"
           : e->witness                                                    ? "witness"
           : e->parked                                                     ? "parked"
           : e->peer_phase == CLOCK_COLD || e->peer_phase == CLOCK_ACQUIRE ? "acquiring"
                                                                           : "used";
}

static void put_edge(struct agent *a, struct json_writer *j, const struct clock_edge_report *e)
{
    json_put_object(j, NULL);
    answer_put_edge_ends(a, j, e->local_nic, e->peer_nic);
    json_put_string(j, "role", role_word(e));
    put_known(j, "error_ns", e->theta_ns, e->live);
    put_known(j, "level_ns", e->level_ns, e->live);
    put_known(j, "bound_ns", e->bound_ns, e->live && e->bound_ns >= 0);
    put_known(j, "rtt_floor_ns", 2 * e->delay_ns, e->points > 0);
    put_known(j, "queue_ns", e->queue_ns, e->points > 0);
    put_known(j, "noise_ns", e->noise_ns, e->points > 0);
    put_known(j, "pure_ppm", e->pure_share * 1e6, e->points > 0);
    put_known(j, "gate_ppm", e->gate_share * 1e6, e->points > 0);
    json_put_uint(j, "points", e->points);
    json_put_string(j, "peer_state",
                    e->peer_phase == CLOCK_TRACK     ? "track"
                    : e->peer_phase == CLOCK_HOLD    ? "holdover"
                    : e->peer_phase == CLOCK_ACQUIRE ? "acquire"
                                                     : "cold");
    json_put_end(j);
}

static void put_member_fields(struct agent *a, struct json_writer *j, const struct clock_report *r,
                              const struct clock_terms *terms, struct nic_time at)
{
    const struct clock_reading reading = clock_terms_read(terms, at);
    const bool known = reading.status != CLOCK_UNKNOWN;
    json_put_string(j, "state", state_word(r));
    json_put_string(j, "status", answer_status_word((uint32_t)reading.status));
    json_put_string(j, "why", reading.status == CLOCK_SYNCED ? NULL : answer_why(a, r));
    put_known(j, "hard_ns", reading.hard_ns, reading.hard_ns >= 0);
    put_known(j, "statistical_ns", reading.statistical_ns, reading.statistical_ns >= 0);
    json_put_int_if(j, "offset_ns", known, reading.time.ns - at.ns);
    put_known(j, "rate_ppb", terms->line.y * 1e9, known);
    put_known(j, "slew_ppb", at.ns < terms->line.until.ns ? terms->line.slew * 1e9 : 0, known);
    json_put_int(j, "edges_chosen", r->edges);
    json_put_int(j, "edges_live", r->edges_live);
    json_put_int(j, "edges_parked", r->edges_parked);
    put_known(j, "scale_ns", r->scale_ns, known);
    put_known(j, "sqrt_p_ns", r->sqrt_p_ns, known);
    put_known(j, "wander_ppb", r->wander_ppb, known);
    put_known(j, "edge_limit_ns", r->edge_limit_ns, true);
    json_put_bool(j, "settled", r->settled);
    json_put_bool(j, "tight", r->tight);
    json_put_bool(j, "core", r->core);
    json_put_bool(j, "queued", r->queued);
    json_put_uint(j, "timeline_age_s", r->timeline_age_s);
    json_put_uint(j, "steps", r->steps);
    json_put_string(j, "guard", terms->guarded ? a->guard_name : "peers");
    json_put_int_if(j, "guard_age_ns", terms->guarded, at.ns - terms->guard.ns);
    json_put_int(j, "anchors", terms->utc_known);
}

static void put_member(struct agent *a, struct json_writer *j, uint32_t member, bool host)
{
    const struct clock *clock = node_member_clock(a->node, member);
    struct clock_report r = {0};
    struct clock_terms terms;
    struct nic_time at;
    if (clock == NULL || !node_member_time(a->node, member, a->now, &at)) {
        return;
    }
    clock_report(clock, at, &r);
    clock_terms(clock, &terms);
    json_put_object(j, NULL);
    if (host) {
        json_put_string(j, "name", "host");
        json_put_null(j, "nic");
        json_put_string(j, "stamps", answer_stamps_word(agent_nic_stamps(a, 0)));
    } else {
        const struct agent_config *c = a->config;
        const uint32_t local = agent_nic_of_member(a, member);
        json_put_string(j, "name", c->nics[local].name);
        json_put_uint(j, "nic", c->peers[c->nics[local].peer].nic.index);
        json_put_string(j, "stamps", "hardware");
    }
    put_member_fields(a, j, &r, &terms, at);
    json_put_array(j, "edges");
    for (int e = 0; e < clock_edge_capacity(clock); e++) {
        struct clock_edge_report edge;
        if (clock_edge_report(clock, at, e, &edge)) {
            put_edge(a, j, &edge);
        }
    }
    json_put_end(j);
    json_put_end(j);
}

/* The host's clock as a leaf of its NICs' clocks. */
static void put_leaf(struct agent *a, struct json_writer *j)
{
    struct clock_terms terms;
    struct clock_report r = {0};
    node_clock_page(a->node, &terms);
    answer_member_report(a, 0, &r);
    json_put_object(j, NULL);
    json_put_string(j, "name", "host");
    json_put_null(j, "nic");
    json_put_string(j, "stamps", "none");
    put_member_fields(a, j, &r, &terms, (struct nic_time){a->now.ns});
    json_put_array(j, "edges");
    json_put_end(j);
    json_put_end(j);
}

void answer_clock(struct agent *a, struct json_writer *j)
{
    const uint32_t host = node_host_member(a->node);
    json_put_array(j, "members");
    if (host == UINT32_MAX) {
        put_leaf(a, j);
    } else {
        put_member(a, j, host, true);
    }
    for (uint32_t i = 0; i < node_member_count(a->node); i++) {
        if (i != host) {
            put_member(a, j, i, false);
        }
    }
    json_put_end(j);
    json_put_array(j, "history");
    const uint32_t kept = a->history_count < AGENT_HISTORY ? a->history_count : AGENT_HISTORY;
    for (uint32_t i = kept; i-- > 0;) {
        const struct agent_moment *m = &a->history[(a->history_count - 1 - i) % AGENT_HISTORY];
        json_put_object(j, NULL);
        json_put_int(j, "age_ns", mono_sub(a->now, m->at).ns);
        put_known(j, "hard_ns", m->hard_ns, m->hard_ns >= 0);
        put_known(j, "statistical_ns", m->statistical_ns, m->statistical_ns >= 0);
        json_put_string(j, "status", answer_status_word(m->status));
        json_put_end(j);
    }
    json_put_end(j);
}

/* ---- selftest: does the statistical bound hold? A check without a reference clock ---- */

void answer_selftest(struct agent *a, struct json_writer *j)
{
    const uint32_t member = node_host_member(a->node) != UINT32_MAX ? node_host_member(a->node) : 0;
    const struct clock *clock = node_member_clock(a->node, member);
    struct clock_report r = {.witness_ns = -1};
    const bool known = answer_member_report(a, member, &r);
    const bool judged =
        known && r.status == CLOCK_SYNCED && r.witness_ns >= 0 && r.statistical_ns > 0;
    json_put_string(j, "verdict",
                    !judged                            ? "unknown"
                    : r.witness_ns <= r.statistical_ns ? "honest"
                                                       : "dishonest");
    json_put_string(j, "why",
                    !known                     ? "no clock is read yet"
                    : r.status != CLOCK_SYNCED ? answer_why(a, &r)
                    : r.witness_ns < 0         ? "no witness edge: every edge is used"
                    : r.witness_ns <= r.statistical_ns
                        ? "edges that are measured but not used lie within the bound"
                        : "edges that are measured but not used lie outside the bound");
    put_known(j, "statistical_ns", r.statistical_ns, known && r.statistical_ns >= 0);
    put_known(j, "witness_rms_ns", r.witness_ns, known && r.witness_ns >= 0);
    struct nic_time at = {0};
    json_put_array(j, "witness");
    for (int e = 0; clock != NULL && node_member_time(a->node, member, a->now, &at) &&
                    e < clock_edge_capacity(clock);
         e++) {
        struct clock_edge_report edge;
        if (clock_edge_report(clock, at, e, &edge) && edge.witness && edge.live) {
            json_put_object(j, NULL);
            answer_put_edge_ends(a, j, edge.local_nic, edge.peer_nic);
            put_known(j, "error_ns_mean", edge.level_ns, true);
            put_known(j, "error_ns_max", fabs(edge.theta_ns), true);
            json_put_uint(j, "samples", edge.points);
            json_put_end(j);
        }
    }
    json_put_end(j);
    struct node_triangles triangles;
    node_triangles(a->node, &triangles);
    if (triangles.count > 0) {
        json_put_object(j, "triangles");
        json_put_uint(j, "count", triangles.count);
        put_known(j, "residual_ns_p50", triangles.residual_ns_p50, true);
        put_known(j, "residual_ns_max", triangles.residual_ns_max, true);
        json_put_end(j);
    } else {
        json_put_null(j, "triangles");
    }
    json_put_array(j, "nics");
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        struct endpoint_counters counters = {0};
        double noise = 0, pure = 0;
        uint32_t edges = 0;
        if (a->nics[i].endpoint != NULL) {
            endpoint_counters_get(a->nics[i].endpoint, &counters);
        }
        for (int e = 0; clock != NULL && e < clock_edge_capacity(clock); e++) {
            struct clock_edge_report edge;
            if (clock_edge_report(clock, at, e, &edge) && edge.live &&
                edge.local_nic.index == a->config->peers[a->config->nics[i].peer].nic.index) {
                noise += edge.noise_ns;
                pure += edge.pure_share;
                edges++;
            }
        }
        json_put_object(j, NULL);
        json_put_uint(j, "nic", a->config->peers[a->config->nics[i].peer].nic.index);
        json_put_string(j, "name", a->config->nics[i].name);
        json_put_string(j, "stamps", answer_stamps_word(agent_nic_stamps(a, i)));
        put_known(j, "sigma_ns", edges > 0 ? noise / edges : 0, edges > 0);
        put_known(j, "pure_ppm", edges > 0 ? pure / edges * 1e6 : 0, edges > 0);
        json_put_uint(j, "skipped_stamps", counters.stamps_missing);
        json_put_int_if(j, "bracket_ns", a->bracket_ns[i] != 0, a->bracket_ns[i]);
        json_put_end(j);
    }
    json_put_end(j);
}
