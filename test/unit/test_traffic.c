/* Traffic control over simulated queues: a scheduler that meets lanes of different and changing speed, a
 * detector that must tell contention from incast from an own slow host, jobs that must not chase each other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/traffic/credit.h"
#include "core/traffic/detector.h"
#include "core/traffic/pacing.h"
#include "core/traffic/priority.h"
#include "core/traffic/repath.h"
#include "core/traffic/scheduler.h"

#define LANES   4
#define CHUNK   32768u
#define RTT_NS  (100 * NS_PER_US)
#define PENDING 1024

/* A lane as a queue with a rate: chunk k leaves when those before it have. */
struct queue {
    double rate; /* bytes per ns */
    int64_t free_at;
    uint32_t head, count;
    int64_t done[PENDING], sent[PENDING];
    uint64_t bytes;
};

static void acks(struct scheduler *s, struct queue *q, uint32_t lane, int64_t now)
{
    while (q->count > 0 && q->done[q->head] <= now) {
        scheduler_on_acked(s, (struct mono){now}, lane, 1, CHUNK, (struct mono){q->sent[q->head]},
                           q->count == 1);
        q->head = (q->head + 1) % PENDING;
        q->count--;
        q->bytes += CHUNK;
    }
}

static void put(struct scheduler *s, struct queue *q, uint32_t lane, int64_t now)
{
    const int64_t from = q->free_at > now ? q->free_at : now;

    scheduler_on_bound(s, (struct mono){now}, lane, CHUNK);
    q->free_at = from + (int64_t)(CHUNK / q->rate);
    q->sent[(q->head + q->count) % PENDING] = now;
    q->done[(q->head + q->count) % PENDING] = q->free_at + RTT_NS;
    q->count++;
    assert_true(q->count < PENDING);
}

/* Bytes in `ns`, as much as the scheduler will have. */
static uint64_t play(struct scheduler *s, struct queue *queues, int64_t *now, int64_t ns)
{
    const struct scheduler_choice choice = {.usable = 15, .room = 15, .weights = {1, 1, 1, 1}};
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < LANES; i++) {
        queues[i].bytes = 0;
    }
    for (const int64_t end = *now + ns; *now < end; *now += 5 * NS_PER_US) {
        for (uint32_t i = 0; i < LANES; i++) {
            acks(s, &queues[i], i, *now);
        }
        for (int lane; (lane = scheduler_pick(s, (struct mono){*now}, CHUNK, &choice)) >= 0;) {
            put(s, &queues[lane], (uint32_t)lane, *now);
        }
    }
    for (uint32_t i = 0; i < LANES; i++) {
        bytes += queues[i].bytes;
    }
    assert_null(scheduler_bug(s));
    return bytes;
}

static void begin(struct scheduler *s, struct queue *queues, double rate)
{
    scheduler_init(s, (struct mono){0});
    memset(queues, 0, LANES * sizeof(*queues));
    for (uint32_t i = 0; i < LANES; i++) {
        queues[i].rate = rate;
        scheduler_lane_open(s, (struct mono){0}, i, span_ns(RTT_NS));
    }
}

static void test_full_and_fair(void **state)
{
    static struct queue queues[LANES];
    struct scheduler s;
    int64_t now = 0;

    begin(&s, queues, 1.25); /* 10 Gb/s */
    (void)play(&s, queues, &now, 20 * NS_PER_MS);
    assert_true((double)play(&s, queues, &now, 50 * NS_PER_MS) >= 0.95 * 4 * 1.25 * 50e6);
    for (uint32_t i = 0; i < LANES; i++) {
        assert_true(fabs((double)queues[i].bytes / (1.25 * 50e6) - 1) < 0.1);
        assert_true(fabs(scheduler_rate_bps(&s, i) / 10e9 - 1) < 0.25);
    }
}

