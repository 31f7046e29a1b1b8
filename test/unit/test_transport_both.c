/* test_transport_both.c: two transports in one process over real loopback sockets. Both send: one set of connections serves both
 * directions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/internal.h"
#include "transport/tcp.h"
#include "trouble_io.h"

#define STEPS_MAX 200000
#define LANES     4

struct end {
    struct tcp *tcp;
    struct trouble trouble;
    struct transport *transport;
};
/* A communicator from ends[from] to the other end. */
struct way {
    int from;
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    uint64_t connecting;
    struct transport_comm *out, *in;
};
struct message {
    struct way *way;
    size_t size;
    uint64_t seed;
    uint8_t *from, *to;
    struct transport_request *send, *receive;
    bool sent, received;
};

static struct end ends[2];
static struct prng prng;

static void say_line(void *context, enum transport_level level, const char *text)
{
    if (getenv("VERBOSE") != NULL) {
        fprintf(stderr, "%s %d: %s\n", (const char *)context, level, text);
    }
}

static void world_open(uint8_t version)
{
    const struct transport_nic nic = {
        .name = "lo", .address = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}};

    for (int i = 0; i < 2; i++) {
        struct transport_config config = {.nics = &nic,
                                          .nic_count = 1,
                                          .mode = TRANSPORT_FULL,
                                          .priority = 1,
                                          .lanes = LANES,
                                          .checksum = 2,
                                          .patience = span_ms(5000),
                                          .version = i == 1 ? version : 0,
                                          .say = say_line,
                                          .say_context =
                                              (void *)(uintptr_t)(i == 0 ? "left" : "right")};
        assert_int_equal(tcp_open(&ends[i].tcp, "/sys"), 0);
        ends[i].trouble = (struct trouble){.rails = false};
        config.io = trouble_io(&ends[i].trouble, tcp_io(ends[i].tcp));
        assert_int_equal(transport_new(&ends[i].transport, &config), 0);
    }
}

static void serve(void)
{
    (void)transport_serve(ends[0].transport, (struct mono){0});
    (void)transport_serve(ends[1].transport, (struct mono){0});
}

/* Lets time pass: the kernel may need the processor to deliver what was sent. */
static void skip_ns(int64_t ns)
{
    static uint32_t calls;
    const struct timespec pause = {.tv_nsec = 50000};

    trouble_skipped_ns += ns;
    if (calls++ % 8 == 0) {
        (void)nanosleep(&pause, NULL);
    }
}

static void pass(int64_t ms)
{
    for (int64_t i = 0; i < ms; i++) {
        skip_ns(NS_PER_MS);
        serve();
    }
}

/* Waits until both ends have so many lanes. */
static void await_lanes(uint32_t count)
{
    for (int i = 0; i < STEPS_MAX &&
                    (ends[0].transport->sockets != count || ends[1].transport->sockets != count);
         i++) {
        pass(1);
    }
    assert_int_equal(ends[0].transport->sockets, count);
    assert_int_equal(ends[1].transport->sockets, count);
}

static void world_close(void)
{
    pass(300);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(transport_free(ends[i].transport), TRANSPORT_GONE);
        tcp_close(ends[i].tcp);
    }
}

static struct way way_from(int from)
{
    struct way way = {.from = from};

    assert_int_equal(transport_listen(ends[!from].transport, 0, way.handle, &way.listener), 0);
    return way;
}

static void way_step(struct way *way, bool connect)
{
    if (connect && way->out == NULL) {
        assert_int_equal(transport_connect(ends[way->from].transport, 0, way->handle,
                                           &way->connecting, &way->out),
                         0);
    } else if (!connect && way->in == NULL) {
        assert_int_equal(transport_accept(way->listener, &way->in), 0);
    }
}

