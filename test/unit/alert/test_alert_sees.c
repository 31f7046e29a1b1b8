/* From findings to incidents: which element is the cause, which others are candidates, which findings a rule takes, whose
 * findings give pages. */
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

/* One rule for every kind of finding. */
static void rule_for_all(void)
{
    kit_rule(0, "all", ALERT_ON_FINDING)->findings = UINT64_MAX;
    kit_start();
}

/* ---- causes ---- */

/* Host 0 has NICs 0 to 7, host 1 has 8 to 15. Host 1 reports. */
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
        {FINDING_RDMA_PORT, 11, ALERT_NO_ID, 1, ALERT_NO_ID, ELEMENT_UNKNOWN, NULL, "host1/ib3",
         "host1"},
        {FINDING_RDMA_PORT, ALERT_NO_ID, ALERT_NO_ID, 1, ALERT_NO_ID, ELEMENT_UNKNOWN, NULL,
         "host1", "host1"},
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

/* True if the element is a candidate for the alert: a silence by element shows which elements group it. */
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

static void other_causes_are_listed(void **state)
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

/* A path's series has candidates: the path, its NICs, their hosts. A figure of the controller is not the fleet's. */
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
    struct alert_finding f = kit_path_finding(3, 11, ELEMENT_TRUNK, "trunk leaf3 - spine1", false);
    struct alert_rule *r = kit_rule(0, "trunks", ALERT_ON_FINDING);

    r->findings = 1ULL << FINDING_PATH_DEAD;
    r->suspects = 1U << ELEMENT_TRUNK;
    r->confident = true;
    kit_start();
    kit_say(&f, FINDING_OPENED);
    assert_false(kit_any_alert());
    suspect_set(&f, f.choice.one_of[0], true);
    f.suspect.kind = ELEMENT_SPINE;
    kit_say(&f, FINDING_UPDATED);
    assert_false(kit_any_alert());
    f.kind = FINDING_PATH_LOSSY;
    f.suspect.kind = ELEMENT_TRUNK;
    kit_say(&f, FINDING_UPDATED);
    assert_false(kit_any_alert());
    f.kind = FINDING_KIND_COUNT; /* of a later version */
    kit_say(&f, FINDING_UPDATED);
    assert_false(kit_any_alert());
    f.kind = FINDING_PATH_DEAD;
    kit_say(&f, FINDING_UPDATED);
    assert_int_equal(kit_alert().state, ALERT_FIRING);
    assert_int_equal(kit_counters().findings, 5);
    f.suspect.kind = ELEMENT_SPINE; /* its suspect has changed */
    kit_say(&f, FINDING_UPDATED);
    assert_false(kit_any_alert());
    assert_int_equal(kit_counters().firing, 0);
}

/* A finding's number belongs to one host and one run: if another one closes it, that is another finding. */
static void findings_are_known_by_host_run_and_number(void **state)
{
    struct alert_finding f = kit_link_finding(3, FINDING_LINK_DOWN), other;

    kit_finding_rules();
    f.since.ns = INT64_MAX / 2; /* no alert begins in the future */
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
    alerts_on_run(engine, now, 0, f.run);     /* the run that it already was */
    alerts_on_host_removed(engine, now, 1);
    assert_int_equal(kit_counters().firing, 1);
    alerts_on_run(engine, now, 0, f.run + 1);
    assert_int_equal(kit_counters().firing, 0);
    kit_say(&f, FINDING_OPENED);
    assert_int_equal(kit_counters().firing, 1);
    alerts_on_host_removed(engine, now, 0);
    assert_int_equal(kit_counters().firing, 0);
}

/* A silent host's findings are marked, and counted as such. */
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
    living = 1;
    kit_pass(45 * NS_PER_S);
    assert_true(kit_alert().stale);
    kit_say(&f, FINDING_UPDATED); /* the host reports: at once */
    assert_false(kit_alert().stale);
}

/* One host's findings about others give no page; a second host's do. */
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
    kit_say(&f, FINDING_OPENED); /* the same host reports it for another path */
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

/* Nor do findings of two hosts of one tenant, about another tenant's. */
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

static struct alert_finding of_trunk(uint32_t said_by, enum finding_kind kind, const char *trunk)
{
    struct alert_finding f = kit_path_finding(3, 11, ELEMENT_TRUNK, trunk, true);

