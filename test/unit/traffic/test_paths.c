/* Lanes between two NICs get different paths, by routers' answers to packets of many source ports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/traffic/paths.h"

#define SEEDS 400

/* A leaf, one of so many spines, a leaf. Each router answers `most` times (Linux: six), the spine `silent` never. */
static void trace(struct paths *p, struct prng *prng, uint32_t spines, uint32_t most, int silent)
{
    uint32_t answers[64] = {0}, first = 0, last = 0;
    uint16_t ports[PATH_PORTS_MAX];

    for (uint32_t i = 0; i < PATH_PORTS_MAX; i++) {
        ports[i] = (uint16_t)(0xc000u | (1 + prng_below(prng, 0x3fff)));
    }
    paths_init(p, ports, PATH_PORTS_MAX);
    for (uint32_t i = 0; i < p->count; i++) {
        const uint32_t spine = (uint32_t)(hash_u64(p->ports[i], spines) % spines);
        const uint8_t leaf[16] = {[15] = 1}, router[16] = {[14] = 2, [15] = (uint8_t)spine},
                      peers[16] = {[15] = 3};
        if (first++ < most) {
            paths_on_answer(p, i, 0, leaf);
        }
        if ((int)spine != silent && answers[spine]++ < most) {
            paths_on_answer(p, i, 1, router);
        }
        if ((int)spine != silent && last++ < most) {
            paths_on_answer(p, i, 2, peers);
        }
    }
}

static uint32_t spine_of(const struct paths *p, int port, uint32_t spines)
{
    assert_true(port >= 0 && port < (int)p->count);
    return (uint32_t)(hash_u64(p->ports[port], spines) % spines);
}

/* Chooses so many lanes, one after the other. Returns how many spines they use. */
static uint32_t used(struct paths *p, uint32_t lanes, uint32_t spines, uint32_t first)
{
    uint16_t others[16];
    uint64_t all = 0;

    for (uint32_t i = 0; i < lanes; i++) {
        const int port = paths_choose(p, others, i, first + i * 7);
        others[i] = p->ports[port];
        all |= 1ull << spine_of(p, port, spines);
    }
    return (uint32_t)__builtin_popcountll(all);
}

static void test_all_paths_are_used(void **state)
{
    uint32_t missed = 0;
    struct prng prng;
    struct paths p;

    (void)state;
    prng_init(&prng, 18);
    for (uint32_t i = 0; i < SEEDS; i++) {
        trace(&p, &prng, 4, 6, -1);
        missed += used(&p, 4, 4, (uint32_t)prng_u64(&prng)) < 4;
        trace(&p, &prng, 32, 6, -1);
        assert_int_equal(used(&p, 4, 32, 0), 4);
    }
    assert_in_range(missed, 0, SEEDS / 50); /* none of 24 ports leads there: once in 250 times */
}

/* The far leaf answers from the address of the link on which the answer leaves. That shows nothing about the way there. */
static void test_addresses_of_answers_ways_mislead_nobody(void **state)
{
    uint32_t missed = 0;
    struct prng prng;
    struct paths p;

    (void)state;
    prng_init(&prng, 22);
    for (uint32_t i = 0; i < SEEDS; i++) {
        trace(&p, &prng, 4, PATH_PORTS_MAX, -1);
        for (uint32_t k = 0, answers = 0; k < p.count; k++) {
            const uint32_t link = (uint32_t)prng_below(&prng, 4);
            const uint8_t router[16] = {[14] = 3, [15] = (uint8_t)link};
            p.routers[k][2] = 0;
            if (i % 2 == 0 || answers++ < 6) {
                paths_on_answer(&p, k, 2, router);
            }
        }
        missed += used(&p, 4, 4, (uint32_t)prng_u64(&prng)) < 4;
    }
    assert_in_range(missed, 0, SEEDS / 50);
}

