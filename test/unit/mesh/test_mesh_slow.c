/* Delays that shift, judged with all paths of a host: reported once, and over when no path between the two NICs is that slow any
 * more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mesh/internal.h"

enum { PEERS = 4, PATHS = 4, SLOW_NS = 50000 };

static struct mesh *m;
static struct mono now;
static struct mesh_peer peers[PEERS];
static struct prng prng;
static int slow; /* the slow path from peer 1; -1: none */
static uint32_t told, over;

static int begin(void **state)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        peers[i] = (struct mesh_peer){.nic = {i}, .host = {i}};
    }
    const struct mesh_config config = {.nic_count = 1,
                                       .nics = {{0}},
                                       .fleet = {.seed = 7, .peers = peers, .peer_count = PEERS},
                                       .seed = 3,
                                       .port_base = 7640,
                                       .edge_limit = 28,
                                       .ring_peers = 16,
                                       .full_limit = 20,
                                       .path_limit = PATHS,
                                       .interval = span_ms(100),
                                       .grid = span_ms(5),
                                       .late = span_ms(25)};
    now = (struct mono){1000 * NS_PER_S};
    prng_init(&prng, 5);
    slow = -1;
    told = over = 0;
    m = mesh_new(&config, now);
    return m == NULL;
}

static int end(void **state)
{
    mesh_free(m);
    return 0;
}

static struct mesh_edge *edge_of(uint32_t nic, int *ret_edge)
{
    *ret_edge = mesh_edge_find(m, 0, (struct nic_id){nic});
    assert_true(*ret_edge >= 0);
    return &m->edges[*ret_edge];
}

static void set_ports(uint32_t nic, uint16_t first)
{
    int edge;
    struct mesh_edge *e = edge_of(nic, &edge);

    e->path_count = e->peer_path_count = PATHS;
    for (uint8_t p = 0; p < PATHS; p++) {
        e->in[p].half.port = (uint16_t)(first + p);
        e->in[p].half.state = e->out[p].half.state = PATH_ALIVE;
    }
}

/* 2.5 pairs a second for each path and direction; only the first `paths` of peer 1. */
static void run(double seconds, uint8_t paths)
{
    for (const int64_t until = now.ns + (int64_t)(seconds * NS_PER_S); now.ns < until;
         now.ns += 400 * NS_PER_MS) {
        for (uint32_t nic = 1; nic < PEERS; nic++) {
            int edge;

            edge_of(nic, &edge);
            for (uint8_t p = 0; p < (nic == 1 ? paths : PATHS); p++) {
                const int64_t owd = 40000 + (int64_t)(20 * prng_normal(&prng));
                const bool late = nic == 1 && p == slow;

                mesh_watch_delay(m, now, edge, p, DIRECTION_OUT, owd, 100);
                mesh_watch_delay(m, now, edge, p, DIRECTION_IN, owd + (late ? SLOW_NS : 0), 100);
            }
        }
        for (struct mesh_verdict v; mesh_next_verdict(m, &v);) {
            told += v.kind == MESH_PATH_SLOW;
            over += v.kind == MESH_PATH_PACE;
        }
    }
}

static void begin_slow(int path)
{
    for (uint32_t nic = 1; nic < PEERS; nic++) {
        set_ports(nic, 7640);
    }
    run(20, PATHS);
    assert_int_equal(told, 0);
    slow = path;
    run(4, PATHS);
    assert_int_equal(told, 1);
    assert_int_equal(over, 0);
}

static void a_shift_is_told_within_four_seconds(void **state)
{
    begin_slow(1);
    slow = -1;
    run(5, PATHS);
    assert_int_equal(told, 1);
    assert_int_equal(over, 1);
}

/* The peer learnt its ways: another path takes the slow way. */
static void a_delay_lasts_when_ports_change(void **state)
{
    begin_slow(0);
    set_ports(1, 7650);
    slow = 2;
    run(60, PATHS);
    assert_int_equal(told, 1);
    assert_int_equal(over, 0);
    slow = -1;
    run(10, PATHS);
    assert_int_equal(told, 1);
    assert_int_equal(over, 1);
}

static void it_is_over_when_no_port_goes_that_way(void **state)
{
    begin_slow(0);
    set_ports(1, 7650);
    slow = -1;
    run(10, PATHS);
    assert_int_equal(told, 1);
    assert_int_equal(over, 1);
}

/* There are fewer ways than ports: the reported path is no longer used. */
static void a_delay_lasts_when_its_path_is_given_up(void **state)
{
    begin_slow(3);
    set_ports(1, 7650);
    slow = 1;
    run(60, 3);
    assert_int_equal(over, 0);
    slow = -1;
    run(10, 3);
    assert_int_equal(told, 1);
    assert_int_equal(over, 1);
}

/* A path that was as long before the other one shifted isn't the one that shifted. */
static void another_long_path_is_no_reason_to_go_on(void **state)
{
    begin_slow(0);
    slow = -1;
    run(20, PATHS);
    assert_int_equal(over, 1);
    set_ports(1, 7650); /* path 1 is long from now on, and that becomes its baseline */
    slow = 1;
    run(20, PATHS);
    assert_int_equal(told, 1);
    assert_int_equal(over, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_shift_is_told_within_four_seconds, begin, end),
        cmocka_unit_test_setup_teardown(a_delay_lasts_when_ports_change, begin, end),
        cmocka_unit_test_setup_teardown(it_is_over_when_no_port_goes_that_way, begin, end),
        cmocka_unit_test_setup_teardown(a_delay_lasts_when_its_path_is_given_up, begin, end),
        cmocka_unit_test_setup_teardown(another_long_path_is_no_reason_to_go_on, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
