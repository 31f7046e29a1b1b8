/* The gap on which pairs agree: with many NICs, beside forged stamps, and what holds it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bug.h"
#include "base/prng.h"
#include "core/mesh/gaps.h"

#define USUAL_NS 10000
#define SLOW_NS  36160 /* a probe at 50 Mb/s */
#define LEAST_NS 9040  /* and at 200 */
#define EDGES    448   /* of 16 NICs with 28 peers each */

static struct gaps g;
static struct gaps_share shares[EDGES];
static struct mono now;
static enum gaps_hold hold;
static uint32_t found;

static int begin(void **state)
{
    memset(&g, 0, sizeof(g));
    memset(shares, 0, sizeof(shares));
    now = (struct mono){100 * NS_PER_S};
    hold = GAPS_FREE;
    found = 0;
    return 0;
}

static struct spread_pair pair_of(uint32_t host, double heard_ns)
{
    return (struct spread_pair){.at = now,
                                .sent_ns = USUAL_NS,
                                .usual_ns = USUAL_NS,
                                .heard_ns = (uint32_t)heard_ns,
                                .wait_ns = heard_ns > USUAL_NS ? (int32_t)heard_ns : 0,
                                .host = host};
}

static void hear(uint32_t edge, uint32_t host, double heard_ns, bool explained)
{
    const struct spread_pair pair = pair_of(host, heard_ns);

    gaps_add(&g, &shares[edge], &pair, explained);
    found += gaps_look(&g, now, hold) != NULL;
}

static enum spread judged(uint32_t host, double heard_ns)
{
    const struct spread_pair pair = pair_of(host, heard_ns);
    double slow_ns;

    return gaps_judge(&g, &pair, &slow_ns);
}

static double random_gap(struct prng *p)
{
    return 3.0 * USUAL_NS * exp(0.5 * prng_normal(p));
}

/* 8 NICs with 20 peers each: a slow link that 4 of 1,600 pairs a second cross. */
static void many_nics_hide_no_slow_link(void **state)
{
    for (int i = 0; i < 10 * 1600; i++, now.ns += NS_PER_S / 1600) {
        const bool slow = i % 400 == 7;

        hear((uint32_t)(slow ? i / 400 % 2 : i % 160), (uint32_t)(slow ? i / 400 % 2 : i % 160 / 8),
             slow ? SLOW_NS : USUAL_NS, false);
    }
    assert_true(spread_alike(g.all.slow_ns, SLOW_NS));
}

/* All pairs of 16 NICs pass busy ports: the ring holds less than a second. */
static void a_full_ring_agrees_on_no_gap(void **state)
{
    struct prng p;

    prng_init(&p, 3);
    for (int i = 0; i < 60 * 4480; i++, now.ns += NS_PER_S / 4480) {
        hear((uint32_t)i % EDGES, (uint32_t)i % EDGES / 16, random_gap(&p), false);
    }
    assert_true(found < 4);
}

static void pass(int64_t ns, double heard_ns, bool explained)
{
    for (int64_t i = 0; i < ns / (100 * NS_PER_MS); i++, now.ns += 100 * NS_PER_MS) {
        hear((uint32_t)i % 2, (uint32_t)i % 2, heard_ns, explained);
    }
}

/* It is dropped five seconds after it stood out for the last time. */
static void a_gap_stays_for_a_while(void **state)
{
    pass(3 * NS_PER_S, SLOW_NS, false);
    assert_int_equal(found, 1);
    for (int i = 0; i < 10; i++) {
        pass(8 * NS_PER_S, USUAL_NS, false);
        assert_true(gaps_known(&g));
        pass(NS_PER_S, SLOW_NS, false);
    }
    assert_int_equal(found, 1);
    pass(12 * NS_PER_S, USUAL_NS, false);
    assert_false(gaps_known(&g));
}

/* A case holds it. */
static void a_case_holds_its_gap(void **state)
{
    pass(3 * NS_PER_S, SLOW_NS, true);
    hold = GAPS_KEEP;
    pass(60 * NS_PER_S, USUAL_NS, false);
    assert_true(spread_alike(g.all.slow_ns, SLOW_NS));
    hold = GAPS_FREE;
    pass(NS_PER_S, USUAL_NS, false);
    assert_false(gaps_known(&g));
}

