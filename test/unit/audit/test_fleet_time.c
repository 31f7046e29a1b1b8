/* test_fleet_time.c: the fleet time that follows from many hosts' reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/audit/fleet_time.h"

#define FLEET_NS INT64_C(1800000000000000000)

static void one_host_moves_nothing(void **state)
{
    static const int64_t lies[] = {
        1, FLEET_NS - 82800 * NS_PER_S, FLEET_NS + 82800 * NS_PER_S, INT64_MAX, INT64_MIN, 0};
    (void)state;
    for (size_t lie = 0; lie < sizeof(lies) / sizeof(lies[0]); lie++) {
        struct fleet_words t = {0};
        int64_t ns = 0;
        for (int64_t host = 0; host < 100; host++) {
            fleet_time_hear(&t, host, FLEET_NS + host, (struct mono){NS_PER_S});
            for (int again = 0; again < 50; again++) {
                fleet_time_hear(&t, 7, lies[lie], (struct mono){NS_PER_S});
            }
        }
        assert_true(fleet_time_now(&t, (struct mono){3 * NS_PER_S}, &ns));
        assert_in_range(ns, FLEET_NS + 2 * NS_PER_S, FLEET_NS + 2 * NS_PER_S + 99);
    }
}

static void an_old_time_counts_no_more(void **state)
{
    struct fleet_words t = {0};
    int64_t ns = 0;
    (void)state;
    assert_false(fleet_time_now(&t, (struct mono){NS_PER_S}, &ns));
    fleet_time_hear(&t, 3, FLEET_NS, (struct mono){0});
    fleet_time_hear(&t, 4, FLEET_NS + 5, (struct mono){59 * NS_PER_S});
    assert_true(fleet_time_now(&t, (struct mono){FLEET_TIME_OLD_NS}, &ns));
    assert_int_equal(ns, FLEET_NS + 5 + NS_PER_S);
    assert_false(fleet_time_now(&t, (struct mono){200 * NS_PER_S}, &ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_host_moves_nothing),
        cmocka_unit_test(an_old_time_counts_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
