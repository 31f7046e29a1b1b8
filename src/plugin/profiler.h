/* profiler.h: measures where a job's proxies wait: for the GPU, for a peer that hasn't posted, for the network.
 *
 * It is the library's other half: NCCL finds the profiler's tables in the network plugin's file. Only proxy steps are measured;
 * each costs two readings of the clock. The sums are for the process, and appear in the paragraph at its end. */
#pragma once
#include <stdint.h>

enum profiler_wait {
    PROFILER_WAIT_GPU, /* the own GPU hasn't filled or emptied the buffer */
    PROFILER_WAIT_PEER, /* the receiver has no room yet: a slow GPU at the other end, or a slow receiver */
    PROFILER_WAIT_NETWORK, /* given to the transport, not done */
    PROFILER_WAIT_COUNT
};

struct profiler_sums {
    uint64_t steps;
    uint64_t wait_ns[PROFILER_WAIT_COUNT];
};

void profiler_sums_get(struct profiler_sums *ret);
