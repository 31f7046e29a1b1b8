/* The host's clock as a leaf of its NICs' clocks: brackets that change, suspends; and rates from stamps alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/clock/drift.h"
#include "core/clock/host_leaf.h"

/* Fleet time is exactly the NIC's clock: any error of the host is the leaf's. */
static void read_nic(struct host_leaf *leaf, int64_t host, int64_t there, int64_t back, double ppm,
                     int64_t ahead)
{
    const int64_t at = host + there;
    const struct host_leaf_bracket b = {
        {host}, {at + ahead + (int64_t)floor(ppm * 1e-6 * (double)at)}, {at + back}};
    const struct clock_terms terms = {.status = CLOCK_SYNCED,
                                      .h_ns = 0,
                                      .rate_limit = 2e-6,
                                      .rate_drift = 100e-9,
                                      .line = {b.nic, 0, 0, 0, 0, b.nic}};

    host_leaf_on_bracket(leaf, b.after, 0, &b);
    host_leaf_on_terms(leaf, b.after, 0, &terms);
    host_leaf_tick(leaf, (struct mono){b.after.ns + 1000});
}

/* True if the host's error at host time `at` is beyond its bound. *ret_worst keeps the largest error. */
static bool outside(const struct host_leaf *leaf, int64_t at, double ppm, double *ret_worst)
{
    const double truth = (double)at * ppm * 1e-6;
    struct clock_terms t;

    assert_true(host_leaf_terms(leaf, &t));
    const struct clock_reading r = clock_terms_read(&t, (struct nic_time){at});
    const double off = (double)(r.time.ns - at) - truth;
    *ret_worst = fmax(*ret_worst, fabs(off));
    return r.hard_ns < fabs(off) - 2;
}

/* Completions over PCIe take longer and longer in one direction: 150 ns at first, 2,500 in the end. */
static void brackets_that_grow_stay_within_the_bound(void **state)
{
    static const double rates[] = {0, 40, -40}; /* ppm */

    (void)state;
    for (int kind = 0; kind < 9; kind++) {
        const double ppm = rates[kind % 3], over_s = kind / 3 == 0 ? 0.1 : kind / 3 == 1 ? 3 : 30;
        struct host_leaf leaf;
        struct prng p;
        double worst = 0;
        int judged = 0, bad = 0;
        prng_init(&p, 5);
        host_leaf_init(&leaf, 2, 100);
        for (int tick = 0; tick < 600; tick++) {
            const int64_t host = 10 * NS_PER_S + tick * 100 * NS_PER_MS;
            const double grown = fmin(1, fmax(0, (tick * 0.1 - 15) / over_s));
            const int64_t there = 75 + (int64_t)prng_below(&p, 20);
            const int64_t back =
                75 + (int64_t)(2350 * grown * (kind % 2 == 0 ? 1 : prng_uniform(&p)));
            read_nic(&leaf, host, there, back, ppm, 0);
            for (int64_t at = host + 5 * NS_PER_MS; at < host + 100 * NS_PER_MS && tick > 10;
                 at += 10 * NS_PER_MS) {
                bad += outside(&leaf, at, ppm, &worst);
                judged++;
            }
        }
        print_message("%+.0f ppm, over %.1f s: %d of %d outside, off by %.0f ns\n", ppm, over_s,
                      bad, judged, worst);
        assert_int_equal(bad, 0);
        assert_true(worst > 300); /* or nothing was tried */
    }
}

static double off_by(const struct host_leaf *leaf, int64_t at, int64_t nic)
{
    struct clock_terms t;

    assert_true(host_leaf_terms(leaf, &t));
    return fabs((double)(clock_terms_read(&t, (struct nic_time){at}).time.ns - nic));
}

static void read_nics(struct host_leaf *leaf, int64_t host, const int64_t nic_minus[], int count)
{
    for (int i = 0; i < count; i++) {
        const struct host_leaf_bracket b = {
            {host}, {host + 500 + nic_minus[i]}, {host + 1000}}; /* 1 us wide */
        (void)host_leaf_on_bracket(leaf, (struct mono){host + 1000}, i, &b);
    }
}

