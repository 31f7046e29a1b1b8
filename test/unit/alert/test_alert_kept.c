/* Things that must not be lost: a page, an incident while its fault lasts, an alert that found no room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "alert_kit.h"

static struct alert_finding down(uint32_t nic)
{
    const struct alert_finding f = kit_link_finding(nic, FINDING_LINK_DOWN);

    kit_say(&f, FINDING_OPENED);
    return f;
}

static void silence(uint64_t id, const char *rule, const char *element, int64_t seconds)
{
    struct alert_silence s = {.id = id,
                              .from_utc_ns = UTC_AT_START - NS_PER_S,
                              .until_utc_ns = UTC_AT_START + seconds * NS_PER_S};

    snprintf(s.match.rule, sizeof(s.match.rule), "%s", rule);
    snprintf(s.match.element, sizeof(s.match.element), "%s", element);
    assert_int_equal(alerts_silence(engine, now, &s), 0);
}

/* The suspect of a path's finding changes from the host to a NIC. The NIC's incident has just become quiet. */
static void a_quiet_incident_that_takes_another_in_is_open(void **state)
{
    kit_finding_rules();
    const struct alert_finding link = down(3);
    kit_pass(NS_PER_S);
    kit_say(&link, FINDING_CLOSED);
    struct alert_finding path = kit_path_finding(3, 12, ELEMENT_HOST, "host0", true);
    kit_say(&path, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_incident(2).state, INCIDENT_OPEN);
    path.suspect = suspect_named(ELEMENT_NIC, "host0/ib3");
    kit_say(&path, FINDING_UPDATED);
    assert_int_equal(kit_incident(2).merged_into, 1);
    kit_pass(200 * NS_PER_S);
    assert_int_equal(kit_incident(1).state, INCIDENT_OPEN);
    assert_int_equal(told.events[ALERT_RESOLVED], 0);
    kit_say(&path, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(kit_incident(1).state, INCIDENT_RESOLVED);
}

/* One NIC of a host is silenced. Then the host has a fault, with two other NICs: there is a notification nevertheless. */
static void a_silenced_part_does_not_silence_the_whole(void **state)
{
    kit_finding_rules();
    rules[0].severity = ALERT_PAGE;
    kit_start();
    silence(1, "", "host0/ib0", 7200);
    down(0);
    kit_pass(NS_PER_S);
    assert_int_equal(told.notifications, 0);
    down(1);
    down(2);
    kit_pass(10 * NS_PER_S);
    assert_int_equal(kit_incident(2).merged_into, 1);
    assert_string_equal(kit_incident(1).cause, "host0");
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(told.pages, 1);
}

/* A page was sent, was over, and is back: incident 1. A second page is due if it lasts. */
static struct alert_finding page_that_came_back(struct alert_finding f)
{
    kit_say(&f, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
    f.number += 1000;
    f.since = now;
    kit_say(&f, FINDING_OPENED);
    kit_pass(100 * NS_PER_S);
    assert_int_equal(told.events[ALERT_REOPENED], 1);
    return f;
}

/* It is gone for some seconds before it has lasted: its time begins again. */
static void a_page_that_came_back_outlives_a_gap(void **state)
{
    kit_finding_rules();
    const struct alert_finding f =
        page_that_came_back(kit_path_finding(3, 12, ELEMENT_HOST, "host0", true));
    kit_say(&f, FINDING_CLOSED);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(kit_incident(1).state, INCIDENT_QUIET);
    kit_say(&f, FINDING_OPENED);
    kit_pass(290 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 2);
    assert_int_equal(kit_incident(1).reopened, 1);
    kit_pass(1000 * NS_PER_S);
    assert_int_equal(told.pages, 2);
}

/* It becomes part of a warning before it has lasted. */
static void a_page_that_came_back_outlives_a_merger(void **state)
{
    kit_finding_rules();
    struct alert_finding path =
        page_that_came_back(kit_path_finding(3, 12, ELEMENT_HOST, "host0", true));
    kit_say(&path, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    down(3);
    kit_pass(NS_PER_S);
    path.since = now;
    kit_say(&path, FINDING_OPENED);
    kit_pass(100 * NS_PER_S);
    path.suspect = suspect_named(ELEMENT_NIC, "host0/ib3");
    kit_say(&path, FINDING_UPDATED);
    assert_int_equal(kit_incident(1).merged_into, 2);
    kit_pass(190 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 2);
    assert_int_equal(told.incident, 2);
}

/* Makes rules[2]: a lossy path, a warning. Then starts. */
static void lossy_rule_too(void)
{
    kit_finding_rules();
    kit_rule(2, "path-lossy", ALERT_ON_FINDING)->findings = 1ULL << FINDING_PATH_LOSSY;
    rules[2].severity = ALERT_WARNING;
    kit_start();
}

static struct alert_finding lossy(enum element_kind kind, const char *suspect)
{
    struct alert_finding f = kit_path_finding(3, 12, kind, suspect, true);

    f.kind = FINDING_PATH_LOSSY;
    kit_say(&f, FINDING_OPENED);
    kit_pass(NS_PER_S);
    return f;
}

/* A page of that, sent and over. */
static struct alert_finding page_that_is_over(enum element_kind kind, const char *suspect)
{
    const struct alert_finding f = kit_path_finding(3, 12, kind, suspect, true);

    kit_say(&f, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(kit_incident(1).state, INCIDENT_RESOLVED);
    assert_int_equal(told.pages, 1);
    return f;
}

/* It is back, and a page is due. A second later a link of its host is down. */
static struct alert_finding page_that_is_back(void)
{
    lossy_rule_too();
    struct alert_finding page = page_that_is_over(ELEMENT_NIC, "host0/ib3");
    page.since = now;
    kit_say(&page, FINDING_OPENED);
    kit_pass(NS_PER_S);
    down(1);
    return page;
}

/* It is back, is gone for some seconds, and becomes part of something larger before its page was due: the larger one has to
 * last. */
static void a_quiet_page_outlives_a_merger(void **state)
{
    struct alert_finding page = page_that_is_back();
    kit_pass(NS_PER_S);
    kit_say(&page, FINDING_CLOSED);
    lossy(ELEMENT_HOST, "host0");
    assert_int_equal(kit_incident(1).state, INCIDENT_QUIET);
    down(1);
    assert_int_equal(kit_incident(1).merged_into, 3);
    assert_true(kit_incident(3).owes_page);
    kit_pass(400 * NS_PER_S); /* its page is gone */
    assert_int_equal(told.pages, 1);
    kit_say(&page, FINDING_OPENED);
    kit_pass(290 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 2);
    assert_int_equal(told.incident, 3);
    assert_false(kit_incident(3).owes_page);
}

/* The same if a page that was not yet sent takes it in. */
static void a_new_page_takes_over_what_is_owed(void **state)
{
    struct alert_finding page = page_that_is_back();
    kit_pass(2 * NS_PER_S);
    kit_say(&page, FINDING_CLOSED);
    const struct alert_finding host = kit_path_finding(3, 12, ELEMENT_HOST, "host0", true);
    kit_say(&host, FINDING_OPENED);
    assert_int_equal(kit_incident(3).state, INCIDENT_NEW);
    down(1);
    assert_int_equal(kit_incident(1).merged_into, 3);
    kit_pass(290 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 2);
}

/* It comes back as part of something that is silenced, and a warning is sent. Then a page of it must be sent. */
static void a_page_after_what_came_back_unheard_is_told(void **state)
{
    for (int fresh = 0; fresh < 2; fresh++) {
        kit_finding_rules();
        struct alert_finding page = page_that_is_over(ELEMENT_HOST, "host0");
        silence(1, "", "host0/ib0", 7200);
        down(0);
        down(1);
        kit_pass(2 * NS_PER_S);
        if (fresh) { /* it waits for others when it becomes part of that */
            page = kit_path_finding(3, 12, ELEMENT_NIC, "host0/ib3", true);
            kit_say(&page, FINDING_OPENED);
        } else {
            down(2);
        }
        assert_int_equal(kit_incident(1).reopened, 1);
        assert_string_equal(kit_incident(1).cause, "host0");
        kit_pass(10 * NS_PER_S);
        assert_int_equal(told.pages, 1 + fresh);
        kit_say(&page, FINDING_OPENED);
        kit_pass(10 * NS_PER_S);
        assert_int_equal(told.pages, 2);
    }
}

/* It is back as a warning, and takes in a page that was just sent: no second page is needed. */
static void a_page_for_a_part_is_not_repeated(void **state)
{
    kit_finding_rules();
    (void)page_that_is_over(ELEMENT_NIC, "host0/ib3");
    down(3);
    kit_pass(NS_PER_S);
    assert_true(kit_incident(1).owes_page);
    struct alert_finding path = kit_path_finding(3, 12, ELEMENT_HOST, "host0", true);
    kit_say(&path, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(told.pages, 2);
    path.suspect = suspect_named(ELEMENT_NIC, "host0/ib3");
    kit_say(&path, FINDING_UPDATED);
    assert_int_equal(kit_incident(2).merged_into, 1);
    assert_false(kit_incident(1).owes_page);
    kit_pass(1000 * NS_PER_S);
    assert_int_equal(told.pages, 2);
}

/* It came back in a silence. It becomes a page when it takes in a warning that was sent. */
static void an_unheard_page_is_not_lost_in_a_warning(void **state)
{
    lossy_rule_too();
    const struct alert_finding page = page_that_is_over(ELEMENT_NIC, "host0/ib3");
    silence(1, "link-down", "", 7200);
    down(3);
    kit_pass(2 * NS_PER_S);
    struct alert_finding path = lossy(ELEMENT_HOST, "host0");
    kit_say(&page, FINDING_OPENED);
    path.suspect = suspect_named(ELEMENT_NIC, "host0/ib3");
    kit_say(&path, FINDING_UPDATED);
    assert_int_equal(kit_incident(2).merged_into, 1);
    kit_pass(400 * NS_PER_S);
    assert_int_equal(told.pages, 2);
}

/* The page waits for others like it. Then its incident becomes part of one that was only a warning. */
static void a_page_is_not_lost_in_a_warning(void **state)
{
    kit_finding_rules();
    down(3);
    kit_pass(NS_PER_S);
    assert_int_equal(told.pages, 0);
    struct alert_finding path = kit_path_finding(3, 12, ELEMENT_HOST, "host0", true);
    kit_say(&path, FINDING_OPENED);
    kit_pass(NS_PER_S);
    path.suspect = suspect_named(ELEMENT_NIC, "host0/ib3");
    kit_say(&path, FINDING_UPDATED);
    assert_int_equal(kit_incident(2).merged_into, 1);
    kit_pass(10 * NS_PER_S);
    assert_int_equal(told.events[ALERT_WORSE], 1);
    assert_int_equal(told.pages, 1);
}

/* ---- over a restart --------------------------------------------------------------------------------------------- */

static void two_link_rules(void)
{
    kit_rule(0, "link-down", ALERT_ON_FINDING)->findings = 1ULL << FINDING_LINK_DOWN;
    rules[0].severity = ALERT_WARNING;
    rules[0].scope = ALERT_PER_LINK;
    kit_rule(1, "link-down-long", ALERT_ON_FINDING)->findings = 1ULL << FINDING_LINK_DOWN;
    rules[1].scope = ALERT_PER_LINK;
    kit_start();
}

/* Its page was silenced when the controller stopped, and still is after the restart: the page is sent when the silence ends. */
static void a_silenced_page_outlives_a_restart(void **state)
{
    struct alert_restore r = kit_told_page;

    two_link_rules();
    silence(1, "link-down-long", "", 400);
    r.pages = 0;
    assert_int_equal(alerts_restore(engine, now, &r), 0);
    down(3);
    kit_pass(390 * NS_PER_S);
    assert_int_equal(told.pages, 0);
    assert_int_equal(kit_incident(41).alerts_firing, 2);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    assert_int_equal(told.incident, 41);
}

/* No notification was sent, because all of it was silenced: a warning after that is no page. */
static void a_silenced_page_is_none_after_a_restart(void **state)
{
    struct alert_restore r = kit_told_page;

    two_link_rules();
    silence(1, "link-down-long", "", 7200);
    r.told = false;
    r.pages = 0;
    assert_int_equal(alerts_restore(engine, now, &r), 0);
    down(3);
    kit_pass(10 * NS_PER_S);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(told.pages, 0);
}

/* It had come back, but had not lasted: its time begins again at the restart. A warning in its place doesn't count. */
static void a_page_that_came_back_outlives_a_restart(void **state)
{
    struct alert_restore r = kit_told_page;

    r.owes_page = true;
    for (int page = 0; page < 2; page++) {
        kit_finding_rules();
        rules[0].severity = page == 1 ? ALERT_PAGE : ALERT_WARNING;
        kit_start();
        assert_int_equal(alerts_restore(engine, now, &r), 0);
        assert_true(kit_incident(41).owes_page);
        down(3);
        kit_pass(290 * NS_PER_S);
        assert_int_equal(told.pages, 0);
        kit_pass(20 * NS_PER_S);
        assert_int_equal(told.pages, page);
        assert_int_equal(kit_incident(41).owes_page, page == 0);
    }
}

static void clock_for(int64_t seconds, double synced)
{
    for (int64_t s = 0; s < seconds; s += 10) {
        kit_sample(ALERT_CLOCK_SYNCED, 0, synced);
        kit_pass(10 * NS_PER_S);
    }
}

static void restored_clock(void)
{
    struct alert_restore r = kit_told_page;
    struct alert_rule *rule = kit_threshold(ALERT_CLOCK_SYNCED, ALERT_PER_HOST, 1);

    rule->below = true;
    rule->hold = span_s(900);
    kit_start();
    r.cause = "clock of host0";
    assert_int_equal(alerts_restore(engine, now, &r), 0);
}

/* A rule that waits a quarter of an hour waits again after a restart: until then the incident isn't over. */
static void an_incident_that_a_rule_waits_for_is_open(void **state)
{
    restored_clock();
    clock_for(1200, 0);
    assert_int_equal(told.events[ALERT_RESOLVED], 0);
    assert_int_equal(told.events[ALERT_REOPENED], 0);
    assert_int_equal(told.pages, 0);
    assert_int_equal(kit_incident(41).state, INCIDENT_OPEN);
    clock_for(120, 1);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
}

static void an_incident_that_no_rule_waits_for_is_over(void **state)
{
    restored_clock();
    clock_for(400, 0);
    assert_int_equal(told.events[ALERT_RESOLVED], 0);
    clock_for(70, 1);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
    assert_int_equal(kit_incident(41).state, INCIDENT_RESOLVED);
}

/* ---- silences --------------------------------------------------------------------------------------------------- */

/* It was sent and over. It comes back in a silence: no notification before that ends. */
static void a_return_in_a_silence_is_not_sent(void **state)
{
    kit_finding_rules();
    rules[0].severity = ALERT_PAGE;
    kit_start();
    const struct alert_finding first = down(3);
    kit_pass(NS_PER_S);
    kit_say(&first, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(told.notifications, 2);
    silence(1, "", "host0/ib3", 600);
    const struct alert_finding again = down(3);
    kit_pass(60 * NS_PER_S);
    assert_int_equal(told.notifications, 2);
    assert_int_equal(kit_incident(1).reopened, 1);
    kit_pass(600 * NS_PER_S);
    assert_int_equal(told.notifications, 3);
    assert_int_equal(told.pages, 2);
    kit_say(&again, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 2);
}

/* It comes back in a silence, for a moment: that gives no notification. */
static void a_moment_in_a_silence_is_not_told(void **state)
{
    kit_finding_rules();
    rules[0].severity = ALERT_PAGE;
    kit_start();
    const struct alert_finding first = down(3);
    kit_pass(NS_PER_S);
    kit_say(&first, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    silence(1, "", "host0/ib3", 150);
    const struct alert_finding again = down(3);
    kit_say(&again, FINDING_CLOSED);
    kit_pass(10 * NS_PER_S);
    assert_int_equal(told.notifications, 2);
    down(3);
    kit_pass(30 * NS_PER_S);
    assert_int_equal(told.notifications, 3); /* it is longer than the silence */
    assert_int_equal(told.pages, 2);
}

/* A warning that comes back is no page because it once was one. It is a page only if it is one again, and lasts. */
static void a_warning_that_comes_back_wakes_nobody(void **state)
{
    two_link_rules();
    rules[1].hold = span_s(600);
    kit_start();
    const struct alert_finding first = down(3);
    kit_pass(620 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    kit_say(&first, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    const struct alert_finding again = down(3);
    kit_pass(590 * NS_PER_S);
    assert_int_equal(kit_incident(1).reopened, 1);
    assert_int_equal(told.events[ALERT_REOPENED], 1);
    assert_int_equal(told.pages, 1);
    kit_pass(30 * NS_PER_S);
    assert_int_equal(told.pages, 2);
    kit_say(&again, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 2);
}

/* ---- room ------------------------------------------------------------------------------------------------------- */

static void an_alert_without_an_incident_gets_one(void **state)
{
    config.incident_max = 2;
    kit_finding_rules();
    rules[0].severity = ALERT_PAGE;
    kit_start();
    const struct alert_finding first = down(0);
    down(20 * 8);
    down(40 * 8);
    kit_pass(10 * NS_PER_S);
    assert_int_equal(told.events[ALERT_OPENED], 3); /* and that one has no place */
    assert_int_equal(told.pages, 2);
    assert_int_equal(kit_counters().incidents_dropped, 1);
    kit_say(&first, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(told.events[ALERT_OPENED], 4);
    assert_int_equal(told.pages, 3);
    assert_int_equal(kit_counters().incidents_dropped, 1);
}

/* Meanwhile its cause has an incident: it needs no room, although a newer one finds none. */
static void an_alert_whose_incident_is_open_by_now_joins_it(void **state)
{
    const struct element trunk = suspect_named(ELEMENT_TRUNK, "trunk leaf0 - spine1"),
                         spine = suspect_named(ELEMENT_SPINE, "spine1");

    config.incident_max = 2;
    kit_finding_rules();
    down(20 * NIC_PER_HOST);
    struct alert_finding first = kit_path_finding(0, 400, ELEMENT_UNKNOWN, NULL, false);
    element_choice_add(&first.choice, &trunk);
    element_choice_add(&first.choice, &spine);
    kit_say(&first, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    const struct alert_finding later = kit_path_finding(80, 480, ELEMENT_SPINE, "spine1", true);
    kit_say(&later, FINDING_OPENED);
    down(40 * NIC_PER_HOST);
    assert_int_equal(kit_incident(2).alerts_firing, 1);
    struct alert_finding sure = kit_path_finding(160, 560, ELEMENT_SPINE, "spine1", true);
    sure.since = first.since;
    kit_say(&sure, FINDING_OPENED);
    assert_string_equal(kit_incident(2).cause, "spine1");
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_incident(2).alerts_firing, 3);
}

/* Two hosts fill the memory. Alerts that another host is silent, and that the memory is full, are sent nevertheless. */
static void alerts_of_the_engine_have_room(void **state)
{
    config.alert_max = 16;
    kit_finding_rules();
    struct alert_rule *r = kit_rule(2, "host-silent", ALERT_ON_ABSENCE);
    r->metric = ALERT_HOST_REPORT;
    r->scope = ALERT_PER_HOST;
    r->within = span_s(60);
    kit_start();
    living = 2;
    alerts_on_host(engine, now, 5);
    for (uint32_t k = 0; k < 16; k++) {
        down(k);
    }
    kit_pass(90 * NS_PER_S);
    struct alert a = {.rule = 0};
    for (size_t cursor = 0; a.rule != 2;) {
        assert_true(alerts_next_alert(engine, &cursor, &a));
    }
    assert_int_equal(a.host, 5);
    assert_int_equal(a.state, ALERT_FIRING);
    assert_true(kit_counters().alerts_dropped > 0);
    assert_non_null(strstr(told.text, "didn't fit"));
}

static uint32_t count_alerts(uint32_t rule)
{
    struct alert a;
    uint32_t count = 0;

    for (size_t cursor = 0; alerts_next_alert(engine, &cursor, &a);) {
        count += a.rule == rule;
    }
    return count;
}

/* Hosts 1 to `hosts` are silent from now on, and each is an alert of rule 2 after a minute. Host 0 lives. */
static void silent_hosts(uint32_t hosts)
{
    kit_finding_rules();
    struct alert_rule *r = kit_rule(2, "host-silent", ALERT_ON_ABSENCE);
    r->metric = ALERT_HOST_REPORT;
    r->scope = ALERT_PER_HOST;
    r->within = span_s(60);
    kit_start();
    for (uint32_t h = 1; h <= hosts; h++) {
        alerts_on_host(engine, now, 100 + h);
    }
}

/* True if a notification reported that there is no room. */
static bool limits_told(void)
{
    struct alert_incident i;
    bool is_told = false;

    for (size_t cursor = 0; alerts_next_incident(engine, &cursor, &i);) {
        is_told = is_told || (i.told && strcmp(i.cause, "the alert engine's limits") == 0);
    }
    return is_told;
}

/* Many silent hosts with a common cause cost the living hosts no alert. */
static void silent_hosts_take_no_more_than_their_share(void **state)
{
    config.alert_max = 16;
    living = 4;
    silent_hosts(20);
    for (uint32_t k = 0; k < 8; k++) {
        down(k % 4 * NIC_PER_HOST + k / 4);
    }
    kit_pass(90 * NS_PER_S);
    assert_int_equal(count_alerts(0), 8);
    assert_int_equal(count_alerts(2), 8);
}

/* They came first: a host with fewer alerts has room nevertheless, and the lack of room is reported. */
static void silent_hosts_leave_room_for_others(void **state)
{
    config.alert_max = 16;
    silent_hosts(20);
    kit_pass(90 * NS_PER_S);
    assert_int_equal(count_alerts(2), 16);
    assert_true(limits_told());
    down(3);
    assert_int_equal(count_alerts(0), 1);
    assert_int_equal(count_alerts(2), 15);
    kit_pass(10 * NS_PER_S);
    assert_int_equal(count_alerts(0), 1);
    assert_int_equal(count_alerts((uint32_t)config.rule_count + 1), 1);
}

/* The place for "there is no room" isn't taken by another rule about the engine. */
static void missing_room_is_sent(void **state)
{
    config.incident_max = 1;
    kit_finding_rules();
    struct alert_rule *r = kit_rule(2, "busy", ALERT_ON_THRESHOLD);
    r->metric = ALERT_AGENT_CPU;
    r->scope = ALERT_PER_HOST;
    kit_start();
    down(0);
    kit_pass(650 * NS_PER_S); /* no host reports it: an alert itself */
    assert_int_equal(count_alerts((uint32_t)config.rule_count), 1);
    down(20 * NIC_PER_HOST);
    kit_pass(10 * NS_PER_S);
    assert_true(limits_told());
}

/* Its cause changes, and there is no place for the new one: it counts as one that didn't fit. */
static void an_alert_that_loses_its_incident_is_counted(void **state)
{
    struct alert_finding f = kit_path_finding(3, 12, ELEMENT_SPINE, "spine1", true);

    config.incident_max = 1;
    kit_finding_rules();
    kit_say(&f, FINDING_OPENED);
    f.number += 1000;
    kit_say(&f, FINDING_OPENED);
    assert_int_equal(kit_incident(1).alerts_firing, 2);
    f.suspect = suspect_named(ELEMENT_SPINE, "spine2");
    kit_say(&f, FINDING_UPDATED);
    assert_int_equal(kit_incident(1).alerts_firing, 1);
    assert_int_equal(kit_counters().incidents_dropped, 1);
}

/* ---- subjects of rules ---------------------------------------------------------------------------------------------- */

static void sample_path(enum alert_metric metric, uint32_t nic, uint32_t peer, uint32_t port,
                        double value)
{
    const struct alert_sample s = {.metric = metric,
                                   .host = nic / NIC_PER_HOST,
                                   .nic = nic,
                                   .peer = peer,
                                   .port = port,
                                   .value = value};

    alerts_on_sample(engine, now, &s);
    kit_drain();
}

/* One of two paths of a NIC is no longer measured, and then is again. */
static void a_path_that_is_missed_comes_back(void **state)
{
    struct alert_rule *r = kit_rule(0, "no-path", ALERT_ON_ABSENCE);

    r->metric = ALERT_PATH_LOSS;
    r->scope = ALERT_PER_PATH;
    r->within = span_s(60);
    kit_start();
    sample_path(ALERT_PATH_LOSS, 3, 12, 50001, 0);
    for (int k = 0; k < 10; k++) {
        sample_path(ALERT_PATH_LOSS, 3, 12, 50000, 0);
        kit_pass(10 * NS_PER_S);
    }
    assert_int_equal(kit_alert().port, 50001);
    assert_int_equal(kit_alert().peer, 12);
    assert_string_equal(kit_incident(1).cause, "host1/ib4 -> host0/ib3");
    sample_path(ALERT_PATH_LOSS, 3, 12, 50001, 0);
    assert_false(kit_any_alert());
    kit_pass(50 * NS_PER_S);
    assert_int_equal(kit_counters().firing, 0);
}

/* The path uses another port for good, while its host reports: after a quarter of an hour it is no longer missed. A silent host's
 * paths stay missed. */
static void a_path_that_is_no_more_is_not_missed_for_ever(void **state)
{
    struct alert_rule *r = kit_rule(0, "no-path", ALERT_ON_ABSENCE);

    r->metric = ALERT_PATH_LOSS;
    r->scope = ALERT_PER_PATH;
    r->within = span_s(60);
    kit_start();
    sample_path(ALERT_PATH_LOSS, 3, 12, 50001, 0);
    sample_path(ALERT_PATH_LOSS, 12, 3, 50000, 0);
    kit_pass(950 * NS_PER_S);
    assert_int_equal(count_alerts(0), 2);
    kit_pass(20 * NS_PER_S);
    assert_int_equal(count_alerts(0), 1);
    kit_pass(1000 * NS_PER_S);
    assert_int_equal(count_alerts(0), 1);
    sample_path(ALERT_PATH_LOSS, 3, 12, 50001, 0); /* and it may come back */
    kit_pass(70 * NS_PER_S);
    assert_int_equal(count_alerts(0), 2);
}

/* The worst path of each link; each link is judged separately. */
static void the_paths_of_each_link_are_judged_for_themselves(void **state)
{
    struct alert_rule *r = kit_threshold(ALERT_PATH_LOSS, ALERT_PER_LINK, 100);

    r->aggregate = ALERT_MAX;
    kit_start();
    for (int k = 0; k < 12; k++) {
        sample_path(ALERT_PATH_LOSS, 3, 12, 50000, 5000);
        sample_path(ALERT_PATH_LOSS, 3, 12, 50001, 0);
        sample_path(ALERT_PATH_LOSS, 4, 12, 50000, 0);
        kit_pass(2 * NS_PER_S);
    }
    assert_int_equal(kit_alert().nic, 3);
    assert_string_equal(kit_incident(1).cause, "host0/ib3");
    assert_int_equal(told.pages, 1);
}

static void sample_job(uint64_t job, double value)
{
    const struct alert_sample s = {.metric = ALERT_JOB_THROUGHPUT,
                                   .host = ALERT_NO_ID,
                                   .nic = ALERT_NO_ID,
                                   .peer = ALERT_NO_ID,
                                   .port = ALERT_NO_ID,
                                   .job = job,
                                   .value = value};

    alerts_on_sample(engine, now, &s);
    kit_drain();
}

/* The mean of ten seconds of each job. */
static void the_values_of_each_job_are_judged_for_themselves(void **state)
{
    struct alert_rule *r = kit_threshold(ALERT_JOB_THROUGHPUT, ALERT_PER_JOB, 100);

    r->aggregate = ALERT_MEAN;
    r->below = true;
    kit_start();
    for (int k = 0; k < 12; k++) {
        sample_job(7, 10);
        sample_job(8, 1000);
        kit_pass(2 * NS_PER_S);
    }
    assert_int_equal(kit_alert().job, 7);
    assert_string_equal(kit_incident(1).cause, "job train");
    alerts_on_job_over(engine, now, 7);
    kit_pass(30 * NS_PER_S);
    assert_false(kit_any_alert());
}

#define T(test) cmocka_unit_test_setup_teardown(test, kit_begin, kit_end)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_quiet_incident_that_takes_another_in_is_open),
        T(a_silenced_part_does_not_silence_the_whole),
        T(a_page_is_not_lost_in_a_warning),
        T(a_page_that_came_back_outlives_a_gap),
        T(a_page_that_came_back_outlives_a_merger),
        T(a_page_that_came_back_outlives_a_restart),
        T(a_quiet_page_outlives_a_merger),
        T(a_new_page_takes_over_what_is_owed),
        T(a_page_after_what_came_back_unheard_is_told),
        T(a_page_for_a_part_is_not_repeated),
        T(an_unheard_page_is_not_lost_in_a_warning),
        T(a_silenced_page_outlives_a_restart),
        T(a_silenced_page_is_none_after_a_restart),
        T(an_incident_that_a_rule_waits_for_is_open),
        T(an_incident_that_no_rule_waits_for_is_over),
        T(a_return_in_a_silence_is_not_sent),
        T(a_moment_in_a_silence_is_not_told),
        T(a_warning_that_comes_back_wakes_nobody),
        T(alerts_of_the_engine_have_room),
        T(silent_hosts_take_no_more_than_their_share),
        T(silent_hosts_leave_room_for_others),
        T(missing_room_is_sent),
        T(an_alert_that_loses_its_incident_is_counted),
        T(an_alert_without_an_incident_gets_one),
        T(an_alert_whose_incident_is_open_by_now_joins_it),
        T(a_path_that_is_missed_comes_back),
        T(a_path_that_is_no_more_is_not_missed_for_ever),
        T(the_paths_of_each_link_are_judged_for_themselves),
        T(the_values_of_each_job_are_judged_for_themselves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
