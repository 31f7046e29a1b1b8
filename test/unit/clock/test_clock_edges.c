/* What one edge shows: its width, the rate at which its peer's F moves, the narrowest claim of the last seconds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/clock/clock_private.h"

static struct nic_time now;

static struct clock *member(void)
{
    const struct clock_config config = {
        .edge_capacity = 4, .edge_limit_ns = 8000, .hops = 4, .stamp_error_ns = 1};
    now.ns = 100 * NS_PER_S;
    struct clock *c = clock_new(&config, now);
    const struct clock_edge_config edge = {.peer = 1, .peer_nic = {1}, .path_count = 1};

    assert_non_null(c);
    assert_int_equal(clock_edge_add(c, now, &edge), 0);
    c->phase = CLOCK_TRACK;
    return c;
}

/* An edge is as wide as its wider side: packets that take longer in one direction leave more room on that side. */
static void an_edge_is_as_wide_as_its_wider_side(void **state)
{
    static const int64_t delays[][2] = {{1000, 1000}, {1000, 5000}, {5000, 1000}}; /* there, back */
    static uint32_t seq;

    for (size_t i = 0; i < ARRAY_COUNT(delays); i++) {
        struct clock *c = member();
        const struct clock_edge *e = &c->edges[0];
        for (int t = 0; t < 20; t++) {
            now.ns += CLOCK_TICK_NS;
            const struct clock_published h = {.phase = CLOCK_TRACK,
                                              .settled = true,
                                              .timeline = 77,
                                              .map_seq = ++seq,
                                              .h_ns = 8000,
                                              .anchor.member = UINT32_MAX};
            clock_on_peer(c, now, 0, &h);
            const int64_t sent = now.ns - delays[i][0] - delays[i][1];
            const struct clock_point there = {.edge = 0,
                                              .forward = true,
                                              .local = {sent},
                                              .remote = {sent + delays[i][0]}},
                                     back = {.edge = 0,
                                             .local = now,
                                             .remote = {now.ns - delays[i][1]}};
            clock_on_point(c, now, &there);
            clock_on_point(c, now, &back);
            consensus_count(c);
            bound_tick(c, now);
        }
        assert_true(e->bounded);
        /* the truth, 0 apart, is within; each side is as far as its packets took, and grows with age */
        const double up = e->upper_ns, down = -e->lower_ns;
        assert_true(up > 0 && down > 0);
        assert_true(up + down >= (double)(delays[i][0] + delays[i][1]));
        assert_true(fabs(e->w_ns - fmax(up, down)) < 1e-6);
        assert_true(i == 0 || e->w_ns >= 5000);
        clock_free(c);
    }
}

/* A peer's clock runs like the own one, but its map runs 300 ppm faster: it is right at each header, and wrong until the next. It
 * has published that for as long as stamps look back. This rate must not limit what the stamps show. Otherwise the two ends of
 * the bound would cross, or exclude the peer's map. */
static void a_published_rate_that_stamps_exclude_bounds_nothing(void **state)
{
    struct clock *c = member();
    const struct clock_edge *e = &c->edges[0];

    c->own_rate.since = now; /* its rate stays the same */
    for (uint32_t seq = 1; seq <= 600; seq++) {
        now.ns += CLOCK_TICK_NS;
        const struct clock_published h = {.phase = CLOCK_TRACK,
                                          .settled = true,
                                          .timeline = 77,
                                          .map = {.r = now, .y = 300e-6},
                                          .map_seq = seq,
                                          .h_ns = 8000,
                                          .anchor.member = UINT32_MAX};
        clock_on_peer(c, now, 0, &h);
        const struct clock_point there = {.edge = 0,
                                          .forward = true,
                                          .local = {now.ns - 2000},
                                          .remote = {now.ns - 1000}},
                                 back = {.edge = 0, .local = now, .remote = {now.ns - 1000}};
        if (seq % 10 == 0) {
            clock_on_point(c, now, &there);
            clock_on_point(c, now, &back);
        }
        consensus_count(c);
        c->rate_out = c->offset_out = 0; /* this member stays where it is */
        bound_tick(c, now);
        if (seq > 40) {
            assert_true(e->bounded && e->crossed_at.ns == 0);
            assert_true(e->map_lower_ns <= 0 && e->map_upper_ns >= 0);
        }
    }
    clock_free(c);
}

/* Two edges to one peer, of two NICs each, and one to another peer. A full port makes one of the first two wide. The clocks at
 * its ends are those of the narrow one, so what the narrow one proves holds for it, too. What is proved of another peer
 * doesn't. */
