/* test_perf_offer.c: a host takes plans of an audit: which tests it refuses, with which words. No plan is carried out twice,
 * whatever is sent again. No plan goes on that no controller can end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/audit/perf.h"
#include "core/audit/perf_offer.h"

#define BEGIN    (1000 * NS_PER_S)
#define TOO_MUCH "it is more than an agent does for anybody"
#define NO_TEST  "a step's numbers are none of a test's"
#define FOREIGN  "it has a NIC that is not this host's"
#define STRANGER "one of these NICs is not in its list of members, or not yet"

static const uint32_t members[] = {3, 10, 11, 12, 13, 40}, own[] = {11, 12};

struct offered {
    struct plan_host host;
    struct perf_task tasks[AUDIT_STEPS_MAX];
    struct perf_offer offer;
};

/* Three steps: an all-reduce of four over both NICs, none, ways of a pair. */
static void make(struct offered *x)
{
    *x = (struct offered){.host = {.fleet_version = 7,
                                   .in_step = true,
                                   .now_ns = BEGIN - NS_PER_S,
                                   .members = members,
                                   .member_count = 6,
                                   .own = own,
                                   .own_count = 2},
                          .tasks = {{.rank = 3,
                                     .ranks = 4,
                                     .leader = 40,
                                     .port = 7000,
                                     .lanes = 8,
                                     .nic_count = 2,
                                     .nics = {11, 12}},
                                    {.ranks = 0},
                                    {.rank = 0,
                                     .ranks = 2,
                                     .leader = 12,
                                     .port = 7001,
                                     .lanes = 1,
                                     .ways = PERF_TURNS,
                                     .nic_count = 1,
                                     .nics = {12}}},
                          .offer = {.fleet_version = 7,
                                    .begin_ns = BEGIN,
                                    .step_ms = 3500,
                                    .timed_ms = 1000,
                                    .secret_size = PERF_SECRET_SIZE,
                                    .count = 3}};
    x->offer.tasks = x->tasks;
}

static const char *wrong(struct offered *x)
{
    const char *words = perf_offer_wrong(&x->offer, &x->host);
    make(x);
    return words;
}

static void an_offer_too_large_is_refused(void **state)
{
    struct offered x;
    make(&x);
    assert_null(wrong(&x));
    x.offer.count = AUDIT_STEPS_MAX + 1; /* tasks that don't exist */
    assert_string_equal(wrong(&x), TOO_MUCH);
    x.offer.count = SIZE_MAX;
    assert_string_equal(wrong(&x), TOO_MUCH);
    x.offer.step_ms = 99;
    x.offer.timed_ms = 50;
    assert_string_equal(wrong(&x), TOO_MUCH);
    x.offer.step_ms = AUDIT_STEP_MS_MAX;
    assert_null(wrong(&x));
    x.offer.step_ms = AUDIT_STEP_MS_MAX + 1;
    assert_string_equal(wrong(&x), TOO_MUCH);
    x.offer.count = AUDIT_PLAN_MS_MAX / AUDIT_STEP_MS_MAX;
    x.offer.step_ms = AUDIT_STEP_MS_MAX;
    assert_null(wrong(&x));
    x.offer.count = AUDIT_PLAN_MS_MAX / AUDIT_STEP_MS_MAX + 1;
    x.offer.step_ms = AUDIT_STEP_MS_MAX;
    assert_string_equal(wrong(&x), TOO_MUCH);
    x.offer.timed_ms = 0;
    assert_string_equal(wrong(&x), TOO_MUCH);
    x.offer.timed_ms = x.offer.step_ms;
    assert_string_equal(wrong(&x), TOO_MUCH);
    x.offer.secret_size = 15;
    assert_string_equal(wrong(&x), TOO_MUCH);
}

static void of_another_version_or_another_time(void **state)
{
    struct offered x;
    make(&x);
    x.offer.fleet_version = 6;
    assert_string_equal(wrong(&x),
                        "it is for another version of the fleet's list than this host has");
    x.host.in_step = false;
    assert_string_equal(wrong(&x), "this host has no fleet time");
    x.host.now_ns = BEGIN; /* late, or of an earlier day */
    assert_string_equal(wrong(&x), "it has begun already");
    x.offer.begin_ns = INT64_MIN; /* a number of 64 bits may have this value */
    assert_string_equal(wrong(&x), "it has begun already");
    x.host.now_ns = BEGIN - PLAN_AHEAD_NS;
    assert_null(wrong(&x));
    x.host.now_ns = BEGIN - PLAN_AHEAD_NS - 1;
    assert_string_equal(wrong(&x), "it begins too far ahead");
    x.offer.begin_ns = INT64_MAX;
    assert_string_equal(wrong(&x), "it begins too far ahead");
}

