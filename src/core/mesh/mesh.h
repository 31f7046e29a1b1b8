/* mesh.h: who is probed, when, over which paths, and what comes of it: one object for all NICs of a
 * host.
 *
 * Packets in (mesh_on_receive), transmit stamps in, packets out (mesh_next_send). On the way the
 * bookkeeping turns stamps of both ends into clock points (for core/clock) and, once told what
 * fleet time makes of a point (mesh_on_delay), into one-way delays. It keeps liveness and loss per
 * path and direction and says what changed (mesh_next_verdict). It never learns what time it is by
 * itself, and nothing here blocks or allocates after mesh_new.
 *
 * Cadence, per edge and end: each interval (100 ms, +-10 %) a coded pair on the next path, and a
 * single on the path half a rotation on, so that each of 4 paths is touched every 200 +- 20 ms. The
 * end with the higher id sends half an interval later. A path that is 25 ms overdue, while the peer
 * is heard on others, has a burst asked for (5 singles, 4 ms apart, and a report of their transmit
 * stamps on another path). Bursts: at most MESH_BURST_RATE packets a second and NIC; discovery the
 * same. All else is constant: no event ever raises the rate of probing.
 *
 * Which stamps a packet carries: the first of a pair and a single report the last pair, the second
 * of a pair reports the last single. So a pair is reported on two paths, and a dead path hides
 * nothing. */
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
#define MESH_BURST_RATE     40 /* packets a second and NIC */
#define MESH_DISCOVERY_RATE 40
#define MESH_FULL_RATE                                                                             \
    64 /* answers to full packets a second and NIC: of as many peers as there may be */
#define MESH_HOP_MAX    PATH_HOP_MAX
#define MESH_FULL_SIZE  1444 /* payload of a full packet: fits into an MTU of 1500, IPv6 too */
#define MESH_PATH_PROBE PROBE_PATH_MAX /* the path number of packets with a small TTL */

struct mesh;

struct mesh_config {
    uint32_t nic_count;
    struct nic_id nics[HOST_NIC_MAX];
    int64_t queue_ns[HOST_NIC_MAX]; /* who sees delays vary by more has queues on the way */
    int64_t drain_ns
        [HOST_NIC_MAX]; /* of what few switches drop at: who waited longer may have met a full queue */
    struct mesh_fleet fleet;
    uint64_t seed;
    uint16_t port_base;
    uint16_t edge_limit, ring_peers, full_limit, path_limit;
    bool no_discovery;
    struct span interval;
    struct span grid; /* ticks are wanted on multiples of this; 0: exactly */
    struct span late; /* a tick this much behind its deadline is late */
};

enum node_class {
    NODE_CLASS_CLOCK, /* high: DSCP CS6 */
    NODE_CLASS_JOB,   /* that of the job's own traffic */
};

/* One packet. The two of a pair come as neighbours, probe.second false then true, to leave back to
 * back. */
struct mesh_send {
    uint64_t token; /* handed back with the transmit stamp; unique per host */
    uint32_t local;
    struct nic_id peer;
    uint16_t source_port;
    uint8_t ttl; /* 0: the default */
    uint8_t net_class;
    uint8_t pair;       /* 1: one of a pair */
    uint8_t want_stamp; /* 0: no transmit stamp needed */
    uint16_t size;      /* of its payload: zeros follow the probe */
    uint16_t hold_us; /* leaves that long after this round: alike for all that a NIC sends in it */
    struct probe probe; /* encode with the key */
};

/* What a received packet told. */
/* Whose delay a point is. Of others' packets nobody tells the class of one that isn't of a pair: it counts as the job's. */
enum delay_of { DELAY_OF_PAIR, DELAY_OF_JOB, DELAY_OF_PROBE };
struct mesh_heard {
    int edge;      /* -1: not from an edge */
    bool fresh;    /* its header may be believed: not replayed, and it knows something that we just
                      said */
    bool new_edge; /* a guest: somebody probes us whom we had not chosen */
    uint32_t point_count;
    struct clock_point points[2]; /* .edge is the mesh's edge */
    uint8_t single_of[2];         /* enum delay_of of each, where it is no pair */
    uint32_t error_ns;
};

enum mesh_verdict_kind {
    MESH_PATH_STATE,  /* path, direction: was -> state */
    MESH_PEER_SILENT, /* nothing heard for 2 s */
    MESH_PEER_HEARD,  /* and again */
    MESH_REPATH,      /* own path now goes another way: path */
    MESH_TRACED,      /* a dead path's hops were probed: locate again */
    MESH_PATH_SLOW,   /* path, direction: its delay shifted, before_ns .. bound_ns */
    MESH_PATH_PACE,   /* and is back, or can't be told any more */
    MESH_LATE,        /* we were late ourselves: late */
};
struct mesh_verdict {
    uint8_t kind, path, direction, state, was;
    int edge;
    struct mono since;
    uint32_t proof; /* packets proven lost */
    int64_t before_ns, after_ns, other_ns, bound_ns;
    struct span late;
};

/* For what goes past the mesh: the newest packet that the edge's peer sent; false: none. What repeats it is no recording, as the
 * peer itself can tell. */
