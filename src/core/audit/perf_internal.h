/* perf_internal.h: what perf.c and perf_result.c share. */
#pragma once
#include "core/audit/perf.h"

static inline struct perf_result *perf_result_at(const struct perf *p, uint32_t step, uint32_t host)
{
    return &p->results[(size_t)step * p->count + host];
}

static inline struct perf_nic *perf_nic_at(const struct perf *p, uint32_t host, uint32_t nic)
{
    return &p->nic[(size_t)host * HOST_NIC_MAX + nic];
}

/* Of the present plan. */
void perf_find_gone(struct perf *p);
void perf_take_pairs(struct perf *p);
void perf_take_rings(struct perf *p);
void perf_take_search(struct perf *p);
