/* test_transport.c: messages between two transports in one process over real loopback sockets: of all sizes, early, late, over
 * lanes that fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/room.h"
#include "transport_pair.h"

static void messages_of_all_sizes_arrive(void **state)
{
    static const size_t sizes[] = {0,    1,     8,     100,   8191,    8192,
                                   8193, 30000, 65536, 65537, 1000000, 4 << 20};
    struct pair pair;

    (void)state;
    pair_open(&pair);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        exchange(&pair, sizes[i], sizes[i], true, i);
        exchange(&pair, sizes[i], sizes[i] + 100, true, i + 50); /* short */
        exchange(&pair, sizes[i], sizes[i], false, i + 100);
    }
    pair_close(&pair);
}

static void many_in_flight_keep_their_order(void **state)
{
    enum { COUNT = 300, SIZE = 3000 };
    struct pair pair;
    struct transport_request *sends[COUNT] = {0}, *receives[COUNT] = {0};
    static uint8_t from[COUNT][SIZE], to[COUNT][SIZE];
    int posted = 0, got = 0, begun = 0, sent = 0;

    (void)state;
    pair_open(&pair);
    for (int i = 0; i < STEPS_MAX && (got < COUNT || sent < COUNT); i++) {
        if (begun < COUNT) {
            fill(from[begun], SIZE, (uint64_t)begun);
            assert_int_equal(transport_send(pair.out, from[begun], SIZE, 0, NULL, &sends[begun]),
                             0);
            begun += sends[begun] != NULL;
        }
        if (posted < COUNT && i % 3 == 0) {
            assert_int_equal(transport_receive(pair.in, to[posted], SIZE, 0, i % 2 == 0, NULL,
                                               &receives[posted]),
                             0);
            posted += receives[posted] != NULL;
        }
        bool done = false;
        if (sent < begun) {
            assert_int_equal(transport_test(sends[sent], &done, NULL), 0);
            sent += done;
        }
        if (got < posted) {
            assert_int_equal(transport_test(receives[got], &done, NULL), 0);
            if (done) {
                assert_memory_equal(from[got], to[got], SIZE);
                got++;
            }
        }
        serve(&pair);
    }
    assert_int_equal(got, COUNT);
    assert_int_equal(sent, COUNT);
    pair_close(&pair);
}

/* Messages are sent before their receives are posted, in as many slots as the receiver has, and are lost with all lanes: they
 * arrive nevertheless. A peer of an older version gets none of them early. */
static void lose_what_comes_early(size_t size, uint8_t since)
{
    enum { COUNT = LANE_LARGE_SLOTS + 2, SIZE = 100000 };
    static uint8_t from[COUNT][SIZE], to[COUNT][SIZE];
    struct transport_request *sends[COUNT] = {0}, *receives[COUNT] = {0};
    struct sender_counters counters;
    struct pair pair;

    for (version = 2; version <= LANE_VERSION; version++) {
        bool sent[COUNT] = {0}, received[COUNT] = {0};
        pair_open(&pair);
        for (int i = 0; i < COUNT; i++) {
            fill(from[i], size, (uint64_t)i);
            memset(to[i], 0, size);
            assert_int_equal(transport_send(pair.out, from[i], size, 0, NULL, &sends[i]), 0);
        }
        sender_counters_get(pair.sender.transport->sets[0]->sender, &counters);
        assert_true(version < since ? counters.eager == 0
                                    : counters.eager > 0 && counters.eager <= LANE_LARGE_SLOTS);
        prng_init(&pair.sender.trouble->prng, version);
        pair.sender.trouble->reset_per_million = 1000000;
        for (int i = 0; i < 100 && pair.sender.trouble->resets == 0; i++) {
            skip_ms(1);
            (void)transport_serve(pair.sender.transport, (struct mono){0});
        }
        pair.sender.trouble->reset_per_million = 0;
        assert_true(pair.sender.trouble->resets > 0);
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(transport_receive(pair.in, to[i], size, 0, false, NULL, &receives[i]),
                             0);
        }
        int left = 2 * COUNT;
        for (int k = 0; k < STEPS_MAX && left > 0; k++) {
            const int i = k % COUNT;
            if (k % 10 == 9) {
                skip_ms(1);
            }
            if (!sent[i]) {
                assert_int_equal(transport_test(sends[i], &sent[i], NULL), 0);
                left -= sent[i];
            }
            if (!received[i]) {
                assert_int_equal(transport_test(receives[i], &received[i], NULL), 0);
                left -= received[i];
            }
            serve(&pair);
        }
        for (int i = 0; i < COUNT; i++) {
            assert_true(sent[i] && received[i]);
            assert_memory_equal(from[i], to[i], size);
        }
        pair_close(&pair);
    }
    version = 0;
}

static void what_comes_early_may_be_lost(void **state)
{
    (void)state;
    lose_what_comes_early(30000, 3);
    lose_what_comes_early(100000, LANE_SLOTS_VERSION);
}

/* A lane that writes without being asked isn't silent at once. */
static struct {
    struct lane_kind kind;
    bool late;
    int silenced, asked;
} slow;

static void slow_silence(struct lane_set *set, struct stream *stream)
{
    slow.silenced++;
}

static bool slow_silent(struct lane_set *set, uint32_t lane)
{
    slow.asked++;
    return !slow.late;
}

/* The sender's lane that carries something; -1: none. */
static int loaded_lane(const struct pair *pair)
{
    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        struct sender_lane_info info;
        sender_lane_info(pair->sender.transport->sets[0]->sender, lane, &info);
        if (info.open && info.chunks > 0) {
            return (int)lane;
        }
    }
    return -1;
}

