/* What the engine makes of findings and samples: which element is the cause, when a series is stale or over, what the
 * sentences say, which rules are sound. */
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

static bool any_alert(void)
{
    struct alert a;
    size_t cursor = 0;

    return alerts_next_alert(engine, &cursor, &a);
}

/* One rule for every kind of finding. */
static void rule_for_all(void)
{
    kit_rule(0, "all", ALERT_ON_FINDING)->findings = UINT64_MAX;
    kit_start();
}

/* ---- causes ---- */

/* Host 0 has NICs 0 to 7, host 1 has 8 to 15; the sayer is host 1. */
static void each_kind_of_finding_has_its_cause(void **state)
{
    static const struct {
        enum finding_kind kind;
        uint32_t from, to, from_host, to_host;
        enum element_kind suspect_kind;
        const char *suspect, *cause, *host;
    } cases[] = {
        {FINDING_LINK_DOWN, 11, ALERT_NO_ID, 1, ALERT_NO_ID, ELEMENT_UNKNOWN, NULL, "host1/ib3",
         "host1"},
        {FINDING_NIC_GONE, 11, ALERT_NO_ID, 1, ALERT_NO_ID, ELEMENT_UNKNOWN, NULL, "host1/ib3",
         "host1"},
        {FINDING_PATH_DEAD, 3, 11, 0, 1, ELEMENT_TRUNK, "trunk leaf3 - spine1",
         "trunk leaf3 - spine1", ""},
        {FINDING_PATH_DEAD, 3, 11, 0, 1, ELEMENT_NIC, "host0/ib3 or its link", "host0/ib3",
         "host0"},
        {FINDING_PATH_DEAD, 3, 11, 0, 1, ELEMENT_HOST, "host0", "host0", "host0"},
        {FINDING_PATH_DEAD, 3, 11, 0, 1, ELEMENT_LEAF, "leaf3", "leaf3", ""},
        {FINDING_PATH_DEAD, 3, 11, 0, 1, ELEMENT_SPINE, "spine3", "spine3", ""},
        {FINDING_PATH_DEAD, 3, 11, 0, 1, ELEMENT_ROUTER, "router 10.0.4.1", "router 10.0.4.1", ""},
        {FINDING_PATH_DEAD, 3, 11, 0, 1, ELEMENT_UNKNOWN, NULL, "host0/ib3 -> host1/ib3", ""},
        {FINDING_PATH_LOSSY, 3, 11, 0, 1, ELEMENT_UNKNOWN, NULL, "host0/ib3 -> host1/ib3", ""},
        {FINDING_PEER_SILENT, 3, 11, 0, 1, ELEMENT_UNKNOWN, NULL, "host0", "host0"},
        {FINDING_PEER_SILENT, 11, 3, 1, 0, ELEMENT_UNKNOWN, NULL, "host0", "host0"},
        {FINDING_CLOCK_ASYMMETRY, 3, 11, 0, 1, ELEMENT_UNKNOWN, NULL, "host0/ib3 -> host1/ib3", ""},
        {FINDING_CLOCK_LIAR, ALERT_NO_ID, ALERT_NO_ID, 0, ALERT_NO_ID, ELEMENT_UNKNOWN, NULL,
         "clock of host0", "host0"},
        {FINDING_CLOCK_ASTRAY, ALERT_NO_ID, ALERT_NO_ID, ALERT_NO_ID, ALERT_NO_ID, ELEMENT_UNKNOWN,
         NULL, "clock of host1", "host1"},
        {FINDING_CLOCK_STEP, ALERT_NO_ID, ALERT_NO_ID, 0, ALERT_NO_ID, ELEMENT_UNKNOWN, NULL,
         "clock of host1", "host1"},
        {FINDING_CLOCK_DISRUPTED, ALERT_NO_ID, ALERT_NO_ID, 0, ALERT_NO_ID, ELEMENT_UNKNOWN, NULL,
         "clock of host1", "host1"},
        {FINDING_SENSING_LATE, ALERT_NO_ID, ALERT_NO_ID, 1, ALERT_NO_ID, ELEMENT_UNKNOWN, NULL,
         "agent of host1", "host1"},
        {FINDING_BAD_PACKETS, ALERT_NO_ID, ALERT_NO_ID, 1, ALERT_NO_ID, ELEMENT_UNKNOWN, NULL,
         "agent of host1", "host1"},
        {FINDING_LINK_DOWN, ALERT_NO_ID, ALERT_NO_ID, 1, ALERT_NO_ID, ELEMENT_UNKNOWN, NULL,
         "host1", "host1"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct alert_finding f = kit_link_finding(cases[i].from, cases[i].kind);
        struct alert_incident shown;
        rule_for_all();
        f.said_by = 1;
        f.from_nic = cases[i].from;
        f.to_nic = cases[i].to;
        f.from_host = cases[i].from_host;
        f.to_host = cases[i].to_host;
        f.suspect = suspect_named(cases[i].suspect_kind, cases[i].suspect);
        kit_say(&f, FINDING_OPENED);
        kit_pass(2 * NS_PER_S);
        assert_int_equal(told.events[ALERT_OPENED], 1);
        assert_string_equal(told.cause, cases[i].cause);
        assert_true(alerts_find_incident(engine, told.incident, &shown));
        assert_string_equal(shown.host, cases[i].host);
    }
}

/* A silence by element tells which elements could explain an alert: they are what it is grouped by. */
static bool could_be(const struct alert_finding *f, const char *element)
{
    struct alert_silence s = {
        .id = 1, .from_utc_ns = UTC_AT_START, .until_utc_ns = UTC_AT_START + 600 * NS_PER_S};

    rule_for_all();
    snprintf(s.match.element, sizeof(s.match.element), "%s", element);
    assert_int_equal(alerts_silence(engine, now, &s), 0);
    kit_say(f, FINDING_OPENED);
    kit_pass(2 * NS_PER_S);
    return kit_alert().silenced;
}

static void what_else_could_explain_it(void **state)
{
    const struct alert_finding link = kit_link_finding(11, FINDING_LINK_DOWN),
                               guess = kit_path_finding(3, 11, ELEMENT_UNKNOWN, NULL, false),
                               trunk = kit_path_finding(3, 11, ELEMENT_TRUNK,
                                                        "trunk leaf3 - spine1", true),
                               doubted = kit_path_finding(3, 11, ELEMENT_TRUNK,
                                                          "trunk leaf3 - spine1", false),
                               nic = kit_path_finding(3, 11, ELEMENT_NIC, "host0/ib3 or its link",
                                                      true),
                               far = kit_path_finding(3, 11, ELEMENT_TRUNK,
                                                      "trunk router 10.0.0.1 - router 10.0.0.2",
                                                      true);
    const struct {
        const struct alert_finding *f;
        const char *element;
        bool could;
    } cases[] = {
        {&link, "host1/ib3", true},
        {&link, "host1", true},
        {&link, "leaf3", true},
        {&link, "leaf4", false},
        {&guess, "host0/ib3", true},
        {&guess, "host1/ib3", true},
        {&guess, "host0", true},
        {&guess, "host1", true},
        {&guess, "leaf3", false},
        {&trunk, "spine1", true},
        {&trunk, "leaf3", true},
        {&trunk, "host0", false},
        {&trunk, "host1/ib3", false},
        {&doubted, "spine1", true},
        {&doubted, "host0", true},
        {&doubted, "host1/ib3", true},
        {&nic, "host0", true},
        {&nic, "leaf3", true},
        {&nic, "host1", false},
        {&nic, "host1/ib3", false},
        {&far, "router 10.0.0.1", true},
        {&far, "router 10.0.0.2", true},
        {&far, "trunk router 10.0.0.1 - router 10.0.0.2", true},
        {&far, "spine1", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(could_be(cases[i].f, cases[i].element), cases[i].could);
    }
}

/* A path's series: the path, its NICs, their hosts; a figure of the controller is not the fleet's. */
static void each_scope_has_its_cause(void **state)
{
    static const struct {
        enum alert_metric metric;
        enum alert_scope scope;
        const char *cause;
    } cases[] = {
        {ALERT_PATH_LOSS, ALERT_PER_PATH, "host0/ib3 -> host1/ib3"},
        {ALERT_LINK_SPEED, ALERT_PER_LINK, "host1/ib3"},
        {ALERT_CLOCK_HARD, ALERT_PER_HOST, "clock of host1"},
        {ALERT_CLOCK_STATISTICAL, ALERT_PER_HOST, "clock of host1"},
        {ALERT_CLOCK_SYNCED, ALERT_PER_HOST, "clock of host1"},
        {ALERT_CERTIFICATE_DAYS, ALERT_PER_HOST, "certificate of host1"},
        {ALERT_AGENT_CPU, ALERT_PER_HOST, "agent of host1"},
        {ALERT_HOST_REPORT, ALERT_PER_HOST, "host1"},
        {ALERT_PATH_LOSS, ALERT_PER_RAIL, "rail 3"},
        {ALERT_PATH_LOSS, ALERT_PER_FLEET, "the fleet"},
        {ALERT_LEVELS_BROKEN, ALERT_PER_FLEET, "the controller"},
        {ALERT_JOB_DELAY_P99, ALERT_PER_JOB, "job train"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct alert_rule *r = kit_rule(0, "series", ALERT_ON_THRESHOLD);
        const struct alert_metric_info *m = alert_metric_info(cases[i].metric);
        r->metric = (uint8_t)cases[i].metric;
        r->scope = (uint8_t)cases[i].scope;
        r->limit = 10;
        r->aggregate = m->scope == cases[i].scope ? ALERT_EACH : ALERT_MAX;
        kit_start();
        const struct alert_sample s = {.metric = cases[i].metric,
                                       .host = 1,
                                       .nic = 11,
                                       .peer = 3,
                                       .port = 7641,
                                       .job = 7,
                                       .value = 11};
        for (int k = 0; k < 15; k++) {
            alerts_on_sample(engine, now, &s);
            kit_pass(NS_PER_S);
        }
        assert_int_equal(told.events[ALERT_OPENED], 1);
        assert_string_equal(told.cause, cases[i].cause);
    }
}

/* ---- findings that come and go ---- */

static void a_rule_takes_the_findings_that_it_names(void **state)
{
    struct alert_finding f = kit_path_finding(3, 11, ELEMENT_TRUNK, "trunk leaf3 - spine1", true);
    struct alert_rule *r = kit_rule(0, "trunks", ALERT_ON_FINDING);

    r->findings = 1ULL << FINDING_PATH_DEAD;
    r->suspects = 1U << ELEMENT_TRUNK;
    r->confident = true;
    kit_start();
    f.confident = false;
    kit_say(&f, FINDING_OPENED);
    assert_false(any_alert());
    f.confident = true;
    f.suspect.kind = ELEMENT_SPINE;
    kit_say(&f, FINDING_UPDATED);
    assert_false(any_alert());
    f.kind = FINDING_PATH_LOSSY;
    f.suspect.kind = ELEMENT_TRUNK;
    kit_say(&f, FINDING_UPDATED);
    assert_false(any_alert());
    f.kind = FINDING_KIND_COUNT; /* of a later version */
    kit_say(&f, FINDING_UPDATED);
    assert_false(any_alert());
    f.kind = FINDING_PATH_DEAD;
    kit_say(&f, FINDING_UPDATED);
    assert_int_equal(kit_alert().state, ALERT_FIRING);
    assert_int_equal(kit_counters().findings, 5);
    f.suspect.kind = ELEMENT_SPINE; /* not what it was taken for */
    kit_say(&f, FINDING_UPDATED);
    assert_false(any_alert());
    assert_int_equal(kit_counters().firing, 0);
}

/* Numbers are one host's and one run's: what another one closes is another finding. */
static void findings_are_known_by_host_run_and_number(void **state)
{
    struct alert_finding f = kit_link_finding(3, FINDING_LINK_DOWN), other;

    kit_finding_rules();
    f.since.ns = INT64_MAX / 2; /* no alert is of the future */
    kit_say(&f, FINDING_OPENED);
    assert_int_equal(kit_alert().since.ns, now.ns);
    kit_say(&f, FINDING_OPENED); /* again: the same one */
    assert_int_equal(kit_counters().firing, 1);
    other = f;
    other.said_by = 1;
    kit_say(&other, FINDING_CLOSED);
    other = f;
    other.run++;
    kit_say(&other, FINDING_CLOSED);
    other = f;
    other.number++;
    kit_say(&other, FINDING_CLOSED);
    assert_int_equal(kit_counters().firing, 1);
    alerts_on_run(engine, now, 1, f.run + 1); /* another host's agent */
    alerts_on_run(engine, now, 0, f.run);     /* its own, which it was already */
    alerts_on_host_removed(engine, now, 1);
    assert_int_equal(kit_counters().firing, 1);
    alerts_on_run(engine, now, 0, f.run + 1);
    assert_int_equal(kit_counters().firing, 0);
    kit_say(&f, FINDING_OPENED);
    assert_int_equal(kit_counters().firing, 1);
    alerts_on_host_removed(engine, now, 0);
    assert_int_equal(kit_counters().firing, 0);
}

/* A host that says nothing any more: its findings are marked, and counted as they are. */
static void findings_of_a_silent_host_are_stale(void **state)
{
    struct alert_finding f = kit_link_finding(11, FINDING_LINK_DOWN);

    kit_finding_rules();
    living = 2;
    kit_say(&f, FINDING_OPENED);
    kit_pass(20 * NS_PER_S);
    assert_false(kit_alert().stale);
    living = 1;
    kit_pass(45 * NS_PER_S);
    assert_true(kit_alert().stale);
    assert_int_equal(kit_alert().state, ALERT_FIRING);
    living = 2;
    kit_pass(15 * NS_PER_S);
    assert_false(kit_alert().stale);
}

/* One host's word about others wakes nobody; a second one's does. */
static void hearsay_wakes_nobody_alone(void **state)
{
    struct alert_finding f = kit_path_finding(3, 11, ELEMENT_SPINE, "spine1", true);

    kit_finding_rules();
    rules[1].severity = ALERT_PAGE;
    kit_start();
    f.hearsay = true;
    kit_say(&f, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(told.pages, 0);
    f.number++;
    kit_say(&f, FINDING_OPENED); /* the same host says it of another path */
    kit_pass(5 * NS_PER_S);
    assert_int_equal(told.pages, 0);
    f.said_by = 20;
    kit_say(&f, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(told.pages, 1);
}

static uint64_t tenant_of(void *context, uint32_t host)
{
    (void)context;
    return host < 20 ? 1 : 2;
}

/* Nor do two hosts of one tenant, about another's. */
static void one_tenant_alone_wakes_nobody(void **state)
{
    struct alert_finding f = kit_path_finding(3, 11, ELEMENT_SPINE, "spine1", true);

    kit_finding_rules();
    rules[1].severity = ALERT_PAGE;
    kit_tenant = tenant_of;
    kit_start();
    f.hearsay = true;
    for (f.said_by = 1; f.said_by < 6; f.said_by++) {
        kit_say(&f, FINDING_OPENED);
        kit_pass(5 * NS_PER_S);
    }
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(told.pages, 0);
    f.said_by = 20;
    kit_say(&f, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(told.pages, 1);
}

/* Four hosts say as much as there is room for: what others say is told all the same. */
static void who_says_much_silences_nobody(void **state)
{
    struct alert_finding f = kit_link_finding(8, FINDING_LINK_DOWN);

    kit_finding_rules();
    config.alert_max = 16;
    kit_start();
    for (uint32_t n = 0; n < 64; n++) {
        f.said_by = 2 + n % 4;
        f.number++;
        kit_say(&f, FINDING_OPENED);
    }
    assert_int_equal(kit_counters().firing, 16);
    const uint64_t dropped = kit_counters().alerts_dropped;
    for (uint32_t h = 0; h < 2; h++) {
        f = kit_link_finding(8 * (h + 9), FINDING_LINK_DOWN);
        kit_say(&f, FINDING_OPENED);
        struct alert a;
        size_t cursor = 0;
        bool there = false;
        while (alerts_next_alert(engine, &cursor, &a)) {
            there = there || a.nic == f.from_nic;
        }
        assert_true(there);
    }
    assert_int_equal(kit_counters().firing, 16);
    assert_true(kit_counters().alerts_dropped > dropped);
}

/* ---- series ---- */

static struct alert_rule *threshold(enum alert_metric metric, enum alert_scope scope, double limit)
{
    struct alert_rule *r = kit_rule(0, "series", ALERT_ON_THRESHOLD);

    r->metric = (uint8_t)metric;
    r->scope = (uint8_t)scope;
    r->limit = limit;
    return r;
}

static void a_series_that_stops_is_stale_and_then_over(void **state)
{
    (void)threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 10);
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
    assert_true(any_alert());
    kit_pass(20 * NS_PER_S); /* the host speaks, and measures it no longer */
    assert_false(any_alert());
    kit_sample(ALERT_LINK_SPEED, 11, 20);
    living = 1;
    kit_pass(2000 * NS_PER_S); /* the host is silent: nobody knows that it is over */
    assert_true(kit_alert().stale);
    rules[0].hold = span_s(3000);
    kit_start();
    kit_sample(ALERT_LINK_SPEED, 11, 20);
    kit_pass(70 * NS_PER_S); /* pending, and not seen to last */
    assert_false(any_alert());
}

/* What waits for a host that is silent now wakes the caller for nothing. */
static void a_frozen_alert_has_no_deadline(void **state)
{
    threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 10)->hold = span_s(40);
    kit_start();
    living = 0;
    kit_sample(ALERT_LINK_SPEED, 11, 20);
    kit_pass(45 * NS_PER_S);
    assert_int_equal(kit_alert().state, ALERT_PENDING);
    assert_true(kit_alert().stale);
    alerts_tick(engine, now);
    assert_true(mono_before(now, alerts_deadline(engine)));
}

/* Names come and go: those of alerts that are over make room. */
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

/* Below a floor; between limit and clear nothing changes; what is no number is no value. */
static void floors_and_hysteresis(void **state)
{
    threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 100)->below = true;
    rules[0].clear = 200;
    kit_start();
    kit_sample(ALERT_LINK_SPEED, 3, 100);
    assert_false(any_alert());
    kit_sample(ALERT_LINK_SPEED, 3, 150);
    assert_false(any_alert());
    kit_sample(ALERT_LINK_SPEED, 3, 99);
    assert_true(any_alert());
    kit_sample(ALERT_LINK_SPEED, 3, 150);
    kit_sample(ALERT_LINK_SPEED, 3, NAN);
    kit_sample(ALERT_LINK_SPEED, 3, INFINITY);
    kit_sample(ALERT_METRIC_COUNT, 3, 1);
    assert_true(any_alert());
    kit_sample(ALERT_LINK_SPEED, 3, 200);
    assert_false(any_alert());
    (void)threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 100);
    kit_start();
    kit_sample(ALERT_LINK_SPEED, 3, 100);
    assert_false(any_alert());
    kit_sample(ALERT_LINK_SPEED, 3, 101);
    kit_sample(ALERT_LINK_SPEED, 4, 50); /* another link's */
    assert_true(any_alert());
    kit_sample(ALERT_LINK_SPEED, 3, 100);
    assert_false(any_alert());
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
            struct alert_rule *r = threshold(ALERT_LINK_SPEED, ALERT_PER_FLEET,
                                             beyond ? cases[i].beyond : cases[i].within);
            r->aggregate = (uint8_t)cases[i].aggregate;
            r->below = cases[i].below;
            kit_start();
            members(0);
            kit_pass(9 * NS_PER_S);
            assert_false(any_alert()); /* the round isn't over */
            kit_pass(3 * NS_PER_S);
            assert_int_equal(any_alert(), beyond);
        }
    }
    struct alert_rule *r = threshold(ALERT_LINK_SPEED, ALERT_PER_FLEET, 15);
    r->aggregate = ALERT_SHARE; /* three of four are above */
    for (int beyond = 0; beyond < 2; beyond++) {
        r->share = beyond ? 0.74 : 0.75;
        kit_start();
        members(0);
        kit_pass(12 * NS_PER_S);
        assert_int_equal(any_alert(), beyond);
    }
    members(-30); /* and the next round begins with nothing of this one */
    kit_pass(12 * NS_PER_S);
    assert_false(any_alert());
}

