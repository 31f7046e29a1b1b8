/* test_least.c: the least of the last one to two spans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "stats/least.h"

#define SPAN_NS 1000

static struct mono at(int64_t ns)
{
    return (struct mono){ns};
}

static void counts_for_one_span_at_least_and_two_at_most(void **state)
{
    struct prng random;

    (void)state;
    prng_init(&random, 7);
    for (int round = 0; round < 200; round++) {
        struct {
            int64_t at, value;
        } all[64];
        struct least l;
        int64_t now = 0;

        least_init(&l, at(0));
        for (int n = 0; n < 64; n++) {
            int64_t one = INT64_MAX, two = INT64_MAX;

            now += (int64_t)prng_below(&random, 700);
            all[n].at = now;
            all[n].value = (int64_t)prng_below(&random, 1000);
            least_add(&l, at(now), span_ns(SPAN_NS), all[n].value);
            for (int k = 0; k <= n; k++) {
                const int64_t age = now - all[k].at;
                one = age < SPAN_NS && all[k].value < one ? all[k].value : one;
                two = age < 2 * SPAN_NS && all[k].value < two ? all[k].value : two;
            }
            assert_true(least_get(&l) >= two);
            assert_true(least_get(&l) <= one);
        }
    }
}

static void a_floor_of_before_a_pause_is_forgotten(void **state)
{
    struct least l;

    (void)state;
    least_init(&l, at(0));
    least_add(&l, at(10), span_ns(SPAN_NS), 5);
    assert_int_equal(least_get(&l), 5);
    assert_int_equal(least_at(&l, at(SPAN_NS), span_ns(SPAN_NS)), 5);
    assert_int_equal(least_at(&l, at(2 * SPAN_NS), span_ns(SPAN_NS)), LEAST_NONE);
    least_add(&l, at(2 * SPAN_NS), span_ns(SPAN_NS), 50);
    assert_int_equal(least_get(&l), 50);
    least_add(&l, at(3 * SPAN_NS), span_ns(SPAN_NS), 70);
    assert_int_equal(least_at(&l, at(3 * SPAN_NS + 1), span_ns(SPAN_NS)), 50);
    assert_int_equal(least_at(&l, at(4 * SPAN_NS), span_ns(SPAN_NS)), 70);
    least_add(&l, at(9 * SPAN_NS), span_ns(SPAN_NS), LEAST_NONE);
    assert_int_equal(least_get(&l), LEAST_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_for_one_span_at_least_and_two_at_most),
        cmocka_unit_test(a_floor_of_before_a_pause_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
