/* lanes_soak.c: plays the lanes' world (test/unit/failover/lane_world.h) with the given number of faults. It prints what
 * happened. If a promise is broken, it prints the seed and exits with 1. `lanes_soak [FAULTS [FIRST_SEED]]` */
#include <stdio.h>
#include <stdlib.h>

#include "lane_world.h"

int main(int argc, char **argv)
{
    const uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, worlds = 0;
    struct lane_world_result sum = {0}, one;

    for (; sum.faults + sum.damaged < wanted; seed++, worlds++) {
        const struct lane_world_config config = {.seed = seed,
                                                 .queue_pairs = seed % 4 == 3,
                                                 .mixed = seed % 4 == 1,
                                                 .both = seed % 16 < 2,
                                                 .group_max = seed % 3 == 2 ? 4 : 1,
                                                 .steps = 3000,
                                                 .fault_every = 10 + (uint32_t)(seed % 5) * 10,
                                                 .damage_every = seed % 2 ? 50 : 0};
        lane_world_run(&config, &one);
        if (one.wrong != NULL) {
            printf("seed %llu: %s\n", (unsigned long long)seed, one.wrong);
            return 1;
        }
        sum.faults += one.faults;
        sum.damaged += one.damaged;
        sum.receives += one.receives;
        sum.resent += one.resent;
        sum.binned += one.binned;
        sum.staged += one.staged;
        sum.eager_early += one.eager_early;
        sum.aborted += one.aborted;
    }
    printf("%llu worlds, %llu faults and %llu damaged chunks: %llu receives, all exact; %llu "
           "chunks resent, "
           "%llu binned, %llu staged, %llu eager before their receive, %llu comms aborted\n",
           (unsigned long long)worlds, (unsigned long long)sum.faults,
           (unsigned long long)sum.damaged, (unsigned long long)sum.receives,
           (unsigned long long)sum.resent, (unsigned long long)sum.binned,
           (unsigned long long)sum.staged, (unsigned long long)sum.eager_early,
           (unsigned long long)sum.aborted);
    return 0;
}
