/* Configuration files: values, and errors with line, column, the expected and the found value. */
#include "platform/config/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct config *parse(const char *text)
{
    struct config *config = NULL;
    struct config_error error;
    assert_int_equal(config_parse("f.yaml", text, strlen(text), &config, &error), 0);
    return config;
}

static void refuse(const char *text, const char *message)
{
    struct config *config = NULL;
    struct config_error error;
    assert_int_equal(config_parse("f.yaml", text, strlen(text), &config, &error), -EINVAL);
    assert_string_equal(error.text, message);
    assert_null(config);
}

static void reads_values(void **state)
{
    struct config *config = parse("name: a\nhosts: 8\nrate: 0.5\nfor: 300ms\nup: yes\n"
                                  "kind: two\nlist: [1, 2, {x: y}]\nempty:\n");
    const struct config_node *root = config_root(config);
    struct config_error error;
    const char *name = "default";
    int64_t hosts = 1, missing = 7;
    double rate = 0;
    struct span duration = {0};
    bool up = false;
    int kind = -1;
    assert_int_equal(config_string(root, "name", &name, &error), 0);
    assert_string_equal(name, "a");
    assert_int_equal(config_int(root, "hosts", 1, 64, &hosts, &error), 0);
    assert_int_equal(hosts, 8);
    assert_int_equal(config_int(root, "missing", 1, 64, &missing, &error), 0);
    assert_int_equal(missing, 7);
    assert_int_equal(config_double(root, "rate", 0, 1, &rate, &error), 0);
    assert_true(rate == 0.5);
    assert_int_equal(config_span(root, "for", span_ns(0), span_s(1), &duration, &error), 0);
    assert_int_equal(duration.ns, 300 * NS_PER_MS);
    assert_int_equal(config_bool(root, "up", &up, &error), 0);
    assert_true(up);
    assert_int_equal(
        config_choice(root, "kind", (const char *const[]){"one", "two", NULL}, &kind, &error), 0);
    assert_int_equal(kind, 1);
    const struct config_node *list = config_get(root, "list");
    assert_int_equal(config_count(list), 3);
    assert_string_equal(config_text(config_first(list)), "1");
    config_free(config);
}

static void says_where(void **state)
{
    struct config *config = parse("name: a\nhosts: 800\nfor: 3\nflag: maybe\nlist: [1]\nempty:\n");
    const struct config_node *root = config_root(config);
    struct config_error error;
    int64_t hosts = 1;
    struct span duration = {5};
    bool flag = false;
    const char *text = NULL;
    assert_int_equal(config_int(root, "hosts", 1, 64, &hosts, &error), -EINVAL);
    assert_string_equal(error.text,
                        "f.yaml:2:8: expected a whole number from 1 to 64, found '800'");
    assert_int_equal(hosts, 1);
    assert_int_equal(config_span(root, "for", span_ns(0), span_s(90), &duration, &error), -EINVAL);
    assert_string_equal(error.text,
                        "f.yaml:3:6: expected a time with its unit (ns us ms s min h d) "
                        "from 0ns to 1.5min, found '3'");
    assert_int_equal(config_bool(root, "flag", &flag, &error), -EINVAL);
    assert_string_equal(error.text,
                        "f.yaml:4:7: expected one of: false true no yes off on, found 'maybe'");
    assert_int_equal(config_string(root, "list", &text, &error), -EINVAL);
    assert_string_equal(error.text, "f.yaml:5:7: expected text, found a list of 1");
    assert_int_equal(config_string(root, "empty", &text, &error), -EINVAL);
    assert_int_equal(config_allow(root, (const char *const[]){"name", "hosts", NULL}, &error),
                     -EINVAL);
    assert_string_equal(error.text,
                        "f.yaml:3:1: expected one of the keys: name hosts, found 'for'");
    const struct config_node *node = NULL;
    assert_int_equal(config_require(root, "nics", &node, &error), -EINVAL);
    assert_string_equal(error.text,
                        "f.yaml:1:1: expected a map with the key 'nics', found a map of 6");
    config_free(config);
}

static void refuses_what_surprises(void **state)
{
    refuse("{b: {c: 1, d: 2, c: 3}}",
           "f.yaml:1:18: expected each key once, found 'c' again (first in line 1)");
    refuse("a: 1\na: 2\n", "f.yaml:2:1: expected each key once, found 'a' again (first in line 1)");
    refuse("a: &x 1\n", "f.yaml:1:4: expected a value, found an anchor (&name isn't supported)");
    refuse("a: *x\n", "f.yaml:1:4: expected a value, found an alias (*name isn't supported)");
    refuse("--- 1\n--- 2\n", "f.yaml:2:1: expected one document, found a second");
    refuse("? [a]\n: b\n", "f.yaml:1:3: expected a plain word as key, found a list or map");
    struct config *config = NULL;
    struct config_error error;
    assert_int_equal(config_parse("f.yaml", "a: [1\n", 6, &config, &error), -EINVAL);
    assert_non_null(strstr(error.text, "f.yaml:2:1: expected YAML, found an error: "));
    assert_int_equal(config_load("/nonexistent/x.yaml", &config, &error), -ENOENT);
    assert_string_equal(error.text, "/nonexistent/x.yaml: expected a readable file, found: "
                                    "No such file or directory");
    char deep[200];
    memset(deep, '[', sizeof(deep));
    assert_int_equal(config_parse("f.yaml", deep, sizeof(deep), &config, &error), -EINVAL);
}

static void an_empty_file_is_an_empty_map(void **state)
{
    struct config *config = parse("# nothing\n");
    assert_int_equal(config_kind(config_root(config)), CONFIG_MAP);
    assert_int_equal(config_count(config_root(config)), 0);
    config_free(config);
}

/* A fleet's hosts as keys. If each were compared with each, this would take minutes. */
static void a_map_may_have_many_keys(void **state)
{
    enum { COUNT = 200000 };
    struct config *config = NULL;
    struct config_error error;
    char *text = malloc(24 * COUNT);
    size_t size = 0;
    assert_non_null(text);
    for (int i = 0; i < COUNT; i++) {
        size += (size_t)sprintf(text + size, "host-%06d: %d\n", COUNT - i, i);
    }
    assert_int_equal(config_parse("f.yaml", text, size, &config, &error), 0);
    assert_int_equal(config_count(config_root(config)), COUNT);
    config_free(config);
    size += (size_t)sprintf(text + size, "host-%06d: 1\nhost-%06d: 1\n", 3, COUNT);
    assert_int_equal(config_parse("f.yaml", text, size, &config, &error), -EINVAL);
    assert_string_equal(error.text, "f.yaml:200001:1: expected each key once, found 'host-000003' "
                                    "again (first in line 199998)");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_values),
        cmocka_unit_test(says_where),
        cmocka_unit_test(refuses_what_surprises),
        cmocka_unit_test(an_empty_file_is_an_empty_map),
        cmocka_unit_test(a_map_may_have_many_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
