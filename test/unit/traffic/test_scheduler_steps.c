/* Scheduler, detector and repath at their limits: lanes that don't exist, impossible counts, and what is known of each lane. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/traffic/detector.h"
#include "core/traffic/repath.h"
#include "core/traffic/scheduler.h"

#define CHUNK 32768u

static struct mono at;

static struct lane_load loads[LANE_MAX]; /* as the sender counts them */

static void bound(struct scheduler *s, uint32_t lane)
{
    loads[lane].chunks++;
    loads[lane].bytes += CHUNK;
    scheduler_on_bound(s, at, lane);
}

static void acknowledged(struct scheduler *s, uint32_t lane, const struct scheduler_acked *acked)
{
    loads[lane].chunks -= acked->chunks;
    loads[lane].bytes -= acked->bytes;
    scheduler_on_acked(s, at, lane, acked);
}

static void down(struct scheduler *s, uint32_t lane)
{
    loads[lane] = (struct lane_load){0};
    scheduler_lane_down(s, lane);
}

static void open_lanes(struct scheduler *s, const int64_t *rtt_ns, uint32_t lanes)
{
    at.ns = NS_PER_S;
    scheduler_init(s, at);
    memset(loads, 0, sizeof(loads));
    scheduler_loads(s, loads);
    for (uint32_t i = 0; i < lanes; i++) {
        scheduler_lane_open(s, at, i, span_ns(rtt_ns[i]));
    }
}

/* A chunk, and its acknowledgement after `life_ns`. */
static void carry(struct scheduler *s, uint32_t lane, int64_t life_ns, bool alone)
{
    const struct scheduler_acked acked = {
        .chunks = 1, .bytes = CHUNK, .sent = at, .load = CHUNK, .alone = alone};

    bound(s, lane);
    at.ns += life_ns;
    acknowledged(s, lane, &acked);
}

static const int64_t rtts[4] = {100000, 100000, 100000, 100000};

static void a_lane_that_is_not_there_carries_nothing(void **state)
{
    const struct scheduler_acked some = {.chunks = 1, .bytes = CHUNK}, none = {.bytes = 5};
    const struct scheduler_choice all = {
        .usable = UINT32_MAX, .room = UINT32_MAX, .weights = {1, 1, 1, 1}};
    struct scheduler s;

    open_lanes(&s, rtts, 2);
    scheduler_lane_open(&s, at, LANE_MAX, span_ns(5));
    scheduler_lane_down(&s, LANE_MAX);
    scheduler_on_bound(&s, at, LANE_MAX);
    scheduler_on_bound(&s, at, 3);
    scheduler_on_acked(&s, at, LANE_MAX, &some);
    scheduler_on_acked(&s, at, 3, &some);
    scheduler_on_acked(&s, at, 0, &none);
    assert_null(scheduler_bug(&s));
    assert_int_equal(scheduler_backlog(&s, LANE_MAX).ns, 0);
    assert_true(scheduler_expected(&s, LANE_MAX, CHUNK).ns > 0);
    assert_true(scheduler_hedge_before(&s, at, LANE_MAX).ns == INT64_MIN);
    assert_true(scheduler_rate_bps(&s, LANE_MAX) <= 0);
    assert_in_range(scheduler_pick(&s, at, CHUNK, &all), 0, 1);
}

/* pending / (4 lanes) */
static void chunks_are_cut_for_the_lanes_that_there_are(void **state)
{
    struct scheduler s;

    open_lanes(&s, rtts, 4);
    s.lanes[0].rate = 1; /* bytes per ns */
    assert_int_equal(scheduler_chunk_size(&s, 1 << 20), 65536);
    scheduler_lane_open(&s, at, 3, span_ns(-1)); /* a new epoch, but not a new lane */
    assert_int_equal(scheduler_chunk_size(&s, 1 << 20), 65536);
    down(&s, 3);
    down(&s, 3);
    scheduler_lane_down(&s, 9);
    down(&s, 2);
    assert_int_equal(scheduler_chunk_size(&s, 1 << 20), 131072);
}

