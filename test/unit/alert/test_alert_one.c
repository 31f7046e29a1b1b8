/* One cause, one incident: which alerts are joined, which incident takes over another, and which stay apart. */
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

static struct alert_finding down(uint32_t nic)
{
    const struct alert_finding f = kit_link_finding(nic, FINDING_LINK_DOWN);

    kit_say(&f, FINDING_OPENED);
    kit_pass(NS_PER_S);
    return f;
}

static void say_trunk(struct alert_finding *f, uint32_t direction, enum finding_phase phase)
{
    f->suspect.direction = direction;
    kit_say(f, phase);
    kit_pass(3 * NS_PER_S);
}

/* The first guess of a direction may change. */
static void its_direction_is_what_its_alerts_tell_now(void **state)
{
    kit_finding_rules();
    alerts_free(engine);
    engine = alerts_new(&config, now);
    struct alert_finding one = kit_path_finding(0, 9, ELEMENT_TRUNK, "trunk leaf0 - spine1", true);
    struct alert_finding other =
        kit_path_finding(17, 25, ELEMENT_TRUNK, "trunk leaf0 - spine1", true);
    say_trunk(&one, DIRECTION_OUT, FINDING_OPENED);
    assert_int_equal(kit_incident(1).element.direction, DIRECTION_OUT);
    const uint32_t pages = kit_incident(1).pages;
    say_trunk(&one, DIRECTION_IN, FINDING_UPDATED);
    assert_int_equal(kit_incident(1).element.direction, DIRECTION_IN);
    say_trunk(&other, DIRECTION_OUT, FINDING_OPENED); /* each reports one of them */
    assert_int_equal(kit_incident(1).element.direction, DIRECTION_BOTH);
    say_trunk(&one, DIRECTION_OUT, FINDING_UPDATED);
    assert_int_equal(kit_incident(1).element.direction, DIRECTION_OUT);
    say_trunk(&one, DIRECTION_NONE, FINDING_UPDATED);
    assert_int_equal(kit_incident(1).element.direction, DIRECTION_OUT);
    say_trunk(&other, DIRECTION_NONE, FINDING_UPDATED); /* no host reports it any more */
    assert_int_equal(kit_incident(1).element.direction, DIRECTION_NONE);
    say_trunk(&other, DIRECTION_IN, FINDING_UPDATED);
    say_trunk(&one, DIRECTION_IN, FINDING_CLOSED);
    say_trunk(&other, DIRECTION_IN, FINDING_CLOSED);
    assert_int_equal(kit_incident(1).element.direction, DIRECTION_IN); /* over, but still shown */
    assert_int_equal(kit_incident(1).pages, pages);                    /* no new page */
    assert_int_equal(kit_counters().incidents_open + kit_counters().firing, 1);
}

