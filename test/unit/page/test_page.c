/* From terms to pages: for any corrections of the clock a reader of page after page sees time go forward only, and ends on the
 * clock's line. */
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

/* Ticks with random corrections of up to `correction_ns`. Some are late, and pages are published late. */
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
            assert_true(fabs(off) <= (double)r.statistical_ns + 1.5);
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

static void a_clock_that_begins_anew_starts_afresh(void **state)
{
    struct page_maker maker;
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
    struct clock_terms terms = terms_of(&line);
    const int64_t later = 2 * NS_PER_S;

    page_maker_init(&maker);
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
    terms.epoch = 2;
    terms.line.r.ns = terms.line.until.ns = later;
    terms.line.x_ns = 7 * NS_PER_S;
    page_maker_update(&maker, &terms, (struct mono){later});
    maker.page.terms.magic = CLOCK_PAGE_MAGIC;
    assert_int_equal(clock_page_at(&maker.page.terms, later - 1, later).status, CLOCK_PAGE_UNKNOWN);
    struct clock_page_reading r = clock_page_at(&maker.page.terms, later + 5, later + 5);
    assert_true(r.estimate_ns == 9 * NS_PER_S + 5);
    terms.status = CLOCK_UNKNOWN;
    page_maker_update(&maker, &terms, (struct mono){later + 5});
    assert_int_equal(clock_page_at(&maker.page.terms, later + 6, later + 6).status,
                     CLOCK_PAGE_UNKNOWN);
}

/* A correction is slewed within a tick. Stamps of long before are read by that slewing piece, and their bound covers it. */
static void older_stamps_are_within_their_bound(void **state)
{
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {0}};
    struct clock_terms terms = terms_of(&line);
    struct page_maker maker;
    int64_t now = 2 * NS_PER_S;

    (void)state;
    page_maker_init(&maker);
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
    terms.line.x_ns += 500;
    for (int i = 0; i < 2; i++, now += 50 * NS_PER_MS) {
        terms.line.r.ns = terms.line.until.ns = now;
        page_maker_update(&maker, &terms, (struct mono){now});
    }
    maker.page.terms.magic = CLOCK_PAGE_MAGIC;
    for (int64_t c = NS_PER_S; c < now; c += 10 * NS_PER_MS) {
        const struct clock_page_reading r = clock_page_at(&maker.page.terms, c, now);
        assert_true(llabs(r.estimate_ns - c - terms.line.x_ns) <= r.hard_ns - 4500);
    }
}

/* A guard pass between ticks renews the bound and doesn't change the line. */
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
    }
}

/* A restarted agent's line is far from the earlier agent's. Within an epoch time doesn't run backwards and bounds hold, as long
 * as the lines can meet by slewing. Beyond that it jumps. */
static void lines_far_apart_slew_or_jump(void **state)
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
        if (meets) { /* the last time of the old page's readers */
            shown = clock_page_at(&old.page.terms, now, now).estimate_ns;
        }
        terms.line.x_ns += aparts[i];
        for (int64_t t = now; t < now + 4 * NS_PER_S; t += 25 * NS_PER_MS) {
            terms.line.r.ns = terms.line.until.ns = t;
            page_maker_update(&maker, &terms, (struct mono){t});
            maker.page.terms.magic = CLOCK_PAGE_MAGIC;
            const bool behind = !meets && t + terms.line.x_ns < 9 * NS_PER_S;
            assert_int_equal(maker.page.terms.epoch, aparts[i] < 0 && behind ? 9 : 0);
            assert_true(maker.page.terms.since == now); /* stamps since then have a time */
            for (int64_t c = t + PAGE_LEAD_NS; c < t + 25 * NS_PER_MS; c += 999983) {
                const struct clock_page_reading r = clock_page_at(&maker.page.terms, c, c);
                if (r.status == CLOCK_PAGE_UNKNOWN) {
                    continue; /* the bound is too wide to be useful */
                }
                assert_true(r.estimate_ns >= shown);
                assert_true(llabs(r.estimate_ns - c - terms.line.x_ns) <= r.hard_ns);
                shown = r.estimate_ns;
            }
        }
        assert_true(llabs(shown - (now + 4 * NS_PER_S) - terms.line.x_ns) < 30 * NS_PER_MS);
        const int64_t end = now + 4 * NS_PER_S;
        assert_true(llabs(clock_page_at(&maker.page.terms, end, end).estimate_ns - end -
                          terms.line.x_ns) < 1000); /* they have met */
    }
}

