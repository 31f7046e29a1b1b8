/* run_judge.h: judges a scenario played in the lab: clocks against the truth, findings against the faults.
 *
 * It gets everything with its raw time: readings of all clocks, findings from the agents' sockets (JSON objects), and faults
 * when they begin and end. It judges the core, so it shares no code with it. */
#pragma once
#include "lab/eval_judge.h"
#include "lab/lab.h"

#include <jansson.h>

struct run_window {
    int64_t from_ns, until_ns; /* since the start of the run */
    struct eval eval;
    double synced_share_min;
    uint64_t synced, running; /* readings of hosts whose agent runs */
    uint64_t stale, epochs;
    uint64_t false_path, false_link, false_step, false_liar;
};

struct run_fault {
    int64_t on_ns, off_ns; /* since the start; -1: not yet */
    int64_t detected_ns;   /* -1: not */
    int64_t marked_ns, back_ns;
    uint64_t late, others;
    bool is_wrong;
    bool is_hit[LAB_HOST_MAX]; /* the hosts of its target */
};

/* Values from the agents and from /proc at the end; -1: not available. */
struct run_totals {
    double flaps_missed, probes_refused, probes_per_nic_s, cpu_share, memory_mib;
};

struct run_judge {
    const struct lab *lab;
    struct run_window window[SCENARIO_BOUND_MAX]; /* one for each bound */
    struct run_fault fault[SCENARIO_FAULT_MAX];
    struct eval second; /* clock.start_s: one second of readings at a time */
    int64_t second_ns;
    /* between readings: this machine stopped the judge for so long */
    int64_t last_ns, longest_gap_ns;
    int64_t good_from_ns;         /* p99 is below 2 us since then; -1: it isn't */
    uint32_t epoch[LAB_HOST_MAX]; /* at its last SYNCED */
    bool was_synced[LAB_HOST_MAX];
    bool is_running[LAB_HOST_MAX];    /* its agent runs, and isn't stopped */
    bool has_answered[LAB_HOST_MAX];  /* it has answered requests */
    int64_t stopped_ns[LAB_HOST_MAX]; /* not running since then */
    uint64_t timelines, epochs_at_end;
    struct run_totals totals;
    FILE *findings;        /* each finding is written here; NULL: nowhere */
    char *unexplained[64]; /* texts of findings that no fault explains */
    int unexplained_count;
};

MUST_CHECK int run_judge_init(struct run_judge *j, const struct lab *lab);
void run_judge_done(struct run_judge *j);
/* Takes readings of all hosts at one instant, now_ns after the start. It may mark some as excused. */
MUST_CHECK int run_judge_readings(struct run_judge *j, int64_t now_ns,
                                  struct eval_reading *readings);
/* Takes one line of host `host` about a finding, `now_ns` after the start. */
void run_judge_finding(struct run_judge *j, int64_t now_ns, int host, const json_t *finding);
void run_judge_fault(struct run_judge *j, int64_t now_ns, int index, bool is_on);
/* NAN: nothing was measured. INFINITY: it never happened. */
double run_judge_value(struct run_judge *j, int bound);
bool run_judge_holds(const struct scenario_bound *b, double value);
