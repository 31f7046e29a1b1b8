/* Several faults at once: uncertain findings must not turn known faults into a larger one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "alert_kit.h"

static struct alert_finding guess_at(uint32_t number, uint32_t leaf)
{
    char trunk[64];

    snprintf(trunk, sizeof(trunk), "trunk leaf%u - spine1", leaf);
    return kit_path_finding(number * 16, 400 + number * 8, ELEMENT_TRUNK, trunk, false);
}

/* One trunk of spine1 dies, and is known for 15 s. */
static struct alert_finding known_trunk(void)
{
    const struct alert_finding known =
        kit_path_finding(3, 200, ELEMENT_TRUNK, "trunk leaf4 - spine1", true);

    kit_say(&known, FINDING_OPENED);
    kit_pass(15 * NS_PER_S);
    return known;
}

/* One trunk of spine1 is known to be dead. A second one dies: a host that finds this may suspect any trunk there. Then it is
 * known, too. */
static void a_known_trunk_and_guesses_are_no_spine(void **state)
{
    struct alert_finding second[4];

    kit_finding_rules();
    living = 100;
    (void)known_trunk();
    assert_string_equal(kit_incident(1).cause, "trunk leaf4 - spine1");
    for (uint32_t k = 0; k < 4; k++) {
        second[k] = guess_at(k, 10 + k);
        kit_say(&second[k], FINDING_OPENED);
    }
    kit_pass(5 * NS_PER_S);
    assert_string_equal(kit_incident(1).cause, "trunk leaf4 - spine1");
    assert_int_equal(kit_counters().incidents_open, 2);
    assert_memory_equal(told.cause, "unknown, one of ", 16);
    for (uint32_t k = 0; k < 4; k++) {
        suspect_set(&second[k], suspect_named(ELEMENT_TRUNK, "trunk leaf5 - spine1"), true);
        kit_say(&second[k], FINDING_UPDATED);
    }
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 2);
    assert_string_equal(told.cause, "trunk leaf5 - spine1");
    assert_string_equal(kit_incident(1).cause, "trunk leaf4 - spine1");
}

/* Three certain ones are a spine's, and take the guesses in. */
static void known_trunks_are_a_spine(void **state)
{
    kit_finding_rules();
    living = 100;
    for (uint32_t k = 0; k < 4; k++) {
        const struct alert_finding f = guess_at(k, 10 + k);
        kit_say(&f, FINDING_OPENED);
    }
    for (uint32_t k = 4; k < 7; k++) {
        struct alert_finding f = guess_at(k, 10 + k);
        f.suspect = f.choice.one_of[0];
        f.choice = (struct element_choice){0};
        kit_say(&f, FINDING_OPENED);
    }
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 1);
    assert_string_equal(told.cause, "spine1");
    assert_int_equal(told.pages, 1);
}

/* At first all hosts together took two trunks for their spine. */
static void two_trunks_taken_for_their_spine_become_two_incidents(void **state)
{
    struct alert_finding f[6];

    kit_finding_rules();
    living = 100;
    for (uint32_t k = 0; k < 6; k++) {
        f[k] = kit_path_finding(k * 16, 400 + k * 8, ELEMENT_SPINE, "spine1", true);
        kit_say(&f[k], FINDING_OPENED);
    }
    kit_pass(5 * NS_PER_S);
    assert_string_equal(kit_incident(1).cause, "spine1");
    for (uint32_t k = 0; k < 6; k++) {
        f[k].suspect = suspect_named(ELEMENT_TRUNK,
                                     k % 2 == 0 ? "trunk leaf4 - spine1" : "trunk leaf5 - spine1");
        kit_say(&f[k], FINDING_UPDATED);
    }
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 2);
    assert_memory_equal(kit_incident(1).cause, "trunk leaf", 10);
    assert_memory_equal(kit_incident(2).cause, "trunk leaf", 10);
    assert_string_not_equal(kit_incident(1).cause, kit_incident(2).cause);
    assert_int_equal(kit_incident(1).alerts_firing, 3);
    assert_int_equal(kit_incident(2).alerts_firing, 3);
    assert_int_equal(told.pages, 2); /* there is a second fault */
    for (uint32_t k = 0; k < 6; k++) {
        kit_say(&f[k], FINDING_CLOSED);
    }
    kit_pass(120 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 0);
}

