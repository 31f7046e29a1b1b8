/* test_port_probe.c: a port's questions, their results, and when a class counts as slower: in a world that answers with chosen
 * delays. */
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
static int64_t clock_off_ns;   /* lead of the peers' fleet time */
static uint32_t asked[PORT_PROBE_PEERS + 1][2];
static struct prng random_;
static uint32_t width_most_ns; /* of spans */

static uint32_t liar; /* the NIC that reports 5 ms more in the job's class, or its loss; 0: none */
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

/* A span that contains the truth at any place. */
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
    p->job = false; /* its class is the same one */
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
    run(30000, 20); /* the others send no more */
    assert_null(port_probe_find(p, (struct nic_id){30}));
    tell(PORT_PROBE_PEERS + 1, 1);
    assert_non_null(port_probe_find(p, (struct nic_id){PORT_PROBE_PEERS + 1}));
}

/* For any spans and clocks: the truth is never further away than the half-width. */
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
    assert_false(port_probe_slow(p, &slow)); /* once isn't enough */
    run(6000, 8);
    assert_true(port_probe_slow(p, &slow));
    assert_int_equal(slow.peers, 8);
    assert_true(llabs(slow.job_ns - 5020000) < 20000 && slow.reference_ns < 60000);
    delay_ns[PROBE_WAY_JOB][PORT_OUT] -= 5 * NS_PER_MS;
    run(8000, 8);
    assert_false(port_probe_slow(p, &slow));
    delay_ns[PROBE_WAY_JOB][PORT_IN] +=
        5 * NS_PER_MS; /* the other direction: the peers report that */
    run(10000, 8);
    assert_false(port_probe_slow(p, &slow));
    delay_ns[0][PORT_OUT] += 5 * NS_PER_MS; /* a slow way is slow for both */
    delay_ns[1][PORT_OUT] += 5 * NS_PER_MS;
    run(10000, 8);
    assert_false(port_probe_slow(p, &slow));
}

/* If stamps are wrong by milliseconds, the verdict comes later, but it isn't wrong. */
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

/* A peer that lies, or is at fault itself, doesn't accuse this host's port. */
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

/* Losses in both classes are no fault of one class. */
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

/* The operator names another class: values of the old class are no finding about the new one. */
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

/* A repeated question is not answered again, and it uses up no other peer's answers. */
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

/* A peer that reports a new queue pair each time gets no more answers by that. */
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

/* A recorded packet belongs to one life of a queue pair, at either end. In another life it doesn't count: an old question could
 * otherwise forbid all present ones. */
static void another_life_says_nothing(void **state)
{
    const struct nic_id peer = {1}, stranger = {3};
    const struct probe_ud ud = {.from_key = 1, .to_key = OWN_KEY};
    struct probe_ud other = ud;
    (void)state;
    tell(1, 7);
    assert_true(port_probe_is_between(p, peer, &ud));
    assert_false(port_probe_is_between(p, stranger, &ud));
    other.from_key = 2; /* the peer's agent restarted */
    assert_false(port_probe_is_between(p, peer, &other));
    other = ud;
    other.to_key = OWN_KEY - 1; /* or this one */
    assert_false(port_probe_is_between(p, peer, &other));
}

/* A moment at the end of the possible range is a lie. No sum may overflow. */
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

/* An end that needs 0.7 ms to wake up gets its herald so long before, but not for ever. */
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
    do { /* times of two timelines can't be compared */
        now = mono_add(now, span_ms(100));
    } while (!port_probe_next(p, now, &q) || !nic_id_equal(q.nic, peer));
    port_probe_on_left(p, q.exchange, &m);
    assert_true(port_probe_on_answer(p, peer, q.exchange, &elsewhere, &m));
    assert_true(port_probe_on_answer_left(p, now, peer, q.exchange, &elsewhere));
    assert_false(port_probe_delay(port_probe_find(p, peer), (enum probe_way)q.way, PORT_OUT, &d));
}

/* A peer's agent restarted: measurements of its old queue pair are over, and so are open questions. */
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

/* With any number of ports, and any senders of heralds: all waiting takes a hundredth of the time. */
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
    now = mono_add(now, span_s(1000)); /* no question for long: no burst */
    assert_true(port_may_wait(&w, now));
    assert_true(w.left_ns <= PORT_WAIT_KEPT_NS);
    now = mono_add(now, span_ns(-NS_PER_S)); /* nor after a clock went back */
    assert_true(port_may_wait(&w, now));
}

