/* test_ways.c: the slow trunk of a leaf-spine fabric is named by the rates of ways, whatever one host reports. A slow NIC is no
 * trunk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/audit/ways.h"

enum { HOSTS = 8, SPINES = 4, FLOWS = 12, NOBODY = HOSTS };
#define RATE 25e6

struct world {
    struct prng prng;
    uint32_t leaf, spine; /* of the slow trunk; leaf 9: none */
    uint32_t slow_nic, liar;
    double liar_tells;
    bool silent_spines;
    double knows; /* share of slow ways whose narrow link is known */
    double errs;  /* share of those that are reported for the first trunk */
    double late;  /* share of trains that met others and came late */
    double busy;  /* each train carries less by another share, at most this: it lacks a processor */
};

static void play(struct world *w, struct ways *ways, void **ret_memory)
{
    *ret_memory = malloc(ways_size(HOSTS));
    assert_non_null(*ret_memory);
    ways_init(ways, HOSTS, *ret_memory);
    for (uint32_t host = 0; host < HOSTS; host++) {
        const uint32_t partner = (host + HOSTS / 2) % HOSTS, leaf = host / (HOSTS / 2);
        for (int k = 0; k < FLOWS; k++) {
            const uint32_t spine = (uint32_t)prng_below(&w->prng, SPINES);
            struct way way = {.host = host, .partner = partner, .rate = RATE, .hop_count = 3};
            snprintf(way.hops[0], WAY_NAME_SIZE, "leaf%u", leaf);
            snprintf(way.hops[1], WAY_NAME_SIZE, w->silent_spines ? "-" : "spine%u", spine);
            snprintf(way.hops[2], WAY_NAME_SIZE, "leaf%u", 1 - leaf);
            way.rate *= 1 - 0.05 * prng_uniform(&w->prng);
            way.rate *= prng_uniform(&w->prng) < w->late ? 0.6 : 1;
            way.rate *= 1 - w->busy * prng_uniform(&w->prng);
            if (w->leaf < 2 && spine == w->spine) {
                way.rate = way.rate < RATE / 2 ? way.rate : RATE / 2;
                way.narrow = prng_uniform(&w->prng) < w->knows ? leaf == w->leaf ? 2 : 3 : 0;
                way.narrow = prng_uniform(&w->prng) < w->errs ? 2 : way.narrow;
            }
            way.rate *= host == w->slow_nic || partner == w->slow_nic ? 0.5 : 1;
            way.rate = host == w->liar || partner == w->liar ? w->liar_tells : way.rate;
            ways_add(ways, &way);
        }
    }
    ways_judge(ways);
}

static struct world world_of(uint64_t seed)
{
    struct world w = {.leaf = 9, .slow_nic = NOBODY, .liar = NOBODY, .knows = 0.8};
    prng_init(&w.prng, seed);
    return w;
}

static void nothing_is_slow(void **state)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct world w = world_of(seed);
        struct ways ways;
        void *memory;
        w.late = 0.1;
        w.slow_nic = seed % 2 == 0 ? (uint32_t)seed % HOSTS : NOBODY;
        play(&w, &ways, &memory);
        assert_int_equal(ways.trunk_count, 0);
        assert_true(ways.usual > 0.9 * RATE);
        free(memory);
    }
}

static void the_slow_trunk_is_named(void **state)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct world w = world_of(seed);
        struct ways ways;
        void *memory;
        char leaf[16], spine[16];
        w.leaf = seed % 2;
        w.spine = (uint32_t)prng_below(&w.prng, SPINES);
        w.late = 0.1;
        w.knows = 0.8;
        w.errs = 0.1;
        snprintf(leaf, sizeof(leaf), "leaf%u", w.leaf);
        snprintf(spine, sizeof(spine), "spine%u", w.spine);
        play(&w, &ways, &memory);
        assert_int_equal(ways.trunk_count, 1);
        assert_true(ways.trunks[0].sure);
        assert_string_equal(ways.trunks[0].ends[0], leaf);
        assert_string_equal(ways.trunks[0].ends[1], spine);
        for (uint32_t i = 0; i < ways.count; i++) {
            assert_int_equal(way_is_slow_by(&ways.all[i], &ways.trunks[0]),
                             strcmp(ways.all[i].hops[1], spine) == 0);
        }
        free(memory);
    }
}

/* If trains differ for lack of a processor, a few ways of each NIC are its best by chance, and none of them may use a certain
 * spine. In these worlds 38 named healthy trunks. A slow trunk that stands out is named nevertheless. */
