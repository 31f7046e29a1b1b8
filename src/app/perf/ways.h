/* ways.h: the rate of each path through the fabric between one NIC of each of two hosts. Each UDP flow is traced by packets of
 * small hop limits. Then trains of packets are sent, one at a time. The receiving kernel stamps their packets.
 *
 * The slowest link of a path stretches a train. If one path is slower than another path of the same NIC, packets that expire
 * behind a train find the slow link: the router before it still got the train fast. It works without privileges. */
#pragma once
#include "app/perf/perf.h"

enum { WAYS_MOST = 12, WAYS_HOPS = 6 };

struct way_found {
    int hop_count, narrow;    /* narrow: the hop with the slow link, from 1; 0: not known */
    double rate;              /* bytes a second of the best train; 0: no train arrived whole */
    char hops[WAYS_HOPS][46]; /* addresses; "-": the hop does not answer */
};

/* The time in which this pair looks for the narrow hop, by perf_now_ns(). Pairs take turns, because another pair's trains over
 * the same trunk would look like a narrow link. Rank 0 has the first half. */
struct ways_turn {
    int64_t begin_ns, length_ns;
};

/* Trains to find a narrow link by: packets, and how long the way is busy with them; never longer than anybody waits for an
 * answer, as the rate is the other rank's word. */
struct ways_look {
    int packets;
    int64_t busy_ns;
};
/* Of a way of so many hops that carries so many bytes a second, in so long. */
struct ways_look ways_look_of(int hops, double rate, int64_t span_ns);

/* Ranks 0 and 1 of a meeting both call it. nic: the interface's name; leader: rank 0's address, from the plan. It takes about
 * run_ms plus half a second; if a path is slow, it takes until the turn is over. -EBADMSG: rank 1 reported an address that no NIC
 * can have; nothing was sent there. Rank 0 has no other source for that address. */
MUST_CHECK int ways_test(struct meet *m, const char *nic, const char *leader, int run_ms,
                         const struct ways_turn *turn, struct way_found ways[WAYS_MOST],
                         int *ret_count);
