/* jobs_internal.h: what jobs.c (files) and jobs_change.c (what changed between two looks) share. */
#pragma once
#include "service/agent/jobs.h"

struct jobs {
    char folders[JOBS_FOLDER_MAX][224];
    void *listing
        [JOBS_FOLDER_MAX]; /* DIR: where the last look at a folder with many files ended; else NULL */
    uint32_t folder_count;
    struct job_process *processes[JOB_PROCESS_MAX];
    uint32_t count;
    uint32_t lanes_kept; /* sum of capacities */
    uint64_t refused;
    struct mono next_list;
    uint32_t turn; /* whose page is next */
    struct job_event events[JOB_EVENT_KEPT];
    uint64_t event_count;
    struct job_lane fresh[JOB_PAGE_LANES_MAX];
    struct job_page_memory copies[2];
};

/* Before `fresh` replaces what the process said: its rates, and events. */
void jobs_compare(struct jobs *jobs, struct job_process *p, const struct job_page_header *header,
                  struct job_lane *fresh, uint32_t count, struct mono now);
void jobs_note_end(struct jobs *jobs, const struct job_process *p, struct mono now);
