/* The clock page: readers see complete pages, the lines join, bounds grow with age, and any bytes are safe. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/prng.h"
#include "base/time.h"
#include "wire/clock_page.h"

static const int64_t start = 1000 * NS_PER_S;

static struct clock_page sample(void)
{
    const struct linear_map map = {.r = start, .x = 1790000000 * NS_PER_S, .y = linear_map_y(1000)};

    return (struct clock_page){
        .terms = {.status = CLOCK_PAGE_SYNCED,
                  .timeline = 5,
                  .epoch = 2,
                  .written = start,
                  .since = start - 60 * NS_PER_S,
                  .void_after = INT64_MAX,
                  .line_from = start,
                  .map_from = start + 100 * NS_PER_MS,
                  .prior = map,
                  .line = map,
                  .map = map,
                  .h_ns = 5000,
                  .rate_limit = 2e-6,
                  .rate_drift = 1e-7,
                  .p00 = 100,
                  .q2 = 25,
                  .spread2 = 21,
                  .shift_ns = 4,
                  .guard = start,
                  .guard_ns = 500,
                  .guard_rate = 6e-5},
        .utc_bound_ns = -1,
        .nic_count = 1,
        .nics = {{.name = "eth0",
                  .nic = 3,
                  .status = CLOCK_PAGE_SYNCED,
                  .map = map,
                  .h_ns = 6000,
                  .statistical_ns = 50}},
    };
}

static void write_then_read(void **state)
{
    static struct clock_page_memory memory;
    struct clock_page page = sample(), read;
    struct clock_page_terms terms;

    clock_page_init(&memory, 0x1235);
    assert_false(clock_page_read(&memory, &read)); /* never written */
    clock_page_write(&memory, &page);
    page.terms.magic = CLOCK_PAGE_MAGIC;
    page.terms.version = CLOCK_PAGE_VERSION;
    assert_true(clock_page_read(&memory, &read));
    assert_int_equal(read.terms.quick.valid, 1);
    page.terms.quick = read.terms.quick;
    assert_memory_equal(&read, &page, sizeof(page));
    assert_true(clock_page_read_terms(&memory, &terms));
    assert_memory_equal(&terms, &page.terms, sizeof(terms));
    memory.sequence |= 1; /* the writer died during a write */
    assert_false(clock_page_read(&memory, &read));
    clock_page_write(&memory, &page);
    assert_true(clock_page_read(&memory, &read));
}

static void bounds_grow_with_age(void **state)
{
    const struct clock_page page = sample();
    struct clock_page_terms t = page.terms;

    struct clock_page_reading now = clock_page_at(&t, start, start);
    assert_int_equal(now.status, CLOCK_PAGE_SYNCED);
    assert_true(now.estimate_ns == start + page.terms.map.x);
    assert_int_equal(now.hard_ns, 5501);                  /* h + G */
    assert_int_equal(now.statistical_ns, 6 * 11 + 4 + 1); /* 6 sqrt(121) + shift */
    struct clock_page_reading later = clock_page_at(&t, start + NS_PER_S, start + NS_PER_S);
    assert_int_equal(later.hard_ns, 5501 + 2000 + 60000); /* 2 ppm and J for 1 s */
    assert_in_range(later.estimate_ns - now.estimate_ns, NS_PER_S + 999, NS_PER_S + 1000);
    struct clock_page_reading past =
        clock_page_at(&t, start - NS_PER_S, start); /* no J: the guard has passed since */
    assert_int_equal(past.hard_ns, 5501 + 2000);
    t.guard = INT64_MAX;
    later = clock_page_at(&t, start + 40 * NS_PER_S, start + 40 * NS_PER_S);
    /* 2 ppm for 20 s, then 100 ppb a second more each second: 40 + 40 + 20 us */
    assert_int_equal(later.status, CLOCK_PAGE_HOLDOVER);
    assert_in_range(later.hard_ns, 105000, 105001);
}

