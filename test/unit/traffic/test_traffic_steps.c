/* Credit, pacing, priority, goodput, detector and repath step by step: the promises of their headers, in numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/traffic/credit.h"
#include "core/traffic/detector.h"
#include "core/traffic/goodput.h"
#include "core/traffic/pacing.h"
#include "core/traffic/priority.h"
#include "core/traffic/repath.h"

/* ---- pacing ---- */

static void a_bucket_is_paid_back_to_the_byte(void **state)
{
    struct pacing p;
    const struct mono start = {NS_PER_S};

    pacing_init(&p, start, 0.1, 1000);
    assert_true(pacing_take(&p, start, 1000)); /* the burst */
    assert_false(pacing_take(&p, start, 1));
    struct mono next = pacing_deadline(&p, start);
    assert_int_equal(next.ns, start.ns + 1);
    assert_true(pacing_take(&p, next, 1000)); /* below zero by nearly one chunk */
    const struct mono paid = pacing_deadline(&p, next);
    assert_in_range(paid.ns - next.ns, 9999, 10001);
    assert_false(pacing_take(&p, (struct mono){paid.ns - 20}, 1));
    assert_true(pacing_take(&p, paid, 1));
    const struct mono later = {paid.ns + NS_PER_S}; /* a pause saves no more than the burst */
    assert_true(pacing_take(&p, later, 1000));
    assert_false(pacing_take(&p, later, 1));
    pacing_spend(&p, later, 5000);
    assert_in_range(pacing_deadline(&p, later).ns - later.ns, 49000, 51000);
    pacing_rate(&p, later, 0); /* no limit: no debt either */
    assert_int_equal(pacing_deadline(&p, later).ns, later.ns);
    pacing_init(&p, start, 0, 1000);
    pacing_spend(&p, start, 1U << 30);
    pacing_rate(&p, start, 0.1);
    assert_true(pacing_take(&p, start, 1));
    pacing_rate(&p, start, 0.2); /* savings are kept */
    assert_true(pacing_take(&p, start, 998));
    assert_true(pacing_take(&p, start, 1000));
    assert_false(pacing_take(&p, start, 1));
    assert_in_range(pacing_deadline(&p, start).ns - start.ns, 4990, 5000);
}

/* ---- goodput ---- */

static void goodput_is_of_windows_of_20_ms_and_four_lives(void **state)
{
    struct goodput g;
    const struct span life = span_ms(1), longer = span_ms(10);

    goodput_init(&g, (struct mono){NS_PER_S});
    goodput_on_arrived(&g, (struct mono){NS_PER_S + 20 * NS_PER_MS - 1}, 1000, life, false);
    assert_true(g.best <= 0);
    goodput_on_arrived(&g, (struct mono){NS_PER_S + 20 * NS_PER_MS}, 1000, life, false);
    assert_true(fabs(g.best - 2000 / 20e6) < 1e-12);
    goodput_on_arrived(&g, (struct mono){NS_PER_S + 59 * NS_PER_MS}, 6000, longer, false);
    assert_true(fabs(g.best - 2000 / 20e6) < 1e-12);
    goodput_on_arrived(&g, (struct mono){NS_PER_S + 60 * NS_PER_MS}, 6000, longer, false);
    assert_true(fabs(g.best - 12000 / 40e6) < 1e-12);
    goodput_on_arrived(&g, (struct mono){NS_PER_S + 80 * NS_PER_MS}, 1, life, true);
    assert_true(fabs(g.best - 12000 / 40e6) < 1e-12); /* we held back: nothing is dropped */
    goodput_on_arrived(&g, (struct mono){NS_PER_S + 100 * NS_PER_MS}, 1, life, false);
    assert_true(fabs(g.best - 0.999 * 12000 / 40e6) < 1e-12);
}

/* ---- priority ---- */

static void classes_are_marked(void **state)
{
    assert_int_equal(priority_dscp(PRIORITY_LOW), 8);
    assert_int_equal(priority_dscp(PRIORITY_NORMAL), 0);
    assert_int_equal(priority_dscp(PRIORITY_HIGH), 34);
    assert_int_equal(priority_dscp(PRIORITY_COUNT), 0);
}

static uint32_t on_queue(struct priority *p, struct priority_sample *s, int64_t queue_ns)
{
    s->sent.ns += 20 * NS_PER_MS;
    s->queue_ns = queue_ns;
    priority_on_delay(p, mono_add(s->sent, span_ms(10)), s);
    return priority_window(p);
}

