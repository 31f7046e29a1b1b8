/* The arithmetic of a clock, to the number: bounds of a rate by stamps, the readers' line, the bank of filters. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/clock/clock_private.h"

#define AT_S(s) ((int64_t)((s)*1e9))

/* ---- how fast another clock runs ---- */

static void two_bounds_tell_a_rate(void **state)
{
    struct drift d;

    (void)state;
    drift_init(&d);
    assert_float_equal(d.low, -DRIFT_MOST, 0);
    assert_float_equal(d.high, DRIFT_MOST, 0);
    drift_add(&d, AT_S(0), 0, false); /* at least 0 at first, at most 2000 two seconds later */
    drift_add(&d, AT_S(2), 2000, true);
    assert_true(drift_judge(&d, AT_S(2), 0));
    assert_float_equal(d.high, 1e-6, 1e-15);
    assert_float_equal(d.low, -DRIFT_MOST, 0);
    drift_init(&d);
    drift_add(&d, AT_S(0), 0, true); /* at most 0 at first, at least 1000 two seconds later */
    drift_add(&d, AT_S(2), 1000, false);
    assert_true(drift_judge(&d, AT_S(2), 0));
    assert_float_equal(d.low, 5e-7, 1e-15);
    assert_float_equal(d.high, DRIFT_MOST, 0);
}

/* Bounds that are closer than 20 ms give nothing. */
static void bounds_close_together_tell_nothing(void **state)
{
    struct drift d;

    (void)state;
    for (int64_t apart = 19999999; apart <= 20000000; apart++) {
        drift_init(&d);
        drift_add(&d, 0, 0, false);
        drift_add(&d, apart, 100, true);
        assert_true(drift_judge(&d, AT_S(0.5), 0));
        assert_true((d.high < DRIFT_MOST) == (apart == 20000000));
    }
}

/* The tightest bound of each second is kept, along the known rate. */
static void the_tightest_of_a_second_is_kept(void **state)
{
    struct drift d;

    (void)state;
    drift_init(&d);
    drift_add(&d, AT_S(5.1), 500, true);
    drift_add(&d, AT_S(5.2), 400, true);
    drift_add(&d, AT_S(5.3), 450, true);
    drift_add(&d, AT_S(5.1), 10, false);
    drift_add(&d, AT_S(5.2), 30, false);
    drift_add(&d, AT_S(5.3), 20, false);
    assert_int_equal(d.slots[5].upper.phi_ns, 400);
    assert_int_equal(d.slots[5].lower.phi_ns, 30);
    d.low = d.high = 1e-6; /* 100 ns in a tenth of a second */
    drift_add(&d, AT_S(5.3), 499, true);
    assert_int_equal(d.slots[5].upper.phi_ns, 499);
    drift_add(&d, AT_S(5.4), 599, true);
    assert_int_equal(d.slots[5].upper.phi_ns, 499);
    drift_add(&d, AT_S(5.3), 129, false);
    assert_int_equal(d.slots[5].lower.phi_ns, 30);
    drift_add(&d, AT_S(5.3), 131, false);
    assert_int_equal(d.slots[5].lower.phi_ns, 131);
}

/* Sixteen seconds are kept, and nothing older. */
static void old_bounds_are_forgotten(void **state)
{
    struct drift d;

    (void)state;
    drift_init(&d);
    drift_add(&d, AT_S(0.5), 0, false);
    drift_add(&d, AT_S(0.6), 700, true);
    assert_true(drift_judge(&d, AT_S(15.5), 0));
    assert_true(d.slots[0].upper.seen && d.slots[0].lower.seen);
    assert_int_equal(d.filled, 1);
    assert_true(drift_judge(&d, AT_S(16.5), 0));
    assert_false(d.slots[0].upper.seen || d.slots[0].lower.seen);
    assert_float_equal(d.high, DRIFT_MOST, 0);
    drift_add(&d, AT_S(17.5), 5, true);
    drift_add(&d, AT_S(1.5), 4, true); /* it comes late, from sixteen seconds ago */
    assert_int_equal(d.slots[1].slot, 17);
    assert_int_equal(d.slots[1].upper.phi_ns, 5);
    drift_add(&d, AT_S(33.5), 9, true);
    assert_int_equal(d.slots[1].upper.phi_ns, 9);
}

