/* Echoes: a packet that bypasses the mesh repeats a packet that was just heard, so that its receiver can tell it from a
 * recording. Two meshes that probe each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mesh/mesh.h"

static struct mesh *ends[2];
static struct mono now;
static struct mesh_peer peers[2];

static struct mesh *mesh_of(uint32_t nic, uint64_t seed)
{
    const struct mesh_config config = {.nic_count = 1,
                                       .nics = {{nic}},
                                       .fleet = {.seed = 7, .peers = peers, .peer_count = 2},
                                       .seed = seed,
                                       .port_base = 7640,
                                       .edge_limit = 8,
                                       .ring_peers = 4,
                                       .full_limit = 20,
                                       .path_limit = 4,
                                       .no_discovery = true,
                                       .interval = span_ms(100),
                                       .grid = span_ms(5),
                                       .late = span_ms(25)};
    struct mesh *m = mesh_new(&config, now);

    assert_non_null(m);
    return m;
}

static int begin(void **state)
{
    (void)state;
    now = (struct mono){1000 * NS_PER_S};
    for (uint32_t i = 0; i < 2; i++) {
        peers[i] = (struct mesh_peer){.nic = {i}, .host = {i}};
    }
    ends[0] = mesh_of(0, 3);
    ends[1] = mesh_of(1, 4);
    return 0;
}

static int end(void **state)
{
    (void)state;
    mesh_free(ends[0]);
    mesh_free(ends[1]);
    return 0;
}

/* All packets of both arrive, and are stamped at both ends. */
static void run(int64_t ms)
{
    struct mesh_send send;
    struct mesh_heard heard;
    int edge;

    for (int64_t i = 0; i < ms; i += 5) {
        now = mono_add(now, span_ms(5));
        for (uint32_t k = 0; k < 2; k++) {
            mesh_tick(ends[k], now);
            while (mesh_next_send(ends[k], now, &send, &edge)) {
                mesh_on_transmit(ends[k], now, send.token, 0, (struct nic_time){now.ns}, false);
                mesh_on_receive(ends[1 - k], now, 0, send.source_port, true,
                                (struct nic_time){now.ns + 20000}, &send.probe, &heard);
            }
        }
    }
}

static bool echo_of(uint32_t end_, struct probe_echo *ret_echo)
{
    return mesh_echo(ends[end_], mesh_edge_find(ends[end_], 0, (struct nic_id){1 - end_}),
                     ret_echo);
}

static bool echoed(uint32_t end_, const struct probe_echo *echo)
{
    return mesh_echoed(ends[end_], 0, (struct nic_id){1 - end_}, echo);
}

static void what_repeats_a_packet_of_now_counts(void **state)
{
    struct probe_echo echo;
    (void)state;

    assert_false(echo_of(0, &echo)); /* nothing was heard */
    run(3000);
    for (uint32_t k = 0; k < 2; k++) {
        for (int i = 0; i < 50; i++) {
            run(100);
            assert_true(echo_of(k, &echo));
            assert_true(echoed(1 - k, &echo));
            assert_false(echoed(k, &echo)); /* it is no packet of that mesh */
        }
    }
    assert_false(mesh_echoed(ends[0], 0, (struct nic_id){77}, &echo)); /* no edge has it */
    echo.path = PROBE_PATH_MAX;
    assert_false(echoed(0, &echo));
}

static void what_was_recorded_counts_for_seconds_only(void **state)
{
    struct probe_echo old;
    (void)state;

    run(3000);
    assert_true(echo_of(1, &old) && echoed(0, &old));
    run(10000);
    for (int i = 0; i < 600; i++) { /* nor does it ever again */
        assert_false(echoed(0, &old));
        run(1000);
    }
}

/* The receiver's agent restarted: packets for the agent before don't count for it. */
static void what_was_said_to_an_agent_before_is_nothing_to_this_one(void **state)
{
    struct probe_echo old, echo;
    (void)state;

    run(3000);
    assert_true(echo_of(1, &old));
    mesh_free(ends[0]);
    ends[0] = mesh_of(0, 99);
    run(100);
    assert_false(echoed(0, &old));
    run(5000);
    assert_true(echo_of(1, &echo));
    assert_true(echoed(0, &echo));
    assert_false(echoed(0, &old));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_repeats_a_packet_of_now_counts, begin, end),
        cmocka_unit_test_setup_teardown(what_was_recorded_counts_for_seconds_only, begin, end),
        cmocka_unit_test_setup_teardown(what_was_said_to_an_agent_before_is_nothing_to_this_one,
                                        begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
