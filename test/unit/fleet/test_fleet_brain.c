/* The fleet's brain: whose findings make a host ill; and a world of hosts, faults and takeovers by seeds (sim/fleet_world.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/finding/finding.h"
#include "core/fleet/fleet.h"
#include "sim/fleet_world.h"

enum { HOSTS = 8, NICS = 2 };
static struct fleet *brain;
static struct mono now;

static void at(uint32_t host)
{
    const struct fleet_report r = {.host = host, .rollup = true, .clock = FLEET_CLOCK_SYNCED};

    fleet_on_heard(brain, host, span_ns(0), span_ns(0), now);
    fleet_on_report(brain, &r, now);
}

static int begin(void **state)
{
    const struct fleet_terms terms = {
        .beat = span_ns(NS_PER_S), .report = span_ns(10 * NS_PER_S), .finding_max = 16};

    (void)state;
    now = (struct mono){1000 * NS_PER_S};
    brain = fleet_new(&terms, now);
    if (brain == NULL || fleet_make_room(brain, HOSTS, HOSTS * NICS) < 0) {
        return -1;
    }
    for (uint32_t h = 0; h < HOSTS; h++) {
        const uint32_t nics[NICS] = {h * NICS, h * NICS + 1};
        const struct fleet_member m = {.host = h, .present = true, .nics = nics, .nic_count = NICS};
        fleet_on_member(brain, &m, now);
        at(h);
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    fleet_delete(brain);
    brain = NULL;
    return 0;
}

static void say(uint32_t host, uint32_t number, uint32_t kind, struct element suspect,
                bool confident, bool open)
{
    struct fleet_finding f = {.host = host,
                              .run = 1,
                              .number = number,
                              .kind = kind,
                              .open = open,
                              .suspect = confident ? suspect : element_unknown()};

    if (!confident && suspect.kind != ELEMENT_UNKNOWN) {
        element_choice_add(&f.choice, &suspect);
    }
    fleet_on_finding(brain, &f, now);
}

static enum health health(uint32_t host)
{
    return fleet_host_health(brain, host, now);
}

/* Judged when its report comes, or once three reports are missing although it is heard. */
static void who_has_not_reported_is_judged_later(void **state)
{
    const struct fleet_member gone = {.host = 0}, back = {.host = 0, .present = true};

    (void)state;
    assert_true(fleet_host_judged(brain, 1, now));
    fleet_on_member(brain, &gone, now);
    fleet_on_member(brain, &back, now);
    assert_false(fleet_host_judged(brain, 0, now));
    for (int second = 0; second < 30; second++) {
        fleet_on_heard(brain, 0, span_ns(0), span_ns(0), now);
        assert_false(fleet_host_judged(brain, 0, now));
        assert_int_equal(health(0), HEALTH_UNKNOWN);
        now = mono_add(now, span_ns(NS_PER_S));
    }
    fleet_on_heard(brain, 0, span_ns(0), span_ns(0), now);
    now = mono_add(now, span_ns(1));
    assert_true(fleet_host_judged(brain, 0, now));
    fleet_on_member(brain, &gone, now);
    fleet_on_member(brain, &back, now);
    at(0);
    assert_true(fleet_host_judged(brain, 0, now));
}

/* locate.healthy: six hosts report one cut cable, eight report one dead trunk. */
static void who_only_sees_it_is_not_ill(void **state)
{
    const struct element nic = element_of(ELEMENT_NIC, PLACE_NIC, 0);
    struct element trunk = element_of(ELEMENT_TRUNK, PLACE_LEAF, 0);
    struct fleet_report r = {
        .host = 0, .rollup = true, .clock = FLEET_CLOCK_SYNCED, .ports_down = 1};

    (void)state;
    trunk.b = (struct place){.kind = PLACE_SPINE, .number = 1};
    fleet_on_report(brain, &r, now);
    for (uint32_t h = 1; h < 6; h++) {
        r = (struct fleet_report){
            .host = h, .rollup = true, .clock = FLEET_CLOCK_SYNCED, .paths_dead = 4};
        say(h, 1, FINDING_PEER_SILENT, nic, true, true);
        fleet_on_report(brain, &r, now);
    }
    assert_int_equal(health(0), HEALTH_BAD);
    for (uint32_t h = 1; h < HOSTS; h++) {
        assert_int_equal(health(h), HEALTH_OK);
    }
    for (uint32_t h = 1; h < 6; h++) {
        say(h, 1, FINDING_PEER_SILENT, nic, true, false);
    }
    at(0);
    for (uint32_t h = 0; h < HOSTS; h++) {
        r = (struct fleet_report){
            .host = h, .rollup = true, .clock = FLEET_CLOCK_SYNCED, .paths_dead = 4};
        say(h, 2, FINDING_PATH_DEAD, trunk, h % 2 == 0, true);
        fleet_on_report(brain, &r, now);
        assert_int_equal(health(h), HEALTH_OK);
        say(h, 2, FINDING_PATH_DEAD, element_unknown(), false, true); /* without a place */
        assert_int_equal(health(h), HEALTH_WARN);
    }
}

