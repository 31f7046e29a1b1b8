/* node.h: all decisions of one host: clock, mesh and links as one object without I/O.
 *
 * The agent, the simulator and replay use only this. Facts come in through node_on_*, time through the `now` of every call and
 * node_tick. Decisions come out through node_next_action, which must be called until false after every call or batch of calls.
 * The same configuration and the same sequence of calls with the same bytes give the same actions, bit for bit. So that inputs
 * can be stored unchanged, every event is plain data of fixed size (except the peers list, which is given by reference: store the
 * array).
 *
 * The order of a driver's round: first all received facts (packets, transmit stamps, hops, links, brackets), then node_tick, then
 * the actions, then sleep until node_deadline or the next fact. Receiving must come before ticking: an agent that was stopped or
 * starved must not count packets that wait in its socket as lost. A packet leaves its hold_us after the round, and no other round
 * is needed before. A driver that sends at once only loses the spread that keeps probes of hosts and NICs from meeting for long.
 * `now` never goes back. If a tick comes later than NODE_LATE_NS after its deadline, the node knows that it was late: it tells
 * its peers, and judges nothing that it may have missed.
 *
 * Time: `now` and struct mono are the host's raw clock. Stamps of packets are nic_time, the clock of the NIC's clock domain.
 * Domain 0 is the host's raw clock itself (software stamps; nic_time equals mono), other domains are NIC clocks. A clock domain
 * is one member of the consensus; the host clock follows its NICs through brackets if no NIC uses domain 0.
 *
 * Paths: path k of a NIC pair is this end's UDP source port. Both ends have their own lists, so forward path k and backward path
 * k may use different switches. The destination port is always the fleet's. Source ports are config.port_base .. +
 * NODE_PORT_COUNT - 1.
 *
 * Cost and memory: claimed in node_new, bounded by nic_count * edge_limit * path_limit, independent of fleet size except for one
 * O(N) scan of the peers list for each reload. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/finding/finding.h"
#include "core/link/link.h"
#include "core/mesh/fleet.h"
#include "core/mesh/mesh.h"
#include "core/mesh/path.h"
#include "wire/probe.h"

struct node;
struct clock;
struct clock_terms;
struct mesh_page_entry;

#define NODE_PORT_COUNT  MESH_PORT_COUNT
#define NODE_LATE_NS     (25 * NS_PER_MS)
#define NODE_PAIR_GAP_NS 10000 /* wanted between the two packets of a pair */

/* ---- configuration -------------------------------------------------------------------------- */

enum stamp_kind { STAMP_NONE, STAMP_SOFTWARE, STAMP_HARDWARE };

struct node_nic {
    struct nic_id nic; /* in the fleet list */
    uint8_t stamps;    /* enum stamp_kind */
    uint8_t domain;    /* clock domain: 0 is the host's raw clock; others are numbered from 1 */
    uint16_t reserved;
    uint32_t speed_mbps; /* at the start; 0: unknown */
};

struct node_config {
    struct host_id host;
    uint32_t nic_count; /* 1..HOST_NIC_MAX */
    struct node_nic nics[HOST_NIC_MAX];
    struct mesh_fleet fleet;
    uint64_t seed;      /* for this host's jitter; the agent draws one, the simulator derives one */
    uint16_t port_base; /* 0: NODE_PORT_BASE_DEFAULT */
    uint16_t edge_limit; /* kept peers for each NIC, with guests; 0: 28; at most NIC_EDGE_MAX */
    uint16_t ring_peers; /* K, from rings; even, at least PEERS_LEAST; 0: 16 */
    uint16_t full_limit; /* in a fleet of at most this many other NICs all are probed; 0: 20 */
    uint16_t path_limit; /* 0: 4; at most EDGE_PATH_MAX */
    /* paths are the first path_limit ports: for simulations without routers */
    uint8_t no_discovery;
    uint8_t grid_ms;      /* deadlines are multiples of this; 0: 5; 255: exact */
    uint32_t interval_ms; /* of pairs, for each edge and end; 0: 100 */
    /* software stamps with a larger possible error make no clock points; 0: 1000 */
    uint32_t stamp_error_ns;
    uint32_t edge_bound_ns;  /* the fleet's edge limit W; 0: the clock's default */
    uint32_t delay_floor_ns; /* D_min; 0 unless the operator guarantees one */
    uint32_t diameter;       /* H; 0: from the fleet's size and K (peers_hops) */
    /* own CLOCK_REALTIME minus the raw clock, now: the first proposal for fleet time */
    int64_t wall_minus_ns;
    uint32_t reserved2;
    uint32_t flap_limit; /* "flapped more than N times within the past hour"; 0: 8 */
};
#define NODE_PORT_BASE_DEFAULT 7640

