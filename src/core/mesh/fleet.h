/* fleet.h: the fleet's list of NICs, as the peers file has it: what every host knows alike. */
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
    uint16_t leaf;   /* LEAF_UNKNOWN where the list does not say */
    uint16_t anchor; /* 1: its host's UTC is one to go by */
    uint16_t reserved;
};

/* A router's address with its place in the fabric, where the fleet file names routers: lets
 * findings say "trunk leaf 0 - spine 2" instead of two addresses. A router has as many entries as
 * addresses. */
struct mesh_router {
    uint8_t address[16];
    uint32_t place; /* PLACE_LEAF or PLACE_SPINE */
    uint32_t number;
};

/* Borrowed: must stay valid and unchanged until the next list is given or node_free. Shared by all
 * nodes of a simulation. */
struct mesh_fleet {
    uint64_t seed; /* of the rings: alike on every host */
    const struct mesh_peer *peers;
    uint32_t peer_count; /* NICs of the whole fleet, own ones included */
    uint32_t router_count;
    const struct mesh_router *routers;
    struct mesh_peer *room; /* the same array as peers, where the node may change it; else NULL */
    uint32_t peer_capacity; /* of room */
    uint32_t reserved;
};

/* One NIC that joins the list or leaves it. */
struct mesh_member {
    struct mesh_peer peer; /* gone: only its nic counts */
    uint32_t gone;         /* 0, 1 */
    uint32_t reserved;
};

/* Index of a NIC in the list, UINT32_MAX when it isn't there. O(log N). */
uint32_t fleet_find(const struct mesh_fleet *fleet, struct nic_id nic);
/* How many places a list of so many NICs is given, so that others may join: a power of 2 where there is one. */
static inline uint32_t fleet_room(uint32_t count)
{
    uint32_t room = 1024;
    while (room < count + count / 8 + 256 && room < FLEET_NIC_MAX) {
        room *= 2;
    }
    return room;
}
/* Puts the NIC into the list, or takes it out; where it stands or stood is in ret_index. O(NICs behind that place): none for
 * one that is new, for ids ascend. -ENOSPC: there is no room; -EINVAL: it is there already, or isn't, or has no good id. */
MUST_CHECK int fleet_change(struct mesh_fleet *fleet, const struct mesh_member *member,
                            uint32_t *ret_index);