/* While a dead lane isn't silent, its chunks go over no other lane, nor is it connected again. Then everything arrives. */
static void a_dead_lane_keeps_its_chunks_until_it_is_silent(void **state)
{
    enum { SIZE = 8 << 20 };
    static uint8_t from[SIZE], to[SIZE];
    struct transport_request *send = NULL, *receive = NULL;
    bool sent = false, received = false;
    struct pair pair;
    int lane = -1;

    (void)state;
    fenced = true;
    pair_open(&pair);
    struct lane_set *set = pair.receiver.transport->sets[0];
    assert_true(set->fenced && pair.sender.transport->sets[0]->fenced);
    slow.kind = lane_tcp;
    slow.kind.silence = slow_silence;
    slow.kind.silent = slow_silent;
    fill(from, SIZE, 1);
    assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &receive), 0);
    assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
    for (int i = 0; i < STEPS_MAX && lane < 0; i++) {
        assert_int_equal(transport_test(receive, &received, NULL), 0);
        assert_int_equal(transport_test(send, &sent, NULL), 0);
        lane = loaded_lane(&pair);
    }
    assert_true(lane >= 0 && !received);
    const uint32_t epoch = set->streams[lane]->epoch;
    slow.late = true;
    set->streams[lane]->kind =
        &slow.kind; /* of this lane only: a slow machine may lose others, too */
    lane_set_lost(set, set->transport->io->now(set->transport->io), (uint32_t)lane,
                  LANE_REASON_RESET);
    for (int i = 0; i < 1000; i++) {
        skip_ms(1);
        serve(&pair);
        assert_int_equal(transport_test(receive, &received, NULL), 0);
        assert_false(received);
    }
    assert_int_equal(slow.silenced, 1);
    assert_true(slow.asked > 1 && set->streams[lane]->epoch == epoch);
    slow.late = false;
    for (int i = 0; i < STEPS_MAX && !(sent && received); i++) {
        trouble_skipped_ns += NS_PER_MS / 10;
        serve(&pair);
        if (!received) {
            assert_int_equal(transport_test(receive, &received, NULL), 0);
        }
        if (!sent) {
            assert_int_equal(transport_test(send, &sent, NULL), 0);
        }
    }
    assert_true(sent && received);
    assert_memory_equal(from, to, SIZE);
    fenced = false;
    pair_close(&pair);
}

/* A chunk is later than its lane's best time, but not later than the lane's queue: it is sent once. */
static void what_queues_goes_once(void **state)
{
    static uint8_t bytes[30000];
    struct transport_request *send = NULL;
    struct sender_counters before, counters;
    struct pair pair;

    (void)state;
    pair_open(&pair);
    struct lane_set *set = pair.sender.transport->sets[0];
    exchange(&pair, 1 << 20, 1 << 20, true, 1);
    /* A busy machine measures any rate and any delay, and may pause for any time. */
    trouble_slowed = true;
    for (uint32_t lanes = set->present; lanes != 0; lanes &= lanes - 1) {
        struct scheduler_lane *lane = &set->scheduler.lanes[__builtin_ctz(lanes)];
        lane->rate = lane->late_bytes = lane->late_ns = 1;
        least_init(&lane->floor_ns, set->transport->io->now(set->transport->io));
    }
    /* Nothing is owed: the housekeeping thread comes back in seconds. It must not miss what is sent meanwhile. */
    for (int i = 0; i < 3; i++) {
        trouble_skipped_ns += 5 * NS_PER_MS;
        (void)transport_serve(pair.sender.transport, (struct mono){0});
    }
    sender_counters_get(set->sender, &before);
    assert_int_equal(transport_send(pair.out, bytes, sizeof(bytes), 0, NULL, &send), 0);
    for (int turn = 0; turn < 2; turn++) {
        pair.sender.trouble->rtt_ns = turn == 0 ? 1000000000 : 1000000;
        counters = before;
        for (int i = 0; i < (turn == 0 ? 30 : 1000) && counters.hedged == before.hedged; i++) {
            trouble_skipped_ns += NS_PER_MS; /* the receiver isn't served */
            (void)transport_serve(pair.sender.transport, (struct mono){0});
            sender_counters_get(set->sender, &counters);
        }
        assert_int_equal(counters.hedged > before.hedged, turn == 1);
    }
    trouble_slowed = false;
    pair.sender.trouble->rtt_ns = 0;
    pair_close(&pair);
}

/* Small messages are done when they are copied: nothing polls for them again. More of them than there are bounce slots arrive,
 * while their sender only waits for an answer, by another set, and no housekeeping thread helps. */
static void what_nobody_polls_goes_with_the_next_call(void **state)
{
    enum { COUNT = 32, SIZE = 8192 };
    static uint8_t from[COUNT][SIZE], to[COUNT][SIZE];
    struct transport_request *sends[COUNT], *receives[COUNT], *answer = NULL;
    struct pair pair;
    uint8_t word = 0;
    bool done = false;
    int got = 0;

    (void)state;
    pair_open(&pair);
    struct pair back = {.sender = pair.receiver, .receiver = pair.sender};
    connect_comm(&back);
    assert_int_equal(transport_receive(back.in, &word, 1, 0, false, NULL, &answer), 0);
    for (int i = 0; i < COUNT; i++) {
        fill(from[i], SIZE, (uint64_t)i);
        assert_int_equal(transport_receive(pair.in, to[i], SIZE, 0, false, NULL, &receives[i]), 0);
        assert_int_equal(transport_send(pair.out, from[i], SIZE, 0, NULL, &sends[i]), 0);
        assert_non_null(sends[i]);
        assert_int_equal(transport_test(sends[i], &done, NULL), 0);
        assert_true(done);
    }
    for (int i = 0; i < STEPS_MAX && got < COUNT; i++) {
        assert_int_equal(transport_test(receives[got], &done, NULL), 0);
        got += done;
        assert_int_equal(transport_test(answer, &done, NULL), 0);
        assert_false(done);
    }
    assert_int_equal(got, COUNT);
    assert_memory_equal(from, to, sizeof(from));
    transport_close(back.out);
    transport_close(back.in);
    pair_close(&pair);
}

/* Both ends do what is due, until the request is done. */
static void finish(struct pair *pair, struct transport_request *request)
{
    bool done = false;

    for (int k = 0; k < STEPS_MAX && !done; k++) {
        assert_int_equal(transport_test(request, &done, NULL), 0);
        serve(pair);
    }
    assert_true(done);
}

/* Messages of up to 64 KiB to this machine: no sender waits for a report. Some go into slots at once. A message that finds no
 * slot isn't done before it is written: a sender with nothing to wait for makes no calls, and the message would stay for as long
 * as the housekeeping thread sleeps. The memory of completed ones is overwritten. */
static void messages_to_this_machine_are_done_when_they_are_written(void **state)
{
    enum { SIZE = LANE_LARGE_SIZE_MAX, COUNT = LANE_LARGE_SLOTS + 1 };
    static uint8_t from[SIZE], to[SIZE], wanted[SIZE];
    struct transport_request *send, *receive;
    struct pair pair;
    bool done = false;

    (void)state;
    pair_open(&pair);
    for (uint64_t i = 0; i < COUNT; i++) {
        fill(from, SIZE, i);
        assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
        assert_non_null(send);
        assert_int_equal(transport_test(send, &done, NULL), 0);
        assert_int_equal(done, i < LANE_LARGE_SLOTS);
        if (done) {
            memset(from, 0x5a, SIZE);
        }
    }
    assert_int_equal(pair.sender.transport->awaited, 1);
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &receive), 0);
        finish(&pair, receive);
        fill(wanted, SIZE, i);
        assert_memory_equal(to, wanted, SIZE);
    }
    for (int k = 0; k < STEPS_MAX && send != NULL; k++) {
        assert_int_equal(transport_test(send, &done, NULL), 0);
        send = done ? NULL : send;
        serve(&pair);
    }
    assert_null(send);
    /* The copies belong to the set: its next communicator can use them. */
    struct transport_comm *out = pair.out, *in = pair.in;
    connect_comm(&pair);
    assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
    assert_int_equal(transport_test(send, &done, NULL), 0);
    assert_true(done);
    transport_close(out);
    transport_close(in);
    pair_close(&pair);
}