/* Bounds that no rate fits, by twice the allowed change: one of the clocks stepped. */
static void bounds_that_contradict_each_other(void **state)
{
    struct drift d;

    (void)state;
    for (int i = 0; i < 2; i++) {
        drift_init(&d);
        drift_add(&d, AT_S(0), 0, true);
        drift_add(&d, AT_S(1), 3000, false); /* 3 ppm at least */
        drift_add(&d, AT_S(3), 4000, true);  /* half a ppm at most, from then on */
        assert_int_equal(drift_judge(&d, AT_S(3), i == 0 ? 1.26e-6 : 1.24e-6), i == 0);
        assert_true(d.low > d.high || i == 1);
        assert_int_equal(d.slots[0].upper.seen, i == 0);
    }
}

/* Once three seconds have bounds, the rate is computed once a second. */
static void a_rate_is_worked_out_once_a_second(void **state)
{
    struct drift d;

    (void)state;
    drift_init(&d);
    for (int s = 0; s < 3; s++) {
        drift_add(&d, AT_S(s), 1000 * s - 100, false);
        drift_add(&d, AT_S(s), 1000 * s + 100, true);
        assert_true(drift_judge(&d, AT_S(s), 0));
        assert_int_equal(d.filled, s + 1);
    }
    assert_float_equal(d.high, 1.1e-6, 1e-12);
    assert_float_equal(d.low, 0.9e-6, 1e-12);
    drift_add(&d, AT_S(2.9), 2850, true);
    assert_true(drift_judge(&d, AT_S(2.95), 0));
    assert_float_equal(d.high, 1.1e-6, 1e-12);
    assert_true(drift_judge(&d, AT_S(3), 0));
    assert_float_equal(d.high, 2950 / 2.9e9, 1e-12);
}

static void a_clock_drifts_by_its_limit_and_then_by_its_drift(void **state)
{
    (void)state;
    assert_float_equal(clock_drift_ns(2e-6, 100e-9, 0), 0, 0);
    assert_float_equal(clock_drift_ns(2e-6, 100e-9, 10), 20000, 1e-6);
    assert_float_equal(clock_drift_ns(2e-6, 100e-9, 20), 40000, 1e-6);
    assert_float_equal(clock_drift_ns(2e-6, 100e-9, 30), 65000, 1e-6);
    assert_float_equal(clock_drift_ns(2e-6, 100e-9, -30), 65000, 1e-6);
    assert_float_equal(clock_drift_ns(2e-6, 0, 1000), 2e6, 1e-3);
}

/* ---- the readers' line ---- */

static struct clock *made(void)
{
    const struct clock_config config = {.member = 1, .edge_capacity = 4};
    struct clock *c = clock_new(&config, (struct nic_time){NS_PER_S});

    assert_non_null(c);
    c->map = (struct clock_map){{100 * NS_PER_S}, 5000, 0.25, 1e-5};
    return c;
}

static struct nic_time after_map(int64_t ns)
{
    return (struct nic_time){100 * NS_PER_S + ns};
}

/* Sets a line that is so far ahead of the map. */
static void put_line(struct clock *c, int64_t ahead_ns)
{
    line_restart(c, after_map(0));
    assert_float_equal(line_minus_map(c, after_map(0)), 0, 1e-6);
    c->line.x_ns += ahead_ns;
}

static void a_line_begins_at_its_map(void **state)
{
    struct clock *c = made();

    (void)state;
    assert_float_equal(line_minus_map(c, after_map(0)), 0, 0); /* there is none */
    line_restart(c, after_map(300 * NS_PER_MS));
    assert_int_equal(c->line.x_ns, 5000 + 3000);
    assert_float_equal(c->line.x_fraction, 0.25, 1e-6);
    for (int64_t ns = 0; ns < NS_PER_S; ns += 100 * NS_PER_MS) {
        assert_float_equal(line_minus_map(c, after_map(ns)), 0, 1e-3);
    }
    clock_free(c);
}

/* It meets the map at 2 ppm, or faster so that it gets there within a tick, and stays there. If it is more than 100 us off, it
 * moves by 2 ms a second. */