static void what_one_edge_proves_holds_for_all_to_that_peer(void **state)
{
    static const struct clock_edge_config more[] = {
        {.peer = 1, .local_nic = {1}, .peer_nic = {2}, .path_count = 1},
        {.peer = 2, .peer_nic = {3}, .path_count = 1}};
    static const int64_t delays[] = {400000, 4000, 7000}; /* both ways */
    struct clock *c = member();
    const struct clock_edge *e = c->edges;

    for (size_t i = 0; i < ARRAY_COUNT(more); i++) {
        assert_int_equal(clock_edge_add(c, now, &more[i]), (int)i + 1);
    }
    for (uint32_t seq = 1; seq <= 60; seq++) {
        now.ns += CLOCK_TICK_NS;
        const struct clock_published h = {.phase = CLOCK_TRACK,
                                          .settled = true,
                                          .timeline = 77,
                                          .map_seq = seq,
                                          .h_ns = 8000,
                                          .anchor.member = UINT32_MAX};
        for (int i = 0; i < 3; i++) {
            const int64_t sent = now.ns - 2 * delays[i];
            const struct clock_point there = {.edge = i,
                                              .forward = true,
                                              .local = {sent},
                                              .remote = {sent + delays[i]}},
                                     back = {
                                         .edge = i, .local = now, .remote = {now.ns - delays[i]}};
            clock_on_peer(c, now, i, &h);
            clock_on_point(c, now, &there);
            clock_on_point(c, now, &back);
        }
        consensus_count(c);
        bound_tick(c, now);
    }
    assert_true(e[0].bounded && e[1].bounded && e[2].bounded);
    assert_true(e[1].w_ns < 10000 && e[2].w_ns > e[1].w_ns + 2000);
    assert_true(e[0].w_ns == e[1].w_ns);
    assert_true(e[0].lower_ns == e[1].lower_ns && e[0].upper_ns == e[1].upper_ns);
    assert_true(e[0].map_lower_ns == e[1].map_lower_ns && e[0].map_upper_ns == e[1].map_upper_ns);
    assert_true(e[0].rate_lower == e[1].rate_lower && e[0].rate_upper == e[1].rate_upper);
    clock_free(c);
    (void)state;
}

/* Two edges to one peer. One is well, and brings a header each tick. The other's port is full inwards, and it brings one each 0.6
 * s. The peer's map and line begin to move, by less than the fleet allows. No edge may prove something false: the second not by
 * an old header, and the first not by what the second proves. */
static void what_an_edge_proves_is_of_the_newest_header(void **state)
{
    static const struct clock_edge_config more = {
        .peer = 1, .local_nic = {1}, .peer_nic = {2}, .path_count = 1};
    static const int64_t delays[2][2] = {{40000, 40000}, {4000, 400000}}; /* there, back */
    const int64_t moves = 20000;                                          /* a tick */
    struct clock *c = member();
    const struct clock_edge *e = c->edges;
    int64_t x = 0;

    assert_int_equal(clock_edge_add(c, now, &more), 1);
    for (uint32_t seq = 1; seq <= 440; seq++) {
        now.ns += CLOCK_TICK_NS;
        x += seq > 400 ? moves : 0;
        const struct clock_published h = {.phase = CLOCK_TRACK,
                                          .settled = true,
                                          .timeline = 77,
                                          .map.x_ns = x,
                                          .map_seq = seq,
                                          .h_ns = 100000,
                                          .anchor.member = UINT32_MAX};
        for (int i = 0; i < 2; i++) {
            if (i == 1 && seq % 12 != 4) {
                continue;
            }
            const int64_t sent = now.ns - delays[i][0] - delays[i][1];
            const struct clock_point there = {.edge = i,
                                              .forward = true,
                                              .local = {sent},
                                              .remote = {sent + delays[i][0]}},
                                     back = {.edge = i,
                                             .local = now,
                                             .remote = {now.ns - delays[i][1]}};
            clock_on_peer(c, now, i, &h);
            clock_on_point(c, now, &there);
            clock_on_point(c, now, &back);
        }
        consensus_count(c);
        bound_tick(c, now);
        const double apart = clock_map_difference(&h.map, now, &c->map, now);
        for (int i = 0; i < 2 && seq > 200; i++) {
            assert_true(e[i].bounded);
            assert_true(e[i].map_lower_ns <= apart && apart <= e[i].map_upper_ns);
            assert_true(e[i].lower_ns <= apart && apart <= e[i].upper_ns);
        }
    }
    clock_free(c);
    (void)state;
}

static struct clock_published word(enum clock_phase phase, uint32_t seq, int64_t x_ns,
                                   uint32_t h_ns)
{
    return (struct clock_published){
        .phase = phase, .map = {.r = now, .x_ns = x_ns}, .map_seq = seq, .h_ns = h_ns};
}

/* A peer that boots counts its maps from one again, and stamps by another clock. Its new header is taken at once, and earlier
 * stamps are dropped: with the new map they would place it hours away. One map that comes late over another path is no such
 * header. */
