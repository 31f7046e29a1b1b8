/* internal.h: the mesh's data, shared by its own files only. */
#pragma once
#include "base/bug.h"
#include "base/prng.h"
#include "core/mesh/delay.h"
#include "core/mesh/gaps.h"
#include "core/mesh/mesh.h"
#include "core/mesh/slow.h"

/* packets that are remembered for each path and direction: 4 s at 7.5 a second */
#define SLOT_COUNT 32
#define SEND_QUEUE 1024
/* The caller takes all verdicts after each call. In one call each path may be proven dead and its slow verdict withdrawn, and
 * each peer may fall silent. */
#define VERDICTS_OF_HALF 2
#define VERDICTS_OF_EDGE 2
#define FAULT_QUEUE      16
#define TOLD_MAX         640        /* paths of other hosts that are known from their digests */
#define TOLD_HOST_MAX    40         /* of one host */
#define DIGEST_MAX       6          /* packets of a round */
#define DIGEST_TO_PEER   UINT32_MAX /* none of those: the digest that only the peer gets */
/* searches cost most when queues drop packets all the time */
#define FAULT_CALM_NS (400 * NS_PER_MS)
#define ROUTER_MAX    2048 /* distinct router addresses that are remembered */
/* packets of a path in hours: a sender that jumps further was restarted */
#define SEQ_LIFE      100000
#define PROOF_WAIT_NS (15 * NS_PER_MS) /* the wait for packets that overtake each other */
/* and the wait in a queue, as this path's packets waited lately */
#define PROOF_QUEUE_NS (60 * NS_PER_MS)
#define QUEUE_FRESH_NS (5 * NS_PER_S / 2) /* a delay was reported within this time */
#define MOVED_NS       (400 * NS_PER_MS)
#define SHARE_PATH_NS  (5 * NS_PER_S)
#define SHARE_NIC_NS   NS_PER_S
#define SHARE_NIC_MAX  0.5 /* the limit of a share that is guessed from other paths */
#define SHARE_RUN      8   /* losses in a row: more may have been a hole */
#define OVERDUE_NS     (25 * NS_PER_MS)
#define GAP_ROUNDS     4 /* a peer that is silent for longer starts anew */
#define WANT_AGAIN_NS  (100 * NS_PER_MS)
/* overdue for so long and never proven: the peer gave that path up */
#define SUSPECT_NS_MAX (5 * NS_PER_S)
/* dead for so long, and the peer reports no packet on it: the same */
#define UNUSED_NS      (10 * NS_PER_S)
#define NIC_SILENT_NS  (700 * NS_PER_MS) /* while another NIC of that host is heard */
#define SILENT_NS      (2 * NS_PER_S)
#define STRANGER_NS    (300 * NS_PER_MS)
#define GUEST_NS       (10 * NS_PER_S)
#define REVIVE_PACKETS 3
#define LATE_GRACE_NS  (250 * NS_PER_MS)
#define DEPART_US      4000 /* within a round of 5 ms */
#define DEPART_MAX     4    /* departures in a round: each one wakes the agent */
#define BURST_STEP_NS  (4 * NS_PER_MS)
/* packets sent and stamped, none acknowledged, while the peer still sends */
#define DEAF_PACKETS  16
#define DEAF_NS       (500 * NS_PER_MS)
#define RECENT_NS     (30 * NS_PER_S)
#define OWD_WINDOW_NS (10 * NS_PER_S)
#define TRACE_ANSWERS 256 /* answers of routers that count at the same time */
#define REDISCOVER_NS (600 * NS_PER_S)
/* share of wide pairs, among those that count, without a fault (spread.h) */
#define NARROW_NULL 0.1
#define NARROW_SHARE                                                                               \
    0.98 /* and with a slow link: a few pairs meet a queue behind it that pushes them together */

enum sent_state { SENT_NONE, SENT_WAITING, SENT_STAMPED, SENT_UNSTAMPED, SENT_FAILED };

