/* lane_world.h: a small world that treats a lane set as badly as possible: a sender and a ledger with lanes between them.
 *   - Lanes break in one direction or both. They deliver late, in part, damaged, in another order than other lanes, and after
 *     either end has given them up.
 *   - The ends find out at any time, in any order.
 *   - Memory of requests is used again at once. Comms are aborted and opened meanwhile.
 * No timer decides here: any verdict may come at any moment. So the results hold for any detectors.
 *
 * The checker is independent of the ledger: the content is a function of (comm, message, place). Each receive must be done
 * exactly once, with exactly that content. Memory that was given back must not change. A send is done only after its receive.
 * Once the faults end, everything must be done. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct lane_world_config {
    uint64_t seed;
    bool queue_pairs; /* lanes that write without being asked (RC), else byte streams (TCP) */
    bool mixed;       /* each connection is one or the other, at random */
    bool both;        /* two directions, each with everything, over the same lanes */
    uint32_t group_max;
    uint32_t steps;        /* steps of chaos, before the faults end */
    uint32_t fault_every;  /* about one fault in so many steps; 0: none */
    uint32_t damage_every; /* about one flipped bit in so many written pieces; 0: only as a fault */
};
struct lane_world_result {
    const char *wrong; /* NULL: nothing. Else the broken promise */
    uint64_t faults, receives, resent, binned, staged, eager_early, damaged, aborted;
};

void lane_world_run(const struct lane_world_config *config, struct lane_world_result *ret_result);
