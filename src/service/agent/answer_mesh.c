/* answer_mesh.c: "mesh" and "links". */
#include "base/ip.h"
#include "service/agent/answers.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static void put_direction(struct agent *a, struct json_writer *j, const char *key, uint32_t edge,
                          uint8_t path, enum finding_direction direction)
{
    struct path_report p;
    int64_t since = 0;
    if (!node_path_get(a->node, edge, path, direction, a->now, &p)) {
        json_put_null(j, key);
        return;
    }
    json_put_object(j, key);
    json_put_string(j, "state", path_state_word(p.state));
    json_put_int_if(j, "since_fleet_ns", agent_fleet_ns(a, p.since, &since), since);
    json_put_int_if(j, "owd_ns_min", p.owd_ns_min != INT64_MIN, p.owd_ns_min);
    json_put_int_if(j, "owd_ns_p50", p.owd_ns_p50 != INT64_MIN, p.owd_ns_p50);
    json_put_int_if(j, "owd_ns_p99", p.owd_ns_p99 != INT64_MIN, p.owd_ns_p99);
    json_put_int_if(j, "owd_ns_p50_long", p.owd_ns_p50_long != INT64_MIN, p.owd_ns_p50_long);
    json_put_int_if(j, "loss_ppm", p.sent_recent > 0,
                    p.sent_recent > 0 ? (int64_t)p.lost_recent * 1000000 / p.sent_recent : 0);
    json_put_uint(j, "sent", p.sent);
    json_put_uint(j, "lost", p.lost);
    json_put_uint(j, "reordered", p.reordered);
    json_put_uint(j, "deaths", p.deaths);
    json_put_int_if(j, "age_ns", p.heard.ns != INT64_MAX && p.state != PATH_UNKNOWN,
                    mono_sub(a->now, p.heard).ns);
    json_put_end(j);
}

bool answer_router_name(const struct agent *a, const uint8_t router[16],
                        char ret_text[INET6_ADDRSTRLEN])
{
    if (ip_is_none(router)) {
        return false;
    }
    for (uint32_t i = 0; i < a->config->router_count; i++) {
        const struct mesh_router *known = &a->config->routers[i];
        if (memcmp(known->address, router, sizeof(known->address)) == 0) {
            snprintf(ret_text, INET6_ADDRSTRLEN, "%s%u",
                     known->place == PLACE_LEAF ? "leaf" : "spine", known->number);
            return true;
        }
    }
    (void)ip_text(router, ret_text);
    return true;
}

static void put_hops(struct agent *a, struct json_writer *j, uint32_t edge, uint8_t path)
{
    uint8_t hops[MESH_HOP_MAX][16];
    const uint8_t count = node_path_hops(a->node, edge, path, hops);
    if (count == 0) {
        json_put_null(j, "hops");
        return;
    }
    json_put_array(j, "hops");
    for (uint8_t i = 0; i < count; i++) {
        char text[INET6_ADDRSTRLEN];
        json_put_string(j, NULL, answer_router_name(a, hops[i], text) ? text : NULL);
    }
    json_put_end(j);
}

static void put_path(struct agent *a, struct json_writer *j, uint32_t edge, uint8_t path)
{
    struct path_report out = {0}, in = {0};
    const bool has_out = node_path_get(a->node, edge, path, DIRECTION_OUT, a->now, &out);
    const bool has_in = node_path_get(a->node, edge, path, DIRECTION_IN, a->now, &in);
    const bool both =
        has_out && has_in && out.owd_ns_p50 != INT64_MIN && in.owd_ns_p50 != INT64_MIN;
    json_put_object(j, NULL);
    json_put_uint(j, "path", path);
    json_put_int_if(j, "port", has_out && out.source_port != 0, out.source_port);
    json_put_hex64(j, "signature", has_out ? out.signature : 0);
    put_hops(a, j, edge, path);
    json_put_int_if(j, "rtt_ns_p50", both, out.owd_ns_p50 + in.owd_ns_p50);
    json_put_int_if(j, "rtt_ns_min", both, out.owd_ns_min + in.owd_ns_min);
    put_direction(a, j, "out", edge, path, DIRECTION_OUT);
    put_direction(a, j, "in", edge, path, DIRECTION_IN);
    json_put_end(j);
}

/* The rail is compared here, because two NICs on one rail may probe each other for another reason. */
static bool same_rail(const struct agent_config *c, struct nic_id local, struct nic_id peer)
{
    uint32_t own, other;

    return agent_config_find(c, local, &own) && agent_config_find(c, peer, &other) &&
           c->peers[own].rail == c->peers[other].rail;
}

void answer_mesh(struct agent *a, struct json_writer *j)
{
    static const char *const reasons[] = {"full", "random", "rail", "leaf", "guest", "spare"};
    json_put_array(j, "edges");
    for (uint32_t e = 0; e < node_edge_count(a->node); e++) {
        struct node_edge edge;
        struct path_report first = {.bound_ns = INT64_MIN, .hard_ns = INT64_MIN};
        if (!node_edge_get(a->node, e, a->now, &edge)) {
            continue;
        }
        json_put_object(j, NULL);
        answer_put_edge_ends(a, j, edge.local, edge.peer);
        json_put_string(j, "kind",
                        edge.reason < ARRAY_COUNT(reasons) ? reasons[edge.reason] : "random");
        json_put_bool(j, "same_rail", same_rail(a->config, edge.local, edge.peer));
        json_put_bool(j, "silent", edge.silent != 0);
        json_put_int_if(j, "rtt_ns_min", edge.rtt_ns_min >= 0, edge.rtt_ns_min);
        json_put_uint(j, "full_tried", edge.full_tried);
        json_put_uint(j, "full_lost", edge.full_lost);
        if (!node_path_get(a->node, e, 0, DIRECTION_IN, a->now, &first)) {
            first.bound_ns = first.hard_ns = INT64_MIN;
        }
        json_put_int_if(j, "bound_hard_ns", first.hard_ns != INT64_MIN, first.hard_ns);
        json_put_int_if(j, "bound_statistical_ns", first.bound_ns != INT64_MIN, first.bound_ns);
        json_put_array(j, "paths");
        const uint8_t paths =
            edge.path_count > edge.peer_path_count ? edge.path_count : edge.peer_path_count;
        for (uint8_t p = 0; p < paths; p++) {
            put_path(a, j, e, p);
        }
        json_put_end(j);
        json_put_end(j);
    }
    json_put_end(j);
    agent_ud_answer(a, j);
}

