/* invariant_private.h: the inside of the invariants' judge. */
#pragma once
#include "sim/check.h"
#include "sim/invariant.h"

#define INVARIANT_SETTLE_NS                                                                        \
    (10 * NS_PER_S) /* everybody who can is in step that long after the last fault */
#define INVARIANT_START_NS (15 * NS_PER_S) /* and after the start, under whatever load */
#define INVARIANT_ENOUGH   1000            /* pairs whose error was judged */
#define WAIT_BUCKETS       3               /* of a second */

/* What one host or NIC clock tells its readers now. Errors are less one value for all. */
struct claim {
    int host, nic; /* nic -1: the host's own page */
    bool synced;   /* else HOLDOVER */
    uint64_t timeline;
    double error, hard;
};

struct judged_host {
    enum clock_page_status status;
    uint64_t timeline, generation;
    double error, hard;
    bool honest, asleep, running;
    bool sound;           /* and no clock of its was broken of late */
    int64_t broken_at;    /* by a fault, last */
    int64_t mark_until;   /* it need not have seen it before */
    bool unseen;          /* and nothing but others' packets shows it */
    int64_t disturbed_at; /* it was stopped, starved, asleep, a liar, started */
    bool can;             /* invariant_can_sync, as of can_at */
    int64_t can_at;
    int64_t near_at,
        far_at;        /* looked at last; when packets last took too long for a bound to be shown */
    int steered;       /* faults that steer a clock of its right now */
    int64_t heard_at;  /* any packet */
    int64_t alone_at;  /* since when its bound was watched while it heard nobody; -1: it isn't */
    double alone_hard; /* what it was then */
    uint32_t alone_epoch;
    int64_t few_at; /* last time that it heard three quarters of the others, or wasn't watched */
};

/* How long packets from one host to another waited, on top of the idle way. */
struct waits {
    int64_t second[WAIT_BUCKETS];
    double least[WAIT_BUCKETS];       /* wait */
    double least_delay[WAIT_BUCKETS]; /* the whole way */
    uint64_t floor_of;                /* both ends' lives, whose least wait `floor` is */
    double floor;
};

struct invariants {
    struct prng random;
    uint64_t broken[INVARIANT_COUNT];
    int64_t first[INVARIANT_COUNT];
    char text[INVARIANT_COUNT][200];
    struct judged_host *hosts;
    struct claim *claims;
    int claim_count;
    int64_t base;
    bool base_known;
    bool on[SCENARIO_FAULT_MAX];
    int64_t changed_at, restarted_at;
    struct waits *waits;  /* per pair of hosts */
    double wait_mean;     /* over some hundred packets */
    double *scratch;      /* hosts squared and more */
    struct tally *ratios; /* error over what is allowed, by a million */
    double p99_ratio, error_worst, allowed, allowed_queues;
    int64_t allowed_at;
};

void invariant_break(struct invariants *v, const struct world *w, enum invariant i,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));
struct clock_terms;
bool invariant_line(struct invariants *v, struct world *w, int host, uint32_t member,
                    const struct clock_terms *terms, double *ret_error);

/* ---- invariant_reach.c ---- */
/* Enough honest others can be heard, and their packets are fast enough for a bound that may be shown. */
bool invariant_can_sync(struct invariants *v, struct world *w, int host);
/* A host that hears nobody: its bound has to grow, and it can't stay SYNCED. */
void invariant_alone(struct invariants *v, struct world *w, int host);
/* A host that hears too few to be sure of the fleet: it can't stay SYNCED. */
void invariant_far(struct invariants *v, const struct world *w, int host);
void invariant_few(struct invariants *v, struct world *w, int host);
/* Nothing is on that shifts a clock unseen. */
bool invariant_error_judged(const struct invariants *v, const struct world *w);
/* p99 of the error between two hosts that stamps, wander and load allow now. scratch: hosts squared. */
double invariant_allowed_ns(struct invariants *v, struct world *w, double *scratch);
/* What is allowed two hosts beyond that: a queue that either has stood behind since it began. */
double invariant_unseen_ns(const struct invariants *v, const struct world *w, int a, int b);
/* A fault that a probe could have seen for long enough. */
bool invariant_must_be_told(const struct invariants *v, const struct world *w, int fault);
