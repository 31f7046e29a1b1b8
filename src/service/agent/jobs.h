/* jobs.h: collects the pages that processes of jobs on this host write about their communication (wire/job_page.h).
 *
 * Folders of job pages are listed once a second. A few pages are read at a time. A page may come from a hostile user, so:
 * - it is opened without following links, and must be a regular file;
 * - it is read(2) twice into the agent's own memory, and parts that are equal in both copies are used;
 * - each user may have at most JOB_PROCESS_OF_USER_MAX pages.
 *
 * The contents are that user's claim, and are shown with the user's id (`user`). They decide two things, and only with
 * `job_traffic_class: jobs` in agent.yaml: the class of probes between queue pairs, and their paths.
 *
 * A process is alive while it holds the lock of its page. An ended process is kept for JOBS_ENDED_NS, so that its last values
 * can be read. The page that a killed process left in the folder is removed. Changes between two looks (a lane failed, works
 * again, has another path) become events with a reason. */
#pragma once
#include <sys/types.h>

#include "base/bug.h"
#include "base/limits.h"
#include "base/time.h"
#include "wire/job_page.h"
#include "wire/lane.h"

#define JOBS_FOLDER_MAX 2
#define JOBS_ENDED_NS   (300 * NS_PER_S)
#define JOBS_IDLE_NS    (3 * NS_PER_S) /* no write of the page for this time: no traffic */

enum job_state {
    JOB_RUNNING,
    JOB_IDLE,   /* alive, without traffic */
    JOB_PARTED, /* no lane can reach some peer */
    JOB_ENDED,
    JOB_KILLED, /* ended without closing its page */
    JOB_STATE_COUNT
};

/* The marks of packets over RDMA ports. */
struct job_class {
    uint8_t traffic_class, sl;
};

struct job_lane {
    struct job_page_lane page;
    uint64_t rate_bps; /* bits per second of payload between the last two looks */
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
    bool known; /* its header was read at least once */
    enum job_state state;
    struct mono seen, changed, ended; /* first look; last change of the page; end of the process */
    uint64_t rate_out_bps, rate_in_bps;
    struct job_lane *lanes;
    uint32_t lane_count, lane_capacity;
    bool lanes_cut; /* there are more lanes than are kept */
    bool has_class;
    struct job_class class; /* the class of most of its lanes */
};

enum job_event_kind {
    JOB_EVENT_STARTED,
    JOB_EVENT_FAILOVER, /* a lane failed: its traffic goes over other lanes */
    JOB_EVENT_FAILBACK, /* it carries traffic again */
    JOB_EVENT_REPATH,   /* the lane has another path */
    JOB_EVENT_PARTED,   /* no lane to that peer works */
    JOB_EVENT_ENDED,
    JOB_EVENT_KILLED,
    JOB_EVENT_KIND_COUNT
};

struct job_event {
    struct mono at;
    enum job_event_kind kind;
    char job[64], host[48];
    uid_t user;
    uint32_t pid, rank, ranks; /* from the page */
    int64_t stalled_ns;        /* the process's total at that time */
    /* for events of a lane; lane UINT32_MAX: the event is of the process */
    uint32_t lane, count; /* count: times since the last look */
    enum lane_reason reason;
    char own_nic[16], peer_nic[16], peer_host[48];
    uint32_t peer_pid;
};

struct jobs;

/* folders: at most JOBS_FOLDER_MAX; they are copied. Pages of dead processes are removed from all of them. The first folder is
 * the agent's own: there all files without a process are removed. */
MUST_CHECK int jobs_new(struct jobs **ret_jobs, const char *const folders[], uint32_t count);
void jobs_free(struct jobs *jobs);
/* Lists folders and reads at most `pages` pages when they are due. Called often. */
void jobs_poll(struct jobs *jobs, struct mono now, uint32_t pages);
/* Like jobs_poll, but at once and without a limit: for tests, and at the start. */
void jobs_look(struct jobs *jobs, struct mono now);

uint32_t jobs_count(const struct jobs *jobs);
/* index < jobs_count. Skip processes that are not `known` yet. */
const struct job_process *jobs_get(const struct jobs *jobs, uint32_t index);
/* Returns at most `most` processes whose page was read: one of each user, then a second one of each user, and so on. So no
 * user hides another user's jobs. */
uint32_t jobs_fair(const struct jobs *jobs, uint32_t most, const struct job_process **ret);
/* Names of interfaces that have RDMA ports. Only lanes over these interfaces count for a job's class, in pages that are read
 * later. */
void jobs_class_nics(struct jobs *jobs, const char *const names[], uint32_t count);
/* The class that most running processes use for most of their lanes over queue pairs. All 0: there are no such lanes, or they
 * have no mark. The class changes when no process uses it any more, or when more processes have used another class for 30 s.
 * It is never service level 15. Called about once a second. */
struct job_class jobs_class(struct jobs *jobs, struct mono now);
/* UDP source ports of lanes over RoCE queue pairs from that address to that one, of processes that run: each port once, in
 * rising order. `most` <= JOBS_PORTS_MAX. Returns how many. */
#define JOBS_PORTS_MAX 32
uint32_t jobs_ports(const struct jobs *jobs, const uint8_t own[16], const uint8_t peer[16],
                    uint16_t *ret_ports, uint32_t most);
/* The newest JOB_EVENT_KEPT events, oldest first. Their numbers are *ret_first to the result - 1. */
uint64_t jobs_events(const struct jobs *jobs, uint64_t *ret_first);
const struct job_event *jobs_event(const struct jobs *jobs, uint64_t number);
/* Pages that were refused: no page, another version, or too many of one user. */
uint64_t jobs_refused(const struct jobs *jobs);

const char *job_state_name(enum job_state state);
const char *job_event_name(enum job_event_kind kind);
