/* From terms to pages: whatever the clock corrects, a reader who meets page after page sees time go
 * forward only, and ends on the clock's line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/page/page.h"

static struct clock_terms terms_of(const struct clock_line *line)
{
    return (struct clock_terms){.status = CLOCK_SYNCED,
                                .timeline = 1,
                                .epoch = 1,
                                .line = *line,
                                .h_ns = 5000,
                                .rate_limit = 2e-6,
                                .rate_drift = 1e-7,
                                .p00 = 1};
}

static double line_value(const struct clock_line *line, int64_t c)
{
    const int64_t slewed = (c < line->until.ns ? c : line->until.ns) - line->r.ns;

    return line->x_fraction + line->y * (double)(c - line->r.ns) + line->slew * (double)slewed;
}

/* Ticks with random corrections of up to `correction_ns`, some late, pages published late. */
static void never_backwards(double correction_ns, uint64_t seed)
{
    struct page_maker maker;
    struct prng p;
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 1790000000 * NS_PER_S, .until = {NS_PER_S}};
    int64_t now = NS_PER_S, shown = INT64_MIN;

    prng_init(&p, seed);
    page_maker_init(&maker);
    for (int tick = 0; tick < 300; tick++) {
        const struct clock_page_terms before = maker.page.terms;
        const struct clock_terms terms = terms_of(&line);
        int64_t c;
        page_maker_update(&maker, &terms, (struct mono){now});
        assert_true(maker.page.terms.since == NS_PER_S);
        maker.page.terms.magic = CLOCK_PAGE_MAGIC;
        if (tick >
            0) { /* readers of the old page until the new one is out, at most the lead later */
            for (c = now; c < now + PAGE_LEAD_NS; c += 7777) {
                const int64_t f = clock_page_at(&before, c, c).estimate_ns;
                assert_true(f >= shown);
                shown = f;
            }
        }
        const int64_t next = now + 100 * NS_PER_MS + (int64_t)prng_below(&p, 80 * NS_PER_MS);
        for (c = now + PAGE_LEAD_NS; c < next; c += 999983) {
            const struct clock_page_reading r = clock_page_at(&maker.page.terms, c, c);
            const double off = (double)(r.estimate_ns - c - line.x_ns) - line_value(&line, c);
            assert_true(r.estimate_ns >= shown);
            assert_true(fabs(off) <= maker.page.terms.h_ns - 5000 + 1.5);
            shown = r.estimate_ns;
        }
        now = next;
        const double moved = line_value(&line, now);
        const double ahead = (prng_uniform(&p) - 0.5) * 2 * correction_ns;
        line.x_ns += (int64_t)floor(moved);
        line.x_fraction = moved - floor(moved);
        line.r.ns = now;
        line.y = 100e-6 + (prng_uniform(&p) - 0.5) * 2e-6;
        line.slew = -ahead / 1e8;
        line.until.ns = now + 100 * NS_PER_MS;
    }
}

static void time_goes_forward(void **state)
{
    for (uint64_t seed = 0; seed < 5; seed++) {
        never_backwards(2, seed);
        never_backwards(1000, seed);
        never_backwards(20000, seed);
        never_backwards(200000, seed); /* 2000 ppm: after a step or a merge */
    }
}

static void a_new_epoch_starts_afresh(void **state)
{
    struct page_maker maker;
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
    struct clock_terms terms = terms_of(&line);
    struct clock_page_reading r;
    const int64_t later = 2 * NS_PER_S;

    page_maker_init(&maker);
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
    terms.epoch = 2;
    terms.line.r.ns = terms.line.until.ns = later;
    terms.line.x_ns = 7 * NS_PER_S;
    page_maker_update(&maker, &terms, (struct mono){later});
    maker.page.terms.magic = CLOCK_PAGE_MAGIC;
    assert_int_equal(clock_page_at(&maker.page.terms, later - 1, later).status, CLOCK_PAGE_UNKNOWN);
    r = clock_page_at(&maker.page.terms, later + 5, later + 5);
    assert_true(r.estimate_ns == 9 * NS_PER_S + 5);
    terms.status = CLOCK_UNKNOWN;
    page_maker_update(&maker, &terms, (struct mono){later + 5});
    assert_int_equal(clock_page_at(&maker.page.terms, later + 6, later + 6).status,
                     CLOCK_PAGE_UNKNOWN);
}

