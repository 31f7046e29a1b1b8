/* Parts of core/clock alone: maps, terms, noise, the bank, the readers' line, refusals. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/clock/clock_private.h"
#include "core/clock/host_leaf.h"
#include "sim/reader_terms.h"

static void map_is_exact_far_from_zero(void **state)
{
    const struct clock_map a = {{1000000000000}, 1700000000000000000, 0.25, 1e-5};
    const struct clock_map b = {{1000000000000}, 1700000000000000000, 0.75, 1e-5};

    assert_int_equal(clock_map_apply(&a, a.r).ns, 1700001000000000000);
    assert_float_equal(clock_map_difference(&b, b.r, &a, a.r), 0.5, 1e-12);
    const struct nic_time later = {a.r.ns + NS_PER_S};
    assert_int_equal(clock_map_apply(&a, later).ns - clock_map_apply(&a, a.r).ns, NS_PER_S + 10000);
}

static void bounds_only_grow_with_age(void **state)
{
    const struct clock_terms t = {.status = CLOCK_SYNCED,
                                  .h_ns = 1000,
                                  .rate_limit = 2e-6,
                                  .rate_drift = 100e-9,
                                  .p00 = 4,
                                  .p11 = 100,
                                  .q2 = 100,
                                  .guarded = true,
                                  .guard_ns = 500,
                                  .guard_rate = 60e-6};
    double hard = 0, statistical = 0;

    for (int64_t age = 0; age < 100 * NS_PER_S; age += NS_PER_S / 3) {
        const struct clock_reading r = clock_terms_read(&t, (struct nic_time){age});
        assert_true(r.hard_ns >= hard && r.statistical_ns >= statistical);
        hard = r.hard_ns;
        statistical = r.statistical_ns;
    }
    assert_true(clock_terms_read(&t, (struct nic_time){0}).hard_ns == 1500);
    const struct clock_terms unknown = {.status = CLOCK_UNKNOWN, .h_ns = 5};
    assert_true(clock_terms_read(&unknown, (struct nic_time){0}).hard_ns < 0);
}

/* The judges' own code for terms (sim/reader_terms.h) and the core's follow one description. */
static void judges_read_the_same(void **state)
{
    struct prng p;

    prng_init(&p, 5);
    for (int i = 0; i < 100000; i++) {
        const int64_t r = (int64_t)(1e15 * prng_uniform(&p));
        const int64_t age = (int64_t)(1e9 * prng_normal(&p) * pow(60, prng_uniform(&p)));
        const struct clock_terms t = {.status = i % 100 == 0 ? CLOCK_UNKNOWN : CLOCK_SYNCED,
                                      .line = {.r = {r},
                                               .x_ns = (int64_t)(1e18 * prng_uniform(&p)),
                                               .x_fraction = prng_uniform(&p),
                                               .y = 1e-4 * prng_normal(&p),
                                               .slew = 1e-4 * prng_normal(&p),
                                               .until = {r + (int64_t)(1e8 * prng_uniform(&p))}},
                                      .h_ns = i % 7 == 0 ? -1 : 1e5 * prng_uniform(&p),
                                      .rate_limit = 2e-6,
                                      .rate_drift = i % 5 == 0 ? 0 : 100e-9,
                                      .p00 = 100 * prng_uniform(&p),
                                      .p01 = 10 * prng_normal(&p),
                                      .p11 = 1000 * prng_uniform(&p),
                                      .q2 = 1000 * prng_uniform(&p),
                                      .spread2_ns = 100 * prng_uniform(&p),
                                      .shift_ns = 10 * prng_uniform(&p),
                                      .guarded = i % 2 == 0,
                                      .guard = {r + (int64_t)(1e9 * prng_normal(&p))},
                                      .guard_ns = 500,
                                      .guard_rate = 60e-6};
        const struct nic_time at = {r + age};
        const struct clock_reading own = clock_terms_read(&t, at), judge = reader_terms(&t, at);
        assert_int_equal(own.status, judge.status);
        assert_in_range(own.time.ns - judge.time.ns + 1, 0, 2); /* at the edge of a nanosecond */
        assert_true(fabs(own.hard_ns - judge.hard_ns) <= 1e-9 * fabs(judge.hard_ns));
        assert_true(fabs(own.statistical_ns - judge.statistical_ns) <=
                    1e-9 * fabs(judge.statistical_ns));
    }
}

