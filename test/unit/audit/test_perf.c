/* test_perf.c: tests of bandwidth and of collectives in worlds of drawn hosts: who is slow is named, nobody else is, each step's
 * groups have no host in common, and who is busy ends no test of others. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/audit/perf.h"

enum { HOSTS_MAX = 70 };
#define NIC_RATE 50e6

struct world {
    uint32_t count, nics;
    double share[HOSTS_MAX][4];     /* of the NIC's rate */
    uint8_t outcome[HOSTS_MAX + 1]; /* of all of a host's tests; 0: done */
    uint32_t pair[2];               /* slow only together; equal: none */
    struct prng prng;
    double noise;
    uint32_t steps;
};

static double noisy(struct world *w, double rate)
{
    return rate * (1 - w->noise * prng_uniform(&w->prng));
}

/* A ring is as fast as its slowest member. */
static double group_rate(struct world *w, const struct perf *p, uint32_t step, uint32_t group)
{
    const struct perf_step *s = &p->steps[step];
    double least = 1e18;
    bool has[2] = {false, false};
    for (uint32_t i = 0; i < w->count; i++) {
        if (p->parts[(size_t)step * p->count + i].group != group) {
            continue;
        }
        double slowest = 1;
        for (uint32_t n = 0; n < w->nics; n++) {
            const bool used = s->nic == PERF_NOBODY || s->nic == n;
            slowest = used && w->share[i][n] < slowest ? w->share[i][n] : slowest;
        }
        const double rate = NIC_RATE * slowest * (s->nic == PERF_NOBODY ? w->nics : 1);
        least = rate < least ? rate : least;
        has[0] = has[0] || i == w->pair[0];
        has[1] = has[1] || i == w->pair[1];
    }
    return noisy(w, least) * (w->pair[0] != w->pair[1] && has[0] && has[1] ? 0.5 : 1);
}

static bool spoiled(const struct world *w, const struct perf *p, uint32_t step, uint32_t group)
{
    for (uint32_t i = 0; i < w->count; i++) {
        if (p->parts[(size_t)step * p->count + i].group == group && w->outcome[i] != 0) {
            return true;
        }
    }
    return false;
}

static void play_step(struct world *w, struct perf *p, uint32_t step)
{
    double rates[HOSTS_MAX];
    w->steps++;
    for (uint32_t i = 0; i < w->count; i++) {
        const struct perf_part *part = &p->parts[(size_t)step * p->count + i];
        const struct perf_role role = perf_role_of(p, step, i);
        if (part->group == PERF_NOBODY) {
            assert_int_equal(role.ranks, 0);
            continue;
        }
        assert_true(part->group < w->count);
        assert_true(role.ranks >= 2 || p->steps[step].kind == PERF_SEARCH);
        assert_true(role.rank < role.ranks);
        assert_int_equal(p->parts[(size_t)step * p->count + role.leader].group, part->group);
        if (role.rank == 0) {
            assert_int_equal(role.leader, i);
            rates[part->group] = group_rate(w, p, step, part->group);
        }
    }
    for (uint32_t i = 0; i < w->count; i++) {
        const struct perf_part *part = &p->parts[(size_t)step * p->count + i];
        if (part->group == PERF_NOBODY) {
            continue;
        }
        struct perf_result r = {.outcome = w->outcome[i] != 0                 ? w->outcome[i]
                                           : spoiled(w, p, step, part->group) ? PERF_FAILED
                                                                              : PERF_DONE,
                                .rate = rates[part->group]};
        perf_take(p, step, i, &r);
    }
}

struct played {
    struct perf p;
    struct perf_host hosts[HOSTS_MAX];
    void *memory;
};

static void play(struct world *w, struct played *x)
{
    for (uint32_t i = 0; i < w->count; i++) {
        x->hosts[i] = (struct perf_host){.nics = w->nics, .there = true};
        for (uint32_t n = 0; n < w->nics; n++) {
            x->hosts[i].leaf[n] = (uint16_t)(i * 4 / w->count);
        }
    }
    x->memory = malloc(perf_size(w->count));
    assert_non_null(x->memory);
    assert_int_equal(perf_init(&x->p, x->hosts, w->count, true, x->memory), 0);
    do {
        assert_true(x->p.step_count > 0 && x->p.step_count <= PERF_STEPS_MAX);
        for (uint32_t step = 0; step < x->p.step_count; step++) {
            play_step(w, &x->p, step);
        }
    } while (perf_next(&x->p));
}

