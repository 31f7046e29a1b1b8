/* evidence.h: a path's way and the fates of its packets (evidence.c), for the code that names faults: locate.c and fault.c. */
#pragma once
#include "core/fleet/locate.h"
#include "core/mesh/internal.h"

#define WAY_BOX_MAX       (MESH_HOP_MAX + 2)
#define EVIDENCE_TOUCH_NS (200 * NS_PER_MS) /* between packets of a path */
#define EVIDENCE_ACK_NS   (300 * NS_PER_MS) /* from a packet to its echo, at most */
#define EVIDENCE_FATE_NS  (EVIDENCE_TOUCH_NS + EVIDENCE_ACK_NS) /* the next packet's fate is known */
/* an element that loses more than this share of all its paths loses everything */
#define EVIDENCE_SHARE_ALL 0.9

struct way_box {
    uint64_t key;
    struct place place;
};
struct way_chain {
    struct way_box boxes[WAY_BOX_MAX];
    uint32_t count; /* 0: hops unknown */
};
/* The question: the direction, and death, loss or delay. */
struct evidence_view {
    bool out, loss, slow;
};
/* Packets of a path since the moment, with known fates. */
struct path_fates {
    uint32_t sent, lost;
};

struct way_box evidence_nic(struct nic_id nic);
/* The boxes of own path p. For incoming packets on path p the same way is assumed: with named routers both ends sort their paths
 * alike (discovery.c), and a silent router in between makes the chain useless anyway. Ports that were not chosen by ways aren't
 * sorted; for those only the outgoing way is known. */
void evidence_chain(const struct mesh *m, const struct mesh_edge *e, uint8_t p, bool goes_out,
                    struct way_chain *ret);
void evidence_told_chain(const struct mesh *m, const struct told_path *t, struct way_chain *ret);
const struct path_half *evidence_half(const struct mesh_edge *e, uint8_t p,
                                      struct evidence_view view);
struct path_fates evidence_fates(const struct path_half *half, struct mono now, struct mono since,
                                 struct evidence_view view);
/* The route up to box `last` of the chain; up to its end if that is the peer's NIC. */
struct locate_route evidence_route(const struct mesh *m, const struct mesh_edge *e,
                                   const struct way_chain *chain, uint32_t last,
                                   struct evidence_view view);
/* The inference's number of own path p; for a path that another host reported, its index among those, or -1. */
uint32_t evidence_number(const struct mesh *m, int edge, uint8_t p);
int evidence_told_number(const struct mesh *m, struct mono now, struct nic_id from,
                         struct nic_id to, uint8_t path);
/* Gives the inference all that this host knows since the moment, once for all questions of that time. wide: also reports of other
 * hosts. */
void evidence_tell_all(struct mesh *m, struct mono now, struct mono since,
                       struct evidence_view view, bool wide);
