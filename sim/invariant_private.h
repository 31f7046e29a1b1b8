/* invariant_private.h: the inner part of the judge of invariants. */
#pragma once
#include "sim/check.h"
#include "sim/invariant.h"

#define INVARIANT_SETTLE_NS                                                                        \
    (10 * NS_PER_S) /* so long after the last fault every host that can is in step */
#define INVARIANT_START_NS (15 * NS_PER_S) /* and so long after the start, under any load */
#define INVARIANT_ENOUGH   1000            /* pairs whose error was judged */
#define WAIT_BUCKETS       3               /* of a second */

/* What one host or NIC clock shows to its readers now. Errors are relative to one value for all. */
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
    bool sound;           /* and its clock had no fault lately */
    int64_t broken_at;    /* by a fault, last */
    int64_t mark_until;   /* until then it need not have noticed */
    bool unseen;          /* only other hosts' packets show it */
    int64_t disturbed_at; /* it was last stopped, starved, asleep, a liar, or started then */
    bool can;             /* invariant_can_sync, as of can_at */
    int64_t can_at;
    /* last check; last time that packets were too slow for a bound to be shown */
    int64_t near_at, far_at;
    int steered;       /* faults that steer one of its clocks now */
    int64_t heard_at;  /* any packet */
    int64_t alone_at;  /* since then its bound is watched while it hears no other; -1: it isn't */
    double alone_hard; /* its bound at that time */
    uint32_t alone_epoch;
    int64_t few_at; /* last time that it heard three quarters of the others, or wasn't watched */
};

/* The waits of packets from one host to another, beyond the idle delay. */
struct waits {
    int64_t second[WAIT_BUCKETS];
    double least[WAIT_BUCKETS];       /* wait */
    double least_delay[WAIT_BUCKETS]; /* the whole delay */
    /* the generations of both ends that `floor`, their least wait, belongs to */
    uint64_t floor_of;
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
    struct waits *waits;  /* for each pair of hosts */
    double wait_mean;     /* over some hundred packets */
    double *scratch;      /* hosts squared and more */
    struct tally *ratios; /* error divided by the allowed error, in millionths */
    double p99_ratio, error_worst, allowed, allowed_queues;
    int64_t allowed_at;
};

void invariant_break(struct invariants *v, const struct world *w, enum invariant i,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));
struct clock_terms;
bool invariant_line(struct invariants *v, struct world *w, int host, uint32_t member,
                    const struct clock_terms *terms, double *ret_error);

/* ---- invariant_reach.c ---- */
/* True if the host can hear enough honest others, and their packets are fast enough for a bound that may be shown. */
bool invariant_can_sync(struct invariants *v, struct world *w, int host);
/* Judges a host that hears no other: its bound must grow, and it can't stay SYNCED. */
void invariant_alone(struct invariants *v, struct world *w, int host);
/* Judge a host that hears too few others: it can't stay SYNCED. */
void invariant_far(struct invariants *v, const struct world *w, int host);
void invariant_few(struct invariants *v, struct world *w, int host);
/* True if nothing shifts a clock unnoticed now. */
bool invariant_error_judged(const struct invariants *v, const struct world *w);
/* The p99 of the error between two hosts that stamps, wander and load allow now. scratch: hosts squared. */
double invariant_allowed_ns(struct invariants *v, struct world *w, double *scratch);
/* The extra error that two hosts may have: one of them has had a queue on its paths ever since it began. */
double invariant_unseen_ns(const struct invariants *v, const struct world *w, int a, int b);
/* True if a probe could have noticed the fault for long enough. */
bool invariant_must_be_told(const struct invariants *v, const struct world *w, int fault);