/* A clock that was ahead goes back, twice, and its agent restarts in between. No reader sees time run backwards within an epoch,
 * and in the end it is all other hosts' time. */
static void behind_what_was_shown_it_is_another_epoch(void **state)
{
    struct page_maker maker;
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
    struct clock_terms terms = terms_of(&line);
    int64_t latest[32] = {0};
    uint32_t seen = 0, epochs[4] = {0};

    page_maker_init(&maker);
    for (int64_t t = NS_PER_S; t < 21 * NS_PER_S; t += 50 * NS_PER_MS) {
        if (t == 4 * NS_PER_S || t == 6 * NS_PER_S) {
            terms.line.x_ns -= t == 4 * NS_PER_S ? 6 * NS_PER_S : 2 * NS_PER_S;
            terms.epoch++;
        } else if (t == 7 * NS_PER_S) {
            const struct clock_page_terms shown = maker.page.terms;
            page_maker_init(&maker);
            page_maker_resume(&maker, &shown);
            terms.epoch = 0;
        } else if (t == 18 * NS_PER_S) { /* ahead: no reader sees it go back */
            terms.line.x_ns += 3 * NS_PER_S;
            terms.epoch++;
        }
        terms.line.r.ns = terms.line.until.ns = t;
        page_maker_update(&maker, &terms, (struct mono){t});
        maker.page.terms.magic = CLOCK_PAGE_MAGIC;
        const uint32_t epoch = maker.page.terms.epoch;
        if (seen == 0 || epochs[seen - 1] != epoch) {
            assert_true(seen < ARRAY_COUNT(epochs));
            epochs[seen++] = epoch;
        }
        for (int64_t c = t + PAGE_LEAD_NS; c <= t + 50 * NS_PER_MS; c += 9950000) {
            const int64_t at = clock_page_at(&maker.page.terms, c, c).estimate_ns;
            assert_true(at >= latest[epoch]);
            latest[epoch] = at;
        }
    }
    assert_int_equal(seen, 4);
    assert_int_equal(epochs[0], 0);
    assert_int_equal(epochs[1], 10); /* it had shown 9.0 s */
    assert_int_equal(epochs[2], 11);
    assert_int_equal(epochs[3], 0);
}

static void another_timeline_owes_nothing(void **state)
{
    struct page_maker maker;
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
    struct clock_terms terms = terms_of(&line);

    page_maker_init(&maker);
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
    terms.timeline++;
    terms.line.x_ns = NS_PER_S;
    page_maker_update(&maker, &terms, (struct mono){2 * NS_PER_S});
    assert_int_equal(maker.page.terms.epoch, 0);
    assert_int_equal(maker.page.terms.since,
                     2 * NS_PER_S); /* earlier stamps belong to the other one */
    terms.line.x_ns = 0;
    page_maker_update(&maker, &terms, (struct mono){3 * NS_PER_S});
    assert_int_equal(maker.page.terms.epoch, 5); /* it had shown 4.0 s of this one */
}

/* Each part of a line is compared: a reader that took a new line for an older one would show a wrong time. */
static void another_line_is_followed(void **state)
{
    for (int what = 0; what < 8; what++) {
        const double sign = what % 2 == 0 ? 1 : -1;
        struct page_maker maker;
        struct clock_line line = {
            .r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .x_fraction = 0.5, .until = {NS_PER_S}};
        struct clock_terms terms = terms_of(&line);
        const int64_t now = NS_PER_S + 50 * NS_PER_MS, met = now + 2 * PAGE_MEET_NS;
        page_maker_init(&maker);
        page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
        terms.line.x_ns += what / 2 == 0 ? (int64_t)sign * 1000 : 0;
        terms.line.x_fraction += what / 2 == 1 ? 0.4 * sign : 0;
        terms.line.y += what / 2 == 2 ? 1e-6 * sign : 0;
        if (what / 2 == 3) { /* it slews for longer; the end of the slew is elsewhere */
            terms.line.slew = 1e-6 * sign;
            terms.line.until.ns = NS_PER_S + 20 * NS_PER_MS;
        }
        const struct linear_map before = maker.page.terms.map;
        page_maker_update(&maker, &terms, (struct mono){now});
        maker.page.terms.magic = CLOCK_PAGE_MAGIC;
        assert_memory_not_equal(&before, &maker.page.terms.map, sizeof(before));
        const double off = (double)(clock_page_at(&maker.page.terms, met, met).estimate_ns - met -
                                    terms.line.x_ns) -
                           line_value(&terms.line, met);
        assert_true(fabs(off) <= 1.5);
    }
}