/* ---- to the nanosecond ---- */

/* The next question, 100 ms after the one before. Its answer has spans without width. < 0: it is lost. */
static struct port_question turn(int64_t reference_ns, int64_t job_ns)
{
    struct port_question q;

    now = mono_add(now, span_ms(100));
    tell(1, 7);
    assert_true(port_probe_next(p, now, &q));
    const int64_t out_ns = q.way == PROBE_WAY_JOB ? job_ns : reference_ns;
    const struct port_moment left = {{now.ns}, 0, 3000, 5}, there = {{now.ns + out_ns}, 0, 3000, 5};
    port_probe_on_left(p, q.exchange, &left);
    if (out_ns >= 0) {
        assert_true(port_probe_on_answer(p, q.nic, q.exchange, &there, &there));
        assert_true(port_probe_on_answer_left(p, now, q.nic, q.exchange, &there));
    }
    return q;
}

/* One question of each class; returns whether the class is slow then. */
static bool both(int64_t reference_ns, int64_t job_ns)
{
    struct port_slow slow;

    assert_int_equal(turn(reference_ns, job_ns).way, PROBE_WAY_REFERENCE);
    assert_int_equal(turn(reference_ns, job_ns).way, PROBE_WAY_JOB);
    return port_probe_slow(p, &slow);
}

static void more_than_half_a_millisecond_three_times_is_slow(void **state)
{
    struct port_slow slow;
    (void)state;
    for (int i = 0; i < 9; i++) {
        assert_false(both(20000, 520000));
    }
    for (int i = 0; i < 2; i++) {
        assert_false(both(20000, 520001));
    }
    assert_false(both(20000, 520000)); /* an even number: they begin again */
    for (int i = 0; i < 2; i++) {
        assert_false(both(20000, 520001));
    }
    assert_true(both(20000, 520003));
    assert_true(port_probe_slow(p, &slow));
    assert_int_equal(slow.job_ns, 520003);
    assert_int_equal(slow.reference_ns, 20000);
    for (int i = 0; i < 2; i++) {
        assert_true(both(20000, 520000));
    }
    assert_true(both(20000, 520001));
    for (int i = 0; i < 2; i++) {
        assert_true(both(20000, 10000));
    }
    assert_false(both(20000, 520000));
}

/* If a clock is behind, delays look negative: reported values aren't. */
static void a_delay_that_is_told_is_not_negative(void **state)
{
    struct port_slow slow;
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct port_question q;
        for (int way = 0; way < 2; way++) {
            now = mono_add(now, span_ms(100));
            tell(1, 7);
            assert_true(port_probe_next(p, now, &q));
            const struct port_moment left = {{now.ns + 30000}, 0, 3000, 5},
                                     there = {{now.ns + (way == 1 ? 900000 : 10000)}, 0, 3000, 5};
            port_probe_on_left(p, q.exchange, &left);
            assert_true(port_probe_on_answer(p, q.nic, q.exchange, &there, &there));
            assert_true(port_probe_on_answer_left(p, now, q.nic, q.exchange, &left));
        }
    }
    assert_true(port_probe_slow(p, &slow));
    assert_int_equal(slow.reference_ns, 0);
    assert_int_equal(slow.job_ns, 890000);
}

/* None of six came, but the reference of each did: with a second's wait that takes 2.4 s. Then the class counts as gone. */
static void a_class_is_gone_after_six(void **state)
{
    struct port_slow slow;
    int pairs = 0;
    (void)state;
    assert_false(both(20000, 30000));
    while (!both(25000, -1)) {
        pairs++;
        assert_true(pairs < 100);
    }
    assert_in_range(pairs, 10, 12);
    assert_int_equal(port_probe_find(p, (struct nic_id){1})->lost_run, 6);
    assert_true(port_probe_slow(p, &slow));
    assert_int_equal(slow.job_ns, -1);
    assert_in_range(slow.reference_ns, 24000, 26000);
    for (int i = 0; i < 2; i++) {
        assert_true(both(20000, 20000));
    }
    for (int i = 0; i < 12; i++) { /* open ones are late */
        (void)both(20000, 20000);
    }
    assert_false(port_probe_slow(p, &slow));
}

