/* clock_world.h: a fleet of clocks without packets: members of core/clock on a random regular
 * expander, fed with stamps made from true time, and judged against it. Fast: no event queue, time
 * advances in slots of 5 ms.
 *
 * Every edge sends, each way, a pair and a single per 100 ms, 50 ms apart, its paths in turn, and
 * the other end the other way around; each packet carries the stamps of what came before, as the
 * wire does. One seed, one run. What is judged is the readers' line of clock_terms(), with
 * arithmetic of its own. */
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
    LIE_COLLUDING, /* all liars ahead by lie_ns */
    LIE_DRIFTING,  /* the same, but it grows to lie_ns over lie_ramp_s */
    LIE_TWO_FACED, /* + to one half of its peers, - to the other */
    LIE_RANDOM,    /* uniform within +-lie_ns, anew in every packet */
    LIE_OLDEST,    /* another timeline, of great age, a millisecond off */
    LIE_DENIES,    /* colluding, and denies being core */
    LIE_FIELD,     /* `lie_field` alone is a lie */
};

struct clock_world_config {
    uint64_t seed;
    int members, degree;
    int nics_per_host; /* 0 or 1: a member a host; else members of a host share no edge, clocks are
                          their own */
    double seconds, judge_from_s;
    bool software;
    double noise_ns;              /* one stamp: sigma, or mean of the one-sided jitter */
    double queue_share, queue_ns; /* packets queued, exponential mean */
    double delay_min_ns, delay_max_ns;
    int paths;
    double known_delay_ns;    /* D_min told to the members */
    double wander_ppb;        /* ppb per root second */
    double rate_ppm;          /* clocks are off by up to +- */
    double start_ns;          /* their own clocks' UTC is off by up to +- */
    double temperature_ppb_s; /* a quarter of them ramps up and down by this, steps of 10 s */
    double asymmetric_share, asymmetric_ns; /* of edges, by + or - */
    double asymmetric_uniform_ns;           /* every edge within +- */
    bool asymmetric_paths;                  /* ... drawn for every path, not edge */
    double
        place_ns; /* every member is off by up to +- this, and no packet can show it: each way from it is as much longer
                        as each way to it is shorter. What a hard bound is for */
    enum clock_world_lie lie;
    int lie_field; /* of clock_lie_field() */
    double liar_share, lie_ns, lie_ramp_s, lie_from_s;
    double one_way_loss_share, one_way_loss_from_s; /* edges that lose one direction, and when */
    double parted_from_s, parted_until_s; /* no packet arrives between the halves of the members */
    int64_t edge_limit_ns;
    int hops;
    bool unguarded;
    double told_wander_ppb; /* the members know it: what the bank is measured against */
    bool baselines;         /* feed the NTP-like and the PTP-like servo too */
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
    double p99_all_ns;             /* the same of all pairs, those that aren't SYNCED included */
    double
        pairs_synced; /* share of pairs both of which were SYNCED; below 3/4 the errors are INFINITY */
    double ntp_p99_ns, ptp_p99_ns;
    uint64_t hard_judged, hard_violations;
    uint64_t hard_tenth_violations; /* if each hard bound were a tenth */
    uint64_t statistical_judged, statistical_outside;
    uint64_t blocks;                            /* (member, 10 s) */
    double blocks_outside;                      /* sum over blocks of their share outside */
    double hard_width_ns, statistical_width_ns; /* medians, latest - earliest */
    double synced_share;                        /* of honest members, at the end */
    /* p95: over all liars, those never named count as INFINITY */
    double liars_named_share, named_median_s, named_p95_s;
    int liars_beyond; /* never named, and more of their neighbours lie than the fault model allows */
    int liars_unnamed; /* never named, within the fault model */
    uint64_t false_liars, false_steps, asymmetries;
    uint64_t astray_named; /* no liars, but their clocks were off when they were called so */
    uint64_t early_liars;  /* verdicts on a lie that stamps still hid: neither in time nor false */
    double p99_100ns_s;    /* first time from which p99 over members stays <= 100 ns; < 0: never */
    double synced_s;       /* when 99 % said SYNCED first */
    /* about the event's first member */
    double event_unsynced_s, event_back_s; /* after the event; < 0: never */
    uint64_t event_violations;             /* samples SYNCED with truth outside */
    double others_max_ns;
    double step_count;
    uint64_t packets;
    double host_seconds_cpu_s; /* CPU seconds per member and second of fleet */
};

/* The lies that one field of what a peer sends allows: its ends, and noise. NULL: there are no more. */
const char *clock_lie_field(int field);

struct clock_world;
struct clock_world *clock_world_new(const struct clock_world_config *config);
void clock_world_free(struct clock_world *world);
/* One slot. False when the time is over. */
bool clock_world_step(struct clock_world *world);
void clock_world_result(struct clock_world *world, struct clock_world_result *ret_result);
/* All of it. */
void clock_world_run(const struct clock_world_config *config,
                     struct clock_world_result *ret_result);
/* For tests: the member itself. */
struct clock *clock_world_member(struct clock_world *world, int member);
