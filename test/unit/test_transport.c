/* test_transport.c: two transports in one process over real loopback sockets: messages, closing, faults. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/internal.h"
#include "transport/tcp.h"
#include "trouble_io.h"
#include "wire/switch_page.h"

#define STEPS_MAX 200000

struct end {
    struct tcp *tcp;
    struct trouble trouble;
    struct transport *transport;
};
struct pair {
    struct end sender, receiver;
    struct transport_comm *out, *in;
};

static void say_line(void *context, enum transport_level level, const char *text)
{
    if (level != TRANSPORT_TRACE || getenv("VERBOSE") != NULL) {
        fprintf(stderr, "%s: %s\n", (const char *)context, text);
    }
}

static const char *switch_file, *page_folder;
static uint32_t sender_sockets, receiver_sockets;
static uint8_t version; /* of lanes' frames; 0: the newest */
static bool rails;

static void end_open(struct end *end, const char *name, bool thread)
{
    const struct transport_nic nic = {
        .name = "lo", .address = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}};
    struct transport_nic three[3] = {nic, nic, nic};
    struct transport_config config = {.nics = rails ? three : &nic,
                                      .nic_count = rails ? 3 : 1,
                                      .mode = TRANSPORT_FULL,
                                      .priority = PRIORITY_NORMAL,
                                      .checksum = 2,
                                      .thread = thread,
                                      .switch_file = switch_file,
                                      .page_folder = page_folder,
                                      .sockets = name[0] == 's' ? sender_sockets : receiver_sockets,
                                      .version = version,
                                      .standbys = rails ? 2 : 0,
                                      .say = say_line,
                                      .say_context = (void *)(uintptr_t)name};

    assert_int_equal(tcp_open(&end->tcp, "/sys"), 0);
    end->trouble = (struct trouble){.rails = rails};
    for (uint8_t i = 0; i < 3; i++) {
        three[i].address.ip[14] = (uint8_t)(i + 1);
    }
    config.io = trouble_io(&end->trouble, tcp_io(end->tcp));
    assert_int_equal(transport_new(&end->transport, &config), 0);
}

static void end_close(struct end *end)
{
    assert_int_equal(transport_free(end->transport), TRANSPORT_GONE);
    tcp_close(end->tcp);
}

static void serve(struct pair *pair)
{
    (void)transport_serve(pair->sender.transport, (struct mono){0});
    (void)transport_serve(pair->receiver.transport, (struct mono){0});
}

static void connect_comm(struct pair *pair)
{
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    uint64_t state = 0;

    assert_int_equal(transport_listen(pair->receiver.transport, 0, handle, &listener), 0);
    pair->out = pair->in = NULL;
    for (int i = 0; i < STEPS_MAX && (pair->out == NULL || pair->in == NULL); i++) {
        if (pair->out == NULL) {
            assert_int_equal(
                transport_connect(pair->sender.transport, 0, handle, &state, &pair->out), 0);
        }
        if (pair->in == NULL) {
            assert_int_equal(transport_accept(listener, &pair->in), 0);
        }
        serve(pair);
    }
    assert_non_null(pair->out);
    assert_non_null(pair->in);
    transport_close_listener(listener);
}

static void pair_open(struct pair *pair)
{
    end_open(&pair->sender, "sender", false);
    end_open(&pair->receiver, "receiver", false);
    connect_comm(pair);
}

static void pair_close(struct pair *pair)
{
    transport_close(pair->out);
    transport_close(pair->in);
    for (int i = 0; i < 20; i++) { /* what is owed is paid by housekeeping, which both ends need */
        struct io *io = &pair->sender.trouble.io;
        (void)transport_serve(pair->sender.transport, mono_add(io->now(io), span_ms(1)));
        (void)transport_serve(pair->receiver.transport, mono_add(io->now(io), span_ms(1)));
    }
    end_close(&pair->sender);
    end_close(&pair->receiver);
}

