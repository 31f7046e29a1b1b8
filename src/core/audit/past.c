/* past.c: see past.h. */
#include "core/audit/past.h"

/* The fact of a day before, of the same boot; NULL: it is not known. */
static const struct fact *before(const struct judging *j, enum fact_id id, double up_s,
                                 double *ret_seconds)
{
    const struct sheet *was = j->sheet->was;
    const struct fact *f = was != NULL ? sheet_find(was, id, j->subject) : NULL;

    *ret_seconds = was != NULL ? (double)(j->sheet->at_utc_ns - was->at_utc_ns) * 1e-9 : 0;
    return f != NULL && f->state == FACT_VALUE && *ret_seconds > 0 && up_s > *ret_seconds ? f
                                                                                          : NULL;
}

bool past_counts(struct judging *j, const enum fact_id *ids, uint32_t count, int64_t *ret_counts,
                 struct past_count *ret_time)
{
    const struct fact *was[CHECK_FACTS_MAX];
    int64_t values[CHECK_FACTS_MAX] = {0}, then[CHECK_FACTS_MAX] = {0}, up;
    double seconds = 0;
    enum past_since since = SINCE_LOOK;

    for (uint32_t i = 0; i < count; i++) {
        if (!judge_number(j, ids[i], j->subject, &values[i])) {
            return false;
        }
    }
    if (!judge_number(j, FACT_OS_UPTIME, "", &up)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        was[i] = before(j, ids[i], (double)up, &seconds);
        since = was[i] == NULL || !fact_number(was[i]->value, &then[i]) ? SINCE_BOOT
                : since == SINCE_LOOK && then[i] > values[i]            ? SINCE_FALL
                                                                        : since;
    }
    for (uint32_t i = 0; i < count; i++) {
        ret_counts[i] = since == SINCE_LOOK ? values[i] - then[i] : values[i];
        if (since != SINCE_BOOT) {
            judge_rest(j, was[i]);
        }
    }
    *ret_time = (struct past_count){.count = ret_counts[0],
                                    .seconds = since == SINCE_BOOT ? (double)up : seconds,
                                    .since = since,
                                    .up_s = (double)up};
    return true;
}

bool past_count(struct judging *j, enum fact_id id, struct past_count *ret)
{
    int64_t count;

    return past_counts(j, &id, 1, &count, ret);
}

const char *past_words(struct judging *j, const struct past_count *c)
{
    const double hours = c->seconds / 3600;
    const bool days = hours >= 48;

    return judge_format(j, "in %s%.1f %s%s", c->since == SINCE_LOOK ? "the last " : "",
                        days ? hours / 24 : hours, days ? "days" : "hours",
                        c->since == SINCE_BOOT   ? " since boot"
                        : c->since == SINCE_FALL ? ", counted anew meanwhile"
                                                 : "");
}