static void test_brown_out(void **state)
{
    static struct queue queues[LANES];
    struct scheduler s;
    int64_t now = 0;
    double share;

    begin(&s, queues, 1.25);
    (void)play(&s, queues, &now, 20 * NS_PER_MS);
    queues[2].rate = 0.125; /* one link at 10 % */
    (void)play(&s, queues, &now, 100 * NS_PER_MS);
    share = (double)play(&s, queues, &now, 100 * NS_PER_MS) / (3.1 * 1.25 * 100e6);
    assert_true(share >= 0.93);
    assert_true((double)queues[2].bytes <= (0.1 / 3.1 + 0.01) * 3.1 * 1.25 * 100e6 + 10 * CHUNK);
    queues[2].rate = 1.25; /* and back: it is noticed */
    (void)play(&s, queues, &now, 200 * NS_PER_MS);
    assert_true((double)play(&s, queues, &now, 100 * NS_PER_MS) >= 0.93 * 4 * 1.25 * 100e6);
    /* Plain turns are stopped by the slowest. */
    begin(&s, queues, 1.25);
    scheduler_round_robin(&s, true);
    assert_int_equal(scheduler_pick(&s, (struct mono){0}, CHUNK,
                                    &(struct scheduler_choice){.usable = 5, .room = 4}),
                     2);
}

static void test_waits_for_the_best(void **state)
{
    static struct queue queues[LANES];
    struct scheduler_choice choice = {.usable = 15, .room = 15, .weights = {1, 1, 1, 1}};
    struct scheduler s;
    int64_t now = 0;
    int lane;

    begin(&s, queues, 1.25);
    queues[3].rate = 0.05;
    (void)play(&s, queues, &now, 50 * NS_PER_MS);
    for (uint32_t i = 0; i < 3; i++) { /* the good ones' sockets are full just now */
        choice.room &= ~(1u << i);
    }
    if (queues[3].count > 0) {
        assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), -1);
    }
    choice.room = 15;
    choice.usable = 8;
    choice.one = 8; /* a suspect gets one chunk at a time */
    while (queues[3].count > 0) {
        now += NS_PER_MS;
        acks(&s, &queues[3], 3, now);
    }
    lane = scheduler_pick(&s, (struct mono){now}, CHUNK, &choice);
    assert_int_equal(lane, 3);
    put(&s, &queues[3], 3, now);
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), -1);
}

static void test_chunk_size(void **state)
{
    static struct queue queues[LANES];
    struct scheduler s;
    int64_t now = 0;

    begin(&s, queues, 1.25);
    assert_int_equal(scheduler_chunk_size(&s, 100), 32768);
    assert_int_equal(scheduler_chunk_size(&s, 1 << 30), 1 << LANE_CHUNK_SHIFT_MAX);
    queues[0].rate = queues[1].rate = queues[2].rate = queues[3].rate = 0.006; /* 50 Mb/s */
    (void)play(&s, queues, &now, 200 * NS_PER_MS);
    assert_int_equal(scheduler_chunk_size(&s, 1 << 30), 8192);
}

static void feed(struct detector *d, struct prng *p, int64_t *now, const int64_t *queue_ns,
                 int rounds)
{
    for (int i = 0; i < rounds; i++) {
        *now += 100 * NS_PER_US;
        for (uint32_t lane = 0; lane < LANES; lane++) {
            /* Clocks of both ends disagree by a second: only differences count. */
            detector_on_owd(d, (struct mono){*now}, lane,
                            -NS_PER_S + 20000 + (int64_t)prng_below(p, 2000) + queue_ns[lane]);
        }
    }
}

static enum detector_verdict judged(const int64_t *queue_ns, const struct detector_context *context,
                                    uint32_t *ret_contended)
{
    static const int64_t none[LANES];
    struct detector_finding finding;
    struct detector d;
    struct prng p;
    int64_t now = 0;

    prng_init(&p, 3);
    detector_init(&d, (struct mono){0});
    detector_on_rtt_floor(&d, span_us(50));
    for (uint32_t i = 0; i < LANES; i++) {
        detector_lane_open(&d, (struct mono){0}, i);
    }
    detector_judge(&d, (struct mono){now}, context, &finding);
    assert_int_equal(finding.verdict, DETECTOR_UNKNOWN);
    feed(&d, &p, &now, none, 50);
    detector_judge(&d, (struct mono){now}, context, &finding);
    assert_int_equal(finding.verdict, DETECTOR_CLEAR);
    feed(&d, &p, &now, queue_ns, 30);
    detector_judge(&d, (struct mono){now}, context, &finding);
    *ret_contended = finding.contended;
    return finding.verdict;
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
    assert_int_equal(judged(little, &alone, &lanes), DETECTOR_CLEAR); /* below what matters */
}

