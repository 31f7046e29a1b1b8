/* perf.h: tests of bandwidth and of collectives in an audit: which hosts run what beside each other, what is slow, and what makes
 * it slow.
 *
 * A test is an all-reduce of a group of hosts. A step is a set of groups that have no host in common and run at the same time;
 * a plan is the steps that can be told now. First pairs: each NIC with a neighbour of its leaf, and with one of another; the
 * middle of all pairs is what a NIC carries here. Then all hosts together, at 1, 2, 4, 8 lanes a peer, ranks in the order of
 * names and in that of leaves. Where the best of these is slower than the pairs allow, search.h finds who makes it so, a step
 * for each of its rounds.
 *
 * Nobody is slow by one test: a NIC is judged by the better of its two partners, and what the search names was seen with
 * different ones. What was not measured keeps the reason. Sans-I/O, no time: steps out, results in. Memory is the caller's. */
#pragma once
#include "base/limits.h"
#include "core/audit/search.h"

#define PERF_LEAF_NONE UINT16_MAX
#define PERF_NOBODY    UINT32_MAX

enum {
    PERF_LANES_COUNT = 4,
    PERF_ROWS = 2 * PERF_LANES_COUNT,
    PERF_PAIR_LANES = 4,
    PERF_HOSTS_MAX = 4096,
    PERF_STEPS_MAX = 2 * HOST_NIC_MAX + PERF_ROWS, /* of a plan */
    PERF_WORDS_SIZE = 160
};
/* A group that carries less than this share of what its slowest pair should is slow. A ring of many hosts is in step with
 * the slowest message at each of them: in the lab it carries 0.9 of what pairs do. */
#define PERF_SLOW 0.8

/* Why a host has no result of a step; the greater one tells more. */
enum perf_outcome {
    PERF_NOT_RUN, /* it takes no part */
    PERF_DONE,
    PERF_SILENT,    /* nothing came of it */
    PERF_FAILED,    /* with words */
    PERF_REFUSED,   /* with words */
    PERF_BUSY,      /* a job runs there */
    PERF_PREEMPTED, /* a job began */
    PERF_OUTCOME_COUNT
};

struct perf_result {
    uint8_t outcome;
    double rate;           /* bus bandwidth, bytes a second */
    uint32_t runs, spread; /* 1/10000 of it */
    uint64_t wrong;
    uint32_t init_ms;
    uint32_t late, arrivals; /* how often it came last, of */
    char network[32], words[PERF_WORDS_SIZE];
};

struct perf_host {
    uint32_t nics;
    uint16_t leaf[HOST_NIC_MAX];
    bool there; /* it can take part */
};

enum perf_kind { PERF_PAIR_NEAR, PERF_PAIR_FAR, PERF_RING, PERF_SEARCH };
struct perf_step {
    uint8_t kind, lanes, row;
    bool by_leaf;
    uint32_t nic; /* of the pair; PERF_NOBODY: all */
};
/* A host's part in a step. */
struct perf_part {
    uint32_t group, rank; /* group PERF_NOBODY: none */
};
struct perf_role {
    uint32_t rank, ranks; /* ranks 0: it takes no part */
    uint32_t leader;      /* the host of rank 0 */
};

struct perf {
    const struct perf_host *hosts;
    uint32_t count;
    bool wants_rings, over;
    struct perf_step steps[PERF_STEPS_MAX];
    uint32_t step_count;
    uint32_t plans;              /* so far; the present one is of this number, from 1 on */
    struct perf_part *parts;     /* [step * count + host] */
    struct perf_result *results; /* the same */
    uint32_t *order;             /* scratch */
    uint32_t *ring[2];           /* hosts of the rings, by names and by leaves */
    uint32_t ring_count;
    /* what came of it */
    double *pair;    /* [host * HOST_NIC_MAX + nic]: the better of two partners; < 0: none */
    uint32_t *tried; /* partners of it */
    double usual[HOST_NIC_MAX], expected; /* the middle of all pairs; of all NICs together */
    struct perf_result *rows;             /* [row * count + host] */
    double best;                          /* of the rows; < 0: none was measured */
    uint32_t best_row;
    bool slow;         /* it is less than the pairs allow */
    bool searched;     /* the search came to its end */
    uint32_t unproven; /* its tests that nothing came of: they name nobody */
    struct search search;
    struct search_test tests[2 * SEARCH_SETS_MAX];
    uint32_t test_count;
    void *search_memory;
    double *
        named_rate; /* by host: of the last slow test that it was in, alone beside good ones; < 0: none */
};

size_t perf_size(uint32_t hosts);
/* hosts: in the order of names, and to be kept. memory: perf_size bytes, of malloc's alignment. wants_rings: rows of
 * collectives and the search beside the pairs. -ENODATA: fewer than two can take part. */
MUST_CHECK int perf_init(struct perf *p, const struct perf_host *hosts, uint32_t count,
                         bool wants_rings, void *memory);
struct perf_role perf_role_of(const struct perf *p, uint32_t step, uint32_t host);
/* Of the present plan. */
void perf_take(struct perf *p, uint32_t step, uint32_t host, const struct perf_result *result);
/* The plan's results are there, or are given up. False: there is no other plan. */
bool perf_next(struct perf *p);
/* The worst of what a host's tests of the kind came to that are not done; PERF_DONE: all are; PERF_NOT_RUN: none. */
enum perf_outcome perf_missing(const struct perf *p, uint32_t host);
const char *perf_outcome_name(enum perf_outcome outcome);
uint32_t perf_lanes(uint32_t row); /* of PERF_ROWS: 1, 2, 4, 8 by names, then by leaves */
