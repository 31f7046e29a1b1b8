/* test_fact.c: which values are valid and which are garbled; how a sheet stores facts, and facts that don't fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bug.h"
#include "service/audit/sheet.h"

/* A text: the beginning, then so many of one character. */
static const char *many(const char *beginning, char c, size_t count)
{
    static char text[FACT_VALUE_MAX + 16];
    const size_t size = strlen(beginning);

    memcpy(text, beginning, size);
    memset(text + size, c, count);
    text[size + count] = '\0';
    return text;
}

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        bool is;
        int64_t number;
    } cases[] = {{"0", true, 0},
                 {"9", true, 9},
                 {"-12", true, -12},
                 {"007", true, 7},
                 {"999999999999999999", true, 999999999999999999},
                 {"1000000000000000000", false, 0},
                 {"-999999999999999999", true, -999999999999999999},
                 {"0x0", true, 0},
                 {"0x15b3", true, 0x15b3},
                 {"0xABcdef0", true, 0xabcdef0},
                 {"0xfffffffffffffff", true, 0xfffffffffffffff},
                 {"0x1000000000000000", false, 0},
                 {"0x", false, 0},
                 {"0xg", false, 0},
                 {"-0x5", false, 0},
                 {"", false, 0},
                 {"-", false, 0},
                 {"--1", false, 0},
                 {"+1", false, 0},
                 {" 1", false, 0},
                 {"1 ", false, 0},
                 {"1.5", false, 0},
                 {"1a", false, 0},
                 {"/", false, 0},
                 {":", false, 0}};
    int64_t number;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        number = 77;
        if (fact_number(cases[i].text, &number) != cases[i].is ||
            number != (cases[i].is ? cases[i].number : 77)) {
            fail_msg("\"%s\": %lld", cases[i].text, (long long)number);
        }
    }
}

