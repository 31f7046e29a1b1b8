/* stamp_watch.h: does a NIC give the hardware stamps that it promised, and are they from its clock?
 *
 * Some NICs claim to stamp all packets and stamp only PTP packets. Another program may change what a NIC stamps at any time.
 * So stamps are counted, over windows of ten seconds. After the first window with more than half of the stamps missing in one
 * direction, the NIC is set up again. After the third such window in a row its stamps are no longer used. A stamp that the
 * NIC's clock can't have shown during the life of its packet counts as missing: the driver may name another NIC's clock. Pure:
 * the caller gives the time. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum stamp_verdict { STAMP_FINE, STAMP_SET_AGAIN, STAMP_GIVE_UP };
enum stamp_way { STAMP_RECEIVED, STAMP_SENT };
enum stamp_seen { STAMP_GIVEN, STAMP_MISSING, STAMP_WRONG };

struct stamp_watch { /* zeroed at the start */
    struct mono since;
    uint32_t packets[2], missing[2]; /* by enum stamp_way */
    /* wrong: of the missing ones in the last window; bad: such windows in a row */
    uint32_t wrong, bad;
    uint32_t wrong_now;
    bool read; /* the NIC's clock was read, width / 2 around `at` */
    struct mono at;
    struct nic_time nic;
    int64_t half_ns;
};

void stamp_watch_packet(struct stamp_watch *w, enum stamp_way way, enum stamp_seen seen);
/* Gives a reading of the NIC's clock between two readings of the host's clock. */
void stamp_watch_clock(struct stamp_watch *w, struct mono before, struct nic_time nic,
                       struct mono after);
/* Can the NIC's clock have shown this stamp between `age_ns` ago and now? True if the clock was never read. */
bool stamp_watch_plausible(const struct stamp_watch *w, struct mono now, int64_t age_ns,
                           struct nic_time stamp);
/* Called about once a second. */
enum stamp_verdict stamp_watch_judge(struct stamp_watch *w, struct mono now);
