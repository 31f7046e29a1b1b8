/* The detector must tell contention from incast, from an own slow host, and from moving clocks. Jobs whose lanes leave contended
 * paths must not chase each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/traffic/detector.h"
#include "core/traffic/repath.h"

#define LANES 4

/* All lanes are open. A round trip takes 50 us. */
static void begin(struct detector *d)
{
    detector_init(d, (struct mono){0});
    detector_on_rtt(d, span_us(50));
    for (uint32_t i = 0; i < LANES; i++) {
        detector_lane_open(d, (struct mono){0}, i);
    }
}

static void feed(struct detector *d, struct prng *p, int64_t *now, const int64_t *queue_ns,
                 int rounds)
{
    for (int i = 0; i < rounds; i++) {
        *now += 100 * NS_PER_US;
        for (uint32_t lane = 0; lane < LANES; lane++) {
            /* Clocks of both ends differ by a second: only differences count. */
            detector_on_owd(d, (struct mono){*now}, lane,
                            -NS_PER_S + 20000 + (int64_t)prng_below(p, 2000) + queue_ns[lane]);
        }
    }
}

static struct detector_finding found(const int64_t *queue_ns,
                                     const struct detector_context *context)
{
    static const int64_t none[LANES];
    struct detector_finding finding;
    struct detector d;
    struct prng p;
    int64_t now = 0;

    prng_init(&p, 3);
    begin(&d);
    detector_on_rtt(&d, span_us(50000)); /* a lane that was made over a full path */
    detector_judge(&d, (struct mono){now}, context, &finding);
    assert_int_equal(finding.verdict, DETECTOR_UNKNOWN);
    feed(&d, &p, &now, none, 50);
    detector_judge(&d, (struct mono){now}, context, &finding);
    assert_int_equal(finding.verdict, DETECTOR_CLEAR);
    feed(&d, &p, &now, queue_ns, 30);
    detector_judge(&d, (struct mono){now}, context, &finding);
    return finding;
}

static enum detector_verdict judged(const int64_t *queue_ns, const struct detector_context *context,
                                    uint32_t *ret_contended)
{
    const struct detector_finding finding = found(queue_ns, context);

    *ret_contended = finding.contended;
    return finding.verdict;
}

/* Two flows on one path wait twice as long as one. A path that carries a tenth is worse. */
static void test_starved(void **state)
{
    const int64_t shared[LANES] = {400000, 900000, 400000, 400000};
    const int64_t slow[LANES] = {400000, 900000, 400000, 4000000};
    const int64_t idle[LANES] = {0, 0, 4000000, 0};
    const struct detector_context alone = {.peers = 4, .peers_over = 1};

    (void)state;
    assert_int_equal(found(shared, &alone).starved, 0);
    assert_int_equal(found(slow, &alone).contended, 0xa);
    assert_int_equal(found(slow, &alone).starved, 8);
    assert_int_equal(found(idle, &alone).starved, 4);
}

static void test_verdicts(void **state)
{
    const int64_t one[LANES] = {0, 400000, 0, 0}, all[LANES] = {400000, 400000, 400000, 400000};
    const int64_t both[LANES] = {400000, 900000, 400000, 400000}, little[LANES] = {0, 9000, 0, 0};
    const struct detector_context alone = {.peers = 4, .peers_over = 1},
                                  host = {.peers = 4, .peers_over = 4};
    const struct detector_context slow = {.peers = 4, .peers_over = 1, .receiver_slow = true};
    const struct detector_context rack = {
        .peers = 8, .peers_over = 4, .rack_peers = 4, .rack_over = 4};
    uint32_t lanes;

    assert_int_equal(judged(one, &alone, &lanes), DETECTOR_CONTENTION);
    assert_int_equal(lanes, 2);
    assert_int_equal(judged(all, &alone, &lanes), DETECTOR_INCAST);
    assert_int_equal(lanes, 0);
    assert_int_equal(judged(all, &slow, &lanes), DETECTOR_SLOW_RECEIVER);
    assert_int_equal(judged(all, &host, &lanes), DETECTOR_OWN_HOST);
    assert_int_equal(judged(both, &alone, &lanes), DETECTOR_BOTH);
    assert_int_equal(lanes, 2);
    assert_int_equal(judged(all, &rack, &lanes), DETECTOR_CONGESTION);
    assert_int_equal(judged(little, &alone, &lanes), DETECTOR_CLEAR); /* below the limit */
}

