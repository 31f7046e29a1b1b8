/* perf_internal.h: what perf.c, perf_again.c and perf_result.c share. */
#pragma once
#include "core/audit/perf.h"

enum { PERF_SCRATCH = 4 /* values of a host: single tests of a NIC, and as many to sort */ };

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

/* Steps of a plan. */
uint32_t perf_add_step(struct perf *p, const struct perf_step *step);
uint32_t perf_add_pair_step(struct perf *p, enum perf_kind kind, uint32_t nic);
void perf_put(struct perf *p, uint32_t step, uint32_t host, uint32_t group, uint32_t rank);
void perf_take_back(struct perf *p, uint32_t step, uint32_t host); /* what was put */
void perf_end_step(struct perf *p, uint32_t step);
/* The first tests of the NICs of one place at their hosts. */
void perf_add_pairs(struct perf *p, uint32_t nic, bool ways_too);
/* Hosts that have the NIC and are not gone into p->order, leaf by leaf, those of one leaf in the order of names. Returns
 * how many. */
uint32_t perf_order_by_leaf(struct perf *p, uint32_t nic);

/* perf_again.c: after the pairs, who is to be tested again. Nothing comes of a NIC that looks bad: it is nobody's partner. */
bool perf_looks_bad(const struct perf *p, uint32_t host, uint32_t nic);
void perf_look_at_pairs(struct perf *p);
void perf_look_at_repeated(struct perf *p);
bool perf_plan_again(struct perf *p); /* false: there is nothing to be tested again */
void perf_take_retests(struct perf *p);
void perf_judge_retests(struct perf *p);

/* perf_memory.c: a step of all hosts; then one of those that look slow. */
void perf_add_memory(struct perf *p);
void perf_add_memory_again(struct perf *p);
void perf_take_memory(struct perf *p);

/* perf_incast.c: one step of this NIC; what its receivers tell. */
void perf_add_incast(struct perf *p, uint32_t nic);
void perf_take_incasts(struct perf *p);

/* perf_fabric.c: of the hosts in p->ring. False: there is nothing to be tested. */
bool perf_plan_fabric(struct perf *p);
void perf_take_fabric(struct perf *p);
void perf_expect_fabric(struct perf *p); /* of hosts in a ring */

/* Of a group: done only if all of its members are. Its rate is the one in the middle of what they tell, of two the better: a
 * group that is slow is so for all. */
struct perf_group {
    uint8_t outcome;
    double rate;
    double busy;           /* most of them told as much or more (perf_result.busy) */
    uint32_t count, wrong; /* members; with wrong values */
};
struct perf_group perf_group_of(struct perf *p, uint32_t step, uint32_t group);

/* Of the present plan. */
/* Who met whom, and whether values were wrong; the test is done, or nothing is noted. False: it is not. */
bool perf_note_pair(struct perf *p, uint32_t step, uint32_t a, uint32_t b);
void perf_find_gone(struct perf *p);
void perf_take_pairs(struct perf *p);
void perf_take_rings(struct perf *p);
void perf_take_search(struct perf *p);
