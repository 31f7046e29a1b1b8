/* test_search.c: culprits in sets of members are found by tests of parts, and nobody else is named. */
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
    uint32_t spurious; /* a test, by its number from 1: it is slow without a reason */
    uint32_t tested;
};

/* Is the test slow? No member is in two tests of a round, and all are members. */
static bool slow_of(struct world *w, const struct search *s, const struct search_test *t,
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
            assert_int_not_equal(t->partner, w->bad[k]);
        }
        members++;
    }
    assert_true(members > 0);
    return slow || (w->pair[0] != w->pair[1] && has[0] && has[1]);
}

static void play(struct world *w, struct search *s)
{
    struct search_test tests[2 * SEARCH_SETS_MAX];
    bool slow[2 * SEARCH_SETS_MAX];
    uint32_t n;
    while ((n = search_round(s, tests)) > 0) {
        uint8_t seen[MEMBERS_MAX] = {0};
        for (uint32_t i = 0; i < n; i++) {
            slow[i] = slow_of(w, s, &tests[i], seen);
        }
        search_results(s, tests, slow);
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
    static const uint32_t counts[] = {2, 3, 7, 64, 100, 1000, 1024};
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

/* One test was slow for another reason: nobody is named for it. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_pair),
        cmocka_unit_test(test_not_seen_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
