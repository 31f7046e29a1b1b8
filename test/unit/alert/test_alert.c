/* Notifications: one incident for each cause, whatever is reported of it, in any order, and over a restart. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "alert_kit.h"
#include "base/prng.h"

static void a_link_down_is_told_within_its_wait_and_resolved_after(void **state)
{
    kit_finding_rules();
    struct alert_finding f = kit_link_finding(3, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(99 * NS_PER_MS);
    assert_int_equal(told.notifications, 0);
    kit_pass(2 * NS_PER_MS);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(told.pages, 0); /* a warning is no page */
    assert_string_equal(told.cause, "host0/ib3");
    assert_string_equal(told.text, "a sentence");
    kit_say(&f, FINDING_CLOSED);
    kit_pass(59 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 0);
    kit_pass(2 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
    assert_int_equal(kit_counters().firing, 0);
    assert_int_equal(kit_counters().incidents_open, 0);
}

static void a_flap_shorter_than_the_wait_is_told_too(void **state)
{
    kit_finding_rules();
    struct alert_finding f = kit_link_finding(3, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(20 * NS_PER_MS);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(1 * NS_PER_S);
    assert_int_equal(told.events[ALERT_OPENED], 1);
}

/* 1,000 NICs, trunks from 64 leaves to spine1; half of the findings are only guesses. */
static void a_dead_spine_is_one_incident(void **state)
{
    struct prng p;

    kit_finding_rules();
    living = 125;
    prng_init(&p, 7);
    for (int k = 0; k < 400; k++) {
        const uint32_t from = (uint32_t)prng_below(&p, 1000), to = (uint32_t)prng_below(&p, 1000);
        char trunk[64];
        snprintf(trunk, sizeof(trunk), "trunk leaf%u - spine1", from % 64);
        struct alert_finding f =
            kit_path_finding(from, to, ELEMENT_TRUNK, trunk, prng_below(&p, 2) == 0);
        kit_say(&f, FINDING_OPENED);
        kit_pass(4 * NS_PER_MS);
    }
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(kit_counters().incidents_open, 1);
    assert_int_equal(kit_counters().firing, 400);
    assert_string_equal(told.cause, "spine1");
    assert_non_null(strstr(told.text, "spine1: "));
}

static void a_spine_named_by_its_findings_is_one_incident(void **state)
{
    kit_finding_rules();
    for (uint32_t k = 0; k < 64; k++) {
        struct alert_finding f =
            kit_path_finding(k * 8, 512 + k * 8, ELEMENT_SPINE, "spine1", true);
        kit_say(&f, FINDING_OPENED);
        kit_pass(50 * NS_PER_MS);
    }
    kit_pass(5 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    assert_string_equal(told.cause, "spine1");
}

static void two_causes_stay_two(void **state)
{
    kit_finding_rules();
    for (uint32_t k = 0; k < 32; k++) {
        char trunk[64];
        snprintf(trunk, sizeof(trunk), "trunk leaf%u - spine1", k);
        struct alert_finding f = kit_path_finding(k * 8, 512 + k * 8, ELEMENT_TRUNK, trunk, true);
        kit_say(&f, FINDING_OPENED);
        if (k == 16) { /* meanwhile a cable elsewhere */
            f = kit_path_finding(700, 900, ELEMENT_TRUNK, "trunk leaf40 - spine3", true);
            kit_say(&f, FINDING_OPENED);
        }
        kit_pass(20 * NS_PER_MS);
    }
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 2);
    assert_int_equal(kit_counters().incidents_open, 2);
}

static void two_links_of_one_leaf_stay_two_and_all_of_them_are_the_leaf(void **state)
{
    struct alert_incident incident;
    size_t cursor = 0;
    unsigned open = 0;

    kit_finding_rules();
    for (uint32_t h = 0; h < 2; h++) {
        struct alert_finding f = kit_link_finding(h * 8 + 5, FINDING_LINK_DOWN);
        kit_say(&f, FINDING_OPENED);
    }
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 2);
    for (uint32_t h = 2; h < 16; h++) {
        struct alert_finding f = kit_link_finding(h * 8 + 5, FINDING_LINK_DOWN);
        kit_say(&f, FINDING_OPENED);
    }
    kit_pass(5 * NS_PER_S);
    while (alerts_next_incident(engine, &cursor, &incident)) {
        if (incident.state == INCIDENT_OPEN) {
            open++;
            assert_string_equal(incident.cause, "leaf5");
            assert_int_equal(incident.alerts_firing, 16);
            assert_int_equal(incident.hosts, 16);
        }
    }
    assert_int_equal(open, 1);
    assert_int_equal(told.events[ALERT_ABSORBED], 1);
}

