/* Measurements on demand: packets are limited and evenly spread, loss on the way out is distinguished from lost answers, and an
 * answerer can't be made to flood. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/mesh/measure.h"

static const struct measure_pair pairs[] = {{0, {10}}, {1, {11}}, {0, {12}}};
static struct measure *m;
static struct measure_heard *heard;

static int set_up(void **state)
{
    m = calloc(1, sizeof(*m));
    heard = calloc(1, sizeof(*heard));
    return m == NULL || heard == NULL;
}

static int tear_down(void **state)
{
    free(m);
    free(heard);
    return 0;
}

static struct measure_wish wish_of(uint32_t ports, uint32_t packets, uint32_t rate)
{
    return (struct measure_wish){.run = 7,
                                 .pair_count = 3,
                                 .ports = ports,
                                 .packets = packets,
                                 .rate = rate,
                                 .pairs = pairs};
}

static struct mono at_ms(int64_t ms)
{
    return (struct mono){ms * NS_PER_MS};
}

static void more_than_the_limits_is_refused(void **state)
{
    struct measure_wish good = wish_of(2, 10, 100), w;
    struct measure_pair own = {2, {10}};
    assert_int_equal(measure_start(m, &good, 2, at_ms(0)), 0);
    const uint32_t kept = m->packet_count;
#define REFUSED(field, value)                                                                      \
    w = good;                                                                                      \
    w.field = (value);                                                                             \
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), -22)
    REFUSED(pair_count, 0);
    REFUSED(pair_count, MEASURE_PAIR_MAX + 1);
    REFUSED(pair_count, UINT32_MAX);
    REFUSED(ports, 0);
    REFUSED(ports, MEASURE_PORT_MAX + 1);
    REFUSED(packets, 0);
    REFUSED(packets, MEASURE_PATH_PACKET_MAX + 1);
    REFUSED(rate, 0);
    REFUSED(rate, MEASURE_RATE_MAX + 1);
    w = good;
    w.pairs = &own;
    w.pair_count = 1;
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), -22);
    assert_int_equal(m->packet_count, kept);
    /* each limit alone is kept, but together there are too many packets */
    static struct measure_pair many[MEASURE_PAIR_MAX];
    w = (struct measure_wish){1, MEASURE_PAIR_MAX, 1, 129, 1000, many};
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), -22);
    w.packets = 128;
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), 0);
    w.ports = 2;
    w.packets = 65;
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), -22);
    w.packets = 64;
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), 0);
}

/* Paced, all paths in turn, and no burst after a late call. */
static void it_is_paced(void **state)
{
    const struct measure_wish w = wish_of(2, 10, 100);
    struct measure_send s;
    uint32_t count = 0;
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), 0);
    for (int64_t ms = 0; ms < 295; ms++) {
        while (measure_next_send(m, at_ms(ms), &s)) {
            assert_int_equal(s.packet, count);
            assert_int_equal(s.pair.peer.index, pairs[count % 6 / 2].peer.index);
            assert_int_equal(s.port, count % 2);
            count++;
        }
    }
    assert_int_equal(count, 30);
    for (count = 0; measure_next_send(m, at_ms(5000), &s); count++) {
    }
    assert_int_equal(count, 3); /* of the last 20 ms, at 100 a second */
    for (int64_t ms = 5000; ms < 6000; ms++) {
        count += measure_next_send(m, at_ms(ms), &s);
    }
    assert_int_equal(count, 30);
    assert_false(measure_is_done(m, at_ms(6000)));
    assert_true(measure_is_done(m, at_ms(6000 + MEASURE_LATE_NS / NS_PER_MS)));
}

/* Sends all packets. Of path 0 `lost_out` packets are lost on the way out, and each third answer. */
static void play(uint32_t lost_out, bool answers)
{
    const struct measure_wish w = wish_of(1, 30, 1000);
    struct measure_send s;
    int64_t now = 0;
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), 0);
    measure_heard_init(heard, at_ms(0));
    for (; m->sent < m->packet_count; now++) {
        while (measure_next_send(m, at_ms(now), &s)) {
            uint32_t count = 0;
            const uint32_t k = s.packet / 3, path = s.packet % 3;
            measure_on_stamp(m, s.packet, 1000000 + now * NS_PER_MS, 100);
            if (path == 0 && k >= 5 && k < 5 + lost_out) {
                continue;
            }
            const struct measure_query q = {7, {1 + s.pair.local}, s.pair.peer, 7640};
            assert_true(measure_heard_count(heard, at_ms(now), &q, &count));
            const struct measure_answer a = {.run = 7,
                                             .packet = s.packet,
                                             .local = s.pair.local,
                                             .peer = s.pair.peer,
                                             .heard_ns = 1000000 + now * NS_PER_MS + 4000 + k,
                                             .bound_ns = 50,
                                             .count = count};
            if (answers && k % 3 != 1) {
                assert_true(measure_on_answer(m, &a));
                assert_false(measure_on_answer(m, &a)); /* twice */
            }
        }
    }
}