static void a_line_meets_its_map(void **state)
{
    static const struct {
        int64_t ahead;
        double ms;
    } cases[] = {{3, 1.5},    {-3, 1.5},    {10, 5},      {-80, 40},      {100, 50},
                 {20000, 50}, {-25000, 50}, {100000, 50}, {-300000, 150}, {800000, 400}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct clock *c = made();
        const double ahead = (double)cases[i].ahead, slack = 1e-3 + fabs(ahead) * 1e-6;
        put_line(c, cases[i].ahead);
        line_follow(c, after_map(0));
        assert_float_equal(line_minus_map(c, after_map(0)), ahead, slack);
        assert_float_equal(line_minus_map(c, after_map((int64_t)(cases[i].ms * 0.5e6))), ahead / 2,
                           slack);
        assert_float_equal(line_minus_map(c, after_map((int64_t)(cases[i].ms * 1e6))), 0, slack);
        assert_float_equal(line_minus_map(c, after_map(9 * NS_PER_S)), 0, slack);
        clock_free(c);
    }
    struct clock *c = made(); /* if it is more than ten seconds off, there is no line */
    put_line(c, 50 * NS_PER_MS);
    line_follow(c, after_map(0));
    assert_int_equal(c->line.until.ns, after_map(10 * NS_PER_S).ns);
    c->line.valid = false;
    line_follow(c, after_map(0));
    assert_float_equal(line_minus_map(c, after_map(0)), 0, 1e-6);
    clock_free(c);
}

