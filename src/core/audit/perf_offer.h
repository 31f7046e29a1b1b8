/* perf_offer.h: a plan of tests as a host receives it, and the reasons for which the host refuses it, whoever asks. A plan has
 * only numbers: which of its own NICs this host uses in which step, its rank, the number of ranks, and the address at which they
 * meet. Sans-I/O. */
#pragma once
#include <stddef.h>

#include "base/limits.h"
#include "core/audit/plan.h"

enum { PERF_SECRET_SIZE = 16 };

/* This host's part in a step. */
struct perf_task {
    uint32_t rank, ranks; /* ranks: 0: it has no part */
    uint32_t leader;      /* number of the NIC at whose address rank 0 listens */
    uint32_t port, lanes;
    uint32_t ways;      /* 0: none; else 1 + the turn */
    uint32_t incast;    /* 0: none; else 1 + the DSCP */
    bool alltoall;      /* the collective is an all-to-all */
    bool memory;        /* a test of this host's memory: it has one rank, no leader and no NIC */
    uint32_t nic_count; /* as received: it may exceed the room */
    uint32_t nics[HOST_NIC_MAX];
};
struct perf_offer {
    uint64_t fleet_version;
    int64_t begin_ns;
    uint32_t step_ms, timed_ms;    /* the time of each step, and the part of it that is timed */
    size_t secret_size, count;     /* count: the number of steps, as received */
    const struct perf_task *tasks; /* at most the first AUDIT_STEPS_MAX */
};

/* The reason, in words; NULL: this host can carry it out. */
const char *perf_offer_wrong(const struct perf_offer *o, const struct plan_host *h);
/* For a plan without a fault: how long its tests run here at most. */
uint64_t perf_offer_ms(const struct perf_offer *o);
