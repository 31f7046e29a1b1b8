/* test_past.c: earlier values beside a sheet of now: counters are judged by the last day, and measurements by the host's own
 * values in the accepted audit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "judge_kit.h"
#include "service/audit/sheet.h"

#define DAY_S 86400
#define NOW   (INT64_C(1790000000) * 1000000000)

enum { HOSTS_MOST = 12 };

struct world {
    struct sheet *sheets[HOSTS_MOST], all[HOSTS_MOST];
    struct audit audit;
    char names[HOSTS_MOST][16];
    uint32_t count;
};

static void add(struct sheet *s, enum fact_id id, const char *subject, const char *value)
{
    sheet_add(s, &(struct fact){(uint16_t)id, FACT_VALUE, subject, value, "somewhere"});
}

static void add_number(struct sheet *s, enum fact_id id, const char *subject, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%lld", (long long)value);
    add(s, id, subject, text);
}

static struct sheet *beside(const struct sheet **to, int64_t before_s)
{
    struct sheet *s = sheet_new();

    assert_non_null(s);
    s->at_utc_ns = NOW - before_s * 1000000000;
    *to = s;
    return s;
}

static struct world *begin(uint32_t hosts)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    w->count = hosts;
    for (uint32_t i = 0; i < hosts; i++) {
        snprintf(w->names[i], sizeof(w->names[i]), "h%u", i);
        w->sheets[i] = sheet_new();
        assert_non_null(w->sheets[i]);
        w->sheets[i]->host = w->names[i];
        w->sheets[i]->at_utc_ns = NOW;
        add(w->sheets[i], FACT_OS_PRODUCT, "", "Made up");
    }
    return w;
}

static void finish(const struct sheet *s)
{
    if (s != NULL) {
        sheet_finish((struct sheet *)(uintptr_t)s);
    }
}

static void judge(struct world *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        finish(w->sheets[i]->was);
        finish(w->sheets[i]->accepted);
        finish(w->sheets[i]);
        w->all[i] = *w->sheets[i];
    }
    judge_sheets(&w->audit, w->all, w->count);
}

static void done(struct world *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        sheet_free(w->sheets[i]);
    }
    judge_done(&w->audit);
    free(w);
}

static const struct audit_result *result(const struct world *w, const char *check, uint32_t host)
{
    for (uint32_t i = 0; i < w->audit.count; i++) {
        const struct audit_result *r = &w->audit.results[i];
        if (strcmp(r->check->id, check) == 0 && r->sheet == host) {
            return r;
        }
    }
    fail_msg("no result of %s", check);
    return NULL;
}

/* ---- counters ---- */

/* A link of one host: how often it lost its carrier, a day before and now. */
static void assert_flaps(int64_t was, int64_t now, int64_t up_s, int64_t apart_s,
                         enum audit_status status, const char *found)
{
    struct world *w = begin(1);

    add(w->sheets[0], FACT_NET, "eth0", "eth0");
    add_number(w->sheets[0], FACT_NET_DOWNS, "eth0", now);
    add_number(w->sheets[0], FACT_OS_UPTIME, "", up_s);
    if (was >= 0) {
        add_number(beside(&w->sheets[0]->was, apart_s), FACT_NET_DOWNS, "eth0", was);
    }
    judge(w);
    const struct audit_result *r = result(w, "be.link.flaps", 0);
    assert_string_equal(r->found, found);
    assert_int_equal(r->status, status);
    assert_int_equal(r->fact_count, was >= 0 && up_s > apart_s ? 4 : 3); /* the value before, too */
    done(w);
}

static void test_flaps(void **state)
{
    /* 300 in 61 days are five a day; 300 today are more than that */
    assert_flaps(-1, 300, 61 * DAY_S, 0, AUDIT_WARN,
                 "lost its carrier 300 times in 61.0 days since boot");
    assert_flaps(0, 300, 61 * DAY_S, DAY_S, AUDIT_FAIL,
                 "lost its carrier 300 times in the last 24.0 hours");
    assert_flaps(300, 300, 61 * DAY_S, DAY_S, AUDIT_PASS,
                 "lost its carrier 0 times in the last 24.0 hours");
    /* an hour is less than a sixth of a day */
    assert_flaps(7, 8, 61 * DAY_S, 3600, AUDIT_PASS,
                 "lost its carrier 1 times in the last 1.0 hours");
    /* its driver was loaded again meanwhile: only its new count */
    assert_flaps(300, 3, 61 * DAY_S, DAY_S, AUDIT_PASS,
                 "lost its carrier 3 times in 24.0 hours, counted anew meanwhile");
    assert_flaps(300, 299, 61 * DAY_S, DAY_S, AUDIT_FAIL,
                 "lost its carrier 299 times in 24.0 hours, counted anew meanwhile");
    /* the host has booted meanwhile: a greater value is no difference */
    assert_flaps(1, 3, 7200, DAY_S, AUDIT_PASS, "lost its carrier 3 times in 2.0 hours since boot");
}

