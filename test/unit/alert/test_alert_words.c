/* The sentences of alerts, and the errors of a rule. */
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

/* ---- sentences ---- */

static const char *sentence(enum alert_metric metric, enum alert_scope scope, double value,
                            double limit)
{
    static char text[ALERT_TEXT_MAX];
    struct alert_rule *r = kit_threshold(metric, scope, limit);
    const struct alert_sample s = {
        .metric = metric, .host = 1, .nic = 11, .peer = 3, .port = 7641, .job = 7, .value = value};

    r->below = value < limit;
    snprintf(r->advice, sizeof(r->advice), "look");
    kit_start();
    alerts_on_sample(engine, now, &s);
    snprintf(text, sizeof(text), "%s", kit_alert().text);
    return text;
}

static void values_are_told_in_their_units(void **state)
{
#define SINCE ", since 2026-11-18 11:06:40.000000 UTC; suspect: "
    assert_string_equal(sentence(ALERT_PATH_OWD_P99, ALERT_PER_PATH, 150000, 100000),
                        "host0/ib3 -> host1/ib3, path by port 7641: p99 one-way delay is 150.000 "
                        "us, above 100.000 us" SINCE
                        "host0/ib3 -> host1/ib3; look; reported by host1");
    assert_non_null(strstr(sentence(ALERT_PATH_OWD_P99, ALERT_PER_PATH, 1500000, 999999),
                           " is 1.500 ms, above 999.999 us,"));
    assert_non_null(strstr(sentence(ALERT_PATH_OWD_P99, ALERT_PER_PATH, 1000000, 1),
                           " is 1.000 ms, above 0.001 us,"));
    assert_string_equal(sentence(ALERT_PATH_LOSS, ALERT_PER_PATH, 12300, 100),
                        "host0/ib3 -> host1/ib3, path by port 7641: loss is 1.23 %, above 0.01 "
                        "%" SINCE "host0/ib3 -> host1/ib3; look; reported by host1");
    assert_string_equal(sentence(ALERT_LINK_SPEED, ALERT_PER_LINK, 100000, 400000),
                        "host1/ib3: link speed is 100000 Mbit/s, below 400000 Mbit/s" SINCE
                        "host1/ib3; look");
    assert_string_equal(sentence(ALERT_AGENT_MEMORY, ALERT_PER_HOST, 3 * 1048576, 1048576),
                        "host1: memory of the agent is 3.0 MiB, above 1.0 MiB" SINCE
                        "agent of host1; look");
    assert_string_equal(sentence(ALERT_CERTIFICATE_DAYS, ALERT_PER_HOST, 6.5, 7),
                        "host1: days left of the host's certificate is 6.5 days, below 7 days" SINCE
                        "certificate of host1; look");
    assert_string_equal(sentence(ALERT_CLOCK_SYNCED, ALERT_PER_HOST, 0, 1),
                        "host1: clock in sync is 0, below 1" SINCE "clock of host1; look");
}

static void spans_are_told_in_their_units(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } cases[] = {
        {172800 * NS_PER_S, "for 2 d,"}, {86400 * NS_PER_S, "for 1 d,"},
        {5400 * NS_PER_S, "for 1.5 h,"}, {60 * NS_PER_S, "for 1 min,"},
        {59 * NS_PER_S, "for 59 s,"},    {250 * NS_PER_MS, "for 250 ms,"},
        {1500, "for 1.5 us,"},           {999, "for 999 ns,"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        kit_threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 10)->hold = span_ns(cases[i].ns);
        kit_start();
        kit_sample(ALERT_LINK_SPEED, 3, 20);
        assert_non_null(strstr(kit_alert().text, cases[i].text));
    }
    kit_rule(0, "downs", ALERT_ON_COUNT)->metric = ALERT_LINK_DOWNS;
    rules[0].scope = ALERT_PER_LINK;
    rules[0].hold = span_s(0);
    rules[0].limit = 2;
    rules[0].within = span_s(3600);
    kit_start();
    kit_sample(ALERT_LINK_DOWNS, 3, 0);
    kit_sample(ALERT_LINK_DOWNS, 3, 3);
    assert_non_null(
        strstr(kit_alert().text, "host0/ib3: 3 link downs within 1 h, more than 2, since 2026-"));
    kit_rule(0, "silent", ALERT_ON_ABSENCE)->metric = ALERT_LINK_UP;
    rules[0].scope = ALERT_PER_LINK;
    rules[0].within = span_s(100);
    kit_start();
    kit_sample(ALERT_LINK_UP, 3, 1);
    kit_pass(102 * NS_PER_S);
    assert_non_null(strstr(kit_alert().text, "host0/ib3: no carrier for more than 1.7 min, since"));
}

