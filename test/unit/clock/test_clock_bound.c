/* The bounds that a member states for its error: the hard bound and the peers on which it rests, the wait of a warm start, the
 * smallest step that is marked, the bound of UTC. The numbers of this file follow from that promise and from its physics. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock/clock_private.h"

#define PEERS    16
#define WIDTH_NS 8000
#define HOPS     4
#define DELAY_NS 1000
#define FAR_NS   1200000 /* four such hops are more than any bound that is shown as SYNCED */
#define TIMELINE 77

static struct nic_time now;

static struct clock *member(int64_t edge_limit_ns)
{
    const struct clock_config config = {
        .edge_capacity = PEERS, .edge_limit_ns = edge_limit_ns, .hops = HOPS, .stamp_error_ns = 1};
    now.ns = 100 * NS_PER_S;
    struct clock *c = clock_new(&config, now);

    assert_non_null(c);
    for (uint32_t peer = 1; peer <= PEERS; peer++) {
        const struct clock_edge_config edge = {
            .peer = peer, .local_nic = {0}, .peer_nic = {peer}, .path_count = 1};
        assert_int_equal(clock_edge_add(c, now, &edge), (int)peer - 1);
    }
    return c;
}

static struct clock *tracking_member(void)
{
    struct clock *c = member(WIDTH_NS);

    c->phase = CLOCK_TRACK;
    return c;
}

/* The header of all peers: the same time as this member's. */
static struct clock_published header(bool tight, bool core)
{
    static uint32_t seq;

    return (struct clock_published){.phase = CLOCK_TRACK,
                                    .settled = true,
                                    .tight = tight,
                                    .core = core,
                                    .timeline = TIMELINE,
                                    .map_seq = ++seq,
                                    .scale_ns = 5,
                                    .h_ns = WIDTH_NS,
                                    .anchor.member = UINT32_MAX};
}

/* A packet in each direction, which takes `delay`. */
static void exchange(struct clock *c, int edge, int64_t delay)
{
    const struct clock_point there = {
        .edge = edge, .forward = true, .local = {now.ns - 2 * delay}, .remote = {now.ns - delay}};
    const struct clock_point back = {.edge = edge, .local = now, .remote = {now.ns - delay}};

    clock_on_point(c, now, &there);
    clock_on_point(c, now, &back);
}

/* A tick of the bound alone: the first `near` peers are well within the limit, the others far outside. */
static void tick(struct clock *c, int near, bool tight, bool core)
{
    now.ns += CLOCK_TICK_NS;
    for (int i = 0; i < PEERS; i++) {
        const struct clock_published h = header(tight, core);
        clock_on_peer(c, now, i, &h);
        exchange(c, i, i < near ? DELAY_NS : FAR_NS);
    }
    consensus_count(c);
    bound_tick(c, now);
}

static double hard_ns(const struct clock *c)
{
    struct clock_terms t;

    clock_terms(c, &t);
    return t.h_ns;
}

/* Between the two ends of a fleet are H hops, each as wide as an edge may be: their bounds must meet. */
static void bounds_of_both_ends_of_the_fleet_meet(void **state)
{
    for (int guarded = 0; guarded < 2; guarded++) {
        struct clock *c = tracking_member();
        for (int i = 0; i < 60; i++) {
            if (guarded) {
                clock_on_guard(c, now, 500, 60e-6);
            }
            tick(c, PEERS, true, true);
        }
        assert_true(c->core);
        assert_true(2 * hard_ns(c) >= HOPS * WIDTH_NS);
        /* its rate isn't watched: 0.2 s at 60 ppm more, and no more than that */
        const double unwatched = guarded ? 0 : 12e3;
        assert_true(hard_ns(c) >= HOPS * WIDTH_NS / 2.0 + unwatched);
        assert_true(hard_ns(c) < HOPS * WIDTH_NS / 2.0 + unwatched + 500);
        clock_free(c);
    }
}

/* Too few of its edges are narrow: it depends on core members, over edges that count. */
static void a_leaf_adds_its_own_edges(void **state)
{
    struct clock *c = tracking_member();
    double farthest = 0;

    for (int i = 0; i < 20; i++) {
        tick(c, 4, true, true);
    }
    assert_false(c->tight);
    for (int i = 0; i < PEERS; i++) {
        farthest = fmax(farthest, c->edges[i].w_ns);
    }
    assert_true(farthest > 4 * WIDTH_NS);
    assert_true(hard_ns(c) >= HOPS * WIDTH_NS / 2.0 + farthest);
    clock_free(c);
}

