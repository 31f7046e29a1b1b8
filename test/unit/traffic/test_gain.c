/* A trial shows whether a set carries more since one of its lanes tries another path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/traffic/gain.h"

static struct mono at;

/* Carries so many bytes a millisecond, for so long. */
static void carry(struct gain *t, int64_t ms, uint64_t bytes)
{
    for (int64_t i = 0; i < ms; i++) {
        at.ns += NS_PER_MS;
        gain_on_acked(t, at, bytes);
    }
}

static int gains(uint64_t before, uint64_t with, int64_t ms)
{
    struct gain t;

    at = (struct mono){NS_PER_S};
    gain_init(&t, at);
    carry(&t, 2000, before);
    gain_begin(&t, at);
    carry(&t, 30, before); /* until the new lane is there */
    assert_int_equal(gain_seen(&t, at), -1);
    carry(&t, ms, with);
    return gain_seen(&t, at);
}

static void test_a_set_that_carries_more(void **state)
{
    (void)state;
    assert_int_equal(gains(5000, 7000, 300), 1);
    assert_int_equal(gains(5000, 5000, 300), 0); /* the new lane takes it from the others */
    assert_int_equal(gains(5000, 5500, 300), 0); /* by chance */
    assert_int_equal(gains(5000, 4000, 300), 0);
    assert_int_equal(gains(5000, 7000, 100), -1); /* too early */
}

/* Traffic of long ago is not the rate before. A set that has just begun has no rate to compare with. */
static void test_what_was_before(void **state)
{
    struct gain t;

    (void)state;
    at = (struct mono){NS_PER_S};
    gain_init(&t, at);
    carry(&t, 100, 5000);
    gain_begin(&t, at);
    assert_int_equal(gain_seen(&t, at), 0);
    carry(&t, 60000, 9000);
    carry(&t, 1000, 5000);
    gain_begin(&t, at);
    assert_int_equal(gain_seen(&t, at), -1);
    carry(&t, 300, 7000);
    assert_int_equal(gain_seen(&t, at), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_set_that_carries_more),
        cmocka_unit_test(test_what_was_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
