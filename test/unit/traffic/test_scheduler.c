/* The scheduler with lanes of different and changing speed, as simulated queues. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/traffic/scheduler.h"

#define LANES   4
#define CHUNK   32768u
#define RTT_NS  (100 * NS_PER_US)
#define PENDING 1024

/* A lane as a queue with a rate: a chunk leaves after those before it. */
struct queue {
    double rate; /* bytes per ns */
    int64_t free_at;
    int64_t back_ns; /* extra time of the way back */
    bool untold;     /* and it isn't reported */
    uint32_t head, count;
    int64_t done[PENDING], sent[PENDING], back[PENDING];
    uint64_t load[PENDING];
    uint64_t bytes;
};

static struct lane_load loads[LANE_MAX]; /* as the sender counts them */

static void acks(struct scheduler *s, struct queue *q, uint32_t lane, int64_t now)
{
    while (q->count > 0 && q->done[q->head] <= now) {
        loads[lane].chunks--;
        loads[lane].bytes -= CHUNK;
        scheduler_on_acked(s, (struct mono){now}, lane,
                           &(struct scheduler_acked){.chunks = 1,
                                                     .bytes = CHUNK,
                                                     .sent = {q->sent[q->head]},
                                                     .load = q->load[q->head],
                                                     .alone = q->count == 1,
                                                     .back_ns = q->untold ? 0 : q->back[q->head]});
        q->head = (q->head + 1) % PENDING;
        q->count--;
        q->bytes += CHUNK;
    }
}

static void put(struct scheduler *s, struct queue *q, uint32_t lane, int64_t now)
{
    const int64_t from = q->free_at > now ? q->free_at : now;

    loads[lane].chunks++;
    loads[lane].bytes += CHUNK;
    scheduler_on_bound(s, (struct mono){now}, lane);
    q->free_at = from + (int64_t)(CHUNK / q->rate);
    q->sent[(q->head + q->count) % PENDING] = now;
    const uint32_t last = (q->head + q->count) % PENDING;
    const int64_t done = q->free_at + RTT_NS + q->back_ns;
    const int64_t before = q->count > 0 ? q->done[(last + PENDING - 1) % PENDING] : 0;
    q->done[last] = done > before ? done : before; /* no report overtakes another */
    q->back[last] = q->done[last] - q->free_at - RTT_NS;
    q->load[(q->head + q->count) % PENDING] = (uint64_t)(q->count + 1) * CHUNK;
    q->count++;
    assert_true(q->count < PENDING);
}

/* Bytes in `ns`, as many as the scheduler accepts. */
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
    memset(loads, 0, sizeof(loads));
    scheduler_loads(s, loads);
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

    begin(&s, queues, 1.25);
    (void)play(&s, queues, &now, 20 * NS_PER_MS);
    queues[2].rate = 0.125; /* one link at 10 % */
    (void)play(&s, queues, &now, 100 * NS_PER_MS);
    double share = (double)play(&s, queues, &now, 100 * NS_PER_MS) / (3.1 * 1.25 * 100e6);
    assert_true(share >= 0.93);
    assert_true((double)queues[2].bytes <= (0.1 / 3.1 + 0.01) * 3.1 * 1.25 * 100e6 + 10 * CHUNK);
    queues[2].rate = 1.25; /* and back: it is noticed */
    (void)play(&s, queues, &now, 200 * NS_PER_MS);
    assert_true((double)play(&s, queues, &now, 100 * NS_PER_MS) >= 0.93 * 4 * 1.25 * 100e6);
    /* Plain turns stop at the slowest lane. */
    begin(&s, queues, 1.25);
    scheduler_round_robin(&s, true);
    assert_int_equal(scheduler_pick(&s, (struct mono){0}, CHUNK,
                                    &(struct scheduler_choice){.usable = 5, .room = 4}),
                     2);
}

/* A set with little on its way isn't held up by crowded lanes: a free lane gets nearly all of it, although its rate isn't
 * known. */
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