/* A target of five chunks, or half a life: 5 ms in both cases. Ten chunks in a life. */
static void the_window_follows_the_target(void **state)
{
    struct priority_sample s = {
        .goodput = 8192e-6, .life_ns_min = 10 * NS_PER_MS, .chunk = 8192, .lanes = 1};
    struct priority p;

    priority_init(&p, (struct mono){0});
    for (uint32_t window = 2; window <= 11; window++) {
        assert_int_equal(on_queue(&p, &s, 5 * NS_PER_MS), window);
    }
    assert_int_equal(on_queue(&p, &s, 5 * NS_PER_MS), 11); /* one and a half beyond what it holds */
    assert_int_equal(on_queue(&p, &s, 10 * NS_PER_MS), 5); /* twice the target: half */
    assert_int_equal(on_queue(&p, &s, 5 * NS_PER_MS + 1), 2);
    assert_int_equal(on_queue(&p, &s, 5 * NS_PER_MS), 3);
    assert_int_equal(on_queue(&p, &s, 10 * NS_PER_MS + 1), 0); /* more than twice: aside */
    assert_true(fabs(priority_rate(&p) - 0.05 * 8192e-6) < 1e-12);
    assert_int_equal(on_queue(&p, &s, 5 * NS_PER_MS), 1);
    s.lanes = 4; /* its share of each lane: 2.5 chunks a life, and 1.5 */
    for (int i = 0; i < 10; i++) {
        (void)on_queue(&p, &s, 0);
    }
    assert_int_equal(priority_window(&p), 4);
    s.life_ns_min = 14 * NS_PER_MS; /* half a life is the longer one now */
    assert_int_equal(on_queue(&p, &s, 7 * NS_PER_MS), 5);
    assert_int_equal(on_queue(&p, &s, 7 * NS_PER_MS + 1), 2);
    s.lanes = s.chunk = 0; /* not reported */
    s.goodput = 0;
    s.life_ns_min = 0;
    assert_int_equal(on_queue(&p, &s, 20 * NS_PER_US), 1); /* the least target */
    assert_int_equal(on_queue(&p, &s, -1), PRIORITY_WINDOW_MAX);
    assert_non_null(priority_bug(&p));
    assert_true(priority_rate(&p) <= 0);
}

/* ---- credit: 0.1 bytes a ns, a round trip of 100 us: the target is 50 us ---- */

#define RTT_NS (100 * NS_PER_US)
static struct mono now;

static void credit_begin(struct credit *c)
{
    now.ns = NS_PER_S;
    credit_init(c, now);
    credit_on_rtt(c, span_ns(3 * RTT_NS));
    credit_on_rtt(c, span_ns(RTT_NS));
    credit_on_rtt(c, span_ns(2 * RTT_NS)); /* the least counts */
    credit_on_rtt(c, span_ns(0));
    credit_on_rtt(c, span_ns(-5));
}

static double mean_ns;     /* of all that delays chunks, anywhere */
static uint32_t receivers; /* of each sender */

/* An interval of 10 ms. Returns what each sender may have on its way after it. */
static uint64_t interval(struct credit *c, uint32_t senders, double share, int64_t queue_ns,
                         int64_t noise_ns)
{
    const uint32_t before = c->interval;

    for (uint32_t i = 0; i < senders; i++) {
        const struct credit_arrivals a = {.bytes = (uint64_t)(1e6 * share / senders),
                                          .queue_ns = queue_ns + 1000 * i,
                                          .delay_ns = 4 * mean_ns,
                                          .delays = 4,
                                          .noise_ns = noise_ns,
                                          .chunk = 1000,
                                          .comms = 1,
                                          .receivers = receivers,
                                          .first = true};
        credit_on_arrivals(c, now, &a);
    }
    now.ns += 10 * NS_PER_MS;
    credit_tick(c, now);
    assert_int_equal(c->interval, before + 1);
    return credit_window(c);
}

/* Three in a row above the target, from two senders: the rate for a round trip and the queue. */
static uint64_t limited(struct credit *c)
{
    credit_begin(c);
    assert_true(interval(c, 2, 1, 60000, 0) == CREDIT_UNLIMITED);
    assert_true(interval(c, 2, 1, 60000, 0) == CREDIT_UNLIMITED);
    return interval(c, 2, 1, 60000, 0);
}

