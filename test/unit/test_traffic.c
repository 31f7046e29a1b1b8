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
#include "core/traffic/goodput.h"
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
    uint64_t load[PENDING];
    uint64_t bytes;
};

static void acks(struct scheduler *s, struct queue *q, uint32_t lane, int64_t now)
{
    while (q->count > 0 && q->done[q->head] <= now) {
        scheduler_on_acked(s, (struct mono){now}, lane,
                           &(struct scheduler_acked){.chunks = 1,
                                                     .bytes = CHUNK,
                                                     .sent = {q->sent[q->head]},
                                                     .load = q->load[q->head],
                                                     .alone = q->count == 1});
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
    q->load[(q->head + q->count) % PENDING] = (uint64_t)(q->count + 1) * CHUNK;
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

/* Who has little on its way at a time isn't held up by crowded lanes: a free one gets nearly all of it, though nobody has seen
 * how much it could bring. */
static void test_free_lane_is_used(void **state)
{
    const struct scheduler_choice choice = {.usable = 15, .room = 15, .weights = {1, 1, 1, 1}};
    static struct queue queues[LANES];
    struct scheduler s;
    uint64_t sum = 0;

    begin(&s, queues, 0.1);
    queues[3].rate = 33;
    for (int64_t now = 0; now < 50 * NS_PER_MS; now += 5 * NS_PER_US) {
        uint32_t under_way = 0;
        for (uint32_t i = 0; i < LANES; i++) {
            acks(&s, &queues[i], i, now);
            under_way += queues[i].count;
        }
        for (int lane;
             under_way < 12 && (lane = scheduler_pick(&s, (struct mono){now}, CHUNK, &choice)) >= 0;
             under_way++) {
            put(&s, &queues[lane], (uint32_t)lane, now);
        }
    }
    for (uint32_t i = 0; i < LANES; i++) {
        sum += queues[i].bytes;
    }
    assert_true((double)queues[3].bytes >= 0.95 * (double)sum);
}

/* A lane that comes to others may be on the path that another one has just left. */
static void test_a_newcomer_tells_first(void **state)
{
    const struct scheduler_choice only = {.usable = 8, .room = 8, .weights = {1, 1, 1, 1}};
    static struct queue queues[LANES];
    struct scheduler s;
    int64_t now = 0;

    begin(&s, queues, 1.25);
    for (int i = 0; i < 4; i++) { /* nobody is known: as much as any lane gets */
        assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &only), 3);
        put(&s, &queues[3], 3, now);
    }
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &only), -1);
    (void)play(&s, queues, &now, 20 * NS_PER_MS);
    memset(&queues[3], 0, sizeof(queues[3]));
    queues[3].rate = 1.25;
    scheduler_lane_down(&s, 3);
    scheduler_lane_open(&s, (struct mono){now}, 3, span_ns(RTT_NS));
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &only), 3);
    put(&s, &queues[3], 3, now);
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &only), -1);
    (void)play(&s, queues, &now, 20 * NS_PER_MS);
    assert_true((double)queues[3].bytes >= 0.9 * 1.25 * 20e6);
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

/* A chunk that is there to tell how a slow lane is: its message shall not wait for it, and what somebody waits for isn't used
 * for that. */
static void test_slow_lanes_are_asked_beside(void **state)
{
    static struct queue queues[LANES];
    struct scheduler_choice choice = {.usable = 15, .room = 15, .weights = {1, 1, 1, 1}};
    struct scheduler s;
    int64_t now = 0;

    begin(&s, queues, 1.25);
    queues[2].rate = 0.125;
    (void)play(&s, queues, &now, 100 * NS_PER_MS);
    for (const int64_t end = now + 20 * NS_PER_MS; now < end; now += 5 * NS_PER_US) {
        for (uint32_t lane = 0; lane < LANES; lane++) {
            acks(&s, &queues[lane], lane, now);
        }
    }
    now += 20 * NS_PER_MS;
    choice.urgent = true;
    assert_int_not_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), 2);
    assert_false(s.slow);
    choice.urgent = false;
    for (uint32_t i = 0; i < 3; i++) {
        const int lane = scheduler_pick(&s, (struct mono){now}, CHUNK, &choice);
        assert_true(lane >= 0 && lane != (i < 2 ? 2 : -1));
        assert_int_equal(s.slow, lane == 2);
        put(&s, &queues[lane], (uint32_t)lane, now);
        assert_true(i < 2 || lane == 2);
    }
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), 3);
    assert_false(s.slow);
}

