/* world.h: the simulated world: hosts with their oscillators, NICs and agents, on a simulated network.
 *
 * Discrete events in true time (ns since the start). Each host runs the real core/node, driven as by the agent: it wakes on a
 * grid of 5 ms (a little late, as real processes do), gets the packets that arrived since, ticks, and sends what the node asks
 * for. One seed gives one trace: world_trace() hashes every decision of every node.
 *
 * The world has the truth, and gives it only to the checkers (check.h). */
#pragma once
#include "core/node/node.h"
#include "core/page/page.h"
#include "service/record/recorder.h"
#include "service/scenario/scenario.h"
#include "sim/agenda.h"
#include "sim/crystal.h"
#include "sim/network.h"
#include "wire/clock_page.h"

#define WORLD_GRID_NS (5 * NS_PER_MS)
#define WORLD_BACKLOG 1500 /* packets that a socket holds for an agent that doesn't read */
#define WORLD_UTC_NS  1790000000000000000LL /* UTC at true time 0 */

enum inbox_kind { INBOX_RECEIVE, INBOX_TRANSMIT, INBOX_HOP, INBOX_BAD };
struct inbox_item {
    int64_t at;
    uint32_t packet;
    uint32_t kind;
};

struct outbox_item {
    int64_t at; /* when it departs */
    struct mesh_send send;
};

struct world_nic {
    struct crystal crystal; /* hardware stamps: its own */
    struct link_facts facts;
    bool facts_new;
    int64_t facts_at; /* when the driver reports it */
    int64_t tx_free;  /* its wire is free from then on */
    int64_t tx_busy;  /* its only transmit stamp is in use until then */
};

struct world_host {
    struct node *node; /* NULL: no agent */
    struct crystal raw, second;
    struct world_nic nics[HOST_NIC_MAX];
    struct prng random;
    struct inbox_item *inbox;
    size_t inbox_count, inbox_capacity;
    struct outbox_item *outbox; /* of the last round */
    size_t outbox_count, outbox_capacity;
    int64_t stopped_until; /* the agent doesn't run (stopped, suspended) */
    int64_t starved_until, starve_turn;
    double starve_share;
    int64_t due; /* host time when its node needs a tick */
    int64_t ticked;
    int64_t next_slow;     /* brackets, anchors, link facts */
    int64_t wall_error_ns; /* CLOCK_REALTIME - UTC */
    int64_t suspended_ns;  /* not yet reported to the node */
    const struct scenario_fault *lie;
    int64_t lie_since;
    uint64_t frozen; /* the content that it first sent since then */
    bool frozen_known;
    int version;
    bool anchor;
    int held;      /* number of faults that keep its agent from starting */
    bool wake_due; /* the agenda has an event for it */
    uint64_t generation;
    struct page_maker page; /* the page that readers read; it survives the agent */
    bool page_valid;
    uint64_t downs; /* true number of carrier losses, over all NICs */
    uint64_t sent, received;
    uint8_t *saved; /* the last agent's state, for the next one */
    size_t saved_size;
    uint64_t trace;  /* of this agent's decisions */
    int64_t started; /* of this agent; -1: it has been SYNCED since */
};

/* A finding, with the true time of its report. */
struct world_finding {
    int64_t at;
    int host;
    struct finding finding;
};

struct check;

struct world {
    const struct scenario *scenario;
    uint64_t seed;
    int64_t now;
    struct network network;
    struct agenda agenda;
    struct world_host *hosts;
    int host_count, nics_per_host;
    struct mesh_peer *peers, *fewer; /* fewer: a list for each begin and end of a fault */
    struct mesh_router *routers;
    struct mesh_fleet fleet;
    struct packet *packets;
    uint32_t packet_count, packet_capacity, packet_free;
    uint8_t *fault_hosts[SCENARIO_FAULT_MAX]; /* for each fault: its hosts */
    /* for each fault: these hosts are missing in the list of peers */
    bool left_out[SCENARIO_FAULT_MAX];
    int flaps_left[SCENARIO_FAULT_MAX];
    struct packet *recorded; /* probes for a replay fault */
    uint32_t recorded_count;
    struct probe_key keys[2];
    struct world_finding *findings;
    size_t finding_count, finding_capacity;
    struct check *check;
    int64_t next_check, check_every;
    struct recorder *recorder; /* of record_host; NULL: none. The caller owns it */
    int record_host;
    uint64_t trace, events, probes, refused;
};

/* True if that host's NICs stamp by their own clocks. */
static inline bool world_nics_stamp(const struct world *w, int host)
{
    return scenario_nics_stamp(&w->scenario->clocks, host);
}
/* The mean delay of its stamps: in a mixed fleet only software stamps are late. */
static inline double world_jitter_ns(const struct world *w, int host)
{
    const struct scenario_clocks *c = &w->scenario->clocks;
    return c->stamps == STAMPS_MIXED && world_nics_stamp(w, host) ? 0 : c->jitter_ns;
}

MUST_CHECK int world_new(struct world **ret, const struct scenario *s, uint64_t seed);
struct world *world_free(struct world *w);
/* Runs until true time `until`. */
void world_run(struct world *w, int64_t until);
uint64_t world_trace(const struct world *w);
/* Adds one more decision of one node: a probe or a finding. */
uint64_t world_trace_action(uint64_t trace, struct mono now, const struct node_action *action);

/* ---- inside ---- */
enum world_event {
    WORLD_WAKE, /* subject: host */
    WORLD_HOP,  /* subject: packet */
    WORLD_FAULT_ON,
    WORLD_FAULT_OFF,
    WORLD_FLAP, /* subject: fault */
    WORLD_TRAFFIC,
    WORLD_START, /* subject: host: its agent starts */
    WORLD_EVERY, /* subject: fault: its next turn */
};
/* True if the liar changes a field of the packet that exists only in its bytes. */
bool world_lies_in_field(const struct world_host *h);
/* Sends the packet through the codec: encoded by the sender, decoded with the receiver's keys and version; then launched. */
void world_wire(struct world *w, uint32_t packet, int receiver);
/* host_send.c: queues a packet of the round at `now`, as its node decided. */
void host_queue(struct world_host *h, int64_t now, const struct mesh_send *send);
/* Sends the packets that are due. Returns when the next is due; INT64_MAX: none waits. */
int64_t host_depart(struct world *w, int host);
void world_found(struct world *w, int host, const struct finding *finding);
int64_t world_raw(struct world *w, int host, int64_t at);
uint32_t world_nic(const struct world *w, int host, int nic);
uint32_t world_packet_new(struct world *w);
void world_packet_free(struct world *w, uint32_t packet);
void world_deliver(struct world *w, int host, int64_t at, enum inbox_kind kind, uint32_t packet);
void world_launch(struct world *w, uint32_t packet);
void world_arrive(struct world *w, uint32_t packet, int64_t at);
void world_fault(struct world *w, unsigned index, bool on);
void world_fault_turn(struct world *w, unsigned index);
void world_flap(struct world *w, unsigned index);
/* Keeps a copy if a fault will replay it. */
void world_record(struct world *w, const struct packet *p);
MUST_CHECK int world_faults_init(struct world *w);
void host_start(struct world *w, int host);
void host_save(struct world *w, int host);
void host_tell_peers(struct world *w, int host, const struct mesh_fleet *fleet);
void host_stop(struct world *w, int host);
void host_wake(struct world *w, int host);
void host_carrier(struct world *w, int host, int nic, bool carrier, bool present);
/* The stamp of `local` at true time `at`, before noise. */
int64_t host_stamp(struct world *w, int host, uint32_t local, int64_t at);