static void busy_hosts_name_no_trunk(void **state)
{
    uint32_t named = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct world w = world_of(seed);
        struct ways ways;
        void *memory;
        w.busy = 0.5 + 0.1 * (double)(seed % 5);
        play(&w, &ways, &memory);
        named += ways.trunk_count > 0;
        free(memory);
        w = world_of(seed);
        w.busy = 0.25;
        w.leaf = seed % 2;
        w.spine = (uint32_t)prng_below(&w.prng, SPINES);
        play(&w, &ways, &memory);
        assert_true(ways.trunk_count > 0 && !ways.uneven);
        free(memory);
    }
    assert_true(named <= 3);
}

/* Both trunks of the spine carry the same packets: if no host knows where it is narrow, either may be the slow one. */
static void the_narrow_trunk_may_be_unknown(void **state)
{
    struct world w = world_of(7);
    struct ways ways;
    void *memory;
    w.leaf = 1;
    w.spine = 2;
    w.knows = 0;
    play(&w, &ways, &memory);
    assert_int_equal(ways.trunk_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_false(ways.trunks[i].sure);
        assert_string_equal(ways.trunks[i].ends[1], "spine2");
    }
    free(memory);
    w.silent_spines = true;
    play(&w, &ways, &memory);
    assert_int_equal(ways.trunk_count, 0);
    free(memory);
}

/* One host and its partner report anything about their ways. */
static void a_liar_names_no_trunk(void **state)
{
    static const double tells[] = {1, 0.5 * RATE, 1e15};
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct world w = world_of(seed);
        struct ways ways;
        void *memory;
        w.liar = (uint32_t)prng_below(&w.prng, HOSTS);
        w.liar_tells = tells[seed % 3];
        play(&w, &ways, &memory);
        assert_int_equal(ways.trunk_count, 0);
        free(memory);
    }
}

static void add_way(struct ways *w, uint32_t host, uint32_t nic, uint32_t partner, double rate,
                    uint8_t narrow, const char *spine)
{
    struct way way = {.host = host,
                      .nic = nic,
                      .partner = partner,
                      .rate = rate,
                      .narrow = narrow,
                      .hop_count = 3,
                      .hops = {"leaf0", "", "leaf1"}};
    snprintf(way.hops[1], WAY_NAME_SIZE, "%s", spine);
    ways_add(w, &way);
}

/* One host has eight NICs. Each has a fast way over one spine and a slow one over another. Two honest pairs use that other spine,
 * too, and find it fast. Each NIC has another partner, about whose ways the host reports the same. */
static void many_nics_of_one_host_name_no_trunk(void **state)
{
    for (uint32_t honest = 0; honest <= 4; honest++) {
        struct ways w;
        void *memory = malloc(ways_size(16));
        ways_init(&w, 16, memory);
        for (uint32_t nic = 0; nic < 8; nic++) {
            add_way(&w, 0, nic, 1 + nic, RATE, 0, "spine0");
            add_way(&w, 0, nic, 1 + nic, RATE / 2, 2, "spine1");
            add_way(&w, 1 + nic, nic, 0, RATE, 0, "spine0");
            add_way(&w, 1 + nic, nic, 0, RATE / 2, 0, "spine1");
        }
        for (uint32_t i = 0; i < honest; i++) {
            add_way(&w, 9 + i, 0, 9 + (i ^ 1), RATE, 0, "spine0");
            add_way(&w, 9 + i, 0, 9 + (i ^ 1), RATE, 0, "spine1");
        }
        ways_judge(&w);
        assert_int_equal(w.trunk_count, 0);
        free(memory);
    }
}

/* The trunk is slow for all. One host has eight NICs, each with another partner. It reports that most ways of these are slow in
 * both directions, or that nothing came over them. That hides no trunk. */