/* For a Gaussian the score gives the mean. For one-sided jitter it is better than the mean. A queue hardly moves it. */
static double location(struct noise *n, struct prng *p, bool gamma, double queue_share, int packets)
{
    double sum = 0, at = 0;

    for (int pass = 0; pass < 8;
         pass++) { /* a few of Newton's steps, because the estimate isn't linear */
        struct prng same = *p;
        sum = 0;
        for (int i = 0; i < packets; i++) {
            double v = gamma ? 300 * (prng_exponential(&same) + prng_exponential(&same)) - 300
                             : 28 * prng_normal(&same);
            v += prng_uniform(&same) < queue_share ? 5000 * prng_exponential(&same) : 0;
            sum += noise_score(n, v - at);
        }
        at += sum / packets / n->info;
    }
    return at;
}

static double mean_of_jitter(const struct prng *p, int packets)
{
    struct prng same = *p;
    double sum = 0;

    for (int i = 0; i < packets; i++) {
        sum += 300 * (prng_exponential(&same) + prng_exponential(&same)) - 300;
        (void)prng_uniform(&same);
    }
    return sum / packets;
}

static void teach(struct noise *n, bool gamma, double queue_share)
{
    struct prng p;

    prng_init(&p, 4);
    for (int second = 0; second < 20; second++) {
        for (int i = 0; i < 900; i++) {
            double v = gamma ? 300 * (prng_exponential(&p) + prng_exponential(&p)) - 300
                             : 28 * prng_normal(&p);
            v += prng_uniform(&p) < queue_share ? 5000 * prng_exponential(&p) : 0;
            noise_add(n, v);
        }
        noise_refresh(n, 0.92);
    }
}

static void noise_learns_what_packets_are_worth(void **state)
{
    struct noise gauss, jitter;
    struct prng p;
    enum { ROUNDS = 400, PACKETS = 200 };

    noise_init(&gauss, 60, false);
    teach(&gauss, false, 0.3);
    assert_true(noise_sigma_ns(&gauss) > 25 &&
                noise_sigma_ns(&gauss) < 42); /* 28 / sqrt(0.7) = 33 */
    noise_init(&jitter, 100, true);
    teach(&jitter, true, 0);
    assert_true(noise_sigma_ns(&jitter) < 390); /* the mean's: 424 */
    prng_init(&p, 9);
    const double clean = location(&gauss, &p, false, 0, 4000);
    prng_init(&p, 9);
    const double queued = location(&gauss, &p, false, 0.6, 4000);
    assert_true(fabs(clean) < 4 && fabs(queued - clean) < 20);
    /* One-sided jitter: the scatter of the estimated place, compared with the mean of the same packets; and how much queues move
     * it, which move the mean by 1,500 ns. */
    double found = 0, found2 = 0, mean2 = 0, moved2 = 0;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        prng_init(&p, 100 + i);
        const double alone = location(&jitter, &p, true, 0, PACKETS);
        moved2 += pow(location(&jitter, &p, true, 0.3, PACKETS) - alone, 2) / ROUNDS;
        mean2 += pow(mean_of_jitter(&p, PACKETS) - 300, 2) / ROUNDS;
        found += alone / ROUNDS;
        found2 += alone * alone / ROUNDS;
    }
    const double scatter = sqrt(found2 - found * found);
    print_message("one-sided: %.1f ns, the mean's %.1f; queues move it by %.1f ns\n", scatter,
                  sqrt(mean2), sqrt(moved2));
    assert_true(scatter < 0.95 * sqrt(mean2));
    assert_true(sqrt(moved2) < 100);
}

/* At any distance the score pulls back. */
static void score_has_one_zero(void **state)
{
    struct noise n;

    noise_init(&n, 28, false);
    teach(&n, false, 0.6);
    for (double v = -400; v < -5; v += 1) {
        assert_true(noise_score(&n, v) <= 0);
    }
    for (double v = 5; v < 400; v += 1) {
        assert_true(noise_score(&n, v) >= 0);
    }
}

static double uniform(uint64_t seed, uint64_t i)
{
    return (double)(hash_u64(seed, i) >> 11) * 0x1p-53;
}

