/* Liveness is total, and a path dies only by proof. The loss test keeps its promise. Delays keep their quantiles. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bug.h"
#include "base/prng.h"
#include "core/mesh/delay.h"
#include "core/mesh/path.h"
#include "core/mesh/slow.h"

static void every_state_and_event_has_a_successor(void **state)
{
    for (unsigned s = 0; s < PATH_STATE_COUNT; s++) {
        for (unsigned e = 0; e < PATH_EVENT_COUNT; e++) {
            const enum path_state next = path_next((enum path_state)s, (enum path_event)e);

            assert_true((unsigned)next < PATH_STATE_COUNT);
            if (next == PATH_DEAD) { /* only by proof */
                assert_true(s == PATH_DEAD || e == PATH_PROVEN);
            }
            if (e == PATH_SILENCE) {
                assert_int_equal(next, PATH_UNKNOWN);
            }
            if (e == PATH_LATE ||
                e == PATH_OVERDUE) { /* no accusation for packets that this end could have missed */
                assert_true(next == (enum path_state)s || next == PATH_ALIVE ||
                            next == PATH_SUSPECT);
            }
            if (e == PATH_REVIVED) {
                assert_true(next == PATH_ALIVE || s == PATH_LOSSY);
            }
        }
        assert_non_null(path_state_word((enum path_state)s));
    }
}

static uint32_t pairs_until(struct prng *p, double loss, uint32_t limit)
{
    struct loss_test test = {0};

    for (uint32_t i = 1; i <= limit; i++) {
        const bool lost = prng_uniform(p) < loss || prng_uniform(p) < loss;
        if (loss_test_pair(&test, lost) == PATH_LOSS) {
            return i;
        }
    }
    return 0;
}

static void gray_loss_is_found_good_paths_are_not(void **state)
{
    struct prng p;

    prng_init(&p, 11);
    for (int i = 0; i < 50; i++) {
        const uint32_t at = pairs_until(&p, 0.05, 5000);
        assert_in_range(at, 5, 800); /* 2.5 pairs a second */
    }
    assert_int_equal(pairs_until(&p, 0.0009, 5000000), 0);
    assert_int_equal(pairs_until(&p, 0, 100000), 0);
}

/* The figures for operators: 5 % is found in about 45 s, 2 % in 150 s, at 2.5 pairs a second. If everything is lost for four
 * seconds, no more proof is needed. */
static void gray_loss_is_found_in_time(void **state)
{
    static const struct {
        double loss, seconds;
    } cases[] = {{0.05, 45}, {0.02, 150}};
    enum { PATHS = 2000 };
    struct loss_test test = {0};
    struct prng p;

    prng_init(&p, 12);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double pairs = 0;
        for (int k = 0; k < PATHS; k++) {
            pairs += pairs_until(&p, cases[i].loss, 100000);
        }
        print_message("%.0f %%: %.1f s\n", 100 * cases[i].loss, pairs / PATHS / 2.5);
        assert_true(pairs / PATHS / 2.5 < cases[i].seconds);
    }
    for (int pair = 1; pair <= 9; pair++) {
        assert_int_equal(loss_test_pair(&test, true), pair < 9 ? PATH_EVENT_COUNT : PATH_LOSS);
    }
}

