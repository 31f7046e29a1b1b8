/* past.h: earlier sheets beside a host's sheet: counters as they were a day before, and the measurements of the audit that a
 * person accepted. The caller provides them (struct sheet: was, accepted). Without them a counter is judged since boot, and a
 * measurement only by other hosts. */
#pragma once
#include "core/audit/rule.h"

enum past_since {
    SINCE_LOOK, /* the sheet of the day before has a smaller value, of the same boot */
    SINCE_FALL, /* the value has fallen since then: a driver was loaded, and counts from 0 */
    SINCE_BOOT  /* the host has booted since then, or no older sheet is known */
};
/* How much was counted, and in which time. */
struct past_count {
    int64_t count;
    double seconds;
    enum past_since since;
    double up_s; /* since boot */
};
/* The counter of j's subject, as evidence. False: it is unknown, and the verdict is set. */
bool past_count(struct judging *j, enum fact_id id, struct past_count *ret);
/* The same for many counters over one time: since boot, if one of them has fallen. */
bool past_counts(struct judging *j, const enum fact_id *ids, uint32_t count, int64_t *ret_counts,
                 struct past_count *ret_time);
/* "in the last 24.0 hours", "in 3.1 days since boot": text for people. */
const char *past_words(struct judging *j, const struct past_count *c);