static void a_peer_that_boots_is_heard_at_once(void **state)
{
    struct clock *c = member();
    struct clock_edge *e = &c->edges[0];
    struct clock_published h = word(CLOCK_TRACK, 1000, 0, 8000);
    const struct clock_point there = {.forward = true, .local = now, .remote = {now.ns + 500}},
                             back = {.local = now, .remote = {now.ns - 500}};

    h.anchor.member = UINT32_MAX;
    clock_on_peer(c, now, 0, &h);
    clock_on_point(c, now, &there);
    clock_on_point(c, now, &back);
    bound_edges(c, now);
    assert_true(e->proven);

    now.ns += 10 * NS_PER_MS;
    h.map_seq = 999; /* late */
    h.map.x_ns = 7;
    clock_on_peer(c, now, 0, &h);
    assert_int_equal(e->peer.map_seq, 1000);
    assert_true(e->written == 2 && e->proven);

    now.ns += 10 * NS_PER_MS;
    h.map_seq = 1;
    h.phase = CLOCK_COLD;
    h.map = (struct clock_map){.r = {5 * NS_PER_S}, .x_ns = 40000 * NS_PER_S};
    clock_on_peer(c, now, 0, &h);
    assert_int_equal(e->peer.map_seq, 1);
    assert_true(e->written == 0 && !e->proven && !e->drift.slots[100 % DRIFT_SLOTS].upper.seen);
    clock_free(c);

    /* only the agent restarted; its clock and its time went on */
    c = member();
    e = &c->edges[0];
    h = word(CLOCK_TRACK, 1000, 0, 8000);
    h.anchor.member = UINT32_MAX;
    clock_on_peer(c, now, 0, &h);
    const struct clock_point again = {.forward = true, .local = now, .remote = {now.ns + 500}};
    clock_on_point(c, now, &again);
    h.map_seq = 1;
    clock_on_peer(c, now, 0, &h);
    assert_true(e->peer.map_seq == 1 && e->written == 1);
    clock_free(c);
    (void)state;
}

/* The rate at which a peer's F moves beyond its published rate is counted only between two headers in TRACK. */
static void restlessness_is_of_two_words_in_track(void **state)
{
    static const enum clock_phase other = (enum clock_phase)(CLOCK_TRACK - 1);
    static const struct {
        enum clock_phase was, is;
        int64_t dt_ms, moved_ns;
        uint32_t seq;
        double restless; /* ns/s */
    } cases[] = {
        {CLOCK_TRACK, CLOCK_TRACK, 100, 10, 2, 100},
        {CLOCK_TRACK, CLOCK_TRACK, 100, -10, 2, 100},
        {CLOCK_TRACK, CLOCK_TRACK, 10, 10, 2, 200}, /* of 50 ms at least */
        {CLOCK_TRACK, CLOCK_TRACK, 499, 10, 2, 10 / 0.499},
        {CLOCK_TRACK, CLOCK_TRACK, 2000, 1000, 2, 500}, /* headers that are lost */
        {CLOCK_TRACK, CLOCK_TRACK, 100, 10, 1, 5.7}, /* the same word: 7, forgotten within 0.5 s */
        {CLOCK_TRACK, CLOCK_TRACK, 100, NS_PER_S, 2, 2.5e6}, /* a jump: what lines can do */
        {other, CLOCK_TRACK, 100, 10, 2, 0},
        {CLOCK_TRACK, other, 100, 10, 2, 0},
        {other, other, 100, 10, 2, 0},
    };

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct clock_edge e = {.heard = true, .restless = i == 5 ? 7 : 0};
        now.ns = 100 * NS_PER_S;
        e.heard_at = now;
        e.peer = word(cases[i].was, 1, 0, 100);
        now.ns += cases[i].dt_ms * NS_PER_MS;
        const struct clock_published is = word(cases[i].is, cases[i].seq, cases[i].moved_ns, 100);
        bound_hear(&e, &is, now);
        assert_true(fabs(e.restless - cases[i].restless) < 0.5);
    }
}

/* Of a peer's claims the widest of the last four seconds counts: a narrower one counts once it has held so long. */
static void a_narrower_claim_is_believed_later(void **state)
{
    struct clock_edge e = {.heard = false, .peer_h_ns = 900};

    now.ns = 100 * NS_PER_S;
    struct clock_published h = word(CLOCK_TRACK, 1, 0, 500);
    bound_hear(&e, &h, now); /* the first claim */
    assert_int_equal(e.peer_h_ns, 500);
    e.heard = true;
    h.h_ns = 300;
    now.ns += 4 * NS_PER_S;
    bound_hear(&e, &h, now);
    assert_int_equal(e.peer_h_ns, 500);
    now.ns += 1;
    bound_hear(&e, &h, now);
    assert_int_equal(e.peer_h_ns, 300);
    h.h_ns = 301;
    bound_hear(&e, &h, now); /* a wider one counts at once */
    assert_int_equal(e.peer_h_ns, 301);
}

/* A hundred packets of a bell curve: the score is that curve's, and reasonable also where no packet came. */
static void few_packets_make_a_sound_score(void **state)
{
    const double sigma = 100;
    struct noise n;

    noise_init(&n, sigma, false);
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 100; i++) { /* by its quantiles */
            const double u = (i + 0.5) / 100, t = sqrt(-2 * log(u < 0.5 ? u : 1 - u));
            const double z = t - (2.30753 + 0.27061 * t) / (1 + 0.99229 * t + 0.04481 * t * t);
            noise_add(&n, (u < 0.5 ? -z : z) * sigma);
        }
        noise_refresh(&n, 0.5);
    }
    const double info = n.info * sigma * sigma;
    assert_true(info > 0.6 && info < 1.4);
    for (double x = -1000; x <= 1000; x += 10) {
        const double score = noise_score(&n, x) * sigma;
        assert_true(isfinite(score));
        assert_true(fabs(score) < 20);
        assert_true(x > -50 || score < 0);
        if (fabs(x) <= 150) { /* a straight line through zero */
            assert_true(fabs(score - x / sigma) < 0.5);
        }
    }
}