/* One NIC of a host runs 15 ppm fast from 20 s on: its brackets show that it broke, once, within a second. If all NICs do so, it
 * is the host's own clock. With a single NIC it can't be known. */
static void brackets_show_whose_clock_broke(void **state)
{
    static const struct {
        int nics, breaking;
        bool told;
    } cases[] = {{1, 0, false}, {1, 1, true}, {3, 0, false},
                 {3, 1, true},  {3, 2, true}, {3, 3, false}};

    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(cases); k++) {
        int told[3] = {0};
        struct host_leaf leaf;
        int64_t first = INT64_MAX;

        host_leaf_init(&leaf, 2, 100);
        for (int tick = 0; tick < 400; tick++) {
            const int64_t host = 10 * NS_PER_S + tick * 100 * NS_PER_MS;
            const int64_t gained = tick > 200 ? (int64_t)(15e-6 * (tick - 200) * 1e8) : 0;
            int64_t nic_minus[3];
            for (int i = 0; i < cases[k].nics; i++) {
                nic_minus[i] = 5 * NS_PER_S + (i < cases[k].breaking ? gained : 0);
            }
            read_nics(&leaf, host, nic_minus, cases[k].nics);
            for (int i = 0; i < cases[k].nics; i++) {
                if (host_leaf_nic_broke(&leaf, (struct mono){host + 2000}, i)) {
                    told[i]++;
                    first = host < first ? host : first;
                }
            }
        }
        for (int i = 0; i < 3; i++) {
            assert_int_equal(told[i], cases[k].told && i < cases[k].breaking);
        }
        assert_true(!cases[k].told || first - 30 * NS_PER_S < NS_PER_S);
    }
}

/* A NIC's clock stands still, as after a reset of its firmware, or continues at another time: brackets show it within a
 * second. */
static void a_nics_clock_that_stands_still_or_jumps_is_told(void **state)
{
    (void)state;
    for (int jumps = 0; jumps <= 1; jumps++) {
        struct host_leaf leaf;
        int64_t first = INT64_MAX;

        host_leaf_init(&leaf, 2, 100);
        for (int tick = 0; tick < 400; tick++) {
            const int64_t host = 10 * NS_PER_S + tick * 100 * NS_PER_MS;
            const int64_t since = tick > 200 ? (tick - 200) * 100 * NS_PER_MS : 0;
            const int64_t off = jumps == 0 ? -since : since > 0 ? -7 * NS_PER_S : 0;
            read_nics(&leaf, host, (int64_t[]){5 * NS_PER_S + off, 6 * NS_PER_S}, 2);
            if (host_leaf_nic_broke(&leaf, (struct mono){host + 2000}, 0)) {
                first = host < first ? host : first;
            }
            assert_false(host_leaf_nic_broke(&leaf, (struct mono){host + 2000}, 1));
        }
        assert_in_range(first, 30 * NS_PER_S, 31 * NS_PER_S);
    }
}

/* A NIC gains 0.1 ppm each second: between two reads the host goes on at the present rate, not at that of the last 16 s. */
static void the_rate_between_two_reads_is_the_rate_of_now(void **state)
{
    struct host_leaf leaf;
    double worst = 0;

    (void)state;
    host_leaf_init(&leaf, 2, 100);
    for (int tick = 0; tick < 300; tick++) {
        const int64_t host = 10 * NS_PER_S + tick * 100 * NS_PER_MS;
        const double s = tick * 0.1, later = s + 0.099;
        read_nic(&leaf, host, 50, 50, 0, (int64_t)(0.5 * 100 * s * s));
        if (tick > 100) {
            const int64_t gained = (int64_t)(0.5 * 100 * later * later);
            worst =
                fmax(worst, off_by(&leaf, host + 99 * NS_PER_MS, host + 99 * NS_PER_MS + gained));
        }
    }
    print_message("a rate that grows: off by %.0f ns at most\n", worst);
    assert_true(worst < 15);
}