/* A case doesn't hold others' gaps: pairs that it doesn't explain, whenever they came. */
static void a_case_holds_no_other_gap(void **state)
{
    for (int before = 0; before < 2; before++) {
        begin(state);
        hold = GAPS_FIXED;
        pass(before * 6 * NS_PER_S, SLOW_NS, true);
        pass(6 * NS_PER_S, SLOW_NS, false);
        assert_true(spread_alike(g.all.slow_ns, SLOW_NS));
        pass(12 * NS_PER_S, USUAL_NS, true);
        assert_false(gaps_known(&g));
    }
}

/* Three peers' gaps are held, and came long ago: a fourth gap replaces none of them. If no case holds them, it does. */
static void a_gap_that_is_held_keeps_its_place(void **state)
{
    for (int held = 0; held < 2; held++) {
        begin(state);
        hold = GAPS_KEEP;
        for (int i = 0; i < 400; i++, now.ns += 100 * NS_PER_MS) {
            for (uint32_t host = 0; host < 4; host++) {
                const bool slow = host < 3 ? i < 100 : i >= 250;

                hear(host, host, slow ? (2 + host) * USUAL_NS : USUAL_NS, held);
            }
        }
        for (uint32_t host = 0; host < 4; host++) {
            assert_int_equal(gaps_of(&g, host) > 0, held ? host < 3 : host == 3);
        }
    }
}

/* The named link gets another rate. Pairs of other links don't change its gap, nor do pairs while the first rate goes on. */
static void a_named_link_may_get_another_rate(void **state)
{
    for (int explained = 0; explained < 2; explained++) {
        begin(state);
        pass(3 * NS_PER_S, SLOW_NS, true);
        hold = GAPS_FIXED;
        pass(4 * NS_PER_S, 2 * SLOW_NS, explained);
        assert_true(spread_alike(g.all.slow_ns, SLOW_NS));
        pass(12 * NS_PER_S, 2 * SLOW_NS, explained);
        assert_true(spread_alike(g.all.slow_ns, explained ? 2 * SLOW_NS : SLOW_NS));
    }
}

/* Host 0 forges a gap ten times a second, alone or in turns with others. The others' pairs cross a slow trunk now and then. */
static void one_peer_hides_no_slow_trunk(void **state)
{
    static const double forged[] = {5 * USUAL_NS, 2 * USUAL_NS, 7 * USUAL_NS};

    for (int gaps = 1; gaps <= 3; gaps++) {
        begin(state);
        hold = GAPS_KEEP;
        for (int i = 0; i < 200; i++, now.ns += 100 * NS_PER_MS) {
            hear(0, 0, forged[i / 20 % gaps], true);
            for (uint32_t host = 1; host < 4; host++) {
                const bool slow = i >= 100 && (i + (int)host) % 4 == 0;

                hear(host, host, slow && host < 3 ? SLOW_NS : USUAL_NS, false);
            }
        }
        assert_true(spread_alike(g.all.slow_ns, SLOW_NS));
        assert_int_equal(judged(1, SLOW_NS), SPREAD_WIDE);
        assert_int_not_equal(judged(3, forged[gaps - 1]), SPREAD_WIDE);
    }
}

/* Nor does it hide that another peer's NIC is slow, which only that peer's pairs show. */
static void one_peer_hides_no_slow_nic(void **state)
{
    for (int i = 0; i < 200; i++, now.ns += 100 * NS_PER_MS) {
        hear(0, 0, 5 * USUAL_NS, false);
        hear(1, 1, i >= 100 ? SLOW_NS : USUAL_NS, false);
        hear(2, 2, USUAL_NS, false);
    }
    assert_true(g.all.slow_ns <= 0);
    assert_true(spread_alike(gaps_of(&g, 1), SLOW_NS));
    assert_int_equal(judged(1, SLOW_NS), SPREAD_WIDE);
    assert_int_equal(judged(2, SLOW_NS), SPREAD_NOTHING);
    assert_int_equal(judged(2, USUAL_NS), SPREAD_NARROW);
}

/* One pair of another host is alike by chance: that is no confirmation. */
static void a_chance_pair_is_no_second_word(void **state)
{
    for (int i = 0; i < 100; i++, now.ns += 100 * NS_PER_MS) {
        hear(0, 0, SLOW_NS, false);
        hear(1, 1, i % 60 == 30 ? SLOW_NS : USUAL_NS, false);
    }
    assert_true(g.all.slow_ns <= 0);
    assert_true(spread_alike(gaps_of(&g, 0), SLOW_NS));
}

