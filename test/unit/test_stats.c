/* Histograms give the sample's quantiles, within the error that they state, and a merged one equals one of all values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "stats/histogram.h"
#include "stats/sample.h"

enum { COUNT_MAX = 3000 };

/* The two in use, and the smallest. */
struct fine {
    struct histogram head;
    uint32_t counters[HISTOGRAM_BUCKETS(8, 40)];
};
struct coarse {
    struct histogram head;
    uint16_t counters[HISTOGRAM_BUCKETS(5, 27)];
};
struct tiny {
    struct histogram head;
    uint16_t counters[HISTOGRAM_BUCKETS(1, 2)];
};
static const struct histogram_shape fine = {8, 40, 4}, coarse = {5, 27, 2}, tiny = {1, 2, 2};

static const double shares[] = {0, 1e-4, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1};

/* Draws numbers of every size that a shape of `bits` covers, some of them often. */
static int64_t draw(struct prng *p, int bits)
{
    const int64_t value = (int64_t)(prng_u64(p) >> (64 - bits)) >> prng_below(p, (uint64_t)bits);

    return prng_below(p, 4) == 0 ? 1234 : value;
}

static void a_quantile_is_within_the_stated_error(void **state)
{
    static int64_t values[COUNT_MAX];
    static struct fine f;
    static struct coarse c;

    for (uint64_t seed = 0; seed < 200; seed++) {
        struct prng p;
        prng_init(&p, seed);
        const size_t count = 1 + (size_t)prng_below(&p, seed % 2 == 0 ? 20 : COUNT_MAX);
        histogram_init(&f.head, fine);
        histogram_init(&c.head, coarse);
        for (size_t i = 0; i < count; i++) {
            values[i] = draw(&p, 33);
            histogram_add(&f.head, values[i]);
            histogram_add(&c.head, values[i]);
        }
        qsort(values, count, sizeof(values[0]), sample_order_int);
        assert_true(f.head.count == count && c.head.count == count);
        assert_true(f.head.min == values[0] && f.head.max == values[count - 1]);
        for (size_t i = 0; i < ARRAY_COUNT(shares); i++) {
            const int64_t truth = sample_quantile_int(values, count, shares[i]);
            const int64_t a = histogram_quantile(&f.head, shares[i]) - truth;
            const int64_t b = histogram_quantile(&c.head, shares[i]) - truth;
            if (llabs(a) > truth >> 8 || llabs(b) > truth >> 5) {
                fail_msg("seed %d: quantile %g of %zu is %lld, found %+lld and %+lld", (int)seed,
                         shares[i], count, (long long)truth, (long long)a, (long long)b);
            }
        }
        assert_true(histogram_quantile(&c.head, 0) == values[0]);
        assert_true(histogram_quantile(&c.head, 1) == values[count - 1]);
    }
}

static void a_merge_is_the_union(void **state)
{
    static struct coarse parts[3], whole, sum;

    for (uint64_t seed = 0; seed < 100; seed++) {
        struct prng p;
        prng_init(&p, seed);
        const size_t count = (size_t)prng_below(&p, COUNT_MAX);
        histogram_init(&whole.head, coarse);
        for (int i = 0; i < 3; i++) {
            histogram_init(&parts[i].head, coarse);
        }
        for (size_t i = 0; i < count; i++) {
            const int64_t value = draw(&p, 40) - 5; /* beyond the last bucket, below the first */
            histogram_add(&whole.head, value);
            histogram_add(&parts[prng_below(&p, 3)].head, value);
        }
        sum = parts[0];
        histogram_merge(&sum.head, &parts[1].head);
        for (size_t i = 0; i < ARRAY_COUNT(shares); i++) {
            assert_true(histogram_quantile_both(&parts[0].head, &parts[1].head, shares[i]) ==
                        histogram_quantile(&sum.head, shares[i]));
        }
        histogram_merge(&sum.head, &parts[2].head);
        assert_memory_equal(&sum, &whole, sizeof(sum));
        sum = parts[2]; /* in another order */
        histogram_merge(&sum.head, &parts[0].head);
        histogram_merge(&sum.head, &parts[1].head);
        assert_memory_equal(&sum, &whole, sizeof(sum));
    }
}