/* Two spines, and two cores behind each: with one lane more than spines, its core should differ, too. */
static void test_farther_routers_count_last(void **state)
{
    uint16_t ports[PATH_PORTS_MAX], others[4];
    struct paths p;
    uint32_t all = 0;

    (void)state;
    for (uint32_t i = 0; i < PATH_PORTS_MAX; i++) {
        ports[i] = (uint16_t)(0xc000u + i + 1);
    }
    paths_init(&p, ports, PATH_PORTS_MAX);
    for (uint32_t i = 0; i < p.count; i++) {
        const uint8_t spine[16] = {[14] = 2, [15] = (uint8_t)(i % 2)},
                      core[16] = {[14] = 3, [15] = (uint8_t)(i % 4)};
        paths_on_answer(&p, i, 1, spine);
        paths_on_answer(&p, i, 2, core);
    }
    for (uint32_t lane = 0; lane < 4; lane++) {
        const int port = paths_choose(&p, others, lane, 0);
        assert_true(port >= 0);
        others[lane] = p.ports[port];
        all |= 1u << port % 4;
        if (lane == 1) {
            assert_int_not_equal((others[0] ^ others[1]) & 1, 0); /* a spine each */
        }
    }
    assert_int_equal(all, 15);
}

/* A silent path may be dead. */
static void test_silent_paths_are_left_out(void **state)
{
    struct prng prng;
    struct paths p;

    (void)state;
    prng_init(&prng, 19);
    for (uint32_t i = 0; i < SEEDS; i++) {
        uint16_t others[4];
        trace(&p, &prng, 4, PATH_PORTS_MAX, 2);
        for (uint32_t lane = 0; lane < 4; lane++) {
            const int port = paths_choose(&p, others, lane, (uint32_t)prng_u64(&prng));
            assert_int_not_equal(spine_of(&p, port, 4), 2);
            others[lane] = p.ports[port];
        }
    }
}

/* It is there twice. */
static void test_a_path_that_is_left_is_not_chosen_again(void **state)
{
    struct prng prng;
    struct paths p;

    (void)state;
    prng_init(&prng, 20);
    for (uint32_t i = 0; i < SEEDS; i++) {
        uint16_t others[5];
        uint32_t spine = 0;
        trace(&p, &prng, 4, PATH_PORTS_MAX, -1);
        for (uint32_t lane = 0; lane < 4; lane++) {
            const int port = paths_choose(&p, others, lane, 0);
            others[lane] = p.ports[port];
            spine = spine_of(&p, port, 4);
        }
        others[4] = others[3];
        assert_int_not_equal(spine_of(&p, paths_choose(&p, others, 5, (uint32_t)i), 4), spine);
    }
}

/* Then the choice is random, and another port each time: the present one may be the bad one. */
static void test_nobody_answers(void **state)
{
    struct prng prng;
    struct paths p;

    (void)state;
    prng_init(&prng, 21);
    trace(&p, &prng, 4, 0, -1);
    assert_false(paths_known(&p));
    const int first = paths_choose(&p, NULL, 0, 5);
    assert_int_equal(first, 5);
    assert_int_equal(paths_choose(&p, NULL, 0, 5), 6);
    trace(&p, &prng, 1, PATH_PORTS_MAX, -1); /* there is only one path */
    assert_false(paths_known(&p));
    trace(&p, &prng, 4, PATH_PORTS_MAX, -1);
    assert_true(paths_known(&p));
    paths_init(&p, NULL, 0);
    assert_int_equal(paths_choose(&p, NULL, 0, 5), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_paths_are_used),
        cmocka_unit_test(test_addresses_of_answers_ways_mislead_nobody),
        cmocka_unit_test(test_farther_routers_count_last),
        cmocka_unit_test(test_silent_paths_are_left_out),
        cmocka_unit_test(test_a_path_that_is_left_is_not_chosen_again),
        cmocka_unit_test(test_nobody_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