/* The page before turns while the new one is written: between two readers, one of each, time doesn't go back. */
static void a_page_that_turns_meanwhile_is_continued(void **state)
{
    static const int64_t ahead[] = {-200000, -20000, -1000, 1000, 20000, 200000};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ahead); i++) {
        for (int64_t early_ns = -50000; early_ns <= 250000; early_ns += 50000) {
            struct page_maker maker;
            struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
            struct clock_terms terms = terms_of(&line);
            page_maker_init(&maker);
            page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
            terms.line.x_ns += ahead[i];
            page_maker_update(&maker, &terms, (struct mono){2 * NS_PER_S});
            maker.page.terms.magic = CLOCK_PAGE_MAGIC;
            const struct clock_page_terms before = maker.page.terms;
            const int64_t now = before.map_from - early_ns;
            terms.line.x_ns += ahead[i];
            page_maker_update(&maker, &terms, (struct mono){now});
            for (int64_t c = now; c < now + PAGE_LEAD_NS; c += 7777) {
                const int64_t was = clock_page_at(&before, c, c).estimate_ns;
                assert_true(clock_page_at(&maker.page.terms, c, c).estimate_ns + 1 >= was);
            }
            const int64_t end = now + PAGE_LEAD_NS;
            assert_true(llabs(clock_page_at(&maker.page.terms, end, end).estimate_ns -
                              clock_page_at(&before, end, end).estimate_ns) <= 1);
        }
    }
}

/* A page goes to the clock's line at 2 ppm, or faster to be there within a tick: readers get what the clock learned. */
static void a_small_correction_is_shown_within_milliseconds(void **state)
{
    static const struct {
        int64_t ns;
        double ms;
    } cases[] = {{10, 5}, {-10, 5}, {80, 40}, {-100, 50}, {2000, 50}, {-20000, 50}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct page_maker maker;
        struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
        struct clock_terms terms = terms_of(&line);
        const int64_t now = 2 * NS_PER_S, from = now + PAGE_LEAD_NS;
        page_maker_init(&maker);
        page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
        terms.line.x_ns += cases[i].ns;
        page_maker_update(&maker, &terms, (struct mono){now});
        maker.page.terms.magic = CLOCK_PAGE_MAGIC;
        for (int part = 0; part <= 3; part++) {
            const int64_t c = from + (int64_t)(cases[i].ms * 1e6 * part / 2);
            const int64_t shown =
                clock_page_at(&maker.page.terms, c, c).estimate_ns - c - 5 * NS_PER_S;
            const double share = part > 2 ? 1 : part / 2.0;
            assert_true(fabs((double)shown - share * (double)cases[i].ns) <= 1.5);
        }
    }
}

/* A first page shows the clock's line as it is: it slews, and ends to. */
static void a_first_page_slews_as_the_clock_does(void **state)
{
    struct page_maker maker;
    struct clock_line line = {.r = {NS_PER_S},
                              .x_ns = 5 * NS_PER_S,
                              .y = 20e-6,
                              .slew = 500e-6,
                              .until = {NS_PER_S + 80 * NS_PER_MS}};
    const struct clock_terms terms = terms_of(&line);

    page_maker_init(&maker);
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
    maker.page.terms.magic = CLOCK_PAGE_MAGIC;
    for (int64_t c = NS_PER_S; c < NS_PER_S + 200 * NS_PER_MS; c += NS_PER_MS) {
        const int64_t f = clock_page_at(&maker.page.terms, c, c).estimate_ns;
        assert_true(fabs((double)(f - c - line.x_ns) - line_value(&line, c)) <= 1.5);
    }
}