static void an_empty_one_says_so(void **state)
{
    static struct coarse a, b;

    histogram_init(&a.head, coarse);
    histogram_init(&b.head, coarse);
    assert_true(histogram_quantile(&a.head, 0.5) == INT64_MIN);
    assert_true(histogram_quantile_both(&a.head, &b.head, 0) == INT64_MIN);
    histogram_add(&b.head, -7);
    assert_true(histogram_quantile_both(&a.head, &b.head, 0.5) == -7);
    assert_true(isnan(sample_median(NULL, 0)) && isnan(sample_quantile(NULL, 0, 0.5)));
}

/* Numbers beyond either end, and the largest possible ones. */
static void nothing_is_out_of_range(void **state)
{
    static const int64_t extremes[] = {INT64_MIN, -1, 0, 1, 3, 4, 5, 15, 16, 1 << 20, INT64_MAX};
    struct tiny t;

    histogram_init(&t.head, tiny);
    for (size_t i = 0; i < ARRAY_COUNT(extremes); i++) {
        histogram_add(&t.head, extremes[i]);
    }
    assert_true(t.head.count == ARRAY_COUNT(extremes));
    assert_true(t.head.min == INT64_MIN && t.head.max == INT64_MAX);
    int64_t last = INT64_MIN;
    for (double q = 0; q <= 1; q += 0.01) {
        const int64_t value = histogram_quantile(&t.head, q);
        assert_true(value >= last);
        last = value;
    }
}

static void a_full_counter_stays(void **state)
{
    static struct coarse a, b;

    histogram_init(&a.head, coarse);
    for (int i = 0; i < UINT16_MAX + 10; i++) {
        histogram_add(&a.head, 5);
    }
    histogram_add(&a.head, 9);
    assert_true(a.head.count == UINT16_MAX + 1);
    b = a;
    histogram_merge(&a.head, &b.head);
    assert_true(a.head.count == UINT16_MAX + 2);
    assert_true(histogram_quantile(&a.head, 0.5) == 5 && histogram_quantile(&a.head, 1) == 9);
}

static void half_is_forgotten_and_extremes_with_it(void **state)
{
    static struct coarse a;

    histogram_init(&a.head, coarse);
    histogram_add(&a.head, 3);
    histogram_add(&a.head, 1000000);
    for (int i = 0; i < 100; i++) {
        histogram_add(&a.head, 50);
    }
    histogram_halve(&a.head);
    assert_true(a.head.count == 50 && a.head.min == 50 && a.head.max == 50);
    for (int i = 0; i < 6; i++) {
        histogram_halve(&a.head);
    }
    assert_true(a.head.count == 0 && histogram_quantile(&a.head, 0.5) == INT64_MIN);
    assert_true(a.head.min == INT64_MAX && a.head.max == INT64_MIN);
}

static void a_sample_s_quantile_is_the_nearest_rank(void **state)
{
    const double values[] = {1, 2, 3, 4};

    assert_true(sample_quantile(values, 4, 0) < 1.5);
    assert_true(fabs(sample_quantile(values, 4, 0.5) - 2) < 1e-12);
    assert_true(fabs(sample_quantile(values, 4, 0.51) - 3) < 1e-12);
    assert_true(fabs(sample_quantile(values, 4, 1) - 4) < 1e-12);
    assert_true(fabs(sample_median(values, 4) - 2.5) < 1e-12);
    assert_true(fabs(sample_median(values, 3) - 2) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quantile_is_within_the_stated_error),
        cmocka_unit_test(a_merge_is_the_union),
        cmocka_unit_test(an_empty_one_says_so),
        cmocka_unit_test(nothing_is_out_of_range),
        cmocka_unit_test(a_full_counter_stays),
        cmocka_unit_test(half_is_forgotten_and_extremes_with_it),
        cmocka_unit_test(a_sample_s_quantile_is_the_nearest_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
