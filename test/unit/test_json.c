/* The JSON writer: jansson can read its output; the ceiling holds. */
#include "platform/json/json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void writes_what_a_parser_reads(void **state)
{
    struct json_writer j;
    const char *text = NULL;
    size_t size = 0;
    json_writer_init(&j, 1 << 20);
    json_put_object(&j, NULL);
    json_put_int(&j, "min", INT64_MIN);
    json_put_uint(&j, "most", UINT64_MAX); /* readers refuse such a text */
    json_put_double(&j, "nan", NAN);
    json_put_string(&j, "s", "a\"b\\c\n\xff \xe2\x82\xac");
    json_put_string(&j, "none", NULL);
    json_put_hex64(&j, "hex", 0xabcULL);
    json_put_array(&j, "list");
    json_put_bool(&j, NULL, true);
    json_put_object(&j, NULL);
    json_put_end(&j);
    json_put_int_if(&j, NULL, false, 3);
    json_put_end(&j);
    json_put_end(&j);
    assert_int_equal(json_writer_finish(&j, &text, &size), 0);
    assert_int_equal(strlen(text), size);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    assert_true(json_integer_value(json_object_get(root, "min")) == INT64_MIN);
    assert_true(json_integer_value(json_object_get(root, "most")) == INT64_MAX);
    assert_true(json_is_null(json_object_get(root, "nan")));
    assert_string_equal(json_string_value(json_object_get(root, "s")),
                        "a\"b\\c\n\xef\xbf\xbd \xe2\x82\xac");
    assert_true(json_is_null(json_object_get(root, "none")));
    assert_string_equal(json_string_value(json_object_get(root, "hex")), "0000000000000abc");
    assert_int_equal(json_array_size(json_object_get(root, "list")), 3);
    json_decref(root);
    json_writer_done(&j);
}

static void stops_at_its_ceiling(void **state)
{
    struct json_writer j;
    const char *text = NULL;
    size_t size = 0;
    json_writer_init(&j, 100);
    json_put_array(&j, NULL);
    for (int i = 0; i < 1000; i++) {
        json_put_int(&j, NULL, i);
    }
    json_put_end(&j);
    assert_int_equal(json_writer_finish(&j, &text, &size), -ENOSPC);
    json_writer_reset(&j);
    json_put_array(&j, NULL);
    json_put_end(&j);
    assert_int_equal(json_writer_finish(&j, &text, &size), 0);
    assert_string_equal(text, "[]\n");
    json_writer_done(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_what_a_parser_reads),
        cmocka_unit_test(stops_at_its_ceiling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