static void ways_open(struct way *ways, int count)
{
    bool open = false;

    for (int i = 0; i < STEPS_MAX && !open; i++) {
        if (i > 2000) {
            skip_ns(NS_PER_MS / 8);
        }
        const uint64_t turn = prng_below(&prng, (uint64_t)count * 2 + 2);
        if (turn < (uint64_t)count * 2) {
            way_step(&ways[turn / 2], turn % 2 == 0);
        } else {
            (void)transport_serve(ends[turn % 2].transport, (struct mono){0});
        }
        open = true;
        for (int k = 0; k < count; k++) {
            open = open && ways[k].out != NULL && ways[k].in != NULL;
        }
    }
    assert_true(open);
    for (int k = 0; k < count; k++) { /* each was passed on once */
        struct transport_comm *more = NULL;
        pass(20);
        assert_int_equal(transport_accept(ways[k].listener, &more), 0);
        assert_null(more);
        transport_close_listener(ways[k].listener);
    }
}

static void way_close(struct way *way)
{
    transport_close(way->out);
    transport_close(way->in);
}

static uint32_t sets_of(int end)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < ends[end].transport->set_count; i++) {
        count += ends[end].transport->sets[i] != NULL;
    }
    return count;
}

static void fill(uint8_t *bytes, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)hash_u64(seed, i / 8);
    }
}

static void message_begin(struct message *m, struct way *way, size_t size, uint64_t seed)
{
    *m = (struct message){.way = way, .size = size, .seed = seed};
    m->from = malloc(size + 1);
    m->to = malloc(size + 1);
    fill(m->from, size, seed);
    m->to[size] = 0xee;
}

static void message_step(struct message *m, bool late)
{
    if (m->send == NULL && !m->sent) {
        assert_int_equal(transport_send(m->way->out, m->from, m->size, 7, NULL, &m->send), 0);
    }
    if (m->receive == NULL && !m->received && !late) {
        assert_int_equal(transport_receive(m->way->in, m->to, m->size, 7, false, NULL, &m->receive),
                         0);
    }
    if (m->send != NULL && !m->sent) {
        assert_int_equal(transport_test(m->send, &m->sent, NULL), 0);
        if (m->sent) {
            memset(m->from, 0x5a, m->size); /* its owner may use it again */
        }
    }
    if (m->receive != NULL && !m->received) {
        size_t got = 0;
        assert_int_equal(transport_test(m->receive, &m->received, &got), 0);
        assert_true(!m->received || got == m->size);
    }
}

static void message_end(struct message *m)
{
    fill(m->from, m->size, m->seed);
    assert_memory_equal(m->from, m->to, m->size);
    assert_int_equal(m->to[m->size], 0xee);
    free(m->from);
    free(m->to);
}

/* A way from either end, one after the other: both use one set. */
static void begin_both(struct way ways[2], uint64_t seed)
{
    prng_init(&prng, seed);
    world_open(0);
    for (int i = 0; i < 2; i++) {
        ways[i] = way_from(i);
    }
    ways_open(&ways[0], 1);
    ways_open(&ways[1], 1);
}

/* A message each way, on their way at the same time. */
static void exchange(struct way *ways, size_t size, uint64_t seed)
{
    struct message m[2];

    message_begin(&m[0], &ways[0], size, 2 * seed);
    message_begin(&m[1], &ways[1], size / 2 + 1, 2 * seed + 1);
    for (int i = 0; i < STEPS_MAX && !(m[0].sent && m[0].received && m[1].sent && m[1].received);
         i++) {
        if (i > 200) {
            skip_ns(NS_PER_MS);
        }
        message_step(&m[0], seed % 3 == 1 && i < 20);
        message_step(&m[1], seed % 5 == 1 && i < 20);
        serve();
    }
    assert_true(m[0].sent && m[0].received && m[1].sent && m[1].received);
    message_end(&m[0]);
    message_end(&m[1]);
}