static void loss_ends(void **state)
{
    struct loss_test test = {0};
    enum path_event event = PATH_EVENT_COUNT;

    for (int i = 0; i < 100; i++) {
        loss_test_pair(&test, true);
    }
    assert_true(test.lossy);
    for (uint32_t i = 0; i < LOSS_END_PAIRS; i++) {
        event = loss_test_pair(&test, false);
    }
    assert_int_equal(event, PATH_LOSS_END);
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void quantiles_are_close(void **state)
{
    static struct delay_window w;
    int64_t values[500];
    struct prng p;

    prng_init(&p, 5);
    delay_init(&w, (struct mono){0});
    for (int i = 0; i < 500; i++) {
        values[i] = 2000 + (int64_t)(prng_exponential(&p) * 3000);
        delay_add(&w, (struct mono){i * 10 * NS_PER_MS}, span_s(10), values[i]);
    }
    qsort(values, 500, sizeof(values[0]), compare);
    assert_int_equal(delay_quantile(&w, 0), values[0]);
    assert_int_equal(delay_quantile(&w, 1), values[499]);
    for (int q = 10; q <= 99; q += 10) {
        const double got = (double)delay_quantile(&w, q / 100.0), want = (double)values[q * 5];
        assert_true(got > want * 0.96 && got < want * 1.04);
    }
    delay_add(&w, (struct mono){100 * NS_PER_S}, span_s(10), 7); /* old windows are dropped */
    assert_int_equal(delay_quantile(&w, 1), 7);
    assert_int_equal(delay_quantile_longer(&w, 0.5),
                     INT64_MIN); /* after a pause nothing went there */
    delay_add(&w, (struct mono){100 * NS_PER_S}, span_s(10), -40); /* below the clocks' error */
    assert_int_equal(delay_quantile(&w, 0), -40);
}

/* Values that are older than two windows count there. Beyond some minutes their weight falls. */
static void the_longer_window_has_what_the_window_lost(void **state)
{
    enum { EACH = 200, WINDOWS = 30 };
    static struct delay_window w;
    int64_t ms = 0;

    delay_init(&w, (struct mono){0});
    for (int window = 0; window < 2 * WINDOWS; window++) {
        for (int i = 0; i < EACH; i++, ms += 10000 / EACH) {
            delay_add(&w, (struct mono){ms * NS_PER_MS}, span_s(10),
                      window == 0        ? 500
                      : window < WINDOWS ? 1000
                                         : 5000);
        }
        if (window < 2) {
            assert_int_equal(delay_quantile_longer(&w, 0.5), INT64_MIN);
        } else if (window == 2) {
            assert_int_equal(delay_quantile_longer(&w, 0), 500);
            assert_int_equal(delay_quantile_longer(&w, 1), 500);
        } else if (window == WINDOWS) {
            assert_in_range(delay_quantile_longer(&w, 0.5), 960, 1040);
        } else if (window == WINDOWS + 22) { /* 21 windows of the new delay, 30 of the old one */
            assert_in_range(delay_quantile_longer(&w, 0.5), 4800, 5200);
        }
    }
}

/* While all values are kept, a quantile is between the two neighbours in the sorted list. */
static void few_delays_have_exact_quantiles(void **state)
{
    static struct delay_window w;
    int64_t values[DELAY_RECENT];
    struct prng p;

    prng_init(&p, 9);
    for (int count = 1; count <= DELAY_RECENT; count++) {
        delay_init(&w, (struct mono){0});
        assert_int_equal(delay_quantile(&w, 0.5), INT64_MIN);
        for (int i = 0; i < count; i++) {
            values[i] = (int64_t)prng_below(&p, count % 2 == 0 ? 20 : 1000000) - 10;
            delay_add(&w, (struct mono){i < count / 2 ? 0 : 10 * NS_PER_S}, span_s(10), values[i]);
        }
        qsort(values, (size_t)count, sizeof(values[0]), compare);
        for (double q = 0.01; q < 1; q += 0.07) {
            const double rank = q * (count - 1);
            const int64_t low = values[(int)rank],
                          high = values[count > (int)rank + 1 ? (int)rank + 1 : (int)rank];
            assert_int_equal(delay_quantile(&w, q),
                             low + (int64_t)((rank - (int)rank) * (double)(high - low)));
        }
    }
}

/* The median and the maximum of the newest sixteen singles. They don't count with pairs. */
static void singles_are_the_newest_sixteen(void **state)
{
    static struct delay_window w;
    int64_t p50, most;

    delay_init(&w, (struct mono){0});
    delay_singles(&w, &p50, &most);
    assert_int_equal(p50, INT64_MIN);
    assert_int_equal(most, INT64_MIN);
    delay_add_single(&w, 900);
    delay_singles(&w, &p50, &most);
    assert_int_equal(p50, 900);
    assert_int_equal(most, 900);
    for (int i = 0; i < DELAY_SINGLES - 1; i++) {
        delay_add_single(&w, 100 + i);
    }
    delay_singles(&w, &p50, &most);
    assert_int_equal(p50, 108); /* of 100 to 114 and 900 */
    assert_int_equal(most, 900);
    delay_add_single(&w, 200);
    delay_singles(&w, &p50, &most);
    assert_int_equal(p50, 108);
    assert_int_equal(most, 200);
    assert_int_equal(delay_quantile(&w, 0.5), INT64_MIN);
}

/* A window ends after its time, not before. With two windows there are values for as long. */
static void windows_turn_on_time(void **state)
{
    static struct delay_window w;

    delay_init(&w, (struct mono){0});
    delay_add(&w, (struct mono){0}, span_s(10), 1);
    delay_add(&w, (struct mono){10 * NS_PER_S - 1}, span_s(10), 2);
    assert_int_equal(w.before.head.count, 0);
    delay_add(&w, (struct mono){10 * NS_PER_S}, span_s(10), 3);
    assert_int_equal(w.before.head.count, 2);
    assert_true(delay_is_fresh(&w, (struct mono){30 * NS_PER_S - 1}, span_s(10)));
    assert_false(delay_is_fresh(&w, (struct mono){30 * NS_PER_S}, span_s(10)));
    delay_add(&w, (struct mono){30 * NS_PER_S - 1}, span_s(10), 4);
    assert_int_equal(w.before.head.count, 1); /* the value of 10 s */
    assert_int_equal(delay_quantile(&w, 0), 3);
    delay_add(&w, (struct mono){50 * NS_PER_S - 1}, span_s(10), 5); /* after a pause of two */
    assert_int_equal(w.before.head.count, 0);
    assert_int_equal(delay_quantile(&w, 0), 5);
}

/* If a share of all packets is lost anyway: how many must be lost in a row, and for how long. */
static void the_more_is_lost_the_more_proves_a_hole(void **state)
{
    static const struct {
        double share;
        uint32_t packets;
        int64_t epochs;
    } cases[] = {{0, 6, 0},    {PROOF_QUIET, 6, 0}, {0.0051, 6, 5}, {0.03, 6, 9}, {0.04, 7, 9},
                 {0.1, 9, 14}, {0.5, 30, 14},       {0.8, 93, 14},  {1, 93, 14}};

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct proof_wanted w = proof_wanted(cases[i].share);
        assert_int_equal(w.packets, cases[i].packets);
        assert_int_equal(w.time.ns, cases[i].epochs * 100 * NS_PER_MS);
    }
}

