/* job.h: the fleet's jobs: agents report their hosts' processes, and the controller groups them by job and user.
 *
 * A host's last rollup is the present state of its processes, unless the host is silent. Each job has a past of fixed size:
 * JOB_PAST samples, at first one each 10 s. When they are full, two become one. job_keep.c keeps the past over a restart.
 * Events of a job (began, lane failed, ended …) are rows of the store. Savings are computed from these rows, not from memory.
 *
 * A process's report is only as good as its user, so the user is shown next to it. Names are cut to printable characters. */
#pragma once
#include "service/controller/controller.h"

#define JOB_PAST          512
#define JOB_SLOT_NS       (10 * NS_PER_S)
#define JOB_MAX           1024 /* beyond it the job that ended first is removed */
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
        flow_count, slot; /* slot: of its job, if the book still has the job */
    bool fleet_time;
    uint64_t bytes_out, bytes_in, rate_out_bps, rate_in_bps, resent, failovers, repaths, parted;
    uint64_t stalled_ns, age_ms;
    struct fleet_job_flow flows[JOB_FLOW_MAX];
};

struct fleet_job_sample {
    uint64_t bytes;                  /* sent by all ranks */
    int64_t heard_ns;                /* for each slot: how much time reports cover */
    uint32_t owd_p50_ns, owd_p99_ns; /* the worst; 0: not known */
};

struct fleet_job {
    char name[72];   /* "PID@HOST" for a job without a name */
    uint64_t tenant; /* of the host that reported it first: another tenant has another job */
    uint32_t user, ranks;
    int64_t first_ns, last_ns; /* heard of */
    uint32_t *host_list;       /* indexes of all hosts that ever reported it; owned */
    uint32_t host_count;
    int64_t fault_first_ns,
        fault_last_ns; /* lanes lost to the network, without BLAME_FAULT_NS between two */
    uint32_t faults;
    int64_t past_from_ns, slot_ns;
    int64_t heard_to_ns,
        covers_ns; /* end of the time that reports cover; the longest time that one report covers */
    struct fleet_job_sample past[JOB_PAST];
    uint32_t slot; /* in the store; each job of the book has its own */
    bool changed;  /* since it was stored */
    int64_t kept_ns;
};

MUST_CHECK int job_open(struct controller *c);
void job_close(struct controller *c);
void job_forget_host(struct fleet_host *h);
/* Takes a rollup's processes, at a time of the controller's clock. */
MUST_CHECK int job_on_report(struct controller *c, struct fleet_host *h,
                             const Foliot__V1__Report *report, int64_t at_ns);
/* Tenants of hosts have changed. A job's tenant is that of the host that reported it first. */
void job_on_tenants(struct controller *c);
/* The job of a host's process; NULL: not known. Its cost does not depend on the number of jobs. */
const struct fleet_job *job_of(const struct controller *c, const struct fleet_host *h,
                               const struct fleet_job_process *p);
/* Writes an EVENT_JOB into a row of the store. */
MUST_CHECK int job_on_event(struct controller *c, struct fleet_host *h,
                            const Foliot__V1__Event *event, int64_t at_ns);

/* True if NCCL's own transports would end a job for this reason. */
bool job_reason_fatal(const char *reason);

/* Bits a second in one of its slots. -1: nothing was reported, or reports of it may still come. */
int64_t job_rate_bps(const struct fleet_job *job, uint32_t slot, int64_t now_ns);

/* job_keep.c: keeps the book over a restart. */
MUST_CHECK int job_keep_load(struct controller *c); /* after fleet_load */
void job_keep_second(struct controller *c);
void job_keep_all(struct controller *c);

/* For job_keep.c: job_at() returns a job of the book, to change it. job_restore() puts a kept job into the book, which then
 * owns it. */
struct fleet_job *job_at(struct controller *c, uint32_t index);
void job_restore(struct controller *c, struct fleet_job *job);
void job_free(struct fleet_job *job);
MUST_CHECK int job_add_host(struct fleet_job *job, uint32_t host);

/* job_alarm.c: series of jobs for alert rules; the name of the job that rules know by a number, NULL: forgotten. */
void job_alarm_second(struct controller *c);
const char *job_alarm_name(void *controller, uint64_t id);
void job_alarm_close(struct controller *c);

/* The book's jobs, in the order of their first reports. */
uint32_t job_count(const struct controller *c);
const struct fleet_job *job_get(const struct controller *c, uint32_t index);
/* Puts "network": is the job slow because of the network? It is yes, no or unknown, with a sentence. */
/* cause: of the open incident that fits. NULL: none, or the caller may not see it. */
void job_put_blame(const struct controller *c, struct json_writer *j, const struct fleet_job *job,
                   const char *cause);
