/* test_list.c: the items of "a, b": whole items and no others, with any spaces and commas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/audit/list.h"

/* All items, each in brackets. */
static void expect(const char *list, const char *items)
{
    char text[100] = "";
    const char *item;
    size_t size;

    while (list_next(&list, &item, &size)) {
        strcat(text, "[");
        strncat(text, item, size);
        strcat(text, "]");
    }
    assert_string_equal(text, items);
    assert_false(list_next(&list, &item, &size)); /* after the end it stays at the end */
}

static void items(void **state)
{
    (void)state;
    expect("", "");
    expect("a", "[a]");
    expect("a, b", "[a][b]");
    expect("a,b", "[a][b]");
    expect("3 v2 ip4, 5 v1 link", "[3 v2 ip4][5 v1 link]");
    expect("a,", "[a]");
    expect("a, ", "[a]");
    expect(", a", "[a]");
    expect("a,, b", "[a][b]");
    expect(" a , b ", "[a][b]");
    expect(" , ,", "");
}

static void membership(void **state)
{
    (void)state;
    assert_true(list_has("10.0.0.1, 10.0.0.12", "10.0.0.1", 8));
    assert_true(list_has("10.0.0.12, 10.0.0.1", "10.0.0.1", 8));
    assert_false(list_has("10.0.0.12", "10.0.0.1", 8));
    assert_false(list_has("110.0.0.1", "10.0.0.1", 8));
    assert_false(list_has("", "10.0.0.1", 8));
    assert_false(list_has("a, b", "", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items),
        cmocka_unit_test(membership),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
