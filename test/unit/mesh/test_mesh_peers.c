/* Every host comes to the same graph: symmetric, of bounded degree, connected, and a NIC that goes
 * changes only its neighbours. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
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

    memset(ret, 0, sizeof(edges));
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
        memcpy(next, reached, sizeof(next));
        for (uint32_t i = 0; i < COUNT; i++) {
            for (uint32_t j = 0; j < COUNT && reached[i]; j++) {
                next[j] = next[j] || edges[i][j];
            }
        }
        memcpy(reached, next, sizeof(reached));
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
    uint32_t changed = 0;

    choose_all(&f, edges);
    struct mesh_fleet less = fleet(HOSTS - 1); /* the last host leaves */
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

/* NICs that join and leave, one after the other, lead to the same choices as the list does that comes of it. */
static void changes_lead_to_the_same(void **state)
{
    static struct mesh_peer room[COUNT];
    static struct peer_rings rings;
    struct peer_choice choices[256], whole[256];
    struct mesh_fleet f = {.seed = 42, .peers = room, .room = room, .peer_capacity = COUNT};
    struct prng prng;
    uint32_t at = 0, own = 17;

    (void)fleet(HOSTS);
    prng_init(&prng, 3);
    for (uint32_t i = 0; i < 24; i++) {
        const struct mesh_member member = {.peer = list[i]};
        assert_int_equal(fleet_change(&f, &member, &at), 0);
    }
    peers_look(&rings, &f, fleet_find(&f, list[own].nic), 16, 20);
    for (int step = 0; step < 4000; step++) {
        const uint32_t which = (uint32_t)prng_below(&prng, step % 1000 < 700 ? COUNT : 24);
        const struct mesh_member member = {.peer = list[which],
                                           .gone = fleet_find(&f, list[which].nic) != UINT32_MAX};
        if (which == own || (member.gone && step % 1000 < 500 && step % 3 != 0)) {
            continue; /* it grows, then shrinks below what is probed in full */
        }
        assert_int_equal(fleet_change(&f, &member, &at), 0);
        const uint32_t self = fleet_find(&f, list[own].nic);
        (void)peers_change(&rings, &f, self, 16, 20, &member);
        const uint32_t count = peers_chosen(&rings, &f, self, choices, 256);
        assert_int_equal(count, peers_choose(&f, self, 16, 20, whole, 256));
        for (uint32_t i = 0; i < count; i++) {
            assert_memory_equal(&choices[i], &whole[i], sizeof(choices[i]));
        }
    }
    const struct mesh_member twice = {.peer = list[own]}, none = {.peer = {.nic = {1}}, .gone = 1};
    assert_int_equal(fleet_change(&f, &twice, &at), -EINVAL);
    assert_int_equal(fleet_change(&f, &none, &at), -EINVAL);
    f.peer_capacity = f.peer_count;
    const struct mesh_member fresh = {.peer = {.nic = {1}}};
    assert_int_equal(fleet_change(&f, &fresh, &at), -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symmetric_bounded_and_connected),
        cmocka_unit_test(small_fleets_in_full),
        cmocka_unit_test(change_is_local),
        cmocka_unit_test(spares_are_the_next_of_the_ring),
        cmocka_unit_test(changes_lead_to_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
