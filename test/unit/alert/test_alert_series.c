/* Series: beyond the limit, stale or over; aggregates, windows, absence; and the engine's reports about itself. */
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

/* ---- series ---- */

static void a_series_that_stops_is_stale_and_then_over(void **state)
{
    (void)kit_threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 10);
    kit_start();
    living = 2;
    kit_pass(NS_PER_S);
    kit_sample(ALERT_LINK_SPEED, 11, 20);
    assert_true(kit_alert().value > 19 && kit_alert().value < 21);
    kit_pass(58 * NS_PER_S);
    assert_false(kit_alert().stale);
    kit_pass(5 * NS_PER_S);
    assert_true(kit_alert().stale);
    kit_sample(ALERT_LINK_SPEED, 11, 21);
    assert_false(kit_alert().stale);
    kit_pass(890 * NS_PER_S);
    assert_true(kit_any_alert());
    kit_pass(20 * NS_PER_S); /* the host reports, but no longer this value */
    assert_false(kit_any_alert());
    kit_sample(ALERT_LINK_SPEED, 11, 20);
    living = 1;
    kit_pass(2000 * NS_PER_S); /* the host is silent: it isn't known that it is over */
    assert_true(kit_alert().stale);
    rules[0].hold = span_s(3000);
    kit_start();
    kit_sample(ALERT_LINK_SPEED, 11, 20);
    kit_pass(70 * NS_PER_S); /* pending, and not known to last */
    assert_false(kit_any_alert());
}

/* A host reports again after more than a quarter of an hour. Only then it can report its values, and it has as long for that. */
static void a_host_that_is_back_ends_nothing_by_a_beat(void **state)
{
    (void)kit_threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 10);
    kit_rule(1, "silent", ALERT_ON_ABSENCE)->metric = ALERT_LINK_UP;
    rules[1].scope = ALERT_PER_LINK;
    rules[1].within = span_s(60);
    config.blind = span_s(7200);
    kit_start();
    living = 2;
    kit_pass(NS_PER_S);
    kit_sample(ALERT_LINK_SPEED, 11, 20);
    kit_sample(ALERT_LINK_UP, 11, 1);
    living = 1;
    kit_pass(1000 * NS_PER_S);
    assert_int_equal(kit_counters().firing, 2);
    living = 2;
    kit_pass(890 * NS_PER_S);
    assert_int_equal(kit_counters().firing, 2);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(kit_counters().firing, 0);
}

/* An alert of a silent host waits, and gives the caller no deadline. */
static void a_frozen_alert_has_no_deadline(void **state)
{
    kit_threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 10)->hold = span_s(40);
    kit_start();
    living = 0;
    kit_sample(ALERT_LINK_SPEED, 11, 20);
    kit_pass(45 * NS_PER_S);
    assert_int_equal(kit_alert().state, ALERT_PENDING);
    assert_true(kit_alert().stale);
    alerts_tick(engine, now);
    assert_true(mono_before(now, alerts_deadline(engine)));
}

/* Names come and go: those of ended alerts make room. */
static void elements_are_given_back(void **state)
{
    config.alert_max = 16;
    config.incident_max = 4;
    kit_finding_rules();
    rules[0].hold = span_s(100);
    kit_start();
    for (uint32_t nic = 0; nic < 1000; nic++) {
        const struct alert_finding f = kit_link_finding(nic, FINDING_LINK_DOWN);
        kit_say(&f, FINDING_OPENED);
        kit_say(&f, FINDING_CLOSED);
    }
    assert_int_equal(kit_counters().alerts_dropped, 0);
    assert_int_equal(kit_counters().pending, 0);
}

