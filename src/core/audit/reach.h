/* reach.h: which hosts of a fleet try to reach each other over the front end. A seed draws a graph with four neighbours for each
 * host. So a host that nobody reaches, or that reaches nobody, differs from one bad pair, and the cost for each host doesn't grow
 * with the fleet. The graph is symmetric: each host is judged by as many others as it judges. */
#pragma once
#include <stdint.h>

enum { REACH_PEERS = 4 };

/* The peers of host `index` of `count`. Returns how many there are; of fewer than six hosts, all others. */
uint32_t reach_peers(uint64_t seed, uint32_t count, uint32_t index,
                     uint32_t ret_peers[static REACH_PEERS]);
