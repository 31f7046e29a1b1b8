/* test_plain.c: no foreign text reaches a terminal, a log or a scraper with a control character in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/plain.h"
#include "base/prng.h"
#include "platform/metrics/openmetrics.h"

static void shows(const char *text, const char *wanted)
{
    char to[256];
    assert_int_equal(plain_text(text, to, sizeof(to)), strlen(wanted));
    assert_string_equal(to, wanted);
    assert_int_equal(plain_is(text), strcmp(text, wanted) == 0);
    assert_true(plain_is(to));
}

static void controls_are_shown_and_text_is_kept(void **state)
{
    shows("h1/nic0 → spine2: größer 日本 🙂 C:\\x",
          "h1/nic0 → spine2: größer 日本 🙂 C:\\x");
    shows("a\033[2Jb\r\n\tc\a\177", "a\\x1b[2Jb\\r\\n\\tc\\x07\\x7f");
    shows("\302\205\302\233[1m\302\237", "\\u0085\\u009b[1m\\u009f");               /* C1 */
    shows("\342\200\256gnp.\342\200\254\342\201\246", "\\u202egnp.\\u202c\\u2066"); /* bidi */
    shows("\342\200\250\342\200\213\357\273\277\302\255", "\\u2028\\u200b\\ufeff\\u00ad");
    shows("\363\240\201\201", "\\U000e0041");
    shows("\233[1m\200\300\257\355\240\200\364\220\200\200\342\202", /* no UTF-8 */
          "\\x9b[1m\\x80\\xc0\\xaf\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\\xe2\\x82");
}

static void it_is_cut_between_characters(void **state)
{
    char to[8];
    assert_int_equal(plain_text("12345→", to, sizeof(to)), 8);
    assert_string_equal(to, "12345");
    assert_int_equal(plain_text("1234\n5\n", to, 7), 9);
    assert_string_equal(to, "1234\\n");
    assert_int_equal(plain_text("x", to, 0), 1);
}

/* Any bytes: the output is plain, and plain input stays the same. */
static void any_bytes(void **state)
{
    struct prng random;
    prng_init(&random, 1);
    for (int round = 0; round < 20000; round++) {
        char text[33], to[256];
        const size_t size = prng_below(&random, 32);
        for (size_t i = 0; i < size; i++) {
            text[i] = (char)(1 + prng_below(&random, 255));
        }
        text[size] = 0;
        assert_true(plain_text(text, to, sizeof(to)) < sizeof(to));
        assert_true(plain_is(to));
        for (const unsigned char *p = (const unsigned char *)to; *p != 0; p++) {
            assert_true(*p >= ' ' && *p != 0x7f);
        }
    }
}

static void a_label_is_one_line_of_utf8(void **state)
{
    struct metrics_text t = {.host = "h1"};
    const struct metrics_label labels[] = {{"nic", "a\"b\\c\n\377"}, {"x", "→"}};
    metrics_sample_n(&t, "port_up", labels, 2, 1);
    assert_string_equal(t.bytes,
                        "foliot_port_up{host=\"h1\",nic=\"a\\\"b\\\\c\\\\n\\\\xff\",x=\"→\"} 1\n");
    metrics_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(controls_are_shown_and_text_is_kept),
        cmocka_unit_test(it_is_cut_between_characters),
        cmocka_unit_test(any_bytes),
        cmocka_unit_test(a_label_is_one_line_of_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
