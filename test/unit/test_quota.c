/* A host's quota of the loop's time: the host pays for what it used, not for what others used, and the quota refills. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <time.h>

#include "base/bug.h"
#include "service/controller/fleet/ingest_internal.h"
#include "service/controller/fleet/quota.h"
#include "service/controller/fleet/state.h"

static int64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void work(int64_t ms)
{
    const int64_t end = thread_ns() + ms * NS_PER_MS;
    while (thread_ns() < end) {
    }
}

static void a_turn_has_an_end(void **state)
{
    struct fleet_host h = {0};
    (void)state;
    quota_fill(&h);
    quota_turn_begins(&h);
    assert_true(quota_turn_left(&h));
    work(QUOTA_TURN_MS);
    assert_false(quota_turn_left(&h));
    quota_turn_ends(&h);
    quota_turn_begins(&h); /* the next request */
    assert_true(quota_turn_left(&h));
    quota_turn_ends(&h);
}

static void the_time_of_others_is_not_its_own(void **state)
{
    struct fleet_host h = {0};
    (void)state;
    quota_fill(&h);
    h.quota.work_ms = 50;
    work(100);
    assert_true(quota_left(&h));
    quota_turn_begins(&h);
    quota_turn_ends(&h);
    assert_true(h.quota.work_ms > 40);
}

static void a_client_over_its_quota_waits(void **state)
{
    struct fleet_host h = {0};
    (void)state;
    quota_fill(&h);
    assert_int_equal(quota_wait_ms(&h), 0);
    h.quota.work_ms = 20;
    quota_turn_begins(&h);
    assert_true(quota_left(&h));
    h.quota.work_ns -= (1000 + QUOTA_WORK_MS_DEBT) * NS_PER_MS; /* as after so much work */
    assert_false(quota_left(&h));                               /* in the middle of its turn */
    quota_turn_ends(&h);
    const uint32_t wait = quota_wait_ms(&h);
    assert_in_range(wait, 1000, QUOTA_WAIT_MS_MAX);
    assert_true(quota_refuses(&h));
    h.quota.at_ns -= (int64_t)wait * NS_PER_MS; /* that is over */
    assert_true(quota_left(&h));
    assert_false(quota_refuses(&h));
    h.quota.at_ns -= 86400 * NS_PER_S;
    assert_true(quota_left(&h));
    assert_true(h.quota.work_ms <= QUOTA_WORK_MS);
}

/* Addresses whose joins count together: a whole IPv6 network; else those that draw the same place, which changes with each
 * start. */
static void strangers_of_a_network_share_a_place(void **state)
{
    static const char *const others[][2] = {{"2001:db8::1", "2001:db8:0:1::1"},
                                            {"10.0.0.1", "10.0.0.2"},
                                            {"10.0.0.1", "11.0.0.1"},
                                            {"local", "10.0.0.1"}};
    uint32_t together[ARRAY_COUNT(others)] = {0};
    (void)state;
    for (uint64_t salt = 0; salt < 640; salt++) {
        assert_int_equal(ingest_join_place(salt, "2001:db8::1"),
                         ingest_join_place(salt, "2001:db8::ffff:0:0:1"));
        for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
            together[i] +=
                ingest_join_place(salt, others[i][0]) == ingest_join_place(salt, others[i][1]);
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) { /* one of 64 salts, not all or none */
        assert_in_range(together[i], 1, 40);
    }
}

/* A fleet behind one address joins as fast as it likes. A host that is refused again and again waits, and no other does. */
static void only_what_made_no_member_is_charged(void **state)
{
    static struct controller c = {.join_salt = 5};
    static const char *const own = "10.0.0.1";
    char other[32] = "10.0.0.2";
    int charges = 0;
    (void)state;
    for (int i = 3; ingest_join_place(c.join_salt, own) == ingest_join_place(c.join_salt, other);
         i++) {
        snprintf(other, sizeof(other), "10.0.0.%d", i);
    }
    for (int i = 0; i < 1000; i++) { /* each made a new member */
        assert_true(ingest_join_take(&c, own));
        ingest_join_give_back(&c, own);
    }
    while (ingest_join_take(&c, own) && charges < 100000) {
        charges++; /* these end later, or never */
    }
    assert_in_range(charges, 200, 99999); /* a slow machine gets some back meanwhile */
    assert_true(ingest_join_take(&c, other));
}

/* No host shares a stranger's place for longer than a minute. */
static void places_are_drawn_anew_each_minute(void **state)
{
    static struct controller c = {.join_salt = 5};
    uint32_t drawn = 0;
    (void)state;
    for (c.seconds = 0; c.seconds < 600; c.seconds++) {
        const uint64_t before = c.join_salt;
        ingest_second(&c);
        drawn += c.join_salt != before;
    }
    assert_int_equal(drawn, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_has_an_end),
        cmocka_unit_test(the_time_of_others_is_not_its_own),
        cmocka_unit_test(a_client_over_its_quota_waits),
        cmocka_unit_test(strangers_of_a_network_share_a_place),
        cmocka_unit_test(only_what_made_no_member_is_charged),
        cmocka_unit_test(places_are_drawn_anew_each_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