/* Every other read takes 2 us longer in one direction: its middle is off by one, and its width shows that. */
static void narrow_brackets_tell_more_than_wide_ones(void **state)
{
    struct host_leaf leaf;
    double worst = 0;

    (void)state;
    host_leaf_init(&leaf, 2, 100);
    for (int tick = 0; tick < 300; tick++) {
        const int64_t host = 10 * NS_PER_S + tick * 100 * NS_PER_MS;
        read_nic(&leaf, host, 50, tick % 2 == 0 ? 50 : 2050, 0, 0);
        if (tick > 100) {
            worst = fmax(worst, off_by(&leaf, host + 99 * NS_PER_MS, host + 99 * NS_PER_MS));
        }
    }
    print_message("every other read 2 us longer: off by %.0f ns at most\n", worst);
    assert_true(worst < 150);
}

/* Completions that are late now and then: the filter follows some of them to a rate that is off by some ppm. */
static void reads_in_bursts_stay_within_the_bound(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct host_leaf leaf;
        struct prng p;
        double worst = 0;
        int bad = 0;
        prng_init(&p, seed);
        host_leaf_init(&leaf, 2, 100);
        for (int tick = 0; tick < 6000; tick++) {
            const int64_t host = 10 * NS_PER_S + tick * 100 * NS_PER_MS;
            const double late = tick % 28 < 8 ? 1400 * prng_exponential(&p) : 0;
            const int64_t there = 140 + (int64_t)prng_below(&p, 20);
            read_nic(&leaf, host, there, there + (int64_t)late, 70, 0);
            for (int64_t at = host + 49 * NS_PER_MS; at < host + 100 * NS_PER_MS && tick > 20;
                 at += 25 * NS_PER_MS) {
                bad += outside(&leaf, at, 70, &worst);
            }
        }
        print_message("seed %d: off by %.0f ns, %d outside\n", (int)seed, worst, bad);
        assert_int_equal(bad, 0);
        assert_true(worst > 100);
    }
}

/* The host's clock stood still for a while, its NICs' clocks did not. */
static void a_host_that_slept_jumps_and_says_so(void **state)
{
    static const int64_t slept[] = {100 * NS_PER_US, 900 * NS_PER_US, 5 * NS_PER_MS, 5 * NS_PER_S};

    (void)state;
    for (size_t i = 0; i < sizeof(slept) / sizeof(slept[0]); i++) {
        struct host_leaf leaf;
        struct clock_terms before, t;
        int late = 0;
        host_leaf_init(&leaf, 2, 100);
        for (int tick = 0; tick < 100; tick++) {
            read_nic(&leaf, 10 * NS_PER_S + tick * 100 * NS_PER_MS, 75, 75, 0, 0);
        }
        assert_true(host_leaf_terms(&leaf, &before));
        for (int tick = 100; tick < 200; tick++) {
            const int64_t host = 10 * NS_PER_S + tick * 100 * NS_PER_MS;
            read_nic(&leaf, host, 75, 75, 0, slept[i]);
            assert_true(host_leaf_terms(&leaf, &t));
            const struct clock_reading r =
                clock_terms_read(&t, (struct nic_time){host + 50 * NS_PER_MS});
            const double off = (double)(r.time.ns - host - 50 * NS_PER_MS - slept[i]);
            late += r.status == CLOCK_SYNCED && r.hard_ns < fabs(off) - 2;
            assert_true(tick < 160 || fabs(off) < 10);
        }
        assert_int_equal(late, 0);
        assert_int_equal(t.epoch, before.epoch + (slept[i] > NS_PER_MS));
        assert_int_equal(t.status, CLOCK_SYNCED);
    }
}