/* Both ends do what is due, until the sender has the receives' places. */
static void hear_of_receives(struct pair *pair)
{
    for (int k = 0; k < 200; k++) {
        skip_ms(1);
        serve(pair);
    }
}

/* A large message without a receive stays in the socket for as long as its copy would take. If the receive is posted meanwhile,
 * it goes directly to its place; later it goes through its slot. Then the messages behind it go on. */
static void a_large_message_waits_in_the_socket(void **state)
{
    enum { SIZE = 200000, COPY_MS = 50 };
    static uint8_t from[SIZE], to[SIZE];
    struct transport_request *send, *receive;
    struct pair pair;
    bool done = false;

    (void)state;
    pair_open(&pair);
    exchange(&pair, SIZE, SIZE, true, 1);
    struct lane_set *set = pair.in->set;
    struct io *io = &pair.receiver.trouble->io;
    for (int late = 0; late < 2; late++) {
        trouble_slowed = true; /* else a busy machine's wait would be over at once */
        least_add(&set->slot_copy_ns, io->now(io), span_ns(5 * NS_PER_S), COPY_MS * NS_PER_MS);
        fill(from, SIZE, (uint64_t)late);
        assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
        struct stream *stream = set->streams[set->hot];
        for (int i = 0; i < STEPS_MAX && !stream->reading; i++) {
            serve(&pair);
        }
        assert_int_equal(stream->place, LEDGER_SLOT);
        serve(&pair);
        assert_in_range(stream->got, 0, LANE_LARGE_SIZE_MAX);
        uint8_t *end = slots_at(set, stream->chunk.slot) + SIZE - 1;
        *end = (uint8_t)~from[SIZE - 1];
        skip_ms(late ? COPY_MS + 1 : 0);
        for (int i = 0; i < STEPS_MAX && late && stream->reading; i++) {
            serve(&pair);
        }
        assert_int_equal(stream->reading, !late);
        assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &receive), 0);
        for (done = false; !done;) {
            assert_int_equal(transport_test(receive, &done, NULL), 0);
            serve(&pair);
        }
        assert_memory_equal(from, to, SIZE);
        assert_int_equal(*end == from[SIZE - 1], late);
        trouble_slowed = false;
        finish(&pair, send);
    }
    pair_close(&pair);
}

/* The first use of huge pages is expensive: a job that rests between two steps finds them there again. */
static void a_short_rest_costs_no_huge_page(void **state)
{
    enum { SIZE = LANE_EAGER_SIZE_MAX + 1 };
    static uint8_t from[SIZE], to[SIZE];
    struct transport_request *send, *receive;
    struct pair pair;

    (void)state;
    pair_open(&pair);
    const struct transport *t = pair.sender.transport;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &receive), 0);
        hear_of_receives(&pair);
        assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
        finish(&pair, receive);
        finish(&pair, send);
        const uint8_t *copies = t->copies;
        assert_non_null(copies);
        const struct mono used = t->io->now(t->io);
        for (int k = 0; k < 6500; k++) {
            skip_ms(10);
            serve(&pair);
            assert_true(t->copies == copies ||
                        mono_sub(t->io->now(t->io), used).ns > 55 * NS_PER_S);
        }
        assert_null(t->copies);
    }
    pair_close(&pair);
}

/* One message more than the set keeps copies of isn't done until it is reported. */
static void copies_of_messages_to_this_machine_are_counted(void **state)
{
    enum { SIZE = LANE_EAGER_SIZE_MAX + 1, COUNT = COPIES_MAX + 1 };
    static uint8_t from[SIZE], to[COUNT][SIZE], wanted[SIZE];
    struct transport_request *send = NULL, *receives[COUNT];
    struct pair pair;
    bool done = false;

    (void)state;
    pair_open(&pair);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(transport_receive(pair.in, to[i], SIZE, 0, false, NULL, &receives[i]), 0);
    }
    hear_of_receives(&pair);
    for (int i = 0; i < COUNT; i++) {
        fill(from, SIZE, (uint64_t)i);
        assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
        assert_int_equal(transport_test(send, &done, NULL), 0);
        assert_int_equal(done, i < COPIES_MAX);
        if (done) {
            memset(from, 0x5a, SIZE);
        }
    }
    /* All sets' copies are together: one huge page holds them. */
    assert_int_equal((uintptr_t)pair.sender.transport->copies % ROOM_HUGE_SIZE, 0);
    assert_true(COPY_PLACES * COPY_HERE_MAX <= ROOM_HUGE_SIZE);
    assert_int_equal(__builtin_popcount(pair.sender.transport->copies_used), COPIES_MAX);
    for (int i = 0; i < COUNT; i++) {
        finish(&pair, receives[i]);
        fill(wanted, SIZE, (uint64_t)i);
        assert_memory_equal(to[i], wanted, SIZE);
    }
    finish(&pair, send);
    assert_int_equal(pair.sender.transport->copies_used, 0);
    pair_close(&pair);
}

