/* All edges show that a member is off: its clock stepped, or its map was wrong, or a separated part of the fleet is back, or the
 * member is lost. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock/clock_private.h"

#define PEERS 12

static struct nic_time now;

/* A member with so many edges that has tracked for ten minutes. */
static struct clock *member_of(uint32_t edges, bool guarded)
{
    const struct clock_config config = {
        .stamps = CLOCK_STAMPS_SOFTWARE, .edge_capacity = edges, .guard_is_own = guarded};
    struct clock *c = clock_new(&config, (struct nic_time){0});

    assert_non_null(c);
    for (uint32_t peer = 1; peer <= edges; peer++) {
        const struct clock_edge_config edge = {
            .peer = peer, .local_nic = {0}, .peer_nic = {peer}, .path_count = 1};
        struct clock_edge *e = &c->edges[clock_edge_add(c, (struct nic_time){0}, &edge)];
        e->heard = e->level_known = true;
        e->peer.phase = CLOCK_TRACK;
    }
    now.ns = 600 * NS_PER_S;
    c->phase = CLOCK_TRACK;
    c->settled = true;
    return c;
}

static struct clock *member(bool guarded)
{
    return member_of(PEERS, guarded);
}

/* A tick in which packets of the edges from `first` on show that the peers are `off` ahead. Queues make all packets `late`. */
static bool tick_from(struct clock *c, int first, double off, double late)
{
    now.ns += CLOCK_TICK_NS;
    c->now = now;
    if (c->config.guard_is_own) {
        clock_on_guard(c, now, 500, 60e-6);
    }
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        e->heard_at = e->point_at = now;
        e->has_raw = true;
        e->raw_low[1] = (i < first ? 0 : off) + late + 10 * i;
        e->raw_low[0] = (i < first ? 0 : -off) + late + 10 * i;
    }
    consensus_count(c);
    if (!disturbance_find_step(c)) {
        return false;
    }
    disturbance_take_step(c, now);
    return true;
}

static bool tick(struct clock *c, double off, double late)
{
    return tick_from(c, 0, off, late);
}

static int verdicts(struct clock *c)
{
    struct clock_action action;
    int count = 0;

    while (clock_next_action(c, &action)) {
        count += action.kind == CLOCK_ACTION_STEP;
    }
    return count;
}

static bool calm(struct clock *c, double seconds, double late)
{
    bool found = false;

    for (double s = 0; s < seconds; s += 0.05) {
        found |= tick(c, 0, late);
    }
    return found;
}

static void a_clock_steps_out_of_a_calm(void **state)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        struct clock *c = member(false);
        assert_false(calm(c, 2, 0));
        assert_false(tick(c, sign * 1e6, 0));
        assert_true(tick(c, sign * 1e6, 0));
        assert_int_equal(verdicts(c), 1);
        assert_true(c->disrupted);
        clock_free(c);
    }
}

/* Some edges have their first packets after the step a tick or two before the others. */
static void a_step_seen_by_some_first_is_a_step(void **state)
{
    struct clock *c = member(false);

    calm(c, 2, 0);
    now.ns += CLOCK_TICK_NS;
    c->now = now;
    for (int i = 0; i < PEERS; i++) {
        c->edges[i].heard_at = c->edges[i].point_at = now;
        c->edges[i].raw_low[1] = i % 3 ? 1e6 : 0;
        c->edges[i].raw_low[0] = i % 3 ? -1e6 : 0;
    }
    assert_false(disturbance_find_step(c));
    assert_false(tick(c, 1e6, 0));
    assert_true(tick(c, 1e6, 0));
    assert_int_equal(verdicts(c), 1);
    clock_free(c);
}

static void queues_are_no_step(void **state)
{
    struct clock *c = member(false);

    calm(c, 2, 0);
    assert_false(calm(c, 2, 1e6));
    assert_false(calm(c, 2, -1e6)); /* they stood while delays were learned */
    clock_free(c);
}

