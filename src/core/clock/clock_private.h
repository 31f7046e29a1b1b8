/* clock_private.h: the parts of one member, for the files of this folder only.
 *
 * Data flow of a tick: points wait in each edge's ring (edge.c) -> e, one error for each edge (edge.c, noise.c) -> one error of
 * the member (consensus.c) -> bank.c -> the map, the readers' line (line.c), the bounds (bound.c), the status (clock.c). Beside
 * it: labels (timeline.c), liars (liar.c), UTC (anchor.c). */
#pragma once
#include "base/bug.h"
#include "base/limits.h"
#include "base/prng.h"
#include "core/clock/clock.h"
#include "core/clock/drift.h"
#include "core/clock/noise.h"

#define EARLY_NS        (4 * NS_PER_S)
#define DISRUPT_NS      (300 * NS_PER_MS)
#define RING_PACKETS    128 /* a power of two: more than 2 s of an edge's packets */
#define BOUND_BUCKETS   10  /* of 200 ms */
#define BOUND_BUCKET_NS (200 * NS_PER_MS)
/* A wider bound is not SYNCED; a reader adds some, up to its own limit of 4 ms. */
#define BOUND_H_NS_MAX  3.9e6
#define BOUND_HORIZON_S 0.15 /* an edge's bound holds at least until the next tick */
#define BANK_FILTERS    6
#define ELSEWHERE_NS    1e6 /* no map leaves its line by so much: docs/clock.md */
/* Within one tick: how far the readers' line can follow, and peers allow for; by how much a clock's rate may change. */
#define CLOCK_MOVE_NS_MAX   25e3
#define CLOCK_RATE_STEP_MAX 2e-6
/* The limit for the readers' line, while its error is above the limit for SYNCED. */
#define CLOCK_SLEW_MAX 2000e-6
#define PEER_SILENT_NS (2 * NS_PER_S)
/* from the gate's lower end, about three sigma: a larger shift isn't noise */
#define SHIFT_LOW 0.6

/* One packet's two stamps. */
struct packet {
    int64_t local_ns, remote_ns;
    uint8_t path;
    bool forward;
};

/* The fixed half round trip of one path. */
struct path {
    bool known;
    double m_ns;
    double was_m_ns; /* m of the path that had this place before; 0: none */
    double info;     /* the information behind m, forgetting; 1/ns^2 */
    struct nic_time learning_since;
    double score[2]; /* scores that wait for the other direction */
    int count[2];
    double way_ns[2]; /* what the last packet took beyond m, by direction */
    int64_t way_at[2];
    double excess_ns; /* round trip above that of m, slow minimum: a standing queue */
    double low[2];    /* the lowest innovation of this window, by direction */
    struct nic_time window;
    double excess_since_s;
    double ahead_ns;    /* by how much m is too low, by the last updates */
    double floor_ns[2]; /* the least m of this span of minutes, and of the one before */
    /* this span's begin; later than now: m isn't settled; 0: not begun */
    struct nic_time floor_since;
    double round_ns;  /* the lowest m that recent round trips allow; their packets came ... */
    int64_t round_at; /* ... until then; 0: no round trip was below m */
    bool shrunk;      /* it was learned during a standing queue, which is gone */
    /* one direction took longer by more than noise when it was learned: m is that of the other direction */
    bool unsure;
    double unsure_s;
};

struct bucket {
    int64_t slot;                      /* time / BOUND_BUCKET_NS */
    int64_t local_ns[2], remote_ns[2]; /* backward, forward */
    double p_ns[2];                    /* as computed on arrival; used to choose the fastest */
    bool seen[2];
};

struct solved {
    bool valid;
    struct nic_time local,
        remote; /* simultaneous times: the remote clock reads `remote` + fraction at `local` */
    double fraction;
    double rate;       /* d remote / d local - 1 */
    double rate_sigma; /* of the rate, by the scatter of the packets in the fit */
    double m_ns[CLOCK_PATH_MAX];
    bool m_known[CLOCK_PATH_MAX];
    double sigma_ns; /* of theta */
    double noise_ns; /* residual of one kept packet */
};

/* A map's rate, and the time since which it has stayed within 1 ppm of that. */
struct steady_rate {
    double y;
    struct nic_time since;
};

