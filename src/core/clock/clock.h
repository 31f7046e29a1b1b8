/* clock.h: one member of the fleet's clock consensus: a free-running clock that stamps packets, and the map from it to fleet
 * time.
 *
 * A member is a host's raw clock (software stamps: its edges use all NICs of the host) or a NIC's own clock (hardware stamps:
 * then the host's clock is a leaf of its NICs, host_leaf.h). Every member publishes a map
 *
 *     F(c) = c + x + y (c - r)                c, r: the member's own clock, x: ns, y: a rate without unit
 *
 * and moves it a little, twenty times a second, towards the value that its neighbours' maps imply. There is no leader and no
 * reference: fleet time is what the maps agree on.
 *
 * Signs. theta = F_peer - F_own at one instant: positive means that the peer is ahead. For a packet that we send (forward) p =
 * F_peer(rx) - F_own(tx) = theta + D + q. For one that we receive p' = F_own(rx) - F_peer(tx) = -theta + D' + q'. D and D' are
 * fixed delays, q >= 0 is queueing. One edge can't separate (D - D')/2 from theta; that is why there are many edges.
 *
 * Time. `now` is always the member's own clock (for software stamps the host's raw clock). An error of about a millisecond is
 * harmless: maps are evaluated at stamps, never at `now`. Points may come late and out of order. If `now` runs backwards, the
 * member reports DISRUPTED and starts its maps anew. Late ticks (an agent without a processor) only make its edges stale:
 * HOLDOVER.
 *
 * Cost: about 5 KiB an edge, claimed in clock_new(); a tick is O(edges log edges); constant in fleet size. Deterministic: the
 * same calls give the same answers, bit for bit. No I/O, no globals, no allocation after clock_new().
 *
 * It refuses points with absurd gaps or stamps (counted in clock_report), peers whose map can't be a clock's (|y| > 488 ppm), and
 * edges beyond its capacity. It never shows a stale estimate as SYNCED. */
#pragma once
#include "base/bug.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/time.h"

#define CLOCK_TICK_NS        (50 * NS_PER_MS) /* one round of consensus */
#define CLOCK_COARSE_TICK_NS (50 * NS_PER_MS) /* one round before the rates are known */
#define CLOCK_PATH_MAX       8
#define CLOCK_RATE_MAX       (500e-6 - 12e-6) /* |y| of a map: the range of 32 bits at 2^-42 */

struct clock;

enum clock_stamps {
    CLOCK_STAMPS_HARDWARE, /* noise about symmetric, tens of ns */
    CLOCK_STAMPS_SOFTWARE, /* late, never early: the noise is one-sided */
};

/* The status of fleet time, for readers. */
enum clock_status {
    CLOCK_UNKNOWN,  /* no fleet time */
    CLOCK_SYNCED,   /* both bounds hold */
    CLOCK_HOLDOVER, /* too few neighbours: the bounds grow with age */
    /* a premise was just seen broken (step, suspend, rate): don't order events by it */
    CLOCK_DISRUPTED,
};

/* The progress of the estimate. It is published to peers; they ignore the maps of peers that are less far. */
enum clock_phase {
    CLOCK_COLD,    /* searching for the fleet's time, to a millisecond */
    CLOCK_ACQUIRE, /* right to a microsecond; rates are being learned */
    CLOCK_TRACK,   /* right to nanoseconds */
    CLOCK_HOLD,    /* it tracked before; its neighbours are gone */
};

/* A fault of this member's own clock that the platform noticed. */
enum clock_fault {
    CLOCK_FAULT_NONE,
    CLOCK_FAULT_SUSPEND,     /* the host slept */
    CLOCK_FAULT_CLOCKSOURCE, /* the kernel changed or lost its clock source */
    CLOCK_FAULT_STEP,        /* a program stepped the stamping clock */
    CLOCK_FAULT_MIGRATED,    /* the virtual machine moved (VMClock marker) */
    CLOCK_FAULT_GUARD,       /* the host's second clock disagrees: a frequency jump */
};

/* F(c) = c + x_ns + x_fraction + y (c - r). x_fraction in [0, 1) is a multiple of 2^-32, and y of 2^-42. So a packet carries
 * exactly the values that its sender uses. */
struct clock_map {
    struct nic_time r;
    int64_t x_ns;
    double x_fraction;
    double y;
};

/* The label of a timeline: its founder and its time of birth. It is only a name; no value is ever derived from it. */
#define CLOCK_TIMELINE_NONE 0ULL
/* Its low bits are the founder's number, so that a packet needs no further field. */
#define CLOCK_TIMELINE_FOUNDER(timeline) ((uint32_t)((timeline) & (FLEET_NIC_MAX - 1)))

