/* The fabric without a controller: what one host may name, trunks that make room, looks, and the elements of findings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/ip.h"
#include "core/fleet/delay_code.h"
#include "core/fleet/fabric.h"

static struct fabric *f;

static int begin(void **state)
{
    (void)state;
    f = fabric_new();
    return f != NULL ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    f = fabric_free(f);
    return 0;
}

static uint32_t add(const char *name)
{
    uint32_t named = 0;
    bool refused = false;

    return fabric_on_switch(f, name, &named, &refused);
}

static struct mono at(int64_t s)
{
    return (struct mono){s * NS_PER_S};
}

static struct fabric_way way(uint32_t a, uint32_t b, uint32_t c)
{
    return (struct fabric_way){.hops = 3, .switches = {(uint16_t)a, (uint16_t)b, (uint16_t)c}};
}

/* A host may name a limited number of switches that no other host has. It may still name known ones, and other hosts are not
 * affected. */
static void a_host_names_so_many(void **state)
{
    uint32_t named = 0, others = 0;
    bool refused = false;
    char name[16];

    (void)state;
    for (uint32_t i = 0; i < FABRIC_SWITCH_HOST_MAX; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        assert_int_equal(fabric_on_switch(f, name, &named, &refused), i + 1);
        assert_false(refused);
    }
    assert_int_equal(fabric_on_switch(f, "one-more", &named, &refused), 0);
    assert_true(refused);
    assert_int_equal(fabric_on_switch(f, "s7", &named, &refused), 8);
    assert_false(refused);
    assert_int_equal(fabric_on_switch(f, "one-more", &others, &refused),
                     FABRIC_SWITCH_HOST_MAX + 1);
    assert_int_equal(fabric_on_switch(f, "", &others, &refused), 0);
    assert_false(refused);
}

/* An address belongs to the leaf beside it, if that is known. A name stays. */
static void an_address_is_a_leaf(void **state)
{
    (void)state;
    assert_string_equal(fabric_name_of("10.0.0.1", "leafA"), "leafA");
    assert_string_equal(fabric_name_of("fd00::1", "leafA"), "leafA");
    assert_string_equal(fabric_name_of("10.0.0.1", ""), "10.0.0.1");
    assert_string_equal(fabric_name_of("spine3", "leafA"), "spine3");
}

/* A trunk is gone when its last way is. It is kept for a day, and if it comes back it is the same one. */
static void a_trunk_goes(void **state)
{
    const struct fabric_way one = way(add("leaf0"), add("spine0"), add("leaf1"));

    (void)state;
    fabric_on_ways(f, &one, 1, at(10));
    fabric_on_ways_gone(f, &one, 1, at(20));
    assert_int_equal(f->trunks[0].gone.ns, at(20).ns);
    assert_true(fabric_look(f, 1, span_s(10), at(30)));
    assert_string_equal(fabric_trunk_state(&f->trunks[0]), "gone");
    assert_true(fabric_look(f, 1, span_s(10), (struct mono){at(20).ns + FABRIC_GONE_NS}));
    assert_int_equal(f->trunk_count, 2);
    assert_true(fabric_look(f, 1, span_s(10), (struct mono){at(81).ns + FABRIC_GONE_NS}));
    assert_int_equal(f->trunk_count, 0);
    fabric_on_ways(f, &one, 1, at(200000));
    assert_int_equal(f->trunk_count, 2);
    assert_int_equal(f->trunks[0].ways, 1);
}

/* A look is due once in a report's time. It takes an even part of many good paths, and all bad ones. */
static void a_look_takes_all_that_are_bad(void **state)
{
    uint32_t good = 0, bad = 0;

    (void)state;
    assert_true(fabric_look(f, 10 * FABRIC_LOOK_PATHS, span_s(10), at(100)));
    assert_false(fabric_look(f, 10 * FABRIC_LOOK_PATHS, span_s(10), at(109)));
    for (uint32_t i = 0; i < 1100; i++) {
        good += fabric_looks_at(f, FABRIC_PATH_ALIVE);
        bad += fabric_looks_at(f, i % 2 == 0 ? FABRIC_PATH_DEAD : FABRIC_PATH_LOSSY);
    }
    assert_int_equal(good, 100);
    assert_int_equal(bad, 1100);
}

