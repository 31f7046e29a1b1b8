/* notice.h: one thing to tell, and how each kind of receiver wants to hear it. docs/alerts.md has the formats. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "core/alert/alert.h"
#include "service/alert/file.h"

/* Owns its texts: it waits in queues. */
struct alert_notice {
    uint32_t event; /* enum alert_event */
    uint32_t severity;
    bool page;
    uint64_t incident, merged_into;
    uint32_t sequence;
    int64_t said_utc_ns, since_utc_ns, since_fleet_ns,
        resolved_utc_ns; /* FINDING_NO_TIME: not known; 0: not over */
    uint32_t alerts, hosts, nics;
    char key[64]; /* the same for every attempt, of no other notice: receivers drop what they had */
    char cause[ALERT_CALLED_MAX], host[ALERT_ELEMENT_MAX]; /* host: empty: of several, or none */
    uint32_t element_kind, direction;                      /* of the cause */
    bool unknown;                                          /* the cause tells what it may be */
    char text[ALERT_TEXT_MAX], acknowledged_by[ALERT_ELEMENT_MAX];
    char link[384]; /* empty: none */
};

/* Of an action; the offsets turn the engine's time into UTC and fleet time. */
void alert_notice_init(struct alert_notice *n, const struct alert_action *action, const char *link,
                       struct mono now, int64_t utc_offset_ns, int64_t fleet_offset_ns);

#define ALERT_PAYLOAD_MAX 16384
/* The body for that kind of receiver; -ENOMEM, -ENOSPC. The caller frees. */
MUST_CHECK int alert_payload(const struct alert_receiver *receiver, const struct alert_notice *n,
                             char **ret_body, size_t *ret_size);
