/* test_port_probe.c: what a port asks, what comes of it, and when a class is called slower: against a world that answers with
 * delays of the test's own choice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/mesh/port_probe.h"

#define OWN_KEY 0x7eadbeef

static struct port_probe *p;
static struct mono now;
static int64_t delay_ns[2][2]; /* by way and direction; < 0: lost */
static int64_t clock_off_ns;   /* the peers' fleet time is so much ahead of ours */
static uint32_t asked[PORT_PROBE_PEERS + 1][2];
static struct prng random_;
static uint32_t width_most_ns; /* of spans */

static uint32_t liar; /* the NIC that tells of 5 ms more in the job's class, or loses it; 0: none */
static bool liar_loses;

static int begin(void **state)
{
    (void)state;
    p = calloc(1, sizeof(*p));
    now = (struct mono){100 * NS_PER_S};
    prng_init(&random_, 7);
    port_probe_init(p, 1, OWN_KEY, true, now);
    memset(asked, 0, sizeof(asked));
    for (int way = 0; way < 2; way++) {
        delay_ns[way][PORT_OUT] = 20000;
        delay_ns[way][PORT_IN] = 30000;
    }
    clock_off_ns = 0;
    width_most_ns = 8000;
    liar = 0;
    liar_loses = false;
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(p);
    return 0;
}

static void tell(uint32_t nic, uint32_t qp)
{
    const struct probe_port at = {.qp = qp, .key = nic, .global = true};
    port_probe_on_port(p, now, (struct nic_id){nic}, &at);
}

/* A span that has the truth anywhere in it. */
static struct port_moment span(int64_t truth_ns, int64_t off_ns)
{
    const uint32_t width = (uint32_t)prng_below(&random_, width_most_ns);
    return (struct port_moment){
        .earliest = {truth_ns + off_ns - (int64_t)prng_below(&random_, width + 1)},
        .width_ns = width,
        .bound_ns = 3000,
        .timeline = 5};
}

static void exchange(const struct port_question *q)
{
    const bool lies = q->way == PROBE_WAY_JOB && liar != 0 && q->nic.index == liar;
    const int64_t told[2] = {delay_ns[q->way][0] + (lies && !liar_loses ? 5 * NS_PER_MS : 0),
                             delay_ns[q->way][1]};
    const int64_t *d = told;
    const struct port_moment left = span(now.ns, 0);
    port_probe_on_left(p, q->exchange, &left);
    if (d[PORT_OUT] < 0 || d[PORT_IN] < 0 || (lies && liar_loses)) {
        return;
    }
    const struct port_moment there = span(now.ns + d[PORT_OUT], clock_off_ns);
    const struct port_moment back_left = span(now.ns + d[PORT_OUT] + 50000, clock_off_ns);
    const struct port_moment came = span(now.ns + d[PORT_OUT] + 50000 + d[PORT_IN], 0);
    assert_true(port_probe_on_answer(p, q->nic, q->exchange, &there, &came));
    assert_false(port_probe_on_answer(p, q->nic, q->exchange, &there, &came));
    assert_true(port_probe_on_answer_left(p, now, q->nic, q->exchange, &back_left));
}

static void run(int64_t ms, uint32_t peers)
{
    struct port_question q;
    for (int64_t i = 0; i < ms; i += 10) {
        now = mono_add(now, span_ms(10));
        for (uint32_t nic = 1; nic <= peers && i % 1000 == 0; nic++) {
            tell(nic, 0x100 + nic);
        }
        if (port_probe_next(p, now, &q)) {
            assert_false(port_probe_next(p, now, &q));
            asked[q.nic.index][q.way]++;
            exchange(&q);
        }
    }
}

static void everybody_told_is_asked_in_both_classes(void **state)
{
    (void)state;
    run(16000, 5);
    for (uint32_t nic = 1; nic <= 5; nic++) {
        assert_int_equal(asked[nic][0], 16);
        assert_int_equal(asked[nic][1], 16);
    }
    p->job = false; /* its class is not another one */
    memset(asked, 0, sizeof(asked));
    run(10000, 5);
    assert_int_equal(asked[3][0], 20);
    assert_int_equal(asked[3][1], 0);
}