struct sent_slot {
    uint32_t seq;
    uint8_t state, second, high, used;
    uint8_t rough;  /* the stamp proves that it left, but its time is not exact */
    uint32_t at_us; /* when it was built, by the agent's clock, modulo 2^32 */
    struct nic_time tx;
};
struct heard_slot {
    uint32_t seq;
    uint8_t valid, stamped, second, used;
    struct nic_time rx;
};
/* A packet or pair: its path, and the number of the first packet. */
struct packet_ref {
    uint32_t seq;
    uint8_t path, valid, pair, reserved;
};

/* Delays of the current and the last window, as counts in log-linear buckets (delay.h). */
struct path_half { /* the data of both directions */
    uint8_t state, reserved;
    uint16_t port;
    uint32_t deaths;
    struct mono since, heard;
    struct mono back; /* for a dead path: the time of the first packet that arrived again */
    uint64_t sent, lost, reordered;
    uint32_t sent_now, lost_now, sent_before, lost_before;
    struct mono recent_start;
    struct delay_window *delay;
    struct mono
        brief_at; /* quantiles are computed once a second, not each time the page is written */
    int64_t brief_p50, brief_min, brief_count;
    struct slow_watch watch;
    struct spread_watch spread;
    /* the way for which its pairs were reported to the inference (narrow.c) */
    uint64_t spread_routed;
};
/* For the newest delays of one class, the packets that waited: bit 0 is the newest. */
struct waits {
    uint32_t bits;
    uint8_t count, waited; /* known: number of valid bits, at most 32; waited: number of set bits */
    struct mono at;
};
/* Packets in a row that a path lost while its way was unknown, by the time of sending. */
struct unplaced_run {
    struct mono first, last;
    uint32_t count;
};
/* Fates by class, singles (of the job) and pairs: in the present and in the last period. */
struct class_fates {
    struct mono start;
    uint16_t sent[2][2], lost[2][2];
};
/* The last full packet of a path (full.c). */
struct full_probe {
    struct mono sent;
    uint8_t number;
    bool waits; /* for its answer */
};
/* Of path_out and path_in: the data that every tick reads come first (tick_fetch). */
struct path_out {
    struct mono burst_next;
    struct path_half half;
    uint8_t hop_count, revive;
    uint16_t hops[MESH_HOP_MAX]; /* 1 + index into the mesh's routers; 0: no answer */
    uint64_t signature;
    uint8_t trace_answered; /* one bit for each hop that answered since the trace began */
    uint8_t trace_rounds;
    struct mono traced;
    struct mono trace_began;            /* the first packet whose answer may be among those */
    uint32_t trace_at_us[MESH_HOP_MAX]; /* a hop's first answer since then, modulo 2^32 */
    struct mono proven;                 /* it was called dead; 0: never */
    /* it got another port: until a packet from it arrives, the peer's reports are about the old one */
    struct mono moved;
    struct mono verified; /* the last time when its way was verified */
    struct mono rerouted; /* the fabric changed a route then, perhaps on this way */
    struct mono astray;   /* another router than the known one answered on it */
    struct loss_share share;
    uint32_t seq_next, acked, judged;
    uint32_t trial_us;      /* when the newest trial was sent */
    uint32_t trials_judged; /* the newest packet whose fate was reported (trial.c) */
    uint64_t routed;        /* the way for which it was reported: signature and generation */
    uint64_t full_routed;   /* the same for full packets */
    struct full_probe full;
    struct waits waits[2]; /* of the probes' class, and of the job's */
    struct class_fates fates;
    struct unplaced_run unplaced[2]; /* the present run, and the last one of three or more */
    bool acked_any, judged_any;
    uint32_t lost_run; /* losses in a row */
    struct loss_test test;
    /* packets still to send; the report is sent when they are stamped */
    uint8_t burst_left, burst_wait;
    uint32_t burst_last, burst_stamped;
    struct sent_slot sent[SLOT_COUNT];
};
struct path_in {
    bool known;
    uint8_t revive, unseen;
    struct mono touched, proof_due, wanted, suspect;
    struct mono told; /* the peer's last report of a packet on it */
    struct path_half half;
    uint32_t highest, proof_seq;
    uint32_t floor; /* packets up to this one may have been lost while nothing came at all */
    bool floor_wanted, floor_set;
    uint32_t reported;         /* the newest packet that the peer reported as sent */
    uint32_t missed;           /* since the last arrival, by reports before the floor */
    double evidence;           /* from all missing packets since the last arrival */
    struct nic_time missed_at; /* the newest of them, by the peer's clock */
    uint64_t mask;             /* bit k: packet highest - k arrived */
    struct loss_share share;
    struct heard_slot heard[SLOT_COUNT];
};

