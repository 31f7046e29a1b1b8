/* Switches and trunks from hosts' reports of their ways, and their state from the packets that arrive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/brain/brain.h"
#include "core/fleet/delay_code.h"
#include "service/controller/fleet/ways.h"

/* NIC 0 of h0 is on leafA, NIC 1 of h1 on leafB, with two spines between them. */
enum { WAYS = 2, HOPS = 3 };
static struct fleet_host hosts[2];
static struct fleet_nic nics[2];
static struct fleet_host *host_list[2] = {&hosts[0], &hosts[1]};
static struct fleet_nic *nic_list[2] = {&nics[0], &nics[1]};
static struct controller world;
static struct fabric_way ways[2][WAYS];
static struct fleet_path paths[2][WAYS];

static int begin(void **state)
{
    (void)state;
    world =
        (struct controller){.hosts = host_list, .nics = nic_list, .host_count = 2, .nic_count = 2};
    const struct fleet_terms terms = {
        .beat = span_ms(10000), .report = span_ms(10000), .finding_max = 4};
    world.brain = brain_new();
    if (world.brain == NULL ||
        brain_tell(world.brain, controller_mono(), BRAIN_TERMS, &terms, NULL) < 0 ||
        brain_tell(world.brain, controller_mono(), BRAIN_ROOM, &(struct brain_room){2, 2}, NULL) <
            0) {
        return -1;
    }
    for (uint32_t i = 0; i < 2; i++) {
        hosts[i] = (struct fleet_host){
            .member = true, .reported = true, .report_ms = 10000, .beat_ms = 10000};
        hosts[i].index = i;
        hosts[i].heard = hosts[i].rolled = controller_mono();
        brain_tell(world.brain, hosts[i].heard, BRAIN_HEARD, &(struct brain_heard){.host = i},
                   NULL);
        hosts[i].paths = paths[i];
        hosts[i].path_count = WAYS;
        nics[i] = (struct fleet_nic){.id = i, .host = &hosts[i]};
        strcpy(nics[i].leaf, i == 0 ? "leafA" : "leafB");
        for (uint32_t k = 0; k < WAYS; k++) {
            paths[i][k] = (struct fleet_path){.local = i,
                                              .peer = 1 - i,
                                              .port = (uint16_t)(100 + k),
                                              .state = FOLIOT__V1__PATH_STATE__PATH_STATE_ALIVE,
                                              .p50 = delay_encode(4000),
                                              .p99 = delay_encode(5000 + 1000 * k)};
        }
    }
    return ways_open(&world);
}

static int end(void **state)
{
    (void)state;
    ways_close(&world);
    brain_delete(world.brain);
    return 0;
}

/* Host i reports its ways to the other NIC: over these switches, as numbers in `names` + 1. */
static void tell(uint32_t i, uint32_t *switches, size_t places, const char *const *names,
                 size_t name_count)
{
    uint32_t local[WAYS] = {i, i}, peer[WAYS] = {1 - i, 1 - i}, port[WAYS] = {100, 101},
             count[WAYS] = {HOPS, HOPS};
    Foliot__V1__PathTable t = FOLIOT__V1__PATH_TABLE__INIT;
    struct fabric_way fresh[WAYS] = {{0}};
    t.n_out_local = t.n_out_peer = t.n_out_port = t.n_out_hops = WAYS;
    t.out_local = local;
    t.out_peer = peer;
    t.out_port = port;
    t.out_hops = count;
    t.n_out_router = places;
    t.out_router = switches;
    t.n_router = name_count;
    t.router = (char **)(uintptr_t)names;
    for (uint32_t k = 0; k < WAYS; k++) {
        fresh[k] = (struct fabric_way){
            .local = i, .peer = 1 - i, .port = (uint16_t)(100 + k), .hops = HOPS};
    }
    ways_name(&world, &hosts[i], &t, fresh);
    fabric_on_ways(world.fabric, fresh, WAYS, controller_mono());
    fabric_on_ways_gone(world.fabric, hosts[i].hops, hosts[i].hop_count, controller_mono());
    memcpy(ways[i], fresh, sizeof(fresh));
    hosts[i].hops = ways[i];
    hosts[i].hop_count = WAYS;
}