static void three_intervals_in_a_row_begin_it(void **state)
{
    struct credit c;

    assert_in_range(limited(&c), 7990, 8000); /* 0.1 (100 + 60 us), for two */
    assert_int_equal(c.begins, 1);
    credit_begin(&c);
    for (int i = 0; i < 9; i++) { /* never three in a row */
        assert_true(interval(&c, 2, 1, i % 3 == 2 ? 50000 : 60000, 0) == CREDIT_UNLIMITED);
    }
    credit_begin(&c);
    for (int i = 0; i < 9; i++) { /* the target itself is allowed */
        assert_true(interval(&c, 2, 1, 50000, 0) == CREDIT_UNLIMITED);
    }
    for (int i = 0; i < 9; i++) { /* and no sender is held off a link that it has alone */
        assert_true(interval(&c, 1, 1, 60000, 0) == CREDIT_UNLIMITED);
    }
    for (int i = 0; i < 9; i++) { /* what clocks may be off by is no queue */
        assert_true(interval(&c, 2, 1, 60000, 60000) == CREDIT_UNLIMITED);
    }
    assert_true(interval(&c, 2, 1, 60000, 0) == CREDIT_UNLIMITED); /* half of it is left: 30 us */
    assert_true(interval(&c, 2, 1, 60000, 0) == CREDIT_UNLIMITED);
    assert_true(interval(&c, 2, 1, 60000, 0) != CREDIT_UNLIMITED);
}

/* Four senders: their shares of our links add up to one link, to two, or, if none are reported, to four. */
static void senders_that_have_others_to_serve_are_no_incast(void **state)
{
    static const struct {
        uint32_t receivers;
        bool limited;
    } cases[] = {{4, false}, {3, false}, {2, true}, {1, true}, {0, true}};
    struct credit c;

    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        receivers = cases[k].receivers;
        credit_begin(&c);
        for (int i = 0; i < 9; i++) {
            (void)interval(&c, 4, 1, 60000, 0);
        }
        assert_true((credit_window(&c) != CREDIT_UNLIMITED) == cases[k].limited);
    }
    receivers = 4; /* limits end with their reason */
    for (int i = 0; i < 12; i++) {
        (void)interval(&c, 4, 1, 60000, 0);
    }
    assert_true(credit_window(&c) == CREDIT_UNLIMITED);
    receivers = 0;
}

static void the_window_is_what_the_link_needs(void **state)
{
    struct credit c;

    (void)limited(&c);
    assert_in_range(interval(&c, 2, 1, 55000, 0), 7740, 7750); /* less what stands too much */
    assert_in_range(interval(&c, 2, 1, 50000, 0), 7740, 7750); /* the target */
    assert_in_range(interval(&c, 2, 1, 25000, 0), 7740, 7750); /* half of it */
    for (int i = 1; i <= 10; i++) {                            /* half the target's worth more */
        assert_in_range(interval(&c, 2, 1, 24000, 0), 7740 + 1250 * i, 7750 + 1250 * i);
    }
    assert_in_range(interval(&c, 2, 1, NS_PER_MS, 0), 10120, 10125); /* by half at most */
    for (int i = 0; i < 10; i++) {
        (void)interval(&c, 2, 1, NS_PER_MS, 0);
    }
    assert_in_range(credit_window(&c), 7490, 7500);            /* 0.1 (100 + 50 us) at least */
    assert_in_range(interval(&c, 4, 1, 40000, 0), 3740, 3750); /* four share it */
    for (int i = 0; i < 10; i++) {
        (void)interval(&c, 20, 1, NS_PER_MS, 0);
    }
    assert_int_equal(credit_window(&c), 1000); /* a chunk for each at least */
}

/* The link runs dry: the increase is an eighth if that is more. */
static void a_dry_link_gets_more_at_once(void **state)
{
    struct credit c;

    (void)limited(&c);
    for (int i = 0; i < 16; i++) {
        (void)interval(&c, 2, 1, 0, 0);
    }
    const double before = c.window;
    (void)interval(&c, 2, 0.96, 0, 0); /* as much as before, nearly */
    assert_true(c.window - before < 2500);
    const double dry = c.window;
    (void)interval(&c, 2, 0.94, 0, 0);
    assert_true(fabs(c.window - dry * 9 / 8) < 1);
}

