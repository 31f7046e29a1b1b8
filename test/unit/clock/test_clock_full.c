/* What a member learns behind full queues: delays of paths, rates, and how many agree with it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock/clock_private.h"

#define DELAY 5000

static struct nic_time now;
static uint32_t seq;

/* A member that tracks, with edges[i] edges to peer i + 1. */
static struct clock *member(const int *edges, int peers)
{
    const struct clock_config config = {
        .edge_capacity = 32, .edge_limit_ns = 8000, .hops = 4, .stamp_error_ns = 1};
    uint32_t nic = 0;

    now.ns = 100 * NS_PER_S;
    struct clock *c = clock_new(&config, now);
    assert_non_null(c);
    for (int i = 0; i < peers; i++) {
        for (int k = 0; k < edges[i]; k++) {
            const struct clock_edge_config edge = {
                .peer = (uint32_t)i + 1, .peer_nic = {++nic}, .path_count = 1};
            assert_int_equal(clock_edge_add(c, now, &edge), (int)nic - 1);
        }
    }
    c->phase = CLOCK_TRACK;
    return c;
}

static void hear(struct clock *c)
{
    const struct clock_published h = {.phase = CLOCK_TRACK,
                                      .settled = true,
                                      .timeline = 77,
                                      .map = {.r = now},
                                      .map_seq = ++seq,
                                      .h_ns = 8000,
                                      .anchor.member = UINT32_MAX};
    for (int i = 0; i < c->edge_count; i++) {
        clock_on_peer(c, now, i, &h);
        c->edges[i].point_at = now;
    }
}

static void next_tick(struct clock *c)
{
    now.ns += CLOCK_TICK_NS;
    c->now = now;
    hear(c);
}

/* By their stamps three peers run between `low` and 300 ppm faster than this member. */
static void contain_rate(struct clock *c, double low)
{
    next_tick(c);
    for (int i = 0; i < 3; i++) {
        struct clock_edge *e = &c->edges[i];
        e->proven = true;
        e->map_lower_ns = -DELAY;
        e->map_upper_ns = DELAY;
        e->rate_lower = low;
        e->rate_upper = 300e-6;
    }
    (void)contain_tick(c, now);
}

/* Stamps of a few seconds show that the peers run 2 ppm faster, and leave 300 open. A member that went to the middle, again and
 * again, would take the fleet's common rate with it, for its peers do the same. */
static void a_rate_goes_no_further_than_stamps_prove(void **state)
{
    static const int edges[] = {1, 1, 1};
    struct clock *c = member(edges, 3);

    for (int tick = 0; tick < 100; tick++) {
        contain_rate(c, 2e-6 - c->map.y);
    }
    print_message("faster by %.2f ppm\n", c->map.y * 1e6);
    assert_true(c->map.y > 1.9e-6 && c->map.y < 2.1e-6);
    clock_free(c);
    (void)state;
}

/* They are 20 ppm faster, and stay so for five seconds. In each tick the rate is unsure by that, and not by the sum: else the
 * next packet behind a queue would be a hundred ppm. */
static void a_rate_is_no_less_sure_for_being_wrong_again(void **state)
{
    static const int edges[] = {1, 1, 1};
    struct clock *c = member(edges, 3);
    double most = 0;

    for (int tick = 0; tick < 100; tick++) {
        contain_rate(c, 20e-6);
        for (int k = 0; k < BANK_FILTERS; k++) {
            most = fmax(most, sqrt(c->bank.p11[k]));
        }
    }
    print_message("unsure by %.0f ppb\n", most);
    assert_true(most > 10000 && most < 20000);
    clock_free(c);
    (void)state;
}

/* Of sixteen edges to one peer three have packets in time, the others are out of step with them. The two clocks are those of
 * all sixteen: the member isn't lost. */
static void who_has_one_peer_in_time_is_not_lost(void **state)
{
    static const int edges[] = {16};
    struct clock *c = member(edges, 1);

    for (int i = 0; i < 3; i++) {
        c->edges[i].in_gate = true;
    }
    for (int tick = 0; tick < 200; tick++) {
        next_tick(c);
        consensus_count(c);
        disturbance_check_lost(c, 0.05);
    }
    assert_int_equal(c->phase, CLOCK_TRACK);
    clock_free(c);
    (void)state;
}

/* One host of four has five edges. If it alone agrees, that is one neighbour, and one isn't enough. */
static void many_edges_to_one_peer_are_one_neighbour(void **state)
{
    static const int edges[] = {5, 1, 1, 1};
    struct clock *c = member(edges, 4);

    hear(c);
    c->now = now;
    consensus_count(c);
    for (int agree = 5; agree <= 6; agree++) {
        for (int i = 0; i < agree; i++) {
            c->edges[i].in_gate = c->edges[i].level_known = true;
        }
        consensus_gather(c, now);
        assert_int_equal(c->vouching, agree - 4);
        assert_int_equal(c->peers_in_gate, agree - 4);
        assert_int_equal(c->in_gate, agree);
        assert_true((c->vouching >= c->needed) == (agree == 6));
    }
    clock_free(c);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rate_goes_no_further_than_stamps_prove),
        cmocka_unit_test(a_rate_is_no_less_sure_for_being_wrong_again),
        cmocka_unit_test(who_has_one_peer_in_time_is_not_lost),
        cmocka_unit_test(many_edges_to_one_peer_are_one_neighbour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
