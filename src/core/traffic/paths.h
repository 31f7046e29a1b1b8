/* paths.h: which source ports lead over the same path from one NIC to another, by the routers' answers; and which port a new lane
 * should take so that it shares its path with as few other lanes as possible.
 *
 * Switches choose among equal paths by a hash over addresses and ports, so a port's path is random, and changes when a switch
 * restarts. But a packet with an expired TTL is answered, and the answer names the router.
 *
 * Two ports have different paths if their packets met different routers at the first hop at which answers differ at all. Later
 * hops only choose among ports that are equally good so far, for two reasons. Packets that separate later have shared a link
 * before. And a router with several links may answer from any of its addresses: then the address shows the way of the answer.
 *
 * An answer may be missing, because routers limit their number. A missing answer proves nothing, so a port without one is no
 * better than a port whose path half of the others share: a dead path gives no answers, either.
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
    uint32_t taken[PATH_PORTS_MAX];                  /* number of times that it was chosen */
};

/* Ports that are 0 are left out. */
void paths_init(struct paths *p, const uint16_t *ports, uint32_t count);
/* The router that answered a packet of that port at that hop, from 0 on. */
void paths_on_answer(struct paths *p, uint32_t port, uint32_t hop, const uint8_t router[16]);
/* True if some answers differ: the ports are known to have several paths. */
bool paths_known(const struct paths *p);
/* The port for a new lane beside others with these ports; a port that is named twice counts twice. -1: there is none. Among
 * equally good ones it is the one that was chosen least often, and of these the first from `first` on. */
int paths_choose(struct paths *p, const uint16_t *others, uint32_t count, uint32_t first);