/* A clock is set, or both drift apart, while one lane has nearly all traffic: that is no queue. */
static void test_clocks_are_no_contention(void **state)
{
    const struct detector_context alone = {.peers = 1};
    struct detector_finding finding;
    struct detector d;
    int64_t now = 0, shift = 0;

    (void)state;
    begin(&d);
    for (int step = 0; step < 200; step++) {
        now += 200 * NS_PER_MS;
        shift += step < 100 ? 20 * NS_PER_US : 0;            /* 100 ppm */
        shift += step == 110 || step == 150 ? NS_PER_MS : 0; /* set */
        for (int i = 0; i < 10; i++) {
            const uint32_t lane = i < 9 ? 0 : 1 + (uint32_t)step % (LANES - 1);
            now += 2 * NS_PER_MS;
            detector_on_owd(&d, (struct mono){now}, lane, shift + 20000);
            detector_judge(&d, (struct mono){now}, &alone, &finding);
            assert_int_equal(finding.contended, 0);
        }
    }
}

/* Two jobs, each with a lane that may be on path 0 or 1. On the same path they contend. In the end they must be on different
 * paths and stay there, with any seed. */
static void test_jobs_do_not_chase(void **state)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct repath jobs[2];
        int path[2] = {0, 0};
        int64_t apart = -1, now;
        for (uint64_t k = 0; k < 2; k++) {
            repath_init(&jobs[k], seed * 2 + k, (struct mono){0});
        }
        for (now = 0; now < 5 * NS_PER_S; now += 5 * NS_PER_MS) {
            const bool contended = path[0] == path[1];
            const struct detector_finding f = {.verdict =
                                                   contended ? DETECTOR_CONTENTION : DETECTOR_CLEAR,
                                               .contended = contended,
                                               .worst = contended ? 0 : -1,
                                               .excess_ns = contended ? 500000 : 0};
            int move[2];
            for (int k = 0; k < 2; k++) {
                repath_on_acked(&jobs[k], 0, 4);
                move[k] = repath_decide(&jobs[k], (struct mono){now}, &f, 1);
            }
            for (int k = 0; k < 2; k++) {
                path[k] ^= move[k] == 0;
            }
            for (int k = 0; k < 2; k++) {
                if (move[k] == 0) {
                    repath_on_moved(&jobs[k], (struct mono){now}, path[0] == path[1] ? 500000 : 0);
                }
            }
            apart = path[0] != path[1] ? (apart < 0 ? now : apart) : -1;
        }
        assert_true(apart >= 0 && apart <= 3 * NS_PER_S);
        assert_true(jobs[0].count + jobs[1].count <= 16);
    }
}

static void test_repath_is_slow_to_move(void **state)
{
    const struct detector_finding f = {
        .verdict = DETECTOR_CONTENTION, .contended = 2, .worst = 1, .excess_ns = 500000};
    struct repath r;
    int64_t now;

    repath_init(&r, 5, (struct mono){0});
    for (now = 0; now < 49 * NS_PER_MS; now += NS_PER_MS) {
        repath_on_acked(&r, 1, 10);
        assert_int_equal(repath_decide(&r, (struct mono){now}, &f, 2), -1);
    }
    for (; now < NS_PER_S; now += NS_PER_MS) {
        assert_int_equal(repath_decide(&r, (struct mono){now}, &f, 0), -1); /* nowhere better */
    }
    for (; repath_decide(&r, (struct mono){now}, &f, 2) < 0; now += NS_PER_MS) {
        assert_true(now < 3 * NS_PER_S);
    }
    assert_int_equal(repath_decide(&r, (struct mono){now + NS_PER_S}, &f, 2),
                     -1); /* one at a time */
}

/* When lane 1 leaves, while its lanes are both contended and congested. */
static int64_t leaves_after(struct repath *r, int64_t now, uint32_t starved)
{
    const struct detector_finding f = {.verdict = DETECTOR_BOTH,
                                       .contended = 2,
                                       .starved = starved,
                                       .worst = 1,
                                       .excess_ns = 9000000};
    const int64_t began = now;

    for (; now - began < 60 * NS_PER_S; now += NS_PER_MS) {
        repath_on_acked(r, 1, now / NS_PER_MS % 10 == 0);
        if (repath_decide(r, (struct mono){now}, &f, 2) >= 0) {
            return now - began;
        }
    }
    return -1;
}