struct clock_edge {
    bool used;
    int leader;       /* the lowest-numbered edge to the same peer */
    int next_of_peer; /* the next edge to that peer; -1: none */
    int host_leader;  /* the lowest-numbered edge to the same host */
    struct clock_edge_config config;
    struct nic_time added;
    int64_t not_before_ns; /* earlier stamps belong to another clock */
    /* the peer, as it reports */
    bool heard;
    struct nic_time heard_at;
    bool tracking;
    struct nic_time tracking_since; /* the peer, by its own report */
    struct clock_published peer;
    /* silences */
    struct nic_time live_at; /* last tick at which it was live */
    /* heard again after a silence, since returned_at: it may have drifted to any value */
    bool returned;
    struct nic_time returned_at;
    double gone_s;
    bool hushed; /* or its packets are delayed, for hushed_s by now */
    double hushed_s;
    bool anchor_known; /* its last report about UTC, and the time of that measurement */
    struct clock_anchor anchor;
    struct nic_time anchor_at;
    double apart_ns;        /* how far its F and the own F may have differed then, by the bound */
    struct nic_time utc_at; /* the time of the own clock at which UTC was utc_ns, by that report */
    int64_t utc_ns;
    bool word_known; /* its report about UTC since word_at, not used yet */
    struct clock_anchor word;
    struct nic_time word_at;
    /* packets */
    struct packet ring[RING_PACKETS];
    uint32_t written;  /* since the start; ring index = written % RING_PACKETS */
    uint32_t consumed; /* the number that the tracking has consumed */
    struct nic_time point_at;
    struct bucket buckets[BOUND_BUCKETS];
    struct steady_rate peer_rate;
    struct drift drift; /* the peer's clock against the own one, from stamps alone */
    /* the fastest departure of the peer's line from its announced course, ns/s, of late */
    double restless;
    double peer_h_ns; /* the peer's published bound: higher at once, lower after a while */
    struct nic_time peer_h_at;
    struct path paths[CLOCK_PATH_MAX];
    struct solved solved;
    uint32_t solved_written;
    /* coarse: the last packet of each direction */
    int64_t coarse_local[2], coarse_remote[2];
    bool coarse_seen[2];
    /* the result of one tick */
    bool has_e;
    double e_ns, e_info, e_age_s;
    double excess; /* mean square of its errors, over the expected one; 0: none yet */
    double raw_ns; /* theta by the lowest innovations, without queues: for steps, liars, merges */
    bool has_raw, in_gate;
    /* delayed both ways, or its delays are being learned: it shows nothing about time */
    bool silent;
    bool unsure; /* the edge is new, and so are all its known paths: its level has no basis yet */
    double raw_low[2];
    bool raw_seen[2];
    struct nic_time raw_at[2];
    /* slow values */
    bool level_known;
    double level_ns; /* mean of e over about 2 s */
    /* the present theta, with the moves of both maps: the score is taken here */
    double expected_ns;
    double level_weight;
    double info_mean;        /* slow mean of e_info */
    double out_since_s;      /* the time for which it has been out of gate */
    double hush_s;           /* the same, but a few packets in gate don't end it at once */
    struct nic_time jump_at; /* the last time when its packets were not far off */
    /* behind full queues (clock.sparse) */
    bool sparse;             /* its packets show time only now and then */
    struct nic_time told_at; /* the last time when they did */
    double theta_var;        /* the variance of expected_ns then, ns^2 */
    double stray2;           /* how far theta may have drifted since, ns^2 */
    double gap2;             /* the same at the last useful packets: the usual error of each gap */
    bool parked;
    double parked_s, calm_s;
    double boast_s; /* the time for which it has claimed an error that no edge shows */
    double
        false_rate; /* the excess of its map's rate over most others', which stamps exclude; 0: none */
    double false_s; /* for so long */
    bool replacing;
    /* bounds of theta between public lines at the last tick */
    bool bounded;
    double lower_ns, upper_ns, w_ns;
    bool proven;                       /* at the last tick, from stamps alone: */
    struct nic_time crossed_at;        /* the last time when its stamps contradicted each other */
    double map_lower_ns, map_upper_ns; /* theta between the maps */
    double rate_lower, rate_upper;     /* the rate of theta */
    /* counters */
    uint64_t points, pairs, pairs_pure, packets_in_gate, packets_out;
    uint64_t packets_alike; /* nearly all of them are late, but their mean shows theta */
    double late[2],
        early[2];      /* the share of recent packets beyond either end of the gate, by direction */
    double witness_ms; /* mean square of e over 10 s */
    /* packets that all wait alike (waits.c) */
    /* low quantiles of what packets take beyond their path's delay */
    double wait_low_ns, wait_high_ns;
    /* the mean by direction, and the variance, of the packets around those quantiles */
    double wait_ns[2], wait_var;
    double wait_slow_var[2]; /* that variance by direction, over more packets */
    double wait_late;        /* the share of these that come after the gate */
    bool alike;
};

