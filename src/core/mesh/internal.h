/* internal.h: the mesh's data, shared by its own files only. */
#pragma once
#include "base/bug.h"
#include "base/prng.h"
#include "core/mesh/delay.h"
#include "core/mesh/gaps.h"
#include "core/mesh/mesh.h"
#include "core/mesh/slow.h"

#define SLOT_COUNT 32 /* packets remembered per path and direction: 4 s at 7.5 a second */
#define SEND_QUEUE 1024
/* The caller drains after each call: in one, each path may be proven dead and its delay withdrawn, and each peer fall silent */
#define VERDICTS_OF_HALF 2
#define VERDICTS_OF_EDGE 2
#define FAULT_QUEUE      16
#define TOLD_MAX         640        /* paths of other hosts that are known by their digests */
#define TOLD_HOST_MAX    40         /* of one host */
#define DIGEST_MAX       6          /* packets of a round */
#define DIGEST_TO_PEER   UINT32_MAX /* not one of those: what the peer alone is told */
#define FAULT_CALM_NS    (400 * NS_PER_MS) /* looks cost most where queues drop packets all the time */
#define ROUTER_MAX       2048              /* distinct router addresses remembered */
#define SEQ_LIFE         100000 /* packets of a path in hours: who jumps further was started anew */
#define PROOF_WAIT_NS    (15 * NS_PER_MS)   /* for packets that overtake each other */
#define PROOF_QUEUE_NS   (60 * NS_PER_MS)   /* and in a queue, as this path's lately were */
#define QUEUE_FRESH_NS   (5 * NS_PER_S / 2) /* a delay was told within */
#define MOVED_NS         (400 * NS_PER_MS)
#define SHARE_PATH_NS    (5 * NS_PER_S)
#define SHARE_NIC_NS     NS_PER_S
#define SHARE_NIC_MAX    0.5 /* guessed from other paths */
#define SHARE_RUN        8   /* losses in a row: more may have been a hole */
#define OVERDUE_NS       (25 * NS_PER_MS)
#define GAP_ROUNDS       4 /* a peer that is silent for longer begins anew */
#define WANT_AGAIN_NS    (100 * NS_PER_MS)
#define SUSPECT_NS_MAX   (5 * NS_PER_S)  /* overdue and never proven: the peer gave that path up */
#define UNUSED_NS        (10 * NS_PER_S) /* dead, and the peer tells of no packet on it: the same */
#define NIC_SILENT_NS    (700 * NS_PER_MS) /* while another NIC of that host is heard */
#define SILENT_NS        (2 * NS_PER_S)
#define STRANGER_NS      (300 * NS_PER_MS)
#define GUEST_NS         (10 * NS_PER_S)
#define REVIVE_PACKETS   3
#define LATE_GRACE_NS    (250 * NS_PER_MS)
#define DEPART_US        4000 /* within a round of 5 ms */
#define DEPART_MAX       4    /* departures of a round: each one wakes the agent */
#define BURST_STEP_NS    (4 * NS_PER_MS)
#define DEAF_PACKETS     16 /* sent and stamped, none acknowledged, while the peer talks */
#define DEAF_NS          (500 * NS_PER_MS)
#define RECENT_NS        (30 * NS_PER_S)
#define OWD_WINDOW_NS    (10 * NS_PER_S)
#define TRACE_ANSWERS    256 /* of routers, that count at a time */
#define REDISCOVER_NS    (600 * NS_PER_S)
#define NARROW_NULL      0.1 /* of pairs that tell something, wide where nothing is wrong (spread.h) */
#define NARROW_SHARE                                                                               \
    0.98 /* and where a link is slow: few meet a queue behind it that pushes them together */

enum sent_state { SENT_NONE, SENT_WAITING, SENT_STAMPED, SENT_UNSTAMPED, SENT_FAILED };

struct sent_slot {
    uint32_t seq;
    uint8_t state, second, high, used;
    uint8_t rough;  /* the stamp tells that it left, not exactly when */
    uint32_t at_us; /* when it was built, by the agent's clock, modulo 2^32 */
    struct nic_time tx;
};
struct heard_slot {
    uint32_t seq;
    uint8_t valid, stamped, second, used;
    struct nic_time rx;
};
/* A packet or pair by path and number of the first. */
struct packet_ref {
    uint32_t seq;
    uint8_t path, valid, pair, reserved;
};