/* A reference of six seconds ago can't be compared with a present value. */
static void an_old_reference_compares_with_nothing(void **state)
{
    (void)state;
    assert_false(both(20000, 30000));
    for (int i = 0; i < 26; i++) { /* 5.2 s */
        assert_false(both(-1, 30000));
    }
    for (int i = 0; i < 20; i++) {
        assert_false(both(-1, 900000));
    }
    assert_false(both(20000, 900000));
    assert_false(both(20000, 900000));
    assert_true(both(20000, 900000));
    assert_true(both(-1, 30000)); /* one of a moment ago can */
    assert_true(both(-1, 30000));
    assert_false(both(-1, 30000));
}

/* Peers in different states: most of them decide whether it is slow, the worst one by how much. */
static void the_worst_of_most_is_told(void **state)
{
    struct port_slow slow;
    (void)state;
    for (uint32_t nic = 1; nic <= 4; nic++) {
        tell(nic, 7);
        for (int way = 0; way < 2; way++) {
            p->peers[nic - 1].ways[way].count = 1;
        }
        p->peers[nic - 1].ways[PROBE_WAY_REFERENCE].delays[PORT_OUT][0] =
            (struct port_delay){.least_ns = 1000 * nic, .most_ns = 1000 * nic};
    }
    p->peers[1].slow = p->peers[2].slow = true;
    p->peers[1].slow_job_ns = 700000;
    p->peers[2].slow_job_ns = 800000;
    p->peers[2].slow_reference_ns = 5;
    assert_false(port_probe_slow(p, &slow)); /* two of four */
    p->peers[0].slow = true;
    p->peers[0].slow_job_ns = 600000;
    assert_true(port_probe_slow(p, &slow));
    assert_int_equal(slow.peers, 3);
    assert_int_equal(slow.nic.index, 3);
    assert_int_equal(slow.job_ns, 800000);
    assert_int_equal(slow.reference_ns, 5);
    p->peers[1].slow = false;
    p->peers[1].gone = true;
    assert_true(port_probe_slow(p, &slow));
    assert_int_equal(slow.nic.index, 2);
    assert_int_equal(slow.job_ns, -1);
    assert_int_equal(slow.reference_ns, 2000);
    p->peers[0].used = false; /* and peers that are gone don't count */
    assert_true(port_probe_slow(p, &slow));
    assert_int_equal(slow.peers, 2);
    p->peers[2].used = false;
    assert_false(port_probe_slow(p, &slow));
}

/* A herald or the answer itself: the first of the two shows that the answer comes, once. */
static void it_is_told_once_that_an_answer_comes(void **state)
{
    const struct nic_id peer = {1}, other = {2};
    struct port_question q;
    (void)state;
    tell(2, 8);
    tell(1, 7);
    do {
        now = mono_add(now, span_ms(100));
    } while (!port_probe_next(p, now, &q) || !nic_id_equal(q.nic, peer));
    const struct port_moment m = span(now.ns, 0);
    assert_false(port_probe_on_coming(p, other, q.exchange));
    assert_false(port_probe_on_coming(p, peer, q.exchange + 1));
    assert_true(port_probe_on_coming(p, peer, q.exchange));
    assert_false(port_probe_on_coming(p, peer, q.exchange));
    do {
        now = mono_add(now, span_ms(100));
    } while (!port_probe_next(p, now, &q) || !nic_id_equal(q.nic, peer));
    assert_true(port_probe_on_answer(p, peer, q.exchange, &m, &m));
    assert_false(port_probe_on_coming(p, peer, q.exchange));
}

/* A packet that the own port could not send isn't lost. */
static void what_was_not_sent_is_not_lost(void **state)
{
    struct port_question q;
    const struct port_peer *peer;
    (void)state;
    for (int i = 0; i < 40; i++) {
        now = mono_add(now, span_ms(100));
        tell(1, 7);
        assert_true(port_probe_next(p, now, &q));
        const struct port_moment m = span(now.ns, 0);
        port_probe_on_not_sent(p, q.exchange);
        port_probe_on_not_sent(p, q.exchange); /* it is over */
        port_probe_on_left(p, q.exchange, &m);
        assert_false(port_probe_on_answer(p, q.nic, q.exchange, &m, &m));
    }
    peer = port_probe_find(p, (struct nic_id){1});
    for (int way = 0; way < 2; way++) {
        assert_int_equal(peer->ways[way].asked, 0);
        assert_int_equal(peer->ways[way].lost, 0);
    }
    assert_int_equal(peer->lost_run, 0);
}

