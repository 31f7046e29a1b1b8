/* A member's timeline: it follows the smallest founder until it is settled. Afterwards only many change it, for long, or older
 * ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock/clock_private.h"

#define PEERS 12
#define OWN   (500ULL << 32 | 40) /* our label, founded by member 40 */
#define OTHER (900ULL << 32 | 7)  /* another one, by member 7 */

static struct clock *c;
static struct nic_time now;

static int begin(void **state)
{
    const struct clock_config config = {
        .member = 40, .edge_capacity = PEERS, .edge_limit_ns = 8000, .hops = 4};

    now.ns = 1000 * NS_PER_S;
    c = clock_new(&config, now);
    for (uint32_t peer = 1; peer <= PEERS; peer++) {
        const struct clock_edge_config edge = {
            .peer = 100 + peer, .peer_nic = {peer}, .path_count = 1};
        assert_int_equal(clock_edge_add(c, now, &edge), (int)peer - 1);
    }
    c->phase = CLOCK_TRACK;
    c->timeline = OWN;
    c->founder = 40;
    c->born = now;
    return 0;
}

static int end(void **state)
{
    clock_free(c);
    return 0;
}

/* So many ticks with the first `others` of `live` peers on the other timeline, which has that age. */
static void ticks(int count, int live, int others, double age_s)
{
    for (int t = 0; t < count; t++) {
        now.ns += CLOCK_TICK_NS;
        c->now = now;
        for (int i = 0; i < PEERS; i++) {
            struct clock_edge *e = &c->edges[i];
            e->heard = i < live;
            e->heard_at = e->point_at = now;
            e->in_gate = true;
            e->peer.phase = CLOCK_TRACK;
            e->peer.settled = true;
            e->peer.timeline = i < others ? OTHER : OWN;
            e->peer.founder = i < others ? 7 : 40;
            e->peer.timeline_age_s =
                (uint32_t)(i < others ? age_s : (double)(now.ns - c->born.ns) * 1e-9);
        }
        c->track_peers = live;
        timeline_tick(c, now);
    }
}

static void settle(void)
{
    ticks(1, PEERS, 0, 0);
    assert_true(c->settled);
}

/* With half of the neighbours on its label a member settles. A quarter keeps it settled. A member that holds stays settled with
 * none. */
static void half_settle_and_a_quarter_keep(void **state)
{
    ticks(1, 5, 0, 0);
    assert_false(c->settled);
    ticks(1, 6, 0, 0);
    assert_true(c->settled);
    assert_int_equal(c->settled_since.ns, now.ns);
    ticks(1, 3, 0, 0);
    assert_true(c->settled);
    ticks(1, 2, 0, 0);
    assert_false(c->settled);
    settle();
    c->phase = CLOCK_HOLD;
    ticks(1, 0, 0, 0);
    assert_true(c->settled);
    c->phase = (enum clock_phase)(CLOCK_TRACK - 1);
    ticks(1, PEERS, 0, 0);
    assert_false(c->settled);
    ticks(1, PEERS, 0, 0); /* a member that doesn't track doesn't settle */
    assert_false(c->settled);
}

enum waits { AWAITED, NO_SECOND_CLOCK, WAS_DISRUPTED, LONG_AGO, THREE_PEERS, ONE_TRACKS, WAITS };

/* Its only peers learn their time anew, and its own clock is known to have run on. So it keeps its time and its label: they join
 * it. Else it learns its time anew, too. */
