/* mesh.h: decides which peers are probed, when and over which paths, and evaluates the results: one object for all NICs of a
 * host.
 *
 * Received packets go in (mesh_on_receive), transmit stamps go in, packets come out (mesh_next_send). The mesh turns the stamps
 * of both ends into clock points (for core/clock). When it gets the fleet time of a point (mesh_on_delay), it makes one-way
 * delays of it. It keeps liveness and loss for each path and direction, and reports changes (mesh_next_verdict). It reads no
 * clock itself. No function blocks, or allocates after mesh_new().
 *
 * Cadence, for each edge and end: in each interval (100 ms, +-10 %) a coded pair on the next path, and a single on the path half
 * a rotation later. So each of 4 paths is used every 200 +- 20 ms. The end with the higher id sends half an interval later. If a
 * path is 25 ms overdue while the peer is heard on others, a burst is requested (5 singles, 4 ms apart, and a report of their
 * transmit stamps on another path). Bursts: at most MESH_BURST_RATE packets a second for each NIC; discovery the same. All else
 * is constant: no event ever raises the rate of probing.
 *
 * The stamps in a packet: the first packet of a pair and a single report the last pair; the second packet of a pair reports the
 * last single. So a pair is reported on two paths, and a dead path hides nothing. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/clock/clock.h"
#include "core/finding/finding.h"
#include "core/mesh/fleet.h"
#include "core/mesh/path.h"
#include "core/mesh/peers.h"
#include "wire/probe.h"

#define MESH_PORT_COUNT     32
#define MESH_BURST_PACKETS  5
#define MESH_BURST_RATE     40 /* packets a second for each NIC */
#define MESH_DISCOVERY_RATE 40
#define MESH_FULL_RATE                                                                             \
    64 /* answers to full packets a second for each NIC: for as many peers as possible */
#define MESH_HOP_MAX PATH_HOP_MAX
/* payload of a full packet: fits into an MTU of 1500, also with IPv6 */
#define MESH_FULL_SIZE  1444
#define MESH_PATH_PROBE PROBE_PATH_MAX /* the path number of packets with a small hop limit */

struct mesh;

struct mesh_config {
    uint32_t nic_count;
    struct nic_id nics[HOST_NIC_MAX];
    int64_t queue_ns[HOST_NIC_MAX]; /* a larger spread of delays means queues on the way */
    /* switches rarely drop at less: a packet that waited longer may have met a full queue */
    int64_t drain_ns[HOST_NIC_MAX];
    struct mesh_fleet fleet;
    uint64_t seed;
    uint16_t port_base;
    uint16_t edge_limit, ring_peers, full_limit, path_limit;
    bool no_discovery;
    struct span interval;
    struct span grid; /* ticks are wanted at multiples of this; 0: at exact times */
    struct span late; /* a tick that is so much behind its deadline is late */
};

enum node_class {
    NODE_CLASS_CLOCK, /* high: DSCP CS6 */
    NODE_CLASS_JOB,   /* the class of the job's own traffic */
};

/* One packet. The two packets of a pair are neighbours, probe.second false then true, and leave back to back. */
struct mesh_send {
    uint64_t token; /* returned with the transmit stamp; unique within the host */
    uint32_t local;
    struct nic_id peer;
    uint16_t source_port;
    uint8_t ttl; /* 0: the default */
    uint8_t net_class;
    uint8_t pair;       /* 1: part of a pair */
    uint8_t want_stamp; /* 0: no transmit stamp needed */
    uint16_t size;      /* of its payload: zeros follow the probe */
    /* it leaves so long after this round: the same for all packets of a NIC in it */
    uint16_t hold_us;
    struct probe probe; /* encode with the key */
};

