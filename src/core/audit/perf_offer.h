/* perf_offer.h: a plan of tests as a host gets it, and why the host refuses it, whoever asks. A plan is numbers alone: which of
 * its own NICs this host uses in which step, of how many ranks it is which one, and at whose address they meet. Sans-I/O. */
#pragma once
#include <stddef.h>

#include "base/limits.h"
#include "core/audit/plan.h"

enum { PERF_SECRET_SIZE = 16 };

/* This host's part in a step. */
struct perf_task {
    uint32_t rank, ranks; /* ranks: 0: it has none */
    uint32_t leader;      /* number of the NIC at whose address rank 0 listens */
    uint32_t port, lanes;
    uint32_t ways;      /* 0: none; else 1 and their turn */
    uint32_t incast;    /* 0: none; else 1 and its DSCP */
    bool alltoall;      /* the collective is one */
    bool memory;        /* of this host's memory: it has one rank, no leader and no NIC */
    uint32_t nic_count; /* as it came: it may be more than there is room for */
    uint32_t nics[HOST_NIC_MAX];
};
struct perf_offer {
    uint64_t fleet_version;
    int64_t begin_ns;
    uint32_t step_ms, timed_ms;    /* each step has so long; of it, what is timed */
    size_t secret_size, count;     /* count: of steps, as it came */
    const struct perf_task *tasks; /* the first AUDIT_STEPS_MAX at most */
};

/* In words; NULL: it is one that this host can carry out. */
const char *perf_offer_wrong(const struct perf_offer *o, const struct plan_host *h);
/* Of one that is not wrong: how long its tests run here at most. */
uint64_t perf_offer_ms(const struct perf_offer *o);
