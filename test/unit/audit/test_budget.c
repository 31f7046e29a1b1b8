/* test_budget.c: an agent's budget for audits: it holds for any controller, and for any number of requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "core/audit/budget.h"
#include "core/audit/perf_offer.h"

#define TOO_OFTEN "audits have read it so often within an hour that it waits a minute"
#define TOO_LONG  "with these its tests would take more than two hours of a day"
#define DAY_S     86400.0

static struct mono at(double s)
{
    return (struct mono){(int64_t)(s * 1e9)};
}

/* As many readings as the budget has come at once, then one a minute. */
static void readings_wait(void **state)
{
    struct allowance a = {0};
    for (uint32_t i = 0; i < AUDIT_READINGS_MAX; i++) {
        assert_null(budget_read(&a, at(1000 + 0.01 * i)));
    }
    assert_string_equal(budget_read(&a, at(1001)), TOO_OFTEN);
    for (int s = 1002; s < 1059; s++) { /* more requests get no more readings, and no fewer */
        assert_string_equal(budget_read(&a, at(s)), TOO_OFTEN);
    }
    assert_null(budget_read(&a, at(1061)));
    assert_string_equal(budget_read(&a, at(1062)), TOO_OFTEN);
    for (uint32_t i = 0; i < AUDIT_READINGS_MAX; i++) { /* hours later: no more than at first */
        assert_null(budget_read(&a, at(30000)));
    }
    assert_string_equal(budget_read(&a, at(30000)), TOO_OFTEN);
}

/* A controller that asks each second, for a day. */
static void a_day_of_readings(void **state)
{
    struct allowance a = {0};
    uint32_t count = 0;
    for (int s = 1; s <= DAY_S; s++) {
        count += budget_read(&a, at(s)) == NULL;
    }
    assert_in_range(count, 25 * AUDIT_READINGS_MAX - 2, 25 * AUDIT_READINGS_MAX);
}

/* The longest plans, one after the other. */
static void tests_have_two_hours(void **state)
{
    struct allowance a = {0};
    double now = 1000, ran = 0;
    while (budget_tests_wrong(&a, AUDIT_PLAN_MS_MAX, at(now)) == NULL) {
        for (int k = 0; k < 10; k++) {
            now += AUDIT_PLAN_MS_MAX / 10000.0;
            budget_tested(&a, AUDIT_PLAN_MS_MAX / 10 * NS_PER_MS, at(now));
        }
        ran += AUDIT_PLAN_MS_MAX / 1000.0;
    }
    assert_true(ran >= 7200 && ran <= 7200 + 2 * 600); /* meanwhile some came back */
    assert_string_equal(budget_tests_wrong(&a, AUDIT_PLAN_MS_MAX, at(now)), TOO_LONG);
    assert_null(budget_tests_wrong(&a, 1000, at(now + 60))); /* a short one fits again */
    assert_string_equal(budget_tests_wrong(&a, AUDIT_TESTS_MS_MAX, at(now + DAY_S / 2)), TOO_LONG);
    assert_null(budget_tests_wrong(&a, AUDIT_TESTS_MS_MAX, at(now + DAY_S)));
    assert_string_equal(budget_tests_wrong(&a, AUDIT_TESTS_MS_MAX + 1, at(now + 9 * DAY_S)),
                        TOO_LONG);
}

/* Only the time that tests ran counts: a plan that was taken costs nothing. A test that ran longer than planned is paid back. */
static void only_tests_that_ran_are_counted(void **state)
{
    struct allowance a = {0};
    for (int i = 0; i < 100; i++) {
        assert_null(budget_tests_wrong(&a, AUDIT_PLAN_MS_MAX, at(10 + i)));
    }
    budget_tested(&a, 3 * AUDIT_TESTS_MS_MAX * NS_PER_MS, at(200));
    assert_string_equal(budget_tests_wrong(&a, 1, at(200 + 1.9 * DAY_S)), TOO_LONG);
    assert_null(budget_tests_wrong(&a, 1, at(200 + 2.1 * DAY_S)));
}

/* A host without a part in a step spends nothing on it. */
static void a_plan_takes_its_own_steps(void **state)
{
    const struct perf_task tasks[4] = {{.ranks = 2}, {.ranks = 0}, {.ranks = 8}, {.ranks = 2}};
    const struct perf_offer o = {.step_ms = 3500, .count = 3, .tasks = tasks};
    assert_int_equal(perf_offer_ms(&o), 7000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_wait),
        cmocka_unit_test(a_day_of_readings),
        cmocka_unit_test(tests_have_two_hours),
        cmocka_unit_test(only_tests_that_ran_are_counted),
        cmocka_unit_test(a_plan_takes_its_own_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
