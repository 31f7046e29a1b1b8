/* node_edge.c: the clock edges for the edges of the mesh.
 *
 * A peer's clock has the number of its member there (node_clock.c). Its packets show which of a peer's NICs share a clock
 * (software stamps: all NICs of its host without a clock of their own); until a packet arrives, the same is assumed as here. If
 * packets prove otherwise, the peer gets its edge anew (node_clock_follow_stamps). */
#include "core/node/internal.h"

static uint32_t first_of_host(const struct mesh_fleet *fleet, uint32_t peer)
{
    const struct host_id host = fleet->peers[peer].host;

    /* a host's NICs are neighbours in the list */
    while (peer > 0 && host_id_equal(fleet->peers[peer - 1].host, host)) {
        peer--;
    }
    return peer;
}

/* True if, by an edge of this host, that NIC has a clock of its own. */
static bool has_own_clock(const struct node *n, uint32_t nic)
{
    for (int edge = 0; edge < mesh_edge_capacity(n->mesh); edge++) {
        const struct edge_link *link = &n->links[edge];
        if (link->generation != 0 && link->heard && !link->software && link->nic == nic) {
            return true;
        }
    }
    return false;
}

static uint32_t peer_number(const struct node *n, uint32_t peer, bool software)
{
    const struct mesh_fleet *fleet = &n->config.fleet;

    for (uint32_t i = first_of_host(fleet, peer); software && i < peer; i++) {
        if (!has_own_clock(n, fleet->peers[i].nic.index)) {
            return fleet->peers[i].nic.index;
        }
    }
    return fleet->peers[peer].nic.index;
}

static void edge_unlink(struct node *n, struct mono now, struct edge_link *link)
{
    ASSERT(link->generation == 0 || (uint32_t)link->member < n->member_count);
    if (link->generation != 0 && link->clock_edge >= 0 && n->members[link->member].clock) {
        /* used if the NIC's time isn't known now */
        struct nic_time at = n->members[link->member].last;
        (void)node_member_time(n, (uint32_t)link->member, now, &at);
        clock_edge_remove(n->members[link->member].clock, at, link->clock_edge);
    }
    *link = (struct edge_link){.clock_edge = -1};
}

static void edge_add(struct node *n, struct nic_time at, struct edge_link *link,
                     const struct mesh_edge_info *info)
{
    const struct mesh_peer *own =
        &n->config.fleet.peers[fleet_find(&n->config.fleet, n->config.nics[info->local].nic)];
    const struct mesh_peer *peer = &n->config.fleet.peers[info->peer];
    const struct clock_edge_config config = {
        .peer = peer_number(n, info->peer, link->software),
        .host = 1 + n->config.fleet.peers[first_of_host(&n->config.fleet, info->peer)].nic.index,
        .local_nic = n->config.nics[info->local].nic,
        .peer_nic = info->nic,
        .path_count = (uint8_t)n->config.path_limit,
        .delay_ns_min = n->config.delay_floor_ns,
        .distance = peer->rail == own->rail                                ? 0
                    : peer->leaf == own->leaf && own->leaf != LEAF_UNKNOWN ? 1
                                                                           : 2,
        .chosen = info->reason != EDGE_GUEST,
        .anchor = peer->anchor != 0,
    };
    link->peer = config.peer;
    link->nic = info->nic.index;
    link->host = config.host;
    link->clock_edge = clock_edge_add(n->members[link->member].clock, at, &config);
}

/* False: its NIC's clock has begun, but its time isn't known now. */
static bool edge_join(struct node *n, struct mono now, int edge, const struct mesh_edge_info *info)
{
    struct edge_link *link = &n->links[edge];
    const uint32_t member = n->member_of[info->local];
    struct nic_time at;

    ASSERT(link->generation == 0 ||
           link->clock_edge < 0); /* otherwise the clock would keep it for ever */
    *link = (struct edge_link){.generation = info->generation,
                               .member = (int)member,
                               .clock_edge = -1,
                               .software = n->config.nics[info->local].stamps != STAMP_HARDWARE,
                               .in_step = now};
    if (!n->members[member].clock || !node_member_time(n, member, now, &at)) {
        return !n->members[member].clock;
    }
    edge_add(n, at, link, info);
    return true;
}

/* Makes the edge anew if it leads to another clock, or its clock has another number. False: its NIC's time isn't known now. */
static bool edge_renumber(struct node *n, struct mono now, int edge, bool another)
{
    struct edge_link *link = &n->links[edge];
    struct mesh_edge_info info;
    struct nic_time at;

    if (link->clock_edge < 0 || !mesh_edge_info(n->mesh, now, edge, &info) ||
        info.peer == UINT32_MAX || info.generation != link->generation ||
        (!another && link->peer == peer_number(n, info.peer, link->software))) {
        return true;
    }
    if (!node_member_time(n, (uint32_t)link->member, now, &at)) {
        return false;
    }
    clock_edge_remove(n->members[link->member].clock, at, link->clock_edge);
    edge_add(n, at, link, &info);
    return true;
}