/* A shared queue can wait, and longer the less a move helped. A starved lane needn't wait. */
static void test_the_starved_leave_at_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct repath r;
        int64_t now = 0;
        repath_init(&r, seed, (struct mono){0});
        for (int i = 0; i < 4; i++) {
            const int64_t took = leaves_after(&r, now, 0);
            assert_in_range(took, 2 * NS_PER_S, 8 * NS_PER_S);
            now += took;
            repath_on_moved(&r, (struct mono){now}, 9000000);
        }
        const int64_t took = leaves_after(&r, now, 2);
        assert_in_range(took, 50 * NS_PER_MS, NS_PER_S);
    }
}

/* All lanes wait alike: that may be one path, so one of them tries another, more and more seldom if none is better. But not
 * because more is sent than before, or because that has become usual. */
static void test_all_lanes_on_one_path(void **state)
{
    const struct detector_context alone = {.peers = 1};
    const int64_t empty[LANES] = {0};
    const int64_t before[LANES] = {500000, 500000, 500000, 500000};
    const int64_t more[LANES] = {1500000, 1500000, 1500000, 1500000};
    const int64_t full[LANES] = {10000000, 10000000, 10000000, 10000000};
    const int64_t one_free[LANES] = {10000000, 0, 10000000, 10000000};
    const int64_t one_less[LANES] = {10000000, 5500000, 10000000, 10000000};
    struct detector_finding f;
    struct detector d;
    struct repath r;
    struct prng p;
    int64_t now = 0, last = 0, tries = 0;

    prng_init(&p, 3);
    begin(&d);
    repath_init(&r, 7, (struct mono){0});
    for (const int64_t end = now + 4 * NS_PER_S; now < end;) {
        feed(&d, &p, &now, empty, 1); /* the queue is empty now and then */
        feed(&d, &p, &now, before, 99);
    }
    assert_int_equal(detector_better(&d, 1, 0), 0);
    for (const int64_t end = now + 3 * NS_PER_S; now < end;) {
        feed(&d, &p, &now, empty, 1);
        feed(&d, &p, &now, more, 99);
        detector_judge(&d, (struct mono){now}, &alone, &f);
        assert_false(f.risen);
        f.alike = false;
        assert_int_equal(repath_decide(&r, (struct mono){now}, &f, 15), -1);
    }
    const int64_t rose = now;
    for (const int64_t end = now + 20 * NS_PER_S; now < end;) {
        feed(&d, &p, &now, empty, 1);
        feed(&d, &p, &now, full, 99);
        detector_judge(&d, (struct mono){now}, &alone, &f);
        assert_true(f.alike);
        f.alike = false; /* the effect of the rise alone */
        if (repath_decide(&r, (struct mono){now}, &f, 15) >= 0) {
            assert_int_equal(r.why, REPATH_ALIKE);
            assert_true(tries > 3 || now - rose < NS_PER_S * 3 / 2); /* four in a row */
            assert_true(tries < 4 || now - last >= 500 * NS_PER_MS << (tries - 3));
            last = now;
            tries++;
            repath_on_moved(&r, (struct mono){now}, -1); /* none was better */
        }
    }
    assert_in_range(tries, 5, 8);
    assert_false(f.risen);
    assert_int_equal(detector_better(&d, 1, 0), 0);
    feed(&d, &p, &now, one_less, 30);
    assert_int_equal(detector_better(&d, 1, 0), 0);
    feed(&d, &p, &now, one_free, 30);
    assert_int_equal(detector_better(&d, 1, 0), 1);
    assert_int_equal(detector_better(&d, 0, 1), 0);
    detector_lane_open(&d, (struct mono){now}, 1);
    assert_int_equal(detector_better(&d, 1, 0), -1); /* nothing is known of it yet */
}

