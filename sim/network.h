/* network.h: the simulated network: which way a packet goes, what it meets there, when it arrives.
 *
 * Two kinds. NETWORK_ABSTRACT: each NIC pair has one fixed delay (alike both ways, but for asymmetry) and a packet
 * waits with some probability; no events in between. NETWORK_FABRIC: leaves and spines with a queue per output
 * port (port.h), ECMP by source port, routers that answer when a TTL runs out; a packet is an event per hop.
 *
 * Network faults live here: while a fault is on, every packet is held against it. */
#pragma once
#include "base/prng.h"
#include "core/node/node.h"
#include "service/scenario/scenario.h"
#include "sim/port.h"

#define PROBE_WIRE_BYTES 226.0 /* 160 + UDP 8 + IP 20 + Ethernet 18 + preamble and gap 20 */
static inline double network_wire_bytes(uint32_t payload)
{
    return PROBE_WIRE_BYTES - 160 + payload;
}

/* A packet under way, or an event waiting for its host. */
struct packet {
    struct node_receive receive; /* what the receiver's node will be told */
    uint64_t token;
    int64_t sent;      /* true time on the sender's wire */
    int64_t arrives;   /* true time at the receiver's */
    uint32_t src, dst; /* NIC numbers */
    uint16_t source_port;
    uint8_t ttl; /* 0: enough */
    uint8_t high;
    uint16_t size; /* of its payload */
    uint8_t stage;
    uint8_t stages;
    uint8_t expires;      /* stage at which the TTL runs out; 255: never */
    uint8_t enters, ends; /* of its way, what it crosses (enum network_part) */
    bool encoded;         /* bytes, not receive.probe, is what travels */
    int spine;            /* -1: none on its way */
    int64_t extra_ns;
    uint32_t next_free;
};

/* A way: out of the sender's NIC, up its leaf's trunk, down the other's, into the receiver's NIC. */
enum network_part { PART_OUT, PART_UP, PART_DOWN, PART_IN };

enum network_step {
    NETWORK_ON,      /* at the next hop at *ret_at: call again then */
    NETWORK_ARRIVES, /* at the receiver at *ret_at */
    NETWORK_EXPIRES, /* the TTL ran out; a router's answer is back at *ret_at */
    NETWORK_LOST,
};

struct network_fault {
    const struct scenario_fault *fault;
    const uint8_t *hosts; /* per host: 1 in the set; NULL where the target isn't hosts */
    bool on;
    int64_t since;
    int64_t lost; /* packets that it took */
};

struct network {
    const struct scenario *scenario;
    const struct scenario_fabric *fabric;
    uint64_t seed;
    struct prng random;
    int nics, leaves, spines;
    struct port *down;   /* per NIC: leaf to NIC */
    struct port *up;     /* per leaf and spine */
    struct port *across; /* per spine and leaf */
    struct network_fault faults[SCENARIO_FAULT_MAX];
    unsigned active[SCENARIO_FAULT_MAX]; /* those that are on */
    unsigned active_count;
    uint8_t *carrier;       /* per NIC */
    uint8_t *trunk_down;    /* per leaf and spine: count of faults that hold it down */
    int64_t *trunk_avoided; /* true time from when routing goes around it */
    int64_t *answers_at;    /* per leaf, then per spine: true time from when it answers again */
    uint64_t lost, passed;
};

MUST_CHECK int network_init(struct network *n, const struct scenario *s, uint64_t seed);
void network_done(struct network *n);

int network_host(const struct network *n, uint32_t nic);
int network_leaf(const struct network *n, uint32_t nic);
/* The spine that a flow takes now; -1: none needed or none there. */
int network_route(const struct network *n, uint32_t src, uint32_t dst, uint16_t port, int64_t now);

/* A packet leaves its NIC at p->sent: sets its way. */
enum network_step network_start(struct network *n, struct packet *p, int64_t *ret_at);
/* It is at its next hop, at true time `at`. */
enum network_step network_hop(struct network *n, struct packet *p, int64_t at, int64_t *ret_at);
/* The router that answered for an expired packet. */
void network_router(const struct network *n, const struct packet *p, uint8_t ret_address[16]);
/* Address of leaf or spine `number`. */
void network_address(bool spine, int number, uint8_t ret_address[16]);

/* Fault number `index` of the scenario goes on or off. */
void network_fault_on(struct network *n, unsigned index, int64_t now, const uint8_t *hosts);
void network_fault_off(struct network *n, unsigned index, int64_t now);
/* Traffic as the scenario has it at `now`: call when one begins or ends. */
void network_traffic(struct network *n, int64_t now);
/* The longest way through an idle fabric, ns. */
int64_t network_longest(const struct network *n);
/* Delay of the fixed part alone, abstract network: what symmetric truth is made of. */
int64_t network_fixed(const struct network *n, uint32_t src, uint32_t dst, uint16_t port);
