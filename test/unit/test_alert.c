/* What people are told: once per cause, not at all when somebody works on it, and also when the alerting itself
 * can't see. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/alert/alert.h"

#define UTC_AT_START (1795000000LL * NS_PER_S)
#define NIC_PER_HOST 8
#define HOST_PER_POD 16

static struct alerts *engine;
static struct alert_config config;
static struct alert_rule rules[16];
static struct mono now;

/* Host h, NIC h*8+r; the leaf of rail r in pod h/16 is leaf(pod*8+r). */
static bool nic_of(void *context, uint32_t nic, struct alert_nic *ret)
{
    static char name[32], leaf[32];

    snprintf(name, sizeof(name), "host%u/ib%u", nic / NIC_PER_HOST, nic % NIC_PER_HOST);
    snprintf(leaf, sizeof(leaf), "leaf%u",
             nic / NIC_PER_HOST / HOST_PER_POD * NIC_PER_HOST + nic % NIC_PER_HOST);
    *ret = (struct alert_nic){
        .name = name, .leaf = leaf, .host = nic / NIC_PER_HOST, .rail = nic % NIC_PER_HOST};
    return true;
}
static const char *host_of(void *context, uint32_t host)
{
    static char name[32];

    snprintf(name, sizeof(name), "host%u", host);
    return name;
}

static struct alert_rule *rule(size_t index, const char *name, enum alert_condition condition)
{
    struct alert_rule *r = &rules[index];

    alert_rule_init(r);
    snprintf(r->name, sizeof(r->name), "%s", name);
    r->condition = (uint8_t)condition;
    r->severity = ALERT_PAGE;
    config.rule_count = index + 1 > config.rule_count ? index + 1 : config.rule_count;
    return r;
}

/* All told is kept: what was said, how often somebody was woken. */
static struct {
    unsigned events[ALERT_HEARTBEAT + 1], pages, notifications;
    uint32_t receivers;
    char text[ALERT_TEXT_MAX], cause[ALERT_ELEMENT_MAX];
    uint64_t incident;
} told;

static void drain(void)
{
    struct alert_action action;

    while (alerts_next_action(engine, &action)) {
        if (action.kind == ALERT_ACTION_NOTIFY) {
            told.events[action.event]++;
            told.pages += action.page;
            told.notifications++;
            told.receivers = action.receivers;
            told.incident = action.incident.id;
            snprintf(told.text, sizeof(told.text), "%s", action.incident.text);
            snprintf(told.cause, sizeof(told.cause), "%s", action.incident.cause);
        }
    }
}

static void start(void)
{
    alerts_free(engine);
    now = (struct mono){1000 * NS_PER_S};
    memset(&told, 0, sizeof(told));
    config.rules = rules;
    config.fleet = (struct alert_fleet){.nic = nic_of, .host = host_of};
    config.route_count = 1;
    config.routes[0].receivers = 1;
    config.routes[0].severity = ALERT_INFO;
    engine = alerts_new(&config, now);
    assert_non_null(engine);
    alerts_on_clock(engine, now, UTC_AT_START - now.ns, UTC_AT_START - now.ns);
}

/* Time goes on as a caller would let it: at every deadline a tick, and hosts 0 to `hosts` show life each 10 s. */
static uint32_t living = 1;
static void pass(int64_t ns)
{
    const struct mono end = mono_add(now, span_ns(ns));
    struct mono beat = now;

    while (mono_before(now, end)) {
        now = mono_min(mono_min(alerts_deadline(engine), beat), end);
        if (!mono_before(now, beat)) {
            for (uint32_t h = 0; h < living; h++) {
                alerts_on_host(engine, now, h);
            }
            beat = mono_add(beat, span_s(10));
        }
        alerts_tick(engine, now);
        drain();
    }
}

static int begin(void **state)
{
    memset(&config, 0, sizeof(config));
    memset(rules, 0, sizeof(rules));
    living = 1;
    return 0;
}
static int end(void **state)
{
    alerts_free(engine);
    engine = NULL;
    return 0;
}