/* Four draws fell on one busy path: its queue was there from the beginning. It stands for half of the time only. */
static void test_all_wait_alike_from_the_first(void **state)
{
    const struct detector_context alone = {.peers = 1};
    const int64_t queue[LANES] = {2000000, 2000000, 2000000, 2000000};
    const int64_t one[LANES] = {2000000, 2000000, 2000000, 9000000};
    struct detector_finding f;
    struct detector d;
    struct repath r;
    struct prng p;
    int64_t now = 0, last = 0;
    int tries = 0;

    (void)state;
    prng_init(&p, 3);
    begin(&d);
    repath_init(&r, 7, (struct mono){0});
    feed(&d, &p, &now, (const int64_t[LANES]){0}, 50);
    for (int i = 0; i < 200;
         i++) { /* for 2 s a lane is worse than the others: it moves, and no other is tried */
        feed(&d, &p, &now, one, 100);
        detector_judge(&d, (struct mono){now}, &alone, &f);
        assert_false(f.alike && i > 0);
        if (repath_decide(&r, (struct mono){now}, &f, 15) >= 0) {
            assert_int_not_equal(r.why, REPATH_ALIKE);
            repath_on_moved(&r, (struct mono){now}, -1);
        }
    }
    const int64_t began = now;
    for (int i = 0; i < 800; i++) {
        feed(&d, &p, &now, i % 2 ? queue : (const int64_t[LANES]){0}, 100);
        detector_judge(&d, (struct mono){now}, &alone, &f);
        assert_false(f.alike && i % 2 == 0);
        if (repath_decide(&r, (struct mono){now}, &f, 15) >= 0) {
            assert_int_equal(r.why, REPATH_ALIKE);
            assert_true(now - began >= 500 * NS_PER_MS);
            assert_true(tries < 4 || now - last >= NS_PER_S);
            repath_on_moved(&r, (struct mono){now}, -1);
            last = now;
            tries++;
        }
    }
    assert_in_range(tries, 5, 7);
}

/* A path falls to a tenth of its rate, and the sender has a quarter of the bytes on their way: they wait three times as long. As
 * many bytes as before would wait twelve times as long. Fewer bytes in a shorter queue don't mean that the path isn't slower. */
static void test_fewer_bytes_hide_a_slow_path(void **state)
{
    const struct detector_context alone = {.peers = 1};
    const int64_t before[LANES] = {5000000, 5000000, 5000000, 5000000};
    const int64_t slow[LANES] = {15000000, 15000000, 15000000, 15000000};
    const int64_t less[LANES] = {4000000, 4000000, 4000000, 4000000};
    struct detector_finding f;
    struct detector d;
    struct prng p;
    int64_t now = 0;

    (void)state;
    prng_init(&p, 3);
    begin(&d);
    for (int i = 0; i < 400; i++) {
        const int64_t *const queue = i < 200 ? before : i < 300 ? less : slow;
        for (int k = 0; k < 16; k++) {
            detector_on_load(&d, i < 200 ? 1000000 : 200000);
        }
        feed(&d, &p, &now, (const int64_t[LANES]){0}, 1);
        feed(&d, &p, &now, queue, 99);
        detector_judge(&d, (struct mono){now}, &alone, &f);
        assert_int_equal(f.risen, i >= 300);
    }
}

/* All lanes wait ten times as long as before, and one of them was made since: its least delay already includes that queue. */
static void test_a_floor_that_hides_a_queue(void **state)
{
    const struct detector_context alone = {.peers = 1};
    const int64_t before[LANES] = {500000, 500000, 500000, 500000};
    const int64_t full[LANES] = {10000000, 10000000, 10000000, 10000000};
    struct detector_finding f;
    struct detector d;
    struct prng p;
    int64_t now = 0;

    (void)state;
    prng_init(&p, 3);
    begin(&d);
    feed(&d, &p, &now, (const int64_t[LANES]){0}, 50);
    feed(&d, &p, &now, before, 10000);
    detector_lane_open(&d, (struct mono){now}, 2);
    feed(&d, &p, &now, full, 100);
    detector_judge(&d, (struct mono){now}, &alone, &f);
    assert_true(f.base_ns < 1000000);
    assert_true(f.risen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starved),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_clocks_are_no_contention),
        cmocka_unit_test(test_jobs_do_not_chase),
        cmocka_unit_test(test_repath_is_slow_to_move),
        cmocka_unit_test(test_the_starved_leave_at_once),
        cmocka_unit_test(test_all_lanes_on_one_path),
        cmocka_unit_test(test_all_wait_alike_from_the_first),
        cmocka_unit_test(test_fewer_bytes_hide_a_slow_path),
        cmocka_unit_test(test_a_floor_that_hides_a_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