static void loss_on_the_way_out_is_told_from_lost_answers(void **state)
{
    struct measure_path p;
    play(4, true);
    measure_path_get(m, 0, &p);
    assert_int_equal(p.sent, 30);
    assert_int_equal(p.lost, 4);
    measure_path_get(m, 1, &p);
    assert_int_equal(p.lost, 0);
    assert_int_equal(p.answered, 20);
    assert_int_equal(p.timed, 20);
    assert_int_equal(p.owd_ns_min, 4000);
    assert_in_range(p.owd_ns_p50, 4012, 4017);
    assert_int_equal(p.owd_ns_p99, 4029);
    assert_int_equal(m->bound_ns, 100);
    play(0, false);
    measure_path_get(m, 1, &p);
    assert_int_equal(p.lost, -1);
    assert_int_equal(p.timed, 0);
}

/* A packet that was not sent isn't lost. Without a stamp, or without the peer's fleet time, there is no delay. */
static void what_is_not_known_is_not_guessed(void **state)
{
    const struct measure_wish w = wish_of(1, 4, 1000);
    struct measure_send s;
    struct measure_path p;
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), 0);
    for (int64_t ms = 0; ms < 20; ms++) {
        while (measure_next_send(m, at_ms(ms), &s)) {
        }
    }
    measure_on_not_sent(m, 0);
    struct measure_answer a = {.run = 7, .packet = 3, .peer = {10}, .bound_ns = 5, .count = 1};
    assert_true(measure_on_answer(m, &a));
    a = (struct measure_answer){
        .run = 7, .packet = 6, .peer = {10}, .bound_ns = MEASURE_BOUND_NONE, .count = 2};
    measure_on_stamp(m, 6, 5, 5);
    assert_true(measure_on_answer(m, &a));
    measure_path_get(m, 0, &p);
    assert_int_equal(p.sent, 3);
    assert_int_equal(p.lost, 0);
    assert_int_equal(p.answered, 2);
    assert_int_equal(p.timed, 0);
}

static void what_does_not_belong_is_dropped(void **state)
{
    const struct measure_wish w = wish_of(1, 4, 1000);
    struct measure_send s;
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), 0);
    assert_true(measure_next_send(m, at_ms(0), &s));
    const struct measure_answer good = {.run = 7, .packet = 0, .local = 0, .peer = {10}};
    struct measure_answer a = good;
    a.run = 8;
    assert_false(measure_on_answer(m, &a));
    a = good;
    a.packet = 1; /* not sent yet */
    assert_false(measure_on_answer(m, &a));
    a.packet = UINT32_MAX;
    assert_false(measure_on_answer(m, &a));
    a = good;
    a.local = 1;
    assert_false(measure_on_answer(m, &a));
    a = good;
    a.peer.index = 11;
    assert_false(measure_on_answer(m, &a));
    measure_on_stamp(m, UINT32_MAX, 1, 1);
    measure_on_not_sent(m, UINT32_MAX);
    assert_true(measure_on_answer(m, &good));
}

/* 100,000 questions within a second get only as many answers as the limit allows. All are counted. */
static void an_answerer_is_no_amplifier(void **state)
{
    const struct measure_query q = {1, {1}, {2}, 7640};
    uint32_t answers = 0, count = 0;
    measure_heard_init(heard, at_ms(0));
    for (int64_t i = 0; i < 100000; i++) {
        answers += measure_heard_count(heard, (struct mono){i * 10000}, &q, &count);
    }
    assert_in_range(answers, MEASURE_ANSWER_RATE_MAX / 2, MEASURE_ANSWER_RATE_MAX + 100);
    assert_int_equal(count, 100000);
}

/* More paths than the table has room for: a count is right or unknown, and never too small. */
static void a_full_table_makes_no_loss(void **state)
{
    uint32_t count, known = 0;
    measure_heard_init(heard, at_ms(0));
    for (uint32_t k = 1; k <= 3; k++) {
        for (uint32_t i = 0; i < 2 * MEASURE_HEARD_MAX; i++) {
            const struct measure_query q = {1, {i}, {7}, 7640};
            (void)measure_heard_count(heard, at_ms(k * 100), &q, &count);
            assert_true(count == 0 || count == k);
            known += count > 0;
        }
    }
    assert_in_range(known, 3 * MEASURE_HEARD_MAX / 2, 3 * MEASURE_HEARD_MAX);
    const struct measure_query later = {2, {1}, {7}, 7640}; /* what is over makes room */
    (void)measure_heard_count(heard, at_ms(100000), &later, &count);
    assert_int_equal(count, 1);
}