/* Of the kept delays the best known one and the newest. Eight are kept. */
static void the_best_known_and_the_newest_delay(void **state)
{
    static const uint32_t widths[] = {5000, 40, 6000, 41, 7000};
    struct port_delay best, last;
    struct port_question q;
    (void)state;
    p->job = false;
    tell(1, 7);
    assert_false(port_probe_newest(port_probe_find(p, (struct nic_id){1}), PROBE_WAY_REFERENCE,
                                   PORT_OUT, &last));
    for (uint32_t i = 0; i < 12; i++) {
        const uint32_t width = i < ARRAY_COUNT(widths) ? widths[i] : 8000 + i;
        now = mono_add(now, span_ms(100));
        tell(1, 7);
        assert_true(port_probe_next(p, now, &q));
        const struct port_moment left = {{now.ns}, 10, 300, 5},
                                 there = {{now.ns + 20000}, width, 700, 5},
                                 back = {{now.ns + 30000}, 20, 300, 5};
        port_probe_on_left(p, q.exchange, &left);
        assert_true(port_probe_on_answer(p, q.nic, q.exchange, &there, &back));
        assert_true(port_probe_on_answer_left(p, now, q.nic, q.exchange, &there));
        const struct port_peer *peer = port_probe_find(p, q.nic);
        assert_true(port_probe_newest(peer, PROBE_WAY_REFERENCE, PORT_OUT, &last));
        assert_int_equal(last.exchange, q.exchange);
        assert_int_equal(last.least_ns, 20000 - 10);
        assert_int_equal(last.most_ns, 20000 + width);
        assert_int_equal(last.error_ns, 1000);
        assert_true(port_probe_newest(peer, PROBE_WAY_REFERENCE, PORT_IN, &last));
        assert_int_equal(last.least_ns, 10000 - width);
        assert_int_equal(last.most_ns, 10000 + 20);
        assert_true(port_probe_delay(peer, PROBE_WAY_REFERENCE, PORT_OUT, &best));
        assert_int_equal(best.most_ns - 20000, i < 1 ? 5000 : i < 9 ? 40 : i < 11 ? 41 : 7000);
    }
}

static void a_delay_is_a_middle_and_how_far_it_may_be_off(void **state)
{
    static const struct {
        struct port_delay d;
        int64_t owd, half;
    } cases[] = {{{1000, 3000, 0, 0}, 2000, 1000},
                 {{1000, 3000, 200, 0}, 2000, 1200},
                 {{100, 301, 0, 0}, 201, 101},
                 {{-100, 300, 50, 0}, 175, 175},
                 {{0, 0, 0, 0}, 0, 0},
                 {{-500, -400, 50, 0}, 0, 0},
                 {{-500, -400, 401, 0}, 1, 1}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        int64_t owd, half;
        port_delay_owd(&cases[i].d, &owd, &half);
        assert_int_equal(owd, cases[i].owd);
        assert_int_equal(half, cases[i].half);
    }
}

