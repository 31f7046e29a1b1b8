/* clock_world.h: a fleet of clocks without packets: members of core/clock on a random regular expander. They get stamps made
 * from true time, and are compared with it. It is fast: it has no event queue, and time advances in slots of 5 ms.
 *
 * Every edge sends, in each direction, a pair and a single packet per 100 ms, 50 ms apart, over its paths in turn; the other
 * end sends at the other times. Each packet carries the stamps of earlier packets, as on the wire. One seed gives one run. The
 * judge uses the readers' line of clock_terms(), with its own arithmetic. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"
#include "core/clock/clock.h"

#define CLOCK_WORLD_SLOT_NS  (5 * NS_PER_MS)
#define CLOCK_WORLD_PATH_MAX 8

enum clock_world_lie {
    LIE_NONE,
    LIE_COLLUDING, /* all liars are ahead by lie_ns */
    LIE_DRIFTING,  /* the same, but it grows to lie_ns over lie_ramp_s */
    LIE_TWO_FACED, /* + to one half of its peers, - to the other */
    LIE_RANDOM,    /* uniform within +-lie_ns, anew in every packet */
    LIE_OLDEST,    /* another timeline, of great age, a millisecond off */
    LIE_DENIES,    /* colluding, and they deny being core */
    LIE_FIELD,     /* `lie_field` alone is a lie */
};

struct clock_world_config {
    uint64_t seed;
    int members, degree;
    /* 0 or 1: one member for each host. Else members of a host share no edge; their clocks are their own. */
    int nics_per_host;
    double seconds, judge_from_s;
    bool software;
    double noise_ns; /* one stamp: sigma, or mean of the one-sided jitter */
    /* share of packets that queue, and the mean of the exponential wait */
    double queue_share, queue_ns;
    double delay_min_ns, delay_max_ns;
    int paths;
    double known_delay_ns; /* D_min that the members get */
    double wander_ppb;     /* ppb per root second */
    double rate_ppm;       /* clocks are off by up to +- */
    double start_ns;       /* their own clocks' UTC is off by up to +- */
    /* a quarter of them ramps up and down at this rate, in steps of 10 s */
    double temperature_ppb_s;
    double asymmetric_share, asymmetric_ns; /* of edges, by + or - */
    double asymmetric_uniform_ns;           /* every edge within +- */
    bool asymmetric_paths;                  /* drawn for every path, not for every edge */
    /* Every member is off by up to +- this, and no packet can show it: each path from it is longer by as much as each path to
     * it is shorter. A hard bound must cover that. */
    double place_ns;
    enum clock_world_lie lie;
    int lie_field; /* of clock_lie_field() */
    double liar_share, lie_ns, lie_ramp_s, lie_from_s;
    double one_way_loss_share, one_way_loss_from_s; /* edges that lose one direction, and when */
    double parted_from_s, parted_until_s; /* no packet arrives between the halves of the members */
    int64_t edge_limit_ns;
    int hops;
    bool unguarded;
    double told_wander_ppb; /* the wander that members assume: the bank is compared with it */
    bool baselines;         /* run the NTP-like and the PTP-like servo, too */
    /* one event, at `event_s`, to member 0 … event_count - 1 */
    double event_s;
    int event_count;
    double step_ns, jump_ppm, suspend_s;
    bool restart;
};

/* A growing list of judged numbers. */
struct clock_world_values {
    double *values;
    size_t count, capacity;
};
double clock_world_quantile(struct clock_world_values *v, double share); /* sorts; 0 when empty */

struct clock_world_result {
    double p50_ns, p99_ns, max_ns; /* |error| between random pairs of honest members' lines */
    double p99_all_ns;             /* the same over all pairs, SYNCED or not */
    double pairs_synced; /* share of pairs with both SYNCED; below 3/4 the errors are INFINITY */
    double ntp_p99_ns, ptp_p99_ns;
    uint64_t hard_judged, hard_violations;
    uint64_t hard_tenth_violations; /* violations if each hard bound were a tenth */
    uint64_t statistical_judged, statistical_outside;
    uint64_t blocks;                            /* (member, 10 s) */
    double blocks_outside;                      /* sum over blocks of their share outside */
    double hard_width_ns, statistical_width_ns; /* medians, latest - earliest */
    double synced_share;                        /* of honest members, at the end */
    /* p95: over all liars; a liar that was never named counts as INFINITY */
    double liars_named_share, named_median_s, named_p95_s;
    int liars_beyond;  /* never named, but too many of their neighbours lie for the fault model */
    int liars_unnamed; /* never named, within the fault model */
    uint64_t false_liars, false_steps, asymmetries;
    uint64_t astray_named; /* honest members named as liars while their clocks were off */
    uint64_t early_liars;  /* named while stamps still hid the lie: neither in time nor false */
    double p99_100ns_s;    /* p99 over members stays <= 100 ns from then on; < 0: never */
    double synced_s;       /* when 99 % were SYNCED for the first time */
    /* about the event's first member */
    double event_unsynced_s, event_back_s; /* after the event; < 0: never */
    uint64_t event_violations;             /* samples SYNCED with the truth outside */
    double others_max_ns;
    double step_count;
    uint64_t packets;
    double host_seconds_cpu_s; /* CPU seconds per member and second of fleet */
};

/* Name of a lie in one field that a peer sends: extreme values, and noise. NULL: there are no more. */
const char *clock_lie_field(int field);

struct clock_world;
struct clock_world *clock_world_new(const struct clock_world_config *config);
void clock_world_free(struct clock_world *world);
/* Runs one slot. False: the time is over. */
bool clock_world_step(struct clock_world *world);
void clock_world_result(struct clock_world *world, struct clock_world_result *ret_result);
/* Runs all of it. */
void clock_world_run(const struct clock_world_config *config,
                     struct clock_world_result *ret_result);
/* For tests: a member. */
struct clock *clock_world_member(struct clock_world *world, int member);