/* All edges are to so many peers. Edges to one peer are between the same two clocks, of which either may have stepped. */
static void one_peer_proves_no_step(void **state)
{
    for (uint32_t peers = 1; peers <= 2; peers++) {
        struct clock *c = member(false);
        for (uint32_t i = 0; i < PEERS; i++) {
            c->edges[i].config.peer = 1 + i % peers;
            c->edges[i].leader = (int)(i % peers);
        }
        c->own_utc_known = true;
        calm(c, 2, 0);
        tick(c, 1e5, 0);
        assert_true(tick(c, 1e5, 0)); /* it goes there */
        assert_int_equal(verdicts(c), peers == 2);
        assert_true(c->disrupted);
        assert_false(c->own_utc_known); /* its clock may be the one */
        clock_free(c);
    }
}

/* Eleven of twelve edges are to a host whose clock stepped. The only other peer shows nothing. */
static void edges_to_one_peer_prove_no_step_beside_another(void **state)
{
    struct clock *c = member(false);

    (void)state;
    for (uint32_t i = 0; i < PEERS; i++) {
        c->edges[i].config.peer = i == 0 ? 2 : 1;
        c->edges[i].leader = i == 0 ? 0 : 1;
    }
    calm(c, 2, 0);
    assert_false(tick_from(c, 1, 1e5, 0));
    assert_true(tick_from(c, 1, 1e5, 0)); /* it goes there */
    assert_int_equal(verdicts(c), 0);
    clock_free(c);
}

enum { HONEST = 3, FALSE_EDGES = 12 }; /* peers, and edges to one liar beside them */

static struct clock *beside_a_liar(void)
{
    struct clock *c = member_of(HONEST + FALSE_EDGES, false);

    for (int i = HONEST; i < c->capacity; i++) {
        c->edges[i].config.peer = HONEST + 1;
        c->edges[i].leader = HONEST;
    }
    return c;
}

/* A liar has as many edges as hosts choose each other's NICs. It is one peer all the same. An honest peer that is off by just
 * more than a step's limit makes it no second one: a queue may be the reason, or this member is off by so much. */
static void edges_to_one_liar_move_no_map(void **state)
{
    for (int side = -1; side <= 1; side++) {
        struct clock *c = beside_a_liar();
        const double shift = side * 2 * disturbance_step_limit(c);
        assert_false(calm(c, 2, 0));
        assert_int_equal(c->liars_max, 1);
        for (int i = 0; i < 3; i++) {
            c->edges[0].level_ns = -shift; /* packets and level differ by the shift */
            assert_false(tick_from(c, HONEST, 1e5, 0));
        }
        clock_free(c);
    }
}

static double hush_of(const struct clock_edge *e)
{
    return e->hush_s;
}

/* It holds back all its packets. That makes no island of the others. It claims that its edges scatter. Its levels stand out all
 * the same, and are parked. */
static void edges_to_one_liar_are_one_peer(void **state)
{
    struct clock *c = beside_a_liar();

    (void)state;
    calm(c, 1, 0);
    for (int i = 0; i < c->capacity; i++) {
        c->edges[i].hush_s = i >= HONEST ? 2 : 0;
        c->edges[i].level_ns = i >= HONEST ? 20000 : 10;
        c->edges[i].in_gate = true;
        c->edges[i].peer.scale_ns = i >= HONEST ? 6500 : 10;
    }
    assert_int_equal(consensus_silent(c, hush_of), 0);
    consensus_gather(c, now);
    assert_true(c->scale_ns == 10);
    consensus_levels(c, now, 0.05);
    for (int i = 0; i < c->capacity; i++) {
        assert_true(c->edges[i].parked == (i >= HONEST));
    }
    c->edges[0].hush_s = 2; /* an honest peer, too */
    assert_int_equal(consensus_silent(c, hush_of), FALSE_EDGES + 1);
    clock_free(c);
}