/* Stamps of two clocks 30 ppm apart, through queues: the rate lies within the found bounds, whatever waits. */
static void a_rate_lies_between_its_bounds(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct drift d;
        struct prng p;
        prng_init(&p, seed);
        drift_init(&d);
        for (int i = 0; i < 2000; i++) {
            const int64_t at = 100 * NS_PER_S + i * 10 * NS_PER_MS;
            const double phi = 30e-6 * (double)at;
            const double queue = 5000 + 60000 * prng_exponential(&p);
            const bool up = prng_uniform(&p) < 0.5;
            drift_add(&d, at, (int64_t)(up ? ceil(phi + queue) : floor(phi - queue)), up);
            assert_true(drift_judge(&d, at, 0));
            assert_true(d.low <= 30e-6 && d.high >= 30e-6);
        }
        assert_true(d.high - d.low < 8e-6);
        /* a step of 10 ms contradicts all earlier stamps */
        bool held = true;
        for (int i = 2000; i < 2400; i++) {
            const int64_t at = 100 * NS_PER_S + i * 10 * NS_PER_MS;
            const double phi = 30e-6 * (double)at + 10e6;
            drift_add(&d, at, (int64_t)(phi + (i % 2 == 0 ? 5000 : -5000)), i % 2 == 0);
            held = drift_judge(&d, at, 0) && held;
        }
        assert_false(held);
        assert_true(d.low <= 30e-6 && d.high >= 30e-6);
    }
}

/* One NIC was read just now. Its clock is equal to the host's, and its line is off by `x_ns`. */
static void nic_says(struct host_leaf *leaf, int nic, struct mono at, int64_t x_ns,
                     enum clock_status status, double shift_ns)
{
    const struct host_leaf_bracket b = {{at.ns - 100}, {at.ns}, {at.ns + 100}};
    const struct clock_terms terms = {.status = status,
                                      .h_ns = 1000,
                                      .shift_ns = shift_ns,
                                      .line = {{at.ns}, x_ns, 0, 0, 0, {at.ns}}};

    host_leaf_on_bracket(leaf, at, nic, &b);
    host_leaf_on_terms(leaf, at, nic, &terms);
}

/* The middle NIC of those in step counts. If none is in step, the middle of the others does. If there is none at all, that is
 * reported. */
static void the_middle_of_those_in_step_counts(void **state)
{
    static const struct {
        int64_t x_ns[4];
        enum clock_status status[4];
        int count;
        int64_t expected_ns;
        enum clock_status is;
    } cases[] = {
        {{900, -100, 0, 5000},
         {CLOCK_SYNCED, CLOCK_SYNCED, CLOCK_SYNCED, CLOCK_HOLDOVER},
         4,
         0,
         CLOCK_SYNCED},
        {{700, 5000, 4000, 6000},
         {CLOCK_SYNCED, CLOCK_HOLDOVER, CLOCK_HOLDOVER, CLOCK_HOLDOVER},
         4,
         700,
         CLOCK_SYNCED},
        {{300, 100, 0, 0}, {CLOCK_HOLDOVER, CLOCK_HOLDOVER}, 2, 100, CLOCK_HOLDOVER},
        {{300, 100, 200, 0},
         {CLOCK_HOLDOVER, CLOCK_HOLDOVER, CLOCK_HOLDOVER},
         3,
         200,
         CLOCK_HOLDOVER},
        {{900, 500, 700, 0}, {CLOCK_SYNCED, CLOCK_SYNCED, CLOCK_SYNCED}, 3, 700, CLOCK_SYNCED},
        {{900, 800, 500, 400},
         {CLOCK_SYNCED, CLOCK_SYNCED, CLOCK_SYNCED, CLOCK_SYNCED},
         4,
         500,
         CLOCK_SYNCED},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct mono at = {10 * NS_PER_S};
        struct host_leaf leaf;
        struct clock_terms t;
        host_leaf_init(&leaf, 2, 100);
        host_leaf_tick(&leaf, at);
        assert_false(host_leaf_terms(&leaf, &t));
        assert_int_equal(t.status, CLOCK_UNKNOWN);
        for (int nic = 0; nic < cases[i].count; nic++) {
            nic_says(&leaf, nic, at, cases[i].x_ns[nic], cases[i].status[nic], 0);
        }
        host_leaf_tick(&leaf, at);
        assert_true(host_leaf_terms(&leaf, &t));
        assert_int_equal(t.status, cases[i].is);
        assert_in_range(t.line.x_ns - cases[i].expected_ns + 2, 0, 4);
    }
}

