/* peers.c: neighbours on hashed rings. */
#include "core/mesh/peers.h"

#include "base/bug.h"
#include "base/prng.h"

struct ring_side {
    uint32_t count;
    uint32_t index[PEERS_DEPTH];
    uint64_t distance[PEERS_DEPTH];
};
struct ring {
    struct ring_side side[2]; /* 0 predecessors, 1 successors: nearest first */
    uint64_t salt, own;
    uint8_t reason;
};

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

static void side_offer(struct ring_side *side, uint32_t index, uint64_t distance)
{
    uint32_t at = side->count;

    if (side->count == PEERS_DEPTH && distance >= side->distance[PEERS_DEPTH - 1]) {
        return;
    }
    if (side->count == PEERS_DEPTH) {
        at--;
    } else {
        side->count++;
    }
    /* ids ascend in the list and are offered in that order: a tie keeps the lower id first, on
     * every host */
    for (; at > 0 && side->distance[at - 1] > distance; at--) {
        side->distance[at] = side->distance[at - 1];
        side->index[at] = side->index[at - 1];
    }
    side->distance[at] = distance;
    side->index[at] = index;
}

static void ring_offer(struct ring *ring, uint32_t index, struct nic_id nic)
{
    const uint64_t place = hash_u64(ring->salt, nic.index);

    side_offer(&ring->side[1], index, place - ring->own);
    side_offer(&ring->side[0], index, ring->own - place);
}

static uint32_t add(struct peer_choice *choices, uint32_t count, uint32_t capacity,
                    struct peer_choice choice)
{
    for (uint32_t i = 0; i < count; i++) {
        /* each peer once among the chosen; a spare that is chosen already is none */
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

static uint32_t rings_init(struct ring *rings, const struct mesh_fleet *fleet, uint32_t self,
                           uint32_t ring_peers)
{
    const struct mesh_peer *own = &fleet->peers[self];
    uint32_t count = 0;

    for (uint32_t r = 0; r < ring_peers / 2 && count < PEERS_RING_MAX - 2; r++) {
        rings[count++] = (struct ring){.salt = hash_u64(fleet->seed, r), .reason = EDGE_RING};
    }
    rings[count++] =
        (struct ring){.salt = hash_u64(fleet->seed, 1000u + own->rail), .reason = EDGE_RAIL};
    if (own->leaf != LEAF_UNKNOWN) {
        rings[count++] =
            (struct ring){.salt = hash_u64(fleet->seed, 100000u + own->leaf), .reason = EDGE_LEAF};
    }
    for (uint32_t r = 0; r < count; r++) {
        rings[r].own = hash_u64(rings[r].salt, own->nic.index);
    }
    return count;
}

static void rings_scan(struct ring *rings, uint32_t count, const struct mesh_fleet *fleet,
                       uint32_t self)
{
    const struct mesh_peer *own = &fleet->peers[self];

    for (uint32_t i = 0; i < fleet->peer_count; i++) {
        const struct mesh_peer *peer = &fleet->peers[i];

        if (i == self) {
            continue;
        }
        for (uint32_t r = 0; r < count; r++) {
            if ((rings[r].reason == EDGE_RAIL && peer->rail != own->rail) ||
                (rings[r].reason == EDGE_LEAF && peer->leaf != own->leaf)) {
                continue;
            }
            ring_offer(&rings[r], i, peer->nic);
        }
    }
}

uint32_t peers_choose(const struct mesh_fleet *fleet, uint32_t self, uint32_t ring_peers,
                      uint32_t full_limit, struct peer_choice *ret_choices, uint32_t capacity)
{
    struct ring rings[PEERS_RING_MAX];
    uint32_t ring_count, count = 0;

    ASSERT(self < fleet->peer_count);
    if (fleet->peer_count - 1 <= full_limit) {
        return choose_full(fleet, self, ret_choices, capacity);
    }
    ring_count = rings_init(rings, fleet, self, ring_peers);
    rings_scan(rings, ring_count, fleet, self);
    for (uint32_t rank = 0; rank < PEERS_DEPTH; rank++) {
        for (uint32_t r = 0; r < ring_count; r++) {
            for (uint32_t forward = 0; forward < 2; forward++) {
                const struct ring_side *side = &rings[r].side[forward];

                if (rank >= side->count ||
                    host_id_equal(fleet->peers[side->index[rank]].host, fleet->peers[self].host)) {
                    continue;
                }
                count = add(ret_choices, count, capacity,
                            (struct peer_choice){.index = side->index[rank],
                                                 .reason = rings[r].reason,
                                                 .ring = (uint8_t)r,
                                                 .forward = (uint8_t)forward,
                                                 .rank = (uint8_t)rank});
            }
        }
    }
    return count;
}
