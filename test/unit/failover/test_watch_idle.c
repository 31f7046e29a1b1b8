/* test_watch_idle.c: the watch of a set without traffic: the end that accepts lanes, and a set that is idle, or whose peer is
 * stopped. Each test gives the watch its events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/failover/watch.h"

static void test_accepts(void **state)
{
    struct watch *w = watch_new(&(struct watch_config){.accepts = true}, (struct mono){1});
    struct watch_action a;
    struct watch_lane lane;

    assert_int_equal(watch_lane_add(w, (struct mono){1}, 0, &(struct watch_lane_config){0}), 0);
    watch_look(w, (struct mono){NS_PER_S});
    assert_false(watch_next_action(w, &a) && a.kind == WATCH_CONNECT); /* it waits for HELLO */
    watch_on_hello(w, (struct mono){NS_PER_S}, 0, 3, span_ns(-1));
    watch_lane_get(w, (struct mono){NS_PER_S}, 0, &lane);
    assert_true(lane.state == LANE_ACTIVE && lane.epoch == 3);
    while (watch_next_action(w, &a)) {
    }
    watch_on_hello(w, (struct mono){NS_PER_S}, 0, 4, span_ns(-1)); /* the sender has given up 3 */
    assert_true(watch_next_action(w, &a) && a.kind == WATCH_CLOSE && a.epoch == 3);
    watch_lane_get(w, (struct mono){NS_PER_S}, 0, &lane);
    assert_true(lane.state == LANE_ACTIVE && lane.epoch == 4);
    watch_free(w);
}

/* The accepting end may send, too: the next connection of its lane is counted from its own first segment on. */
static void test_accepts_and_loses_a_little(void **state)
{
    struct watch *w = watch_new(&(struct watch_config){.accepts = true}, (struct mono){1});
    const struct mono now = {NS_PER_S};
    struct watch_action a;
    uint32_t lost = 0;

    for (uint32_t lane = 0; lane < 2; lane++) {
        assert_int_equal(watch_lane_add(w, now, lane, &(struct watch_lane_config){0}), 0);
        watch_on_hello(w, now, lane, 1, span_ns(-1));
        watch_on_kernel(w, now, lane,
                        &(struct watch_kernel){.known = true, .acked = true, .segments = 10000});
    }
    watch_on_hello(w, now, 0, 2, span_ns(-1));
    while (watch_next_action(w, &a)) {
    }
    watch_on_kernel(w, now, 1,
                    &(struct watch_kernel){.known = true, .acked = true, .segments = 12500});
    watch_on_kernel(
        w, now, 0,
        &(struct watch_kernel){.known = true, .acked = true, .segments = 2500, .resent = 250});
    while (watch_next_action(w, &a)) {
        lost +=
            a.kind == WATCH_CLOSE && a.lane == 0 && a.epoch == 2 && a.reason == LANE_REASON_LOSS;
    }
    assert_int_equal(lost, 1);
    watch_free(w);
}

/* The accepting end can't make a lane again, and nothing is owed here: lanes that died in silence are found nevertheless, and
 * replaced. For a peer that can do that itself it asks nothing. */
static void test_an_idle_set_is_kept(void **state)
{
    for (int kept = 0; kept < 2; kept++) {
        struct watch *w =
            watch_new(&(struct watch_config){.patience = span_ms(8000)}, (struct mono){1});
        uint32_t pings[2] = {0}, connects = 0;
        struct watch_action a;

        for (uint32_t lane = 0; lane < 2; lane++) {
            assert_int_equal(
                watch_lane_add(w, (struct mono){1}, lane, &(struct watch_lane_config){0}), 0);
            watch_on_hello(w, (struct mono){1}, lane, 1, span_ns(100000));
        }
        while (watch_next_action(w, &a)) {
        }
        watch_on_kept(w, kept);
        for (int64_t ms = 1; ms < 20000; ms++) {
            const struct mono now = {ms * NS_PER_MS};
            watch_look(w, now);
            assert_true(kept || watch_deadline(w).ns == INT64_MAX);
            assert_true(!kept || watch_deadline(w).ns <= now.ns + 1001 * NS_PER_MS);
            while (watch_next_action(w, &a)) {
                connects += a.kind == WATCH_CONNECT;
                if (a.kind == WATCH_ASK_KERNEL) { /* what was written isn't acknowledged */
                    watch_on_kernel(w, now, a.lane,
                                    &(struct watch_kernel){.known = true, .rtt = span_ns(100000)});
                } else if (a.kind == WATCH_PING) {
                    pings[a.lane]++;
                    if (ms < 10000) { /* later both are dead */
                        watch_on_pong(w, now, a.lane, a.epoch, a.sequence);
                    }
                }
            }
            assert_true(ms >= 10000 || connects == 0);
        }
        assert_true(kept ? pings[0] >= 4 && pings[1] >= 4 && connects > 0
                         : pings[0] + pings[1] + connects == 0);
        watch_free(w);
    }
}