/* With few edges a member can't prove who stepped. That it hears none but one that may lie is no reason to give up its place. */
static void two_edges_to_one_liar_part_nobody(void **state)
{
    for (int peers = 1; peers <= 2; peers++) {
        struct clock *c = beside_a_liar();
        calm(c, 2, 0);
        for (int i = 0; i < c->capacity; i++) {
            c->edges[i].heard = i == HONEST || i == HONEST + (peers == 1 ? 1 : -1);
        }
        for (int i = 0; i < 6; i++) {
            assert_false(tick(c, 1e5, 0));
        }
        assert_int_equal(disturbance_apart(c), peers == 2);
        clock_free(c);
    }
}

/* Their levels show for two seconds that this member is off. The map is where it was, and the liar's edges move it no more. */
static void levels_of_one_liar_move_no_map(void **state)
{
    for (int honest = 0; honest <= HONEST; honest += HONEST) { /* so many show no error */
        struct clock *c = beside_a_liar();
        calm(c, 2, 0);
        c->narrow = true;
        c->sigma_e_ns = 10;
        for (int i = 0; i < c->capacity; i++) {
            c->edges[i].level_ns = c->edges[i].expected_ns = i < honest ? 0 : 1e5;
        }
        const int64_t before = c->map.x_ns;
        for (int i = 0; i < 40; i++) {
            consensus_levels(c, now, 0.05);
        }
        assert_int_equal(c->map.x_ns - before, honest > 0 ? 0 : 100000);
        for (int i = 0; i < c->capacity; i++) {
            assert_int_equal(c->edges[i].parked, honest > 0 && i >= honest);
        }
        clock_free(c);
    }
}

/* Packets of some edges show a step so long before the others' that the levels of these edges follow it. After the step each edge
 * has the level from before, whether it followed or not. */
static void an_edge_that_followed_a_step_gets_its_level_back(void **state)
{
    struct clock *c = member(false);

    calm(c, 2, 0);
    for (int i = 0; i < PEERS; i++) {
        c->edges[i].level_ns = c->edges[i].expected_ns = 40;
    }
    for (int i = 0; i < 3; i++) {
        c->edges[i].expected_ns = 9e9 + 40;
        c->edges[i].level_ns = 0.2e9;
    }
    c->edges[3].expected_ns = 1e4 + 40; /* another cause moved this one */
    tick(c, 9e9, 0);
    assert_true(tick(c, 9e9, 0));
    for (int i = 0; i < PEERS; i++) {
        assert_true(fabs(c->edges[i].level_ns - 40) < 200); /* their packets differ by 110 ns */
        assert_true(c->edges[i].expected_ns == c->edges[i].level_ns);
    }
    clock_free(c);
}

/* Its rate is wrong, for it starves: it is off by a little first. The map is put right, the clock not accused, nor
 * when that happens again and again. */
static void a_map_that_drifts_off_is_no_step(void **state)
{
    static const double rates[] = {5e3, 50e3, 300e3}; /* ns/s */

    for (int i = 0; i < 3; i++) {
        struct clock *c = member(false);
        const double limit = disturbance_step_limit(c);
        int corrected = 0;
        calm(c, 5, 0);
        for (double off = 0, s = 0; s < 60; s += 0.05) {
            off += fmin(limit / 6, rates[i] * 0.05);
            if (tick(c, off, 0)) {
                corrected++;
                off = 0;
            }
        }
        assert_true(corrected > 0);
        assert_int_equal(verdicts(c), 0);
        clock_free(c);
    }
}

/* It is hours off after it was off a little, which no drift does. The filter's uncertainty must stay a valid variance. */
static void a_drift_of_hours_leaves_a_variance(void **state)
{
    struct clock *c = member(false);
    const double limit = disturbance_step_limit(c);
    double p00, p01, p11, q2;
    bool found = false;

    calm(c, 5, 0);
    for (int i = 0; i < 10; i++) {
        found |= tick(c, 0.7 * limit, 0);
    }
    assert_false(found);
    assert_true(c->uneasy);
    tick(c, 3e13, 0);
    assert_true(tick(c, 3e13, 0));
    for (int i = 0; i < 100; i++) {
        bank_predict(&c->bank, 0.05, true);
        bank_update(&c->bank, 0, 621, 0.088, true); /* this aborts if it isn't one */
    }
    bank_variance(&c->bank, &p00, &p01, &p11, &q2);
    assert_true(p00 > 0 && p11 > 0 && p00 * p11 > p01 * p01);
    clock_free(c);
}

