/* One fault in phases: if a link is dead first, and then loses a share, that is one incident. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "alert_kit.h"

static const char trunk[] = "trunk leaf0 - spine1";

/* rules[2], of Foliot's built-in rules: a share is lost for a minute. rules[3]: without a suspect, for five minutes. */
static void rules_of_phases(void)
{
    kit_finding_rules();
    kit_rule(2, "fabric-lossy", ALERT_ON_FINDING)->findings = 1ULL << FINDING_PATH_LOSSY;
    rules[2].suspects = 1U << ELEMENT_TRUNK;
    rules[2].hold = span_s(60);
    kit_rule(3, "path-lossy", ALERT_ON_FINDING)->findings = 1ULL << FINDING_PATH_LOSSY;
    rules[3].suspects = 1U << ELEMENT_NIC | 1U << ELEMENT_UNKNOWN;
    rules[3].severity = ALERT_WARNING;
    rules[3].hold = span_s(300);
    living = 2; /* hosts that report it */
    kit_start();
}

static struct alert_finding lossy(const struct alert_finding *dead)
{
    struct alert_finding f = *dead;

    f.kind = FINDING_PATH_LOSSY;
    f.number += 1000;
    f.since = f.heard = now;
    return f;
}

/* The link is dead for two minutes. Then it loses a share, which is reported after 15 s. */
static struct alert_finding recover_in_part(struct alert_finding dead)
{
    kit_say(&dead, FINDING_OPENED);
    kit_pass(120 * NS_PER_S);
    kit_say(&dead, FINDING_CLOSED);
    kit_pass(15 * NS_PER_S);
    const struct alert_finding f = lossy(&dead);
    kit_say(&f, FINDING_OPENED);
    return f;
}

static void a_trunk_that_recovers_in_part_is_one_incident(void **state)
{
    rules_of_phases();
    const struct alert_finding f =
        recover_in_part(kit_path_finding(3, 12, ELEMENT_TRUNK, trunk, true));
    kit_pass(50 * NS_PER_S); /* no alert for longer than `keep` */
    assert_int_equal(kit_incident(1).state, INCIDENT_QUIET);
    kit_pass(100 * NS_PER_S);
    const struct alert_incident i = kit_incident(1);
    assert_int_equal(i.state, INCIDENT_OPEN);
    assert_int_equal(i.reopened, 0);
    assert_int_equal(told.events[ALERT_OPENED], 1);
    assert_int_equal(told.events[ALERT_RESOLVED] + told.events[ALERT_REOPENED], 0);
    assert_non_null(strstr(i.text, "; before: path-dead for 2 min"));
    kit_say(&f, FINDING_CLOSED);
    kit_pass(70 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
}

static void so_is_a_nic_however_long_its_rule_waits(void **state)
{
    rules_of_phases();
    recover_in_part(kit_path_finding(3, 12, ELEMENT_NIC, "host0/ib3", true));
    kit_pass(400 * NS_PER_S);
    const struct alert_incident i = kit_incident(1);
    assert_int_equal(i.state, INCIDENT_OPEN);
    assert_int_equal(i.reopened, 0);
    assert_int_equal(told.events[ALERT_RESOLVED] + told.events[ALERT_REOPENED], 0);
}

/* The loss ended: a minute later the incident is over. */
static void an_incident_whose_loss_ended_is_over(void **state)
{
    rules_of_phases();
    const struct alert_finding f =
        recover_in_part(kit_path_finding(3, 12, ELEMENT_TRUNK, trunk, true));
    kit_pass(50 * NS_PER_S);
    kit_say(&f, FINDING_CLOSED);
    kit_pass(70 * NS_PER_S);
    assert_int_equal(told.events[ALERT_RESOLVED], 1);
    assert_int_equal(kit_incident(1).state, INCIDENT_RESOLVED);
}

/* Another trunk of that leaf loses a share: that is no phase of this fault. */
static void another_element_does_not_hold_it_open(void **state)
{
    rules_of_phases();
    const struct alert_finding dead = kit_path_finding(3, 12, ELEMENT_TRUNK, trunk, true);
    kit_say(&dead, FINDING_OPENED);
    kit_pass(120 * NS_PER_S);
    kit_say(&dead, FINDING_CLOSED);
    const struct alert_finding other = kit_path_finding(3, 12, ELEMENT_NIC, "host0/ib3", true),
                               f = lossy(&other);
    kit_say(&f, FINDING_OPENED);
    kit_pass(70 * NS_PER_S);
    assert_int_equal(kit_incident(1).state, INCIDENT_RESOLVED);
}

/* A host that suspects it later than others has another rule's alert before: that is no phase. */
static void a_suspect_that_becomes_known_is_no_phase(void **state)
{
    rules_of_phases();
    rules[1].suspects = 1U << ELEMENT_TRUNK;
    kit_rule(4, "path-dead-unknown", ALERT_ON_FINDING)->findings = 1ULL << FINDING_PATH_DEAD;
    rules[4].suspects = 1U << ELEMENT_UNKNOWN;
    kit_start();
    struct alert_finding f = kit_path_finding(3, 12, ELEMENT_NIC, "host0/ib3", false);
    kit_say(&f, FINDING_OPENED);
    kit_pass(10 * NS_PER_S);
    suspect_set(&f, suspect_named(ELEMENT_TRUNK, trunk), true);
    kit_say(&f, FINDING_UPDATED);
    kit_pass(10 * NS_PER_S);
    assert_null(strstr(told.text, "before:"));
}

#define T(test) cmocka_unit_test_setup_teardown(test, kit_begin, kit_end)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_trunk_that_recovers_in_part_is_one_incident),
        T(so_is_a_nic_however_long_its_rule_waits),
        T(an_incident_whose_loss_ended_is_over),
        T(another_element_does_not_hold_it_open),
        T(a_suspect_that_becomes_known_is_no_phase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
