/* freshness.h: decides whether a host's last report still counts.
 *
 * A late host is shown with its last report, and marked. A stale host is shown as UNKNOWN, whatever it reported: silence is never
 * health. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum freshness {
    FRESHNESS_NEVER, /* no message since it joined, or since the controller started */
    FRESHNESS_LIVE,
    FRESHNESS_LATE,  /* three beats missed */
    FRESHNESS_STALE, /* no rollup is current any more */
};

enum health { HEALTH_UNKNOWN, HEALTH_OK, HEALTH_WARN, HEALTH_BAD };

/* beat: the longest interval of its messages; report: of its rollups. */
enum freshness freshness_of(struct mono now, struct mono heard, struct span beat,
                            struct span report);
/* The time after the last message at which a host is no longer that fresh; for LIVE and LATE. */
struct span freshness_span(enum freshness freshness, struct span beat, struct span report);
const char *freshness_word(enum freshness freshness);

struct health_facts {
    enum freshness freshness;
    bool reported;           /* a rollup arrived since the controller started */
    bool clock_synced;       /* its clock: SYNCED */
    bool clock_holdover;     /* or still usable */
    uint32_t findings;       /* open ones about the host itself */
    uint32_t unplaced;       /* about paths, with an unknown place of the fault */
    bool accused;            /* another host suspects it, or a NIC of it */
    bool ill;                /* by its own report, or by those of two others */
    uint32_t ports_down;     /* DOWN or GONE */
    uint32_t nics_unwatched; /* NICs that are up, but can't send probes, or whose link is unknown */
};
enum health health_of(const struct health_facts *facts);
const char *health_word(enum health health);
