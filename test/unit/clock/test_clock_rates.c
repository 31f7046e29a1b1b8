/* Maps whose rate the stamps exclude: which peers are found, which aren't, and what follows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock/clock_private.h"

#define PEERS    16
#define DELAY_NS 2000
#define LIE      400e-6 /* the error that a map can have beside a clock that is off by 80 ppm */

/* Peers with raw clocks of any rate. */
static struct {
    int64_t clock_ns; /* now */
    double fraction, rate;
    double lie; /* its map's rate minus the rate that corrects its clock */
} peers[PEERS];
static struct nic_time now;
static uint32_t seq;

static struct clock *member(void)
{
    const struct clock_config config = {
        .edge_capacity = PEERS, .edge_limit_ns = 8000, .hops = 4, .stamp_error_ns = 1};
    now.ns = 100 * NS_PER_S;
    struct clock *c = clock_new(&config, now);

    assert_non_null(c);
    for (uint32_t peer = 0; peer < PEERS; peer++) {
        const struct clock_edge_config edge = {
            .peer = peer + 1, .peer_nic = {peer + 1}, .path_count = 1};
        assert_int_equal(clock_edge_add(c, now, &edge), (int)peer);
        peers[peer].clock_ns = 1000 * NS_PER_S * peer;
        peers[peer].fraction = peers[peer].lie = 0;
        peers[peer].rate = 10e-6 * ((double)peer - PEERS / 2.0);
    }
    c->phase = CLOCK_TRACK;
    c->phase_since.ns = now.ns - 60 * NS_PER_S;
    c->narrow = true;
    return c;
}

/* A packet in each direction with each peer, and its header: the true time, and its true rate or a faster one. */
static void tick(struct clock *c)
{
    now.ns += CLOCK_TICK_NS;
    seq++;
    for (int i = 0; i < PEERS; i++) {
        const double moved = peers[i].fraction + peers[i].rate * (double)CLOCK_TICK_NS;
        peers[i].clock_ns += CLOCK_TICK_NS + (int64_t)floor(moved);
        peers[i].fraction = moved - floor(moved);
        const struct nic_time at = {peers[i].clock_ns};
        const struct clock_published h = {.phase = CLOCK_TRACK,
                                          .settled = true,
                                          .core = true,
                                          .timeline = 77,
                                          .map = {.r = at,
                                                  .x_ns = now.ns - at.ns,
                                                  .y = 1 / (1 + peers[i].rate) - 1 + peers[i].lie},
                                          .map_seq = seq,
                                          .h_ns = 8000,
                                          .anchor.member = UINT32_MAX};
        const struct clock_point there = {.edge = i,
                                          .forward = true,
                                          .local = {now.ns - 2 * DELAY_NS},
                                          .remote = {at.ns - DELAY_NS}},
                                 back = {.edge = i, .local = now, .remote = {at.ns - DELAY_NS}};
        clock_on_peer(c, now, i, &h);
        clock_on_point(c, now, &there);
        clock_on_point(c, now, &back);
        c->edges[i].level_known = true;
    }
    consensus_count(c);
    rates_tick(c, (double)CLOCK_TICK_NS * 1e-9);
    bound_tick(c, now);
}

static void run(struct clock *c, double seconds)
{
    for (int i = 0; i < seconds * 1e9 / (double)CLOCK_TICK_NS; i++) {
        tick(c);
    }
}

static int found(const struct clock *c)
{
    int count = 0;

    for (int i = 0; i < PEERS; i++) {
        count += c->edges[i].false_rate != 0;
    }
    return count;
}

