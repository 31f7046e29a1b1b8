/* A case that may be reported holds the gap on which pairs agree. */
#include "one_mesh.h"

#include "core/mesh/evidence.h"

#define SENT_NS 10000
#define SLOW_NS 36160

/* own: all outgoing pairs are wide. All cross the own NIC, and that may not be reported as the suspect. Otherwise only the pairs
 * to two peers are wide. */
static void tell_wide(bool own)
{
    for (uint32_t i = 1; i < PEERS; i++) {
        for (uint32_t p = 0; p < PATHS; p++) {
            int edge;

            (void)edge_of(i, &edge);
            const uint32_t number = evidence_number(m, edge, (uint8_t)p);
            const struct locate_route r = {
                .from_host = {10}, .to_host = {10 + i}, .from = {0}, .to = {i}, .teller = {10 + i}};

            locate_path_set(m->pairs[0], number, &r);
            locate_on_trial(m->pairs[0], number, now, own || i < 3);
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

static void pair(uint32_t nic, uint8_t path, int64_t heard_ns)
{
    int edge;
    struct mesh_edge *e = edge_of(nic, &edge);

    e->out[path].half.state = PATH_ALIVE;
    mesh_on_pair(m, now, edge, path, DIRECTION_OUT, SENT_NS, heard_ns, 50000 + heard_ns);
}

/* All pairs of the first peer's paths were judged by its own gap, also close ones. Then the others agree on a gap. */
static void what_all_agree_on_forgets_no_gap_of_a_host(void **state)
{
    struct locate *l = m->pairs[0];
    int edge, second;
    struct mesh_edge *other = edge_of(2, &second), *e = edge_of(1, &edge);
    const uint32_t number = evidence_number(m, edge, 0);
    const struct locate_route r = {
        .from_host = {10}, .to_host = {11}, .from = {0}, .to = {1}, .teller = {11}};
    for (int i = 0; i < 120; i++, now.ns += 100 * NS_PER_MS) {
        pair(1, 0, i < 40 ? SENT_NS : 2 * SLOW_NS);
        pair(2, 0, i < 80 ? SENT_NS : SLOW_NS);
        pair(3, 0, i < 80 ? SENT_NS : SLOW_NS);
        if (i == 60) {
            e->out[0].half.spread.close = other->out[0].half.spread.close = 3;
        }
        if (i < 80) {
            locate_path_set(l, number, &r);
            locate_on_trial(l, number, now, i >= 40);
        }
        locate_tick(l, now);
    }
    assert_true(spread_alike(m->gaps[0].all.slow_ns, SLOW_NS));
    assert_true(spread_alike(gaps_of(&m->gaps[0], 11), 2 * SLOW_NS));
    assert_int_equal(e->out[0].half.spread.close, 3);
    assert_int_equal(other->out[0].half.spread.close, 0);
    assert_int_equal(locate_case_count(l), 1);
    assert_true(locate_explains(l, locate_case_get(l, 0), number));
}

/* One peer forges stamps of the pairs that cross a slow trunk: the trunk is reported with the gap on which all others agree. */
static void a_trunk_has_the_gap_of_all(void **state)
{
    uint32_t forging = 1;
    struct mesh_fault f;

    for (uint32_t nic = 1; nic < PEERS; nic++) {
        int edge, first;
        struct mesh_edge *e = edge_of(nic, &edge);

        (void)edge_of(forging, &first);
        forging = edge < first ? nic : forging;
        e->path_count = 2;
        for (uint8_t p = 0; p < 2; p++) {
            struct path_out *out = &e->out[p];
            const uint16_t way[] = {router(1), router(10 + p), router((uint8_t)(1 + nic))};

            memcpy(out->hops, way, sizeof(way));
            out->hop_count = ARRAY_COUNT(way);
            out->signature = 1 + p;
        }
    }
    for (int i = 0; i < 200; i++, now.ns += 100 * NS_PER_MS) {
        for (uint32_t nic = 1; nic < PEERS; nic++) {
            pair(nic, 1, SENT_NS);
            pair(nic, 0, i < 40 ? SENT_NS : nic == forging ? 2 * SLOW_NS : SLOW_NS);
        }
        mesh_faults_tick(m, now);
    }
    assert_true(gaps_of(&m->gaps[0], 10 + forging) > 1.5 * SLOW_NS);
    assert_true(mesh_next_fault(m, &f));
    assert_true(f.narrow && f.where.edges == PEERS - 1);
    assert_true(spread_alike((double)f.apart_ns, SLOW_NS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_case_that_may_not_be_told_holds_no_gap, begin, end),
        cmocka_unit_test_setup_teardown(one_that_may_be_told_holds_it, begin, end),
        cmocka_unit_test_setup_teardown(a_trunk_has_the_gap_of_all, begin, end),
        cmocka_unit_test_setup_teardown(what_all_agree_on_forgets_no_gap_of_a_host, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