static struct world world_of(uint32_t count, uint32_t nics, uint64_t seed)
{
    struct world w = {.count = count, .nics = nics, .noise = 0.1};
    prng_init(&w.prng, seed);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t n = 0; n < nics; n++) {
            w.share[i][n] = 1;
        }
    }
    return w;
}

static bool is_named(const struct perf *p, uint32_t host)
{
    for (uint32_t k = 0; k < p->search.named_count; k++) {
        if (p->ring[1][p->search.named[k].member] == host ||
            (p->search.named[k].with != SEARCH_NONE &&
             p->ring[1][p->search.named[k].with] == host)) {
            return true;
        }
    }
    return false;
}

static void nothing_is_slow(void **state)
{
    for (uint32_t count = 2; count <= 64; count += 7) {
        struct world w = world_of(count, 1 + count % 4, count);
        struct played x;
        play(&w, &x);
        assert_false(x.p.slow);
        assert_int_equal(x.p.search.named_count, 0);
        assert_int_equal(x.p.plans, 3);
        assert_true(x.p.best > 0);
        free(x.memory);
    }
}

static void the_slow_host_alone_is_named(void **state)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct world w = world_of(4 + (uint32_t)(seed % 61), 1 + (uint32_t)(seed % 4), seed);
        const uint32_t bad = (uint32_t)(prng_u64(&w.prng) % w.count);
        struct played x;
        w.share[bad][prng_u64(&w.prng) % w.nics] = 0.6;
        play(&w, &x);
        assert_true(x.p.slow && x.p.searched);
        assert_int_equal(x.p.search.named_count, 1);
        assert_true(is_named(&x.p, bad));
        assert_true(x.p.named_rate[bad] > 0);
        free(x.memory);
    }
}

/* Its NIC is the one that pairs show, too, and its partners are judged by their others. */
static void a_slow_nic_is_judged_by_two_partners(void **state)
{
    struct world w = world_of(16, 2, 7);
    struct played x;
    w.share[5][1] = 0.5;
    play(&w, &x);
    for (uint32_t i = 0; i < 16; i++) {
        for (uint32_t n = 0; n < 2; n++) {
            const double rate = x.p.pair[i * HOST_NIC_MAX + n];
            assert_int_equal(x.p.tried[i * HOST_NIC_MAX + n], 2);
            assert_true(i == 5 && n == 1 ? rate < 0.6 * NIC_RATE : rate > 0.85 * NIC_RATE);
        }
    }
    free(x.memory);
}

static void two_slow_hosts_and_a_pair(void **state)
{
    struct world w = world_of(32, 2, 9);
    struct played x;
    w.share[3][0] = w.share[30][1] = 0.5;
    play(&w, &x);
    assert_int_equal(x.p.search.named_count, 2);
    assert_true(is_named(&x.p, 3) && is_named(&x.p, 30));
    free(x.memory);
    w = world_of(32, 2, 10);
    w.pair[0] = 2;
    w.pair[1] = 21;
    play(&w, &x);
    assert_int_equal(x.p.search.named_count, 1);
    assert_true(is_named(&x.p, 2) && is_named(&x.p, 21));
    free(x.memory);
}

/* Whoever has a job, refuses, or is silent is in no ring, and the ring runs without it. */
static void who_takes_no_part_ends_no_other_test(void **state)
{
    static const uint8_t outcomes[] = {PERF_BUSY, PERF_PREEMPTED, PERF_REFUSED};
    for (size_t k = 0; k < sizeof(outcomes); k++) {
        struct world w = world_of(12, 2, 11 + k);
        struct played x;
        w.outcome[4] = outcomes[k];
        play(&w, &x);
        assert_int_equal(x.p.ring_count, 11);
        assert_true(x.p.best > 0);
        assert_false(x.p.slow);
        assert_int_equal(x.p.rows[4].outcome, PERF_NOT_RUN);
        free(x.memory);
    }
}

static void fewer_than_two_are_refused(void **state)
{
    struct perf_host hosts[3] = {{.nics = 1, .there = true}, {.nics = 1}, {.there = true}};
    void *memory = malloc(perf_size(3));
    struct perf p;
    assert_int_equal(perf_init(&p, hosts, 3, true, memory), -ENODATA);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_slow),
        cmocka_unit_test(the_slow_host_alone_is_named),
        cmocka_unit_test(a_slow_nic_is_judged_by_two_partners),
        cmocka_unit_test(two_slow_hosts_and_a_pair),
        cmocka_unit_test(who_takes_no_part_ends_no_other_test),
        cmocka_unit_test(fewer_than_two_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