/* Neither some bad stamps of all hosts nor all of one host's. */
static void bad_stamps_make_no_least_gap(void **state)
{
    for (int bad = 0; bad < 2; bad++) {
        begin(state);
        for (int i = 0; i < 1000; i++, now.ns += 10 * NS_PER_MS) {
            const uint32_t host = (uint32_t)i % 4;
            const bool forged = bad ? host == 0 : i % 125 == 3;

            hear(host, host,
                 forged        ? 100
                 : i % 20 == 1 ? LEAST_NS
                 : i % 3 == 0  ? SLOW_NS
                               : USUAL_NS,
                 false);
        }
        assert_true(g.least_ns >= LEAST_NS);
    }
}

/* The newest wide pair is examined later if another one was examined just before. */
static void looks_are_rare(void **state)
{
    struct mono looked = g.looked;
    uint32_t looks = 0;

    for (int i = 0; i < 1000; i++, now.ns += NS_PER_MS) {
        hear((uint32_t)i % 100, (uint32_t)i % 100, USUAL_NS * (2 + i % 97 / 10.0), false);
        looks += g.looked.ns != looked.ns;
        looked = g.looked;
    }
    assert_in_range(looks, 40, 50);
}

/* Three peers with a gap each: two are found at once, the third two seconds later. */
static void gaps_come_up_rarely(void **state)
{
    for (int i = 0; i < 270; i++, now.ns += 10 * NS_PER_MS) {
        hear((uint32_t)i % 3, (uint32_t)i % 3, USUAL_NS * (2 + i % 3), false);
        assert_true(found < 3 || i > 200);
    }
    assert_int_equal(found, 3);
}

/* Until a case is reported, for some minutes. */
static void what_is_slow_is_known_before_it_is_named(void **state)
{
    pass(3 * NS_PER_S, SLOW_NS, false);
    assert_true(gaps_is_slow(&g, now, 1, USUAL_NS, SLOW_NS));
    assert_true(gaps_is_slow(&g, now, 9, USUAL_NS, SLOW_NS)); /* several agree */
    assert_false(gaps_is_slow(&g, now, 1, USUAL_NS, USUAL_NS));
    assert_false(gaps_is_slow(&g, now, 1, SLOW_NS, SLOW_NS)); /* it was always so */
    now.ns += 300 * NS_PER_S;
    assert_false(gaps_is_slow(&g, now, 1, USUAL_NS, SLOW_NS));
}

/* Nearly all gaps around such a short one are alike, so chance can't be excluded, and there is no number. */
static void short_gaps_tell_nothing(void **state)
{
    for (int i = 0; i < 100; i++, now.ns += 50 * NS_PER_MS) {
        struct spread_pair pair = pair_of((uint32_t)i % 2, 100 + i % 10 * 10);

        pair.usual_ns = pair.sent_ns = 50;
        gaps_add(&g, &shares[i % 2], &pair, false);
        assert_null(gaps_look(&g, now, GAPS_FREE));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(many_nics_hide_no_slow_link, begin),
        cmocka_unit_test_setup(a_full_ring_agrees_on_no_gap, begin),
        cmocka_unit_test_setup(a_gap_stays_for_a_while, begin),
        cmocka_unit_test_setup(a_case_holds_its_gap, begin),
        cmocka_unit_test_setup(a_case_holds_no_other_gap, begin),
        cmocka_unit_test_setup(a_gap_that_is_held_keeps_its_place, begin),
        cmocka_unit_test_setup(a_named_link_may_get_another_rate, begin),
        cmocka_unit_test_setup(one_peer_hides_no_slow_trunk, begin),
        cmocka_unit_test_setup(one_peer_hides_no_slow_nic, begin),
        cmocka_unit_test_setup(a_chance_pair_is_no_second_word, begin),
        cmocka_unit_test_setup(bad_stamps_make_no_least_gap, begin),
        cmocka_unit_test_setup(looks_are_rare, begin),
        cmocka_unit_test_setup(gaps_come_up_rarely, begin),
        cmocka_unit_test_setup(what_is_slow_is_known_before_it_is_named, begin),
        cmocka_unit_test_setup(short_gaps_tell_nothing, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