/* Fewer than half may lie, also all in one direction. Most peers are right, and this member is not at fault. */
static void a_minority_that_stamps_contradict_is_found(void **state)
{
    static const int liars[] = {1, 5, 7, 8};

    for (size_t k = 0; k < ARRAY_COUNT(liars); k++) {
        struct clock *c = member();
        run(c, 12);
        assert_int_equal(found(c), 0);
        for (int i = 0; i < liars[k]; i++) {
            peers[i].lie = LIE;
        }
        tick(c); /* with the first header that lies */
        const bool minority = 2 * liars[k] < PEERS;
        assert_int_equal(found(c), minority ? liars[k] : 0);
        run(c, 20); /* a rate doesn't become true by being published for long */
        assert_int_equal(found(c), minority ? liars[k] : 0);
        for (int i = 0; i < liars[k] && minority; i++) {
            struct clock_edge *e = &c->edges[i];
            assert_true(fabs(e->false_rate - LIE) < 20e-6);
            assert_true(e->crossed_at.ns == 0); /* its stamps are in order */
            e->in_gate = true;
            assert_true(edge_against(e) && !edge_vouches(e));
        }
        for (int i = 0; i < PEERS; i++) {
            peers[i].lie = 0;
        }
        tick(c);
        assert_int_equal(found(c), 0);
        clock_free(c);
    }
}

/* An error of the own map's rate is in all edges equally. */
static void who_runs_falsely_itself_finds_nobody(void **state)
{
    struct clock *c = member();

    for (int i = 0; i < 400; i++) {
        c->map.y = 60e-6; /* the rate that it learned */
        tick(c);
        assert_int_equal(found(c), 0);
    }
    clock_free(c);
}

/* Clocks change their rates by less than the least contradiction of stamps. Their maps follow at once, and earlier stamps still
 * prove the earlier rate. Some go up, some down. */
static void a_clock_that_changes_its_rate_is_not_found(void **state)
{
    struct clock *c = member();
    const double most = 2 * bound_rate_change(c);

    run(c, 20);
    for (int i = 0; i < PEERS; i++) {
        peers[i].rate += (i % 4 == 0 ? 0.95 : -0.95) * most;
    }
    for (int i = 0; i < 500; i++) {
        tick(c);
        assert_int_equal(found(c), 0);
    }
    clock_free(c);
}

/* Nor is a small lie, which moves no member: within the age of a header it makes a nanosecond or two. */
static void a_small_lie_is_not_found(void **state)
{
    struct clock *c = member();

    peers[3].lie = 1.5 * bound_rate_change(c);
    run(c, 30);
    assert_int_equal(found(c), 0);
    peers[3].lie = 5 * bound_rate_change(c);
    run(c, 10);
    assert_int_equal(found(c), 1);
    clock_free(c);
}

/* Answers of the liar's other neighbours name it, for whatever its packets wait. */
static void a_false_rate_is_named(void **state)
{
    for (int waits = 0; waits < 2; waits++) {
        struct clock *c = member();
        struct clock_action a;
        int named = 0;
        run(c, 12);
        peers[2].lie = -200e-6;
        for (int i = 0; i < 120; i++) {
            tick(c);
            for (int k = 0; k < PEERS; k++) {
                c->edges[k].tracking_since.ns = now.ns - 60 * NS_PER_S;
                c->edges[k].late[1] = waits;
            }
            liar_tick(c, now, (double)CLOCK_TICK_NS * 1e-9);
            while (clock_next_action(c, &a)) {
                assert_true(a.kind != CLOCK_ACTION_LIAR || a.peer == 3);
                assert_int_not_equal(a.kind, CLOCK_ACTION_ASYMMETRY);
                named += a.kind == CLOCK_ACTION_LIAR;
                for (uint32_t from = 20; from < 28 && a.kind == CLOCK_ACTION_QUERY; from++) {
                    const struct clock_answer answer = {
                        .about = a.peer, .from = from, .known = true, .parked = true};
                    clock_on_answer(c, now, &answer);
                }
                if (a.kind == CLOCK_ACTION_LIAR) { /* 0.15 s of it */
                    assert_true(a.value_ns < -25e3 && a.value_ns > -35e3);
                }
            }
        }
        assert_int_equal(named, 1);
        clock_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minority_that_stamps_contradict_is_found),
        cmocka_unit_test(who_runs_falsely_itself_finds_nobody),
        cmocka_unit_test(a_clock_that_changes_its_rate_is_not_found),
        cmocka_unit_test(a_small_lie_is_not_found),
        cmocka_unit_test(a_false_rate_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
