/* clock_world_private.h: shared by the world's files: clock_world.c, clock_judge.c and clock_lie.c. */
#pragma once
#include "base/bug.h"
#include "sim/clock_baseline.h"
#include "sim/clock_world.h"

struct member {
    struct clock *clock;
    int64_t base; /* raw clock at the segment's start */
    double fraction, rate;
    int64_t wall_ns;
    double place_ns; /* ahead of true time; no packet shows it */
    bool warming, liar, suspended, guard_told;
    int64_t asleep_until_ns;
    int *peers, *edge_of;
    int degree;
    struct baseline baseline;
    double named_s;  /* first time an honest member named it */
    double astray_s; /* last time its line was off by more than ASTRAY_NS */
    /* the present 10 s block */
    uint32_t block_judged, block_outside;
};

struct flight {
    int64_t tx, rx;
    int32_t tx_gap, rx_gap;
    uint8_t path;
    bool valid;
};

struct clock_world_edge {
    int member[2], handle[2], baseline[2];
    double delay_ns[2][CLOCK_WORLD_PATH_MAX]; /* from member[side] */
    struct flight last[2];
    bool told[2];
    uint32_t sent[2];
    int slot, lost;
};

struct clock_world {
    struct clock_world_config config;
    struct prng prng, judge_prng;
    struct member *members;
    struct clock_world_edge *edges;
    int edge_count;
    int64_t t_ns;
    uint64_t packets;
    double *lines; /* scratch: each member's line error now */
    struct clock_reading *readings;
    struct clock_world_values errors, all_errors, ntp, ptp, hard_widths, statistical_widths;
    size_t pairs_counted;
    struct clock_world_result result;
    double cpu_start_s;
    double last_above_s; /* last time that the p99 over members was above 100 ns */
    bool synced_once;
    double event_last_bad_s;
};

/* clock_world.c */
double clock_world_line_ns(const struct clock_world *w, int member, double after_s);
double clock_world_baseline_ns(const struct clock_world *w, int member,
                               const struct baseline_map *map, double after_s);
struct nic_time clock_world_now(const struct clock_world *w, int member, double after_s);

/* clock_lie.c: makes a lie of the truth. */
void clock_lie(struct clock_world *w, int to, struct clock_published *p);
void clock_lie_answer(const struct clock_world *w, struct clock_answer *answer);

/* clock_judge.c */
void judge_init(struct clock_world *w);
void judge_done(struct clock_world *w);
void judge_slot(struct clock_world *w, double after_s);
void judge_action(struct clock_world *w, int member, const struct clock_action *action);
