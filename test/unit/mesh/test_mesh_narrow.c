/* What holds the gap that pairs agree on: a case of them that may be told. */
#include "one_mesh.h"

#include "core/mesh/evidence.h"

#define SENT_NS 10000
#define SLOW_NS 36160

/* All that goes out crosses the own NIC, and these pairs are wide: of one's own NIC that may not be told. To one peer: it may. */
static void tell_wide(bool own)
{
    for (uint32_t i = 1; i < PEERS; i++) {
        for (uint32_t p = 0; p < PATHS; p++) {
            const uint32_t number = m->locate_numbers - TRACE_ANSWERS - i * PATHS + p;
            const struct locate_route r = {
                .from_host = {10}, .to_host = {10 + i}, .from = {0}, .to = {i}, .teller = {10 + i}};

            locate_path_set(m->pairs[0], number, &r);
            locate_on_trial(m->pairs[0], number, now, own || i == 1);
        }
    }
    locate_tick(m->pairs[0], now);
}

static void pass(int64_t ns, int64_t heard_ns, bool own)
{
    for (int64_t i = 0; i < ns / (100 * NS_PER_MS); i++, now.ns += 100 * NS_PER_MS) {
        tell_wide(own);
        for (uint32_t nic = 1; nic < 3; nic++) {
            int edge;
            struct mesh_edge *e = edge_of(nic, &edge);

            e->out[0].half.state = PATH_ALIVE;
            mesh_on_pair(m, now, edge, 0, DIRECTION_OUT, SENT_NS, heard_ns, 50000 + heard_ns);
        }
    }
}

static void a_case_that_may_not_be_told_holds_no_gap(void **state)
{
    pass(4 * NS_PER_S, SENT_NS, true);
    pass(3 * NS_PER_S, SLOW_NS, true);
    assert_true(spread_alike(m->gaps[0].all.slow_ns, SLOW_NS));
    pass(12 * NS_PER_S, SENT_NS, true);
    assert_true(locate_case_count(m->pairs[0]) > 0);
    assert_false(gaps_known(&m->gaps[0]));
}

static void one_that_may_be_told_holds_it(void **state)
{
    pass(4 * NS_PER_S, SENT_NS, false);
    pass(3 * NS_PER_S, SLOW_NS, false);
    pass(12 * NS_PER_S, SENT_NS, false);
    assert_true(locate_case_count(m->pairs[0]) > 0);
    assert_true(spread_alike(m->gaps[0].all.slow_ns, SLOW_NS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_case_that_may_not_be_told_holds_no_gap, begin, end),
        cmocka_unit_test_setup_teardown(one_that_may_be_told_holds_it, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
