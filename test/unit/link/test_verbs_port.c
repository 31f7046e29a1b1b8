/* Each change of an RDMA port is reported once, with the found and the expected value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/link/verbs_port.h"

static struct verbs_port port;
static struct verbs_port_facts facts;

static void look(int64_t seconds)
{
    facts.at.ns += seconds * NS_PER_S;
    verbs_port_on_facts(&port, &facts);
}

static void start(void)
{
    verbs_port_init(&port, (struct mono){0});
    facts = (struct verbs_port_facts){.present = true,
                                      .active = true,
                                      .linked = true,
                                      .gid_known = true,
                                      .gid = {1, 2, 3},
                                      .gid_index = 3,
                                      .mtu = 4096,
                                      .interface_mtu = 9000};
    look(5);
}

static void expect(enum verbs_port_event event, int64_t a, int64_t b, int64_t c)
{
    struct verbs_port_message m;
    assert_true(verbs_port_next_message(&port, &m));
    assert_int_equal(m.event, event);
    assert_int_equal(m.at.ns, facts.at.ns);
    assert_int_equal(m.numbers[0], a);
    assert_int_equal(m.numbers[1], b);
    assert_int_equal(m.numbers[2], c);
}

static void expect_nothing(void)
{
    struct verbs_port_message m;
    assert_false(verbs_port_next_message(&port, &m));
}

static void a_port_that_is_well_tells_nothing(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 100; i++) {
        look(5);
    }
    expect_nothing();
    for (int i = 0; i < VERBS_TROUBLE_COUNT; i++) {
        assert_false(verbs_port_has(&port, (enum verbs_trouble)i));
    }
    assert_int_equal(port.downs, 0);
}

static void down_and_gone_are_told_once(void **state)
{
    (void)state;
    start();
    facts.active = facts.linked = false;
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_DOWN, 0, 0);
    look(1);
    expect_nothing();
    assert_int_equal(port.since.ns, facts.at.ns - NS_PER_S);
    facts.active = facts.linked = true;
    look(1);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_DOWN, 0, 0);
    facts.present = false;
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_GONE, 0, 0);
    look(1);
    expect_nothing();
    assert_int_equal(port.since.ns, facts.at.ns - NS_PER_S);
    facts.present = true;
    look(1);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_GONE, 0, 0);
    expect_nothing();
    assert_int_equal(port.downs, 1);
}

static void expect_at(enum verbs_port_event event, int64_t a, int64_t b)
{
    expect(event, a, b, 0);
}

static void an_index_that_moved_while_it_was_down_is_told(void **state)
{
    (void)state;
    start();
    facts.active = facts.linked = facts.gid_known = false;
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_DOWN, 0, 0);
    facts.active = facts.linked = facts.gid_known = true;
    facts.gid_index = 5;
    look(1);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_DOWN, 0, 0);
    expect(VERBS_EVENT_TROUBLE, VERBS_GID_MOVED, 5, 3);
    look(3000); /* a finding stays open for an hour */
    expect_nothing();
    look(600);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_GID_MOVED, 5, 3);
    facts.gid_index = 6;
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_GID_MOVED, 6, 5);
    facts.gid_index = 5;
    look(1);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_GID_MOVED, 5, 5); /* it is back */
    facts.gid[0] = 9;
    look(1);
    expect_at(VERBS_EVENT_GID_CHANGED, 5, 5);
    expect_nothing();
    assert_int_equal(port.gid_moves, 4);
}

static void the_wrong_type_is_not_the_same_as_none(void **state)
{
    (void)state;
    start();
    facts.gid_known = false;
    facts.v1 = true;
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_V1_ONLY, 0, 0);
    facts.v1 = false;
    look(1);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_V1_ONLY, 0, 0);
    expect(VERBS_EVENT_TROUBLE, VERBS_NO_GID, 0, 0);
    facts.gid_known = true;
    look(1);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_NO_GID, 0, 0);
    expect_nothing();
}

static void a_slower_class_is_told_once(void **state)
{
    (void)state;
    start();
    facts.class_slow = true;
    facts.class_job_ns = 5300000;
    facts.class_reference_ns = 310000;
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_CLASS, 5300000, 310000);
    facts.class_job_ns = 5400000;
    look(1);
    expect_nothing();
    facts.class_slow = false;
    facts.class_job_ns = facts.class_reference_ns = 0;
    look(1);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_CLASS, 0, 0);
    expect_nothing();
}

