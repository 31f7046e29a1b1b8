/* Packets of full size: which count as lost, and which don't. Two meshes that are connected to each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/mesh/internal.h"

enum { SIDES = 2, FLIGHTS = 4096, PATHS = 4 };

struct flight {
    int64_t at;
    uint32_t to;
    struct mesh_send send;
};
static struct {
    struct mesh *meshes[SIDES];
    int64_t now;
    struct flight flights[FLIGHTS];
    uint32_t count;
    bool swallows[PATHS]; /* drops full packets of side 0 on that way */
    bool pairs_lost;      /* on such a way, too */
    bool back_lost;       /* every eighth packet of side 1 */
    int64_t leap_ns;      /* each 300 ms all stand still for so long */
    bool queue;           /* every second packet of side 0 waits */
    uint32_t turn;
    bool mute;              /* side 1 has an older agent: it answers none */
    uint32_t full, answers; /* from side 0; from side 1, to these */
} w;

static bool is_answer(const struct probe *probe)
{
    return probe->type == PROBE_SINGLE && probe->heard.path == MESH_PATH_PROBE &&
           full_is(probe->heard.seq);
}

static void begin(void)
{
    struct mesh_peer peers[SIDES];

    memset(&w, 0, sizeof(w));
    w.now = NS_PER_S;
    for (uint32_t i = 0; i < SIDES; i++) {
        peers[i] = (struct mesh_peer){.nic = {i}, .host = {i}, .leaf = LEAF_UNKNOWN};
    }
    for (uint32_t i = 0; i < SIDES; i++) {
        const struct mesh_config config = {
            .nic_count = 1,
            .nics = {{i}},
            .fleet = {.seed = 1, .peers = peers, .peer_count = SIDES},
            .seed = 7 + i,
            .port_base = 7000,
            .edge_limit = 8,
            .ring_peers = 1,
            .full_limit = 6,
            .path_limit = PATHS,
            .no_discovery = true,
            .interval = span_ms(100),
            .grid = span_ms(5),
            .late = span_ms(50)};
        w.meshes[i] = mesh_new(&config, (struct mono){w.now});
        assert_non_null(w.meshes[i]);
    }
}

static void end(void)
{
    for (uint32_t i = 0; i < SIDES; i++) {
        mesh_free(w.meshes[i]);
    }
}

static void send(uint32_t side)
{
    struct mesh_send one;
    int edge;

    while (mesh_next_send(w.meshes[side], (struct mono){w.now}, &one, &edge)) {
        const bool full = one.size > PROBE_SIZE;
        mesh_on_transmit(w.meshes[side], (struct mono){w.now}, one.token, 0,
                         (struct nic_time){w.now}, false);
        w.full += side == 0 && full;
        w.answers += side == 1 && is_answer(&one.probe);
        const bool pair = one.probe.type == PROBE_PAIR,
                   swallowed = side == 0 && w.swallows[one.source_port % PATHS];
        if ((swallowed && (full || (w.pairs_lost && pair))) ||
            (side == 1 && w.mute && is_answer(&one.probe)) ||
            (side == 1 && w.back_lost && w.turn++ % 8 == 0)) {
            continue;
        }
        assert_true(w.count < FLIGHTS);
        w.flights[w.count++] = (struct flight){w.now + 2 * NS_PER_MS, one.peer.index, one};
    }
}

/* Reports the delays of side 0's short packets, a few at a time. */
static void tell_delay(const struct probe *probe)
{
    const bool pair = probe->type == PROBE_PAIR, single = probe->type == PROBE_SINGLE;

    for (int edge = 0; (pair || single) && edge < w.meshes[0]->edge_capacity; edge++) {
        if (w.meshes[0]->edges[edge].used) {
            mesh_on_delay(w.meshes[0], (struct mono){w.now}, edge, probe->path, DIRECTION_OUT,
                          pair ? DELAY_OF_PAIR : DELAY_OF_JOB,
                          2 * NS_PER_MS + (w.queue && w.turn++ % 2 == 0 ? 20 * NS_PER_MS : 0));
        }
    }
}

static void run(int64_t seconds)
{
    for (const int64_t until = w.now + seconds * NS_PER_S; w.now < until; w.now += 5 * NS_PER_MS) {
        for (uint32_t i = 0; i < w.count; i++) {
            const struct flight f = w.flights[i];
            struct mesh_heard heard;
            if (f.at <= w.now) {
                w.flights[i--] = w.flights[--w.count];
                mesh_on_receive(w.meshes[f.to], (struct mono){w.now}, 0, f.send.source_port, true,
                                (struct nic_time){f.at}, &f.send.probe, &heard);
                if (f.to == 1 && heard.edge >= 0) {
                    tell_delay(&f.send.probe);
                }
            }
        }
        for (uint32_t i = 0; i < SIDES; i++) {
            mesh_tick(w.meshes[i], (struct mono){w.now});
            send(i);
        }
        w.now += w.now % (300 * NS_PER_MS) == 0 ? w.leap_ns : 0;
    }
}

