/* clock_private.h: the parts of one member, for the files of this folder only.
 *
 * Data flow of a tick: points wait in each edge's ring (edge.c) -> e, one error an edge (edge.c,
 * noise.c)
 * -> one error of the member (consensus.c) -> bank.c -> the map, the readers' line (line.c), the
 * bounds (bound.c), the status (clock.c). Beside it: labels (timeline.c), liars (liar.c), UTC
 * (anchor.c). */
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
/* Wider is not SYNCED; a reader adds some, until its own limit of 4 ms. */
#define BOUND_H_NS_MAX  3.9e6
#define BOUND_HORIZON_S 0.15 /* an edge's bound holds until the next tick at the latest */
#define BANK_FILTERS    6
#define ELSEWHERE_NS    1e6 /* no map leaves its line by as much: docs/clock.md */
/* In one tick: what the readers' line can follow, and peers allow for; by what a clock's rate may change. */
#define CLOCK_MOVE_NS_MAX   25e3
#define CLOCK_RATE_STEP_MAX 2e-6
/* Of the readers' line, while it is further off than a reader is told SYNCED with. */
#define CLOCK_SLEW_MAX 2000e-6
#define PEER_SILENT_NS (2 * NS_PER_S)
#define SHIFT_LOW      0.6 /* of the gate's lower end, about three sigma: so far isn't noise */

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
    double was_m_ns; /* of the path that had its place; 0: none */
    double info;     /* what m rests on, forgetting; 1/ns^2 */
    struct nic_time learning_since;
    double score[2]; /* waiting for the other direction */
    int count[2];
    double way_ns[2]; /* of the last packet, off m, by direction */
    int64_t way_at[2];
    double excess_ns; /* round trip above m's, slow minimum: a standing queue */
    double low[2];    /* lowest innovation seen in this window, by direction */
    struct nic_time window;
    double excess_since_s;
    double ahead_ns;    /* what the last updates say that m is too low by */
    double floor_ns[2]; /* the least m of this span of minutes, and of the one before */
    struct nic_time
        floor_since;  /* this span's begin; later than now: m isn't settled; 0: not begun */
    double round_ns;  /* the lowest m that a round trip of late allows, whose packets came ... */
    int64_t round_at; /* ... until then; 0: none was below m */
    bool shrunk;      /* learned while a queue stood, which is gone */
    bool
        unsure; /* one direction took longer by more than noise when it was learned: m is the other's */
    double unsure_s;
};

struct bucket {
    int64_t slot;                      /* time / BOUND_BUCKET_NS */
    int64_t local_ns[2], remote_ns[2]; /* backward, forward */
    double p_ns[2];                    /* as seen on arrival; to choose by */
    bool seen[2];
};

struct solved {
    bool valid;
    struct nic_time local,
        remote; /* simultaneous: remote's clock reads `remote` + fraction at `local` */
    double fraction;
    double rate;       /* d remote / d local - 1 */
    double rate_sigma; /* of it, by the scatter of the packets that it was made of */
    double m_ns[CLOCK_PATH_MAX];
    bool m_known[CLOCK_PATH_MAX];
    double sigma_ns; /* of theta */
    double noise_ns; /* residual of one kept packet */
};

/* A map's rate, and since when it has been within 1 ppm of that. */
struct steady_rate {
    double y;
    struct nic_time since;
};

