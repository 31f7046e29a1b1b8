/* Whose fault it is when all edges say that a member is off: its clock stepped, or its map was wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock/clock_private.h"

#define PEERS 12

static struct nic_time now;

/* Has tracked for ten minutes. */
static struct clock *member(bool guarded)
{
    const struct clock_config config = {
        .stamps = CLOCK_STAMPS_SOFTWARE, .edge_capacity = PEERS, .guard_is_own = guarded};
    struct clock *c = clock_new(&config, (struct nic_time){0});

    assert_non_null(c);
    for (uint32_t peer = 1; peer <= PEERS; peer++) {
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

/* A tick in which packets tell that the peers are `off` ahead; queues make all of them `late`. */
static bool tick(struct clock *c, double off, double late)
{
    now.ns += CLOCK_TICK_NS;
    c->now = now;
    if (c->config.guard_is_own) {
        clock_on_guard(c, now, 500, 60e-6);
    }
    for (int i = 0; i < PEERS; i++) {
        struct clock_edge *e = &c->edges[i];
        e->heard_at = e->point_at = now;
        e->has_raw = true;
        e->raw_low[1] = off + late + 10 * i;
        e->raw_low[0] = -off + late + 10 * i;
    }
    consensus_count(c);
    if (!disturbance_find_step(c)) {
        return false;
    }
    disturbance_take_step(c, now);
    return true;
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

/* It is hours off after it was off a little, which no drift does. What the filter then knows stays a variance. */
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
        bank_predict(&c->bank, 0.05);
        bank_update(&c->bank, 0, 621, 0.088); /* stops here if it is none */
    }
    bank_variance(&c->bank, &p00, &p01, &p11, &q2);
    assert_true(p00 > 0 && p11 > 0 && p00 * p11 > p01 * p01);
    clock_free(c);
}

/* The second clock ran on beside it all the time. */
static void a_clock_that_is_vouched_for_did_not_step(void **state)
{
    struct clock *c = member(true);

    calm(c, 5, 0);
    assert_false(tick(c, 1e6, 0));
    assert_true(tick(c, 1e6, 0));
    assert_int_equal(verdicts(c), 0);
    assert_true(c->disrupted);
    c->config.guard_is_own = false; /* nobody compares them now */
    assert_false(calm(c, 5, 0));
    assert_false(tick(c, 1e6, 0));
    assert_true(tick(c, 1e6, 0));
    assert_int_equal(verdicts(c), 1);
    clock_free(c);
}

/* Whose map is off by some microseconds all the time has no clock that steps as much. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_steps_out_of_a_calm),
        cmocka_unit_test(a_step_seen_by_some_first_is_a_step),
        cmocka_unit_test(queues_are_no_step),
        cmocka_unit_test(a_map_that_drifts_off_is_no_step),
        cmocka_unit_test(a_drift_of_hours_leaves_a_variance),
        cmocka_unit_test(a_clock_that_is_vouched_for_did_not_step),
        cmocka_unit_test(what_scatters_is_no_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