static void who_is_awaited_keeps_its_time(void **state)
{
    for (enum waits how = 0; how < WAITS; how++) {
        settle();
        c->config.guard_is_own = how != NO_SECOND_CLOCK;
        c->phase = CLOCK_HOLD;
        c->disrupted = how == WAS_DISRUPTED;
        c->disrupted_until.ns = now.ns + NS_PER_S;
        for (int i = 0; i < PEERS; i++) {
            struct clock_edge *e = &c->edges[i];
            e->used = i < (how == THREE_PEERS ? 3 : 2);
            e->peer.phase = how == ONE_TRACKS && i == 1 ? CLOCK_HOLD : CLOCK_ACQUIRE;
        }
        c->edge_count = how == THREE_PEERS ? 3 : 2;
        now.ns += CLOCK_TICK_NS;
        c->hold_since.ns = now.ns - (how == LONG_AGO ? 70 : 9) * NS_PER_S;
        for (int i = 0; i < PEERS; i++) {
            c->edges[i].heard_at = c->edges[i].point_at = now;
        }
        clock_on_guard(c, now, 500, 60e-6);
        clock_tick(c, now);
        assert_int_equal(c->phase, how == AWAITED ? CLOCK_TRACK : CLOCK_ACQUIRE);
        assert_int_equal(c->settled, how == AWAITED);
        end(state);
        begin(state);
    }
}

/* Neither a witness nor who is out of gate counts for settling. */
static void who_does_not_vouch_does_not_count(void **state)
{
    for (int how = 0; how < 2; how++) {
        for (int i = 0; i < PEERS; i++) {
            c->edges[i].config.witness = how == 0;
        }
        now.ns += CLOCK_TICK_NS;
        ticks(1, how == 0 ? PEERS : 0, 0, 0);
        assert_false(c->settled);
    }
}

static void before_it_is_settled_it_follows_the_smallest_founder(void **state)
{
    ticks(1, 4, 1, 0); /* one of four, founded by member 7 */
    assert_int_equal(c->timeline, OTHER);
    assert_int_equal(c->founder, 7);
    assert_int_equal(c->born.ns, now.ns);
    struct clock_action a;
    bool told = false;
    while (clock_next_action(c, &a)) {
        told = told || (a.kind == CLOCK_ACTION_TIMELINE && a.timeline == OTHER);
    }
    assert_true(told);
}

/* A settled member changes at once to an older timeline of half of its neighbours. */
static void half_that_are_older_win(void **state)
{
    static const struct {
        int others;
        double older_s;
        bool moves;
    } cases[] = {{6, 10, true}, {5, 10, false}, {6, 1, false}, {6, 3, true}, {11, -5, false}};

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        end(NULL);
        begin(NULL);
        now.ns += 100 * NS_PER_S;
        settle();
        const double own_s = (double)(now.ns - c->born.ns) * 1e-9;
        ticks(1, PEERS, cases[i].others, floor(own_s) + cases[i].older_s);
        assert_int_equal(c->timeline == OTHER, cases[i].moves);
        if (cases[i].moves) { /* its age comes with it */
            assert_in_range(now.ns - c->born.ns, 100 * NS_PER_S, 111 * NS_PER_S);
        }
    }
}

/* To a younger one it changes for two thirds, for three seconds without a break. */
static void two_thirds_for_three_seconds_win(void **state)
{
    settle();
    ticks(100, PEERS, 7, 0);
    assert_int_equal(c->timeline, OWN);
    assert_true(c->settled);
    const int64_t begun = now.ns;
    int n = 0;
    for (; c->timeline == OWN && n < 200; n++) {
        ticks(1, PEERS, 8, 0);
    }
    assert_in_range(now.ns - begun, 3 * NS_PER_S, 3 * NS_PER_S + 2 * CLOCK_TICK_NS);

    end(NULL);
    begin(NULL);
    settle();
    const int almost = (int)(2900 * NS_PER_MS / CLOCK_TICK_NS);
    ticks(almost, PEERS, 8, 0);
    ticks(1, PEERS, 7, 0); /* a break */
    ticks(almost, PEERS, 8, 0);
    assert_int_equal(c->timeline, OWN);
    ticks(1, PEERS, 0, 0); /* and another tick: no peer is on another one */
    ticks(almost, PEERS, 8, 0);
    assert_int_equal(c->timeline, OWN);
}

