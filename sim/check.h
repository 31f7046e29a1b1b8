/* check.h: the judges. They have the truth, the scenario, and the pages and findings of nodes. They share no code with the
 * core or with the page's readers.
 *
 * Every metric that a bound may name (docs/scenarios.md) is computed for each window of time that a bound has. Liars, hosts
 * without an agent and hosts that are cut off are not judged as honest members. A host with a faulty clock is judged only by
 * its own status, until it is SYNCED again. */
#pragma once
#include "sim/invariant.h"
#include "sim/reader.h"
#include "sim/tally.h"
#include "sim/world.h"

enum { CHECK_WINDOWS = 16, CHECK_SHOWN = 4, CHECK_FLOWS = 512, CHECK_DELAYS = 256 };

/* A watched flow: the true delays of its last packets. */
struct check_flow {
    uint64_t key; /* 0: free */
    uint32_t src, dst, count;
    uint16_t port;
    int64_t at[CHECK_DELAYS];
    double delay[CHECK_DELAYS];
};

/* The fleet's time at one instant. */
struct check_centre {
    int64_t at, ns; /* at 0: none */
};

struct check_window {
    int64_t from, until;
    struct tally pair, nic_pair, hard_width, statistical_width, owd;
    double pair_ns_max;
    uint64_t judged, hard_outside, statistical_outside, stale, backwards, epochs, utc_outside;
    double synced_share_min;
    uint64_t synced, running; /* readings of hosts whose agent runs */
    uint64_t false_path, false_link, false_step, false_liar;
    uint64_t probes_at_start, refused_at_start, probes, refused;
    double utc_error_ns;
    bool begun;
    /* fleet time's rate is measured between these: they are 2 s apart */
    struct check_centre first, then, last, now;
};

/* The results of one injected fault. */
struct check_fault {
    int64_t on, off;  /* -1: not yet */
    int64_t detected; /* first finding that names it */
    int64_t sure;     /* first finding that is sure of its element */
    int64_t told;     /* first finding that the fault explains */
    int64_t marked;   /* the status left SYNCED, on the last of the target's hosts */
    int64_t back;     /* SYNCED and within bounds since then, the last of the target's hosts */
    bool wrong;
    uint64_t late, others;
    int named, named_wanted; /* liars */
    int64_t named_at;
};

/* The latest time that readers of a host read within an epoch. */
struct check_shown {
    uint64_t timeline;
    uint32_t epoch;
    int64_t latest_ns;
};

struct check_host {
    struct reading last;
    int64_t last_raw;
    double error_ns; /* fleet time - true time, minus the fleet's centre */
    bool claims;     /* honest, and its status is SYNCED */
    bool judged;     /* and no fault of its own clock is being watched */
    bool synced;
    uint32_t epoch;
    uint64_t timeline;
    struct check_shown shown[CHECK_SHOWN];
    int shown_next;
    int watched_fault; /* the clock fault being watched; -1: none */
    int64_t marked, back;
    uint8_t named_liar;
};

struct check {
    struct check_window windows[CHECK_WINDOWS];
    int window_count;
    int bound_window[SCENARIO_BOUND_MAX];
    struct check_fault faults[SCENARIO_FAULT_MAX];
    struct check_host *hosts;
    struct check_flow flows[CHECK_FLOWS];
    double *values; /* scratch: per host */
    struct prng random;
    int64_t centre_ns; /* of the last instant: fleet - true */
    double centre_rate;
    int64_t centre_at;
    bool centre_known;
    int64_t last_bad; /* last instant at which p99 was above the start limit */
    int64_t first_good;
    double start_limit_ns;
    uint64_t timelines, epochs_at_end;
    int64_t restarts, restart_back; /* agents that started again; the longest time until SYNCED */
    double utc_known_share;
    uint64_t flaps_missed;
    struct invariants *invariants; /* NULL: no bound needs them */
};

MUST_CHECK int check_new(struct check **ret, struct world *w);
void check_free(struct check *c);

/* The world calls these. */
void check_instant(struct world *w);
void check_publish(struct world *w, int host, const struct clock_page_terms *was);
void check_fault(struct world *w, unsigned index, bool on);
void check_finding(struct world *w, const struct world_finding *f);
void check_arrival(struct world *w, const struct packet *p);
/* Now and then: judges the one-way delays that nodes report. */
void check_delays(struct world *w);
/* After the last instant. */
void check_end(struct world *w);

/* The value of a bound's metric; NAN: nothing was measured. */
double check_value(struct world *w, int bound);
bool check_holds(const struct scenario_bound *b, double value);

/* True if programs on that host can read the clock: the host isn't asleep. */
bool check_awake(const struct world *w, int host);
/* The reading of a program on that host from the clock page, at that raw time. */
struct reading check_read(const struct world *w, int host, int64_t raw);
/* inside: check_finding.c */
/* The fault that explains a finding: it was on then, or had ended less than AFTER_NS before. Index, or -1. */
int check_explained(struct world *w, const struct world_finding *f);
