/* link.h: what happens to one NIC's port: up, down, flaps, speed, errors. None missed: a flap is counted by the kernel's
 * carrier-down count, so several between two events count too, and an event that comes late loses nothing.
 *
 * Messages are damped (a flapping port says "flapping" once, then updates at growing intervals); counting never is. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/id.h"
#include "base/time.h"
#include "core/finding/finding.h"

#define LINK_FLAP_LIMIT_DEFAULT 8 /* per hour */

/* The state of a port as a driver reads it, whole, whenever anything changed and at least every few seconds. */
struct link_facts {
    struct mono at; /* when read, or the kernel's time of the event */
    uint8_t present; /* 0: the device is gone; the rest is then ignored */
    uint8_t carrier;
    uint8_t width; /* lanes, 0 unknown */
    uint8_t reserved;
    uint32_t carrier_down_count; /* the kernel's, since the device was made; may restart at 0 with the device */
    uint32_t carrier_up_count;
    uint32_t speed_mbps; /* 0 unknown */
    uint64_t rx_errors, tx_errors, rx_drops, tx_drops;
};

enum link_state { LINK_UNKNOWN, LINK_UP, LINK_DOWN, LINK_GONE };

struct link_report {
    uint32_t state; /* enum link_state */
    uint32_t speed_mbps;
    uint8_t width, flapping, reserved[6];
    struct mono since; /* of this state */
    uint64_t downs;    /* counted since the agent started */
    uint64_t ups;
    uint32_t flaps_minute, flaps_hour, flaps_day; /* sliding */
    uint32_t speed_changes;
    uint64_t rx_errors, tx_errors, rx_drops, tx_drops; /* since the agent started */
};
