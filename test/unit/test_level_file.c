/* levels.yaml: its valid content, and the errors of other content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "service/controller/fleet/levels.h"

static struct levels levels;

static void is_taken(const char *text, uint32_t count)
{
    struct config_error error = {""};
    memset(&levels, 0, sizeof(levels));
    if (levels_parse("levels.yaml", text, &levels, &error) != 0) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(levels.count, count);
}

static void is_refused(const char *text, const char *words)
{
    struct config_error error = {""};
    memset(&levels, 0, sizeof(levels));
    assert_int_equal(levels_parse("levels.yaml", text, &levels, &error), -EINVAL);
    if (strstr(error.text, words) == NULL) {
        fail_msg("'%s' has no '%s'", error.text, words);
    }
}

static void takes_what_the_manual_shows(void **state)
{
    is_taken("pods: {a: [leaf1, leaf2]}\n"
             "levels:\n"
             "  - {name: rack-delay, owd_p99: 10us, within: leaf}\n"
             "  - {name: pod-hops, hops: 3, within: pod}\n"
             "  - {name: rail-loss, loss: 0.1%, within: rail, for: 1min}\n"
             "  - {name: median, owd_p50: 20us}\n",
             4);
    assert_int_equal(levels.entries[0].level.limit, 10000);
    assert_int_equal(levels.entries[2].level.limit, 1000);
    assert_int_equal(levels.entries[2].level.hold.ns, 60 * NS_PER_S);
    assert_int_equal(levels.entries[3].level.within, LEVEL_FLEET);
}

/* A file without levels is allowed, because the file could also be deleted. */
static void takes_a_file_without_levels(void **state)
{
    is_taken("", 0);
    is_taken("pods: {a: [leaf1]}\n", 0);
    is_taken("levels: []\n", 0);
}

static void refuses_with_the_place(void **state)
{
    is_refused("pods: {a: leaf1}\n", "levels.yaml:1:11: expected a list of leaves");
    is_refused("pods: [leaf1]\n", "expected pods, each with a list");
    is_refused("pods: {a: [leaf1], b: [leaf1]}\n", "expected each leaf in one pod, found 'leaf1'");
    is_refused("levels: [{name: x, hops: 3, within: pod}]\n", "expected 'pods'");
    is_refused("levels: [{name: x, hops: 3}, {name: x, hops: 4}]\n", "expected each name once");
    is_refused("levels: [{name: x}]\n", "expected one of owd_p50");
    is_refused("levels: [{name: x, loss: nan%}]\n", "a percentage");
    is_refused("levels: [{name: x, loss: 101%}]\n", "a percentage");
    is_refused("levels: {name: x}\n", "a list of levels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_the_manual_shows),
        cmocka_unit_test(takes_a_file_without_levels),
        cmocka_unit_test(refuses_with_the_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
