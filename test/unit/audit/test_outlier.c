/* test_outlier.c: which hosts are worse than the others, and which looked so only once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/audit/outlier.h"

enum { MANY = 1000 };
static const struct outlier_rule rate = {.practical = 7, .floor = 0.1, .low = true};

/* Around 100, with normal noise of 1. */
static struct outlier_cohort cohort_of(uint32_t count, uint64_t seed)
{
    static double values[MANY], scratch[MANY];
    struct outlier_cohort c;
    struct prng g;
    prng_init(&g, seed);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = 100 + prng_normal(&g);
    }
    assert_true(outlier_cohort_init(&c, &rate, values, count, scratch));
    return c;
}

static void add(const struct outlier_cohort *c, struct outlier_retest *t, double own, double beside)
{
    double others[3] = {beside + 1, beside, beside - 1};
    outlier_add(c, t, own, others, 3);
}

static uint32_t judge(const struct outlier_cohort *c, const struct outlier_retest *t,
                      uint32_t count, bool *ret_worse)
{
    struct outlier_case cases[64];
    for (uint32_t i = 0; i < count; i++) {
        cases[i] = (struct outlier_case){.cohort = c, .retest = &t[i]};
    }
    const uint32_t n = outlier_judge(cases, count);
    for (uint32_t i = 0; i < count; i++) {
        ret_worse[cases[i].retest - t] = cases[i].worse;
    }
    return n;
}

static void test_few_tell_nothing(void **state)
{
    const double values[4] = {100, 100, 100, 50};
    double scratch[4];
    struct outlier_cohort c;
    (void)state;
    assert_false(outlier_cohort_init(&c, &rate, values, 4, scratch));
}

static void test_cohort_is_its_middle(void **state)
{
    double values[MANY], scratch[MANY];
    struct outlier_cohort c = cohort_of(MANY, 1);
    (void)state;
    assert_true(c.middle > 99.8 && c.middle < 100.2);
    assert_true(c.spread > 0.9 && c.spread < 1.1);
    assert_true(c.freedom >= 8); /* normal */
    /* Ratios of two normal values: a third of them is further off than a spread, some by hundreds. */
    struct prng g;
    prng_init(&g, 2);
    for (uint32_t i = 0; i < MANY; i++) {
        values[i] = 100 + prng_normal(&g) / prng_normal(&g);
    }
    assert_true(outlier_cohort_init(&c, &rate, values, MANY, scratch));
    assert_int_equal(c.freedom, 3);
    assert_true(c.scale > 4); /* wider tails than three degrees have: taken for a wider t */
    assert_int_equal(cohort_of(100, 3).freedom, 3); /* too few to see the tails */
    for (uint32_t i = 0; i < MANY; i++) {
        values[i] = 100;
    }
    assert_true(outlier_cohort_init(&c, &rate, values, MANY, scratch));
    assert_float_equal(c.spread, 0.1, 1e-9); /* the floor */
}

static void test_screen(void **state)
{
    const struct outlier_cohort c = cohort_of(MANY, 4);
    const struct outlier_rule delay = {.practical = 1000, .floor = 100};
    double values[6] = {500, 500, 510, 490, 500, 2000}, scratch[6];
    struct outlier_cohort d;
    (void)state;
    assert_true(outlier_is_candidate(&c, 90));
    assert_false(
        outlier_is_candidate(&c, 97)); /* three spreads, but under half of the least effect */
    assert_false(outlier_is_candidate(&c, 110)); /* faster */
    assert_true(outlier_cohort_init(&d, &delay, values, 6, scratch));
    assert_true(outlier_is_candidate(&d, 2000));
    assert_false(outlier_is_candidate(&d, 900)); /* under half of the least effect */
    assert_false(outlier_is_candidate(&d, -2000));
}

/* The first measurement is no part of the verdict. */
static void test_verdict_is_by_retests(void **state)
{
    const struct outlier_cohort c = cohort_of(MANY, 5);
    struct outlier_retest t[3] = {{.count = 0}};
    bool worse[3];
    (void)state;
    assert_true(outlier_undecided(&c, &t[0], 1));
    assert_false(judge(&c, t, 1, worse)); /* without retests none is worse */
    for (int i = 0; i < 3; i++) {
        add(&c, &t[0], 90, 100);
        add(&c, &t[1], 99.5, 100);
        add(&c, &t[2], 80, 80.5); /* all are slow in these seconds, also this one */
    }
    assert_false(outlier_undecided(&c, &t[0], 3));
    assert_false(outlier_undecided(&c, &t[1], 3));
    assert_int_equal(judge(&c, t, 3, worse), 1);
    assert_true(worse[0] && !worse[1] && !worse[2]);
    assert_float_equal(outlier_worse(&t[0]), 10, 1e-9);
}