/* Guesses at three trunks were one incident, the spine's. Then two of the trunks are known, and each has an incident already:
 * nothing is left of the spine's. */
static void guesses_that_were_elsewhere_leave_nothing(void **state)
{
    struct alert_finding known[2], guess[4];

    kit_finding_rules();
    living = 100;
    for (uint32_t k = 0; k < 2; k++) {
        known[k] = kit_path_finding(3 + k, 200 + 8 * k, ELEMENT_TRUNK,
                                    k == 0 ? "trunk leaf4 - spine1" : "trunk leaf5 - spine1", true);
        kit_say(&known[k], FINDING_OPENED);
    }
    kit_pass(15 * NS_PER_S);
    for (uint32_t k = 0; k < 4; k++) {
        guess[k] = guess_at(k, 10 + k);
        kit_say(&guess[k], FINDING_OPENED);
    }
    kit_pass(5 * NS_PER_S);
    for (uint32_t k = 0; k < 4; k++) {
        guess[k].suspect = known[k % 2].suspect;
        guess[k].choice = (struct element_choice){0};
        kit_say(&guess[k], FINDING_UPDATED);
    }
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 2);
    assert_string_equal(kit_incident(1).cause, "trunk leaf4 - spine1");
    assert_string_equal(kit_incident(2).cause, "trunk leaf5 - spine1");
    assert_int_equal(kit_incident(1).alerts_firing, 3);
    assert_int_equal(kit_incident(2).alerts_firing, 3);
}

/* Four guesses were one incident, the spine's. Two of them are known to be of a trunk that has an incident already. Then the
 * others turn out to be of a NIC: only that trunk is left of the spine's. suspects: another rule has the NIC's findings. */
static void guesses_of_which_some_are_elsewhere(uint32_t suspects)
{
    struct alert_finding guess[4];

    kit_finding_rules();
    if (suspects != 0) {
        rules[1].suspects = suspects;
        kit_rule(2, "nic-dead", ALERT_ON_FINDING)->findings = 1ULL << FINDING_PATH_DEAD;
        rules[2].suspects = 1u << ELEMENT_NIC;
        kit_start();
    }
    living = 100;
    const struct alert_finding known = known_trunk();
    for (uint32_t k = 0; k < 4; k++) {
        guess[k] = guess_at(k, 10 + k);
        kit_say(&guess[k], FINDING_OPENED);
    }
    kit_pass(5 * NS_PER_S);
    for (uint32_t k = 0; k < 4; k++) {
        guess[k].suspect =
            k < 2 ? known.suspect : element_of(ELEMENT_NIC, PLACE_NIC, guess[2].from_nic);
        guess[k].choice = (struct element_choice){0};
        kit_say(&guess[k], FINDING_UPDATED);
    }
    kit_pass(5 * NS_PER_S);
    assert_int_equal(kit_counters().incidents_open, 2);
    assert_string_equal(kit_incident(1).cause, "trunk leaf4 - spine1");
    assert_int_equal(kit_incident(1).alerts_firing, 3);
}

static void a_guess_that_leaves_may_be_the_last_that_disagreed(void **state)
{
    guesses_of_which_some_are_elsewhere(0);
}

static void nor_if_another_rule_tells_of_it(void **state)
{
    guesses_of_which_some_are_elsewhere(1u << ELEMENT_TRUNK | 1u << ELEMENT_SPINE);
}

#define T(test) cmocka_unit_test_setup_teardown(test, kit_begin, kit_end)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_known_trunk_and_guesses_are_no_spine),
        T(known_trunks_are_a_spine),
        T(two_trunks_taken_for_their_spine_become_two_incidents),
        T(guesses_that_were_elsewhere_leave_nothing),
        T(a_guess_that_leaves_may_be_the_last_that_disagreed),
        T(nor_if_another_rule_tells_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
