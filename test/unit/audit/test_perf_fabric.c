/* test_perf_fabric.c: what hosts carry over the whole fabric at once. In each permutation each host has one partner, each time
 * another. Groups of an all-to-all have hosts of all leaves. Neither a slow host nor a liar lowers another host's figure. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/audit/perf.h"

enum { HOSTS_MAX = 100, NOBODY = HOSTS_MAX, LEAVES = 4 };
#define NIC_RATE 50e6

struct world {
    uint32_t count, nics, slow, liar, old; /* old: its agent has no all-to-all */
    double slow_share, liar_tells;
    double
        together; /* share of the NICs' separate rates that all NICs of a host carry at once; 0: all */
    bool wants_rings, no_permutations, no_alltoall;
    uint8_t outcome; /* of host 0's all-to-all; 0: done */
    struct perf p;
    struct perf_host hosts[HOSTS_MAX];
    void *memory;
    uint32_t permutations, alltoalls;
    uint32_t met[HOSTS_MAX][HOSTS_MAX];
    uint32_t groups; /* of the all-to-all */
};

static void look_at_permutation(struct world *w, uint32_t step)
{
    uint32_t out = 0;
    w->permutations++;
    for (uint32_t i = 0; i < w->count; i++) {
        const struct perf_part *part = perf_part_of(&w->p, step, i);
        out += part->ranks == 0;
        assert_true(part->ranks == 0 || part->ranks == 2);
        if (part->ranks == 2 && part->rank == 1) {
            w->met[i][part->leader]++;
            w->met[part->leader][i]++;
            assert_int_equal(w->met[i][part->leader], 1);
        }
    }
    assert_int_equal(out, w->count % 2);
}

static void look_at_alltoall(struct world *w, uint32_t step)
{
    uint32_t members[HOSTS_MAX] = {0}, leaves[HOSTS_MAX] = {0};
    w->alltoalls++;
    w->groups = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        const struct perf_part *part = perf_part_of(&w->p, step, i);
        assert_int_equal(part->ranks == 0, i == w->old);
        if (part->ranks > 0) {
            members[part->group]++;
            leaves[part->group] |= 1u << w->hosts[i].leaf[0];
            w->groups = part->group + 1 > w->groups ? part->group + 1 : w->groups;
        }
    }
    for (uint32_t g = 0; g < w->groups; g++) {
        assert_true(members[g] >= 2 && members[g] <= PERF_ALLTOALL_MOST);
        assert_true(w->groups == 1 || leaves[g] == (1u << LEAVES) - 1);
    }
}

static double rate_of(const struct world *w, uint32_t step, uint32_t host)
{
    const struct perf_part *part = perf_part_of(&w->p, step, host);
    const bool slow = w->slow != NOBODY && perf_part_of(&w->p, step, w->slow)->group == part->group;
    const double share = w->p.steps[step].nics > 1 && w->together > 0 ? w->together : 1;
    return NIC_RATE * w->p.steps[step].nics * (slow ? w->slow_share : 1) * share;
}

static void play(struct world *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        w->hosts[i] = (struct perf_host){.nics = w->nics, .there = true, .alltoall = i != w->old};
        for (uint32_t n = 0; n < w->nics; n++) {
            w->hosts[i].leaf[n] = (uint16_t)(i * LEAVES / w->count);
        }
    }
    w->memory = malloc(perf_size(w->count));
    const struct perf_config config = {.hosts = w->hosts,
                                       .count = w->count,
                                       .wants_rings = w->wants_rings,
                                       .no_permutations = w->no_permutations,
                                       .no_alltoall = w->no_alltoall,
                                       .seed = w->count};
    assert_int_equal(perf_init(&w->p, &config, w->memory), 0);
    do {
        for (uint32_t step = 0; step < w->p.step_count; step++) {
            const uint8_t kind = w->p.steps[step].kind;
            if (kind == PERF_PERMUTATION) {
                look_at_permutation(w, step);
            } else if (kind == PERF_ALLTOALL) {
                look_at_alltoall(w, step);
            }
            for (uint32_t i = 0; i < w->count; i++) {
                const bool fails = kind == PERF_ALLTOALL && i == 0 && w->outcome != 0;
                const struct perf_result r = {.outcome = fails ? w->outcome : PERF_DONE,
                                              .rate = i == w->liar ? w->liar_tells
                                                                   : rate_of(w, step, i)};
                perf_take(&w->p, step, i, &r);
            }
        }
    } while (perf_next(&w->p));
}

static struct world *world_of(uint32_t count, uint32_t nics)
{
    static struct world w;
    w = (struct world){.count = count,
                       .nics = nics,
                       .slow = NOBODY,
                       .liar = NOBODY,
                       .old = NOBODY,
                       .wants_rings = true};
    return &w;
}