static void sample(enum alert_metric metric, uint32_t nic, double value)
{
    const struct alert_sample s = {.metric = metric,
                                   .host = nic / NIC_PER_HOST,
                                   .nic = nic,
                                   .peer = ALERT_NO_ID,
                                   .port = ALERT_NO_ID,
                                   .value = value};

    alerts_on_sample(engine, now, &s);
    drain();
}

static uint32_t next_number;
static struct alert_finding link_finding(uint32_t nic, enum finding_kind kind)
{
    return (struct alert_finding){.said_by = nic / NIC_PER_HOST,
                                  .run = 1,
                                  .number = ++next_number,
                                  .kind = kind,
                                  .from_nic = nic,
                                  .to_nic = ALERT_NO_ID,
                                  .from_host = nic / NIC_PER_HOST,
                                  .to_host = ALERT_NO_ID,
                                  .since = now,
                                  .text = "a sentence"};
}
static struct alert_finding path_finding(uint32_t from, uint32_t to, enum element_kind kind,
                                         const char *suspect, bool confident)
{
    struct alert_finding f = link_finding(to, FINDING_PATH_DEAD);

    f.from_nic = from;
    f.to_nic = to;
    f.from_host = from / NIC_PER_HOST;
    f.to_host = to / NIC_PER_HOST;
    f.suspect_kind = kind;
    f.suspect = suspect;
    f.confident = confident;
    return f;
}
static void say(const struct alert_finding *f, enum finding_phase phase)
{
    struct alert_finding copy = *f;

    copy.phase = phase;
    alerts_on_finding(engine, now, &copy);
    drain();
}

static struct alert_counters counters(void)
{
    struct alert_counters c;

    alerts_counters(engine, &c);
    return c;
}

static void finding_rules(void)
{
    rule(0, "link-down", ALERT_ON_FINDING)->findings = 1ULL << FINDING_LINK_DOWN;
    rules[0].severity = ALERT_WARNING;
    rules[0].scope = ALERT_PER_LINK;
    rule(1, "path-dead", ALERT_ON_FINDING)->findings = 1ULL << FINDING_PATH_DEAD;
    rules[1].wait = span_s(2);
    start();
}

