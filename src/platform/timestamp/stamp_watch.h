/* stamp_watch.h: does a NIC that promised hardware stamps give them?
 *
 * Some claim to stamp all packets and stamp PTP's only; and another program may change what a NIC stamps at any time. So
 * stamps are counted, over windows of ten seconds: the first in which more than half are missing, in one direction, has
 * the NIC set up again; after the third in a row its stamps are given up. Pure: told the time. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum stamp_verdict { STAMP_FINE, STAMP_SET_AGAIN, STAMP_GIVE_UP };
enum stamp_way { STAMP_RECEIVED, STAMP_SENT };

struct stamp_watch { /* zeroed at first */
    struct mono since;
    uint32_t packets[2], missing[2]; /* by enum stamp_way */
    uint32_t bad;                    /* windows running */
};

void stamp_watch_packet(struct stamp_watch *w, enum stamp_way way, bool stamped);
/* Once a second or so. */
enum stamp_verdict stamp_watch_judge(struct stamp_watch *w, struct mono now);
