/* peers.h: who probes whom. A pure function of the fleet's list, so that every host comes to the
 * same graph without a coordinator.
 *
 * K peers come from K/2 rings: ring r puts all NICs in the order of hash(fleet seed, r, nic id),
 * and a NIC probes its neighbours there, one each way. The union of such rings is a random regular
 * graph: an expander, of diameter about log N / log (K - 1). One more ring per rail and one per
 * leaf give the neighbours whose paths are short. The relation is symmetric (my successor's
 * predecessor is me), and a NIC that joins or leaves changes only its neighbours' lists. NICs of
 * one host do not probe each other: a ring neighbour on the own host is left out.
 *
 * A fleet of at most full_limit other NICs is probed in full.
 *
 * For replacement each ring also names the next PEERS_DEPTH - 1 behind a neighbour: when it is
 * silent, those two that it leaves come to probe each other.
 *
 * Cost: O(N K) hashes once for a list, ~10 ms for 100,000 NICs. What was found is kept (struct peer_rings): then a NIC that
 * joins costs K hashes, and one that leaves costs N hashes for each ring on which it was near. */
#pragma once
#include <stdbool.h>

#include "core/mesh/fleet.h"

#define PEERS_DEPTH    4
#define PEERS_RING_MAX 18 /* 16 random, the rail's, the leaf's */
#define PEERS_LEAST    4  /* K: one random ring alone is N/2 wide, and a liar cuts it */
#define PEERS_MOST                                                                                 \
    24 /* K that files may ask for: 4 of a NIC's 28 edges are left for its rail and its leaf */

enum edge_reason { EDGE_FULL, EDGE_RING, EDGE_RAIL, EDGE_LEAF, EDGE_GUEST, EDGE_SPARE };

struct peer_choice {
    uint32_t index;  /* in the fleet's list */
    uint8_t reason;  /* enum edge_reason of the first ring that names it */
    uint8_t ring;    /* which; 0 when in full */
    uint8_t forward; /* 1: successor, 0: predecessor */
    uint8_t rank;    /* 0: chosen; 1..: the spares behind it */
};

struct ring_side {
    uint32_t count;
    struct nic_id nic[PEERS_DEPTH];
    uint64_t distance[PEERS_DEPTH];
};
struct peer_ring {
    struct ring_side side[2]; /* 0 predecessors, 1 successors: nearest first */
    uint64_t salt, own;
    uint8_t reason;
};
/* What stands near one NIC on its rings. */
struct peer_rings {
    uint32_t count; /* 0: not known, for the fleet is probed in full */
    uint16_t rail, leaf;
    struct peer_ring rings[PEERS_RING_MAX];
};

/* H: no two hosts' NICs are further apart in the graph, and none of those that stay when a tenth of the hosts lie. 1 where all
 * are probed, else the least h >= 4 with (K/2)^h >= 2 N: of K edges half lead on (test_mesh_peers.c draws such graphs). */
uint8_t peers_hops(uint32_t nic_count, uint32_t ring_peers, uint32_t full_limit);
/* Of the list as it is. ring_peers is K: even, PEERS_LEAST to 32. */
void peers_look(struct peer_rings *rings, const struct mesh_fleet *fleet, uint32_t self,
                uint32_t ring_peers, uint32_t full_limit);
/* After the member was put into the fleet's list, or taken out of it. True: other NICs are near now. */
bool peers_change(struct peer_rings *rings, const struct mesh_fleet *fleet, uint32_t self,
                  uint32_t ring_peers, uint32_t full_limit, const struct mesh_member *member);
/* As peers_choose(), of what is known. */
uint32_t peers_chosen(const struct peer_rings *rings, const struct mesh_fleet *fleet, uint32_t self,
                      struct peer_choice *ret_choices, uint32_t capacity);
/* Who the NIC at `self` probes: chosen ones first (rank 0, each peer once), then spares by rank (a
 * spare may be named by several rings). Returns the count, at most `capacity`. ring_peers is K:
 * even, PEERS_LEAST to 32. */
uint32_t peers_choose(const struct mesh_fleet *fleet, uint32_t self, uint32_t ring_peers,
                      uint32_t full_limit, struct peer_choice *ret_choices, uint32_t capacity);