/* Peers that stand still hold only so many copies that some are left for others of this machine. */
static void copies_are_left_for_other_sets(void **state)
{
    enum { SIZE = LANE_EAGER_SIZE_MAX + 1, PEERS = 4 };
    static const int copied[PEERS] = {COPIES_MAX, 8, 4, 4};
    static uint8_t from[PEERS][SIZE], to[PEERS][COPIES_MAX + 1][SIZE], wanted[SIZE];
    struct transport_request *sends[PEERS], *receives[PEERS][COPIES_MAX + 1];
    struct pair pairs[PEERS];

    (void)state;
    pair_open(&pairs[0]);
    for (int k = 0; k < PEERS; k++) {
        if (k > 0) {
            pairs[k].sender = pairs[0].sender;
            end_open(&pairs[k].receiver, "receiver", false);
            connect_comm(&pairs[k]);
        }
        for (int i = 0; i <= copied[k]; i++) {
            assert_int_equal(
                transport_receive(pairs[k].in, to[k][i], SIZE, 0, false, NULL, &receives[k][i]), 0);
        }
        hear_of_receives(&pairs[k]);
    }
    for (int k = 0; k < PEERS; k++) { /* meanwhile no receiver is served */
        for (int i = 0; i <= copied[k]; i++) {
            bool done = false;
            fill(from[k], SIZE, (uint64_t)i);
            assert_int_equal(transport_send(pairs[k].out, from[k], SIZE, 0, NULL, &sends[k]), 0);
            assert_int_equal(transport_test(sends[k], &done, NULL), 0);
            assert_int_equal(done, i < copied[k]);
        }
    }
    for (int k = PEERS - 1; k >= 0; k--) {
        for (int i = 0; i <= copied[k]; i++) {
            finish(&pairs[k], receives[k][i]);
            fill(wanted, SIZE, (uint64_t)i);
            assert_memory_equal(to[k][i], wanted, SIZE);
        }
        finish(&pairs[k], sends[k]);
        if (k > 0) {
            transport_close(pairs[k].out);
            transport_close(pairs[k].in);
            hear_of_receives(&pairs[k]);
            end_close(&pairs[k].receiver);
        }
    }
    assert_int_equal(pairs[0].sender.transport->copies_used, 0);
    pair_close(&pairs[0]);
}

/* With a slowed clock so many calls take less than any deadline. */
#define CALLS 20000

static void wait_now_and_then(int calls)
{
    if (calls % 64 == 63) { /* the kernel may need the processor to deliver what was sent */
        (void)usleep(calls < CALLS / 2 ? 1000 : 400000);
    }
}

/* A message of up to 128 KiB is copied if the sender waits for nothing else. The next one isn't. */
static void one_large_message_alone_is_copied(void **state)
{
    enum { SIZE = COPY_ALONE_MAX, COUNT = 2 };
    static uint8_t from[COUNT][SIZE], to[COUNT][SIZE], wanted[SIZE];
    struct transport_request *sends[COUNT], *receives[COUNT];
    struct pair pair;
    bool done = false;

    (void)state;
    pair_open(&pair);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(transport_receive(pair.in, to[i], SIZE, 0, false, NULL, &receives[i]),
                             0);
        }
        hear_of_receives(&pair);
        for (int i = 0; i < COUNT; i++) {
            fill(from[i], SIZE, (uint64_t)i);
            assert_int_equal(transport_send(pair.out, from[i], SIZE, 0, NULL, &sends[i]), 0);
            assert_int_equal(transport_test(sends[i], &done, NULL), 0);
            assert_int_equal(done, i == 0);
        }
        memset(from[0], 0x5a, SIZE);
        for (int i = 0; i < COUNT; i++) {
            finish(&pair, receives[i]);
            fill(wanted, SIZE, (uint64_t)i);
            assert_memory_equal(to[i], wanted, SIZE);
        }
        finish(&pair, sends[1]);
    }
    pair_close(&pair);
}

/* A message of up to 256 KiB is copied only if the sender's process waits for nothing, also not for messages from others. */
static void one_larger_message_is_copied_where_nothing_is_awaited(void **state)
{
    enum { SIZE = COPY_IDLE_MAX };
    static uint8_t from[SIZE], to[SIZE], wanted[SIZE], word[8];
    struct pair pair;

    (void)state;
    pair_open(&pair);
    struct pair other = {.sender = pair.receiver, .receiver = pair.sender};
    connect_comm(&other);
    for (int round = 0; round < 2; round++) {
        struct transport_request *send, *back, *receive, *answer = NULL;
        bool done = false;
        if (round > 0) {
            assert_int_equal(transport_receive(other.in, word, 8, 0, false, NULL, &answer), 0);
        }
        assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &receive), 0);
        hear_of_receives(&pair);
        fill(from, SIZE, (uint64_t)round);
        fill(wanted, SIZE, (uint64_t)round);
        assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
        assert_int_equal(transport_test(send, &done, NULL), 0);
        assert_int_equal(done, round == 0);
        if (done) {
            memset(from, 0x5a, SIZE);
        }
        for (bool got = false; !got;) {
            assert_int_equal(transport_test(receive, &got, NULL), 0);
            serve(&pair);
        }
        assert_memory_equal(to, wanted, SIZE);
        while (!done) {
            assert_int_equal(transport_test(send, &done, NULL), 0);
            serve(&pair);
        }
        for (done = round == 0; !done;) {
            assert_int_equal(transport_send(other.out, word, 8, 0, NULL, &back), 0);
            while (!done) {
                assert_int_equal(transport_test(answer, &done, NULL), 0);
                serve(&pair);
            }
            assert_int_equal(transport_test(back, &done, NULL), 0);
        }
    }
    transport_close(other.out);
    transport_close(other.in);
    pair_close(&pair);
}

static void poll_until(struct transport_request *request)
{
    bool done = false;

    for (int k = 0; k < CALLS && !done; k++) {
        wait_now_and_then(k);
        assert_int_equal(transport_test(request, &done, NULL), 0);
    }
    assert_true(done);
}

/* The report of a copied message isn't awaited: it goes with the next chunk. */
static void report_of_a_copied_message_waits_for_a_chunk(void **state)
{
    enum { SIZE = 20000 };
    static uint8_t from[SIZE], to[SIZE], word[8];
    struct transport_request *send, *back, *receive, *next, *answer;
    struct pair pair;
    bool done = false;

    (void)state;
    pair_open(&pair);
    struct pair other = {.sender = pair.receiver, .receiver = pair.sender};
    connect_comm(&other);
    const struct lane_set *set = pair.sender.transport->sets[0];
    exchange(&pair, SIZE, SIZE, false, 1); /* the receiver knows that they come as one chunk */
    for (int k = 0; k < STEPS_MAX && sender_slots(set->sender) > 0; k++) {
        skip_ms(1);
        serve(&pair);
    }
    assert_int_equal(transport_receive(other.in, word, 8, 0, false, NULL, &answer), 0);
    assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
    assert_int_equal(transport_test(send, &done, NULL), 0);
    assert_true(done);
    trouble_slowed = true;
    assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &receive), 0);
    assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &next), 0);
    poll_until(receive);
    for (int k = 0; k < 2000; k++) {
        trouble_skipped_ns += k == 1000 ? 600000 : 0; /* other ranks have the processor */
        wait_now_and_then(k);
        assert_int_equal(transport_test(next, &done, NULL), 0);
        assert_false(done);
        assert_int_equal(transport_test(answer, &done, NULL), 0);
        assert_false(done);
    }
    assert_int_equal(sender_slots(set->sender), 1);
    assert_int_equal(transport_send(other.out, word, 8, 0, NULL, &back), 0);
    poll_until(answer);
    assert_int_equal(sender_slots(set->sender), 0);
    assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
    poll_until(next);
    poll_until(send);
    poll_until(back);
    trouble_slowed = false;
    transport_close(other.out);
    transport_close(other.in);
    pair_close(&pair);
}

