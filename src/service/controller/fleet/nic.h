/* nic.h: a NIC of a member, and the paths that arrive at it. */
#pragma once
#include <foliot.pb-c.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "core/fleet/delay_code.h"

struct fleet_host;

struct fleet_path { /* a path that arrives at a NIC of the host */
    uint32_t local, peer;
    uint64_t signature;
    uint16_t port;
    uint8_t state;    /* PathState */
    int32_t p50, p99; /* delay codes */
    uint32_t loss_ppm;
};

/* Takes a path from a report. A path that is not heard has no delay and no loss. On a dead path no packet arrives: it has no
 * delay, and all packets are lost. Older agents report the last delay for ever. */
static inline void fleet_path_measured(struct fleet_path *p, uint32_t state, int32_t p50,
                                       int32_t p99, uint32_t loss_ppm)
{
    const bool dead = state == FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD;
    const bool heard = state == FOLIOT__V1__PATH_STATE__PATH_STATE_ALIVE ||
                       state == FOLIOT__V1__PATH_STATE__PATH_STATE_SUSPECT ||
                       state == FOLIOT__V1__PATH_STATE__PATH_STATE_LOSSY;
    p->state = dead || heard ? (uint8_t)state : 0;
    p->p50 = heard ? p50 : DELAY_CODE_NONE;
    p->p99 = heard ? p99 : DELAY_CODE_NONE;
    p->loss_ppm = dead ? 1000000 : heard ? loss_ppm : 0;
}
/* The loss to show; -1: not known. */
static inline int64_t fleet_path_loss_ppm(const struct fleet_path *p)
{
    return p->state != 0 ? (int64_t)p->loss_ppm : -1;
}

struct fleet_nic {
    uint32_t id;
    struct fleet_host *host;
    char name[IF_NAMESIZE], leaf[64], trouble[160];
    char neighbour[64], neighbour_port[64]; /* from LLDP; empty: not known */
    uint32_t rail, configured_mbps;
    uint8_t address4[4], address6[16];
    /* from reports */
    uint32_t state, speed_mbps, width, stamps, flaps_hour, flaps_day;
    int64_t since_utc_ns; /* 0: not known */
    uint64_t carrier_downs, rx_bytes, tx_bytes, rx_errors, tx_errors, rx_drops, tx_drops;
    int64_t bytes_at_ns;
    int64_t rx_bps, tx_bps; /* -1: not known */
    bool reported;
};