/* One after the other, and both at once in any order: one set, with its lanes, for both. */
static void one_set_serves_both_directions(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        prng_init(&prng, seed);
        world_open(0);
        struct way ways[] = {way_from(0), way_from(1)};
        if (seed < 2) {
            ways_open(&ways[seed], 1);
            ways_open(&ways[!seed], 1);
        } else {
            ways_open(ways, 2);
        }
        for (uint64_t i = 0; i < 6; i++) {
            exchange(ways, i % 2 == 0 ? 300000 : 5000, i);
        }
        pass(3500); /* a set that wasn't needed is closed */
        for (int i = 0; i < 2; i++) {
            assert_int_equal(sets_of(i), 1);
        }
        await_lanes(LANES);
        assert_ptr_equal(ways[0].out->set, ways[1].in->set);
        assert_ptr_equal(ways[1].out->set, ways[0].in->set);
        way_close(&ways[0]);
        exchange((struct way[]){ways[1], ways[1]}, 70000, 9);
        way_close(&ways[1]);
        pass(2000);
        assert_int_equal(sets_of(0) + sets_of(1), 0);
        world_close();
    }
}

/* Small messages in both directions, and each end is slow to answer: the report of one message goes with the next one. Alone it
 * would cost as much as a message. */
static void reports_go_along_with_slow_answers(void **state)
{
    const uint32_t count = 300;
    uint64_t word = 0, got = 0;
    (void)state;
    struct way ways[2];
    begin_both(ways, 3);
    exchange(ways, 300000, 1);
    await_lanes(LANES);
    pass(50);
    const uint32_t before = ends[0].trouble.sends + ends[1].trouble.sends;
    trouble_slowed = true; /* only the skipped time passes */
    for (uint32_t i = 0; i < count; i++) {
        const struct way *way = &ways[i % 2];
        struct transport_request *send = NULL, *receive = NULL;
        bool sent = false, received = false;
        assert_int_equal(transport_receive(way->in, &got, sizeof(got), 7, false, NULL, &receive),
                         0);
        word = hash_u64(5, i);
        assert_int_equal(transport_send(way->out, &word, sizeof(word), 7, NULL, &send), 0);
        assert_int_equal(transport_test(send, &sent, NULL), 0);
        assert_true(sent); /* it is copied */
        for (int k = 0; k < STEPS_MAX && !received; k++) {
            assert_int_equal(transport_test(receive, &received, NULL), 0);
        }
        assert_true(received && got == word);
        skip_ns(2 * NS_PER_MS);
    }
    trouble_slowed = false;
    assert_in_range(ends[0].trouble.sends + ends[1].trouble.sends - before, count,
                    count + 2 * count / 3);
    way_close(&ways[0]);
    way_close(&ways[1]);
    world_close();
}

static void an_older_peer_has_a_set_for_each(void **state)
{
    (void)state;
    world_open(LANE_BOTH_VERSION - 1);
    struct way ways[] = {way_from(0), way_from(1)};
    ways_open(ways, 2);
    exchange(ways, 300000, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sets_of(i), 2);
    }
    await_lanes(2 * LANES);
    way_close(&ways[0]);
    way_close(&ways[1]);
    world_close();
}

/* Each direction numbers its own comms: an abort of one's first comm is none of the other's first, although it takes a lane that
 * was in the middle of a frame. */
static void an_abort_is_of_one_direction(void **state)
{
    (void)state;
    for (int aborts = 0; aborts < 2; aborts++) {
        struct message cut, whole;
        struct way ways[2];
        begin_both(ways, 7);
        assert_int_equal(ways[0].out->number, ways[1].out->number);
        exchange(ways, 300000, 1);
        message_begin(&cut, &ways[aborts], 16 << 20, 3);
        message_begin(&whole, &ways[!aborts], 1 << 20, 4);
        for (int i = 0; i < 3; i++) {
            message_step(&cut, false);
        }
        assert_false(cut.sent);
        transport_close(ways[aborts].out);
        for (int i = 0; i < STEPS_MAX && !(whole.sent && whole.received); i++) {
            if (i > 200) {
                skip_ns(NS_PER_MS);
            }
            message_step(&whole, i < 10);
            serve();
        }
        assert_true(whole.sent && whole.received);
        message_end(&whole);
        transport_close(ways[aborts].in);
        free(cut.from);
        free(cut.to);
        way_close(&ways[!aborts]);
        world_close();
    }
}