static int left_in_socket(const struct pair *pair, int lane)
{
    const struct lane_set *set = pair->receiver.transport->sets[0];
    int left = 0;

    assert_int_equal(ioctl(set->streams[lane]->conn, FIONREAD, &left), 0);
    return left;
}

static int lane_that_brings(const struct pair *pair, int size)
{
    for (int k = 0; k < 60000; k++) { /* ms: the kernel may need the processor */
        for (int lane = 0; lane < LANES; lane++) {
            if (left_in_socket(pair, lane) >= size) {
                return lane;
            }
        }
        (void)usleep(1000);
    }
    return -1;
}

/* A read may end within a chunk, as at the end of a packet. The same call reads the rest that is in the socket. */
static void rest_of_a_chunk_is_read_at_once(void **state)
{
    enum { SIZE = COPY_HERE_MAX };
    static uint8_t from[SIZE], to[SIZE];
    struct transport_request *send, *receive;
    struct pair pair;
    bool done = false;

    (void)state;
    pair_open(&pair);
    exchange(&pair, SIZE, SIZE, true, 1);
    assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &receive), 0);
    hear_of_receives(&pair);
    fill(from, SIZE, 2);
    assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
    assert_int_equal(transport_test(send, &done, NULL), 0);
    assert_true(done);
    const int lane = lane_that_brings(&pair, SIZE);
    assert_true(lane >= 0);
    pair.receiver.trouble->receive_most = SIZE / 4;
    done = false;
    for (int k = 0; k < 100 && !done; k++) {
        assert_int_equal(transport_test(receive, &done, NULL), 0);
        assert_true(done || left_in_socket(&pair, lane) >= SIZE);
    }
    assert_true(done);
    assert_memory_equal(to, from, SIZE);
    pair_close(&pair);
}

/* A process that posts a receive may be about to send: a peer that isn't waiting gets the place with that chunk, or after a look
 * in vain. */
static void a_posted_receive_is_told_with_the_next_chunk(void **state)
{
    enum { SIZE = COPY_ALONE_MAX };
    static uint8_t from[SIZE], to[SIZE], word[8];
    struct transport_request *send, *back, *receive, *answer;
    struct pair pair;
    bool done = false;

    (void)state;
    version = LANE_SLOTS_VERSION - 1; /* since then no sender waits for it */
    pair_open(&pair);
    version = 0;
    struct pair other = {.sender = pair.receiver, .receiver = pair.sender};
    connect_comm(&other);
    exchange(&pair, SIZE, SIZE, false, 1); /* the receiver knows that this sender doesn't wait */
    trouble_slowed = true;
    for (int round = 0; round < 3; round++) { /* the first round only clears what has come */
        const uint64_t told = pair.in->posted_told;
        assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &receive), 0);
        assert_int_equal(transport_test(receive, &done, NULL), 0);
        assert_false(done);
        assert_true(round == 0 || pair.in->posted_told == told);
        if (round == 1) {
            assert_int_equal(transport_receive(other.in, word, 8, 0, false, NULL, &answer), 0);
            assert_int_equal(transport_send(other.out, word, 8, 0, NULL, &back), 0);
        } else {
            assert_int_equal(transport_test(receive, &done, NULL), 0);
        }
        assert_int_equal(pair.in->posted_told, told + 1);
        if (round == 1) {
            poll_until(answer);
            poll_until(back);
        }
        (void)transport_serve(pair.sender.transport, (struct mono){0}); /* its copy is free */
        assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
        for (done = false; !done;) {
            (void)transport_serve(pair.sender.transport, (struct mono){0});
            assert_int_equal(transport_test(receive, &done, NULL), 0);
        }
        done = false;
        poll_until(send);
    }
    trouble_slowed = false;
    transport_close(other.out);
    transport_close(other.in);
    pair_close(&pair);
}

/* A job of low priority sends messages in parts, and a part waits for the receive: the sender hears of it in 200 us. */
static void a_sender_in_parts_hears_of_a_receive_soon(void **state)
{
    enum { SIZE = 65536 };
    static uint8_t from[SIZE], to[SIZE];
    struct transport_request *send, *receive;
    struct pair pair;
    bool done = false;

    (void)state;
    pair_open(&pair);
    pair.sender.transport->config.priority = PRIORITY_LOW;
    exchange(&pair, SIZE, SIZE, true, 1);
    hear_of_receives(&pair);
    assert_false(pair.in->set->whole);
    trouble_slowed = true; /* only the skipped time passes */
    const uint64_t told = pair.in->posted_told;
    assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &receive), 0);
    for (int k = 0; k < 4 && pair.in->posted_told == told; k++) {
        trouble_skipped_ns += 100000;
        assert_int_equal(transport_test(receive, &done, NULL), 0);
        assert_false(done);
    }
    assert_int_equal(pair.in->posted_told, told + 1);
    trouble_slowed = false;
    assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
    finish(&pair, receive);
    finish(&pair, send);
    pair_close(&pair);
}

/* Of two communicators between the same processes: one write tells of both receives. */
static void receives_posted_together_are_told_together(void **state)
{
    enum { SIZE = 300000 }; /* it waits for its receive */
    static uint8_t from[SIZE], to[2][SIZE];
    struct transport_request *sends[2], *receives[2];
    struct pair pairs[2];
    bool done = false;

    (void)state;
    pair_open(&pairs[0]);
    pairs[1] = pairs[0];
    connect_comm(&pairs[1]);
    hear_of_receives(&pairs[0]);
    trouble_slowed = true;
    for (int round = 0; round < 2; round++) { /* the first one is here to end with what came */
        const uint32_t before = pairs[0].receiver.trouble->sends;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(
                transport_receive(pairs[i].in, to[i], SIZE, 0, false, NULL, &receives[i]), 0);
            assert_int_equal(transport_test(receives[i], &done, NULL), 0);
            assert_false(done);
        }
        assert_int_equal(pairs[1].in->posted_told, round + 1);
        if (round > 0) {
            assert_int_equal(pairs[0].receiver.trouble->sends - before, 1);
        }
        for (int i = 0; i < 2; i++) {
            assert_int_equal(transport_send(pairs[i].out, from, SIZE, 0, NULL, &sends[i]), 0);
        }
        for (int k = 0; k < CALLS && !receives[1]->done; k++) {
            wait_now_and_then(k);
            assert_int_equal(transport_test(sends[1], &done, NULL), 0);
            assert_false(done);
            assert_int_equal(transport_test(receives[1], &done, NULL), 0);
            if (done) {
                break;
            }
        }
        assert_true(done);
        poll_until(receives[0]);
        done = false;
        poll_until(sends[0]);
        poll_until(sends[1]);
    }
    trouble_slowed = false;
    transport_close(pairs[1].out);
    transport_close(pairs[1].in);
    pair_close(&pairs[0]);
}

