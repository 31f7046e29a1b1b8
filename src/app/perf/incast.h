/* incast.h: all ranks but one send to that one at once, for a moment, so that a queue grows at the receiver's link. Their packets
 * declare support for congestion marks (ECN, RFC 3168). The packets that arrive show whether a switch set marks.
 *
 * If all senders together are no faster than the receiver's link, no queue grows, and the result is unknown: `rate` shows that.
 * Lost packets prove nothing: a receiver without a processor loses packets, too. */
#pragma once
#include "app/perf/perf.h"

struct incast_found {
    uint64_t sent, came, marked;
    double rate; /* bytes a second that arrived, with Ethernet headers; 0: fewer than two packets */
};

/* All ranks call it; rank 0 receives. nic: this rank's interface; receiver: rank 0's address from the plan, so that no rank can
 * direct the others elsewhere; dscp: of the packets. It takes run_ms and a tenth of a second. All ranks get the same result. */
MUST_CHECK int incast_test(struct meet *m, const char *nic, const char *receiver, int run_ms,
                           int dscp, struct incast_found *ret);