/* A second of packets in both directions, each behind the rest of a frame at three ports, and an error of time. */
static void teach_frames(struct noise *n, uint64_t second, double frame_ns, double error_ns)
{
    for (uint64_t i = 0; i < 400; i++) {
        const uint64_t at = second * 1000 + i;
        double way[2];
        for (uint64_t d = 0; d < 2; d++) {
            way[d] =
                frame_ns * (uniform(1 + d, at) + uniform(3 + d, at) + uniform(5 + d, at) - 1.5);
            const double innovation = way[d] + (d == 0 ? error_ns : -error_ns) * sin((double)at);
            if (innovation > noise_low_ns(n) && innovation < noise_high_ns(n)) {
                noise_add(n, innovation);
            }
        }
        noise_add_gap(n, frame_ns / 80 * (uniform(7, at) - 0.5)); /* both of a pair wait alike */
        noise_add_round(n, (way[0] + way[1]) / 2);
    }
    noise_refresh(n, 0.92);
}

/* Round trips show the scatter of packets if pairs can't. Errors of time don't count as scatter. */
static void round_trips_bound_what_passes_for_noise(void **state)
{
    struct noise frames, wrong;

    noise_init(&frames, 424, true);
    noise_init(&wrong, 424, true);
    for (uint64_t second = 0; second < 90; second++) {
        teach_frames(&frames, second, 61000, 0);
        teach_frames(&wrong, second, 300, 30000);
    }
    print_message("in reach: frames %.0f..%.0f, wrong %.0f..%.0f ns\n", noise_low_ns(&frames),
                  noise_high_ns(&frames), noise_low_ns(&wrong), noise_high_ns(&wrong));
    assert_true(noise_low_ns(&frames) < -61000 && noise_high_ns(&frames) > 61000);
    assert_true(noise_low_ns(&wrong) > -10000);
}

static void bank_finds_the_wander(void **state)
{
    static const double wanders[] = {1, 10, 100};

    for (size_t w = 0; w < ARRAY_COUNT(wanders); w++) {
        struct bank b;
        struct prng p;
        double x = 0, y = 0, square = 0;
        prng_init(&p, 5 + w);
        bank_init(&b, 0);
        bank_start(&b, 100, 100);
        for (int i = 0; i < 1200; i++) {
            double dx, dy;
            y += wanders[w] * sqrt(0.05) * prng_normal(&p);
            x += 0.05 * y;
            bank_predict(&b, 0.05, true);
            bank_update(&b, x + 5 * prng_normal(&p), 25, 0, true);
            bank_mean(&b, &dx, &dy);
            square += i > 400 ? (dx - x) * (dx - x) : 0;
        }
        assert_true(bank_wander(&b) > wanders[w] / 3 && bank_wander(&b) < wanders[w] * 3);
        assert_true(sqrt(square / 800) < 5);
    }
}

/* Behind queues time is wrong, and most packets are beyond the ends of a density that was learned too narrow: it grows. */
static void a_density_that_is_too_narrow_grows(void **state)
{
    struct noise noise;
    struct prng p;

    (void)state;
    prng_init(&p, 11);
    noise_init(&noise, 28, false);
    noise_reshape(&noise, 1);
    for (int second = 0; second < 20; second++) {
        for (int i = 0; i < 200; i++) {
            noise_add(&noise, -30 + 100 * prng_normal(&p));
        }
        noise_refresh(&noise, 0.92);
    }
    print_message("bins of %.2f ns\n", noise.bin_ns);
    assert_true(noise.bin_ns > 8);
}

static void shortest_half_ignores_a_minority(void **state)
{
    double values[] = {3, 900, 1, 2, -800, 2.5, 1.5, 901, 2.2, 1.8};
    const double t = shortest_half(values, 10, 6);

    assert_true(t > 1 && t < 3);
}

static struct clock *make(struct clock_config *config)
{
    *config = (struct clock_config){.member = 1, .edge_capacity = 4};
    return clock_new(config, (struct nic_time){NS_PER_S});
}

