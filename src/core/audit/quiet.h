/* quiet.h: does somebody use this host's links without a job page? Tests of bandwidth would disturb that user.
 *
 * A link is in use if it carried more than a hundredth of its rate within the last minute: jobs are silent while they save or
 * load. The traffic of the audit's own tests, and of a job with a page, is explained: it doesn't make a link loud. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define QUIET_SHARE_INVERSE 100
#define QUIET_SPEED_MBPS    1000 /* for a link without a known speed */
#define QUIET_AFTER_NS      (60 * NS_PER_S)

struct quiet { /* all zero: no look yet */
    bool looked, was_loud;
    struct mono at, loud;
    uint64_t bytes;
};

/* bytes: of both directions since some moment; the count may restart. explained: for the whole time since the last look. */
void quiet_look(struct quiet *q, struct mono now, uint64_t bytes, uint32_t speed_mbps,
                bool explained);
bool quiet_is(const struct quiet *q, struct mono now);
