/* freshness.h: does a host's last word still count?
 *
 * A host that is late is shown with what it said last, and marked; one that is stale is shown as
 * UNKNOWN, whatever it said: silence is never health. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum freshness {
    FRESHNESS_NEVER, /* not a word since it joined, or since the controller started */
    FRESHNESS_LIVE,
    FRESHNESS_LATE,  /* three beats missed */
    FRESHNESS_STALE, /* no rollup is current any more */
};

enum health { HEALTH_UNKNOWN, HEALTH_OK, HEALTH_WARN, HEALTH_BAD };

/* beat: how often it says something at least; report: how often a rollup. */
enum freshness freshness_of(struct mono now, struct mono heard, struct span beat,
                            struct span report);
/* How long after its last word a host is no longer that fresh; of LIVE and LATE. */
struct span freshness_span(enum freshness freshness, struct span beat, struct span report);
const char *freshness_word(enum freshness freshness);

struct health_facts {
    enum freshness freshness;
    bool reported;           /* a rollup has come since the controller started */
    bool clock_synced;       /* its clock: SYNCED */
    bool clock_holdover;     /* or still usable */
    uint32_t findings;       /* open ones about itself */
    uint32_t unplaced;       /* of paths, and nobody knows where the fault is */
    bool accused;            /* somebody suspects it, or a NIC of it */
    bool ill;                /* by its own word, or by that of two others */
    uint32_t ports_down;     /* DOWN or GONE */
    uint32_t nics_unwatched; /* up, but nobody probes from them; or nobody knows their link */
};
enum health health_of(const struct health_facts *facts);
const char *health_word(enum health health);