static void it_ends_when_nobody_needs_it(void **state)
{
    struct credit c;
    int intervals = 0;

    (void)limited(&c);
    for (; interval(&c, 2, 1, 0, 0) != CREDIT_UNLIMITED; intervals++) {
    }
    assert_in_range(intervals, 46, 50); /* eight times 0.1 (100 + 50 us) and a chunk each */
    (void)limited(&c);
    for (intervals = 0; interval(&c, 1, 1, 30000, 0) != CREDIT_UNLIMITED; intervals++) {
    }
    assert_int_equal(intervals, 10); /* one alone for 100 ms */
    (void)limited(&c);
    for (int i = 0; i < 30; i++) { /* two again meanwhile */
        assert_true(interval(&c, i % 8 == 7 ? 2 : 1, 1, 30000, 0) != CREDIT_UNLIMITED);
    }
}

/* Eight intervals with less than 0.9 of the rate before, while the queue stands: others take it. */
static void it_ends_when_it_does_harm(void **state)
{
    struct credit c;

    (void)limited(&c);
    for (int i = 0; i < 30; i++) {
        assert_true(interval(&c, 2, 0.91, 60000, 0) != CREDIT_UNLIMITED);
    }
    for (int i = 0; i < 30; i++) { /* never eight in a row */
        assert_true(interval(&c, 2, i % 8 == 7 ? 1 : 0.8, 60000, 0) != CREDIT_UNLIMITED);
    }
    assert_int_equal(c.harms, 0);
    for (int64_t bar = 1; bar <= 128; bar *= 2) {
        int intervals = 0;
        (void)interval(&c, 2, 1, 60000, 0);
        for (int i = 1; i < 8; i++) {
            assert_true(interval(&c, 2, 0.8, 60000, 0) != CREDIT_UNLIMITED);
        }
        assert_true(interval(&c, 2, 0.8, 60000, 0) == CREDIT_UNLIMITED);
        for (; interval(&c, 2, 1, 60000, 0) == CREDIT_UNLIMITED; intervals++) {
        }
        const int64_t most = bar < 64 ? bar : 64; /* seconds */
        assert_in_range(intervals, most * 100 - 2, most * 100 + 1);
    }
    assert_int_equal(c.harms, 8);
}

/* All chunks wait, but not for the same: other queues are those of trunks and of the senders' own NICs. Chunks that wait there
 * keep our link full. If most wait there with any window, limits don't help. */
static void queues_elsewhere_are_not_ours(void **state)
{
    struct credit c;
    int intervals = 0;

    mean_ns = 260000;
    assert_in_range(limited(&c), 17990, 18000); /* 0.1 (100 + 60 + 200 us) */
    mean_ns = 1200000;                          /* no less than 0.1 (100 + 50 + 200) */
    assert_in_range(interval(&c, 2, 1, NS_PER_MS, 0), 17490, 17500);
    for (int i = 0; i < 100; i++) { /* three times in four more of it is here */
        mean_ns = i % 4 == 0 ? 260000 : 160000;
        assert_true(interval(&c, 2, 1, 60000, 0) != CREDIT_UNLIMITED);
    }
    mean_ns = 260000;
    for (int i = 0; i < 200; i++) { /* but as much comes as without limits: they do no harm */
        assert_true(interval(&c, 2, 0.98, 60000, 0) != CREDIT_UNLIMITED);
    }
    for (; interval(&c, 2, 0.93, 60000, 0) != CREDIT_UNLIMITED; intervals++) {
    }
    assert_in_range(intervals, 5, 40);
    assert_int_equal(c.harms, 1);
    for (intervals = 0; interval(&c, 2, 1, 60000, 0) == CREDIT_UNLIMITED; intervals++) {
    }
    assert_in_range(intervals, 798, 801);
    for (intervals = 0; interval(&c, 2, 0.93, 60000, 0) != CREDIT_UNLIMITED; intervals++) {
    }
    assert_in_range(intervals, 48, 51); /* half a second at least */
    mean_ns = 0;
}