static void unknown_rule(void)
{
    struct alert_rule *unknown = kit_rule(1, "unknown", ALERT_ON_THRESHOLD);
    unknown->metric = ALERT_AUDIT_UNKNOWN;
    unknown->scope = ALERT_PER_HOST;
    unknown->severity = ALERT_INFO;
}

/* Failures of NICs in an audit: two of a leaf are two incidents, and the third makes one of all, the leaf's. Unknown checks of
 * their hosts are in no notification, and keep no NIC out of it. */
static void three_nics_of_a_leaf_that_an_audit_fails_are_one(void **state)
{
    for (uint32_t count = 2; count <= 3; count++) {
        memset(&config, 0, sizeof(config));
        memset(rules, 0, sizeof(rules));
        kit_threshold(ALERT_AUDIT_LINKS, ALERT_PER_LINK, 0)->wait = span_s(2);
        unknown_rule();
        living = 8;
        kit_start();
        kit_pass(NS_PER_S);
        for (uint32_t h = 0; h < count; h++) {
            kit_sample(ALERT_AUDIT_UNKNOWN, h * 8, 1);
            kit_sample(ALERT_AUDIT_LINKS, h * 8 + 5, 1);
        }
        kit_pass(5 * NS_PER_S);
        assert_int_equal(told.pages, count == 3 ? 1 : 2);
        if (count == 3) {
            assert_string_equal(told.cause, "leaf5");
        }
    }
}

/* Unknown checks of many hosts are shown as one incident. They keep no host's incident open, and hide no fleet's. */
static void unknown_checks_keep_no_hosts_incident_open(void **state)
{
    memset(&config, 0, sizeof(config));
    memset(rules, 0, sizeof(rules));
    struct alert_rule *silent = kit_rule(0, "silent", ALERT_ON_ABSENCE);
    silent->metric = ALERT_HOST_REPORT;
    silent->scope = ALERT_PER_HOST;
    silent->within = span_s(60);
    silent->severity = ALERT_PAGE;
    unknown_rule();
    living = 20;
    kit_start();
    kit_pass(20 * NS_PER_S);
    for (uint32_t h = 0; h < 20; h++) {
        kit_sample(ALERT_AUDIT_UNKNOWN, h * 8, 1);
    }
    kit_pass(60 * NS_PER_S);
    assert_int_equal(kit_counters().firing, 20);
    assert_int_equal(kit_counters().incidents_open, 1);
    assert_int_equal(told.pages, 0);
    for (unsigned day = 1; day <= 2; day++) {
        living = 19;
        kit_pass(80 * NS_PER_S);
        assert_string_equal(told.cause, "host19");
        living = 20;
        for (int minute = 0; minute < 60; minute++) {
            for (uint32_t h = 0; h < 20; h++) {
                kit_sample(ALERT_AUDIT_UNKNOWN, h * 8, 1);
            }
            kit_pass(60 * NS_PER_S);
        }
        assert_int_equal(kit_counters().incidents_open, 1);
        assert_int_equal(told.pages, day);
    }
    living = 8;
    kit_pass(80 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 2);
    assert_string_equal(told.cause, "the fleet");
}

static void a_guess_that_becomes_certain_moves_to_the_right_incident(void **state)
{
    struct alert_finding spine = kit_path_finding(0, 512, ELEMENT_SPINE, "spine1", true), f;

    kit_finding_rules();
    kit_say(&spine, FINDING_OPENED);
    kit_pass(2 * NS_PER_S); /* too late to count as the same at once */
    f = kit_path_finding(80, 600, ELEMENT_UNKNOWN, NULL, false);
    kit_say(&f, FINDING_OPENED);
    kit_pass(500 * NS_PER_MS);
    assert_int_equal(kit_counters().incidents_open, 2);
    f.suspect = suspect_named(ELEMENT_SPINE, "spine1");
    kit_say(&f, FINDING_UPDATED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 1);
    assert_int_equal(told.pages, 1);
    kit_say(&f, FINDING_CLOSED);
    kit_say(&spine, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 0);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
}