/* One bad second of three doesn't change the median. An effect that is too small doesn't count, however certain it is. */
static void test_median_and_effect(void **state)
{
    const struct outlier_cohort c = cohort_of(MANY, 6);
    struct outlier_retest once = {.count = 0}, small = {.count = 0};
    bool worse[1];
    (void)state;
    add(&c, &once, 40, 100);
    add(&c, &once, 99, 100);
    add(&c, &once, 100, 100);
    assert_false(outlier_undecided(&c, &once, 1));
    assert_int_equal(judge(&c, &once, 1, worse), 0);
    while (outlier_undecided(&c, &small, 1)) {
        add(&c, &small, 94, 100);
    }
    assert_int_equal(small.count, OUTLIER_RETESTS_MOST);
    assert_true(outlier_chance(&c, &small) < 1e-6);
    assert_int_equal(judge(&c, &small, 1, worse), 0);
}

/* The same retests make a verdict if there are few candidates, but not if they are the worst of many. */
static void test_many_candidates_want_more(void **state)
{
    struct outlier_cohort c = cohort_of(100, 7); /* heavy tails */
    struct outlier_retest t[64] = {{.count = 0}};
    bool worse[64];
    (void)state;
    c.scale = 1.5;
    for (int i = 0; i < 3; i++) {
        add(&c, &t[0], 87, 100);
        for (int k = 1; k < 64; k++) {
            add(&c, &t[k], 100, 100);
        }
    }
    assert_int_equal(judge(&c, t, 1, worse), 1);
    assert_false(outlier_undecided(&c, &t[0], 1));
    assert_true(outlier_undecided(&c, &t[0], 64));
    assert_int_equal(judge(&c, t, 64, worse), 0);
    for (int i = 0; i < 2; i++) {
        add(&c, &t[0], 87, 100);
    }
    assert_int_equal(judge(&c, t, 64, worse), 1);
    assert_true(worse[0]);
}

/* Known values: with three degrees P(T > 4.5407) is 1 %. Two of three retests were that far off. */
static void test_chance(void **state)
{
    struct outlier_cohort c = cohort_of(100, 8);
    struct outlier_retest t = {.count = 0};
    (void)state;
    c.scale = 1;
    assert_float_equal(outlier_chance(&c, &t), 1, 0);
    for (int i = 0; i < 3; i++) {
        double beside = 104.5407 * 1;
        outlier_add(&c, &t, 100, &beside, 1);
    }
    c.scale = 1 / t.width;
    assert_float_equal(outlier_chance(&c, &t), 7 * (3 * 1e-4 * 0.99 + 1e-6) / 0.8, 1e-6);
    c.freedom = 30; /* P(T > 4.5407) = 4.2464e-5 */
    assert_float_equal(outlier_chance(&c, &t), 7 * 3 * 4.2464e-5 * 4.2464e-5 / 0.8, 1e-9);
}

/* The width of the noise is unknown. If a host was the worst of four nine times, that is evidence; of two it isn't. Seven times
 * of nine are chance. Before the last retest the order is no evidence either. */
static void test_order(void **state)
{
    static const struct {
        uint32_t beside, last;
        double chance;
    } cases[] = {{3, 9, 5 / 262144.0},
                 {3, 8, 5 * 28 / 262144.0},
                 {3, 7, 5 * 352 / 262144.0},
                 {2, 9, 5 / 19683.0},
                 {1, 9, 5 / 512.0}};
    struct outlier_cohort c = cohort_of(100, 9);
    bool worse[1];
    (void)state;
    c.scale = 1000;
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct outlier_retest t = {.count = 0};
        for (uint32_t i = 0; i < OUTLIER_RETESTS_MOST; i++) {
            double beside[] = {i < cases[k].last ? 95 : 70, 110, 105};
            assert_float_equal(outlier_chance(&c, &t), 1, 0);
            assert_true(outlier_undecided(&c, &t, 1));
            outlier_add(&c, &t, 80, beside, cases[k].beside);
        }
        assert_int_equal(t.last, cases[k].last);
        assert_float_equal(outlier_chance(&c, &t), cases[k].chance, 1e-9);
        assert_int_equal(judge(&c, &t, 1, worse), cases[k].chance <= OUTLIER_FALSE_SHARE);
    }
    /* a host as bad as one beside it is not worse, also if high values are the worse ones */
    struct outlier_retest t = {.count = 0};
    double same[] = {80, 100, 110}, above[] = {80, 100, 110};
    outlier_add(&c, &t, 80, same, 3);
    assert_int_equal(t.last, 0);
    c.rule.low = false;
    outlier_add(&c, &t, 111, above, 3);
    assert_int_equal(t.last, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_tell_nothing),
        cmocka_unit_test(test_cohort_is_its_middle),
        cmocka_unit_test(test_screen),
        cmocka_unit_test(test_verdict_is_by_retests),
        cmocka_unit_test(test_median_and_effect),
        cmocka_unit_test(test_many_candidates_want_more),
        cmocka_unit_test(test_chance),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