/* In front of a chunk are reports of two communicators: they are read with its header. */
static void reports_are_read_with_the_header_behind_them(void **state)
{
    enum { SIZE = COPY_HERE_MAX, SMALL = 20000 };
    static uint8_t from[SIZE], to[SIZE], small[2][SMALL];
    struct transport_request *send, *back, *receive, *answers[2];
    struct pair pair, others[2];
    bool done = false;

    (void)state;
    pair_open(&pair);
    for (int i = 0; i < 2; i++) {
        others[i] = (struct pair){.sender = pair.receiver, .receiver = pair.sender};
        connect_comm(&others[i]);
    }
    exchange(&others[0], SMALL, SMALL, false, 1);
    exchange(&pair, SIZE, SIZE, true, 2);
    hear_of_receives(&pair);
    trouble_slowed = true;
    assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &receive), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            transport_receive(others[i].in, small[i], SMALL, 0, false, NULL, &answers[i]), 0);
        assert_int_equal(transport_send(others[i].out, from, SMALL, 0, NULL, &back), 0);
        assert_int_equal(transport_test(back, &done, NULL), 0);
        assert_true(done);
    }
    poll_until(answers[0]);
    if (!answers[1]->done) {
        poll_until(answers[1]);
    }
    fill(from, SIZE, 3);
    assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
    const int lane = lane_that_brings(&pair, SIZE + LANE_CHUNK_SIZE + 2 * LANE_STATE_HEAD_SIZE);
    assert_true(lane >= 0);
    const uint32_t before = pair.receiver.trouble->receives;
    assert_int_equal(transport_test(receive, &done, NULL), 0);
    assert_true(done);
    assert_int_equal(pair.receiver.trouble->receives - before, 2);
    assert_memory_equal(to, from, SIZE);
    assert_int_equal(transport_test(send, &done, NULL), 0);
    trouble_slowed = false;
    for (int i = 0; i < 2; i++) {
        transport_close(others[i].out);
        transport_close(others[i].in);
    }
    pair_close(&pair);
}

/* One more than the set keeps copies of: its sender waits, and the receiver calls nothing any more once it has all. The report
 * goes with the last call, not when the housekeeping comes by. */
static void who_waits_for_a_report_gets_it_at_once(void **state)
{
    enum { SIZE = LANE_LARGE_SIZE_MAX, COUNT = COPIES_MAX + 1 };
    static uint8_t from[SIZE], to[SIZE];
    struct transport_request *sends[COUNT], *receive;
    struct pair pair;
    bool done = false, sent = false;

    (void)state;
    pair_open(&pair);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &sends[i]), 0);
        assert_non_null(sends[i]);
    }
    hear_of_receives(&pair); /* the receiver's housekeeping thread reads them */
    trouble_slowed = true;
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &receive), 0);
        done = false;
        for (int k = 0; k < CALLS && !done; k++) {
            wait_now_and_then(k);
            assert_int_equal(transport_test(receive, &done, NULL), 0);
            if (!sent) { /* early, if a slot is reported free in time: that depends on the kernel */
                assert_int_equal(transport_test(sends[COUNT - 1], &sent, NULL), 0);
            }
        }
        assert_true(done);
    }
    for (int k = 0; k < CALLS && !sent; k++) {
        wait_now_and_then(k);
        assert_int_equal(transport_test(sends[COUNT - 1], &sent, NULL), 0);
    }
    assert_true(sent);
    trouble_slowed = false;
    pair_close(&pair);
}

/* More messages than slots, all there before their receives. Those that are done at once free their slots within a few calls:
 * their reports aren't awaited, but the message behind them waits for a slot. */
static void slots_of_copied_messages_are_told(void **state)
{
    enum { SIZE = LANE_LARGE_SIZE_MAX, COUNT = LANE_LARGE_SLOTS + 1 };
    static uint8_t from[SIZE], to[COUNT][SIZE];
    struct transport_request *send, *receives[COUNT], *answer = NULL;
    struct pair pair;
    uint8_t word = 0;
    bool done = false;

    (void)state;
    pair_open(&pair);
    struct pair back = {.sender = pair.receiver, .receiver = pair.sender};
    connect_comm(&back);
    assert_int_equal(transport_receive(back.in, &word, 1, 0, false, NULL, &answer), 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
        assert_int_equal(transport_test(send, &done, NULL), 0);
        assert_int_equal(done, i < LANE_LARGE_SLOTS);
    }
    hear_of_receives(&pair); /* the receiver's housekeeping thread reads and reports them */
    trouble_slowed = true;
    done = false;
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(transport_receive(pair.in, to[i], SIZE, 0, false, NULL, &receives[i]), 0);
    }
    for (int i = 0; i < COUNT; i++) {
        done = false;
        for (int k = 0; k < CALLS && !done; k++) {
            wait_now_and_then(k);
            assert_int_equal(transport_test(receives[i], &done, NULL), 0);
            bool answered = false;
            assert_int_equal(transport_test(answer, &answered, NULL), 0);
            assert_false(answered);
            if (send != NULL) {
                bool sent = false;
                assert_int_equal(transport_test(send, &sent, NULL), 0);
                send = sent ? NULL : send;
            }
        }
        assert_true(done);
    }
    assert_null(send);
    trouble_slowed = false;
    transport_close(back.out);
    transport_close(back.in);
    pair_close(&pair);
}

/* A small message that is read before its receive is posted. */
static void come_early(struct pair *pair)
{
    struct transport_request *send, *receive;
    uint8_t from[100] = {0}, to[100];

    assert_int_equal(transport_send(pair->out, from, sizeof(from), 0, NULL, &send), 0);
    for (int i = 0; i < STEPS_MAX && !ledger_slots_used(pair->in->set->ledger); i++) {
        serve(pair);
        skip_ms(i > 200);
    }
    assert_int_equal(transport_receive(pair->in, to, sizeof(to), 0, false, NULL, &receive), 0);
    finish(pair, receive);
    finish(pair, send);
}