/* A page on the clock's line stays on it, however long the clock slews. */
static void a_long_slew_is_followed(void **state)
{
    struct page_maker maker;
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
    struct clock_terms terms = terms_of(&line);
    const int64_t now = NS_PER_S + 100 * NS_PER_MS;

    page_maker_init(&maker);
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
    line.r.ns = now;
    line.slew = 500e-6;
    line.until.ns = now + 2 * NS_PER_S;
    terms = terms_of(&line);
    page_maker_update(&maker, &terms, (struct mono){now});
    maker.page.terms.magic = CLOCK_PAGE_MAGIC;
    for (int64_t c = now + PAGE_LEAD_NS; c < now + 3 * NS_PER_S; c += 10 * NS_PER_MS) {
        const int64_t f = clock_page_at(&maker.page.terms, c, c).estimate_ns;
        /* nothing is slewed during the lead: 100 ns */
        assert_true(fabs((double)(f - c - line.x_ns) - line_value(&line, c)) <= 101.5);
    }
}

/* The earlier agent may have ended while it joined two lines: the next one goes on from there. */
static void a_restart_goes_on_amid_a_join(void **state)
{
    static const int64_t after_ms[] = {1, 20, 40, 49, 60, 400};

    for (size_t i = 0; i < ARRAY_COUNT(after_ms); i++) {
        struct page_maker old, maker;
        struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
        struct clock_terms terms = terms_of(&line);
        const int64_t joined = 2 * NS_PER_S, now = joined + after_ms[i] * NS_PER_MS;
        const int64_t from = now + PAGE_LEAD_NS;
        page_maker_init(&old);
        page_maker_update(&old, &terms, (struct mono){NS_PER_S});
        terms.line.x_ns -= 200000;
        page_maker_update(&old, &terms, (struct mono){joined});
        old.page.terms.magic = CLOCK_PAGE_MAGIC;

        page_maker_init(&maker);
        page_maker_resume(&maker, &old.page.terms);
        page_maker_update(&maker, &terms, (struct mono){now});
        maker.page.terms.magic = CLOCK_PAGE_MAGIC;
        for (int64_t c = now; c <= from; c += 50000) {
            assert_true(llabs(clock_page_at(&maker.page.terms, c, c).estimate_ns -
                              clock_page_at(&old.page.terms, c, c).estimate_ns) <= 1);
        }
    }
}

/* The earlier agent's time counts once: a clock that lost its time and found it again shows its own. */
static void the_old_page_is_owed_once(void **state)
{
    struct page_maker old, maker;
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
    struct clock_terms terms = terms_of(&line);

    page_maker_init(&old);
    page_maker_update(&old, &terms, (struct mono){NS_PER_S});
    old.page.terms.magic = CLOCK_PAGE_MAGIC;
    page_maker_init(&maker);
    page_maker_resume(&maker, &old.page.terms);
    terms.line.x_ns += 50000;
    page_maker_update(&maker, &terms, (struct mono){2 * NS_PER_S});
    terms.status = CLOCK_UNKNOWN;
    page_maker_update(&maker, &terms, (struct mono){3 * NS_PER_S});
    terms.status = CLOCK_SYNCED;
    page_maker_update(&maker, &terms, (struct mono){4 * NS_PER_S});
    maker.page.terms.magic = CLOCK_PAGE_MAGIC;
    assert_int_equal(maker.page.terms.epoch, 0);
    assert_true(clock_page_at(&maker.page.terms, 4 * NS_PER_S, 4 * NS_PER_S).estimate_ns ==
                4 * NS_PER_S + terms.line.x_ns);
}