/* What a received packet contained. */
/* The kind of a point's delay. For other hosts' packets the class of a single is not reported: it counts as the job's. */
enum delay_of { DELAY_OF_PAIR, DELAY_OF_JOB, DELAY_OF_PROBE };
struct mesh_heard {
    int edge; /* -1: not from an edge */
    /* its header may be believed: it is no replay, and it knows what this host just sent */
    bool fresh;
    bool new_edge; /* a guest: a host that probes this one without being chosen here */
    uint32_t point_count;
    struct clock_point points[2]; /* .edge is the mesh's edge */
    uint8_t single_of[2];         /* enum delay_of for each that is no pair */
    uint32_t error_ns;
};

enum mesh_verdict_kind {
    MESH_PATH_STATE,  /* path, direction: was -> state */
    MESH_PEER_SILENT, /* no packet for 2 s */
    MESH_PEER_HEARD,  /* packets come again */
    MESH_REPATH,      /* an own path takes another way now: path */
    MESH_TRACED,      /* the hops of a dead path were probed: locate again */
    MESH_PATH_SLOW,   /* path, direction: its delay shifted, before_ns .. bound_ns */
    MESH_PATH_PACE,   /* the delay is back, or can't be measured any more */
    MESH_LATE,        /* this agent was late: late */
};
struct mesh_verdict {
    uint8_t kind, path, direction, state, was;
    int edge;
    struct mono since;
    uint32_t proof; /* packets proven lost */
    int64_t before_ns, after_ns, other_ns, bound_ns;
    struct span late;
};

/* For packets outside the mesh: the newest packet of the edge's peer; false: none. A packet that repeats it is no recording, and
 * the peer itself can check that. */
bool mesh_echo(const struct mesh *m, int edge, struct probe_echo *ret_echo);
/* True: this host sent that to the peer within the last seconds. */
bool mesh_echoed(const struct mesh *m, uint32_t local, struct nic_id peer,
                 const struct probe_echo *echo);

/* A digest of another host about its own paths (digest.c). `made`: by this host's clock. The caller has checked its age, and that
 * its sender uses the same timeline. True: it reports losses, and is newer than earlier reports of these paths. */
bool mesh_on_digest(struct mesh *m, struct mono now, uint32_t local, const struct probe *probe,
                    struct mono made);

struct mesh_counters {
    uint64_t sent, received, stamped, stamps_missing, not_sent;
    uint64_t replayed, unknown_sender, stale, own_id, unmatched_stamps, late_ticks;
    uint64_t bursts, discovery_sent, hops_heard, hops_unmatched, sends_dropped, verdicts_dropped;
    uint64_t digests_sent, digests_heard, digests_refused;
};

/* NULL: out of memory. The caller has checked the configuration. Edges are chosen at once. */
struct mesh *mesh_new(const struct mesh_config *config, struct mono now);
void mesh_free(struct mesh *m);

/* The list was reloaded: edges that are no longer chosen are removed, new ones are added. */
void mesh_on_peers(struct mesh *m, struct mono now, const struct mesh_fleet *fleet);
/* The list has one NIC more or less than before, at that place; all else is the same, also the routers. */
void mesh_on_member(struct mesh *m, struct mono now, const struct mesh_fleet *fleet,
                    const struct mesh_member *member, uint32_t at);
/* K changed: peers that both choices have are kept. */
void mesh_on_ring_peers(struct mesh *m, struct mono now, uint16_t ring_peers);
/* That packet will be passed in a moment: prefetches its data and decides nothing. Returns the edge that it may belong to; -1:
 * none. */
int mesh_expect(const struct mesh *m, uint32_t local, const struct probe *probe);
void mesh_on_receive(struct mesh *m, struct mono now, uint32_t local, uint16_t source_port,
                     bool stamped, struct nic_time rx, const struct probe *probe,
                     struct mesh_heard *ret_heard);
/* outcome: 0 stamped, 1 no stamp, 2 not sent (enum transmit_outcome). rough: good enough for liveness, not for clocks. */
void mesh_on_transmit(struct mesh *m, struct mono now, uint64_t token, uint8_t outcome,
                      struct nic_time tx, bool rough);
