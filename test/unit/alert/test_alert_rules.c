/* When a notification is sent: the rule's condition and its duration; none during maintenance, but again when that ends; and one
 * if the alerting itself is blind. */
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

static void a_counter_that_begins_anew_counts_nothing(void **state)
{
    kit_rule(0, "errors", ALERT_ON_RATE)->metric = ALERT_LINK_RX_ERRORS;
    rules[0].scope = ALERT_PER_LINK;
    rules[0].limit = 1;
    rules[0].within = span_s(60);
    kit_start();
    kit_sample(ALERT_LINK_RX_ERRORS, 3, 1e9);
    kit_pass(NS_PER_S);
    kit_sample(ALERT_LINK_RX_ERRORS, 3, 500); /* a reboot */
    kit_pass(NS_PER_S);
    assert_int_equal(told.notifications, 0);
    kit_sample(ALERT_LINK_RX_ERRORS, 3, 559);
    kit_pass(NS_PER_S);
    assert_int_equal(told.notifications, 0);
    kit_sample(ALERT_LINK_RX_ERRORS, 3, 561); /* 61 within a minute */
    kit_pass(NS_PER_S);
    assert_int_equal(told.pages, 1);
    assert_non_null(strstr(
        told.text, "host0/ib3: receive errors: 1.01667/s over 1 min, above 1/s, since 2026-11-"));
    kit_pass(70 * NS_PER_S); /* it leaves the window by itself */
    assert_int_equal(kit_counters().firing, 0);
}