static void test_chunk_size(void **state)
{
    static struct queue queues[LANES];
    struct scheduler s;
    int64_t now = 0;

    begin(&s, queues, 1.25);
    assert_int_equal(scheduler_chunk_size(&s, 100), 32768); /* nothing is known yet */
    assert_int_equal(scheduler_chunk_size(&s, 1 << 30), 1 << LANE_CHUNK_SHIFT_MAX);
    (void)play(&s, queues, &now, 20 * NS_PER_MS);
    assert_int_equal(scheduler_chunk_size(&s, 100), 65536);                    /* 10 Gb/s */
    queues[0].rate = queues[1].rate = queues[2].rate = queues[3].rate = 0.006; /* 50 Mb/s */
    (void)play(&s, queues, &now, 600 * NS_PER_MS);
    assert_int_equal(scheduler_chunk_size(&s, 1 << 30), 8192);
}

/* To a process of this machine: the first lane that takes something, and as much at once as may be. */
static void test_one_way(void **state)
{
    static struct queue queues[LANES];
    struct scheduler_choice choice = {.usable = 15, .room = 15, .weights = {1, 1, 1, 1}};
    struct scheduler s;
    int64_t now = 0;

    begin(&s, queues, 1.25);
    queues[0].rate = 0.6; /* however much sooner another one would deliver */
    (void)play(&s, queues, &now, 50 * NS_PER_MS);
    for (uint32_t lane = 0; lane < LANES; lane++) {
        for (; queues[lane].count > 0; now += NS_PER_MS) {
            acks(&s, &queues[lane], lane, now);
        }
    }
    scheduler_one_way(&s, true);
    assert_int_equal(scheduler_chunk_size(&s, 100), 1 << LANE_CHUNK_SHIFT_MAX);
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), 0);
    put(&s, &queues[0], 0, now);
    now += 20 * NS_PER_MS; /* nor is another one tried because it has carried nothing for long */
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), 0);
    choice.weights[0] = 0.5; /* one that is doubted is passed by */
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), 1);
    choice.room = 12;
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), 2);
    scheduler_one_way(&s, false);
    assert_int_not_equal(scheduler_chunk_size(&s, 100), 1 << LANE_CHUNK_SHIFT_MAX);
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

static struct detector_finding found(const int64_t *queue_ns,
                                     const struct detector_context *context)
{
    static const int64_t none[LANES];
    struct detector_finding finding;
    struct detector d;
    struct prng p;
    int64_t now = 0;

    prng_init(&p, 3);
    detector_init(&d, (struct mono){0});
    detector_on_rtt(&d, span_us(50));
    detector_on_rtt(&d, span_us(50000)); /* a lane that was made over a full path */
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
    return finding;
}

static enum detector_verdict judged(const int64_t *queue_ns, const struct detector_context *context,
                                    uint32_t *ret_contended)
{
    const struct detector_finding finding = found(queue_ns, context);

    *ret_contended = finding.contended;
    return finding.verdict;
}

/* Two flows on one path wait twice as long as one; on a path that carries a tenth it's another matter. */
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
    assert_int_equal(judged(little, &alone, &lanes), DETECTOR_CLEAR); /* below what matters */
}

