/* foliot_jobs.h: the flows of a job, put together from what both their ends said.
 *
 * A flow is one lane in the direction of its messages. Its sender knows state, reason and rate; its receiver the one-way
 * delays. Where only one end was asked, the other's part is unknown: UNKNOWN_NS, or an empty text. */
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bug.h"

#define FLOW_UNKNOWN INT64_MIN

struct flow_end {
    char host[64], nic[16];
    int64_t pid, port;
    int64_t rank; /* FLOW_UNKNOWN */
};

struct flow {
    struct flow_end from, to;
    int64_t set, lane;
    bool standby, pair;
    char state[16], reason[16]; /* the sender's; else the receiver's */
    bool sender_said;
    int64_t traffic_class, service_level; /* as its sender said */
    int64_t since_ns, rate_bps, bytes, failovers;
    int64_t owd_ns_floor, owd_ns_p50, owd_ns_p99, bound_ns;
    int64_t queued_ns_p50, queued_ns_p99, consumed_ns_p50, consumed_ns_p99;
};

struct flows {
    struct flow *list; /* owned; by ranks, then lanes */
    size_t count;
};

/* Of the processes of job `id` (as job_id() says it) in `answers` of kind "lanes"; NULLs are skipped. -ENOMEM. */
MUST_CHECK int flows_collect(struct flows *flows, json_t *const answers[], size_t count,
                             const char *id);
void flows_done(struct flows *flows);

/* A process's job: its name, or "PID@HOST" for one that nobody named. */
struct job_id {
    char text[160];
};
struct job_id job_id(const json_t *process);

/* Takes the processes of earlier runs of each job out of answers of kind "jobs" or "lanes": those that had ended when
 * its newest process began, and those whose rank a newer process has. NULLs are skipped. How many. */
size_t jobs_drop_earlier_runs(json_t *const answers[], size_t count);

/* "host4/eth1 (rank 3)". */
struct flow_name {
    char text[128];
};
struct flow_name flow_end_name(const struct flow_end *end);

/* `foliot jobs … --controller URL`: of the whole fleet. An exit status. */
int jobs_of_fleet(int argc, char *argv[]);
/* None, ID, or `compare` and two: else what is wrong is printed. */
bool jobs_words_are_good(int count, char *const words[]);

/* `foliot jobs compare FILE FILE`. An exit status. */
int jobs_compare_details(const json_t *first, const json_t *second, bool json,
                         FILE *out); /* as the API says of a job */
int jobs_compare_files(const char *first, const char *second, bool json, FILE *out);
