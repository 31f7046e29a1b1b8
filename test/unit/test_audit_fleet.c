/* test_audit_fleet.c: what an audit of a fleet adds to judging: sheets in parts, hosts without a sheet, two looks, the gate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/judge_kit.h"
#include "base/bug.h"
#include "core/audit/gate.h"
#include "core/audit/part.h"
#include "service/audit/sheet.h"

static struct sheet *sheet_of(int host)
{
    static const struct fact facts[] = {
        {FACT_OS_KERNEL, FACT_VALUE, "", "6.1.0", "/proc/sys/kernel/osrelease"},
        {FACT_OS_PRODUCT, FACT_VALUE, "", "Made up", "/sys/class/dmi/id/product_name"},
        {FACT_OS_UPTIME, FACT_VALUE, "", "99999", "/proc/uptime"},
        {FACT_NET_MTU, FACT_VALUE, "eth1", "9000", "/sys/class/net/eth1/mtu"},
        {FACT_NET_MTU, FACT_NO_PERMISSION, "eth2", "", "/sys/class/net/eth2/mtu"},
        {FACT_MEM_CE, FACT_GARBLED, "mc0", "a lot", ""}};
    struct sheet *s = sheet_new();
    char id[16];

    assert_non_null(s);
    snprintf(id, sizeof(id), "machine%d", host);
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        sheet_add(s, &facts[i]);
    }
    sheet_add(s, &(struct fact){FACT_OS_MACHINE_ID, FACT_VALUE, "", id, "/etc/machine-id"});
    sheet_finish(s);
    s->host = "host";
    return s;
}

static void test_parts_and_back(void **state)
{
    struct sheet *s = sheet_of(1), *back = sheet_new();
    char text[PART_COUNT][4096];

    for (unsigned part = 0; part < PART_COUNT; part++) {
        const size_t size = sheet_part_encode(s, part, text[part], sizeof(text[part]));
        assert_true(size < sizeof(text[part]));
        assert_true(sheet_part_facts(text[part], size) >= (size > 0 ? 2 : 1));
        sheet_part_decode(back, text[part], size);
        assert_int_equal(sheet_part_by_name(sheet_part_name(part)), part);
        /* without room it returns the size that it needs, and writes no further */
        char small[8] = "xxxxxxx";
        assert_int_equal(sheet_part_encode(s, part, small, 4), size);
        assert_string_equal(small + 4, "xxx");
    }
    sheet_finish(back);
    assert_int_equal(back->count, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        assert_int_equal(back->facts[i].id, s->facts[i].id);
        assert_int_equal(back->facts[i].state, s->facts[i].state);
        assert_string_equal(back->facts[i].subject, s->facts[i].subject);
        assert_string_equal(back->facts[i].value, s->facts[i].value);
        assert_string_equal(back->facts[i].source, s->facts[i].source);
    }
    sheet_free(s);
    sheet_free(back);
}

/* Hosts of one kind differ only in their own part. */
static void test_shared(void **state)
{
    struct sheet *a = sheet_of(1), *b = sheet_of(2);
    char x[4096], y[4096];

    for (unsigned part = 0; part < PART_COUNT; part++) {
        const size_t n = sheet_part_encode(a, part, x, sizeof(x));
        const bool same = n == sheet_part_encode(b, part, y, sizeof(y)) && memcmp(x, y, n) == 0;
        assert_int_equal(same, part != PART_OWN);
    }
    sheet_free(a);
    sheet_free(b);
}

/* A counter in a kept part would make new content with each look. */
static void test_counters_are_of_now(void **state)
{
    static const char *const words[] = {"since boot", "times that", "in the log", "sent again"};

    for (unsigned id = 0; id < FACT_COUNT; id++) {
        for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
            if (strstr(fact_what(id), words[k]) != NULL && sheet_part_of(id) != PART_NOW) {
                fail_msg("%s: %s", fact_name(id), fact_what(id));
            }
        }
    }
}