struct mesh_edge {
    bool used, fresh, silent, peer_late, carrier_known;
    uint8_t reason, ring, forward, rank;
    uint8_t path_count, peer_path_count;
    uint8_t stranger_version; /* the version of that packet */
    uint8_t version,
        version_lately; /* the newest version of the peer in the last window, and in this one */
    struct mono version_start;
    uint32_t version_count; /* packets sent, to try versions in turn */
    uint8_t want;           /* incoming paths for which a burst is requested now */
    uint32_t local, peer, generation;
    struct nic_id nic;
    struct host_id host;
    struct mono heard, started;
    struct mono talks; /* it has been heard since then, without a gap of NIC_SILENT_NS / 2 */
    struct mono pair_nominal, pair_next, single_next;
    uint32_t round; /* of pairs */
    /* A packet outside any window, from a peer that is not heard otherwise. It is only echoed. If it is no replay, its sender can
     * prove from the echo that it knows this host. */
    struct probe_stamps stranger;
    struct packet_ref pair_out[2], single_out[2], pair_in, single_in; /* [0] is the newest */
    struct mono acked; /* when any own packet was last acknowledged */
    uint32_t heard_since_ack, stamped_since_ack;
    bool deaf;          /* the peer receives none of this host's paths */
    int64_t owd_min[2]; /* this window and the last one, sums of both directions */
    int64_t out_min[2], in_min[2];
    struct mono min_start;
    bool discovered, discovery_silent;
    bool unsorted; /* the ports were not chosen by ways: the peer's path k takes another way */
    bool placed;   /* the way of each of its ports is known, although they weren't chosen by ways */
    struct mono discover_next, place_next;
    bool full_answered; /* the peer has answered a full packet */
    /* the host's account for digests: packets, and own rounds that they start; at its first edge */
    struct mono digest_at;
    int64_t digest_credit, news_credit;
    uint8_t full_round;
    uint8_t full_bad; /* the path that last lost a full packet, and the time */
    bool full_again;  /* the last full packet used that path again */
    struct mono full_next, full_bad_at;
    struct spread_clock clock_off;
    struct gaps_share gaps_share[2]; /* out, in */
    uint16_t full_past;    /* fates of the last full packets, the newest in bit 0; 1: lost */
    uint8_t full_past_len; /* number of valid bits */
    uint8_t full_lost;     /* number of set bits */
    struct path_out out[EDGE_PATH_MAX];
    struct path_in in[EDGE_PATH_MAX];
};

/* The data of one direction of that path. */
static inline struct path_half *path_half_of(struct mesh_edge *e, uint8_t path, bool out)
{
    return out ? &e->out[path].half : &e->in[path].half;
}

/* A path of another host, as its digest reports it. */
struct told_path {
    bool used, answered;
    uint8_t path, lost, hop_count;
    uint16_t hops[MESH_HOP_MAX]; /* 1 + index into the mesh's routers */
    struct host_id host;         /* the host that sends on it and reports it */
    struct nic_id from, to;
    struct host_id to_host;
    /* when the digest was made; the last arrival. MONO_NEVER: too long ago */
    struct mono made, heard;
};
/* The name of a path's loss by others' reports, and its time: a name must stand for a while (locate.c). */
#define WIDE_MAX 32
struct wide_name {
    uint32_t half; /* 1 + twice the path's number, plus one for incoming packets; 0: none */
    uint64_t key;
    struct mono died, at, looked;
};
/* Digests that are to be sent (digest.c). */
struct digests {
    struct mono next, until; /* the next round, and the last one */
    struct mono news;        /* a path died, or a neighbour reported a loss */
    struct mono credit_at;
    int64_t credit;
    int cursor; /* the next edge to serve */
    uint32_t count;
    struct probe_digest packets[DIGEST_MAX];
};