static void fill(uint8_t *bytes, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)hash_u64(seed, i / 8);
    }
}

/* One message, the receive posted before or after the send. */
static void exchange(struct pair *pair, size_t size, size_t room, bool post_first, uint64_t seed)
{
    uint8_t *from = malloc(size + 1), *to = malloc(room + 1);
    struct transport_request *send = NULL, *receive = NULL;
    bool sent = false, received = false;
    size_t got = 0;

    fill(from, size, seed);
    memset(to, 0xee, room + 1);
    for (int i = 0; i < STEPS_MAX && !(sent && received); i++) {
        if (receive == NULL && (post_first || i > 20)) {
            assert_int_equal(transport_receive(pair->in, to, room, 7, false, NULL, &receive), 0);
        }
        if (send == NULL && !sent) {
            assert_int_equal(transport_send(pair->out, from, size, 7, NULL, &send), 0);
        }
        if (i > 200) { /* something failed: its return takes its time */
            trouble_skipped_ns += NS_PER_MS;
        }
        if (send != NULL && !sent) {
            assert_int_equal(transport_test(send, &sent, NULL), 0);
            if (sent) {
                memset(from, 0x5a, size); /* its owner's again */
            }
        }
        if (receive != NULL && !received) {
            assert_int_equal(transport_test(receive, &received, &got), 0);
        }
        serve(pair);
    }
    assert_true(sent);
    assert_true(received);
    assert_int_equal(got, size);
    fill(from, size, seed);
    assert_memory_equal(from, to, size);
    for (size_t i = size; i <= room; i++) {
        assert_int_equal(to[i], 0xee);
    }
    free(from);
    free(to);
}

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

/* Lanes of the sender that new bytes went over, as a mask. */
static uint32_t lanes_used(const struct pair *pair, uint64_t before[static LANE_MAX])
{
    const struct lane_set *set = pair->sender.transport->sets[0];
    uint32_t lanes = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        lanes |= set->sent[i].bytes > before[i] ? 1u << i : 0;
        before[i] = set->sent[i].bytes;
    }
    return lanes;
}

static void the_host_switch_is_obeyed(void **state)
{
    char path[] = "/tmp/foliot-switch-XXXXXX";
    const int fd = mkstemp(path);
    struct switch_page page = {0};
    uint64_t bytes[LANE_MAX] = {0};
    struct pair pair;

    (void)state;
    assert_true(fd >= 0);
    switch_page_init(&page);
    assert_int_equal(pwrite(fd, &page, sizeof(page), 0), sizeof(page));
    switch_file = path;
    pair_open(&pair);
    switch_file = NULL;
    exchange(&pair, 4 << 20, 4 << 20, true, 1);
    assert_true(__builtin_popcount(lanes_used(&pair, bytes)) > 1);
    for (int turn = 0; turn < 2; turn++) {
        (void)switch_page_write(&page, turn == 0 ? SWITCH_OBSERVE : SWITCH_OFF);
        assert_int_equal(pwrite(fd, &page, sizeof(page), 0), sizeof(page));
        serve(&pair);
        exchange(&pair, 1 << 20, 1 << 20, true, 2); /* what had begun ends as it began */
        (void)lanes_used(&pair, bytes);
        exchange(&pair, 4 << 20, 4 << 20, true, 3);
        assert_int_equal(__builtin_popcount(lanes_used(&pair, bytes)), 1);
        (void)switch_page_write(&page, SWITCH_UNSET);
        assert_int_equal(pwrite(fd, &page, sizeof(page), 0), sizeof(page));
        serve(&pair);
        exchange(&pair, 4 << 20, 4 << 20, true, 4);
        assert_true(__builtin_popcount(lanes_used(&pair, bytes)) > 1);
    }
    pair_close(&pair);
    close(fd);
    unlink(path);
}