/* A trunk without reports is not good. A good way acquits it, and its delay is the best way's. */
static void a_trunk_is_as_good_as_its_best_way(void **state)
{
    const struct fabric_way one = way(add("leaf0"), add("spine0"), add("leaf1"));
    const struct fabric_path paths[] = {
        {FABRIC_PATH_DEAD, delay_encode(1), delay_encode(1), 1000000},
        {FABRIC_PATH_LOSSY, delay_encode(4000), delay_encode(9000), 20000},
        {FABRIC_PATH_UNKNOWN, delay_encode(1), delay_encode(1), 0},
        {FABRIC_PATH_ALIVE, delay_encode(5000), delay_encode(6000), 100},
    };
    static const char *const states[] = {"dead", "lossy", "lossy", "good"};

    (void)state;
    fabric_on_ways(f, &one, 1, at(10));
    assert_true(fabric_look(f, 4, span_s(10), at(20)));
    assert_string_equal(fabric_trunk_state(&f->trunks[0]), "unknown");
    for (uint32_t i = 0; i < 4; i++) {
        fabric_on_path(f, &one, &paths[i]);
        assert_string_equal(fabric_trunk_state(&f->trunks[0]), states[i]);
    }
    assert_int_equal(f->trunks[0].owd_p99, delay_encode(6000));
    assert_int_equal(f->trunks[0].loss_ppm, 100);
}

/* A route has its boxes if findings can name all of its switches. A trunk is named from the leaf upwards, in both directions. */
static void elements_and_back(void **state)
{
    const uint32_t leaf = add("leaf2"), spine = add("spine1"), other = add("leaf3"),
                   stranger = add("core-west");
    struct fabric_way w = way(leaf, spine, other);
    struct locate_route r = {.box_count = 0};
    struct locate_element e = {.kind = ELEMENT_TRUNK, .direction = DIRECTION_OUT}, again;

    (void)state;
    fabric_route(f, &w, &r);
    assert_int_equal(r.box_count, 3);
    assert_int_equal(r.boxes[1].key, spine);
    assert_int_equal(r.boxes[1].kind, ELEMENT_SPINE);
    e.a = spine; /* packets on their way down */
    e.b = leaf;
    const struct element down = fabric_element(f, &e);
    assert_int_equal(down.kind, ELEMENT_TRUNK);
    assert_int_equal(down.a.kind, PLACE_LEAF);
    assert_int_equal(down.a.number, 2);
    assert_int_equal(down.b.number, 1);
    assert_int_equal(down.direction, DIRECTION_IN);
    assert_true(fabric_locate(f, &down, &again));
    assert_int_equal(again.a, leaf);
    assert_int_equal(again.b, spine);
    w.switches[1] = (uint16_t)stranger;
    fabric_route(f, &w, &r);
    assert_int_equal(r.box_count, 0);
    fabric_route(f, NULL, &r);
    assert_int_equal(r.box_count, 0);
    const struct element unknown = element_of(ELEMENT_SPINE, PLACE_SPINE, 77);
    assert_false(fabric_locate(f, &unknown, &again));
}

static struct place router(const char *address)
{
    struct place p = {.kind = PLACE_ROUTER, .number = UINT32_MAX};
    assert_true(ip_parse(address, p.address));
    return p;
}

/* One place on a way, with the address that answers there; the host whose way it is; the host that gives the switch's name. */
static struct fabric_way answer_beside(uint32_t number, const char *address, uint32_t host,
                                       uint32_t namer)
{
    struct fabric_way w = {.hops = 1, .switches = {(uint16_t)number}};
    w.addresses[0] = fabric_on_address(f, number, address, (struct fabric_teller){host, namer});
    return w;
}

static struct fabric_way answer(uint32_t number, const char *address, uint32_t host)
{
    return answer_beside(number, address, host, host);
}

enum { LIAR = 99 };

/* One host comes first and reports another switch's address for a switch. Two hosts that report the right one outweigh it, and
 * the lie is found. */
