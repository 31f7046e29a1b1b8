/* trial.h: what a device does, by trying: a queue pair connected to another one of the same port, in this process.
 *
 * The one that matters is the fence. Before a buffer is given back to its owner, nothing may write into it any more. Foliot
 * takes the flush of the last receive of a queue pair in ERR (its marker) for the proof. Here a thread writes into a buffer
 * without pause, the receiving queue pair is silenced at a random moment, and once its marker has come the buffer is watched:
 * not one byte may move. A device that fails this may not have direct lanes. */
#pragma once
#include "platform/rdma/verbs.h"

struct rdma_trial_config {
    uint32_t port;
    uint8_t gid[16]; /* of this port; what both ends are reached by */
    uint8_t gid_index;
    uint16_t lid;
    bool global;
    uint32_t mtu;
    uint32_t rounds;   /* of the fence */
    uint32_t size;     /* of a write, bytes */
    uint32_t watch_ms; /* how long the buffer is looked at after the marker */
    uint32_t seed;     /* of the moments */
};

#define RDMA_STATUS_MAX 32 /* numbers of completions' statuses, the library's own */

struct rdma_trial {
    int error;        /* 0: all rounds were made; else why they ended: an errno, negative */
    const char *what; /* was being done then */
    uint32_t rounds;  /* that were judged: something was written in them */
    uint64_t writes;  /* that arrived whole, of all rounds */
    uint32_t moved_after_return; /* rounds in which bytes moved after the call: no harm */
    uint32_t moved_after_marker; /* must be 0 */
    uint64_t bytes_after_marker;
    uint32_t out_of_order;  /* rounds whose receives weren't flushed in order: must be 0 */
    uint32_t no_marker;     /* rounds in which it did not come within a second */
    int64_t connect_ns_p50; /* both ends made and connected */
    int64_t connect_ns_max;
    int64_t marker_ns_p50; /* from the call until the marker was seen */
    int64_t marker_ns_max;
    /* How many completions had that status: of who writes, of who is silenced. */
    uint32_t sends[RDMA_STATUS_MAX], receives[RDMA_STATUS_MAX];
};

/* Takes `rounds` times some milliseconds. How it ended is in ret_trial->error. */
void rdma_trial_fence(struct rdma_device *device, const struct rdma_trial_config *config,
                      struct rdma_trial *ret_trial);