static void test_strange_lines(void **state)
{
    static const char text[] =
        "\nos.kernel\nos.kernel\tvalue\t\t6.1\nos.kernel\tvalue\t\t6.1\t/x\ty\n"
        "os.nothing\tvalue\t\t1\t/x\nos.bios\tperhaps\t\t1\t/x\n"
        "os.board\tvalue\t\tgood\t/x\0\nos.uptime\tvalue\t\t12x\t/x\n"
        "os.virtual\tvalue\t\t1\t/x";
    struct sheet *s = sheet_new();
    char *longest = malloc(1 << 16);

    sheet_part_decode(s, text, sizeof(text) - 1);
    memset(longest, 'a', 1 << 16);
    sheet_part_decode(s, longest, 1 << 16);
    sheet_finish(s);
    assert_int_equal(s->count, 2);
    assert_int_equal(s->facts[0].id, FACT_OS_UPTIME);
    assert_int_equal(s->facts[0].state, FACT_GARBLED);
    assert_int_equal(s->facts[1].id, FACT_OS_VIRTUAL);
    sheet_free(s);
    free(longest);
}

/* ---- looks ---- */

enum { HOSTS = 3 };

static struct audit_result *result(struct audit *a, const char *check, uint32_t sheet)
{
    for (uint32_t i = 0; i < a->count; i++) {
        if (strcmp(a->results[i].check->id, check) == 0 && a->results[i].sheet == sheet) {
            return &a->results[i];
        }
    }
    fail_msg("no result of %s", check);
    return NULL;
}

/* An audit without a matrix holds no host back for that. A fault in a measured matrix does. */
static void test_matrix_where_measured(void **state)
{
    struct sheet *one = sheet_of(1), *bad = sheet_of(2), *lost = sheet_of(3);
    struct audit a;

    sheet_add(bad, &(struct fact){
                       FACT_MATRIX, FACT_VALUE, "nic0",
                       "cells 8, unmeasured 0, dead_out 4, dead_in 0, partners 0, sent_out 20, "
                       "lost_out 0, sent_in 20, lost_in 0, late_cells 0",
                       ""});
    sheet_add(lost, &(struct fact){
                        FACT_MATRIX, FACT_VALUE, "nic0",
                        "cells 8, unmeasured 8, dead_out 0, dead_in 0, partners 0, sent_out 0, "
                        "lost_out 0, sent_in 0, lost_in 0, late_cells 0, why busy",
                        ""});
    sheet_finish(bad);
    sheet_finish(lost);
    struct sheet sheets[HOSTS] = {*one, *bad, *lost};
    judge_sheets(&a, sheets, HOSTS);
    assert_int_equal(result(&a, "be.matrix.reach", 0)->status, AUDIT_SKIP);
    assert_int_equal(result(&a, "be.matrix.reach", 1)->status, AUDIT_FAIL);
    assert_int_equal(result(&a, "be.matrix.reach", 2)->status, AUDIT_UNKNOWN);
    assert_int_equal(result(&a, "be.matrix.reach", 2)->reason, REASON_BUSY);
    judge_done(&a);
    sheet_free(one);
    sheet_free(bad);
    sheet_free(lost);
}