/* A new lane may be on the path that another one has just left. */
static void test_a_newcomer_tells_first(void **state)
{
    const struct scheduler_choice only = {.usable = 8, .room = 8, .weights = {1, 1, 1, 1}};
    static struct queue queues[LANES];
    struct scheduler s;
    int64_t now = 0;

    begin(&s, queues, 1.25);
    for (int i = 0; i < 4; i++) { /* nothing is known of any: as much as any lane gets */
        assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &only), 3);
        put(&s, &queues[3], 3, now);
    }
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &only), -1);
    (void)play(&s, queues, &now, 20 * NS_PER_MS);
    memset(&queues[3], 0, sizeof(queues[3]));
    queues[3].rate = 1.25;
    loads[3] = (struct lane_load){0};
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

    begin(&s, queues, 1.25);
    queues[3].rate = 0.05;
    (void)play(&s, queues, &now, 50 * NS_PER_MS);
    for (int step = 0; queues[3].count == 0; step++) { /* an idle lane may get a chunk as a test */
        assert_true(step < 10000);
        (void)play(&s, queues, &now, 5 * NS_PER_US);
    }
    for (uint32_t i = 0; i < 3; i++) { /* the good ones' sockets are full just now */
        choice.room &= ~(1u << i);
    }
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), -1);
    choice.room = 15;
    choice.usable = 8;
    choice.one = 8; /* a suspect gets one chunk at a time */
    while (queues[3].count > 0) {
        now += NS_PER_MS;
        acks(&s, &queues[3], 3, now);
    }
    int lane = scheduler_pick(&s, (struct mono){now}, CHUNK, &choice);
    assert_int_equal(lane, 3);
    put(&s, &queues[3], 3, now);
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), -1);
}

/* A chunk tests how slow a lane is: its message must not wait for it, and urgent chunks aren't used for that. */
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
    /* At most one in 50 in the long run, and none whose message would have to wait for it. */
    choice.room = 4;
    queues[2].rate = 0.001;
    uint32_t doubled = 0;
    for (int i = 0; i < 1000; i++) {
        for (; queues[2].count > 0 || now % (20 * NS_PER_MS) != 0; now += 5 * NS_PER_US) {
            acks(&s, &queues[2], 2, now);
        }
        if (scheduler_pick(&s, (struct mono){now}, CHUNK, &choice) == 2) {
            assert_true(s.slow);
            doubled++;
            put(&s, &queues[2], 2, now);
        }
        now += 5 * NS_PER_US;
    }
    assert_in_range(doubled, 250, 256 + 1000 / 50 + 1);
}

/* Bytes in `ns` of the set's own lanes, 0 and 1, and of those over another NIC. */
static void play_spare(struct scheduler *s, struct queue *queues, int64_t *now, int64_t ns,
                       double *ret_own, double *ret_other)
{
    const struct scheduler_choice choice = {
        .usable = 15, .room = 15, .spare = 12, .weights = {1, 1, 1, 1}};
    const int64_t end = *now + ns;

    for (uint32_t i = 0; i < LANES; i++) {
        queues[i].bytes = 0;
    }
    for (; *now < end; *now += 5 * NS_PER_US) {
        for (uint32_t i = 0; i < LANES; i++) {
            acks(s, &queues[i], i, *now);
        }
        for (int lane; (lane = scheduler_pick(s, (struct mono){*now}, CHUNK, &choice)) >= 0;) {
            put(s, &queues[lane], (uint32_t)lane, *now);
        }
    }
    *ret_own = (double)(queues[0].bytes + queues[1].bytes) / (double)ns;
    *ret_other = (double)(queues[2].bytes + queues[3].bytes) / (double)ns;
}

/* Lanes over another NIC carry nothing while the set's own are well, everything when those carry a twentieth, and nothing again
 * soon after they are well. If the own NIC is half as fast as the other, the other isn't used. */
