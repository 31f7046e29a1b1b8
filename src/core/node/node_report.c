/* node_report.c: results for pages, CLI and JSON. */
#include <math.h>
#include <string.h>

#include "core/node/internal.h"
#include "wire/mesh_page.h"

const struct link_report *node_link_get(const struct node *n, uint32_t local, struct mono now,
                                        struct link_report *ret_report)
{
    if (local >= n->config.nic_count) {
        return NULL;
    }
    link_report_get(n->ports[local], now, ret_report);
    return ret_report;
}

/* ---- edges and paths ------------------------------------------------------------------------ */

uint32_t node_edge_count(const struct node *n)
{
    return (uint32_t)mesh_edge_capacity(n->mesh);
}

bool node_edge_get(const struct node *n, uint32_t edge, struct mono now, struct node_edge *ret_edge)
{
    struct mesh_edge_info info;

    if (edge >= node_edge_count(n) || !mesh_edge_info(n->mesh, now, (int)edge, &info)) {
        return false;
    }
    *ret_edge = (struct node_edge){.local = n->config.nics[info.local].nic,
                                   .peer = info.nic,
                                   .host = info.host,
                                   .local_index = info.local,
                                   .reason = info.reason,
                                   .path_count = info.path_count,
                                   .peer_path_count = info.peer_path_count,
                                   .silent = info.silent,
                                   .heard = info.heard,
                                   .rtt_ns_min = info.rtt_ns_min,
                                   .full_tried = info.full_tried,
                                   .full_lost = info.full_lost,
                                   .version = info.version,
                                   .member = (uint32_t)n->links[edge].member,
                                   .member_edge = (uint32_t)n->links[edge].clock_edge};
    return true;
}

bool node_echo(const struct node *n, uint32_t edge, struct probe_echo *ret_echo)
{
    return edge < node_edge_count(n) && mesh_echo(n->mesh, (int)edge, ret_echo);
}

bool node_echoed(const struct node *n, uint32_t local, struct nic_id peer,
                 const struct probe_echo *echo)
{
    return local < n->config.nic_count && mesh_echoed(n->mesh, local, peer, echo);
}

uint8_t node_path_hops(const struct node *n, uint32_t edge, uint8_t path,
                       uint8_t ret_hops[MESH_HOP_MAX][16])
{
    struct mesh_saved_edge saved;

    if (edge >= node_edge_count(n) || path >= EDGE_PATH_MAX ||
        !mesh_save_edge(n->mesh, (int)edge, &saved) || path >= saved.path_count) {
        return 0;
    }
    memcpy(ret_hops, saved.hops[path], sizeof(saved.hops[path]));
    return saved.hop_counts[path];
}

bool node_path_get(const struct node *n, uint32_t edge, uint8_t path,
                   enum finding_direction direction, struct mono now,
                   struct path_report *ret_report)
{
    const struct member *m;
    struct nic_time at;
    struct clock_report clock;

    if (edge >= node_edge_count(n) ||
        !mesh_path_report(n->mesh, now, (int)edge, path, direction, ret_report)) {
        return false;
    }
    m = &n->members[n->links[edge].member];
    if (m->clock && node_member_time(n, (uint32_t)n->links[edge].member, now, &at)) {
        clock_report(m->clock, at, &clock);
        if (clock.status == CLOCK_SYNCED || clock.status == CLOCK_HOLDOVER) {
            ret_report->bound_ns =
                (int64_t)ceil(2 * clock.statistical_ns); /* the same for this end and the peer */
            ret_report->hard_ns = clock.hard_ns < 0 ? INT64_MIN : (int64_t)ceil(2 * clock.hard_ns);
        }
    }
    return true;
}

/* ---- the mesh page -------------------------------------------------------------------------- */

uint32_t node_mesh_count(const struct node *n)
{
    return (uint32_t)mesh_edge_capacity(n->mesh) * n->config.path_limit * 2u;
}

static uint8_t page_state(uint32_t state)
{
    switch ((enum path_state)state) {
    case PATH_ALIVE:
        return MESH_PAGE_OK;
    case PATH_SUSPECT:
        return MESH_PAGE_SUSPECT;
    case PATH_DEAD:
        return MESH_PAGE_DEAD;
    case PATH_LOSSY:
        return MESH_PAGE_LOSSY;
    case PATH_UNKNOWN:
    case PATH_STATE_COUNT:
        break;
    }
    return MESH_PAGE_NONE;
}

