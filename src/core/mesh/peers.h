/* peers.h: chooses which NIC probes which. It is a pure function of the fleet's list, so every host finds the same graph without
 * a coordinator.
 *
 * K peers come from K/2 rings: ring r orders all NICs by hash(fleet seed, r, nic id), and a NIC probes its two neighbours on it.
 * The union of such rings is a random regular graph: an expander, of diameter about log N / log (K - 1). One more ring for each
 * rail and one for each leaf give neighbours with short paths. The relation is symmetric (my successor's predecessor is me). A
 * NIC that joins or leaves only changes its neighbours' lists. NICs of one host do not probe each other: a ring neighbour on the
 * own host is left out.
 *
 * A NIC in a fleet of at most full_limit other NICs probes all of them.
 *
 * For replacement, each ring also names the next PEERS_DEPTH - 1 NICs behind a neighbour. If the neighbour is silent, its two
 * neighbours begin to probe each other.
 *
 * Cost: O(N K) hashes once for a list, ~10 ms for 100,000 NICs. The result is kept (struct peer_rings). Then a joining NIC costs
 * K hashes. A leaving NIC costs N hashes for each ring on which it was near. */
#pragma once
#include <stdbool.h>

#include "core/mesh/fleet.h"

#define PEERS_DEPTH    4
#define PEERS_RING_MAX 18 /* 16 random, the rail's, the leaf's */
#define PEERS_LEAST    4  /* K: a single random ring is N/2 wide, and one liar cuts it */
#define PEERS_MOST                                                                                 \
    24 /* the largest K in files: 4 of a NIC's 28 edges remain for its rail and its leaf */

enum edge_reason { EDGE_FULL, EDGE_RING, EDGE_RAIL, EDGE_LEAF, EDGE_GUEST, EDGE_SPARE };

struct peer_choice {
    uint32_t index;  /* in the fleet's list */
    uint8_t reason;  /* enum edge_reason of the first ring that names it */
    uint8_t ring;    /* the ring; 0 if all NICs are probed */
    uint8_t forward; /* 1: successor, 0: predecessor */
    uint8_t rank;    /* 0: chosen; 1..: the spares behind the chosen peer */
};

struct ring_side {
    uint32_t count;
    struct nic_id nic[PEERS_DEPTH];
    uint64_t distance[PEERS_DEPTH];
};
struct peer_ring {
    struct ring_side side[2]; /* 0 predecessors, 1 successors: the nearest first */
    uint64_t salt, own;
    uint8_t reason;
};
/* The NICs near one NIC on its rings. */
struct peer_rings {
    uint32_t count; /* 0: not known, because all NICs are probed */
    uint16_t rail, leaf;
    struct peer_ring rings[PEERS_RING_MAX];
};

/* H: no two hosts' NICs are further apart in the graph, also not among those that remain if a tenth of the hosts lie. 1 if all
 * are probed, else the least h >= 4 with (K/2)^h >= 2 N: of K edges half lead on (test_mesh_peers.c draws such graphs). */
uint8_t peers_hops(uint32_t nic_count, uint32_t ring_peers, uint32_t full_limit);
/* Computes the rings from the whole list. ring_peers is K: even, PEERS_LEAST to 32. */
void peers_look(struct peer_rings *rings, const struct mesh_fleet *fleet, uint32_t self,
                uint32_t ring_peers, uint32_t full_limit);
/* Called after the member was added to the fleet's list, or removed. True: the near NICs changed. */
bool peers_change(struct peer_rings *rings, const struct mesh_fleet *fleet, uint32_t self,
                  uint32_t ring_peers, uint32_t full_limit, const struct mesh_member *member);
/* As peers_choose(), from the kept rings. */
uint32_t peers_chosen(const struct peer_rings *rings, const struct mesh_fleet *fleet, uint32_t self,
                      struct peer_choice *ret_choices, uint32_t capacity);
/* The NICs that the NIC at `self` probes: chosen ones first (rank 0, each peer once), then spares by rank (several rings may name
 * a spare). Returns the number, at most `capacity`. ring_peers is K: even, PEERS_LEAST to 32. */
uint32_t peers_choose(const struct mesh_fleet *fleet, uint32_t self, uint32_t ring_peers,
                      uint32_t full_limit, struct peer_choice *ret_choices, uint32_t capacity);