static void what_is_asked_has_a_ceiling(void **state)
{
    uint32_t peers = 0, all = 0;
    (void)state;
    run(20000, PORT_PROBE_PEERS);
    for (uint32_t nic = 1; nic <= PORT_PROBE_PEERS; nic++) {
        peers += asked[nic][0] > 0;
        all += asked[nic][0] + asked[nic][1];
        assert_non_null(port_probe_find(p, (struct nic_id){nic}));
    }
    assert_int_equal(peers, PORT_PROBE_ASKED);
    assert_int_equal(all, 200);
    tell(PORT_PROBE_PEERS + 1, 1); /* no room */
    assert_null(port_probe_find(p, (struct nic_id){PORT_PROBE_PEERS + 1}));
    run(30000, 20); /* the others say no more */
    assert_null(port_probe_find(p, (struct nic_id){30}));
    tell(PORT_PROBE_PEERS + 1, 1);
    assert_non_null(port_probe_find(p, (struct nic_id){PORT_PROBE_PEERS + 1}));
}

/* Whatever the spans and the clocks: the truth is never further away than the half-width. */
static void the_truth_is_within_the_half_width(void **state)
{
    struct port_delay d;
    (void)state;
    for (int round = 0; round < 200; round++) {
        for (int way = 0; way < 2; way++) {
            for (int direction = 0; direction < 2; direction++) {
                delay_ns[way][direction] = (int64_t)prng_below(&random_, 300000);
            }
        }
        clock_off_ns = (int64_t)prng_below(&random_, 12001) - 6000; /* both bounds together */
        run(4000, 2);
        for (int way = 0; way < 2; way++) {
            for (int direction = 0; direction < 2; direction++) {
                int64_t owd, half;
                assert_true(port_probe_delay(port_probe_find(p, (struct nic_id){1}),
                                             (enum probe_way)way, (enum port_direction)direction,
                                             &d));
                port_delay_owd(&d, &owd, &half);
                assert_true(llabs(owd - delay_ns[way][direction]) <= half);
                assert_true(half < 20000 && owd - half >= 0);
            }
        }
    }
}

static void a_slow_class_is_told_and_is_over(void **state)
{
    struct port_slow slow;
    (void)state;
    clock_off_ns = 5000;
    run(4000, 8);
    assert_false(port_probe_slow(p, &slow));
    delay_ns[PROBE_WAY_JOB][PORT_OUT] += 5 * NS_PER_MS;
    run(2000, 8);
    assert_false(port_probe_slow(p, &slow)); /* once is nothing */
    run(6000, 8);
    assert_true(port_probe_slow(p, &slow));
    assert_int_equal(slow.peers, 8);
    assert_true(llabs(slow.job_ns - 5020000) < 20000 && slow.reference_ns < 60000);
    delay_ns[PROBE_WAY_JOB][PORT_OUT] -= 5 * NS_PER_MS;
    run(8000, 8);
    assert_false(port_probe_slow(p, &slow));
    delay_ns[PROBE_WAY_JOB][PORT_IN] +=
        5 * NS_PER_MS; /* the other way: that is for the peers to tell */
    run(10000, 8);
    assert_false(port_probe_slow(p, &slow));
    delay_ns[0][PORT_OUT] += 5 * NS_PER_MS; /* a slow way is slow for both */
    delay_ns[1][PORT_OUT] += 5 * NS_PER_MS;
    run(10000, 8);
    assert_false(port_probe_slow(p, &slow));
}

/* Stamps that are out by milliseconds tell late, not wrongly. */
static void wide_spans_tell_later(void **state)
{
    struct port_slow slow;
    (void)state;
    width_most_ns = 6 * NS_PER_MS;
    for (int i = 0; i < 60; i++) {
        run(1000, 1);
        assert_false(port_probe_slow(p, &slow));
    }
    delay_ns[PROBE_WAY_JOB][PORT_OUT] += 5 * NS_PER_MS;
    run(20000, 1);
    assert_true(port_probe_slow(p, &slow));
    for (int i = 0; i < 60; i++) {
        run(1000, 1);
        assert_true(port_probe_slow(p, &slow));
    }
    delay_ns[PROBE_WAY_JOB][PORT_OUT] -= 5 * NS_PER_MS;
    run(20000, 1);
    assert_false(port_probe_slow(p, &slow));
}

