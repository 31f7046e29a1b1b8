/* lane_world.h: a small world that does its worst to a lane set: a sender and a ledger with lanes between
 * them that break in one direction or both, deliver late, half, damaged, out of order to each other, after
 * either end has given them up; ends that learn of it at any time, in any order; requests whose memory is
 * used again at once; comms aborted and opened meanwhile. No timer decides here: any verdict may come at
 * any moment, so what holds here holds whatever the detectors say.
 *
 * The checker knows nothing of the ledger: what was sent is a function of (comm, message, place); each
 * receive must be done exactly once with exactly that; memory given back must not change any more; a send
 * is done only after its receive; and once the faults end, everything must be. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct lane_world_config {
    uint64_t seed;
    bool queue_pairs; /* lanes that write unasked (RC), else byte streams (TCP) */
    bool mixed;       /* each connection is one or the other, by chance */
    bool both;        /* directions, each with all of it, over the same lanes */
    uint32_t group_max;
    uint32_t steps;       /* of chaos, before the faults end */
    uint32_t fault_every; /* a fault about each so many steps; 0: none */
    uint32_t
        damage_every; /* a flipped bit in about each so many pieces written; 0: none but as a fault */
};
struct lane_world_result {
    const char *wrong; /* NULL: nothing. Else which promise was broken */
    uint64_t faults, receives, resent, binned, staged, eager_early, damaged, aborted;
};

void lane_world_run(const struct lane_world_config *config, struct lane_world_result *ret_result);