/* Lanes end at any byte, and bits flip, while both directions are full. */
static void lanes_may_fail_under_both(void **state)
{
    static const size_t sizes[] = {0, 5, 3000, 8192, 20000, 70000, 300000};
    uint32_t resets = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        prng_init(&prng, seed);
        world_open(0);
        struct way ways[] = {way_from(0), way_from(1)};
        ways_open(ways, 2);
        for (int i = 0; i < 2; i++) {
            prng_init(&ends[i].trouble.prng, seed + (uint64_t)i);
            ends[i].trouble.reset_per_million = 8000;
            ends[i].trouble.flip_per_million = i == 0 ? 20000 : 0;
            ends[i].trouble.trickle = true;
        }
        for (uint64_t i = 0; i < 30; i++) {
            exchange(ways, sizes[hash_u64(seed, i) % (sizeof(sizes) / sizeof(sizes[0]))],
                     seed * 1000 + i);
        }
        for (int i = 0; i < 2; i++) {
            resets += ends[i].trouble.resets;
            ends[i].trouble.reset_per_million = ends[i].trouble.flip_per_million = 0;
        }
        way_close(&ways[0]);
        way_close(&ways[1]);
        world_close();
    }
    assert_true(resets > 20);
}

/* One end gives the set up while nothing gets through, and makes a new one when it is connected to again: the numbers of its
 * communicators begin again, and its messages must not come to receives of the old ones. */
static void a_set_that_was_forgotten_is_another_one(void **state)
{
    struct transport_request *old = NULL, *send = NULL;
    uint8_t from[20000], to[20000];
    bool done = false;
    int r = 0;

    (void)state;
    struct way ways[2];
    begin_both(ways, 3);
    exchange(ways, 300000, 1);
    fill(from, sizeof(from), 5);
    memset(to, 0xee, sizeof(to));
    assert_int_equal(transport_receive(ways[1].in, to, sizeof(to), 7, false, NULL, &old), 0);
    struct lane_set *set = ways[1].out->set;
    pthread_mutex_lock(&set->lock);
    lane_set_fail(set, -ECONNABORTED, "given up");
    pthread_mutex_unlock(&set->lock);
    way_close(&(struct way){.out = ways[1].out, .in = ways[0].in});
    struct way again = way_from(1);
    ways_open(&again, 1);
    assert_int_equal(transport_send(again.out, from, sizeof(from), 7, NULL, &send), 0);
    for (int i = 0; i < 3000 && r == 0; i++) {
        skip_ns(NS_PER_MS);
        r = transport_test(old, &done, NULL);
        assert_false(done);
        serve();
    }
    assert_int_equal(r, -ECONNABORTED);
    for (size_t i = 0; i < sizeof(to); i++) {
        assert_int_equal(to[i], 0xee);
    }
    way_close(&(struct way){.out = ways[0].out, .in = ways[1].in});
    way_close(&again);
    world_close();
}

/* All lanes died in silence while nothing was sent. The accepting end sends for the first time, and can't replace them. */
static void a_first_message_back_finds_dead_lanes(void **state)
{
    (void)state;
    prng_init(&prng, 4);
    world_open(0);
    struct way ways[] = {way_from(0), way_from(1)};
    ways_open(&ways[0], 1);
    exchange((struct way[]){ways[0], ways[0]}, 70000, 9);
    pass(300);
    for (int i = 0; i < 2; i++) {
        for (uint32_t lane = 0; lane < LANES; lane++) {
            const struct lane_set *set = ends[i].transport->sets[0];
            ends[i].trouble.mute[set->streams[lane]->conn % 256] = true;
        }
    }
    ways_open(&ways[1], 1);
    exchange(ways, 300000, 3);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sets_of(i), 1);
    }
    way_close(&ways[0]);
    way_close(&ways[1]);
    world_close();
}