/* Stamps may be ten seconds apart, but no more. Without a known bound or timeline of the clock there is no delay. */
static void what_no_clock_can_tell_is_no_delay(void **state)
{
    static const struct {
        int64_t apart_ns;
        uint32_t bound;
        uint64_t timeline;
        bool known;
    } cases[] = {{10 * NS_PER_S, 7, 5, true},
                 {10 * NS_PER_S + 1, 7, 5, false},
                 {-10 * NS_PER_S, 7, 5, true},
                 {-10 * NS_PER_S - 1, 7, 5, false},
                 {0, PROBE_BOUND_NONE, 5, false},
                 {0, PROBE_BOUND_NONE - 1, 5, true},
                 {0, 7, 0, false},
                 {0, 7, 6, false}};
    struct port_question q;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        now = mono_add(now, span_ms(100));
        tell(1, 7 + (uint32_t)i); /* another queue pair: nothing is known yet */
        assert_true(port_probe_next(p, now, &q));
        const struct port_moment m = {{now.ns}, 0, 7, 5}, there = {{now.ns + cases[i].apart_ns},
                                                                   0,
                                                                   cases[i].bound,
                                                                   cases[i].timeline};
        struct port_delay d;
        port_probe_on_left(p, q.exchange, &m);
        assert_true(port_probe_on_answer(p, q.nic, q.exchange, &there, &m));
        assert_true(port_probe_on_answer_left(p, now, q.nic, q.exchange, &m));
        assert_int_equal(
            port_probe_newest(port_probe_find(p, q.nic), (enum probe_way)q.way, PORT_OUT, &d),
            cases[i].known);
        assert_true(!cases[i].known || d.error_ns == (cases[i].bound == 7 ? 14 : UINT32_MAX));
    }
    now = mono_add(now, span_ms(100));
    assert_true(port_probe_next(p, now, &q)); /* it wasn't reported when the question left */
    const struct port_moment m = {{now.ns}, 0, 7, 5};
    struct port_delay d;
    tell(1, 99);
    now = mono_add(now, span_ms(100));
    assert_true(port_probe_next(p, now, &q));
    assert_true(port_probe_on_answer(p, q.nic, q.exchange, &m, &m));
    assert_true(port_probe_on_answer_left(p, now, q.nic, q.exchange, &m));
    assert_false(port_probe_newest(port_probe_find(p, q.nic), (enum probe_way)q.way, PORT_OUT, &d));
}

/* Twice as early each time the other end was too late, a 64th less if it wasn't. If packets have stamps, never. */
static void a_herald_moves_by_steps(void **state)
{
    static const struct {
        uint32_t width, herald;
    } steps[] = {{150000, 150000},  {150001, 300000},   {300001, 600000},   {600000, 590625},
                 {590626, 1181250}, {1181251, 2000000}, {2000001, 2000000}, {3, 1968750}};
    struct probe_port at = {.qp = 7, .key = 1, .global = true};
    struct port_question q;
    (void)state;
    for (int stamps = 0; stamps < 2; stamps++) {
        at.stamps = stamps == 1;
        for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
            now = mono_add(now, span_ms(100));
            port_probe_on_port(p, now, (struct nic_id){1}, &at);
            assert_true(port_probe_next(p, now, &q));
            const struct port_moment m = {{now.ns}, steps[i].width, 7, 5};
            assert_true(port_probe_on_answer(p, q.nic, q.exchange, &m, &m));
            assert_int_equal(port_probe_find(p, q.nic)->herald_ns,
                             stamps == 1 ? PORT_HERALD_NS : steps[i].herald);
        }
    }
}

/* Each new address of a port counts: earlier values belong to another port. */
static void another_port_is_another_peer(void **state)
{
    const struct probe_port was = {.qp = 7, .key = 1, .lid = 3, .global = true, .gid = {1, 2}};
    (void)state;
    for (int i = 0; i < 7; i++) {
        struct probe_port is = was;
        is.qp += i == 1;
        is.key += i == 2;
        is.lid = (uint16_t)(is.lid + (i == 3));
        is.global = i != 4;
        is.stamps = i == 5;
        is.gid[15] = i == 6;
        port_probe_on_port(p, now, (struct nic_id){1}, &was);
        p->peers[0].slow_run = 2;
        p->peers[0].asked = true;
        port_probe_on_port(p, now, (struct nic_id){1}, &is);
        assert_int_equal(p->peers[0].slow_run, i == 0 ? 2 : 0);
        assert_true(p->peers[0].asked);
        assert_int_equal(p->peers[0].at.key, is.key);
    }
}

/* Ten seconds after its last address, and not later. */
static void who_is_silent_for_ten_seconds_is_forgotten(void **state)
{
    struct port_question q;
    (void)state;
    tell(1, 7);
    now = mono_add(now, span_s(10));
    assert_true(port_probe_next(p, now, &q));
    assert_non_null(port_probe_find(p, q.nic));
    now = mono_add(now, span_ms(100));
    assert_false(port_probe_next(p, now, &q));
    assert_null(port_probe_find(p, (struct nic_id){1}));
}

