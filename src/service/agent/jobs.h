/* jobs.h: what the processes of jobs on this host say of their communication (wire/job_page.h), gathered.
 *
 * Folders of job pages are listed once a second, a few pages are read at a time. A page belongs to somebody else, who may
 * be hostile: it is opened without following links, must be a regular file, is read(2) twice into our own memory and
 * taken where both agree; each user may have JOB_PROCESS_OF_USER_MAX of them. What it says is that user's word, and
 * is shown as such (`user`). It decides one thing, and that only where agent.yaml has `job_traffic_class: jobs`: the class of
 * probes between queue pairs.
 *
 * A process is alive while it holds the lock of its page. One that ended is kept for JOBS_ENDED_NS, so that what it last
 * said can be read, and then forgotten; what a killed one left in the folder is removed. What changed between
 * two looks (a lane failed, came home, was moved) becomes an event, with its reason. */
#pragma once
#include <sys/types.h>

#include "base/bug.h"
#include "base/limits.h"
#include "base/time.h"
#include "wire/job_page.h"
#include "wire/lane.h"

#define JOBS_FOLDER_MAX 2
#define JOBS_ENDED_NS   (300 * NS_PER_S)
#define JOBS_IDLE_NS    (3 * NS_PER_S) /* a page not written for so long: no traffic */

enum job_state {
    JOB_RUNNING,
    JOB_IDLE,   /* alive, without traffic */
    JOB_PARTED, /* some peer can't be reached by any lane */
    JOB_ENDED,
    JOB_KILLED, /* without closing its page */
    JOB_STATE_COUNT
};

/* How packets over RDMA ports are marked. */
struct job_class {
    uint8_t traffic_class, sl;
};

struct job_lane {
    struct job_page_lane page;
    uint64_t rate_bps; /* of bytes, between the last two looks */
};

struct job_process {
    char file[64];
    uint8_t folder;
    int fd;    /* -1: it ended */
    bool left; /* it ended, and its page can't be removed */
    dev_t device;
    ino_t inode;
    uid_t user;
    struct job_page_header header;
    bool known; /* header was read at least once */
    enum job_state state;
    struct mono seen, changed, ended; /* first look; last change of its page; when it ended */
    uint64_t rate_out_bps, rate_in_bps;
    struct job_lane *lanes;
    uint32_t lane_count, lane_capacity;
    bool lanes_cut; /* there are more than we keep */
    bool has_class;
    struct job_class class; /* of most of its lanes */
};

enum job_event_kind {
    JOB_EVENT_STARTED,
    JOB_EVENT_FAILOVER, /* a lane failed: its traffic goes on over others */
    JOB_EVENT_FAILBACK, /* it carries traffic again */
    JOB_EVENT_REPATH,   /* it was given another path */
    JOB_EVENT_PARTED,   /* no lane to that peer is left */
    JOB_EVENT_ENDED,
    JOB_EVENT_KILLED,
    JOB_EVENT_KIND_COUNT
};

struct job_event {
    struct mono at;
    enum job_event_kind kind;
    char job[64], host[48];
    uid_t user;
    uint32_t pid, rank, ranks; /* as in the page */
    int64_t stalled_ns;        /* of the process, until then */
    /* of a lane; lane UINT32_MAX: about the process */
    uint32_t lane, count; /* count: times since the last look */
    enum lane_reason reason;
    char own_nic[16], peer_nic[16], peer_host[48];
    uint32_t peer_pid;
};

struct jobs;

/* folders: at most JOBS_FOLDER_MAX, copied. In each the pages of dead processes are removed; the first is ours, and
 * there whatever lies there without a process. */
MUST_CHECK int jobs_new(struct jobs **ret_jobs, const char *const folders[], uint32_t count);
void jobs_free(struct jobs *jobs);
/* Looks at folders and pages when it is their time: at most `pages` of them. Called often. */
void jobs_poll(struct jobs *jobs, struct mono now, uint32_t pages);
/* As jobs_poll with no limit and at once: for tests, and for who just started. */
void jobs_look(struct jobs *jobs, struct mono now);

uint32_t jobs_count(const struct jobs *jobs);
/* index < jobs_count; those not `known` yet are to be skipped. */
const struct job_process *jobs_get(const struct jobs *jobs, uint32_t index);
/* At most so many of those whose page was read: one of each user, then a second one of each, so that no user hides another's. */
uint32_t jobs_fair(const struct jobs *jobs, uint32_t most, const struct job_process **ret);
/* Interfaces that have RDMA ports beside them: only what lanes over these say of their class counts, in pages read later. */
void jobs_class_nics(struct jobs *jobs, const char *const names[], uint32_t count);
/* As most lanes over queue pairs of most processes are that run; all 0: there are none, or these aren't marked. It stays until no
 * process has it any more, or more have another one for 30 s. Never service level 15. Called about once a second. */
struct job_class jobs_class(struct jobs *jobs, struct mono now);
/* The newest JOB_EVENT_KEPT, oldest first: numbers from *ret_first to the result - 1. */
uint64_t jobs_events(const struct jobs *jobs, uint64_t *ret_first);
const struct job_event *jobs_event(const struct jobs *jobs, uint64_t number);
/* Pages that were refused: not a page, another version, too many of one user. */
uint64_t jobs_refused(const struct jobs *jobs);

const char *job_state_name(enum job_state state);
const char *job_event_name(enum job_event_kind kind);