/* All lanes wait alike. The accepting end asked for another path: that is as full, which the floor of the new lane hides. It
 * hasn't helped. */
static void another_full_path_is_no_help(void **state)
{
    const struct detector_context alone = {.peers = 1};
    struct detector_finding finding;
    int lane = -1;

    (void)state;
    struct way ways[2];
    begin_both(ways, 5);
    struct lane_set *set = ways[1].out->set;
    struct traffic *traffic = &set->traffic;
    pthread_mutex_lock(&set->lock);
    assert_false(set->connects);
    struct mono at = ends[1].trouble.io.now(&ends[1].trouble.io);
    traffic_init(set, at);
    for (uint32_t i = 0; i < LANES; i++) {
        detector_lane_open(&traffic->detector, at, i);
    }
    for (int i = 0; i < 5000 && lane < 0; i++) {
        at.ns += NS_PER_MS;
        for (uint32_t k = 0; k < LANES; k++) {
            detector_on_owd(&traffic->detector, at, k, i < 20 ? 20000 : 420000);
        }
        detector_judge(&traffic->detector, at, &alone, &finding);
        lane = repath_decide(&traffic->repath, at, &finding, (1 << LANES) - 1);
    }
    assert_in_range(lane, 0, LANES - 1);
    traffic->from = lane;
    traffic->drained = true;
    traffic->began = at;
    detector_lane_down(&traffic->detector, (uint32_t)lane);
    detector_lane_open(&traffic->detector, at, LANES);
    for (int i = 0; i < 150; i++) {
        at.ns += NS_PER_MS;
        for (uint32_t k = 0; k <= LANES; k++) {
            detector_on_owd(&traffic->detector, at, k, 420000);
        }
    }
    traffic_look(set, at);
    assert_int_equal(traffic->from, -1);
    assert_int_equal(traffic->repath.tries, 1);
    traffic_init(set, ends[1].trouble.io.now(&ends[1].trouble.io));
    pthread_mutex_unlock(&set->lock);
    way_close(&ways[0]);
    way_close(&ways[1]);
    world_close();
}

/* Both began a set at once. One of two communicators on the refused set moves to the other set. When the application comes back
 * to the second communicator, the refused set no longer exists. False: they didn't meet, because this machine was too slow. */
static bool refused_and_needed(uint64_t seed)
{
    prng_init(&prng, seed);
    world_open(0);
    const int refused =
        ends[0].transport->nics[0].context < ends[1].transport->nics[0].context ? 1 : 0;
    struct way ways[] = {way_from(!refused), way_from(refused)}, late = way_from(refused);
    way_step(&ways[0], true);
    way_step(&ways[1], true);
    way_step(&late, true);
    const struct lane_set *own = ends[refused].transport->connecting->set;
    ways_open(ways, 2);
    const bool met = ways[1].out->set != own && own->version == 0;
    pass(3000);
    ways_open(&late, 1);
    exchange((struct way[]){late, ways[0]}, 300000, 1);
    way_close(&ways[0]);
    way_close(&ways[1]);
    way_close(&late);
    world_close();
    return met;
}

static void a_refused_set_may_still_be_needed(void **state)
{
    bool met = false;

    (void)state;
    for (uint64_t seed = 0; seed < 10 && !met; seed++) {
        met = refused_and_needed(seed);
    }
    assert_true(met);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_set_serves_both_directions),
        cmocka_unit_test(reports_go_along_with_slow_answers),
        cmocka_unit_test(an_older_peer_has_a_set_for_each),
        cmocka_unit_test(an_abort_is_of_one_direction),
        cmocka_unit_test(lanes_may_fail_under_both),
        cmocka_unit_test(a_set_that_was_forgotten_is_another_one),
        cmocka_unit_test(a_first_message_back_finds_dead_lanes),
        cmocka_unit_test(another_full_path_is_no_help),
        cmocka_unit_test(a_refused_set_may_still_be_needed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
