/* job_page.h: the communication of one process of a job, in shared memory. The agent and `foliot jobs` read it live, without a
 * question to the job.
 *
 * There is one file per process, FOLIOT_JOB_DIR/job-PID-RANDOM.page (default FOLIOT_RUNTIME_DIR/jobs, /run/foliot/jobs, else
 * /dev/shm). It has a header and JOB_PAGE_LANES_MAX entries, one per lane and direction, each with its own sequence lock (as in
 * clock_page.h). The process's housekeeping writes it a few times a second while there is traffic, and once when traffic ends. An
 * entry keeps its index as long as its `generation` stays.
 *
 * Alive or dead: the process holds an exclusive flock(2) on the file as long as it lives. A reader that gets a shared lock reads
 * the last state of a process that was killed. That works across namespaces of processes, mounts and time.
 *
 * Any program with write permission may remove, truncate or overwrite the page. A mapping would kill a process that touches a
 * part that was cut off. So neither end maps it: the job writes it whole by write(2) and never reads it back; a reader reads it
 * twice by read(2) and takes the entries that are equal in both. */
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
    /* 0: the entry is free; another number when the entry is given to another lane */
    uint32_t generation;
    uint32_t set; /* lanes of one set share it */
    uint16_t lane;
    uint8_t sending; /* 1: this process sends over it */
    uint8_t state;   /* enum lane_state */
    uint8_t reason;  /* enum lane_reason: why it left LANE_ACTIVE last */
    uint8_t standby;
    uint16_t own_port, peer_port;
    /* JOB_PAGE_PAIR: its bytes go over a queue pair, else over its TCP connection. For a sending entry also the queue pair's
     * service level, and JOB_PAGE_PORT: path_port is valid. Writers of older releases leave that bit 0; their readers ignore the
     * delays of sending entries. */
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
        uint32_t owd_ns;    /* one-way delay, like the next three for receiving entries only */
        uint32_t path_port; /* JOB_PAGE_PORT: the UDP source port of its RoCE packets */
    };
    uint32_t owd_ns_floor, owd_ns_mean, owd_ns_max;
    /* of the delay, by both clocks; JOB_PAGE_NS_NONE: only differences are meaningful */
    uint32_t bound_ns;
    uint32_t queued_ns;   /* posted -> sent, mean: the sender's host */
    uint32_t consumed_ns; /* received -> consumed, mean: the receiver's host */
    uint32_t since_ms;    /* in this state */
    /* over the last 10 to 20 s with traffic, within an eighth */
    uint32_t owd_ns_p50, owd_ns_p99;
    uint32_t queued_ns_p50, queued_ns_p99;
    uint32_t consumed_ns_p50, consumed_ns_p99;
};
_Static_assert(sizeof(struct job_page_lane) == 232, "shared memory layout");

struct job_page_header {
    uint64_t magic;
    uint32_t version;
    uint32_t pid;
    uint32_t lane_capacity, lane_count; /* entries used so far; never shrinks */
    int64_t written;                    /* host's raw clock, ns */
    int64_t started;                    /* the same clock: when the transport began */
    char host[48];
    char job[64];   /* its name in Slurm or Kubernetes, or "" */
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
    int64_t stalled_ns; /* total time with a request in flight and no usable lane */
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
/* Fills in magic, version and capacity. */
void job_page_write_header(struct job_page_memory *memory, const struct job_page_header *header);
void job_page_write_lane(struct job_page_memory *memory, uint32_t index,
                         const struct job_page_lane *lane);

/* -- readers: safe with any bytes; size: of the mapping. Texts end with a 0. */
MUST_CHECK bool job_page_read_header(const struct job_page_memory *memory, size_t size,
                                     struct job_page_header *ret);
/* False: torn, or the index is beyond the file. A free entry has generation 0. */
MUST_CHECK bool job_page_read_lane(const struct job_page_memory *memory, size_t size,
                                   uint32_t index, struct job_page_lane *ret);