static void an_address_is_whose_most_hosts_tell(void **state)
{
    const uint32_t leaf = add("tor-1"), spine = add("10.0.0.9"), evil = add("evil");
    const struct place of_spine = router("10.0.0.9"), of_leaf = router("10.0.1.1");
    struct fabric_way liar[3], honest[2][3];
    uint32_t other = 0, from = 0;

    (void)state;
    liar[0] = answer(evil, "10.0.0.9", LIAR);
    liar[1] = answer(leaf, "10.0.0.9", LIAR);
    liar[2] = answer(evil, "10.0.1.1", LIAR);
    fabric_on_ways(f, liar, 3, at(1));
    assert_int_equal(fabric_find_place(f, &of_spine), leaf); /* no other report yet */
    assert_int_equal(fabric_contradicted(f, LIAR, liar, 3, &from, &other), 0);
    for (uint32_t i = 0; i < 2; i++) {
        honest[i][0] = answer(leaf, "10.0.1.1", i);
        honest[i][1] = answer(spine, "10.0.0.9", i);
        honest[i][2] = honest[i][1]; /* reported twice by one host: one vote */
        fabric_on_ways(f, honest[i], 3, at(2));
    }
    assert_int_equal(fabric_find_place(f, &of_spine), spine);
    assert_int_equal(fabric_find_place(f, &of_leaf), leaf);
    const struct locate_element e = {.kind = ELEMENT_ROUTER, .a = leaf};
    assert_memory_equal(fabric_element(f, &e).a.address, of_leaf.address, 16);
    assert_int_equal(fabric_contradicted(f, LIAR, liar, 3, &from, &other), evil);
    assert_int_equal(other, leaf);
    assert_int_equal(fabric_contradicted(f, 0, honest[0], 3, &from, &other), 0);
    fabric_on_ways_gone(f, honest[0], 3, at(3)); /* their votes are removed with them */
    fabric_on_ways_gone(f, honest[1], 3, at(3));
    assert_int_equal(fabric_find_place(f, &of_spine), leaf);
}

/* A host reports one more address with each of its tables. */
static void one_host_fills_no_switch(void **state)
{
    const uint32_t leaf = add("tor-1");
    const struct place of_leaf = router("10.0.1.1");
    struct fabric_way liar[2][FABRIC_ADDRESS_MAX];

    (void)state;
    for (uint32_t n = 1; n <= FABRIC_ADDRESS_MAX; n++) {
        for (uint32_t k = 0; k < n; k++) {
            char text[16];
            snprintf(text, sizeof(text), "10.9.0.%u", k + 1);
            liar[n % 2][k] = answer(leaf, text, LIAR);
        }
        fabric_on_ways(f, liar[n % 2], n, at(n));
        fabric_on_ways_gone(f, liar[(n + 1) % 2], n - 1, at(n));
    }
    for (uint32_t h = 0; h < 2; h++) {
        const struct fabric_way way = answer(leaf, "10.0.1.1", h);
        fabric_on_ways(f, &way, 1, at(100));
    }
    assert_int_equal(fabric_find_place(f, &of_leaf), leaf);
    const struct locate_element e = {.kind = ELEMENT_ROUTER, .a = leaf};
    assert_memory_equal(fabric_element(f, &e).a.address, of_leaf.address, 16);
}

/* A leaf that routes: it answers each of its hosts with another address, and all others with an uplink's. */
static void an_address_that_all_tell_finds_a_place(void **state)
{
    enum { HOSTS = 64, WITH_UPLINK = 40 };
    const uint32_t leaf = add("tor-1");
    const struct place of_uplink = router("10.0.1.1");
    struct fabric_way ways[HOSTS][2];

    (void)state;
    for (uint32_t h = 0; h < HOSTS; h++) {
        char text[16];
        snprintf(text, sizeof(text), "10.1.0.%u", h + 1);
        ways[h][0] = answer(leaf, text, h);
        ways[h][1] = answer_beside(leaf, h < WITH_UPLINK ? "" : "10.0.1.1", h, (h + 1) % HOSTS);
        fabric_on_ways(f, ways[h], 2, at(h));
    }
    assert_int_equal(fabric_find_place(f, &of_uplink), leaf);
    const struct locate_element e = {.kind = ELEMENT_ROUTER, .a = leaf};
    assert_memory_equal(fabric_element(f, &e).a.address, of_uplink.address, 16);
    for (uint32_t h = 0; h < HOSTS; h++) { /* an address without its place takes no vote */
        fabric_on_ways_gone(f, ways[h], 2, at(100));
    }
    for (uint32_t k = 0; k < FABRIC_ADDRESS_MAX; k++) {
        assert_int_equal(f->switches[leaf - 1].addresses[k].hosts, 0);
    }
}

