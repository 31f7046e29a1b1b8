/* eval_judge.h: judges readings of many clocks, taken at one instant, against each other.
 *
 * Fleet time is one time: at one instant every clock should show the same. The bounds of all clocks must have a time in
 * common. So at each instant these values are computed over all clocks that report to be synchronised on one timeline. (An
 * epoch is a clock's own count of its steps.)
 *
 *   pair error   |F_i - F_j|
 *   hard         broken for a pair when [F_i +- h_i] and [F_j +- h_j] don't meet (intervals on a
 *                line that meet pairwise share a point, so pairs are enough)
 *   statistical  broken for a clock when |F_i - centre| > B_i, centre: median of all F
 *   backwards    a clock showed less than before within an epoch
 *
 * It checks the core, so it shares no code with it. It is pure, except that its memory grows up to EVAL_SAMPLES_MAX numbers
 * for each series. Then it stops collecting, and reports that. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define EVAL_CLOCK_MAX   4096
#define EVAL_SAMPLES_MAX ((size_t)1 << 26)

enum eval_status { EVAL_ABSENT, EVAL_UNKNOWN, EVAL_SYNCED, EVAL_HOLDOVER, EVAL_DISRUPTED };
const char *eval_status_name(enum eval_status status);

/* What one clock shows. */
struct eval_reading {
    enum eval_status status;
    uint64_t timeline;
    uint32_t epoch;
    int64_t time_ns;
    int64_t hard_ns;        /* half of the width; SYNCED and HOLDOVER only */
    int64_t statistical_ns; /* likewise */
    bool is_excused;        /* it has a fault: it isn't compared with others */
};

struct eval_series {
    int64_t *values;
    size_t count, capacity;
    bool truncated;
};

struct eval_change {
    int64_t raw_ns;
    int clock;
    enum eval_status status;
    uint32_t epoch;
};

struct eval {
    int clock_count;
    struct eval_series pair_error, hard_width, statistical_width, centre_error;
    uint64_t instants; /* judged: at least two clocks reported to be synchronised */
    uint64_t complete; /* instants at which all clocks did */
    uint64_t hard_judged, hard_broken;
    uint64_t statistical_judged, statistical_broken;
    int64_t hard_excess_ns;         /* the worst */
    double statistical_share_worst; /* largest |F - centre| / B */
    uint64_t backwards;
    uint64_t split;              /* instants with synchronised clocks on different timelines */
    struct eval_change *changes; /* of status or epoch, in time */
    size_t change_count, change_capacity;
    struct eval_reading *last;
    int64_t *scratch;
    int64_t centre_ns; /* of the last instant; valid if centre_known */
    bool centre_known;
};

/* 0 or -ENOMEM. */
MUST_CHECK int eval_init(struct eval *e, int clock_count);
void eval_done(struct eval *e);
/* Takes one instant: `readings` of all clocks at the machine's raw time. -ENOMEM. */
MUST_CHECK int eval_on_readings(struct eval *e, int64_t raw_ns,
                                const struct eval_reading *readings);
/* The smallest value that a share p of the series does not exceed (nearest rank); 0 for an empty series. It sorts the series. */
int64_t eval_quantile(struct eval_series *s, double p);
int eval_series_add(struct eval_series *s, int64_t value);