/* Too fast for a reader's arithmetic: no line is bent that far, it jumps instead. */
static void no_line_is_bent_beyond_what_readers_take(void **state)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        struct page_maker maker;
        struct clock_line line = {
            .r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .y = sign * 2000e-6, .until = {NS_PER_S}};
        struct clock_terms terms = terms_of(&line);
        page_maker_init(&maker);
        page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
        terms.line.x_ns += sign * 600000; /* within 150 ms: 4,000 ppm more */
        page_maker_update(&maker, &terms, (struct mono){NS_PER_S + NS_PER_MS});
        assert_true(linear_map_valid(&maker.page.terms.line));
        assert_int_equal(maker.page.terms.since, NS_PER_S + NS_PER_MS);
        assert_int_equal(maker.page.terms.epoch, sign < 0 ? 7 : 0);
    }
}

/* A fleet of one has no other member: its bound is 0 and known. */
static void a_bound_of_zero_is_a_bound(void **state)
{
    struct page_maker maker;
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
    struct clock_terms terms = terms_of(&line);

    page_maker_init(&maker);
    assert_true(maker.page.terms.void_after == INT64_MAX);
    assert_true(maker.page.terms.guard == INT64_MAX);
    terms.h_ns = 0;
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
    assert_int_equal(maker.page.terms.status, CLOCK_PAGE_SYNCED);
    terms.h_ns = -1;
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
    assert_int_equal(maker.page.terms.status, CLOCK_PAGE_UNKNOWN);
}

/* A fraction may be rounded up to a whole nanosecond. A line that no longer slews has one piece. */
static void lines_as_integers(void **state)
{
    struct clock_line line = {
        .r = {NS_PER_S}, .x_ns = 5, .x_fraction = 1, .slew = 1e-3, .until = {NS_PER_S}};
    struct linear_map slewing, after;

    page_line_maps(&line, &slewing, &after);
    assert_int_equal(slewing.x, 6);
    assert_int_equal(slewing.x_fraction, 0);
    assert_memory_equal(&slewing, &after, sizeof(slewing));
}

static void a_guard_pass_keeps_the_line(void **state)
{
    struct page_maker maker;
    struct clock_line line = {.r = {NS_PER_S}, .x_ns = 5 * NS_PER_S, .until = {NS_PER_S}};
    struct clock_terms terms = terms_of(&line);

    page_maker_init(&maker);
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S});
    struct clock_page before = maker.page;
    terms.guarded = true;
    terms.guard.ns = NS_PER_S + 5;
    page_maker_update(&maker, &terms, (struct mono){NS_PER_S + 5 * NS_PER_MS});
    assert_memory_equal(&before.terms.prior, &maker.page.terms.prior,
                        3 * sizeof(struct linear_map));
    assert_true(maker.page.terms.guard == NS_PER_S + 5);
}

/* A reader of the page and a reader of the clock's terms get the same bound, at any age. */
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

/* A stamp of CLOCK_REALTIME from before it was set has no fleet time. libfoliot-clock obeys realtime_since (test_clocklib). */
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

/* The page has UTC while the clock has it. */
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
        cmocka_unit_test(a_clock_that_begins_anew_starts_afresh),
        cmocka_unit_test(older_stamps_are_within_their_bound),
        cmocka_unit_test(a_restart_goes_on_from_the_old_page),
        cmocka_unit_test(lines_far_apart_slew_or_jump),
        cmocka_unit_test(behind_what_was_shown_it_is_another_epoch),
        cmocka_unit_test(another_timeline_owes_nothing),
        cmocka_unit_test(another_line_is_followed),
        cmocka_unit_test(a_small_correction_is_shown_within_milliseconds),
        cmocka_unit_test(a_page_that_turns_meanwhile_is_continued),
        cmocka_unit_test(a_first_page_slews_as_the_clock_does),
        cmocka_unit_test(a_long_slew_is_followed),
        cmocka_unit_test(a_restart_goes_on_amid_a_join),
        cmocka_unit_test(the_old_page_is_owed_once),
        cmocka_unit_test(no_line_is_bent_beyond_what_readers_take),
        cmocka_unit_test(a_bound_of_zero_is_a_bound),
        cmocka_unit_test(lines_as_integers),
        cmocka_unit_test(a_guard_pass_keeps_the_line),
        cmocka_unit_test(page_and_terms_tell_one_bound),
        cmocka_unit_test(a_set_realtime_is_on_the_page),
        cmocka_unit_test(utc_comes_and_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