struct clock_edge {
    bool used;
    int leader;       /* the lowest edge to the same peer */
    int next_of_peer; /* the next higher one; -1: none */
    int host_leader;  /* the lowest edge to the same host */
    struct clock_edge_config config;
    struct nic_time added;
    int64_t not_before_ns; /* stamps before this are of another clock */
    /* the peer, as it says */
    bool heard;
    struct nic_time heard_at;
    bool tracking;
    struct nic_time tracking_since; /* the peer, by its own word */
    struct clock_published peer;
    /* silences */
    struct nic_time live_at; /* last tick at which it was live */
    bool returned;           /* heard again after one, since returned_at: it may be anywhere */
    struct nic_time returned_at;
    double gone_s;
    bool hushed; /* or its packets are held up, for hushed_s by now */
    double hushed_s;
    bool anchor_known; /* what it last told of UTC, and when that was measured */
    struct clock_anchor anchor;
    struct nic_time anchor_at;
    double apart_ns;        /* how far its F and the own may have differed then, as bounded */
    struct nic_time utc_at; /* a time of the own clock at which it was utc_ns, by that word */
    int64_t utc_ns;
    bool word_known; /* what it tells of UTC since word_at, not yet taken */
    struct clock_anchor word;
    struct nic_time word_at;
    /* packets */
    struct packet ring[RING_PACKETS];
    uint32_t written;  /* ever; ring index = written % RING_PACKETS */
    uint32_t consumed; /* up to here by track */
    struct nic_time point_at;
    struct bucket buckets[BOUND_BUCKETS];
    struct steady_rate peer_rate;
    struct drift drift; /* the peer's clock against the own, stamps alone */
    double restless;    /* how fast the peer's line left what it had said, ns/s: worst of late */
    double peer_h_ns;   /* what the peer said for its bound: higher at once, lower after a while */
    struct nic_time peer_h_at;
    struct path paths[CLOCK_PATH_MAX];
    struct solved solved;
    uint32_t solved_written;
    /* coarse: last seen by direction */
    int64_t coarse_local[2], coarse_remote[2];
    bool coarse_seen[2];
    /* one tick's result */
    bool has_e;
    double e_ns, e_info, e_age_s;
    double excess; /* mean square of its errors in units of what they should be; 0: none yet */
    double
        raw_ns; /* what the lowest innovations say of theta, queues left out: for steps, liars, merges */
    bool has_raw, in_gate;
    bool silent; /* held up both ways, or its delays are being learned: says nothing of time */
    bool unsure; /* it is new, and so are all its known paths: its level rests on nothing */
    double raw_low[2];
    bool raw_seen[2];
    struct nic_time raw_at[2];
    /* slow */
    bool level_known;
    double level_ns;    /* mean of e over about 2 s */
    double expected_ns; /* theta now, both maps' moves reckoned in: where the score is taken */
    double level_weight;
    double info_mean;        /* slow mean of e_info */
    double out_since_s;      /* how long out of gate */
    double hush_s;           /* the same, but a few packets in gate don't end it at once */
    struct nic_time jump_at; /* when its packets were last not far off */
    /* behind full queues (clock.sparse) */
    bool sparse;             /* its packets tell something of time once in a while only */
    struct nic_time told_at; /* when they last did */
    double theta_var;        /* of expected_ns then, ns^2 */
    double stray2;           /* by how much theta may be elsewhere by now, ns^2 */
    double gap2;             /* the same, when they last told: so far it may be off each time */
    bool parked;
    double parked_s, calm_s;
    double boast_s; /* how long it has claimed an error that nobody sees it make */
    double
        false_rate; /* its map runs by as much off most others', which stamps exclude; 0: it doesn't */
    double false_s; /* how long */
    bool replacing;
    /* bounds of theta on public lines at the last tick */
    bool bounded;
    double lower_ns, upper_ns, w_ns;
    bool proven;                       /* as of the last tick, by stamps alone: */
    struct nic_time crossed_at;        /* its stamps last contradicted each other */
    double map_lower_ns, map_upper_ns; /* theta between the maps */
    double rate_lower, rate_upper;     /* its rate */
    /* counters */
    uint64_t points, pairs, pairs_pure, packets_in_gate, packets_out;
    uint64_t packets_alike; /* late, nearly all of them, but their mean tells */
    double late[2],
        early[2]; /* share of its packets beyond either end of the gate, by direction, of late */
    double witness_ms; /* mean square of e over 10 s */
    /* packets that all wait alike (waits.c) */
    double wait_low_ns, wait_high_ns; /* low quantiles of what packets take beyond their path */
    double wait_ns[2], wait_var; /* what those around them take, mean by direction, and variance */
    double wait_slow_var[2];     /* the same variance by direction, of more packets */
    double wait_late;            /* share of these that come after the gate */
    bool alike;
};

