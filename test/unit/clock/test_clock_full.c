/* What a member learns behind full queues: delays of paths, rates, and how many neighbours agree with it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "member_kit.h"

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

/* A round trip over edge 0's path that ends now, with the wait in each direction. */
static void exchange(struct clock *c, int64_t there_ns, int64_t back_ns)
{
    const int64_t at = now.ns - 10 * NS_PER_MS;
    const struct clock_point there = {
        .forward = true, .local = {at}, .remote = {at + DELAY + there_ns}};
    const struct clock_point back = {.local = {at + 5 * NS_PER_MS},
                                     .remote = {at + 5 * NS_PER_MS - DELAY - back_ns}};

    c->now = now;
    clock_on_point(c, now, &there);
    clock_on_point(c, now, &back);
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

/* Stamps of a few seconds show that the peers run 2 ppm faster, and leave 300 open. If a member moved to the middle again and
 * again, it would take the fleet's common rate with it, because its peers do the same. */
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

/* They are 20 ppm faster, and stay so for five seconds. In each tick the rate is unsure by that, and not by the sum. Otherwise
 * the next packet behind a queue would move it by a hundred ppm. */
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

/* Of sixteen edges to one peer three have packets in time, the others don't. The two clocks are those of all sixteen edges, so
 * the member isn't lost. */
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

/* … nor is it without a timeline: half of its peers, that is one, are on the same. */
static void who_has_one_peer_in_time_is_settled(void **state)
{
    static const int edges[] = {16};
    struct clock *c = member(edges, 1);

    c->timeline = 77; /* as hear() tells */
    for (int i = 0; i < 3; i++) {
        c->edges[i].in_gate = true;
    }
    for (int tick = 0; tick < 3; tick++) {
        next_tick(c);
        consensus_count(c);
        timeline_tick(c, now);
        assert_true(c->settled);
    }
    for (int i = 0; i < 3; i++) {
        c->edges[i].in_gate = false;
    }
    timeline_tick(c, now);
    assert_false(c->settled);
    clock_free(c);
    (void)state;
}

/* One host of four has five edges. If only that host agrees, that is one neighbour, and one isn't enough. */
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

/* Learns one path behind queues of 1.2 ms. */
static void learn_behind_queues(struct clock *c)
{
    c->edges[0].paths[0] = (struct path){.known = true,
                                         .m_ns = 1200000,
                                         .info = c->noise.info,
                                         .window = now,
                                         .low = {INFINITY, INFINITY}};
    c->edges[0].level_known = true;
    noise_found(&c->noise, 400000);
}

/* Packets wait in both directions for 4 s, in which rates become known, too. Then a clock steps within a round trip. */
static void wait_and_step(struct clock *c)
{
    for (int tick = 0; tick < 80; tick++) {
        next_tick(c);
        exchange(c, 1150000, 1250000);
        edge_track(c, &c->edges[0], now);
        bound_tick(c, now);
    }
    next_tick(c);
    exchange(c, 1150000, -600000);
    edge_track(c, &c->edges[0], now);
}

/* Behind full ports a path of 5 us was taken for 1.2 ms, as surely as by packets of 28 ns, and noise for 400 us. The first round
 * trips without a wait show the most that the path takes. A round trip that waits shows nothing, nor does one in which a clock
 * stepped between its two packets. */
static void no_path_takes_longer_than_a_round_trip(void **state)
{
    static const int edges[] = {1};
    struct clock *c = member(edges, 1);
    const struct path *path = &c->edges[0].paths[0];

    learn_behind_queues(c);
    wait_and_step(c);
    next_tick(c);
    exchange(c, 1750000, 650000);
    edge_track(c, &c->edges[0], now);
    print_message("while packets wait %.0f ns", path->m_ns);
    assert_true(fabs(path->m_ns - 1200000) < 20000);
    for (int round = 0; round < 4; round++) {
        next_tick(c);
        exchange(c, 0, 0);
        edge_track(c, &c->edges[0], now);
    }
    print_message(", then %.0f\n", path->m_ns);
    assert_true(path->known && path->m_ns >= DELAY && path->m_ns < 7500);
    clock_free(c);
    (void)state;
}

/* A round trip was shorter than m because a clock stepped in it. After the step it is dropped: another one of that kind, seconds
 * later, is not the second one that shows a shorter path. */
static void a_step_within_a_round_trip_is_forgotten_with_its_stamps(void **state)
{
    static const int edges[] = {1};

    for (int forgotten = 0; forgotten < 2; forgotten++) {
        struct clock *c = member(edges, 1);
        const struct path *path = &c->edges[0].paths[0];
        learn_behind_queues(c);
        for (int turn = 0; turn < 2; turn++) {
            wait_and_step(c);
            if (forgotten) {
                next_tick(c);
                clock_forget_stamps(c);
            }
        }
        print_message("%s: %.0f ns\n", forgotten ? "forgotten" : "not", path->m_ns);
        assert_true(forgotten ? fabs(path->m_ns - 1200000) < 20000 : path->m_ns < 600000);
        clock_free(c);
    }
    (void)state;
}

/* The line through stamps behind queues was 10 ppm off. By the lowest packets of either direction, which are a second apart, the
 * path takes 10 us. Its round trips take 5 us. A value from packets that scatter by 3 us isn't as sure as the stamps. */
static void a_path_begins_with_its_round_trips(void **state)
{
    static const int edges[] = {1};
    struct clock *c = member(edges, 1);
    const struct path *path = &c->edges[0].paths[0];

    c->phase = CLOCK_ACQUIRE;
    for (int tick = 0; tick < 20; tick++) {
        next_tick(c);
        exchange(c, 0, 0);
    }
    for (int round = 0; round < 5 && c->phase == CLOCK_ACQUIRE; round++) {
        c->edges[0].solved = (struct solved){.valid = true,
                                             .local = now,
                                             .remote = now,
                                             .m_ns = {2 * DELAY},
                                             .m_known = {true},
                                             .rate_sigma = 1e-6,
                                             .sigma_ns = 10,
                                             .noise_ns = 3000};
        c->edges[0].solved_written = c->edges[0].written;
        acquire_round(c, now);
    }
    assert_int_equal(c->phase, CLOCK_TRACK);
    print_message("taken for %.0f ns, sure to %.0f\n", path->m_ns, 1 / sqrt(path->info));
    assert_true(path->known && fabs(path->m_ns - DELAY) < 1);
    assert_true(path->info <= 1.01 / (3000.0 * 3000));
    clock_free(c);
    (void)state;
}

/* Packets of one tick in both directions, with a clock that is `set` behind the peer's. */
static void stamp(struct clock *c, int edge, int64_t local_ns, int64_t set)
{
    for (int forward = 0; forward < 2; forward++) {
        const int64_t way = forward ? DELAY : -DELAY;
        const struct clock_point p = {.edge = edge,
                                      .forward = forward,
                                      .local = {local_ns},
                                      .remote = {local_ns + set + way}};
        clock_on_point(c, now, &p);
    }
}

/* The own clock was set back by a second, and some earlier packets come late: their stamps are a second ahead. The member
 * searches or learns its time then. A line through both would leave a scatter of hundreds of milliseconds, which would count as
 * noise for minutes. */
static void no_line_goes_through_a_step(void **state)
{
    static const int edges[] = {1};

    for (int from = CLOCK_COLD; from <= CLOCK_ACQUIRE; from++) {
        struct clock *c = member(edges, 1);
        const struct clock_edge *e = &c->edges[0];
        double worst = 0;
        c->phase = (enum clock_phase)from;
        for (int tick = 0; tick < 100 && c->phase < CLOCK_TRACK; tick++) {
            next_tick(c);
            stamp(c, 0, now.ns, NS_PER_S);
            if (tick == 3) {
                stamp(c, 0, now.ns + NS_PER_S - 10 * NS_PER_MS, 0);
            }
            if (tick > 6) {
                c->phase = CLOCK_ACQUIRE;
            }
            if (c->phase == CLOCK_ACQUIRE) {
                acquire_round(c, now);
                worst = fmax(worst, e->solved.valid ? e->solved.noise_ns : 0);
            }
            if (from == CLOCK_COLD) {
                bound_tick(c, now);
            }
        }
        print_message("packets scatter by %.0f ns\n", worst);
        assert_int_equal(c->phase, CLOCK_TRACK);
        assert_true(worst < 100 && noise_sigma_ns(&c->noise) < 100);
        clock_free(c);
    }
    (void)state;
}

/* The peer's clock steps by a millisecond. One edge shows it at the next second, when stamps are judged. The other has no packet
 * until then. Its stamps are of the same two clocks: no line may go through the earlier and the later ones. */
static void a_step_on_one_edge_is_one_on_all_to_that_peer(void **state)
{
    static const int edges[] = {2};
    struct clock *c = member(edges, 1);
    const struct clock_edge *e = &c->edges[1];
    double worst = 0;

    for (int tick = 0; tick < 120; tick++) {
        const bool stepped = tick >= 4 * 20 + 6;
        next_tick(c);
        c->phase = CLOCK_ACQUIRE;
        c->calm = 0;
        stamp(c, 0, now.ns, stepped ? NS_PER_MS : 0);
        if (!stepped || tick > 5 * 20) {
            stamp(c, 1, now.ns, stepped ? NS_PER_MS : 0);
        }
        acquire_round(c, now);
        worst = fmax(worst, e->solved.valid ? e->solved.noise_ns : 0);
    }
    print_message("packets scatter by %.0f ns\n", worst);
    assert_true(e->written > 0 && worst < 100);
    clock_free(c);
    (void)state;
}

/* Fourteen peers, all behind full ports. One packet of one peer is in time and shows this member 5 us off, because no packet came
 * in time for long. The others' packets wait, and lately came in one direction only. A member that learned again from packets
 * that wait would take their queues for time. Nothing contradicts its present time. */
static void who_hears_nobody_in_time_is_not_lost(void **state)
{
    static const int edges[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct clock *c = member(edges, 14);

    for (int i = 0; i < 14; i++) {
        struct clock_edge *e = &c->edges[i];
        e->level_known = true;
        e->in_gate = i == 0;
        e->level_ns = i == 0 ? 5000 : 0;
        e->late[0] = e->late[1] = 0.95;
        e->out_since_s = i == 0 ? 0 : 10;
    }
    for (int tick = 0; tick < 200; tick++) {
        next_tick(c);
        consensus_count(c);
        consensus_gather(c, now);
        disturbance_check_lost(c, 0.05);
    }
    assert_int_equal(c->phase, CLOCK_TRACK);
    clock_free(c);
    (void)state;
}

/* Of five peers behind full ports one is heard in time again after 20 s, by a packet that is early by `off`. Returns its place
 * then. */
static double place_after_silence(int64_t off)
{
    static const int edges[] = {1, 1, 1, 1, 1};
    struct clock *c = member(edges, 5);

    bank_init(&c->bank, 10);
    bank_start(&c->bank, 20.0 * 20.0, 20.0 * 20.0);
    for (int i = 0; i < 5; i++) {
        struct clock_edge *e = know_path(c, i);
        e->hush_s = e->out_since_s = 20;
        e->told_at.ns = now.ns - 20 * NS_PER_S;
        e->theta_var = 30.0 * 30.0;
    }
    next_tick(c);
    consensus_count(c);
    const struct clock_point p = {.forward = true,
                                  .local = {now.ns - 10 * NS_PER_MS},
                                  .remote = {now.ns - 10 * NS_PER_MS + DELAY - off}};
    clock_on_point(c, now, &p);
    edge_track(c, &c->edges[0], now);
    const double place = c->edges[0].has_e ? c->edges[0].e_ns : NAN;
    consensus_levels(c, now, 0.05);
    print_message("%lld ns early: %.0f, then expected at %.0f\n", (long long)off, place,
                  c->edges[0].expected_ns);
    clock_free(c);
    return place;
}

/* Nothing is faster than its path. So a packet that is early by 2 us shows that the peer is behind by as much: its clock and the
 * own one had 20 s to get there. A late one may have waited. */
static void who_is_heard_again_is_where_an_early_packet_shows(void **state)
{
    assert_true(fabs(place_after_silence(2000) + 2000) < 500);
    assert_true(
        !(fabs(place_after_silence(-2000) - 2000) < 1000)); /* unknown, or near its old place */
    (void)state;
}

/* A filter that knows its crystal from quiet times keeps that: errors of peers that drift off with their leaf aren't the
 * crystal's wander. */
static void waits_are_no_wander(void **state)
{
    struct bank b;
    struct prng p;
    double wander[2];

    for (int sparse = 0; sparse < 2; sparse++) {
        prng_init(&p, 5);
        bank_init(&b, 0);
        bank_start(&b, 50.0 * 50.0, 100.0 * 100.0);
        double off = 0, rate = 0;
        for (int i = 0; i < 2400; i++) {
            const bool quiet = i < 1200;
            double x, y;
            rate += (quiet ? 2 : 400) * sqrt(0.05) * prng_normal(&p);
            off += rate * 0.05;
            bank_predict(&b, 0.05, quiet || sparse == 0);
            bank_update(&b, off + 5 * prng_normal(&p), 25, 0, quiet || sparse == 0);
            bank_mean(&b, &x, &y);
            bank_shift(&b, x, y);
            off -= x;
            rate -= y;
        }
        wander[sparse] = bank_wander(&b);
    }
    print_message("taken for wander: %.1f, with waits left out %.1f\n", wander[0], wander[1]);
    assert_true(wander[0] > 3 * wander[1] && wander[1] < 16);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rate_goes_no_further_than_stamps_prove),
        cmocka_unit_test(a_rate_is_no_less_sure_for_being_wrong_again),
        cmocka_unit_test(who_has_one_peer_in_time_is_not_lost),
        cmocka_unit_test(who_has_one_peer_in_time_is_settled),
        cmocka_unit_test(many_edges_to_one_peer_are_one_neighbour),
        cmocka_unit_test(no_path_takes_longer_than_a_round_trip),
        cmocka_unit_test(a_step_within_a_round_trip_is_forgotten_with_its_stamps),
        cmocka_unit_test(a_path_begins_with_its_round_trips),
        cmocka_unit_test(no_line_goes_through_a_step),
        cmocka_unit_test(a_step_on_one_edge_is_one_on_all_to_that_peer),
        cmocka_unit_test(who_hears_nobody_in_time_is_not_lost),
        cmocka_unit_test(who_is_heard_again_is_where_an_early_packet_shows),
        cmocka_unit_test(waits_are_no_wander),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
