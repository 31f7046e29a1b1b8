/* peers.c: neighbours on hashed rings. */
#include "core/mesh/peers.h"

#include "base/bug.h"
#include "base/prng.h"

#include <errno.h>
#include <string.h>

uint32_t fleet_find(const struct mesh_fleet *fleet, struct nic_id nic)
{
    uint32_t low = 0, high = fleet->peer_count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (fleet->peers[middle].nic.index < nic.index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < fleet->peer_count && nic_id_equal(fleet->peers[low].nic, nic) ? low : UINT32_MAX;
}

int fleet_change(struct mesh_fleet *fleet, const struct mesh_member *member, uint32_t *ret_index)
{
    const struct nic_id nic = member->peer.nic;
    struct mesh_peer *peers = fleet->room;
    uint32_t at = fleet_find(fleet, nic);

    if (nic.index >= FLEET_NIC_MAX || (at != UINT32_MAX) != (member->gone != 0)) {
        return -EINVAL;
    }
    if (peers == NULL || (!member->gone && fleet->peer_count >= fleet->peer_capacity)) {
        return -ENOSPC;
    }
    if (member->gone) {
        fleet->peer_count--;
        memmove(&peers[at], &peers[at + 1], (fleet->peer_count - at) * sizeof(*peers));
    } else {
        for (at = fleet->peer_count; at > 0 && peers[at - 1].nic.index > nic.index; at--) {
            peers[at] = peers[at - 1];
        }
        peers[at] = member->peer;
        fleet->peer_count++;
    }
    *ret_index = at;
    return 0;
}

uint8_t peers_hops(uint32_t nic_count, uint32_t ring_peers, uint32_t full_limit)
{
    uint8_t hops = 0;

    ASSERT(ring_peers >= PEERS_LEAST);
    if (nic_count <= full_limit + 1) {
        return 1;
    }
    for (uint64_t reached = 1; reached < 2ull * nic_count; reached *= ring_peers / 2) {
        hops++;
    }
    return hops > 4 ? hops : 4;
}

/* True: it is one of the nearest. */
static bool side_offer(struct ring_side *side, struct nic_id nic, uint64_t distance)
{
    uint32_t at = side->count;

    /* with equal distances the lower id comes first, on every host */
    while (at > 0 && (side->distance[at - 1] > distance || (side->distance[at - 1] == distance &&
                                                            side->nic[at - 1].index > nic.index))) {
        at--;
    }
    if (at == PEERS_DEPTH) {
        return false;
    }
    side->count += side->count < PEERS_DEPTH;
    for (uint32_t i = side->count - 1; i > at; i--) {
        side->distance[i] = side->distance[i - 1];
        side->nic[i] = side->nic[i - 1];
    }
    side->distance[at] = distance;
    side->nic[at] = nic;
    return true;
}

static bool ring_offer(struct peer_ring *ring, struct nic_id nic)
{
    const uint64_t place = hash_u64(ring->salt, nic.index);
    const bool after = side_offer(&ring->side[1], nic, place - ring->own);

    return side_offer(&ring->side[0], nic, ring->own - place) || after;
}

static bool ring_has(const struct peer_ring *ring, struct nic_id nic)
{
    for (uint32_t s = 0; s < 2; s++) {
        for (uint32_t i = 0; i < ring->side[s].count; i++) {
            if (nic_id_equal(ring->side[s].nic[i], nic)) {
                return true;
            }
        }
    }
    return false;
}

/* True if the ring contains the peer. */
static bool is_of(const struct peer_rings *rings, const struct peer_ring *ring,
                  const struct mesh_peer *peer)
{
    return !(ring->reason == EDGE_RAIL && peer->rail != rings->rail) &&
           !(ring->reason == EDGE_LEAF && peer->leaf != rings->leaf);
}

static uint32_t add(struct peer_choice *choices, uint32_t count, uint32_t capacity,
                    struct peer_choice choice)
{
    for (uint32_t i = 0; i < count; i++) {
        /* each peer is chosen once; a chosen peer is no spare */
        if (choices[i].index == choice.index && (choice.rank == 0 || choices[i].rank == 0)) {
            return count;
        }
    }
    if (count < capacity) {
        choices[count++] = choice;
    }
    return count;
}

static uint32_t choose_full(const struct mesh_fleet *fleet, uint32_t self,
                            struct peer_choice *ret_choices, uint32_t capacity)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < fleet->peer_count; i++) {
        if (!host_id_equal(fleet->peers[i].host, fleet->peers[self].host) && count < capacity) {
            ret_choices[count++] = (struct peer_choice){.index = i, .reason = EDGE_FULL};
        }
    }
    return count;
}

