/* node.c: one host's decisions as one object: events in, actions out. */
#include "core/node/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/node/internal.h"

_Static_assert(sizeof(struct node_transmit) == 32, "recorded as bytes");
_Static_assert(sizeof(struct node_hop) == 40, "recorded as bytes");
_Static_assert(sizeof(struct node_bracket) == 32, "recorded as bytes");
_Static_assert(sizeof(struct mesh_member) == 24, "recorded as bytes");
_Static_assert(sizeof(struct finding) % 8 == 0, "recorded as bytes");

#define MESH_PAGE_NS (100 * NS_PER_MS)

/* ---- configuration -------------------------------------------------------------------------- */

static bool fleet_valid(const struct mesh_fleet *fleet, const struct node_config *config)
{
    if (fleet->peer_count > FLEET_NIC_MAX || (fleet->peer_count > 0 && !fleet->peers) ||
        (fleet->router_count > 0 && !fleet->routers)) {
        return false;
    }
    for (uint32_t i = 0; i < fleet->peer_count; i++) {
        if (fleet->peers[i].nic.index >= FLEET_NIC_MAX ||
            (i > 0 && fleet->peers[i].nic.index <= fleet->peers[i - 1].nic.index)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < config->nic_count; i++) {
        const uint32_t at = fleet_find(fleet, config->nics[i].nic);
        if (at == UINT32_MAX || !host_id_equal(fleet->peers[at].host, config->host)) {
            return false;
        }
    }
    return true;
}

static int config_complete(struct node_config *c)
{
    c->port_base = c->port_base ? c->port_base : NODE_PORT_BASE_DEFAULT;
    c->ring_peers = c->ring_peers ? c->ring_peers : 16;
    c->full_limit = c->full_limit ? c->full_limit : 20;
    c->edge_limit = c->edge_limit ? c->edge_limit : 28;
    c->path_limit = c->path_limit ? c->path_limit : 4;
    c->interval_ms = c->interval_ms ? c->interval_ms : 100;
    c->grid_ms = c->grid_ms ? c->grid_ms : 5;
    c->stamp_error_ns = c->stamp_error_ns ? c->stamp_error_ns : 1000;
    c->flap_limit = c->flap_limit ? c->flap_limit : LINK_FLAP_LIMIT_DEFAULT;
    if (c->nic_count < 1 || c->nic_count > HOST_NIC_MAX || c->edge_limit > NIC_EDGE_MAX ||
        c->path_limit > EDGE_PATH_MAX || c->ring_peers % 2 != 0 || c->ring_peers < PEERS_LEAST ||
        c->ring_peers > 32 || c->full_limit > c->edge_limit || c->ring_peers + 4 > c->edge_limit ||
        c->interval_ms > 10000 || c->port_base > UINT16_MAX - NODE_PORT_COUNT) {
        return -EINVAL;
    }
    return fleet_valid(&c->fleet, c) ? 0 : -EINVAL;
}

#define QUEUE_BYTES       32000             /* few switches drop packets below that */
#define QUEUE_SOFTWARE_NS (500 * NS_PER_US) /* a busy processor delays stamps as well */

static int64_t drain_ns(const struct node_nic *nic)
{
    return QUEUE_BYTES * 8000LL / (nic->speed_mbps != 0 ? nic->speed_mbps : 10000);
}

static int64_t queue_ns(const struct node_nic *nic)
{
    const int64_t ns = drain_ns(nic);

    return nic->stamps == STAMP_HARDWARE || ns > QUEUE_SOFTWARE_NS ? ns : QUEUE_SOFTWARE_NS;
}

static struct mesh_config mesh_config_of(const struct node_config *c)
{
    struct mesh_config mesh = {.nic_count = c->nic_count,
                               .fleet = c->fleet,
                               .seed = hash_u64(c->seed, 1),
                               .port_base = c->port_base,
                               .edge_limit = c->edge_limit,
                               .ring_peers = c->ring_peers,
                               .full_limit = c->full_limit,
                               .path_limit = c->path_limit,
                               .no_discovery = c->no_discovery,
                               .interval = span_ms(c->interval_ms),
                               .grid = c->grid_ms == 255 ? span_ns(0) : span_ms(c->grid_ms),
                               .late = span_ns(NODE_LATE_NS)};

    for (uint32_t i = 0; i < c->nic_count; i++) {
        mesh.nics[i] = c->nics[i].nic;
        mesh.queue_ns[i] = queue_ns(&c->nics[i]);
        mesh.drain_ns[i] = drain_ns(&c->nics[i]);
    }
    return mesh;
}

/* ---- life ----------------------------------------------------------------------------------- */

int node_new(struct node **ret_node, const struct node_config *config, struct mono now)
{
    struct node *n = calloc(1, sizeof(*n));

    if (!n) {
        return -ENOMEM;
    }
    n->config = *config;
    n->now = n->mesh_page_due = n->checked = n->late_since = now;
    int r = config_complete(&n->config);
    if (r < 0) {
        free(n);
        return r;
    }
    n->initial = (struct node_settings){n->config.ring_peers, n->config.flap_limit};
    struct mesh_config mesh = mesh_config_of(&n->config);
    n->mesh = mesh_new(&mesh, now);
    n->links = n->mesh ? calloc((size_t)mesh_edge_capacity(n->mesh), sizeof(*n->links)) : NULL;
    n->bad = n->mesh ? calloc((size_t)mesh_edge_capacity(n->mesh) * n->config.path_limit * 2,
                              sizeof(*n->bad))
                     : NULL;
    n->incident_due = n->incident_again = MONO_NEVER;
    for (uint32_t i = 0; i < HOST_NIC_MAX; i++) {
        n->deaf_at[i] = (struct mono){now.ns - 10 * NS_PER_S};
    }
    r = n->links && n->bad ? node_clock_new(n, now) : -ENOMEM;
    for (uint32_t i = 0; i < n->config.nic_count && r == 0; i++) {
        n->ports[i] = link_new(n->config.flap_limit, now);
        r = n->ports[i] ? 0 : -ENOMEM;
    }
    if (r < 0) {
        node_free(n);
        return r;
    }
    node_clock_sync_edges(n, now);
    *ret_node = n;
    return 0;
}

struct node *node_free(struct node *n)
{
    if (n) {
        for (uint32_t i = 0; i < HOST_NIC_MAX; i++) {
            link_free(n->ports[i]);
        }
        node_clock_free(n);
        free(n->links);
        free(n->saved);
        free(n->bad);
        mesh_free(n->mesh);
        free(n);
    }
    return NULL;
}

/* ---- events --------------------------------------------------------------------------------- */

static void drain_verdicts(struct node *n, struct mono now)
{
    struct mesh_verdict v;

    while (mesh_next_verdict(n->mesh, &v)) {
        switch ((enum mesh_verdict_kind)v.kind) {
        case MESH_PATH_STATE:
            n->mesh_changed = true;
            node_finding_path(n, now, &v);
            break;
        case MESH_TRACED:
        case MESH_PATH_SLOW:
        case MESH_PATH_PACE:
            node_finding_path(n, now, &v);
            break;
        case MESH_PEER_SILENT:
        case MESH_PEER_HEARD:
            n->mesh_changed = true;
            node_finding_silent(n, now, &v);
            break;
        case MESH_REPATH:
            node_clock_repath(n, now, v.edge, v.path);
            break;
        case MESH_LATE:
            node_finding_late(n, now, v.late);
            break;
        }
    }
    if (n->mesh_generation != mesh_generation(n->mesh)) {
        node_clock_sync_edges(n, now);
    }
}

/* True for a software stamp that was converted under bad conditions: good for liveness, not for clocks. */
static bool rough(struct node *n, uint8_t stamps, uint32_t error_ns)
{
    const bool is = stamps == STAMP_SOFTWARE && error_ns > n->config.stamp_error_ns;

    n->counters.stamps_rough += is;
    return is;
}

void node_expect(const struct node *n, const struct node_receive *event)
{
    const int edge =
        event->local < n->config.nic_count ? mesh_expect(n->mesh, event->local, &event->probe) : -1;

    if (edge >= 0) {
        __builtin_prefetch(&n->links[edge]);
    }
}

void node_on_receive(struct node *n, struct mono now, const struct node_receive *event)
{
    struct mesh_heard heard;

    n->now = now;
    if (event->local >= n->config.nic_count) {
        return;
    }
    mesh_on_receive(n->mesh, now, event->local, event->source_port,
                    event->stamps != STAMP_NONE && !rough(n, event->stamps, event->error_ns),
                    event->rx, &event->probe, &heard);
    if (heard.new_edge) {
        node_clock_sync_edges(n, now);
    }
    if (event->probe.type == PROBE_QUERY || event->probe.type == PROBE_ANSWER) {
        node_clock_query(n, now, event);
    } else if (event->probe.type == PROBE_DIGEST) {
        node_digest_heard(n, now, event);
    } else if (heard.edge >= 0) {
        node_clock_heard(n, now, event, &heard);
    }
    drain_verdicts(n, now);
}

void node_on_transmit(struct node *n, struct mono now, const struct node_transmit *event)
{
    n->now = now;
    mesh_on_transmit(n->mesh, now, event->token, event->outcome, event->tx,
                     event->outcome == TRANSMIT_STAMPED &&
                         rough(n, event->stamps, event->error_ns));
}

void node_on_hop(struct node *n, struct mono now, const struct node_hop *event)
{
    n->now = now;
    if (event->local < n->config.nic_count) {
        if (event->kind == HOP_NO_ROUTE) {
            mesh_on_no_route(n->mesh, now, event->local, event->peer, event->source_port,
                             event->address);
        } else if (event->kind == HOP_EXCEEDED) {
            mesh_on_hop(n->mesh, now, event->local, event->peer, event->source_port, event->token,
                        event->ttl, event->address);
        }
        drain_verdicts(n, now);
    }
}

static void drain_link(struct node *n, struct mono now, uint32_t local)
{
    struct link_message message;

    while (link_next_message(n->ports[local], &message)) {
        node_finding_link(n, now, local, &message);
    }
}

void node_on_link(struct node *n, struct mono now, const struct node_link *event)
{
    n->now = now;
    if (event->local >= n->config.nic_count) {
        return;
    }
    link_on_facts(n->ports[event->local], now, &event->facts);
    mesh_on_carrier(n->mesh, now, event->local, event->facts.present && event->facts.carrier);
    drain_link(n, now, event->local);
    drain_verdicts(n, now);
}

void node_on_bracket(struct node *n, struct mono now, const struct node_bracket *event)
{
    const struct host_leaf_bracket bracket = {
        .before = event->before, .nic = event->nic, .after = event->after};

    n->now = now;
    if (event->local < n->config.nic_count && n->config.nics[event->local].domain != 0) {
        const uint32_t member = n->member_of[event->local];
        node_clock_on_bracket(n, now, member,
                              host_leaf_on_bracket(&n->leaf, now, (int)member, &bracket));
        node_clock_sync_edges(n, now);
    }
}

void node_on_bad_packet(struct node *n, struct mono now, const struct node_bad_packet *event)
{
    n->now = now;
    n->counters.bad_packets += event->count;
    n->bad_packet_error = event->error;
}

int node_on_peers(struct node *n, struct mono now, const struct mesh_fleet *fleet)
{
    n->now = now;
    if (!fleet_valid(fleet, &n->config)) {
        return -EINVAL;
    }
    n->config.fleet = *fleet;
    mesh_on_peers(n->mesh, now, fleet);
    node_clock_follow_hops(n);
    drain_verdicts(n, now);
    node_clock_sync_edges(n, now);
    return 0;
}

int node_on_member(struct node *n, struct mono now, const struct mesh_member *member)
{
    uint32_t at = 0;

    n->now = now;
    for (uint32_t i = 0; i < n->config.nic_count && member->gone; i++) {
        if (nic_id_equal(n->config.nics[i].nic, member->peer.nic)) {
            return -EINVAL;
        }
    }
    const int r = fleet_change(&n->config.fleet, member, &at);
    if (r < 0) {
        return r;
    }
    mesh_on_member(n->mesh, now, &n->config.fleet, member, at);
    node_clock_follow_hops(n);
    drain_verdicts(n, now);
    node_clock_sync_edges(n, now);
    return 0;
}

const struct mesh_fleet *node_fleet(const struct node *n)
{
    return &n->config.fleet;
}

int node_on_settings(struct node *n, struct mono now, const struct node_settings *settings)
{
    const uint32_t ring = settings->ring_peers ? settings->ring_peers : n->initial.ring_peers;

    n->now = now;
    if (ring % 2 != 0 || ring < PEERS_LEAST || ring + 4 > n->config.edge_limit) {
        return -EINVAL;
    }
    n->config.flap_limit = settings->flap_limit ? settings->flap_limit : n->initial.flap_limit;
    for (uint32_t i = 0; i < n->config.nic_count; i++) {
        link_limit(n->ports[i], n->config.flap_limit);
    }
    if (ring != n->config.ring_peers) {
        n->config.ring_peers = (uint16_t)ring;
        mesh_on_ring_peers(n->mesh, now, n->config.ring_peers);
        node_clock_follow_hops(n);
        drain_verdicts(n, now);
        node_clock_sync_edges(n, now);
    }
    return 0;
}

void node_tick(struct node *n, struct mono now)
{
    n->now = now;
    mesh_tick(n->mesh, now);
    for (uint32_t i = 0; i < n->config.nic_count; i++) {
        link_tick(n->ports[i], now);
        drain_link(n, now, i);
    }
    drain_verdicts(n, now);
    node_clock_tick(n, now);
    drain_verdicts(n, now);
    node_finding_tick(n, now);
    node_triangle_tick(n, now);
}

struct mono node_deadline(const struct node *n)
{
    struct mono due = mono_min(mesh_deadline(n->mesh), node_clock_deadline(n));
    const int64_t grid = n->config.grid_ms == 255 ? 1 : n->config.grid_ms * NS_PER_MS;

    for (uint32_t i = 0; i < n->config.nic_count; i++) {
        due = mono_min(due, link_deadline(n->ports[i]));
    }
    due = mono_min(due, node_finding_due(n));
    due.ns = due.ns <= n->now.ns ? n->now.ns + 1 : due.ns;
    return (struct mono){(due.ns / grid + (due.ns % grid > 0)) * grid};
}

uint32_t node_begin_us(const struct node *n)
{
    return mesh_begin_us(n->mesh);
}

/* ---- actions -------------------------------------------------------------------------------- */

static bool next_publication(struct node *n, struct node_action *ret_action)
{
    if (n->terms_changed) {
        n->terms_changed = false;
        ret_action->kind = NODE_PUBLISH_CLOCK;
        return true;
    }
    if (n->mesh_changed || n->mesh_page_due.ns <= n->now.ns) {
        ret_action->changed = n->mesh_changed;
        n->mesh_changed = false;
        n->mesh_page_due = mono_add(n->now, span_ns(MESH_PAGE_NS));
        ret_action->kind = NODE_PUBLISH_MESH;
        return true;
    }
    return false;
}

bool node_next_action(struct node *n, struct node_action *ret_action)
{
    int edge;

    memset(ret_action, 0, sizeof(*ret_action));
    while (mesh_next_send(n->mesh, n->now, &ret_action->send, &edge)) {
        const bool digest = ret_action->send.probe.type == PROBE_DIGEST;

        if (!digest) {
            node_clock_fill(n, ret_action->send.local, &ret_action->send.probe);
        } else if (!node_digest_fill(n, ret_action->send.local, &ret_action->send.probe)) {
            continue; /* without fleet time no receiver could know its age */
        }
        ret_action->kind = NODE_SEND;
        return true;
    }
    if (n->queue_count > 0) {
        ret_action->kind = NODE_FINDING;
        ret_action->finding = n->queue[n->queue_head];
        n->queue_head = (n->queue_head + 1) % FINDING_QUEUE;
        n->queue_count--;
        return true;
    }
    return next_publication(n, ret_action);
}

/* ---- recorder and replay -------------------------------------------------------------------- */

size_t node_event_size(enum node_event_kind kind)
{
    static const size_t sizes[NODE_EVENT_KIND_COUNT] = {
        [NODE_EVENT_RECEIVE] = sizeof(struct node_receive),
        [NODE_EVENT_TRANSMIT] = sizeof(struct node_transmit),
        [NODE_EVENT_HOP] = sizeof(struct node_hop),
        [NODE_EVENT_LINK] = sizeof(struct node_link),
        [NODE_EVENT_BRACKET] = sizeof(struct node_bracket),
        [NODE_EVENT_GUARD] = sizeof(struct node_guard),
        [NODE_EVENT_CLOCK_FACT] = sizeof(struct node_clock_fact),
        [NODE_EVENT_ANCHOR] = sizeof(struct node_anchor),
        [NODE_EVENT_BAD_PACKET] = sizeof(struct node_bad_packet),
        [NODE_EVENT_PEERS] = sizeof(struct mesh_fleet),
        [NODE_EVENT_SETTINGS] = sizeof(struct node_settings),
        [NODE_EVENT_MEMBER] = sizeof(struct mesh_member),
        [NODE_EVENT_VERBS] = sizeof(struct node_verbs),
    };

    return kind < NODE_EVENT_KIND_COUNT ? sizes[kind] : 0;
}

int node_on_event(struct node *n, struct mono now, enum node_event_kind kind, const void *data)
{
    switch (kind) {
    case NODE_EVENT_TICK:
        node_tick(n, now);
        return 0;
    case NODE_EVENT_RECEIVE:
        node_on_receive(n, now, data);
        return 0;
    case NODE_EVENT_TRANSMIT:
        node_on_transmit(n, now, data);
        return 0;
    case NODE_EVENT_HOP:
        node_on_hop(n, now, data);
        return 0;
    case NODE_EVENT_LINK:
        node_on_link(n, now, data);
        return 0;
    case NODE_EVENT_BRACKET:
        node_on_bracket(n, now, data);
        return 0;
    case NODE_EVENT_GUARD:
        node_on_guard(n, now, data);
        return 0;
    case NODE_EVENT_CLOCK_FACT:
        node_on_clock_fact(n, now, data);
        return 0;
    case NODE_EVENT_ANCHOR:
        node_on_anchor(n, now, data);
        return 0;
    case NODE_EVENT_BAD_PACKET:
        node_on_bad_packet(n, now, data);
        return 0;
    case NODE_EVENT_PEERS:
        return node_on_peers(n, now, data);
    case NODE_EVENT_SETTINGS:
        return node_on_settings(n, now, data);
    case NODE_EVENT_MEMBER:
        return node_on_member(n, now, data);
    case NODE_EVENT_VERBS:
        node_on_verbs(n, now, data);
        return 0;
    case NODE_EVENT_KIND_COUNT:
        break;
    }
    return -EINVAL;
}
