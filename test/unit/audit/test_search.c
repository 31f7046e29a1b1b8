/* test_search.c: culprits in sets of members are found by tests of parts, and no other member is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/audit/search.h"

enum { MEMBERS_MAX = 1024 };

struct world {
    uint32_t count, bad[8], bad_count;
    uint32_t pair[2];  /* slow only together; equal: none */
    uint32_t spurious; /* number of a test, from 1, that is slow without a reason */
    uint32_t tested;
    double lost; /* share of tests without a result */
    bool bad_seems_good;
    struct prng prng;
};

/* Each round has every member once at most, and all are members. A member alone can't be tested. */
static enum search_answer ask(struct world *w, const struct search *s, const struct search_test *t,
                              uint8_t *seen)
{
    const struct search_range ranges[] = {t->one, t->other};
    bool slow = ++w->tested == w->spurious, has[2] = {false, false};
    uint32_t members = 0;
    for (int r = 0; r < 2; r++) {
        for (uint32_t i = 0; i < ranges[r].count; i++) {
            const uint32_t member = s->order[ranges[r].first + i];
            assert_true(member < w->count);
            assert_int_equal(seen[member]++, 0);
            members++;
            for (uint32_t k = 0; k < w->bad_count; k++) {
                slow = slow || member == w->bad[k];
            }
            has[0] = has[0] || member == w->pair[0];
            has[1] = has[1] || member == w->pair[1];
        }
    }
    if (t->partner != SEARCH_NONE) {
        assert_int_equal(seen[t->partner]++, 0);
        for (uint32_t k = 0; k < w->bad_count; k++) {
            assert_true(t->partner != w->bad[k] || w->bad_seems_good);
            slow = slow || t->partner == w->bad[k];
        }
        for (uint32_t k = 0; k < s->named_count; k++) {
            assert_int_not_equal(t->partner, s->named[k].member);
        }
        members++;
    }
    assert_true(members > 0);
    slow = slow || (w->pair[0] != w->pair[1] && has[0] && has[1]);
    return members < 2 || (w->lost > 0 && prng_uniform(&w->prng) < w->lost) ? SEARCH_UNKNOWN
           : slow                                                           ? SEARCH_SLOW
                                                                            : SEARCH_FAST;
}

static void play(struct world *w, struct search *s)
{
    struct search_test tests[2 * SEARCH_SETS_MAX];
    uint8_t answers[2 * SEARCH_SETS_MAX];
    uint32_t n;
    while ((n = search_round(s, tests)) > 0) {
        uint8_t seen[MEMBERS_MAX] = {0};
        for (uint32_t i = 0; i < n; i++) {
            answers[i] = (uint8_t)ask(w, s, &tests[i], seen);
        }
        search_results(s, tests, answers);
        assert_true(s->rounds < 64);
    }
}

static void find(struct world *w, struct search *s)
{
    void *memory = malloc(search_size(w->count));
    assert_non_null(memory);
    search_init(s, w->count, memory);
    play(w, s);
    assert_false(s->full);
    for (uint32_t k = 0; k < w->bad_count; k++) {
        bool named = false;
        for (uint32_t i = 0; i < s->named_count; i++) {
            named = named || (s->named[i].member == w->bad[k] && s->named[i].with == SEARCH_NONE);
        }
        assert_true(named);
    }
    free(memory);
}

static void test_one(void **state)
{
    static const uint32_t counts[] = {4, 5, 7, 64, 100, 1000, 1024};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        for (uint32_t k = 0; k < counts[c]; k += counts[c] / 40 + 1) {
            struct world w = {.count = counts[c], .bad = {k}, .bad_count = 1};
            struct search s;
            find(&w, &s);
            assert_int_equal(s.named_count, 1);
            assert_true(s.rounds <= 11);
        }
    }
}

static void test_several(void **state)
{
    struct prng g;
    prng_init(&g, 3);
    for (int i = 0; i < 200; i++) {
        struct world w = {.count = 1024, .bad_count = 3};
        struct search s;
        w.bad[0] = (uint32_t)prng_below(&g, 300);
        w.bad[1] = 300 + (uint32_t)prng_below(&g, 300);
        w.bad[2] = w.bad[1] + 1 + (uint32_t)prng_below(&g, 300);
        find(&w, &s);
        assert_int_equal(s.named_count, 3);
        assert_true(s.rounds <= 12);
    }
}

static void test_pair(void **state)
{
    static const uint32_t counts[] = {4, 5, 9, 100, 1024};
    struct prng g;
    prng_init(&g, 5);
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        for (int i = 0; i < 100; i++) {
            struct world w = {.count = counts[c]};
            struct search s;
            w.pair[0] = (uint32_t)prng_below(&g, w.count - 1);
            w.pair[1] = w.pair[0] + 1 + (uint32_t)prng_below(&g, w.count - 1 - w.pair[0]);
            find(&w, &s);
            assert_int_equal(s.named_count, 1);
            const struct search_named *n = &s.named[0];
            assert_true((n->member == w.pair[0] && n->with == w.pair[1]) ||
                        (n->member == w.pair[1] && n->with == w.pair[0]));
            assert_true(s.rounds <= 25);
        }
    }
}

