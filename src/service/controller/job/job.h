/* job.h: the fleet's jobs: what the agents say of their hosts' processes, put together by job and user.
 *
 * A host's last rollup is its processes' present; a silent host's says nothing any more. Per job there is a past of fixed
 * size: JOB_PAST samples, at first one each 10 s; when they are full, two become one; job_keep.c has it over a restart. What
 * happened to a job (began, lane failed, ended …) is a row of the store: that, not memory, is what savings are made of.
 *
 * What a process says is the word of its user, who is named beside it; names are cut to what is printable. */
#pragma once
#include "service/controller/controller.h"

#define JOB_PAST          512
#define JOB_SLOT_NS       (10 * NS_PER_S)
#define JOB_MAX           1024 /* the one that ended first leaves */
#define JOB_HOST_MAX      64   /* processes of one host */
#define JOB_FLOW_MAX      8    /* of a process */
#define JOB_RESTART_NS    (60 * NS_PER_S)
#define JOB_RESTART_HOURS 2.5 /* per GPU; see docs/controller.md */

struct fleet_job_flow {
    char peer_host[48], own_nic[16], peer_nic[16], state[16], reason[16];
    uint32_t peer_pid, lane;
    bool sending;
    uint64_t rate_bps;
    uint32_t owd_p50_ns, owd_p99_ns, owd_floor_ns, queued_p50_ns, consumed_p50_ns, bound_ns;
};

struct fleet_job_process {
    char job[64];
    uint32_t rank, ranks, pid, user, state, mode, peers, lanes, lanes_usable, owd_p50_ns,
        flow_count, slot; /* slot: its job's, if that is in the book still */
    bool fleet_time;
    uint64_t bytes_out, bytes_in, rate_out_bps, rate_in_bps, resent, failovers, repaths, parted;
    uint64_t stalled_ns, age_ms;
    struct fleet_job_flow flows[JOB_FLOW_MAX];
};

struct fleet_job_sample {
    uint64_t bytes;                  /* sent by all ranks */
    int64_t heard_ns;                /* of the slot, how much any report is about */
    uint32_t owd_p50_ns, owd_p99_ns; /* the worst; 0: not known */
};

struct fleet_job {
    char name[72]; /* "PID@HOST" for one that nobody named */
    uint64_t
        tenant; /* of the host that told of it first: two tenants' jobs of one name and user are two */
    uint32_t user, ranks;
    int64_t first_ns, last_ns; /* heard of */
    uint32_t *host_list;       /* indexes of all that it was ever heard on; owned */
    uint32_t host_count;
    int64_t fault_first_ns,
        fault_last_ns; /* lanes that the network took, without BLAME_FAULT_NS between two */
    uint32_t faults;
    int64_t past_from_ns, slot_ns;
    int64_t heard_to_ns,
        covers_ns; /* end of what reports are about; the longest that one reaches back */
    struct fleet_job_sample past[JOB_PAST];
    uint32_t slot; /* of the store; no two jobs of the book have the same */
    bool changed;  /* since it was kept there */
    int64_t kept_ns;
};

MUST_CHECK int job_open(struct controller *c);
void job_close(struct controller *c);
void job_forget_host(struct fleet_host *h);
/* A rollup's processes, at a moment of our clock. */
MUST_CHECK int job_on_report(struct controller *c, struct fleet_host *h,
                             const Foliot__V1__Report *report, int64_t at_ns);
/* Hosts became other tenants': a job is the tenant's of the host that told of it first. */
void job_on_tenants(struct controller *c);
/* The job that a process of a host belongs to; NULL: none is known. At once, however many jobs there are. */
const struct fleet_job *job_of(const struct controller *c, const struct fleet_host *h,
                               const struct fleet_job_process *p);
/* An EVENT_JOB into a row of the store. */
MUST_CHECK int job_on_event(struct controller *c, struct fleet_host *h,
                            const Foliot__V1__Event *event, int64_t at_ns);

/* What NCCL's own transports end a job for. */
bool job_reason_fatal(const char *reason);

/* Bits a second of one of its slots; -1: nothing was heard, or reports of it may still come. */
int64_t job_rate_bps(const struct fleet_job *job, uint32_t slot, int64_t now_ns);

/* job_keep.c: the book over a restart. */
MUST_CHECK int job_keep_load(struct controller *c); /* after fleet_load */
void job_keep_second(struct controller *c);
void job_keep_all(struct controller *c);

/* For job_keep.c: a job of the book, to change; one that was kept, into the book, which owns it then. */
struct fleet_job *job_at(struct controller *c, uint32_t index);
void job_restore(struct controller *c, struct fleet_job *job);
void job_free(struct fleet_job *job);
MUST_CHECK int job_add_host(struct fleet_job *job, uint32_t host);

/* job_alarm.c: series of jobs for alert rules; the name of one that rules know by a number, NULL: forgotten. */
void job_alarm_second(struct controller *c);
const char *job_alarm_name(void *controller, uint64_t id);
void job_alarm_close(struct controller *c);

/* The book, by the order in which they were heard of first. */
uint32_t job_count(const struct controller *c);
const struct fleet_job *job_get(const struct controller *c, uint32_t index);
/* "network": is it slow because of the network? yes, no or unknown, in one sentence. */
/* cause: of the open incident that fits, NULL: none, or not to be named. */
void job_put_blame(const struct controller *c, struct json_writer *j, const struct fleet_job *job,
                   const char *cause);