static void status_ages(void **state)
{
    struct clock_page_terms t = sample().terms;

    t.guard = INT64_MAX;
    t.rate_limit = 1e-9;
    t.rate_drift = 0;
    struct clock_page_reading r = clock_page_at(&t, start + 2 * NS_PER_S, start + 2 * NS_PER_S);
    assert_int_equal(r.status, CLOCK_PAGE_SYNCED);
    r = clock_page_at(&t, start + 2 * NS_PER_S + 1, start + 2 * NS_PER_S + 1);
    assert_int_equal(r.status, CLOCK_PAGE_HOLDOVER);
    r = clock_page_at(&t, start, start + 3601 * NS_PER_S);
    assert_int_equal(r.status, CLOCK_PAGE_UNKNOWN);
    assert_true(r.hard_ns == INT64_MAX && r.estimate_ns == 0);
    r = clock_page_at(&t, t.since - 1, start);
    assert_int_equal(r.status, CLOCK_PAGE_UNKNOWN);
    r = clock_page_at(&t, start - 2 * NS_PER_S, start - 2 * NS_PER_S); /* raw from another boot */
    assert_int_equal(r.status, CLOCK_PAGE_UNKNOWN);
    t.void_after = start + 5;
    assert_int_equal(clock_page_at(&t, start, start + 6).status, CLOCK_PAGE_DISRUPTED);
    t.h_ns = 5e6;
    assert_int_equal(clock_page_at(&t, start, start).status, CLOCK_PAGE_UNKNOWN);
}

/* The quick reading in whole numbers is the exact one, or a little wider. */
static void quick_is_never_narrower(void **state)
{
    static struct clock_page_memory memory;
    struct prng p;

    prng_init(&p, 9);
    clock_page_init(&memory, 2);
    for (int i = 0; i < 20000; i++) {
        struct clock_page page = sample();
        struct clock_page_head head;
        struct clock_page_reading quick;
        struct clock_page_terms *t = &page.terms;
        const int64_t c = start + (int64_t)prng_below(&p, 600 * NS_PER_MS) - NS_PER_MS;

        t->h_ns = 1e4 * prng_uniform(&p);
        t->p00 = 1e4 * prng_uniform(&p);
        t->p11 = 1e4 * prng_uniform(&p);
        t->p01 = (prng_uniform(&p) * 2 - 1) * sqrt(t->p00 * t->p11);
        t->q2 = 1e5 * prng_uniform(&p);
        t->guard = prng_below(&p, 2) ? INT64_MAX : start - 5 * NS_PER_MS;
        clock_page_write(&memory, &page);
        assert_true(clock_page_read_at(&memory, c, c, &head, &quick));
        struct clock_page_reading exact = clock_page_at(t, c, c);
        struct clock_page_reading later =
            clock_page_at(t, c + (1 << CLOCK_PAGE_BIN_SHIFT), c + (1 << CLOCK_PAGE_BIN_SHIFT));
        assert_int_equal(quick.status, exact.status);
        assert_true(quick.estimate_ns == exact.estimate_ns);
        assert_true(quick.hard_ns >= exact.hard_ns && quick.hard_ns <= exact.hard_ns + 3);
        assert_true(quick.statistical_ns + 1 >= exact.statistical_ns);
        assert_true(t->p01 < 0 || quick.statistical_ns <= later.statistical_ns + 1);
    }
}

/* Across the joints of the lines time only goes forward, nanosecond by nanosecond. */
static void lines_join(void **state)
{
    struct clock_page_terms t = sample().terms;
    int64_t before = INT64_MIN;

    t.line.r = t.line_from = start + 1000;
    t.line.x = linear_map_at(&t.prior, t.line_from) - t.line_from;
    t.line.y = linear_map_y(-200e3);
    t.map.r = t.map_from = start + 3000;
    t.map.x = linear_map_at(&t.line, t.map_from) - t.map_from;
    for (int64_t c = start; c < start + 4000; c++) {
        const int64_t f = clock_page_at(&t, c, c).estimate_ns;
        assert_true(f >= before && f <= (before == INT64_MIN ? f : before + 3));
        before = f;
    }
}

