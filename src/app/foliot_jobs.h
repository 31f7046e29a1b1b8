/* foliot_jobs.h: the flows of a job, combined from the reports of both ends.
 *
 * A flow is one direction of a lane. Its sender reports state, reason and rate; its receiver reports the one-way delays. If only
 * one end was asked, the fields of the other end are unknown: FLOW_UNKNOWN, or an empty text. */
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
    int64_t rank; /* FLOW_UNKNOWN: no rank is known */
};

struct flow {
    struct flow_end from, to;
    int64_t set, lane;
    bool standby, pair;
    char state[16], reason[16]; /* from the sender, or else from the receiver */
    bool sender_said;
    int64_t traffic_class, service_level; /* as the sender reports them */
    int64_t since_ns, rate_bps, bytes, failovers;
    int64_t owd_ns_floor, owd_ns_p50, owd_ns_p99, bound_ns;
    int64_t queued_ns_p50, queued_ns_p99, consumed_ns_p50, consumed_ns_p99;
};

struct flows {
    struct flow *list; /* owned; sorted by rank, then by lane */
    size_t count;
};

/* Collects the flows of job `id` (the text of job_id()) from `answers` of kind "lanes"; NULLs are skipped. -ENOMEM. */
MUST_CHECK int flows_collect(struct flows *flows, json_t *const answers[], size_t count,
                             const char *id);
void flows_done(struct flows *flows);

/* A process's job: its name, or "PID@HOST" for a job without a name. */
struct job_id {
    char text[160];
};
struct job_id job_id(const json_t *process);

/* Removes the processes of each job's earlier runs from answers of kind "jobs" or "lanes": those that had ended when the newest
 * process began, and those whose rank a newer process has. NULLs are skipped. Returns how many were removed. */
size_t jobs_drop_earlier_runs(json_t *const answers[], size_t count);

/* "host4/eth1 (rank 3)". */
struct flow_name {
    char text[128];
};
struct flow_name flow_end_name(const struct flow_end *end);

/* `foliot jobs … --controller URL`: the jobs of the whole fleet. Returns an exit status. */
int jobs_of_fleet(int argc, char *argv[]);
/* True for no word, for one ID, and for `compare` with two words. Otherwise the error was printed. */
bool jobs_words_are_good(int count, char *const words[]);

/* `foliot jobs compare FILE FILE`. Returns an exit status. */
int jobs_compare_details(const json_t *first, const json_t *second, bool json,
                         FILE *out); /* in the API's form of a job */
int jobs_compare_files(const char *first, const char *second, bool json, FILE *out);
