/* lane_load.h: what is on a lane and not acknowledged yet.
 *
 * The sender counts it (sender_loads), for it knows each chunk. The watch and the scheduler read it there: silence and lateness
 * are of what is on a lane, and a second count would be wrong some day. */
#pragma once
#include <stdint.h>

struct lane_load {
    uint64_t bytes;
    uint32_t chunks;
};