/* Marks and their results: an agent counts as old if nothing was marked, not if nothing is known. */
static void test_marks(void **state)
{
#define OF_MARKS                                                                                   \
    "cells 8, unmeasured 0, dead_out 0, dead_in 0, partners 0, sent_out 4, lost_out 0, sent_in "   \
    "4, lost_in 0"
    static const struct {
        const char *words, *declared;
        enum audit_status status;
        enum audit_reason reason;
        const char *note;
    } cases[] = {{", marked 8, remarked_out 0, remarked_in 0, elsewhere 0, within 0, across 0",
                  NULL, AUDIT_PASS, 0, ""},
                 {", marked 8, remarked_out 4, remarked_in 4, elsewhere 0, within 0, across 0",
                  NULL, AUDIT_FAIL, 0, "or all of the leaf"},
                 {", marked 2, remarked_out 0, remarked_in 0, elsewhere 2, within 2, across 0",
                  NULL, AUDIT_WARN, 0, "of its leaf"},
                 {", marked 8, remarked_out 0, remarked_in 0, elsewhere 4, within 0, across 4",
                  NULL, AUDIT_WARN, 0, "between leaves alone"},
                 {", marked 8, remarked_out 0, remarked_in 0, elsewhere 4, within 0, across 0",
                  NULL, AUDIT_WARN, 0, "a leaf, a spine or a trunk"},
                 {", marked 0, remarked_out 0, remarked_in 0, elsewhere 0, within 0, across 0",
                  NULL, AUDIT_UNKNOWN, REASON_NOT_RUN, "lost a packet"},
                 {", unmarked 8", NULL, AUDIT_UNKNOWN, REASON_OLD_AGENT, "too old"},
                 {", unmarked 8", "0", AUDIT_SKIP, 0, "DSCP 0"},
                 {"", NULL, AUDIT_SKIP, 0, "of its rail"},
                 {", why busy", NULL, AUDIT_UNKNOWN, REASON_BUSY, "a job runs"}};
    struct check_setting *settings = calloc(CATALOGUE_COUNT, sizeof(*settings));
    struct audit_settings set = audit_usual;
    set.checks = settings;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct sheet *s = sheet_of(1);
        char words[512];
        struct audit a;
        snprintf(words, sizeof(words), "%s%s", OF_MARKS, cases[i].words);
        settings[check_number(check_by_id("be.roce.dscp_path"))].declared = cases[i].declared;
        sheet_add(s, &(struct fact){FACT_PORT, FACT_VALUE, "mlx5_0/1", "1", ""});
        sheet_add(s, &(struct fact){FACT_PORT_LAYER, FACT_VALUE, "mlx5_0/1", "Ethernet", ""});
        sheet_add(s, &(struct fact){FACT_PORT_NET, FACT_VALUE, "mlx5_0/1", "nic0", ""});
        sheet_add(s, &(struct fact){FACT_MATRIX, FACT_VALUE, "nic0", words, ""});
        sheet_finish(s);
        struct sheet sheets[HOSTS] = {*s, {.host = "gone", .missing = REASON_OLD_AGENT}, *s};
        sheets[2].missing = REASON_OLD_AGENT;
        judge_sheets(&a, sheets, HOSTS);
        a.settings = &set;
        assert_int_equal(audit_judge(&a), 0);
        const struct audit_result *r = result(&a, "be.roce.dscp_path", 0);
        if (r->status != cases[i].status || r->reason != cases[i].reason ||
            strstr(r->note, cases[i].note) == NULL) {
            fail_msg("%s: %s, reason %s, %s", cases[i].words, audit_status_name(r->status),
                     audit_reason_name(r->reason), r->note);
        }
        judge_done(&a);
        sheet_free(s);
    }
    free(settings);
}

