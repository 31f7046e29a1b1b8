/* power_world.h: a controller writes, and its power is cut again and again. Everything that was acknowledged must be there. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct power_world_result {
    uint64_t cuts, in_doubt,
        in_doubt_kept; /* commits under way when the power went, and those that are there */
    uint64_t commits, checkpoints, seals, full; /* full: commits refused for want of room */
    uint64_t given_back;                        /* pages */
    char words[256];                            /* of the first error; empty: none */
};

/* One file lives through `cuts` power cuts; another begins after each 50. lies: the disk reports "synced" without a sync. */
void power_world_run(uint64_t seed, uint64_t cuts, bool lies, struct power_world_result *ret);
