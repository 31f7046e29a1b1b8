/* jobs_internal.h: what jobs.c (files), jobs_change.c (what changed between two looks) and jobs_class.c share. */
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
    char nics[HOST_NIC_MAX][sizeof(((struct job_page_lane *)0)->own_nic)]; /* RDMA ports' */
    uint32_t nic_count;
    struct job_class class, class_ahead; /* class_ahead: of most processes, since ahead_at */
    struct mono ahead_at;
    struct job_lane fresh[JOB_PAGE_LANES_MAX];
    struct job_page_memory copies[2];
};

/* Before `fresh` replaces what the process said: its rates, and events. */
void jobs_compare(struct jobs *jobs, struct job_process *p, const struct job_page_header *header,
                  struct job_lane *fresh, uint32_t count, struct mono now);
/* By `fresh`. */
void jobs_class_of_page(const struct jobs *jobs, struct job_process *p, uint32_t count);
void jobs_note_end(struct jobs *jobs, const struct job_process *p, struct mono now);