/* A member's knowledge of UTC, from its own upstream or from its peers' votes. */
struct clock_anchor {
    uint32_t member;      /* the reporting member; UINT32_MAX: none */
    uint32_t bound_ns;    /* |error| <= bound when it was measured */
    int64_t utc_minus_ns; /* UTC - F */
    uint32_t age_ms;
};

/* The values that a member sends to its peers in every packet: the fields of the probe's header. */
struct clock_published {
    enum clock_phase phase;
    bool settled; /* at least half of its chosen peers are live, in gate and on one label */
    bool tight;   /* most of its edges are bounded within the fleet's edge limit */
    bool core;    /* tight for longer than the graph is wide */
    uint64_t timeline;
    uint32_t founder; /* the founder of the timeline */
    uint32_t epoch;
    uint32_t timeline_age_s;
    struct clock_map map;
    uint32_t map_seq;
    double line_minus_map_ns; /* the readers' line minus the map; a multiple of 2^-4 ns */
    double sqrt_p_ns;         /* standard deviation of the estimate */
    double scale_ns;          /* typical size of its edges' errors */
    uint32_t h_ns;            /* its hard bound; UINT32_MAX: none */
    struct clock_anchor anchor;
};

struct clock_config {
    /* its number: the host's (software stamps) or the NIC's; one numbering for the fleet */
    uint32_t member;
    enum clock_stamps stamps;
    /* the first guess for one stamp's standard deviation; 0: 20 (hw), 300 (sw) */
    double stamp_noise_ns;
    uint16_t edge_capacity; /* <= MEMBER_EDGE_MAX */
    int64_t
        wall_minus_ns; /* own CLOCK_REALTIME minus own clock: the first proposal for fleet time */
    int64_t edge_limit_ns; /* W: the largest width of a tight member's edge; 0: 8 us hw, 50 us sw */
    uint8_t hops;          /* H: edges between any two honest members, without liars; 0: 4 */
    int64_t
        stamp_error_ns; /* delta: the largest error of a stamp; 0: 6 sqrt(2) noise hw, 20 us sw */
    double rate_limit_ppm;   /* rho: the largest departure from the published rate; 0: 2 */
    double rate_drift_ppb_s; /* and the largest departure per second; 0: 100 */
    /* the known wander, ppb per root second: no bank; 0: not known (for evaluation only) */
    double wander_ppb;
    bool anchor; /* the fleet's file names this host as an anchor */
    bool
        guard_is_own; /* clock_on_guard() is about this very clock, not about the host's beside it */
    bool alone_is_fine; /* a fleet of one: SYNCED without peers (tests, foliot selftest) */
    uint64_t seed;      /* for jitter and random choices */
};

struct clock_edge_config {
    uint32_t peer; /* the peer's member number: several edges may lead to one peer */
    /* a number that all clocks of the peer's host share: together they are one neighbour; 0: the host has one clock */
    uint32_t host;
    struct nic_id local_nic;
    struct nic_id peer_nic;
    uint8_t path_count;   /* 1 … CLOCK_PATH_MAX */
    int64_t delay_ns_min; /* D_min: no packet is faster; 0: not known */
    uint8_t distance;     /* class: 0 rail, 1 leaf (rack), 2 cross; floors are shared within one */
    bool witness;         /* measured and reported, but not used */
    bool chosen;          /* on the member's own list of K; other edges are used, too */
    bool anchor;          /* the fleet's file names the peer as an anchor */
};

/* One packet or coded pair in one direction, with the stamps of both ends. Times are those of the pair's first packet. */
struct clock_point {
    int edge;
    uint8_t path;
    bool forward; /* true: own tx, peer's rx; false: peer's tx, own rx */
    struct nic_time local;
    struct nic_time remote;
    int32_t local_gap_ns; /* second packet's stamp minus the first's; both 0: a single packet */
    int32_t remote_gap_ns;
};

/* An answer to a query: the measurement of `about` by another neighbour. */
struct clock_answer {
    uint32_t about;
    uint32_t from;
    bool known;      /* false: it is no neighbour, or has no recent measurement */
    bool parked;     /* the neighbour has parked `about` */
    double level_ns; /* slow mean of theta towards `about` */
};