struct bank {
    double wander[BANK_FILTERS];             /* ppb per root second */
    double x[BANK_FILTERS], y[BANK_FILTERS]; /* relative to the published map, at map.r: ns, ns/s */
    double p00[BANK_FILTERS], p01[BANK_FILTERS], p11[BANK_FILTERS];
    double log_weight[BANK_FILTERS];
};

struct opinion {
    uint32_t from;
    struct nic_time at; /* when it was last answered */
    bool known, against;
};

struct suspect {
    bool used;
    uint32_t peer;
    double parked_s; /* the time for which its edges have been parked */
    int asked;
    struct opinion opinions[16]; /* of its other neighbours, one for each */
    struct nic_time asked_at;
    bool named, asymmetric;
    int edge; /* the edge that was reported as asymmetric, or that shows the lie */
};
#define SUSPECTS 16
#define SILENT_S 1.0

struct line {
    struct nic_time r;
    int64_t x_ns;
    double x_fraction, y, slew;
    struct nic_time until;
    bool valid;
};

struct clock {
    struct clock_config config;
    struct prng prng;
    struct clock_edge *edges;
    int capacity, edge_count;
    struct noise noise;
    struct nic_time noise_at;
    /* scratch, one value for each edge */
    double *values, *weights;
    int *order;

    enum clock_phase phase;
    enum clock_status status;
    struct nic_time now, started, ticked, deadline, phase_since;
    struct clock_map map;
    uint32_t map_seq;
    struct bank bank;
    struct line line;
    int rounds; /* rounds of the phase; for COLD: coarse rounds */
    /* the last rate of the map that was stable while tracking; 0: none, or it was wrong */
    double usual_y;
    int calm; /* consecutive ticks that were good enough to continue */

    /* consensus */
    double mean_ns, mean_var, scale_own_ns, scale_ns, rms_ns, level_q75_ns, sigma_e_ns;
    double mean_age_s;
    /* the share of its basis from edges whose packets come in time both ways */
    double sure_share;
    double p_limit_ns;   /* the largest standard deviation that is accepted from a peer */
    double deviation_ns; /* of the own estimate, before the packets of this tick */
    bool narrow;
    double lost_s;
    double regroup_s;
    struct nic_time lost_at;
    int in_gate; /* edges that take part */
    int live, parked, track_peers, peers_live, peers_chosen, liars_max, needed;
    int peers_in_gate;            /* peers with at least one such edge */
    int hosts_live, hosts_chosen; /* a host is one neighbour, however many clocks it has */
    int vouching; /* peers with an edge that agrees, or that is delayed and contradicts nothing */
    bool sparse;  /* so many edges show no time for long that parts may drift apart */
    double gap2;  /* how far they may have drifted, ns^2 */
    double rate_var,
        /* the wander of the own rate; the possible drift between two clocks is derived from it */
        wander2;
    bool regained; /* so many neighbours are back from a silence that they may be right */
    bool has_mean;
    int step_ticks;
    double step_ns;
    /* ticks in which all edges show an error, with too few edges to prove a step */
    int apart_ticks;
    bool step_sudden; /* all was calm before it */
    double shift_ms;  /* mean square of the common error of the edges */
    bool uneasy;      /* their error is half a step, since uneasy_since */
    struct nic_time uneasy_since;
    struct nic_time calm_since; /* the error is small again since then */
    int calm_ticks;             /* … in so many ticks */
    struct nic_time stepped_at;
    int steps_running;
    struct nic_time disrupted_until;
    bool disrupted;
    enum clock_fault disrupted_by;
    struct nic_time hold_since;
    int merge_ticks;
    double part_ns; /* where edges to another part of the fleet agree */
    /* consecutive ticks in which most edges' bounds exclude the own map */
    int offset_out, rate_out;

    /* timeline */
    uint64_t timeline;
    uint32_t founder, epoch;
    struct nic_time born; /* may be before the clock's zero */
    bool settled;
    struct nic_time settled_since;
    struct nic_time younger_since;
    bool younger_wanted;
    bool ever_tracked;

