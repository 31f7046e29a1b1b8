/* Standing queues: whole nodes on a fabric. The NICs must not take the wait for a shift of time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs those first */
#include <cmocka.h>

#include "sim/check.h"

static void bound(struct scenario *s, const char *what, double from_s, double until_s)
{
    struct scenario_bound *b = &s->bound[s->bound_count++];

    *b = (struct scenario_bound){.from_ns = (int64_t)(from_s * 1e9),
                                 .until_ns = (int64_t)(until_s * 1e9),
                                 .fault = -1,
                                 .world = SCENARIO_SIM};
    strncpy(b->what, what, sizeof(b->what) - 1);
}

/* A fabric of 100 Gb/s without a class for probes: so many bytes stand in front of these hosts for that time. */
static struct scenario *with_queue(int hosts, int first, int last, int64_t bytes, int64_t start_s,
                                   int64_t end_s)
{
    struct scenario *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    scenario_init(s);
    s->fabric.hosts = hosts;
    s->fabric.nics_per_host = 2;
    s->fabric.link_mbps = 100000;
    s->fabric.probe_class = false;
    s->clocks.ppm = 50;
    s->traffic_count = 1;
    s->traffic[0] =
        (struct scenario_traffic){.kind = TRAFFIC_STANDING,
                                  .queue_bytes = bytes,
                                  .start_ns = start_s * NS_PER_S,
                                  .end_ns = end_s * NS_PER_S,
                                  .from.kind = TARGET_ALL,
                                  .to = {.kind = TARGET_HOSTS, .first = first, .last = last}};
    return s;
}

static struct world *play(const struct scenario *s, uint64_t seed)
{
    struct world *w = NULL;

    assert_int_equal(world_new(&w, s, seed), 0);
    world_run(w, s->duration_ns);
    check_end(w);
    return w;
}

/* A queue of 8 us stands in front of a third of the hosts, while paths are found and lost, and goes away again. */
static void a_standing_queue_moves_no_clock(void **state)
{
    struct scenario *s = with_queue(6, 0, 1, 100000, 10, 30);

    (void)state;
    s->fabric.leaves = 4;
    s->fabric.spines = 8;
    s->clocks.stamps = STAMPS_NIC;
    s->clocks.edge_limit_ns = 20000; /* waits count, too: the hosts stay SYNCED and are judged */
    s->duration_ns = 36 * NS_PER_S;
    bound(s, "false.any", 0, 36);
    bound(s, "clock.nic_error.p99_ns", 11, 29);
    bound(s, "clock.nic_error.p99_ns", 31, 36);
    bound(s, "clock.synced_share", 11, 36);
    struct world *w = play(s, 3);
    const double wrong = check_value(w, 0), during = check_value(w, 1), after = check_value(w, 2),
                 synced = check_value(w, 3);
    print_message("wrong verdicts %.0f, p99 %.0f ns, %.0f ns after, synced %.2f\n", wrong, during,
                  after, synced);
    assert_true(wrong == 0);
    assert_true(during < 100 && after < 60);
    assert_true(synced >= 0.99);
    world_free(w);
    free(s);
}

/* All packets to half of the hosts take 150 ns longer, which is less than the scatter of software stamps. No queue is seen, the
 * edges agree, and those hosts' clocks move with it. The round trips show how much that may be. */
static void a_path_that_rises_unseen_widens_the_bound(void **state)
{
    struct scenario *s = with_queue(8, 4, 7, 1900, 60, 100);

    (void)state;
    s->fabric.leaves = 2;
    s->fabric.spines = 4;
    s->clocks.stamps = STAMPS_SOFTWARE;
    s->clocks.jitter_ns = 100;
    s->duration_ns = 100 * NS_PER_S;
    bound(s, "clock.statistical.outside_share", 40, 60);
    bound(s, "clock.statistical.outside_share", 60, 100);
    bound(s, "clock.statistical.width_ns", 40, 60);
    bound(s, "clock.statistical.width_ns", 60, 100);
    bound(s, "clock.error.p99_ns", 60, 100);
    struct world *w = play(s, 5);
    print_message("outside %.6f, then %.6f; width %.0f ns, then %.0f; p99 %.0f\n",
                  check_value(w, 0), check_value(w, 1), check_value(w, 2), check_value(w, 3),
                  check_value(w, 4));
    assert_true(check_value(w, 0) == 0);
    assert_true(check_value(w, 1) < 1e-4);
    world_free(w);
    free(s);
}

/* 20 s after the start packets towards one of a host's two NICs take 300 ns longer. So half of its edges take longer, early in
 * the life of their paths. */
static void a_path_that_rises_early_widens_the_bound(void **state)
{
    double outside = 0, width = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct scenario *s = calloc(1, sizeof(*s));
        assert_non_null(s);
        scenario_init(s);
        s->clocks.stamps = STAMPS_SOFTWARE;
        s->clocks.jitter_ns = 100;
        s->duration_ns = 25 * NS_PER_S;
        struct scenario_fault *f = &s->fault[s->fault_count++];
        scenario_fault_init(f);
        f->kind = FAULT_DELAY;
        f->delay_ns = 300;
        f->at_ns = 20 * NS_PER_S;
        f->for_ns = 3 * NS_PER_S;
        f->direction = TOWARDS_DOWN;
        f->target = (struct scenario_target){.kind = TARGET_NIC, .from = {.host = 1}, .path = -1};
        bound(s, "clock.statistical.outside_share", 15, 25);
        bound(s, "clock.statistical.width_ns", 15, 20);
        struct world *w = play(s, seed);
        outside += check_value(w, 0) / 4;
        width += check_value(w, 1) / 4;
        world_free(w);
        free(s);
    }
    print_message("outside %.6f, width before %.0f ns\n", outside, width);
    assert_true(outside == 0 && width < 140);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_standing_queue_moves_no_clock),
        cmocka_unit_test(a_path_that_rises_unseen_widens_the_bound),
        cmocka_unit_test(a_path_that_rises_early_widens_the_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