/* Delays of the current and the last window, kept as counts per log-linear bucket (delay.h). */
struct path_half { /* what both directions keep */
    uint8_t state, reserved;
    uint16_t port;
    uint32_t deaths;
    struct mono since, heard;
    struct mono back; /* a dead one: the first packet that came again */
    uint64_t sent, lost, reordered;
    uint32_t sent_now, lost_now, sent_before, lost_before;
    struct mono recent_start;
    struct delay_window *delay;
    struct mono
        brief_at; /* quantiles are computed once a second, not whenever the page is written */
    int64_t brief_p50, brief_min, brief_count;
    struct slow_watch watch;
    struct spread_watch spread;
    uint64_t spread_routed; /* the way that its pairs were told of (narrow.c) */
};
/* Of the newest delays of one class, which waited: bit 0 the newest. */
struct waits {
    uint32_t bits;
    uint8_t count, waited; /* known, at most 32; of them, bits that are set */
    struct mono at;
};
/* Fates by class, singles (the job's) and pairs: of this while and of the last. */
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
/* Of both, what every tick looks at stands first (tick_fetch). */
struct path_out {
    struct mono burst_next;
    struct path_half half;
    uint8_t hop_count, revive;
    uint16_t hops[MESH_HOP_MAX]; /* 1 + index into the mesh's routers; 0: did not answer */
    uint64_t signature;
    uint8_t trace_answered; /* bits by hop since the trace began */
    uint8_t trace_rounds;
    struct mono traced;
    struct mono trace_began; /* the first packet whose answer may be among those */
    struct mono moved;       /* took another port: until the peer heard it, it speaks of the old */
    struct mono verified;    /* its way was seen to be the known one */
    struct mono rerouted;    /* the fabric went round something, maybe on this way */
    struct loss_share share;
    uint32_t seq_next, acked, judged;
    uint32_t trial_us;      /* when the newest trial was sent */
    uint32_t trials_judged; /* the newest packet whose fate was told (trial.c) */
    uint64_t routed;        /* the way that it was told of: signature and generation */
    uint64_t full_routed;   /* the same, of full packets */
    struct full_probe full;
    struct waits waits[2]; /* of the probes' class; of the job's */
    struct class_fates fates;
    bool acked_any, judged_any;
    uint32_t lost_run; /* judged lost one after the other */
    struct loss_test test;
    uint8_t burst_left, burst_wait; /* packets to send; report to send when stamped */
    uint32_t burst_last, burst_stamped;
    struct sent_slot sent[SLOT_COUNT];
};
struct path_in {
    bool known;
    uint8_t revive, unseen;
    struct mono touched, proof_due, wanted, suspect;
    struct mono told; /* the peer's last word of a packet on it */
    struct path_half half;
    uint32_t highest, proof_seq;
    uint32_t floor; /* what was sent up to here may have been lost while nothing came at all */
    bool floor_wanted, floor_set;
    uint32_t reported;         /* the newest that the peer said it sent */
    uint32_t missed;           /* since one came, by what was reported before the floor */
    double evidence;           /* of all that is missing since one came */
    struct nic_time missed_at; /* the newest of them, on the peer's clock */
    uint64_t mask;             /* bit k: highest - k came */
    struct loss_share share;
    struct heard_slot heard[SLOT_COUNT];
};