/* A matrix's values for one interface, and the results. */
static void test_matrix_words(void **state)
{
#define CELLS "cells 8, unmeasured 0, dead_out 0, dead_in 0, partners 0, "
#define SENT  "sent_out 400, lost_out 0, sent_in 400, lost_in 0"
    static const struct {
        const char *words, *id;
        enum audit_status status;
        enum audit_reason reason;
        const char *note;
    } cases[] = {
        {CELLS SENT ", out 100, in 90, limit 1000, bound 50", "be.matrix.delay", AUDIT_PASS, 0, ""},
        {CELLS SENT ", out 90000, in 90, limit 1000, bound 50", "be.matrix.delay", AUDIT_FAIL, 0,
         "its sending side alone"},
        {CELLS SENT ", out 90, in 90000, limit 1000, bound 50", "be.matrix.delay", AUDIT_FAIL, 0,
         "its receiving side alone"},
        {CELLS SENT ", out 90000, in 90000, limit 1000, bound 50", "be.matrix.delay", AUDIT_FAIL, 0,
         ""},
        /* clocks with wide or young bounds: their error makes the other direction earlier */
        {CELLS SENT ", out 90000, in -89000, limit 1000, bound 40000", "be.matrix.delay",
         AUDIT_UNKNOWN, REASON_CLOCK, "the clocks' bounds are 40000 ns: too wide to tell"},
        {CELLS SENT ", out 90000, in -88001, limit 1000, bound 40000", "be.matrix.delay",
         AUDIT_UNKNOWN, REASON_CLOCK, NULL},
        {CELLS SENT ", out 90000, in 90, limit 1000, bound 40000", "be.matrix.delay", AUDIT_FAIL, 0,
         "both sides together; which one the clocks do not tell: their bounds are 40000 ns"},
        {CELLS SENT ", out -30000, in 90000, limit 1000, bound 40000", "be.matrix.delay",
         AUDIT_FAIL, 0, NULL},
        {CELLS SENT ", out 90000, in -89000, limit 1000, bound 50, steady 59", "be.matrix.delay",
         AUDIT_UNKNOWN, REASON_YOUNG,
         "its clock was in step for 59 s only: look again in a minute"},
        {CELLS SENT ", out 90000, in 90, limit 1000, bound 50, steady 59", "be.matrix.delay",
         AUDIT_FAIL, 0, "its sending side alone"},
        {CELLS SENT ", out 90000, in 90, limit 1000, bound 50, steady 60", "be.matrix.delay",
         AUDIT_FAIL, 0, "its sending side alone"},
        {CELLS SENT ", out 100, in 90, limit 1000, bound 50, steady 1", "be.matrix.delay",
         AUDIT_PASS, 0, ""},
        {CELLS SENT, "be.matrix.delay", AUDIT_UNKNOWN, REASON_CLOCK, NULL},
        /* lost packets: with few packets it is unknown, and one or two losses don't count */
        {CELLS SENT, "be.matrix.loss", AUDIT_PASS, 0, ""},
        {CELLS "sent_out 400, lost_out 2, sent_in 400, lost_in 0", "be.matrix.loss", AUDIT_PASS, 0,
         ""},
        {CELLS "sent_out 400, lost_out 3, sent_in 400, lost_in 0", "be.matrix.loss", AUDIT_WARN, 0,
         ""},
        {CELLS "sent_out 400, lost_out 200, sent_in 400, lost_in 0", "be.matrix.loss", AUDIT_FAIL,
         0, ""},
        {CELLS "sent_out 400, lost_out 0, sent_in 400, lost_in 200", "be.matrix.loss", AUDIT_FAIL,
         0, ""},
        {CELLS "sent_out 4000, lost_out 8, sent_in 4000, lost_in 0", "be.matrix.loss", AUDIT_WARN,
         0, ""},
        {CELLS "sent_out 4000, lost_out 4, sent_in 4000, lost_in 0", "be.matrix.loss", AUDIT_PASS,
         0, ""},
        {CELLS "sent_out 50, lost_out 30, sent_in 49, lost_in 30", "be.matrix.loss", AUDIT_UNKNOWN,
         0, NULL},
        {CELLS "sent_out 50, lost_out 30, sent_in 50, lost_in 30", "be.matrix.loss", AUDIT_FAIL, 0,
         ""},
        /* what most of a leaf lose is no NIC's own loss */
        {CELLS SENT ", shared 3", "be.matrix.loss", AUDIT_PASS, 0, ""},
        {CELLS SENT ", shared 40", "be.matrix.loss", AUDIT_WARN, 0,
         "40 more are lost with those of most interfaces of its leaf: a trunk is dead, or the leaf "
         "loses them"},
        {CELLS SENT ", alone 3", "be.matrix.loss", AUDIT_PASS, 0, ""},
        {CELLS SENT ", alone 8", "be.matrix.loss", AUDIT_WARN, 0,
         "8 more are lost with one host alone: on the way between the two, or one of both tells "
         "what is not so"},
        {CELLS SENT ", alone much", "be.matrix.loss", AUDIT_UNKNOWN, 0, NULL},
        {CELLS SENT ", shared much", "be.matrix.loss", AUDIT_UNKNOWN, 0, NULL},
        {CELLS SENT ", marked many", "be.matrix.loss", AUDIT_UNKNOWN, 0, NULL},
        /* reachability */
        {CELLS SENT, "be.matrix.reach", AUDIT_PASS, 0, ""},
        {"cells 8, unmeasured 0, dead_out 0, dead_in 1, partners 0, " SENT, "be.matrix.reach",
         AUDIT_FAIL, 0, ""},
        {"cells 8, unmeasured 0, dead_out 0, dead_in 0, partners 2, " SENT, "be.matrix.reach",
         AUDIT_WARN, 0, ""},
        {"cells 8, unmeasured 3, dead_out 0, dead_in 0, partners 0, " SENT ", why busy",
         "be.matrix.reach", AUDIT_PASS, 0, "3 of 8 cells are not measured, most: busy"},
        {"cells 0, unmeasured 0, dead_out 0, dead_in 0, partners 0, " SENT, "be.matrix.reach",
         AUDIT_SKIP, 0, NULL},
        /* text that is no matrix's gives no verdict */
        {"cells 8, unmeasured 9, dead_out 0, dead_in 0, partners 0, " SENT, "be.matrix.reach",
         AUDIT_UNKNOWN, 0, NULL},
        {CELLS SENT ", steady soon", "be.matrix.reach", AUDIT_UNKNOWN, 0, NULL},
        {"cells 8", "be.matrix.reach", AUDIT_UNKNOWN, 0, NULL},
    };

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct sheet *one = sheet_of(1), *measured = sheet_of(2);
        struct audit a;
        sheet_add(measured, &(struct fact){FACT_MATRIX, FACT_VALUE, "nic0", cases[i].words, ""});
        sheet_finish(measured);
        struct sheet sheets[HOSTS] = {*one, *measured, *one};
        judge_sheets(&a, sheets, HOSTS);
        const struct audit_result *r = result(&a, cases[i].id, 1);
        if (r->status != cases[i].status ||
            (cases[i].note != NULL && strcmp(r->note, cases[i].note) != 0) ||
            (cases[i].reason != REASON_NONE && r->reason != cases[i].reason)) {
            fail_msg("%s: %s: %s, reason %s, %s", cases[i].words, cases[i].id,
                     audit_status_name(r->status), audit_reason_name(r->reason), r->note);
        }
        judge_done(&a);
        sheet_free(one);
        sheet_free(measured);
    }
}