static void a_class_that_does_not_come(void **state)
{
    struct port_slow slow;
    (void)state;
    run(4000, 4);
    delay_ns[1][PORT_OUT] = -1;
    run(10000, 4);
    assert_true(port_probe_slow(p, &slow));
    assert_int_equal(slow.job_ns, -1);
    assert_true(port_probe_find(p, (struct nic_id){2})->ways[PROBE_WAY_JOB].lost >= 8);
    delay_ns[1][PORT_OUT] = 20000;
    run(6000, 4);
    assert_false(port_probe_slow(p, &slow));
    delay_ns[0][PORT_OUT] = delay_ns[1][PORT_OUT] = -1; /* nothing comes: not the class */
    run(10000, 4);
    assert_false(port_probe_slow(p, &slow));
    delay_ns[0][PORT_OUT] = delay_ns[1][PORT_OUT] = 20000;
    run(10000, 4);
    assert_false(port_probe_slow(p, &slow));
}

/* A peer that lies, or is at fault itself, is no reason to blame this host's port. */
static void one_peer_of_several_accuses_nobody(void **state)
{
    struct port_slow slow;
    (void)state;
    liar = 3;
    for (int i = 0; i < 2; i++) {
        run(15000, 4);
        assert_false(port_probe_slow(p, &slow));
        assert_true(i == 0 ? port_probe_find(p, (struct nic_id){3})->slow
                           : port_probe_find(p, (struct nic_id){3})->gone);
        liar_loses = true;
    }
    run(15000, 1); /* the others are forgotten, and its word is all there is: no better one */
    liar = 1;
    run(15000, 1);
    assert_true(port_probe_slow(p, &slow));
}

/* Packets that are lost in both classes alike say nothing of a class. */
static void loss_in_both_classes_is_no_fault_of_one(void **state)
{
    struct port_question q;
    struct port_slow slow;
    (void)state;
    for (int i = 0; i < 36000; i++) { /* an hour */
        now = mono_add(now, span_ms(100));
        if (i % 10 == 0) {
            tell(1, 0x101);
        }
        if (port_probe_next(p, now, &q) && prng_below(&random_, 100) >= 15) {
            exchange(&q);
        }
        assert_false(port_probe_slow(p, &slow));
    }
}

/* The operator names another class: what was seen of the one before is no finding of the new one. */
static void another_class_begins_anew(void **state)
{
    struct port_slow slow;
    (void)state;
    delay_ns[PROBE_WAY_JOB][PORT_OUT] += 5 * NS_PER_MS;
    run(10000, 2);
    assert_true(port_probe_slow(p, &slow));
    port_probe_job(p, true);
    assert_false(port_probe_slow(p, &slow));
    run(10000, 2);
    assert_true(port_probe_slow(p, &slow));
    port_probe_job(p, false);
    run(10000, 2);
    assert_false(port_probe_slow(p, &slow));
}

static bool may_answer(uint32_t nic, uint32_t exchange, uint8_t way)
{
    const struct probe_ud ud = {.exchange = exchange, .way = way};
    const bool is_new = port_probe_is_new(p, (struct nic_id){nic}, &ud);
    const bool may = port_probe_may_answer(p, now, (struct nic_id){nic}, &ud);

    assert_true(is_new || !may);
    assert_false(port_probe_is_new(p, (struct nic_id){nic}, &ud)); /* nor does its herald count */
    return may;
}

/* What is sent again is not answered again, and nobody uses up what others may ask. */
static void a_question_is_answered_once(void **state)
{
    uint32_t answered = 0;
    (void)state;
    tell(1, 7);
    tell(2, 8);
    assert_true(may_answer(1, UINT32_MAX, PROBE_WAY_JOB));
    assert_false(may_answer(1, UINT32_MAX, PROBE_WAY_JOB));
    assert_false(may_answer(1, UINT32_MAX - 1, PROBE_WAY_JOB));
    assert_true(may_answer(1, 0, PROBE_WAY_JOB)); /* it counts on */
    assert_true(may_answer(1, UINT32_MAX, PROBE_WAY_REFERENCE));
    assert_false(may_answer(3, 1, PROBE_WAY_JOB)); /* a stranger */
    for (uint32_t i = 1; i < 1000; i++) {
        answered += may_answer(1, i, PROBE_WAY_JOB);
    }
    assert_in_range(answered, 10, 20);
    assert_true(may_answer(2, 5, PROBE_WAY_JOB));
    now = mono_add(now, span_s(1));
    assert_true(may_answer(1, 1000, PROBE_WAY_JOB));
}

/* Who says each time that its queue pair is another one has no more answers by it. */
static void a_new_queue_pair_brings_no_answers(void **state)
{
    uint32_t answered = 0;
    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        const struct probe_ud ud = {.exchange = 5, .way = PROBE_WAY_JOB};
        tell(1, 7 + i % 2);
        answered += port_probe_may_answer(p, now, (struct nic_id){1}, &ud);
    }
    assert_in_range(answered, 10, 20);
}