/* Both ends' rates differ from the published ones by as much as allowed, in opposite directions, for a second: the truth stays
 * inside. */
static void an_edge_holds_while_rates_drift(void **state)
{
    struct clock *c = tracking_member();
    const double drifted = 2 * bound_growth_ns(c, 1); /* own and peer's, 2 ppm each */
    const struct clock_published h = header(true, true);

    for (int i = 0; i < 30; i++) { /* the rates until now are known */
        clock_on_peer(c, now, 0, &h);
        exchange(c, 0, DELAY_NS);
        now.ns += NS_PER_S / 2;
    }
    now.ns += NS_PER_S / 2;
    clock_on_peer(c, now, 0, &h);
    c->edges[0].point_at = now; /* later stamps are slower */
    bound_tick(c, now);
    assert_true(drifted > 3 * DELAY_NS);
    assert_true(c->edges[0].bounded);
    /* the peer is now ahead or behind by the drift; before it was by up to the delay */
    assert_true(c->edges[0].upper_ns >= drifted + DELAY_NS);
    assert_true(c->edges[0].lower_ns <= -drifted - DELAY_NS);
    assert_true(c->edges[0].w_ns < drifted + DELAY_NS + 1000);
    clock_free(c);
}

/* Its map has one rate and its stamps another, because the map is wrong: the bound follows the stamps, and holds. */
static void an_edge_holds_while_its_map_runs_wrong(void **state)
{
    struct clock *c = tracking_member();
    struct clock_published h = header(true, true);

    for (int i = 0; i < 30; i++) {
        clock_on_peer(c, now, 0, &h);
        exchange(c, 0, DELAY_NS);
        now.ns += NS_PER_S / 2;
    }
    h.map.r = now; /* from here on the map runs away by 33 us a second */
    h.map.y = 33e-6;
    h.map_seq++;
    now.ns += NS_PER_S;
    clock_on_peer(c, now, 0, &h);
    c->edges[0].point_at = now;
    bound_tick(c, now);
    assert_true(c->edges[0].bounded);
    assert_true(c->edges[0].lower_ns <= 33000 && c->edges[0].upper_ns >= 33000);
    assert_true(c->edges[0].upper_ns - c->edges[0].lower_ns < 100000);
    clock_free(c);
}

/* A peer woke, and its line jumped by a second. From then on it stands still. Some ports bring each of its maps several times. An
 * edge is wide for a moment, and not for as long as the jump was large. */
static void a_peer_that_jumped_is_narrow_again(void **state)
{
    struct clock *c = tracking_member();
    struct clock_published h = header(true, true);
    double wide = 0;

    for (int i = 0; i < 120; i++) {
        h.map.x_ns = i < 40 ? 0 : NS_PER_S;
        c->map.x_ns = h.map.x_ns; /* like all others, so that the stamps contradict nothing */
        h.map_seq++;
        for (int k = 0; k < 10; k++) {
            now.ns += CLOCK_TICK_NS / 10;
            clock_on_peer(c, now, 0, &h);
        }
        exchange(c, 0, DELAY_NS);
        bound_tick(c, now);
        wide = i == 60 ? c->edges[0].w_ns : wide;
    }
    print_message("%.0f ns a second after it, %.0f after four\n", wide, c->edges[0].w_ns);
    assert_true(c->edges[0].bounded && c->edges[0].w_ns < 3 * DELAY_NS);
    clock_free(c);
    (void)state;
}

/* Behind full queues its edges are wide, and so are its neighbours'. All stay core, with a bound that covers that, and become
 * narrow again when the queues are gone. */