/* Each form, tried with a fact of that form. */
static void test_forms(void **state)
{
    static const struct {
        enum fact_id id;
        const char *text;
        bool fits;
    } cases[] = {{FACT_OS_UPTIME, "12", true},
                 {FACT_OS_UPTIME, "-1", true},
                 {FACT_OS_UPTIME, "0x12", false},
                 {FACT_OS_UPTIME, "", false},
                 {FACT_PORT_LID, "0x12", true},
                 {FACT_PORT_LID, "12", false},
                 {FACT_PORT_LID, "0x", false},
                 {FACT_OS_KERNEL, "6.1.0-9_a+b:~/@,Z", true},
                 {FACT_OS_KERNEL, "a b", false},
                 {FACT_OS_KERNEL, "", false},
                 {FACT_OS_KERNEL, "a;b", false},
                 {FACT_OS_KERNEL, "azAZ09", true},
                 {FACT_OS_KERNEL, "a{", false},
                 {FACT_OS_KERNEL, "a`", false},
                 {FACT_OS_KERNEL, "A[", false},
                 {FACT_OS_PRODUCT, "", true},
                 {FACT_OS_PRODUCT, "any text; of one line", true},
                 {FACT_OS_PRODUCT, "two\nlines", false},
                 {FACT_OS_PRODUCT, "a\ttab", false},
                 {FACT_PORT_STATE, "4: ACTIVE", true},
                 {FACT_PORT_STATE, "44: ACTIVE", false},
                 {FACT_PORT_STATE, ": ACTIVE", false},
                 {FACT_PORT_STATE, "4 ACTIVE", false},
                 {FACT_PORT_STATE, "4:ACTIVE", false},
                 {FACT_PORT_STATE, "4: ", false},
                 {FACT_PORT_STATE, "4: TWO WORDS", false},
                 {FACT_PORT_RATE, "400 Gb/sec (4X NDR)", true},
                 {FACT_PORT_RATE, "2.5 Gb/sec (1X SDR)", true},
                 {FACT_PORT_RATE, "40 Gb/sec (4X)", true},
                 {FACT_PORT_RATE, "12345 Gb/sec (12X EDR)", true},
                 {FACT_PORT_RATE, "123456 Gb/sec (4X NDR)", false},
                 {FACT_PORT_RATE, " Gb/sec (4X NDR)", false},
                 {FACT_PORT_RATE, "2. Gb/sec (1X SDR)", false},
                 {FACT_PORT_RATE, "40 Gb/sec (X)", false},
                 {FACT_PORT_RATE, "40 Gb/sec (123X)", false},
                 {FACT_PORT_RATE, "40 Gb/sec (4Y)", false},
                 {FACT_PORT_RATE, "40 Gb/sec (aX)", false},
                 {FACT_PORT_RATE, "40 Gb/sec (4X ndr)", false},
                 {FACT_PORT_RATE, "40 Gb/sec (4XNDR)", false},
                 {FACT_PORT_RATE, "40 Gb/sec (4X NDR", false},
                 {FACT_PORT_RATE, "40 Gb/sec (4X NDR) ", false},
                 {FACT_PORT_RATE, "40 Mb/sec (4X NDR)", false},
                 {FACT_PCI_SPEED, "32.0 GT/s PCIe", true},
                 {FACT_PCI_SPEED, "2.5 GT/s", true},
                 {FACT_PCI_SPEED, "8 GT/s", true},
                 {FACT_PCI_SPEED, "128.25 GT/s PCIe", true},
                 {FACT_PCI_SPEED, "1280 GT/s PCIe", false},
                 {FACT_PCI_SPEED, "8.125 GT/s PCIe", false},
                 {FACT_PCI_SPEED, "8. GT/s PCIe", false},
                 {FACT_PCI_SPEED, ".5 GT/s PCIe", false},
                 {FACT_PCI_SPEED, "Unknown", false},
                 {FACT_PCI_SPEED, "8 GT/s PCI", false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        if (fact_fits(cases[i].id, cases[i].text) != cases[i].fits) {
            fail_msg("%s: \"%s\"", fact_name(cases[i].id), cases[i].text);
        }
    }
    assert_true(fact_fits(FACT_OS_PRODUCT, many("", 'a', FACT_VALUE_MAX - 1)));
    assert_false(fact_fits(FACT_OS_PRODUCT, many("", 'a', FACT_VALUE_MAX)));
}

static void test_names(void **state)
{
    (void)state;
    for (unsigned id = 0; id < FACT_COUNT; id++) {
        assert_int_equal(fact_by_name(fact_name((enum fact_id)id)), id);
        assert_true(fact_section((enum fact_id)id) < SECTION_COUNT);
        assert_true(!fact_is_counter((enum fact_id)id) || fact_keep((enum fact_id)id) == KEEP_NOW);
        /* a host may not report what only others can measure */
        const char *name = fact_name((enum fact_id)id);
        assert_int_equal(fact_is_of_controller((enum fact_id)id),
                         strncmp(name, "matrix", 6) == 0 || strncmp(name, "perf", 4) == 0 ||
                             strcmp(name, "history") == 0);
    }
    assert_int_equal(fact_by_name("os.kerne"), FACT_COUNT);
    assert_int_equal(fact_by_name(""), FACT_COUNT);
    for (unsigned k = 0; k < FACT_STATE_COUNT; k++) {
        assert_int_equal(fact_state_by_name(fact_state_name((enum fact_state)k)), k);
    }
    assert_int_equal(fact_state_by_name("values"), FACT_STATE_COUNT);
}

static void add(struct sheet *s, enum fact_id id, const char *subject, const char *value)
{
    sheet_add(s, &(struct fact){(uint16_t)id, FACT_VALUE, subject, value, "x"});
}

/* Facts are sorted by id, then by subject, in whatever order they come. Of two the first is kept. */
static void test_finding(void **state)
{
    struct sheet *s = sheet_new();
    char subject[16];
    uint32_t count;

    (void)state;
    assert_non_null(s);
    for (int i = 0; i < 40; i++) {
        snprintf(subject, sizeof(subject), "e%02d", i * 7 % 40);
        add(s, FACT_NET_MTU, subject, "1500");
        add(s, FACT_NET, subject, subject);
    }
    add(s, FACT_NET_MTU, "e05", "9000");
    add(s, FACT_SITE_OUTPUT, "x", "last of the list");
    add(s, FACT_OS_KERNEL, "", "6.1");
    sheet_finish(s);
    assert_int_equal(s->count, 82);
    assert_string_equal(sheet_find(s, FACT_NET_MTU, "e05")->value, "1500");
    for (int i = 0; i < 40; i++) {
        snprintf(subject, sizeof(subject), "e%02d", i);
        assert_string_equal(sheet_find(s, FACT_NET, subject)->value, subject);
    }
    assert_null(sheet_find(s, FACT_NET, "e40"));
    assert_null(sheet_find(s, FACT_NET, ""));
    assert_null(sheet_find(s, FACT_NET_CARRIER, "e05"));
    assert_string_equal(sheet_find(s, FACT_OS_KERNEL, "")->value, "6.1");
    assert_string_equal(sheet_find(s, FACT_SITE_OUTPUT, "x")->value, "last of the list");
    const struct fact *f = sheet_first(s, FACT_NET, &count);
    assert_int_equal(count, 40);
    for (uint32_t i = 1; i < count; i++) {
        assert_true(strcmp(f[i - 1].subject, f[i].subject) < 0);
    }
    assert_null(sheet_first(s, FACT_NET_CARRIER, &count));
    assert_int_equal(count, 0);
    sheet_free(s);
}

/* The other host of an edge or lane is the second word of its subject. Over the front end it is the whole subject. */
static void test_peers(void **state)
{
    static const struct {
        enum fact_id id;
        const char *subject, *peer;
    } cases[] = {{FACT_EDGE, "eth0 far eth1", "far"}, {FACT_EDGE_FULL, "eth0 far eth1", "far"},
                 {FACT_LANE, "eth0 far", "far"},      {FACT_FE_PEER, "far away", "far away"},
                 {FACT_FE_PATH, "far", "far"},        {FACT_NET_MTU, "eth0 far eth1", NULL},
                 {FACT_EDGE, "eth0", NULL},           {FACT_EDGE, "eth0 ", NULL}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct sheet *s = sheet_new();
        assert_non_null(s);
        add(s, cases[i].id, cases[i].subject, "1");
        if (cases[i].peer == NULL) {
            assert_null(s->facts[0].peer);
        } else {
            assert_string_equal(s->facts[0].peer, cases[i].peer);
        }
        sheet_free(s);
    }
}

/* A value of another form is garbled. Characters that can't be printed are escaped. */
static void test_garbled(void **state)
{
    struct sheet *s = sheet_new();

    (void)state;
    assert_non_null(s);
    add(s, FACT_OS_UPTIME, "", "12x");
    assert_int_equal(s->facts[0].state, FACT_GARBLED);
    assert_string_equal(s->facts[0].value, "12x");
    sheet_add(s, &(struct fact){FACT_MEM_SWAPS, FACT_TIMEOUT, "", "12x", ""});
    assert_int_equal(s->facts[1].state, FACT_TIMEOUT);
    sheet_add(s, &(struct fact){FACT_MEM_SWAPS, FACT_TIMEOUT, "", NULL, ""});
    assert_string_equal(s->facts[2].value, "");
    add(s, FACT_OS_PRODUCT, "a\tb", "c\nd");
    assert_null(strchr(s->facts[3].subject, '\t'));
    assert_null(strchr(s->facts[3].value, '\n'));
    assert_int_equal(s->facts[3].state, FACT_GARBLED);
    sheet_free(s);
}

/* A fact that doesn't fit is counted. The rest of the sheet stays the same. */
static void test_no_room(void **state)
{
    struct sheet *s = sheet_new();

    (void)state;
    assert_non_null(s);
    s->capacity = 2;
    s->text_size = 20;
    add(s, FACT_OS_PRODUCT, "ab", "cdef"); /* 3 + 5 + 2 for the source, and one for no peer */
    assert_int_equal(s->count, 1);
    assert_int_equal(s->text_used, 10);
    add(s, FACT_OS_PRODUCT, "ab", "cdef"); /* eleven bytes for ten that are left */
    assert_int_equal(s->left_out, 1);
    assert_int_equal(s->text_used, 10);
    add(s, FACT_OS_PRODUCT, "ab", "cde");
    assert_int_equal(s->count, 2);
    assert_int_equal(s->left_out, 1);
    s->text_size = 100;
    add(s, FACT_OS_PRODUCT, "", "");
    assert_int_equal(s->left_out, 2);
    assert_int_equal(s->count, 2);
    s->capacity = 3;
    sheet_add(s, &(struct fact){FACT_COUNT, FACT_VALUE, "", "", ""});
    assert_int_equal(s->left_out, 3);
    add(s, FACT_OS_PRODUCT, "", "");
    assert_int_equal(s->count, 3);
    s->text_size = s->text_used + 3;
    assert_string_equal(sheet_keep(s, "abc"), "");
    assert_string_equal(sheet_keep(s, "ab"), "ab");
    assert_string_equal(sheet_keep(s, ""), "");
    sheet_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_forms),
        cmocka_unit_test(test_names),   cmocka_unit_test(test_finding),
        cmocka_unit_test(test_peers),   cmocka_unit_test(test_garbled),
        cmocka_unit_test(test_no_room)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
