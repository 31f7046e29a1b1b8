/* test_perf_busy.c: if processors are the limit, no host is named for a test's rate. A host that alone lacks a processor is
 * named, and so is a slow host beside hosts that have theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/audit/perf.h"

enum { HOSTS_MAX = 40, NOBODY = HOSTS_MAX, NICS = 2, SEEDS = 300 };
#define NIC_RATE 50e6
#define IDLE     0.04 /* reported by a host that waits for the network */

struct world {
    uint32_t count;
    uint32_t slow;    /* its tests of many carry less, and it waits for the network */
    uint32_t starved; /* the same, and it lacks a processor */
    uint8_t
        limited_from; /* enum perf_kind: in tests of this kind, and of those after it, all lack processors */
    bool mute; /* older agents: they don't report processors */
    bool one;  /* of two hosts only one lacks processors, and the other waits for it */
    uint32_t searches;
    struct prng prng;
    struct perf p;
    struct perf_host hosts[HOSTS_MAX];
};

static bool is_in(const struct world *w, uint32_t step, uint32_t group, uint32_t host)
{
    return host < w->count && perf_part_of(&w->p, step, host)->group == group;
}

/* Without a processor a group carries half to four fifths. Its hosts waited for others in nearly all of the remaining time. */
static void play_group(struct world *w, uint32_t step, uint32_t group)
{
    const struct perf_step *s = &w->p.steps[step];
    const bool limited = s->kind >= w->limited_from, many = s->kind >= PERF_RING;
    const double share = 0.5 + 0.3 * prng_uniform(&w->prng);
    const uint32_t waiting = (uint32_t)prng_below(&w->prng, 2);
    double rate = NIC_RATE * s->nics;
    if (limited) {
        rate *= share;
    } else if (many && (is_in(w, step, group, w->slow) || is_in(w, step, group, w->starved))) {
        rate *= 0.6;
    }
    for (uint32_t i = 0; i < w->count; i++) {
        if (!is_in(w, step, group, i)) {
            continue;
        }
        const bool waits = w->one && perf_part_of(&w->p, step, i)->ranks == 2 &&
                           perf_part_of(&w->p, step, i)->rank == waiting;
        const struct perf_result r = {.outcome = PERF_DONE,
                                      .rate = rate,
                                      .busy = w->mute || waits          ? 0
                                              : limited                 ? 1 - 0.95 * share
                                              : many && i == w->starved ? 0.7
                                                                        : IDLE};
        perf_take(&w->p, step, i, &r);
    }
}

static void play(struct world *w, uint64_t seed)
{
    prng_init(&w->prng, seed);
    for (uint32_t i = 0; i < w->count; i++) {
        w->hosts[i] = (struct perf_host){.nics = NICS, .there = true};
        for (uint32_t n = 0; n < NICS; n++) {
            w->hosts[i].leaf[n] = (uint16_t)(i * 2 / w->count);
        }
    }
    void *memory = malloc(perf_size(w->count));
    const struct perf_config config = {
        .hosts = w->hosts, .count = w->count, .wants_rings = true, .no_ways = true};
    assert_int_equal(perf_init(&w->p, &config, memory), 0);
    do {
        for (uint32_t step = 0; step < w->p.step_count; step++) {
            w->searches += w->p.steps[step].kind == PERF_SEARCH;
            for (uint32_t group = 0; group < w->count; group++) {
                play_group(w, step, group);
            }
        }
    } while (perf_next(&w->p));
    for (uint32_t k = 0; k < w->p.search.named_count; k++) { /* the ring's memory goes */
        struct search_named *n = &w->p.search.named[k];
        n->member = w->p.ring[1][n->member];
        n->with = n->with != SEARCH_NONE ? w->p.ring[1][n->with] : SEARCH_NONE;
    }
    free(memory);
}

static struct world world_of(uint64_t seed)
{
    return (struct world){.count = 4 + (uint32_t)(seed % (HOSTS_MAX - 4)),
                          .slow = NOBODY,
                          .starved = NOBODY,
                          .limited_from = UINT8_MAX};
}

static bool is_alone(const struct world *w, uint32_t host)
{
    return w->p.search.named_count == 1 && w->p.search.named[0].member == host &&
           w->p.search.named[0].with == SEARCH_NONE;
}

/* In all collectives. If hosts don't report processors, some hosts are named. */
static void all_that_lack_processors_name_nobody(void **state)
{
    uint32_t named_by_mute = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        for (int mute = 0; mute < 2; mute++) {
            struct world w = world_of(seed);
            w.limited_from = PERF_RING;
            w.mute = mute == 1;
            play(&w, seed);
            if (w.mute) {
                named_by_mute += w.p.search.named_count;
                continue;
            }
            assert_int_equal(w.p.search.named_count, 0);
            assert_int_equal(w.searches, 0);
            assert_true(!w.p.slow || w.p.excused > 0);
        }
    }
    assert_true(named_by_mute > 100);
}

/* The ring is slow by one host. Then all lack processors: only that host is named. */
static void processors_that_lack_in_the_search_name_nobody(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world w = world_of(seed);
        w.slow = (uint32_t)(seed % w.count);
        w.limited_from = PERF_SEARCH;
        play(&w, seed);
        assert_true(w.p.slow && w.searches > 0);
        for (uint32_t k = 0; k < w.p.search.named_count; k++) {
            assert_int_equal(w.p.search.named[k].member, w.slow);
        }
        assert_true(w.p.search.named_count > 0 || w.p.excused > 0);
    }
}

/* Of each pair one host lacks a processor, and its partner is known to have waited for it. Good hosts beside them are as slow. */
static void hosts_that_lack_processors_in_turns_are_not_named(void **state)
{
    uint32_t wrong = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world w = world_of(seed);
        w.slow = (uint32_t)(seed % w.count);
        w.limited_from = PERF_SEARCH;
        w.one = true;
        play(&w, seed);
        for (uint32_t k = 0; k < w.p.search.named_count; k++) {
            wrong += w.p.search.named[k].member != w.slow;
        }
    }
    assert_int_equal(wrong, 0);
}

static void one_that_is_slow_is_named(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world w = world_of(seed);
        w.slow = (uint32_t)(seed % w.count);
        play(&w, seed);
        assert_true(is_alone(&w, w.slow));
        assert_int_equal(w.p.excused, 0);
    }
}

/* A host that alone lacks a processor is at fault itself. */
static void one_that_lacks_a_processor_is_named(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world w = world_of(seed);
        w.starved = (uint32_t)(seed % w.count);
        play(&w, seed);
        if (w.count < 6) { /* no pair of good hosts is left to run beside it */
            assert_int_equal(w.p.search.named_count, 0);
            assert_true(w.p.excused > 0);
        } else {
            assert_true(is_alone(&w, w.starved));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_lack_processors_name_nobody),
        cmocka_unit_test(processors_that_lack_in_the_search_name_nobody),
        cmocka_unit_test(hosts_that_lack_processors_in_turns_are_not_named),
        cmocka_unit_test(one_that_is_slow_is_named),
        cmocka_unit_test(one_that_lacks_a_processor_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