static void a_bound_widens_and_narrows_again(void **state)
{
    struct clock *c = tracking_member();
    double wide = 0;

    for (int i = 0; i < 100; i++) {
        clock_on_guard(c, now, 500, 60e-6);
        tick(c, PEERS, true, true);
    }
    const double rest = hard_ns(c);
    assert_true(c->core && c->level == 0);
    for (int i = 0; i < 400; i++) {
        struct clock_published h = header(true, true);
        now.ns += CLOCK_TICK_NS;
        clock_on_guard(c, now, 500, 60e-6);
        h.h_ns = (uint32_t)bound_published_ns(c); /* the same as this member's */
        for (int k = 0; k < PEERS; k++) {
            clock_on_peer(c, now, k, &h);
            exchange(c, k, i < 200 ? 3 * WIDTH_NS : DELAY_NS);
            h.map_seq++;
        }
        consensus_count(c);
        bound_tick(c, now);
        assert_true(c->core);
        wide = fmax(wide, hard_ns(c));
    }
    assert_true(wide >= HOPS * 3 * WIDTH_NS - HOPS * WIDTH_NS / 2.0);
    assert_true(wide < HOPS * 5 * WIDTH_NS);
    assert_true(hard_ns(c) < rest + 500);
    clock_free(c);
}

/* Nine of sixteen peers, so that two tight members have one in common that doesn't lie. */
static void half_of_the_peers_make_nobody_tight(void **state)
{
    for (int near = 1; near <= PEERS; near++) {
        struct clock *c = tracking_member();
        bool tight = false;
        for (int i = 0; i < 100; i++) {
            tick(c, near, true, true);
            tight |= c->tight;
        }
        assert_int_equal(tight, near >= 9);
        assert_int_equal(c->core, near >= 9);
        clock_free(c);
    }
}

/* All claim to be tight in vain: a neighbour that isn't tight itself supports no other for long. */
static void claims_that_nobody_shares_are_withdrawn(void **state)
{
    struct clock *c = tracking_member();
    int claims = 0;

    for (int i = 0; i < 400; i++) {
        const bool was = c->tight;
        tick(c, PEERS, false, false);
        assert_false(c->core);
        claims += c->tight && !was;
    }
    assert_true(claims >= 2 && claims <= 8); /* withdrawn, and tried again */
    clock_free(c);
}

/* A member's neighbours get its claim within two ticks. A member is core if it was tight for longer than a claim takes through
 * the graph. */
static void core_waits_for_the_width_of_the_graph(void **state)
{
    struct clock *c = tracking_member();
    int ticks = 0;

    for (; !c->core && ticks < 100; ticks++) {
        tick(c, PEERS, true, true);
    }
    assert_true(ticks > 2 * HOPS && ticks < 4 * HOPS);
    tick(c, 8, true, true);            /* and only as long as it holds */
    for (int i = 0; i < 2 * 20; i++) { /* until the earlier packets are too old */
        tick(c, 8, true, true);
    }
    assert_false(c->core);
    clock_free(c);
}

/* ---- a warm start ---- */

static enum clock_status run(struct clock *c, double seconds, int talking)
{
    struct clock_report r;
    enum clock_status best = CLOCK_UNKNOWN;

    for (const int64_t end = now.ns + (int64_t)(seconds * 1e9); now.ns < end;) {
        now.ns += CLOCK_TICK_NS;
        for (int i = 0; i < talking; i++) {
            const struct clock_published h = header(true, true);
            clock_on_peer(c, now, i, &h);
            exchange(c, i, DELAY_NS);
        }
        clock_tick(c, now);
        clock_report(c, now, &r);
        best = r.status == CLOCK_SYNCED ? CLOCK_SYNCED : best;
    }
    return best;
}

/* No peer is heard any more: the last bound belongs to the line of that time. If the map changes afterwards, as behind full
 * queues, the line moves, and that proves nothing. */
static void a_bound_that_ages_has_what_its_line_was_moved(void **state)
{
    static const double moves[] = {50e3, -50e3};

    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        struct clock *c = tracking_member();
        for (int n = 0; n < 60; n++) {
            tick(c, PEERS, true, true);
        }
        const double before = hard_ns(c);
        c->phase = CLOCK_ACQUIRE;
        clock_move(c, now, moves[i], 0);
        now.ns += CLOCK_TICK_NS;
        consensus_count(c);
        bound_tick(c, now);
        assert_true(c->h_known && c->h_at.ns < now.ns);
        assert_true(bound_aged_ns(c, now) >= before + fabs(moves[i]));
        assert_true(bound_aged_ns(c, now) < before + fabs(moves[i]) + 1000);
        clock_move(c, now, -moves[i], 3e-6); /* back, but it has another rate now */
        now.ns += NS_PER_S;
        assert_true(bound_aged_ns(c, now) >= before + 3000);
        assert_true(bound_aged_ns(c, now) < before + 15000);
        clock_free(c);
    }
}

