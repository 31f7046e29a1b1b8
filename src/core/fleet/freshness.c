/* freshness.c: silence is never health. */
#include "core/fleet/freshness.h"

#include "base/bug.h"

enum { BEATS_MISSED = 3, REPORTS_MISSED = 3 };

enum freshness freshness_of(struct mono now, struct mono heard, struct span beat,
                            struct span report)
{
    if (heard.ns == MONO_NEVER.ns) {
        return FRESHNESS_NEVER;
    }
    const int64_t age = mono_sub(now, heard).ns;
    if (age > REPORTS_MISSED * report.ns && age > BEATS_MISSED * beat.ns) {
        return FRESHNESS_STALE;
    }
    return age > BEATS_MISSED * beat.ns ? FRESHNESS_LATE : FRESHNESS_LIVE;
}

const char *freshness_word(enum freshness freshness)
{
    static const char *const words[] = {"never", "live", "late", "stale"};
    return (unsigned)freshness < ARRAY_COUNT(words) ? words[freshness] : "never";
}

enum health health_of(const struct health_facts *facts)
{
    if (!facts->reported || facts->freshness == FRESHNESS_STALE ||
        facts->freshness == FRESHNESS_NEVER) {
        return HEALTH_UNKNOWN;
    }
    if (facts->ports_down > 0 || facts->paths_dead > 0) {
        return HEALTH_BAD;
    }
    if (!facts->clock_synced) {
        return facts->clock_holdover ? HEALTH_WARN : HEALTH_UNKNOWN;
    }
    return facts->findings > 0 || facts->nics_unwatched > 0 || facts->freshness == FRESHNESS_LATE
               ? HEALTH_WARN
               : HEALTH_OK;
}

const char *health_word(enum health health)
{
    static const char *const words[] = {"unknown", "ok", "warn", "bad"};
    return (unsigned)health < ARRAY_COUNT(words) ? words[health] : "unknown";
}