/* Below a floor; no change between limit and clear; a value that is not a number doesn't count. */
static void floors_and_hysteresis(void **state)
{
    kit_threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 100)->below = true;
    rules[0].clear = 200;
    kit_start();
    kit_sample(ALERT_LINK_SPEED, 3, 100);
    assert_false(kit_any_alert());
    kit_sample(ALERT_LINK_SPEED, 3, 150);
    assert_false(kit_any_alert());
    kit_sample(ALERT_LINK_SPEED, 3, 99);
    assert_true(kit_any_alert());
    kit_sample(ALERT_LINK_SPEED, 3, 150);
    kit_sample(ALERT_LINK_SPEED, 3, NAN);
    kit_sample(ALERT_LINK_SPEED, 3, INFINITY);
    kit_sample(ALERT_METRIC_COUNT, 3, 1);
    assert_true(kit_any_alert());
    kit_sample(ALERT_LINK_SPEED, 3, 200);
    assert_false(kit_any_alert());
    (void)kit_threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 100);
    kit_start();
    kit_sample(ALERT_LINK_SPEED, 3, 100);
    assert_false(kit_any_alert());
    kit_sample(ALERT_LINK_SPEED, 3, 101);
    kit_sample(ALERT_LINK_SPEED, 4, 50); /* another link's */
    assert_true(kit_any_alert());
    kit_sample(ALERT_LINK_SPEED, 3, 100);
    assert_false(kit_any_alert());
}

static void members(double value)
{
    for (uint32_t k = 0; k < 4; k++) {
        kit_sample(ALERT_LINK_SPEED, k, 10 * (k + 1) + value); /* 10, 20, 30, 40 */
    }
}

static void aggregates_of_a_rail_of_members(void **state)
{
    static const struct {
        enum alert_aggregate aggregate;
        bool below;
        double beyond, within;
    } cases[] = {
        {ALERT_MAX, false, 39.9, 40},  {ALERT_MIN, true, 10.1, 10}, {ALERT_MIN, false, 9.9, 10},
        {ALERT_MEAN, false, 24.9, 25}, {ALERT_MAX, true, 40.1, 40},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int beyond = 0; beyond < 2; beyond++) {
            struct alert_rule *r = kit_threshold(ALERT_LINK_SPEED, ALERT_PER_FLEET,
                                                 beyond ? cases[i].beyond : cases[i].within);
            r->aggregate = (uint8_t)cases[i].aggregate;
            r->below = cases[i].below;
            kit_start();
            members(0);
            kit_pass(9 * NS_PER_S);
            assert_false(kit_any_alert()); /* the round isn't over */
            kit_pass(3 * NS_PER_S);
            assert_int_equal(kit_any_alert(), beyond);
        }
    }
    struct alert_rule *r = kit_threshold(ALERT_LINK_SPEED, ALERT_PER_FLEET, 15);
    r->aggregate = ALERT_SHARE; /* three of four are above */
    for (int beyond = 0; beyond < 2; beyond++) {
        r->share = beyond ? 0.74 : 0.75;
        kit_start();
        members(0);
        kit_pass(12 * NS_PER_S);
        assert_int_equal(kit_any_alert(), beyond);
    }
    members(-30); /* and the next round begins without values of this one */
    kit_pass(12 * NS_PER_S);
    assert_false(kit_any_alert());
}

/* Counts leave their window a twelfth at a time. Each link has its own window. */
static void counts_within_a_sliding_window(void **state)
{
    kit_rule(0, "downs", ALERT_ON_COUNT)->metric = ALERT_LINK_DOWNS;
    rules[0].scope = ALERT_PER_LINK;
    rules[0].limit = 5;
    rules[0].within = span_s(120);
    kit_start();
    kit_sample(ALERT_LINK_DOWNS, 3, 100);
    kit_sample(ALERT_LINK_DOWNS, 4, 0);
    kit_pass(NS_PER_S);
    kit_sample(ALERT_LINK_DOWNS, 3, 103);
    kit_sample(ALERT_LINK_DOWNS, 4, 3);
    kit_pass(60 * NS_PER_S);
    kit_sample(ALERT_LINK_DOWNS, 3, 105);
    assert_false(kit_any_alert()); /* five isn't more than five */
    kit_pass(65 * NS_PER_S);
    kit_sample(ALERT_LINK_DOWNS, 3, 108); /* the first three have left the window: five again */
    assert_false(kit_any_alert());
    kit_sample(ALERT_LINK_DOWNS, 3, 109);
    assert_int_equal(kit_alert().nic, 3);
    kit_sample(ALERT_LINK_DOWNS, 3, 109); /* no new count, and it goes on */
    assert_true(kit_any_alert());
    kit_pass(70 * NS_PER_S); /* it ends when enough counts have left the window */
    assert_false(kit_any_alert());
}