/* Of several alerts the worst is quoted, of equal ones the oldest. Rules are listed by name, four at most. */
static void the_worst_of_many_is_quoted(void **state)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    struct alert_finding f[5];
    struct alert_incident i;

    for (uint32_t k = 0; k < 5; k++) {
        kit_rule(k, names[k], ALERT_ON_FINDING)->findings = 1ULL << (FINDING_LINK_DOWN + k);
        rules[k].severity = k == 2 || k == 3 ? ALERT_PAGE : ALERT_INFO;
    }
    kit_start();
    for (uint32_t k = 0; k < 5; k++) {
        f[k] = kit_link_finding(3, (enum finding_kind)(FINDING_LINK_DOWN + k));
        f[k].text = names[k];
        kit_say(&f[k], FINDING_OPENED);
    }
    kit_pass(NS_PER_S);
    assert_true(alerts_find_incident(engine, 1, &i));
    assert_non_null(
        strstr(i.text, "host0/ib3: 5 alerts (e, d, c, b) about 1 NIC of 1 host, since"));
    assert_non_null(strstr(i.text, "; the worst of them: c"));
    assert_int_equal(i.severity, ALERT_PAGE);
}

/* An element without a name is shown by its number. */
static void an_element_without_a_name_has_a_number(void **state)
{
    kit_finding_rules();
    config.fleet = (struct alert_fleet){0};
    alerts_free(engine);
    engine = alerts_new(&config, now);
    alerts_on_clock(engine, now, UTC_AT_START - now.ns, UTC_AT_START - now.ns);
    const struct alert_finding f = kit_link_finding(11, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(2 * NS_PER_S);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_string_equal(told.cause, "nic 11");
}

/* ---- rules ---- */

static void every_metric_is_found_by_its_name(void **state)
{
    for (uint32_t m = ALERT_METRIC_NONE + 1; m < ALERT_METRIC_COUNT; m++) {
        const struct alert_metric_info *info = alert_metric_info(m);
        assert_non_null(info);
        assert_non_null(info->words);
        assert_int_equal(alert_metric_find(info->name), m);
    }
    assert_null(alert_metric_info(ALERT_METRIC_NONE));
    assert_null(alert_metric_info(ALERT_METRIC_COUNT));
    assert_int_equal(alert_metric_find("no.such"), ALERT_METRIC_NONE);
    assert_string_equal(alert_severity_word(ALERT_PAGE), "page");
    assert_string_equal(alert_severity_word(ALERT_SEVERITY_COUNT), "unknown");
    assert_string_equal(alert_scope_word(ALERT_PER_FLEET), "fleet");
    assert_string_equal(alert_scope_word(ALERT_SCOPE_COUNT), "unknown");
}

/* A metric is judged where it is measured, or for something larger that contains it. */
static void scopes_that_a_metric_reaches(void **state)
{
    static const enum alert_metric metrics[] = {ALERT_PATH_LOSS, ALERT_LINK_SPEED, ALERT_AGENT_CPU,
                                                ALERT_JOB_DELAY_P99, ALERT_LEVELS_BROKEN};
    static const bool reaches[][ALERT_SCOPE_COUNT] = {
        /* path, link, host, job, rail, fleet */
        {true, true, true, false, true, true},     {false, true, true, false, true, true},
        {false, false, true, false, false, true},  {false, false, false, true, false, true},
        {false, false, false, false, false, true},
    };

    for (size_t m = 0; m < sizeof(metrics) / sizeof(metrics[0]); m++) {
        for (uint32_t scope = 0; scope < ALERT_SCOPE_COUNT; scope++) {
            struct alert_rule *r = kit_threshold(metrics[m], (enum alert_scope)scope, 1);
            r->aggregate = ALERT_MAX;
            const char *why = alert_rule_check(r);
            assert_int_equal(why == NULL, reaches[m][scope]);
            assert_true(why == NULL || strstr(why, "per that scope") != NULL);
        }
    }
}

static const char *refused(struct alert_rule r)
{
    const char *why = alert_rule_check(&r);

    return why != NULL ? why : "";
}

static void each_fault_of_a_rule_is_named(void **state)
{
    const struct alert_rule good = *kit_threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 10);
    struct alert_rule r = good;

    assert_string_equal(refused(r), "");
    r.severity = ALERT_SEVERITY_COUNT;
    assert_non_null(strstr(refused(r), "range"));
    r = good, r.scope = ALERT_SCOPE_COUNT;
    assert_non_null(strstr(refused(r), "range"));
    r = good, r.aggregate = ALERT_AGGREGATE_COUNT;
    assert_non_null(strstr(refused(r), "range"));
    r = good, r.hold.ns = -1;
    assert_non_null(strstr(refused(r), "range"));
    r = good, r.wait.ns = -1;
    assert_non_null(strstr(refused(r), "range"));
    r = good, memset(r.name, 'x', sizeof(r.name));
    assert_non_null(strstr(refused(r), "name"));
    r = good, r.limit = NAN;
    assert_non_null(strstr(refused(r), "limit"));
    r = good, r.clear = 11;
    assert_non_null(strstr(refused(r), "good side"));
    r = good, r.clear = 10;
    assert_string_equal(refused(r), "");
    r = good, r.below = true, r.clear = 9;
    assert_non_null(strstr(refused(r), "good side"));
    r = good, r.below = true, r.clear = 10;
    assert_string_equal(refused(r), "");
    r = good, r.metric = ALERT_METRIC_NONE;
    assert_non_null(strstr(refused(r), "no such metric"));
    r = good, r.condition = 99;
    assert_non_null(strstr(refused(r), "no such condition"));
    r = good, r.condition = ALERT_ON_FINDING;
    assert_non_null(strstr(refused(r), "no kind of finding"));
    r = good, r.condition = ALERT_ON_RATE, r.within = span_s(60);
    assert_non_null(strstr(refused(r), "no counter"));
    r.metric = ALERT_LINK_DOWNS;
    assert_string_equal(refused(r), "");
    r.limit = 0;
    assert_string_equal(refused(r), "");
    r.limit = -1;
    assert_non_null(strstr(refused(r), "from 0 up"));
    r.limit = 1, r.within = span_s(0);
    assert_non_null(strstr(refused(r), "window"));
    r.within = span_s(1), r.aggregate = ALERT_MAX;
    assert_non_null(strstr(refused(r), "where they are measured"));
    r.aggregate = ALERT_EACH, r.scope = ALERT_PER_HOST;
    assert_non_null(strstr(refused(r), "where they are measured"));
    assert_null(alerts_new(
        &(struct alert_config){.rules = &r, .rule_count = 1, .alert_max = 16, .watch_max = 16},
        (struct mono){1}));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_begin, kit_end)
    const struct CMUnitTest tests[] = {
        T(values_are_told_in_their_units),    T(spans_are_told_in_their_units),
        T(the_worst_of_many_is_quoted),       T(an_element_without_a_name_has_a_number),
        T(every_metric_is_found_by_its_name), T(scopes_that_a_metric_reaches),
        T(each_fault_of_a_rule_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
