/* lane_load.h: the unacknowledged chunks and bytes on a lane.
 *
 * The sender counts them (sender_loads), because it has each chunk. The watch and the scheduler read that count: silence and
 * lateness are about unacknowledged data, and a second count might differ one day. */
#pragma once
#include <stdint.h>

struct lane_load {
    uint64_t bytes;
    uint32_t chunks;
};