/* What was recorded of a queue pair's life, of either end's, counts in no other: a question of before could forbid all of now. */
static void another_life_says_nothing(void **state)
{
    const struct nic_id peer = {1}, stranger = {3};
    const struct probe_ud ud = {.from_key = 1, .to_key = OWN_KEY};
    struct probe_ud other = ud;
    (void)state;
    tell(1, 7);
    assert_true(port_probe_is_between(p, peer, &ud));
    assert_false(port_probe_is_between(p, stranger, &ud));
    other.from_key = 2; /* the peer's agent was started anew */
    assert_false(port_probe_is_between(p, peer, &other));
    other = ud;
    other.to_key = OWN_KEY - 1; /* or this one */
    assert_false(port_probe_is_between(p, peer, &other));
}

/* A moment at the end of what can be told is a lie, and no sum that overflows. */
static void moments_from_nowhere_are_no_delay(void **state)
{
    struct port_question q;
    struct port_delay d;
    (void)state;
    for (int i = 0; i < 40; i++) {
        tell(1, 7);
        now = mono_add(now, span_ms(100));
        if (port_probe_next(p, now, &q)) {
            const struct port_moment m = span(now.ns, 0);
            struct port_moment far = m;
            far.earliest.ns = i % 2 == 0 ? -4000000000000000000 : 4000000000000000000;
            port_probe_on_left(p, q.exchange, &m);
            assert_true(port_probe_on_answer(p, q.nic, q.exchange, &far, &m));
            assert_true(port_probe_on_answer_left(p, now, q.nic, q.exchange, &far));
        }
    }
    assert_false(
        port_probe_delay(port_probe_find(p, (struct nic_id){1}), PROBE_WAY_JOB, PORT_OUT, &d));
}

/* An end that needs 0.7 ms to wake up is told so long before, and not for ever. */
static void a_herald_leaves_as_early_as_it_has_to(void **state)
{
    struct port_question q;
    uint32_t late = 0, early = 0;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        const int64_t wake_ns = i < 500 ? 700000 : 20000;
        tell(1, 7);
        now = mono_add(now, span_ms(100));
        if (!port_probe_next(p, now, &q)) {
            continue;
        }
        struct port_moment there = span(now.ns, 0);
        const uint32_t *herald_ns = &port_probe_find(p, q.nic)->herald_ns;
        const bool is_late = *herald_ns < wake_ns;
        there.width_ns = is_late ? 10000000 : 3000;
        late += is_late;
        early += *herald_ns > 2 * wake_ns && i < 500;
        port_probe_on_left(p, q.exchange, &there);
        assert_true(port_probe_on_answer(p, q.nic, q.exchange, &there, &there));
        assert_true(port_probe_on_answer_left(p, now, q.nic, q.exchange, &there));
        assert_in_range(*herald_ns, PORT_HERALD_NS, PORT_HERALD_NS_MOST);
    }
    assert_in_range(late, 3, 30);
    assert_int_equal(early, 0);
    assert_int_equal(port_probe_find(p, (struct nic_id){1})->herald_ns, PORT_HERALD_NS);
}

static void what_does_not_belong_is_dropped(void **state)
{
    const struct nic_id peer = {1}, other = {2};
    struct port_question q = {0};
    struct port_delay d;
    (void)state;
    tell(1, 7);
    tell(2, 8);
    while (!port_probe_next(p, now, &q) || !nic_id_equal(q.nic, peer)) {
        now = mono_add(now, span_ms(10));
    }
    const struct port_moment m = span(now.ns, 0);
    struct port_moment unknown = m, elsewhere = m;
    unknown.bound_ns = PROBE_BOUND_NONE;
    elsewhere.timeline = 6;
    port_probe_on_left(p, q.exchange, &m);
    assert_false(port_probe_on_answer(p, other, q.exchange, &m, &m));
    assert_false(port_probe_on_answer(p, peer, q.exchange + 1, &m, &m));
    assert_false(port_probe_on_answer_left(p, now, peer, q.exchange, &m)); /* before the answer */
    assert_true(port_probe_on_answer(p, peer, q.exchange, &unknown, &m));
    assert_false(port_probe_on_answer_left(p, now, other, q.exchange, &m));
    assert_true(port_probe_on_answer_left(p, now, peer, q.exchange, &m));
    assert_false(port_probe_delay(port_probe_find(p, peer), (enum probe_way)q.way, PORT_OUT, &d));
    do { /* times of two timelines compare with nothing */
        now = mono_add(now, span_ms(100));
    } while (!port_probe_next(p, now, &q) || !nic_id_equal(q.nic, peer));
    port_probe_on_left(p, q.exchange, &m);
    assert_true(port_probe_on_answer(p, peer, q.exchange, &elsewhere, &m));
    assert_true(port_probe_on_answer_left(p, now, peer, q.exchange, &elsewhere));
    assert_false(port_probe_delay(port_probe_find(p, peer), (enum probe_way)q.way, PORT_OUT, &d));
}