static void intervals_are_long_enough_to_tell(void **state)
{
    struct credit c;

    credit_begin(&c);
    credit_tick(&c, (struct mono){now.ns + 2 * NS_PER_MS - 1});
    assert_int_equal(c.interval, 1);
    credit_tick(&c, (struct mono){now.ns + 2 * NS_PER_MS});
    assert_int_equal(c.interval, 2);
    const struct credit_arrivals late = {.bytes = 1000, .queue_ns = 1, .chunk = 1000};
    credit_on_arrivals(&c, (struct mono){now.ns + 4 * NS_PER_MS}, &late);
    assert_int_equal(c.interval, 3); /* bytes after its end belong to the next one */
    assert_int_equal(c.bytes, 1000);
    assert_true(c.rate <= 0);
    now.ns = NS_PER_S;
    credit_init(&c, now);
    credit_on_rtt(&c, span_ms(10)); /* four round trips */
    credit_tick(&c, (struct mono){now.ns + 40 * NS_PER_MS - 1});
    assert_int_equal(c.interval, 1);
    credit_tick(&c, (struct mono){now.ns + 40 * NS_PER_MS});
    assert_int_equal(c.interval, 2);
    credit_init(&c, now);
    credit_on_rtt(&c, span_s(1));
    credit_tick(&c, (struct mono){now.ns + 200 * NS_PER_MS});
    assert_int_equal(c.interval, 2);
    (void)limited(&c); /* the last change must have an effect first: a round trip and the queue */
    (void)interval(&c, 2, 1, 5 * NS_PER_MS, 0);
    const uint32_t before = c.interval;
    credit_tick(&c, (struct mono){now.ns + 5 * NS_PER_MS + RTT_NS - 1});
    assert_int_equal(c.interval, before);
    credit_tick(&c, (struct mono){now.ns + 5 * NS_PER_MS + RTT_NS});
    assert_int_equal(c.interval, before + 1);
    credit_begin(&c); /* sixteen chunks at the rate, or two for each communicator */
    const struct credit_arrivals slow = {.bytes = 10000,
                                         .queue_ns = CREDIT_QUEUE_UNKNOWN,
                                         .chunk = 1000,
                                         .comms = 20,
                                         .first = true};
    credit_on_arrivals(&c, now, &slow);
    now.ns += 10 * NS_PER_MS;
    credit_tick(&c, now); /* 0.001 bytes a ns: a chunk in 1 ms */
    credit_tick(&c, (struct mono){now.ns + 40 * NS_PER_MS - 1});
    assert_int_equal(c.interval, 2);
    credit_tick(&c, (struct mono){now.ns + 40 * NS_PER_MS});
    assert_int_equal(c.interval, 3);
}

/* ---- detector ---- */

static void open_lanes(struct detector *d, uint32_t lanes)
{
    detector_init(d, (struct mono){0});
    detector_on_rtt(d, span_us(50));
    detector_on_rtt(d, span_us(100));
    detector_on_rtt(d, span_ns(0));
    for (uint32_t i = 0; i < lanes; i++) {
        detector_lane_open(d, (struct mono){0}, i);
    }
}

static void what_is_no_lane_says_nothing(void **state)
{
    struct detector d;

    open_lanes(&d, 2);
    assert_int_equal(d.rtt_floor_ns, 50000);
    assert_int_equal(detector_queue_ns(&d, 0), -1); /* no sample yet */
    detector_on_owd(&d, (struct mono){1}, LANE_MAX, 5);
    detector_lane_open(&d, (struct mono){1}, LANE_MAX);
    detector_lane_down(&d, LANE_MAX);
    detector_on_owd(&d, (struct mono){1}, 5, 5); /* never opened */
    assert_int_equal(detector_queue_ns(&d, 5), -1);
    assert_int_equal(detector_queue_ns(&d, LANE_MAX), -1);
    detector_on_owd(&d, (struct mono){1}, 0, 1000);
    assert_int_equal(detector_queue_ns(&d, 0), 0);
    detector_on_owd(&d, (struct mono){2}, 0, 5000); /* 4 us of queue: a quarter of the way */
    assert_int_equal(detector_queue_ns(&d, 0), 1000);
    detector_on_owd(&d, (struct mono){3}, 0, 5000);
    assert_int_equal(detector_queue_ns(&d, 0), 1750);
    detector_lane_down(&d, 0);
    assert_int_equal(detector_queue_ns(&d, 0), -1);
    detector_lane_open(&d, (struct mono){4}, 0); /* another path, from nothing */
    detector_on_owd(&d, (struct mono){5}, 0, 9000);
    assert_int_equal(detector_queue_ns(&d, 0), 0);
    d.off = true;
    detector_on_owd(&d, (struct mono){6}, 0, 90000);
    assert_int_equal(detector_queue_ns(&d, 0), 0);
}

