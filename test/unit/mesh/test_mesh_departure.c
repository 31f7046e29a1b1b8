/* When a round's packets leave: NICs of one host, and hosts in step, must not collide for long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/mesh/mesh.h"

#define ROUNDS   2000
#define HOSTS    4
#define NIC_MOST 8
#define ROUND_US 4000 /* all packets have left by then */

struct host {
    struct mesh *mesh;
    struct mesh_peer peers[HOSTS * NIC_MOST];
};
struct departures {
    uint32_t count;           /* sends */
    int hold_us[NIC_MOST];    /* -1: nothing was sent */
    bool pair_apart, changed; /* a pair's second packet elsewhere; a NIC with two times */
};

static void host_start_on(struct host *h, uint32_t nics, uint64_t seed, struct span grid)
{
    struct mesh_config config = {
        .nic_count = nics,
        .fleet = {.seed = 1, .peers = h->peers, .peer_count = HOSTS * nics},
        .seed = seed,
        .port_base = 7000,
        .edge_limit = 28,
        .ring_peers = 16,
        .full_limit = 20,
        .path_limit = 4,
        .no_discovery = true,
        .interval = span_ms(100),
        .grid = grid,
        .late = span_ms(50)};

    for (uint32_t i = 0; i < HOSTS * nics; i++) {
        h->peers[i] = (struct mesh_peer){.nic = {i}, .host = {i / nics}, .leaf = LEAF_UNKNOWN};
    }
    for (uint32_t i = 0; i < nics; i++) {
        config.nics[i] = (struct nic_id){i};
    }
    h->mesh = mesh_new(&config, (struct mono){NS_PER_S});
    assert_non_null(h->mesh);
}

static void host_start(struct host *h, uint32_t nics, uint64_t seed)
{
    host_start_on(h, nics, seed, span_ms(5));
}

static struct departures host_round(struct host *h, int round)
{
    const struct mono now = {NS_PER_S + (round + 1) * 5 * NS_PER_MS};
    struct departures d = {0};
    struct mesh_send send, last = {0};
    int edge;

    for (uint32_t i = 0; i < NIC_MOST; i++) {
        d.hold_us[i] = -1;
    }
    mesh_tick(h->mesh, now);
    while (mesh_next_send(h->mesh, now, &send, &edge)) {
        int *hold = &d.hold_us[send.local];

        d.changed = d.changed || (*hold >= 0 && *hold != send.hold_us);
        d.pair_apart = d.pair_apart || (send.pair != 0 && send.probe.second &&
                                        (last.local != send.local || last.pair == 0));
        *hold = send.hold_us;
        last = send;
        d.count++;
    }
    return d;
}

static void a_nics_packets_leave_together(void **state)
{
    static struct host h;
    uint32_t sends = 0;

    (void)state;
    host_start(&h, 8, 5);
    for (int i = 0; i < ROUNDS; i++) {
        const struct departures d = host_round(&h, i);
        int times[NIC_MOST], count = 0;

        assert_false(d.changed);
        assert_false(d.pair_apart);
        for (uint32_t k = 0; k < NIC_MOST; k++) {
            int n = 0;
            while (n < count && times[n] != d.hold_us[k]) {
                n++;
            }
            times[n] = d.hold_us[k];
            count += n == count && d.hold_us[k] >= 0;
            assert_true(d.hold_us[k] < ROUND_US);
        }
        assert_true(count <= 4); /* each time wakes the agent */
        sends += d.count;
    }
    assert_true(sends > ROUNDS);
    mesh_free(h.mesh);
}

static void two_nics_of_a_host_never_leave_at_once(void **state)
{
    static struct host h;
    int both = 0, second_first = 0;

    (void)state;
    host_start(&h, 2, 5);
    for (int i = 0; i < ROUNDS; i++) {
        const struct departures d = host_round(&h, i);

        if (d.hold_us[0] >= 0 && d.hold_us[1] >= 0) {
            assert_true(abs(d.hold_us[0] - d.hold_us[1]) >= 1000);
            both++;
            second_first += d.hold_us[1] < d.hold_us[0];
        }
    }
    assert_true(both > 30);
    assert_in_range(second_first, both / 3, both * 2 / 3); /* neither is always behind the other */
    mesh_free(h.mesh);
}

static void hosts_in_step_do_not_meet_for_long(void **state)
{
    static struct host one, other;
    int run = 0, longest = 0, meetings = 0;

    (void)state;
    host_start(&one, 1, 5);
    host_start(&other, 1, 6);
    for (int i = 0; i < ROUNDS; i++) {
        const struct departures a = host_round(&one, i), b = host_round(&other, i);
        const bool meet =
            a.count > 0 && b.count > 0 && abs(a.hold_us[0] - b.hold_us[0]) <= 10; /* a frame */

        run = meet ? run + 1 : 0;
        longest = run > longest ? run : longest;
        meetings += meet;
    }
    assert_true(longest <= 3);
    assert_true(meetings < ROUNDS / 50); /* 20 us of 4 ms: 10 of 2,000 */
    mesh_free(one.mesh);
    mesh_free(other.mesh);
}

static void one_seed_one_order(void **state)
{
    static struct host one, other;

    (void)state;
    host_start(&one, 4, 7);
    host_start(&other, 4, 7);
    for (int i = 0; i < ROUNDS; i++) {
        const struct departures a = host_round(&one, i), b = host_round(&other, i);

        assert_memory_equal(a.hold_us, b.hold_us, sizeof(a.hold_us));
    }
    mesh_free(one.mesh);
    mesh_free(other.mesh);
}

/* The agent begins its round at the time that was drawn, so nothing waits first. What leaves when is the same. */
static void a_driver_without_a_grid_begins_its_rounds_late(void **state)
{
    static struct host grid, free;

    (void)state;
    for (uint32_t nics = 1; nics <= NIC_MOST; nics *= 2) {
        int64_t sum = 0, count = 0;

        host_start_on(&grid, nics, 8, span_ms(5));
        host_start_on(&free, nics, 8, span_ms(0));
        for (int i = 0; i < ROUNDS; i++) {
            const struct departures a = host_round(&grid, i), b = host_round(&free, i);
            const int begin_us = (int)mesh_begin_us(free.mesh);

            assert_int_equal(mesh_begin_us(grid.mesh), 0);
            assert_int_equal(a.count, b.count);
            for (uint32_t k = 0; k < nics; k++) {
                assert_int_equal(a.hold_us[k], b.hold_us[k] < 0 ? -1 : begin_us + b.hold_us[k]);
            }
            sum += begin_us;
            count++;
        }
        const int64_t apart_us = ROUND_US / (nics < 4 ? nics : 4);
        assert_in_range(sum / count, apart_us * 45 / 100, apart_us * 55 / 100);
        mesh_free(grid.mesh);
        mesh_free(free.mesh);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_nics_packets_leave_together),
        cmocka_unit_test(two_nics_of_a_host_never_leave_at_once),
        cmocka_unit_test(hosts_in_step_do_not_meet_for_long),
        cmocka_unit_test(one_seed_one_order),
        cmocka_unit_test(a_driver_without_a_grid_begins_its_rounds_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
