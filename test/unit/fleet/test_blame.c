/* Is a job slow because of the network? Either answer needs evidence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/fleet/blame.h"

static const struct blame_signals quiet = {.ranks = 4,
                                           .ranks_heard = 4,
                                           .flows = 12,
                                           .network_ns = 22000,
                                           .floor_ns = 15000,
                                           .sender_ns = 1000,
                                           .receiver_ns = 4000};

static void a_quiet_network_is_innocent(void **state)
{
    struct blame_signals s = quiet;
    assert_string_equal(blame_answer(blame_judge(&s)), "no");
    s.sender_ns = 8000000; /* the job itself is slow */
    assert_int_equal(blame_judge(&s), BLAME_NOT);
    s.network_ns = 6000000; /* the network, too, but less */
    assert_int_equal(blame_judge(&s), BLAME_NOT);
    s.floor_ns = s.network_ns - 1000; /* far away, without a wait */
    s.sender_ns = 0;
    assert_int_equal(blame_judge(&s), BLAME_NOT);
}

static void who_waits_in_the_network_says_so(void **state)
{
    struct blame_signals s = quiet;
    s.network_ns = 6000000;
    assert_int_equal(blame_judge(&s), BLAME_LOADED);
    assert_string_equal(blame_answer(BLAME_LOADED), "yes");
    s.network_ns = s.floor_ns + BLAME_WAIT_NS - 1;
    assert_int_equal(blame_judge(&s), BLAME_NOT);
}

/* The delay between hosts is larger than at both hosts together. */
static void what_waits_at_the_ends_is_not_the_network(void **state)
{
    struct blame_signals s = quiet;
    s.floor_ns = 0;
    s.network_ns = BLAME_WAIT_NS;
    s.sender_ns = s.receiver_ns = BLAME_WAIT_NS / 2 - 1;
    assert_int_equal(blame_judge(&s), BLAME_LOADED);
    s.sender_ns = s.receiver_ns = BLAME_WAIT_NS / 2;
    assert_int_equal(blame_judge(&s), BLAME_NOT);
    s.sender_ns = s.receiver_ns = BLAME_WAIT_NS * 2 / 3;
    assert_int_equal(blame_judge(&s), BLAME_NOT);
}

static void a_lane_that_it_took_is_evidence(void **state)
{
    struct blame_signals s = quiet;
    s.lanes_down = 1;
    assert_int_equal(blame_judge(&s), BLAME_BROKEN);
    s.ranks_heard = 1; /* the ranks that are heard measured it */
    assert_int_equal(blame_judge(&s), BLAME_BROKEN);
    s = quiet;
    s.faults = 2;
    assert_string_equal(blame_word(blame_judge(&s)), "hurt");
    assert_string_equal(blame_answer(BLAME_HURT), "yes");
    s = quiet;
    s.ranks_parted = 1;
    assert_string_equal(blame_word(blame_judge(&s)), "broken");
}

static void what_is_not_known_is_not_no(void **state)
{
    struct blame_signals s = quiet;
    s.ranks_heard = 3;
    assert_string_equal(blame_answer(blame_judge(&s)), "unknown");
    s.ranks = 0; /* the number of ranks is unknown: those that are heard count */
    assert_int_equal(blame_judge(&s), BLAME_NOT);
    s.ranks_heard = 0;
    assert_int_equal(blame_judge(&s), BLAME_UNHEARD);
    s = quiet;
    s.flows = 0;
    assert_int_equal(blame_judge(&s), BLAME_UNTIMED);
}

/* Medians over flows that arrive. Flows that send, or have no known delay, don't count. The first lane that is down is named. An
 * old fault is dropped. */
static void ranks_are_added_up(void **state)
{
    static struct blame_book b;
    struct blame_flow f = {.active = true};

    (void)state;
    blame_begin(&b, 2, 3, span_s(601));
    assert_int_equal(b.signals.faults, 0);
    blame_begin(&b, 2, 3, span_s(600));
    assert_int_equal(b.signals.faults, 3);
    blame_begin(&b, 2, 0, span_s(0));
    blame_on_rank(&b, false);
    assert_int_equal(blame_end(&b), BLAME_UNHEARD);
    blame_on_rank(&b, false);
    assert_int_equal(blame_end(&b), BLAME_UNTIMED);
    for (uint32_t i = 0; i < BLAME_FLOW_MAX + 7; i++) {
        f.network_ns = 1000 * (i % 3 + 1);
        f.floor_ns = 1000;
        f.sender_ns = i;
        assert_false(blame_on_flow(&b, &f));
    }
    f.network_ns = 0;
    assert_false(blame_on_flow(&b, &f));
    assert_int_equal(blame_end(&b), BLAME_NOT);
    assert_int_equal(b.signals.flows, BLAME_FLOW_MAX);
    assert_int_equal(b.signals.network_ns, 2000);
    assert_int_equal(b.signals.sender_ns, BLAME_FLOW_MAX / 2);
    f = (struct blame_flow){.sending = true, .active = true, .network_ns = 9000000};
    assert_false(blame_on_flow(&b, &f));
    assert_int_equal(b.signals.flows, BLAME_FLOW_MAX);
    f.down = true;
    assert_true(blame_on_flow(&b, &f));
    assert_false(blame_on_flow(&b, &f)); /* the second one */
    assert_int_equal(blame_end(&b), BLAME_BROKEN);
    assert_int_equal(b.signals.lanes_down, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_added_up),
        cmocka_unit_test(a_quiet_network_is_innocent),
        cmocka_unit_test(who_waits_in_the_network_says_so),
        cmocka_unit_test(what_waits_at_the_ends_is_not_the_network),
        cmocka_unit_test(a_lane_that_it_took_is_evidence),
        cmocka_unit_test(what_is_not_known_is_not_no),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
