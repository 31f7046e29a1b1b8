/* Edges whose packets all wait for frames: what their mean shows, which member it moves, and when it must not move one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "member_kit.h"

#define PEERS   16 /* of which four may lie */
#define FRAME   3700
#define WAIT_NS (FRAME * 1.5)
#define WAIT_SD (FRAME * 0.5)

/* A member that tracks, with an edge to each of so many peers. */
static struct clock *member(int peers)
{
    const struct clock_config config = {
        .edge_capacity = 64, .edge_limit_ns = 8000, .hops = 4, .stamp_error_ns = 1};

    now.ns = 100 * NS_PER_S;
    struct clock *c = clock_new(&config, now);
    assert_non_null(c);
    for (int i = 0; i < peers; i++) {
        const struct clock_edge_config edge = {
            .peer = (uint32_t)i + 1, .peer_nic = {(uint32_t)i + 1}, .path_count = 1};
        assert_int_equal(clock_edge_add(c, now, &edge), i);
        know_path(c, i);
    }
    c->phase = CLOCK_TRACK;
    bank_init(&c->bank, 10);
    bank_start(&c->bank, 20.0 * 20.0, 20.0 * 20.0);
    return c;
}

/* A packet that takes so long, with a peer whose clock is `ahead` of the own one. */
static void packet(struct clock *c, int edge, bool forward, double takes, double ahead)
{
    const int64_t at = now.ns - 10 * NS_PER_MS;
    const double remote = ahead + (forward ? takes : -takes);
    const struct clock_point p = {.edge = edge,
                                  .forward = forward,
                                  .local = {at},
                                  .remote = {at + (int64_t)floor(remote + 0.5)}};

    clock_on_point(c, now, &p);
}

/* A probe at ports that are always full: it waits for the rest of a frame at each. One port of three is in the jobs' class. */
static double waits(struct prng *p, int ports)
{
    const bool of_job = prng_uniform(p) < 0.33;
    double sum = 0;

    for (int port = 0; port < ports; port++) {
        sum += FRAME * prng_uniform(p) + (of_job ? 700e3 * prng_uniform(p) : 0);
    }
    return sum;
}

/* Five peers, `ahead` of this member, with so many full ports in each direction. Returns the error of theta after so many
 * seconds, as the mean over the last thirty. *ret_alike: the share of that time in which edges treat all packets as waiting
 * alike. */
static double place_among_waits(int64_t ahead, int there, int back, int seconds, double *ret_alike)
{
    struct clock *c = member(5);
    struct prng p;
    const int ticks = seconds * 20;
    double off = 0, alike = 0;

    prng_init(&p, 3);
    for (int tick = 0; tick < ticks; tick++) {
        next_tick(c);
        consensus_count(c);
        for (int i = 0; i < 5; i++) {
            const bool forward = (tick + i) % 2 == 0;
            packet(c, i, forward, DELAY + waits(&p, forward ? there : back), (double)ahead);
            edge_track(c, &c->edges[i], now);
            const bool late = tick >= ticks - 600;
            alike += late && c->edges[i].alike;
            off += late ? c->edges[i].expected_ns - (double)(ahead - c->map.x_ns) : 0;
        }
        consensus_levels(c, now, 0.05);
    }
    *ret_alike = alike / 3000;
    print_message("%lld ns ahead, %d ports there, %d back: off by %.0f, alike %.2f\n",
                  (long long)ahead, there, back, off / 3000, *ret_alike);
    clock_free(c);
    return off / 3000;
}

/* Hardly a packet is in time, and the earliest have waited a little, too. But all wait alike: the difference of the two
 * directions is twice the peer's lead. */
static void packets_that_all_wait_tell_by_their_mean(void **state)
{
    double alike;

    for (int64_t ahead = -1500; ahead <= 1500; ahead += 1500) {
        assert_true(fabs(place_among_waits(ahead, 3, 3, 60, &alike)) < 300);
        assert_true(alike > 0.9);
    }
    (void)state;
}

/* However long that lasts: a wait of all packets is a queue, and no longer path. Otherwise it would be in m, and theta would be
 * off by a part of it. */