/* Its bound reaches zero or touches it: its packets don't contradict that. */
static void an_edge_vouches_up_to_its_bound(void **state)
{
    static const struct {
        double lower, upper;
        bool in_gate, known, bounded, vouches;
    } cases[] = {{-5, 5, false, true, true, true},   {0, 5, false, true, true, true},
                 {-5, 0, false, true, true, true},   {1, 5, false, true, true, false},
                 {-5, -1, false, true, true, false}, {-5, 5, false, false, true, false},
                 {-5, 5, false, true, false, false}, {1, 5, true, false, false, true}};

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct clock_edge e = {.in_gate = cases[i].in_gate,
                                     .level_known = cases[i].known,
                                     .bounded = cases[i].bounded,
                                     .lower_ns = cases[i].lower,
                                     .upper_ns = cases[i].upper};
        assert_int_equal(edge_vouches(&e), cases[i].vouches);
    }
}

/* After a disturbance no earlier promise counts. */
static void a_disrupted_clock_promises_nothing(void **state)
{
    struct clock *c = member();

    c->now = now;
    c->tight = c->core = c->h_known = true;
    c->tight_ticks = 9;
    clock_disrupt(c, span_ms(300));
    assert_false(c->tight || c->core || c->h_known);
    assert_int_equal(c->tight_ticks, 0);
    assert_true(c->disrupted);
    assert_int_equal(c->disrupted_until.ns, now.ns + 300 * NS_PER_MS);
    clock_disrupt(c, span_ms(100)); /* a shorter one doesn't end the longer one sooner */
    assert_int_equal(c->disrupted_until.ns, now.ns + 300 * NS_PER_MS);
    clock_free(c);
}

/* A round trip at `at` of 5 us in each direction, with a peer whose clock is `ahead_ns` ahead. */
static void exchange(struct clock *c, int64_t at, int64_t ahead_ns)
{
    const struct clock_point there = {
        .forward = true, .local = {at}, .remote = {at + 5000 + ahead_ns}};
    const struct clock_point back = {.local = {at + 40 * NS_PER_MS},
                                     .remote = {at + 40 * NS_PER_MS - 5000 + ahead_ns}};

    c->now = now;
    clock_on_point(c, now, &there);
    clock_on_point(c, now, &back);
}

static void hear(struct clock *c, int64_t x_ns)
{
    static uint32_t seq;
    struct clock_published h = word(CLOCK_TRACK, ++seq, x_ns, 8000);

    h.settled = true;
    h.anchor.member = UINT32_MAX;
    clock_on_peer(c, now, 0, &h);
}

/* One round trip of path 1, with these waits in each direction. */
static void waiting_exchange(struct clock *c, int64_t at, int64_t there_ns, int64_t back_ns)
{
    const struct clock_point there = {
        .path = 1, .forward = true, .local = {at}, .remote = {at + 5000 + there_ns}};
    const struct clock_point back = {.path = 1,
                                     .local = {at + 40 * NS_PER_MS},
                                     .remote = {at + 40 * NS_PER_MS - 5000 - back_ns}};

    c->now = now;
    clock_on_point(c, now, &there);
    clock_on_point(c, now, &back);
}

/* Another path of the edge is known to take 5 us. The new path's packets all wait behind one queue, by about the same: while
 * packets of the edge wait, that makes the path no longer. If none wait, the path is longer. If each round trip waits in one
 * direction or the other, single directions are free. */
static void a_path_found_behind_a_queue_is_no_longer(void **state)
{
    static const struct {
        double late;
        bool knows;
        int64_t wait[2][2]; /* of every other round trip: there, back */
        double least, most;
    } cases[] = {
        {.late = 0.3, .wait = {{9000, 8900}, {8950, 9050}}, .least = 4900, .most = 5100},
        {.late = 0, .wait = {{9000, 8900}, {8950, 9050}}, .least = 13800, .most = 14200},
        {.late = 0, .knows = true, .wait = {{9000, 0}, {0, 9050}}, .least = 4900, .most = 5100},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct clock *c = member();
        struct clock_edge *e = &c->edges[0];
        const int64_t from = now.ns;
        e->config.path_count = 2;
        e->level_known = true;
        e->paths[0] =
            (struct path){.known = true, .m_ns = 5000, .window = now, .low = {INFINITY, INFINITY}};
        hear(c, 0);
        clock_edge_repath(c, now, 0, 1);
        for (int n = 0; !e->paths[1].known && now.ns - from < 4 * NS_PER_S; n++) {
            now.ns += 200 * NS_PER_MS;
            hear(c, 0);
            waiting_exchange(c, now.ns - 50 * NS_PER_MS, cases[i].wait[n % 2][0],
                             cases[i].wait[n % 2][1]);
            e->late[0] = cases[i].late;
            c->narrow = cases[i].knows;
            c->peers_in_gate = c->needed;
            edge_track(c, e, now);
        }
        assert_true(e->paths[1].known);
        print_message("the path is taken for %.0f ns\n", e->paths[1].m_ns);
        assert_true(e->paths[1].m_ns > cases[i].least && e->paths[1].m_ns < cases[i].most);
        clock_free(c);
    }
    (void)state;
}