enum slots { SLOTS_PAIR, SLOTS_SINGLE, SLOTS_REPORT, SLOTS_PROBE_REPLY };
struct send_entry {
    int32_t edge;
    uint32_t local;
    struct nic_id peer;
    uint8_t type, path, slots, second;
    uint8_t ttl, report_path, high, answer, full;
    uint16_t port;
    uint32_t seq; /* report, reply or discovery; or the packet's number in the round of digests */
    uint32_t generation;
    struct probe_query query;
};
struct pending {
    uint64_t token;
    uint32_t seq, generation;
    int32_t edge;
    uint8_t path, reserved[7];
};

/* Discovery: one edge at a time for each NIC. */
struct discovery {
    int edge; /* -1: idle */
    uint32_t generation;
    bool in_place; /* it only probes the ports in use; otherwise all, to choose some */
    uint8_t ports[EDGE_PATH_MAX], port_count;
    uint8_t port, ttl; /* the next probe: the place in ports, or the port */
    uint8_t pass;
    bool asked_again;            /* the second pass has probed something */
    uint8_t reached;             /* the lowest hop limit that reached the peer */
    uint8_t last_port, last_ttl; /* the last probe */
    struct mono next, finish;
    uint16_t hops[MESH_PORT_COUNT][MESH_HOP_MAX];
};
struct nic {
    struct nic_id id;
    uint32_t peer; /* own index in the list */
    bool carrier, carrier_known;
    struct mono carrier_moved;
    uint64_t stamped, stamps_missing;
    /* for the packets that it sends until the next tick */
    uint16_t hold_us;
    int64_t burst_credit, probe_credit, full_credit; /* in packets * NS_PER_S */
    struct mono credit_at;
    struct loss_share share, share_usual,
        share_out;           /* over all that it receives and sends, without dead paths */
    struct loss_share waits; /* over all that it receives; `lost`: those that waited in a queue */
    struct discovery discovery;
    uint32_t verify_next;
    int32_t *table; /* edges by hash of the peer's id; -1: empty */
    struct peer_rings *rings;
    struct peer_choice *choices; /* the chosen peers, then the spares */
    uint32_t choice_count;
};
struct router {
    uint8_t address[16];
    uint64_t hash;
    uint32_t place, number;
    uint32_t name; /* in digests */
};

/* The last input of the inference, and its question. */
struct locate_asked {
    struct mono now, since;
    bool out, loss, slow;
    uint32_t told;  /* version of the others' reports */
    uint32_t times; /* number of times that the input was renewed */
};

struct mesh {
    struct mesh_config config;
    struct prng prng;
    int edge_capacity, edge_count;
    uint32_t table_mask, generation;
    struct mesh_edge *edges;
    struct mono *due; /* for each edge: the time at which it needs a tick */
    struct nic nics[HOST_NIC_MAX];
    struct mono promised, late_until, last_tick;
    uint32_t begin_us; /* mesh_begin_us() */
    uint64_t token;
    struct pending *pending;
    uint32_t pending_mask;
    struct send_entry *sends;
    uint32_t send_head, send_count;
    struct mesh_verdict *verdicts;
    uint32_t verdict_next, verdict_count, verdict_limit;
    struct router *routers;
    uint32_t router_count;
    struct delay_window *delays;
    struct peer_choice *choices; /* for all NICs */
    struct peer_rings *rings;
    struct mesh_counters counters;
    struct locate *locate;   /* by edge and path; then the answers of routers */
    uint32_t locate_numbers; /* number of its own paths */
    struct locate_asked asked;
    struct locate *wide; /* the same, and then the reports of other hosts: by number in `told` */
    struct locate_asked asked_wide;
    struct told_path *told;
    uint32_t told_version;  /* grows with each report */
    uint32_t told_top;      /* no place of `told` from here on was ever used; it never falls */
    struct mono told_until; /* then all reports are too old */
    struct wide_name wide_names[WIDE_MAX];
    struct digests digests;
    /* by edge and path: fates that are reported all the time (trial.c) */
    struct locate *trials;
    struct locate *fulls;      /* the same for full packets (full.c) */
    struct mono full_alarm;    /* a full packet was lost: more of them are sent for a while */
    struct locate *pairs[2];   /* for outgoing and incoming pairs (narrow.c) */
    struct gaps *gaps;         /* of pairs, in the same order */
    struct mono pairs_told[2]; /* the newest pair while a gap was known */
    struct mesh_fault faults[FAULT_QUEUE];
    uint32_t fault_head, fault_count;
};