static void many_nics_of_one_host_hide_no_trunk(void **state)
{
    static const double tells[] = {RATE / 2, 0};
    for (size_t k = 0; k < 2; k++) {
        struct ways w;
        void *memory = malloc(ways_size(17));
        ways_init(&w, 17, memory);
        for (uint32_t nic = 0; nic < 8; nic++) {
            for (uint32_t turn = 0; turn < 2; turn++) {
                const uint32_t host = turn == 0 ? 0 : 1 + nic, partner = turn == 0 ? 1 + nic : 0;
                add_way(&w, host, nic, partner, k == 0 ? RATE : 0, 0, "spine0");
                add_way(&w, host, nic, partner, tells[k], 0, "spine1");
                add_way(&w, host, nic, partner, tells[k], 0, "spine2");
                add_way(&w, host, nic, partner, tells[k], 0, "spine3");
            }
        }
        for (uint32_t i = 0; i < 8; i++) {
            for (uint32_t spine = 0; spine < 4; spine++) {
                char name[WAY_NAME_SIZE];
                snprintf(name, sizeof(name), "spine%u", spine);
                add_way(&w, 9 + i, 0, 9 + (i ^ 1), spine == 1 ? RATE / 2 : RATE, spine == 1 ? 2 : 0,
                        name);
            }
        }
        ways_judge(&w);
        assert_false(w.uneven);
        assert_true(w.trunk_count > 0);
        for (uint32_t i = 0; i < w.trunk_count; i++) {
            assert_string_equal(w.trunks[i].ends[1], "spine1");
        }
        free(memory);
    }
}

/* The trunk is slow for all. One host reports, with each of its NICs and in both directions, that it is narrow elsewhere. */
static void one_host_votes_once(void **state)
{
    struct ways w;
    void *memory = malloc(ways_size(16));
    ways_init(&w, 16, memory);
    for (uint32_t nic = 0; nic < 8; nic++) {
        add_way(&w, 0, nic, 4, RATE, 0, "spine0");
        add_way(&w, 0, nic, 4, RATE / 2, 3, "spine1");
    }
    for (uint32_t i = 1; i < 4; i++) {
        add_way(&w, i, 0, 4 + i, RATE, 0, "spine0");
        add_way(&w, i, 0, 4 + i, RATE / 2, 2, "spine1");
    }
    ways_judge(&w);
    assert_int_equal(w.trunk_count, 2);
    assert_false(w.trunks[0].sure);
    assert_false(w.trunks[1].sure);
    for (uint32_t k = 0; k < 2; k++) {
        assert_int_equal(w.trunks[k].votes, strcmp(w.trunks[k].ends[0], "leaf0") == 0 ? 3 : 1);
    }
    free(memory);
}

/* A way with a silent router hides a trunk: so it isn't proved that all trunks are well. */
static void silent_routers_are_not_seen(void **state)
{
    struct way way = {.hop_count = 3, .hops = {"leaf0", "spine0", "leaf1"}};
    assert_true(way_is_seen(&way));
    snprintf(way.hops[1], WAY_NAME_SIZE, "-");
    assert_false(way_is_seen(&way));
    way = (struct way){.hop_count = 1, .hops = {"leaf0"}};
    assert_false(way_is_seen(&way));
}

/* There is room for all reports of 1,024 hosts with eight NICs. */
static void a_large_fleet_has_room(void **state)
{
    enum { MANY = 1024, NICS = 8 };
    void *memory = malloc(ways_size(MANY));
    struct ways ways;

    assert_non_null(memory);
    ways_init(&ways, MANY, memory);
    for (uint32_t host = 0; host < MANY; host++) {
        for (uint32_t nic = 0; nic < NICS; nic++) {
            for (uint32_t k = 0; k < FLOWS; k++) {
                struct way way = {
                    .host = host, .nic = nic, .partner = host ^ 1, .rate = RATE, .hop_count = 3};
                snprintf(way.hops[0], WAY_NAME_SIZE, "leaf%u", host / 16);
                snprintf(way.hops[1], WAY_NAME_SIZE, "spine%u", k % SPINES);
                snprintf(way.hops[2], WAY_NAME_SIZE, "leaf%u", (host / 16 + 32) % 64);
                way.rate /= host / 16 == 63 && k % SPINES == 3 ? 2 : 1;
                ways_add(&ways, &way);
            }
        }
    }
    ways_judge(&ways);
    assert_int_equal(ways.left_out, 0);
    assert_int_equal(ways.count, MANY * NICS * FLOWS);
    assert_true(ways.trunk_count > 0); /* also of those that are reported last */
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_slow),
        cmocka_unit_test(the_slow_trunk_is_named),
        cmocka_unit_test(busy_hosts_name_no_trunk),
        cmocka_unit_test(the_narrow_trunk_may_be_unknown),
        cmocka_unit_test(a_liar_names_no_trunk),
        cmocka_unit_test(many_nics_of_one_host_name_no_trunk),
        cmocka_unit_test(many_nics_of_one_host_hide_no_trunk),
        cmocka_unit_test(one_host_votes_once),
        cmocka_unit_test(silent_routers_are_not_seen),
        cmocka_unit_test(a_large_fleet_has_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
