/* incast.h: all ranks but one send to that one at once, for a moment, so that a queue grows in front of it. Their packets say
 * that they understand congestion marks (ECN, RFC 3168), and what arrives tells whether a switch set some.
 *
 * Where the senders together are no faster than the receiver's link no queue grows, and nothing is known: `rate` tells. What
 * is lost tells nothing: a receiver without a processor loses packets, too. */
#pragma once
#include "app/perf/perf.h"

struct incast_found {
    uint64_t sent, came, marked;
    double
        rate; /* bytes a second that arrived, headers of Ethernet included; 0: fewer than two packets */
};

/* All ranks do it: rank 0 receives. nic: the own interface's name; receiver: rank 0's address, by the plan, for no rank may send
 * the others elsewhere; dscp: that packets carry. It takes run_ms and a tenth of a second. All ranks get what came of it. */
MUST_CHECK int incast_test(struct meet *m, const char *nic, const char *receiver, int run_ms,
                           int dscp, struct incast_found *ret);