static inline int32_t seq_sub(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b);
}
static inline bool mesh_is_late(const struct mesh *m, struct mono now)
{
    return mono_before(now, m->late_until);
}

/* mesh.c */
void mesh_verdict_push(struct mesh *m, struct mesh_verdict verdict);
bool mesh_send_push(struct mesh *m, const struct send_entry *entry);
void mesh_due(struct mesh *m, int edge, struct mono at);
uint32_t mesh_router(struct mesh *m, const uint8_t address[static 16]); /* 1 + index; 0: no room */
bool mesh_credit(struct mesh *m, struct mono now, int64_t *credit);
void path_half_move(struct mesh *m, struct mono now, int edge, uint8_t path,
                    enum finding_direction direction, enum path_event event, uint32_t proof);
void path_half_trial(struct path_half *half, struct mono now, bool lost);
/* Packets of a path with known fates. */
struct fates {
    uint32_t sent, lost;
};
struct fates path_half_recent(const struct path_half *half, struct mono now);
void path_half_forget(struct path_half *half, struct mono now);
void verdict_share(struct mesh *m, struct mono now, int edge, uint8_t path, double lost,
                   double sent);

/* prober.c: decides what is sent when */
void prober_round(struct mesh *m);
void prober_edge_start(struct mesh *m, struct mono now, int edge);
void prober_edge_again(struct mesh *m, struct mono now, int edge); /* its rounds begin anew */
void prober_edge_tick(struct mesh *m, struct mono now, int edge);
void prober_hear_pair(struct mesh *m, struct mono now, int edge);
void prober_burst(struct mesh *m, struct mono now, int edge, uint8_t path);
struct mono prober_due(const struct mesh_edge *e);
/* A working path, if possible another one than `avoid`. */
uint8_t prober_good_path(const struct mesh_edge *e, uint8_t avoid);

/* hear.c: evaluates a received packet */
bool hear_queue_drops(const struct mesh *m, struct mono now, const struct mesh_edge *e,
                      const struct path_out *out);
/* trial.c: the fates of own packets */
void trial_on_mask(struct mesh *m, struct mono now, int edge, const struct probe *probe);
void trial_on_delay(struct mesh *m, struct mono now, int edge, uint8_t path, bool high,
                    int64_t owd_ns);
/* All losses of these paths were of the job's class, and by odds of 10^6 that isn't chance. */
struct class_sums {
    double sent[2], lost[2]; /* pairs, singles */
};
void trial_classes(const struct path_out *out, struct mono now, struct class_sums *sums);
bool trial_is_job_class(const struct class_sums *sums);
struct locate_case;
/* True if the path lost packets in a row while its way was unknown, and that may have been during the outage. */
bool trial_unplaced(const struct path_out *out, const struct locate_case *c);
/* True if a full queue may have dropped packets that were sent then: other packets of the class waited, or it is unknown. */
bool trial_may_be_queue(const struct path_out *out, bool high, struct mono sent);
void trial_skip(struct mesh *m, int edge); /* some packets' fates are unknown */
/* digest.c */
void digest_tick(struct mesh *m, struct mono now);
struct mono digest_due(const struct mesh *m);
void digest_alarm(struct mesh *m, struct mono now); /* an own path died */
const struct told_path *digest_told(const struct mesh *m, struct mono now,
                                    uint32_t index); /* NULL: no more */
