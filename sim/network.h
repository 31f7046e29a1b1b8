/* network.h: the simulated network: a packet's path, its delays and losses, and its arrival.
 *
 * There are two kinds. NETWORK_ABSTRACT: each NIC pair has one fixed delay (the same in both directions, except for
 * asymmetry), and a packet waits with some probability. It needs no events in between. NETWORK_FABRIC: leaves and spines with
 * a queue for each output port (port.h), ECMP by source port, and routers that answer when a TTL runs out. A packet needs an
 * event for each hop.
 *
 * Network faults are here, too: while a fault is on, it is applied to every packet. */
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

/* A packet on its way, or an event that waits for its host. */
struct packet {
    struct node_receive receive; /* the event that the receiver's node will get */
    uint64_t token;
    int64_t sent;      /* true time when it is on the sender's wire */
    int64_t arrives;   /* true time at the receiver's */
    uint32_t src, dst; /* NIC numbers */
    uint16_t source_port;
    uint8_t ttl; /* 0: enough */
    uint8_t high;
    uint16_t size; /* of its payload */
    uint8_t stage;
    uint8_t stages;
    uint8_t expires;      /* stage where the TTL runs out; 255: never */
    uint8_t enters, ends; /* the parts of its path that it crosses (enum network_part) */
    bool encoded;         /* bytes travel, not receive.probe */
    int spine;            /* -1: no spine on its path */
    int64_t extra_ns;
    uint32_t next_free;
};

/* A path: out of the sender's NIC, up its leaf's trunk, down the other's, into the receiver's NIC. */
enum network_part { PART_OUT, PART_UP, PART_DOWN, PART_IN };

enum network_step {
    NETWORK_ON,      /* at the next hop at *ret_at: call network_hop() then */
    NETWORK_ARRIVES, /* at the receiver at *ret_at */
    NETWORK_EXPIRES, /* the TTL ran out; a router's answer is back at *ret_at */
    NETWORK_LOST,
};

struct network_fault {
    const struct scenario_fault *fault;
    const uint8_t *hosts; /* for each host: 1 if it is in the set; NULL: the target isn't hosts */
    bool on;
    int64_t since;
    int64_t lost; /* number of packets that it took */
};

struct network {
    const struct scenario *scenario;
    const struct scenario_fabric *fabric;
    uint64_t seed;
    struct prng random;
    int nics, leaves, spines;
    struct port *down;   /* for each NIC: leaf to NIC */
    struct port *up;     /* for each leaf and spine */
    struct port *across; /* for each spine and leaf */
    struct network_fault faults[SCENARIO_FAULT_MAX];
    unsigned active[SCENARIO_FAULT_MAX]; /* the faults that are on */
    unsigned active_count;
    uint8_t *carrier;       /* per NIC */
    uint8_t *trunk_down;    /* for each leaf and spine: number of faults that hold it down */
    int64_t *trunk_avoided; /* true time from when routing avoids it */
    /* for each leaf, then each spine: true time from when it answers again */
    int64_t *answers_at;
    uint64_t lost, passed;
};

MUST_CHECK int network_init(struct network *n, const struct scenario *s, uint64_t seed);
void network_done(struct network *n);

int network_host(const struct network *n, uint32_t nic);
int network_leaf(const struct network *n, uint32_t nic);
/* The spine that a flow takes now; -1: none needed, or none available. */
int network_route(const struct network *n, uint32_t src, uint32_t dst, uint16_t port, int64_t now);

/* A packet leaves its NIC at p->sent: sets its path. */
enum network_step network_start(struct network *n, struct packet *p, int64_t *ret_at);
/* The packet is at its next hop, at true time `at`. */
enum network_step network_hop(struct network *n, struct packet *p, int64_t at, int64_t *ret_at);
/* The address of the router that answered for an expired packet. */
void network_router(const struct network *n, const struct packet *p, uint8_t ret_address[16]);
/* The address of leaf or spine `number`. */
void network_address(bool spine, int number, uint8_t ret_address[16]);

/* Switches fault number `index` of the scenario on or off. */
void network_fault_on(struct network *n, unsigned index, int64_t now, const uint8_t *hosts);
void network_fault_off(struct network *n, unsigned index, int64_t now);
/* Sets the scenario's traffic at `now`: call it when one begins or ends. */
void network_traffic(struct network *n, int64_t now);
/* The longest delay through an idle fabric, ns. */
int64_t network_longest(const struct network *n);
/* Abstract network: the fixed part of the delay in that direction, with its asymmetry. */
int64_t network_fixed(const struct network *n, uint32_t src, uint32_t dst, uint16_t port);