/* A new rate is only as sure as its stamps: two packets of 1 us in 3 s, and the changes that both clocks may make. A rate that
 * has held for 16 s is good to 2 ppm. */
static void a_bound_ages_faster_while_the_rate_is_young(void **state)
{
    for (int old = 0; old < 2; old++) {
        struct clock *c = member(WIDTH_NS);
        tick(c, PEERS, true, true);
        c->phase = CLOCK_TRACK; /* from now on its rate is one */
        for (int n = 0; n < (old ? 20 : 3) * (int)(NS_PER_S / CLOCK_TICK_NS); n++) {
            tick(c, PEERS, true, true);
        }
        const double before = hard_ns(c);
        now.ns += 10 * NS_PER_S;
        const double grown = bound_aged_ns(c, now) - before;
        print_message("%s: %.0f ns more in 10 s\n", old ? "held" : "young", grown);
        assert_true(old ? grown > 19e3 && grown < 21e3 : grown > 40e3 && grown < 60e3);
        clock_free(c);
    }
}

/* A member that begins with the saved state of another one, which knew each path. */
static struct clock *warm_member(void)
{
    struct clock *before = member(WIDTH_NS), *c = member(WIDTH_NS);
    struct clock_saved saved;

    before->phase = CLOCK_TRACK;
    before->settled = true;
    before->timeline = TIMELINE;
    before->h_known = true;
    before->h_ns = WIDTH_NS;
    before->h_at = now;
    for (int i = 0; i < PEERS; i++) {
        before->edges[i].level_known = true;
        before->edges[i].paths[0].known = true;
        before->edges[i].paths[0].m_ns = DELAY_NS;
    }
    clock_save(before, now, &saved);
    assert_int_equal(clock_restore(c, now, &saved), 0);
    clock_free(before);
    return c;
}

/* The state was right when it was saved. Three quarters of the neighbours must confirm first that it still is. */
static void who_starts_warm_is_synced_once_its_neighbours_agree(void **state)
{
    for (int talking = 11; talking <= 12; talking++) {
        struct clock *c = warm_member();
        assert_int_equal(run(c, 0.9, talking),
                         talking < 12 ? CLOCK_UNKNOWN /* never SYNCED */ : CLOCK_SYNCED);
        assert_int_equal(c->status, talking < 12 ? CLOCK_HOLDOVER : CLOCK_SYNCED);
        if (talking < 12) {
            assert_int_equal(run(c, 4, PEERS), CLOCK_SYNCED);
        }
        clock_free(c);
    }
}

/* Waits for the rests of three frames, as behind full trunks. None is so short that it counts as no wait. */
static double frames(struct prng *p)
{
    const double sum = 3700 * (prng_uniform(p) + prng_uniform(p) + prng_uniform(p));

    return sum > 1200 ? sum : 1200;
}

static void exchange_behind_frames(struct clock *c, struct prng *p, int edge)
{
    for (int forward = 0; forward < 2; forward++) {
        const int64_t at = now.ns - NS_PER_MS, takes = DELAY_NS + (int64_t)frames(p);
        const struct clock_point point = {.edge = edge,
                                          .forward = forward,
                                          .local = {at},
                                          .remote = {forward ? at + takes : at - takes}};
        clock_on_point(c, now, &point);
    }
}

/* No packet of any peer comes in time. They agree by their mean, and that is enough. */
static void who_starts_warm_behind_full_trunks_is_synced(void **state)
{
    struct clock *c = warm_member();
    struct prng p;

    prng_init(&p, 11);
    for (int n = 0; n < 300; n++) {
        now.ns += CLOCK_TICK_NS;
        for (int i = 0; i < PEERS; i++) {
            const struct clock_published h = header(true, true);
            clock_on_peer(c, now, i, &h);
            exchange_behind_frames(c, &p, i);
        }
        clock_tick(c, now);
    }
    assert_int_equal(c->status, CLOCK_SYNCED);
    clock_free(c);
}

/* ---- steps ---- */

