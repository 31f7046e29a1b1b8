/* past.h: what a host's sheet has beside it of its earlier ones: counters as they were a day before, and what was measured when
 * somebody accepted an audit. Whoever judges brings them (struct sheet: was, accepted); without them a counter is judged since
 * boot, and a measurement by other hosts alone. */
#pragma once
#include "core/audit/rule.h"

enum past_since {
    SINCE_LOOK, /* the sheet of the day before has a lesser value, of the same boot */
    SINCE_FALL, /* the value has fallen since then: a driver was loaded, it counts anew */
    SINCE_BOOT  /* the host has booted since then, or nothing older is known */
};
/* How often something was counted, and in which time. */
struct past_count {
    int64_t count;
    double seconds;
    enum past_since since;
    double up_s; /* since boot */
};
/* Of j's subject, as evidence. False: the verdict is there: unknown. */
bool past_count(struct judging *j, enum fact_id id, struct past_count *ret);
/* The same of many counters at once, which are of one time: since boot, if one of them has fallen. */
bool past_counts(struct judging *j, const enum fact_id *ids, uint32_t count, int64_t *ret_counts,
                 struct past_count *ret_time);
/* "in the last 24.0 hours", "in 3.1 days since boot": for people. */
const char *past_words(struct judging *j, const struct past_count *c);