/* Few of many links count at one time: the place of an empty window can be used again. */
static void a_window_that_ran_empty_makes_room(void **state)
{
    const uint32_t places = 128 / 4 + 64; /* the size in series_init() */

    kit_rule(0, "downs", ALERT_ON_COUNT)->metric = ALERT_LINK_DOWNS;
    rules[0].scope = ALERT_PER_LINK;
    rules[0].limit = 5;
    rules[0].within = span_s(120);
    config.watch_max = 128;
    kit_start();
    for (uint32_t nic = 0; nic < places; nic++) {
        kit_sample(ALERT_LINK_DOWNS, nic, 0);
        kit_sample(ALERT_LINK_DOWNS, nic, 1);
    }
    kit_sample(ALERT_LINK_DOWNS, places, 0);
    kit_sample(ALERT_LINK_DOWNS, places, 6);
    assert_false(kit_any_alert()); /* no place is left, and that is counted */
    assert_int_equal(kit_counters().watches_dropped, 1);
    kit_pass(140 * NS_PER_S);
    kit_sample(ALERT_LINK_DOWNS, places, 12);
    assert_int_equal(kit_alert().nic, places);
}

static void an_absence_begins_and_ends(void **state)
{
    kit_rule(0, "silent", ALERT_ON_ABSENCE)->metric = ALERT_LINK_UP;
    rules[0].scope = ALERT_PER_LINK;
    rules[0].within = span_s(100);
    kit_start();
    kit_pass(200 * NS_PER_S);
    assert_false(kit_any_alert()); /* a value that never came isn't missed */
    kit_sample(ALERT_LINK_UP, 3, 1);
    kit_sample(ALERT_LINK_UP, 11, 1);
    kit_pass(95 * NS_PER_S);
    assert_false(kit_any_alert());
    kit_sample(ALERT_LINK_UP, 3, 1);
    kit_pass(10 * NS_PER_S);
    assert_int_equal(kit_alert().nic, 11);
    assert_int_equal(kit_alert().host, 1);
    kit_sample(ALERT_LINK_UP, 11, 1);
    assert_false(kit_any_alert());
    kit_pass(50 * NS_PER_S);
    alerts_on_host_removed(engine, now, 1); /* it is no longer missed */
    kit_pass(200 * NS_PER_S);
    assert_int_equal(kit_alert().nic, 3);
}

static uint32_t removed; /* a host; the fleet no longer knows its NICs */
static bool (*nic_of_kit)(void *context, uint32_t nic, struct alert_nic *ret);
static bool nic_of_members(void *context, uint32_t nic, struct alert_nic *ret)
{
    return nic / NIC_PER_HOST != removed && nic_of_kit(context, nic, ret);
}

/* Paths to a removed host are no longer measured. So none is missed, and none keeps its last value. */
static void paths_to_a_removed_host_are_over(void **state)
{
    const struct alert_sample lost = {
        .metric = ALERT_PATH_LOSS, .nic = 3, .peer = 56, .port = 7641, .value = 5000};
    const struct alert_sample last = {
        .metric = ALERT_PATH_LOSS, .nic = 3, .peer = 64, .port = 7641, .value = 0};

    (void)kit_threshold(ALERT_PATH_LOSS, ALERT_PER_PATH, 100);
    kit_rule(1, "absent", ALERT_ON_ABSENCE)->metric = ALERT_PATH_LOSS;
    rules[1].scope = ALERT_PER_PATH;
    rules[1].within = span_s(60);
    kit_start();
    alerts_free(engine);
    removed = ALERT_NO_ID;
    nic_of_kit = config.fleet.nic;
    config.fleet.nic = nic_of_members;
    engine = alerts_new(&config, now);
    assert_non_null(engine);
    alerts_on_sample(engine, now, &lost);
    alerts_on_sample(engine, now, &last);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_alert().peer, 56);
    removed = 7;
    alerts_on_host_removed(engine, now, 7);
    assert_false(kit_any_alert());
    kit_pass(70 * NS_PER_S);
    assert_int_equal(kit_alert().peer, 64); /* the path to another host */
    removed = 8;
    alerts_on_host_removed(engine, now, 8);
    kit_pass(70 * NS_PER_S);
    assert_false(kit_any_alert());
}

/* ---- about itself ---- */