/* If a clock jumps by more than its packets' noise explains, it is marked within two ticks: from ten microseconds on with
 * software stamps, from one with hardware stamps. */
static void a_small_step_is_a_step(void **state)
{
    static const struct {
        enum clock_stamps stamps;
        double noise_ns, step_ns;
    } cases[] = {{CLOCK_STAMPS_SOFTWARE, 300, 10e3}, {CLOCK_STAMPS_HARDWARE, 20, 1.2e3}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct clock *c = tracking_member();
        c->config.stamps = cases[i].stamps;
        noise_init(&c->noise, cases[i].noise_ns * sqrt(2),
                   cases[i].stamps == CLOCK_STAMPS_SOFTWARE);
        c->settled = true;
        for (int k = 0; k < PEERS; k++) {
            c->edges[k].heard = c->edges[k].level_known = true;
            c->edges[k].peer.phase = CLOCK_TRACK;
        }
        bool found = false;
        for (int t = 0; t < 202; t++) {
            const double off = t < 200 ? 0 : cases[i].step_ns;
            now.ns += CLOCK_TICK_NS;
            c->now = now;
            for (int k = 0; k < PEERS; k++) {
                struct clock_edge *e = &c->edges[k];
                e->heard_at = e->point_at = now;
                e->has_raw = true;
                e->raw_low[1] = off;
                e->raw_low[0] = -off;
            }
            consensus_count(c);
            found = disturbance_find_step(c);
            assert_true(!found || t == 201);
        }
        assert_true(found);
        clock_free(c);
    }
}

/* ---- UTC ---- */

/* The bound covers each of the named anchors, because any of them may be right. */
/* Sets an edge whose ends' F differ by up to `apart`. */
static void meet(struct clock *c, int edge, double apart)
{
    c->timeline = TIMELINE;
    c->edges[edge].bounded = true;
    c->edges[edge].w_ns = apart;
}

static struct clock_terms utc_now(struct clock *c)
{
    struct clock_terms t;

    anchor_tick(c, now);
    clock_terms(c, &t);
    assert_true(t.utc_known);
    return t;
}

/* A measurement keeps its age, and jumps of F don't move UTC. */
static void utc_is_as_old_as_its_measurement(void **state)
{
    struct clock *c = tracking_member();
    const int64_t utc_ns = clock_map_apply(&c->map, now).ns + 5000;

    clock_on_utc(c, now, utc_ns, 100);
    assert_true(utc_now(c).utc_minus_ns == 5000);
    assert_true(utc_now(c).utc_bound_ns < 101);
    now.ns += 10 * NS_PER_S;
    assert_true(utc_now(c).utc_bound_ns >= 100 + 10 * 200e3);
    clock_jump(c, 3 * NS_PER_MS);
    assert_true(utc_now(c).utc_minus_ns == 5000 - 3 * NS_PER_MS);
    line_restart(c, now);
    const double met = utc_now(c).utc_bound_ns;
    clock_jump(c, 3 * NS_PER_MS); /* readers still use the old line */
    assert_true(utc_now(c).utc_bound_ns >= met + 3 * NS_PER_MS - 1);
    clock_on_fault(c, now, CLOCK_FAULT_STEP); /* the clock of that measurement is gone */
    anchor_tick(c, now);
    assert_false(c->utc_known);
    clock_free(c);
}

/* A peer's UTC counts once the edge has been bounded for a while since. */
static void wait_for_words(struct clock *c)
{
    now.ns += 300 * NS_PER_MS;
    anchor_tick(c, now);
}

/* A peer's UTC is in terms of its own F: it is as good as the edge to it, and worth nothing if F may be anywhere. */
static void utc_of_a_peer_is_as_sure_as_the_edge(void **state)
{
    struct clock *c = tracking_member();
    struct clock_published h = header(true, true);

    h.anchor = (struct clock_anchor){.member = 1, .bound_ns = 100};
    c->edges[0].config.anchor = true;
    clock_on_peer(c, now, 0, &h);
    wait_for_words(c);
    assert_false(c->utc_known);
    meet(c, 0, 30000);
    c->timeline = TIMELINE + 1;
    clock_on_peer(c, now, 0, &h);
    wait_for_words(c);
    assert_false(c->utc_known);
    c->timeline = TIMELINE;
    clock_on_peer(c, now, 0, &h);
    anchor_tick(c, now);
    assert_false(c->utc_known); /* if its clock stepped, the edge doesn't show it yet */
    wait_for_words(c);
    assert_true(utc_now(c).utc_bound_ns >= 30100);
    c->edges[0].bounded = false; /* silent: its earlier UTC stays */
    assert_true(utc_now(c).utc_bound_ns >= 30100);
    clock_disrupt(c, span_ns(NS_PER_S));
    anchor_tick(c, now);
    assert_false(c->utc_known);
    clock_free(c);
}