enum clock_action_kind {
    CLOCK_ACTION_PUBLISH,  /* the terms for readers changed: clock_terms() */
    CLOCK_ACTION_STATUS,   /* status changed: `status`, `was` */
    CLOCK_ACTION_STEP,     /* the own clock stepped by value_ns */
    CLOCK_ACTION_TIMELINE, /* joined or founded a timeline: `timeline`; epoch changed: `epoch` */
    CLOCK_ACTION_QUERY,    /* ask some of `peer`'s other neighbours about it: clock_on_answer() */
    /* most neighbours that answered don't believe `peer` either; value_ns: its level here, or the error that it claims and that
     * no edge shows */
    CLOCK_ACTION_LIAR,
    CLOCK_ACTION_ASYMMETRY, /* only this edge is wrong: asymmetric by about value_ns */
    /* `peer` fits again, or is no peer any more: the LIAR or ASYMMETRY is over */
    CLOCK_ACTION_CLEARED,
    CLOCK_ACTION_REPLACE, /* replace this edge by the next peer of the list */
};

struct clock_action {
    enum clock_action_kind kind;
    int edge; /* -1: none */
    uint32_t peer;
    double value_ns;
    /* LIAR: number of neighbours against it; number that answered, with or without a measurement */
    int against, asked;
    enum clock_status status, was;
    enum clock_fault fault; /* STATUS: the fault that disrupted it; NONE: the reports of peers */
    uint64_t timeline;
    uint32_t epoch;
};

/* The terms for readers. Between publications a reader continues them by clock_terms_read(). All ages are own time since
 * `line.r`. */
struct clock_line {
    struct nic_time r;
    int64_t x_ns; /* the line at r: fleet time = r + x_ns + x_fraction */
    double x_fraction;
    double y;    /* rate from r on */
    double slew; /* added to y until `until` */
    struct nic_time until;
};
struct clock_terms {
    enum clock_status status;
    uint64_t timeline;
    /* the number of times that the line began anew; readers get the page's number (core/page/page.h) */
    uint32_t epoch;
    struct clock_line line;
    double h_ns;          /* hard bound at r, half a width; < 0: none */
    double rate_limit;    /* rho: grows by the integral of max(rate_limit, rate_drift t) ... */
    double rate_drift;    /* ... and is added from r on */
    double p00, p01, p11; /* ns^2, ns^2/s, ns^2/s^2 at r */
    double q2;            /* wander: p00 grows by q2 t^3 / 3 */
    double spread2_ns;    /* the variance from disagreeing edges */
    /* standing queues, asymmetry within the host, line minus map: added outside the root */
    double shift_ns;
    bool guarded;          /* a second clock is compared (clock_on_guard) */
    struct nic_time guard; /* the last comparison */
    double guard_ns;       /* G: an error that a guard may miss */
    double guard_rate;     /* J: its growth per second since then */
    bool utc_known;
    int64_t utc_minus_ns;
    double utc_bound_ns;
};
struct clock_reading {
    enum clock_status status;
    struct fleet_time time;
    /* the truth is within time +- hard_ns, if the premises hold; < 0: no bound */
    double hard_ns;
    double statistical_ns; /* < 0: no bound */
};

/* One edge, for display. */
struct clock_edge_report {
    uint32_t peer;
    struct nic_id local_nic, peer_nic;
    bool live, witness, parked;
    enum clock_phase peer_phase;
    double theta_ns;   /* last e: peer minus own */
    double level_ns;   /* slow mean of theta */
    double noise_ns;   /* of one packet, one direction */
    double delay_ns;   /* m: half of the fixed round trip, mean over the paths */
    double bound_ns;   /* w: |theta| on public lines is at most this; < 0: unknown */
    double pure_share; /* of coded pairs */
    double gate_share; /* of packets: neither early nor late */
    double queue_ns;   /* standing queue on top of the floor */
    uint64_t points;
};
/* The whole member, for display. */
struct clock_report {
    enum clock_status status;
    enum clock_phase phase;
    bool settled, tight, core, queued;
    uint64_t timeline;
    uint32_t founder, epoch, timeline_age_s;
    int edges, edges_live, edges_parked, edges_in_gate;
    int peers_live;
    int liars_max;        /* f: number of peers that may lie */
    double park_limit_ns; /* an edge with a larger level is parked */
    double sqrt_p_ns, scale_ns, edge_limit_ns, hard_ns, statistical_ns, rate_ppb, wander_ppb;
    double witness_ns; /* rms of witness edges' theta over 10 s; < 0: none */
    uint64_t points, points_refused, steps, peers_refused;
    enum clock_fault fault; /* the last one */
    bool fault_seen;
};

/* The state that survives a restart of the agent, for the same boot and clock; the caller checks that. Plain data. */
#define CLOCK_SAVED_VERSION 1
#define CLOCK_SAVED_EDGES   128
struct clock_saved_edge {
    uint32_t peer, local_nic, peer_nic;
    uint8_t path_count, parked;
    double level_ns, noise_ns;
    double m_ns[CLOCK_PATH_MAX];
    double floor_ns[CLOCK_PATH_MAX];
};
struct clock_saved {
    uint32_t version, member;
    struct nic_time saved; /* the own clock when it was saved */
    uint64_t timeline;
    uint32_t founder, epoch;
    struct nic_time timeline_born;
    struct clock_map map;
    double line_minus_map_ns;
    double h_ns, p00, p01, p11, scale_ns, noise_ns;
    uint16_t edge_count;
    struct clock_saved_edge edges[CLOCK_SAVED_EDGES];
};

