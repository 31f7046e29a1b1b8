/* reach.h: which hosts of a fleet try to reach each other over the front end. A graph of four neighbours a host, drawn by a
 * seed: a host that nobody reaches, or that reaches nobody, is told from one bad pair, at a cost that does not grow with the
 * fleet. Who tries whom is the same either way round, so each host is judged by as many others as it judges. */
#pragma once
#include <stdint.h>

enum { REACH_PEERS = 4 };

/* Of host `index` of `count`. Returns how many; all of fewer than six. */
uint32_t reach_peers(uint64_t seed, uint32_t count, uint32_t index,
                     uint32_t ret_peers[static REACH_PEERS]);