    /* bounds */
    bool tight, core;
    int tight_ticks; /* below zero: a pause after a failed claim */
    int claim_ticks; /* ticks of a claim that too few neighbours share */
    int held_ticks;  /* ticks with enough neighbours that claim a level, whichever */
    /* ticks with enough neighbours at the claimed level, which is below the present one */
    int lower_ticks;
    int calm_edges; /* ticks in which the own edges would suffice for a lower claim */
    int claim;      /* the published level */
    int level;      /* the level of the own bound */
    struct steady_rate own_rate;
    double island2; /* how far the edges that still work may have drifted as a group, ns^2 */
    double h_ns;
    struct nic_time h_at;
    bool h_known;
    struct clock_map h_map; /* the line of that bound, at h_at, and its rate from then on */
    double h_rate;          /* the possible error of that rate; 0: by premise 1 */
    struct nic_time guard_at;
    bool guard_seen;
    double guard_ns, guard_rate;
    bool queued;
    double queue_ns;

    /* liars */
    struct suspect suspects[SUSPECTS];
    struct nic_time replaced_at;
    double crowded_s;

    /* UTC */
    bool own_utc_known; /* this host has an upstream of its own */
    int64_t own_utc_ns; /* at own_utc_at */
    double own_utc_bound_ns;
    struct nic_time own_utc_at;
    bool utc_known;
    int64_t utc_minus_ns, utc_age_ns;
    double utc_bound_ns;
    double steer;   /* rate, no unit */
    double steered; /* the part of it that the map already contains */
    bool steered_known;

    /* restored: waits until neighbours agree */
    bool restored;
    struct nic_time restored_at;

    enum clock_fault fault;
    bool fault_seen;
    uint64_t points, points_refused, peers_refused, steps;

    struct clock_action actions[CLOCK_ACTIONS_MAX];
    int action_first, action_count;
    bool publish;
};

/* clock.c */
void clock_push(struct clock *c, struct clock_action action);
void clock_set_phase(struct clock *c, enum clock_phase phase);
/* All peers learn their time anew, and can join this member, whose own clock is known to have run on. */
bool clock_awaited(const struct clock *c);
void clock_disrupt(struct clock *c, struct span hold);
/* Quantises and publishes x, y after adding dx (ns) and dy (no unit) at `r`. */
void clock_move(struct clock *c, struct nic_time r, double dx_ns, double dy);
void clock_jump(struct clock *c, int64_t dx_ns);

void clock_forget_stamps(struct clock *c); /* earlier own stamps belong to another clock */
void clock_forget_stamps_of(struct clock *c, struct clock_edge *e);
void clock_forget_stamps_of_peer(struct clock *c, const struct clock_edge *e);
void clock_acquire_again(struct clock *c);
void clock_doubt_rate(struct clock *c); /* the rate was wrong: another one is searched */

/* disturbance.c */
bool disturbance_watched(const struct clock *c);      /* true if steps are looked for */
double disturbance_step_limit(const struct clock *c); /* a smaller shift is no step */
/* A second clock of this host shows that its own one ran on evenly until now. */
bool disturbance_vouched(const struct clock *c);
bool disturbance_find_step(struct clock *c);
void disturbance_take_step(struct clock *c, struct nic_time now);
/* apart from all others, with too few edges to prove who stepped */
bool disturbance_apart(const struct clock *c);
void disturbance_part(struct clock *c);
void disturbance_merge(struct clock *c, struct nic_time now);
void disturbance_check_lost(struct clock *c, double dt_s);

/* edge.c */
bool edge_take_point(struct clock *c, struct clock_edge *e, const struct clock_point *p);
void edge_track(struct clock *c, struct clock_edge *e, struct nic_time now);
bool edge_live(const struct clock *c, const struct clock_edge *e);
bool edge_usable(const struct clock *c, const struct clock_edge *e);
double edge_theta(const struct clock *c, const struct clock_edge *e, const struct packet *p,
                  bool *ret_forward);