/* Gives each lane its `queue`, 32 times, 1 ms apart. Judges `later`. */
static struct detector_finding judged_after(const int64_t *queue, uint32_t lanes, int rounds,
                                            int64_t later)
{
    static const struct detector_context alone = {.peers = 1};
    struct detector_finding f;
    struct detector d;
    int64_t at = 0;

    open_lanes(&d, lanes);
    for (int i = 0; i < 10; i++, at += NS_PER_MS) {
        for (uint32_t lane = 0; lane < lanes; lane++) {
            detector_on_owd(&d, (struct mono){at}, lane, 20000);
        }
    }
    for (int i = 0; i < rounds; i++, at += NS_PER_MS) {
        for (uint32_t lane = 0; lane < lanes; lane++) {
            detector_on_owd(&d, (struct mono){at}, lane, 20000 + queue[lane]);
        }
    }
    detector_judge(&d, (struct mono){at + later}, &alone, &f);
    return f;
}

static void the_worst_lane_and_its_excess(void **state)
{
    const int64_t queue[4] = {100000, 900000, 500000, 1000000};
    const struct detector_finding f = judged_after(queue, 4, 60, 0);

    assert_int_equal(f.worst, 3);
    assert_in_range(f.excess_ns, 895000, 901000);
    assert_in_range(f.base_ns, 99000, 100000);
    assert_int_equal(f.contended, 0xe);
    assert_int_equal(judged_after(queue, 1, 60, 0).worst, 0);
    assert_int_equal(judged_after(queue, 1, 60, 0).contended, 0); /* there is no other lane */
}

static void contention_takes_eight_chunks_and_a_faster_lane_of_late(void **state)
{
    const int64_t queue[2] = {0, 900000};

    assert_int_equal(judged_after(queue, 2, 7, 0).contended, 0);
    assert_int_equal(judged_after(queue, 2, 8, 0).contended, 2);
    assert_int_equal(judged_after(queue, 2, 20, 90 * NS_PER_MS).contended, 2);
    assert_int_equal(judged_after(queue, 2, 20, 110 * NS_PER_MS).contended, 0); /* unknown now */
}

/* One good sample, and the count begins anew. */
static void what_comes_and_goes_is_no_contention(void **state)
{
    static const struct detector_context alone = {.peers = 1};
    struct detector_finding f;
    struct detector d;

    open_lanes(&d, 2);
    for (int64_t i = 0; i < 400; i++) {
        const int64_t queue = i % 20 >= 14 ? 300000 : 0; /* above theta for six samples or so */
        detector_on_owd(&d, (struct mono){i * NS_PER_MS}, 0, 20000);
        detector_on_owd(&d, (struct mono){i * NS_PER_MS}, 1, 20000 + queue);
        detector_judge(&d, (struct mono){i * NS_PER_MS}, &alone, &f);
        assert_true(d.lanes[1].over <= 400);
        if (i % 20 == 13) {
            assert_int_equal(f.contended, 0);
        }
    }
}

static void names_of_verdicts(void **state)
{
    assert_string_equal(detector_verdict_name(DETECTOR_CLEAR), "clear");
    assert_string_equal(detector_verdict_name(DETECTOR_CONGESTION), "congestion");
    assert_string_equal(detector_verdict_name(DETECTOR_VERDICT_COUNT), "unknown");
}

/* ---- repath ---- */

/* The first time from `from` on at which one of the lanes moves; -1: not within 10 s. */
static int64_t moves(struct repath *r, struct detector_finding f, uint32_t better, int64_t from,
                     uint32_t chunks_a_ms, int *ret_lane)
{
    for (int64_t at = from; at < from + 10 * NS_PER_S; at += NS_PER_MS) {
        for (uint32_t lane = 0; lane < 4; lane++) {
            repath_on_acked(r, lane, chunks_a_ms);
        }
        const int lane = repath_decide(r, (struct mono){at}, &f, better);
        if (lane >= 0) {
            *ret_lane = lane;
            return at - from;
        }
    }
    return -1;
}