static void a_smaller_mtu_is_at_odds(void **state)
{
    (void)state;
    assert_int_equal(verbs_port_mtu_of(1500), 1024);
    assert_int_equal(verbs_port_mtu_of(4200), 4096);
    assert_int_equal(verbs_port_mtu_of(4191), 2048);
    assert_int_equal(verbs_port_mtu_of(300), 0);
    start();
    facts.mtu = 1024; /* and its interface has a larger MTU */
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_MTU, 1024, 4096);
    facts.interface_mtu = 1500;
    look(1);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_MTU, 1024, 1024);
    facts.sibling_mtu = 4096; /* and the others of this host have a larger one */
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_MTU, 1024, 4096);
    facts.mtu = 0; /* the library no longer reports it */
    look(1);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_MTU, 0, 1024);
    expect_nothing();
}

/* Other numbers are reported, and kept for questions. */
static void an_mtu_at_odds_has_the_numbers_of_now(void **state)
{
    (void)state;
    start();
    facts.mtu = 1024;
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_MTU, 1024, 4096);
    look(1);
    expect_nothing();
    facts.mtu = 2048;
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_MTU, 2048, 4096);
    expect_nothing();
    assert_int_equal(port.found[VERBS_MTU], 2048);
    assert_int_equal(port.expected[VERBS_MTU], 4096);
    assert_int_equal(port.trouble_since[VERBS_MTU].ns, facts.at.ns - 2 * NS_PER_S);
}

/* The MTU of a missing device can't be repaired. */
static void a_device_that_went_has_no_other_trouble(void **state)
{
    (void)state;
    start();
    facts.mtu = 1024;
    facts.cable_errors += 100;
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_MTU, 1024, 4096);
    expect(VERBS_EVENT_TROUBLE, VERBS_CABLE, 100, 0);
    facts.present = false;
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_GONE, 0, 0);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_MTU, 0, 0);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_CABLE, 0, 0);
    expect_nothing();
    facts.present = true;
    look(1);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_GONE, 0, 0);
    expect(VERBS_EVENT_TROUBLE, VERBS_MTU, 1024, 4096); /* this trouble still holds */
}

static void errors_of_the_cable_count_by_the_minute(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 10; i++) { /* 9 a minute */
        facts.cable_errors += 9;
        look(60);
    }
    expect_nothing();
    facts.cable_errors += 10;
    look(5);
    expect(VERBS_EVENT_TROUBLE, VERBS_CABLE, 10, 0);
    facts.cable_errors = 0; /* its driver was loaded again */
    look(30);
    expect_nothing();
    look(60);
    look(60);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_CABLE, 0, 0);
    assert_int_equal(port.cable_errors, 100);
}

static void a_subnet_manager_may_be_missing_or_another(void **state)
{
    (void)state;
    start();
    facts.infiniband = true;
    facts.lid = 7;
    facts.sm_lid = 1;
    facts.interface_mtu = 0;
    look(1);
    expect_nothing();
    facts.sm_lid = 2;
    facts.lid = 8;
    look(1);
    expect_at(VERBS_EVENT_MANAGER, 1, 2);
    expect_at(VERBS_EVENT_LID, 7, 8);
    facts.active = false;
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_NO_MANAGER, 0, 0);
    facts.linked = false;
    look(1);
    expect(VERBS_EVENT_TROUBLE, VERBS_DOWN, 0, 0);
    expect(VERBS_EVENT_TROUBLE_END, VERBS_NO_MANAGER, 0, 0);
    expect_nothing();
}

/* Without draining the newest are kept: each went down and came up again, at its own time. */
static void undrained_events_are_dropped_from_the_oldest(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < VERBS_MESSAGE_MAX; i++) { /* twice as many as there is room for */
        facts.active = facts.linked = false;
        look(1);
        facts.active = facts.linked = true;
        look(1);
    }
    const int64_t last = facts.at.ns;
    struct verbs_port_message m;
    for (int i = VERBS_MESSAGE_MAX - 1; i >= 0; i--) {
        assert_true(verbs_port_next_message(&port, &m));
        assert_int_equal(m.at.ns, last - i * NS_PER_S);
        assert_int_equal(m.event, i % 2 == 0 ? VERBS_EVENT_TROUBLE_END : VERBS_EVENT_TROUBLE);
    }
    expect_nothing();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_that_is_well_tells_nothing),
        cmocka_unit_test(down_and_gone_are_told_once),
        cmocka_unit_test(an_index_that_moved_while_it_was_down_is_told),
        cmocka_unit_test(the_wrong_type_is_not_the_same_as_none),
        cmocka_unit_test(a_slower_class_is_told_once),
        cmocka_unit_test(a_smaller_mtu_is_at_odds),
        cmocka_unit_test(an_mtu_at_odds_has_the_numbers_of_now),
        cmocka_unit_test(a_device_that_went_has_no_other_trouble),
        cmocka_unit_test(errors_of_the_cable_count_by_the_minute),
        cmocka_unit_test(a_subnet_manager_may_be_missing_or_another),
        cmocka_unit_test(undrained_events_are_dropped_from_the_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
