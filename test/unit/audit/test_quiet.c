/* test_quiet.c: traffic that keeps an audit's tests off a host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/audit/quiet.h"

static struct mono at(double s)
{
    return (struct mono){(int64_t)(s * 1e9)};
}

/* The counter a second later, at so many Mbit/s. */
static uint64_t after(uint64_t bytes, double mbps)
{
    return bytes + (uint64_t)(mbps * 1e6 / 8);
}

static void a_hundredth_of_the_rate_is_in_use(void **state)
{
    (void)state;
    static const struct {
        uint32_t speed;
        double mbps;
        bool quiet;
    } cases[] = {{100000, 990, true},   {100000, 1010, false}, {400000, 3900, true},
                 {400000, 4100, false}, {0, 9, true},          {0, 11, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct quiet q = {0};
        const uint64_t first = UINT64_C(1) << 50; /* from before: at an unknown time */
        quiet_look(&q, at(100), first, cases[i].speed, false);
        assert_true(quiet_is(&q, at(100)));
        quiet_look(&q, at(101), after(first, cases[i].mbps), cases[i].speed, false);
        assert_int_equal(quiet_is(&q, at(101)), cases[i].quiet);
    }
}

/* A job that saves its state is silent, and then goes on. */
static void it_is_in_use_for_a_minute(void **state)
{
    (void)state;
    struct quiet q = {0};
    quiet_look(&q, at(1), 0, 1000, false);
    quiet_look(&q, at(2), after(0, 500), 1000, false);
    for (int s = 3; s <= 62; s++) {
        quiet_look(&q, at(s), after(0, 500), 1000, false);
        assert_false(quiet_is(&q, at(s)));
    }
    assert_true(quiet_is(&q, at(63)));
}

static void explained_traffic_leaves_a_nic_quiet(void **state)
{
    (void)state;
    struct quiet q = {0};
    uint64_t bytes = 0;
    quiet_look(&q, at(0), bytes, 1000, false);
    for (int s = 1; s < 30; s++) {
        bytes = after(bytes, 900);
        quiet_look(&q, at(s), bytes, 1000, true);
    }
    assert_true(quiet_is(&q, at(30)));
    quiet_look(&q, at(30), after(bytes, 900), 1000, false);
    assert_false(quiet_is(&q, at(30)));
}

/* After a driver was loaded again, or while a clock stands, there is no rate. */
static void counters_that_restart_tell_nothing(void **state)
{
    (void)state;
    struct quiet q = {0};
    quiet_look(&q, at(1), UINT64_C(1) << 60, 1000, false);
    quiet_look(&q, at(2), 5, 1000, false);
    quiet_look(&q, at(2), UINT64_C(1) << 60, 1000, false);
    assert_true(quiet_is(&q, at(2)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundredth_of_the_rate_is_in_use),
        cmocka_unit_test(it_is_in_use_for_a_minute),
        cmocka_unit_test(explained_traffic_leaves_a_nic_quiet),
        cmocka_unit_test(counters_that_restart_tell_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
