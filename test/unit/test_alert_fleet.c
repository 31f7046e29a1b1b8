/* Foliot's built-in rules over whole fleets: a healthy fleet gives no page, and each fault gives one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alert/alert_world.h"

static struct world world;

static void start(uint32_t hosts, uint64_t seed)
{
    assert_true(world_init(&world, hosts, seed));
}
static int end(void **state)
{
    world_done(&world);
    memset(&world, 0, sizeof(world));
    return 0;
}

static void minutes(int count)
{
    while (count-- > 0) {
        world_minute(&world, false);
    }
}

static void days_of_a_healthy_fleet_page_nobody(void **state)
{
    start(32, 3);
    for (int minute = 0; minute < 2 * 1440; minute++) {
        world_minute(&world, true);
        if (world.pages > 0) {
            fail_msg("minute %d: %s: %s", minute, world.page_cause, world.page_text);
        }
    }
    assert_true(world.told > 0); /* warnings there were */
}

static void a_dead_spine_of_a_thousand_nics_is_one_page(void **state)
{
    start(125, 4);
    minutes(2);
    for (uint32_t k = 0; k < 400; k++) {
        const uint32_t from = (uint32_t)prng_below(&world.prng, 1000),
                       to = (uint32_t)prng_below(&world.prng, 1000);
        char trunk[64];
        snprintf(trunk, sizeof(trunk), "trunk leaf%u - spine1",
                 from / WORLD_NICS / WORLD_POD * WORLD_NICS + from % 8);
        world_finding(&world, to / WORLD_NICS, FINDING_PATH_DEAD, from, to, ELEMENT_TRUNK, trunk,
                      k % 2, 600);
        world_run(&world, mono_add(world.now, span_ms(8)));
    }
    minutes(3);
    assert_int_equal(world.pages, 1);
    assert_string_equal(world.page_cause, "spine1");
}

static uint32_t open_incidents(void)
{
    struct alert_incident incident;
    size_t cursor = 0;
    uint32_t count = 0;

    while (alerts_next_incident(world.engine, &cursor, &incident)) {
        count += incident.state == INCIDENT_NEW || incident.state == INCIDENT_OPEN;
    }
    return count;
}

static void two_faults_at_once_are_two_pages(void **state)
{
    start(125, 5);
    minutes(2);
    for (uint32_t k = 0; k < 64; k++) {
        char trunk[64];
        snprintf(trunk, sizeof(trunk), "trunk leaf%u - spine1", k);
        world_finding(&world, k, FINDING_PATH_DEAD, k * 8, (k + 40) * 8 % 1000, ELEMENT_TRUNK,
                      trunk, true, 600);
        if (k == 30) {
            world_finding(&world, 100, FINDING_LINK_DOWN, 805, ALERT_NO_ID, ELEMENT_NIC, NULL, true,
                          600);
        }
        world_run(&world, mono_add(world.now, span_ms(20)));
    }
    minutes(5);
    assert_int_equal(world.pages, 2);
}

/* Some of the hosts that miss a path know which trunk it is, others only that it is dead. */
static void dead_paths_without_a_suspect_are_of_the_trunk_that_broke_with_them(void **state)
{
    for (int first = 0; first < 2; first++) {
        start(32, 5);
        minutes(2);
        for (uint32_t k = 0; k < 12; k++) {
            const bool known = k % 2 == (first != 0);
            world_finding(&world, k, FINDING_PATH_DEAD, k * 8, (k + 20) * 8,
                          known ? ELEMENT_TRUNK : ELEMENT_UNKNOWN,
                          known ? "trunk leaf0 - spine1" : NULL, known, 600);
            world_run(&world, mono_add(world.now, span_ms(20)));
        }
        world_run(&world, mono_add(world.now, span_ms(5000)));
        /* one that died later is separate */
        world_finding(&world, 30, FINDING_PATH_DEAD, 240, 80, ELEMENT_UNKNOWN, NULL, false, 600);
        world_run(&world, mono_add(world.now, span_ms(5000)));
        assert_int_equal(world.pages, 1);
        assert_string_equal(world.page_cause, "trunk leaf0 - spine1");
        assert_int_equal(open_incidents(), 2);
        end(state);
    }
    start(8, 1); /* what the teardown ends */
}