static void refused_rules_are_an_alert_until_they_are_mended(void **state)
{
    kit_finding_rules();
    alerts_on_rules_refused(engine, now, "line 3: no such metric");
    kit_pass(5 * NS_PER_S);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_string_equal(told.cause, "the rule file");
    assert_string_equal(told.text,
                        "alert rules: refused: line 3: no such metric; suspect: the rule "
                        "file; mend the rule file: the rules before it are in force");
    assert_string_equal(kit_alert().rule_name, "rules-refused");
    assert_false(kit_alert().stale);
    assert_int_equal(kit_alert().severity, ALERT_WARNING);
    kit_pass(5000 * NS_PER_S);
    assert_true(kit_any_alert());
    alerts_on_rules_refused(engine, now, NULL);
    assert_false(kit_any_alert());
    alerts_on_rules_refused(engine, now, NULL);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
}

static void missing_room_is_an_alert_that_ends(void **state)
{
    config.watch_max = 16;
    kit_rule(0, "silent", ALERT_ON_ABSENCE)->metric = ALERT_LINK_UP;
    rules[0].scope = ALERT_PER_LINK;
    rules[0].within = span_s(100000);
    kit_start();
    for (uint32_t nic = 0; nic < 20; nic++) {
        kit_sample(ALERT_LINK_UP, nic, 1);
    }
    assert_true(kit_counters().watches_dropped > 0);
    kit_pass(5 * NS_PER_S);
    assert_string_equal(told.cause, "the alert engine's limits");
    assert_non_null(strstr(told.text, "alert engine: 0 alerts, "));
    assert_non_null(strstr(told.text, "; raise the limits of the alert engine"));
    kit_pass(200 * NS_PER_S);
    assert_false(kit_any_alert());
}

/* The series came, and no longer comes; or another fleet's hosts are gone with it, which isn't the rule's fault. */
static void a_rule_whose_series_ended_says_any_more(void **state)
{
    (void)kit_threshold(ALERT_PATH_LOSS, ALERT_PER_PATH, 100);
    config.blind = span_s(100);
    kit_start();
    kit_sample(ALERT_PATH_LOSS, 3, 0);
    kit_pass(99 * NS_PER_S);
    assert_false(kit_any_alert());
    kit_pass(10 * NS_PER_S);
    assert_string_equal(kit_alert().rule_name, "rule-not-evaluated");
    kit_pass(NS_PER_S);
    assert_non_null(strstr(told.text, "rule series: can't be evaluated, nobody reports path.loss "
                                      "any more; suspect: unknown; check that agents report it"));
    living = 0;
    kit_pass(70 * NS_PER_S);
    assert_false(kit_any_alert());
}

/* The controller's own measurements are no sign of life of a host: a rule isn't blind because no host reports. */
static void a_figure_of_no_host_is_no_host_that_reports(void **state)
{
    const struct alert_sample own = {.metric = ALERT_LEVELS_BROKEN,
                                     .host = ALERT_NO_ID,
                                     .nic = ALERT_NO_ID,
                                     .peer = ALERT_NO_ID,
                                     .port = ALERT_NO_ID};

    (void)kit_threshold(ALERT_PATH_LOSS, ALERT_PER_PATH, 100);
    for (living = 0; living < 2; living++) {
        kit_start();
        for (int k = 0; k < 70; k++) {
            alerts_on_sample(engine, now, &own);
            kit_pass(10 * NS_PER_S);
        }
        assert_int_equal(kit_any_alert(), living > 0);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_begin, kit_end)
    const struct CMUnitTest tests[] = {
        T(a_series_that_stops_is_stale_and_then_over),
        T(a_host_that_is_back_ends_nothing_by_a_beat),
        T(a_frozen_alert_has_no_deadline),
        T(elements_are_given_back),
        T(floors_and_hysteresis),
        T(aggregates_of_a_rail_of_members),
        T(counts_within_a_sliding_window),
        T(a_window_that_ran_empty_makes_room),
        T(an_absence_begins_and_ends),
        T(paths_to_a_removed_host_are_over),
        T(refused_rules_are_an_alert_until_they_are_mended),
        T(missing_room_is_an_alert_that_ends),
        T(a_rule_whose_series_ended_says_any_more),
        T(a_figure_of_no_host_is_no_host_that_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