/* As leaves answer: with an address, another one to each side. */
static void tell_both(void)
{
    const char *const one[] = {"10.0.0.1", "spine0", "172.16.0.9", "spine1"}, *const other[] = {
                                                                                  "fd00::1",
                                                                                  "spine0",
                                                                                  "spine1",
                                                                                  "leafA"};
    tell(0, (uint32_t[]){1, 2, 3, 1, 4, 3}, 6, one, 4);
    tell(1, (uint32_t[]){1, 2, 4, 1, 3, 4}, 6, other, 4);
}

static const struct fabric_trunk *trunk(const char *from, const char *to)
{
    const struct fabric *f = world.fabric;
    for (uint32_t i = 0; i < f->trunk_count; i++) {
        const struct fabric_trunk *t = &f->trunks[i];
        if (strcmp(f->switches[t->from].name, from) == 0 &&
            strcmp(f->switches[t->to].name, to) == 0) {
            return t;
        }
    }
    return NULL;
}

static void look(void)
{
    world.fabric->looked = (struct mono){INT64_MIN / 2};
    ways_look(&world);
}

static void test_names(void **state)
{
    (void)state;
    tell_both();
    const struct fabric *f = world.fabric;
    assert_int_equal(f->switch_count, 4);
    assert_int_equal(f->trunk_count, 8); /* two leaves and two spines, both directions */
    assert_int_equal(f->ways_known, 4);
    const char *const leaves[] = {"leafA", "leafB"}, *const spines[] = {"spine0", "spine1"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(f->switches[fabric_find_switch(f, leaves[i]) - 1].tier, 0);
        assert_int_equal(f->switches[fabric_find_switch(f, leaves[i]) - 1].ways, 4);
        assert_int_equal(f->switches[fabric_find_switch(f, spines[i]) - 1].tier, 1);
        assert_string_equal(ways_first_switch(&world, &nics[i]), leaves[i]);
    }
    assert_int_equal(fabric_find_switch(f, "10.0.0.1"), 0);
    assert_int_equal(trunk("leafA", "spine1")->ways, 1);
}

/* A silent switch ends the known part. A contradiction gives no name. No host names another's NIC. */
static void test_unknown(void **state)
{
    (void)state;
    const char *const names[] = {"spine0"};
    tell(0, (uint32_t[]){0, 1, 0, 7, 1, 0}, 6, names, 1);
    assert_int_equal(world.fabric->trunk_count, 0);
    assert_int_equal(world.fabric->switch_count, 1);
    assert_int_equal(world.fabric->switches[0].tier,
                     0); /* nothing follows from a way that isn't completely known */
    assert_int_equal(world.fabric->ways, 2);
    assert_int_equal(world.fabric->ways_known, 0);
    assert_null(ways_first_switch(&world, &nics[0]));
    tell(0, (uint32_t[]){1, 1, 1, 1, 1}, 5, names, 1);
    assert_int_equal(world.fabric->switches[0].ways, 0);
    nics[0].host = &hosts[1];
    tell(0, (uint32_t[]){1, 1, 1, 1, 1, 1}, 6, names, 1);
    assert_int_equal(world.fabric->switches[0].ways, 0);
}

static void test_gone(void **state)
{
    (void)state;
    const char *const names[] = {"leafA", "spine0", "leafB"};
    tell_both();
    tell(0, (uint32_t[]){1, 2, 3, 1, 2, 3}, 6, names, 3); /* around spine1 */
    look();
    assert_string_equal(fabric_trunk_state(trunk("leafA", "spine1")), "gone");
    assert_int_not_equal(trunk("leafA", "spine1")->gone.ns, 0);
    assert_string_equal(fabric_trunk_state(trunk("spine1", "leafA")), "good");
    assert_int_equal(trunk("leafA", "spine0")->ways, 2);
    tell_both();
    look();
    assert_string_equal(fabric_trunk_state(trunk("leafA", "spine1")), "good");
    assert_int_equal(trunk("leafA", "spine0")->ways, 1);
}

/* After a day it is dropped at the next look. The others are found as before. */
static void test_gone_for_long(void **state)
{
    (void)state;
    const char *const names[] = {"leafA", "spine0", "leafB"};
    tell_both();
    tell(0, (uint32_t[]){1, 2, 3, 1, 2, 3}, 6, names, 3);
    struct fabric *f = world.fabric;
    for (uint32_t i = 0; i < f->trunk_count; i++) {
        f->trunks[i].gone.ns -= f->trunks[i].ways == 0 ? FABRIC_GONE_NS + NS_PER_S : 0;
    }
    look();
    assert_null(trunk("leafA", "spine1"));
    assert_null(trunk("spine1", "leafB"));
    assert_int_equal(f->trunk_count, 6);
    tell_both();
    look();
    assert_int_equal(f->trunk_count, 8);
    assert_string_equal(fabric_trunk_state(trunk("leafA", "spine1")), "good");
    assert_string_equal(fabric_trunk_state(trunk("leafA", "spine0")), "good");
}