static void a_link_down_is_told_within_its_wait_and_resolved_after(void **state)
{
    struct alert_finding f;

    finding_rules();
    f = link_finding(3, FINDING_LINK_DOWN);
    say(&f, FINDING_OPENED);
    pass(99 * NS_PER_MS);
    assert_int_equal(told.notifications, 0);
    pass(2 * NS_PER_MS);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(told.pages, 0); /* a warning wakes nobody */
    assert_string_equal(told.cause, "host0/ib3");
    assert_string_equal(told.text, "a sentence");
    say(&f, FINDING_CLOSED);
    pass(59 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 0);
    pass(2 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
    assert_int_equal(counters().firing, 0);
    assert_int_equal(counters().incidents_open, 0);
}

static void a_flap_shorter_than_the_wait_is_told_too(void **state)
{
    struct alert_finding f;

    finding_rules();
    f = link_finding(3, FINDING_LINK_DOWN);
    say(&f, FINDING_OPENED);
    pass(20 * NS_PER_MS);
    say(&f, FINDING_CLOSED);
    pass(1 * NS_PER_S);
    assert_int_equal(told.events[ALERT_OPENED], 1);
}

/* 1,000 NICs, 64 spines' worth of trunks to spine1, half of the findings only guess. */
static void a_dead_spine_is_one_incident(void **state)
{
    struct prng p;

    finding_rules();
    living = 125;
    prng_init(&p, 7);
    for (int k = 0; k < 400; k++) {
        const uint32_t from = (uint32_t)prng_below(&p, 1000), to = (uint32_t)prng_below(&p, 1000);
        char trunk[64];
        struct alert_finding f;
        snprintf(trunk, sizeof(trunk), "trunk leaf%u - spine1", from % 64);
        f = path_finding(from, to, ELEMENT_TRUNK, trunk, prng_below(&p, 2) == 0);
        say(&f, FINDING_OPENED);
        pass(4 * NS_PER_MS);
    }
    pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(counters().incidents_open, 1);
    assert_int_equal(counters().firing, 400);
    assert_string_equal(told.cause, "spine1");
    assert_non_null(strstr(told.text, "spine1: "));
}

static void a_spine_named_by_its_findings_is_one_incident(void **state)
{
    finding_rules();
    for (uint32_t k = 0; k < 64; k++) {
        struct alert_finding f = path_finding(k * 8, 512 + k * 8, ELEMENT_SPINE, "spine1", true);
        say(&f, FINDING_OPENED);
        pass(50 * NS_PER_MS);
    }
    pass(5 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    assert_string_equal(told.cause, "spine1");
}

static void two_causes_stay_two(void **state)
{
    finding_rules();
    for (uint32_t k = 0; k < 32; k++) {
        char trunk[64];
        struct alert_finding f;
        snprintf(trunk, sizeof(trunk), "trunk leaf%u - spine1", k);
        f = path_finding(k * 8, 512 + k * 8, ELEMENT_TRUNK, trunk, true);
        say(&f, FINDING_OPENED);
        if (k == 16) { /* in the midst of it, a cable elsewhere */
            f = path_finding(700, 900, ELEMENT_TRUNK, "trunk leaf40 - spine3", true);
            say(&f, FINDING_OPENED);
        }
        pass(20 * NS_PER_MS);
    }
    pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 2);
    assert_int_equal(counters().incidents_open, 2);
}

static void two_links_of_one_leaf_stay_two_and_all_of_them_are_the_leaf(void **state)
{
    struct alert_incident incident;
    size_t cursor = 0;
    unsigned open = 0;

    finding_rules();
    for (uint32_t h = 0; h < 2; h++) {
        struct alert_finding f = link_finding(h * 8 + 5, FINDING_LINK_DOWN);
        say(&f, FINDING_OPENED);
    }
    pass(5 * NS_PER_S);
    assert_int_equal(counters().incidents_open, 2);
    for (uint32_t h = 2; h < 16; h++) {
        struct alert_finding f = link_finding(h * 8 + 5, FINDING_LINK_DOWN);
        say(&f, FINDING_OPENED);
    }
    pass(5 * NS_PER_S);
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

static void a_guess_that_becomes_certain_moves_to_the_right_incident(void **state)
{
    struct alert_finding spine = path_finding(0, 512, ELEMENT_SPINE, "spine1", true), f;

    finding_rules();
    say(&spine, FINDING_OPENED);
    f = path_finding(80, 600, ELEMENT_UNKNOWN, NULL, false);
    say(&f, FINDING_OPENED);
    pass(500 * NS_PER_MS);
    assert_int_equal(counters().incidents_open, 2);
    f.suspect_kind = ELEMENT_SPINE;
    f.suspect = "spine1";
    f.confident = true;
    say(&f, FINDING_UPDATED);
    pass(5 * NS_PER_S);
    assert_int_equal(counters().incidents_open, 1);
    assert_int_equal(told.pages, 1);
    say(&f, FINDING_CLOSED);
    say(&spine, FINDING_CLOSED);
    pass(120 * NS_PER_S);
    assert_int_equal(counters().incidents_open, 0);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
}

/* A guess about a host must not hide the cable that is down for certain. */
static void a_link_down_under_a_guess_is_told(void **state)
{
    struct alert_finding guess = path_finding(0, 80, ELEMENT_HOST, "host10", false), f;

    finding_rules();
    say(&guess, FINDING_OPENED);
    pass(5 * NS_PER_S);
    assert_int_equal(told.notifications, 1);
    f = link_finding(83, FINDING_LINK_DOWN);
    say(&f, FINDING_OPENED);
    pass(NS_PER_S);
    assert_int_equal(told.events[ALERT_WORSE], 1);
    assert_int_equal(told.pages, 1);
    f = link_finding(84, FINDING_LINK_DOWN);
    say(&f, FINDING_OPENED);
    pass(NS_PER_S);
    assert_int_equal(told.events[ALERT_WORSE], 2);
    assert_int_equal(counters().incidents_open, 1);
    f = path_finding(0, 81, ELEMENT_HOST, "host10", false);
    say(&f, FINDING_OPENED); /* nothing new */
    pass(NS_PER_S);
    assert_int_equal(told.events[ALERT_WORSE], 2);
}

static void fifty_flaps_are_one_page(void **state)
{
    double downs = 0;

    finding_rules();
    rule(2, "link-flaps", ALERT_ON_COUNT)->metric = ALERT_LINK_DOWNS;
    rules[2].scope = ALERT_PER_LINK;
    rules[2].limit = 8;
    rules[2].within = span_s(3600);
    start();
    sample(ALERT_LINK_DOWNS, 3, downs);
    for (int k = 0; k < 50; k++) {
        struct alert_finding f = link_finding(3, FINDING_LINK_DOWN);
        say(&f, FINDING_OPENED);
        sample(ALERT_LINK_DOWNS, 3, ++downs);
        pass((k % 7 + 1) * 10 * NS_PER_S);
        say(&f, FINDING_CLOSED);
        pass((k % 5 + 1) * 30 * NS_PER_S);
    }
    assert_int_equal(told.pages, 1);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(counters().incidents_open, 1);
    for (int k = 0; k < 15; k++) {
        pass(500 * NS_PER_S);
        sample(ALERT_LINK_DOWNS, 3, downs);
    }
    assert_int_equal(counters().incidents_open, 0);
    assert_int_equal(told.pages, 1);
}

static void a_counter_that_begins_anew_counts_nothing(void **state)
{
    rule(0, "errors", ALERT_ON_RATE)->metric = ALERT_LINK_RX_ERRORS;
    rules[0].scope = ALERT_PER_LINK;
    rules[0].limit = 1;
    rules[0].within = span_s(60);
    start();
    sample(ALERT_LINK_RX_ERRORS, 3, 1e9);
    pass(NS_PER_S);
    sample(ALERT_LINK_RX_ERRORS, 3, 500); /* a reboot */
    pass(NS_PER_S);
    assert_int_equal(told.notifications, 0);
    sample(ALERT_LINK_RX_ERRORS, 3, 559);
    pass(NS_PER_S);
    assert_int_equal(told.notifications, 0);
    sample(ALERT_LINK_RX_ERRORS, 3, 561); /* 61 within a minute */
    pass(NS_PER_S);
    assert_int_equal(told.pages, 1);
    assert_non_null(strstr(
        told.text, "host0/ib3: receive errors: 1.01667/s over 1 min, above 1/s, since 2026-11-"));
    pass(70 * NS_PER_S); /* it slides out by itself */
    assert_int_equal(counters().firing, 0);
}

static void a_threshold_holds_for_its_time_and_has_hysteresis(void **state)
{
    rule(0, "slow-clock", ALERT_ON_THRESHOLD)->metric = ALERT_CLOCK_HARD;
    rules[0].scope = ALERT_PER_HOST;
    rules[0].limit = 1e6;
    rules[0].clear = 5e5;
    rules[0].hold = span_s(60);
    start();
    sample(ALERT_CLOCK_HARD, 0, 2e6);
    pass(50 * NS_PER_S);
    sample(ALERT_CLOCK_HARD, 0, 1e5);
    sample(ALERT_CLOCK_HARD, 0, 2e6); /* the time begins anew */
    pass(50 * NS_PER_S);
    assert_int_equal(told.pages, 0);
    sample(ALERT_CLOCK_HARD, 0, 2e6);
    pass(11 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    assert_string_equal(told.cause, "clock of host0");
    sample(ALERT_CLOCK_HARD, 0, 7e5);
    assert_int_equal(counters().firing, 1);
    sample(ALERT_CLOCK_HARD, 0, 4e5);
    assert_int_equal(counters().firing, 0);
}

static void a_host_that_falls_silent_is_told_and_its_pending_alerts_freeze(void **state)
{
    struct alert_finding f;

    finding_rules();
    rules[0].hold = span_s(120);
    rules[0].severity = ALERT_PAGE;
    rule(2, "host-silent", ALERT_ON_ABSENCE)->metric = ALERT_HOST_REPORT;
    rules[2].scope = ALERT_PER_HOST;
    rules[2].within = span_s(600);
    start();
    living = 2;
    pass(20 * NS_PER_S);
    f = link_finding(8, FINDING_LINK_DOWN); /* of host1 */
    say(&f, FINDING_OPENED);
    living = 1;
    pass(590 * NS_PER_S);
    assert_int_equal(told.pages, 0); /* a reboot of less than ten minutes wakes nobody */
    pass(30 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    assert_string_equal(told.cause, "host1");
    living = 2;
    pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 1); /* its link, now seen to be down: the same incident */
    alerts_on_run(engine, now, 1, 2);
    pass(120 * NS_PER_S);
    assert_int_equal(counters().firing, 0);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
}

static void silences_and_maintenance_cover_and_end(void **state)
{
    struct alert_silence s = {
        .id = 1, .from_utc_ns = UTC_AT_START, .until_utc_ns = UTC_AT_START + 600 * NS_PER_S};
    struct alert_finding f, other;

    finding_rules();
    rules[0].severity = ALERT_PAGE;
    start();
    assert_int_equal(alerts_silence(engine, now, &s), -EINVAL); /* matches nothing */
    snprintf(s.match.host, sizeof(s.match.host), "host[0-9]");
    snprintf(s.match.host, sizeof(s.match.host), "host1?");
    assert_int_equal(alerts_silence(engine, now, &s), 0);
    f = link_finding(11 * 8, FINDING_LINK_DOWN);
    other = link_finding(20 * 8, FINDING_LINK_DOWN);
    say(&f, FINDING_OPENED);
    pass(590 * NS_PER_S);
    assert_int_equal(told.notifications, 0);
    say(&other, FINDING_OPENED);
    pass(5 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    pass(10 * NS_PER_S); /* it outlived its silence */
    assert_int_equal(told.pages, 2);
    say(&f, FINDING_CLOSED);
    say(&other, FINDING_CLOSED);
    pass(7200 * NS_PER_S);
    assert_int_equal(counters().incidents_open, 0);

    s.id = 2;
    s.maintenance = true;
    s.every = span_s(86400);
    s.from_utc_ns = UTC_AT_START - 86400 * NS_PER_S;
    s.until_utc_ns = s.from_utc_ns + 3600 * NS_PER_S;
    start();
    assert_int_equal(alerts_silence(engine, now, &s), 0);
    say(&f, FINDING_OPENED);
    pass(3600 * NS_PER_S + 590 * NS_PER_S);
    assert_int_equal(told.notifications, 0); /* still within the time to come back to order */
    pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 1);
}

static void an_acknowledged_incident_escalates_and_repeats_no_more(void **state)
{
    struct alert_finding f;

    finding_rules();
    rules[0].severity = ALERT_PAGE;
    config.routes[0].repeat = span_s(3600);
    config.routes[0].step_count = 1;
    config.routes[0].steps[0].after = span_s(900);
    config.routes[0].steps[0].receivers = 2;
    start();
    f = link_finding(3, FINDING_LINK_DOWN);
    say(&f, FINDING_OPENED);
    pass(890 * NS_PER_S);
    assert_int_equal(told.notifications, 1);
    pass(20 * NS_PER_S);
    assert_int_equal(told.events[ALERT_ESCALATED], 1);
    assert_int_equal(told.receivers, 2);
    pass(3600 * NS_PER_S);
    assert_int_equal(told.events[ALERT_REPEATED], 1);
    assert_int_equal(alerts_acknowledge(engine, now, told.incident, "ada"), 0);
    pass(36000 * NS_PER_S);
    assert_int_equal(told.events[ALERT_REPEATED], 1);
    assert_int_equal(told.events[ALERT_ACKNOWLEDGED], 1);
    assert_int_equal(alerts_acknowledge(engine, now, 999, "ada"), -ENOENT);
}

static void what_comes_back_pages_again_only_if_it_lasts(void **state)
{
    struct alert_finding f;

    finding_rules();
    rules[0].severity = ALERT_PAGE;
    start();
    f = link_finding(3, FINDING_LINK_DOWN);
    say(&f, FINDING_OPENED);
    pass(NS_PER_S);
    say(&f, FINDING_CLOSED);
    pass(600 * NS_PER_S);
    f = link_finding(3, FINDING_LINK_DOWN);
    say(&f, FINDING_OPENED);
    pass(290 * NS_PER_S);
    assert_int_equal(told.events[ALERT_REOPENED], 1);
    assert_int_equal(told.pages, 1);
    pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 2);
}

static void a_rule_without_data_says_so(void **state)
{
    struct alert_counters c;

    rule(0, "loss", ALERT_ON_THRESHOLD)->metric = ALERT_PATH_LOSS;
    rules[0].limit = 100;
    rule(1, "job", ALERT_ON_THRESHOLD)->metric = ALERT_JOB_THROUGHPUT; /* no job runs: in order */
    rules[1].scope = ALERT_PER_JOB;
    start();
    living = 0;
    pass(3600 * NS_PER_S);
    assert_int_equal(told.notifications, 0); /* a fleet without hosts has nothing to say */
    living = 1;
    pass(30 * NS_PER_S);
    c = counters();
    assert_int_equal(c.firing, 1);
    pass(30 * NS_PER_S);
    assert_string_equal(told.cause, "rule loss");
    assert_non_null(strstr(told.text, "nobody reports path.loss at all"));
    sample(ALERT_PATH_LOSS, 0, 1);
    pass(120 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
}

static void the_dead_mans_switch_beats(void **state)
{
    config.heartbeat = span_s(60);
    config.heartbeat_receivers = 4;
    finding_rules();
    pass(595 * NS_PER_S);
    assert_int_equal(told.events[ALERT_HEARTBEAT], 10);
    assert_int_equal(told.receivers, 4);
}

static void an_incident_of_an_earlier_run_is_not_told_again(void **state)
{
    const struct alert_restore r = {.id = 41,
                                    .severity = ALERT_PAGE,
                                    .sequence = 3,
                                    .pages = 1,
                                    .cause = "host0/ib3",
                                    .since = {500},
                                    .told = true,
                                    .text = "as it was"};
    struct alert_finding f;

    finding_rules();
    rules[0].severity = ALERT_PAGE;
    start();
    assert_int_equal(alerts_restore(engine, now, &r), 0);
    f = link_finding(3, FINDING_LINK_DOWN);
    say(&f, FINDING_OPENED);
    pass(600 * NS_PER_S);
    assert_int_equal(told.notifications, 0);
    say(&f, FINDING_CLOSED);
    pass(120 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
    assert_int_equal(told.incident, 41);
    f = link_finding(4, FINDING_LINK_DOWN);
    say(&f, FINDING_OPENED);
    pass(NS_PER_S);
    assert_int_equal(told.incident, 42);
}

static void a_restored_incident_that_is_over_is_resolved(void **state)
{
    const struct alert_restore r = {
        .id = 7, .severity = ALERT_PAGE, .cause = "spine1", .told = true, .text = "as it was"};

    finding_rules();
    assert_int_equal(alerts_restore(engine, now, &r), 0);
    pass(290 * NS_PER_S);
    assert_int_equal(told.notifications, 0);
    pass(20 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
    assert_string_equal(told.text, "as it was");
}

static void shares_and_worst_values_of_many(void **state)
{
    rule(0, "rail-loss", ALERT_ON_THRESHOLD)->metric = ALERT_PATH_LOSS;
    rules[0].scope = ALERT_PER_RAIL;
    rules[0].aggregate = ALERT_SHARE;
    rules[0].limit = 1000;
    rules[0].share = 0.05;
    rule(1, "slowest", ALERT_ON_THRESHOLD)->metric = ALERT_PATH_OWD_P99;
    rules[1].scope = ALERT_PER_FLEET;
    rules[1].aggregate = ALERT_MAX;
    rules[1].limit = 1e5;
    start();
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
        pass(10 * NS_PER_S);
    }
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_non_null(
        strstr(told.text, "rail 3: 10.0 % have too much loss, above 0.1 % (allowed: 5.0 %)"));
    pass(10 * NS_PER_S);
    assert_int_equal(told.events[ALERT_OPENED], 2);
    assert_non_null(
        strstr(told.text, "the fleet: largest p99 one-way delay is 150.000 us, above 100.000 us"));
}

static void memory_is_bounded_and_running_out_is_said(void **state)
{
    config.alert_max = 64;
    config.incident_max = 8;
    config.watch_max = 64;
    finding_rules();
    for (uint32_t k = 0; k < 1000; k++) {
        struct alert_finding f = link_finding(k * 8 + k % 8, FINDING_LINK_DOWN);
        say(&f, FINDING_OPENED);
        sample(ALERT_LINK_DOWNS, k, 1);
    }
    assert_true(counters().alerts_dropped > 0);
    for (uint32_t k = 0; k < 30; k++) { /* room for one */
        alerts_on_run(engine, now, k, 2);
    }
    pass(5 * NS_PER_S);
    assert_true(strstr(told.text, "didn't fit") != NULL || counters().incidents_dropped > 0);
}

/* Anything in any order: counts stay sound, nothing is told of without a cause, and the same calls give the same. */
static uint64_t storm(uint64_t seed)
{
    struct prng p;
    uint64_t digest = 0;

    prng_init(&p, seed);
    config.alert_max = 200;
    config.incident_max = 40;
    finding_rules();
    living = 30;
    for (int step = 0; step < 3000; step++) {
        struct alert_finding f = link_finding((uint32_t)prng_below(&p, 240), FINDING_LINK_DOWN);
        char trunk[64];
        f.number = (uint32_t)prng_below(&p, 60);
        f.run = (uint32_t)prng_below(&p, 2);
        if (prng_below(&p, 2) == 0) {
            snprintf(trunk, sizeof(trunk), "trunk leaf%u - spine%u", (unsigned)prng_below(&p, 6),
                     (unsigned)prng_below(&p, 3));
            f.kind = FINDING_PATH_DEAD;
            f.to_nic = (uint32_t)prng_below(&p, 240);
            f.to_host = f.to_nic / 8;
            f.suspect_kind = prng_below(&p, 3) == 0 ? ELEMENT_UNKNOWN : ELEMENT_TRUNK;
            f.suspect = trunk;
            f.confident = prng_below(&p, 2) == 0;
        }
        say(&f, (enum finding_phase)prng_below(&p, 3));
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
        pass((int64_t)prng_below(&p, 400) * NS_PER_MS);
        digest = hash_u64(digest, told.notifications);
        digest = hash_u64(digest, told.incident);
    }
    for (uint32_t h = 0; h < 30; h++) {
        alerts_on_host_removed(engine, now, h);
    }
    pass(2 * 3600 * NS_PER_S);
    assert_int_equal(counters().firing, 0);
    assert_int_equal(counters().pending, 0);
    assert_int_equal(counters().incidents_open, 0);
    return digest;
}

static void any_storm_ends_in_order_and_repeats_exactly(void **state)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const uint64_t first = storm(seed);
        assert_int_equal(storm(seed), first);
    }
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
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        T(a_link_down_is_told_within_its_wait_and_resolved_after),
        T(a_flap_shorter_than_the_wait_is_told_too),
        T(a_dead_spine_is_one_incident),
        T(a_spine_named_by_its_findings_is_one_incident),
        T(two_causes_stay_two),
        T(two_links_of_one_leaf_stay_two_and_all_of_them_are_the_leaf),
        T(a_guess_that_becomes_certain_moves_to_the_right_incident),
        T(a_link_down_under_a_guess_is_told),
        T(fifty_flaps_are_one_page),
        T(a_counter_that_begins_anew_counts_nothing),
        T(a_threshold_holds_for_its_time_and_has_hysteresis),
        T(a_host_that_falls_silent_is_told_and_its_pending_alerts_freeze),
        T(silences_and_maintenance_cover_and_end),
        T(an_acknowledged_incident_escalates_and_repeats_no_more),
        T(what_comes_back_pages_again_only_if_it_lasts),
        T(a_rule_without_data_says_so),
        T(the_dead_mans_switch_beats),
        T(an_incident_of_an_earlier_run_is_not_told_again),
        T(a_restored_incident_that_is_over_is_resolved),
        T(shares_and_worst_values_of_many),
        T(memory_is_bounded_and_running_out_is_said),
        T(any_storm_ends_in_order_and_repeats_exactly),
        T(globs),
        T(unsound_rules_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