static void test_ratios(void **state)
{
    struct world *w = begin(2);
    struct sheet *was;

    for (int i = 0; i < 2; i++) { /* few of the month were sent again, many of the last day */
        add_number(w->sheets[i], FACT_OS_UPTIME, "", 31 * DAY_S);
        add_number(w->sheets[i], FACT_OS_SEGMENTS, "", 1000000000);
        add_number(w->sheets[i], FACT_OS_RETRANS, "", 100000);
        was = beside(&w->sheets[i]->was, DAY_S);
        add_number(was, FACT_OS_SEGMENTS, "", i == 0 ? 990000000 : 999999900);
        add_number(was, FACT_OS_RETRANS, "", i == 0 ? 0 : 99900);
    }
    judge(w);
    assert_int_equal(result(w, "fe.loss", 0)->status, AUDIT_FAIL);
    assert_string_equal(result(w, "fe.loss", 0)->found, "1.000 % in the last 24.0 hours");
    /* a hundred segments are too few: then all since boot count */
    assert_string_equal(result(w, "fe.loss", 1)->found, "0.010 % in 31.0 days since boot");
    assert_int_equal(result(w, "fe.loss", 1)->status, AUDIT_PASS);
    done(w);
}

/* ---- the accepted audit ---- */

static const char accepted[] = "audit 7 delivered, accepted 2026-11-02";

/* Bus bandwidth of a host, in thousandths, then and now. Returns the sheet of then. */
static struct sheet *add_rate(struct world *w, uint32_t host, int64_t then, int64_t now)
{
    struct sheet *was = beside(&w->sheets[host]->accepted, 30 * DAY_S), *is = w->sheets[host];

    was->run = accepted;
    add_number(was, FACT_TEST_RATE, "allreduce-q4", then);
    add_number(is, FACT_OS_UPTIME, "", 31 * DAY_S);
    add(is, FACT_TEST, "allreduce-q4.txt", "allreduce-q4.txt");
    add_number(is, FACT_TEST_RATE, "allreduce-q4", now);
    add_number(is, FACT_TEST_RUNS, "allreduce-q4", 5);
    return was;
}

/* The same for all hosts. */
static struct world *rates(uint32_t hosts, const int64_t *then, const int64_t *now)
{
    struct world *w = begin(hosts);

    for (uint32_t i = 0; i < hosts; i++) {
        (void)add_rate(w, i, then[i], now[i]);
    }
    judge(w);
    return w;
}

static void test_one_host_drifts(void **state)
{
    /* as fast as the slowest of the others, but slower than it was itself */
    static const int64_t then[6] = {200000, 199000, 201000, 200500, 199500, 240000},
                         now[6] = {200000, 199000, 201000, 200500, 199500, 200000};
    struct world *w = rates(6, then, now);
    const struct audit_result *r = result(w, "nccl.busbw.q4", 5);

    assert_int_equal(r->status, AUDIT_FAIL);
    assert_string_equal(r->found, "200.000");
    assert_string_equal(r->expected, "240.000, less 7.0 %");
    assert_string_equal(r->basis, accepted);
    assert_string_equal(r->baseline, accepted);
    assert_ptr_equal(r->facts[r->fact_count - 1], &w->all[5].accepted->facts[0]);
    for (uint32_t i = 0; i < 5; i++) {
        r = result(w, "nccl.busbw.q4", i);
        assert_int_equal(r->status, AUDIT_PASS);
        assert_string_equal(r->baseline, accepted);
    }
    done(w);
}

static void test_all_drift(void **state)
{
    static const int64_t then[6] = {200000, 200000, 200000, 200000, 200000, 200000},
                         now[6] = {160000, 160000, 160000, 160000, 160000, 160000};
    struct world *w = rates(6, then, now);

    for (uint32_t i = 0; i < 6; i++) {
        const struct audit_result *r = result(w, "nccl.busbw.q4", i);
        assert_int_equal(r->status, AUDIT_WARN);
        assert_false(r->suspect);
        assert_string_equal(
            r->note, "6 of 6 hosts of its kind are worse than then: what they share has changed");
    }
    done(w);
}