/* A plan at each limit is accepted, to the last packet. */
static void all_limits_can_be_reached(void **state)
{
    static struct measure_pair many[MEASURE_PAIR_MAX];
    struct measure_wish w = wish_of(MEASURE_PORT_MAX, 1, MEASURE_RATE_MAX);
    struct measure_pair last = {1, {FLEET_NIC_MAX - 1}}, beyond = {1, {FLEET_NIC_MAX}};

    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), 0);
    w = wish_of(1, MEASURE_PATH_PACKET_MAX, 1);
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), 0);
    w.pair_count = 1;
    w.pairs = &last;
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), 0);
    assert_int_equal(measure_start(m, &w, 1, at_ms(0)), -22);
    w.pairs = &beyond;
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), -22);
    w = (struct measure_wish){1, MEASURE_PAIR_MAX, MEASURE_PORT_MAX, 1, 1, many};
    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), 0);
    assert_int_equal(m->packet_count, MEASURE_PAIR_MAX * MEASURE_PORT_MAX);
}

/* The worst of both ends' bounds is reported. An unknown bound doesn't count. */
static void the_worst_bound_is_told(void **state)
{
    const struct measure_wish w = wish_of(1, 2, 1000);
    struct measure_answer a = {.run = 7, .peer = {10}, .bound_ns = MEASURE_BOUND_NONE, .count = 1};
    struct measure_send s;

    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), 0);
    assert_true(measure_next_send(m, at_ms(0), &s));
    assert_int_equal(m->bound_ns, MEASURE_BOUND_NONE);
    assert_true(measure_on_answer(m, &a));
    assert_int_equal(m->bound_ns, MEASURE_BOUND_NONE);
    measure_on_stamp(m, 0, 1, 70);
    assert_int_equal(m->bound_ns, 70);
    measure_on_stamp(m, 0, 1, 60);
    assert_int_equal(m->bound_ns, 70);
    assert_true(measure_next_send(m, at_ms(1), &s));
    a = (struct measure_answer){
        .run = 7, .packet = 1, .local = 1, .peer = {11}, .bound_ns = 80, .count = 1};
    assert_true(measure_on_answer(m, &a));
    assert_int_equal(m->bound_ns, 80);
}

/* Sixty-four at once, then one at each interval of the rate; separately for each path of each run. */
static void answers_are_counted_by_path(void **state)
{
    const struct measure_query q = {1, {1}, {2}, 7640};
    struct measure_query other[4] = {q, q, q, q};
    uint32_t count, answers = 0;

    measure_heard_init(heard, at_ms(0));
    for (int i = 0; i < 100; i++) {
        answers += measure_heard_count(heard, at_ms(0), &q, &count);
    }
    assert_int_equal(answers, 64);
    assert_false(measure_heard_count(heard, (struct mono){NS_PER_S / MEASURE_ANSWER_RATE_MAX - 1},
                                     &q, &count));
    assert_true(measure_heard_count(
        heard, (struct mono){2 * NS_PER_S / MEASURE_ANSWER_RATE_MAX - 1}, &q, &count));
    assert_int_equal(count, 102);
    assert_false(
        measure_heard_count(heard, (struct mono){0}, &q, &count)); /* a clock that was set back */
    other[0].run = 2;
    other[1].src.index = 5;
    other[2].dst.index = 5;
    other[3].port = 7641;
    for (int i = 0; i < 4; i++) {
        (void)measure_heard_count(heard, at_ms(1), &other[i], &count);
        assert_int_equal(count, 1);
    }
    (void)measure_heard_count(heard, at_ms(1), &q, &count);
    assert_int_equal(count, 104);
}

/* It is done three seconds after the last packet, or with the last answer. */
static void it_is_done_when_nothing_more_can_come(void **state)
{
    const struct measure_wish w = {
        .run = 7, .pair_count = 1, .ports = 1, .packets = 2, .rate = 1000, .pairs = pairs};
    struct measure_answer a = {.run = 7, .peer = {10}, .bound_ns = 1, .count = 1};
    struct measure_send s;

    assert_int_equal(measure_start(m, &w, 2, at_ms(0)), 0);
    assert_true(measure_next_send(m, at_ms(0), &s));
    assert_false(measure_next_send(m, (struct mono){NS_PER_MS - 1}, &s));
    assert_false(measure_is_done(m, at_ms(99999)));
    assert_true(measure_next_send(m, at_ms(1), &s));
    assert_false(measure_is_done(m, at_ms(1)));
    assert_false(measure_is_done(m, at_ms(3000)));
    assert_true(measure_is_done(m, at_ms(3001)));
    assert_true(measure_on_answer(m, &a));
    assert_false(measure_is_done(m, at_ms(1)));
    a.packet = 1;
    assert_true(measure_on_answer(m, &a));
    assert_true(measure_is_done(m, at_ms(1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_than_the_limits_is_refused),
        cmocka_unit_test(it_is_paced),
        cmocka_unit_test(loss_on_the_way_out_is_told_from_lost_answers),
        cmocka_unit_test(what_is_not_known_is_not_guessed),
        cmocka_unit_test(what_does_not_belong_is_dropped),
        cmocka_unit_test(an_answerer_is_no_amplifier),
        cmocka_unit_test(a_full_table_makes_no_loss),
        cmocka_unit_test(all_limits_can_be_reached),
        cmocka_unit_test(the_worst_bound_is_told),
        cmocka_unit_test(answers_are_counted_by_path),
        cmocka_unit_test(it_is_done_when_nothing_more_can_come),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
