/* The emulated clocks: pure, continuous, invertible, and with the stated wander. */
#include "base/prng.h"
#include "platform/oscillator/oscillator.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ORIGIN (5000 * NS_PER_S)

static struct oscillator_host *host_new(double freq_ppb, double wander_ppb, int64_t offset_ns)
{
    struct oscillator_host *h = calloc(1, sizeof(*h));
    assert_non_null(h);
    strcpy(h->name, "host0");
    h->origin_raw_ns = ORIGIN;
    h->nic_count = 2;
    for (int i = 0; i < 3; i++) {
        h->clock[i] = (struct oscillator_clock){.offset_ns = offset_ns * (i + 1),
                                                .freq_ppb = freq_ppb,
                                                .wander_ppb = wander_ppb,
                                                .seed = 7 + (uint64_t)i,
                                                .read_delay_ns = 800,
                                                .read_noise_ns = 50};
    }
    return h;
}

static void test_plain(void **state)
{
    struct oscillator_host *h = host_new(100000.0, 0.0, 7200 * NS_PER_S);
    assert_int_equal(oscillator_mono(h, ORIGIN).ns, ORIGIN + 7200 * NS_PER_S);
    assert_int_equal(oscillator_mono(h, ORIGIN + NS_PER_S).ns, ORIGIN + 7201 * NS_PER_S + 100000);
    assert_int_equal(oscillator_nic(h, 1, ORIGIN).ns, ORIGIN + 3 * 7200 * NS_PER_S);
    h->realtime_offset_ns = 11;
    assert_int_equal(oscillator_realtime_ns(h, ORIGIN), ORIGIN + 7200 * NS_PER_S + 11);
    free(h);
}

static void test_wander_is_continuous_and_monotone(void **state)
{
    struct oscillator_host *h = host_new(-50000.0, 150.0, 0);
    int64_t last = oscillator_mono(h, ORIGIN - 1000).ns;
    for (int i = 0; i < 200000; i++) {
        int64_t step = i % 1000 == 0 ? 1000003 : 1;
        static int64_t raw = ORIGIN;
        raw += step;
        int64_t now = oscillator_mono(h, raw).ns;
        assert_true(now >= last);
        if (i > 0) {
            assert_true(now - last <= step + step / 10000 + 1);
        }
        last = now;
    }
    free(h);
}

/* Var[f(t+τ) − f(t)] = wander²·τ, within a third. */
static void test_wander_size(void **state)
{
    static const double interval_s[] = {1, 3, 10, 30, 100, 300};
    for (size_t k = 0; k < ARRAY_COUNT(interval_s); k++) {
        double sum = 0.0;
        int count = 0;
        struct oscillator_host *h = host_new(0.0, 10.0, 0);
        for (uint64_t seed = 0; seed < 400; seed++) {
            h->clock[0].seed = hash_u64(99, seed);
            for (int j = 0; j < 3; j++) {
                int64_t a = ORIGIN + (int64_t)(j * 5000 + 17) * NS_PER_S;
                int64_t b = a + (int64_t)(interval_s[k] * 1e9);
                int64_t d = NS_PER_S / 10;
                double fa =
                    (double)(oscillator_mono(h, a + d).ns - oscillator_mono(h, a).ns - d) / 0.1;
                double fb =
                    (double)(oscillator_mono(h, b + d).ns - oscillator_mono(h, b).ns - d) / 0.1;
                sum += (fb - fa) * (fb - fa);
                count++;
            }
        }
        double measured = sqrt(sum / count / interval_s[k]);
        if (measured < 7.5 || measured > 13.3) {
            fail_msg("over %g s: %g ppb/√s", interval_s[k], measured);
        }
        free(h);
    }
}

static void test_events(void **state)
{
    struct oscillator_host *h = host_new(0.0, 0.0, 0);
    int64_t t = ORIGIN + 10 * NS_PER_S;
    assert_int_equal(
        oscillator_append(h, &(struct oscillator_event){.effect_raw_ns = t, .step_ns = 1000000}),
        0);
    assert_int_equal(oscillator_mono(h, t - 1).ns, t - 1);
    assert_int_equal(oscillator_mono(h, t).ns, t + 1000000);
    assert_int_equal(oscillator_nic(h, 0, t).ns, t);
    t += NS_PER_S;
    assert_int_equal(
        oscillator_append(h, &(struct oscillator_event){.effect_raw_ns = t, .freq_ppb = 50000.0}),
        0);
    assert_int_equal(oscillator_mono(h, t + NS_PER_S).ns, t + NS_PER_S + 1000000 + 50000);
    /* A ramp on the NIC's clock there: 100 ppb over 10 s, then held. */
    assert_int_equal(oscillator_append(h, &(struct oscillator_event){.effect_raw_ns = t,
                                                                     .freq_ppb = 100.0,
                                                                     .ramp_ns = 10 * NS_PER_S,
                                                                     .clock = 2}),
                     0);
    assert_int_equal(oscillator_nic(h, 1, t + 10 * NS_PER_S).ns, t + 10 * NS_PER_S + 500);
    assert_int_equal(oscillator_nic(h, 1, t + 20 * NS_PER_S).ns, t + 20 * NS_PER_S + 1500);
    assert_int_equal(oscillator_append(h, &(struct oscillator_event){.clock = 3}), -EINVAL);
    while (h->event_count < OSCILLATOR_EVENT_MAX) {
        assert_int_equal(
            oscillator_append(h, &(struct oscillator_event){.effect_raw_ns = INT64_MAX}), 0);
    }
    assert_int_equal(oscillator_append(h, &(struct oscillator_event){0}), -ENOSPC);
    free(h);
}