/* Three links of a host: the first incident goes on, and takes over everything of the others. */
static void the_first_takes_over_what_the_others_were(void **state)
{
    kit_finding_rules();
    config.route_count = 2;
    config.routes[1] = (struct alert_route){.severity = ALERT_PAGE, .receivers = 2};
    kit_rule(2, "gone", ALERT_ON_FINDING)->findings = 1ULL << FINDING_NIC_GONE;
    alerts_free(engine);
    engine = alerts_new(&config, now);
    memset(&told, 0, sizeof(told));
    const struct mono begin = now;
    const struct alert_finding first = down(8); /* a warning */
    struct alert_finding gone = kit_link_finding(9, FINDING_NIC_GONE);
    gone.since.ns = begin.ns - 5 * NS_PER_S; /* a page, and older */
    kit_say(&gone, FINDING_OPENED);
    kit_pass(NS_PER_S);
    assert_int_equal(told.incident, 2);
    assert_int_equal(told.receivers, 1 | 2);
    assert_int_equal(alerts_acknowledge(engine, now, 2, "ada"), 0);
    const struct alert_finding third = down(10);
    assert_int_equal(kit_incident(2).state, INCIDENT_MERGED);
    assert_int_equal(kit_incident(2).merged_into, 1);
    assert_int_equal(told.events[ALERT_ABSORBED], 1);
    assert_int_equal(kit_counters().incidents_open, 1);
    const struct alert_incident i = kit_incident(1);
    assert_string_equal(i.cause, "host1");
    assert_string_equal(i.acknowledged_by, "ada");
    assert_int_equal(i.severity, ALERT_PAGE);
    assert_int_equal(i.pages, 1);
    assert_int_equal(i.since.ns, gone.since.ns);
    assert_int_equal(i.alerts_total, 3);
    assert_int_equal(i.alerts_firing, 3);
    assert_int_equal(told.events[ALERT_WORSE], 1); /* it is larger than the notification stated */
    assert_int_equal(told.pages, 1);               /* and no second page */
    kit_say(&first, FINDING_CLOSED);
    kit_say(&gone, FINDING_CLOSED);
    kit_say(&third, FINDING_CLOSED);
    kit_pass(70 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
    assert_int_equal(told.incident, 1);
    assert_int_equal(told.receivers, 1 | 2); /* receivers of a part are told that it is over */
    struct alert_incident gone_one;
    assert_false(alerts_find_incident(engine, 2, &gone_one));
    assert_int_equal(kit_counters().incidents_open, 0);
}

/* One of them was a page: so the whole is one, for receivers that get it again. */
static void the_whole_is_as_loud_as_its_loudest(void **state)
{
    kit_finding_rules();
    kit_rule(2, "gone", ALERT_ON_FINDING)->findings = 1ULL << FINDING_NIC_GONE;
    config.route_count = 2;
    config.routes[1] =
        (struct alert_route){.severity = ALERT_PAGE, .receivers = 2, .repeat = span_s(60)};
    alerts_free(engine);
    engine = alerts_new(&config, now);
    memset(&told, 0, sizeof(told));
    (void)down(8);
    const struct alert_finding gone = kit_link_finding(9, FINDING_NIC_GONE);
    kit_say(&gone, FINDING_OPENED);
    kit_pass(NS_PER_S);
    (void)down(10);
    kit_pass(130 * NS_PER_S);
    assert_in_range(told.events[ALERT_REPEATED], 1, 3);
    assert_int_equal(told.receivers, 2);
    assert_int_equal(told.incident, 1);
}

static void the_first_incidents_acknowledgement_stays(void **state)
{
    kit_finding_rules();
    (void)down(8);
    assert_int_equal(alerts_acknowledge(engine, now, 1, "bob"), 0);
    (void)down(9);
    assert_int_equal(alerts_acknowledge(engine, now, 2, "ada"), 0);
    assert_string_equal(kit_incident(2).acknowledged_by, "ada");
    (void)down(10);
    assert_string_equal(kit_incident(1).acknowledged_by, "bob");
}

/* Two of a host stay two. Three that began too far apart stay three. */
static void incidents_begun_apart_stay_apart(void **state)
{
    kit_finding_rules();
    (void)down(8);
    (void)down(9);
    assert_int_equal(kit_counters().incidents_open, 2);
    kit_pass(35 * NS_PER_S);
    (void)down(10);
    kit_pass(35 * NS_PER_S);
    (void)down(11);
    assert_int_equal(kit_counters().incidents_open, 4);
    size_t cursor = 0;
    struct alert_incident i;
    uint64_t ids = 0;
    while (alerts_next_incident(engine, &cursor, &i)) {
        ids = ids * 10 + i.id;
        assert_int_equal(i.alerts_firing, 1);
    }
    assert_int_equal(ids, 1234);
    assert_int_equal(alerts_acknowledge(engine, now, 3, "ada"), 0);
    assert_string_equal(kit_incident(3).acknowledged_by, "ada");
    assert_null(kit_incident(1).acknowledged_by);
    (void)down(12); /* with the last one that makes two in 30 s */
    assert_int_equal(kit_counters().incidents_open, 5);
    (void)down(13); /* and now three */
    assert_int_equal(kit_counters().incidents_open, 4);
    assert_string_equal(kit_incident(4).cause, "host1");
}

/* The fleet as a whole is the cause from ten hosts on. */
static void nine_hosts_are_hosts_and_ten_are_the_fleet(void **state)
{
    for (uint32_t silent = 9; silent <= 10; silent++) {
        kit_rule(0, "silent", ALERT_ON_ABSENCE)->metric = ALERT_HOST_REPORT;
        rules[0].scope = ALERT_PER_HOST;
        rules[0].within = span_s(60);
        kit_start();
        living = 20;
        kit_pass(20 * NS_PER_S);
        living = 20 - silent;
        kit_pass(80 * NS_PER_S);
        assert_int_equal(kit_counters().firing, silent);
        assert_int_equal(kit_counters().incidents_open, silent == 10 ? 1 : 9);
        assert_string_equal(told.cause, silent == 10 ? "the fleet" : "host19");
    }
}

static struct alert_finding unplaced(uint32_t from, uint32_t to)
{
    return kit_path_finding(from, to, ELEMENT_UNKNOWN, NULL, false);
}

/* A dead path without further evidence belongs to the switch that died in the same second, whichever is reported first. */
static void dead_paths_go_with_the_switch_of_that_second(void **state)
{
    for (int first = 0; first < 2; first++) {
        for (int apart_ms = 900; apart_ms <= 1100; apart_ms += 200) {
            kit_finding_rules();
            struct alert_finding spine = kit_path_finding(0, 512, ELEMENT_SPINE, "spine1", true);
            struct alert_finding path = unplaced(80, 600);
            path.since = mono_add(spine.since, span_ms(-apart_ms));
            kit_say(first ? &path : &spine, FINDING_OPENED);
            kit_pass(200 * NS_PER_MS);
            kit_say(first ? &spine : &path, FINDING_OPENED);
            kit_pass(10 * NS_PER_S);
            assert_int_equal(kit_counters().incidents_open, apart_ms < 1000 ? 1 : 2);
            if (apart_ms < 1000) {
                assert_string_equal(told.cause, "spine1");
                assert_int_equal(told.pages, 1);
            }
        }
    }
    static const struct {
        enum element_kind kind;
        const char *name;
    } switches[] = {{ELEMENT_LEAF, "leaf3"},
                    {ELEMENT_SPINE, "spine1"},
                    {ELEMENT_ROUTER, "router 10.0.4.1"},
                    {ELEMENT_TRUNK, "trunk leaf3 - spine1"}};
    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
        kit_finding_rules();
        const struct alert_finding box = kit_path_finding(0, 512, switches[i].kind,
                                                          switches[i].name, true),
                                   far = unplaced(80, 600);
        kit_say(&box, FINDING_OPENED);
        kit_say(&far, FINDING_OPENED);
        kit_pass(10 * NS_PER_S);
        assert_int_equal(kit_counters().incidents_open, 1);
        assert_string_equal(told.cause, switches[i].name);
    }
    kit_finding_rules(); /* the path was reported long before its cause was known */
    rules[1].severity = ALERT_PAGE;
    kit_start();
    const struct alert_finding known = unplaced(80, 600);
    struct alert_finding cause = kit_path_finding(0, 512, ELEMENT_SPINE, "spine1", true);
    kit_say(&known, FINDING_OPENED);
    kit_pass(60 * NS_PER_S);
    assert_int_equal(told.pages, 1);
    kit_say(&cause, FINDING_OPENED);
    kit_pass(10 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 1);
    assert_int_equal(told.events[ALERT_ABSORBED], 1);
    assert_int_equal(told.events[ALERT_WORSE], 1);
    assert_string_equal(kit_incident(2).cause, "spine1");
    assert_int_equal(told.pages, 1); /* no second page */
    kit_finding_rules();             /* a host is no switch */
    const struct alert_finding host = kit_path_finding(0, 512, ELEMENT_HOST, "host0", true),
                               path = unplaced(80, 600);
    kit_say(&host, FINDING_OPENED);
    kit_say(&path, FINDING_OPENED);
    kit_pass(10 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 2);
}