/* One test was slow for another reason: no member is named for it. */
static void test_not_seen_again(void **state)
{
    for (uint32_t spurious = 1; spurious < 20; spurious++) {
        struct world w = {.count = 256, .bad_count = 0, .spurious = spurious};
        struct search s;
        find(&w, &s);
        assert_int_equal(s.named_count, 0);
        assert_true(s.not_seen_again >= 1);
    }
}

static bool is_bad(const struct world *w, uint32_t member)
{
    bool bad = false;
    for (uint32_t k = 0; k < w->bad_count; k++) {
        bad = bad || member == w->bad[k];
    }
    return bad;
}

/* Tests that did not run are neither fast nor slow: no member is named for them, and the others don't count as well. */
static void test_lost(void **state)
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct world w = {.count = 4 + (uint32_t)(seed % 61), .lost = 0.3};
        struct search s;
        prng_init(&w.prng, seed);
        w.bad_count = 1 + (uint32_t)prng_below(&w.prng, 3);
        for (uint32_t k = 0; k < w.bad_count; k++) {
            w.bad[k] = (uint32_t)prng_below(&w.prng, w.count);
        }
        void *memory = malloc(search_size(w.count));
        assert_non_null(memory);
        search_init(&s, w.count, memory);
        play(&w, &s);
        uint32_t found = 0;
        for (uint32_t i = 0; i < s.named_count; i++) {
            assert_int_equal(s.named[i].with, SEARCH_NONE);
            assert_true(is_bad(&w, s.named[i].member));
            found++;
        }
        assert_true(found + s.unproven > 0);
        free(memory);
    }
}

/* With two, each can be tested only with the other one. With one in each half of a few, no member is known to be good: so none is
 * named, and the others don't count as well. */
static void test_no_partner(void **state)
{
    struct world w = {.count = 4, .bad = {0, 2}, .bad_count = 2};
    struct search s;
    void *memory = malloc(search_size(w.count));
    assert_non_null(memory);
    search_init(&s, 2, memory);
    play(&w, &s);
    assert_int_equal(s.named_count, 0);
    assert_int_equal(s.unproven, 3); /* each alone, and both together */
    search_init(&s, w.count, memory);
    play(&w, &s);
    assert_int_equal(s.named_count, 0);
    assert_true(s.unproven > 0);
    search_init(&s, w.count, memory);
    search_know_good(&s, 1);
    search_know_good(&s, 3);
    play(&w, &s);
    assert_int_equal(s.named_count, 2);
    assert_true(is_bad(&w, s.named[0].member) && is_bad(&w, s.named[1].member));
    free(memory);
}

/* One half is fast and the other one was not tested: two members, one in each half, may be slow together. So no member is proved
 * good, and the search has not proved that no part is slow. */
static void test_untested_half(void **state)
{
    for (uint32_t count = 4; count <= 40; count++) {
        for (uint32_t lost = 0; lost < 2; lost++) {
            struct world w = {.count = count, .pair = {0, count - 1}};
            struct search s;
            struct search_test tests[2 * SEARCH_SETS_MAX];
            uint8_t answers[2 * SEARCH_SETS_MAX];
            void *memory = malloc(search_size(w.count));
            assert_non_null(memory);
            search_init(&s, w.count, memory);
            assert_int_equal(search_round(&s, tests), 2);
            answers[lost] = SEARCH_UNKNOWN;
            answers[1 - lost] = SEARCH_FAST;
            search_results(&s, tests, answers);
            play(&w, &s);
            assert_int_equal(s.named_count, 0);
            assert_true(s.unproven > 0);
            assert_int_not_equal(s.good[w.pair[lost == 0]], 2);
            free(memory);
        }
    }
}

/* Two are slow together, and some tests did not run. Unless both are named, neither counts as good while something is
 * unproven. */
static void test_one_of_a_pair_is_not_good(void **state)
{
    uint32_t named = 0;
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        struct world w = {.count = 4 + (uint32_t)(seed % 30), .lost = seed % 2 == 0 ? 0.4 : 0.1};
        struct search s;
        prng_init(&w.prng, seed);
        w.pair[0] = (uint32_t)prng_below(&w.prng, w.count);
        w.pair[1] = (w.pair[0] + 1 + (uint32_t)prng_below(&w.prng, w.count - 1)) % w.count;
        void *memory = malloc(search_size(w.count));
        assert_non_null(memory);
        search_init(&s, w.count, memory);
        play(&w, &s);
        named += s.named_count;
        if (s.named_count == 0 && s.unproven > 0) {
            assert_int_not_equal(s.good[w.pair[0]], 2);
            assert_int_not_equal(s.good[w.pair[1]], 2);
        }
        free(memory);
    }
    assert_true(named > 2000);
}