/* A packet right behind a lost one is no evidence. One long after it is all the evidence of a loss: -ln of the share. */
static void evidence_grows_with_the_time_between(void **state)
{
    double before = -1;

    assert_float_equal(proof_evidence(0.1, 0), 0, 1e-9);
    assert_float_equal(proof_evidence(0.1, -5), 0, 1e-9);
    assert_float_equal(proof_evidence(0.1, INT64_MAX), -log(0.1), 1e-9);
    assert_float_equal(proof_evidence(0, INT64_MAX), -log(0.005), 1e-9);
    assert_float_equal(proof_evidence(0.004, INT64_MAX), -log(0.005), 1e-9);
    assert_float_equal(proof_evidence(1, INT64_MAX), -log(0.8), 1e-9);
    /* after 50 ms a queue has drained, except for a share of 1 / e */
    assert_float_equal(proof_evidence(0.1, 50 * NS_PER_MS), -log(0.1 * (1 - exp(-1)) + exp(-1)),
                       1e-9);
    for (int64_t ms = 0; ms < 500; ms += 10) {
        const double is = proof_evidence(0.1, ms * NS_PER_MS);
        assert_true(is > before);
        before = is;
    }
}

/* A share decays with its time constant. With few packets it is limited to what they can show. */
static void a_share_forgets(void **state)
{
    struct loss_share s = {0};

    assert_float_equal(loss_share_get(&s), 0, 0);
    assert_float_equal(loss_share_most(&s), 0.5, 1e-12);
    loss_share_add(&s, (struct mono){NS_PER_S}, span_s(5), 2, 4);
    assert_float_equal(loss_share_get(&s), 2.0 / 8, 1e-12);
    assert_float_equal(loss_share_most(&s), 4.0 / 8, 1e-12);
    loss_share_add(&s, (struct mono){NS_PER_S}, span_s(5), 1, 1);
    assert_float_equal(loss_share_get(&s), 3.0 / 9, 1e-12);
    loss_share_add(&s, (struct mono){6 * NS_PER_S}, span_s(5), 1, 2);
    assert_float_equal(s.lost, 3 * exp(-1) + 1, 1e-9);
    assert_float_equal(s.sent, 5 * exp(-1) + 2, 1e-9);
    loss_share_add(&s, (struct mono){5 * NS_PER_S}, span_s(5), 0,
                   1); /* a clock that went back removes nothing */
    assert_float_equal(s.lost, 3 * exp(-1) + 1, 1e-9);
    loss_share_add(&s, (struct mono){5 * NS_PER_S}, span_s(5), -9,
                   0); /* the lost packets came after all */
    assert_float_equal(s.lost, 0, 0);
    s = (struct loss_share){.lost = 99, .sent = 9};
    assert_float_equal(loss_share_get(&s), 1, 0);
    assert_float_equal(loss_share_most(&s), 1, 0);
}

