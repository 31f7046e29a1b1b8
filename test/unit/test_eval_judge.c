/* test_eval_judge.c: the lab's checker: an error, a broken bound, a split fleet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lab/eval_judge.h"

#define BASE 1700000000000000000LL

static struct eval_reading synced(int64_t offset_ns)
{
    return (struct eval_reading){.status = EVAL_SYNCED,
                                 .timeline = 7,
                                 .epoch = 1,
                                 .time_ns = BASE + offset_ns,
                                 .hard_ns = 1000,
                                 .statistical_ns = 100};
}

static void test_pairs_and_bounds(void **state)
{
    (void)state;
    struct eval e;
    assert_int_equal(eval_init(&e, 4), 0);
    struct eval_reading r[4] = {synced(0), synced(40), synced(-60), synced(10)};
    assert_int_equal(eval_on_readings(&e, 1, r), 0);
    assert_int_equal(e.pair_error.count, 6);
    assert_int_equal(eval_quantile(&e.pair_error, 1), 100);
    assert_int_equal(eval_quantile(&e.pair_error, 0.5), 40);
    assert_int_equal(eval_quantile(&e.pair_error, 0.01), 10);
    assert_int_equal(e.centre_ns, BASE + 5);
    assert_int_equal(e.hard_broken, 0);
    assert_int_equal(e.hard_judged, 6);
    assert_int_equal(e.statistical_broken, 0);
    assert_int_equal(e.statistical_judged, 4);
    assert_int_equal(eval_quantile(&e.hard_width, 0.5), 2000);
    assert_int_equal(e.complete, 1);

    r[0] = synced(2500); /* away from each of the others: by 460 at least beyond both bounds */
    assert_int_equal(eval_on_readings(&e, 2, r), 0);
    assert_int_equal(e.hard_broken, 3);
    assert_int_equal(e.hard_excess_ns, 560);
    assert_int_equal(e.statistical_broken, 1);
    assert_true(e.statistical_share_worst > 24 && e.statistical_share_worst < 25);
    eval_done(&e);
}

static void test_bounds_that_just_meet_hold(void **state)
{
    (void)state;
    struct eval e;
    assert_int_equal(eval_init(&e, 2), 0);
    struct eval_reading r[2] = {synced(0), synced(2000)};
    assert_int_equal(eval_on_readings(&e, 1, r), 0);
    assert_int_equal(e.hard_broken, 0);
    r[1].time_ns++;
    assert_int_equal(eval_on_readings(&e, 2, r), 0);
    assert_int_equal(e.hard_broken, 1);
    assert_int_equal(e.hard_excess_ns, 1);
    eval_done(&e);
}

static void test_only_who_claims_is_judged(void **state)
{
    (void)state;
    struct eval e;
    assert_int_equal(eval_init(&e, 3), 0);
    struct eval_reading r[3] = {synced(0), synced(5), synced(9000000)};
    r[2].status = EVAL_DISRUPTED;
    assert_int_equal(eval_on_readings(&e, 1, r), 0);
    assert_int_equal(e.hard_judged, 1);
    assert_int_equal(e.hard_broken, 0);
    assert_int_equal(e.complete, 0);
    r[2].status = EVAL_SYNCED;
    r[2].is_excused = true;
    assert_int_equal(eval_on_readings(&e, 2, r), 0);
    assert_int_equal(e.hard_broken, 0);
    r[0].status = r[1].status = EVAL_ABSENT;
    assert_int_equal(eval_on_readings(&e, 3, r), 0);
    assert_int_equal(e.instants, 2);
    eval_done(&e);
}

static void test_status_in_time(void **state)
{
    (void)state;
    struct eval e;
    assert_int_equal(eval_init(&e, 2), 0);
    struct eval_reading r[2] = {{.status = EVAL_ABSENT}, synced(0)};
    assert_int_equal(eval_on_readings(&e, 10, r), 0);
    r[0] = synced(0);
    assert_int_equal(eval_on_readings(&e, 20, r), 0);
    assert_int_equal(eval_on_readings(&e, 30, r), 0);
    r[1].epoch++;
    r[1].time_ns -= 500; /* a new epoch may */
    assert_int_equal(eval_on_readings(&e, 40, r), 0);
    assert_int_equal(e.backwards, 0);
    r[1].time_ns--; /* the old one may not */
    assert_int_equal(eval_on_readings(&e, 50, r), 0);
    assert_int_equal(e.backwards, 1);
    assert_int_equal(e.change_count, 4);
    assert_int_equal(e.changes[0].status, EVAL_ABSENT);
    assert_int_equal(e.changes[1].clock, 1);
    assert_int_equal(e.changes[2].raw_ns, 20);
    assert_int_equal(e.changes[2].status, EVAL_SYNCED);
    assert_int_equal(e.changes[3].epoch, 2);
    eval_done(&e);
}

static void test_split_fleet(void **state)
{
    (void)state;
    struct eval e;
    assert_int_equal(eval_init(&e, 3), 0);
    struct eval_reading r[3] = {synced(0), synced(0), synced(5000000)};
    r[2].timeline = 8;
    assert_int_equal(eval_on_readings(&e, 1, r), 0);
    assert_int_equal(e.split, 1);
    assert_int_equal(e.hard_judged, 1);
    assert_int_equal(e.hard_broken, 0);
    assert_int_equal(e.statistical_judged, 0);
    eval_done(&e);
}

static void test_quantiles(void **state)
{
    (void)state;
    struct eval_series s = {0};
    assert_int_equal(eval_quantile(&s, 0.5), 0);
    for (int i = 100; i >= 1; i--) {
        assert_int_equal(eval_series_add(&s, i), 0);
    }
    assert_int_equal(eval_quantile(&s, 0), 1);
    assert_int_equal(eval_quantile(&s, 0.5), 50);
    assert_int_equal(eval_quantile(&s, 0.99), 99);
    assert_int_equal(eval_quantile(&s, 0.999), 100);
    assert_int_equal(eval_quantile(&s, 1), 100);
    struct eval e = {.pair_error = s};
    eval_done(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs_and_bounds),
        cmocka_unit_test(test_bounds_that_just_meet_hold),
        cmocka_unit_test(test_only_who_claims_is_judged),
        cmocka_unit_test(test_status_in_time),
        cmocka_unit_test(test_split_fleet),
        cmocka_unit_test(test_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