static void test_another_nic_stands_in(void **state)
{
    static struct queue queues[LANES];
    struct scheduler s;
    int64_t now = 0;
    double own, other;

    begin(&s, queues, 1.25);
    play_spare(&s, queues, &now, 200 * NS_PER_MS, &own, &other);
    assert_true(own >= 0.95 * 2 * 1.25 && other <= 0.01 * own);
    queues[0].rate = queues[1].rate = 0.6;
    play_spare(&s, queues, &now, 500 * NS_PER_MS, &own, &other);
    assert_true(own >= 0.95 * 2 * 0.6 && other <= 0.05 * own);
    queues[0].rate = queues[1].rate = 1.25 / 20;
    play_spare(&s, queues, &now, 200 * NS_PER_MS, &own, &other);
    play_spare(&s, queues, &now, 500 * NS_PER_MS, &own, &other);
    assert_true(other >= 0.9 * 2 * 1.25);
    queues[0].rate = queues[1].rate = 1.25;
    play_spare(&s, queues, &now, NS_PER_S, &own, &other);
    play_spare(&s, queues, &now, 200 * NS_PER_MS, &own, &other);
    assert_true(own >= 0.95 * 2 * 1.25 && other <= 0.01 * own);
}

/* Other traffic fills the way back of a slow set's reports. Its own way is empty, so it must not be held back. */
static double share_while_reports_are_late(bool untold)
{
    struct scheduler s;
    struct queue queues[LANES] = {{0}};
    int64_t now = 0;

    begin(&s, queues, 0.002); /* 16 Mb/s */
    play(&s, queues, &now, NS_PER_S);
    for (uint32_t i = 0; i < LANES; i++) {
        queues[i].back_ns = 30 * NS_PER_MS;
        queues[i].untold = untold;
    }
    play(&s, queues, &now, 3 * NS_PER_S);
    return (double)play(&s, queues, &now, NS_PER_S) / (LANES * queues[0].rate * (double)NS_PER_S);
}

static void test_late_reports_hold_nothing_back(void **state)
{
    const double share = share_while_reports_are_late(false),
                 before = share_while_reports_are_late(true);

    (void)state;
    print_message("of the links' rate: %.2f; if nobody tells %.2f\n", share, before);
    assert_true(share > 0.95);
    assert_true(before < 0.8); /* else the world above shows nothing */
}

/* The way back is full now and then. Reports that waited there come together, but that is no higher rate. */
static void test_reports_that_come_together_are_no_rate(void **state)
{
    struct scheduler s;
    struct queue queues[LANES] = {{0}};
    int64_t now = 0;
    double most = 0;

    (void)state;
    begin(&s, queues, 0.01);
    for (int k = 0; k < 200; k++) {
        for (uint32_t i = 0; i < LANES; i++) {
            queues[i].back_ns = k % 2 == 0 ? 0 : 30 * NS_PER_MS;
        }
        play(&s, queues, &now, 40 * NS_PER_MS);
        for (uint32_t i = 0; i < LANES; i++) {
            most = fmax(most, scheduler_rate_bps(&s, i) / (queues[i].rate * 8e9));
        }
    }
    print_message("the highest rate of a lane, of its link's: %.2f\n", most);
    assert_true(most < 1.05); /* 1.13 if a rate were taken from the time between two reports */
}

static void test_chunk_size(void **state)
{
    static struct queue queues[LANES];
    struct scheduler s;
    int64_t now = 0;

    begin(&s, queues, 1.25);
    assert_int_equal(scheduler_chunk_size(&s, 1 << 30), 8192); /* nothing is known yet */
    (void)play(&s, queues, &now, 20 * NS_PER_MS);
    assert_int_equal(scheduler_chunk_size(&s, 100), 65536); /* 10 Gb/s */
    assert_int_equal(scheduler_chunk_size(&s, 1 << 30), 1 << LANE_CHUNK_SHIFT_MAX);
    queues[0].rate = queues[1].rate = queues[2].rate = queues[3].rate = 0.006; /* 50 Mb/s */
    (void)play(&s, queues, &now, 600 * NS_PER_MS);
    assert_int_equal(scheduler_chunk_size(&s, 1 << 30), 8192);
}