/* In the first step or in the last: one wrong step is enough. */
static void a_step_that_is_no_test(void **state)
{
    static const struct {
        uint32_t step;
        struct perf_task t;
    } cases[] = {{0, {.rank = 0, .ranks = 1}},
                 {0, {.rank = 0, .ranks = AUDIT_RANKS_MAX + 1}},
                 {0, {.rank = 4, .ranks = 4}},
                 {2, {.rank = UINT32_MAX, .ranks = 2}},
                 {2, {.rank = 0, .ranks = 2, .lanes = UINT32_MAX}},
                 {2, {.rank = 0, .ranks = 2, .lanes = AUDIT_LANES_MAX + 1}},
                 {2, {.rank = 0, .ranks = 2, .port = 1023}},
                 {2, {.rank = 0, .ranks = 2, .port = 65536}},
                 {2, {.rank = 0, .ranks = 2, .ways = PERF_TURNS + 1}},
                 {0, {.rank = 0, .ranks = 3, .ways = 1}},
                 {0, {.rank = 0, .ranks = 2, .incast = 65}},
                 {0, {.rank = 0, .ranks = 2, .incast = 1, .ways = 1}},
                 {0, {.rank = 0, .ranks = PERF_INCAST_MOST + 1, .incast = 1}},
                 {0, {.rank = 0, .ranks = 2, .incast = 1, .alltoall = true}},
                 {0, {.rank = 0, .ranks = 2, .ways = 1, .alltoall = true}}};
    struct offered x;
    make(&x);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct perf_task *t = &x.tasks[cases[i].step];
        t->rank = cases[i].t.rank;
        t->ranks = cases[i].t.ranks;
        t->lanes = cases[i].t.lanes > 0 ? cases[i].t.lanes : t->lanes;
        t->port = cases[i].t.port > 0 ? cases[i].t.port : t->port;
        t->ways = cases[i].t.ways;
        t->incast = cases[i].t.incast;
        t->alltoall = cases[i].t.alltoall;
        assert_string_equal(wrong(&x), NO_TEST);
    }
    x.tasks[2].lanes = 0;
    assert_string_equal(wrong(&x), NO_TEST);
    x.tasks[0].alltoall = false;
    x.tasks[0].incast = 64; /* DSCP 63 */
    assert_null(wrong(&x));
}

/* A step of memory has one rank and nothing else: an older agent refuses it, as a step of one rank. */
static void a_step_of_memory_is_alone(void **state)
{
    static const struct perf_task well = {.ranks = 1, .memory = true};
    static const struct perf_task cases[] = {
        {.ranks = 2, .memory = true},
        {.ranks = 1, .rank = 1, .memory = true},
        {.ranks = 1, .memory = true, .ways = 1},
        {.ranks = 1, .memory = true, .incast = 1},
        {.ranks = 1, .memory = true, .alltoall = true},
        {.ranks = 1, .memory = true, .nic_count = 1, .nics = {11}},
        {.ranks = 1}};
    struct offered x;
    make(&x);
    x.tasks[1] = well;
    assert_int_equal(perf_offer_ms(&x.offer), 3 * 3500);
    assert_null(wrong(&x));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        x.tasks[1] = cases[i];
        assert_string_equal(wrong(&x), NO_TEST);
    }
}

static void the_most_and_the_least_are_taken(void **state)
{
    struct offered x;
    uint32_t many[HOST_NIC_MAX];
    make(&x);
    x.tasks[0].ranks = AUDIT_RANKS_MAX;
    x.tasks[0].lanes = AUDIT_LANES_MAX;
    x.tasks[0].port = 1024;
    x.tasks[2].port = 65535;
    assert_null(wrong(&x));
    x.tasks[0].ranks = PERF_INCAST_MOST;
    x.tasks[0].incast = 1;
    assert_null(wrong(&x));
    for (uint32_t i = 0; i < HOST_NIC_MAX; i++) {
        many[i] = x.tasks[2].nics[i] = 100 + i;
    }
    x.host.own = x.host.members = many;
    x.host.own_count = x.host.member_count = x.tasks[2].nic_count = HOST_NIC_MAX;
    x.tasks[2].leader = many[HOST_NIC_MAX - 1];
    x.tasks[0].ranks = 0;
    assert_null(wrong(&x));
    for (uint32_t i = 0; i < HOST_NIC_MAX; i++) { /* each is found, at any place in the list */
        x.tasks[0].leader = many[i];
        x.tasks[2].leader = many[HOST_NIC_MAX - 1 - i];
        x.tasks[0].nics[0] = x.tasks[2].nics[0] = many[i];
        x.tasks[0].nic_count = 1;
        x.host.own = x.host.members = many;
        x.host.own_count = x.host.member_count = HOST_NIC_MAX;
        assert_null(wrong(&x));
    }
    x.offer.step_ms = 100;
    x.offer.timed_ms = 1;
    x.offer.count = AUDIT_STEPS_MAX;
    assert_null(wrong(&x));
    x.tasks[3] = x.tasks[0]; /* after the last step: from an earlier plan */
    x.tasks[3].lanes = 0;
    assert_null(wrong(&x));
}