bool mesh_echo(const struct mesh *m, int edge, struct probe_echo *ret_echo);
/* True: this host sent that to the peer in the last seconds. */
bool mesh_echoed(const struct mesh *m, uint32_t local, struct nic_id peer,
                 const struct probe_echo *echo);

/* What another host's digest told of its own paths, which is a host's own evidence but another's word (digest.c). `made`: by
 * this host's clock. The caller has checked its age and that its sender goes by the same timeline. True: it told of losses,
 * and is newer than what was told of these paths. */
bool mesh_on_digest(struct mesh *m, struct mono now, uint32_t local, const struct probe *probe,
                    struct mono made);

struct mesh_counters {
    uint64_t sent, received, stamped, stamps_missing, not_sent;
    uint64_t replayed, unknown_sender, stale, own_id, unmatched_stamps, late_ticks;
    uint64_t bursts, discovery_sent, hops_heard, hops_unmatched, sends_dropped, verdicts_dropped;
    uint64_t digests_sent, digests_heard, digests_refused;
};

/* NULL: no memory. The caller has checked the configuration. Edges are chosen at once. */
struct mesh *mesh_new(const struct mesh_config *config, struct mono now);
void mesh_free(struct mesh *m);

/* The list was reloaded: edges that are no longer chosen go, new ones come. */
void mesh_on_peers(struct mesh *m, struct mono now, const struct mesh_fleet *fleet);
/* The list has one NIC more or less than before, at that place; else it is the same, and so are the routers. */
void mesh_on_member(struct mesh *m, struct mono now, const struct mesh_fleet *fleet,
                    const struct mesh_member *member, uint32_t at);
/* Another K: peers that both choices have are kept. */
void mesh_on_ring_peers(struct mesh *m, struct mono now, uint16_t ring_peers);
/* That packet will be told in a moment: fetches what it will touch, decides nothing. The edge that it may be of; -1. */
int mesh_expect(const struct mesh *m, uint32_t local, const struct probe *probe);
void mesh_on_receive(struct mesh *m, struct mono now, uint32_t local, uint16_t source_port,
                     bool stamped, struct nic_time rx, const struct probe *probe,
                     struct mesh_heard *ret_heard);
/* outcome: 0 stamped, 1 no stamp, 2 not sent (enum transmit_outcome). rough: good for liveness, not
 * for clocks. */
void mesh_on_transmit(struct mesh *m, struct mono now, uint64_t token, uint8_t outcome,
                      struct nic_time tx, bool rough);
/* ttl 0: not known (a quote too short to tell): useful for traces, not for discovery. */
void mesh_on_hop(struct mesh *m, struct mono now, uint32_t local, struct nic_id peer,
                 uint16_t source_port, uint64_t token, uint8_t ttl,
                 const uint8_t address[static 16]);
/* A router says that it knows no way on for a packet of that path: if the path is dead, it ends
 * there. */
void mesh_on_no_route(struct mesh *m, struct mono now, uint32_t local, struct nic_id peer,
                      uint16_t source_port, const uint8_t address[static 16]);
/* The host slept until now: it neither sent nor heard anything. */
void mesh_on_sleep(struct mesh *m, struct mono now);
/* Own carrier: paths of a NIC that is down are judged by nobody. */
void mesh_on_carrier(struct mesh *m, struct mono now, uint32_t local, bool up);
/* The one-way delay that fleet time makes of a point. */
void mesh_on_delay(struct mesh *m, struct mono now, int edge, uint8_t path,
                   enum finding_direction direction, enum delay_of of, int64_t owd_ns);
/* The same delay of a pair, watched for shifts (slow.h): within bound_ns by the clock; < 0: one end is
 * not synchronised, and nothing is judged. */
void mesh_watch_delay(struct mesh *m, struct mono now, int edge, uint8_t path,
                      enum finding_direction direction, int64_t owd_ns, int64_t bound_ns);
/* How far apart the two of a pair were sent and heard (spread.h), and the delay of the one that was faster. */
void mesh_on_pair(struct mesh *m, struct mono now, int edge, uint8_t path,
                  enum finding_direction direction, int64_t sent_ns, int64_t heard_ns,
                  int64_t owd_ns);
void mesh_tick(struct mesh *m, struct mono now);
struct mono mesh_deadline(const struct mesh *m);

/* Packets out; the caller fills the clock's part of the probe. False: none left. */
bool mesh_next_send(struct mesh *m, struct mono now, struct mesh_send *ret_send, int *ret_edge);
bool mesh_next_verdict(struct mesh *m, struct mesh_verdict *ret_verdict);

/* Ask `peer` about `subject`, or answer; false: no room or over the rate. */
bool mesh_query(struct mesh *m, uint32_t local, struct nic_id peer, const struct probe_query *query,
                bool answer);
/* Give up that peer for the next of its ring, and keep it as a guest; false: there is none, or no room. */
bool mesh_replace(struct mesh *m, struct mono now, int edge);

