/* hops.h: hop lists: the routers that a source port's packets pass.
 *
 * A list has MESH_HOP_MAX places, indexed by hop limit - 1. A place holds a router's number in m->routers + 1; 0: unknown. Ports
 * are counted from config.port_base here. */
#pragma once
#include "core/mesh/internal.h"

/* The signature of a way, from its routers' addresses; 0: nothing is known of it. */
uint64_t hops_signature(const struct mesh *m, const uint16_t *hops);
uint8_t hops_length(const uint16_t *hops);                /* the last known place + 1 */
bool hops_complete(const uint16_t *hops, uint8_t length); /* all of these are known */
/* The number of routers before the peer, at least `least`: as the peer reported, or one more while it did not. */
uint8_t hops_before_peer(const struct discovery *d, uint8_t least);
/* True if they are the same router, by number and place if they have names: a router answers with several addresses. */
bool hops_same_router(const struct mesh *m, uint32_t a, uint32_t b);
/* Ports below port_end with distinct, complete lists, at most `limit`. Returns their number. */
uint32_t hops_distinct_ports(const struct discovery *d, uint32_t port_end, uint8_t *ret_ports,
                             uint32_t limit);
/* The number of distinct ways of this host's edges between these two end routers, as far as they were searched. */
uint32_t hops_ways_between(const struct mesh *m, const uint16_t *hops, uint8_t length);
/* Sorts by spine, then by address: both ends of an edge order their paths alike. */
void hops_sort_ports(const struct mesh *m, const struct discovery *d, uint8_t *ports,
                     uint32_t count);