/* NULL: out of memory, or an impossible config. */
struct clock *clock_new(const struct clock_config *config, struct nic_time now);
void clock_free(struct clock *clock); /* NULL is allowed */

/* Must be called right after clock_new() and after the edges were added. -EINVAL: of another member, too old (10 min), from the
 * future, or of another version: then the start is cold. */
int clock_restore(struct clock *clock, struct nic_time now,
                  const struct clock_saved *saved) MUST_CHECK;
/* Saves the state for clock_restore() of the next run. */
void clock_save(const struct clock *clock, struct nic_time now, struct clock_saved *ret_saved);

/* Returns the edge's number, for points; -ENOSPC, -EINVAL, -EEXIST (the same pair of NICs). Numbers of removed edges are used
 * again. */
int clock_edge_add(struct clock *clock, struct nic_time now,
                   const struct clock_edge_config *config) MUST_CHECK;
/* Forgets all about the edge. An unused number has no effect. */
void clock_edge_remove(struct clock *clock, struct nic_time now, int edge);
/* That path now takes another route: its delay is learned anew. */
void clock_edge_repath(struct clock *clock, struct nic_time now, int edge, uint8_t path);

/* Facts in. A header should come before the points of the same packet. */
void clock_on_peer(struct clock *clock, struct nic_time now, int edge,
                   const struct clock_published *heard);
void clock_on_point(struct clock *clock, struct nic_time now, const struct clock_point *point);
void clock_on_answer(struct clock *clock, struct nic_time now, const struct clock_answer *answer);
/* The fleet's size changed: H as in clock_config, not 0. */
void clock_on_hops(struct clock *clock, uint8_t hops);
void clock_on_fault(struct clock *clock, struct nic_time now, enum clock_fault fault);
/* The member's own rate was changed by this much; 0: the amount is unknown. A small change is followed, within the premise on
 * rates. A larger one is a fault (CLOCK_FAULT_STEP). */
void clock_on_steered(struct clock *clock, struct nic_time now, double ppb);
/* The member's clock was compared with another local clock: it is within guard_ns of their common line. */
void clock_on_guard(struct clock *clock, struct nic_time now, double guard_ns, double guard_rate);
/* The value of an upstream server: at `at` of the own clock UTC was utc_ns. bound_ns < 0: no longer known. */
void clock_on_utc(struct clock *clock, struct nic_time at, int64_t utc_ns, double bound_ns);

/* Time in: must be called at clock_deadline() or soon after. */
void clock_tick(struct clock *clock, struct nic_time now);
struct nic_time clock_deadline(const struct clock *clock);

/* Decisions out, until false. At most CLOCK_ACTIONS_MAX wait; beyond that the oldest are dropped (PUBLISH never waits twice). */
#define CLOCK_ACTIONS_MAX 64
bool clock_next_action(struct clock *clock, struct clock_action *ret_action);

/* The values for every packet. */
void clock_published(const struct clock *clock, struct nic_time now,
                     struct clock_published *ret_published);
/* The answer to a query about a member. */
struct clock_answer clock_answer(const struct clock *clock, uint32_t about);
/* The terms to publish to readers. */
void clock_terms(const struct clock *clock, struct clock_terms *ret_terms);
/* A reader's arithmetic: fleet time and bounds at a time of the member's clock, at or after line.r. Up to a few seconds before
 * line.r, the bounds are those at r. */
struct clock_reading clock_terms_read(const struct clock_terms *terms, struct nic_time at);
/* F of a stamp by the present map (not the readers' line). One-way delays use it. */
struct fleet_time clock_stamp(const struct clock *clock, struct nic_time stamp);
/* The same with a peer's map, for the peer's stamps. */
struct fleet_time clock_map_apply(const struct clock_map *map, struct nic_time at);
/* F_a(at_a) - F_b(at_b) with its fraction. */
double clock_map_difference(const struct clock_map *a, struct nic_time at_a,
                            const struct clock_map *b, struct nic_time at_b);

/* For display, pages and JSON. */
void clock_report(const struct clock *clock, struct nic_time now, struct clock_report *ret_report);
/* Edges are 0 … clock_edge_capacity() - 1; false: the number is unused. */
int clock_edge_capacity(const struct clock *clock);
bool clock_edge_report(const struct clock *clock, struct nic_time now, int edge,
                       struct clock_edge_report *ret_report);