/* Returns how many chunks a lane holds. apart: lanes that show nothing about its path. */
static int holds_beside(struct scheduler *s, uint32_t lane, uint32_t apart)
{
    const struct scheduler_choice only = {
        .usable = 1u << lane, .room = 1u << lane, .apart = apart, .weights = {1, 1, 1, 1}};
    int count = 0;

    for (; scheduler_pick(s, at, CHUNK, &only) == (int)lane; count++) {
        bound(s, lane);
    }
    return count;
}

static int holds(struct scheduler *s, uint32_t lane)
{
    return holds_beside(s, lane, 0);
}

/* Four chunks beyond the round trip, but no more than 8 ms at its rate, or one: all lanes together make a queue's length. */
static void a_slow_lane_holds_little(void **state)
{
    static const struct {
        int64_t life_ns; /* of a chunk */
        int most;
    } lanes[] = {{NS_PER_MS / 2, 5}, {4 * NS_PER_MS, 3}, {50 * NS_PER_MS, 2}};

    (void)state;
    for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
        struct scheduler s;
        open_lanes(&s, rtts, 1);
        for (int k = 0; k < 20; k++) {
            carry(&s, 0, lanes[i].life_ns, false);
        }
        assert_int_equal(holds(&s, 0), lanes[i].most);
    }
}

/* A lane that was made over a full path knows no round trip without the queue: it holds no more for that. */
static void a_lane_that_never_saw_its_path_empty_holds_no_more(void **state)
{
    struct scheduler s;

    (void)state;
    open_lanes(&s, rtts, 1);
    scheduler_lane_open(&s, at, 1, span_ns(5 * NS_PER_MS));
    for (int k = 0; k < 20; k++) {
        carry(&s, 0, 5 * NS_PER_MS, false);
        carry(&s, 1, 5 * NS_PER_MS, false);
    }
    assert_int_equal(holds(&s, 0), 2);
    assert_int_equal(holds(&s, 1), 2);
}

/* Nor is that known from a lane over other NICs, or from one that was idle for ten seconds. */
static void who_tells_how_long_an_empty_path_is(void **state)
{
    static const struct {
        uint32_t apart;
        int64_t idle_ns; /* the other lane, which knows its empty path */
        int most;
    } cases[] = {{0, 0, 2}, {1, 0, 3}, {0, 10 * NS_PER_S, 3}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scheduler s;
        open_lanes(&s, rtts, 1);
        scheduler_lane_open(&s, at, 1, span_ns(5 * NS_PER_MS));
        carry(&s, 0, 5 * NS_PER_MS, false);
        for (int64_t ns = -NS_PER_S; ns < cases[i].idle_ns; ns += 5 * NS_PER_MS) {
            carry(&s, 1, 5 * NS_PER_MS, false);
        }
        assert_int_equal(holds_beside(&s, 1, cases[i].apart), cases[i].most);
    }
}

/* Two routes of different lengths, and both are fast. The longer one carries all that its window allows, and the window grows. If
 * reports come a millisecond late, that is four chunks a millisecond: 1 Gb/s. By the other round trip it would be 0.4. */
static void a_longer_route_is_not_held_back(void **state)
{
    static const int64_t unlike[2] = {NS_PER_MS / 2, 5 * NS_PER_MS / 2};
    static const double least_bps[2] = {10e9, 1e9};

    (void)state;
    for (int late = 0; late < 2; late++) {
        struct scheduler s;
        open_lanes(&s, unlike, 2);
        for (int round = 0; round < 60; round++) {
            const struct mono sent = at;
            const uint32_t count = (uint32_t)holds(&s, 1);
            const uint64_t bytes = (uint64_t)count * CHUNK;
            at.ns += unlike[1] + late * NS_PER_MS;
            acknowledged(&s, 1,
                         &(struct scheduler_acked){
                             .chunks = count, .bytes = bytes, .sent = sent, .load = bytes});
        }
        assert_true(scheduler_rate_bps(&s, 1) > least_bps[late]);
    }
}