static void only_early_and_late_alike_is_a_shift(void **state)
{
    static const struct {
        double backward, forward, reference, shift;
    } cases[] = {
        {-1000, 1000, 0, 1000},  /* the peer is ahead */
        {1000, -1000, 0, -1000}, /* behind */
        {8000, 0, 0, 0},         /* backward packets wait */
        {8000, 8000, 0, 0},      /* both wait */
        {7000, 1000, 0, 0},      /* both, not alike */
        {-8000, 0, 0, 0},        /* backward packets waited while the path was learned */
        {-1000, 9000, 0, 1000},  /* ahead, and forward packets wait */
        {7000, 1000, -4000, 0},  /* the level was there before */
        {1000, -1000, -1000, 0}, /* so was this one */
        {2000, -2000, -500, -1500},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const double low[2] = {cases[i].backward, cases[i].forward};
        assert_true(edge_shift(low, cases[i].reference) == cases[i].shift);
    }
}

static void bad_input_is_refused(void **state)
{
    struct clock_config config;
    struct clock *c = make(&config);
    const struct nic_time now = {NS_PER_S};
    struct clock_edge_config edge = {.peer = 2, .peer_nic = {2}, .local_nic = {1}, .path_count = 2};
    struct clock_published p = {.map.y = 600e-6};
    struct clock_report report;

    assert_non_null(c);
    edge.path_count = 0;
    assert_int_equal(clock_edge_add(c, now, &edge), -EINVAL);
    edge.path_count = CLOCK_PATH_MAX + 1;
    assert_int_equal(clock_edge_add(c, now, &edge), -EINVAL);
    edge.path_count = 2;
    edge.peer = 1; /* itself */
    assert_int_equal(clock_edge_add(c, now, &edge), -EINVAL);
    edge.peer = 2;
    const int e = clock_edge_add(c, now, &edge);
    assert_int_equal(e, 0);
    assert_int_equal(clock_edge_add(c, now, &edge), -EEXIST);
    clock_on_peer(c, now, e, &p);
    p.map.y = NAN;
    clock_on_peer(c, now, e, &p);
    p = (struct clock_published){.map.x_fraction = 1};
    clock_on_peer(c, now, e, &p);
    clock_on_peer(c, now, 99, &p);
    const struct clock_point bad[] = {
        {.edge = 7, .local = now},                                         /* no such edge */
        {.edge = 0, .path = 2, .local = now},                              /* no such path */
        {.edge = 0, .local = {now.ns - 10 * NS_PER_S}},                    /* ages ago */
        {.edge = 0, .local = {now.ns + 10 * NS_PER_S}},                    /* to come */
        {.edge = 0, .local = now, .local_gap_ns = -5, .remote_gap_ns = 5}, /* backwards */
        {.edge = 0, .local = now, .local_gap_ns = 100000000, .remote_gap_ns = 5},
        {.edge = -1, .local = now},
    };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        clock_on_point(c, now, &bad[i]);
    }
    clock_report(c, now, &report);
    assert_int_equal(report.points_refused, ARRAY_COUNT(bad));
    assert_int_equal(report.peers_refused, 4);
    assert_int_equal(report.points, 0);
    struct clock_saved saved;
    clock_save(c, now, &saved); /* it never tracked, so there is nothing to save */
    assert_int_equal(clock_restore(c, now, &saved), -EINVAL);
    clock_edge_remove(c, now, 0);
    clock_edge_remove(c, now, 0);
    clock_edge_repath(c, now, 0, 0);
    clock_free(c);
    clock_free(NULL);
}

static void alone_is_unknown(void **state)
{
    struct clock_config config;
    struct clock *c = make(&config);
    struct clock_terms t;

    for (int64_t at = NS_PER_S; at < 20 * NS_PER_S; at += 50 * NS_PER_MS) {
        clock_tick(c, (struct nic_time){at});
    }
    clock_terms(c, &t);
    assert_int_equal(t.status, CLOCK_UNKNOWN);
    clock_free(c);
}

