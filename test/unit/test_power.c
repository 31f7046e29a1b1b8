/* Power cuts under the store: nothing that was acknowledged is lost, and nothing exists twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "power_world.h"

static void survives_power_cuts(void **state)
{
    struct power_world_result r;
    power_world_run(20261121, 150, false, &r);
    if (r.words[0] != 0) {
        print_error("%s\n", r.words);
    }
    assert_string_equal(r.words, "");
    assert_int_equal(r.cuts, 150);
    /* each kind of write happened often enough to be cut */
    assert_true(r.in_doubt > 20);
    assert_true(r.checkpoints > 20 && r.seals > 10 && r.full > 3 && r.commits > 300);
    assert_true(r.given_back > 20);
}

/* Would a loss be noticed? A disk that reports "synced" without a sync loses acknowledged data. */
static void a_disk_that_lies_is_noticed(void **state)
{
    struct power_world_result r;
    power_world_run(20261121, 150, true, &r);
    assert_string_not_equal(r.words, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survives_power_cuts),
        cmocka_unit_test(a_disk_that_lies_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
