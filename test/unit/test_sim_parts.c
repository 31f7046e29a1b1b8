/* The parts of the simulated world alone: order of events, oscillators, queues, counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs those first */
#include <cmocka.h>

#include "base/prng.h"
#include "base/time.h"
#include "sim/agenda.h"
#include "sim/crystal.h"
#include "sim/port.h"
#include "sim/tally.h"

#include <math.h>

static void events_come_by_time_then_by_entry(void **state)
{
    (void)state;
    struct agenda a;
    struct prng p;
    struct agenda_item item, last = {.at = INT64_MIN};

    agenda_init(&a);
    prng_init(&p, 1);
    for (uint32_t i = 0; i < 5000; i++) {
        agenda_add(&a, (int64_t)prng_below(&p, 500), 0, i);
    }
    for (int i = 0; i < 5000; i++) {
        assert_true(agenda_next(&a, &item));
        assert_true(item.at > last.at || (item.at == last.at && item.order > last.order));
        last = item;
    }
    assert_false(agenda_next(&a, &item));
    agenda_done(&a);
}

static void an_oscillator_runs_at_its_rate(void **state)
{
    (void)state;
    struct crystal c;
    const struct crystal_config config = {.seed = 3, .offset_ns = 5000, .ppm = 50};

    crystal_init(&c, &config);
    const int64_t reading = crystal_read(&c, 100 * NS_PER_S, NULL);
    assert_in_range(reading, 5000 + 100 * NS_PER_S + 5000000 - 2,
                    5000 + 100 * NS_PER_S + 5000000 + 2);
    crystal_done(&c);
}

static void an_oscillator_does_not_depend_on_who_reads_it(void **state)
{
    (void)state;
    const struct crystal_config config = {.seed = 9,
                                          .ppm = -20,
                                          .wander = 100,
                                          .ramp_ppb_s = 10,
                                          .ramp_for_ns = NS_PER_S,
                                          .ramp_every_ns = 4 * NS_PER_S};
    struct crystal often, seldom;

    crystal_init(&often, &config);
    crystal_init(&seldom, &config);
    for (int64_t t = 0; t < 10 * NS_PER_S; t += 777777) {
        crystal_read(&often, t, NULL);
    }
    double f = 0, g = 0;
    const int64_t a = crystal_read(&often, 10 * NS_PER_S, &f);
    const int64_t b = crystal_read(&seldom, 10 * NS_PER_S, &g);
    assert_int_equal(a, b);
    assert_true(f == g);
    /* and a little earlier it is the same as before */
    assert_true(crystal_read(&often, 10 * NS_PER_S - 30 * NS_PER_MS, NULL) ==
                crystal_read(&seldom, 10 * NS_PER_S - 30 * NS_PER_MS, NULL));
    crystal_done(&often);
    crystal_done(&seldom);
}

static void wander_grows_as_a_random_walk(void **state)
{
    (void)state;
    double sum = 0;
    const int count = 400;

    for (int i = 0; i < count; i++) {
        const struct crystal_config config = {.seed = hash_u64(5, (uint64_t)i), .wander = 10};
        struct crystal c;
        crystal_init(&c, &config);
        crystal_read(&c, 100 * NS_PER_S, NULL);
        sum += crystal_rate(&c) * crystal_rate(&c);
        crystal_done(&c);
    }
    /* 10 ppb per root second, after 100 s: 100 ppb */
    const double rms = sqrt(sum / count) * 1e9;
    assert_true(rms > 88 && rms < 112);
}

static void steps_jumps_and_sleep_change_the_reading(void **state)
{
    (void)state;
    const struct crystal_config config = {.seed = 1};
    struct crystal c;

    crystal_init(&c, &config);
    crystal_add(&c, &(struct crystal_change){.at = NS_PER_S, .kind = CRYSTAL_STEP, .amount = 1e6});
    crystal_add(&c,
                &(struct crystal_change){.at = 2 * NS_PER_S, .kind = CRYSTAL_RATE, .amount = 50});
    crystal_add(&c, &(struct crystal_change){.at = 3 * NS_PER_S, .kind = CRYSTAL_STOP});
    crystal_add(&c, &(struct crystal_change){.at = 4 * NS_PER_S, .kind = CRYSTAL_GO});
    assert_int_equal(crystal_read(&c, NS_PER_S - 1, NULL), NS_PER_S - 1);
    assert_int_equal(crystal_read(&c, NS_PER_S, NULL), NS_PER_S + 1000000);
    const int64_t stopped = crystal_read(&c, 3 * NS_PER_S, NULL);
    assert_in_range(stopped, 3 * NS_PER_S + 1050000 - 2, 3 * NS_PER_S + 1050000 + 2);
    assert_in_range(crystal_read(&c, 4 * NS_PER_S, NULL), stopped - 1, stopped + 1);
    assert_in_range(crystal_read(&c, 5 * NS_PER_S, NULL), stopped + NS_PER_S + 49000,
                    stopped + NS_PER_S + 51000);
    crystal_done(&c);
}