/* ttl 0: not known (the quote is too short): useful for traces, not for discovery. */
void mesh_on_hop(struct mesh *m, struct mono now, uint32_t local, struct nic_id peer,
                 uint16_t source_port, uint64_t token, uint8_t ttl,
                 const uint8_t address[static 16]);
/* A router reports that it has no route for a packet of that path. If the path is dead, it ends there. */
void mesh_on_no_route(struct mesh *m, struct mono now, uint32_t local, struct nic_id peer,
                      uint16_t source_port, const uint8_t address[static 16]);
/* The host slept until now: it neither sent nor received anything. */
void mesh_on_sleep(struct mesh *m, struct mono now);
/* Own carrier: paths of a NIC that is down are not judged. */
void mesh_on_carrier(struct mesh *m, struct mono now, uint32_t local, bool up);
/* The one-way delay of a point, by fleet time. */
void mesh_on_delay(struct mesh *m, struct mono now, int edge, uint8_t path,
                   enum finding_direction direction, enum delay_of of, int64_t owd_ns);
/* The same delay of a pair, watched for shifts (slow.h): within bound_ns by the clock; < 0: one end is not synchronised, and
 * nothing is judged. */
void mesh_watch_delay(struct mesh *m, struct mono now, int edge, uint8_t path,
                      enum finding_direction direction, int64_t owd_ns, int64_t bound_ns);
/* The time between the two packets of a pair when sent and when received (spread.h), and the delay of the faster one. */
void mesh_on_pair(struct mesh *m, struct mono now, int edge, uint8_t path,
                  enum finding_direction direction, int64_t sent_ns, int64_t heard_ns,
                  int64_t owd_ns);
void mesh_tick(struct mesh *m, struct mono now);
struct mono mesh_deadline(const struct mesh *m);
/* node_begin_us() */
uint32_t mesh_begin_us(const struct mesh *m);

/* Packets out; the caller fills in the clock's part of the probe. False: no more. */
bool mesh_next_send(struct mesh *m, struct mono now, struct mesh_send *ret_send, int *ret_edge);
bool mesh_next_verdict(struct mesh *m, struct mesh_verdict *ret_verdict);

/* Asks `peer` about `subject`, or answers; false: no room, or over the rate. */
bool mesh_query(struct mesh *m, uint32_t local, struct nic_id peer, const struct probe_query *query,
                bool answer);
/* Replaces that peer by the next one of its ring, and keeps it as a guest; false: there is none, or no room. */
bool mesh_replace(struct mesh *m, struct mono now, int edge);

/* Edges: 0 .. capacity - 1; numbers stay while the edge exists. */
struct mesh_edge_info {
    uint32_t local;
    uint32_t peer; /* index in the fleet's list */
    struct nic_id nic;
    struct host_id host;
    uint8_t reason, path_count, peer_path_count;
    bool silent;
    uint8_t version;    /* the newest that the peer used lately; 0: not heard */
    struct mono heard;  /* MONO_NEVER: never */
    struct mono talks;  /* heard without a longer silence since then, if it was heard */
    int64_t rtt_ns_min; /* -1 unknown */
    /* of the last 16 full-size packets: the number with a known fate (full.c) */
    uint8_t full_tried;
    uint8_t full_lost;   /* of these: the number that was lost while short ones arrived */
    uint32_t generation; /* changes when the number is reused for another pair */
};
/* Edge numbers are below it; a number may be free. */
int mesh_edge_capacity(const struct mesh *m);
/* Grows whenever an edge is added or removed. */
uint32_t mesh_generation(const struct mesh *m);
bool mesh_edge_info(const struct mesh *m, struct mono now, int edge,
                    struct mesh_edge_info *ret_info);
/* Delays and recent losses are unknown (path.h) if no packet came within their window. */
bool mesh_path_report(const struct mesh *m, struct mono now, int edge, uint8_t path,
                      enum finding_direction direction, struct path_report *ret_report);
/* The same without quantiles, except minimum and median as of a second ago: for frequent writing. */
bool mesh_path_brief(const struct mesh *m, struct mono now, int edge, uint8_t path,
                     enum finding_direction direction, struct path_report *ret_report);