static void host_hangs_on_its_nics(void **state)
{
    struct host_leaf leaf;
    struct clock_terms t;
    struct prng p;

    int64_t before = 0;
    double worst = 0;

    prng_init(&p, 3);
    host_leaf_init(&leaf, 0, 0);
    assert_false(host_leaf_terms(&leaf, &t));
    for (int tick = 0; tick < 100; tick++) {
        const int64_t now = NS_PER_S + tick * 100 * NS_PER_MS;
        for (int nic = 0; nic < 2; nic++) {
            /* nic clock = host clock (1 + 20 ppm) + 5 s; fleet time = nic clock (1 - 20 ppm) about
             */
            const int64_t wait = 300 + (int64_t)prng_below(&p, 400);
            const int64_t read = now + (int64_t)prng_below(&p, (uint64_t)wait);
            const int64_t nic_clock = read + (read - NS_PER_S) / 50000 + 5 * NS_PER_S;
            const struct host_leaf_bracket b = {{now}, {nic_clock}, {now + wait}};
            host_leaf_on_bracket(&leaf, (struct mono){now + wait}, nic, &b);
            const struct clock_terms terms = {.status = CLOCK_SYNCED,
                                              .h_ns = 1000,
                                              .line = {{nic_clock}, 7, 0, 0, 0, {nic_clock}}};
            host_leaf_on_terms(&leaf, (struct mono){now + wait}, nic, &terms);
        }
        host_leaf_tick(&leaf, (struct mono){now + 1000});
        assert_true(host_leaf_terms(&leaf, &t));
        /* A reader's fleet time on the host, until the next tick: within 7 ns of the NICs' clocks, and never before an earlier
         * one. */
        for (int64_t read = now + 1000; read <= now + 100 * NS_PER_MS; read += 33 * NS_PER_MS) {
            const int64_t truth = read + (read - NS_PER_S) / 50000 + 5 * NS_PER_S + 7;
            const int64_t time = clock_terms_read(&t, (struct nic_time){read}).time.ns;
            assert_true(time >= before);
            before = time;
            worst = tick >= 50 && fabs((double)(time - truth)) > worst
                        ? fabs((double)(time - truth))
                        : worst;
        }
    }
    print_message("the host: off by %.0f ns at most\n", worst);
    assert_true(worst < 300);
    assert_int_equal(t.status, CLOCK_SYNCED);
    assert_true(t.h_ns > 1000 && t.h_ns < 2000);
    const struct host_leaf_bracket bad = {{5}, {5}, {4}};
    host_leaf_on_bracket(&leaf, (struct mono){5}, 0, &bad);
    host_leaf_on_bracket(&leaf, (struct mono){5}, 99, &bad);
    assert_int_equal(leaf.refused, 2);
}

/* A member of 17, whose edge to peer 1 is parked at level_ns, asks the peer's neighbours 2… `against` of them disagree, and
 * `without` don't know. Returns the verdict within a second. */
static struct clock *parked_peer(double level_ns, enum clock_stamps stamps)
{
    const struct clock_config config = {.member = 0, .stamps = stamps, .edge_capacity = 16};
    struct clock *c = clock_new(&config, (struct nic_time){0});

    for (uint32_t peer = 1; peer <= 16; peer++) {
        const struct clock_edge_config edge = {
            .peer = peer, .local_nic = {0}, .peer_nic = {peer}, .path_count = 1};
        const int i = clock_edge_add(c, (struct nic_time){0}, &edge);
        c->edges[i].heard = c->edges[i].level_known = true;
        c->edges[i].peer.phase = CLOCK_TRACK;
        c->edges[i].peer.core = true;
        c->edges[i].level_ns = peer == 1 ? level_ns : 0;
        c->edges[i].parked = peer == 1;
    }
    c->phase = CLOCK_TRACK;
    c->narrow = true;
    c->scale_ns = 2;
    c->sigma_e_ns = 5;
    return c;
}

static bool is_named(struct clock *c, int64_t from_s, int against, int without,
                     struct clock_action *ret_action)
{
    for (int tick = 0; tick < 60; tick++) {
        const struct nic_time now = {from_s * NS_PER_S + tick * CLOCK_TICK_NS};
        c->now = now;
        for (int i = 0; i < c->capacity; i++) {
            c->edges[i].heard_at = c->edges[i].point_at = now;
        }
        consensus_count(c);
        liar_tick(c, now, 0.05);
        while (clock_next_action(c, ret_action)) {
            if (ret_action->kind == CLOCK_ACTION_LIAR) {
                return true;
            }
            for (int k = 0; k < against + without && ret_action->kind == CLOCK_ACTION_QUERY; k++) {
                const struct clock_answer a = {.about = 1,
                                               .from = (uint32_t)k + 2,
                                               .known = k < against,
                                               .parked = k < against,
                                               .level_ns = 60};
                clock_on_answer(c, now, &a);
            }
        }
    }
    return false;
}

