/* trial.h: tests a device: a queue pair is connected to another one of the same port, in this process.
 *
 * It tests the fence. Before a buffer is given back to its owner, all writing into it must have ended. Foliot's proof is the
 * flush of the last receive (the marker) of a queue pair in ERR. In this test a thread writes into a buffer without pause. The
 * receiving queue pair is silenced at a random moment. After its marker has come, the buffer is watched: no byte may change. A
 * device that fails this test must not have direct lanes. */
#pragma once
#include "platform/rdma/verbs.h"

struct rdma_trial_config {
    uint32_t port;
    uint8_t gid[16]; /* of this port; both ends use it */
    uint8_t gid_index;
    uint16_t lid;
    bool global;
    uint32_t mtu;
    uint32_t rounds;   /* of the fence */
    uint32_t size;     /* bytes of one write */
    uint32_t watch_ms; /* how long the buffer is watched after the marker */
    uint32_t seed;     /* for the random moments */
};

#define RDMA_STATUS_MAX 32 /* numbers of completions' statuses in the library */

struct rdma_trial {
    int error;        /* 0: all rounds were done; else why they ended: a negative errno */
    const char *what; /* the step in which the error happened */
    uint32_t rounds;  /* that were judged: those with at least one write */
    uint64_t writes;  /* that arrived completely, in all rounds */
    uint32_t moved_after_return; /* rounds in which bytes changed after the call: this is allowed */
    uint32_t moved_after_marker; /* must be 0 */
    uint64_t bytes_after_marker;
    uint32_t out_of_order;  /* rounds whose receives were not flushed in order: must be 0 */
    uint32_t no_marker;     /* rounds without the marker within a second */
    int64_t connect_ns_p50; /* to make and connect both ends */
    int64_t connect_ns_max;
    int64_t marker_ns_p50; /* from the call until the marker was seen */
    int64_t marker_ns_max;
    /* Number of completions with each status: of the writing end, of the silenced end. */
    uint32_t sends[RDMA_STATUS_MAX], receives[RDMA_STATUS_MAX];
};

/* Takes some milliseconds per round. ret_trial->error has the result. */
void rdma_trial_fence(struct rdma_device *device, const struct rdma_trial_config *config,
                      struct rdma_trial *ret_trial);