/* Slots' memory is held only while messages come early: huge pages for a minute. */
static void bounce_slots_are_given_back(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair);
    come_early(&pair);
    const struct lane_set *set = pair.in->set;
    const uint8_t *slots = set->slots;
    assert_non_null(slots);
    assert_true(set->large_shift != 0);
    struct io *io = set->transport->io;
    const struct mono used = io->now(io);
    for (int i = 0; i < 6500; i++) {
        trouble_skipped_ns += 10 * NS_PER_MS;
        pair.in->set->polled_ns = 0;
        serve(&pair);
        if (i % 50 == 0) {
            exchange(&pair, 100000, 100000, true, (uint64_t)i);
        }
        assert_true(set->slots == slots || mono_sub(io->now(io), used).ns > 55 * NS_PER_S);
    }
    assert_null(set->slots);
    come_early(&pair);
    assert_non_null(pair.in->set->slots);
    pair_close(&pair);
}

/* A message of up to 64 KiB may be there before its receive is posted, and the receive is done then: no further call concerns
 * that set, but the sender waits for the report. */
static void what_came_early_is_reported_at_once(void **state)
{
    enum { SIZE = 20000 };
    static uint8_t from[SIZE], to[SIZE];
    struct transport_request *send, *receive;
    struct pair pair;
    bool done = false;

    (void)state;
    pair_open(&pair);
    fill(from, SIZE, 9);
    for (int i = 0; i < 3; i++) { /* after the first ones the sender knows that its lane is fast */
        done = false;
        assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
        assert_non_null(send);
        hear_of_receives(&pair); /* the receiver's housekeeping thread reads it */
        assert_int_equal(transport_receive(pair.in, to, SIZE, 0, false, NULL, &receive), 0);
        assert_int_equal(transport_test(receive, &done, NULL), 0);
        assert_true(done);
        done = false;
        for (int k = 0; k < STEPS_MAX && !done; k++) {
            assert_int_equal(transport_test(send, &done, NULL), 0);
        }
        assert_true(done);
    }
    assert_memory_equal(from, to, SIZE);
    pair_close(&pair);
}

/* One small message, which the receiver has reported: the sender reads that at its next look. */
static void send_reported(struct pair *pair)
{
    static uint8_t from[8], to[8];
    struct transport_request *send, *receive;
    bool done = false;

    assert_int_equal(transport_receive(pair->in, to, sizeof(to), 0, false, NULL, &receive), 0);
    assert_int_equal(transport_send(pair->out, from, sizeof(from), 0, NULL, &send), 0);
    poll_until(receive);
    assert_int_equal(transport_test(send, &done, NULL), 0);
    assert_true(done);
    for (int k = 0; k < 20; k++) { /* nobody waits for that report */
        skip_ms(1);
        (void)transport_serve(pair->receiver.transport, (struct mono){0});
    }
}

static void look(struct pair *pair, int64_t older_ns)
{
    struct lane_set *set = pair->out->set;
    struct io *io = pair->sender.transport->io;

    pthread_mutex_lock(&set->lock);
    lane_set_progress(set, (struct mono){io->now(io).ns - older_ns}, true);
    pthread_mutex_unlock(&set->lock);
}

/* A thread had no processor between its look at the clock and its read, and another one sent meanwhile: by the time of the call
 * the chunk's life is negative. No clock was set. */
static void an_old_time_sets_no_clock(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair);
    struct lane_set *set = pair.out->set;
    struct yield_floor *floor = &set->yield.floors[0];
    pair.sender.transport->config.priority = PRIORITY_LOW;
    set->scheduler.one_way = false;
    send_reported(&pair);
    look(&pair, 0);
    const int64_t back_ns = least_get(&set->back_ns), owd_ns = least_get(&floor->owd_ns);
    assert_int_not_equal(back_ns, LEAST_NONE);
    assert_int_not_equal(owd_ns, LEAST_NONE);
    send_reported(&pair);
    assert_int_not_equal(scheduler_unacked(&set->scheduler), 0);
    look(&pair, 100 * NS_PER_MS);
    assert_int_equal(scheduler_unacked(&set->scheduler), 0);
    assert_true(least_get(&set->back_ns) <= back_ns);
    assert_true(least_get(&floor->owd_ns) <= owd_ns);
    assert_true(least_get(&floor->life_ns) >= 0);
    set->scheduler.one_way = true;
    pair_close(&pair);
}

/* Sends a small message by one of these lanes, and adds its arrival to the report. Returns the lane. */
static uint32_t send_by(struct pair *pair, uint32_t lanes, struct lane_report *report)
{
    static const uint8_t from[8];
    struct lane_set *set = pair->out->set;
    const uint32_t present = set->present;
    struct transport_request *send;
    struct sender_lane_info info;
    bool done = false;

    set->present &= lanes;
    assert_int_equal(transport_send(pair->out, from, sizeof(from), 0, NULL, &send), 0);
    assert_int_equal(transport_test(send, &done, NULL), 0);
    assert_true(done);
    set->present = present;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        sender_lane_info(set->sender, lane, &info);
        if ((lanes >> lane & 1) != 0 && info.chunks > 0) {
            report->lanes[report->lane_count++] = (struct lane_state_lane){
                .lane = (uint16_t)lane,
                .state = LANE_ACTIVE,
                .epoch = info.epoch,
                .taken = info.sent,
                .owd_ns = LANE_OWD_UNKNOWN,
                .owd_min_ns = LANE_OWD_UNKNOWN,
            };
            return lane;
        }
    }
    fail();
    return 0;
}

/* The way back of a report on two lanes seems half a second long. The first one's chunk is younger, so a clock was set. Then it
 * is no way back for the second lane, either, whose chunk is older. */
static void a_false_way_back_counts_for_no_lane(void **state)
{
    struct lane_report old_first = {0}, report = {.comm = LANE_COMM_NONE};
    struct pair pair;

    (void)state;
    pair_open(&pair);
    struct lane_set *set = pair.out->set;
    struct io *io = pair.sender.transport->io;
    set->scheduler.one_way = false;
    send_reported(&pair);
    look(&pair, 0);
    const uint32_t old = send_by(&pair, UINT32_MAX, &old_first);
    trouble_skipped_ns += NS_PER_S;
    (void)send_by(&pair, ~(1u << old), &report);
    report.lanes[report.lane_count++] = old_first.lanes[0];
    report.now.ns = io->stamp(io).at.ns - NS_PER_S / 2;
    pthread_mutex_lock(&set->lock);
    assert_int_not_equal(least_get(&set->back_ns), LEAST_NONE);
    set->scheduler.lanes[old].back_ns = 0;
    out_on_state(set, io->now(io), old, &report);
    assert_int_equal(sender_loads(set->sender)[old].chunks, 0);
    assert_true(set->scheduler.lanes[old].back_ns < (double)NS_PER_MS);
    set->scheduler.one_way = true;
    pthread_mutex_unlock(&set->lock);
    pair_close(&pair);
}