/* With a chunk of 8 KiB that a NIC writes, header and acknowledgements need as many packets as the bytes. */
static void test_chunks_of_slow_lanes_that_write(void **state)
{
    static struct queue queues[LANES];
    struct scheduler s;
    int64_t now = 0;

    begin(&s, queues, 0.006); /* 50 Mb/s */
    (void)play(&s, queues, &now, 600 * NS_PER_MS);
    s.lanes[0].rate = 0.008;
    for (uint32_t i = 1; i <= LANE_MAX; i++) { /* the last is none */
        scheduler_lane_writes(&s, i);
    }
    assert_int_equal(s.writes, (1u << LANE_MAX) - 2);
    assert_int_equal(scheduler_chunk_size(&s, 1 << 30), 8192); /* the fastest one doesn't */
    scheduler_lane_writes(&s, 0);
    assert_int_equal(scheduler_chunk_size(&s, 100), 32768);
    assert_int_equal(scheduler_chunk_size(&s, 1 << 30), 32768);
    scheduler_lane_open(&s, (struct mono){now}, 0, span_ns(RTT_NS)); /* its peer sends, too */
    s.lanes[0].rate = 0.008;
    assert_int_equal(scheduler_chunk_size(&s, 1 << 30), 32768);
    scheduler_lane_down(&s, 0);
    scheduler_lane_open(&s, (struct mono){now}, 0, span_ns(RTT_NS)); /* a connection at first */
    s.lanes[0].rate = 0.008;
    assert_int_equal(scheduler_chunk_size(&s, 1 << 30), 8192);
    scheduler_lane_writes(&s, 0);
    s.lanes[0].rate = 1.25;
    assert_int_equal(scheduler_chunk_size(&s, 100), 65536);
    assert_int_equal(scheduler_chunk_size(&s, 1 << 30), 1 << LANE_CHUNK_SHIFT_MAX);
}

/* To a process of this machine: the first lane that takes something, and as much at once as possible. */
static void test_one_way(void **state)
{
    static struct queue queues[LANES];
    struct scheduler_choice choice = {.usable = 15, .room = 15, .weights = {1, 1, 1, 1}};
    struct scheduler s;
    int64_t now = 0;

    begin(&s, queues, 1.25);
    queues[0].rate = 0.6; /* although another one would deliver much sooner */
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
    now += 20 * NS_PER_MS; /* nor is another one tried because it was idle for long */
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), 0);
    choice.weights[0] = 0.5; /* one that is doubted is not used */
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), 1);
    choice.room = 12;
    assert_int_equal(scheduler_pick(&s, (struct mono){now}, CHUNK, &choice), 2);
    scheduler_one_way(&s, false);
    assert_int_not_equal(scheduler_chunk_size(&s, 100), 1 << LANE_CHUNK_SHIFT_MAX);
}

/* Small messages stay on the first lane, however many aren't reported yet: the receiver looks at the others less often. */
static void test_one_way_keeps_small_ones_together(void **state)
{
    static struct queue queues[LANES];
    struct scheduler_choice choice = {.usable = 15, .room = 15, .weights = {1, 1, 1, 1}};
    struct scheduler s;

    begin(&s, queues, 1.25);
    scheduler_one_way(&s, true);
    for (uint32_t k = 0; k < 32; k++) {
        assert_int_equal(scheduler_pick(&s, (struct mono){k}, 64, &choice), 0);
        loads[0].chunks++;
        loads[0].bytes += 64;
        scheduler_on_bound(&s, (struct mono){k}, 0);
    }
    choice.one = 1; /* one chunk at a time there */
    assert_int_equal(scheduler_pick(&s, (struct mono){40}, 64, &choice), 1);
    choice.one = 0;
    loads[0].bytes = 1 << 20; /* more than its known rate */
    assert_int_equal(scheduler_pick(&s, (struct mono){40}, 1 << LANE_CHUNK_SHIFT_MAX, &choice), 1);
}

/* The bytes that two sets have on a shared link: first come, first served. */
static struct {
    uint32_t head, count;
    int64_t free_at;
    struct {
        uint32_t set, lane;
        int64_t sent, done;
        uint64_t load;
        bool alone;
    } chunks[PENDING];
} link;