/* A guess about a host must not hide a cable that is certainly down. */
static void a_link_down_under_a_guess_is_told(void **state)
{
    struct alert_finding guess = kit_path_finding(0, 80, ELEMENT_HOST, "host10", false), f;

    kit_finding_rules();
    kit_say(&guess, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(told.notifications, 1);
    f = kit_link_finding(83, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(NS_PER_S);
    assert_int_equal(told.events[ALERT_WORSE], 1);
    assert_int_equal(told.pages, 1);
    f = kit_link_finding(84, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(NS_PER_S);
    assert_int_equal(told.events[ALERT_WORSE], 2);
    assert_int_equal(kit_counters().incidents_open, 1);
    f = kit_path_finding(0, 81, ELEMENT_HOST, "host10", false);
    kit_say(&f, FINDING_OPENED); /* nothing new */
    kit_pass(NS_PER_S);
    assert_int_equal(told.events[ALERT_WORSE], 2);
}

static void fifty_flaps_are_one_page(void **state)
{
    double downs = 0;

    kit_finding_rules();
    kit_rule(2, "link-flaps", ALERT_ON_COUNT)->metric = ALERT_LINK_DOWNS;
    rules[2].scope = ALERT_PER_LINK;
    rules[2].limit = 8;
    rules[2].within = span_s(3600);
    kit_start();
    kit_sample(ALERT_LINK_DOWNS, 3, downs);
    for (int k = 0; k < 50; k++) {
        struct alert_finding f = kit_link_finding(3, FINDING_LINK_DOWN);
        kit_say(&f, FINDING_OPENED);
        kit_sample(ALERT_LINK_DOWNS, 3, ++downs);
        kit_pass((k % 7 + 1) * 10 * NS_PER_S);
        kit_say(&f, FINDING_CLOSED);
        kit_pass((k % 5 + 1) * 30 * NS_PER_S);
    }
    assert_int_equal(told.pages, 1);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(kit_counters().incidents_open, 1);
    for (int k = 0; k < 15; k++) {
        kit_pass(500 * NS_PER_S);
        kit_sample(ALERT_LINK_DOWNS, 3, downs);
    }
    assert_int_equal(kit_counters().incidents_open, 0);
    assert_int_equal(told.pages, 1);
}

static void an_incident_of_an_earlier_run_is_not_told_again(void **state)
{
    kit_finding_rules();
    rules[0].severity = ALERT_PAGE;
    kit_start();
    assert_int_equal(alerts_restore(engine, now, &kit_told_page), 0);
    struct alert_finding f = kit_link_finding(3, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(600 * NS_PER_S);
    assert_int_equal(told.notifications, 0);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
    assert_int_equal(told.incident, 41);
    f = kit_link_finding(4, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(NS_PER_S);
    assert_int_equal(told.incident, 42);
}

static void a_restored_incident_that_is_over_is_resolved(void **state)
{
    const struct alert_restore r = {
        .id = 7, .severity = ALERT_PAGE, .cause = "spine1", .told = true, .text = "as it was"};

    kit_finding_rules();
    assert_int_equal(alerts_restore(engine, now, &r), 0);
    kit_pass(290 * NS_PER_S);
    assert_int_equal(told.notifications, 0);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
    assert_string_equal(told.text, "as it was");
}

static void memory_is_bounded_and_running_out_is_said(void **state)
{
    config.alert_max = 64;
    config.incident_max = 8;
    config.watch_max = 64;
    kit_finding_rules();
    for (uint32_t k = 0; k < 1000; k++) {
        struct alert_finding f = kit_link_finding(k * 8 + k % 8, FINDING_LINK_DOWN);
        kit_say(&f, FINDING_OPENED);
        kit_sample(ALERT_LINK_DOWNS, k, 1);
    }
    assert_true(kit_counters().alerts_dropped > 0);
    for (uint32_t k = 0; k < 30; k++) { /* room for one */
        alerts_on_run(engine, now, k, 2);
    }
    kit_pass(5 * NS_PER_S);
    assert_true(strstr(told.text, "didn't fit") != NULL || kit_counters().incidents_dropped > 0);
}

/* Any calls in any order: counts stay consistent, no notification is without a cause, and the same calls give the same result. */
static uint64_t storm(uint64_t seed)
{
    struct prng p;
    uint64_t digest = 0;

    prng_init(&p, seed);
    config.alert_max = 200;
    config.incident_max = 40;
    kit_finding_rules();
    living = 30;
    for (int step = 0; step < 3000; step++) {
        struct alert_finding f = kit_link_finding((uint32_t)prng_below(&p, 240), FINDING_LINK_DOWN);
        char trunk[64];
        f.number = (uint32_t)prng_below(&p, 60);
        f.run = (uint32_t)prng_below(&p, 2);
        if (prng_below(&p, 2) == 0) {
            snprintf(trunk, sizeof(trunk), "trunk leaf%u - spine%u", (unsigned)prng_below(&p, 6),
                     (unsigned)prng_below(&p, 3));
            f.kind = FINDING_PATH_DEAD;
            f.to_nic = (uint32_t)prng_below(&p, 240);
            f.to_host = f.to_nic / 8;
            const uint32_t kind = prng_below(&p, 3) == 0 ? ELEMENT_UNKNOWN : ELEMENT_TRUNK;
            suspect_set(&f, suspect_named(kind, trunk), prng_below(&p, 2) == 0);
        }
        kit_say(&f, (enum finding_phase)prng_below(&p, 3));
        if (prng_below(&p, 50) == 0) {
            alerts_on_run(engine, now, (uint32_t)prng_below(&p, 30), (uint32_t)prng_below(&p, 2));
        }
        if (prng_below(&p, 100) == 0) {
            alerts_on_host_removed(engine, now, (uint32_t)prng_below(&p, 30));
        }
        if (prng_below(&p, 10) == 0) {
            struct alert_silence s = {.id = 1 + prng_below(&p, 5),
                                      .from_utc_ns = UTC_AT_START,
                                      .until_utc_ns = UTC_AT_START + 40 * NS_PER_S};
            snprintf(s.match.host, sizeof(s.match.host), "host%u*", (unsigned)prng_below(&p, 4));
            assert_int_equal(alerts_silence(engine, now, &s), 0);
        }
        kit_pass((int64_t)prng_below(&p, 400) * NS_PER_MS);
        digest = hash_u64(digest, told.notifications);
        digest = hash_u64(digest, told.incident);
    }
    for (uint32_t h = 0; h < 30; h++) {
        alerts_on_host_removed(engine, now, h);
    }
    kit_pass(2 * 3600 * NS_PER_S);
    assert_int_equal(kit_counters().firing, 0);
    assert_int_equal(kit_counters().pending, 0);
    assert_int_equal(kit_counters().incidents_open, 0);
    return digest;
}

static void any_storm_ends_in_order_and_repeats_exactly(void **state)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const uint64_t first = storm(seed);
        assert_int_equal(storm(seed), first);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_begin, kit_end)
    const struct CMUnitTest tests[] = {
        T(a_link_down_is_told_within_its_wait_and_resolved_after),
        T(a_flap_shorter_than_the_wait_is_told_too),
        T(a_dead_spine_is_one_incident),
        T(a_spine_named_by_its_findings_is_one_incident),
        T(two_causes_stay_two),
        T(two_links_of_one_leaf_stay_two_and_all_of_them_are_the_leaf),
        T(three_nics_of_a_leaf_that_an_audit_fails_are_one),
        T(unknown_checks_keep_no_hosts_incident_open),
        T(a_guess_that_becomes_certain_moves_to_the_right_incident),
        T(a_link_down_under_a_guess_is_told),
        T(fifty_flaps_are_one_page),
        T(an_incident_of_an_earlier_run_is_not_told_again),
        T(a_restored_incident_that_is_over_is_resolved),
        T(memory_is_bounded_and_running_out_is_said),
        T(any_storm_ends_in_order_and_repeats_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
