/* fleet_time.c: see the header. */
#include "core/audit/fleet_time.h"
#include "stats/sample.h"

void fleet_time_hear(struct fleet_words *t, int64_t host, int64_t fleet_ns, struct mono now)
{
    if (fleet_ns > 0) {
        t->words[(uint64_t)host % FLEET_TIME_WORDS] = (struct fleet_word){fleet_ns, now};
    }
}

bool fleet_time_now(const struct fleet_words *t, struct mono now, int64_t *ret_ns)
{
    int64_t sorted[FLEET_TIME_WORDS];
    size_t count = 0;
    for (int i = 0; i < FLEET_TIME_WORDS; i++) {
        const struct fleet_word *w = &t->words[i];
        const int64_t since = mono_sub(now, w->at).ns;
        if (w->fleet_ns > 0 && since >= 0 && since < FLEET_TIME_OLD_NS &&
            w->fleet_ns < INT64_MAX - FLEET_TIME_OLD_NS) {
            sample_insert_int(sorted, count++, w->fleet_ns + since);
        }
    }
    if (count == 0) {
        return false;
    }
    *ret_ns = sorted[count / 2];
    return true;
}