/* An impossible count is our own bug: no more choices. */
static void more_back_than_went_is_a_bug(void **state)
{
    const struct scheduler_acked wrong = {.chunks = 1, .bytes = CHUNK + 1, .load = CHUNK};
    struct scheduler s;
    const struct scheduler_choice choice = {
        .usable = 3, .room = 3, .one = 3, .weights = {1, 1, 1, 1}};

    open_lanes(&s, rtts, 2);
    bound(&s, 0);
    scheduler_on_acked(&s, at, 0, &wrong);
    assert_non_null(scheduler_bug(&s));
    loads[0] = (struct lane_load){0};
    for (int turn = 0; turn < 4; turn++) { /* in turns */
        assert_int_equal(scheduler_pick(&s, at, CHUNK, &choice), turn % 2);
    }
}

/* A rate is what was delivered while there was enough to deliver. With less, it can only rise. */
static void rates_of_lanes_that_had_little_do_not_fall(void **state)
{
    struct scheduler s;

    open_lanes(&s, rtts, 1);
    carry(&s, 0, 100000, false);
    const double fast = 8e9 * CHUNK / 100000;
    assert_true(fabs(scheduler_rate_bps(&s, 0) / fast - 1) < 1e-9);
    carry(&s, 0, 1000000, true); /* it found the lane empty */
    assert_true(fabs(scheduler_rate_bps(&s, 0) / fast - 1) < 1e-9);
    bound(&s, 0);
    scheduler_on_idle(&s); /* there was nothing more to send */
    at.ns += NS_PER_MS;
    acknowledged(&s, 0,
                 &(struct scheduler_acked){
                     .chunks = 1, .bytes = CHUNK, .sent = {at.ns - NS_PER_MS}, .load = CHUNK});
    assert_true(fabs(scheduler_rate_bps(&s, 0) / fast - 1) < 1e-9);
    carry(&s, 0, 1000000, false); /* there was enough: an eighth of the way */
    assert_true(fabs(scheduler_rate_bps(&s, 0) / (fast * (7 + 0.1) / 8) - 1) < 1e-9);
}

/* Two chunks that took a millisecond together are acknowledged a microsecond apart, and nothing is left on the lane. */
static void reports_in_a_bunch_make_no_lane_faster(void **state)
{
    struct scheduler s;

    open_lanes(&s, rtts, 1);
    for (int turn = 0; turn < 20; turn++) {
        const struct scheduler_acked acked = {
            .chunks = 1, .bytes = CHUNK, .sent = at, .load = 2 * CHUNK};
        bound(&s, 0);
        bound(&s, 0);
        at.ns += NS_PER_MS;
        acknowledged(&s, 0, &acked);
        at.ns += 1000;
        acknowledged(&s, 0, &acked);
    }
    assert_true(scheduler_rate_bps(&s, 0) <= 8e9 * 2 * CHUNK / NS_PER_MS);
}

/* As good as its floor until it has reported one chunk; then by its chunks' delays. */
static void when_a_lane_should_deliver(void **state)
{
    struct scheduler s;

    open_lanes(&s, rtts, 2);
    assert_int_equal(scheduler_expected(&s, 0, CHUNK).ns, 100000);
    bound(&s, 0);
    assert_int_equal(scheduler_expected(&s, 0, CHUNK).ns, 200000);
    assert_int_equal(scheduler_backlog(&s, 0).ns, 0); /* unknown */
    at.ns += 300000;
    acknowledged(&s, 0,
                 &(struct scheduler_acked){
                     .chunks = 1, .bytes = CHUNK, .sent = {at.ns - 300000}, .load = CHUNK});
    /* no sooner than all lanes together work it off: 300 us, and the floor */
    assert_in_range(scheduler_expected(&s, 0, CHUNK).ns, 399990, 400010);
    carry(&s, 1, 100000, false);
    /* 200 us late behind 32 KiB: as late again for the next */
    assert_in_range(scheduler_expected(&s, 0, CHUNK).ns, 299990, 300010);
    bound(&s, 0);
    assert_in_range(scheduler_expected(&s, 0, CHUNK).ns, 499990, 500010);
    assert_in_range(scheduler_backlog(&s, 0).ns, 299990, 300010); /* 32 KiB in 300 us */
    down(&s, 0);
    scheduler_lane_open(&s, at, 0, span_ns(100000));
    assert_int_equal(scheduler_expected(&s, 0, CHUNK).ns, 100000); /* all anew */
    assert_int_equal(scheduler_backlog(&s, 0).ns, 0);
}