/* Counts slide out of their window, a twelfth at a time; each link has its own. */
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
    assert_false(any_alert()); /* five aren't more than five */
    kit_pass(65 * NS_PER_S);
    kit_sample(ALERT_LINK_DOWNS, 3, 108); /* the first three are out of it: five again */
    assert_false(any_alert());
    kit_sample(ALERT_LINK_DOWNS, 3, 109);
    assert_int_equal(kit_alert().nic, 3);
    kit_sample(ALERT_LINK_DOWNS, 3, 109); /* nothing new, and it goes on */
    assert_true(any_alert());
    kit_pass(70 * NS_PER_S); /* it ends when enough has slid out */
    assert_false(any_alert());
}

/* Few of many links count at a time: the place of what slid out of its window is another's. */
static void a_window_that_ran_empty_makes_room(void **state)
{
    const uint32_t places = 128 / 4 + 64; /* as series_init() sizes them */

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
    assert_false(any_alert()); /* no place is left, and that is counted */
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
    assert_false(any_alert()); /* what never came isn't missed */
    kit_sample(ALERT_LINK_UP, 3, 1);
    kit_sample(ALERT_LINK_UP, 11, 1);
    kit_pass(95 * NS_PER_S);
    assert_false(any_alert());
    kit_sample(ALERT_LINK_UP, 3, 1);
    kit_pass(10 * NS_PER_S);
    assert_int_equal(kit_alert().nic, 11);
    assert_int_equal(kit_alert().host, 1);
    kit_sample(ALERT_LINK_UP, 11, 1);
    assert_false(any_alert());
    kit_pass(50 * NS_PER_S);
    alerts_on_host_removed(engine, now, 1); /* nobody misses it any more */
    kit_pass(200 * NS_PER_S);
    assert_int_equal(kit_alert().nic, 3);
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
    assert_true(any_alert());
    alerts_on_rules_refused(engine, now, NULL);
    assert_false(any_alert());
    alerts_on_rules_refused(engine, now, NULL);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
}