/* A peer's agent was started anew: what was measured of its old queue pair is over, and what is under way. */
static void another_queue_pair_begins_anew(void **state)
{
    struct port_question q;
    struct port_delay d;
    (void)state;
    run(4000, 1);
    do {
        now = mono_add(now, span_ms(10));
    } while (!port_probe_next(p, now, &q));
    const struct port_moment m = span(now.ns, 0);
    port_probe_on_left(p, q.exchange, &m);
    tell(1, 0x999);
    assert_false(port_probe_on_answer(p, q.nic, q.exchange, &m, &m));
    assert_false(port_probe_delay(port_probe_find(p, q.nic), PROBE_WAY_JOB, PORT_OUT, &d));
    do {
        now = mono_add(now, span_ms(10));
    } while (!port_probe_next(p, now, &q));
    assert_int_equal(q.at.qp, 0x999);
}

/* However many ports there are, and whoever sends heralds: all waiting is a hundredth of the time. */
static void waiting_is_a_hundredth(void **state)
{
    struct port_waiting w = {.share = 100};
    int64_t waited_ns = 0;

    (void)state;
    const struct mono begin_at = now;
    w.at = now;
    for (uint32_t i = 0; i < 1000000; i++) { /* 100 s: asked ten times a millisecond */
        now = mono_add(now, span_us(100));
        if (port_may_wait(&w, now)) {
            port_waited(&w, 3 * NS_PER_MS);
            waited_ns += 3 * NS_PER_MS;
        }
    }
    const int64_t all_ns = mono_sub(now, begin_at).ns;
    assert_true(waited_ns <= all_ns / 100 + 3 * NS_PER_MS && waited_ns > all_ns / 110);
    now = mono_add(now, span_s(1000)); /* nothing was asked for long: no burst */
    assert_true(port_may_wait(&w, now));
    assert_true(w.left_ns <= PORT_WAIT_KEPT_NS);
    now = mono_add(now, span_ns(-NS_PER_S)); /* nor is a clock that went back a reason */
    assert_true(port_may_wait(&w, now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everybody_told_is_asked_in_both_classes, begin, end),
        cmocka_unit_test_setup_teardown(what_is_asked_has_a_ceiling, begin, end),
        cmocka_unit_test_setup_teardown(the_truth_is_within_the_half_width, begin, end),
        cmocka_unit_test_setup_teardown(a_slow_class_is_told_and_is_over, begin, end),
        cmocka_unit_test_setup_teardown(wide_spans_tell_later, begin, end),
        cmocka_unit_test_setup_teardown(a_class_that_does_not_come, begin, end),
        cmocka_unit_test_setup_teardown(one_peer_of_several_accuses_nobody, begin, end),
        cmocka_unit_test_setup_teardown(loss_in_both_classes_is_no_fault_of_one, begin, end),
        cmocka_unit_test_setup_teardown(another_class_begins_anew, begin, end),
        cmocka_unit_test_setup_teardown(a_new_queue_pair_brings_no_answers, begin, end),
        cmocka_unit_test_setup_teardown(a_question_is_answered_once, begin, end),
        cmocka_unit_test_setup_teardown(another_life_says_nothing, begin, end),
        cmocka_unit_test_setup_teardown(moments_from_nowhere_are_no_delay, begin, end),
        cmocka_unit_test_setup_teardown(a_herald_leaves_as_early_as_it_has_to, begin, end),
        cmocka_unit_test_setup_teardown(what_does_not_belong_is_dropped, begin, end),
        cmocka_unit_test_setup_teardown(another_queue_pair_begins_anew, begin, end),
        cmocka_unit_test_setup_teardown(waiting_is_a_hundredth, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
