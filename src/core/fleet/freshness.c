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
    return age >= freshness_span(FRESHNESS_LATE, beat, report).ns   ? FRESHNESS_STALE
           : age >= freshness_span(FRESHNESS_LIVE, beat, report).ns ? FRESHNESS_LATE
                                                                    : FRESHNESS_LIVE;
}

struct span freshness_span(enum freshness freshness, struct span beat, struct span report)
{
    const int64_t beats = BEATS_MISSED * beat.ns, reports = REPORTS_MISSED * report.ns;
    return span_ns((freshness == FRESHNESS_LIVE || beats > reports ? beats : reports) + 1);
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
    if (facts->ports_down > 0 || facts->ill) {
        return HEALTH_BAD;
    }
    if (!facts->clock_synced) {
        return facts->clock_holdover ? HEALTH_WARN : HEALTH_UNKNOWN;
    }
    return facts->findings > 0 || facts->unplaced > 0 || facts->accused ||
                   facts->nics_unwatched > 0 || facts->freshness == FRESHNESS_LATE
               ? HEALTH_WARN
               : HEALTH_OK;
}

const char *health_word(enum health health)
{
    static const char *const words[] = {"unknown", "ok", "warn", "bad"};
    return (unsigned)health < ARRAY_COUNT(words) ? words[health] : "unknown";
}