/* A reader's time never goes back within an epoch. A line that is behind may jump ahead. */
static void a_line_that_jumps_back_begins_an_epoch(void **state)
{
    static const struct {
        int64_t ahead;
        bool jumps, epoch;
    } cases[] = {{0, false, false},
                 {1000000, false, false},
                 {1000001, true, true},
                 {-1000000, false, false},
                 {-1000001, true, false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct clock *c = made();
        put_line(c, cases[i].ahead);
        c->map.x_fraction = c->line.x_fraction = 0;
        const uint32_t epoch = c->epoch;
        line_rejoin(c, after_map(0));
        assert_float_equal(line_minus_map(c, after_map(0)),
                           cases[i].jumps ? 0 : (double)cases[i].ahead, 1e-6);
        assert_int_equal(c->epoch - epoch, cases[i].epoch);
        c->line.valid = false;
        line_rejoin(c, after_map(0));
        assert_true(c->line.valid);
        assert_int_equal(c->epoch - epoch, cases[i].epoch);
        clock_free(c);
    }
}

/* Half a nanosecond is rounded up, on either side of zero. */
static void a_map_is_rounded(void **state)
{
    static const struct {
        int64_t x_ns;
        double fraction, y;
        int64_t after, is;
    } cases[] = {{7, 0.49, 0, 0, 7},      {7, 0.5, 0, 0, 8},           {-7, 0.5, 0, 0, -6},
                 {0, 0, 1e-3, 500, 501},  {0, 0, 1e-3, 499, 499},      {0, 0, -1e-3, 500, 500},
                 {0, 0, -1e-3, 501, 500}, {0, 0.25, -1e-3, 1000, 999}, {0, 0, 1e-3, -501, -502}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct clock_map map = {{1000}, cases[i].x_ns, cases[i].fraction, cases[i].y};
        assert_int_equal(clock_map_apply(&map, (struct nic_time){1000 + cases[i].after}).ns,
                         1000 + cases[i].is);
    }
}

/* ---- the bank of filters ---- */

static struct bank started(double p00, double p11)
{
    struct bank b;

    bank_init(&b, 0);
    bank_start(&b, p00, p11);
    return b;
}

/* One step of a filter, by the textbook (a clock with white noise of its rate). */
static void a_filter_predicts_by_the_book(void **state)
{
    struct bank b = started(100, 400);

    (void)state;
    b.x[2] = 5;
    b.y[2] = -3;
    b.p01[2] = 7;
    b.log_weight[2] = -2;
    const double q2 = b.wander[2] * b.wander[2];
    bank_predict(&b, 0.5, false);
    assert_float_equal(b.x[2], 3.5, 1e-12);
    assert_float_equal(b.y[2], -3, 0);
    assert_float_equal(b.p00[2], 100 + 0.5 * (2 * 7 + 0.5 * 400) + q2 * 0.125 / 3, 1e-9);
    assert_float_equal(b.p01[2], 7 + 0.5 * 400 + q2 * 0.125, 1e-9);
    assert_float_equal(b.p11[2], 400 + 0.5 * q2, 1e-9);
    assert_float_equal(b.log_weight[2], -2, 0);
    bank_predict(&b, 20, true); /* an old prediction has no effect after twenty seconds */
    assert_float_equal(b.log_weight[2], -2 * exp(-1), 1e-12);
}

static void a_filter_learns_by_the_book(void **state)
{
    for (int learn = 0; learn < 2; learn++) {
        struct bank b = started(100, 400);
        const double age = 0.1, r = 1e6; /* far above what the loop needs */
        b.x[1] = 5;
        b.y[1] = 2;
        b.p01[1] = 7;
        const double c0 = 100 - age * 7, c1 = 7 - age * 400, s = c0 - age * c1 + r;
        const double innovation = 50 - (5 - 2 * age);
        bank_update(&b, 50, r, age, learn == 1);
        assert_float_equal(b.x[1], 5 + c0 / s * innovation, 1e-12);
        assert_float_equal(b.y[1], 2 + c1 / s * innovation, 1e-12);
        assert_float_equal(b.p00[1], 100 - c0 * c0 / s, 1e-9);
        assert_float_equal(b.p01[1], 7 - c0 * c1 / s, 1e-9);
        assert_float_equal(b.p11[1], 400 - c1 * c1 / s, 1e-9);
        assert_float_equal(b.log_weight[1],
                           learn == 1 ? -0.5 * (innovation * innovation / s + log(s)) : 0, 1e-9);
    }
    /* a measurement that is far off counts as four sigma at most; and none counts as better than the loop's own noise */
    struct bank b = started(0, 0);
    bank_update(&b, 1e6, 1, 0, true);
    for (int k = 0; k < BANK_FILTERS; k++) {
        const double s = fmax(1, 0.11 * 0.11 * b.wander[k] * b.wander[k]);
        assert_float_equal(b.log_weight[k], -0.5 * (16 + log(s)), 1e-9);
    }
    (void)state;
}

/* The bank publishes the weighted mean. Its uncertainty is that of the filter with the largest wander among those that may be
 * right. */
static void a_bank_tells_its_mean(void **state)
{
    struct bank b = started(0, 0);
    double x, y, p00, p01, p11, q2;

    (void)state;
    for (int k = 0; k < BANK_FILTERS; k++) {
        b.log_weight[k] = -1000;
        b.x[k] = 10 * k;
        b.y[k] = -k;
        b.p00[k] = 100 + k;
        b.p01[k] = 200 + k;
        b.p11[k] = 300 + k;
    }
    b.log_weight[1] = -700;
    b.log_weight[3] = -700 + log(0.25);
    bank_mean(&b, &x, &y);
    assert_float_equal(x, (10 + 0.25 * 30) / 1.25, 1e-9);
    assert_float_equal(y, -(1 + 0.25 * 3) / 1.25, 1e-9);
    bank_variance(&b, &p00, &p01, &p11, &q2);
    assert_float_equal(p00, 103, 0);
    assert_float_equal(p01, 203, 0);
    assert_float_equal(p11, 303, 0);
    assert_float_equal(q2, b.wander[3] * b.wander[3], 0);
    assert_float_equal(bank_deviation_ns(&b), sqrt(103), 1e-12);
    assert_float_equal(bank_wander(&b), exp((log(b.wander[1]) + 0.25 * log(b.wander[3])) / 1.25),
                       1e-9);
    b.log_weight[3] = -700 + log(0.04); /* a twentieth at most */
    bank_variance(&b, &p00, &p01, &p11, &q2);
    assert_float_equal(p00, 101, 0);
    bank_forget(&b);
    assert_float_equal(b.log_weight[1], -350, 0);
    bank_shift(&b, 7, -5);
    assert_float_equal(b.x[1], 3, 0);
    assert_float_equal(b.y[1], 4, 0);
    bank_doubt(&b, 11, 13);
    assert_float_equal(b.p00[1], 112, 0);
    assert_float_equal(b.p11[1], 314, 0);
    bank_doubt_rate(&b, 315);
    assert_float_equal(b.p11[1], 315, 0);
    assert_float_equal(b.p11[5], 318, 0);
    bank_start(&b, 1, 2);
    assert_float_equal(b.x[5], 0, 0);
    assert_float_equal(b.p01[5], 0, 0);
    assert_float_equal(b.log_weight[5], 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_bounds_tell_a_rate),
        cmocka_unit_test(bounds_close_together_tell_nothing),
        cmocka_unit_test(the_tightest_of_a_second_is_kept),
        cmocka_unit_test(old_bounds_are_forgotten),
        cmocka_unit_test(bounds_that_contradict_each_other),
        cmocka_unit_test(a_rate_is_worked_out_once_a_second),
        cmocka_unit_test(a_clock_drifts_by_its_limit_and_then_by_its_drift),
        cmocka_unit_test(a_line_begins_at_its_map),
        cmocka_unit_test(a_line_meets_its_map),
        cmocka_unit_test(a_line_that_jumps_back_begins_an_epoch),
        cmocka_unit_test(a_map_is_rounded),
        cmocka_unit_test(a_filter_predicts_by_the_book),
        cmocka_unit_test(a_filter_learns_by_the_book),
        cmocka_unit_test(a_bank_tells_its_mean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