/* The second clock stayed equal to it all the time. */
static void a_clock_that_is_vouched_for_did_not_step(void **state)
{
    struct clock *c = member(true);

    calm(c, 5, 0);
    assert_false(tick(c, 1e6, 0));
    assert_true(tick(c, 1e6, 0));
    assert_int_equal(verdicts(c), 0);
    assert_true(c->disrupted);
    c->config.guard_is_own = false; /* now they are not compared */
    assert_false(calm(c, 5, 0));
    assert_false(tick(c, 1e6, 0));
    assert_true(tick(c, 1e6, 0));
    assert_int_equal(verdicts(c), 1);
    clock_free(c);
}

/* If the map is always off by some microseconds, an error of that size is no step of the clock. */
static void what_scatters_is_no_step(void **state)
{
    struct clock *c = member(false);
    const double limit = disturbance_step_limit(c);
    int corrected = 0;

    calm(c, 2, 0);
    for (int i = 0; i < 400; i++) {
        assert_false(tick(c, (i % 2 ? 0.45 : -0.45) * limit, 0));
    }
    for (int i = 0; i < 400; i++) {
        corrected += tick(c, i % 40 < 2 ? 1.5 * limit : 0.45 * limit, 0);
    }
    assert_true(corrected > 0);
    assert_int_equal(verdicts(c), 0);
    tick(c, 20 * limit, 0);
    assert_true(tick(c, 20 * limit, 0));
    assert_int_equal(verdicts(c), 1);
    clock_free(c);
}

/* A part of the fleet is back. Returns after how many ticks the member learns its time again; 0: it stays. */
static int ticks_to_merge(struct clock *c)
{
    for (int tick = 1; tick <= 30; tick++) {
        now.ns += CLOCK_TICK_NS;
        c->now = now;
        disturbance_merge(c, now);
        if (c->phase != CLOCK_TRACK) {
            return tick;
        }
    }
    return 0;
}

/* So many edges are back from a silence, and all of these are off by the same amount. */
static struct clock *parted(int back, double off)
{
    struct clock *c = member(false);

    c->now = now;
    for (int i = 0; i < PEERS; i++) {
        struct clock_edge *e = &c->edges[i];
        e->heard_at = e->point_at = e->live_at = now;
        e->has_raw = true;
        if (i < back) {
            e->returned = true;
            e->returned_at = now;
            e->raw_ns = off + 10 * i;
            e->out_since_s = 1;
        }
    }
    consensus_count(c);
    c->regained = back > 0;
    return c;
}

/* A third of the neighbours is enough if that is more than could lie: after half a second of ticks the member moves there. */
static void parts_meet_where_a_third_is_back(void **state)
{
    static const struct {
        int back;
        double off;
        bool merges;
    } cases[] = {{12, 1e6, true}, {4, 1e6, true},  {4, -1e6, true}, {4, 1e11, true},
                 {3, 1e6, false}, {0, 1e6, false}, {12, 100, false}};

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct clock *c = parted(cases[i].back, cases[i].off);
        assert_int_equal(ticks_to_merge(c), cases[i].merges ? 10 : 0);
        assert_true(c->disrupted == cases[i].merges);
        clock_free(c);
    }
}

enum parted_how {
    NOT_REGAINED,
    NEVER_GONE,
    WITNESSES,
    NO_PACKETS,
    HELD_UP,
    UNSURE,
    JUST_OUT,
    NOT_TRACKING,
    SCATTERED,
    HOWS
};