double edge_m_mean(const struct clock_edge *e);
/* The peer's variance, ns^2: its claim, limited by the others' claims. */
double edge_peer_variance(const struct clock *c, const struct clock_edge *e);
/* The peer's time belongs to no timeline of this member: one of the two stepped or began anew. The edge takes no part. */
bool edge_elsewhere(const struct clock_edge *e);
/* How far theta is from `reference`, by the lowest innovations of both directions. */
double edge_shift(const double low[2], double reference);
/* Heard again behind full queues: theta follows this tick's packets, within the possible drift. */
void edge_follow(struct clock_edge *e);
/* True if it may have drifted by more than packets scatter. */
bool edge_strayed(const struct clock *c, const struct clock_edge *e);
/* The level is unknown from now on. The next packets in both directions give it. */
void edge_begin_level(struct clock_edge *e);
/* Parts of the fleet meet again: the level is the present distance, not a mean over seconds of movement. */
bool edge_on_the_move(const struct clock *c, const struct clock_edge *e);
/* One of the two maps moved, and so did theta. */
void edge_move(const struct clock *c, struct clock_edge *e, double moved_ns);
/* Its packets show that this member is in step; or they are delayed and show little, and the hard bound allows it. */
bool edge_vouches(const struct clock_edge *e);
/* Most packets of one direction are late and none is early: they wait somewhere, and few packets give theta. */
bool edge_held_up(const struct clock_edge *e);
/* The excess of its round trips over the paths' delays explains its level: a queue, or path delays that were learned too
 * short. */
bool edge_covered(const struct clock_edge *e);
/* Its packets contradict this member: parked or out of gate, and no queue can be the reason. */
bool edge_against(const struct clock_edge *e);

/* The one-way delay of a packet between the two maps, from its stamps, as p or p'; positive for queueing. */
double edge_one_way(const struct clock *c, const struct clock_edge *e, int64_t local_ns,
                    int64_t remote_ns, bool forward);
/* The level moves at once, and so does the reference of its paths' lowest innovations. */
void edge_shift_level(struct clock_edge *e, double shift);

/* path.c */
/* Learns the delay of a path from the packets in the ring, when there are enough. */
void path_learn(struct clock *c, struct clock_edge *e, int index, struct nic_time now);
/* Uses this tick's packets that no path took yet: no path takes longer than half of a round trip over it. */
void paths_shorten(const struct clock *c, struct clock_edge *e);
/* Takes a packet. With the previous packet in the other direction, if that was recent, it makes a round trip. */
void path_take_round(struct clock *c, struct path *path, const struct packet *p, double way);
/* Learns from this tick's scores and packets, by direction. */
void path_learn_m(const struct clock *c, const struct clock_edge *e, struct path *path,
                  const double score[2], const int count[2]);
/* By how much the path takes longer than at its shortest in the last 5 to 10 minutes, halved like m: so much of theta may be the
 * longer direction. While the shortest isn't known, only what was added in the last second or two counts. */
double path_risen_ns(const struct path *path);
/* Once a second: checks whether the path's floor still holds. */
void path_close_window(struct clock *c, struct clock_edge *e, struct path *path,
                       struct nic_time now);
/* The delay of a path from recent low round trips, all by the present maps. False: too few. */
bool edge_round(const struct clock *c, const struct clock_edge *e, int index, double *ret_m);
/* The least delay of any path, by stamps. A smaller result counts as unknown. */
double edge_delay_least(const struct clock *c, const struct clock_edge *e);

/* waits.c */
/* Adds a packet that came so much later than its path's delay and theta predict. False: it waited in another queue than most. */
bool waits_add(struct clock_edge *e, double innovation_ns, bool forward, bool late);
/* Nearly all packets of the edge wait, about equally long in both directions: their mean shows theta. */
bool waits_alike(const struct clock *c, const struct clock_edge *e);

/* acquire.c */
bool acquire_solve(const struct clock_edge *e, int64_t since_local_ns, struct solved *ret_solved);
void acquire_round(struct clock *c, struct nic_time now);
void coarse_round(struct clock *c, struct nic_time now);

/* bank.c */
void bank_init(struct bank *b, double known_wander); /* 0: not known */
void bank_start(struct bank *b, double p00, double p11);
/* learn: the prediction's quality depends on the crystal, not on waiting packets. */
void bank_predict(struct bank *b, double t_s, bool learn);
/* z: the measured error of the published map, ns, `age_s` before now; r: its variance. */
void bank_update(struct bank *b, double z_ns, double r, double age_s, bool learn);
void bank_mean(const struct bank *b, double *ret_x, double *ret_y);
void bank_shift(struct bank *b, double dx, double dy);
/* The variance terms of the widest plausible filter. */
void bank_variance(const struct bank *b, double *ret_p00, double *ret_p01, double *ret_p11,
                   double *ret_q2);
double bank_deviation_ns(const struct bank *b); /* of the estimate, by that filter */
void bank_forget(struct bank *b);
/* the estimate may be wrong by so much more */
void bank_doubt(struct bank *b, double p00, double p11);
/* The rate is no more certain than this, however often it was measured. */
void bank_doubt_rate(struct bank *b, double p11);
double bank_wander(const struct bank *b);