void digest_to_peer(const struct mesh *m, struct mono now, int edge, struct probe_digest *ret);
bool digest_seen(const struct mesh *m, struct mono now, int edge, uint8_t path,
                 struct probe_observation *ret);
uint32_t router_name(uint32_t place, uint32_t number, uint64_t hash);
/* fault.c */
void mesh_tell_trial(struct mesh *m, int edge, uint8_t path, struct mono sent, bool lost);
void mesh_tell_full(struct mesh *m, int edge, uint8_t path, struct mono sent, bool lost);
/* True if a case of pairs may be reported: about its own elements a host can only prove some things. */
bool mesh_may_be_narrow(const struct mesh *m, const struct locate_case *c, bool out);
void mesh_tell_pair(struct mesh *m, int edge, uint8_t path, bool out, struct mono sent, bool wide);
void mesh_faults_tick(struct mesh *m, struct mono now);
/* full.c: full-size packets */
bool full_is(uint32_t seq);
void full_tick(struct mesh *m, struct mono now, int edge);
void full_answer(struct mesh *m, int edge, uint32_t seq);
void full_reached(struct mesh *m, struct mono now, int edge, uint32_t seq);
/* verdict.c: overdue packets, proofs, silence */
void verdict_edge_tick(struct mesh *m, struct mono now, int edge);
struct mono verdict_due(const struct mesh *m, const struct mesh_edge *e);
void verdict_touched(struct mesh *m, struct mono now, int edge, uint8_t path);
void verdict_own_slot(struct mesh *m, struct mono now, int edge, const struct probe_stamps *own);
void verdict_masks(struct mesh *m, struct mono now, int edge, uint8_t wanted, uint8_t dead);
void verdict_ack(struct mesh *m, struct mono now, int edge, uint8_t path);
void verdict_late(struct mesh *m, struct mono now, struct span late);

/* discovery.c */
void discovery_tick(struct mesh *m, struct mono now, uint32_t local);
/* True if the path's way is known, and was verified after the last change of a route that may concern it. */
bool discovery_way_holds(const struct path_out *out);
/* Its own packets were seen to go another way than the known one. */
bool discovery_way_astray(const struct path_out *out);
struct mono discovery_due(const struct mesh *m, uint32_t local);
void discovery_reached(struct mesh *m, struct mono now, int edge, uint32_t seq);
#define TRACE_FLAG  0x8000u
#define VERIFY_FLAG 0x4000u
/* The sequence number of a discovery packet contains the question, so that the peer's answer shows it. `flag`: TRACE_FLAG,
 * VERIFY_FLAG or 0; with a flag, `port` is the path's index. */
uint32_t discovery_seq(uint32_t generation, uint8_t port, uint8_t ttl, uint32_t flag);
void discovery_send(struct mesh *m, int edge, uint16_t source_port, uint32_t seq, uint8_t ttl);
/* place.c: the ways of the ports in use, if one died before its way was known */
bool place_wanted(const struct mesh_edge *e, struct mono now);
/* Selects the ports to probe. Working ones come first, because they show the distance. */
void place_start(struct discovery *d, const struct mesh *m, const struct mesh_edge *e);
/* The ports stay the same; their answers give their ways. */
void place_done(struct mesh *m, struct mono now, int edge, const struct discovery *d);
/* trace.c */
/* The last hop of a dead path that answered a packet which was sent after the path's first loss; -1: none. */
int trace_reached(const struct path_out *out, struct mono now);
void discovery_trace(struct mesh *m, struct mono now, int edge, uint8_t path);
/* A router answered. True: the answer belongs to a path that is being traced, and needs no further handling. */
bool discovery_trace_answer(struct mesh *m, struct mono now, int edge, uint16_t source_port,
                            uint32_t router);
void mesh_spare_add(struct mesh *m, struct mono now, int edge);
void mesh_spare_remove(struct mesh *m, int edge);
void mesh_notice_late(struct mesh *m, struct mono now);
int mesh_edge_add(struct mesh *m, struct mono now, uint32_t local,
                  const struct peer_choice *choice);