/* Packets of some source ports were lost between two interfaces. If the second matrix has it, too, it is a failure with two
 * partners, else a warning. If it hasn't, it was chance, and leaves no result. If the host was not measured again, it is
 * unknown. */
static void test_a_path_or_chance(void **state)
{
    static const struct {
        const char *subject, *words;
        bool measured;
        enum audit_status status;
        bool once;
    } cases[] = {
        {"nic0 other nic0", "lost 2 of 5 to there, with 2 partners", true, AUDIT_FAIL, false},
        {"nic0 other nic0", "lost 2 of 5 to there, with 1 partners", true, AUDIT_WARN, false},
        {"nic0 other nic0", "lost 2 of 5 to there, with 0 partners", true, AUDIT_WARN, false},
        {"nic0 other nic1", "lost 2 of 5 to there, with 2 partners", true, AUDIT_WARN, true},
        {"nic0 other nic1", "lost 2 of 5 to there, with 1 partners", true, AUDIT_WARN, true},
        {"", "well, 14 pairs", true, AUDIT_PASS, false},
        {"", "well, 14 pairs", false, AUDIT_UNKNOWN, false}};

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct sheet *one = sheet_of(1), *measured = sheet_of(2);
        const struct audit_failure first = {check_by_id("be.matrix.path"), 1, "nic0 other nic0",
                                            false};
        const bool looked[HOSTS] = {true, true, true},
                   again[HOSTS] = {false, cases[i].measured, false};
        struct audit a;
        uint32_t results = 0;
        sheet_add(measured, &(struct fact){FACT_MATRIX_PATH, FACT_VALUE, cases[i].subject,
                                           cases[i].words, ""});
        sheet_finish(measured);
        struct sheet sheets[HOSTS] = {*one, *measured, *one};
        judge_sheets(&a, sheets, HOSTS);
        audit_confirm_first(&a, &first, 1, &(struct audit_again){looked, again});
        for (uint32_t k = 0; k < a.count; k++) {
            results += a.results[k].check == first.check && a.results[k].sheet == 1;
        }
        assert_int_equal(results, 1);
        assert_int_equal(result(&a, "be.matrix.path", 1)->status, cases[i].status);
        assert_int_equal(result(&a, "be.matrix.path", 1)->seen_once, cases[i].once);
        judge_done(&a);
        sheet_free(one);
        sheet_free(measured);
    }
}