/* Two clocks that were apart for long have rates that they don't know of each other. Then the packets with the least delay are
 * the first ones in one direction, and the last ones in the other. */
static void a_path_is_no_shorter_while_rates_differ(void **state)
{
    struct clock *c = member();
    struct clock_edge *e = &c->edges[0];
    const int64_t from = now.ns;

    hear(c, 0);
    clock_edge_repath(c, now, 0, 0);
    while (!e->paths[0].known && now.ns - from < 4 * NS_PER_S) {
        now.ns += 100 * NS_PER_MS;
        hear(c, 0);
        exchange(c, now.ns - 50 * NS_PER_MS, (now.ns - from) / 2000000); /* 0.5 ppm */
        edge_track(c, e, now);
    }
    assert_true(e->paths[0].known);
    print_message("a path of 5000 ns is taken for %.1f\n", e->paths[0].m_ns);
    assert_true(fabs(e->paths[0].m_ns - 5000) < 25);
    clock_free(c);
    (void)state;
}

/* The peer's rate changed by 2 ppm while a path was found. Nothing waits. In one direction the first packets have the least
 * delay, in the other the last ones. Together they are less than the path takes. If that were taken for the path, all others
 * would seem to stand in a queue. */
static void a_path_is_no_shorter_while_a_rate_changes(void **state)
{
    struct clock *c = member();
    struct clock_edge *e = &c->edges[0];
    const int64_t from = now.ns;

    hear(c, 0);
    clock_edge_repath(c, now, 0, 0);
    while (!e->paths[0].known && now.ns - from < 4 * NS_PER_S) {
        now.ns += 100 * NS_PER_MS;
        hear(c, 0);
        e->peer_rate.since = now;
        c->narrow = true; /* this member knows the time */
        c->peers_in_gate = c->needed;
        exchange(c, now.ns - 50 * NS_PER_MS, (now.ns - from) / 500000 - 1200); /* 2 ppm */
        edge_track(c, e, now);
    }
    assert_true(e->paths[0].known);
    print_message("a path of 5000 ns is taken for %.1f\n", e->paths[0].m_ns);
    assert_true(fabs(e->paths[0].m_ns - 5000) < 100);
    clock_free(c);
    (void)state;
}

/* A peer's clock steps by 60 us while a path is new. Packets there from before the step, and packets back from after it, give a
 * path that takes less than nothing. Behind a path that is too short a queue could explain either side. */
static void a_path_takes_no_less_than_nothing(void **state)
{
    struct clock *c = member();
    struct clock_edge *e = &c->edges[0];
    const int64_t from = now.ns;

    hear(c, 0);
    clock_edge_repath(c, now, 0, 0);
    while (now.ns - from < 6 * NS_PER_S) {
        now.ns += 100 * NS_PER_MS;
        hear(c, 0);
        const int64_t at = now.ns - 50 * NS_PER_MS, since = now.ns - from;
        const struct clock_point there = {.forward = true,
                                          .local = {at},
                                          .remote = {at + 5000 - (since <= NS_PER_S ? 60000 : 0)}};
        const struct clock_point back = {
            .local = {at + 40 * NS_PER_MS},
            .remote = {at + 40 * NS_PER_MS - 5000 - (since < NS_PER_S ? 60000 : 0)}};
        c->now = now;
        clock_on_point(c, now, &there);
        clock_on_point(c, now, &back);
        edge_track(c, e, now);
        assert_true(!e->paths[0].known || e->paths[0].m_ns > 4000);
    }
    assert_true(e->paths[0].known);
    clock_free(c);
    (void)state;
}

/* The same with a density that has a narrow middle and long tails, whose single steps are far too long. */
static void a_wide_density_makes_no_path_shorter_than_nothing(void **state)
{
    struct clock *c = member();
    struct clock_edge *e = &c->edges[0];

    noise_found(&c->noise, 40000);
    for (int i = 0; i < NOISE_ZERO; i++) {
        c->noise.score[i] = -1e-4;
    }
    c->noise.info = 1e-9;
    e->paths[0] = (struct path){.known = true, .m_ns = 9000, .info = c->noise.info};
    e->level_known = true;
    hear(c, 0);
    exchange(c, now.ns - 50 * NS_PER_MS, 0);
    edge_track(c, e, now);
    print_message("9000 ns, then %.0f\n", e->paths[0].m_ns);
    assert_true(e->paths[0].known && e->paths[0].m_ns < 9000);
    assert_true(e->paths[0].m_ns >= -3 * c->config.stamp_noise_ns);
    clock_free(c);
    (void)state;
}

