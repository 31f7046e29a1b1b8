/* The fabric without a controller: what one host may name, trunks that are forgotten to make room, looks, and the elements that
 * findings mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

    return fabric_on_switch(f, name, name, &named, &refused);
}

static struct mono at(int64_t s)
{
    return (struct mono){s * NS_PER_S};
}

static struct fabric_way way(uint32_t a, uint32_t b, uint32_t c)
{
    return (struct fabric_way){.hops = 3, .switches = {(uint16_t)a, (uint16_t)b, (uint16_t)c}};
}

/* A host may name so many that nobody else has; it goes on naming those that are known, and others are not the worse for it. */
static void a_host_names_so_many(void **state)
{
    uint32_t named = 0, others = 0;
    bool refused = false;
    char name[16];

    (void)state;
    for (uint32_t i = 0; i < FABRIC_SWITCH_HOST_MAX; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        assert_int_equal(fabric_on_switch(f, name, name, &named, &refused), i + 1);
        assert_false(refused);
    }
    assert_int_equal(fabric_on_switch(f, "one-more", "one-more", &named, &refused), 0);
    assert_true(refused);
    assert_int_equal(fabric_on_switch(f, "s7", "s7", &named, &refused), 8);
    assert_false(refused);
    assert_int_equal(fabric_on_switch(f, "one-more", "one-more", &others, &refused),
                     FABRIC_SWITCH_HOST_MAX + 1);
    assert_int_equal(fabric_on_switch(f, "", "", &others, &refused), 0);
    assert_false(refused);
}

/* An address is the leaf's beside it, if that is known; a name stays. */
static void an_address_is_a_leaf(void **state)
{
    (void)state;
    assert_string_equal(fabric_name_of("10.0.0.1", "leafA"), "leafA");
    assert_string_equal(fabric_name_of("fd00::1", "leafA"), "leafA");
    assert_string_equal(fabric_name_of("10.0.0.1", ""), "10.0.0.1");
    assert_string_equal(fabric_name_of("spine3", "leafA"), "spine3");
}

/* A trunk is gone from the moment its last way is, is kept for a day, and is the same one when it comes back. */
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

/* A look is due once in a report's time. Of many good paths an even part is looked at, of bad ones all. */
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

/* What nobody reports of is not good; a good way acquits, and the best delay is the trunk's. */
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

/* A route has its boxes if all of its switches are known to findings; a trunk is told from the leaf upwards, either way. */
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
    e.a = spine; /* packets that go down */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_host_names_so_many, begin, end),
        cmocka_unit_test_setup_teardown(an_address_is_a_leaf, begin, end),
        cmocka_unit_test_setup_teardown(a_trunk_goes, begin, end),
        cmocka_unit_test_setup_teardown(a_look_takes_all_that_are_bad, begin, end),
        cmocka_unit_test_setup_teardown(a_trunk_is_as_good_as_its_best_way, begin, end),
        cmocka_unit_test_setup_teardown(elements_and_back, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
