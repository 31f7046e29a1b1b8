/* paths.h: which source ports lead over the same path from one NIC to another, by what routers answered, and which port a new
 * lane takes so that it shares its path with as few other lanes as can be.
 *
 * Switches choose among equal paths by a hash over addresses and ports, so a port's path is luck, and the luck is another one
 * after each restart of a switch. But a packet whose TTL runs out is answered, and the answer names the router.
 *
 * Two ports have different paths if their packets met different routers at the first hop at which answers differ at all.
 * Later hops only choose among ports that are equally good so far, for two reasons. Packets that part later have shared a link
 * before. And a router with several links may answer from any one's address: the address then tells the way of the answer.
 *
 * An answer may be missing: routers limit how many they send. A missing answer proves nothing, so a port without one is no
 * better than one whose path half of the others share: a path that is dead gives no answers, either.
 *
 * Plain struct, no allocation. A port is named by its index. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"

struct paths {
    uint32_t count;
    uint16_t ports[PATH_PORTS_MAX];
    uint64_t routers[PATH_PORTS_MAX][PATH_HOPS_MAX]; /* 0: no answer */
    uint32_t taken[PATH_PORTS_MAX];                  /* how often it was chosen */
};

/* Ports that are 0 are left out. */
void paths_init(struct paths *p, const uint16_t *ports, uint32_t count);
/* The router that answered a packet of that port at that hop, from 0 on. */
void paths_on_answer(struct paths *p, uint32_t port, uint32_t hop, const uint8_t router[16]);
/* Some answers differ: the ports' paths are known to be several. */
bool paths_known(const struct paths *p);
/* The port for a new lane beside others, which have these ports; one that is named twice counts twice. -1: there is none.
 * Of equally good ones the one that was chosen least often, of these the first from `first` on. */
int paths_choose(struct paths *p, const uint16_t *others, uint32_t count, uint32_t first);