static void one_word_of_another_is_a_warning(void **state)
{
    const struct element nic = element_of(ELEMENT_NIC, PLACE_NIC, 7),
                         host = element_of(ELEMENT_HOST, PLACE_HOST, 3);

    (void)state;
    say(1, 1, FINDING_PATH_DEAD, nic, true, true);
    say(1, 2, FINDING_PATH_DEAD, host, true, true); /* twice by one host counts once */
    assert_int_equal(health(3), HEALTH_WARN);
    say(2, 1, FINDING_PATH_DEAD, nic, false, true); /* or another element */
    assert_int_equal(health(3), HEALTH_WARN);
    say(4, 1, FINDING_PEER_SILENT, host, true, true);
    assert_int_equal(health(3), HEALTH_BAD);
    const struct element other = element_of(ELEMENT_HOST, PLACE_HOST, 5);
    for (uint32_t h = 1; h < 4; h++) { /* hosts of another tenant */
        const struct fleet_finding f = {.host = h,
                                        .run = 1,
                                        .number = 40,
                                        .kind = FINDING_PATH_DEAD,
                                        .open = true,
                                        .hearsay = true,
                                        .suspect = other};
        fleet_on_finding(brain, &f, now);
    }
    assert_int_equal(health(5), HEALTH_OK);
    assert_int_equal(health(1), HEALTH_OK);      /* it reports where the fault is */
    now = mono_add(now, span_ns(31 * NS_PER_S)); /* the accusing host is silent by now */
    at(3);
    at(1);
    assert_int_equal(health(3), HEALTH_WARN);
    say(3, 9, FINDING_PATH_DEAD, nic, true, true); /* its own finding */
    assert_int_equal(health(3), HEALTH_BAD);
    assert_int_equal(health(4), HEALTH_UNKNOWN);
}

static void what_is_over_counts_for_nothing(void **state)
{
    const struct element nic = element_of(ELEMENT_NIC, PLACE_NIC, 7);
    struct fleet_member m = {.host = 1};

    (void)state;
    for (uint32_t h = 0; h < 3; h++) {
        say(h, 1, FINDING_PATH_DEAD, nic, true, true);
    }
    fleet_on_run(brain, 0, 2, now); /* its agent restarted */
    assert_int_equal(fleet_host_findings(brain, 0), 0);
    assert_int_equal(health(3), HEALTH_BAD);
    fleet_on_member(brain, &m, now); /* it left */
    assert_int_equal(health(3), HEALTH_WARN);
    say(2, 1, FINDING_PATH_DEAD, nic, true, false);
    assert_int_equal(health(3), HEALTH_OK);
    say(2, 2, FINDING_PATH_DEAD, nic, true, true);
    m.host = 3;
    fleet_on_member(brain, &m, now); /* the accused host left: a new one is not accused */
    m.present = true;
    fleet_on_member(brain, &m, now);
    at(3);
    assert_int_equal(health(3), HEALTH_OK);
    say(2, 2, FINDING_PATH_DEAD, nic, true, false);
    for (uint32_t n = 0; n < 20; n++) { /* more than there is room for */
        say(2, 100 + n, FINDING_LINK_ERRORS, element_unknown(), false, true);
    }
    assert_int_equal(fleet_host_findings(brain, 2), 16);
    assert_int_equal(fleet_findings_dropped(brain), 4);
    assert_int_equal(health(2), HEALTH_WARN); /* about itself */
}

/* Four hosts report as many lies as there is room for. */
static void who_lies_much_silences_nobody(void **state)
{
    const struct element nic = element_of(ELEMENT_NIC, PLACE_NIC, 7);

    (void)state;
    for (uint32_t n = 0; n < 64; n++) {
        say(4 + n % 4, 100 + n, FINDING_PATH_DEAD, element_of(ELEMENT_HOST, PLACE_HOST, 0), true,
            true);
    }
    assert_int_equal(fleet_host_findings(brain, 4), 4);
    for (uint32_t h = 0; h < 3; h++) {
        say(h, 1, FINDING_PATH_DEAD, nic, true, true);
        assert_int_equal(fleet_host_findings(brain, h), 1);
    }
    assert_int_equal(health(3), HEALTH_BAD);
    say(4, 999, FINDING_PATH_DEAD, nic, true, true); /* nor do they get more than a share */
    assert_true(fleet_host_findings(brain, 4) <= 4 && fleet_host_findings(brain, 0) == 1);
}

static void a_day_of_faults_is_told_as_it_was(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        const struct fleet_world_config c = {
            .seed = seed, .hosts = 40 + (uint32_t)seed * 8, .seconds = 3600, .faults = 6};
        const struct fleet_world_result r = fleet_world_run(&c), again = fleet_world_run(&c);
        if (r.wrong + r.doubled + r.forgotten > 0) {
            fail_msg("%s", r.first);
        }
        assert_true(r.faults > 20 && r.events > 2 && r.checks > 10000);
        assert_true(r.trace == again.trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_has_not_reported_is_judged_later, begin, end),
        cmocka_unit_test_setup_teardown(who_only_sees_it_is_not_ill, begin, end),
        cmocka_unit_test_setup_teardown(one_word_of_another_is_a_warning, begin, end),
        cmocka_unit_test_setup_teardown(what_is_over_counts_for_nothing, begin, end),
        cmocka_unit_test_setup_teardown(who_lies_much_silences_nobody, begin, end),
        cmocka_unit_test(a_day_of_faults_is_told_as_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
