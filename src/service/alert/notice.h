/* notice.h: one notice, and its format for each kind of receiver. docs/alerts.md has the formats. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "core/alert/alert.h"
#include "service/alert/file.h"

/* It owns its texts, because it waits in queues. */
struct alert_notice {
    uint32_t event; /* enum alert_event */
    uint32_t severity;
    bool page;
    uint64_t incident, merged_into;
    uint32_t sequence;
    int64_t said_utc_ns, since_utc_ns, since_fleet_ns,
        resolved_utc_ns; /* FINDING_NO_TIME: not known; 0: not over */
    uint32_t alerts, hosts, nics;
    char key[64]; /* the same for every attempt, unique to a notice: receivers drop copies by it */
    char cause[ALERT_CALLED_MAX], host[ALERT_ELEMENT_MAX]; /* host: empty: several hosts, or none */
    uint32_t element_kind, direction;                      /* of the cause */
    /* the cause lists the elements that it may be */
    bool unknown;
    char text[ALERT_TEXT_MAX], acknowledged_by[ALERT_ELEMENT_MAX];
    char link[384]; /* empty: none */
};

/* Makes a notice of an action. The offsets turn the engine's time into UTC and fleet time. */
void alert_notice_init(struct alert_notice *n, const struct alert_action *action, const char *link,
                       struct mono now, int64_t utc_offset_ns, int64_t fleet_offset_ns);

#define ALERT_PAYLOAD_MAX 16384
/* The body for that kind of receiver. -ENOMEM, -ENOSPC. The caller frees it. */
MUST_CHECK int alert_payload(const struct alert_receiver *receiver, const struct alert_notice *n,
                             char **ret_body, size_t *ret_size);