static int32_t page_owd(int64_t ns)
{
    return ns == INT64_MIN || ns > INT32_MAX || ns <= INT32_MIN ? MESH_PAGE_OWD_NONE : (int32_t)ns;
}

/* Nothing comes in over the edge, although the peer's agent works: other NICs, of the peer or of this host, have traffic with
 * it. */
static bool cut_off(const struct node *n, const struct mesh_edge_info *info)
{
    uint32_t silent, all;

    if (!info->silent) {
        return false;
    }
    node_host_edges(n, n->now, info->host, &silent, &all);
    return silent < all;
}

void node_mesh_page(const struct node *n, uint32_t index, struct mesh_page_entry *ret_entry)
{
    const uint32_t per_edge = n->config.path_limit * 2u, edge = index / per_edge;
    const uint8_t path = (uint8_t)(index % per_edge / 2);
    const enum finding_direction direction = index % 2 == 0 ? DIRECTION_OUT : DIRECTION_IN;
    struct mesh_edge_info info;
    struct path_report report;
    struct fleet_time since;

    *ret_entry = (struct mesh_page_entry){.owd_ns_p50 = MESH_PAGE_OWD_NONE,
                                          .owd_ns_floor = MESH_PAGE_OWD_NONE,
                                          .bound_ns = UINT32_MAX,
                                          .local = NIC_NONE,
                                          .peer = NIC_NONE};
    if (edge >= node_edge_count(n) || !mesh_edge_info(n->mesh, n->now, (int)edge, &info) ||
        !mesh_path_brief(n->mesh, n->now, (int)edge, path, direction, &report)) {
        return;
    }
    report.bound_ns = n->members[n->links[edge].member].bound_ns;
    ret_entry->local = n->config.nics[info.local].nic;
    ret_entry->peer = info.nic;
    ret_entry->path = report.signature;
    ret_entry->source_port = report.source_port;
    ret_entry->state =
        direction == DIRECTION_IN && cut_off(n, &info) ? MESH_PAGE_DEAD : page_state(report.state);
    ret_entry->direction = direction == DIRECTION_OUT ? MESH_PAGE_OUT : MESH_PAGE_IN;
    ret_entry->generation = info.generation;
    ret_entry->owd_ns_p50 = page_owd(report.owd_ns_p50);
    ret_entry->owd_ns_floor = page_owd(report.owd_count > 0 ? report.owd_ns_min : INT64_MIN);
    ret_entry->bound_ns = report.bound_ns < 0 || report.bound_ns > UINT32_MAX
                              ? UINT32_MAX
                              : (uint32_t)report.bound_ns;
    ret_entry->loss_ppm = report.sent_recent > 0
                              ? (uint32_t)(1000000ull * report.lost_recent / report.sent_recent)
                              : 0;
    ret_entry->reorder_ppm =
        report.sent > 0 ? (uint32_t)(1000000ull * report.reordered / report.sent) : 0;
    ret_entry->since = node_fleet_time(n, report.since, &since) ? since.ns : 0;
}

/* ---- findings and counters ------------------------------------------------------------------ */

uint32_t node_finding_count(const struct node *n)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n->open_count; i++) {
        count += n->open[i].said && !n->open[i].quiet;
    }
    return count;
}

const struct finding *node_finding_get(const struct node *n, uint32_t index)
{
    for (uint32_t i = 0; i < n->open_count; i++) {
        if (n->open[i].said && !n->open[i].quiet && index-- == 0) {
            return &n->open[i].finding;
        }
    }
    return NULL;
}

void node_counters_get(const struct node *n, struct node_counters *ret_counters)
{
    struct mesh_counters m;

    mesh_counters_get(n->mesh, &m);
    *ret_counters = n->counters;
    ret_counters->sent = m.sent;
    ret_counters->received = m.received;
    ret_counters->stamped = m.stamped;
    ret_counters->stamps_missing = m.stamps_missing;
    ret_counters->not_sent = m.not_sent;
    ret_counters->replayed += m.replayed;
    ret_counters->unknown_sender = m.unknown_sender;
    ret_counters->own_id = m.own_id;
    ret_counters->stale = m.stale;
    ret_counters->unmatched_stamps = m.unmatched_stamps;
    ret_counters->late_ticks = m.late_ticks;
    ret_counters->bursts = m.bursts;
    ret_counters->discovery_sent = m.discovery_sent;
    ret_counters->hops_heard = m.hops_heard;
    ret_counters->hops_unmatched = m.hops_unmatched;
    ret_counters->actions_dropped += m.sends_dropped + m.verdicts_dropped;
}