static void packets_that_all_wait_are_no_longer_way(void **state)
{
    double alike;

    for (int ports = 3; ports <= 5; ports++) {
        assert_true(fabs(place_among_waits(0, ports, ports, 720, &alike)) < 300);
        assert_true(alike > 0.9);
    }
    (void)state;
}

/* All packets of that edge wait, and have for long. By their mean the peer is so far ahead. */
static void all_wait(struct clock *c, int edge, double ahead)
{
    struct clock_edge *e = &c->edges[edge];

    e->level_known = e->in_gate = e->alike = true;
    e->expected_ns = e->level_ns = ahead;
    e->wait_low_ns = WAIT_NS - WAIT_SD;
    e->wait_high_ns = WAIT_NS;
    e->wait_ns[0] = e->wait_ns[1] = WAIT_NS;
    e->wait_var = e->wait_slow_var[0] = e->wait_slow_var[1] = WAIT_SD * WAIT_SD;
    e->wait_late = 1;
    e->info_mean = 1 / e->wait_var;
}

/* They count, but they are late: the member doesn't report that most come in time. */
static void packets_that_all_wait_are_not_in_gate(void **state)
{
    struct clock *c = member(1);
    struct clock_edge_report r;
    struct prng p;

    prng_init(&p, 5);
    next_tick(c);
    all_wait(c, 0, 0);
    for (int tick = 0; tick < 400; tick++) {
        next_tick(c);
        packet(c, 0, tick % 2 == 0, DELAY + waits(&p, 3), 0);
        edge_track(c, &c->edges[0], now);
        assert_true(c->edges[0].alike);
    }
    assert_true(clock_edge_report(c, now, 0, &r));
    print_message("in gate: %.3f\n", r.gate_share);
    assert_true(r.gate_share < 0.1);
    assert_true(c->edges[0].packets_alike > c->edges[0].packets_out);
    clock_free(c);
    (void)state;
}

/* A peer is behind three full ports, and has one in the other direction: by its mean it would be a frame's wait of 1.85 us
 * ahead. */
static void who_waits_longer_one_way_tells_nothing_by_that(void **state)
{
    double alike;

    (void)place_among_waits(0, 3, 1, 60, &alike);
    assert_true(alike < 0.1);
    (void)place_among_waits(0, 1, 3, 60, &alike);
    assert_true(alike < 0.1);
    (void)place_among_waits(0, 5, 2, 60, &alike);
    assert_true(alike < 0.1);
    (void)state;
}

static struct clock *member_of(int peers, int waiting, double ahead)
{
    struct clock *c = member(peers);

    next_tick(c);
    consensus_count(c);
    for (int i = 0; i < peers; i++) {
        struct clock_edge *e = &c->edges[i];
        if (i < waiting) {
            all_wait(c, i, ahead);
            continue;
        }
        e->in_gate = e->has_e = true;
        e->e_info = e->info_mean = 1 / 400.0;
    }
    return c;
}

/* How far that member moves by this, without its filter. */
static double follow(struct clock *c)
{
    double dx, dy;

    consensus_gather(c, now);
    consensus_follow(c, 0.05, &dx, &dy);
    assert_true(dx * dy >= 0 && (dx == 0) == (dy == 0));
    clock_free(c);
    return dx;
}

/* Its leaf is in step with it, to 20 ns. All others are a microsecond ahead, to 2. */
static void a_member_follows_those_that_wait(void **state)
{
    const double ahead = follow(member_of(PEERS, 8, 1000)),
                 behind = follow(member_of(PEERS, 8, -1000));

    print_message("moves by %.1f ns in a tick, and %.1f\n", ahead, behind);
    assert_true(ahead > 5 && ahead < 100);
    assert_true(behind == -ahead);
    assert_true(follow(member_of(PEERS, 8, 0)) == 0);
    (void)state;
}

static void set_ahead(struct clock *c, int edge, double ahead)
{
    c->edges[edge].expected_ns = c->edges[edge].level_ns = ahead;
}