/* With one partner alone no interface fails. It is measured again like one that failed. */
static void test_a_path_of_one_partner_is_measured_again(void **state)
{
    struct audit_failure is;
    for (unsigned partners = 1; partners <= 2; partners++) {
        struct sheet *s = sheet_of(1);
        char words[64];
        struct audit a;
        snprintf(words, sizeof(words), "lost 1 of 5 from there, with %u partners", partners);
        sheet_add(s, &(struct fact){FACT_MATRIX_PATH, FACT_VALUE, "nic0 other nic0", words, ""});
        sheet_finish(s);
        struct sheet sheets[HOSTS] = {*s, *s, *s};
        judge_sheets(&a, sheets, HOSTS);
        const struct audit_result *r = result(&a, "be.matrix.path", 1);
        assert_int_equal(r->status, partners == 1 ? AUDIT_WARN : AUDIT_FAIL);
        assert_true(audit_failure_of(r, &is) && !is.witness && is.sheet == 1);
        judge_done(&a);
        sheet_free(s);
    }
}

static void test_missing_is_unknown(void **state)
{
    struct sheet *one = sheet_of(1),
                 sheets[HOSTS] = {*one, *one, {.host = "gone", .missing = REASON_OLD_AGENT}};
    struct audit a;

    judge_sheets(&a, sheets, HOSTS);
    uint32_t counts[AUDIT_STATUS_COUNT];
    assert_int_equal(audit_worst(&a, "", 2, counts), AUDIT_UNKNOWN);
    assert_int_equal(counts[AUDIT_UNKNOWN], CATALOGUE_COUNT);
    assert_int_equal(result(&a, "cfg.sw.kernel", 2)->reason, REASON_OLD_AGENT);
    assert_int_equal(gate_of(&a, 2).status, AUDIT_UNKNOWN);
    /* only skips are no pass */
    for (uint32_t i = 0; i < a.count; i++) {
        a.results[i].status = AUDIT_SKIP;
    }
    assert_int_equal(gate_of(&a, 0).status, AUDIT_UNKNOWN);
    /* one blocking check is unknown: no gate passes, whatever the others are */
    for (uint32_t i = 0; i < a.count; i++) {
        a.results[i].status = AUDIT_PASS;
    }
    assert_int_equal(gate_of(&a, 0).status, AUDIT_PASS);
    result(&a, "cfg.kern.memlock", 0)->status = AUDIT_UNKNOWN;
    assert_int_equal(gate_of(&a, 0).status, AUDIT_UNKNOWN);
    result(&a, "node.mounts", 0)->status = AUDIT_FAIL;
    assert_int_equal(gate_of(&a, 0).status, AUDIT_FAIL);
    assert_int_equal(gate_of(&a, 1).status, AUDIT_PASS);
    judge_done(&a);
    sheet_free(one);
}