/* One host's tables of made-up ways have filled the table. Ways that it no longer reports keep no real way out, also during a
 * look. */
static void test_gone_make_room(void **state)
{
    (void)state;
    const char *const names[] = {"leafA", "spine0", "leafB"};
    struct fabric *f = world.fabric;
    for (uint32_t i = 0; i < FABRIC_TRUNK_MAX; i++) {
        f->trunks[i] = (struct fabric_trunk){.from = (uint16_t)(i % 1000 + 1000),
                                             .to = (uint16_t)(i / 1000 + 2000),
                                             .gone = {controller_mono().ns - NS_PER_S}};
    }
    f->trunk_count = FABRIC_TRUNK_MAX;
    look();
    tell(0, (uint32_t[]){1, 2, 3, 1, 2, 3}, 6, names, 3);
    assert_int_equal(f->trunk_count, 2);
    assert_int_equal(trunk("leafA", "spine0")->ways, 2);
}

static void test_state(void **state)
{
    (void)state;
    tell_both();
    look();
    assert_string_equal(fabric_trunk_state(trunk("leafA", "spine0")), "good");
    assert_int_equal(trunk("leafA", "spine1")->owd_p99, delay_encode(6000));
    /* h1 gets nothing over spine1: dead in that direction, for all that the way passes and nothing else. */
    paths[1][1].state = FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD;
    paths[1][0].state = FOLIOT__V1__PATH_STATE__PATH_STATE_LOSSY;
    paths[1][0].loss_ppm = 30000;
    look();
    assert_string_equal(fabric_trunk_state(trunk("leafA", "spine1")), "dead");
    assert_string_equal(fabric_trunk_state(trunk("spine1", "leafB")), "dead");
    assert_string_equal(fabric_trunk_state(trunk("spine1", "leafA")), "good");
    assert_string_equal(fabric_trunk_state(trunk("leafA", "spine0")), "lossy");
    assert_int_equal(trunk("leafA", "spine0")->loss_ppm, 30000);
    /* h1 is no longer heard: unknown, which is not good. */
    hosts[1].reported = false;
    look();
    assert_string_equal(fabric_trunk_state(trunk("leafA", "spine0")), "unknown");
    assert_string_equal(fabric_trunk_state(trunk("spine0", "leafA")), "good");
}

/* A good way acquits the parts that it shares with dead ones. */
static void test_acquitted(void **state)
{
    (void)state;
    const char *const names[] = {"leafA", "spine0", "leafB"};
    tell(0, (uint32_t[]){1, 2, 3, 1, 2, 3}, 6, names, 3);
    paths[1][1].state = FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD;
    look();
    assert_string_equal(fabric_trunk_state(trunk("leafA", "spine0")), "good");
    assert_int_equal(trunk("leafA", "spine0")->dead, 1);
}

/* More trunks than there is room for at first. The table finds them all again. */
static void test_many(void **state)
{
    char text[600][16];
    const char *names[600];
    (void)state;
    for (uint32_t i = 0; i < 600; i++) {
        snprintf(text[i], sizeof(text[i]), "switch%u", i);
        names[i] = text[i];
    }
    for (uint32_t i = 0; i + 6 <= 600; i += 6) {
        hosts[0].switches_named = 0; /* as from another host each time */
        tell(0, (uint32_t[]){i + 1, i + 2, i + 3, i + 4, i + 5, i + 6}, 6, names, 600);
    }
    assert_int_equal(world.fabric->trunk_count, 400);
    assert_non_null(trunk("switch4", "switch5"));
    assert_int_equal(trunk("switch4", "switch5")->ways, 0);
    assert_int_equal(trunk("switch597", "switch598")->ways, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, begin, end),
        cmocka_unit_test_setup_teardown(test_unknown, begin, end),
        cmocka_unit_test_setup_teardown(test_gone, begin, end),
        cmocka_unit_test_setup_teardown(test_gone_for_long, begin, end),
        cmocka_unit_test_setup_teardown(test_gone_make_room, begin, end),
        cmocka_unit_test_setup_teardown(test_state, begin, end),
        cmocka_unit_test_setup_teardown(test_acquitted, begin, end),
        cmocka_unit_test_setup_teardown(test_many, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