/* While a NIC's line still has to slew, the likely bound is wider, never narrower. */
static void a_line_that_is_slewed_is_less_sure(void **state)
{
    double spread2_ns[2];

    for (int slewed = 0; slewed < 2; slewed++) {
        const struct mono at = {10 * NS_PER_S};
        struct host_leaf leaf;
        struct clock_terms t;
        host_leaf_init(&leaf, 2, 100);
        nic_says(&leaf, 0, at, 0, CLOCK_SYNCED, slewed ? 600 : 0);
        host_leaf_tick(&leaf, at);
        assert_true(host_leaf_terms(&leaf, &t));
        spread2_ns[slewed] = t.spread2_ns;
    }
    assert_true(fabs(spread2_ns[1] - spread2_ns[0] - 100 * 100) < 1);
}

/* A host that has just taken over its only NIC's line. */
static void leaf_of_one_nic(struct host_leaf *leaf, struct mono at, const struct clock_terms *terms)
{
    const struct host_leaf_bracket b = {{at.ns}, {at.ns}, {at.ns}};

    host_leaf_init(leaf, 2, 100);
    host_leaf_on_bracket(leaf, at, 0, &b);
    host_leaf_on_terms(leaf, at, 0, terms);
    host_leaf_tick(leaf, at);
}

/* The host's line goes to that of its NIC at 2 ppm, or faster to be there within a tick. */
static void a_host_meets_its_nic_within_milliseconds(void **state)
{
    static const struct {
        int64_t ns;
        double ms;
    } cases[] = {{10, 5}, {-10, 5}, {80, 40}, {-100, 50}, {2000, 50}, {-20000, 50}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct mono at = {10 * NS_PER_S}, next = {at.ns + CLOCK_TICK_NS};
        struct clock_terms terms = {.status = CLOCK_SYNCED,
                                    .line = {.r = {at.ns}, .until = {at.ns}}};
        struct host_leaf leaf;
        struct clock_terms t;
        leaf_of_one_nic(&leaf, at, &terms);
        terms.line.x_ns += cases[i].ns;
        host_leaf_on_terms(&leaf, next, 0, &terms);
        host_leaf_tick(&leaf, next);
        assert_true(host_leaf_terms(&leaf, &t));
        for (int part = 0; part <= 3; part++) {
            const int64_t c = next.ns + (int64_t)(cases[i].ms * 1e6 * part / 2);
            const int64_t shown = clock_terms_read(&t, (struct nic_time){c}).time.ns - c;
            const double share = part > 2 ? 1 : part / 2.0;
            assert_true(fabs((double)shown - share * (double)cases[i].ns) <= 1.5);
        }
    }
}

/* A NIC's line that is slewed for a part of a tick leads its host to where it will be at the tick's end. */
static void a_line_that_is_slewed_a_little_is_met(void **state)
{
    static const struct {
        int64_t for_ns;
        double slew;
    } cases[] = {{1500 * NS_PER_US, 2e-6},
                 {10 * NS_PER_MS, -100e-6},
                 {CLOCK_TICK_NS, 100e-6},
                 {3 * CLOCK_TICK_NS, 500e-6}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct mono at = {10 * NS_PER_S};
        const int64_t until = at.ns + cases[i].for_ns;
        const struct clock_terms terms = {.status = CLOCK_SYNCED,
                                          .line = {{at.ns}, 0, 0, 0, cases[i].slew, {until}}};
        struct host_leaf leaf;
        struct clock_terms t;
        leaf_of_one_nic(&leaf, at, &terms);
        assert_true(host_leaf_terms(&leaf, &t));
        const double bracket = t.h_ns - clock_terms_read(&terms, (struct nic_time){at.ns}).hard_ns;
        for (int64_t ns = 0; ns <= CLOCK_TICK_NS; ns += CLOCK_TICK_NS / 100) {
            const double is = cases[i].slew * (double)(ns < cases[i].for_ns ? ns : cases[i].for_ns);
            const double off =
                (double)(clock_terms_read(&t, (struct nic_time){at.ns + ns}).time.ns - at.ns - ns) -
                is;
            assert_true(fabs(off) <= bracket + 1);
            assert_true(ns < CLOCK_TICK_NS || fabs(off) <= 1);
        }
    }
}

/* The host's clock goes back by three seconds. Its earlier line belongs to other times: a new epoch begins, and it is marked
 * until the new line is met. */