/* By host: both looks, only the second, only the first; then a host without a second look. */
static void test_two_looks(void **state)
{
    static const char *const id = "cfg.time.source";
    struct sheet *one = sheet_of(1), sheets[HOSTS] = {*one, *one, *one};
    const struct check *check = check_by_id(id);
    const struct audit_failure first[] = {{check, 0, ""}, {check, 2, ""}};
    bool looked[HOSTS] = {true, true, true};
    const struct audit_again again = {looked, looked};
    struct audit a;

    judge_sheets(&a, sheets, HOSTS);
    for (uint32_t i = 0; i < a.count; i++) {
        a.results[i].status = AUDIT_PASS;
    }
    result(&a, id, 0)->status = result(&a, id, 1)->status = AUDIT_FAIL;
    audit_confirm_first(&a, first, 2, &again);
    assert_int_equal(result(&a, id, 0)->status, AUDIT_FAIL);
    assert_false(result(&a, id, 0)->seen_once);
    for (uint32_t k = 1; k < HOSTS; k++) {
        assert_int_equal(result(&a, id, k)->status, AUDIT_WARN);
        assert_true(result(&a, id, k)->seen_once);
    }
    /* worse than the others in both looks, and bad enough in one: a warning with both; its own note stays */
    result(&a, id, 0)->status = result(&a, id, 2)->status = AUDIT_WARN;
    result(&a, id, 0)->note = "";
    result(&a, id, 2)->note = "suspect";
    audit_confirm_first(&a, first, 2, &again);
    assert_int_equal(result(&a, id, 0)->status, AUDIT_WARN);
    assert_non_null(strstr(result(&a, id, 0)->note, "failed at the first look"));
    assert_string_equal(result(&a, id, 2)->note, "suspect");
    result(&a, id, 0)->status = AUDIT_FAIL;
    looked[0] = false;
    audit_confirm_first(&a, first, 2, &again);
    assert_int_equal(result(&a, id, 0)->status, AUDIT_UNKNOWN); /* and no gate passes it */
    assert_int_equal(result(&a, id, 0)->reason, REASON_TIMEOUT);
    judge_done(&a);
    sheet_free(one);
}

/* A failure without a result of the second look must not become a warning: a gate would let the host in. */
static void test_second_look_without_an_answer(void **state)
{
    struct sheet *one = sheet_of(1), *gone = sheet_of(1), *garbled = sheet_of(1);
    const struct fact down = {FACT_BOND_DOWN, FACT_VALUE, "bond0", "eth1", ""};

    sheet_add(one, &(struct fact){FACT_BOND, FACT_VALUE, "bond0", "bond0", ""});
    sheet_add(one, &down);
    sheet_add(garbled, &(struct fact){FACT_BOND, FACT_VALUE, "bond0", "bond0", ""});
    sheet_add(garbled, &(struct fact){FACT_BOND_DOWN, FACT_TIMEOUT, "bond0", "", ""});
    sheet_add(gone, &(struct fact){FACT_BOND, FACT_ABSENT, "", "", ""});
    sheet_finish(one);
    sheet_finish(garbled);
    sheet_finish(gone);
    struct audit a, second;
    struct sheet *others[] = {gone, garbled};
    for (int i = 0; i < 2; i++) {
        judge_sheets(&a, one, 1);
        assert_int_equal(result(&a, "cfg.nic.bond", 0)->status, AUDIT_FAIL);
        judge_sheets(&second, others[i], 1);
        audit_confirm(&a, &second);
        assert_int_equal(result(&a, "cfg.nic.bond", 0)->status, AUDIT_UNKNOWN);
        judge_done(&a);
        judge_done(&second);
    }
    const struct check *check = check_by_id("cfg.nic.bond");
    const struct audit_failure first[] = {{check, 0, "bond0"}, {check, 0, "bond1"}};
    const bool looked = true;
    const struct audit_again again = {&looked, &looked};
    for (int i = 0; i < 2; i++) {
        judge_sheets(&second, others[i], 1);
        const uint32_t before = second.count;
        audit_confirm_first(&second, first, 2, &again);
        assert_int_equal(result(&second, "cfg.nic.bond", 0)->status, AUDIT_UNKNOWN);
        assert_non_null(strstr(result(&second, "cfg.nic.bond", 0)->note, "it failed"));
        assert_int_equal(second.count, before + (i == 1)); /* bond1 has a result of its own */
        assert_string_equal(second.results[second.count - 1].subject,
                            i == 1 ? "bond1" : second.results[before - 1].subject);
        judge_done(&second);
    }
    /* a second look in which the check doesn't apply can't decide either: the delays of fewer NICs */
    judge_sheets(&second, one, 1);
    result(&second, "cfg.nic.bond", 0)->status = AUDIT_SKIP;
    judge_sheets(&a, one, 1);
    audit_confirm(&a, &second);
    audit_confirm_first(&second, first, 1, &again);
    assert_int_equal(result(&a, "cfg.nic.bond", 0)->status, AUDIT_UNKNOWN);
    assert_int_equal(result(&second, "cfg.nic.bond", 0)->status, AUDIT_UNKNOWN);
    judge_done(&a);
    judge_done(&second);
    sheet_free(one);
    sheet_free(gone);
    sheet_free(garbled);
}