struct bank {
    double wander[BANK_FILTERS];             /* ppb per root second */
    double x[BANK_FILTERS], y[BANK_FILTERS]; /* off the published map, at map.r: ns, ns/s */
    double p00[BANK_FILTERS], p01[BANK_FILTERS], p11[BANK_FILTERS];
    double log_weight[BANK_FILTERS];
};

struct opinion {
    uint32_t from;
    struct nic_time at; /* when it was last given */
    bool known, against;
};

struct suspect {
    bool used;
    uint32_t peer;
    double parked_s; /* how long its edges have been parked */
    int asked;
    struct opinion opinions[16]; /* of its other neighbours, one each */
    struct nic_time asked_at;
    bool named, asymmetric;
    int edge; /* that was said to be asymmetric, or that shows the lie */
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
    /* scratch, one value an edge */
    double *values, *weights;
    int *order;

    enum clock_phase phase;
    enum clock_status status;
    struct nic_time now, started, ticked, deadline, phase_since;
    struct clock_map map;
    uint32_t map_seq;
    struct bank bank;
    struct line line;
    int rounds; /* of the phase; for COLD: of coarse rounds */
    double
        usual_y; /* the last rate of the map that held while it tracked; 0: none, or found wrong */
    int calm;    /* ticks running that were good enough to go on */

    /* consensus */
    double mean_ns, mean_var, scale_own_ns, scale_ns, rms_ns, level_q75_ns, sigma_e_ns;
    double mean_age_s;
    double sure_share;   /* of what that rests on: edges that hear each other in time */
    double p_limit_ns;   /* no peer's standard deviation is taken to be larger */
    double deviation_ns; /* of the own estimate, before this tick's packets */
    bool narrow;
    double lost_s;
    double regroup_s;
    struct nic_time lost_at;
    int in_gate; /* edges that take part */
    int live, parked, track_peers, peers_live, peers_chosen, liars_max, needed;
    int peers_in_gate;            /* of which an edge takes part */
    int hosts_live, hosts_chosen; /* a host is one neighbour, however many clocks it has */
    int vouching; /* peers of which an edge agrees, or is held up and contradicts nothing */
    bool
        sparse; /* so many edges show nothing of time for long that parts may drift off from each other */
    double gap2; /* by how much they may, ns^2 */
    double rate_var,
        wander2;   /* of the own rate; how far two clocks drift off meanwhile rests on them */
    bool regained; /* so many neighbours are back from a silence that they may be right */
    bool has_mean;
    int step_ticks;
    double step_ns;
    int apart_ticks;  /* all edges say that it is off, too few to show a step */
    bool step_sudden; /* all was calm before it */
    double shift_ms;  /* mean square of what the edges together are off by */
    bool uneasy;      /* they are off by half a step, since uneasy_since */
    struct nic_time uneasy_since;
    struct nic_time calm_since; /* they are not */
    int calm_ticks;             /* … and so many ticks said so */
    struct nic_time stepped_at;
    int steps_running;
    struct nic_time disrupted_until;
    bool disrupted;
    enum clock_fault disrupted_by;
    struct nic_time hold_since;
    int merge_ticks;
    int offset_out, rate_out; /* ticks running that most edges' bounds exclude the own map */

    /* timeline */
    uint64_t timeline;
    uint32_t founder, epoch;
    struct nic_time born; /* may lie before the clock's zero */
    bool settled;
    struct nic_time settled_since;
    struct nic_time younger_since;
    bool younger_wanted;
    bool ever_tracked;