/* Edges that don't show where another part is don't move the member there. */
static void what_tells_of_no_other_part_changes_nothing(void **state)
{
    for (enum parted_how how = 0; how < HOWS; how++) {
        struct clock *c = parted(PEERS, 1e6);
        c->regained = how != NOT_REGAINED;
        for (int i = 3; i < PEERS; i++) { /* three are too few */
            struct clock_edge *e = &c->edges[i];
            e->returned = how != NEVER_GONE;
            e->config.witness = how == WITNESSES;
            e->has_raw = how != NO_PACKETS;
            e->silent = how == HELD_UP;
            e->unsure = how == UNSURE;
            e->out_since_s = how == JUST_OUT ? 0.2 : 1;
            e->peer.phase = how == NOT_TRACKING ? CLOCK_ACQUIRE : CLOCK_TRACK;
            e->raw_ns *= how == SCATTERED ? i : 1;
        }
        assert_int_equal(ticks_to_merge(c), 0);
        assert_int_equal(c->merge_ticks, 0);
        clock_free(c);
    }
}

/* Of twelve that are back `count` are off by `off`, with up to `scatter`. The rest are off by another amount. */
static struct clock *agreeing(int count, double off, double scatter)
{
    struct clock *c = parted(PEERS, off);

    for (int i = 0; i < PEERS; i++) {
        const double part =
            (double)i / (PEERS - 1) - 0.5; /* all are compared with the middle one */
        c->edges[i].raw_ns = i < count ? off + 2 * scatter * part : off * (i + 1);
    }
    return c;
}

/* Four fifths must show the same, to a tenth of it or to two microseconds. */
static void parts_meet_by_most_of_them(void **state)
{
    static const struct {
        int count;
        double off, scatter;
        bool merges;
    } cases[] = {{12, 1e6, 0, true},   {10, 1e6, 0, true},    {9, 1e6, 0, false},
                 {12, 1e6, 8e4, true}, {12, 1e6, 4e5, false}, {12, 8e3, 1600, true},
                 {12, 8e3, 7e3, false}};

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct clock *c = agreeing(cases[i].count, cases[i].off, cases[i].scatter);
        assert_int_equal(ticks_to_merge(c), cases[i].merges ? 10 : 0);
        clock_free(c);
    }
}

/* As many as may lie move no member, even if they are a third of those that track. */
static void as_many_as_may_lie_are_no_part(void **state)
{
    struct clock *c = parted(3, 1e6);

    for (int i = 9; i < PEERS; i++) {
        c->edges[i].peer.phase = CLOCK_ACQUIRE;
    }
    consensus_count(c);
    c->regained = true;
    assert_int_equal(c->liars_max, 3);
    assert_int_equal(c->track_peers, 9);
    assert_int_equal(ticks_to_merge(c), 0);
    clock_free(c);
}

/* The member beside a liar, all of whose edges are heard now. Those from `first` on are back. */
static struct clock *beside_a_liar_that_is_back(int first)
{
    struct clock *c = beside_a_liar();

    c->now = now;
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        e->heard_at = e->point_at = e->live_at = e->returned_at = now;
        e->has_raw = true;
        e->returned = i >= first;
        e->out_since_s = 1;
    }
    return c;
}

/* All edges to a liar are back: they are to one peer. An honest peer's edge makes it two peers. */
static void edges_to_one_liar_are_no_part(void **state)
{
    for (int first = HONEST; first >= HONEST - 1; first--) {
        struct clock *c = beside_a_liar_that_is_back(first);
        for (int i = 0; i < c->capacity; i++) {
            c->edges[i].raw_ns = i >= first ? 1e6 + 10 * i : 0;
        }
        consensus_count(c);
        assert_true(c->regained == (first < HONEST));
        c->regained = true;
        assert_int_equal(ticks_to_merge(c), first < HONEST ? 10 : 0);
        clock_free(c);
    }
}

