/* credit.h: a receiver that many send to at once asks for just so much that its link stays full.
 *
 * Each active sender may have W = max(2 chunks, 2 C RTT / N) on its way, C the link's rate as
 * received, N the senders that have something for us. One per receiving NIC, shared by its sets;
 * told through ledger_comm_window and STATE's `granted`. No limit while N <= 1 or delays are at
 * their floor. Plain struct. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/time.h"

#define CREDIT_UNLIMITED UINT64_MAX

struct credit {
    double
        rate_max; /* bytes per ns: the link's, or the most received over 10 ms in the last 10 s */
    bool rate_known; /* the link's speed was told */
    uint64_t bytes;  /* of the present 10 ms */
    struct mono bin_at;
    double bins[2]; /* most of two buckets of 5 s */
    struct mono bucket_at;
    int64_t rtt_floor_ns;
    uint32_t active;
    bool on;               /* limits hold */
    struct mono queued_at; /* last time that delays were above the floor */
};

void credit_init(struct credit *c, struct mono now, double link_bytes_per_ns); /* 0: not known */
void credit_on_received(struct credit *c, struct mono now, uint32_t bytes);
/* active: senders (comms) with unfinished messages posted here; rtt: least of their floors; queued:
 * the detectors see c > theta (incast) on any. */
void credit_on_senders(struct credit *c, struct mono now, uint32_t active, struct span rtt,
                       bool queued);
/* W for each comm, in bytes, chunk: the usual chunk size. CREDIT_UNLIMITED: no limit. */
uint64_t credit_window(const struct credit *c, uint32_t chunk);