/* A named member is no partner in the rest of the search, although it was well in pairs: ask() checks that. */
static void test_named(void **state)
{
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        struct world w = {.count = 6 + (uint32_t)(seed % 10),
                          .bad_count = 1,
                          .lost = 0.2,
                          .bad_seems_good = true};
        struct search s;
        prng_init(&w.prng, seed);
        w.bad[0] = (uint32_t)prng_below(&w.prng, w.count);
        w.pair[0] = (w.bad[0] + 1) % w.count;
        w.pair[1] = (w.bad[0] + 2 + (uint32_t)prng_below(&w.prng, w.count - 3)) % w.count;
        void *memory = malloc(search_size(w.count));
        assert_non_null(memory);
        search_init(&s, w.count, memory);
        search_know_good(&s, w.bad[0]);
        play(&w, &s);
        free(memory);
    }
}

/* A member that left is no partner, although it is good. */
static void test_left(void **state)
{
    struct world w = {.count = 4, .bad = {0, 2}, .bad_count = 2};
    struct search s;
    struct search_test tests[2 * SEARCH_SETS_MAX];
    void *memory = malloc(search_size(w.count));
    uint32_t n;
    assert_non_null(memory);
    search_init(&s, w.count, memory);
    search_know_good(&s, 1);
    search_know_good(&s, 3);
    search_leave(&s, 3);
    while ((n = search_round(&s, tests)) > 0) {
        uint8_t answers[2 * SEARCH_SETS_MAX], seen[MEMBERS_MAX] = {0};
        for (uint32_t i = 0; i < n; i++) {
            assert_int_not_equal(tests[i].partner, 3);
            answers[i] = (uint8_t)ask(&w, &s, &tests[i], seen);
        }
        search_results(&s, tests, answers);
    }
    free(memory);
}

/* Begins with suspects. `well`: all but the bad ones are known to be good. */
static void find_with(struct world *w, struct search *s, const uint32_t *suspects, uint32_t count)
{
    void *memory = malloc(search_size(w->count));
    assert_non_null(memory);
    search_init(s, w->count, memory);
    for (uint32_t i = 0; i < w->count; i++) {
        if (!is_bad(w, i)) {
            search_know_good(s, i);
        }
    }
    search_begin_with(s, suspects, count);
    play(w, s);
    free(memory);
}

/* The right suspect is tested in the first round and named in the third, with any number of members. */
static void test_a_suspect_comes_first(void **state)
{
    static const uint32_t counts[] = {5, 8, 9, 64, 1000, 1024};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        for (uint32_t k = 0; k < counts[c]; k += counts[c] / 40 + 1) {
            struct world w = {.count = counts[c], .bad = {k}, .bad_count = 1};
            struct search s;
            find_with(&w, &s, &k, 1);
            assert_int_equal(s.named_count, 1);
            assert_int_equal(s.named[0].member, k);
            assert_int_equal(s.rounds, 3);
        }
    }
}

/* A wrong suspect costs at most two rounds and is not named. The real culprit is, also a pair. */
static void test_a_wrong_suspect_is_not_named(void **state)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        struct world w = {.count = 5 + (uint32_t)(seed % 200)};
        struct search s;
        uint32_t suspects[3], count = 1 + (uint32_t)(seed % 3);
        prng_init(&w.prng, seed);
        const uint32_t first = (uint32_t)prng_below(&w.prng, w.count - 4);
        for (uint32_t k = 0; k < count; k++) {
            suspects[k] = first + k;
        }
        if (seed % 2 == 0) {
            w.bad_count = 1;
            w.bad[0] = first + 3;
        } else {
            w.pair[0] = first + (uint32_t)prng_below(&w.prng, 4);
            w.pair[1] = (w.pair[0] + 1 + (uint32_t)prng_below(&w.prng, w.count - 1)) % w.count;
        }
        find_with(&w, &s, suspects, count);
        assert_int_equal(s.named_count, 1);
        assert_true(w.bad_count == 0 || s.named[0].member == w.bad[0]);
        assert_true((s.named[0].with == SEARCH_NONE) == (w.bad_count == 1));
        assert_true(s.rounds <= (w.bad_count == 1 ? 11 : 25));
    }
}

/* Two are culprits and one of them is suspected: both are named. */
static void test_a_suspect_hides_nobody(void **state)
{
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct world w = {.count = 8 + (uint32_t)(seed % 100), .bad_count = 2};
        struct search s;
        prng_init(&w.prng, seed);
        w.bad[0] = (uint32_t)prng_below(&w.prng, w.count);
        w.bad[1] = (w.bad[0] + 1 + (uint32_t)prng_below(&w.prng, w.count - 1)) % w.count;
        find_with(&w, &s, w.bad, 1);
        assert_int_equal(s.named_count, 2);
        assert_true(is_bad(&w, s.named[0].member) && is_bad(&w, s.named[1].member));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_pair),
        cmocka_unit_test(test_not_seen_again),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_no_partner),
        cmocka_unit_test(test_untested_half),
        cmocka_unit_test(test_one_of_a_pair_is_not_good),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_a_suspect_comes_first),
        cmocka_unit_test(test_a_wrong_suspect_is_not_named),
        cmocka_unit_test(test_a_suspect_hides_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