static void what_did_not_fit_is_told_and_over_when_it_fits_again(void **state)
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
    assert_false(any_alert());
}

/* It came, and comes no more; or another fleet's hosts are gone with it, which isn't the rule's fault. */
static void a_rule_whose_series_ended_says_any_more(void **state)
{
    (void)threshold(ALERT_PATH_LOSS, ALERT_PER_PATH, 100);
    config.blind = span_s(100);
    kit_start();
    kit_sample(ALERT_PATH_LOSS, 3, 0);
    kit_pass(99 * NS_PER_S);
    assert_false(any_alert());
    kit_pass(10 * NS_PER_S);
    assert_string_equal(kit_alert().rule_name, "rule-not-evaluated");
    kit_pass(NS_PER_S);
    assert_non_null(strstr(told.text, "rule series: can't be evaluated, nobody reports path.loss "
                                      "any more; suspect: unknown; check that agents report it"));
    living = 0;
    kit_pass(70 * NS_PER_S);
    assert_false(any_alert());
}

/* ---- sentences ---- */

static const char *sentence(enum alert_metric metric, enum alert_scope scope, double value,
                            double limit)
{
    static char text[ALERT_TEXT_MAX];
    struct alert_rule *r = threshold(metric, scope, limit);
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
                        "us, above 100.000 us" SINCE "host0/ib3 -> host1/ib3; look");
    assert_non_null(strstr(sentence(ALERT_PATH_OWD_P99, ALERT_PER_PATH, 1500000, 999999),
                           " is 1.500 ms, above 999.999 us,"));
    assert_non_null(strstr(sentence(ALERT_PATH_OWD_P99, ALERT_PER_PATH, 1000000, 1),
                           " is 1.000 ms, above 0.001 us,"));
    assert_string_equal(sentence(ALERT_PATH_LOSS, ALERT_PER_PATH, 12300, 100),
                        "host0/ib3 -> host1/ib3, path by port 7641: loss is 1.23 %, above 0.01 "
                        "%" SINCE "host0/ib3 -> host1/ib3; look");
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
        threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 10)->hold = span_ns(cases[i].ns);
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