/* If a rail gets worse while a switch is down, it has no cause of its own. But a host's figure isn't explained by the switch. */
static void a_figure_of_many_goes_with_the_fabric(void **state)
{
    for (int fabric = 0; fabric < 2; fabric++) {
        kit_finding_rules();
        struct alert_rule *r = kit_rule(2, "rail-loss", ALERT_ON_THRESHOLD);
        r->metric = ALERT_PATH_LOSS;
        r->scope = ALERT_PER_RAIL;
        r->aggregate = ALERT_MAX;
        r->limit = 100;
        kit_start();
        if (fabric) {
            const struct alert_finding spine =
                kit_path_finding(0, 512, ELEMENT_SPINE, "spine1", true);
            kit_say(&spine, FINDING_OPENED);
        } else {
            (void)down(80);
        }
        kit_pass(50 * NS_PER_S);
        for (int i = 0; i < 15; i++) {
            kit_sample(ALERT_PATH_LOSS, 3, 5000);
            kit_pass(NS_PER_S);
        }
        assert_int_equal(kit_counters().firing, 2);
        assert_int_equal(kit_counters().incidents_open, fabric ? 1 : 2);
        config.rule_count = 2;
    }
}

/* A better suspect moves an alert only if its incident no longer explains it. An incident has the name on which all its alerts
 * agree. */
