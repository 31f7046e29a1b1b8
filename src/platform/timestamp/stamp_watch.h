/* stamp_watch.h: does a NIC that promised hardware stamps give them, and are they of its clock?
 *
 * Some claim to stamp all packets and stamp PTP's only; and another program may change what a NIC stamps at any time. So
 * stamps are counted, over windows of ten seconds: the first in which more than half are missing, in one direction, has
 * the NIC set up again; after the third in a row its stamps are given up. A stamp that the NIC's clock can't have shown in
 * the life of its packet is none: the driver may name another NIC's clock. Pure: told the time. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum stamp_verdict { STAMP_FINE, STAMP_SET_AGAIN, STAMP_GIVE_UP };
enum stamp_way { STAMP_RECEIVED, STAMP_SENT };
enum stamp_seen { STAMP_GIVEN, STAMP_MISSING, STAMP_WRONG };

struct stamp_watch { /* zeroed at first */
    struct mono since;
    uint32_t packets[2], missing[2]; /* by enum stamp_way */
    uint32_t wrong, bad;             /* of those missing, in the last window; windows running */
    uint32_t wrong_now;
    bool read; /* the NIC's clock was, width / 2 around `at` */
    struct mono at;
    struct nic_time nic;
    int64_t half_ns;
};

void stamp_watch_packet(struct stamp_watch *w, enum stamp_way way, enum stamp_seen seen);
/* The NIC's clock as read between two readings of the host's. */
void stamp_watch_clock(struct stamp_watch *w, struct mono before, struct nic_time nic,
                       struct mono after);
/* Can the NIC's clock have shown it between `age_ns` ago and now? True while it was never read. */
bool stamp_watch_plausible(const struct stamp_watch *w, struct mono now, int64_t age_ns,
                           struct nic_time stamp);
/* Once a second or so. */
enum stamp_verdict stamp_watch_judge(struct stamp_watch *w, struct mono now);