/* After 200 ms without traffic one chunk at a time, until it came back. */
static void a_lane_that_was_idle_for_long_begins_with_one(void **state)
{
    const struct scheduler_choice only = {.usable = 1, .room = 1, .weights = {1}};
    struct scheduler s;

    open_lanes(&s, rtts, 1);
    carry(&s, 0, 100000, false);
    for (int idle = 0; idle < 2; idle++) {
        at.ns += (idle ? 200 : 199) * NS_PER_MS;
        bound(&s, 0);
        assert_int_equal(scheduler_pick(&s, at, CHUNK, &only), idle ? -1 : 0);
        at.ns += 100000;
        acknowledged(&s, 0,
                     &(struct scheduler_acked){
                         .chunks = 1, .bytes = CHUNK, .sent = {at.ns - 100000}, .load = CHUNK});
        bound(&s, 0);
        assert_int_equal(scheduler_pick(&s, at, CHUNK, &only), 0); /* it carries again */
        at.ns += 100000;
        acknowledged(&s, 0,
                     &(struct scheduler_acked){
                         .chunks = 1, .bytes = CHUNK, .sent = {at.ns - 100000}, .load = CHUNK});
    }
}

/* Three times the time of a further chunk. For a chunk that only tests a lane: of the quickest lane. */
static void what_is_late_goes_again(void **state)
{
    static const int64_t slow_but_one[3] = {10000000, 10000000, 100000};
    struct scheduler s;

    open_lanes(&s, slow_but_one, 3);
    assert_true(scheduler_hedge_before(&s, at, 1).ns == INT64_MIN); /* nothing is known of it */
    for (uint32_t lane = 0; lane < 3; lane++) {
        carry(&s, lane, slow_but_one[lane], false);
    }
    bound(&s, 1);
    assert_in_range(at.ns - scheduler_hedge_before(&s, at, 1).ns, 299000, 301000);
    bound(&s, 1);
    assert_true(at.ns - scheduler_hedge_before(&s, at, 1).ns >= 3 * 10000000);
    down(&s, 2);
    down(&s, 1);
    assert_true(scheduler_hedge_before(&s, at, 1).ns == INT64_MIN);
}

/* A pick as a test beside another lane holds for that pick alone. */
static void slow_is_said_of_one_pick(void **state)
{
    static const int64_t one_slow[2] = {100000, 5000000};
    struct scheduler_choice choice = {.usable = 3, .room = 3, .weights = {1, 1}};
    struct scheduler s;

    open_lanes(&s, one_slow, 2);
    carry(&s, 0, 100000, false);
    carry(&s, 1, 50000000, false);
    bound(&s, 0); /* it isn't its turn for a test */
    at.ns += 20 * NS_PER_MS;
    assert_int_equal(scheduler_pick(&s, at, CHUNK, &choice), 1);
    assert_true(s.slow);
    choice.urgent = true;
    assert_int_equal(scheduler_pick(&s, at, CHUNK, &choice), 0);
    assert_false(s.slow);
}

/* ---- detector ---- */

static void detector_begin(struct detector *d, int64_t rtt_ns, uint32_t lanes)
{
    at.ns = 0;
    detector_init(d, at);
    detector_on_rtt(d, span_ns(rtt_ns));
    for (uint32_t i = 0; i < lanes; i++) {
        detector_lane_open(d, at, i);
    }
}

static void hear(struct detector *d, const int64_t *owd_ns, uint32_t lanes, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        at.ns += NS_PER_MS;
        for (uint32_t lane = 0; lane < lanes; lane++) {
            detector_on_owd(d, at, lane, owd_ns[lane]);
        }
    }
}