/* ---- links ---- */

void agent_answer_link_event(struct agent *a, struct json_writer *j, const struct agent_event *e)
{
    const struct agent_config *c = a->config;
    if (j->depth == 0) {
        agent_answer_head(a, j, "link-event");
    } else {
        json_put_object(j, NULL);
    }
    json_put_string(j, "event", e->event);
    const bool ours = e->nic != UINT32_MAX;
    json_put_int_if(j, "nic", ours, ours ? c->peers[c->nics[e->nic].peer].nic.index : 0);
    json_put_string(j, "name",
                    ours ? link_monitor_get(a->links, a->nics[e->nic].slot)->name : e->port);
    json_put_int(j, "at_mono_ns", e->at.ns);
    json_put_int_if(j, "at_fleet_ns", e->fleet_ns != FINDING_NO_TIME, e->fleet_ns);
    json_put_int_if(j, "at_utc_ns", e->utc_ns != FINDING_NO_TIME, e->utc_ns);
    json_put_uint(j, "flaps_hour", e->flaps_hour);
    json_put_uint(j, "carrier_down_count", e->down_count);
    json_put_string(j, "text", e->text);
    json_put_end(j);
}

static void put_address(struct json_writer *j, const struct agent_nic *nic)
{
    char text[INET6_ADDRSTRLEN] = "";
    if (nic->endpoint == NULL) {
        json_put_null(j, "address");
        return;
    }
    if (nic->address4.s_addr != 0) {
        inet_ntop(AF_INET, &nic->address4, text, sizeof(text));
    } else {
        inet_ntop(AF_INET6, &nic->address6, text, sizeof(text));
    }
    json_put_string(j, "address", text);
}

static void put_nic(struct agent *a, struct json_writer *j, uint32_t i)
{
    const struct agent_nic *nic = &a->nics[i];
    const struct link_interface *l = link_monitor_get(a->links, nic->slot);
    struct link_report r;
    int64_t since = 0;
    node_link_get(a->node, i, a->now, &r);
    json_put_object(j, NULL);
    json_put_uint(j, "nic", a->config->peers[a->config->nics[i].peer].nic.index);
    json_put_string(j, "name", l->name);
    put_address(j, nic);
    json_put_bool(j, "present", l->present);
    json_put_bool(j, "carrier", l->carrier);
    json_put_bool(j, "admin_up", l->admin_up);
    json_put_int(j, "since_mono_ns", nic->down_since.ns);
    answer_put_utc(a, j, "since_utc_ns", nic->down_since);
    json_put_int_if(j, "since_fleet_ns", agent_fleet_ns(a, nic->down_since, &since), since);
    json_put_int_if(j, "speed_bps", l->speed_mbps != 0, (int64_t)l->speed_mbps * 1000000);
    json_put_int_if(j, "width", l->width != 0, l->width);
    json_put_string(j, "driver", l->driver[0] != 0 ? l->driver : NULL);
    json_put_string(
        j, "stamps",
        answer_stamps_word(nic->endpoint != NULL ? agent_nic_stamps(a, i) : STAMP_NONE));
    json_put_string(j, "trouble", nic->trouble[0] != 0 ? nic->trouble : NULL);
    json_put_uint(j, "carrier_down_count", l->down_count);
    const struct lldp *neighbour = agent_lldp_of(a, i);
    json_put_string(j, "switch", neighbour != NULL ? neighbour->system : NULL);
    json_put_string(j, "switch_port", neighbour != NULL ? neighbour->port : NULL);
    json_put_uint(j, "flaps_minute", r.flaps_minute);
    json_put_uint(j, "flaps_hour", r.flaps_hour);
    json_put_uint(j, "flaps_day", r.flaps_day);
    json_put_uint(j, "flaps_total", r.downs);
    json_put_bool(j, "damped", r.flapping != 0);
    json_put_uint(j, "rx_packets", l->rx_packets);
    json_put_uint(j, "tx_packets", l->tx_packets);
    json_put_uint(j, "rx_bytes", l->rx_bytes);
    json_put_uint(j, "tx_bytes", l->tx_bytes);
    json_put_uint(j, "rx_errors", l->rx_errors);
    json_put_uint(j, "tx_errors", l->tx_errors);
    json_put_uint(j, "rx_dropped", l->rx_drops);
    json_put_uint(j, "tx_dropped", l->tx_drops);
    json_put_end(j);
}

void answer_links(struct agent *a, struct json_writer *j)
{
    json_put_array(j, "nics");
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        put_nic(a, j, i);
    }
    json_put_end(j);
    agent_verbs_answer(a, j);
    json_put_array(j, "events");
    const uint64_t kept = a->event_count < AGENT_EVENT_KEPT ? a->event_count : AGENT_EVENT_KEPT;
    for (uint64_t i = kept; i-- > 0;) {
        agent_answer_link_event(a, j, &a->events[(a->event_count - 1 - i) % AGENT_EVENT_KEPT]);
    }
    json_put_end(j);
}
