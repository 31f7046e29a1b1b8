/* job_draw.c: draws worlds of simulated jobs from a seed. job_slow.c and job_gap.c draw their own. */
#include "sim/job_private.h"

/* -- late receivers --------------------------------------------------------------------------- */

void job_world_late(struct job_world_config *ret_config, uint64_t seed)
{
    struct prng prng, *p = &prng;

    prng_init(p, hash_u64(seed, 78));
    const bool faults = prng_below(p, 4) == 0;
    /* a lost SYN is sent again after a second */
    const int64_t patience = (faults ? 4 : 1) * NS_PER_S;
    *ret_config = (struct job_world_config){
        .seed = seed,
        .hosts = 2 + (uint32_t)prng_below(p, 2),
        .nics = 1 + (uint32_t)prng_below(p, 2),
        .leaves = 2,
        .spines = 2,
        .host_bps = 10000000000LL,
        .trunk_bps = 10000000000LL,
        .delay_ns = 5 * NS_PER_US,
        .pattern = JOB_INCAST,
        .comms = 1 + (uint32_t)prng_below(p, 4),
        .lanes = 1 + (uint32_t)prng_below(p, 4),
        .old_every = prng_below(p, 4) == 0 ? 2 : 0,
        .checksum = prng_below(p, 2) == 0,
        .patience_ns = patience,
        .messages = 1 + (uint32_t)prng_below(p, 32),
        .size_max = prng_below(p, 2) == 0 ? 8 : 8192,
        .whole = prng_below(p, 2) == 0,
        .depth = 1 + (uint32_t)prng_below(p, 16),
        .poll_ns = 20 * NS_PER_MS,
        .buffer_log2 = 15 + (uint32_t)prng_below(p, 2) * 2,
        .fault_gap_ns = faults ? 100 * NS_PER_MS : 0,
        .fault_ns = 20 * NS_PER_MS,
        .fault_mask = 1u << JOB_FAULT_RESET | 1u << JOB_FAULT_LOSS | 1u << JOB_FAULT_TRUNK_HOLE |
                      1u << JOB_FAULT_STRANGER,
        .run_ns = 3 * patience,
        .rto_min_ns = 5 * NS_PER_MS,
        .late_ns = patience + patience / 2 + (int64_t)prng_below(p, NS_PER_S),
        .freeze_ns = prng_below(p, 2) == 0 ? 0 : patience + patience / 4,
        .drowsy_ns = prng_below(p, 2) == 0 ? 0 : patience / 2,
    };
}

/* -- random worlds ---------------------------------------------------------------------------- */

void job_world_chance(struct job_world_config *ret_config, uint64_t seed)
{
    struct prng prng, *p = &prng;
    const uint64_t chaos = (1ull << JOB_FAULT_KILL) - 1;
    static const int64_t gaps[] = {1, 2, 5, 10, 20}; /* ms */

    prng_init(p, hash_u64(seed, 77));
    *ret_config = (struct job_world_config){
        .seed = seed,
        .hosts = 2 + (uint32_t)prng_below(p, 3),
        .nics = 1 + (uint32_t)prng_below(p, 4),
        .leaves = 2,
        .spines = 2 + (uint32_t)prng_below(p, 3),
        .host_bps = 2000000000LL << prng_below(p, 4),
        .trunk_bps = 2000000000LL << prng_below(p, 3),
        .delay_ns = NS_PER_US << prng_below(p, 6),
        .pattern = prng_below(p, 2) == 0 ? JOB_PAIRS : JOB_RING,
        .comms = 1 + (uint32_t)prng_below(p, 3),
        .lanes = 1 + (uint32_t)prng_below(p, 4),
        .standbys = (uint32_t)prng_below(p, 3),
        .failover_only = prng_below(p, 4) == 0,
        .old_every = prng_below(p, 3) == 0 ? 2 : 0,
        .fenced = seed % 4 == 3,
        .large_early = seed % 4 == 1,
        .checksum = true,
        .patience_ns = 20 * NS_PER_S,
        .messages = 1 + (uint32_t)prng_below(p, 200),
        .size_max = 1u << (12 + prng_below(p, 8)),
        .depth = 1 + (uint32_t)prng_below(p, 8),
        .gap_ns = 200 * NS_PER_US << prng_below(p, 7),
        .poll_ns = prng_below(p, 4) == 0 ? 20 * NS_PER_MS : 100 * NS_PER_US << prng_below(p, 4),
        .fault_gap_ns = gaps[prng_below(p, 5)] * NS_PER_MS,
        .fault_ns = 10 * NS_PER_MS << prng_below(p, 7),
        .fault_mask = prng_below(p, 3) == 0 ? chaos : chaos & prng_u64(p),
        .run_ns = 4 * NS_PER_S,
        .rto_min_ns = prng_below(p, 2) == 0 ? 5 * NS_PER_MS : 200 * NS_PER_MS,
        .carrier_late_ns = prng_below(p, 2) == 0 ? 0 : NS_PER_S,
        .carrier_unknown = prng_below(p, 8) == 0,
        .starved = prng_below(p, 6) == 0,
        .skewed = prng_below(p, 2) == 0,
    };
    ret_config->fault_mask = ret_config->fault_mask == 0 ? chaos : ret_config->fault_mask;
    if (prng_below(p, 8) == 0) {
        ret_config->last = prng_below(p, 2) == 0 ? JOB_FAULT_KILL : JOB_FAULT_PART;
        ret_config->last_ns = 3 * NS_PER_S;
    }
}