/* The sender counts what is on a lane. A chunk was bound to a lane just as the lane went down: it no longer belongs to the next
 * connection. A separate count kept it, and the new connection owed an answer for ever. */
static void test_a_new_connection_owes_nothing(void **state)
{
    struct watch *w = watch_new(&(struct watch_config){.accepts = true}, (struct mono){1});
    struct lane_load loads[LANE_MAX] = {{.chunks = 1}};
    const struct mono now = {NS_PER_S};

    watch_loads(w, loads);
    assert_int_equal(watch_lane_add(w, now, 0, &(struct watch_lane_config){0}), 0);
    watch_on_hello(w, now, 0, 1, span_ns(-1));
    watch_on_lost(w, now, 0, 1, LANE_REASON_RESET);
    watch_on_sent(w, now, 0, 1, span_ns(0));
    loads[0].chunks = 0; /* its stream is closed, and the chunk is back in the pool */
    watch_on_hello(w, now, 0, 2, span_ns(-1));
    assert_true(watch_deadline(w).ns == INT64_MAX); /* nothing to look for */
    watch_free(w);
}

/* The peer's process is stopped, and its kernel has everything that was written: it owes pongs for hours. Looking two hundred
 * times a second, and asking the kernel as often, for every set, would show nothing. If its host dies later, that is found
 * nevertheless. */
static void test_a_stopped_process_costs_nothing(void **state)
{
    for (int owing = 0; owing < 2; owing++) {
        struct watch *w = watch_new(
            &(struct watch_config){.accepts = true, .patience = span_ms(40000)}, (struct mono){1});
        uint32_t looks = 0, asked = 0, downs = 0;
        struct mono now = {NS_PER_MS};
        bool gone = false;

        for (uint32_t lane = 0; lane < 2; lane++) {
            assert_int_equal(watch_lane_add(w, now, lane, &(struct watch_lane_config){0}), 0);
            watch_on_hello(w, now, lane, 1, span_ns(-1));
        }
        watch_on_kept(w, true);
        watch_on_owing(w, now, owing);
        while (now.ns < 40 * NS_PER_S) {
            struct watch_action a;
            gone = now.ns > 20 * NS_PER_S;
            watch_look(w, now);
            looks += !gone;
            while (watch_next_action(w, &a)) {
                asked += a.kind == WATCH_ASK_KERNEL && !gone;
                downs += a.kind == WATCH_CLOSE;
                assert_true(downs == 0 || gone);
                if (a.kind == WATCH_ASK_KERNEL) {
                    watch_on_kernel(w, now, a.lane,
                                    &(struct watch_kernel){.known = true,
                                                           .acked = !gone,
                                                           .idle = !gone,
                                                           .empty = !gone,
                                                           .rtt = span_ns(100000)});
                }
            }
            assert_true(mono_before(now, watch_deadline(w)));
            now = watch_deadline(w);
        }
        assert_in_range(looks, 2, owing ? 20 * 40 : 40);
        assert_in_range(asked, 2, owing ? 20 * 50 : 40);
        assert_true(downs > 0);
        watch_free(w);
    }
}

/* A standby that tries another pair of NICs keeps its number: the accepting end judges it by the new NICs. */
static void test_accepts_from_other_nics(void **state)
{
    const struct watch_lane_config one = {.own_nic = 0}, other = {.own_nic = 1, .peer_nic = 1};
    struct watch *w = watch_new(&(struct watch_config){.accepts = true}, (struct mono){1});
    const struct mono now = {NS_PER_S};
    struct watch_lane lane;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        watch_on_carrier(w, now, true, i, true, 1);
        assert_int_equal(watch_lane_add(w, now, i, &one), 0);
        watch_on_hello(w, now, i, 1, span_ns(-1));
    }
    watch_on_lost(w, now, 0, 1, LANE_REASON_RESET);
    watch_lane_nics(w, 0, &other);
    watch_on_hello(w, now, 0, 2, span_ns(-1));
    watch_on_carrier(w, now, true, 0, false, 2);
    watch_lane_get(w, now, 0, &lane);
    assert_true(lane.state == LANE_ACTIVE && !lane.cut);
    watch_lane_get(w, now, 1, &lane);
    assert_true(lane.state == LANE_DOWN && lane.cut);
    watch_on_carrier(w, now, true, 1, false, 2);
    watch_lane_get(w, now, 0, &lane);
    assert_true(lane.state == LANE_DOWN && lane.reason == LANE_REASON_CARRIER && lane.cut);
    watch_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts),
        cmocka_unit_test(test_accepts_and_loses_a_little),
        cmocka_unit_test(test_an_idle_set_is_kept),
        cmocka_unit_test(test_a_new_connection_owes_nothing),
        cmocka_unit_test(test_a_stopped_process_costs_nothing),
        cmocka_unit_test(test_accepts_from_other_nics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
