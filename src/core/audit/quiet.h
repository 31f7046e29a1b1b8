/* quiet.h: does somebody use this host's links, of whom no job's page tells? Tests of bandwidth would harm him.
 *
 * A link that carried more than a hundredth of its rate within the last minute is in use: jobs are silent while they save or
 * load. What the audit's own tests sent, and a job that has a page, is explained: it makes no link loud. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define QUIET_SHARE_INVERSE 100
#define QUIET_SPEED_MBPS    1000 /* of a link that doesn't tell its own */
#define QUIET_AFTER_NS      (60 * NS_PER_S)

struct quiet { /* all zero: never looked at */
    bool looked, was_loud;
    struct mono at, loud;
    uint64_t bytes;
};

/* bytes: of both directions since some moment; may restart. explained: for the whole time since the last look. */
void quiet_look(struct quiet *q, struct mono now, uint64_t bytes, uint32_t speed_mbps,
                bool explained);
bool quiet_is(const struct quiet *q, struct mono now);
