/* Every host computes the same graph: symmetric, of bounded degree, connected. If a NIC leaves, only its neighbours' edges
 * change. */
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

/* The spare behind a neighbour is the NIC that the ring gives if that neighbour is gone. */
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

/* If NICs join and leave one after the other, the choices are the same as from the final list. */
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
            continue; /* the fleet grows, then shrinks below the size at which all probe all */
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

/* ---- the width of the graph ---- */

#define WIDE_COUNT 1000
#define WIDE_EDGES 36

static struct mesh_peer wide_list[WIDE_COUNT];
static uint32_t chosen[WIDE_COUNT][WIDE_EDGES], chosen_count[WIDE_COUNT];

static struct mesh_fleet wide_fleet(uint32_t count, uint32_t nics, uint64_t seed)
{
    for (uint32_t i = 0; i < count; i++) {
        wide_list[i] = (struct mesh_peer){
            .nic = {i}, .host = {i / nics}, .rail = (uint16_t)(i % nics), .leaf = LEAF_UNKNOWN};
    }
    return (struct mesh_fleet){.seed = seed, .peers = wide_list, .peer_count = count};
}

static void draw(const struct mesh_fleet *f, uint32_t ring_peers)
{
    struct peer_choice choices[WIDE_EDGES];

    for (uint32_t i = 0; i < f->peer_count; i++) {
        const uint32_t count = peers_choose(f, i, ring_peers, 20, choices, WIDE_EDGES);
        chosen_count[i] = 0;
        for (uint32_t k = 0; k < count && choices[k].rank == 0; k++) {
            chosen[i][chosen_count[i]++] = choices[k].index;
        }
    }
}

/* The distance of the furthest NIC from `from`; UINT32_MAX: one isn't connected. NICs of one host don't probe each other. */
static uint32_t furthest(const struct mesh_fleet *f, uint32_t from, const bool *lies)
{
    static uint32_t queue[WIDE_COUNT], far[WIDE_COUNT];
    uint32_t head = 0, tail = 0, most = 0;

    memset(far, 0xff, sizeof(far));
    far[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        const uint32_t at = queue[head++];
        for (uint32_t k = 0; k < chosen_count[at]; k++) {
            const uint32_t to = chosen[at][k];
            if (far[to] == UINT32_MAX && !lies[wide_list[to].host.index]) {
                far[to] = far[at] + 1;
                queue[tail++] = to;
            }
        }
    }
    for (uint32_t i = 0; i < f->peer_count; i++) {
        const uint32_t host = wide_list[i].host.index;
        if (!lies[host] && host != wide_list[from].host.index && far[i] > most) {
            most = far[i];
        }
    }
    return most;
}

/* Premise 4 of the hard bound (docs/clock.md). */
static void no_two_are_further_apart_than_hops(void **state)
{
    static const uint32_t rings[] = {PEERS_LEAST, 6, 8, 12, 16, 24};
    static const struct {
        uint32_t count, nics, seeds;
    } fleets[] = {{20, 2, 2},  {22, 1, 20},  {24, 8, 20}, {48, 2, 20},
                  {64, 8, 10}, {130, 1, 10}, {256, 4, 2}, {1000, 2, 1}};

    for (size_t i = 0; i < sizeof(fleets) / sizeof(fleets[0]); i++) {
        for (uint64_t seed = 1; seed <= fleets[i].seeds; seed++) {
            for (size_t r = 0; r < sizeof(rings) / sizeof(rings[0]); r++) {
                const struct mesh_fleet f = wide_fleet(fleets[i].count, fleets[i].nics, seed);
                const uint32_t hops = peers_hops(f.peer_count, rings[r], 20);
                bool lies[WIDE_COUNT] = {false};
                draw(&f, rings[r]);
                for (int with_liars = 0; with_liars < 2; with_liars++) {
                    for (uint32_t k = 0; k < f.peer_count; k++) {
                        if (!lies[wide_list[k].host.index] && furthest(&f, k, lies) > hops) {
                            fail_msg("%u NICs, %u a host, K %u, seed %u: more than %u hops",
                                     f.peer_count, fleets[i].nics, rings[r], (unsigned)seed, hops);
                        }
                    }
                    for (uint32_t k = 0; k < f.peer_count / fleets[i].nics / 10; k++) {
                        lies[hash_u64(seed, k) % (f.peer_count / fleets[i].nics)] = true;
                    }
                }
            }
        }
    }
    assert_int_equal(peers_hops(21, 16, 20), 1); /* so few: all probe all */
    assert_int_equal(peers_hops(22, 16, 20), 4);
    assert_int_equal(peers_hops(2048, 16, 20), 4);
    assert_int_equal(peers_hops(2049, 16, 20), 5);
    assert_int_equal(peers_hops(100000, 16, 20), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symmetric_bounded_and_connected),
        cmocka_unit_test(small_fleets_in_full),
        cmocka_unit_test(change_is_local),
        cmocka_unit_test(spares_are_the_next_of_the_ring),
        cmocka_unit_test(changes_lead_to_the_same),
        cmocka_unit_test(no_two_are_further_apart_than_hops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