    f.said_by = said_by;
    f.kind = kind;
    f.hearsay = true;
    kit_say(&f, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    return f;
}

/* Another tenant's warning makes it a page. It may be about the same trunk, or about others that turn out to be one spine with
 * it. The order doesn't matter, but a silence of the unconfirmed one does. */
static void a_warning_of_another_tenant_confirms_hearsay(void **state)
{
    for (int shape = 0; shape < 5; shape++) {
        kit_finding_rules();
        kit_rule(2, "path-lossy", ALERT_ON_FINDING)->findings = 1ULL << FINDING_PATH_LOSSY;
        rules[2].severity = ALERT_WARNING;
        kit_tenant = tenant_of;
        kit_start();
        if (shape == 3) {
            struct alert_silence s = {.id = 1,
                                      .from_utc_ns = UTC_AT_START,
                                      .until_utc_ns = UTC_AT_START + 600 * NS_PER_S,
                                      .match = {.rule = "path-dead"}};
            assert_int_equal(alerts_silence(engine, now, &s), 0);
        }
        if (shape == 1) {
            of_trunk(20, FINDING_PATH_LOSSY, "trunk leaf1 - spine1");
        }
        of_trunk(1, FINDING_PATH_DEAD, "trunk leaf1 - spine1");
        assert_int_equal(told.pages, shape == 1);
        of_trunk(shape == 4 ? 2 : 20, FINDING_PATH_LOSSY,
                 shape == 2 ? "trunk leaf2 - spine1" : "trunk leaf1 - spine1");
        assert_int_equal(told.pages, shape < 2);
        of_trunk(shape == 4 ? 2 : 20, FINDING_PATH_LOSSY,
                 shape == 2 ? "trunk leaf3 - spine1" : "trunk leaf1 - spine1");
        assert_int_equal(told.pages, shape < 3);
        assert_string_equal(told.cause, shape == 2 ? "spine1" : "trunk leaf1 - spine1");
    }
}

/* A host measures paths from one NIC of another tenant's: all of that is one host's word. */
static void one_end_of_paths_wakes_nobody_for_another_tenant(void **state)
{
    struct alert_rule *r = kit_threshold(ALERT_PATH_LOSS, ALERT_PER_PATH, 1000);
    struct alert_sample s = {.metric = ALERT_PATH_LOSS, .peer = 3, .port = 7641, .value = 500000};

    r->severity = ALERT_PAGE;
    kit_tenant = tenant_of;
    kit_start();
    for (s.host = 20; s.host < 22; s.host++) { /* two hosts of one tenant */
        for (uint32_t k = 0; k < 4; k++) {
            s.nic = s.host * NIC_PER_HOST + k;
            alerts_on_sample(engine, now, &s);
        }
    }
    kit_drain();
    kit_pass(20 * NS_PER_S);
    assert_string_equal(told.cause, "host0/ib3");
    assert_int_equal(told.pages, 0);
    s.host = 2; /* and one of its own */
    s.nic = 2 * NIC_PER_HOST;
    alerts_on_sample(engine, now, &s);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 1);
}

/* Nor in several reports: a path's page, once sent, doesn't become a page of the other tenant's NIC. */
static void values_one_after_another_wake_nobody_for_another_tenant(void **state)
{
    struct alert_rule *r = kit_threshold(ALERT_PATH_LOSS, ALERT_PER_PATH, 1000);
    struct alert_sample s = {.metric = ALERT_PATH_LOSS, .peer = 3, .port = 7641, .value = 500000};
    unsigned of_paths = 0;

    r->severity = ALERT_PAGE;
    kit_tenant = tenant_of;
    config.routes[0].step_count = 1;
    config.routes[0].steps[0].after = span_s(12);
    config.routes[0].steps[0].receivers = 2;
    kit_start();
    for (s.host = 20; s.host < 22; s.host++) {
        for (uint32_t k = 0; k < 4; k++) {
            s.nic = s.host * NIC_PER_HOST + k;
            alerts_on_sample(engine, now, &s);
            kit_pass(NS_PER_S);
            of_paths = strcmp(told.cause, "host0/ib3") != 0 ? told.pages : of_paths;
        }
    }
    assert_string_equal(told.cause, "host0/ib3");
    assert_in_range(of_paths, 1, 2);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.events[ALERT_ESCALATED], 1); /* as a warning */
    assert_int_equal(told.pages, of_paths);
    s.host = 2; /* and one of its own */
    s.nic = 2 * NIC_PER_HOST;
    alerts_on_sample(engine, now, &s);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(told.pages, of_paths + 1);
}