/* So few that all of them may lie, or less than a quarter of all, or too few of all in gate to move a member. */
static void it_follows_no_few(void **state)
{
    assert_true(follow(member_of(PEERS, 4, 1000)) == 0);
    assert_true(follow(member_of(PEERS, 5, 1000)) > 0);
    assert_true(follow(member_of(28, 6, 1000)) == 0);
    assert_true(follow(member_of(28, 7, 1000)) > 0);
    struct clock *c = member_of(40, 7, 1000);
    for (int i = 7; i < 40; i++) {
        c->edges[i].in_gate = false; /* all hushed but one */
        c->edges[i].peer.phase = i == 7 ? CLOCK_TRACK : CLOCK_COLD;
    }
    c->edges[7].in_gate = true;
    assert_int_equal(c->needed, 16);
    assert_true(follow(c) > 0);
    c = member_of(40, 6, 1000);
    for (int i = 6; i < 40; i++) {
        c->edges[i].in_gate = i == 6;
        c->edges[i].peer.phase = i == 6 ? CLOCK_TRACK : CLOCK_COLD;
    }
    assert_true(follow(c) == 0);
    (void)state;
}

/* Three edges to one peer count as one of them. */
static void edges_to_one_peer_are_one_that_waits(void **state)
{
    struct clock *c = member_of(PEERS, 4, 1000);

    for (uint32_t i = 0; i < 2; i++) {
        const struct clock_edge_config edge = {
            .peer = 1, .peer_nic = {PEERS + 1 + i}, .path_count = 1};
        const int added = clock_edge_add(c, now, &edge);
        assert_int_equal(added, PEERS + (int)i);
        know_path(c, added);
        hear(c);
        all_wait(c, added, 1000);
    }
    assert_true(follow(c) == 0);
    (void)state;
}

/* Five wait, and four of them lie, by any amount and with any scatter: they have no more effect than honest ones. */
static void liars_that_wait_pull_no_more_than_others(void **state)
{
    const double most = follow(member_of(PEERS, 5, 1e5));

    for (double scatter = 2; scatter < 1e4; scatter *= 10) {
        struct clock *c = member_of(PEERS, 5, 1e5);
        set_ahead(c, 0, 0);
        for (int i = 1; i < 5; i++) {
            c->edges[i].wait_var = scatter * scatter;
            c->edges[i].info_mean = 1 / (scatter * scatter);
        }
        const double dx = follow(c);
        print_message("scatter %.0f ns: %.2f ns in a tick, all honest %.2f\n", scatter, dx, most);
        assert_true(dx >= 0 && dx < most);
    }
    (void)state;
}

/* By the bounds of all honest edges it can't be off by more than 100 ns. */
static void it_follows_no_further_than_stamps_prove(void **state)
{
    struct clock *c = member_of(PEERS, 8, 1000);

    for (int i = 0; i < PEERS; i++) {
        c->edges[i].proven = true;
        c->edges[i].map_lower_ns = -100;
        c->edges[i].map_upper_ns = 100;
    }
    const double free_dx = follow(member_of(PEERS, 8, 1000)), dx = follow(c);
    print_message("bounded %.2f, else %.2f ns\n", dx, free_dx);
    assert_true(dx > 0 && dx < free_dx / 5);
    (void)state;
}

/* The filter is 60 us off, and so are those that wait: together they move the map by 25 us and 2 ppm in a tick. */
static void both_together_are_one_move(void **state)
{
    for (double off = -60e3; off <= 60e3; off += 120e3) {
        struct clock *c = member_of(PEERS, 8, off);
        struct prng p;
        prng_init(&p, 9);
        clock_tick(c, now);
        const struct clock_map before = c->map;
        next_tick(c);
        for (int i = 0; i < PEERS; i++) {
            if (i < 8) {
                all_wait(c, i, off);
            } else {
                set_ahead(c, i, off);
            }
            packet(c, i, true, DELAY, off);
            packet(c, i, false, DELAY, off);
        }
        for (int k = 0; k < BANK_FILTERS; k++) {
            c->bank.x[k] = off;
            c->bank.y[k] = off;
        }
        clock_tick(c, now);
        const double moved = clock_map_difference(&c->map, now, &before, now);
        print_message("moved by %.0f ns and %.3f ppm\n", moved, (c->map.y - before.y) * 1e6);
        assert_true(fabs(moved) > 24e3 && fabs(moved) < 25e3 + 1);
        assert_true(fabs(c->map.y - before.y) < 2.0001e-6);
        clock_free(c);
    }
    (void)state;
}