/* A guard pass between ticks renews the bound and leaves the line alone. */
static void a_restart_goes_on_from_the_old_page(void **state)
{
    for (int64_t behind = -20000; behind <= 20000; behind += 4000) {
        struct page_maker old, maker;
        struct clock_line line = {.r = {NS_PER_S}, .x_ns = 1790000000 * NS_PER_S, .until = {0}};
        struct clock_terms terms = terms_of(&line);
        const int64_t now = 11 * NS_PER_S;
        page_maker_init(&old);
        page_maker_update(&old, &terms, (struct mono){NS_PER_S});
        old.page.terms.magic = CLOCK_PAGE_MAGIC;

        page_maker_init(&maker);
        page_maker_resume(&maker, &old.page.terms);
        terms.status = CLOCK_UNKNOWN; /* the NICs' clocks weren't read yet */
        page_maker_update(&maker, &terms, (struct mono){now - 1});
        terms = terms_of(&line);
        terms.line.x_ns -= behind;
        page_maker_update(&maker, &terms, (struct mono){now});
        maker.page.terms.magic = CLOCK_PAGE_MAGIC;
        assert_int_equal(maker.page.terms.since, now);
        int64_t shown =
            clock_page_at(&old.page.terms, now + PAGE_LEAD_NS, now + PAGE_LEAD_NS).estimate_ns;
        for (int64_t c = now + PAGE_LEAD_NS; c < now + NS_PER_S; c += 99991) {
            const struct clock_page_reading r = clock_page_at(&maker.page.terms, c, c);
            assert_true(r.estimate_ns >= shown);
            assert_true(llabs(r.estimate_ns - c - terms.line.x_ns) <= r.hard_ns);
            shown = r.estimate_ns;
        }

        terms.epoch = 2; /* another epoch owes the old page nothing */
        page_maker_init(&maker);
        page_maker_resume(&maker, &old.page.terms);
        page_maker_update(&maker, &terms, (struct mono){now});
        assert_int_equal(maker.page.terms.line.x, terms.line.x_ns);
    }
}

/* The line of an agent that was started anew is far from what the agent before showed: time doesn't run backwards
 * within an epoch, and bounds hold, as near as they meet by slewing; beyond that the epoch is raised, for good. */
static void lines_far_apart_slew_or_raise_the_epoch(void **state)
{
    static const int64_t aparts[] = {-9000000, -2000000,  -700000,  700000,   3000000,
                                     9000000,  -11000000, 11000000, 500000000};

    for (size_t i = 0; i < ARRAY_COUNT(aparts); i++) {
        struct page_maker old, maker;
        struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
        struct clock_terms terms = terms_of(&line);
        const bool meets = llabs(aparts[i]) < 10 * NS_PER_MS;
        const int64_t now = 3 * NS_PER_S;
        int64_t shown = 0;

        page_maker_init(&old);
        page_maker_update(&old, &terms, (struct mono){NS_PER_S});
        old.page.terms.magic = CLOCK_PAGE_MAGIC;
        page_maker_init(&maker);
        page_maker_resume(&maker, &old.page.terms);
        terms.line.x_ns += aparts[i];
        for (int64_t t = now; t < now + 4 * NS_PER_S; t += 25 * NS_PER_MS) {
            terms.line.r.ns = terms.line.until.ns = t;
            page_maker_update(&maker, &terms, (struct mono){t});
            maker.page.terms.magic = CLOCK_PAGE_MAGIC;
            assert_int_equal(maker.page.terms.epoch, terms.epoch + !meets);
            for (int64_t c = t + PAGE_LEAD_NS; c < t + 25 * NS_PER_MS; c += 999983) {
                const struct clock_page_reading r = clock_page_at(&maker.page.terms, c, c);
                assert_true(r.estimate_ns >= shown);
                assert_true(llabs(r.estimate_ns - c - terms.line.x_ns) <= r.hard_ns);
                shown = r.estimate_ns;
            }
        }
        assert_true(llabs(shown - (now + 4 * NS_PER_S) - terms.line.x_ns) < 30 * NS_PER_MS);
        if (!meets) {
            struct page_maker third;

            page_maker_init(&third); /* the next agent's clock knows nothing of that */
            page_maker_resume(&third, &maker.page.terms);
            page_maker_update(&third, &terms, (struct mono){now + 5 * NS_PER_S});
            assert_int_equal(third.page.terms.epoch, terms.epoch + 1);
            terms.epoch++; /* a step of the clock itself is a new epoch all the same */
            page_maker_update(&third, &terms, (struct mono){now + 6 * NS_PER_S});
            assert_int_equal(third.page.terms.epoch, terms.epoch + 1);
        }
    }
}

static void a_guard_pass_keeps_the_line(void **state)
{
    struct page_maker maker;
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
    struct clock_terms terms = terms_of(&line);
    struct clock_page before;

    page_maker_init(&maker);
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
    before = maker.page;
    terms.guarded = true;
    terms.guard.ns = NS_PER_S + 5;
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S + 5 * NS_PER_MS});
    assert_memory_equal(&before.terms.prior, &maker.page.terms.prior,
                        3 * sizeof(struct linear_map));
    assert_true(maker.page.terms.guard == NS_PER_S + 5);
}

