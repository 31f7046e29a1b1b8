/* quiet.c: see quiet.h. */
#include "core/audit/quiet.h"

void quiet_look(struct quiet *q, struct mono now, uint64_t bytes, uint32_t speed_mbps,
                bool explained)
{
    const int64_t ns = mono_sub(now, q->at).ns;
    const double limit_bps =
        1e6 * (speed_mbps != 0 ? speed_mbps : QUIET_SPEED_MBPS) / QUIET_SHARE_INVERSE;

    if (q->looked && !explained && ns > 0 && bytes > q->bytes &&
        (double)(bytes - q->bytes) * 8e9 / (double)ns > limit_bps) {
        q->was_loud = true;
        q->loud = now;
    }
    q->looked = true;
    q->at = now;
    q->bytes = bytes;
}

bool quiet_is(const struct quiet *q, struct mono now)
{
    return !q->was_loud || mono_sub(now, q->loud).ns > QUIET_AFTER_NS;
}
