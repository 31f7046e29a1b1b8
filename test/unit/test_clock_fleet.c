/* Fleets of core/clock in the direct world: what a user would notice, in a second. Every seed is
 * printed on failure. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/clock_world.h"

static struct clock_world_config small(uint64_t seed)
{
    return (struct clock_world_config){.seed = seed,
                                       .members = 40,
                                       .degree = 12,
                                       .seconds = 12,
                                       .judge_from_s = 9,
                                       .noise_ns = 20,
                                       .queue_share = 0.3,
                                       .queue_ns = 1000,
                                       .delay_min_ns = 2000,
                                       .delay_max_ns = 10000,
                                       .paths = 2,
                                       .wander_ppb = 10,
                                       .rate_ppm = 50,
                                       .start_ns = 1e6,
                                       .edge_limit_ns = 12000,
                                       .hops = 4};
}

static void a_fleet_falls_onto_one_timeline(void **state)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const struct clock_world_config g = small(seed);
        struct clock_world_result r;
        clock_world_run(&g, &r);
        print_message("seed %d: p99 %.1f ns, start %.2f s\n", (int)seed, r.p99_ns, r.p99_100ns_s);
        assert_true(r.p99_ns < 40);
        assert_true(r.p99_100ns_s > 0 && r.p99_100ns_s < 8);
        assert_true(r.synced_share > 0.99);
        assert_int_equal(r.hard_violations, 0);
        assert_int_equal(r.false_liars + r.false_steps, 0);
    }
}

static void same_seed_same_history(void **state)
{
    const struct clock_world_config g = small(7);
    struct clock_world_result a, b;

    clock_world_run(&g, &a);
    clock_world_run(&g, &b);
    a.host_seconds_cpu_s = b.host_seconds_cpu_s = 0;
    assert_true(a.p99_ns == b.p99_ns && a.max_ns == b.max_ns && a.packets == b.packets);
    assert_true(a.statistical_width_ns == b.statistical_width_ns &&
                a.hard_width_ns == b.hard_width_ns);
}

/* Within an epoch nobody ever reads a time that lies before one read earlier; steps, jumps and
 * merges included. */
static void fleet_time_never_runs_backwards_within_an_epoch(void **state)
{
    struct clock_world_config g = small(11);
    int64_t last[40] = {0};
    uint32_t epoch[40] = {0};
    uint64_t timeline[40] = {0};

    g.event_count = 1;
    g.event_s = 6;
    g.step_ns = -400000;
    struct clock_world *w = clock_world_new(&g);
    while (clock_world_step(w)) {
        for (int i = 0; i < g.members; i++) {
            struct clock_terms t;
            clock_terms(clock_world_member(w, i), &t);
            if (t.status == CLOCK_UNKNOWN || t.status == CLOCK_DISRUPTED) {
                last[i] = 0;
                continue;
            }
            const struct nic_time now = clock_world_member_now(w, i);
            const struct clock_reading r = clock_terms_read(&t, now);
            /* a step of the host's own clock is seen by readers until it is noticed: they read by
             * that clock */
            if (last[i] != 0 && epoch[i] == t.epoch && timeline[i] == t.timeline &&
                i >= g.event_count) {
                assert_true(r.time.ns >= last[i]);
            }
            last[i] = r.time.ns;
            epoch[i] = t.epoch;
            timeline[i] = t.timeline;
        }
    }
    clock_world_free(w);
}

static void liars_are_named_and_move_nobody(void **state)
{
    static const enum clock_world_lie kinds[] = {LIE_COLLUDING, LIE_TWO_FACED, LIE_RANDOM,
                                                 LIE_OLDEST};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct clock_world_config g = small(20 + i);
        struct clock_world_result r;
        g.members = 60;
        g.degree = 16;
        g.lie = kinds[i];
        g.liar_share = 0.08;
        g.lie_ns = kinds[i] == LIE_RANDOM ? 20000 : 200;
        g.lie_from_s = 24;
        g.judge_from_s = 27;
        g.seconds = 32;
        clock_world_run(&g, &r);
        print_message("lie %d: p99 %.1f named %.2f in %.1f s\n", (int)kinds[i], r.p99_ns,
                      r.liars_named_share, r.named_p95_s);
        assert_true(r.p99_ns < 40);
        assert_int_equal(r.hard_violations, 0);
        assert_int_equal(r.false_liars, 0);
        assert_true(r.liars_named_share > 0.99 && r.named_p95_s < 8);
    }
}