static void a_better_suspect_of_the_same_thing_stays(void **state)
{
    struct alert_finding f = kit_path_finding(3, 80, ELEMENT_HOST, "host0", false);

    kit_finding_rules();
    kit_say(&f, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    assert_string_equal(told.cause, "unknown, one of host0 and others");
    f.suspect = suspect_named(ELEMENT_NIC, "host0/ib3 or its link"); /* a NIC of that host */
    kit_say(&f, FINDING_UPDATED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 1);
    assert_int_equal(told.events[ALERT_ABSORBED], 0);
    assert_int_equal(kit_incident(1).alerts_firing, 1);
    assert_int_equal(kit_incident(1).alerts_total, 1);
    assert_string_equal(told.cause, "host0/ib3");
    assert_int_equal(told.events[ALERT_WORSE], 1);
    f.suspect = suspect_named(ELEMENT_SPINE, "spine1"); /* something else */
    kit_say(&f, FINDING_UPDATED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 1);
    assert_int_equal(told.events[ALERT_ABSORBED], 1); /* it was the cause from the beginning */
    assert_string_equal(kit_incident(2).cause, "spine1");
    assert_int_equal(kit_incident(2).alerts_total, 1);
    assert_int_equal(told.pages, 1); /* no second page for it */
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(told.events[ALERT_WORSE], 2);
}

/* An incident begins with its oldest alert. */
static void an_incident_is_as_old_as_its_oldest_alert(void **state)
{
    kit_finding_rules();
    struct alert_finding f = kit_path_finding(3, 80, ELEMENT_SPINE, "spine1", true);
    kit_say(&f, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    struct alert_finding older = kit_path_finding(11, 88, ELEMENT_SPINE, "spine1", true);
    older.since.ns = f.since.ns - 7 * NS_PER_S;
    kit_say(&older, FINDING_OPENED);
    assert_int_equal(kit_incident(1).since.ns, older.since.ns);
    kit_say(&older, FINDING_CLOSED);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(300 * NS_PER_S);
    f = kit_path_finding(3, 80, ELEMENT_SPINE, "spine1", true);
    kit_say(&f, FINDING_OPENED); /* it comes back: it counts since then */
    assert_int_equal(kit_incident(1).since.ns, f.since.ns);
    assert_int_equal(kit_incident(1).reopened, 1);
}

/* It came back, went, and came back for a moment: it never lasted, so there is no page. */
static void a_page_needs_one_stretch_that_lasts(void **state)
{
    kit_finding_rules();
    rules[0].severity = ALERT_PAGE;
    kit_start();
    struct alert_finding f = down(3);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(600 * NS_PER_S);
    f = down(3);
    assert_int_equal(told.events[ALERT_REOPENED], 1);
    kit_pass(200 * NS_PER_S);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(30 * NS_PER_S);
    f = down(3);
    kit_pass(120 * NS_PER_S); /* 350 s after it came back */
    assert_int_equal(told.pages, 1);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(kit_counters().incidents_open, 1);
}

/* If it comes back much later, it counts as begun then. */
static void a_returned_incident_may_join_a_larger_one(void **state)
{
    kit_finding_rules();
    const struct alert_finding f = down(8);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(600 * NS_PER_S);
    (void)down(8);
    (void)down(9);
    (void)down(10);
    assert_int_equal(kit_counters().incidents_open, 1);
    assert_string_equal(told.cause, "host1");
}

/* Another rule's evidence, and another link that is certainly down, are news. The ninth link isn't. */
static void news_is_told_and_the_rest_counts(void **state)
{
    kit_finding_rules();
    const struct alert_finding host = kit_path_finding(600, 8, ELEMENT_HOST, "host1", true);
    kit_say(&host, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    for (uint32_t k = 0; k < 8; k++) {
        (void)down(8 + k);
    }
    assert_int_equal(told.events[ALERT_WORSE], 8);
    const struct alert_finding again = kit_link_finding(8, FINDING_LINK_DOWN);
    kit_say(&again, FINDING_OPENED);
    kit_pass(NS_PER_S);
    assert_int_equal(told.events[ALERT_WORSE], 8);
    assert_int_equal(told.pages, 1);
    assert_int_equal(kit_counters().incidents_open, 1);
    assert_int_equal(kit_incident(1).alerts_firing, 10);
    assert_int_equal(kit_incident(1).links, 9); /* those, and the one that reported the path */
}

/* A storm of alerts of one cause is sent once a second, and its last count is sent. */
static void a_growing_incident_is_passed_on_once_a_second(void **state)
{
    struct alert_action action;
    unsigned changes = 0;
    uint32_t firing = 0;

    kit_finding_rules();
    for (uint32_t k = 0; k < 300; k++) {
        struct alert_finding f = kit_path_finding(k, 512 + k, ELEMENT_SPINE, "spine1", true);
        f.phase = FINDING_OPENED;
        alerts_on_finding(engine, now, &f);
        now = mono_add(now, span_ms(10));
        if (!mono_before(now, alerts_deadline(engine))) {
            alerts_tick(engine, now);
        }
        while (alerts_next_action(engine, &action)) {
            changes += action.kind == ALERT_ACTION_INCIDENT;
            firing = action.incident.alerts_firing;
        }
    }
    assert_in_range(changes, 3, 8);
    for (const struct mono end = mono_add(now, span_ms(1100)); mono_before(now, end);) {
        now = mono_min(alerts_deadline(engine), end);
        alerts_tick(engine, now);
        while (alerts_next_action(engine, &action)) {
            firing = action.incident.alerts_firing;
        }
    }
    assert_int_equal(firing, 300);
}

/* New incidents take the room of resolved ones. Open ones stay. */
static void the_oldest_resolved_incident_makes_room(void **state)
{
    struct alert_incident i;

    config.incident_max = 3;
    kit_finding_rules();
    for (uint32_t k = 0; k < 2; k++) {
        const struct alert_finding f = down(8 * k);
        kit_pass(35 * NS_PER_S);
        kit_say(&f, FINDING_CLOSED);
    }
    (void)down(16);
    kit_pass(70 * NS_PER_S);
    assert_int_equal(kit_incident(1).state, INCIDENT_RESOLVED);
    assert_int_equal(kit_incident(2).state, INCIDENT_RESOLVED);
    (void)down(24);
    assert_false(alerts_find_incident(engine, 1, &i));
    assert_int_equal(kit_incident(2).state, INCIDENT_RESOLVED);
    (void)down(32 + 8 * 16);
    assert_false(alerts_find_incident(engine, 2, &i));
    (void)down(40 + 8 * 32); /* three are open: no room, except for the notice of that */
    assert_true(kit_counters().incidents_dropped > 0);
    assert_int_equal(kit_counters().incidents_open, 4);
    assert_int_equal(kit_incident(3).state, INCIDENT_OPEN);
}

/* Another dead path of the same cause isn't news. Only a link's own finding is. */
static void another_path_of_one_cause_only_counts(void **state)
{
    kit_finding_rules();
    const struct alert_finding host = kit_path_finding(600, 8, ELEMENT_HOST, "host1", true),
                               nic = kit_path_finding(608, 9, ELEMENT_NIC, "host1/ib1", true);
    kit_say(&host, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    kit_say(&nic, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_incident(1).alerts_firing, 2);
    assert_int_equal(told.events[ALERT_WORSE], 0);
}

/* An incident ends with the last text of its last alert. */
static void the_last_words_stay(void **state)
{
    kit_finding_rules();
    struct alert_finding f = kit_link_finding(8, FINDING_LINK_DOWN);
    f.text = "first words";
    kit_say(&f, FINDING_OPENED);
    kit_pass(NS_PER_S);
    assert_string_equal(told.text, "first words");
    f.text = "last words";
    kit_say(&f, FINDING_UPDATED);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(70 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
    assert_string_equal(told.text, "last words");
}

/* One more of a host would make them one incident. So the second is sent a second later. The first, and an unrelated one, are
 * sent at once. */
static void a_possible_part_of_a_larger_one_waits_a_second(void **state)
{
    kit_finding_rules();
    (void)down(8);
    assert_int_equal(told.notifications, 1);
    const struct alert_finding second = kit_link_finding(9, FINDING_LINK_DOWN),
                               other = kit_link_finding(80 + 5, FINDING_LINK_DOWN);
    kit_say(&second, FINDING_OPENED);
    kit_say(&other, FINDING_OPENED);
    kit_pass(900 * NS_PER_MS);
    assert_int_equal(told.notifications, 2);
    assert_string_equal(told.cause, "host10/ib5");
    kit_pass(200 * NS_PER_MS);
    assert_int_equal(told.notifications, 3);
    assert_string_equal(told.cause, "host1/ib1");
}

/* An element that one alert of an incident rules out isn't their common cause. */
static void an_alert_that_joins_rules_out_the_leaf(void **state)
{
    for (int joins = 0; joins < 2; joins++) {
        kit_finding_rules();
        (void)down(8);                                      /* host1/ib0, host1 or leaf0 */
        const struct alert_finding path = unplaced(600, 8); /* that NIC, or its host */
        if (joins) {
            kit_say(&path, FINDING_OPENED);
            assert_int_equal(kit_incident(1).alerts_firing, 2);
        }
        (void)down(16); /* two more of leaf0 */
        (void)down(24);
        assert_int_equal(kit_counters().incidents_open, joins ? 3 : 1);
    }
}

/* A merger is sent at once, even if the last change was just before. */
static void a_merger_is_passed_on_at_once(void **state)
{
    struct alert_action action;
    uint32_t firing = 0;

    kit_finding_rules();
    for (uint32_t nic = 8; nic <= 9; nic++) {
        const struct alert_finding f = kit_link_finding(nic, FINDING_LINK_DOWN);
        kit_say(&f, FINDING_OPENED);
    }
    struct alert_finding third = kit_link_finding(10, FINDING_LINK_DOWN);
    third.phase = FINDING_OPENED;
    alerts_on_finding(engine, now, &third);
    while (alerts_next_action(engine, &action)) {
        if (action.kind == ALERT_ACTION_INCIDENT && action.incident.id == 1) {
            firing = action.incident.alerts_firing;
        }
    }
    assert_int_equal(firing, 3);
}

/* An incident that one of its alerts places stays where it is: a switch of that second takes only unplaced ones. */
static void an_incident_placed_by_an_alert_stays_there(void **state)
{
    for (int placed = 0; placed < 2; placed++) {
        kit_finding_rules();
        const struct alert_finding path = unplaced(80, 600); /* host10's, or host75's */
        kit_say(&path, FINDING_OPENED);
        kit_pass(3 * NS_PER_S);
        if (placed) {
            (void)down(81);
            (void)down(82);
            assert_string_equal(kit_incident(1).cause, "host10");
        }
        struct alert_finding spine = kit_path_finding(0, 512, ELEMENT_SPINE, "spine1", true);
        spine.since = path.since;
        kit_say(&spine, FINDING_OPENED);
        kit_pass(5 * NS_PER_S);
        assert_int_equal(kit_counters().incidents_open, placed ? 2 : 1);
    }
}

/* Two hosts can't tell which of several elements it is, a third can: one incident, whose name changes in place. */
static void an_unknown_incident_is_renamed_in_place(void **state)
{
    const char *const names[] = {"trunk leaf0 - spine1", "trunk leaf2 - spine1", "spine1"};
    struct alert_finding f[3];

    kit_finding_rules();
    for (uint32_t h = 0; h < 3; h++) {
        f[h] = kit_path_finding(h * 80, 400 + h * 80, ELEMENT_UNKNOWN, NULL, false);
        for (uint32_t k = 0; h < 2 && k < 2; k++) { /* each lists one that the other rules out */
            const struct element e =
                suspect_named(k == 1 ? ELEMENT_SPINE : ELEMENT_TRUNK, names[k == 1 ? 2 : h]);
            element_choice_add(&f[h].choice, &e);
        }
    }
    f[2].suspect = suspect_named(ELEMENT_SPINE, "spine1");
    kit_say(&f[0], FINDING_OPENED);
    kit_pass(100 * NS_PER_MS);
    struct alert_incident i = kit_incident(1);
    assert_string_equal(i.cause, "unknown, one of trunk leaf0 - spine1 and spine1");
    assert_int_equal(i.element.kind, ELEMENT_UNKNOWN);
    assert_int_equal(i.choice.count, 2);
    assert_int_equal(i.choice.total, 2);
    assert_string_equal(i.host, "");
    kit_say(&f[1], FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    i = kit_incident(1);
    assert_int_equal(kit_counters().incidents_open, 1);
    assert_string_equal(i.cause, "unknown, one of spine1 and others"); /* candidates of both */
    assert_string_equal(told.cause, i.cause);
    assert_int_equal(told.pages, 1);
    const uint32_t before = told.notifications;
    f[2].since = f[0].since;
    kit_say(&f[2], FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    i = kit_incident(1);
    assert_int_equal(kit_counters().incidents_open, 1);
    assert_string_equal(i.cause, "spine1");
    assert_int_equal(i.element.kind, ELEMENT_SPINE);
    assert_int_equal(i.choice.count, 0);
    assert_int_equal(i.alerts_firing, 3);
    assert_int_equal(told.notifications, before + 1); /* the name changes, and no page is sent */
    assert_int_equal(told.pages, 1);
    for (uint32_t h = 0; h < 3; h++) {
        kit_say(&f[h], FINDING_CLOSED);
    }
    kit_pass(120 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 0);
    assert_string_equal(kit_incident(1).cause, "spine1");
}

/* It is over before its cause was known, or just as the name comes. Its end is sent once, to the receivers of its page, without a
 * new name. What begins later is another incident. */
static void an_unknown_one_ends_without_a_name(void **state)
{
    for (int late = 0; late < 2; late++) {
        struct alert_finding f = kit_path_finding(0, 400, ELEMENT_SPINE, "spine1", false);

        kit_finding_rules();
        told = (struct alert_told){0};
        kit_say(&f, FINDING_OPENED);
        kit_pass(5 * NS_PER_S);
        assert_int_equal(told.pages, 1);
        assert_string_equal(told.cause, "unknown, one of spine1 and others");
        if (late) {
            f.suspect = suspect_named(ELEMENT_SPINE, "spine1");
            kit_say(&f, FINDING_UPDATED);
        }
        kit_say(&f, FINDING_CLOSED);
        kit_pass(120 * NS_PER_S);
        assert_int_equal(kit_counters().incidents_open, 0);
        assert_int_equal(told.events[ALERT_RESOLVED], 1);
        assert_int_equal(told.incident, 1);
        assert_int_equal(told.pages, 1);
        assert_string_equal(told.cause, kit_incident(1).cause);
        assert_string_equal(kit_incident(1).cause,
                            late ? "spine1" : "unknown, one of spine1 and others");
        const uint32_t before = told.notifications;
        kit_pass(3600 * NS_PER_S);
        assert_int_equal(told.notifications, before);
        f = kit_path_finding(0, 400, ELEMENT_SPINE, "spine1", true);
        f.since = now;
        kit_say(&f, FINDING_OPENED);
        kit_pass(5 * NS_PER_S);
        assert_int_equal(told.incident, 2);
        assert_string_equal(kit_incident(2).cause, "spine1");
    }
}

/* A link is up again, but findings about its paths last longer: the name that was certain stays. */
static void a_name_outlasts_who_was_sure(void **state)
{
    for (int other = 0; other < 2; other++) {
        struct alert_finding sure = kit_path_finding(0, 400, ELEMENT_NIC, "host0/ib0", true),
                             path = kit_path_finding(0, 480, ELEMENT_UNKNOWN, NULL, false);
        const struct element spine = suspect_named(ELEMENT_SPINE, "spine1"),
                             nic = suspect_named(ELEMENT_NIC, "host0/ib0");

        kit_finding_rules();
        for (int k = 0; k < other; k++) { /* it lists its candidates, the NIC among them */
            element_choice_add(&path.choice, &nic);
            element_choice_add(&path.choice, &spine);
        }
        kit_say(&sure, FINDING_OPENED);
        kit_say(&path, FINDING_OPENED);
        kit_pass(5 * NS_PER_S);
        assert_int_equal(kit_counters().incidents_open, 1);
        assert_string_equal(kit_incident(1).cause, "host0/ib0");
        kit_say(&sure, FINDING_CLOSED);
        kit_pass(5 * NS_PER_S);
        assert_int_equal(kit_counters().incidents_open, 1);
        assert_string_equal(kit_incident(1).cause, "host0/ib0");
        assert_int_equal(kit_incident(1).element.kind, ELEMENT_NIC);
        kit_say(&path, FINDING_CLOSED);
        kit_pass(120 * NS_PER_S);
        assert_int_equal(kit_counters().incidents_open, 0);
    }
}

/* Another fault, of which one host is certain, doesn't give its name to an incident that can't be that. */
static void an_impossible_cause_gives_no_name(void **state)
{
    struct alert_finding f = kit_path_finding(0, 400, ELEMENT_SPINE, "spine1", false),
                         other = kit_path_finding(80, 480, ELEMENT_SPINE, "spine2", true);

    kit_finding_rules();
    kit_say(&f, FINDING_OPENED);
    kit_say(&other, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 2);
    assert_string_equal(kit_incident(1).cause, "unknown, one of spine1 and others");
    assert_string_equal(kit_incident(2).cause, "spine2");
}

/* Paths of one host died, and the hosts at their other ends know nothing more. The host isn't named for that. All are one
 * incident with the candidates of the host itself, whichever comes first. */
static void ends_of_dead_paths_are_no_names(void **state)
{
    for (int last = 0; last < 2; last++) {
        struct alert_finding own = kit_path_finding(0, 400, ELEMENT_UNKNOWN, NULL, false);
        const struct element trunk = suspect_named(ELEMENT_TRUNK, "trunk leaf0 - spine2"),
                             spine = suspect_named(ELEMENT_SPINE, "spine2");
        size_t cursor = 0;
        struct alert_incident i;

        kit_finding_rules();
        element_choice_add(&own.choice, &trunk);
        element_choice_add(&own.choice, &spine);
        for (uint32_t h = 0; h < 5; h++) {
            const struct alert_finding f =
                kit_path_finding(h % 2, 400 + h * 80, ELEMENT_UNKNOWN, NULL, false);
            if (h == (last ? 4 : 0)) {
                kit_say(&own, FINDING_OPENED);
            }
            kit_say(&f, FINDING_OPENED);
            kit_pass(20 * NS_PER_MS);
        }
        kit_pass(5 * NS_PER_S);
        assert_int_equal(kit_counters().incidents_open, 1);
        while (alerts_next_incident(engine, &cursor, &i)) {
            assert_int_not_equal(i.element.kind, ELEMENT_HOST);
            if (i.state == INCIDENT_OPEN) {
                assert_string_equal(i.cause, "unknown, one of trunk leaf0 - spine2 and spine2");
                assert_int_equal(i.alerts_firing, 6);
            }
        }
    }
}

/* It keeps its name over a restart, and the findings that come again are its own. */
static void an_unknown_one_is_restored_as_that(void **state)
{
    struct alert_finding f = kit_path_finding(0, 400, ELEMENT_SPINE, "spine1", false);
    struct alert_restore r = {.id = 7,
                              .severity = ALERT_PAGE,
                              .pages = 1,
                              .cause = "unknown, one of spine1 and others",
                              .element = element_unknown(),
                              .choice = f.choice,
                              .told = true,
                              .text = "a path is dead"};

    kit_finding_rules();
    assert_int_equal(alerts_restore(engine, now, &r), 0);
    assert_string_equal(kit_incident(7).cause, r.cause);
    assert_int_equal(kit_incident(7).choice.count, 1);
    kit_say(&f, FINDING_OPENED);
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 1);
    assert_string_equal(kit_incident(7).cause, r.cause);
    assert_int_equal(told.pages, 0);
    f.suspect = suspect_named(ELEMENT_SPINE, "spine1");
    kit_say(&f, FINDING_UPDATED);
    kit_pass(5 * NS_PER_S);
    assert_string_equal(kit_incident(7).cause, "spine1");
}

/* The same by later evidence: the other end is no longer suspected. */
static void a_better_suspect_rules_out_the_other_end(void **state)
{
    for (int better = 0; better < 2; better++) {
        kit_finding_rules();
        struct alert_finding f = kit_path_finding(3, 80, ELEMENT_UNKNOWN, NULL, false);
        kit_say(&f, FINDING_OPENED);
        kit_pass(NS_PER_S);
        f.suspect = suspect_named(ELEMENT_NIC, "host0/ib3");
        if (better) {
            kit_say(&f, FINDING_UPDATED);
        }
        (void)down(81);
        (void)down(82);
        assert_int_equal(kit_counters().incidents_open, better ? 3 : 1);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, kit_begin, kit_end)
    const struct CMUnitTest tests[] = {
        T(its_direction_is_what_its_alerts_tell_now),
        T(the_first_takes_over_what_the_others_were),
        T(the_whole_is_as_loud_as_its_loudest),
        T(the_first_incidents_acknowledgement_stays),
        T(incidents_begun_apart_stay_apart),
        T(nine_hosts_are_hosts_and_ten_are_the_fleet),
        T(dead_paths_go_with_the_switch_of_that_second),
        T(a_figure_of_many_goes_with_the_fabric),
        T(a_better_suspect_of_the_same_thing_stays),
        T(an_incident_is_as_old_as_its_oldest_alert),
        T(a_page_needs_one_stretch_that_lasts),
        T(a_returned_incident_may_join_a_larger_one),
        T(news_is_told_and_the_rest_counts),
        T(a_growing_incident_is_passed_on_once_a_second),
        T(the_oldest_resolved_incident_makes_room),
        T(another_path_of_one_cause_only_counts),
        T(the_last_words_stay),
        T(a_possible_part_of_a_larger_one_waits_a_second),
        T(an_alert_that_joins_rules_out_the_leaf),
        T(an_unknown_incident_is_renamed_in_place),
        T(an_unknown_one_ends_without_a_name),
        T(a_name_outlasts_who_was_sure),
        T(an_impossible_cause_gives_no_name),
        T(ends_of_dead_paths_are_no_names),
        T(an_unknown_one_is_restored_as_that),
        T(a_better_suspect_rules_out_the_other_end),
        T(an_incident_placed_by_an_alert_stays_there),
        T(a_merger_is_passed_on_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