/* The spread between hosts then shows how much a difference means. */
static void test_wide_spread(void **state)
{
    static const int64_t then[6] = {150000, 180000, 200000, 220000, 250000, 240000},
                         now[6] = {150000, 180000, 200000, 220000, 250000, 200000};
    struct world *w = rates(6, then, now);

    assert_int_equal(result(w, "nccl.busbw.q4", 5)->status, AUDIT_PASS);
    done(w);
}

/* The fleet has grown by half: the rate of a collective with more ranks can't be compared with the old one. Nor can a rate whose
 * number of ranks is missing. */
static void test_other_size(void **state)
{
    static const struct {
        int64_t then, now;
        enum audit_status last;
    } cases[] = {{64, 64, AUDIT_FAIL}, {64, 96, AUDIT_PASS}, {-1, -1, AUDIT_PASS}};

    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct world *w = begin(6);
        for (uint32_t i = 0; i < 6; i++) {
            struct sheet *was = add_rate(w, i, i == 5 ? 240000 : 200000, 200000);
            add_number(was, FACT_TEST_RANKS, "allreduce-q4", cases[k].then);
            add_number(w->sheets[i], FACT_TEST_RANKS, "allreduce-q4", cases[k].now);
        }
        judge(w);
        assert_int_equal(result(w, "nccl.busbw.q4", 5)->status, cases[k].last);
        assert_int_equal(result(w, "nccl.busbw.q4", 0)->status, AUDIT_PASS);
        done(w);
    }
}

/* Two hosts can't be compared with each other, but each can be compared with its own past. */
static void test_small_fleet(void **state)
{
    static const int64_t then[2] = {200000, 200000}, now[2] = {199000, 150000};
    struct world *w = rates(2, then, now);

    assert_int_equal(result(w, "nccl.busbw.q4", 0)->status, AUDIT_PASS);
    assert_int_equal(result(w, "nccl.busbw.q4", 1)->status, AUDIT_WARN);
    assert_int_equal(result(w, "nccl.busbw.q2", 0)->status, AUDIT_UNKNOWN); /* it was not run */
    done(w);
}

/* A host is as far as the others now, but was nearer: it fails, by its neighbours' reports, too. The delays that they share have
 * not changed. A host with a wide bound is no evidence. */
static void test_delays(void **state)
{
    static const char edge[] =
        "rail, hops 1, paths 1, alive 1, dead 0 out 0 in, sent 100000, lost 0, least %d out %d in, "
        "late 900, bound %d";
    struct world *w = begin(8);

    for (uint32_t i = 0; i < 8; i++) {
        struct sheet *was = beside(&w->sheets[i]->accepted, 30 * DAY_S);
        char text[160];
        was->run = accepted;
        add_number(w->sheets[i], FACT_OS_UPTIME, "", 31 * DAY_S);
        for (uint32_t k = 0; k < 8; k++) {
            char subject[32];
            if (k == i) {
                continue;
            }
            /* h2 was 1.2 us nearer to all others; h5 was, too, with an unknown bound */
            const int less = i == 2 || k == 2 || i == 5 || k == 5 ? 1200 : 0,
                      bound = i == 5 || k == 5 ? 2000 : 20;
            snprintf(subject, sizeof(subject), "eth0 h%u eth0", k);
            snprintf(text, sizeof(text), edge, 5000 - less, 5000 - less, bound);
            add(was, FACT_EDGE, subject, text);
            snprintf(text, sizeof(text), edge, 5000, 5000, bound);
            add(w->sheets[i], FACT_EDGE, subject, text);
        }
    }
    judge(w);
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t counts[AUDIT_STATUS_COUNT];
        (void)audit_worst(&w->audit, "be.lat.base", i, counts);
        assert_int_equal(counts[AUDIT_FAIL], i == 2 ? 6 : 0);
        assert_int_equal(counts[AUDIT_WARN], i == 2 || i == 5 ? 0 : 1);
        assert_int_equal(counts[AUDIT_UNKNOWN], 0);
    }
    done(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flaps),           cmocka_unit_test(test_ratios),
        cmocka_unit_test(test_one_host_drifts), cmocka_unit_test(test_all_drift),
        cmocka_unit_test(test_wide_spread),     cmocka_unit_test(test_small_fleet),
        cmocka_unit_test(test_other_size),      cmocka_unit_test(test_delays)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