static void nic_stamps(void **state)
{
    const struct clock_page page = sample();
    struct clock_page_reading r = clock_page_nic_at(&page, 0, start + 5, start + 10);

    assert_int_equal(r.status, CLOCK_PAGE_SYNCED);
    assert_true(r.estimate_ns == start + 5 + page.terms.map.x);
    assert_int_equal(r.statistical_ns, 50);
    assert_int_equal(clock_page_nic_at(&page, 1, start, start).status, CLOCK_PAGE_UNKNOWN);
    r = clock_page_nic_at(&page, 0, start - 61 * NS_PER_S, start); /* before `since` */
    assert_int_equal(r.status, CLOCK_PAGE_UNKNOWN);
}

/* No bytes make the reader crash, loop, or return a time with a bound that overflows. */
static void any_bytes_are_safe(void **state)
{
    static struct clock_page_memory memory;
    struct prng p;

    prng_init(&p, 3);
    for (int i = 0; i < 20000; i++) {
        struct clock_page page = sample(), read;
        clock_page_init(&memory, 2);
        clock_page_write(&memory, &page);
        for (uint64_t k = prng_below(&p, 4); k < 4; k++) {
            memory.words[prng_below(&p, i % 2 ? 40 : 511)] =
                prng_below(&p, 2) ? prng_u64(&p) : 1ULL << prng_below(&p, 64);
        }
        if (clock_page_read(&memory, &read)) {
            const int64_t c = prng_below(&p, 2) ? (int64_t)prng_u64(&p) : start;
            const struct clock_page_reading r = clock_page_at(&read.terms, c, c);
            const struct clock_page_reading n = clock_page_nic_at(&read, 0, c, start);
            assert_true(r.status == CLOCK_PAGE_UNKNOWN || r.hard_ns <= CLOCK_PAGE_HARD_NS_MAX);
            assert_true(n.status == CLOCK_PAGE_UNKNOWN || n.hard_ns <= CLOCK_PAGE_HARD_NS_MAX);
        }
    }
}

struct race {
    struct clock_page_memory memory;
    int stop;
};

static void *write_always(void *arg)
{
    struct race *race = arg;
    struct clock_page page = sample();

    for (int64_t i = 1; !__atomic_load_n(&race->stop, __ATOMIC_RELAXED); i++) {
        page.terms.timeline = (uint64_t)i;
        page.terms.map.x = i; /* far apart in the page */
        page.terms.pass_suspended = i;
        page.utc_minus_fleet_ns = i;
        clock_page_write(&race->memory, &page);
        if (i % 8 == 0) {
            /* else, under a sanitizer, a reader hardly ever finds the page complete */
            nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
        }
    }
    return NULL;
}

static void a_reader_never_sees_half_a_page(void **state)
{
    static struct race race;
    pthread_t writer;
    const time_t until = time(NULL) + 120; /* a writer may lose its processor in the middle */
    int seen = 0;

    clock_page_init(&race.memory, 8);
    assert_int_equal(pthread_create(&writer, NULL, write_always, &race), 0);
    for (int i = 0; (i < 200000 || (seen == 0 && time(NULL) < until)) && seen < 20000; i++) {
        struct clock_page read;
        if (clock_page_read(&race.memory, &read)) {
            seen++;
            assert_true((int64_t)read.terms.timeline == read.terms.map.x);
            assert_true(read.terms.map.x == read.terms.pass_suspended);
            assert_true(read.terms.map.x == read.utc_minus_fleet_ns);
        }
    }
    __atomic_store_n(&race.stop, 1, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_true(seen > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(write_then_read),
        cmocka_unit_test(bounds_grow_with_age),
        cmocka_unit_test(status_ages),
        cmocka_unit_test(lines_join),
        cmocka_unit_test(quick_is_never_narrower),
        cmocka_unit_test(nic_stamps),
        cmocka_unit_test(any_bytes_are_safe),
        cmocka_unit_test(a_reader_never_sees_half_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