/* A clock is set, or both drift apart, while one lane has nearly all there is to do: no queue. */
static void test_clocks_are_no_contention(void **state)
{
    const struct detector_context alone = {.peers = 1};
    struct detector_finding finding;
    struct detector d;
    int64_t now = 0, shift = 0;

    (void)state;
    detector_init(&d, (struct mono){0});
    detector_on_rtt(&d, span_us(50));
    for (uint32_t i = 0; i < LANES; i++) {
        detector_lane_open(&d, (struct mono){0}, i);
    }
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

/* When lane 1 leaves, its lanes being contended and congested together. */
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

/* What is shared can wait, and does the longer the less it helped; a lane that is starved needn't. */
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

/* All lanes wait alike: that may be one path, so one of them looks for another, ever more seldom if there is none. But not
 * because more is sent than before, or because that has become usual. */
static void test_all_lanes_on_one_path(void **state)
{
    const struct detector_context alone = {.peers = 1};
    const int64_t empty[LANES] = {0};
    const int64_t before[LANES] = {500000, 500000, 500000, 500000};
    const int64_t more[LANES] = {1500000, 1500000, 1500000, 1500000};
    const int64_t full[LANES] = {10000000, 10000000, 10000000, 10000000};
    const int64_t one_free[LANES] = {10000000, 0, 10000000, 10000000};
    const int64_t one_less[LANES] = {10000000, 5000000, 10000000, 10000000};
    struct detector_finding f;
    struct detector d;
    struct repath r;
    struct prng p;
    int64_t now = 0, last = 0, tries = 0;

    prng_init(&p, 3);
    detector_init(&d, (struct mono){0});
    repath_init(&r, 7, (struct mono){0});
    detector_on_rtt(&d, span_us(50));
    for (uint32_t i = 0; i < LANES; i++) {
        detector_lane_open(&d, (struct mono){0}, i);
    }
    for (const int64_t end = now + 4 * NS_PER_S; now < end;) {
        feed(&d, &p, &now, empty, 1); /* now and then a queue is */
        feed(&d, &p, &now, before, 99);
    }
    assert_int_equal(detector_better(&d, 1, 0), 0);
    for (const int64_t end = now + 3 * NS_PER_S; now < end;) {
        feed(&d, &p, &now, empty, 1);
        feed(&d, &p, &now, more, 99);
        detector_judge(&d, (struct mono){now}, &alone, &f);
        assert_false(f.risen);
        assert_int_equal(repath_decide(&r, (struct mono){now}, &f, 15), -1);
    }
    const int64_t rose = now;
    for (const int64_t end = now + 20 * NS_PER_S; now < end;) {
        feed(&d, &p, &now, empty, 1);
        feed(&d, &p, &now, full, 99);
        detector_judge(&d, (struct mono){now}, &alone, &f);
        if (repath_decide(&r, (struct mono){now}, &f, 15) >= 0) {
            assert_int_equal(r.why, REPATH_ALIKE);
            assert_true(tries > 0 || now - rose < NS_PER_S);
            assert_true(now - last >= 500 * NS_PER_MS << (tries > 0 ? tries : 0));
            last = now;
            tries++;
            repath_on_moved(&r, (struct mono){now}, -1); /* none was better */
        }
    }
    assert_in_range(tries, 3, 5);
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

/* Senders before one link of 10 Gb/s: each has as much on its way as it may, or `greed`. Told once a millisecond. */
struct incast {
    struct credit credit;
    double rate;        /* of the link, bytes per ns */
    double queue_bytes; /* before it, of all senders */
    int64_t now;
    uint32_t interval;  /* that the senders were counted in */
    uint64_t bytes;     /* that came, all in all */
    double queue_worst; /* ns, of late */
};

static void incast_play(struct incast *x, uint32_t senders, double greed, int64_t ns)
{
    x->queue_worst = 0;
    for (const int64_t end = x->now + ns; x->now < end; x->now += NS_PER_MS) {
        const uint64_t window = credit_window(&x->credit);
        const double wish = window == CREDIT_UNLIMITED ? greed : (double)window;
        const double most = x->rate * 1e6; /* of a millisecond */
        /* All on its way stands before the link but for what a round trip holds. */
        const double offered = wish * senders - x->rate * (double)RTT_NS;
        const double came = senders > 0 && wish * senders / (double)RTT_NS < x->rate
                                ? wish * senders / (double)RTT_NS * 1e6
                            : senders > 0 ? most
                                          : 0;
        x->queue_bytes = offered > 0 ? offered : 0;
        const int64_t queue_ns = (int64_t)(x->queue_bytes / x->rate);
        x->queue_worst = (double)queue_ns > x->queue_worst ? (double)queue_ns : x->queue_worst;
        credit_tick(&x->credit, (struct mono){x->now});
        const bool first = x->interval != x->credit.interval;
        x->interval = x->credit.interval;
        for (uint32_t i = 0; i < senders; i++) {
            const struct credit_arrivals a = {.bytes = (uint64_t)(came / senders),
                                              .queue_ns = queue_ns,
                                              .chunk = CHUNK,
                                              .comms = first,
                                              .first = first};
            credit_on_arrivals(&x->credit, (struct mono){x->now}, &a);
        }
        x->bytes += (uint64_t)came;
    }
}

static void incast_begin(struct incast *x)
{
    *x = (struct incast){.rate = 1.25};
    credit_init(&x->credit, (struct mono){0});
    credit_on_rtt(&x->credit, span_ns(RTT_NS));
}

static void test_credit(void **state)
{
    struct incast x;

    (void)state;
    incast_begin(&x);
    incast_play(&x, 7, 4096, 100 * NS_PER_MS);
    assert_true(credit_window(&x.credit) == CREDIT_UNLIMITED); /* no queue, no limit */
    incast_play(&x, 1, 4e6, 100 * NS_PER_MS);
    assert_true(credit_window(&x.credit) ==
                CREDIT_UNLIMITED);            /* one's own queue is its own affair */
    incast_play(&x, 7, 4e6, 100 * NS_PER_MS); /* 22 ms of queue */
    x.bytes = 0;
    incast_play(&x, 7, 4e6, 500 * NS_PER_MS);
    assert_true(x.queue_worst < 1e6 && (double)x.bytes >= 0.98 * 1.25 * 500e6);
    assert_true(credit_window(&x.credit) >= CHUNK && x.credit.harms == 0);
    assert_true(credit_window(&x.credit) * 7 < 1.25 * 1e6);
    incast_play(&x, 0, 0, 500 * NS_PER_MS); /* all is over */
    assert_true(credit_window(&x.credit) == CREDIT_UNLIMITED);
}

/* A trunk that others fill as well: what we leave is theirs. */
static void test_credit_does_no_harm(void **state)
{
    struct incast x;

    (void)state;
    incast_begin(&x);
    incast_play(&x, 7, 4e6, 20 * NS_PER_MS);
    assert_true(credit_window(&x.credit) != CREDIT_UNLIMITED);
    for (int i = 0; i < 1000 && x.credit.harms == 0; i++) {
        x.now += NS_PER_MS; /* the queue stays, and hardly anything comes */
        credit_tick(&x.credit, (struct mono){x.now});
        const bool first = x.interval != x.credit.interval;
        const struct credit_arrivals a = {.bytes = 100000,
                                          .queue_ns = 5 * NS_PER_MS,
                                          .chunk = CHUNK,
                                          .comms = first,
                                          .first = first};
        x.interval = x.credit.interval;
        credit_on_arrivals(&x.credit, (struct mono){x.now}, &a);
        credit_on_arrivals(&x.credit, (struct mono){x.now}, &a);
    }
    assert_true(x.credit.harms == 1 && credit_window(&x.credit) == CREDIT_UNLIMITED);
    incast_play(&x, 7, 4e6, 500 * NS_PER_MS);
    assert_true(credit_window(&x.credit) == CREDIT_UNLIMITED); /* not before a second is over */
    incast_play(&x, 7, 4e6, NS_PER_S);
    assert_true(credit_window(&x.credit) != CREDIT_UNLIMITED);
    (void)HOLDS(&x.credit.bug, x.now < 0);
    assert_true(credit_bug(&x.credit) != NULL && credit_window(&x.credit) == CREDIT_UNLIMITED);
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

/* One of low priority beside one that doesn't yield and takes `other` of the link; what is offered above its rate
 * queues. Returns the former's share of the link in the second half. */
static double beside(struct priority *low, double other, int64_t *now, double *ret_queue_ns)
{
    const double link = 1.25;
    double queue = 0, sent = 0;

    for (int64_t end = *now + 2 * NS_PER_S, half = *now + NS_PER_S; *now < end;
         *now += 100 * NS_PER_US) {
        const int64_t life = 100 * NS_PER_US + (int64_t)(queue / link);
        const double window = (double)priority_window(low) * (CHUNK / 4) / (double)life;
        const double rate = priority_rate(low) > 0 ? priority_rate(low) : window;
        const double wish = rate < link ? rate : link;
        const double mine =
            wish / (wish + other * link); /* of what the link carries when it is full */
        queue += (wish + other * link - link) * 100e3;
        queue = queue < 0 ? 0 : queue < 4e6 ? queue : 4e6; /* it has an end */
        const struct priority_sample sample = {.sent = {*now - life},
                                               .queue_ns = (int64_t)(queue / link),
                                               .life_ns_min = 100 * NS_PER_US,
                                               .goodput = link,
                                               .chunk = CHUNK / 4,
                                               .lanes = 1};
        priority_on_delay(low, (struct mono){*now}, &sample);
        sent += *now >= half ? (queue > 0 ? link * mine : wish) * 100e3 : 0;
    }
    *ret_queue_ns = queue / link;
    return sent / (link * 1e9);
}

static void test_priority(void **state)
{
    struct priority low;
    double queue_ns;
    int64_t now = 0;

    (void)state;
    priority_init(&low, (struct mono){0});
    assert_true(beside(&low, 0, &now, &queue_ns) >= 0.95); /* alone: all of it */
    const double left = beside(&low, 0.6, &now, &queue_ns);
    assert_true(left >= 0.8 * 0.4 && left <= 0.4 &&
                queue_ns < 2e6); /* what is left, and little delay */
    const double full = beside(&low, 1.0, &now, &queue_ns);
    assert_true(full >= 0.01 && full <= 0.1); /* hardly anything is left, and never nothing */
    assert_true(beside(&low, 0, &now, &queue_ns) >= 0.95); /* and all of it again */
    (void)HOLDS(&low.bug, now < 0);
    assert_non_null(priority_bug(&low));
    assert_int_equal(priority_window(&low), PRIORITY_WINDOW_MAX); /* off: no limit */
}

/* A chunk of 8 KiB with a queue before it, sent after the last change. */
static uint32_t window_after(struct priority *low, struct priority_sample *sample, int64_t queue_ns)
{
    sample->sent.ns += NS_PER_MS;
    sample->queue_ns = queue_ns;
    priority_on_delay(low, mono_add(sample->sent, span_us(500)), sample);
    return priority_window(low);
}

static void test_priority_steps_aside_at_once(void **state)
{
    struct priority_sample sample = {
        .goodput = 0.00819, .life_ns_min = 3 * NS_PER_MS, .chunk = 8192, .lanes = 4};
    const int64_t target = 5 * NS_PER_MS; /* five chunks at that goodput, about */
    struct priority low;

    (void)state;
    priority_init(&low, (struct mono){0});
    for (int i = 0; i < 10; i++) {
        assert_int_equal(window_after(&low, &sample, target - 100000),
                         2); /* what the path holds, and 1.5 */
    }
    assert_int_equal(window_after(&low, &sample, target + 100000), 1); /* step by step */
    assert_int_equal(window_after(&low, &sample, target + 100000), 1);
    assert_int_equal(window_after(&low, &sample, target + 100000), 0);
    assert_true(fabs(priority_rate(&low) / (0.05 * sample.goodput / 4) - 1) < 1e-9);
    assert_int_equal(window_after(&low, &sample, target + 100000), 0);
    assert_int_equal(window_after(&low, &sample, 0), 1); /* back */
    assert_true(priority_rate(&low) <= 0);
    assert_int_equal(window_after(&low, &sample, 3 * target), 0); /* at once */
    sample.sent.ns -= NS_PER_MS; /* sent before that: says nothing */
    sample.queue_ns = 0;
    priority_on_delay(&low, mono_add(sample.sent, span_us(2000)), &sample);
    assert_int_equal(priority_window(&low), 0);
    sample.goodput = 50; /* a long path */
    for (int i = 0; i < 2 * PRIORITY_WINDOW_MAX; i++) {
        (void)window_after(&low, &sample, 0);
    }
    assert_int_equal(priority_window(&low), PRIORITY_WINDOW_MAX);
    sample.goodput = 0; /* nothing known: still a chunk in 200 ms */
    assert_int_equal(window_after(&low, &sample, 3 * target), 0);
    assert_true(fabs(priority_rate(&low) * 200e6 / 8192 - 1) < 1e-9);
}

/* What comes in a heap isn't what a path carries; what we held back isn't either. */
static void test_goodput(void **state)
{
    struct goodput g;
    int64_t now = 0;

    (void)state;
    goodput_init(&g, (struct mono){0});
    for (int i = 0; i < 100; i++) { /* 1 MB/s, heaps of 2 within a microsecond each 2 ms */
        goodput_on_arrived(&g, (struct mono){now += 2 * NS_PER_MS - 1000}, 1000, span_us(500),
                           false);
        goodput_on_arrived(&g, (struct mono){now += 1000}, 1000, span_us(500), false);
    }
    assert_true(fabs(g.best - 0.001) < 0.00011);
    const double before = g.best;
    for (int i = 0; i < 1000; i++) {
        goodput_on_arrived(&g, (struct mono){now += 20 * NS_PER_MS}, 1, span_us(500), true);
    }
    assert_true(g.best >= before);
    for (int i = 0; i < 1000; i++) {
        goodput_on_arrived(&g, (struct mono){now += 20 * NS_PER_MS}, 1, span_us(500), false);
    }
    assert_true(g.best < 0.5 * before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_and_fair),
        cmocka_unit_test(test_brown_out),
        cmocka_unit_test(test_free_lane_is_used),
        cmocka_unit_test(test_a_newcomer_tells_first),
        cmocka_unit_test(test_waits_for_the_best),
        cmocka_unit_test(test_chunk_size),
        cmocka_unit_test(test_one_way),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_clocks_are_no_contention),
        cmocka_unit_test(test_jobs_do_not_chase),
        cmocka_unit_test(test_starved),
        cmocka_unit_test(test_repath_is_slow_to_move),
        cmocka_unit_test(test_all_lanes_on_one_path),
        cmocka_unit_test(test_slow_lanes_are_asked_beside),
        cmocka_unit_test(test_the_starved_leave_at_once),
        cmocka_unit_test(test_credit),
        cmocka_unit_test(test_credit_does_no_harm),
        cmocka_unit_test(test_pacing),
        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_priority_steps_aside_at_once),
        cmocka_unit_test(test_goodput),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