static uint64_t chunks_of(const struct lane_set *set)
{
    uint64_t chunks = 0;

    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        chunks += set->sent[lane].chunks;
    }
    return chunks;
}

/* Posts of an earlier call don't count: a call that began a while ago sends all that lanes have room for. */
static void posts_of_an_earlier_call_cost_no_turn(void **state)
{
    enum { SIZE = 300000, COUNT = 4 }; /* they wait for their receives */
    static uint8_t from[SIZE], to[COUNT][SIZE];
    struct transport_request *sends[COUNT], *receives[COUNT];
    struct pair pair;

    (void)state;
    pair_open(&pair);
    struct lane_set *set = pair.out->set;
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &sends[i]), 0);
        assert_non_null(sends[i]);
    }
    hear_of_receives(&pair);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(transport_receive(pair.in, to[i], SIZE, 0, false, NULL, &receives[i]), 0);
    }
    for (int k = 0; k < 20; k++) {
        skip_ms(1);
        (void)transport_serve(pair.receiver.transport, (struct mono){0});
    }
    const uint32_t polls = set->polls;
    const uint64_t chunks = chunks_of(set);
    trouble_slowed = true;
    set->posted = true;
    look(&pair, NS_PER_MS);
    set->posted = false;
    trouble_slowed = false;
    assert_true(chunks_of(set) >= chunks + COUNT);
    assert_int_equal(set->polls - polls, 1);
    for (int i = 0; i < COUNT; i++) {
        finish(&pair, sends[i]);
        finish(&pair, receives[i]);
    }
    pair_close(&pair);
}

static void housekeeping_thread_does_it_alone(void **state)
{
    struct pair pair;
    static uint8_t from[COPY_IDLE_MAX + 1], to[COPY_IDLE_MAX + 1]; /* isn't copied */
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    struct transport_request *send = NULL, *receive = NULL;
    uint64_t connecting = 0;
    bool done = false;

    (void)state;
    end_open(&pair.sender, "sender", true);
    end_open(&pair.receiver, "receiver", true);
    assert_int_equal(transport_listen(pair.receiver.transport, 0, handle, &listener), 0);
    pair.out = pair.in = NULL;
    while (pair.out == NULL || pair.in == NULL) {
        if (pair.out == NULL) {
            assert_int_equal(
                transport_connect(pair.sender.transport, 0, handle, &connecting, &pair.out), 0);
        }
        if (pair.in == NULL) {
            assert_int_equal(transport_accept(listener, &pair.in), 0);
        }
    }
    transport_close_listener(listener);
    fill(from, sizeof(from), 3);
    assert_int_equal(transport_receive(pair.in, to, sizeof(to), 0, false, NULL, &receive), 0);
    assert_int_equal(transport_send(pair.out, from, sizeof(from), 0, NULL, &send), 0);
    while (!done) { /* the receive isn't polled: the sender still learns of it */
        assert_int_equal(transport_test(send, &done, NULL), 0);
    }
    assert_memory_equal(from, to, sizeof(from));
    done = false;
    while (!done) {
        assert_int_equal(transport_test(receive, &done, NULL), 0);
    }
    transport_close(pair.out);
    transport_close(pair.in);
    end_close(&pair.sender);
    end_close(&pair.receiver);
}

static void set_trouble(struct trouble *trouble, uint64_t seed, uint32_t resets, uint32_t flips)
{
    prng_init(&trouble->prng, seed);
    trouble->reset_per_million = resets;
    trouble->flip_per_million = flips;
    trouble->trickle = true;
}

/* Whatever happens to lanes, each message arrives complete, once, and in its own buffer. */
static void lanes_may_fail_at_any_byte(void **state)
{
    static const size_t sizes[] = {0, 5, 3000, 8192, 20000, 30000, 70000, 300000};
    uint32_t resets = 0, flips = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct pair pair;
        pair_open(&pair);
        set_trouble(pair.sender.trouble, seed, 8000, 0);
        set_trouble(pair.receiver.trouble, seed + 100, 8000, 20000);
        for (int i = 0; i < 40; i++) {
            const size_t size = sizes[hash_u64(seed, (uint64_t)i) % ARRAY_COUNT(sizes)];
            exchange(&pair, size, size + 10, i % 2 == 0, seed * 1000 + (uint64_t)i);
        }
        resets += pair.sender.trouble->resets + pair.receiver.trouble->resets;
        flips += pair.receiver.trouble->flips;
        set_trouble(pair.sender.trouble, seed, 0, 0);
        set_trouble(pair.receiver.trouble, seed, 0, 0);
        pair_close(&pair);
    }
    assert_true(resets > 20);
    assert_true(flips > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_may_fail_at_any_byte),
        cmocka_unit_test(messages_of_all_sizes_arrive),
        cmocka_unit_test(many_in_flight_keep_their_order),
        cmocka_unit_test(what_comes_early_may_be_lost),
        cmocka_unit_test(a_large_message_waits_in_the_socket),
        cmocka_unit_test(what_queues_goes_once),
        cmocka_unit_test(a_dead_lane_keeps_its_chunks_until_it_is_silent),
        cmocka_unit_test(messages_to_this_machine_are_done_when_they_are_written),
        cmocka_unit_test(a_short_rest_costs_no_huge_page),
        cmocka_unit_test(copies_of_messages_to_this_machine_are_counted),
        cmocka_unit_test(copies_are_left_for_other_sets),
        cmocka_unit_test(one_large_message_alone_is_copied),
        cmocka_unit_test(one_larger_message_is_copied_where_nothing_is_awaited),
        cmocka_unit_test(rest_of_a_chunk_is_read_at_once),
        cmocka_unit_test(report_of_a_copied_message_waits_for_a_chunk),
        cmocka_unit_test(a_posted_receive_is_told_with_the_next_chunk),
        cmocka_unit_test(slots_of_copied_messages_are_told),
        cmocka_unit_test(a_sender_in_parts_hears_of_a_receive_soon),
        cmocka_unit_test(receives_posted_together_are_told_together),
        cmocka_unit_test(reports_are_read_with_the_header_behind_them),
        cmocka_unit_test(who_waits_for_a_report_gets_it_at_once),
        cmocka_unit_test(bounce_slots_are_given_back),
        cmocka_unit_test(what_came_early_is_reported_at_once),
        cmocka_unit_test(what_nobody_polls_goes_with_the_next_call),
        cmocka_unit_test(an_old_time_sets_no_clock),
        cmocka_unit_test(a_false_way_back_counts_for_no_lane),
        cmocka_unit_test(posts_of_an_earlier_call_cost_no_turn),
        cmocka_unit_test(housekeeping_thread_does_it_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