static void a_liar_is_named_by_answers_and_far_off(void **state)
{
    static const struct {
        double level_ns;
        enum clock_stamps stamps;
        int against, without;
        bool named;
    } cases[] = {
        {60, CLOCK_STAMPS_HARDWARE, 8, 0, true},
        {60, CLOCK_STAMPS_HARDWARE, 0, 0, false}, /* no answer */
        {60, CLOCK_STAMPS_HARDWARE, 2, 0, false}, /* too few */
        {60, CLOCK_STAMPS_HARDWARE, 6, 8, false}, /* fewer than half of those asked */
        {10, CLOCK_STAMPS_HARDWARE, 8, 0, false}, /* hardly beyond the parking limit */
        {60, CLOCK_STAMPS_SOFTWARE, 8, 0, false}, /* less than one packet's noise */
        {2000, CLOCK_STAMPS_SOFTWARE, 8, 0, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct clock *c = parked_peer(cases[i].level_ns, cases[i].stamps);
        struct clock_action action;
        assert_int_equal(is_named(c, 30, cases[i].against, cases[i].without, &action),
                         cases[i].named);
        if (cases[i].named) {
            assert_int_equal(action.against, cases[i].against);
            assert_int_equal(action.asked, cases[i].against + cases[i].without);
        }
        clock_free(c);
    }
}

/* An honest member that is out of step also denies to be core, and is back within 7.1 s: see liar.c. */
static void who_denies_being_in_step_has_time_to_come_back(void **state)
{
    struct clock *c = parked_peer(60, CLOCK_STAMPS_HARDWARE);
    struct clock_action action;
    double asked_s = 0;

    c->edges[0].peer.core = c->edges[15].peer.core = false;
    for (int64_t from_s = 30; asked_s == 0 && from_s < 60; from_s += 3) {
        const bool named = is_named(c, from_s, 8, 0, &action);
        asked_s = named ? (double)(c->now.ns - 30 * NS_PER_S) * 1e-9 : 0;
    }
    print_message("named after %.2f s\n", asked_s);
    assert_true(asked_s > 7.1 && asked_s < 9);
    clock_free(c);
}

/* A peer that fits again, or whose edge was given to another peer, no longer counts as a liar, and its place among the suspects
 * is free. */
static void a_name_is_cleared(void **state)
{
    for (int gone = 0; gone < 2; gone++) {
        struct clock *c = parked_peer(60, CLOCK_STAMPS_HARDWARE);
        struct clock_action action;
        bool cleared = false;
        assert_true(is_named(c, 30, 8, 0, &action));
        if (gone) {
            clock_edge_remove(c, c->now, action.edge);
        } else {
            c->edges[action.edge].parked = false;
        }
        for (int tick = 0; tick < 120; tick++) {
            c->now.ns += CLOCK_TICK_NS;
            for (int i = 0; i < c->capacity; i++) {
                c->edges[i].heard_at = c->edges[i].point_at = c->now;
            }
            liar_tick(c, c->now, 0.05);
        }
        while (clock_next_action(c, &action)) {
            cleared = cleared || (action.kind == CLOCK_ACTION_CLEARED && action.peer == 1);
        }
        assert_true(cleared);
        for (int i = 0; i < SUSPECTS; i++) {
            assert_false(c->suspects[i].used);
        }
        clock_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_is_exact_far_from_zero),
        cmocka_unit_test(bounds_only_grow_with_age),
        cmocka_unit_test(judges_read_the_same),
        cmocka_unit_test(noise_learns_what_packets_are_worth),
        cmocka_unit_test(score_has_one_zero),
        cmocka_unit_test(round_trips_bound_what_passes_for_noise),
        cmocka_unit_test(bank_finds_the_wander),
        cmocka_unit_test(a_density_that_is_too_narrow_grows),
        cmocka_unit_test(shortest_half_ignores_a_minority),
        cmocka_unit_test(only_early_and_late_alike_is_a_shift),
        cmocka_unit_test(bad_input_is_refused),
        cmocka_unit_test(alone_is_unknown),
        cmocka_unit_test(host_hangs_on_its_nics),
        cmocka_unit_test(a_liar_is_named_by_answers_and_far_off),
        cmocka_unit_test(who_denies_being_in_step_has_time_to_come_back),
        cmocka_unit_test(a_name_is_cleared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