static void a_threshold_holds_for_its_time_and_has_hysteresis(void **state)
{
    kit_rule(0, "slow-clock", ALERT_ON_THRESHOLD)->metric = ALERT_CLOCK_HARD;
    rules[0].scope = ALERT_PER_HOST;
    rules[0].limit = 1e6;
    rules[0].clear = 5e5;
    rules[0].hold = span_s(60);
    kit_start();
    kit_sample(ALERT_CLOCK_HARD, 0, 2e6);
    kit_pass(50 * NS_PER_S);
    kit_sample(ALERT_CLOCK_HARD, 0, 1e5);
    kit_sample(ALERT_CLOCK_HARD, 0, 2e6); /* the time begins again */
    kit_pass(50 * NS_PER_S);
    assert_int_equal(told.pages, 0);
    kit_sample(ALERT_CLOCK_HARD, 0, 2e6);
    kit_pass(11 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    assert_string_equal(told.cause, "clock of host0");
    kit_sample(ALERT_CLOCK_HARD, 0, 7e5);
    assert_int_equal(kit_counters().firing, 1);
    kit_sample(ALERT_CLOCK_HARD, 0, 4e5);
    assert_int_equal(kit_counters().firing, 0);
}

static void a_host_that_falls_silent_is_told_and_its_pending_alerts_freeze(void **state)
{
    kit_finding_rules();
    rules[0].hold = span_s(120);
    rules[0].severity = ALERT_PAGE;
    kit_rule(2, "host-silent", ALERT_ON_ABSENCE)->metric = ALERT_HOST_REPORT;
    rules[2].scope = ALERT_PER_HOST;
    rules[2].within = span_s(600);
    kit_start();
    living = 2;
    kit_pass(20 * NS_PER_S);
    struct alert_finding f = kit_link_finding(8, FINDING_LINK_DOWN); /* of host1 */
    kit_say(&f, FINDING_OPENED);
    living = 1;
    kit_pass(590 * NS_PER_S);
    assert_int_equal(told.pages, 0); /* a reboot of less than ten minutes gives no page */
    kit_pass(30 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    assert_string_equal(told.cause, "host1");
    living = 2;
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 1); /* its link, now seen to be down: the same incident */
    alerts_on_run(engine, now, 1, 2);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(kit_counters().firing, 0);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
}

static void silences_and_maintenance_cover_and_end(void **state)
{
    struct alert_silence s = {
        .id = 1, .from_utc_ns = UTC_AT_START, .until_utc_ns = UTC_AT_START + 600 * NS_PER_S};

    kit_finding_rules();
    rules[0].severity = ALERT_PAGE;
    kit_start();
    assert_int_equal(alerts_silence(engine, now, &s), -EINVAL); /* matches nothing */
    snprintf(s.match.host, sizeof(s.match.host), "host[0-9]");
    snprintf(s.match.host, sizeof(s.match.host), "host1?");
    assert_int_equal(alerts_silence(engine, now, &s), 0);
    struct alert_finding f = kit_link_finding(11 * 8, FINDING_LINK_DOWN);
    struct alert_finding other = kit_link_finding(20 * 8, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(590 * NS_PER_S);
    assert_int_equal(told.notifications, 0);
    kit_say(&other, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    kit_pass(10 * NS_PER_S); /* it lasted longer than its silence */
    assert_int_equal(told.pages, 2);
    kit_say(&f, FINDING_CLOSED);
    kit_say(&other, FINDING_CLOSED);
    kit_pass(7200 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 0);

    s.id = 2;
    s.maintenance = true;
    s.every = span_s(86400);
    s.from_utc_ns = UTC_AT_START - 86400 * NS_PER_S;
    s.until_utc_ns = s.from_utc_ns + 3600 * NS_PER_S;
    kit_start();
    assert_int_equal(alerts_silence(engine, now, &s), 0);
    kit_say(&f, FINDING_OPENED);
    kit_pass(3600 * NS_PER_S + 590 * NS_PER_S);
    assert_int_equal(told.notifications, 0); /* still within the time to come back to order */
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 1);
}

static void an_acknowledged_incident_escalates_and_repeats_no_more(void **state)
{
    kit_finding_rules();
    rules[0].severity = ALERT_PAGE;
    config.routes[0].repeat = span_s(3600);
    config.routes[0].step_count = 1;
    config.routes[0].steps[0].after = span_s(900);
    config.routes[0].steps[0].receivers = 2;
    kit_start();
    struct alert_finding f = kit_link_finding(3, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(890 * NS_PER_S);
    assert_int_equal(told.notifications, 1);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.events[ALERT_ESCALATED], 1);
    assert_int_equal(told.receivers, 2);
    kit_pass(3600 * NS_PER_S);
    assert_int_equal(told.events[ALERT_REPEATED], 1);
    assert_int_equal(alerts_acknowledge(engine, now, told.incident, "ada"), 0);
    kit_pass(36000 * NS_PER_S);
    assert_int_equal(told.events[ALERT_REPEATED], 1);
    assert_int_equal(told.events[ALERT_ACKNOWLEDGED], 1);
    assert_int_equal(alerts_acknowledge(engine, now, 999, "ada"), -ENOENT);
}

static void a_returned_alert_pages_again_only_if_it_lasts(void **state)
{
    kit_finding_rules();
    rules[0].severity = ALERT_PAGE;
    kit_start();
    struct alert_finding f = kit_link_finding(3, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(NS_PER_S);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(600 * NS_PER_S);
    f = kit_link_finding(3, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(290 * NS_PER_S);
    assert_int_equal(told.events[ALERT_REOPENED], 1);
    assert_int_equal(told.pages, 1);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 2);
}

static void a_rule_without_data_says_so(void **state)
{
    kit_rule(0, "loss", ALERT_ON_THRESHOLD)->metric = ALERT_PATH_LOSS;
    rules[0].limit = 100;
    kit_rule(1, "job", ALERT_ON_THRESHOLD)->metric =
        ALERT_JOB_THROUGHPUT; /* no job runs: that is in order */
    rules[1].scope = ALERT_PER_JOB;
    kit_start();
    living = 0;
    kit_pass(3600 * NS_PER_S);
    assert_int_equal(told.notifications, 0); /* a fleet without hosts gives no alert */
    living = 1;
    kit_pass(30 * NS_PER_S);
    struct alert_counters c = kit_counters();
    assert_int_equal(c.firing, 1);
    kit_pass(30 * NS_PER_S);
    assert_string_equal(told.cause, "rule loss");
    assert_non_null(strstr(told.text, "nobody reports path.loss at all"));
    kit_sample(ALERT_PATH_LOSS, 0, 1);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
}

static void say_job(uint64_t job, double mbps)
{
    const struct alert_sample s = {.metric = ALERT_JOB_THROUGHPUT,
                                   .host = ALERT_NO_ID,
                                   .nic = ALERT_NO_ID,
                                   .peer = ALERT_NO_ID,
                                   .port = ALERT_NO_ID,
                                   .job = job,
                                   .value = mbps};
    for (int i = 0; i < 20; i++) {
        alerts_on_sample(engine, now, &s);
        kit_pass(NS_PER_S);
    }
}

static void a_slow_job_is_named_and_its_end_is_the_alerts(void **state)
{
    struct alert_rule *r = kit_rule(0, "job-slow", ALERT_ON_THRESHOLD);
    r->metric = ALERT_JOB_THROUGHPUT;
    r->scope = ALERT_PER_JOB;
    r->below = true;
    r->limit = 400;
    r->hold = span_s(10);
    kit_start();
    say_job(7, 1000);
    assert_int_equal(told.notifications, 0);
    say_job(7, 90);
    assert_string_equal(told.cause, "job train");
    assert_non_null(
        strstr(told.text, "job train: throughput of the job is 90 Mbit/s, below 400 Mbit/s"));
    say_job(8, 90); /* one that isn't in the table */
    assert_string_equal(told.cause, "job 8");
    alerts_on_job_over(engine, now, 7);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
    assert_int_equal(kit_counters().firing, 1);
    r->condition = ALERT_ON_ABSENCE;
    r->within = span_s(10);
    assert_non_null(strstr(alert_rule_check(r), "job that is over"));
}

static void the_dead_mans_switch_beats(void **state)
{
    config.heartbeat = span_s(60);
    config.heartbeat_receivers = 4;
    kit_finding_rules();
    kit_pass(595 * NS_PER_S);
    assert_int_equal(told.events[ALERT_HEARTBEAT], 10);
    assert_int_equal(told.receivers, 4);
}

/* Twenty hosts have ten paths each. One more host reports 2,000 paths, ten times as often, each with its duration. */
static void say_votes(double honest, double liar)
{
    struct alert_sample s = {.metric = ALERT_PATH_LOSS, .nic = 2, .peer = 1, .port = 7};
    for (int second = 0; second < 60; second++) {
        for (s.host = 0; s.host < 20; s.host++) {
            for (int k = 0; k < 10; k++) {
                s.value = honest;
                s.weight = (uint32_t)(NS_PER_S / 4 / 10);
                alerts_on_sample(engine, now, &s);
            }
        }
        for (int k = 0; k < 20000; k++) {
            s.value = liar;
            s.weight = (uint32_t)(NS_PER_S / 10 / 4 / 2000);
            alerts_on_sample(engine, now, &s);
        }
        kit_pass(NS_PER_S);
    }
}

static void many_paths_are_no_more_votes(void **state)
{
    kit_rule(0, "rail-loss", ALERT_ON_THRESHOLD)->metric = ALERT_PATH_LOSS;
    rules[0].scope = ALERT_PER_RAIL;
    rules[0].aggregate = ALERT_SHARE;
    rules[0].limit = 1000;
    rules[0].share = 0.05;
    kit_start();
    say_votes(0, 5000); /* one of 21 hosts */
    assert_int_equal(told.events[ALERT_OPENED], 0);
    say_votes(5000, 0);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(told.events[ALERT_RESOLVED], 0);
}

static void shares_and_worst_values_of_many(void **state)
{
    kit_rule(0, "rail-loss", ALERT_ON_THRESHOLD)->metric = ALERT_PATH_LOSS;
    rules[0].scope = ALERT_PER_RAIL;
    rules[0].aggregate = ALERT_SHARE;
    rules[0].limit = 1000;
    rules[0].share = 0.05;
    kit_rule(1, "slowest", ALERT_ON_THRESHOLD)->metric = ALERT_PATH_OWD_P99;
    rules[1].scope = ALERT_PER_FLEET;
    rules[1].aggregate = ALERT_MAX;
    rules[1].limit = 1e5;
    kit_start();
    for (int round = 0; round < 6; round++) {
        for (uint32_t k = 0; k < 100; k++) { /* rail 2: one in 25 lossy; rail 3: one in ten */
            struct alert_sample s = {
                .metric = ALERT_PATH_LOSS, .nic = k * 8 + 2, .peer = 1, .port = 7};
            s.value = k % 25 == 0 ? 5000 : 0;
            alerts_on_sample(engine, now, &s);
            s.nic = k * 8 + 3;
            s.value = k % 10 == 0 ? 5000 : 0;
            alerts_on_sample(engine, now, &s);
            s.metric = ALERT_PATH_OWD_P99;
            s.value = 5e4 + (round == 5 && k == 50 ? 1e5 : 0);
            alerts_on_sample(engine, now, &s);
        }
        kit_pass(10 * NS_PER_S);
    }
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_non_null(
        strstr(told.text, "rail 3: 10.0 % have too much loss, above 0.1 % (allowed: 5.0 %)"));
    kit_pass(10 * NS_PER_S);
    assert_int_equal(told.events[ALERT_OPENED], 2);
    assert_non_null(
        strstr(told.text, "the fleet: largest p99 one-way delay is 150.000 us, above 100.000 us"));
}

static void globs(void **state)
{
    assert_true(alert_glob("gpu-*", "gpu-17"));
    assert_true(alert_glob("*-1?", "gpu-17"));
    assert_true(alert_glob("*", ""));
    assert_false(alert_glob("gpu-?", "gpu-17"));
    assert_false(alert_glob("", "x"));
    assert_true(alert_glob("*a*b*c", "xxaxxbxxbc"));
    assert_false(alert_glob("*a*b*c", "xxaxxbxxb"));
}

static void unsound_rules_are_refused(void **state)
{
    struct alert_rule r;

    alert_rule_init(&r);
    assert_non_null(alert_rule_check(&r)); /* no name */
    snprintf(r.name, sizeof(r.name), "x");
    r.condition = ALERT_ON_THRESHOLD;
    r.metric = ALERT_LINK_DOWNS;
    r.scope = ALERT_PER_LINK;
    assert_non_null(strstr(alert_rule_check(&r), "counter"));
    r.metric = ALERT_PATH_LOSS;
    r.scope = ALERT_PER_RAIL;
    assert_non_null(strstr(alert_rule_check(&r), "aggregate"));
    r.aggregate = ALERT_MEAN;
    assert_null(alert_rule_check(&r));
    r.clear = 5;
    assert_non_null(strstr(alert_rule_check(&r), "good side"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_begin, kit_end)
    const struct CMUnitTest tests[] = {
        T(a_counter_that_begins_anew_counts_nothing),
        T(a_threshold_holds_for_its_time_and_has_hysteresis),
        T(a_host_that_falls_silent_is_told_and_its_pending_alerts_freeze),
        T(silences_and_maintenance_cover_and_end),
        T(an_acknowledged_incident_escalates_and_repeats_no_more),
        T(a_returned_alert_pages_again_only_if_it_lasts),
        T(a_rule_without_data_says_so),
        T(a_slow_job_is_named_and_its_end_is_the_alerts),
        T(the_dead_mans_switch_beats),
        T(many_paths_are_no_more_votes),
        T(shares_and_worst_values_of_many),
        T(globs),
        T(unsound_rules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