static uint32_t contended(const struct detector *d)
{
    static const struct detector_context alone = {.peers = 1};
    struct detector_finding f;

    detector_judge(d, at, &alone, &f);
    return f.contended;
}

/* A longer way isn't a queue, and a shared queue isn't one lane's. */
static void what_all_share_is_not_contention_of_the_longer_path(void **state)
{
    const int64_t empty[2] = {20000, 520000}, full[2] = {420000, 920000};
    struct detector d;

    detector_begin(&d, 50000, 2);
    hear(&d, empty, 2, 20);
    hear(&d, full, 2, 40);
    assert_int_equal(contended(&d), 0);
    assert_true(detector_base_over(&d));
    assert_in_range(d.base_ns, 390000, 400000);
}

/* The least of the lanes that are open and have enough samples. */
static void who_counts_for_what_lanes_share(void **state)
{
    const int64_t empty[3] = {20000, 20000, 20000}, one[2] = {20000, 420000};
    struct detector d;

    detector_begin(&d, 50000, 2);
    hear(&d, empty, 2, 20);
    hear(&d, one, 2, 40);
    assert_int_equal(d.base_ns, 0);
    detector_lane_down(&d, 0);
    detector_on_owd(&d, at, 1, 420000);
    assert_in_range(d.base_ns, 390000, 400000);
    detector_lane_open(&d, at, 0); /* three samples aren't enough, four are */
    for (int sample = 1; sample <= 4; sample++) {
        detector_on_owd(&d, at, 0, 20000);
        assert_int_equal(d.base_ns > 0, sample < 4);
    }
}

static void contention_holds_for_two_round_trips(void **state)
{
    const int64_t empty[2] = {20000, 20000}, one[2] = {20000, 90000000};
    struct detector d;

    detector_begin(&d, 50 * NS_PER_MS, 2);
    hear(&d, empty, 2, 20);
    hear(&d, one, 2, 90);
    assert_int_equal(contended(&d), 0);
    hear(&d, one, 2, 20);
    assert_int_equal(contended(&d), 2);
}

/* With only one peer the own host can't be told from that peer's link. */
static void one_peer_alone_accuses_no_host(void **state)
{
    static const struct detector_context one = {.peers = 1, .peers_over = 1},
                                         two = {.peers = 2, .peers_over = 2};
    const int64_t empty[2] = {20000, 20000}, full[2] = {420000, 420000};
    struct detector_finding f;
    struct detector d;

    detector_begin(&d, 50000, 2);
    hear(&d, empty, 2, 3);
    detector_judge(&d, at, &one, &f);
    assert_int_equal(f.verdict, DETECTOR_UNKNOWN);
    hear(&d, empty, 2, 1); /* four samples of a lane */
    detector_judge(&d, at, &one, &f);
    assert_int_equal(f.verdict, DETECTOR_CLEAR);
    hear(&d, empty, 2, 16);
    hear(&d, full, 2, 40);
    detector_judge(&d, at, &one, &f);
    assert_int_equal(f.verdict, DETECTOR_INCAST);
    detector_judge(&d, at, &two, &f);
    assert_int_equal(f.verdict, DETECTOR_OWN_HOST);
}

/* Noise is four times the scatter of the quietest lane. */
static void noise_is_measured(void **state)
{
    struct detector d;

    detector_begin(&d, 50000, 2);
    for (int i = 0; i < 40; i++) {
        const int64_t owd[2] = {i % 2 ? 220000 : 20000, i % 2 ? 420000 : 20000};
        hear(&d, owd, 2, 1);
    }
    assert_int_equal(d.theta_ns, 800000);
    detector_lane_down(&d, 0);
    detector_on_owd(&d, at, 1, 20000);
    assert_int_equal(d.theta_ns, 1600000);
}