static uint32_t lanes_shown(const struct transport *t, enum lane_state state)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < t->page_count; i++) {
        struct job_page_lane lane;
        assert_true(job_page_read_lane(t->page, sizeof(*t->page), i, &lane));
        count += lane.state == state;
        assert_true(lane.state == LANE_ACTIVE || lane.reason == LANE_REASON_CARRIER);
    }
    return count;
}

/* A receiver that waits for nothing isn't told of its NIC; who reads its page is. */
static void lanes_without_carrier_are_shown_so(void **state)
{
    char folder[] = "/tmp/foliot-page-XXXXXX";
    struct transport *t;
    struct pair pair;

    (void)state;
    assert_non_null(mkdtemp(folder));
    page_folder = folder;
    pair_open(&pair);
    page_folder = NULL;
    exchange(&pair, 4 << 20, 4 << 20, true, 1);
    t = pair.receiver.transport;
    page_write(t, t->io->now(t->io));
    const uint32_t lanes = lanes_shown(t, LANE_ACTIVE);
    assert_true(lanes > 1 && lanes_shown(t, LANE_DOWN) == 0);
    pair.receiver.trouble.no_carrier = true;
    page_write(t, t->io->now(t->io));
    assert_true(lanes_shown(t, LANE_ACTIVE) == 0 && lanes_shown(t, LANE_DOWN) == lanes);
    pair.receiver.trouble.no_carrier = false;
    pair_close(&pair);
    assert_int_equal(rmdir(folder), 0);
}

static int pages_made, pages_without_lock;

/* libc's, with an agent that looks at the page just then. */
int posix_fallocate(int fd, off_t offset, off_t size)
{
    char path[40];

    if (ftruncate(fd, offset + size) < 0) {
        return errno;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const int reader = open(path, O_RDONLY | O_CLOEXEC);
    pages_made++;
    pages_without_lock += reader < 0 || flock(reader, LOCK_SH | LOCK_NB) == 0;
    close(reader);
    return 0;
}

/* The agent removes pages that nobody holds. */
static void a_page_is_held_from_the_start(void **state)
{
    char folder[] = "/tmp/foliot-page-XXXXXX";
    struct pair pair;

    (void)state;
    pages_made = pages_without_lock = 0;
    assert_non_null(mkdtemp(folder));
    page_folder = folder;
    pair_open(&pair);
    page_folder = NULL;
    assert_int_equal(pages_made, 2);
    assert_int_equal(pages_without_lock, 0);
    pair_close(&pair);
    assert_int_equal(rmdir(folder), 0);
}

/* Until the sender's lanes are those, and no others. */
static void serve_until(struct pair *pair, uint32_t lanes)
{
    const struct lane_set *set = pair->sender.transport->sets[0];

    for (int i = 0; i < STEPS_MAX && watch_connected(set->watch) != lanes; i++) {
        trouble_skipped_ns += NS_PER_MS;
        serve(pair);
    }
    assert_int_equal(watch_connected(set->watch), lanes);
}

/* After a carrier's return from the ports that they had, which are hashed to the same links; where somebody has one of them
 * now, from another. */
static void lanes_come_back_by_the_path_they_had(void **state)
{
    struct sockaddr_in taken = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    static uint8_t from[1 << 20], to[1 << 20];
    struct transport_request *send = NULL, *receive = NULL;
    bool sent = false, received = false;
    uint16_t ports[LANE_MAX] = {0};
    struct pair pair;

    (void)state;
    pair_open(&pair);
    exchange(&pair, 4 << 20, 4 << 20, true, 1);
    /* It waits for its receive: nobody asks for carriers while nothing is on its way. */
    assert_int_equal(transport_send(pair.out, from, sizeof(from), 7, NULL, &send), 0);
    const struct lane_set *set = pair.sender.transport->sets[0];
    const uint32_t lanes = watch_connected(set->watch);
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        ports[i] = lanes >> i & 1 ? set->streams[i]->local.port : 0;
    }
    assert_true(lanes > 1 && ports[0] != 0);
    for (int turn = 0; turn < 2; turn++) {
        pair.sender.trouble.no_carrier = true;
        serve_until(&pair, 0);
        if (turn == 1) {
            taken.sin_port = htons(ports[0]);
            assert_int_equal(bind(fd, (struct sockaddr *)&taken, sizeof(taken)), 0);
        }
        pair.sender.trouble.no_carrier = false;
        serve_until(&pair, lanes);
        uint32_t same = 0;
        for (uint32_t i = 0; i < LANE_MAX; i++) {
            same += (lanes >> i & 1) && set->streams[i]->local.port == ports[i];
        }
        assert_true(same > 0 && 2 * same >= (uint32_t)__builtin_popcount(lanes) -
                                                1); /* a stranger may be sooner */
        assert_true(turn == 0 || set->streams[0]->local.port != ports[0]);
    }
    assert_int_equal(transport_receive(pair.in, to, sizeof(to), 7, false, NULL, &receive), 0);
    for (int i = 0; i < STEPS_MAX && !(sent && received); i++) {
        serve(&pair);
        if (!sent) {
            assert_int_equal(transport_test(send, &sent, NULL), 0);
        }
        if (!received) {
            assert_int_equal(transport_test(receive, &received, NULL), 0);
        }
    }
    assert_true(sent && received);
    pair_close(&pair);
    close(fd);
}

