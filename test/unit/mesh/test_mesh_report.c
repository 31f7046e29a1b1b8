/* Reports of edges and paths: delays of the last windows, and what is kept over a restart. */
#include "one_mesh.h"

static struct path_report report_of(int edge, uint8_t path, enum finding_direction direction)
{
    struct path_report r;

    assert_true(mesh_path_report(m, now, edge, path, direction, &r));
    return r;
}

static void what_is_not_there_is_not_told(void **state)
{
    struct mesh_edge_info info;
    struct path_report r;
    int edge;

    (void)state;
    struct mesh_edge *e = edge_of(2, &edge);
    assert_true(mesh_edge_info(m, now, edge, &info));
    assert_int_equal(info.nic.index, 2);
    assert_int_equal(info.host.index, 12);
    assert_int_equal(info.rtt_ns_min, -1);
    assert_true(info.heard.ns == MONO_NEVER.ns);
    assert_false(mesh_edge_info(m, now, -1, &info));
    assert_false(mesh_edge_info(m, now, mesh_edge_capacity(m), &info));
    e->path_count = 2;
    assert_true(mesh_path_brief(m, now, edge, 1, DIRECTION_OUT, &r));
    assert_false(mesh_path_brief(m, now, edge, 2, DIRECTION_OUT, &r));
    assert_false(mesh_path_brief(m, now, edge, 1, DIRECTION_IN, &r));
    e->in[1].known = e->in[PATHS - 1].known = true;
    assert_true(mesh_path_brief(m, now, edge, 1, DIRECTION_IN, &r));
    assert_true(mesh_path_brief(m, now, edge, PATHS - 1, DIRECTION_IN, &r));
    assert_false(mesh_path_brief(m, now, edge, PATHS, DIRECTION_IN, &r));
    assert_int_equal(r.owd_ns_min, INT64_MIN);
    assert_int_equal(r.owd_count, 0);
    e->used = false;
    assert_false(mesh_edge_info(m, now, edge, &info));
    assert_false(mesh_path_brief(m, now, edge, 1, DIRECTION_OUT, &r));
    e->used = true;
}

/* A path's delays match the sorted values. Jobs' packets are reported separately, and a brief report is at most a second old. */
static void delays_are_told(void **state)
{
    static const int64_t pairs[] = {5000, 3000, 4000, 9000, 6000};
    int edge;

    (void)state;
    struct mesh_edge *e = edge_of(1, &edge);
    e->path_count = PATHS;
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        mesh_on_delay(m, now, edge, 2, DIRECTION_OUT, DELAY_OF_PAIR, pairs[i]);
        mesh_on_delay(m, now, edge, 2, DIRECTION_OUT, DELAY_OF_JOB, 100 * pairs[i]);
        mesh_on_delay(m, now, edge, 2, DIRECTION_OUT, DELAY_OF_PROBE, 7);
    }
    struct path_report r = report_of(edge, 2, DIRECTION_OUT);
    assert_int_equal(r.owd_ns_last, 6000);
    assert_int_equal(r.owd_ns_min, 3000);
    assert_int_equal(r.owd_ns_p50, 5000);
    assert_in_range(r.owd_ns_p99, 8879, 8880); /* 6000 and 0.96 of the way to 9000 */
    assert_int_equal(r.owd_ns_max, 9000);
    assert_int_equal(r.owd_count, 5);
    assert_int_equal(r.job_ns_p50, 500000);
    assert_int_equal(r.job_ns_max, 900000);
    assert_int_equal(r.owd_ns_p50_long, INT64_MIN);
    assert_true(mesh_path_brief(m, now, edge, 2, DIRECTION_OUT, &r));
    assert_int_equal(r.owd_ns_min, 5000); /* as of the first one */
    assert_int_equal(r.owd_count, 1);
    assert_int_equal(r.job_ns_p50, INT64_MIN);
    now = after(NS_PER_S - 1);
    mesh_on_delay(m, now, edge, 2, DIRECTION_OUT, DELAY_OF_PAIR, 7000);
    assert_true(mesh_path_brief(m, now, edge, 2, DIRECTION_OUT, &r));
    assert_int_equal(r.owd_count, 1);
    now = after(1);
    mesh_on_delay(m, now, edge, 2, DIRECTION_OUT, DELAY_OF_PAIR, 8000);
    assert_true(mesh_path_brief(m, now, edge, 2, DIRECTION_OUT, &r));
    assert_int_equal(r.owd_count, 7);
    assert_int_equal(r.owd_ns_min, 3000);
    assert_int_equal(r.owd_ns_p50, 6000);
    assert_int_equal(report_of(edge, 1, DIRECTION_OUT).owd_count, 0); /* of that path alone */
    mesh_on_delay(m, now, edge, PATHS, DIRECTION_OUT, DELAY_OF_PAIR, 1);
    now = (struct mono){1020 * NS_PER_S - 1};
    assert_int_equal(report_of(edge, 2, DIRECTION_OUT).owd_count, 7);
    now = after(1); /* nothing is left of the last two windows */
    assert_int_equal(report_of(edge, 2, DIRECTION_OUT).owd_count, 0);
    assert_int_equal(report_of(edge, 2, DIRECTION_OUT).owd_ns_p99, INT64_MIN);
    assert_true(mesh_path_brief(m, now, edge, 2, DIRECTION_OUT, &r));
    assert_int_equal(r.owd_ns_last, INT64_MIN);
}