/* Honest peers in time, or from 10 s on behind full queues. The last ones lie: they delay their packets by 3 us with a scatter of
 * 1, and know how far to go. */
struct lie {
    int liars, hushed;
    bool pulses; /* of 0.4 s every six, else steadily just below where they would be parked */
    int seconds;
};

static double liars_theta(const struct clock *c, const struct lie *lie, int tick)
{
    const struct nic_time at = {now.ns - 10 * NS_PER_MS};
    const double own = (double)(clock_map_apply(&c->map, at).ns - at.ns);

    return own + (!lie->pulses ? 500 : tick % 120 < 8 ? 1700 : 0);
}

/* Returns the final error. The own crystal wanders by 10 ppb per root second. */
static double lie_to(const struct lie *lie, double *ret_rms)
{
    struct clock *c = member(PEERS);
    struct prng p;
    double rate = 0, off = 0, worst = 0, sum = 0;

    prng_init(&p, 5);
    for (int tick = 0; tick < lie->seconds * 20; tick++) {
        rate += 10 * sqrt(0.05) * prng_normal(&p);
        off += rate * 0.05;
        next_tick(c);
        for (int i = 0; i < PEERS; i++) {
            const bool lies = tick > 100 && i >= PEERS - lie->liars;
            const bool waiting = tick > 200 && i < lie->hushed;
            for (int forward = 0; forward < 2; forward++) {
                const double noise = 28 * prng_normal(&p);
                const double wait = lies      ? 3000 + 3464 * (prng_uniform(&p) - 0.5)
                                    : waiting ? 2e5 + 7e5 * prng_uniform(&p)
                                              : 0;
                packet(c, i, forward, DELAY + wait + noise,
                       lies ? liars_theta(c, lie, tick) : -off);
            }
        }
        clock_tick(c, now);
        const double error = (double)(clock_map_apply(&c->map, now).ns - now.ns) + off;
        if (tick > 100) {
            worst = fmax(worst, fabs(error));
            sum += error * error;
        }
    }
    *ret_rms = sqrt(sum / (lie->seconds * 20 - 101));
    print_message("%d liars, %s, %d hushed: off by up to %.1f ns, rms %.1f\n", lie->liars,
                  lie->pulses ? "in pulses" : "steady", lie->hushed, worst, *ret_rms);
    clock_free(c);
    return worst;
}

static void liars_that_wait_move_nobody(void **state)
{
    for (int pulses = 0; pulses < 2; pulses++) {
        for (int liars = 0; liars <= 4; liars++) {
            const struct lie lie = {.liars = liars, .pulses = pulses, .seconds = 60};
            double rms;
            assert_true(lie_to(&lie, &rms) < 60);
            assert_true(rms < 12);
        }
    }
    (void)state;
}

static void liars_that_wait_carry_nobody_off(void **state)
{
    const struct lie none = {.hushed = 13, .seconds = 60},
                     two = {.hushed = 13, .liars = 2, .seconds = 60};
    double rms;
    const double alone = lie_to(&none, &rms), off = lie_to(&two, &rms);

    assert_true(off < fmax(3000, 2 * alone));
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_that_all_wait_tell_by_their_mean),
        cmocka_unit_test(packets_that_all_wait_are_no_longer_way),
        cmocka_unit_test(packets_that_all_wait_are_not_in_gate),
        cmocka_unit_test(who_waits_longer_one_way_tells_nothing_by_that),
        cmocka_unit_test(a_member_follows_those_that_wait),
        cmocka_unit_test(it_follows_no_few),
        cmocka_unit_test(edges_to_one_peer_are_one_that_waits),
        cmocka_unit_test(liars_that_wait_pull_no_more_than_others),
        cmocka_unit_test(it_follows_no_further_than_stamps_prove),
        cmocka_unit_test(both_together_are_one_move),
        cmocka_unit_test(liars_that_wait_move_nobody),
        cmocka_unit_test(liars_that_wait_carry_nobody_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
