/* Sender and ledger over lanes that behave as badly as possible (lane_world.h): each message is delivered exactly once, complete,
 * in the order of its matching, and memory that was given back doesn't change. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/failover/ledger.h"
#include "core/failover/sender.h"
#include "lane_world.h"

/* `test_lanes N`: N times the seeds; `test_lanes N SEED`: that one alone */
static uint64_t scale = 1, alone;

enum kind { STREAMS, QUEUE_PAIRS, MIXED };

static void play(enum kind kind, bool both, uint32_t group_max, uint32_t damage_every,
                 uint64_t seeds)
{
    struct lane_world_result sum = {0}, one;

    seeds *= scale;
    for (uint64_t seed = alone != 0 ? alone : 1; seed <= (alone != 0 ? alone : seeds); seed++) {
        lane_world_run(&(struct lane_world_config){.seed = seed,
                                                   .queue_pairs = kind == QUEUE_PAIRS,
                                                   .mixed = kind == MIXED,
                                                   .both = both,
                                                   .group_max = group_max,
                                                   .steps = 1200,
                                                   .fault_every = 20,
                                                   .damage_every = damage_every},
                       &one);
        if (one.wrong != NULL) {
            fail_msg("seed %llu: %s", (unsigned long long)seed, one.wrong);
        }
        sum.receives += one.receives;
        sum.resent += one.resent;
        sum.binned += one.binned;
        sum.staged += one.staged;
        sum.eager_early += one.eager_early;
        sum.damaged += one.damaged;
        sum.aborted += one.aborted;
    }
    if (alone != 0) {
        return;
    }
    /* The world was hard enough. */
    assert_true(sum.receives > seeds * 10 && sum.resent > seeds && sum.eager_early > seeds / 2);
    assert_true(kind != STREAMS ||
                (sum.binned > seeds && sum.staged > seeds && sum.damaged > 0 && sum.aborted > 0));
}

static void test_byte_streams(void **state)
{
    play(STREAMS, false, 1, 0, 350);
}

static void test_byte_streams_groups(void **state)
{
    play(STREAMS, false, 4, 0, 150);
}

static void test_damage(void **state)
{
    play(STREAMS, false, 1, 25, 200);
}

static void test_queue_pairs(void **state)
{
    play(QUEUE_PAIRS, false, 1, 0, 150);
}

static void test_queue_pairs_groups(void **state)
{
    play(QUEUE_PAIRS, false, 4, 0, 100);
}

/* Queue pairs that write without being asked, beside connections that are read: on either kind of lane chunks move elsewhere only
 * after the receiver's final report about it. */
static void test_mixed(void **state)
{
    play(MIXED, false, 1, 25, 200);
}

static void test_mixed_groups(void **state)
{
    play(MIXED, false, 4, 0, 80);
}

static void test_both_directions(void **state)
{
    play(STREAMS, true, 1, 0, 150);
    play(STREAMS, true, 4, 25, 60);
    play(QUEUE_PAIRS, true, 1, 0, 60);
    play(MIXED, true, 4, 25, 80);
}

/* One communicator with one message on its way. Its receive was posted. */
static void send_one(struct sender *s, const uint8_t *source, uint32_t size)
{
    uint64_t message;

    assert_int_equal(sender_comm_open(s, 1), 0);
    assert_int_equal(
        sender_on_report(s, (struct mono){0},
                         &(struct lane_report){.sequence = 1, .posted = 1, .granted = UINT64_MAX}),
        0);
    assert_int_equal(sender_send(s, (struct mono){0}, 0,
                                 &(struct sender_message){.source = source, .size = size},
                                 &message),
                     0);
}

/* A chunk of a doubted lane goes over another one. If that is doubted, too, it goes over a third, although two have it. It moves
 * no more once one of them is trusted again. */
