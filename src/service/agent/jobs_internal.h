/* jobs_internal.h: shared by jobs.c (files), jobs_change.c (changes between two looks) and jobs_class.c. */
#pragma once
#include "service/agent/jobs.h"

struct jobs {
    char folders[JOBS_FOLDER_MAX][224];
    void *listing
        [JOBS_FOLDER_MAX]; /* DIR: place where the last look at a large folder ended; else NULL */
    uint32_t folder_count;
    struct job_process *processes[JOB_PROCESS_MAX];
    uint32_t count;
    uint32_t lanes_kept; /* sum of all lane capacities */
    uint64_t refused;
    struct mono next_list;
    uint32_t turn; /* index of the process whose page is read next */
    struct job_event events[JOB_EVENT_KEPT];
    uint64_t event_count;
    /* interfaces with RDMA ports */
    char nics[HOST_NIC_MAX][sizeof(((struct job_page_lane *)0)->own_nic)];
    uint32_t nic_count;
    /* class_ahead: the class of most processes since ahead_at */
    struct job_class class, class_ahead;
    struct mono ahead_at;
    struct job_lane fresh[JOB_PAGE_LANES_MAX];
    struct job_page_memory copies[2];
};

/* Called before `fresh` replaces the process's lanes: works out rates and events. */
void jobs_compare(struct jobs *jobs, struct job_process *p, const struct job_page_header *header,
                  struct job_lane *fresh, uint32_t count, struct mono now);
/* Works out the class of the process from `fresh`. */
void jobs_class_of_page(const struct jobs *jobs, struct job_process *p, uint32_t count);
void jobs_note_end(struct jobs *jobs, const struct job_process *p, struct mono now);