/* The first line through stamps may have a rate that is far off. It can't give a delay below zero. */
static void a_fit_tells_no_delay_below_nothing(void **state)
{
    struct clock *c = member();
    struct clock_edge *e = &c->edges[0];

    c->phase = CLOCK_ACQUIRE;
    hear(c, 0);
    e->point_at = now;
    for (int round = 0; round < 5 && c->phase == CLOCK_ACQUIRE; round++) {
        c->now = now;
        e->solved = (struct solved){.valid = true,
                                    .local = now,
                                    .remote = now,
                                    .m_ns = {-50000},
                                    .m_known = {true},
                                    .sigma_ns = 10,
                                    .noise_ns = 10};
        acquire_round(c, now);
    }
    assert_int_equal(c->phase, CLOCK_TRACK);
    assert_false(e->paths[0].known);
    clock_free(c);
    (void)state;
}

/* Two clocks with the same rate meet behind full queues. Two seconds of packets that waited up to 5 ms show less about a rate
 * than a crystal's specification. If members took each other's errors for rates, they would carry the fleet's rate to the end of
 * a map's range. */
static void full_queues_tell_no_rate(void **state)
{
    double worst = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct clock *c = member();
        struct prng p;
        prng_init(&p, seed);
        c->phase = CLOCK_ACQUIRE;
        for (int tick = 0; tick < 60 && c->phase == CLOCK_ACQUIRE; tick++) {
            now.ns += 50 * NS_PER_MS;
            c->now = now;
            hear(c, 0);
            const int64_t at = now.ns - 40 * NS_PER_MS;
            const struct clock_point there = {
                .forward = true, .local = {at}, .remote = {at + (int64_t)(5e6 * prng_uniform(&p))}};
            const struct clock_point back = {.local = {at + (int64_t)(5e6 * prng_uniform(&p))},
                                             .remote = {at}};
            clock_on_point(c, now, &there);
            clock_on_point(c, now, &back);
            acquire_round(c, now);
            worst = fmax(worst, fabs(c->map.y));
        }
        clock_free(c);
    }
    print_message("a rate of 0 is taken for up to %.1f ppm\n", worst * 1e6);
    assert_true(worst < 150e-6);
    (void)state;
}

static void run_at(struct clock *c, double y, int64_t for_ns)
{
    c->phase = CLOCK_TRACK;
    c->map.y = y;
    c->ever_tracked = true;
    for (const int64_t until = now.ns + for_ns; now.ns < until;) {
        now.ns += CLOCK_TICK_NS;
        c->now = now;
        bound_tick(c, now);
    }
}

/* A clock's usual rate is one that its map held. A rate of a second isn't, and neither is one that was found wrong. */
static void a_rate_is_usual_that_held_and_was_not_wrong(void **state)
{
    struct clock *c = member();

    run_at(c, 20e-6, 20 * NS_PER_S);
    clock_on_fault(c, now, CLOCK_FAULT_SUSPEND);
    assert_true(c->usual_y == 20e-6);
    run_at(c, -300e-6, NS_PER_S);
    clock_acquire_again(c);
    assert_true(c->usual_y == 20e-6);

    run_at(c, 20e-6, 20 * NS_PER_S);
    clock_on_fault(c, now, CLOCK_FAULT_GUARD); /* another clock of the host shows another rate */
    assert_true(c->usual_y == 0);

    run_at(c, 20e-6, 20 * NS_PER_S);
    for (int steps = 0; steps < 3; steps++) { /* three in a row: the rate is real */
        c->step_ns = 1e5;
        now.ns += NS_PER_S;
        c->now = now;
        disturbance_take_step(c, now);
    }
    assert_int_equal(c->phase, CLOCK_ACQUIRE);
    assert_true(c->usual_y == 0);
    clock_free(c);
    (void)state;
}

/* A peer that searches its time again may do so because its clock broke: its earlier rate bounds nothing any more. */
static void who_looks_for_its_time_has_no_known_rate(void **state)
{
    struct clock *c = member();
    const struct drift *drift = &c->edges[0].drift;

    for (int tick = 0; tick < 100; tick++) {
        now.ns += CLOCK_TICK_NS;
        hear(c, 0);
        exchange(c, now.ns - 45 * NS_PER_MS, 0);
        bound_tick(c, now);
    }
    assert_true(drift->high - drift->low < 10e-6);
    const struct clock_published lost = word(CLOCK_ACQUIRE, 1000000, 0, 8000);
    clock_on_peer(c, now, 0, &lost);
    assert_true(drift->high - drift->low > 1000e-6);
    clock_free(c);
    (void)state;
}

/* A neighbour that is back is 8 us away. The first packets in both directions show that, and it stays known while both move
 * towards each other: no mean over seconds keeps the old place. */