/* Two honest peers are back, too, each with another time. Only the liar's edges agree. */
static void edges_to_one_liar_that_agree_are_no_part(void **state)
{
    for (int agreeing = 0; agreeing <= 1; agreeing++) { /* honest peers that agree with the liar */
        struct clock *c = beside_a_liar_that_is_back(1);
        for (int i = 0; i < c->capacity; i++) {
            c->edges[i].raw_ns = i >= HONEST - agreeing ? 1e6 + 10 * i : -1e6 * i;
        }
        consensus_count(c);
        assert_true(c->regained);
        assert_int_equal(ticks_to_merge(c), agreeing > 0 ? 10 : 0);
        clock_free(c);
    }
}

/* Far more than a queue or a step: the member doesn't wait to see if it lasts. */
static void a_part_of_another_time_is_met_at_once(void **state)
{
    struct clock *c = parted(PEERS, 1e6);

    for (int i = 0; i < PEERS; i++) {
        c->edges[i].out_since_s = 0;
        c->edges[i].level_known = true;
        c->edges[i].expected_ns = 2 * ELSEWHERE_NS;
    }
    assert_int_equal(ticks_to_merge(c), 10);
    clock_free(c);
}

/* It has to last: after a tick without it the count begins again. */
static void parts_that_agree_for_a_moment_do_not_meet(void **state)
{
    struct clock *c = parted(PEERS, 1e6);

    for (int i = 0; i < 9; i++) {
        disturbance_merge(c, now);
    }
    c->regained = false;
    disturbance_merge(c, now);
    c->regained = true;
    assert_int_equal(ticks_to_merge(c), 10);
    clock_free(c);
}

/* Seconds until a member with so many of its edges in gate learns its time again; 0: it never does. */
static double seconds_to_lost(struct clock *c, int in_gate)
{
    for (int i = 0; i < PEERS; i++) {
        c->edges[i].in_gate = i < in_gate;
    }
    c->in_gate = c->peers_in_gate = in_gate;
    for (int tick = 1; tick <= 140; tick++) {
        now.ns += CLOCK_TICK_NS;
        c->now = now;
        for (int i = 0; i < PEERS; i++) {
            c->edges[i].heard_at = c->edges[i].point_at = now;
        }
        disturbance_check_lost(c, 0.05);
        if (c->phase != CLOCK_TRACK) {
            return tick * 0.05;
        }
    }
    return 0;
}

/* Most of its edges have nothing in gate for two seconds, while its neighbours track. */
static void who_is_lost_learns_anew(void **state)
{
    struct clock *c = parted(0, 0);

    assert_true(fabs(seconds_to_lost(c, 5) - 2) < 0.11);
    clock_set_phase(c, CLOCK_TRACK);
    assert_true(fabs(seconds_to_lost(c, 5) - 5) < 0.11); /* it gets time to come into step */
    clock_free(c);

    c = parted(0, 0);
    assert_true(seconds_to_lost(c, 6) == 0); /* half is enough */
    clock_free(c);
}

/* Edges that have no vote, or whose peers don't track, are no reason to stay. */
static void who_is_with_nobody_is_lost(void **state)
{
    for (int witnesses = 0; witnesses < 2; witnesses++) {
        struct clock *c = parted(0, 0);
        for (int i = 0; i < 3; i++) {
            c->edges[i].config.witness = witnesses == 1;
            c->edges[i].peer.phase = witnesses == 1 ? CLOCK_TRACK : CLOCK_COLD;
        }
        c->edge_count -= witnesses == 1 ? 3 : 0;
        consensus_count(c);
        assert_true(seconds_to_lost(c, 6) > 1.9); /* three of nine */
        clock_free(c);
    }
}

/* Too few of its edges agree, and they scatter: six times as much as the neighbours' do, or far above the stamps' noise. */
static void who_scatters_more_than_others_is_lost(void **state)
{
    struct clock *c = parted(0, 0);
    const double least = 60 + 3 * noise_sigma_ns(&c->noise);
    const struct {
        double scale, own;
        int short_of;
        bool lost;
    } cases[] = {{1000, 5900, 1, false},
                 {1000, 6100, 1, true},
                 {1000, 6100, 0, false},
                 {1, least - 5, 1, false},
                 {1, least + 5, 1, true}};

    clock_free(c);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        c = parted(0, 0);
        c->scale_ns = cases[i].scale;
        c->scale_own_ns = cases[i].own;
        const int enough = c->needed;
        c->needed = 7; /* six are in gate, which is half */
        assert_true(enough <= 7);
        c->needed -= 1 - cases[i].short_of;
        assert_int_equal(seconds_to_lost(c, 6) > 1.9, cases[i].lost);
        clock_free(c);
    }
}