/* ---- events: plain data, sizes fixed -------------------------------------------------------- */

enum node_event_kind {
    NODE_EVENT_TICK, /* no data */
    NODE_EVENT_RECEIVE,
    NODE_EVENT_TRANSMIT,
    NODE_EVENT_HOP,
    NODE_EVENT_LINK,
    NODE_EVENT_BRACKET,
    NODE_EVENT_GUARD,
    NODE_EVENT_CLOCK_FACT,
    NODE_EVENT_ANCHOR,
    NODE_EVENT_BAD_PACKET,
    NODE_EVENT_PEERS, /* struct mesh_fleet: store the arrays, not the pointers */
    NODE_EVENT_SETTINGS,
    NODE_EVENT_MEMBER, /* struct mesh_member */
    NODE_EVENT_VERBS,
    NODE_EVENT_KIND_COUNT
};

/* A probe with a valid tag and format. */
struct node_receive {
    uint32_t local;       /* index into config.nics */
    uint16_t source_port; /* of the sender */
    uint8_t stamps;       /* enum stamp_kind; STAMP_NONE: the kernel gave none */
    uint8_t reserved;
    struct nic_time rx;
    uint32_t error_ns; /* the largest error of the stamp (δ) */
    uint32_t reserved2;
    struct probe probe;
};

enum transmit_outcome {
    TRANSMIT_STAMPED,
    TRANSMIT_NO_STAMP, /* sent, but no stamp came (3 s, or the NIC skipped it) */
    TRANSMIT_NOT_SENT, /* the kernel refused it: no route, no buffer, link down */
};
struct node_transmit {
    uint64_t token;
    struct nic_time tx; /* for TRANSMIT_STAMPED */
    uint32_t local;
    uint32_t error_ns;
    uint8_t outcome, stamps;
    uint8_t reserved[6];
};

enum hop_kind {
    HOP_EXCEEDED,  /* "time exceeded": a router on the way */
    HOP_PEER_HOST, /* "port unreachable": the peer's host, without an agent */
    HOP_NO_ROUTE,  /* "network" or "host unreachable": the router at which the packet ended */
};
/* Routers' answers to own packets. */
struct node_hop {
    uint64_t token; /* of the probe; 0: the quote was too short */
    uint32_t local;
    struct nic_id peer;   /* from the quoted destination */
    uint16_t source_port; /* from the quote */
    uint8_t ttl;          /* of the probe if the driver knows it, otherwise 0 */
    uint8_t kind;         /* enum hop_kind */
    uint8_t reserved[4];
    uint8_t address[16]; /* of the answering router */
};

/* struct link_facts (core/link/link.h), always complete: for any change. */
struct node_link {
    uint32_t local;
    uint32_t reserved;
    struct link_facts facts;
};

/* The NIC clock, read between two readings of the host's raw clock. */
struct node_bracket {
    struct mono before;
    struct nic_time nic;
    struct mono after;
    uint32_t local;
    uint32_t reserved;
};

/* A second local clock, read between two readings of the host's raw clock: shows whether the raw clock still runs evenly. */
struct node_guard {
    struct mono before;
    int64_t other_ns;
    struct mono after;
    /* one number for each second clock: 0 none, 1 + NIC index for a PHC, 64 ptp_kvm */
    uint32_t source;
    uint32_t reserved;
};

enum clock_fact_kind {
    CLOCK_FACT_SUSPENDED, /* BOOTTIME - MONOTONIC grew; amount: the growth */
    CLOCK_FACT_SOURCE,    /* the kernel's clocksource changed */
    CLOCK_FACT_VM_MARKER, /* VMClock's disruption marker changed: the machine was moved */
    CLOCK_FACT_STEERED, /* a program steers a NIC clock; local: the NIC; amount: in ppb, 0: unknown */
    CLOCK_FACT_REALTIME_STEP, /* CLOCK_REALTIME was set; amount: the change */
};
struct node_clock_fact {
    uint32_t kind;
    uint32_t local; /* UINT32_MAX: the host clock */
    int64_t amount_ns;
};

/* A UTC source (chrony, PTP): at host time `at` UTC was utc_ns within bound_ns. */
struct node_anchor {
    struct mono at;
    int64_t utc_ns;
    int64_t bound_ns;
    /* 1: a real UTC source; 0: only this host's CLOCK_REALTIME, which is good for the coarse start only */
    uint32_t trusted;
    uint32_t reserved;
};

struct node_bad_packet {
    uint32_t local;
    uint32_t error; /* enum probe_error */
    uint32_t count;
    uint32_t reserved;
};