static uint32_t lanes_there(const struct pair *pair)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        count += pair->sender.transport->sets[0]->streams[i] != NULL;
    }
    return count;
}

/* Above the ceiling lanes go one by one, without a loss, and one stays; a set made there has one. So it is when only one
 * end has too many: the receiver turns further lanes away, and asks for what is there when its ceiling comes down. */
static void the_ceiling_holds(void **state)
{
    enum { SENDER = 1, RECEIVER = 2, LATE = 4 };
    static const uint8_t whose[] = {SENDER, RECEIVER, SENDER | RECEIVER, SENDER | LATE,
                                    RECEIVER | LATE};
    struct pair pair;

    (void)state;
    for (uint32_t k = 0; k < 3 * sizeof(whose); k++) {
        const uint32_t max = 1 + k % 3, who = whose[k / 3];
        const bool late = (who & LATE) != 0;
        sender_sockets = (who & SENDER) != 0 && !late ? max : 0;
        receiver_sockets = (who & RECEIVER) != 0 && !late ? max : 0;
        pair_open(&pair);
        sender_sockets = receiver_sockets = 0;
        if (late) {
            for (int i = 0; i < 5; i++) {
                exchange(&pair, 1 << 20, 1 << 20, true, (uint64_t)i);
            }
            assert_int_equal(lanes_there(&pair), 4);
            *((who & SENDER) != 0 ? &pair.sender.transport->config.sockets
                                  : &pair.receiver.transport->config.sockets) = max;
        }
        for (int i = 0; i < 20; i++) {
            exchange(&pair, 1 << 20, 1 << 20, true, (uint64_t)i);
            trouble_skipped_ns += 20 * NS_PER_MS;
            serve(&pair);
        }
        assert_in_range(lanes_there(&pair), 1, max);
        assert_int_equal(pair.sender.transport->sockets, lanes_there(&pair));
        assert_int_equal(pair.receiver.transport->sockets, lanes_there(&pair));
        assert_int_equal(pair.receiver.transport->parting, 0);
        assert_int_equal(pair.sender.transport->parting, 0);
        pair_close(&pair);
    }
}

/* Three NICs that reach their like only: the management's and two rails. A standby that can't be made moves on, and the
 * job outlives its own NIC; then the next one. */