static void fifty_flaps_are_one_page(void **state)
{
    start(8, 6);
    minutes(2);
    for (int k = 0; k < 50; k++) {
        world.downs[5]++;
        world_finding(&world, 0, FINDING_LINK_DOWN, 5, ALERT_NO_ID, ELEMENT_NIC, NULL, true, 5);
        if (k == 9) {
            world_finding(&world, 0, FINDING_LINK_FLAPPING, 5, ALERT_NO_ID, ELEMENT_NIC, NULL, true,
                          7200);
        }
        minutes(1);
    }
    assert_int_equal(world.pages, 1);
    assert_string_equal(world.page_cause, "host0/ib5");
}

/* ---- each default rule fires at its fault --------------------------------------------------------------------------- */

static bool fired(const char *rule)
{
    struct alert alert;
    size_t cursor = 0;

    while (alerts_next_alert(world.engine, &cursor, &alert)) {
        if (alert.state == ALERT_FIRING && strcmp(alert.rule_name, rule) == 0) {
            return alert.text[0] != '\0' && alert.incident != 0;
        }
    }
    return false;
}

/* The fault of a finding rule is the finding that the rule wants. */
static void cause_finding(const struct alert_rule *r)
{
    uint32_t kind = 0, suspect = ELEMENT_UNKNOWN;

    while ((r->findings >> kind & 1) == 0) {
        kind++;
    }
    while (r->suspects != 0 && (r->suspects >> suspect & 1) == 0) {
        suspect++;
    }
    world_finding(&world, 1, kind, 8, 17, suspect, suspect == ELEMENT_UNKNOWN ? NULL : "leaf0",
                  true, 1e6);
}

static void cause_series(const struct alert_rule *r, int minute)
{
    const struct alert_metric_info *m = alert_metric_info(r->metric);
    const double step =
        r->condition == ALERT_ON_THRESHOLD ? 0 : (r->limit + 1) * 120 * (minute + 1);
    const double value = r->condition != ALERT_ON_THRESHOLD ? step
                         : r->below                         ? r->limit - 1
                                                            : r->limit * 2 + 1;

    if (r->aggregate == ALERT_EACH) {
        world_sample(&world, 1, r->metric, m->scope == ALERT_PER_HOST ? ALERT_NO_ID : 9, value);
        return;
    }
    for (uint32_t nic = 0; nic < world.host_count * WORLD_NICS; nic++) {
        world_sample(&world, nic / WORLD_NICS, r->metric, nic, value);
    }
}

static void each_default_rule_fires_when_its_fault_is_there(void **state)
{
    static struct alert_file rules;
    struct config_error error;

    assert_int_equal(alert_file_parse("defaults", NULL, 0, &rules, &error), 0);
    assert_true(rules.rule_count > 25);
    for (size_t k = 0; k < rules.rule_count; k++) {
        const struct alert_rule *r = &rules.rules[k];
        bool seen = false;
        start(4, 7);
        minutes(2);
        assert_false(fired(r->name));
        if (r->condition == ALERT_ON_FINDING) {
            cause_finding(r);
        }
        for (int minute = 0; minute < 40 && !seen; minute++) {
            if (r->condition == ALERT_ON_ABSENCE) {
                world.hosts[1].away = true;
                world.hosts[1].away_until_ns = INT64_MAX;
            } else if (r->condition != ALERT_ON_FINDING) {
                for (int part = 0; part < 6;
                     part++) { /* worse than the healthy report of the same minute */
                    cause_series(r, minute);
                    world_run(&world, mono_add(world.now, span_s(10)));
                    for (uint32_t h = 0; h < world.host_count; h++) {
                        alerts_on_host(world.engine, world.now, h);
                    }
                }
                seen = fired(r->name);
                continue;
            }
            minutes(1);
            seen = fired(r->name);
        }
        if (!seen) {
            fail_msg("the default rule '%s' doesn't fire", r->name);
        }
        end(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(days_of_a_healthy_fleet_page_nobody, end),
        cmocka_unit_test_teardown(a_dead_spine_of_a_thousand_nics_is_one_page, end),
        cmocka_unit_test_teardown(two_faults_at_once_are_two_pages, end),
        cmocka_unit_test_teardown(
            dead_paths_without_a_suspect_are_of_the_trunk_that_broke_with_them, end),
        cmocka_unit_test_teardown(fifty_flaps_are_one_page, end),
        cmocka_unit_test(each_default_rule_fires_when_its_fault_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
