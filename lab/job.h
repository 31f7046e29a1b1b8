/* job.h: a job over queue pairs that runs while a lab with RDMA engines (engine.h) plays a scenario.
 *
 * It is `foliot perf sendrecv` with one rank on each of a few hosts. Each rank sends to the next, rests, and sends again.
 * Every value of every round is checked. The load is light: the judge checks that the job goes on, not its speed. */
#pragma once
#include "lab/lab.h"

#include <limits.h>
#include <sys/types.h>

#define LAB_JOB_RANK_MAX 4
#define LAB_JOB_PAUSE_MS 100

struct lab_job {
    pid_t pid; /* 0: no job runs */
    int rank_count, rank_host[LAB_JOB_RANK_MAX];
    char folder[LAB_TEXT_SIZE + 32]; /* the job's log, JSON and traces */
};

struct lab_job_result {
    int status;          /* exit status; -1: it didn't end */
    double wrong;        /* wrong values of all rounds; -1: the job reported no number */
    int pairs, given_up; /* lanes over queue pairs, also those after a failure; lanes that failed */
    int receives;        /* messages that arrived */
    double gap_ms;       /* the longest time between two messages at a rank, its pause included */
};

/* The hosts of its ranks: first the hosts of faults, then the first host of each leaf, then others. Sorted. Returns how many. */
int lab_job_hosts(const struct lab *lab, int ret_host[LAB_JOB_RANK_MAX]);
/* The number of rounds that fit into the scenario's time, if only the pauses took time. */
int lab_job_rounds(const struct scenario *s);
/* Starts the job; the lab must be up. */
MUST_CHECK int lab_job_start(struct lab_job *job, const struct lab *lab);
/* Waits for the job's end, at most `patience_ns`, and reads its results. */
struct lab_job_result lab_job_end(struct lab_job *job, int64_t patience_ns);
/* Prints the end of the ranks' log. */
void lab_job_show_log(const struct lab_job *job, FILE *to);
/* True if the job ended without an error, no value was wrong, and it used queue pairs. */
bool lab_job_is_well(const struct lab_job_result *result);