static void a_host_whose_clock_goes_back_says_so(void **state)
{
    struct host_leaf leaf;
    struct clock_terms t;
    const int64_t step = -3 * NS_PER_S;

    host_leaf_init(&leaf, 2, 100);
    for (int tick = 0; tick < 30; tick++) {
        read_nic(&leaf, 10 * NS_PER_S + tick * CLOCK_TICK_NS, 300, 600, 0, 0);
    }
    assert_true(host_leaf_terms(&leaf, &t) && t.status == CLOCK_SYNCED);
    const uint32_t before = t.epoch;
    for (int tick = 0; tick < 30; tick++) {
        read_nic(&leaf, 12 * NS_PER_S + step + tick * CLOCK_TICK_NS, 300, 600, 0, -step);
        assert_true(host_leaf_terms(&leaf, &t) && t.epoch == before + 1);
        if (tick * CLOCK_TICK_NS < 250 * NS_PER_MS) {
            assert_int_equal(t.status, CLOCK_DISRUPTED);
        } else if (tick * CLOCK_TICK_NS > 350 * NS_PER_MS) {
            assert_int_equal(t.status, CLOCK_SYNCED);
        }
        const struct clock_reading r = clock_terms_read(&t, (struct nic_time){t.line.r.ns});
        assert_true(fabs((double)(r.time.ns - (t.line.r.ns - step))) <= r.hard_ns + 2);
    }
    (void)state;
}

/* The NIC's clock at a given host time is also known between reads, also if it runs off: 40 ppm are 20 us in half a second. */
static void a_nics_clock_is_known_between_reads(void **state)
{
    static const double rates[] = {0, 40, -40}; /* ppm */

    for (size_t i = 0; i < ARRAY_COUNT(rates); i++) {
        struct host_leaf leaf;
        struct nic_time shown;
        int64_t host = 0;
        host_leaf_init(&leaf, 2, 100);
        assert_false(host_leaf_nic_now(&leaf, (struct mono){NS_PER_S}, 0, &shown)); /* never read */
        for (int tick = 0; tick < 200; tick++) {
            host = 10 * NS_PER_S + tick * 100 * NS_PER_MS;
            read_nic(&leaf, host, 80, 160, rates[i], 0);
        }
        for (int64_t later = 0; later <= NS_PER_S / 2; later += 50 * NS_PER_MS) {
            const int64_t at = host + later;
            const double truth = (double)at * (1 + rates[i] * 1e-6);
            assert_true(host_leaf_nic_now(&leaf, (struct mono){at}, 0, &shown));
            assert_true(fabs((double)shown.ns - truth) < 500);
            assert_true(host_leaf_nic_error_ns(&leaf, (struct mono){at}, 0) >=
                        fabs((double)shown.ns - truth) - 2);
        }
        assert_false(host_leaf_nic_now(&leaf, (struct mono){host}, 1, &shown));
        assert_false(host_leaf_nic_now(&leaf, (struct mono){host}, -1, &shown));
        assert_false(host_leaf_nic_now(&leaf, (struct mono){host}, HOST_NIC_MAX, &shown));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_whose_clock_goes_back_says_so),
        cmocka_unit_test(brackets_show_whose_clock_broke),
        cmocka_unit_test(a_nics_clock_that_stands_still_or_jumps_is_told),
        cmocka_unit_test(brackets_that_grow_stay_within_the_bound),
        cmocka_unit_test(the_rate_between_two_reads_is_the_rate_of_now),
        cmocka_unit_test(narrow_brackets_tell_more_than_wide_ones),
        cmocka_unit_test(reads_in_bursts_stay_within_the_bound),
        cmocka_unit_test(a_host_that_slept_jumps_and_says_so),
        cmocka_unit_test(a_rate_lies_between_its_bounds),
        cmocka_unit_test(the_middle_of_those_in_step_counts),
        cmocka_unit_test(a_line_that_is_slewed_is_less_sure),
        cmocka_unit_test(a_line_that_is_slewed_a_little_is_met),
        cmocka_unit_test(a_host_meets_its_nic_within_milliseconds),
        cmocka_unit_test(a_nics_clock_is_known_between_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