/* ---- delays that shift ---- */

struct delays {
    struct prng prng;
    struct slow_watch watch;
    int64_t now;
    double noise_ns, queue_ns, add_ns, drift_ns;
    double bound_ns; /* 0: 100 */
    uint32_t likely, ended;
};

/* The difference between the slow ones of the last packets and the quickest. At least half of the packets must have come. */
static void spread_is_of_nine_in_ten(void **state)
{
    static struct delay_window w;

    delay_init(&w, (struct mono){0});
    for (int64_t i = 0; i < DELAY_SPREAD; i++) {
        assert_true((delay_spread(&w) == INT64_MIN) == (i < DELAY_SPREAD / 2));
        delay_add(&w, (struct mono){i * NS_PER_MS}, span_s(10), 5000 + 10 * (i * 7 % DELAY_SPREAD));
    }
    assert_int_equal(delay_spread(&w), 10 * (DELAY_SPREAD * 9 / 10));
}

/* 2.5 pairs a second, as many as a path gets. */
static void feed(struct delays *d, double seconds)
{
    for (const int64_t end = d->now + (int64_t)(seconds * 1e9); d->now < end;
         d->now += 400 * NS_PER_MS) {
        const double owd = 40000 + d->add_ns + d->noise_ns * prng_normal(&d->prng) +
                           (d->queue_ns > 0 ? d->queue_ns * prng_exponential(&d->prng) : 0);
        const enum slow_change change = slow_add(&d->watch, (struct mono){d->now}, 7, (int64_t)owd,
                                                 d->bound_ns > 0 ? d->bound_ns : 100);

        d->add_ns += d->drift_ns;
        if (change == SLOW_LIKELY) {
            d->likely++;
            slow_begin(&d->watch);
        }
        d->ended += change == SLOW_ENDED;
    }
}

static void a_shift_is_likely_and_ends(void **state)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct delays d = {.noise_ns = seed % 2 ? 20 : 1000};
        double shift;

        prng_init(&d.prng, seed);
        feed(&d, 20);
        d.add_ns = 50000;
        feed(&d, 6);
        assert_int_equal(d.likely, 1);
        assert_true(slow_shift(&d.watch, (struct mono){d.now}, (struct mono){d.now - 4 * NS_PER_S},
                               &shift));
        assert_false(slow_shift(&d.watch, (struct mono){d.now}, (struct mono){d.now - NS_PER_S / 2},
                                &shift)); /* too few */
        assert_true(shift > 48000 && shift < 52000);
        assert_false(slow_shift(&d.watch, (struct mono){d.now}, (struct mono){1}, &shift));
        feed(&d, 600);
        assert_int_equal(d.ended, 0);
        d.add_ns = 0;
        feed(&d, 6);
        assert_int_equal(d.ended, 1);
        assert_int_equal(d.likely, 1);
    }
}