static void an_idle_port_only_serialises(void **state)
{
    (void)state;
    struct port p;

    port_init(&p, 1, 1000, 1e6, 1538, true); /* 1 Gbit/s: 8 ns a byte */
    assert_true(fabs(port_pass(&p, 1000, 200, false) - 2600) < 1e-6);
    /* the next one arrives while the first is being sent */
    assert_true(fabs(port_pass(&p, 1100, 200, false) - 4200) < 1e-6);
}

static void a_burst_queues_and_drains(void **state)
{
    (void)state;
    struct port p;

    port_init(&p, 1, 100000, 1e9, 4162, true); /* 12.5 bytes per ns */
    port_add(&p, 0, 0.5, 8 << 20, 800000);     /* 8 MiB at eight times the rate: 84 us */
    p.streams[0].next = 1000;
    p.streams[0].gap_ns = 1e12;
    assert_true(port_queue(&p, 999) == 0);
    const double peak = port_queue(&p, 1000 + 8388608 / 100.0);
    assert_true(fabs(peak - 8388608 * 7.0 / 8) < 8388608 * 0.001);
    assert_true(port_pass(&p, 1000 + 8388608 / 100.0 + 1, 226, false) > 1000 + 8388608 / 12.5 - 10);
    assert_true(port_queue(&p, 1000 + 8388608 / 12.5 + 100) == 0);
}

static void a_probe_of_its_own_class_waits_for_one_frame_at_most(void **state)
{
    (void)state;
    struct port p;

    port_init(&p, 1, 100000, 1e9, 4162, true);
    p.standing = 100000;
    for (int i = 0; i < 100; i++) {
        const double at = 1e6 * (i + 1);
        const double left = port_pass(&p, at, 226, true);
        assert_true(left >= at + 226 / 12.5 - 1e-6 && left <= at + (4162 + 226) / 12.5 + 1e-6);
    }
    assert_true(port_pass(&p, 2e8, 226, false) >= 2e8 + 8000);
}

/* A packet of the jobs' class is behind 8 us of their frames. Packets of the probes' class that come meanwhile overtake it, and
 * wait for each other only. */
static void a_probe_of_its_own_class_overtakes(void **state)
{
    (void)state;
    struct port p;

    port_init(&p, 1, 100000, 1e9, 4162, true);
    p.standing = 100000;
    for (int i = 0; i < 100; i++) {
        const double at = 1e6 * (i + 1);
        assert_true(port_pass(&p, at, 226, false) >= at + 8000);
        const double first = port_pass(&p, at, 226, true);
        const double second = port_pass(&p, at, 226, true);
        assert_true(first <= at + (4162 + 226) / 12.5 + 1e-6);
        assert_true(second >= first + 226 / 12.5 - 1e-6 && second <= first + (4162 + 226) / 12.5);
    }
}

static void load_is_what_was_asked_for(void **state)
{
    (void)state;
    struct port p;
    int busy = 0;
    const int count = 100000;

    port_init(&p, 7, 100000, 1e9, 4162, true);
    port_add(&p, 0, 0.6, 65536, 100000);
    for (int i = 0; i < count; i++) {
        const double queue = port_queue(&p, 1e6 + i * 1000.0);
        busy += queue > 0 || p.inflow > 0;
    }
    const double share = (double)busy / count;
    assert_true(share > 0.57 && share < 0.63);
}

static void quantiles_are_near_the_truth(void **state)
{
    (void)state;
    struct tally *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    assert_true(isnan(tally_quantile(t, 0.5)));
    for (int i = 1; i <= 100000; i++) {
        tally_add(t, i);
    }
    assert_true(fabs(tally_quantile(t, 0.01) - 1000) < 2);
    assert_true(fabs(tally_quantile(t, 0.99) / 99000 - 1) < 0.02);
    assert_true(fabs(tally_quantile(t, 1) - 100000) < 1e-6);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_by_time_then_by_entry),
        cmocka_unit_test(an_oscillator_runs_at_its_rate),
        cmocka_unit_test(an_oscillator_does_not_depend_on_who_reads_it),
        cmocka_unit_test(wander_grows_as_a_random_walk),
        cmocka_unit_test(steps_jumps_and_sleep_change_the_reading),
        cmocka_unit_test(an_idle_port_only_serialises),
        cmocka_unit_test(a_burst_queues_and_drains),
        cmocka_unit_test(a_probe_of_its_own_class_waits_for_one_frame_at_most),
        cmocka_unit_test(a_probe_of_its_own_class_overtakes),
        cmocka_unit_test(load_is_what_was_asked_for),
        cmocka_unit_test(quantiles_are_near_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