    /* bounds */
    bool tight, core;
    int tight_ticks; /* below zero: resting */
    int claim_ticks; /* of a claim that not enough neighbours share yet */
    int held_ticks;  /* with enough neighbours that claim it, at any level */
    int lower_ticks; /* ... at the claimed one, which is below the level */
    int calm_edges;  /* ticks in which own edges would do for a lower claim */
    int claim;       /* level that is published */
    int level;       /* that the own bound is of */
    struct steady_rate own_rate;
    double island2; /* how far those that still hear each other may have wandered off, ns^2 */
    double h_ns;
    struct nic_time h_at;
    bool h_known;
    struct clock_map h_map; /* the line that it was of, at h_at, and the rate from then on */
    double h_rate;          /* which may have been wrong by as much; 0: by premise 1 */
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
    bool own_utc_known; /* an upstream of its own */
    int64_t own_utc_ns; /* at own_utc_at */
    double own_utc_bound_ns;
    struct nic_time own_utc_at;
    bool utc_known;
    int64_t utc_minus_ns, utc_age_ns;
    double utc_bound_ns;
    double steer;   /* rate, no unit */
    double steered; /* what of it the map already has */
    bool steered_known;

    /* restored: wait for neighbours to agree */
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
void clock_disrupt(struct clock *c, struct span hold);
/* Quantise and publish: x, y after adding dx (ns) and dy (no unit) at `r`. */
void clock_move(struct clock *c, struct nic_time r, double dx_ns, double dy);
void clock_jump(struct clock *c, int64_t dx_ns);

void clock_forget_stamps(struct clock *c); /* own stamps from before are on another clock */
void clock_forget_stamps_of(struct clock *c, struct clock_edge *e);
void clock_forget_stamps_of_peer(struct clock *c, const struct clock_edge *e);
void clock_acquire_again(struct clock *c);
void clock_doubt_rate(struct clock *c); /* it was found wrong: another is looked for */

/* disturbance.c */
bool disturbance_watched(const struct clock *c);      /* steps are looked for */
double disturbance_step_limit(const struct clock *c); /* a smaller shift is no step */
bool disturbance_find_step(struct clock *c);
void disturbance_take_step(struct clock *c, struct nic_time now);
bool disturbance_apart(const struct clock *c); /* from all others, too few to tell who stepped */
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
/* The peer's variance, ns^2: what it claims, clipped by what the others claim. */
double edge_peer_variance(const struct clock *c, const struct clock_edge *e);
/* Its peer's time is no timeline's that this member is on: one of the two stepped, or began anew. It takes no part. */
bool edge_elsewhere(const struct clock_edge *e);
/* How far theta is from `reference`, by the lowest innovations of both directions. */
double edge_shift(const double low[2], double reference);
/* Heard again behind full queues: it is where this tick's packets place it, as far as it may have strayed. */
void edge_follow(struct clock_edge *e);
/* It may be further off than packets scatter. */
bool edge_strayed(const struct clock *c, const struct clock_edge *e);
/* Where it is isn't known any more: its next packets both ways tell. */
void edge_begin_level(struct clock_edge *e);
/* Parts of the fleet meet again: its level is how far apart they are by now, and no mean over seconds in which they moved. */
bool edge_on_the_move(const struct clock *c, const struct clock_edge *e);
/* One of the two maps moved, and theta with it. */
void edge_move(const struct clock *c, struct clock_edge *e, double moved_ns);
/* Its packets say that this member is in step; or they are held up and say little, and the hard bound allows it. */
bool edge_vouches(const struct clock_edge *e);
/* Most packets of one direction come late and none come early: something waits there, and where it is rests on few packets. */
bool edge_held_up(const struct clock_edge *e);
/* What its round trips take more than its paths' delays explains its level: a queue, or paths that were learned too short. */
bool edge_covered(const struct clock_edge *e);
/* Its packets contradict this member: parked or out of gate, and no queue can be why. */
bool edge_against(const struct clock_edge *e);

/* One way of a packet between the two maps, by its stamps in p or p'; queueing is positive. */
double edge_one_way(const struct clock *c, const struct clock_edge *e, int64_t local_ns,
                    int64_t remote_ns, bool forward);
/* The level moves at once, and with it what its paths' lowest innovations were taken against. */
void edge_shift_level(struct clock_edge *e, double shift);

/* path.c */
/* A path whose delay isn't known: from what the ring holds of it, once there is enough. */
void path_learn(struct clock *c, struct clock_edge *e, int index, struct nic_time now);
/* This tick's packets that no path took yet: none takes longer than half of a round trip over it. */
void paths_shorten(const struct clock *c, struct clock_edge *e);
/* A packet; the one before it the other way, if it wasn't long ago, makes a round trip. */
void path_take_round(struct clock *c, struct path *path, const struct packet *p, double way);
/* This tick's scores and packets, by direction. */
void path_learn_m(const struct clock *c, const struct clock_edge *e, struct path *path,
                  const double score[2], const int count[2]);
/* By how much it takes longer than at its shortest in the last 5 to 10 minutes, halved like m: that much of theta may be the longer
 * direction. 0: not known yet. */
double path_risen_ns(const struct path *path);
/* Once a second: does its floor still stand? */
void path_close_window(struct clock *c, struct clock_edge *e, struct path *path,
                       struct nic_time now);
/* The delay of a path by its low round trips of late, all taken by the maps of now. False: too few. */
bool edge_round(const struct clock *c, const struct clock_edge *e, int index, double *ret_m);
/* What any path takes, as stamps show it. A delay that comes out below isn't known. */
double edge_delay_least(const struct clock *c, const struct clock_edge *e);

/* waits.c */
/* A packet came so much later than its path's delay and theta make it. False: it waited in another queue than most. */
bool waits_add(struct clock_edge *e, double innovation_ns, bool forward, bool late);
/* Nearly all packets of the edge wait, both ways about as long as each other: their mean tells where it is. */
bool waits_alike(const struct clock *c, const struct clock_edge *e);

/* acquire.c */
bool acquire_solve(const struct clock_edge *e, int64_t since_local_ns, struct solved *ret_solved);
void acquire_round(struct clock *c, struct nic_time now);
void coarse_round(struct clock *c, struct nic_time now);

/* bank.c */
void bank_init(struct bank *b, double known_wander); /* 0: not known */
void bank_start(struct bank *b, double p00, double p11);
/* learn: what comes is foretold well or badly for the crystal's sake, and not for waits'. */
void bank_predict(struct bank *b, double t_s, bool learn);
/* z: measured error of the published map, ns, `age_s` before now; r: its variance. */
void bank_update(struct bank *b, double z_ns, double r, double age_s, bool learn);
void bank_mean(const struct bank *b, double *ret_x, double *ret_y);
void bank_shift(struct bank *b, double dx, double dy);
/* The variance terms of the heaviest plausible filter. */
void bank_variance(const struct bank *b, double *ret_p00, double *ret_p01, double *ret_p11,
                   double *ret_q2);
double bank_deviation_ns(const struct bank *b); /* of the estimate, by that filter */
void bank_forget(struct bank *b);
void bank_doubt(struct bank *b, double p00, double p11); /* it may be off by so much more */
/* Its rate is no surer than that, however often it is said. */
void bank_doubt_rate(struct bank *b, double p11);
double bank_wander(const struct bank *b);

/* consensus.c */
bool consensus_boasts(const struct clock_edge *e); /* the peer claims an error that can't be */
/* An edge whose |level| is beyond is parked; NULL: one that scatters as most do. */
double park_limit(const struct clock *c, const struct clock_edge *e);
double clock_stray_ns(const struct clock *c);
void consensus_count(struct clock *c);
/* Behind full queues edges say nothing of time for long. If a quarter of them or more don't, those that still do may be an
 * island: together they wander off from the rest, and nobody among them sees it. How many don't, `of` each of them ascending
 * in c->values; 0: so few that there is none. */
int consensus_silent(const struct clock *c, double (*of)(const struct clock_edge *e));
/* Peers of which an edge does. Edges to one peer are of the same two clocks: one of them is enough, and no number of them is
 * more than one neighbour. */
int consensus_peers(const struct clock *c,
                    bool (*does)(const struct clock *c, const struct clock_edge *e));
void consensus_gather(struct clock *c, struct nic_time now);
/* There is a mean of so many peers that it may move this member. */
bool consensus_suffices(const struct clock *c);
/* What edges whose packets all wait move the map by, beside the filter: ns and ns/s. */
void consensus_follow(struct clock *c, double dt_s, double *ret_dx, double *ret_dy);
void consensus_levels(struct clock *c, struct nic_time now, double dt_s);
double shortest_half(double *values, int count, int keep); /* sorts values */

/* line.c */
void line_restart(struct clock *c, struct nic_time now);
/* The map was learned anew. Within a millisecond the line goes on and meets it, else it jumps; back only into another
 * epoch. */
void line_rejoin(struct clock *c, struct nic_time now);
void line_follow(struct clock *c, struct nic_time now);
double line_minus_map(const struct clock *c, struct nic_time at);

/* bound.c */
void bound_tick(struct clock *c, struct nic_time now);
void bound_edges(struct clock *c, struct nic_time now); /* by what has been heard until now */
void bound_hear(struct clock_edge *e, const struct clock_published *heard, struct nic_time now);
/* What peers are told: while it is tight the level that it claims, as a bound. < 0: none. */
double bound_published_ns(const struct clock *c);
/* How far a clock may have left its published rate after age_s: the integral of max(limit, drift
 * s). */
double clock_drift_ns(double rate_limit, double rate_drift, double age_s);
bool bound_rate_held(const struct clock *c); /* the map's, by now for as long as bounds look back */
/* By how much two clocks' rates may be others than when the stamps were taken that tell them. */
double bound_rate_change(const struct clock *c);
double bound_growth_ns(const struct clock *c, double age_s);
/* h by now: it grows by what the clock may drift, and by what the line was moved since. */
double bound_aged_ns(const struct clock *c, struct nic_time now);
double bound_rate_limit(const struct clock *c); /* by how much the line's rate may be wrong */
void bound_renew(struct clock *c, double h_ns, struct nic_time now);
double bound_spread2(const struct clock *c);
double bound_statistical_ns(const struct clock *c);

/* contain.c */
/* Stamps allow it, or say nothing. */
bool contain_allows(const struct clock_edge *e, double theta_ns);
/* The nearest that is proven; the same for the own error, by all edges. */
double contain_theta(const struct clock_edge *e, double theta_ns);
double contain_mean(struct clock *c, double mean_ns);
/* A map moved: theta grew by so much. */
void contain_move(struct clock_edge *e, double moved_ns);
/* True: the map moved, and with it the edges' bounds. */
bool contain_tick(struct clock *c, struct nic_time now);

/* timeline.c */
void timeline_tick(struct clock *c, struct nic_time now);
void timeline_found(struct clock *c, struct nic_time now);

/* rates.c */
/* How fast theta may move by the maps of now, as stamps alone tell. */
void rates_of_theta(const struct clock *c, const struct clock_edge *e, double *ret_lower,
                    double *ret_upper);
/* Before this tick's packets move anything: whose map's rate can't be. */
void rates_tick(struct clock *c, double dt_s);

/* liar.c */
void liar_tick(struct clock *c, struct nic_time now, double dt_s);

/* anchor.c */
void anchor_hear(struct clock_edge *e, struct nic_time now, const struct clock_published *heard);
void anchor_forget_peers(struct clock *c);
void anchor_tick(struct clock *c, struct nic_time now);
struct clock_anchor anchor_publish(const struct clock *c);