/* The clock can't tell a path that is longer in one direction from its own error, and its bound shows that: it is wide from then
 * on. */
static void a_shift_does_not_hide_itself(void **state)
{
    struct delays d = {.noise_ns = 20};

    prng_init(&d.prng, 2);
    feed(&d, 20);
    d.add_ns = 50000;
    feed(&d, 1);
    d.bound_ns = 30000;
    feed(&d, 5);
    assert_int_equal(d.likely, 1);
    feed(&d, 600);
    assert_int_equal(d.ended, 0);
    d.add_ns = 0;
    feed(&d, 6);
    assert_int_equal(d.ended, 1);
}

/* Queues of every depth come and go, each over an hour. None of them is a slow path. */
static void queues_are_no_shift(void **state)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct delays d = {.noise_ns = seed % 2 ? 20 : 1000};

        prng_init(&d.prng, seed);
        feed(&d, 20);
        for (uint32_t turn = 0; turn < 60; turn++) {
            d.queue_ns = turn % 2 == 0 ? pow(10, 2 + 5 * prng_uniform(&d.prng)) : 0;
            feed(&d, 60 * prng_uniform(&d.prng) + 5);
        }
        assert_int_equal(d.likely, 0);
    }
}

/* If a clock wanders off, the baseline moves with it. A clock that can't be trusted doesn't count. */
static void clocks_that_wander_are_no_shift(void **state)
{
    struct delays d = {.noise_ns = 20, .drift_ns = 0.5};
    double shift;

    prng_init(&d.prng, 3);
    feed(&d, 3600);
    assert_int_equal(d.likely, 0);
    d.drift_ns = 0;
    slow_pause(&d.watch, (struct mono){d.now});
    assert_false(
        slow_shift(&d.watch, (struct mono){d.now}, (struct mono){d.now - 4 * NS_PER_S}, &shift));
    d.add_ns += 5000; /* it comes back with another error, which it soon corrects */
    feed(&d, 8);
    assert_int_equal(d.likely, 0);
}

/* Another source port is another path, with its own baseline. */
static void another_port_is_another_path(void **state)
{
    struct delays d = {.noise_ns = 20};

    prng_init(&d.prng, 4);
    feed(&d, 20);
    d.watch.port = 8;
    d.add_ns = 50000;
    feed(&d, 60);
    assert_int_equal(d.likely, 0);
    d.add_ns = 100000;
    feed(&d, 10);
    assert_int_equal(d.likely, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_and_event_has_a_successor),
        cmocka_unit_test(gray_loss_is_found_good_paths_are_not),
        cmocka_unit_test(gray_loss_is_found_in_time),
        cmocka_unit_test(loss_ends),
        cmocka_unit_test(quantiles_are_close),
        cmocka_unit_test(the_longer_window_has_what_the_window_lost),
        cmocka_unit_test(spread_is_of_nine_in_ten),
        cmocka_unit_test(a_shift_is_likely_and_ends),
        cmocka_unit_test(a_shift_does_not_hide_itself),
        cmocka_unit_test(queues_are_no_shift),
        cmocka_unit_test(clocks_that_wander_are_no_shift),
        cmocka_unit_test(another_port_is_another_path),
        cmocka_unit_test(few_delays_have_exact_quantiles),
        cmocka_unit_test(singles_are_the_newest_sixteen),
        cmocka_unit_test(windows_turn_on_time),
        cmocka_unit_test(the_more_is_lost_the_more_proves_a_hole),
        cmocka_unit_test(evidence_grows_with_the_time_between),
        cmocka_unit_test(a_share_forgets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
