/* Which receivers get which notifications, how often, and what suppresses them: routes, repeats, acknowledgements, silences,
 * incidents of an earlier run. */
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

static struct alert_finding link_down(uint32_t nic, uint32_t severity)
{
    rules[0].severity = (uint8_t)severity;
    kit_start();
    const struct alert_finding f = kit_link_finding(nic, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(NS_PER_S);
    return f;
}

/* Each route gets incidents from its severity up. Only its receivers are told that an incident is over. */
static void routes_are_told_from_their_severity_up(void **state)
{
    static const uint32_t receivers[] = {1, 1 | 2, 1 | 2 | 4};

    kit_finding_rules();
    for (uint32_t severity = ALERT_INFO; severity <= ALERT_PAGE; severity++) {
        config.route_count = 3;
        for (uint32_t r = 0; r < 3; r++) {
            config.routes[r] = (struct alert_route){.severity = r, .receivers = 1U << r};
        }
        rules[0].severity = (uint8_t)severity;
        alerts_free(engine);
        now = (struct mono){1000 * NS_PER_S};
        memset(&told, 0, sizeof(told));
        engine = alerts_new(&config, now);
        assert_non_null(engine);
        const struct alert_finding f = kit_link_finding(3, FINDING_LINK_DOWN);
        kit_say(&f, FINDING_OPENED);
        kit_pass(NS_PER_S);
        assert_int_equal(told.receivers, receivers[severity]);
        assert_int_equal(told.pages, severity == ALERT_PAGE);
        kit_say(&f, FINDING_CLOSED);
        kit_pass(120 * NS_PER_S);
        assert_int_equal(told.events[ALERT_RESOLVED], 1);
        assert_int_equal(told.receivers, receivers[severity]);
    }
}

/* Receivers recognise notifications by their numbers: each one of an incident has the next number. */
static void tellings_are_numbered(void **state)
{
    kit_finding_rules();
    config.routes[0].repeat = span_s(60);
    const struct alert_finding f = link_down(3, ALERT_PAGE);
    assert_int_equal(told.sequence, 1);
    assert_int_equal(told.incident, 1);
    kit_pass(60 * NS_PER_S);
    assert_int_equal(told.sequence, 2);
    kit_pass(60 * NS_PER_S);
    assert_int_equal(told.sequence, 3);
    assert_int_equal(told.events[ALERT_REPEATED], 2);
    assert_int_equal(kit_incident(1).sequence, 3);
    assert_int_equal(kit_counters().notifications, 3);
    assert_int_equal(kit_counters().pages, 1); /* a repeat is no new page */
    kit_say(&f, FINDING_CLOSED);
    const struct alert_finding other = kit_link_finding(20 * 8, FINDING_LINK_DOWN);
    kit_say(&other, FINDING_OPENED);
    kit_pass(NS_PER_S);
    assert_int_equal(told.incident, 2);
    assert_int_equal(told.sequence, 1);
}

/* A route repeats and escalates at its own times, and not below its severity. */
static void steps_of_a_route(void **state)
{
    kit_finding_rules();
    config.routes[0].step_count = 2;
    config.routes[0].steps[0].after = span_s(100);
    config.routes[0].steps[0].receivers = 2;
    config.routes[0].steps[1].after = span_s(200);
    config.routes[0].steps[1].receivers = 4;
    (void)link_down(3, ALERT_PAGE);
    kit_pass(98 * NS_PER_S);
    assert_int_equal(told.events[ALERT_ESCALATED], 0);
    kit_pass(2 * NS_PER_S);
    assert_int_equal(told.events[ALERT_ESCALATED], 1);
    assert_int_equal(told.receivers, 2);
    assert_int_equal(told.pages, 2); /* the next receiver gets a page, too */
    kit_pass(98 * NS_PER_S);
    assert_int_equal(told.events[ALERT_ESCALATED], 1);
    kit_pass(4 * NS_PER_S);
    assert_int_equal(told.events[ALERT_ESCALATED], 2);
    assert_int_equal(told.receivers, 4);
    kit_pass(5000 * NS_PER_S);
    assert_int_equal(told.events[ALERT_ESCALATED], 2);
    config.routes[0].severity = ALERT_PAGE; /* it takes no warnings */
    rules[0].severity = ALERT_WARNING;
    alerts_free(engine);
    memset(&told, 0, sizeof(told));
    config.routes[0].repeat = span_s(50);
    config.route_count = 2;
    config.routes[1] = (struct alert_route){.severity = ALERT_WARNING, .receivers = 8};
    engine = alerts_new(&config, now);
    const struct alert_finding f = kit_link_finding(3, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(1000 * NS_PER_S);
    assert_int_equal(told.notifications, 1);
    assert_int_equal(told.receivers, 8);
}

static void an_acknowledgement_is_shown(void **state)
{
    kit_finding_rules();
    const struct alert_finding f = link_down(3, ALERT_PAGE);
    assert_null(kit_incident(1).acknowledged_by);
    assert_int_equal(alerts_acknowledge(engine, now, 1, ""), 0);
    assert_string_equal(kit_incident(1).acknowledged_by, "somebody");
    const struct mono at = now;
    kit_pass(10 * NS_PER_S);
    assert_int_equal(kit_incident(1).acknowledged.ns, at.ns);
    assert_int_equal(alerts_acknowledge(engine, now, 1, "ada"), 0);
    assert_string_equal(kit_incident(1).acknowledged_by, "ada");
    kit_say(&f, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(kit_incident(1).state, INCIDENT_RESOLVED);
    assert_int_equal(alerts_acknowledge(engine, now, 1, "ada"), -ENOENT); /* it is over */
    const struct alert_finding again = kit_link_finding(3, FINDING_LINK_DOWN);
    kit_say(&again, FINDING_OPENED);
    kit_pass(NS_PER_S);
    assert_int_equal(kit_incident(1).reopened, 1);
    assert_null(kit_incident(1).acknowledged_by); /* its acknowledgement is gone */
}

/* Everything that is shown of an incident and its alert. */
static void all_fields_are_shown(void **state)
{
    kit_finding_rules();
    const int64_t begin = 1000 * NS_PER_S;
    struct alert_finding f = link_down(11, ALERT_PAGE);
    struct alert_incident i = kit_incident(1);
    const struct alert a = kit_alert();
    assert_int_equal(i.state, INCIDENT_OPEN);
    assert_int_equal(i.severity, ALERT_PAGE);
    assert_string_equal(i.cause, "host1/ib3");
    assert_string_equal(i.host, "host1");
    assert_int_equal(i.since.ns, begin);
    assert_int_equal(i.alerts_firing, 1);
    assert_int_equal(i.alerts_total, 1);
    assert_int_equal(i.hosts, 1);
    assert_int_equal(i.links, 1);
    assert_int_equal(i.pages, 1);
    assert_true(i.told);
    assert_false(i.silenced);
    assert_string_equal(i.text, "a sentence");
    assert_int_equal(a.incident, 1);
    assert_int_equal(a.state, ALERT_FIRING);
    assert_int_equal(a.severity, ALERT_PAGE);
    assert_int_equal(a.since.ns, begin);
    assert_int_equal(a.fired.ns, begin);
    assert_int_equal(a.host, 1);
    assert_int_equal(a.nic, 11);
    assert_int_equal(a.peer, ALERT_NO_ID);
    assert_int_equal(a.port, ALERT_NO_ID);
    assert_string_equal(a.rule_name, "link-down");
    assert_string_equal(a.text, "a sentence");
    assert_false(a.stale);
    kit_say(&f, FINDING_CLOSED);
    i = kit_incident(1);
    assert_int_equal(i.state, INCIDENT_QUIET);
    assert_int_equal(i.alerts_firing, 0);
    assert_int_equal(i.alerts_total, 1);
    assert_string_equal(i.text, "a sentence"); /* its last text */
    kit_pass(61 * NS_PER_S);
    i = kit_incident(1);
    assert_int_equal(i.state, INCIDENT_RESOLVED);
    assert_in_range(i.resolved.ns, begin + 60 * NS_PER_S, begin + 62 * NS_PER_S);
    kit_pass(3590 * NS_PER_S);
    assert_true(alerts_find_incident(engine, 1, &i));
    kit_pass(20 * NS_PER_S); /* too long to count as the same if it comes back */
    assert_false(alerts_find_incident(engine, 1, &i));
    f = kit_path_finding(3, 80, ELEMENT_UNKNOWN, NULL, false);
    f.port = 7641;
    kit_say(&f, FINDING_OPENED);
    assert_int_equal(kit_alert().nic, 3);
    assert_int_equal(kit_alert().peer, 80);
    assert_int_equal(kit_alert().port, 7641);
    f = kit_path_finding(3, 80, ELEMENT_UNKNOWN, NULL, false);
    rules[1].hold = span_s(100);
    kit_start();
    kit_say(&f, FINDING_OPENED);
    kit_pass(NS_PER_S);
    assert_int_equal(kit_alert().state, ALERT_PENDING);
    assert_int_equal(kit_alert().incident, 0);
}

/* Several alerts of one host: hosts and links count once each, whatever is reported of them. */
static void an_incident_of_many_counts_each_once(void **state)
{
    kit_finding_rules();
    for (uint32_t k = 0; k < 4; k++) {
        struct alert_finding f = kit_link_finding(8 + k % 3, FINDING_LINK_DOWN);
        kit_say(&f, FINDING_OPENED);
    }
    kit_pass(5 * NS_PER_S);
    size_t cursor = 0;
    struct alert_incident i;
    while (alerts_next_incident(engine, &cursor, &i)) {
        if (i.state == INCIDENT_OPEN) {
            assert_string_equal(i.cause, "host1");
            assert_string_equal(i.host, "host1");
            assert_int_equal(i.alerts_firing, 4);
            assert_int_equal(i.links, 3);
            assert_int_equal(i.hosts, 1);
            assert_non_null(strstr(i.text, "host1: 4 alerts (link-down) about 3 NICs of 1 host, "));
            assert_non_null(strstr(i.text, "; suspect: host1; the worst of them: a sentence"));
            return;
        }
    }
    fail();
}

/* ---- silences ---- */

static struct alert_silence silence(uint64_t id, int64_t seconds)
{
    return (struct alert_silence){
        .id = id, .from_utc_ns = UTC_AT_START, .until_utc_ns = UTC_AT_START + seconds * NS_PER_S};
}

static unsigned told_under(const char *rule, const char *host, const char *element)
{
    struct alert_silence s = silence(1, 600);

    kit_start();
    snprintf(s.match.rule, sizeof(s.match.rule), "%s", rule);
    snprintf(s.match.host, sizeof(s.match.host), "%s", host);
    snprintf(s.match.element, sizeof(s.match.element), "%s", element);
    assert_int_equal(alerts_silence(engine, now, &s), 0);
    kit_pass(1050 * NS_PER_MS); /* it is sent before everything is checked again */
    const struct alert_finding f = kit_link_finding(11, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    assert_int_equal(kit_alert().silenced, kit_incident(1).silenced);
    kit_pass(10 * NS_PER_S);
    assert_int_equal(kit_alert().silenced, told.notifications == 0);
    assert_int_equal(kit_incident(1).silenced, told.notifications == 0);
    return told.notifications;
}

/* All non-empty patterns must match: the rule, a host, a candidate element. */
static void a_silence_covers_what_all_its_patterns_fit(void **state)
{
    static const struct {
        const char *rule, *host, *element;
        unsigned told;
    } cases[] = {
        {"link-*", "", "", 0},
        {"path-*", "", "", 1},
        {"", "host1", "", 0},
        {"", "host2", "", 1},
        {"", "", "host1/ib3", 0},
        {"", "", "leaf3", 0},
        {"", "", "leaf4", 1},
        {"link-*", "host1", "leaf3", 0},
        {"link-*", "host1", "leaf4", 1},
        {"link-*", "host2", "leaf3", 1},
        {"path-*", "host1", "leaf3", 1},
        {"", "leaf3", "", 1}, /* a leaf is no host */
        {"", "*", "", 0},
    };

    kit_finding_rules();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(told_under(cases[i].rule, cases[i].host, cases[i].element), cases[i].told);
    }
}

/* As many silences as there is room for. Removing one leaves the others, and room for one. */
static void silences_come_and_go(void **state)
{
    struct alert_finding f;

    kit_finding_rules();
    for (uint64_t id = 1; id <= ALERT_SILENCE_MAX; id++) {
        struct alert_silence s = silence(id, 600);
        snprintf(s.match.host, sizeof(s.match.host), "host%u", (unsigned)id);
        assert_int_equal(alerts_silence(engine, now, &s), 0);
    }
    struct alert_silence more = silence(ALERT_SILENCE_MAX + 1, 600);
    snprintf(more.match.host, sizeof(more.match.host), "host0");
    assert_int_equal(alerts_silence(engine, now, &more), -ENOSPC);
    assert_int_equal(alerts_unsilence(engine, now, 200), 0);
    assert_int_equal(alerts_unsilence(engine, now, 200), -ENOENT);
    assert_int_equal(alerts_silence(engine, now, &more), 0);
    for (uint32_t host = 0; host <= ALERT_SILENCE_MAX; host++) {
        f = kit_link_finding(host * NIC_PER_HOST, FINDING_LINK_DOWN);
        kit_say(&f, FINDING_OPENED);
        assert_int_equal(kit_alert().silenced, host != 200);
        kit_say(&f, FINDING_CLOSED);
    }
}

/* A notification was sent, then the incident was silenced, then its switch becomes known: the silence holds. */
static void a_silenced_incident_moves_in_silence(void **state)
{
    struct alert_finding f = kit_path_finding(3, 80, ELEMENT_HOST, "host0", true);
    struct alert_silence s = silence(1, 600);

    kit_finding_rules();
    kit_say(&f, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(told.notifications, 1);
    snprintf(s.match.rule, sizeof(s.match.rule), "path-*");
    assert_int_equal(alerts_silence(engine, now, &s), 0);
    kit_pass(2 * NS_PER_S);
    assert_true(kit_incident(1).silenced);
    f.suspect = suspect_named(ELEMENT_SPINE, "spine1");
    kit_say(&f, FINDING_UPDATED);
    kit_pass(10 * NS_PER_S);
    assert_string_equal(kit_incident(2).cause, "spine1");
    assert_int_equal(told.events[ALERT_WORSE], 0);
    assert_int_equal(told.pages, 1);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1); /* its end is sent, as for any */
}

static void an_incident_is_sent_as_its_silence_ends(void **state)
{
    struct alert_silence s = silence(5, 600), other = silence(6, 600);

    kit_finding_rules();
    strcpy(s.match.host, "host1");
    strcpy(other.match.host, "host2");
    assert_int_equal(alerts_silence(engine, now, &other), 0);
    assert_int_equal(alerts_silence(engine, now, &s), 0);
    const struct alert_finding f = kit_link_finding(11, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(10 * NS_PER_S);
    assert_int_equal(told.notifications, 0);
    assert_int_equal(alerts_unsilence(engine, now, 6), 0); /* another's */
    kit_pass(NS_PER_S);
    assert_int_equal(told.notifications, 0);
    assert_int_equal(alerts_unsilence(engine, now, 5), 0);
    assert_int_equal(alerts_unsilence(engine, now, 5), -ENOENT);
    kit_pass(NS_PER_S);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_false(kit_incident(1).silenced);
    assert_int_equal(alerts_silence(engine, now, &s), 0); /* silenced again: no notification */
    config.routes[0].repeat = span_s(10);
    kit_pass(100 * NS_PER_S);
    assert_true(kit_incident(1).silenced);
    assert_int_equal(told.notifications, 1);
    s.until_utc_ns = UTC_AT_START + 120 * NS_PER_S; /* the same id: a shorter one replaces it */
    assert_int_equal(alerts_silence(engine, now, &s), 0);
    kit_pass(20 * NS_PER_S);
    assert_false(kit_incident(1).silenced);
}

static void unsound_silences_are_refused_and_old_ones_make_room(void **state)
{
    struct alert_silence s = silence(1, 600);

    kit_finding_rules();
    strcpy(s.match.host, "host9");
    for (uint64_t id = 1; id <= ALERT_SILENCE_MAX; id++) {
        s.id = id;
        s.every = span_ns(id == 1 ? 3600 * NS_PER_S : 0);
        assert_int_equal(alerts_silence(engine, now, &s), 0);
    }
    s.id = ALERT_SILENCE_MAX + 1;
    assert_int_equal(alerts_silence(engine, now, &s), -ENOSPC);
    s.id = ALERT_SILENCE_MAX; /* but one of them may be replaced */
    assert_int_equal(alerts_silence(engine, now, &s), 0);
    kit_pass(1100 * NS_PER_S); /* over, but within the time to come back to order */
    s.id = ALERT_SILENCE_MAX + 1;
    s.from_utc_ns += 2000 * NS_PER_S;
    s.until_utc_ns += 2000 * NS_PER_S;
    assert_int_equal(alerts_silence(engine, now, &s), -ENOSPC);
    kit_pass(200 * NS_PER_S);
    for (uint64_t id = 2; id <= ALERT_SILENCE_MAX; id++) { /* the one that comes back stays */
        s.id = ALERT_SILENCE_MAX + id;
        assert_int_equal(alerts_silence(engine, now, &s), 0);
    }
    s.id = 9999;
    assert_int_equal(alerts_silence(engine, now, &s), -ENOSPC);

    struct alert_silence bad = silence(0, 600);
    strcpy(bad.match.host, "h");
    assert_int_equal(alerts_silence(engine, now, &bad), -EINVAL);
    bad = silence(1, 0);
    strcpy(bad.match.host, "h");
    assert_int_equal(alerts_silence(engine, now, &bad), -EINVAL);
    bad = silence(1, 600);
    strcpy(bad.match.host, "h");
    bad.every = span_s(-1);
    assert_int_equal(alerts_silence(engine, now, &bad), -EINVAL);
    bad.every = span_s(599);
    assert_int_equal(alerts_silence(engine, now, &bad), -EINVAL);
    bad.every = span_s(600);
    assert_int_equal(alerts_silence(engine, now, &bad), 0); /* replaces number 1 */
    char *const texts[] = {bad.match.rule, bad.match.host, bad.match.element};
    const size_t sizes[] = {sizeof(bad.match.rule), sizeof(bad.match.host),
                            sizeof(bad.match.element)};
    for (size_t i = 0; i < 3; i++) { /* no end */
        memset(&bad.match, 0, sizeof(bad.match));
        memset(texts[i], 'a', sizes[i]);
        assert_int_equal(alerts_silence(engine, now, &bad), -EINVAL);
    }
}

static void silences_begin_end_and_come_back_on_time(void **state)
{
    const struct alert_silence once = {.from_utc_ns = 100, .until_utc_ns = 200},
                               daily = {.from_utc_ns = 100, .until_utc_ns = 200, .every = {1000}};
    static const struct {
        int64_t at;
        bool once, daily;
        int64_t until;
    } cases[] = {{99, false, false, 200},   {100, true, true, 200},     {199, true, true, 200},
                 {200, false, false, 200},  {1099, false, false, 200},  {1100, false, true, 1200},
                 {1199, false, true, 1200}, {1200, false, false, 1200}, {5150, false, true, 5200}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t until = 0;
        assert_int_equal(alert_silence_active(&once, cases[i].at, &until), cases[i].once);
        assert_int_equal(until, 200);
        assert_int_equal(alert_silence_active(&daily, cases[i].at, &until), cases[i].daily);
        assert_int_equal(until, cases[i].until);
        assert_int_equal(alert_silence_active(&daily, cases[i].at, NULL), cases[i].daily);
    }
}

/* ---- of an earlier run ---- */

static void a_restored_incident_is_as_it_was(void **state)
{
    struct alert_restore r = {.id = 41,
                              .severity = ALERT_PAGE,
                              .sequence = 3,
                              .pages = 2,
                              .cause = "host0/ib3",
                              .since = {500},
                              .told = true,
                              .acknowledged_by = "ada",
                              .text = "as it was"};

    kit_finding_rules();
    rules[0].severity = ALERT_PAGE;
    config.routes[0].repeat = span_s(60);
    config.incident_max = 2;
    kit_start();
    assert_int_equal(alerts_restore(engine, now, &r), 0);
    struct alert_incident i = kit_incident(41);
    assert_string_equal(i.acknowledged_by, "ada");
    assert_string_equal(i.text, "as it was");
    assert_string_equal(i.cause, "host0/ib3");
    assert_int_equal(i.severity, ALERT_PAGE);
    assert_int_equal(i.sequence, 3);
    assert_int_equal(i.pages, 2);
    assert_int_equal(i.since.ns, 500);
    assert_int_equal(i.state, INCIDENT_QUIET);
    assert_true(i.told);
    assert_int_equal(kit_counters().incidents_open, 1);
    r.id = 43;
    r.cause = "host9/ib3";
    r.acknowledged_by = NULL;
    assert_int_equal(alerts_restore(engine, now, &r), 0);
    assert_null(kit_incident(43).acknowledged_by);
    r.id = 44;
    r.cause = "host10/ib3";
    assert_int_equal(alerts_restore(engine, now, &r), -ENOSPC);
    const struct alert_finding f = kit_link_finding(3, FINDING_LINK_DOWN);
    assert_string_equal(kit_incident(41).host, ""); /* a name alone */
    kit_say(&f, FINDING_OPENED); /* it still holds: no notification, because ada acknowledged it */
    assert_string_equal(kit_incident(41).host, "host0");
    kit_pass(400 * NS_PER_S);
    assert_int_equal(told.events[ALERT_REPEATED] + told.events[ALERT_OPENED], 0);
    assert_int_equal(told.events[ALERT_RESOLVED], 1); /* the other one wasn't confirmed */
    assert_int_equal(told.incident, 43);
    assert_int_equal(told.sequence, 4);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(120 * NS_PER_S);
    assert_int_equal(told.incident, 41);
    assert_int_equal(told.sequence, 4);
}

/* It isn't known how long the controller was down: a route's steps begin again. */
static void a_restored_incident_escalates_from_the_restart_on(void **state)
{
    kit_finding_rules();
    rules[0].severity = ALERT_PAGE;
    config.routes[0].step_count = 1;
    config.routes[0].steps[0].after = span_s(100);
    config.routes[0].steps[0].receivers = 2;
    kit_start();
    kit_pass(1000 * NS_PER_S);
    assert_int_equal(alerts_restore(engine, now, &kit_told_page), 0);
    const struct alert_finding f = kit_link_finding(3, FINDING_LINK_DOWN);
    kit_say(&f, FINDING_OPENED);
    kit_pass(98 * NS_PER_S);
    assert_int_equal(told.notifications, 0);
    kit_pass(2 * NS_PER_S);
    assert_int_equal(told.events[ALERT_ESCALATED], 1);
    assert_int_equal(told.receivers, 2);
}

static void the_dead_mans_switch_counts(void **state)
{
    struct alert_action action;

    config.heartbeat = span_s(60);
    config.heartbeat_receivers = 4;
    kit_finding_rules();
    for (uint32_t beat = 1; beat <= 3; beat++) {
        alerts_tick(engine, now);
        assert_true(alerts_next_action(engine, &action));
        assert_int_equal(action.event, ALERT_HEARTBEAT);
        assert_int_equal(action.sequence, beat);
        assert_int_equal(action.receivers, 4);
        assert_string_equal(action.incident.cause, "");
        assert_string_equal(action.incident.text, "foliot's alerting is alive");
        assert_false(alerts_next_action(engine, &action));
        now = mono_add(now, span_s(60));
    }
}

static void words_of_events_and_states(void **state)
{
    assert_string_equal(alert_event_word(ALERT_OPENED), "opened");
    assert_string_equal(alert_event_word(ALERT_HEARTBEAT), "heartbeat");
    assert_string_equal(alert_event_word(ALERT_HEARTBEAT + 1), "unknown");
    assert_string_equal(alert_state_word(ALERT_PENDING), "pending");
    assert_string_equal(alert_state_word(ALERT_OVER + 1), "unknown");
    assert_string_equal(alert_incident_state_word(INCIDENT_MERGED), "merged");
    assert_string_equal(alert_incident_state_word(INCIDENT_MERGED + 1), "unknown");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_begin, kit_end)
    const struct CMUnitTest tests[] = {
        T(routes_are_told_from_their_severity_up),
        T(tellings_are_numbered),
        T(steps_of_a_route),
        T(an_acknowledgement_is_shown),
        T(all_fields_are_shown),
        T(an_incident_of_many_counts_each_once),
        T(a_silence_covers_what_all_its_patterns_fit),
        T(silences_come_and_go),
        T(a_silenced_incident_moves_in_silence),
        T(an_incident_is_sent_as_its_silence_ends),
        T(unsound_silences_are_refused_and_old_ones_make_room),
        T(silences_begin_end_and_come_back_on_time),
        T(a_restored_incident_is_as_it_was),
        T(a_restored_incident_escalates_from_the_restart_on),
        T(the_dead_mans_switch_counts),
        T(words_of_events_and_states),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