/* Two jobs, each with a lane that may be on path 0 or 1; on the same one they contend. They must end apart
 * and then stay, whatever the seeds. */
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

static void test_credit(void **state)
{
    struct credit c;

    credit_init(&c, (struct mono){0}, 1.25);
    credit_on_senders(&c, (struct mono){0}, 7, span_us(100), false);
    assert_true(credit_window(&c, CHUNK) == CREDIT_UNLIMITED); /* no queue, no limit */
    credit_on_senders(&c, (struct mono){0}, 7, span_us(100), true);
    assert_int_equal(credit_window(&c, 8192), 2 * 125000 / 7);
    assert_int_equal(credit_window(&c, CHUNK), 2 * CHUNK);
    credit_on_senders(&c, (struct mono){NS_PER_S}, 1, span_us(100), true);
    assert_true(credit_window(&c, CHUNK) == CREDIT_UNLIMITED);
}

static void test_pacing(void **state)
{
    struct pacing p;
    uint64_t bytes = 0;

    pacing_init(&p, (struct mono){0}, 0.1, CHUNK);
    for (int64_t now = 0; now < 100 * NS_PER_MS;) {
        if (pacing_take(&p, (struct mono){now}, CHUNK)) {
            bytes += CHUNK;
        } else {
            assert_true(pacing_deadline(&p, (struct mono){now}).ns > now);
            now = pacing_deadline(&p, (struct mono){now}).ns;
        }
    }
    assert_true(fabs((double)bytes / 10e6 - 1) < 0.02);
    pacing_rate(&p, (struct mono){NS_PER_S}, 0);
    assert_true(pacing_take(&p, (struct mono){NS_PER_S}, 1u << 30));
}

/* A bulk job and a high one on one link: what is offered above the link's rate queues. */
static void test_priority(void **state)
{
    const double link = 1.25;
    struct priority bulk;
    double queue = 0, sent = 0;
    enum priority_class class;

    priority_init(&bulk, PRIORITY_BULK, (struct mono){0});
    for (int64_t now = 0; now < 2 * NS_PER_S; now += 100 * NS_PER_US) {
        const double wish =
            priority_rate(&bulk) > 0 && priority_rate(&bulk) < link ? priority_rate(&bulk) : link;
        const double high = 0.6 * link; /* doesn't yield */
        queue += (wish + high - link) * 100e3;
        queue = queue > 0 ? queue : 0;
        priority_on_delay(&bulk, (struct mono){now}, (int64_t)(queue / link), wish, span_us(100),
                          CHUNK / 4, false);
        sent += now >= NS_PER_S ? wish * 100e3 : 0;
    }
    assert_true(sent / (0.4 * link * 1e9) >= 0.8 &&
                queue / link < 2e6); /* it takes what is left, and little delay */
    assert_true(fabs(priority_share(PRIORITY_HIGH, (uint32_t[]){1, 1, 1}) - 8.0 / 13) < 1e-9);
    assert_int_equal(priority_parse("high", &class), 0);
    assert_int_equal(class, PRIORITY_HIGH);
    assert_true(priority_parse("urgent", &class) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_and_fair),
        cmocka_unit_test(test_brown_out),
        cmocka_unit_test(test_waits_for_the_best),
        cmocka_unit_test(test_chunk_size),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_jobs_do_not_chase),
        cmocka_unit_test(test_repath_is_slow_to_move),
        cmocka_unit_test(test_credit),
        cmocka_unit_test(test_pacing),
        cmocka_unit_test(test_priority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