static void of_other_hosts_nics(void **state)
{
    struct offered x;
    make(&x);
    x.tasks[0].nics[1] = 13; /* a neighbour's */
    assert_string_equal(wrong(&x), FOREIGN);
    x.tasks[2].nics[0] = 99; /* no host's */
    assert_string_equal(wrong(&x), FOREIGN);
    x.tasks[2].nic_count = 0;
    assert_string_equal(wrong(&x), FOREIGN);
    x.tasks[0].nic_count = HOST_NIC_MAX + 1;
    assert_string_equal(wrong(&x), FOREIGN);
    x.tasks[0].leader = 41;
    assert_string_equal(wrong(&x), STRANGER);
    x.tasks[2].leader = UINT32_MAX;
    assert_string_equal(wrong(&x), STRANGER);
    x.host.member_count = 5; /* 40 is not yet known */
    assert_string_equal(wrong(&x), STRANGER);
    x.tasks[1] = (struct perf_task){.leader = 99, .nic_count = 1, .nics = {99}}; /* no part */
    assert_null(wrong(&x));
}

static struct mono at(double s)
{
    return (struct mono){(int64_t)(s * 1e9)};
}

/* A recorded answer must not begin a plan again. */
static void a_plan_begins_once(void **state)
{
    struct plan_hold p = {0};
    struct plan_heard h = plan_hear(&p, 100, true, at(1));
    assert_true(h.begins && !h.ends && p.name == 100);
    p.held = true;
    h = plan_hear(&p, 100, true, at(2)); /* sent again */
    assert_true(!h.begins && !h.ends);
    h = plan_hear(&p, 100, false, at(3)); /* go on */
    assert_true(!h.begins && !h.ends && p.held);
    h = plan_hear(&p, 0, false, at(4)); /* no plan: it ends */
    assert_true(!h.begins && h.ends);
    p.held = false;
    h = plan_hear(&p, 100, true, at(5)); /* replayed after its end */
    assert_true(!h.begins && !h.ends && p.name == 100);
    h = plan_hear(&p, 99, true, at(6));
    assert_true(!h.begins && p.name == 100);
    h = plan_hear(&p, 102, false, at(7)); /* a name alone is no plan */
    assert_true(!h.begins && p.name == 100);
    h = plan_hear(&p, 101, true, at(8));
    assert_true(h.begins && p.name == 101);
    p.held = true;
    h = plan_hear(&p, 103, true, at(9)); /* another plan in its place */
    assert_true(h.begins && h.ends && p.name == 103);
    h = plan_hear(&p, 102, true, at(10)); /* an old one ends the present plan, and does not begin */
    assert_true(!h.begins && h.ends && p.name == 103);
}

static void a_refused_plan_is_not_begun_later(void **state)
{
    struct plan_hold p = {0};
    assert_true(plan_hear(&p, 5, true, at(1)).begins);
    const struct plan_heard h = plan_hear(&p, 5, true, at(2)); /* held: it was not */
    assert_true(!h.begins && !h.ends);
}

/* After three beats and two seconds. */
static void a_silent_controller_ends_it(void **state)
{
    struct plan_hold p = {0};
    (void)plan_hear(&p, 5, true, at(100));
    assert_false(plan_is_alone(&p, 2000, at(1000))); /* nothing is held */
    p.held = true;
    assert_false(plan_is_alone(&p, 2000, at(108)));
    assert_true(plan_is_alone(&p, 2000, at(108.1)));
    (void)plan_hear(&p, 5, false, at(108));
    assert_false(plan_is_alone(&p, 2000, at(116)));
    assert_true(plan_is_alone(&p, 2000, at(116.1)));
    assert_false(plan_is_alone(&p, UINT32_MAX, at(10000)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offer_too_large_is_refused),
        cmocka_unit_test(of_another_version_or_another_time),
        cmocka_unit_test(a_step_that_is_no_test),
        cmocka_unit_test(a_step_of_memory_is_alone),
        cmocka_unit_test(the_most_and_the_least_are_taken),
        cmocka_unit_test(of_other_hosts_nics),
        cmocka_unit_test(a_plan_begins_once),
        cmocka_unit_test(a_refused_plan_is_not_begun_later),
        cmocka_unit_test(a_silent_controller_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