/* Of several alerts the worst is quoted, of equals the oldest; rules by name, four at most. */
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

/* A metric is judged where it is measured, or for something larger that it is a part of. */
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
            struct alert_rule *r = threshold(metrics[m], (enum alert_scope)scope, 1);
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
    const struct alert_rule good = *threshold(ALERT_LINK_SPEED, ALERT_PER_LINK, 10);
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
        T(each_kind_of_finding_has_its_cause),
        T(what_else_could_explain_it),
        T(each_scope_has_its_cause),
        T(a_rule_takes_the_findings_that_it_names),
        T(findings_are_known_by_host_run_and_number),
        T(findings_of_a_silent_host_are_stale),
        T(hearsay_wakes_nobody_alone),
        T(one_tenant_alone_wakes_nobody),
        T(who_says_much_silences_nobody),
        T(a_series_that_stops_is_stale_and_then_over),
        T(a_frozen_alert_has_no_deadline),
        T(elements_are_given_back),
        T(floors_and_hysteresis),
        T(aggregates_of_a_rail_of_members),
        T(counts_within_a_sliding_window),
        T(a_window_that_ran_empty_makes_room),
        T(an_absence_begins_and_ends),
        T(refused_rules_are_an_alert_until_they_are_mended),
        T(what_did_not_fit_is_told_and_over_when_it_fits_again),
        T(a_rule_whose_series_ended_says_any_more),
        T(values_are_told_in_their_units),
        T(spans_are_told_in_their_units),
        T(the_worst_of_many_is_quoted),
        T(every_metric_is_found_by_its_name),
        T(scopes_that_a_metric_reaches),
        T(each_fault_of_a_rule_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
