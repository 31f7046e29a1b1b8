/* job_page.h: what a process of a job knows of its own communication, in shared memory: for the agent and for
 * `foliot jobs`, live, without asking the job anything.
 *
 * One file per process, FOLIOT_JOB_DIR/job-PID-RANDOM.page (default FOLIOT_RUNTIME_DIR/jobs, /run/foliot/jobs, else
 * /dev/shm). A header and JOB_PAGE_LANES_MAX entries, one per lane and direction, each with a sequence lock of its own
 * (mechanics as in clock_page.h); written by the process's housekeeping a few times a second while there is traffic, and
 * once when it ceases. An entry keeps its index for as long as its `generation` stays.
 *
 * Alive or dead: the process holds flock(2) on the file, exclusively, for as long as it lives. A reader that gets a shared
 * lock reads the last words of one that was killed. That holds across namespaces of processes, mounts and time.
 *
 * The page may be removed, truncated or written over by anybody who may write it. So neither end maps it, which would kill
 * who touches what was cut off: the job write(2)s it whole and never reads it back, a reader read(2)s it twice and takes
 * the entries in which both agree. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define JOB_PAGE_MAGIC     0x31424f4a4f464f46ULL /* "FOFOJOB1" */
#define JOB_PAGE_VERSION   2
#define JOB_PAGE_LANES_MAX 1024
#define JOB_PAGE_PREFIX    "job-"
#define JOB_PAGE_SUFFIX    ".page"
#define JOB_PAGE_PAIR      1u
#define JOB_PAGE_PORT      2u /* with PAIR */
#define JOB_PAGE_SL_SHIFT  4
#define JOB_PAGE_NS_NONE   UINT32_MAX /* not measured */

struct job_page_lane {
    uint32_t generation; /* 0: the entry is free; new when given to another lane */
    uint32_t set;        /* lanes of one set share it */
    uint16_t lane;
    uint8_t sending; /* 1: this process sends over it */
    uint8_t state;   /* enum lane_state */
    uint8_t reason;  /* enum lane_reason: why it left LANE_ACTIVE last */
    uint8_t standby;
    uint16_t own_port, peer_port;
    /* JOB_PAGE_PAIR: its bytes go over a queue pair, else over its TCP connection; and sending: the queue pair's service level,
     * and JOB_PAGE_PORT: path_port is told. Writers of before leave that bit 0; readers of before don't look at delays of sending
     * entries */
    uint8_t pair;
    uint8_t traffic_class; /* sending: DSCP << 2, and two bits of ECN */
    uint32_t epoch;
    uint8_t own_address[16], peer_address[16];
    char own_nic[16], peer_nic[16];
    char peer_host[48];
    uint32_t peer_pid;
    uint32_t failovers;
    uint64_t chunks, bytes, resent;
    uint64_t rate_bps;
    union {
        uint32_t owd_ns;    /* one-way delay, as the next three: receiving entries only */
        uint32_t path_port; /* JOB_PAGE_PORT: the UDP source port of its packets of RoCE */
    };
    uint32_t owd_ns_floor, owd_ns_mean, owd_ns_max;
    uint32_t
        bound_ns; /* of it, by both clocks; JOB_PAGE_NS_NONE: only differences mean something */
    uint32_t queued_ns;   /* posted -> sent, mean: the sender's host */
    uint32_t consumed_ns; /* received -> consumed, mean: the receiver's host */
    uint32_t since_ms;    /* in this state */
    /* of the last 10 to 20 s with traffic, within an eighth */
    uint32_t owd_ns_p50, owd_ns_p99;
    uint32_t queued_ns_p50, queued_ns_p99;
    uint32_t consumed_ns_p50, consumed_ns_p99;
};
_Static_assert(sizeof(struct job_page_lane) == 232, "shared memory layout");

struct job_page_header {
    uint64_t magic;
    uint32_t version;
    uint32_t pid;
    uint32_t lane_capacity, lane_count; /* entries used so far; grows */
    int64_t written;                    /* host's raw clock, ns */
    int64_t started;                    /* likewise: when the transport began */
    char host[48];
    char job[64];   /* Slurm's or Kubernetes' name for it, or "" */
    uint32_t rank;  /* UINT32_MAX: not known */
    uint32_t ranks; /* 0: not known */
    uint8_t mode;   /* enum transport_mode */
    uint8_t synced; /* stamps are fleet time */
    uint16_t sets;
    uint32_t comms;
    uint64_t reserved[2]; /* 0 */
    uint64_t bytes_out, bytes_in;
    uint64_t failovers, repaths, parted;
    uint64_t resent;
    int64_t stalled_ns; /* with a request in flight and no lane usable, all in all */
};
_Static_assert(sizeof(struct job_page_header) == 240, "shared memory layout");

struct job_page_memory {
    uint64_t sequence;
    uint64_t header[30];
    struct {
        uint64_t sequence;
        uint64_t words[29];
    } lanes[JOB_PAGE_LANES_MAX];
};
_Static_assert(sizeof(((struct job_page_memory *)0)->header) == sizeof(struct job_page_header),
               "fits");
_Static_assert(sizeof(((struct job_page_memory *)0)->lanes[0].words) ==
                   sizeof(struct job_page_lane),
               "fits");

/* -- writer: one thread */
void job_page_init(struct job_page_memory *memory, uint64_t nonce);
/* magic, version and capacity are filled in. */
void job_page_write_header(struct job_page_memory *memory, const struct job_page_header *header);
void job_page_write_lane(struct job_page_memory *memory, uint32_t index,
                         const struct job_page_lane *lane);

/* -- readers: any bytes are safe; size: of the mapping. Texts are ended. */
MUST_CHECK bool job_page_read_header(const struct job_page_memory *memory, size_t size,
                                     struct job_page_header *ret);
/* False: torn, or index beyond the file. A free entry reads as generation 0. */
MUST_CHECK bool job_page_read_lane(const struct job_page_memory *memory, size_t size,
                                   uint32_t index, struct job_page_lane *ret);