/* A name contains its founder, and no two foundings have one name. */
static void a_founded_timeline_is_named_after_its_founder(void **state)
{
    timeline_found(c, now);
    const uint64_t first = c->timeline;
    assert_int_equal(c->founder, 40);
    assert_int_equal(CLOCK_TIMELINE_FOUNDER(first), 40);
    assert_int_equal(c->born.ns, now.ns);
    now.ns += 1;
    timeline_found(c, now);
    assert_int_not_equal(c->timeline, first);
    assert_int_equal(CLOCK_TIMELINE_FOUNDER(c->timeline), 40);
    assert_int_not_equal(c->timeline, CLOCK_TIMELINE_NONE);
}

/* Before any peer is settled, the smallest founder is followed; of one founder's two the smaller label. A settled peer comes
 * before others, and a witness doesn't count. */
static void the_smallest_of_several_is_followed(void **state)
{
    static const struct {
        uint64_t timeline[3];
        uint32_t founder[3];
        bool settled[3], witness[3];
        uint64_t chosen;
    } cases[] = {
        {{900, 800, 700}, {9, 5, 7}, {false}, {false}, 800},
        {{900, 800, 700}, {9, 9, 9}, {false}, {false}, 700},
        {{900, 800, 700}, {41, 42, 43}, {false}, {false}, OWN}, /* the own one is smaller */
        {{900, OWN - 1, OWN + 1}, {41, 40, 40}, {false}, {false}, OWN - 1},
        {{900, 800, 700}, {9, 5, 50}, {false, false, true}, {false}, 700},
        {{900, 800, 700}, {9, 5, 7}, {false}, {false, true, false}, 700},
        {{CLOCK_TIMELINE_NONE, CLOCK_TIMELINE_NONE, 700}, {1, 2, 7}, {false}, {false}, 700},
    };

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        end(NULL);
        begin(NULL);
        now.ns += CLOCK_TICK_NS;
        c->now = now;
        for (int k = 0; k < 3; k++) {
            struct clock_edge *e = &c->edges[k];
            e->heard = true;
            e->heard_at = e->point_at = now;
            e->peer.phase = CLOCK_TRACK;
            e->peer.timeline = cases[i].timeline[k];
            e->peer.founder = cases[i].founder[k];
            e->peer.settled = cases[i].settled[k];
            e->config.witness = cases[i].witness[k];
        }
        timeline_tick(c, now);
        if (c->timeline != cases[i].chosen) {
            fail_msg("case %u: timeline %llu", (unsigned)i, (unsigned long long)c->timeline);
        }
    }
}

/* The age of a timeline is the middle of its members' values: one that lies moves it little. */
static void an_age_is_the_middle_one(void **state)
{
    now.ns += 100 * NS_PER_S;
    settle();
    ticks(1, PEERS, 8, 0); /* all of them hear each other */
    for (int i = 0; i < 8; i++) {
        c->edges[i].peer.timeline_age_s = i == 0 ? UINT32_MAX : 500 + (uint32_t)i;
    }
    now.ns += CLOCK_TICK_NS;
    c->now = now;
    for (int i = 0; i < PEERS; i++) {
        c->edges[i].heard_at = c->edges[i].point_at = now;
    }
    timeline_tick(c, now);
    assert_int_equal(c->timeline, OTHER);
    assert_int_equal((now.ns - c->born.ns) / NS_PER_S, 504);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        T(half_settle_and_a_quarter_keep),
        T(who_is_awaited_keeps_its_time),
        T(who_does_not_vouch_does_not_count),
        T(before_it_is_settled_it_follows_the_smallest_founder),
        T(half_that_are_older_win),
        T(two_thirds_for_three_seconds_win),
        T(a_founded_timeline_is_named_after_its_founder),
        T(the_smallest_of_several_is_followed),
        T(an_age_is_the_middle_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