/* A spare lane was slow once, and then idle: a second later it gets a chunk as a test. */
static void what_a_spare_lane_was_like_is_forgotten(void **state)
{
    const struct scheduler_choice choice = {
        .usable = 3, .room = 3, .spare = 2, .weights = {1, 1}, .urgent = true};
    struct scheduler s;

    (void)state;
    open_lanes(&s, rtts, 2);
    carry(&s, 1, 300 * NS_PER_MS, true);
    for (int i = 0; i < 13; i++) { /* 1.3 s */
        assert_int_equal(scheduler_pick(&s, at, CHUNK, &choice), i < 10 ? 0 : 1);
        carry(&s, 0, 100 * NS_PER_MS, true);
    }
    carry(&s, 1, NS_PER_MS, true);
    assert_int_equal(scheduler_pick(&s, at, CHUNK, &choice), 1);
}

/* A chunk every other second goes over the other NIC as long as that is better, although its rate is dropped each time. */
static void a_forgotten_spare_lane_ends_nothing(void **state)
{
    const struct scheduler_choice choice = {
        .usable = 3, .room = 3, .spare = 2, .weights = {1, 1}, .urgent = true};
    struct scheduler s;

    (void)state;
    open_lanes(&s, rtts, 2);
    carry(&s, 0, 300 * NS_PER_MS, true);
    for (int i = 0; i < 100 && !s.away; i++) {
        assert_int_equal(scheduler_pick(&s, at, CHUNK, &choice), 1);
        carry(&s, 1, NS_PER_MS, true);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(s.away);
        at.ns += 2 * NS_PER_S;
        assert_int_equal(scheduler_pick(&s, at, CHUNK, &choice), 1);
        carry(&s, 1, NS_PER_MS, true);
    }
    assert_true(s.away);
}

/* Twice as many bytes in the same time is twice as fast. A smaller difference is no gain. */
static void a_lane_is_better_by_what_it_gets_through(void **state)
{
    const int64_t rtt[3] = {50000, 50000, 50000};
    struct scheduler s;

    (void)state;
    open_lanes(&s, rtt, 3);
    assert_int_equal(scheduler_better(&s, 0, 1), -1);
    for (int i = 0; i < 30; i++) {
        carry(&s, 0, 1050000, true);
        carry(&s, 1, 2150000, true);
    }
    assert_int_equal(scheduler_better(&s, 0, 1), 1);
    assert_int_equal(scheduler_better(&s, 1, 0), 0);
    assert_int_equal(scheduler_better(&s, 0, 2), -1);
    assert_int_equal(scheduler_better(&s, 2, 0), -1);
    for (int i = 0; i < 30; i++) {
        carry(&s, 0, 1250000, true);
    }
    assert_int_equal(scheduler_better(&s, 0, 1), 0);
    (void)scheduler_better(&s, LANE_MAX, 0);
    (void)scheduler_better(&s, 0, LANE_MAX);
    down(&s, 1);
    assert_int_equal(scheduler_better(&s, 0, 1), -1);
}

static void lanes_that_are_not_there_are_not_compared(void **state)
{
    const int64_t empty[2] = {20000, 20000};
    struct detector d;

    detector_begin(&d, 50000, 2);
    assert_int_equal(detector_better(&d, 0, 1), -1);
    hear(&d, empty, 2, 7);
    assert_int_equal(detector_better(&d, 0, 1), -1); /* eight samples of the new one */
    hear(&d, empty, 2, 1);
    assert_int_equal(detector_better(&d, 0, 1), 0);
    assert_int_equal(detector_better(&d, 0, 5), -1);
    assert_int_equal(detector_better(&d, 5, 0), -1);
    (void)detector_better(&d, LANE_MAX, 0);
    (void)detector_better(&d, 0, LANE_MAX);
    detector_lane_down(&d, 1);
    assert_int_equal(detector_better(&d, 0, 1), -1);
}

/* ---- repath ---- */

/* A starved lane moves as such, also the first of all. The freeze afterwards has another reason. */
static void the_first_lane_is_a_lane(void **state)
{
    const struct detector_finding f = {.verdict = DETECTOR_CONTENTION,
                                       .contended = 1,
                                       .starved = 1,
                                       .worst = 0,
                                       .excess_ns = 1000,
                                       .base_ns = 1000};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct repath r;
        int lane = -1;
        repath_init(&r, seed, (struct mono){0});
        for (int64_t now = 0; lane < 0 && now < 5 * NS_PER_S; now += NS_PER_MS) {
            repath_on_acked(&r, 0, 1);
            lane = repath_decide(&r, (struct mono){now}, &f, 1);
        }
        assert_int_equal(lane, 0);
        assert_int_equal(r.why, REPATH_STARVED);
    }
}

