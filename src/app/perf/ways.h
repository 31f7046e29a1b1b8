/* ways.h: what each way through the fabric carries between one NIC of each of two hosts: flows of UDP, each traced by packets of
 * small hop limits, then a train of packets at a time, timed by the kernel that receives it.
 *
 * A train is as long as its slowest link makes it. Where one way is slower than another of the same NIC, a packet that expires
 * behind a train tells up to which router the train was fast. Nobody's rights are enough for all of it. */
#pragma once
#include "app/perf/perf.h"

enum { WAYS_MOST = 12, WAYS_HOPS = 6 };

struct way_found {
    int hop_count, narrow;    /* narrow: the hop whose link was slow, from 1; 0: not known */
    double rate;              /* bytes a second of the best train; 0: none came whole */
    char hops[WAYS_HOPS][46]; /* addresses; "-": it does not answer */
};

/* When this pair looks where a way is narrow, by perf_now_ns, and for how long: other pairs' trains over the same trunk look like
 * a narrow one. Rank 0 has the first half of it. */
struct ways_turn {
    int64_t begin_ns, length_ns;
};

/* Rank 0 and rank 1 of a meeting; both do all of it. nic: the interface's name; leader: rank 0's address, by the plan. It takes
 * about run_ms and half a second, and until the turn is over where a way is slow.
 * -EBADMSG: rank 1 tells an address that can't be a NIC's; nothing was sent there. Nobody else tells rank 0 which one it has. */
MUST_CHECK int ways_test(struct meet *m, const char *nic, const char *leader, int run_ms,
                         const struct ways_turn *turn, struct way_found ways[WAYS_MOST],
                         int *ret_count);
