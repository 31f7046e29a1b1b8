/* When the agent's rounds begin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "service/agent/agent.h"

#define MS NS_PER_MS

static void rounds_begin_on_a_grid(void **state)
{
    int64_t grid = 0;

    (void)state;
    assert_int_equal(agent_next_round(&grid, 1000 * MS, 10 * MS, 3 * MS), 1013 * MS);
    assert_int_equal(grid, 1010 * MS);
    assert_int_equal(agent_next_round(&grid, 1014 * MS, 10 * MS, 0), 1020 * MS);
    assert_int_equal(agent_next_round(&grid, 1021 * MS, 10 * MS, 4 * MS), 1034 * MS);
    /* the instant passed, but the time that was drawn didn't */
    assert_int_equal(agent_next_round(&grid, 1042 * MS, 10 * MS, 4 * MS), 1044 * MS);
    assert_int_equal(grid, 1040 * MS);
}

/* Rounds of 10.5 ms follow each other without a pause. They were 20 ms apart. */
static void a_round_that_took_longer_is_followed_at_once(void **state)
{
    int64_t grid = 1000 * MS, now = 1000 * MS;

    (void)state;
    for (int i = 1; i <= 100; i++) {
        now += 21 * MS / 2;
        now = agent_next_round(&grid, now, 10 * MS, 0);
        assert_int_equal(now, 1000 * MS + i * 21 * MS / 2);
        assert_in_range(now - grid, 0, 10 * MS - 1);
    }
    /* what passed meanwhile is left out, and the grid is the same */
    now += 55 * MS;
    assert_int_equal(agent_next_round(&grid, now, 10 * MS, 0), now);
    assert_int_equal(grid, 2100 * MS);
    assert_int_equal(agent_next_round(&grid, now + MS, 10 * MS, 2 * MS), 2112 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_begin_on_a_grid),
        cmocka_unit_test(a_round_that_took_longer_is_followed_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