/* Sixteen chunks of a contended lane are needed, whatever the time. */
static void fifteen_chunks_tell_too_little(void **state)
{
    const struct detector_finding f = {
        .verdict = DETECTOR_CONTENTION, .contended = 1, .worst = 0, .excess_ns = 1000};

    for (uint32_t chunks = 15; chunks <= 16; chunks++) {
        struct repath r;
        int lane = -1;
        repath_init(&r, 3, (struct mono){0});
        repath_on_acked(&r, 0, 100); /* before it was contended */
        (void)repath_decide(&r, (struct mono){0}, &f, 1);
        repath_on_acked(&r, 0, chunks);
        for (int64_t now = 0; lane < 0 && now < 5 * NS_PER_S; now += NS_PER_MS) {
            lane = repath_decide(&r, (struct mono){now}, &f, 1);
        }
        assert_int_equal(lane, chunks == 16 ? 0 : -1);
    }
}

/* All wait alike, and no path is better. */
static void nobody_moves_where_nothing_is_better(void **state)
{
    const struct detector_finding f = {.verdict = DETECTOR_INCAST, .risen = true, .worst = 0};
    struct repath r;
    int moved = 0;

    repath_init(&r, 5, (struct mono){0});
    for (int64_t now = 0; now < 10 * NS_PER_S; now += NS_PER_MS) {
        moved += repath_decide(&r, (struct mono){now}, &f, 0) >= 0;
    }
    assert_int_equal(moved, 0);
    for (int64_t now = 10 * NS_PER_S; now < 20 * NS_PER_S && moved == 0; now += NS_PER_MS) {
        const int lane = repath_decide(&r, (struct mono){now}, &f, 4);
        assert_true(lane == -1 || lane == 2);
        moved += lane >= 0;
    }
    assert_int_equal(moved, 1);
    assert_int_equal(r.why, REPATH_ALIKE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_that_is_not_there_carries_nothing),
        cmocka_unit_test(chunks_are_cut_for_the_lanes_that_there_are),
        cmocka_unit_test(a_slow_lane_holds_little),
        cmocka_unit_test(a_lane_that_never_saw_its_path_empty_holds_no_more),
        cmocka_unit_test(who_tells_how_long_an_empty_path_is),
        cmocka_unit_test(a_longer_route_is_not_held_back),
        cmocka_unit_test(more_back_than_went_is_a_bug),
        cmocka_unit_test(rates_of_lanes_that_had_little_do_not_fall),
        cmocka_unit_test(reports_in_a_bunch_make_no_lane_faster),
        cmocka_unit_test(when_a_lane_should_deliver),
        cmocka_unit_test(a_lane_that_was_idle_for_long_begins_with_one),
        cmocka_unit_test(what_is_late_goes_again),
        cmocka_unit_test(slow_is_said_of_one_pick),
        cmocka_unit_test(one_peer_alone_accuses_no_host),
        cmocka_unit_test(noise_is_measured),
        cmocka_unit_test(fifteen_chunks_tell_too_little),
        cmocka_unit_test(what_all_share_is_not_contention_of_the_longer_path),
        cmocka_unit_test(who_counts_for_what_lanes_share),
        cmocka_unit_test(contention_holds_for_two_round_trips),
        cmocka_unit_test(lanes_that_are_not_there_are_not_compared),
        cmocka_unit_test(a_lane_is_better_by_what_it_gets_through),
        cmocka_unit_test(what_a_spare_lane_was_like_is_forgotten),
        cmocka_unit_test(a_forgotten_spare_lane_ends_nothing),
        cmocka_unit_test(the_first_lane_is_a_lane),
        cmocka_unit_test(nobody_moves_where_nothing_is_better),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