static void link_leave(struct scheduler *sets, struct lane_load loads_of[][LANE_MAX], int64_t now,
                       uint64_t *bytes)
{
    for (; link.count > 0 && link.chunks[link.head].done <= now;
         link.head = (link.head + 1) % PENDING, link.count--) {
        const uint32_t set = link.chunks[link.head].set, lane = link.chunks[link.head].lane;
        loads_of[set][lane].chunks--;
        loads_of[set][lane].bytes -= CHUNK;
        bytes[set] += CHUNK;
        scheduler_on_acked(&sets[set], (struct mono){now}, lane,
                           &(struct scheduler_acked){.chunks = 1,
                                                     .bytes = CHUNK,
                                                     .sent = {link.chunks[link.head].sent},
                                                     .load = link.chunks[link.head].load,
                                                     .alone = link.chunks[link.head].alone});
    }
}

static void link_enter(struct lane_load *load, uint32_t set, uint32_t lane, int64_t now)
{
    const uint32_t at = (link.head + link.count++) % PENDING;

    assert_true(link.count < PENDING);
    load->chunks++;
    load->bytes += CHUNK;
    link.free_at = (link.free_at > now ? link.free_at : now) + 3500 * NS_PER_US; /* 75 Mbit/s */
    link.chunks[at].set = set;
    link.chunks[at].lane = lane;
    link.chunks[at].sent = now;
    link.chunks[at].done = link.free_at + RTT_NS;
    link.chunks[at].load = load->bytes;
    link.chunks[at].alone = load->chunks == 1;
}

/* A set whose own NIC is gone has two standbys left, on a link that another set fills with its four lanes: both get half. */
static void test_lost_lanes_share(void **state)
{
    static struct lane_load loads_of[2][LANE_MAX];
    const struct scheduler_choice choices[2] = {
        {.usable = 15, .room = 15, .weights = {1, 1, 1, 1}},
        {.usable = 48, .room = 48, .weights = {[4] = 1, [5] = 1}},
    };
    struct scheduler sets[2];
    uint64_t bytes[2] = {0};

    (void)state;
    for (uint32_t set = 0; set < 2; set++) {
        scheduler_init(&sets[set], (struct mono){0});
        scheduler_loads(&sets[set], loads_of[set]);
        scheduler_on_lanes(&sets[set], LANES);
        for (uint32_t lane = 0; lane < 6; lane++) {
            if (choices[set].usable >> lane & 1) {
                scheduler_lane_open(&sets[set], (struct mono){0}, lane, span_ns(RTT_NS));
            }
        }
    }
    for (int64_t now = 0; now < 5 * NS_PER_S; now += 100 * NS_PER_US) {
        if (now == NS_PER_S) {
            bytes[0] = bytes[1] = 0;
        }
        link_leave(sets, loads_of, now, bytes);
        for (int picked = 1; picked != 0;) {
            picked = 0;
            for (uint32_t set = 0; set < 2; set++) {
                const int lane =
                    scheduler_pick(&sets[set], (struct mono){now}, CHUNK, &choices[set]);
                if (lane >= 0) {
                    link_enter(&loads_of[set][lane], set, (uint32_t)lane, now);
                    scheduler_on_bound(&sets[set], (struct mono){now}, (uint32_t)lane);
                    picked++;
                }
            }
        }
    }
    const double ratio = (double)bytes[1] / (double)bytes[0];
    if (ratio < 0.8 || ratio > 1.25) {
        fail_msg("two lanes have %.2f of what four have", ratio);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_and_fair),
        cmocka_unit_test(test_lost_lanes_share),
        cmocka_unit_test(test_brown_out),
        cmocka_unit_test(test_free_lane_is_used),
        cmocka_unit_test(test_a_newcomer_tells_first),
        cmocka_unit_test(test_waits_for_the_best),
        cmocka_unit_test(test_slow_lanes_are_asked_beside),
        cmocka_unit_test(test_another_nic_stands_in),
        cmocka_unit_test(test_late_reports_hold_nothing_back),
        cmocka_unit_test(test_reports_that_come_together_are_no_rate),
        cmocka_unit_test(test_chunk_size),
        cmocka_unit_test(test_chunks_of_slow_lanes_that_write),
        cmocka_unit_test(test_one_way),
        cmocka_unit_test(test_one_way_keeps_small_ones_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