/* Its own errors have widened its estimate of noise: that begins anew. */
static void who_is_lost_forgets_its_noise(void **state)
{
    struct clock *c = parted(0, 0);
    const double fresh = noise_sigma_ns(&c->noise);

    noise_found(&c->noise, 40 * fresh);
    assert_true(noise_sigma_ns(&c->noise) > 5 * fresh);
    assert_true(seconds_to_lost(c, 0) > 1.9);
    assert_true(fabs(noise_sigma_ns(&c->noise) - fresh) < 0.3 * fresh);
    clock_free(c);
}

/* The neighbours may be lost themselves. And a member that is held up, or is learning paths, can have nothing in gate. */
static void who_is_not_alone_is_not_lost(void **state)
{
    struct clock *c = parted(0, 0);

    for (int i = 0; i < 4; i++) {
        c->edges[i].peer.phase = CLOCK_ACQUIRE;
    }
    consensus_count(c);
    assert_true(seconds_to_lost(c, 0) == 0);
    clock_free(c);

    for (int held_up = 0; held_up < 2; held_up++) {
        c = parted(0, 0);
        for (int i = 0; i < PEERS; i++) {
            struct clock_edge *e = &c->edges[i];
            e->silent = held_up == 0;
            e->unsure = held_up == 1;
            e->level_known = true;
            e->out_since_s = 1.5;
        }
        assert_true(seconds_to_lost(c, 0) == 0);
        for (int i = 0; i < PEERS; i++) {
            c->edges[i].out_since_s = 0.5; /* recently: no excuse for what is missing */
        }
        assert_true(seconds_to_lost(c, 0) > 1.9);
        clock_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_steps_out_of_a_calm),
        cmocka_unit_test(a_step_seen_by_some_first_is_a_step),
        cmocka_unit_test(queues_are_no_step),
        cmocka_unit_test(one_peer_proves_no_step),
        cmocka_unit_test(edges_to_one_peer_prove_no_step_beside_another),
        cmocka_unit_test(edges_to_one_liar_move_no_map),
        cmocka_unit_test(edges_to_one_liar_are_one_peer),
        cmocka_unit_test(two_edges_to_one_liar_part_nobody),
        cmocka_unit_test(levels_of_one_liar_move_no_map),
        cmocka_unit_test(an_edge_that_followed_a_step_gets_its_level_back),
        cmocka_unit_test(a_map_that_drifts_off_is_no_step),
        cmocka_unit_test(a_drift_of_hours_leaves_a_variance),
        cmocka_unit_test(a_clock_that_is_vouched_for_did_not_step),
        cmocka_unit_test(what_scatters_is_no_step),
        cmocka_unit_test(parts_meet_where_a_third_is_back),
        cmocka_unit_test(what_tells_of_no_other_part_changes_nothing),
        cmocka_unit_test(parts_meet_by_most_of_them),
        cmocka_unit_test(as_many_as_may_lie_are_no_part),
        cmocka_unit_test(edges_to_one_liar_are_no_part),
        cmocka_unit_test(edges_to_one_liar_that_agree_are_no_part),
        cmocka_unit_test(a_part_of_another_time_is_met_at_once),
        cmocka_unit_test(parts_that_agree_for_a_moment_do_not_meet),
        cmocka_unit_test(who_is_lost_learns_anew),
        cmocka_unit_test(who_is_with_nobody_is_lost),
        cmocka_unit_test(who_scatters_more_than_others_is_lost),
        cmocka_unit_test(who_is_lost_forgets_its_noise),
        cmocka_unit_test(who_is_not_alone_is_not_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