/* Edges: 0 .. capacity - 1; numbers stay while the edge lives. */
struct mesh_edge_info {
    uint32_t local;
    uint32_t peer; /* index in the fleet's list */
    struct nic_id nic;
    struct host_id host;
    uint8_t reason, path_count, peer_path_count;
    bool silent;
    uint8_t version;    /* newest that the peer spoke lately; 0: not heard */
    struct mono heard;  /* MONO_NEVER: never */
    int64_t rtt_ns_min; /* -1 unknown */
    uint8_t full_tried; /* of the last 16 packets of full size those whose fate is known (full.c) */
    uint8_t full_lost;  /* of these, lost while short ones came */
    uint32_t generation; /* changes when the number is used for another pair */
};
/* Edges are numbered below it; a number may be free. */
int mesh_edge_capacity(const struct mesh *m);
/* Grows whenever an edge came or went. */
uint32_t mesh_generation(const struct mesh *m);
bool mesh_edge_info(const struct mesh *m, struct mono now, int edge,
                    struct mesh_edge_info *ret_info);
/* Delays and recent losses are unknown (path.h) where none came for so long as they reach back. */
bool mesh_path_report(const struct mesh *m, struct mono now, int edge, uint8_t path,
                      enum finding_direction direction, struct path_report *ret_report);
/* The same without quantiles, but for minimum and median as of a second ago: for what is written
 * often. */
bool mesh_path_brief(const struct mesh *m, struct mono now, int edge, uint8_t path,
                     enum finding_direction direction, struct path_report *ret_report);
int mesh_edge_find(const struct mesh *m, uint32_t local, struct nic_id peer);
/* Transmit stamps that NIC gave and owed, since the start. */
void mesh_stamps_get(const struct mesh *m, uint32_t local, uint64_t *ret_stamped,
                     uint64_t *ret_missing);
void mesh_counters_get(const struct mesh *m, struct mesh_counters *ret_counters);

/* An edge's paths, as they outlive a restart. Plain data. */
struct mesh_saved_edge {
    struct nic_id local, peer;
    uint32_t path_count;
    uint16_t ports[EDGE_PATH_MAX];
    uint8_t hop_counts[EDGE_PATH_MAX];
    uint8_t hops[EDGE_PATH_MAX][MESH_HOP_MAX][16];
};
bool mesh_save_edge(const struct mesh *m, int edge,
                    struct mesh_saved_edge *ret_saved); /* false: free number */
/* Ignored when there is no such edge any more, or its ports aren't ours. */
void mesh_restore_edge(struct mesh *m, struct mono now, const struct mesh_saved_edge *saved);

/* What the dead or lossy paths of this host in direction OUT share. */
struct mesh_location {
    struct element suspect;       /* what it is, for sure */
    struct element_choice choice; /* of an unknown one: what it may be */
    uint16_t rules_out;
    uint32_t paths, edges; /* that it explains */
    uint64_t
        key; /* alike for findings with one cause, or one likeliest; 0: any element may be it */
    struct mono
        began; /* of all paths that it explains the last word before; MONO_NEVER: not known */
};
/* How long something was gone: between the last packet before it that came and the first after it, at most, and from the first
 * that was lost to the last, at least. most 0: not known. */
struct mesh_length {
    struct span least, most;
};
/* A fault that the trials of all own paths name: what lost all for a while, told when it is over; or what loses a share,
 * told when it is named, and when it is over. */
struct mesh_fault {
    uint32_t number;         /* one from named to ended */
    bool hole, named, ended; /* named: that something is at fault is sure */
    bool full_size;          /* short packets came through */
    bool job_class;          /* what rides in the probes' own class came through */
    bool narrow;             /* nothing is lost: packets take longer than they did (narrow.c) */
    uint8_t direction;       /* enum finding_direction */
    int64_t apart_ns,
        usual_ns; /* of a narrow one's path: how far apart pairs arrive, and did before */
    int edge;     /* one of its paths; -1: it ended, and no own path goes that way any more */
    uint8_t path;
    struct mesh_location where; /* with an edge */
    struct mono began, over;    /* over: MONO_NEVER while it lasts */
    struct mesh_length length;  /* of a hole that is over */
    uint32_t lost, sent;        /* trials */
};
/* All routers of its ways are known, and they are several, or one router is all there is between the two. */
bool mesh_ways_known(const struct mesh *m, int edge);
/* Its host told, not long ago, that packets which this NIC sent after the moment came to somebody. */
bool mesh_is_told_to_send(const struct mesh *m, struct mono now, struct nic_id nic,
                          struct mono since);
struct mesh_outage {
    struct mono began, over;
    struct mesh_length length;
};
/* When the way of that own path was gone, if that is over: better known by all paths that cross what was. */
bool mesh_outage(struct mesh *m, struct mono now, int edge, uint8_t path,
                 struct mesh_outage *ret_outage);
/* What broke since it was last asked, oldest first; false: nothing more. */
bool mesh_next_fault(struct mesh *m, struct mesh_fault *ret_fault);

/* Where that path's fault lies in that direction, by all own paths. others: and by what peers tell of theirs, where the own
 * paths don't tell: such a look costs most. */
void mesh_locate(struct mesh *m, struct mono now, int edge, uint8_t path,
                 enum finding_direction direction, bool others, struct mesh_location *ret_location);
