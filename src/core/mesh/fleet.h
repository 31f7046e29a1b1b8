/* fleet.h: the fleet's list of NICs, from the peers file. It is the same on every host. */
#pragma once
#include <stdint.h>

#include "base/bug.h"
#include "base/id.h"
#include "base/limits.h"

#define LEAF_UNKNOWN UINT16_MAX

/* One NIC of the fleet. Ids ascend strictly. */
struct mesh_peer {
    struct nic_id nic;
    struct host_id host;
    uint16_t rail;
    uint16_t leaf;   /* LEAF_UNKNOWN if the list has none */
    uint16_t anchor; /* 1: its host is a UTC anchor */
    uint16_t reserved;
};

/* A router's address with its place in the fabric, if the fleet file names routers. Then findings contain "trunk leaf 0 - spine
 * 2" instead of two addresses. A router has one entry for each address. */
struct mesh_router {
    uint8_t address[16];
    uint32_t place; /* PLACE_LEAF or PLACE_SPINE */
    uint32_t number;
};

/* Borrowed: it must stay valid and unchanged until the next list is given or node_free() is called. All nodes of a simulation
 * share it. */
struct mesh_fleet {
    uint64_t seed; /* of the rings: the same on every host */
    const struct mesh_peer *peers;
    uint32_t peer_count; /* NICs of the whole fleet, own ones included */
    uint32_t router_count;
    const struct mesh_router *routers;
    struct mesh_peer *room; /* the same array as peers, if the node may change it; else NULL */
    uint32_t peer_capacity; /* the capacity of room */
    uint32_t reserved;
};

/* One NIC that joins or leaves the list. */
struct mesh_member {
    struct mesh_peer peer; /* gone: only its nic is used */
    uint32_t gone;         /* 0, 1 */
    uint32_t reserved;
};

/* The index of a NIC in the list; UINT32_MAX: it isn't in the list. O(log N). */
uint32_t fleet_find(const struct mesh_fleet *fleet, struct nic_id nic);
/* The capacity for a list of so many NICs, with room for others to join: a power of 2 if possible. */
static inline uint32_t fleet_room(uint32_t count)
{
    uint32_t room = 1024;
    while (room < count + count / 8 + 256 && room < FLEET_NIC_MAX) {
        room *= 2;
    }
    return room;
}
/* Adds the NIC to the list, or removes it. ret_index: its present or former index. O(NICs behind that place): zero for a new NIC,
 * because ids ascend. -ENOSPC: no room. -EINVAL: it is in the list already, or isn't in it, or its id is invalid. */
MUST_CHECK int fleet_change(struct mesh_fleet *fleet, const struct mesh_member *member,
                            uint32_t *ret_index);