/* consensus.c */
bool consensus_boasts(const struct clock_edge *e); /* the peer claims an impossible error */
/* An edge with a larger |level| is parked. NULL: the limit for an edge with the usual scatter. */
double park_limit(const struct clock *c, const struct clock_edge *e);
double clock_stray_ns(const struct clock *c);
void consensus_count(struct clock *c);
/* Behind full queues edges show no time for long. If that holds for a quarter of them or more, to more peers than may lie, the
 * others may be an island: they drift away together, and none of them sees it. Returns the number of silent edges, with `of` of
 * each, ascending, in c->values; 0: there are too few. */
int consensus_silent(const struct clock *c, double (*of)(const struct clock_edge *e));
/* The number of peers with an edge for which `does` is true. Edges to one peer are between the same two clocks, so one suffices,
 * and any number of them is one neighbour. */
int consensus_peers(const struct clock *c,
                    bool (*does)(const struct clock *c, const struct clock_edge *e));
void consensus_gather(struct clock *c, struct nic_time now);
/* True if the mean comes from enough peers to move this member. */
bool consensus_suffices(const struct clock *c);
/* The move of the map by edges whose packets all wait, beside the filter: ns and ns/s. */
void consensus_follow(struct clock *c, double dt_s, double *ret_dx, double *ret_dy);
void consensus_levels(struct clock *c, struct nic_time now, double dt_s);
double shortest_half(double *values, int count, int keep); /* sorts values */

/* line.c */
void line_restart(struct clock *c, struct nic_time now);
/* The map was learned anew. Within a millisecond the line continues and meets it; otherwise the line jumps. A jump back begins
 * another epoch. */
void line_rejoin(struct clock *c, struct nic_time now);
void line_follow(struct clock *c, struct nic_time now);
double line_minus_map(const struct clock *c, struct nic_time at);

/* bound.c */
void bound_tick(struct clock *c, struct nic_time now);
void bound_edges(struct clock *c, struct nic_time now); /* from all packets until now */
void bound_hear(struct clock_edge *e, const struct clock_published *heard, struct nic_time now);
/* The bound for peers: while the member is tight, the claimed level as a bound. < 0: none. */
double bound_published_ns(const struct clock *c);
/* How far a clock may have left its published rate after age_s: the integral of max(limit, drift s). */
double clock_drift_ns(double rate_limit, double rate_drift, double age_s);
/* true if the map's rate was constant for as long as bounds look back */
bool bound_rate_held(const struct clock *c);
/* How much two clocks' rates may have changed since the stamps that show them. */
double bound_rate_change(const struct clock *c);
double bound_growth_ns(const struct clock *c, double age_s);
/* The present h: it grows by the possible drift of the clock, and by the moves of the line since. */
double bound_aged_ns(const struct clock *c, struct nic_time now);
double bound_rate_limit(const struct clock *c); /* the possible error of the line's rate */
void bound_renew(struct clock *c, double h_ns, struct nic_time now);
double bound_spread2(const struct clock *c);
double bound_statistical_ns(const struct clock *c);

/* contain.c */
/* True if stamps allow it, or show nothing. */
bool contain_allows(const struct clock_edge *e, double theta_ns);
/* The nearest value that stamps allow; and the same for the own error, over all edges. */
double contain_theta(const struct clock_edge *e, double theta_ns);
double contain_mean(struct clock *c, double mean_ns);
/* A map moved: theta grew by so much. */
void contain_move(struct clock_edge *e, double moved_ns);
/* True: the map moved, and so did the edges' bounds. */
bool contain_tick(struct clock *c, struct nic_time now);

/* timeline.c */
void timeline_tick(struct clock *c, struct nic_time now);
void timeline_found(struct clock *c, struct nic_time now);

/* rates.c */
/* The rate of theta by the present maps, as stamps alone prove it. */
void rates_of_theta(const struct clock *c, const struct clock_edge *e, double *ret_lower,
                    double *ret_upper);
/* Finds maps with impossible rates. Called before this tick's packets move anything. */
void rates_tick(struct clock *c, double dt_s);

/* liar.c */
void liar_tick(struct clock *c, struct nic_time now, double dt_s);

/* anchor.c */
void anchor_hear(struct clock_edge *e, struct nic_time now, const struct clock_published *heard);
void anchor_forget_peers(struct clock *c);
void anchor_tick(struct clock *c, struct nic_time now);
struct clock_anchor anchor_publish(const struct clock *c);