/* A trouble of RDMA ports of this host: those beside one of its NICs, or (local UINT32_MAX) those without a NIC. */
struct node_verbs {
    uint32_t local;
    uint32_t trouble; /* enum verbs_trouble */
    uint32_t has;     /* 1: one of them has it; 0: none has it any more */
    /* VERBS_CLASS: the traffic class, and above it the service level; otherwise 0 */
    uint32_t detail;
    int64_t found, expected;
};

/* The parts of the configuration that may change while it runs; 0: as in node_new. */
struct node_settings {
    uint32_t ring_peers; /* K: even, PEERS_LEAST to edge_limit - 4 */
    uint32_t flap_limit;
};

/* ---- actions -------------------------------------------------------------------------------- */

enum node_action_kind {
    NODE_SEND,
    NODE_PUBLISH_CLOCK, /* node_clock_page has changed */
    NODE_PUBLISH_MESH,  /* node_mesh_page has changed */
    NODE_FINDING,
};
struct node_action {
    uint32_t kind;
    /* for NODE_PUBLISH_MESH: 1: a verdict changed, 0: it is only time for an update */
    uint32_t changed;
    union {
        struct mesh_send send;
        struct finding finding;
    };
};

/* ---- life ----------------------------------------------------------------------------------- */

/* -ENOMEM; -EINVAL if the configuration contradicts itself (own NIC not in the list, ids not ascending, limits). The
 * configuration is copied, the fleet's arrays are borrowed. */
MUST_CHECK int node_new(struct node **ret_node, const struct node_config *config, struct mono now);
struct node *node_free(struct node *n); /* NULL is allowed; returns NULL */

/* The state that survives a restart of the agent on the same boot, with the same clocks and within 10 minutes (the caller checks
 * that): maps, levels, delays, chosen ports and hop lists. Only this build can read the bytes. */
size_t node_saved_size(const struct node *n);
void node_save(const struct node *n, struct mono now,
               void *ret_bytes); /* node_saved_size(n) bytes */
/* Must be called right after node_new. -EINVAL: not this node's, of another version, too old or too new: then the start is cold.
 * -ENOMEM. */
MUST_CHECK int node_restore(struct node *n, struct mono now, const void *bytes, size_t size);

/* That packet will be passed in a moment. It only prefetches memory: a driver with many packets announces the second one before
 * it passes the first. */
void node_expect(const struct node *n, const struct node_receive *event);
void node_on_receive(struct node *n, struct mono now, const struct node_receive *event);
void node_on_transmit(struct node *n, struct mono now, const struct node_transmit *event);
void node_on_hop(struct node *n, struct mono now, const struct node_hop *event);
void node_on_link(struct node *n, struct mono now, const struct node_link *event);
void node_on_bracket(struct node *n, struct mono now, const struct node_bracket *event);
void node_on_guard(struct node *n, struct mono now, const struct node_guard *event);
void node_on_clock_fact(struct node *n, struct mono now, const struct node_clock_fact *event);
void node_on_anchor(struct node *n, struct mono now, const struct node_anchor *event);
void node_on_bad_packet(struct node *n, struct mono now, const struct node_bad_packet *event);
void node_on_verbs(struct node *n, struct mono now, const struct node_verbs *event);
/* -EINVAL as for node_new: then the old list stays. */
MUST_CHECK int node_on_peers(struct node *n, struct mono now, const struct mesh_fleet *fleet);
/* One NIC joins or leaves the list: the list is changed in place, in its own room. -EINVAL as for node_new, or it is in the list
 * already, or isn't in it; -ENOSPC: no room, pass a whole list. After an error nothing has changed. */
MUST_CHECK int node_on_member(struct node *n, struct mono now, const struct mesh_member *member);
/* The present list. */
const struct mesh_fleet *node_fleet(const struct node *n);
/* -EINVAL: beyond its limits; nothing has changed. */
MUST_CHECK int node_on_settings(struct node *n, struct mono now,
                                const struct node_settings *settings);
void node_tick(struct node *n, struct mono now);

/* The next action, until false: call it after each event and each tick. */
bool node_next_action(struct node *n, struct node_action *ret_action);
/* The time of the next tick; never MONO_NEVER. */
struct mono node_deadline(const struct node *n);
/* For a driver that chooses its rounds (grid_ms 255): how long after the next instant of its own grid it should begin the next
 * round, in microseconds. Each tick draws it anew. So the round's first packets leave at once, and still at a random time. Else
 * 0: hold_us contains that time. */
uint32_t node_begin_us(const struct node *n);

