/* perf.h: tests of bandwidth and of collectives, as part of an audit (core/audit/perf.h): plans that agents get, results that
 * come back, and what they amount to, as facts of the hosts beside their sheets.
 *
 * Hosts that can't take part have a fact with the reason. A test is only of hosts whose agents find no job there. */
#pragma once
#include <net/if.h>

#include "core/audit/perf.h"
#include "service/controller/audit/audit.h"

#define PERF_STEP_MS   3500
#define PERF_ALL_MS    1500 /* more where all hosts meet, and 2 ms a host */
#define PERF_TIMED_MS  1000
#define PERF_WAIT_NS   (5 * NS_PER_S) /* for results, after the last step */
#define PERF_WAYS_MOST 12             /* of a step */
#define PERF_PORT      18600          /* and the group's number */

struct json_writer;
struct sheet;
struct fact;

struct audit_perf_host {
    int64_t id; /* in the store */
    uint32_t nic_count, nics[HOST_NIC_MAX];
    char names[HOST_NIC_MAX][IF_NAMESIZE];
    const char *misfit;          /* why it can't take part, a word; NULL: it can */
    char note[AUDIT_WORDS_SIZE]; /* what it told last of a test that was not done */
    uint8_t outcome;             /* enum perf_outcome: the worst so far */
    struct {                     /* the same, before the rings, which may be run again */
        char note[AUDIT_WORDS_SIZE];
        uint8_t outcome;
    } pairs;
    struct fact *facts;
    uint32_t fact_count, weak; /* weak: the last so many; what files have comes before them */
    char *text;
    size_t text_used;
};
struct audit_perf {
    int64_t run;
    uint64_t name; /* of the present plan */
    uint64_t fleet_version;
    uint8_t secret[16]; /* of this plan: ranks know each other by it */
    int64_t begin_ns;
    uint32_t step_ms;
    uint8_t dscp; /* of jobs */
    struct perf core;
    struct perf_host *hosts;
    struct audit_perf_host *who; /* the same order: by names */
    uint32_t count;
    uint32_t left;  /* results of this plan that did not come yet */
    uint32_t tests; /* results so far, and those of this plan that are waited for */
    uint32_t done;
    struct audit_leaves leaves, kinds; /* kinds: hosts that ought to be alike */
    void *memory;
    struct mono made; /* the present plan */
    uint32_t rows_ms; /* of the rings: from their plans to their results; 0: there were none */
    struct mono until;
    bool judged;
};

/* -ENODATA: fewer than two hosts can take part; why. */
MUST_CHECK int audit_perf_new(struct controller *c, const struct audit_run *run,
                              struct audit_perf **ret, char why[AUDIT_WORDS_SIZE]);
struct audit_perf *audit_perf_free(struct audit_perf *x);
/* Results of the present plan are still waited for. */
bool audit_perf_waits(const struct audit_perf *x);
/* What hosts told of the present plan is summed up, and the core's next one is there. False: there is none. */
bool audit_perf_sum_up(struct audit_perf *x);
/* All of a plan is there: the next one is made. False: there is none. */
bool audit_perf_next(struct controller *c, struct audit_perf *x);
/* Its results come no more, for that reason. */
void audit_perf_leave(struct audit_perf *x, int64_t host, const char *words);
/* The audit was stopped, why: nothing comes of any test any more. */
void audit_perf_cut(struct audit_perf *x, const char *words);
/* In the keeper: what all hosts' facts are. -ENOMEM. */
MUST_CHECK int audit_perf_judge(struct audit_perf *x);
/* Those of this host into its sheet; their texts stay here. Those that come before what files have; then, weak, those that count
 * only where files have nothing. -ENOMEM. */
MUST_CHECK int audit_perf_facts(const struct audit_perf *x, int64_t host, bool weak,
                                struct sheet *sheet);
/* "tests" of a run. */
void audit_perf_write(const struct audit_perf *x, struct json_writer *j);