static void test_doubts(void **state)
{
    struct sender *s = sender_new(&(struct sender_config){.slots = 4, .comms = 1});
    const uint8_t source[20000] = {0};
    struct sender_chunk chunk;
    struct lane_chunk header;

    for (uint32_t lane = 0; lane < 4; lane++) {
        assert_int_equal(sender_lane_open(s, lane, 1), 0);
    }
    send_one(s, source, sizeof(source));
    for (uint32_t lane = 0; lane < 3; lane++) {
        assert_true(sender_next(s, 0xf, 32768, &chunk));
        assert_int_equal(chunk.not_on, (1u << lane) - 1);
        assert_int_equal(sender_bind(s, (struct mono){0}, &chunk, lane, &header), 0);
        assert_false(sender_waiting(s));
        assert_int_equal(sender_on_suspect(s, lane), 1);
        assert_true(sender_waiting(s));
        assert_int_equal(sender_on_suspect(s, lane), 0); /* doubted again: no change */
    }
    sender_on_trusted(s, 1);
    assert_false(sender_waiting(s));
    assert_int_equal(sender_on_suspect(s, 2), 0); /* lane 1 has it */
    sender_on_lane_down(s, 1, 1);
    assert_true(sender_waiting(s)); /* lanes that are doubted don't count */
    assert_true(sender_next(s, 0xf, 32768, &chunk));
    assert_int_equal(chunk.not_on, 5);
    assert_null(sender_bug(s));
    sender_free(s);
}

/* The receiver's lanes are on other devices by now: the last keys count, also for a message that has its place. */
static void test_keys_told_again(void **state)
{
    struct sender *s = sender_new(&(struct sender_config){.slots = 4, .comms = 1, .posts = true});
    const uint8_t source[20000] = {0};
    struct lane_post post = {
        .count = 1, .address = 4096, .size = sizeof(source), .keys = {1, {2}, {77}}};
    struct sender_chunk chunk;
    struct lane_chunk header;

    (void)state;
    assert_int_equal(sender_lane_open(s, 0, 1), 0);
    send_one(s, source, sizeof(source));
    assert_int_equal(sender_on_post(s, &post), 0);
    assert_true(sender_next(s, 1, 8192, &chunk));
    assert_int_equal(lane_key_of(&chunk.keys, 2), 77);
    assert_int_equal(sender_bind(s, (struct mono){0}, &chunk, 0, &header), 0);
    post.keys = (struct lane_keys){2, {9, 2}, {5, 6}};
    assert_int_equal(sender_on_post(s, &post), 0);
    assert_true(sender_next(s, 1, 8192, &chunk));
    assert_int_equal(lane_key_of(&chunk.keys, 2), 6);
    assert_int_equal(lane_key_of(&chunk.keys, 9), 5);
    post.address += 8; /* the place itself stays */
    assert_int_equal(sender_on_post(s, &post), -EPROTO);
    sender_free(s);
}

/* The list of communicators grows with their number, up to its limit, and none of them moves. */
static void test_many_comms(void **state)
{
    const struct ledger_config in = {.comms = SET_COMMS_MAX};
    const struct sender_config out = {.comms = SET_COMMS_MAX};
    struct ledger *ledger = ledger_new(&in);
    struct sender *sender = sender_new(&out);
    uint32_t numbers[SET_COMMS_MAX];

    (void)state;
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < SET_COMMS_MAX; i++) {
            if (round > 0 && i % 3 != 0) {
                continue; /* open since the round before */
            }
            const int64_t number = sender_comm_open(sender, 1);
            assert_true(number >= 0);
            numbers[i] = (uint32_t)number;
            assert_int_equal(ledger_comm_open(ledger, numbers[i], 1), 0);
            assert_int_equal(ledger_comm_open(ledger, numbers[i], 1), -EALREADY);
        }
        assert_int_equal(sender_comm_open(sender, 1), -ENOBUFS);
        assert_int_equal(ledger_comm_open(ledger, 3000000, 1), -ENOBUFS);
        for (uint32_t i = 0; i < SET_COMMS_MAX; i++) {
            assert_true(sender_comm_progress(sender, numbers[i], NULL, NULL));
            assert_true(ledger_comm_progress(ledger, numbers[i], NULL, NULL));
        }
        for (uint32_t i = 0; i < SET_COMMS_MAX; i += 3) {
            sender_comm_close(sender, numbers[i]);
            ledger_comm_close(ledger, numbers[i]);
            assert_false(sender_comm_progress(sender, numbers[i], NULL, NULL));
            assert_false(ledger_comm_progress(ledger, numbers[i], NULL, NULL));
        }
    }
    sender_free(sender);
    ledger_free(ledger);
}

int main(int argc, char **argv)
{
    scale = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    alone = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_comms),
        cmocka_unit_test(test_byte_streams),
        cmocka_unit_test(test_byte_streams_groups),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_queue_pairs),
        cmocka_unit_test(test_queue_pairs_groups),
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_mixed_groups),
        cmocka_unit_test(test_both_directions),
        cmocka_unit_test(test_doubts),
        cmocka_unit_test(test_keys_told_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
