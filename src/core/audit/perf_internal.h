/* perf_internal.h: declarations that the files perf*.c share. */
#pragma once
#include "core/audit/perf.h"

enum {
    PERF_SCRATCH = 4 /* values for each host: single tests of a NIC, and as many for sorting */
};

static inline struct perf_result *perf_result_at(const struct perf *p, uint32_t step, uint32_t host)
{
    return &p->results[(size_t)step * p->count + host];
}

static inline struct perf_nic *perf_nic_at(const struct perf *p, uint32_t host, uint32_t nic)
{
    return &p->nic[(size_t)host * HOST_NIC_MAX + nic];
}

static inline struct perf_part *perf_part_at(const struct perf *p, uint32_t step, uint32_t host)
{
    return &p->parts[(size_t)step * p->count + host];
}

/* Adding to a plan's steps. */
uint32_t perf_add_step(struct perf *p, const struct perf_step *step);
uint32_t perf_add_pair_step(struct perf *p, enum perf_kind kind, uint32_t nic);
void perf_put(struct perf *p, uint32_t step, uint32_t host, uint32_t group, uint32_t rank);
void perf_take_back(struct perf *p, uint32_t step, uint32_t host); /* removes the host's part */
void perf_end_step(struct perf *p, uint32_t step);
/* The first tests of the NICs at one place of their hosts. */
void perf_add_pairs(struct perf *p, uint32_t nic, bool ways_too);
/* Puts the hosts that have the NIC and are not gone into p->order, leaf by leaf, and by name within a leaf. Returns the
 * number. */
uint32_t perf_order_by_leaf(struct perf *p, uint32_t nic);

/* perf_again.c: after the pairs, the NICs that must be tested again. A NIC that looks bad is nobody's partner. */
bool perf_looks_bad(const struct perf *p, uint32_t host, uint32_t nic);
void perf_look_at_pairs(struct perf *p);
void perf_look_at_repeated(struct perf *p);
bool perf_plan_again(struct perf *p); /* false: nothing must be tested again */
void perf_take_retests(struct perf *p);
void perf_judge_retests(struct perf *p);

/* perf_memory.c: a step of all hosts; then a step of those that look slow. */
void perf_add_memory(struct perf *p);
void perf_add_memory_again(struct perf *p);
void perf_take_memory(struct perf *p);

/* perf_incast.c: a step for this NIC; its receivers' results. */
void perf_add_incast(struct perf *p, uint32_t nic);
void perf_take_incasts(struct perf *p);

/* perf_fabric.c: tests of the hosts in p->ring. False: there is nothing to test. */
bool perf_plan_fabric(struct perf *p);
void perf_take_fabric(struct perf *p);
void perf_expect_fabric(struct perf *p); /* for hosts in a ring */

/* The result of a group. It is done only if all of its members are. Its rate is the median of their reports, the better one of
 * two: a group that is slow is slow for all. */
struct perf_group {
    uint8_t outcome;
    double rate;
    double busy;           /* most members reported as much or more (perf_result.busy) */
    uint32_t count, wrong; /* members; members with wrong values */
};
struct perf_group perf_group_of(struct perf *p, uint32_t step, uint32_t group);

/* Functions for the present plan. */
/* If the test was done, notes that the two met, and whether values were wrong. False: it was not done. */
bool perf_note_pair(struct perf *p, uint32_t step, uint32_t a, uint32_t b);
void perf_find_gone(struct perf *p);
void perf_take_pairs(struct perf *p);
void perf_take_rings(struct perf *p);
void perf_take_search(struct perf *p);