/* A peer's UTC belongs to a time of the own clock: later movements of the own F don't change it. Behind full queues F moves by
 * hundreds of microseconds. */
static void utc_of_a_peer_stays_while_the_map_moves(void **state)
{
    struct clock *c = tracking_member();
    struct clock_published h = header(true, true);

    h.anchor = (struct clock_anchor){.member = 1, .bound_ns = 100, .utc_minus_ns = 7000};
    c->edges[0].config.anchor = true;
    meet(c, 0, 30000);
    clock_on_peer(c, now, 0, &h);
    wait_for_words(c);
    assert_true(utc_now(c).utc_minus_ns == 7000);
    clock_jump(c, 300000);
    assert_true(utc_now(c).utc_minus_ns == 7000 - 300000);
    clock_free(c);
    (void)state;
}

/* A peer's clock stepped, and its UTC is in terms of a time that only it has: it is not taken, and its earlier UTC stays. */
static void utc_of_a_peer_that_stepped_waits(void **state)
{
    struct clock *c = tracking_member();
    struct clock_published h = header(true, true);

    h.anchor = (struct clock_anchor){.member = 1, .bound_ns = 100};
    c->edges[0].config.anchor = true;
    meet(c, 0, 30000);
    clock_on_peer(c, now, 0, &h);
    wait_for_words(c);
    assert_true(utc_now(c).utc_minus_ns == 0);
    h.anchor.utc_minus_ns =
        4 * NS_PER_MS; /* the step: it shows at once, 0.1 s later stamps cross */
    clock_on_peer(c, now, 0, &h);
    now.ns += 100 * NS_PER_MS;
    anchor_tick(c, now);
    c->edges[0].bounded = false;
    wait_for_words(c);
    c->edges[0].bounded = true;
    wait_for_words(c);
    assert_true(utc_now(c).utc_minus_ns == 0);
    h.phase = CLOCK_ACQUIRE; /* its map is no time of the fleet */
    clock_on_peer(c, now, 0, &h);
    wait_for_words(c);
    assert_true(utc_now(c).utc_minus_ns == 0);
    h.phase = CLOCK_TRACK;
    clock_on_peer(c, now, 0, &h);
    wait_for_words(c);
    assert_true(utc_now(c).utc_minus_ns == 4 * NS_PER_MS);
    clock_free(c);
    (void)state;
}

static void utc_is_no_surer_than_its_anchors_agree(void **state)
{
    static const int64_t said[] = {-200000, 1000, 300000};
    struct clock *c = tracking_member();
    struct clock_terms t;

    for (uint32_t i = 0; i < 3; i++) {
        struct clock_published h = header(true, true);
        h.anchor = (struct clock_anchor){
            .member = i + 1, .bound_ns = 100, .utc_minus_ns = said[i], .age_ms = 0};
        c->edges[i].config.anchor = true;
        meet(c, (int)i, 0);
        clock_on_peer(c, now, (int)i, &h);
    }
    wait_for_words(c);
    clock_terms(c, &t);
    assert_true(t.utc_known);
    for (int i = 0; i < 3; i++) {
        assert_true(fabs((double)(t.utc_minus_ns - said[i])) + 100 <= t.utc_bound_ns);
    }
    assert_true(fabs(c->steer - (double)t.utc_minus_ns * 1e-9 / 100) < 1e-15); /* over 100 s */
    now.ns += 10 * NS_PER_S; /* fleet time runs free: UTC is less sure every second */
    const double before = t.utc_bound_ns;
    anchor_tick(c, now);
    clock_terms(c, &t);
    assert_true(t.utc_bound_ns >= before + 10 * 100e3);
    clock_free(c);
}

