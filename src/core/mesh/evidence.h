/* evidence.h: a path's way, and what became of its packets (evidence.c), for what names faults: locate.c and fault.c. */
#pragma once
#include "core/fleet/locate.h"
#include "core/mesh/internal.h"

#define WAY_BOX_MAX        (MESH_HOP_MAX + 2)
#define EVIDENCE_TOUCH_NS  (200 * NS_PER_MS) /* between packets of a path */
#define EVIDENCE_ACK_NS    (300 * NS_PER_MS) /* from a packet to its echo, at most */
#define EVIDENCE_SHARE_ALL 0.9 /* who loses more than that of all its paths loses all */

struct way_box {
    uint64_t key;
    struct place place;
};
struct way_chain {
    struct way_box boxes[WAY_BOX_MAX];
    uint32_t count; /* 0: hops unknown */
};
/* What is asked: which direction, and whether of death, of loss or of delay. */
struct evidence_view {
    bool out, loss, slow;
};
/* Packets of a path since the moment, whose fate is known. */
struct path_fates {
    uint32_t sent, lost;
};

struct way_box evidence_nic(struct nic_id nic);
/* The boxes of own path p. What comes in on path p is taken to go the same way: with named routers
 * both ends sort their paths alike (discovery.c), and a silent router in between makes the chain
 * unusable either way. Ports that nobody chose aren't sorted: of those only what goes out is known. */
void evidence_chain(const struct mesh *m, const struct mesh_edge *e, uint8_t p, bool goes_out,
                    struct way_chain *ret);
void evidence_told_chain(const struct mesh *m, const struct told_path *t, struct way_chain *ret);
const struct path_half *evidence_half(const struct mesh_edge *e, uint8_t p,
                                      struct evidence_view view);
struct path_fates evidence_fates(const struct path_half *half, struct mono now, struct mono since,
                                 struct evidence_view view);
/* Up to box `last` of the chain; to its end when that is the peer's NIC. */
struct locate_route evidence_route(const struct mesh *m, const struct mesh_edge *e,
                                   const struct way_chain *chain, uint32_t last,
                                   struct evidence_view view);
/* The inference's number of own path p; of a path that another host told, its index among those, or -1. */
uint32_t evidence_number(const struct mesh *m, int edge, uint8_t p);
int evidence_told_number(const struct mesh *m, struct mono now, struct nic_id from,
                         struct nic_id to, uint8_t path);
/* All that this host knows since the moment, once for all that ask at a time. wide: and what others tell. */
void evidence_tell_all(struct mesh *m, struct mono now, struct mono since,
                       struct evidence_view view, bool wide);
