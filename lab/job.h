/* job.h: a job over queue pairs that runs while a scenario is played in a lab with RDMA engines (engine.h).
 *
 * `foliot perf sendrecv` with one rank on each of a few hosts: each sends to the next, rests, and sends again. Every value of
 * every round is checked. It is a light load: what is judged is that the job goes on, not how fast. */
#pragma once
#include "lab/lab.h"

#include <limits.h>
#include <sys/types.h>

#define LAB_JOB_RANK_MAX 4
#define LAB_JOB_PAUSE_MS 100

struct lab_job {
    pid_t pid; /* 0: none runs */
    int rank_count, rank_host[LAB_JOB_RANK_MAX];
    char folder[LAB_TEXT_SIZE + 32]; /* its log, JSON and traces */
};

struct lab_job_result {
    int status;   /* its exit status; -1: it didn't end */
    double wrong; /* values, of all rounds; -1: it didn't tell */
    int pairs,
        given_up; /* lanes that went over a queue pair, and again after a failure; lanes that failed */
    int receives;  /* messages that arrived */
    double gap_ms; /* the longest time at a rank without one, the pause included */
};

/* The hosts of its ranks: first those that faults are about, then the first host of each leaf, then any. Sorted; how many. */
int lab_job_hosts(const struct lab *lab, int ret_host[LAB_JOB_RANK_MAX]);
/* Rounds that fit into the scenario's time, as far as pauses alone tell. */
int lab_job_rounds(const struct scenario *s);
/* Starts it; the lab is up. */
MUST_CHECK int lab_job_start(struct lab_job *job, const struct lab *lab);
/* Waits for its end, `patience_ns` at most, and reads what it left. */
struct lab_job_result lab_job_end(struct lab_job *job, int64_t patience_ns);
/* The end of what its ranks wrote. */
void lab_job_show_log(const struct lab_job *job, FILE *to);
/* It ended well, no value was wrong, and there were queue pairs. */
bool lab_job_is_well(const struct lab_job_result *result);