/* For recorder and replay: the size of an event's data (0: none; PEERS: sizeof(struct mesh_fleet)), and its delivery. */
size_t node_event_size(enum node_event_kind kind);
MUST_CHECK int node_on_event(struct node *n, struct mono now, enum node_event_kind kind,
                             const void *data);

/* ---- results: for pages, CLI and JSON ------------------------------------------------------- */

/* The values for readers of this host: clock_terms of the host clock (its nic_time is mono), and the mesh page's entries
 * (wire/mesh_page.h). */
void node_clock_page(const struct node *n, struct clock_terms *ret_terms);
/* Entry `index` of node_mesh_count(): one for each NIC pair, path and direction. */
uint32_t node_mesh_count(const struct node *n);
void node_mesh_page(const struct node *n, uint32_t index, struct mesh_page_entry *ret_entry);

/* For the own NIC `local`: returns ret_report. NULL: there is no such NIC. */
const struct link_report *node_link_get(const struct node *n, uint32_t local, struct mono now,
                                        struct link_report *ret_report);

/* The clock members of this host, by number 0 .. node_member_count() - 1: core/clock's own getters have the details. NULL: a NIC
 * clock that was not read yet. */
uint32_t node_member_count(const struct node *n);
const struct clock *node_member_clock(const struct node *n, uint32_t member);
/* The member that is the host clock; UINT32_MAX: the host clock is a leaf of its NICs. */
uint32_t node_host_member(const struct node *n);
/* The member's own time at `now`; false: not known yet. */
bool node_member_time(const struct node *n, uint32_t member, struct mono now,
                      struct nic_time *ret_time);

/* Fleet time of a host time, by the map of the readers; false: not synchronised. */
bool node_fleet_time(const struct node *n, struct mono at, struct fleet_time *ret_time);

struct node_edge {
    struct nic_id local, peer;
    struct host_id host;
    uint32_t local_index;
    uint8_t reason;     /* enum edge_reason: the reason why this peer is probed */
    uint8_t path_count; /* own paths */
    uint8_t peer_path_count;
    uint8_t silent;               /* no packet for 2 s */
    struct mono heard;            /* the last packet; MONO_NEVER: never */
    int64_t rtt_ns_min;           /* lowest sum of both one-way delays over 10 s; -1 unknown */
    uint32_t member, member_edge; /* in core/clock */
    uint8_t full_tried;           /* of the last 16 full-size packets, those with a known fate */
    uint8_t full_lost;            /* of these, those lost while short ones arrived */
    uint8_t version; /* of probes, the newest that the peer used lately; 0: it wasn't heard */
};
/* Edge numbers are 0 .. node_edge_count() - 1 and stay; false: the number is unused. */
uint32_t node_edge_count(const struct node *n);
bool node_edge_get(const struct node *n, uint32_t edge, struct mono now,
                   struct node_edge *ret_edge);
/* As mesh_echo(), mesh_echoed(). */
bool node_echo(const struct node *n, uint32_t edge, struct probe_echo *ret_echo);
bool node_echoed(const struct node *n, uint32_t local, struct nic_id peer,
                 const struct probe_echo *echo);
/* Path `path` of the edge, DIRECTION_OUT (own source port) or DIRECTION_IN (the peer's). False: no such path. */
bool node_path_get(const struct node *n, uint32_t edge, uint8_t path,
                   enum finding_direction direction, struct mono now,
                   struct path_report *ret_report);

/* The routers that answered for the hops of an own path, IPv4 mapped; all zero: a router that does not answer. Returns the number
 * of known hops; 0: none yet. */
uint8_t node_path_hops(const struct node *n, uint32_t edge, uint8_t path,
                       uint8_t ret_hops[MESH_HOP_MAX][16]);

/* The open findings, oldest first. */
/* Loops over two neighbours that measure each other, the newest 64: the sums of their edges' errors. */
struct node_triangles {
    uint32_t count; /* 0: no neighbour had a measurement so far */
    double residual_ns_p50, residual_ns_max;
};
/* In ns; count 0: no other field is valid. */
void node_triangles(const struct node *n, struct node_triangles *ret);

/* Open findings of this host, by index below the count. Valid until the next event or tick. */
uint32_t node_finding_count(const struct node *n);
const struct finding *node_finding_get(const struct node *n, uint32_t index);

struct node_counters {
    uint64_t sent, received, stamped, stamps_missing, stamps_rough, not_sent;
    uint64_t replayed, unknown_sender, own_id, stale, unmatched_stamps, bad_packets, late_ticks;
    uint64_t bursts, discovery_sent, hops_heard, hops_unmatched, findings, actions_dropped;
};
/* Counts since node_new(). */
void node_counters_get(const struct node *n, struct node_counters *ret_counters);