struct mesh_edge {
    bool used, fresh, silent, peer_late, carrier_known;
    uint8_t reason, ring, forward, rank;
    uint8_t path_count, peer_path_count;
    uint8_t stranger_version; /* that it was sent in */
    uint8_t version,
        version_lately; /* newest that the peer spoke in the last window, and in this */
    struct mono version_start;
    uint32_t version_count; /* packets sent, for trying versions in turn */
    uint8_t want;           /* in-paths to ask a burst for, now */
    uint32_t local, peer, generation;
    struct nic_id nic;
    struct host_id host;
    struct mono heard, started;
    struct mono pair_nominal, pair_next, single_next;
    uint32_t round; /* of pairs */
    /* A packet out of any window, from a peer that is not heard otherwise. It is echoed, no more:
     * only who sent it a moment ago can make something of that, and then knows us again. */
    struct probe_stamps stranger;
    struct packet_ref pair_out[2], single_out[2], pair_in, single_in; /* [0] newest */
    struct mono acked; /* any own packet acknowledged */
    uint32_t heard_since_ack, stamped_since_ack;
    bool deaf;          /* the peer hears none of our paths */
    int64_t owd_min[2]; /* this and the last window, sums of both directions */
    int64_t out_min[2], in_min[2];
    struct mono min_start;
    bool discovered, discovery_silent;
    bool unsorted; /* ways of ports that nobody chose: path k of the peer goes another way */
    bool placed;   /* each of its ports is known to go a way, though they weren't chosen by ways */
    struct mono discover_next, place_next;
    bool full_answered; /* the peer answered a full packet once */
    /* of what its host's digests may cost: packets, and rounds of our own that they start; at its first edge */
    struct mono digest_at;
    int64_t digest_credit, news_credit;
    uint8_t full_round;
    uint8_t full_bad; /* the path that lost one last, and when */
    bool full_again;  /* the last one went by that path again */
    struct mono full_next, full_bad_at;
    struct spread_clock clock_off;
    struct gaps_share gaps_share[2]; /* out, in */
    uint16_t full_past;    /* fates of the last full packets, the newest in bit 0; 1: lost */
    uint8_t full_past_len; /* of these bits */
    uint8_t full_lost;     /* how many of them are 1 */
    struct path_out out[EDGE_PATH_MAX];
    struct path_in in[EDGE_PATH_MAX];
};

/* What is known of one direction of that path. */
static inline struct path_half *path_half_of(struct mesh_edge *e, uint8_t path, bool out)
{
    return out ? &e->out[path].half : &e->in[path].half;
}

/* A path out of another host, as its digest tells. */
struct told_path {
    bool used, answered;
    uint8_t path, lost, hop_count;
    uint16_t hops[MESH_HOP_MAX]; /* 1 + index into the mesh's routers */
    struct host_id host;         /* whose it is, and whose word */
    struct nic_id from, to;
    struct host_id to_host;
    struct mono made, heard; /* the digest; the last that came. MONO_NEVER: too long ago to tell */
};
/* What a path's loss is named by others' words, and since when: a name must stand for a while (locate.c). */
#define WIDE_MAX 32
struct wide_name {
    uint32_t half; /* 1 + twice its number, one more for what comes in; 0: none */
    uint64_t key;
    struct mono died, at, looked;
};
/* Digests to send (digest.c). */
struct digests {
    struct mono next, until; /* the next round, and the last */
    struct mono news;        /* something died, or was told to be lost */
    struct mono credit_at;
    int64_t credit;
    int cursor; /* the edge that is served next */
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
    uint32_t seq; /* report, reply or discovery; which packet of the round of digests */
    uint32_t generation;
    struct probe_query query;
};
struct pending {
    uint64_t token;
    uint32_t seq, generation;
    int32_t edge;
    uint8_t path, reserved[7];
};

/* Discovery of one edge at a time per NIC. */
struct discovery {
    int edge; /* -1: idle */
    uint32_t generation;
    bool in_place; /* asks about the ports in use only; else about all, to choose */
    uint8_t ports[EDGE_PATH_MAX], port_count;
    uint8_t port, ttl; /* next to probe: place in ports, or port */
    uint8_t pass;
    bool asked_again;            /* something in the second one */
    uint8_t reached;             /* lowest TTL at which the peer was reached */
    uint8_t last_port, last_ttl; /* what was asked last */
    struct mono next, finish;
    uint16_t hops[MESH_PORT_COUNT][MESH_HOP_MAX];
};
struct nic {
    struct nic_id id;
    uint32_t peer; /* own index in the list */
    bool carrier, carrier_known;
    struct mono carrier_moved;
    uint64_t stamped, stamps_missing;
    uint16_t hold_us;                                /* of what it sends until the next tick */
    int64_t burst_credit, probe_credit, full_credit; /* in packets * NS_PER_S */
    struct mono credit_at;
    struct loss_share share, share_usual,
        share_out;           /* of all that it hears and sends, but for dead paths */
    struct loss_share waits; /* of what it hears, `lost` of them waited in a queue */
    struct discovery discovery;
    uint32_t verify_next;
    int32_t *table; /* edge by hash of peer id; -1 empty */
    struct peer_rings *rings;
    struct peer_choice *choices; /* chosen ones and the spares behind them */
    uint32_t choice_count;
};
struct router {
    uint8_t address[16];
    uint64_t hash;
    uint32_t place, number;
    uint32_t name; /* in digests */
};