/* Twenty of each class within a second, whoever asks. After a clock was set back a new second begins. */
static void answers_of_a_second(void **state)
{
    uint32_t answered[2] = {0, 0};
    (void)state;
    tell(1, 7);
    for (uint32_t i = 1; i <= 30; i++) {
        for (uint8_t way = 0; way < 2; way++) {
            answered[way] += may_answer(1, i, way);
        }
    }
    assert_int_equal(answered[0], 20);
    assert_int_equal(answered[1], 20);
    now = mono_add(now, span_ns(NS_PER_S - 1));
    assert_false(may_answer(1, 31, PROBE_WAY_JOB));
    now = mono_add(now, span_ns(1));
    assert_true(may_answer(1, 32, PROBE_WAY_JOB));
    assert_true(may_answer(1, 32, PROBE_WAY_REFERENCE));
    for (uint32_t i = 33; i < 60; i++) {
        (void)may_answer(1, i, PROBE_WAY_JOB);
    }
    now = mono_add(now, span_ns(-NS_PER_S));
    assert_true(may_answer(1, 60, PROBE_WAY_JOB));
    const struct probe_ud strange = {.exchange = 99, .way = PROBE_WAY_JOB + 1};
    assert_false(port_probe_is_new(p, (struct nic_id){1}, &strange));
}

/* An open answer to a question of the old class doesn't count. One of the reference class does. */
static void a_change_of_class_ends_its_questions_alone(void **state)
{
    struct port_question q[2];
    (void)state;
    tell(1, 7);
    for (int i = 0; i < 2; i++) {
        now = mono_add(now, span_ms(100));
        assert_true(port_probe_next(p, now, &q[i]));
    }
    assert_int_equal(q[1].way, PROBE_WAY_JOB);
    port_probe_job(p, true);
    const struct port_moment m = span(now.ns, 0);
    assert_true(port_probe_on_answer(p, q[0].nic, q[0].exchange, &m, &m));
    assert_false(port_probe_on_answer(p, q[1].nic, q[1].exchange, &m, &m));
}

/* A late call makes no burst, and a clock that was set back doesn't stop the questions. */
static void questions_are_paced(void **state)
{
    struct port_question q;
    (void)state;
    tell(1, 7);
    assert_true(port_probe_next(p, now, &q));
    now = mono_add(now, span_ns(100 * NS_PER_MS - 1));
    assert_false(port_probe_next(p, now, &q));
    now = mono_add(now, span_ns(1));
    assert_true(port_probe_next(p, now, &q));
    now = mono_add(now, span_s(3));
    assert_true(port_probe_next(p, now, &q));
    assert_false(port_probe_next(p, now, &q));
    now = mono_add(now, span_ns(-NS_PER_S));
    assert_true(port_probe_next(p, now, &q));
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
        cmocka_unit_test_setup_teardown(more_than_half_a_millisecond_three_times_is_slow, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_delay_that_is_told_is_not_negative, begin, end),
        cmocka_unit_test_setup_teardown(a_class_is_gone_after_six, begin, end),
        cmocka_unit_test_setup_teardown(an_old_reference_compares_with_nothing, begin, end),
        cmocka_unit_test_setup_teardown(the_worst_of_most_is_told, begin, end),
        cmocka_unit_test_setup_teardown(it_is_told_once_that_an_answer_comes, begin, end),
        cmocka_unit_test_setup_teardown(what_was_not_sent_is_not_lost, begin, end),
        cmocka_unit_test_setup_teardown(the_best_known_and_the_newest_delay, begin, end),
        cmocka_unit_test_setup_teardown(a_delay_is_a_middle_and_how_far_it_may_be_off, begin, end),
        cmocka_unit_test_setup_teardown(what_no_clock_can_tell_is_no_delay, begin, end),
        cmocka_unit_test_setup_teardown(a_herald_moves_by_steps, begin, end),
        cmocka_unit_test_setup_teardown(another_port_is_another_peer, begin, end),
        cmocka_unit_test_setup_teardown(who_is_silent_for_ten_seconds_is_forgotten, begin, end),
        cmocka_unit_test_setup_teardown(answers_of_a_second, begin, end),
        cmocka_unit_test_setup_teardown(a_change_of_class_ends_its_questions_alone, begin, end),
        cmocka_unit_test_setup_teardown(questions_are_paced, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
