/* Every host comes to the same graph: symmetric, of bounded degree, connected, and a NIC that goes
 * changes only its neighbours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mesh/peers.h"

#define HOSTS 150
#define NICS  2
#define COUNT (HOSTS * NICS)

static struct mesh_peer list[COUNT];
static bool edges[COUNT][COUNT];

static struct mesh_fleet fleet(uint32_t hosts)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        list[i] = (struct mesh_peer){
            .nic = {3 * i}, .host = {i / NICS}, .rail = i % NICS, .leaf = (uint16_t)(i / 32)};
    }
    return (struct mesh_fleet){.seed = 42, .peers = list, .peer_count = hosts * NICS};
}

static void choose_all(const struct mesh_fleet *f, bool ret[COUNT][COUNT])
{
    struct peer_choice choices[256];

    memset(ret, 0, sizeof edges);
    for (uint32_t i = 0; i < f->peer_count; i++) {
        const uint32_t count = peers_choose(f, i, 16, 20, choices, 256);
        for (uint32_t k = 0; k < count && choices[k].rank == 0; k++) {
            assert_false(ret[i][choices[k].index]);
            ret[i][choices[k].index] = true;
        }
    }
}

static void symmetric_bounded_and_connected(void **state)
{
    const struct mesh_fleet f = fleet(HOSTS);
    bool reached[COUNT] = {true};
    uint32_t count = 1;

    choose_all(&f, edges);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t degree = 0, rail = 0;
        for (uint32_t j = 0; j < COUNT; j++) {
            assert_int_equal(edges[i][j], edges[j][i]);
            assert_false(edges[i][j] && list[i].host.index == list[j].host.index);
            degree += edges[i][j];
            rail += edges[i][j] && list[i].rail == list[j].rail;
        }
        assert_in_range(degree, 12, 20);
        assert_true(rail >= 1);
    }
    for (uint32_t round = 0; round < 6; round++) {
        bool next[COUNT];
        memcpy(next, reached, sizeof next);
        for (uint32_t i = 0; i < COUNT; i++) {
            for (uint32_t j = 0; j < COUNT && reached[i]; j++) {
                next[j] = next[j] || edges[i][j];
            }
        }
        memcpy(reached, next, sizeof reached);
    }
    for (uint32_t i = 1; i < COUNT; i++) {
        count += reached[i];
    }
    assert_int_equal(count, COUNT);
}

static void small_fleets_in_full(void **state)
{
    const struct mesh_fleet f = fleet(10);

    choose_all(&f, edges);
    for (uint32_t i = 0; i < 20; i++) {
        for (uint32_t j = 0; j < 20; j++) {
            assert_int_equal(edges[i][j], i / NICS != j / NICS);
        }
    }
}

static void change_is_local(void **state)
{
    static bool after[COUNT][COUNT];
    const struct mesh_fleet f = fleet(HOSTS);
    struct mesh_fleet less;
    uint32_t changed = 0;

    choose_all(&f, edges);
    less = fleet(HOSTS - 1); /* the last host leaves */
    choose_all(&less, after);
    for (uint32_t i = 0; i < COUNT - NICS; i++) {
        bool differs = false;
        for (uint32_t j = 0; j < COUNT - NICS; j++) {
            differs = differs || edges[i][j] != after[i][j];
        }
        changed += differs;
    }
    assert_in_range(changed, 1, 2 * 20 * NICS);
}

/* The spare behind a neighbour is what the ring gives when that neighbour is gone. */
static void spares_are_the_next_of_the_ring(void **state)
{
    const struct mesh_fleet f = fleet(HOSTS);
    struct peer_choice choices[256];
    const uint32_t count = peers_choose(&f, 17, 16, 20, choices, 256);
    uint32_t spares = 0;

    for (uint32_t i = 0; i < count; i++) {
        spares += choices[i].rank > 0;
        assert_in_range(choices[i].rank, 0, PEERS_DEPTH - 1);
        assert_int_not_equal(list[choices[i].index].host.index, list[17].host.index);
    }
    assert_true(spares >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symmetric_bounded_and_connected),
        cmocka_unit_test(small_fleets_in_full),
        cmocka_unit_test(change_is_local),
        cmocka_unit_test(spares_are_the_next_of_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