static void who_is_back_is_where_its_packets_tell(void **state)
{
    struct clock *c = member();
    struct clock_edge *e = &c->edges[0];

    c->narrow = true;
    e->paths[0] = (struct path){.known = true, .m_ns = 5000, .info = c->noise.info};
    e->level_known = true;
    hear(c, 0);
    exchange(c, now.ns - 50 * NS_PER_MS, 0);
    consensus_count(c);
    edge_track(c, e, now);
    assert_true(e->in_gate && fabs(e->level_ns) < 50);

    now.ns += 60 * NS_PER_S;
    hear(c, 0);
    exchange(c, now.ns - 50 * NS_PER_MS, 8000);
    consensus_count(c);
    assert_true(e->returned && !e->level_known);
    edge_track(c, e, now);
    print_message("8000 ns away, taken for %.1f\n", e->level_ns);
    assert_true(e->in_gate && fabs(e->level_ns - 8000) < 1);

    now.ns += CLOCK_TICK_NS;
    hear(c, -3000); /* it came nearer */
    edge_move(c, e, -2000);
    assert_true(fabs(e->level_ns - 3000) < 1 && fabs(e->expected_ns - 3000) < 1);
    clock_free(c);
    (void)state;
}

/* A peer's clock ran fast by more than rates may change, and is right again. Its earlier stamps contradict the new ones: the edge
 * begins anew, and soon has a bound that holds. Contradicting stamps give no bound. */
static void an_edge_that_contradicts_itself_begins_anew(void **state)
{
    struct clock *c = member();
    const struct clock_edge *e = &c->edges[0];
    double ahead = 0;
    int wrong = 0, crossed = 0;

    for (int t = 0; t < 100; t++) {
        now.ns += 100 * NS_PER_MS;
        ahead += t < 30 ? 1200 : 0; /* 12 ppm */
        hear(c, 0);
        c->now = now;
        for (int forward = 0; forward < 2; forward++) {
            const int64_t way = forward ? 300 : -300;
            const struct clock_point p = {
                .forward = forward, .local = now, .remote = {now.ns + (int64_t)ahead + way}};
            clock_on_point(c, now, &p);
        }
        bound_edges(c, now);
        crossed += !e->proven;
        wrong += t > 32 && e->bounded && !(e->lower_ns <= ahead && ahead <= e->upper_ns);
    }
    print_message("%d times contradictory, %d times wrong\n", crossed, wrong);
    assert_true(crossed > 0 && crossed < 30);
    assert_int_equal(wrong, 0);
    assert_true(e->bounded);
    clock_free(c);
    (void)state;
}

/* The peer's clock steps by a millisecond. One of two edges to it has packets all the time, and contradicts itself. The other's
 * stamps are from before the step: they prove nothing then, for neither edge. */
static void all_edges_to_a_clock_that_broke_begin_anew(void **state)
{
    static const struct clock_edge_config more = {
        .peer = 1, .local_nic = {1}, .peer_nic = {2}, .path_count = 1};
    struct clock *c = member();
    const struct clock_edge *e = c->edges;
    bool anew = false;

    assert_int_equal(clock_edge_add(c, now, &more), 1);
    for (int t = 0; t < 80; t++) {
        const int64_t ahead = t < 60 ? 0 : NS_PER_MS;
        now.ns += 100 * NS_PER_MS;
        hear(c, 0);
        c->now = now;
        for (int k = 0; k < (t < 60 ? 4 : 2); k++) {
            const bool forward = k % 2 != 0;
            const struct clock_point p = {.edge = k / 2,
                                          .forward = forward,
                                          .local = now,
                                          .remote = {now.ns + ahead + (forward ? 300 : -300)}};
            clock_on_point(c, now, &p);
        }
        bound_edges(c, now);
        anew = anew || (t >= 60 && !e[0].proven);
        for (int i = 0; i < 2 && anew; i++) {
            assert_true(!e[i].proven ||
                        (e[i].map_lower_ns <= (double)ahead && (double)ahead <= e[i].map_upper_ns));
        }
    }
    assert_true(anew && e[0].proven);
    clock_free(c);
    (void)state;
}

struct broken {
    int64_t step,
        waits[2];    /* of the peer's clock, ns; of the second edge's packets, back and there */
    int from, until; /* ticks of 100 ms: begin of the second edge, end of the first one */
};

/* Counts how often an edge's proved interval doesn't contain the truth, from 200 ms after the step on. */
static int times_wrong(const struct broken *b)
{
    static const struct clock_edge_config more = {
        .peer = 1, .local_nic = {1}, .peer_nic = {2}, .path_count = 1};
    struct clock *c = member();
    const struct clock_edge *e = c->edges;
    int wrong = 0;

    assert_int_equal(clock_edge_add(c, now, &more), 1);
    for (int t = 0; t < 110; t++) {
        const int64_t ahead = t < 65 ? 0 : b->step;
        now.ns += 100 * NS_PER_MS;
        hear(c, 0);
        c->now = now;
        for (int k = 0; k < 4; k++) {
            const bool forward = k % 2 != 0;
            const int64_t wait = k < 2 ? 300 : b->waits[forward];
            const struct clock_point p = {.edge = k / 2,
                                          .forward = forward,
                                          .local = now,
                                          .remote = {now.ns + ahead + (forward ? wait : -wait)}};
            if (k < 2 ? t <= b->until : t >= b->from) {
                clock_on_point(c, now, &p);
            }
        }
        bound_edges(c, now);
        for (int i = 0; i < 2 && t > 66; i++) {
            wrong += e[i].proven &&
                     !(e[i].map_lower_ns <= (double)ahead && (double)ahead <= e[i].map_upper_ns);
        }
    }
    clock_free(c);
    return wrong;
}

