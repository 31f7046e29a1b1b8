/* The random numbers can be reproduced, and have the moments of their distributions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"

static void one_seed_one_sequence(void **state)
{
    struct prng a, b, c;

    prng_init(&a, 7);
    prng_init(&b, 7);
    prng_init(&c, 8);
    for (int i = 0; i < 100; i++) {
        const uint64_t x = prng_u64(&a);
        assert_true(x == prng_u64(&b));
        assert_true(x != prng_u64(&c));
    }
}

static void moments(void **state)
{
    struct prng p;
    double normal = 0, square = 0, exponential = 0;
    const int n = 200000;

    prng_init(&p, 1);
    for (int i = 0; i < n; i++) {
        const double x = prng_normal(&p);
        normal += x / n;
        square += x * x / n;
        exponential += prng_exponential(&p) / n;
        assert_true(prng_below(&p, 7) < 7);
    }
    assert_true(fabs(normal) < 0.02);
    assert_true(fabs(square - 1) < 0.03);
    assert_true(fabs(exponential - 1) < 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_seed_one_sequence),
        cmocka_unit_test(moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