/* All ways to a liar's NIC end at a switch that it names: that isn't the word of all of them. */
static void a_name_is_the_word_of_who_is_beside_it(void **state)
{
    const uint32_t evil = add("spine-3"), leaf = add("tor-1");
    const struct place of_leaf = router("10.0.1.1");
    uint32_t from = 0, other = 0;

    (void)state;
    for (uint32_t h = 0; h < 5; h++) {
        const struct fabric_way ways[3] = {answer_beside(evil, "10.0.1.1", h, LIAR),
                                           answer_beside(leaf, "10.0.1.1", h, 20),
                                           answer_beside(leaf, "10.0.1.1", h, 21)};
        fabric_on_ways(f, ways, 3, at(h));
        assert_int_equal(fabric_contradicted(f, h, ways, 3, &from, &other), 0);
    }
    assert_int_equal(fabric_find_place(f, &of_leaf), leaf);
    const struct fabric_way own = answer(evil, "10.0.1.1", LIAR);
    fabric_on_ways(f, &own, 1, at(9));
    assert_int_equal(fabric_contradicted(f, LIAR, &own, 1, &from, &other), evil);
    assert_int_equal(other, leaf);
}

/* A host reports much that no other does: its lie isn't among the first that are compared. A host that gives no name doesn't
 * lie. */
static void a_contradiction_is_found_behind_others(void **state)
{
    enum { OWN = 60, AGAIN = 300 };
    const uint32_t leaf = add("tor-1"), evil = add("evil"), unnamed = add("10.0.1.1");
    struct fabric_way liar[AGAIN + OWN + 1];
    uint32_t from = 0, other = 0, found = 0;

    (void)state;
    for (uint32_t h = 0; h < 2; h++) {
        const struct fabric_way way = answer(leaf, "10.0.1.1", h);
        fabric_on_ways(f, &way, 1, at(h));
    }
    for (uint32_t k = 0; k < OWN; k++) {
        char name[16], text[16];
        snprintf(name, sizeof(name), "own-%u", k);
        snprintf(text, sizeof(text), "10.7.0.%u", k + 1);
        liar[k] = answer(add(name), text, LIAR);
    }
    for (uint32_t k = 0; k < AGAIN; k++) { /* alike and side by side: one look */
        liar[OWN + k] = liar[OWN - 1];
    }
    liar[OWN + AGAIN] = answer(evil, "10.0.1.1", LIAR);
    fabric_on_ways(f, liar, AGAIN + OWN + 1, at(3));
    for (uint32_t tables = 0; tables < 2; tables++) {
        found = fabric_contradicted(f, LIAR, liar, AGAIN + OWN + 1, &from, &other);
        assert_int_equal(found, tables == 0 ? 0 : evil);
    }
    assert_int_equal(other, leaf);
    from = 0;
    const struct fabric_way honest = answer(unnamed, "10.0.1.1", 5);
    fabric_on_ways(f, &honest, 1, at(4));
    assert_int_equal(fabric_contradicted(f, 5, &honest, 1, &from, &other), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_host_names_so_many, begin, end),
        cmocka_unit_test_setup_teardown(an_address_is_a_leaf, begin, end),
        cmocka_unit_test_setup_teardown(a_trunk_goes, begin, end),
        cmocka_unit_test_setup_teardown(a_look_takes_all_that_are_bad, begin, end),
        cmocka_unit_test_setup_teardown(a_trunk_is_as_good_as_its_best_way, begin, end),
        cmocka_unit_test_setup_teardown(elements_and_back, begin, end),
        cmocka_unit_test_setup_teardown(an_address_is_whose_most_hosts_tell, begin, end),
        cmocka_unit_test_setup_teardown(one_host_fills_no_switch, begin, end),
        cmocka_unit_test_setup_teardown(an_address_that_all_tell_finds_a_place, begin, end),
        cmocka_unit_test_setup_teardown(a_name_is_the_word_of_who_is_beside_it, begin, end),
        cmocka_unit_test_setup_teardown(a_contradiction_is_found_behind_others, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
