/* Several faults of a fabric at once, and faults that recover in part (sim/incident_world.h): each has one incident with its
 * name, and there is no other incident. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/incident_world.h"

static const struct incident_world_config worlds[] = {
    /* three at once before all hosts have reported: two on one leaf were named as the leaf */
    {.seed = 3, .hosts = 64, .seconds = 40, .faults = 3},
    /* hosts that find the second fault suspect trunks of the first one's spine: the spine was named */
    {.seed = 9, .hosts = 64, .seconds = 70, .faults = 3},
    {.seed = 8, .hosts = 64, .seconds = 60, .faults = 3},
    {.seed = 206, .hosts = 48, .seconds = 120, .faults = 2},
    /* dead, then a share is lost: resolved after a minute, and open again when the rule for losses had waited */
    {.seed = 101, .hosts = 48, .seconds = 400, .faults = 1, .turns = true},
    {.seed = 103, .hosts = 48, .seconds = 400, .faults = 1, .turns = true},
    {.seed = 102, .hosts = 48, .seconds = 200, .faults = 3, .turns = true},
    /* a trunk loses a share, and a second fault hides its difference from another trunk: that one was named */
    {.seed = 2102, .hosts = 48, .seconds = 470, .faults = 2, .turns = true},
    /* guesses were a spine's. Some became a trunk with an incident of its own, the last ones a NIC: the rest stayed the
     * spine's */
    {.seed = 2103, .hosts = 64, .seconds = 30, .faults = 3},
    /* two of three trunks of a rail's spine: the spine was named, because the other rail was not asked */
    {.seed = 5209, .hosts = 48, .seconds = 90, .faults = 2, .turns = true},
};

static void each_fault_is_one_incident(void **state)
{
    uint64_t judged = 0;

    (void)state;
    for (size_t k = 0; k < sizeof(worlds) / sizeof(worlds[0]); k++) {
        const struct incident_world_result r = incident_world_run(&worlds[k]);

        assert_string_equal(r.first, "");
        assert_int_equal(r.wrong + r.doubled + r.forgotten + r.anew + r.unwell, 0);
        judged += r.judged;
    }
    assert_true(judged >= 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_fault_is_one_incident)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