int mesh_edge_find(const struct mesh *m, uint32_t local, struct nic_id peer);
/* Transmit stamps that the NIC gave, and those that are missing, since the start. */
void mesh_stamps_get(const struct mesh *m, uint32_t local, uint64_t *ret_stamped,
                     uint64_t *ret_missing);
void mesh_counters_get(const struct mesh *m, struct mesh_counters *ret_counters);

/* An edge's paths, saved over a restart. Plain data. */
struct mesh_saved_edge {
    struct nic_id local, peer;
    uint32_t path_count;
    uint16_t ports[EDGE_PATH_MAX];
    uint8_t hop_counts[EDGE_PATH_MAX];
    uint8_t hops[EDGE_PATH_MAX][MESH_HOP_MAX][16];
};
bool mesh_save_edge(const struct mesh *m, int edge,
                    struct mesh_saved_edge *ret_saved); /* false: unused number */
/* Ignored if the edge does not exist any more, or its ports aren't this host's. */
void mesh_restore_edge(struct mesh *m, struct mono now, const struct mesh_saved_edge *saved);

/* What the dead or lossy paths of this host in direction OUT have in common. */
struct mesh_location {
    struct element suspect;       /* the certain suspect */
    struct element_choice choice; /* the possible elements of an unknown suspect */
    uint16_t rules_out;
    uint32_t paths, edges; /* that it explains */
    /* the same for findings with one cause, or with one likeliest element; 0: any element is possible */
    uint64_t key;
    /* the last arrival before the fault on all paths that it explains; MONO_NEVER: not known */
    struct mono began;
};
/* The length of an outage. most: from the last packet that arrived before it to the first one after it. least: from the first
 * lost packet to the last. most 0: not known. */
struct mesh_length {
    struct span least, most;
};
/* A fault that the trials of all own paths show. An outage is reported when it is over. A loss of a share is reported when it has
 * a name, and when it is over. */
struct mesh_fault {
    uint32_t number;            /* the same from named to ended */
    bool hole, named, ended;    /* named: it is certain which element is at fault */
    bool parted;                /* it has no name because other paths were lost in the same time */
    bool full_size;             /* short packets arrived */
    bool job_class;             /* packets of the probes' own class arrived */
    bool narrow;                /* nothing is lost: packets take longer than before (narrow.c) */
    uint8_t direction;          /* enum finding_direction */
    int64_t apart_ns, usual_ns; /* for a narrow link: the gap of arriving pairs, now and before */
    int edge; /* one of its paths; -1: it ended, and no own path takes that way any more */
    uint8_t path;
    struct mesh_location where; /* valid with an edge */
    struct mono began, over;    /* over: MONO_NEVER while it lasts */
    struct mesh_length length;  /* of a hole that is over */
    uint32_t lost, sent;        /* trials */
};
/* True if all routers of its ways are known, and there are several ways, or a single router is all that lies between the two. */
bool mesh_ways_known(const struct mesh *m, int edge);
/* True if the NIC's host reported, not long ago, that packets which this NIC sent after the moment arrived. */
bool mesh_is_told_to_send(const struct mesh *m, struct mono now, struct nic_id nic,
                          struct mono since);
struct mesh_outage {
    struct mono began, over;
    struct mesh_length length;
};
/* The time in which the way of that own path was gone, if that is over. All paths through the element make it more exact. */
bool mesh_outage(struct mesh *m, struct mono now, int edge, uint8_t path,
                 struct mesh_outage *ret_outage);
/* The next fault since the last call, oldest first; false: no more. */
bool mesh_next_fault(struct mesh *m, struct mesh_fault *ret_fault);

/* Locates the fault of that path in that direction, by all own paths. others: also by reports of peers, if the own paths don't
 * suffice: such a search costs most. */
void mesh_locate(struct mesh *m, struct mono now, int edge, uint8_t path,
                 enum finding_direction direction, bool others, struct mesh_location *ret_location);
