/* perf_fabric.c: what all hosts carry at once over the whole fabric, tested between the pairs and the rings. Permutation: each
 * host has one partner a step, drawn from all, another one each time, over all its NICs. All-to-all: each host of a group sends
 * to each other one of it; a group has hosts of all leaves. */
#include <math.h>
#include <stdio.h>

#include "base/prng.h"
#include "core/audit/perf_internal.h"
#include "stats/sample.h"

enum { ALLTOALL_LANES = 1 /* each host has many peers already */ };

/* A tournament of n players, an even number: the player at this place of the round. Player 0 stays, the others rotate. */
static uint32_t player_at(uint32_t n, uint32_t round, uint32_t place)
{
    return place == 0 ? 0 : 1 + (place - 1 + round) % (n - 1);
}

/* Of an odd number of hosts one sits out each time. */
static void add_permutations(struct perf *p)
{
    const uint32_t n = p->ring_count, even = n + n % 2;
    const uint32_t steps =
        PERF_PERMUTATIONS + n % 2 < even - 1 ? PERF_PERMUTATIONS + n % 2 : even - 1;
    uint32_t order[2];
    struct prng prng;
    prng_init(&prng, p->seed);
    for (uint32_t k = 0; k < n; k++) {
        p->drawn[k] = p->ring[1][k];
    }
    for (uint32_t k = n; k > 1; k--) {
        const uint32_t other = (uint32_t)prng_below(&prng, k), is = p->drawn[k - 1];
        p->drawn[k - 1] = p->drawn[other];
        p->drawn[other] = is;
    }
    for (uint32_t k = 0; k < steps; k++) {
        const uint32_t step = perf_add_step(p, &(struct perf_step){.kind = PERF_PERMUTATION,
                                                                   .lanes = PERF_PAIR_LANES,
                                                                   .nic = PERF_NOBODY,
                                                                   .nics = p->ring_nics});
        for (uint32_t pair = 0; pair < even / 2; pair++) {
            order[0] = player_at(even, k, pair);
            order[1] = player_at(even, k, even - 1 - pair);
            for (uint32_t rank = 0; rank < 2 && order[0] < n && order[1] < n; rank++) {
                perf_put(p, step, p->drawn[order[rank]], pair, rank);
            }
        }
        perf_end_step(p, step);
    }
}

static void add_alltoall(struct perf *p)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->ring_count; k++) {
        if (p->hosts[p->ring[1][k]].alltoall) {
            p->drawn[n++] = p->ring[1][k];
        }
    }
    if (n < 2) {
        return;
    }
    const uint32_t groups = (n + PERF_ALLTOALL_MOST - 1) / PERF_ALLTOALL_MOST;
    const uint32_t step = perf_add_step(p, &(struct perf_step){.kind = PERF_ALLTOALL,
                                                               .lanes = ALLTOALL_LANES,
                                                               .nic = PERF_NOBODY,
                                                               .nics = p->ring_nics});
    for (uint32_t k = 0; k < n; k++) { /* they are in the order of leaves */
        perf_put(p, step, p->drawn[k], k % groups, k / groups);
    }
    perf_end_step(p, step);
}

bool perf_plan_fabric(struct perf *p)
{
    p->stage = PERF_FABRIC;
    p->step_count = 0;
    if (p->ring_count >= 2 && !p->no_permutations) {
        add_permutations(p);
    }
    if (p->ring_count >= 2 && p->wants_rings && !p->no_alltoall) {
        add_alltoall(p);
    }
    return p->step_count > 0;
}

/* A share for each NIC, by the higher of both reports: a host that reports too little makes nobody slow. */
static void take_permutation(struct perf *p, uint32_t step, const uint32_t pair[2])
{
    const struct perf_result *of[2] = {perf_result_at(p, step, pair[0]),
                                       perf_result_at(p, step, pair[1])};
    if (of[0]->outcome != PERF_DONE || of[1]->outcome != PERF_DONE) {
        return;
    }
    for (int k = 0; k < 2; k++) {
        struct perf_fabric *f = &p->fabric[pair[k]];
        if (f->count < PERF_PERMUTATIONS + 1) {
            sample_insert(f->rates, f->count++,
                          fmax(of[0]->rate, of[1]->rate) / p->steps[step].nics);
        }
    }
}

/* A failure has the host's own words; a test that was done has the group's rate. */
static void take_alltoall(struct perf *p, uint32_t step, uint32_t host)
{
    const struct perf_part *part = perf_part_at(p, step, host);
    struct perf_fabric *f = &p->fabric[host];
    const struct perf_group all = perf_group_of(p, step, part->group);
    f->alltoall = *perf_result_at(p, step, host);
    f->ranks = part->ranks;
    if (f->alltoall.outcome == PERF_DONE && all.outcome != PERF_DONE) {
        f->alltoall.outcome = PERF_FAILED;
        snprintf(f->alltoall.words, sizeof(f->alltoall.words), "a test beside it: %s",
                 perf_outcome_name((enum perf_outcome)all.outcome));
    } else if (f->alltoall.outcome == PERF_DONE) {
        f->alltoall.rate = all.rate;
    }
}

void perf_take_fabric(struct perf *p)
{
    for (uint32_t step = 0; step < p->step_count; step++) {
        for (uint32_t i = 0; i < p->count; i++) {
            const struct perf_part *part = perf_part_at(p, step, i);
            if (part->ranks == 0) {
                continue;
            }
            if (p->steps[step].kind == PERF_ALLTOALL) {
                take_alltoall(p, step, i);
            } else if (part->rank == 1) {
                take_permutation(p, step, (const uint32_t[2]){part->leader, i});
            }
        }
    }
}

double perf_permuted(const struct perf *p, uint32_t host)
{
    const struct perf_fabric *f = &p->fabric[host];
    return f->count > 0 ? sample_median(f->rates, f->count) : -1;
}

/* Pairs are tested one NIC after the other. If most hosts carry less over all NICs at once with the best of their partners, that
 * is no single host's fault: no ring is called slow because of it. */
void perf_expect_fabric(struct perf *p)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->ring_count; k++) {
        const struct perf_fabric *f = &p->fabric[p->ring[1][k]];
        if (f->count > 0) {
            p->scratch[n++] = f->rates[f->count - 1] * p->ring_nics;
        }
    }
    sample_sort(p->scratch, n);
    if (2 * n > p->ring_count) {
        p->expected = fmin(p->expected, sample_median(p->scratch, n));
    }
}