/* UTC as `sane` peers know it, while `liars` forge a day: the same hosts all the time, under other names. */
static bool voted(int sane, int liars, struct clock_terms *ret)
{
    struct clock *c = tracking_member();

    for (uint32_t i = 0; (int)i < sane + liars; i++) {
        struct clock_published h = header(true, true);
        const bool lies = (int)i < liars;
        meet(c, (int)i, 0);
        for (uint32_t name = 0; name < 8; name++) {
            h.map_seq++;
            h.anchor = (struct clock_anchor){.member = 500 + name,
                                             .bound_ns = lies ? 144000 : 1000000,
                                             .utc_minus_ns = lies ? 86400 * NS_PER_S : 70000 * i};
            clock_on_peer(c, now, (int)i, &h);
        }
    }
    consensus_count(c);
    wait_for_words(c);
    clock_terms(c, ret);
    clock_free(c);
    return ret->utc_known;
}

/* The truth is 0 +- 1 ms for all that don't lie. */
static void few_hosts_move_no_utc(void **state)
{
    struct clock_terms t;

    assert_false(voted(4, 0, &t));
    assert_false(voted(0, 4, &t));
    for (int liars = 0; liars <= 4; liars++) {
        for (int sane = 5 - liars > 0 ? 5 - liars : 1; sane + liars <= PEERS; sane++) {
            assert_true(voted(sane, liars, &t));
            assert_true(fabs((double)t.utc_minus_ns) <= t.utc_bound_ns);
            if (sane > liars + 4) {
                assert_true(t.utc_bound_ns < 2.5e6);
            }
        }
    }
}

/* ---- a steered clock ---- */

/* ptp4l changes the NIC's rate a little: fleet time runs on unchanged. If the change is large or unknown: DISRUPTED. */
static void steering_is_followed(void **state)
{
    static const double ppbs[] = {120, -400, 501, -5000, 0};

    for (size_t i = 0; i < sizeof(ppbs) / sizeof(ppbs[0]); i++) {
        struct clock *c = tracking_member();
        const bool followed = i < 2;
        const struct clock_map before = c->map;
        clock_on_steered(c, now, ppbs[i]);
        assert_int_equal(c->disrupted, !followed);
        assert_int_equal(c->fault_seen, !followed);
        if (followed) {
            /* a second later the clock shows ppbs[i] ns more than without the change */
            const struct nic_time free = {now.ns + NS_PER_S},
                                  steered = {free.ns + (int64_t)ppbs[i]};
            assert_true(fabs(clock_map_difference(&c->map, steered, &before, free)) < 1);
            assert_true(fabs(clock_map_difference(&c->map, now, &before, now)) < 1e-6);
        }
        clock_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_of_both_ends_of_the_fleet_meet),
        cmocka_unit_test(a_leaf_adds_its_own_edges),
        cmocka_unit_test(an_edge_holds_while_rates_drift),
        cmocka_unit_test(an_edge_holds_while_its_map_runs_wrong),
        cmocka_unit_test(a_peer_that_jumped_is_narrow_again),
        cmocka_unit_test(a_bound_widens_and_narrows_again),
        cmocka_unit_test(half_of_the_peers_make_nobody_tight),
        cmocka_unit_test(claims_that_nobody_shares_are_withdrawn),
        cmocka_unit_test(core_waits_for_the_width_of_the_graph),
        cmocka_unit_test(a_bound_that_ages_has_what_its_line_was_moved),
        cmocka_unit_test(a_bound_ages_faster_while_the_rate_is_young),
        cmocka_unit_test(who_starts_warm_is_synced_once_its_neighbours_agree),
        cmocka_unit_test(who_starts_warm_behind_full_trunks_is_synced),
        cmocka_unit_test(a_small_step_is_a_step),
        cmocka_unit_test(utc_is_as_old_as_its_measurement),
        cmocka_unit_test(utc_of_a_peer_is_as_sure_as_the_edge),
        cmocka_unit_test(utc_of_a_peer_stays_while_the_map_moves),
        cmocka_unit_test(utc_of_a_peer_that_stepped_waits),
        cmocka_unit_test(utc_is_no_surer_than_its_anchors_agree),
        cmocka_unit_test(few_hosts_move_no_utc),
        cmocka_unit_test(steering_is_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
