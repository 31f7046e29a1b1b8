/* node_packet.c: the clock's part of packets: the member's fields in them, the input of their fields, and the fleet time of their
 * stamps. */
#include <math.h>

#include "core/node/internal.h"

/* ---- the header of packets ------------------------------------------------------------------ */

static uint16_t saturate_tenths(double ns)
{
    return ns < 0 ? 0 : ns * 10 >= UINT16_MAX ? UINT16_MAX : (uint16_t)(ns * 10 + 0.5);
}

void node_clock_fill(struct node *n, uint32_t local, struct probe *probe)
{
    const struct member *m = &n->members[n->member_of[local]];
    const struct clock_published *p = &m->published;

    probe->hardware = n->config.nics[local].stamps == STAMP_HARDWARE;
    probe->anchor.nic = NIC_NONE;
    probe->h_ns = UINT32_MAX;
    if (!m->clock) {
        return; /* cold, no timeline, an empty map */
    }
    probe->state = (enum probe_state)p->phase;
    probe->settled = p->settled;
    probe->tight = p->tight;
    probe->core = p->core;
    probe->timeline = p->timeline;
    probe->epoch = p->epoch;
    probe->timeline_age_s = p->timeline_age_s;
    probe->map.map =
        (struct linear_map){.r = p->map.r.ns,
                            .x = p->map.x_ns,
                            .y = (int64_t)(p->map.y * (double)LINEAR_MAP_Y_ONE),
                            .x_fraction = (uint32_t)(p->map.x_fraction * 4294967296.0)};
    probe->map.seq = p->map_seq;
    probe->map.line_minus_map =
        (int32_t)fmax(-PROBE_LINE_MAX, fmin(PROBE_LINE_MAX, p->line_minus_map_ns * 16));
    probe->sqrt_p00 = saturate_tenths(p->sqrt_p_ns);
    probe->scale = saturate_tenths(p->scale_ns);
    probe->h_ns = p->h_ns;
    if (p->anchor.member < FLEET_NIC_MAX) {
        probe->anchor = (struct probe_anchor){.nic = {p->anchor.member},
                                              .bound_ns = p->anchor.bound_ns,
                                              .utc_minus_fleet_ns = p->anchor.utc_minus_ns,
                                              .age_ms = p->anchor.age_ms};
    }
}

static struct clock_published header_of(const struct probe *probe)
{
    return (struct clock_published){
        .phase = (enum clock_phase)probe->state,
        .settled = probe->settled,
        .tight = probe->tight,
        .core = probe->core,
        .timeline = probe->timeline,
        .founder = CLOCK_TIMELINE_FOUNDER(probe->timeline),
        .epoch = probe->epoch,
        .timeline_age_s = probe->timeline_age_s,
        .map = {.r = {probe->map.map.r},
                .x_ns = probe->map.map.x,
                .x_fraction = probe->map.map.x_fraction / 4294967296.0,
                .y = (double)probe->map.map.y / (double)LINEAR_MAP_Y_ONE},
        .map_seq = probe->map.seq,
        .line_minus_map_ns = probe->map.line_minus_map / 16.0,
        .sqrt_p_ns = probe->sqrt_p00 / 10.0,
        .scale_ns = probe->scale / 10.0,
        .h_ns = probe->h_ns,
        .anchor = {.member = probe->anchor.nic.index,
                   .bound_ns = probe->anchor.bound_ns,
                   .utc_minus_ns = probe->anchor.utc_minus_fleet_ns,
                   .age_ms = probe->anchor.age_ms},
    };
}

/* ---- points and one-way delays -------------------------------------------------------------- */

#define PAIR_ALIKE_NS 120

/* The fleet time of a point. Of a pair the faster packet counts: with software stamps the first one finds cold caches and
 * sleeping processors and reads microseconds late; with hardware stamps one may have queued. Two hardware stamps that differ only
 * by noise are averaged. */
static void one_way_delay(struct node *n, struct mono now, const struct clock_published *own,
                          const struct clock_published *peer, const struct clock_point *point,
                          enum delay_of single, bool hardware)
{
    const double d = point->forward
                         ? clock_map_difference(&peer->map, point->remote, &own->map, point->local)
                         : clock_map_difference(&own->map, point->local, &peer->map, point->remote);
    const double later = point->forward ? (double)point->remote_gap_ns - point->local_gap_ns
                                        : (double)point->local_gap_ns - point->remote_gap_ns;
    const bool pair = point->local_gap_ns != 0 && point->remote_gap_ns != 0;
    const bool alike = hardware && fabs(later) < PAIR_ALIKE_NS;
    const double owd = !pair ? d : alike ? d + later / 2 : later < 0 ? d + later : d;

    const bool known = own->phase >= CLOCK_TRACK && peer->phase >= CLOCK_TRACK &&
                       own->timeline == peer->timeline && fabs(owd) <= 1e10;
    const enum finding_direction direction = point->forward ? DIRECTION_OUT : DIRECTION_IN;
    const struct member *m = &n->members[n->links[point->edge].member];
    const bool sure = known && m->synced && own->phase == CLOCK_TRACK &&
                      peer->phase == CLOCK_TRACK && peer->settled;