/* The list of mounts fails at both looks. A mount that hung at the first is gone at the second: the list fails all the same. */
static void test_what_left_a_list_that_fails(void **state)
{
    struct sheet *one = sheet_of(1);
    const struct check *check = check_by_id("node.mounts");
    struct check_setting settings[CHECKS_MAX] = {0};
    struct audit_settings all = audit_usual;
    const struct audit_failure first[] = {{check, 0, ""}, {check, 0, "/data"}};
    const bool looked = true;
    struct audit a;

    all.checks = settings;
    settings[check_number(check)].declared = "/data /home";
    sheet_add(one, &(struct fact){FACT_MOUNT, FACT_ABSENT, "", "", ""});
    sheet_finish(one);
    judge_sheets_with(&a, one, 1, &all);
    const uint32_t before = a.count;
    assert_int_equal(result(&a, "node.mounts", 0)->status, AUDIT_FAIL);
    audit_confirm_first(&a, first, 2, &(struct audit_again){&looked, &looked});
    assert_int_equal(a.count, before + 1);
    assert_int_equal(result(&a, "node.mounts", 0)->status, AUDIT_FAIL);
    assert_false(result(&a, "node.mounts", 0)->seen_once);
    assert_string_equal(a.results[before].subject, "/data");
    assert_int_equal(a.results[before].status, AUDIT_UNKNOWN);
    judge_done(&a);
    sheet_free(one);
}

/* A finding of one look alone fails no host. */
static void test_stopped_before_the_second_look(void **state)
{
    struct sheet *one = sheet_of(1);
    struct audit a;

    sheet_add(one, &(struct fact){FACT_BOND, FACT_VALUE, "bond0", "bond0", ""});
    sheet_add(one, &(struct fact){FACT_BOND_DOWN, FACT_VALUE, "bond0", "eth1", ""});
    sheet_finish(one);
    const struct audit_failure first = {check_by_id("cfg.nic.bond"), 0, "bond0"};
    for (int i = 0; i < 3; i++) { /* before all of it; before this host's; after it */
        const bool looked = i == 2;
        judge_sheets(&a, one, 1);
        if (i == 0) {
            audit_unconfirmed(&a);
        } else {
            audit_confirm_first(&a, &first, 1,
                                &(struct audit_again){&looked, &looked, .stopped = true});
        }
        const struct audit_result *r = result(&a, "cfg.nic.bond", 0);
        assert_int_equal(r->status, looked ? AUDIT_FAIL : AUDIT_UNKNOWN);
        assert_int_equal(r->reason, looked ? REASON_NONE : REASON_NOT_RUN);
        assert_true(looked || strstr(r->note, "was stopped before") != NULL);
        judge_done(&a);
    }
    sheet_free(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_and_back),
        cmocka_unit_test(test_what_left_a_list_that_fails),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_counters_are_of_now),
        cmocka_unit_test(test_strange_lines),
        cmocka_unit_test(test_matrix_where_measured),
        cmocka_unit_test(test_matrix_words),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_a_path_or_chance),
        cmocka_unit_test(test_a_path_of_one_partner_is_measured_again),
        cmocka_unit_test(test_missing_is_unknown),
        cmocka_unit_test(test_two_looks),
        cmocka_unit_test(test_second_look_without_an_answer),
        cmocka_unit_test(test_stopped_before_the_second_look)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