/* Its packets show that the peer's NIC has a clock of its own, or that its host's clock stamps there, against the assumption.
 * Then the number of its host's clock changes, and so do the edges to the host's other NICs. */
void node_clock_follow_stamps(struct node *n, struct mono now, int edge, bool software)
{
    struct edge_link *link = &n->links[edge];
    const bool another = link->heard && link->software != software;
    struct nic_time at;
    bool all = true;

    if ((link->heard && !another) || link->clock_edge < 0 ||
        !node_member_time(n, (uint32_t)link->member, now, &at)) {
        return;
    }
    link->heard = true;
    link->software = software;
    for (int other = 0; other < mesh_edge_capacity(n->mesh); other++) {
        if (n->links[other].generation != 0 && n->links[other].host == link->host) {
            all = edge_renumber(n, now, other, another && other == edge) && all;
        }
    }
    link->heard = all; /* otherwise again with the next packet */
}

/* For the saved edges: those that led to a clock of the other kind lead there again; otherwise their state is not used. */
int node_clock_restore(struct node *n, struct mono now, uint32_t member, struct nic_time at)
{
    const struct clock_saved *s = &n->saved[member];

    for (int edge = 0; edge < mesh_edge_capacity(n->mesh); edge++) {
        struct edge_link *link = &n->links[edge];
        struct mesh_edge_info info;
        if (link->generation == 0 || link->member != (int)member || link->clock_edge < 0 ||
            !mesh_edge_info(n->mesh, now, edge, &info) || info.peer == UINT32_MAX) {
            continue;
        }
        for (uint32_t i = 0; i < s->edge_count && i < CLOCK_SAVED_EDGES; i++) {
            const struct clock_saved_edge *is = &s->edges[i];
            if (is->local_nic == n->config.nics[info.local].nic.index &&
                is->peer_nic == info.nic.index && is->peer != link->peer &&
                is->peer == peer_number(n, info.peer, !link->software)) {
                link->software = !link->software;
                (void)edge_renumber(n, now, edge, false);
                break;
            }
        }
    }
    return clock_restore(n->members[member].clock, at, s);
}

/* The mesh's edges changed, or a NIC's clock was read for the first time. */
void node_clock_sync_edges(struct node *n, struct mono now)
{
    const int capacity = mesh_edge_capacity(n->mesh);
    uint32_t started = 0; /* bits */
    bool all = true;

    for (uint32_t i = 0; i < n->member_count; i++) {
        struct nic_time at;
        int64_t wall_minus_ns;
        if (!n->members[i].clock && node_member_time(n, i, now, &at) &&
            !__builtin_add_overflow(n->config.wall_minus_ns, now.ns - at.ns, &wall_minus_ns) &&
            node_clock_start(n, i, at, wall_minus_ns) == 0) {
            started |= 1u << i;
        }
    }
    if (started == 0 && n->edges_joined && n->mesh_generation == mesh_generation(n->mesh)) {
        return;
    }
    n->mesh_generation = mesh_generation(n->mesh);
    for (int edge = 0; edge < capacity;
         edge++) { /* removals first: a new edge may have the same pair */
        struct mesh_edge_info info;
        if (n->links[edge].generation != 0 && (!mesh_edge_info(n->mesh, now, edge, &info) ||
                                               info.generation != n->links[edge].generation)) {
            node_incident_forget(n, now, edge);
            edge_unlink(n, now, &n->links[edge]);
        }
    }
    for (int edge = 0; edge < capacity; edge++) {
        struct mesh_edge_info info;
        if (mesh_edge_info(n->mesh, now, edge, &info) && info.peer != UINT32_MAX &&
            (n->links[edge].generation == 0 || n->links[edge].clock_edge < 0)) {
            all = edge_join(n, now, edge, &info) && all;
        }
    }
    n->edges_joined = all;
    for (uint32_t i = 0; i < n->member_count && n->saved; i++) {
        struct nic_time at;
        if ((started & (1u << i)) != 0 && node_member_time(n, i, now, &at) &&
            node_clock_restore(n, now, i, at) < 0) {
            continue; /* then it is a cold start */
        }
    }
}

void node_clock_repath(struct node *n, struct mono now, int edge, uint8_t path)
{
    struct edge_link *link = &n->links[edge];
    struct nic_time at;

    if (link->clock_edge >= 0 && node_member_time(n, (uint32_t)link->member, now, &at)) {
        clock_edge_repath(n->members[link->member].clock, at, link->clock_edge, path);
    }
}