    if (known) {
        mesh_on_delay(n->mesh, now, point->edge, point->path, direction,
                      pair ? DELAY_OF_PAIR : single, (int64_t)llround(owd));
    }
    if (pair && known) {
        mesh_on_pair(n->mesh, now, point->edge, point->path, direction,
                     point->forward ? point->local_gap_ns : point->remote_gap_ns,
                     point->forward ? point->remote_gap_ns : point->local_gap_ns,
                     (int64_t)llround(owd));
    }
    if (pair) {
        mesh_watch_delay(n->mesh, now, point->edge, point->path, direction,
                         sure ? (int64_t)llround(owd) : 0, sure ? m->bound_ns : -1);
    }
}

void node_clock_heard(struct node *n, struct mono now, const struct node_receive *event,
                      const struct mesh_heard *heard)
{
    const struct clock_published header = header_of(&event->probe);
    struct edge_link *link = &n->links[heard->edge];
    struct nic_time at;

    if (heard->fresh) {
        node_clock_follow_stamps(n, now, heard->edge, !event->probe.hardware);
    }
    link->in_step = heard->fresh && event->probe.core ? now : link->in_step;
    if (!heard->fresh || link->clock_edge < 0 ||
        !node_member_time(n, (uint32_t)link->member, now, &at)) {
        return;
    }
    struct member *m = &n->members[link->member];
    bool hardware = event->probe.hardware && event->stamps == STAMP_HARDWARE;
    clock_on_peer(m->clock, at, link->clock_edge, &header);
    for (uint32_t i = 0; i < heard->point_count; i++) {
        struct clock_point point = heard->points[i];

        one_way_delay(n, now, &m->published, &header, &point, (enum delay_of)heard->single_of[i],
                      hardware);
        point.edge = link->clock_edge;
        clock_on_point(m->clock, at, &point);
    }
}

/* ---- questions to others ----------------------------------------------------------------------- */

/* Asks hosts that also probe `about`: its neighbours follow from the list, as the own ones do. */
void node_clock_ask(struct node *n, struct mono now, uint32_t member, uint32_t about)
{
    struct peer_choice choices[64];
    const uint32_t subject = fleet_find(&n->config.fleet, (struct nic_id){about});
    const uint32_t local = n->members[member].local;
    uint32_t count, asked = 0;

    if (subject == UINT32_MAX) {
        return;
    }
    count = peers_choose(&n->config.fleet, subject, n->config.ring_peers, n->config.full_limit,
                         choices, 64);
    for (uint32_t i = 0; i < count && choices[i].rank == 0 && asked < 15; i++) {
        const struct mesh_peer *peer = &n->config.fleet.peers[choices[i].index];
        struct node_query *q = &n->queries[(n->query_number + 1) % QUERY_MAX];
        const struct probe_query query = {.subject = {about}, .number = n->query_number + 1};

        if (host_id_equal(peer->host, n->config.host) ||
            !mesh_query(n->mesh, local, peer->nic, &query, false)) {
            continue;
        }
        n->query_number++;
        asked++;
        *q = (struct node_query){.number = n->query_number,
                                 .subject = {about},
                                 .asked = peer->nic,
                                 .member = member,
                                 .about = about,
                                 .at = now};
    }
}

void node_clock_query(struct node *n, struct mono now, const struct node_receive *event)
{
    const struct probe *probe = &event->probe;
    const uint32_t member = n->member_of[event->local];
    struct nic_time at;

    if (!nic_id_equal(probe->dst, n->config.nics[event->local].nic) ||
        fleet_find(&n->config.fleet, probe->src) == UINT32_MAX || !n->members[member].clock) {
        return;
    }
    if (probe->type == PROBE_QUERY) {
        const struct clock_answer a =
            clock_answer(n->members[member].clock, probe->query.subject.index);
        const struct probe_query answer = {.subject = probe->query.subject,
                                           .number = probe->query.number,
                                           .level = (int32_t)fmax(-1e9, fmin(1e9, a.level_ns * 16)),
                                           .opinion = !a.known   ? PROBE_OPINION_NONE
                                                      : a.parked ? PROBE_OPINION_PARKED
                                                                 : PROBE_OPINION_USED};

        mesh_query(n->mesh, event->local, probe->src, &answer, true);
        return;
    }
    struct node_query *q = &n->queries[probe->query.number % QUERY_MAX];
    if (q->number == 0 || q->number != probe->query.number || !nic_id_equal(q->asked, probe->src) ||
        !nic_id_equal(q->subject, probe->query.subject) || mono_sub(now, q->at).ns > 5 * NS_PER_S ||
        !node_member_time(n, q->member, now, &at)) {
        n->counters.replayed++;
        return;
    }
    const struct clock_answer answer = {.about = q->about,
                                        .from = probe->src.index,
                                        .known = probe->query.opinion != PROBE_OPINION_NONE,
                                        .parked = probe->query.opinion == PROBE_OPINION_PARKED,
                                        .level_ns = probe->query.level / 16.0};
    if (q->triangle) {
        node_triangle_answer(n, q, &answer);
    } else {
        clock_on_answer(n->members[q->member].clock, at, &answer);
    }
    q->number = 0;
}