static void test_suspend(void **state)
{
    struct oscillator_host *h = host_new(0.0, 0.0, 0);
    int64_t t = ORIGIN + NS_PER_S;
    assert_int_equal(oscillator_append(h, &(struct oscillator_event){.effect_raw_ns = t,
                                                                     .suspend_ns = 2 * NS_PER_S}),
                     0);
    assert_int_equal(oscillator_mono(h, t + NS_PER_S).ns, t);
    assert_int_equal(oscillator_mono(h, t + 3 * NS_PER_S).ns, t + NS_PER_S);
    assert_int_equal(oscillator_suspended_ns(h, t + NS_PER_S), NS_PER_S);
    assert_int_equal(oscillator_suspended_ns(h, t + 3 * NS_PER_S), 2 * NS_PER_S);
    free(h);
}

static void test_inverse(void **state)
{
    struct oscillator_host *h = host_new(-99000.0, 100.0, -3 * 3600 * NS_PER_S);
    struct prng p;
    prng_init(&p, 4);
    for (int i = 0; i < 2000; i++) {
        int64_t raw = ORIGIN + (int64_t)prng_below(&p, 100000ULL * (uint64_t)NS_PER_S);
        int64_t back = oscillator_raw_of_mono(h, oscillator_mono(h, raw));
        assert_in_range(back - raw + 2, 0, 4);
        back = oscillator_raw_of_nic(h, 1, oscillator_nic(h, 1, raw));
        assert_in_range(back - raw + 2, 0, 4);
    }
    free(h);
}

static void test_read(void **state)
{
    struct oscillator_host *h = host_new(0.0, 0.0, 0);
    double asymmetry = 0.0;
    for (uint64_t i = 0; i < 10000; i++) {
        int64_t latch;
        int64_t done;
        oscillator_read(h, 0, ORIGIN, i, &latch, &done);
        assert_true(latch >= ORIGIN + 400 && done >= latch + 400);
        asymmetry += (double)(latch - ORIGIN - (done - latch)) / 10000.0;
        int64_t error_ns = oscillator_conversion_error_ns(h, i, 30);
        assert_true(error_ns >= -30 && error_ns <= 30);
    }
    assert_true(fabs(asymmetry) < 3.0);
    free(h);
}

static void test_file(void **state)
{
    char file[] = "/tmp/test_oscillator.XXXXXX";
    int fd = mkstemp(file);
    assert_true(fd >= 0);
    struct oscillator w;
    struct oscillator r;
    char spec[64];
    snprintf(spec, sizeof(spec), "%s:host1", file);
    assert_int_equal(oscillator_open(spec, &r), -EPROTO);
    assert_int_equal(oscillator_create(file, 2, &w), 0);
    strcpy(w.page->host[0].name, "host0");
    strcpy(w.page->host[1].name, "host1");
    w.page->host[1].clock[0].offset_ns = 42;
    assert_int_equal(oscillator_open(spec, &r), 0);
    assert_int_equal(oscillator_mono(r.host, 1000).ns, 1042);
    assert_int_equal(oscillator_append(&w.page->host[1], &(struct oscillator_event){.step_ns = 1}),
                     0);
    assert_int_equal(oscillator_mono(r.host, 1000).ns, 1043);
    oscillator_close(&r);
    snprintf(spec, sizeof(spec), "%s:host2", file);
    assert_int_equal(oscillator_open(spec, &r), -ENOENT);
    assert_int_equal(oscillator_open(file, &r), -EINVAL);
    unsetenv(OSCILLATOR_ENV);
    assert_int_equal(oscillator_open_env(&r), -ENODATA);
    w.page->host[0].nic_count = HOST_NIC_MAX + 1;
    assert_int_equal(oscillator_open_write(file, &r), -EPROTO);
    oscillator_close(&w);
    close(fd);
    unlink(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_wander_is_continuous_and_monotone),
        cmocka_unit_test(test_wander_size),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_suspend),
        cmocka_unit_test(test_inverse),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