static void the_worst_of_the_contended_goes_first(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct detector_finding f = {
            .verdict = DETECTOR_CONTENTION, .contended = 0xe, .worst = 2, .excess_ns = 100};
        struct repath r;
        int lane = -1;
        repath_init(&r, seed, (struct mono){0});
        assert_in_range(moves(&r, f, 0xe, 0, 1, &lane), 50 * NS_PER_MS, NS_PER_S);
        assert_int_equal(lane, 2);
        assert_int_equal(r.count, 1);
        repath_init(&r, seed, (struct mono){0});
        assert_true(moves(&r, f, 8, 0, 1, &lane) >= 0); /* nothing is better for the worst */
        assert_int_equal(lane, 3);
        f.contended = 1; /* the first lane of all */
        f.worst = 0;
        repath_init(&r, seed, (struct mono){0});
        assert_true(moves(&r, f, 1, 0, 1, &lane) >= 0);
        assert_int_equal(lane, 0);
        repath_init(&r, seed, (struct mono){0});
        assert_int_equal(moves(&r, f, 1, 0, 0, &lane), -1); /* it carried nothing */
        f.verdict = DETECTOR_INCAST;
        assert_int_equal(moves(&r, f, 1, 0, 1, &lane), -1); /* another path is no help */
    }
}

/* Back to 50 ms if it helped; doubled up to 2 s if it didn't. */
static void who_moved_in_vain_waits_longer(void **state)
{
    const struct detector_finding f = {
        .verdict = DETECTOR_CONTENTION, .contended = 1, .worst = 0, .excess_ns = 1000};

    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct repath r;
        int64_t at = 0, least = 50 * NS_PER_MS;
        int lane;
        repath_init(&r, seed, (struct mono){0});
        repath_on_moved(&r, (struct mono){0}, 0); /* none was on its way */
        assert_int_equal(r.freeze[REPATH_CONTENDED].ns, 50 * NS_PER_MS);
        for (int i = 0; i < 8; i++) {
            const int64_t took = moves(&r, f, 1, at, 1, &lane);
            assert_true(took >= (i > 0 ? least : 50 * NS_PER_MS));
            assert_true(took <= 2 * least + 1500 * NS_PER_MS);
            at += took;
            repath_on_moved(&r, (struct mono){at},
                            i % 2 ? 501 : -1); /* hardly half; or it failed */
            least = least * 2 < 2 * NS_PER_S ? least * 2 : 2 * NS_PER_S;
        }
        at += moves(&r, f, 1, at, 1, &lane);
        repath_on_moved(&r, (struct mono){at}, 500); /* half of it */
        assert_in_range(moves(&r, f, 1, at, 1, &lane), 50 * NS_PER_MS, 1500 * NS_PER_MS);
    }
}

/* The coin: of many equal ones half stay in the first 50 ms. */
static void half_of_them_stay_for_now(void **state)
{
    const struct detector_finding f = {
        .verdict = DETECTOR_CONTENTION, .contended = 1, .worst = 0, .excess_ns = 1000};
    unsigned early = 0;

    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct repath r;
        int lane;
        repath_init(&r, seed, (struct mono){0});
        early += moves(&r, f, 1, 0, 1, &lane) < 60 * NS_PER_MS;
    }
    assert_in_range(early, 75, 125);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_is_paid_back_to_the_byte),
        cmocka_unit_test(goodput_is_of_windows_of_20_ms_and_four_lives),
        cmocka_unit_test(classes_are_marked),
        cmocka_unit_test(the_window_follows_the_target),
        cmocka_unit_test(three_intervals_in_a_row_begin_it),
        cmocka_unit_test(senders_that_have_others_to_serve_are_no_incast),
        cmocka_unit_test(the_window_is_what_the_link_needs),
        cmocka_unit_test(a_dry_link_gets_more_at_once),
        cmocka_unit_test(it_ends_when_nobody_needs_it),
        cmocka_unit_test(it_ends_when_it_does_harm),
        cmocka_unit_test(queues_elsewhere_are_not_ours),
        cmocka_unit_test(intervals_are_long_enough_to_tell),
        cmocka_unit_test(what_is_no_lane_says_nothing),
        cmocka_unit_test(the_worst_lane_and_its_excess),
        cmocka_unit_test(contention_takes_eight_chunks_and_a_faster_lane_of_late),
        cmocka_unit_test(what_comes_and_goes_is_no_contention),
        cmocka_unit_test(names_of_verdicts),
        cmocka_unit_test(the_worst_of_the_contended_goes_first),
        cmocka_unit_test(who_moved_in_vain_waits_longer),
        cmocka_unit_test(half_of_them_stay_for_now),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