/* From now on its ways are known: before that no full packet leaves. */
static void know_ways(void)
{
    for (uint32_t i = 0; i < SIDES; i++) {
        for (int edge = 0; edge < w.meshes[i]->edge_capacity; edge++) {
            for (int p = 0; p < PATHS; p++) {
                w.meshes[i]->edges[edge].out[p].signature = 1 + (uint64_t)p;
            }
        }
    }
}

static struct mesh_edge_info seen(void)
{
    struct mesh_edge_info info;

    for (int edge = 0; edge < mesh_edge_capacity(w.meshes[0]); edge++) {
        if (mesh_edge_info(w.meshes[0], (struct mono){w.now}, edge, &info)) {
            return info;
        }
    }
    fail_msg("no edge");
    return info;
}

/* One leaves in two seconds, and each is answered. The last sixteen are reported. */
static void what_comes_is_told_as_come(void **state)
{
    begin();
    run(5);
    assert_int_equal(w.full, 0);
    know_ways();
    run(10);
    assert_in_range(w.full, 4, 6);
    assert_int_equal(w.answers, w.full);
    assert_in_range(seen().full_tried, 4, 6);
    assert_int_equal(seen().full_lost, 0);
    run(60);
    assert_int_equal(seen().full_tried, 16);
    assert_int_equal(seen().full_lost, 0);
    end();
}

/* Two of four ways drop full packets from some time on: at least half of the last sixteen is lost, because paths that lose are
 * tried more often. After the repair none is. */
static void what_is_swallowed_is_told_as_lost(void **state)
{
    begin();
    run(5);
    know_ways();
    run(20);
    w.swallows[1] = w.swallows[3] = true;
    run(60);
    assert_int_equal(seen().full_tried, 16);
    assert_in_range(seen().full_lost, 8, 13);
    w.swallows[1] = w.swallows[3] = false;
    run(60);
    assert_int_equal(seen().full_tried, 16);
    assert_int_equal(seen().full_lost, 0);
    end();
}

/* The first loss is followed by many packets, for five seconds in twenty. Otherwise an edge would lose one in eight seconds on
 * that way. */
static void what_was_lost_is_asked_again_soon(void **state)
{
    begin();
    run(5);
    know_ways();
    run(20);
    w.swallows[1] = true;
    const uint32_t before = w.full;
    run(14);
    assert_in_range(seen().full_lost, 5, 9);
    assert_in_range(w.full - before, 11, 16);
    run(46);
    assert_in_range(w.full - before, 45, 60);
    w.swallows[1] = false;
    run(20);
    const uint32_t calm = w.full;
    run(60);
    assert_in_range(w.full - calm, 29, 31);
    end();
}

/* A queue that fills drops larger packets first: that is no hole. */
static void what_a_queue_may_have_dropped_is_not_told(void **state)
{
    begin();
    run(5);
    know_ways();
    w.queue = true;
    run(20);
    w.swallows[1] = w.swallows[3] = true;
    run(60);
    assert_int_equal(seen().full_tried, 16);
    assert_int_equal(seen().full_lost, 0);
    end();
}

/* Ways 1 and 3 drop full packets, but there is another reason: pairs of the same class are lost, too; or the ways back lose
 * packets, and with them answers; or both ends stand still for moments in which answers may have come. So none is reported. */
static void what_has_another_reason_is_not_told(void **state)
{
    for (int reason = 0; reason < 3; reason++) {
        begin();
        run(5);
        know_ways();
        run(20);
        w.pairs_lost = reason == 0;
        w.back_lost = reason == 1;
        w.leap_ns = reason == 2 ? 300 * NS_PER_MS : 0;
        run(10);
        const uint32_t asked = w.full;
        w.swallows[1] = w.swallows[3] = true;
        run(60);
        assert_int_equal(seen().full_lost, 0);
        assert_true(w.full > asked + (reason == 1 ? 10 : 0));
        end();
    }
}

/* The agent has never answered one: it isn't known whether they arrive. */
static void an_older_peer_is_not_accused(void **state)
{
    begin();
    w.mute = true;
    run(5);
    know_ways();
    run(60);
    assert_true(w.full > 20);
    assert_int_equal(seen().full_tried, 0);
    assert_int_equal(seen().full_lost, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_is_told_as_come),
        cmocka_unit_test(what_is_swallowed_is_told_as_lost),
        cmocka_unit_test(what_was_lost_is_asked_again_soon),
        cmocka_unit_test(what_a_queue_may_have_dropped_is_not_told),
        cmocka_unit_test(what_has_another_reason_is_not_told),
        cmocka_unit_test(an_older_peer_is_not_accused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