/* The peer's clock steps, and one edge to it shows that. The other's packets wait for as long as the step: its stamps from before
 * and after contradict nothing, and look like a rate. It uses only the later stamps. */
static void a_step_is_no_rate_on_another_edge(void **state)
{
    int wrong = 0;

    for (int64_t step = -2000000; step <= 2000000; step += 250000) {
        for (int64_t there = 300; step != 0 && there < 1500000; there *= 16) {
            for (int64_t back = 300; back < 1500000; back *= 4) {
                for (int from = 37; from < 65; from += 14) {
                    const struct broken b = {step, {back, there}, from, from < 45 ? 70 : 1000};
                    wrong += times_wrong(&b);
                }
            }
        }
    }
    assert_int_equal(wrong + times_wrong(&(struct broken){-1250000, {1230000, 300}, 51, 1000}), 0);
    (void)state;
}

/* The stamps of one edge contradict each other. With two edges the other one can't show a bound alone, and the last shown bound
 * ages as the own clock may drift. It may be that clock that broke: soon the bound is void. With four edges the other three still
 * show it. */
static void half_of_the_edges_void_a_bound_that_ages(void **state)
{
    for (int edges = 2; edges <= 4; edges += 2) {
        struct clock *c = member();
        int64_t ahead = 0;
        int crossed = 0, voided = 0;

        for (uint32_t peer = 2; (int)peer <= edges; peer++) {
            const struct clock_edge_config edge = {
                .peer = peer, .peer_nic = {peer}, .path_count = 1};
            assert_int_equal(clock_edge_add(c, now, &edge), (int)peer - 1);
        }
        for (int t = 0; t < 100; t++) {
            now.ns += CLOCK_TICK_NS;
            ahead += t < 60 ? 0 : CLOCK_TICK_NS / 10000; /* 100 ppm */
            for (int i = 0; i < edges; i++) {
                struct clock_published h = word(CLOCK_TRACK, (uint32_t)t + 1, 0, 16000);
                h.settled = h.tight = true;
                h.anchor.member = UINT32_MAX;
                clock_on_peer(c, now, i, &h);
                for (int forward = 0; forward < 2; forward++) {
                    const int64_t way = i == 0 ? 300 : 20000;
                    const struct clock_point p = {
                        .edge = i,
                        .forward = forward,
                        .local = now,
                        .remote = {now.ns + (i == 0 ? ahead : 0) + (forward ? way : -way)}};
                    clock_on_point(c, now, &p);
                }
            }
            consensus_count(c);
            c->status = t >= 60 ? CLOCK_SYNCED : CLOCK_HOLDOVER;
            bound_tick(c, now);
            crossed += crossed == 0 && c->edges[0].crossed_at.ns == now.ns ? t : 0;
            voided += voided == 0 && c->disrupted ? t : 0;
        }
        print_message("of %d edges one crossed at %d, void at %d\n", edges, crossed, voided);
        assert_true(crossed >= 60);
        assert_true(edges == 2 ? voided > 0 && voided - crossed < 10 : voided == 0);
        clock_free(c);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_edge_is_as_wide_as_its_wider_side),
        cmocka_unit_test(a_published_rate_that_stamps_exclude_bounds_nothing),
        cmocka_unit_test(what_one_edge_proves_holds_for_all_to_that_peer),
        cmocka_unit_test(what_an_edge_proves_is_of_the_newest_header),
        cmocka_unit_test(a_peer_that_boots_is_heard_at_once),
        cmocka_unit_test(restlessness_is_of_two_words_in_track),
        cmocka_unit_test(a_narrower_claim_is_believed_later),
        cmocka_unit_test(few_packets_make_a_sound_score),
        cmocka_unit_test(an_edge_vouches_up_to_its_bound),
        cmocka_unit_test(a_disrupted_clock_promises_nothing),
        cmocka_unit_test(an_edge_that_contradicts_itself_begins_anew),
        cmocka_unit_test(all_edges_to_a_clock_that_broke_begin_anew),
        cmocka_unit_test(a_step_is_no_rate_on_another_edge),
        cmocka_unit_test(half_of_the_edges_void_a_bound_that_ages),
        cmocka_unit_test(a_path_found_behind_a_queue_is_no_longer),
        cmocka_unit_test(a_path_is_no_shorter_while_rates_differ),
        cmocka_unit_test(a_path_is_no_shorter_while_a_rate_changes),
        cmocka_unit_test(a_path_takes_no_less_than_nothing),
        cmocka_unit_test(a_wide_density_makes_no_path_shorter_than_nothing),
        cmocka_unit_test(a_fit_tells_no_delay_below_nothing),
        cmocka_unit_test(who_looks_for_its_time_has_no_known_rate),
        cmocka_unit_test(full_queues_tell_no_rate),
        cmocka_unit_test(a_rate_is_usual_that_held_and_was_not_wrong),
        cmocka_unit_test(who_is_back_is_where_its_packets_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