static void each_time_all_have_another_partner(void **state)
{
    for (uint32_t count = 2; count <= HOSTS_MAX; count++) {
        struct world *w = world_of(count, 1 + count % 4);
        play(w);
        const uint32_t most = count % 2 == 0 ? count - 1 : count, wanted = 3 + count % 2;
        assert_int_equal(w->permutations, wanted < most ? wanted : most);
        assert_int_equal(w->alltoalls, 1);
        assert_int_equal(w->groups, (count + PERF_ALLTOALL_MOST - 1) / PERF_ALLTOALL_MOST);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(w->p.fabric[i].count >= (count < 4 ? 1 : 3));
            assert_true(fabs(perf_permuted(&w->p, i) - NIC_RATE) < 1);
            assert_true(fabs(w->p.fabric[i].alltoall.rate - NIC_RATE * w->nics) < 1);
            assert_true(w->p.fabric[i].ranks <= PERF_ALLTOALL_MOST);
        }
        free(w->memory);
    }
}

/* For others it is only one partner of three. */
static void a_slow_host_slows_itself_alone(void **state)
{
    for (uint32_t count = 4; count <= 40; count++) {
        struct world *w = world_of(count, 2);
        w->slow = count / 3;
        w->slow_share = 0.6;
        play(w);
        for (uint32_t i = 0; i < count; i++) {
            const double rate = perf_permuted(&w->p, i) / NIC_RATE;
            assert_true(i == w->slow ? rate < 0.61 : rate > 0.99);
        }
        free(w->memory);
    }
}

static void a_liar_slows_nobody(void **state)
{
    static const double tells[] = {0, 1e3, 1e18};
    for (uint32_t count = 6; count <= 40; count++) {
        for (size_t k = 0; k < sizeof(tells) / sizeof(tells[0]); k++) {
            struct world *w = world_of(count, 1);
            w->liar = count / 2;
            w->liar_tells = tells[k];
            play(w);
            for (uint32_t i = 0; i < count; i++) {
                const double rate = perf_permuted(&w->p, i) / NIC_RATE;
                assert_true(i == w->liar || (rate > 0.99 && rate < 1.01));
                assert_true(i == w->liar || fabs(w->p.fabric[i].alltoall.rate - NIC_RATE) < 1);
            }
            free(w->memory);
        }
    }
}

/* A processor can carry one NIC at a time, but not all at once: no host makes the others slow. A host that does is named. */
static void a_limit_of_all_is_no_hosts_fault(void **state)
{
    for (uint32_t count = 4; count <= 40; count++) {
        for (int slow = 0; slow < 2; slow++) {
            struct world *w = world_of(count, 2);
            w->together = 0.6;
            w->slow = slow == 1 ? count / 3 : NOBODY;
            w->slow_share = 0.6;
            play(w);
            assert_int_equal(w->p.slow, slow);
            assert_int_equal(w->p.search.named_count, slow);
            assert_true(slow == 0 || w->p.ring[1][w->p.search.named[0].member] == w->slow);
            free(w->memory);
        }
    }
}

static void a_switched_off_check_is_not_tested(void **state)
{
    for (uint32_t off = 0; off < 8; off++) {
        struct world *w = world_of(8, 2);
        w->no_permutations = (off & 1) != 0;
        w->no_alltoall = (off & 2) != 0;
        w->wants_rings = (off & 4) == 0;
        play(w);
        assert_int_equal(w->permutations, w->no_permutations ? 0 : 3);
        assert_int_equal(w->alltoalls, w->no_alltoall || !w->wants_rings ? 0 : 1);
        assert_true((w->p.best > 0) == w->wants_rings);
        assert_true((perf_permuted(&w->p, 3) < 0) == w->no_permutations);
        free(w->memory);
    }
}

/* An older agent would take it for an all-reduce. */
static void an_old_agent_is_in_no_alltoall(void **state)
{
    struct world *w = world_of(9, 2);
    w->old = 4;
    play(w);
    assert_int_equal(w->alltoalls, 1);
    assert_int_equal(w->p.fabric[4].ranks, 0);
    assert_int_equal(w->p.fabric[4].alltoall.outcome, PERF_NOT_RUN);
    assert_int_equal(w->p.fabric[5].ranks, 8);
    assert_true(perf_permuted(&w->p, 4) > 0);
    free(w->memory);
}

/* No host of its group has a figure. Later tests run without it if it is gone. */
static void one_that_fails_ends_its_group(void **state)
{
    static const uint8_t outcomes[] = {PERF_FAILED, PERF_BUSY};
    for (size_t k = 0; k < sizeof(outcomes); k++) {
        struct world *w = world_of(40, 1);
        w->outcome = outcomes[k];
        play(w);
        assert_int_equal(w->groups, 2);
        for (uint32_t i = 1; i < w->count; i++) {
            assert_int_equal(w->p.fabric[i].alltoall.outcome, i % 2 == 0 ? PERF_FAILED : PERF_DONE);
        }
        assert_int_equal(w->p.fabric[0].alltoall.outcome, outcomes[k]);
        assert_int_equal(w->p.ring_count, outcomes[k] == PERF_BUSY ? 39 : 40);
        assert_true(w->p.best > 0);
        free(w->memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_time_all_have_another_partner),
        cmocka_unit_test(a_slow_host_slows_itself_alone),
        cmocka_unit_test(a_liar_slows_nobody),
        cmocka_unit_test(a_limit_of_all_is_no_hosts_fault),
        cmocka_unit_test(a_switched_off_check_is_not_tested),
        cmocka_unit_test(an_old_agent_is_in_no_alltoall),
        cmocka_unit_test(one_that_fails_ends_its_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