/* What the inference was told last, for which question. */
struct locate_asked {
    struct mono now, since;
    bool out, loss, slow;
    uint32_t told;  /* version of what others told */
    uint32_t times; /* that it was told anew */
};

struct mesh {
    struct mesh_config config;
    struct prng prng;
    int edge_capacity, edge_count;
    uint32_t table_mask, generation;
    struct mesh_edge *edges;
    struct mono *due; /* per edge: when it wants a tick */
    struct nic nics[HOST_NIC_MAX];
    struct mono promised, late_until, last_tick;
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
    struct peer_choice *choices; /* of all NICs */
    struct peer_rings *rings;
    struct mesh_counters counters;
    struct locate *locate;   /* by edge and path; then answers of routers */
    uint32_t locate_numbers; /* of its paths */
    struct locate_asked asked;
    struct locate *wide; /* the same, then what other hosts tell: by number in `told` */
    struct locate_asked asked_wide;
    struct told_path *told;
    uint32_t told_version;  /* grows as something is told */
    struct mono told_until; /* then all of it is too old */
    struct wide_name wide_names[WIDE_MAX];
    struct digests digests;
    struct locate *trials;     /* by edge and path: what is told all the time (trial.c) */
    struct locate *fulls;      /* the same of full packets (full.c) */
    struct mono full_alarm;    /* one was lost: more of them go for a while */
    struct locate *pairs[2];   /* of pairs that go out, and come in (narrow.c) */
    struct gaps *gaps;         /* of pairs, likewise */
    struct mono pairs_told[2]; /* the newest while a gap was known */
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
uint32_t mesh_router(struct mesh *m, const uint8_t address[static 16]); /* 1 + index, 0: no room */
bool mesh_credit(struct mesh *m, struct mono now, int64_t *credit);
void path_half_move(struct mesh *m, struct mono now, int edge, uint8_t path,
                    enum finding_direction direction, enum path_event event, uint32_t proof);
void path_half_trial(struct path_half *half, struct mono now, bool lost);
/* Packets of a path whose fate is known. */
struct fates {
    uint32_t sent, lost;
};
struct fates path_half_recent(const struct path_half *half, struct mono now);
void path_half_forget(struct path_half *half, struct mono now);
void verdict_share(struct mesh *m, struct mono now, int edge, uint8_t path, double lost,
                   double sent);

/* prober.c: what is sent when */
void prober_round(struct mesh *m);
void prober_edge_start(struct mesh *m, struct mono now, int edge);
void prober_edge_tick(struct mesh *m, struct mono now, int edge);
void prober_hear_pair(struct mesh *m, struct mono now, int edge);
void prober_burst(struct mesh *m, struct mono now, int edge, uint8_t path);
struct mono prober_due(const struct mesh_edge *e);
/* A path that lives, another one than `avoid` if there is. */
uint8_t prober_good_path(const struct mesh_edge *e, uint8_t avoid);

/* hear.c: what a packet tells */
bool hear_queue_drops(const struct mesh *m, struct mono now, const struct mesh_edge *e,
                      const struct path_out *out);
/* trial.c: the fate of own packets, all the time */
void trial_on_mask(struct mesh *m, struct mono now, int edge, const struct probe *probe);
void trial_on_delay(struct mesh *m, struct mono now, int edge, uint8_t path, bool high,
                    int64_t owd_ns);
/* Of what these paths lost, all was of the job's class, and by odds of 10^6 it isn't chance. */
struct class_sums {
    double sent[2], lost[2]; /* pairs, singles */
};
void trial_classes(const struct path_out *out, struct mono now, struct class_sums *sums);
bool trial_is_job_class(const struct class_sums *sums);
/* A full queue may have dropped what was sent then: others of its class waited, or nobody knows. */
bool trial_may_be_queue(const struct path_out *out, bool high, struct mono sent);
void trial_skip(struct mesh *m, int edge); /* nobody knows what became of all that was sent */
/* digest.c */
void digest_tick(struct mesh *m, struct mono now);
struct mono digest_due(const struct mesh *m);
void digest_alarm(struct mesh *m, struct mono now); /* an own path died */
const struct told_path *digest_told(const struct mesh *m, struct mono now,
                                    uint32_t index); /* NULL */
void digest_to_peer(const struct mesh *m, struct mono now, int edge, struct probe_digest *ret);
bool digest_seen(const struct mesh *m, struct mono now, int edge, uint8_t path,
                 struct probe_observation *ret);
uint32_t router_name(uint32_t place, uint32_t number, uint64_t hash);
/* fault.c */
void mesh_tell_trial(struct mesh *m, int edge, uint8_t path, struct mono sent, bool lost);
void mesh_tell_full(struct mesh *m, int edge, uint8_t path, struct mono sent, bool lost);
struct locate_case;
/* A case of pairs whose element may be told: what else one's own packets show is not that it is slow. */
bool mesh_may_be_narrow(const struct mesh *m, const struct locate_case *c, bool out);
void mesh_tell_pair(struct mesh *m, int edge, uint8_t path, bool out, struct mono sent, bool wide);
void mesh_faults_tick(struct mesh *m, struct mono now);
/* full.c: packets of full size */
bool full_is(uint32_t seq);
void full_tick(struct mesh *m, struct mono now, int edge);
void full_answer(struct mesh *m, int edge, uint32_t seq);
void full_reached(struct mesh *m, struct mono now, int edge, uint32_t seq);
/* verdict.c: overdue, proofs, silence */
void verdict_edge_tick(struct mesh *m, struct mono now, int edge);
struct mono verdict_due(const struct mesh *m, const struct mesh_edge *e);
void verdict_touched(struct mesh *m, struct mono now, int edge, uint8_t path);
void verdict_own_slot(struct mesh *m, struct mono now, int edge, const struct probe_stamps *own);
void verdict_masks(struct mesh *m, struct mono now, int edge, uint8_t wanted, uint8_t dead);
void verdict_ack(struct mesh *m, struct mono now, int edge, uint8_t path);
void verdict_late(struct mesh *m, struct mono now, struct span late);

/* discovery.c */
void discovery_tick(struct mesh *m, struct mono now, uint32_t local);
/* The path's way is known, and was seen since the fabric last went round something that it may cross, as far as is known. */
bool discovery_way_holds(const struct path_out *out);
struct mono discovery_due(const struct mesh *m, uint32_t local);
void discovery_reached(struct mesh *m, struct mono now, int edge, uint32_t seq);
#define TRACE_FLAG  0x8000u
#define VERIFY_FLAG 0x4000u
/* Discovery's sequence number: what was asked, so that the peer's answer tells it. `flag`: TRACE_FLAG, VERIFY_FLAG or 0;
 * `port`: the path's index with a flag. */
uint32_t discovery_seq(uint32_t generation, uint8_t port, uint8_t ttl, uint32_t flag);
void discovery_send(struct mesh *m, int edge, uint16_t source_port, uint32_t seq, uint8_t ttl);
/* place.c: where the ports in use go, when one died before that was known */
bool place_wanted(const struct mesh_edge *e, struct mono now);
/* Ports to ask; those that live first: they tell how far it is. */
void place_start(struct discovery *d, const struct mesh *m, const struct mesh_edge *e);
/* The ports stay; what they answered is their way. */
void place_done(struct mesh *m, struct mono now, int edge, const struct discovery *d);
/* trace.c */
/* The last hop of a dead path that answered a packet sent when the path had lost one already; -1: none. */
int trace_reached(const struct path_out *out, struct mono now);
void discovery_trace(struct mesh *m, struct mono now, int edge, uint8_t path);
/* A router answered: true if it is one of a path that is being traced, and that is all there was to it. */
bool discovery_trace_answer(struct mesh *m, struct mono now, int edge, uint16_t source_port,
                            uint32_t router);
void mesh_spare_add(struct mesh *m, struct mono now, int edge);
void mesh_spare_remove(struct mesh *m, int edge);
void mesh_notice_late(struct mesh *m, struct mono now);
int mesh_edge_add(struct mesh *m, struct mono now, uint32_t local,
                  const struct peer_choice *choice);