static void a_pair_of_nics_that_connects_is_found(void **state)
{
    struct pair pair;

    (void)state;
    rails = true;
    pair_open(&pair);
    rails = false;
    for (uint8_t cut = 0; cut < 3; cut++) {
        pair.sender.trouble.cut = cut; /* first none, then the set's own, then another's */
        for (int i = 0; i < 30; i++) {
            exchange(&pair, 1 << 20, 1 << 20, true, (uint64_t)i + cut);
            trouble_skipped_ns += 50 * NS_PER_MS;
            serve(&pair);
        }
        for (uint32_t i = 0; i < LANE_MAX; i++) {
            const struct lane_set *set = pair.sender.transport->sets[0];
            const struct stream *stream = set->streams[i];
            assert_true(stream == NULL || !stream->shaken || set->lane_nics[i].own + 1 != cut);
        }
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

/* Sent before anybody waits for it, by as many slots as the receiver keeps, and lost with all lanes: it arrives all the
 * same. A peer of an older version is sent none of it early. */
static void what_comes_early_may_be_lost(void **state)
{
    enum { COUNT = LANE_LARGE_SLOTS + 2, SIZE = 30000 };
    static uint8_t from[COUNT][SIZE], to[COUNT][SIZE];
    struct transport_request *sends[COUNT] = {0}, *receives[COUNT] = {0};
    struct sender_counters counters;
    struct pair pair;

    (void)state;
    for (version = 2; version <= LANE_VERSION; version++) {
        bool sent[COUNT] = {0}, received[COUNT] = {0};
        pair_open(&pair);
        for (int i = 0; i < COUNT; i++) {
            fill(from[i], SIZE, (uint64_t)i);
            memset(to[i], 0, SIZE);
            assert_int_equal(transport_send(pair.out, from[i], SIZE, 0, NULL, &sends[i]), 0);
        }
        sender_counters_get(pair.sender.transport->sets[0]->sender, &counters);
        assert_true(version < 3 ? counters.eager == 0
                                : counters.eager > 0 && counters.eager <= LANE_LARGE_SLOTS);
        prng_init(&pair.sender.trouble.prng, version);
        pair.sender.trouble.reset_per_million = 1000000;
        for (int i = 0; i < 100 && pair.sender.trouble.resets == 0; i++) {
            trouble_skipped_ns += NS_PER_MS;
            (void)transport_serve(pair.sender.transport, (struct mono){0});
        }
        pair.sender.trouble.reset_per_million = 0;
        assert_true(pair.sender.trouble.resets > 0);
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(transport_receive(pair.in, to[i], SIZE, 0, false, NULL, &receives[i]),
                             0);
        }
        for (int k = 0; k < COUNT * 1000; k++) {
            const int i = k % COUNT;
            trouble_skipped_ns += NS_PER_MS / 10;
            if (!sent[i]) {
                assert_int_equal(transport_test(sends[i], &sent[i], NULL), 0);
            }
            if (!received[i]) {
                assert_int_equal(transport_test(receives[i], &received[i], NULL), 0);
            }
            serve(&pair);
        }
        for (int i = 0; i < COUNT; i++) {
            assert_true(sent[i] && received[i]);
            assert_memory_equal(from[i], to[i], SIZE);
        }
        pair_close(&pair);
    }
    version = 0;
}

/* A chunk that is later than its lane was ever fast, but no later than the lane's queue, goes once. */
static void what_queues_goes_once(void **state)
{
    static uint8_t bytes[30000];
    struct transport_request *send = NULL;
    struct sender_counters before, counters;
    struct pair pair;

    (void)state;
    pair_open(&pair);
    for (uint64_t i = 0; i < 8; i++) { /* so that all lanes have a rate */
        exchange(&pair, 1 << 20, 1 << 20, true, i);
    }
    sender_counters_get(pair.sender.transport->sets[0]->sender, &before);
    assert_int_equal(transport_send(pair.out, bytes, sizeof(bytes), 0, NULL, &send), 0);
    for (int turn = 0; turn < 2; turn++) {
        pair.sender.trouble.rtt_ns = turn == 0 ? 50000000 : 1000000;
        for (int i = 0; i < 30; i++) { /* the receiver isn't served */
            trouble_skipped_ns += NS_PER_MS;
            (void)transport_serve(pair.sender.transport, (struct mono){0});
        }
        sender_counters_get(pair.sender.transport->sets[0]->sender, &counters);
        assert_int_equal(counters.hedged > before.hedged, turn == 1);
    }
    pair.sender.trouble.rtt_ns = 0;
    pair_close(&pair);
}

static void comms_share_a_set_and_go(void **state)
{
    struct pair pair, more[8];

    (void)state;
    pair_open(&pair);
    for (int i = 0; i < 8; i++) {
        more[i] = pair;
        connect_comm(&more[i]);
    }
    for (int i = 0; i < 8; i++) {
        exchange(&more[i], 100000, 100000, true, (uint64_t)i);
        transport_close(more[i].out);
        transport_close(more[i].in);
        exchange(&pair, 1000, 1000, i % 2 == 0, (uint64_t)i);
    }
    pair_close(&pair);
}

/* Small messages are done when they are copied: nobody polls for them again. More of them than there are bounce slots arrive
 * while their sender asks for nothing but an answer, by another set, and no housekeeping helps. */
static void what_nobody_polls_goes_with_the_next_call(void **state)
{
    enum { COUNT = 32, SIZE = 8192 };
    static uint8_t from[COUNT][SIZE], to[COUNT][SIZE];
    struct transport_request *sends[COUNT], *receives[COUNT], *answer = NULL;
    struct pair pair, back;
    uint8_t word = 0;
    bool done = false;
    int got = 0;

    (void)state;
    pair_open(&pair);
    back = (struct pair){.sender = pair.receiver, .receiver = pair.sender};
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

/* 480 KiB a peer are held only while small messages come. */
static void bounce_slots_are_given_back(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair);
    exchange(&pair, 100, 100, false, 1);
    assert_non_null(pair.in->set->slots);
    for (int i = 0; i < 300; i++) {
        trouble_skipped_ns += 10 * NS_PER_MS;
        pair.in->set->polled_ns = 0;
        exchange(&pair, 100000, 100000, true, (uint64_t)i);
    }
    assert_null(pair.in->set->slots);
    exchange(&pair, 100, 100, false, 2);
    assert_non_null(pair.in->set->slots);
    pair_close(&pair);
}

/* A message of up to 64 KiB may be there before its receive is posted, which is done then: nobody asks that set for anything
 * any more, but the sender waits for the report. */
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
    for (int i = 0; i < 3; i++) { /* the first ones tell the sender that its lane is fast */
        done = false;
        assert_int_equal(transport_send(pair.out, from, SIZE, 0, NULL, &send), 0);
        assert_non_null(send);
        for (int k = 0; k < 200; k++) { /* the receiver's housekeeping reads it */
            trouble_skipped_ns += NS_PER_MS;
            serve(&pair);
        }
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

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_HEAP 0
#elif defined(__has_feature)
#define OWN_HEAP (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define OWN_HEAP 1
#endif

static size_t allocated(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Both ends of a pair with four lanes, and of one more communicator on them. Not counted: what small messages need while they
 * come (slots.c). */
static void a_peer_costs_so_much_memory(void **state)
{
    struct pair pair, more;

    (void)state;
    end_open(&pair.sender, "sender", false);
    end_open(&pair.receiver, "receiver", false);
    const size_t before = allocated();
    connect_comm(&pair);
    exchange(&pair, 1 << 20, 1 << 20, true, 1);
    const size_t one = allocated();
    more = pair;
    connect_comm(&more);
    const size_t two = allocated();
    print_message("%zu bytes, %zu for a second communicator\n", one - before, two - one);
    if (OWN_HEAP) { /* a sanitizer has another */
        assert_in_range(one - before, 60000, 130000);
        assert_in_range(two - one, 10000, 25000);
    }
    transport_close(more.out);
    transport_close(more.in);
    pair_close(&pair);
}

static void housekeeping_thread_does_it_alone(void **state)
{
    struct pair pair;
    uint8_t from[100000], to[100000], handle[TRANSPORT_HANDLE_SIZE];
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
    while (!done) { /* nobody polls the receive: the sender sees its message placed all the same */
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

static void foreign_handles_and_keys_are_named(void **state)
{
    struct pair pair;
    uint8_t handle[TRANSPORT_HANDLE_SIZE], bad[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    struct transport_comm *comm = NULL;
    uint64_t connecting = 0;
    int rc = 0;

    (void)state;
    end_open(&pair.sender, "sender", false);
    end_open(&pair.receiver, "receiver", false);
    assert_int_equal(transport_listen(pair.receiver.transport, 0, handle, &listener), 0);
    memcpy(bad, handle, sizeof(bad));
    memset(bad + 40, 0, 4);
    assert_int_equal(transport_connect(pair.sender.transport, 0, bad, &connecting, &comm),
                     -EPROTONOSUPPORT);
    assert_non_null(strstr(transport_why(), "NCCL_NET_PLUGIN"));
    memcpy(bad, handle, sizeof(bad));
    bad[60] ^= 1; /* the key, and with it the checksum */
    rc = transport_connect(pair.sender.transport, 0, bad, &connecting, &comm);
    assert_int_equal(rc, -EBADMSG);
    transport_close_listener(listener);
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

/* Whatever happens to lanes, each message arrives whole, once and in its own buffer. */
static void lanes_may_fail_at_any_byte(void **state)
{
    static const size_t sizes[] = {0, 5, 3000, 8192, 20000, 30000, 70000, 300000};
    uint32_t resets = 0, flips = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct pair pair;
        pair_open(&pair);
        set_trouble(&pair.sender.trouble, seed, 8000, 0);
        set_trouble(&pair.receiver.trouble, seed + 100, 8000, 20000);
        for (int i = 0; i < 40; i++) {
            const size_t size = sizes[hash_u64(seed, (uint64_t)i) % ARRAY_COUNT(sizes)];
            exchange(&pair, size, size + 10, i % 2 == 0, seed * 1000 + (uint64_t)i);
        }
        resets += pair.sender.trouble.resets + pair.receiver.trouble.resets;
        flips += pair.receiver.trouble.flips;
        set_trouble(&pair.sender.trouble, seed, 0, 0);
        set_trouble(&pair.receiver.trouble, seed, 0, 0);
        pair_close(&pair);
    }
    assert_true(resets > 20);
    assert_true(flips > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_costs_so_much_memory),
        cmocka_unit_test(lanes_may_fail_at_any_byte),
        cmocka_unit_test(messages_of_all_sizes_arrive),
        cmocka_unit_test(many_in_flight_keep_their_order),
        cmocka_unit_test(what_comes_early_may_be_lost),
        cmocka_unit_test(what_queues_goes_once),
        cmocka_unit_test(bounce_slots_are_given_back),
        cmocka_unit_test(what_came_early_is_reported_at_once),
        cmocka_unit_test(what_nobody_polls_goes_with_the_next_call),
        cmocka_unit_test(the_host_switch_is_obeyed),
        cmocka_unit_test(lanes_without_carrier_are_shown_so),
        cmocka_unit_test(a_page_is_held_from_the_start),
        cmocka_unit_test(lanes_come_back_by_the_path_they_had),
        cmocka_unit_test(the_ceiling_holds),
        cmocka_unit_test(a_pair_of_nics_that_connects_is_found),
        cmocka_unit_test(comms_share_a_set_and_go),
        cmocka_unit_test(housekeeping_thread_does_it_alone),
        cmocka_unit_test(foreign_handles_and_keys_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