/* A reader of the page and one of the clock's own terms are told one bound, however old. */
static void page_and_terms_tell_one_bound(void **state)
{
    struct prng p;

    prng_init(&p, 7);
    for (int i = 0; i < 20000; i++) {
        struct page_maker maker;
        struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
        struct clock_terms terms = terms_of(&line);
        const double ages[] = {-0.1, 0.1, 0.5, 5, 60, 600};
        const double age = ages[prng_below(&p, ARRAY_COUNT(ages))] * prng_uniform(&p);
        const int64_t at = NS_PER_S + (int64_t)(age * 1e9);

        terms.h_ns = prng_uniform(&p) * 1e5;
        terms.rate_limit = prng_below(&p, 8) == 0 ? 0 : prng_uniform(&p) * 1e-5;
        terms.rate_drift = prng_below(&p, 8) == 0 ? 0 : prng_uniform(&p) * 1e-6;
        terms.p00 = prng_uniform(&p) * 1e4;
        terms.p11 = prng_uniform(&p) * 1e4;
        terms.p01 = (prng_uniform(&p) * 2 - 1) * 0.9 * sqrt(terms.p00 * terms.p11);
        terms.q2 = prng_uniform(&p) * 1e3;
        terms.spread2_ns = prng_uniform(&p) * 1e4;
        terms.shift_ns = prng_uniform(&p) * 1e3;
        terms.guarded = prng_below(&p, 2) == 0;
        terms.guard.ns = NS_PER_S - (int64_t)prng_below(&p, NS_PER_S);
        terms.guard_ns = prng_uniform(&p) * 1e3;
        terms.guard_rate = prng_uniform(&p) * 6e-5;
        page_maker_init(&maker);
        page_maker_update(&maker, &terms, (struct mono){NS_PER_S - 200 * NS_PER_MS});
        maker.page.terms.magic = CLOCK_PAGE_MAGIC;
        const struct clock_page_reading page = clock_page_at(&maker.page.terms, at, at);
        const struct clock_reading own = clock_terms_read(&terms, (struct nic_time){at});
        if (page.status == CLOCK_PAGE_UNKNOWN) {
            assert_true(own.hard_ns > CLOCK_PAGE_HARD_NS_MAX - 2);
            continue;
        }
        assert_true(fabs((double)page.hard_ns - own.hard_ns) <= 2);
        assert_true(fabs((double)page.statistical_ns - own.statistical_ns) <= 2);
        assert_true(own.statistical_ns <= own.hard_ns);
    }
}

/* A stamp of CLOCK_REALTIME from before it was set is nobody's time; libfoliot-clock obeys
 * realtime_since (test_clocklib). */
static void a_set_realtime_is_on_the_page(void **state)
{
    struct page_maker maker;
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
    const struct clock_terms terms = terms_of(&line);

    page_maker_init(&maker);
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
    assert_true(maker.page.realtime_since == INT64_MIN);
    page_maker_realtime_set(&maker, (struct mono){NS_PER_S + 3});
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S + 5 * NS_PER_MS});
    assert_true(maker.page.realtime_since == NS_PER_S + 3);
}

/* UTC is the page's when the clock knows it, and gone when the clock no longer does. */
static void utc_comes_and_goes(void **state)
{
    struct page_maker maker;
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
    struct clock_terms terms = terms_of(&line);

    page_maker_init(&maker);
    assert_int_equal(maker.page.utc_bound_ns, -1);
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
    assert_int_equal(maker.page.utc_bound_ns, -1);
    terms.utc_known = true;
    terms.utc_minus_ns = -37;
    terms.utc_bound_ns = 1500;
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S + 5 * NS_PER_MS});
    assert_int_equal(maker.page.utc_minus_fleet_ns, -37);
    assert_int_equal(maker.page.utc_bound_ns, 1500);
    terms.utc_known = false;
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S + 10 * NS_PER_MS});
    assert_int_equal(maker.page.utc_minus_fleet_ns, 0);
    assert_int_equal(maker.page.utc_bound_ns, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_goes_forward),
        cmocka_unit_test(a_new_epoch_starts_afresh),
        cmocka_unit_test(a_restart_goes_on_from_the_old_page),
        cmocka_unit_test(lines_far_apart_slew_or_raise_the_epoch),
        cmocka_unit_test(a_guard_pass_keeps_the_line),
        cmocka_unit_test(page_and_terms_tell_one_bound),
        cmocka_unit_test(a_set_realtime_is_on_the_page),
        cmocka_unit_test(utc_comes_and_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
