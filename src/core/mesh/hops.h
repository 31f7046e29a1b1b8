/* hops.h: hop lists: which routers a source port's packets pass.
 *
 * A list has MESH_HOP_MAX places, by hop limit - 1; a place holds a router's number + 1 in m->routers, 0: not known. Ports
 * are counted from config.port_base here. */
#pragma once
#include "core/mesh/internal.h"

/* Of a way by its routers' addresses; 0: nothing is known of it. */
uint64_t hops_signature(const struct mesh *m, const uint16_t *hops);
uint8_t hops_length(const uint16_t *hops);                /* the last known place + 1 */
bool hops_complete(const uint16_t *hops, uint8_t length); /* all of these are known */
/* How many routers there are before the peer, at least that many: as it told itself, or one more while it didn't. */
uint8_t hops_before_peer(const struct discovery *d, uint8_t least);
/* By number and place where they have names: a router answers with more than one address. */
bool hops_same_router(const struct mesh *m, uint32_t a, uint32_t b);
/* Ports below port_end with distinct, complete lists, at most `limit` of them; returns how many. */
uint32_t hops_distinct_ports(const struct discovery *d, uint32_t port_end, uint8_t *ret_ports,
                             uint32_t limit);
/* Distinct ways that paths of this host's edges take between these routers at their ends, as far as they were looked for. */
uint32_t hops_ways_between(const struct mesh *m, const uint16_t *hops, uint8_t length);
/* By spine, then by address: both ends of an edge order their paths alike. */
void hops_sort_ports(const struct mesh *m, const struct discovery *d, uint8_t *ports,
                     uint32_t count);