static void a_step_is_marked_and_cured(void **state)
{
    static const double steps[] = {1e6, -1e6, 5e7};

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct clock_world_config g = small(30 + i);
        struct clock_world_result r;
        g.event_count = 1;
        g.event_s = 8;
        g.step_ns = steps[i];
        g.seconds = 16;
        clock_world_run(&g, &r);
        assert_true(r.event_unsynced_s >= 0 && r.event_unsynced_s < 1);
        assert_true(r.event_back_s > 0 && r.event_back_s < 5);
        assert_int_equal(r.hard_violations, 0);
    }
}

static void jump_suspend_and_restart(void **state)
{
    struct clock_world_result r;
    struct clock_world_config g = small(40);

    g.event_count = 1;
    g.event_s = 8;
    g.jump_ppm = 50;
    clock_world_run(&g, &r);
    assert_int_equal(r.event_violations, 0);
    assert_true(r.event_unsynced_s >= 0);
    g.jump_ppm = 0;
    g.suspend_s = 1;
    clock_world_run(&g, &r);
    assert_int_equal(r.event_violations, 0);
    assert_true(r.event_unsynced_s >= 0);
    g.suspend_s = 0;
    g.restart = true;
    clock_world_run(&g, &r);
    assert_int_equal(r.event_violations, 0);
    assert_true(r.event_unsynced_s < 0 || (r.event_back_s >= 0 && r.event_back_s < 2));
    assert_true(r.synced_share > 0.99);
}

static void one_direction_is_enough(void **state)
{
    struct clock_world_config g = small(50);
    struct clock_world_result r;

    g.asymmetric_share = 0.1;
    g.asymmetric_ns = 500;
    clock_world_run(&g, &r);
    assert_int_equal(r.hard_violations, 0);
    assert_true(r.p99_ns < 300);
}

/* Nearly a third of all paths off by 500 ns, either way: some member has more paths that are off to one
 * side by the same amount than paths in order. The middle of its paths is in order all the same. */
static void the_middle_path_and_not_the_largest_group(void **state)
{
    struct clock_world_config g = small(2);
    struct clock_world_result r;

    g.members = 80;
    g.degree = 16;
    g.paths = 4;
    g.asymmetric_share = 0.3;
    g.asymmetric_ns = 500;
    g.seconds = 30;
    g.judge_from_s = 26;
    clock_world_run(&g, &r);
    print_message("p99 %.1f ns, %d called liars\n", r.p99_ns,
                  (int)(r.false_liars + r.astray_named));
    assert_int_equal(r.false_liars + r.astray_named, 0);
    assert_true(r.synced_share > 0.97);
    assert_true(r.p99_ns < 30);
}

static void software_stamps_two_hosts(void **state)
{
    struct clock_world_config g = small(60);
    struct clock_world_result r;

    g.software = true;
    g.noise_ns = 300;
    g.edge_limit_ns = 50000;
    g.members = 2;
    g.degree = 1;
    g.hops = 1;
    clock_world_run(&g, &r);
    print_message("two hosts: p99 %.0f ns\n", r.p99_ns);
    assert_true(r.synced_share > 0.99);
    assert_true(r.p99_ns < 1000);
    assert_int_equal(r.hard_violations, 0);
}

/* A fleet that never says SYNCED has no error to show off with. */
static void silence_is_no_accuracy(void **state)
{
    struct clock_world_config g = small(3);
    struct clock_world_result r;

    g.edge_limit_ns = 1; /* no bound, so nobody is in step */
    g.seconds = 6;
    g.judge_from_s = 5;
    clock_world_run(&g, &r);
    assert_true(r.pairs_synced < 0.1 && isinf(r.p99_ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fleet_falls_onto_one_timeline),
        cmocka_unit_test(same_seed_same_history),
        cmocka_unit_test(fleet_time_never_runs_backwards_within_an_epoch),
        cmocka_unit_test(liars_are_named_and_move_nobody),
        cmocka_unit_test(a_step_is_marked_and_cured),
        cmocka_unit_test(jump_suspend_and_restart),
        cmocka_unit_test(one_direction_is_enough),
        cmocka_unit_test(the_middle_path_and_not_the_largest_group),
        cmocka_unit_test(software_stamps_two_hosts),
        cmocka_unit_test(silence_is_no_accuracy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
