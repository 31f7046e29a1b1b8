/* link.h: the events of one NIC's port: up, down, flaps, speed, errors. No flap is missed, because the kernel's carrier-down
 * count is used: several flaps between two events count, too, and a late event loses nothing.
 *
 * Messages are damped: a flapping port is reported once, then at growing intervals. Counting is never damped. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "base/time.h"
#include "core/finding/finding.h"

#define LINK_FLAP_LIMIT_DEFAULT 8 /* per hour */

/* The whole state of a port as a driver reads it, after each change and at least every few seconds. */
struct link_facts {
    struct mono at;  /* the time of the read, or the kernel's time of the event */
    uint8_t present; /* 0: the device is gone; the other fields are ignored */
    uint8_t carrier;
    uint8_t width; /* lanes, 0 unknown */
    uint8_t reserved;
    /* the kernel's count since the device was created; may restart at 0 with the device */
    uint32_t carrier_down_count;
    uint32_t carrier_up_count;
    uint32_t speed_mbps; /* 0 unknown */
    uint64_t rx_errors, tx_errors, rx_drops, tx_drops;
};

enum link_state { LINK_UNKNOWN, LINK_UP, LINK_DOWN, LINK_GONE };

struct link_report {
    uint32_t state; /* enum link_state */
    uint32_t speed_mbps;
    uint8_t width, flapping, reserved[6];
    struct mono since; /* when this state began */
    uint64_t downs;    /* number since the agent started */
    uint64_t ups;
    uint32_t flaps_minute, flaps_hour, flaps_day; /* within sliding windows */
    uint32_t speed_changes;
    uint64_t rx_errors, tx_errors, rx_drops, tx_drops; /* since the agent started */
};

/* What a change of a port means for people; damped. */
enum link_message_kind {
    LINK_MESSAGE_DOWN,
    LINK_MESSAGE_UP,
    LINK_MESSAGE_FLAPPING,
    LINK_MESSAGE_CALM,
    LINK_MESSAGE_SPEED,
    LINK_MESSAGE_ERRORS,
    LINK_MESSAGE_ERRORS_END,
    LINK_MESSAGE_GONE,
    LINK_MESSAGE_BACK
};
struct link_message {
    uint32_t kind;
    uint32_t reserved;
    struct mono since;
    int64_t numbers[4]; /* by enum finding_kind */
};

struct link;
/* NULL: out of memory (about 30 KiB: the times of the last LINK_FLAP_MEMORY flaps). flap_limit 0: the default. */
struct link *link_new(uint32_t flap_limit, struct mono now);
void link_free(struct link *l);                       /* NULL is allowed */
void link_limit(struct link *l, uint32_t flap_limit); /* sets link_new's limit from now on */
void link_on_facts(struct link *l, struct mono now, const struct link_facts *facts);
void link_tick(struct link *l, struct mono now);
bool link_next_message(struct link *l, struct link_message *ret_message);
struct mono link_deadline(const struct link *l);
void link_report_get(const struct link *l, struct mono now, struct link_report *ret_report);