/* Nor does a more severe value, in an incident that was sent as a path's. */
static void a_louder_value_wakes_nobody_for_another_tenant(void **state)
{
    struct alert_rule *r = kit_threshold(ALERT_PATH_LOSS, ALERT_PER_PATH, 1000);
    struct alert_sample s = {.metric = ALERT_PATH_LOSS, .peer = 3, .port = 7641, .value = 500000};

    r->severity = ALERT_WARNING;
    r = kit_rule(1, "late", ALERT_ON_THRESHOLD);
    r->metric = ALERT_PATH_OWD_P99;
    r->scope = ALERT_PER_PATH;
    r->limit = 1000;
    kit_tenant = tenant_of;
    kit_start();
    s.host = 20;
    for (uint32_t k = 0; k < 3; k++) {
        s.nic = s.host * NIC_PER_HOST + k;
        alerts_on_sample(engine, now, &s);
        kit_pass(k == 0 ? 5 * NS_PER_S : 0);
        s.metric = ALERT_PATH_OWD_P99;
    }
    kit_drain();
    kit_pass(20 * NS_PER_S);
    assert_string_equal(told.cause, "host0/ib3");
    assert_int_equal(told.pages, 0);
    assert_int_equal(kit_counters().pages, 0);
}

/* Nor if it stops to measure the paths. */
static void paths_that_one_end_drops_wake_nobody_for_another_tenant(void **state)
{
    struct alert_rule *r = kit_rule(0, "no-path", ALERT_ON_ABSENCE);
    struct alert_sample s = {.metric = ALERT_PATH_LOSS, .peer = 3, .port = 7641};

    r->metric = ALERT_PATH_LOSS;
    r->scope = ALERT_PER_PATH;
    r->within = span_s(60);
    kit_tenant = tenant_of;
    kit_start();
    for (uint32_t k = 0; k < 4; k++) {
        s.host = 20;
        s.nic = 20 * NIC_PER_HOST + k;
        alerts_on_sample(engine, now, &s);
    }
    kit_drain();
    kit_pass(100 * NS_PER_S);
    assert_string_equal(told.cause, "host0/ib3");
    assert_int_equal(told.pages, 0);
    s.host = 2; /* and one of its own */
    s.nic = 2 * NIC_PER_HOST;
    alerts_on_sample(engine, now, &s);
    kit_pass(100 * NS_PER_S);
    assert_int_equal(told.pages, 1);
}

/* `for` counts from the time of the first report, whatever beginning the host states. */
static void a_fault_reported_as_old_has_to_last(void **state)
{
    struct alert_finding f = kit_path_finding(3, 11, ELEMENT_SPINE, "spine1", true);

    kit_finding_rules();
    rules[1].hold = span_s(2);
    kit_start();
    f.since.ns = now.ns - 600 * NS_PER_S;
    f.heard = now;
    kit_say(&f, FINDING_OPENED);
    assert_int_equal(kit_alert().state, ALERT_PENDING);
    assert_int_equal(kit_alert().since.ns, f.since.ns);
    kit_pass(1900 * NS_PER_MS);
    kit_say(&f, FINDING_UPDATED);
    assert_int_equal(kit_alert().state, ALERT_PENDING);
    kit_pass(200 * NS_PER_MS);
    assert_int_equal(kit_alert().state, ALERT_FIRING);
}

/* Four hosts report as much as there is room for: other hosts' reports give notifications nevertheless. */
static void a_host_with_many_reports_silences_no_other(void **state)
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

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_begin, kit_end)
    const struct CMUnitTest tests[] = {
        T(each_kind_of_finding_has_its_cause),
        T(other_causes_are_listed),
        T(each_scope_has_its_cause),
        T(a_rule_takes_the_findings_that_it_names),
        T(findings_are_known_by_host_run_and_number),
        T(findings_of_a_silent_host_are_stale),
        T(hearsay_wakes_nobody_alone),
        T(one_tenant_alone_wakes_nobody),
        T(a_warning_of_another_tenant_confirms_hearsay),
        T(one_end_of_paths_wakes_nobody_for_another_tenant),
        T(values_one_after_another_wake_nobody_for_another_tenant),
        T(a_louder_value_wakes_nobody_for_another_tenant),
        T(paths_that_one_end_drops_wake_nobody_for_another_tenant),
        T(a_fault_reported_as_old_has_to_last),
        T(a_host_with_many_reports_silences_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