static void rings_init(struct peer_rings *rings, const struct mesh_fleet *fleet, uint32_t self,
                       uint32_t ring_peers)
{
    const struct mesh_peer *own = &fleet->peers[self];
    uint32_t count = 0;

    for (uint32_t r = 0; r < ring_peers / 2 && count < PEERS_RING_MAX - 2; r++) {
        rings->rings[count++] =
            (struct peer_ring){.salt = hash_u64(fleet->seed, r), .reason = EDGE_RING};
    }
    rings->rings[count++] =
        (struct peer_ring){.salt = hash_u64(fleet->seed, 1000u + own->rail), .reason = EDGE_RAIL};
    if (own->leaf != LEAF_UNKNOWN) {
        rings->rings[count++] = (struct peer_ring){
            .salt = hash_u64(fleet->seed, 100000u + own->leaf), .reason = EDGE_LEAF};
    }
    for (uint32_t r = 0; r < count; r++) {
        rings->rings[r].own = hash_u64(rings->rings[r].salt, own->nic.index);
    }
    rings->count = count;
    rings->rail = own->rail;
    rings->leaf = own->leaf;
}

static void ring_look(const struct peer_rings *rings, struct peer_ring *ring,
                      const struct mesh_fleet *fleet, uint32_t self)
{
    ring->side[0].count = ring->side[1].count = 0;
    for (uint32_t i = 0; i < fleet->peer_count; i++) {
        if (i != self && is_of(rings, ring, &fleet->peers[i])) {
            ring_offer(ring, fleet->peers[i].nic);
        }
    }
}

void peers_look(struct peer_rings *rings, const struct mesh_fleet *fleet, uint32_t self,
                uint32_t ring_peers, uint32_t full_limit)
{
    ASSERT(self < fleet->peer_count);
    rings->count = 0;
    if (fleet->peer_count - 1 > full_limit) {
        rings_init(rings, fleet, self, ring_peers);
    }
    for (uint32_t r = 0; r < rings->count; r++) {
        ring_look(rings, &rings->rings[r], fleet, self);
    }
}

bool peers_change(struct peer_rings *rings, const struct mesh_fleet *fleet, uint32_t self,
                  uint32_t ring_peers, uint32_t full_limit, const struct mesh_member *member)
{
    bool changed = false;

    if (rings->count == 0 || fleet->peer_count - 1 <= full_limit) {
        peers_look(rings, fleet, self, ring_peers, full_limit);
        return true;
    }
    for (uint32_t r = 0; r < rings->count; r++) {
        struct peer_ring *ring = &rings->rings[r];
        if (member->gone && ring_has(ring, member->peer.nic)) {
            ring_look(rings, ring, fleet, self);
            changed = true;
        } else if (!member->gone && is_of(rings, ring, &member->peer)) {
            changed = ring_offer(ring, member->peer.nic) || changed;
        }
    }
    return changed;
}

uint32_t peers_chosen(const struct peer_rings *rings, const struct mesh_fleet *fleet, uint32_t self,
                      struct peer_choice *ret_choices, uint32_t capacity)
{
    uint32_t count = 0;

    if (rings->count == 0) {
        return choose_full(fleet, self, ret_choices, capacity);
    }
    for (uint32_t rank = 0; rank < PEERS_DEPTH; rank++) {
        for (uint32_t r = 0; r < rings->count; r++) {
            for (uint32_t forward = 0; forward < 2; forward++) {
                const struct ring_side *side = &rings->rings[r].side[forward];
                const uint32_t index =
                    rank < side->count ? fleet_find(fleet, side->nic[rank]) : UINT32_MAX;

                if (index == UINT32_MAX ||
                    host_id_equal(fleet->peers[index].host, fleet->peers[self].host)) {
                    continue;
                }
                count = add(ret_choices, count, capacity,
                            (struct peer_choice){.index = index,
                                                 .reason = rings->rings[r].reason,
                                                 .ring = (uint8_t)r,
                                                 .forward = (uint8_t)forward,
                                                 .rank = (uint8_t)rank});
            }
        }
    }
    return count;
}

uint32_t peers_choose(const struct mesh_fleet *fleet, uint32_t self, uint32_t ring_peers,
                      uint32_t full_limit, struct peer_choice *ret_choices, uint32_t capacity)
{
    struct peer_rings rings;

    peers_look(&rings, fleet, self, ring_peers, full_limit);
    return peers_chosen(&rings, fleet, self, ret_choices, capacity);
}