/* Round trips: the least of each direction, of these five seconds and the last ones. */
static void a_round_trip_is_the_least_of_both_ways(void **state)
{
    struct mesh_edge_info info;
    int edge;

    (void)state;
    edge_of(1, &edge);
    mesh_on_delay(m, now, edge, 0, DIRECTION_OUT, DELAY_OF_PAIR, 3000);
    assert_true(mesh_edge_info(m, now, edge, &info));
    assert_int_equal(info.rtt_ns_min, -1);
    mesh_on_delay(m, now, edge, 1, DIRECTION_IN, DELAY_OF_PAIR, 4000);
    mesh_on_delay(m, now, edge, 2, DIRECTION_IN, DELAY_OF_PAIR, 5000);
    mesh_on_delay(m, now, edge, 2, DIRECTION_IN, DELAY_OF_JOB, 1);
    assert_true(mesh_edge_info(m, now, edge, &info));
    assert_int_equal(info.rtt_ns_min, 7000);
    for (int i = 0; i < 3; i++) { /* from now on it takes longer */
        now = after(5 * NS_PER_S);
        mesh_on_delay(m, now, edge, 0, DIRECTION_OUT, DELAY_OF_PAIR, 30000);
        mesh_on_delay(m, now, edge, 0, DIRECTION_IN, DELAY_OF_PAIR, 40000);
        assert_true(mesh_edge_info(m, now, edge, &info));
        assert_int_equal(info.rtt_ns_min, i == 0 ? 7000 : 70000);
    }
}

/* The packets that waited in a queue, as a share of all packets that this NIC hears. */
static void who_waited_is_counted(void **state)
{
    int edge;

    (void)state;
    edge_of(1, &edge);
    mesh_on_delay(m, now, edge, 0, DIRECTION_IN, DELAY_OF_PAIR, 3000);
    assert_float_equal(m->nics[0].waits.sent, 0, 0); /* its least delay wasn't known yet */
    mesh_on_delay(m, now, edge, 0, DIRECTION_IN, DELAY_OF_PAIR, 8000);
    assert_float_equal(m->nics[0].waits.lost, 0, 0);
    mesh_on_delay(m, now, edge, 0, DIRECTION_IN, DELAY_OF_JOB, 8001);
    mesh_on_delay(m, now, edge, 0, DIRECTION_IN, DELAY_OF_PROBE, 2000);
    assert_float_equal(m->nics[0].waits.lost, 1, 0);
    assert_float_equal(m->nics[0].waits.sent, 3, 0);
}

/* Ports and ways are kept over a restart, also unknown hops. */
static void ways_are_kept(void **state)
{
    struct mesh_saved_edge saved, again;
    int edge;

    (void)state;
    struct mesh_edge *e = edge_of(3, &edge);
    e->path_count = 3;
    for (uint8_t p = 0; p < 3; p++) {
        e->out[p].half.port = (uint16_t)(PORT_BASE + 5 * p);
        e->out[p].hop_count = p;
        e->out[p].hops[0] = p > 0 ? router(p) : 0;
        e->out[p].hops[1] = 0;
    }
    e->out[2].hops[0] = 0;
    e->out[2].hops[1] = router(9);
    assert_true(mesh_save_edge(m, edge, &saved));
    assert_int_equal(saved.local.index, 0);
    assert_int_equal(saved.peer.index, 3);
    assert_int_equal(saved.hops[1][0][15], 1);
    assert_int_equal(saved.hops[2][0][15], 0);
    assert_int_equal(saved.hops[2][1][15], 9);
    end(NULL);
    begin(NULL);
    mesh_restore_edge(m, now, &saved);
    e = edge_of(3, &edge);
    assert_true(mesh_save_edge(m, edge, &again));
    assert_memory_equal(&saved, &again, sizeof(saved));
    assert_true(e->out[0].signature == 0 && e->out[1].signature != 0 && e->out[2].signature != 0);
    assert_true(e->out[1].signature != e->out[2].signature);
    e->used = false;
    assert_false(mesh_save_edge(m, edge, &again));
    e->used = true;
}

/* A file may contain anything. */
static void what_cannot_be_is_not_restored(void **state)
{
    const struct mesh_saved_edge good = {
        .local = {0},
        .peer = {1},
        .path_count = PATHS,
        .ports = {PORT_BASE, PORT_BASE + 1, PORT_BASE + 2, PORT_BASE + MESH_PORT_COUNT - 1},
        .hop_counts = {MESH_HOP_MAX, 1, 1, 1}};
    int edge;

    (void)state;
    struct mesh_edge *e = edge_of(1, &edge);
    for (int i = 0; i < 8; i++) {
        struct mesh_saved_edge saved = good;
        e->path_count = 1;
        saved.path_count = i == 1 ? 0 : i == 2 ? PATHS + 1 : PATHS;
        saved.ports[3] = (uint16_t)(saved.ports[3] + (i == 3));
        saved.ports[0] = (uint16_t)(saved.ports[0] - (i == 4));
        saved.hop_counts[0] = (uint8_t)(saved.hop_counts[0] + (i == 5));
        saved.local.index += i == 6;
        saved.peer.index += i == 7 ? 99 : 0;
        mesh_restore_edge(m, now, &saved);
        assert_int_equal(e->path_count, i == 0 ? PATHS : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_not_there_is_not_told, begin, end),
        cmocka_unit_test_setup_teardown(delays_are_told, begin, end),
        cmocka_unit_test_setup_teardown(a_round_trip_is_the_least_of_both_ways, begin, end),
        cmocka_unit_test_setup_teardown(who_waited_is_counted, begin, end),
        cmocka_unit_test_setup_teardown(ways_are_kept, begin, end),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_not_restored, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
