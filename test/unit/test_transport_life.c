/* test_transport_life.c: what two transports in one process keep of each other: sets, lanes, NICs, pages; and how they end. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

#include "base/ip.h"
#include "own_network.h"
#include "sanitized.h"
#include "transport_pair.h"
#include "wire/switch_page.h"

/* A mask of the sender's lanes that carried new bytes. */
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

/* Do messages take several lanes? On a busy machine a lane can look late for a moment, and a message takes another one alone. A
 * set that is switched off takes one lane for ever. */
static bool take_several_lanes(struct pair *pair, uint64_t *bytes, int tag)
{
    for (int message = 0; message < 16; message++) {
        exchange(pair, 4 << 20, 4 << 20, true, tag);
        if (__builtin_popcount(lanes_used(pair, bytes)) > 1) {
            return true;
        }
    }
    return false;
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
    assert_true(take_several_lanes(&pair, bytes, 1));
    for (int turn = 0; turn < 2; turn++) {
        (void)switch_page_write(&page, turn == 0 ? SWITCH_OBSERVE : SWITCH_OFF);
        assert_int_equal(pwrite(fd, &page, sizeof(page), 0), sizeof(page));
        serve(&pair);
        exchange(&pair, 1 << 20, 1 << 20, true, 2); /* what had begun ends in the same way */
        (void)lanes_used(&pair, bytes);
        exchange(&pair, 4 << 20, 4 << 20, true, 3);
        assert_int_equal(__builtin_popcount(lanes_used(&pair, bytes)), 1);
        (void)switch_page_write(&page, SWITCH_UNSET);
        assert_int_equal(pwrite(fd, &page, sizeof(page), 0), sizeof(page));
        serve(&pair);
        assert_true(take_several_lanes(&pair, bytes, 4));
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

/* An idle receiver isn't called about its NIC. A reader of its page sees the NIC's state. */
static void lanes_without_carrier_are_shown_so(void **state)
{
    char folder[] = "/tmp/foliot-page-XXXXXX";
    struct pair pair;

    (void)state;
    assert_non_null(mkdtemp(folder));
    page_folder = folder;
    pair_open(&pair);
    page_folder = NULL;
    exchange(&pair, 4 << 20, 4 << 20, true, 1);
    struct transport *t = pair.receiver.transport;
    page_write(t, t->io->now(t->io));
    const uint32_t lanes = lanes_shown(t, LANE_ACTIVE);
    assert_true(lanes > 1 && lanes_shown(t, LANE_DOWN) == 0);
    pair.receiver.trouble->no_carrier = true;
    page_write(t, t->io->now(t->io));
    assert_true(lanes_shown(t, LANE_ACTIVE) == 0 && lanes_shown(t, LANE_DOWN) == lanes);
    pair.receiver.trouble->no_carrier = false;
    pair_close(&pair);
    assert_int_equal(rmdir(folder), 0);
}

static int pages_made, pages_without_lock;

/* Replaces libc's, with an agent that reads the page just then. */
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

/* The agent removes pages that no process holds. */
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

/* Serves until the sender's lanes are exactly those. */
static void serve_until(struct pair *pair, uint32_t lanes)
{
    const struct lane_set *set = pair->sender.transport->sets[0];

    for (int i = 0; i < STEPS_MAX && watch_connected(set->watch) != lanes; i++) {
        skip_ms(1);
        serve(pair);
    }
    assert_int_equal(watch_connected(set->watch), lanes);
}

/* After a carrier's return they use the ports that they had, which are hashed to the same links. If another process has one of
 * them by now, they use another port. */
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
    /* It waits for its receive: nothing asks for carriers while nothing is on its way. */
    assert_int_equal(transport_send(pair.out, from, sizeof(from), 7, NULL, &send), 0);
    const struct lane_set *set = pair.sender.transport->sets[0];
    const uint32_t lanes = watch_connected(set->watch);
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        ports[i] = lanes >> i & 1 ? set->streams[i]->local.port : 0;
    }
    assert_true(lanes > 1 && ports[0] != 0);
    for (int turn = 0; turn < 2; turn++) {
        pair.sender.trouble->no_carrier = true;
        serve_until(&pair, 0);
        if (turn == 1) {
            taken.sin_port = htons(ports[0]);
            const int r = bind(fd, (struct sockaddr *)&taken, sizeof(taken));
            assert_true(r == 0 || errno == EADDRINUSE); /* a stranger has it: as well */
        }
        pair.sender.trouble->no_carrier = false;
        serve_until(&pair, lanes);
        uint32_t same = 0;
        for (uint32_t i = 0; i < LANE_MAX; i++) {
            same += (lanes >> i & 1) && set->streams[i]->local.port == ports[i];
        }
        assert_true(same > 0 && 2 * same >= (uint32_t)__builtin_popcount(lanes) -
                                                1); /* another process may be faster */
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

static bool within(const struct pair *pair, uint32_t max)
{
    const struct transport *out = pair->sender.transport, *in = pair->receiver.transport;
    const uint32_t lanes = lanes_there(pair);

    return lanes >= 1 && lanes <= max && out->sockets == lanes && in->sockets == lanes &&
           in->parting == 0 && out->parting == 0;
}

/* Above the ceiling lanes are closed one by one, without a loss, and one stays. A set that is made then has one. The same holds
 * if only one end has too many: the receiver refuses further lanes, and asks for lanes again when its ceiling is no longer
 * reached. */
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
            assert_int_equal(lanes_there(&pair), LANES);
            *((who & SENDER) != 0 ? &pair.sender.transport->config.sockets
                                  : &pair.receiver.transport->config.sockets) = max;
        }
        for (int i = 0; i < 20 || (i < 2000 && !within(&pair, max)); i++) {
            exchange(&pair, 1 << 20, 1 << 20, true, (uint64_t)i);
            skip_ms(20);
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

/* Three NICs that reach only their counterparts: the management's and two rails. A standby that can't be made tries another pair,
 * and the job survives the loss of its own NIC, and of the next one. */
static void a_pair_of_nics_that_connects_is_found(void **state)
{
    struct pair pair;

    (void)state;
    rails = true;
    pair_open(&pair);
    rails = false;
    for (uint8_t cut = 0; cut < 3; cut++) {
        pair.sender.trouble->cut = cut; /* first none, then the set's own, then another's */
        for (int i = 0; i < 30; i++) {
            exchange(&pair, 1 << 20, 1 << 20, true, (uint64_t)i + cut);
            skip_ms(50);
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

/* At any distance, and whether standbys are needed or not: their round trips are of other paths. */
static void standbys_tell_nothing_of_the_sets_own_paths(void **state)
{
    static const enum transport_mode modes[] = {TRANSPORT_FULL, TRANSPORT_FAILOVER};
    struct pair pair;

    (void)state;
    rails = true;
    pair_open(&pair);
    rails = false;
    for (size_t k = 0; k < sizeof(modes) / sizeof(modes[0]); k++) {
        uint32_t own = 0, standbys = 0;
        pair.sender.transport->mode = modes[k];
        for (int i = 0; i < 30; i++) {
            exchange(&pair, 1 << 20, 1 << 20, true, (uint64_t)i);
            skip_ms(50);
            serve(&pair);
        }
        const struct lane_set *set = pair.sender.transport->sets[0];
        assert_int_equal(set->mode, modes[k]);
        for (uint32_t i = 0; i < LANE_MAX; i++) {
            const bool standby = set->lane_nics[i].standby;
            if (set->streams[i] != NULL && set->streams[i]->shaken) {
                assert_int_equal(set->seen.apart >> i & 1, standby);
                own += !standby;
                standbys += standby;
            }
        }
        assert_true(own > 0 && standbys > 0);
    }
    pair_close(&pair);
}

/* NCCL named a NIC of ours that doesn't reach the peer's. The kernel reports that, or a firewall does, or nothing comes back. The
 * communicator works nevertheless, over the NIC that reaches the peer, and so does the next one, on the same set. */
static void another_nic_is_tried_where_nccls_cannot_connect(void **state)
{
    static const int told[] = {-ENETUNREACH, -EHOSTUNREACH, -ECONNREFUSED, 0};
    struct pair pair, second;

    (void)state;
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        const uint32_t peer = (uint32_t)i % 3, own = (peer + 1) % 3;
        rails = true;
        end_open(&pair.sender, "sender", false);
        end_open(&pair.receiver, "receiver", false);
        rails = false;
        pair.sender.trouble->astray = told[i];
        const int64_t before = trouble_skipped_ns;
        connect_comm_over(&pair, own, peer);
        exchange(&pair, 1 << 20, 1 << 20, true, i);
        const struct lane_set *set = pair.sender.transport->sets[0];
        assert_true(set->nic == peer &&
                    set->own_context == pair.sender.transport->nics[own].context);
        assert_true(trouble_skipped_ns - before < 20 * NS_PER_S);
        second = pair;
        connect_comm_over(&second, own, peer);
        assert_ptr_equal(second.out->set, pair.out->set);
        transport_close(second.out);
        transport_close(second.in);
        pair_close(&pair);
    }
}

/* It failed because no process listens: that is reported as soon as all of our NICs got that answer. */
static void nobody_there_is_told_after_all_nics(void **state)
{
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    struct transport_comm *comm = NULL;
    uint64_t connecting = 0;
    struct pair pair;
    int r = 0;

    (void)state;
    rails = true;
    end_open(&pair.sender, "sender", false);
    end_open(&pair.receiver, "receiver", false);
    rails = false;
    pair.sender.trouble->astray = -ECONNREFUSED;
    assert_int_equal(transport_listen(pair.receiver.transport, 0, handle, &listener), 0);
    end_close(&pair.receiver);
    const int64_t before = trouble_skipped_ns;
    while (r == 0 && trouble_skipped_ns - before < 20 * NS_PER_S) {
        r = transport_connect(pair.sender.transport, 0, handle, &connecting, &comm);
        skip_ms(1);
        (void)transport_serve(pair.sender.transport, (struct mono){0});
    }
    assert_int_equal(r, -ECONNABORTED);
    assert_non_null(strstr(transport_why(), "is gone"));
    assert_true(trouble_skipped_ns - before < NS_PER_S);
    end_close(&pair.sender);
}

static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

/* NCCL gives up a connect that is under way, at any point, and ends: neither side keeps a descriptor or memory of it (the memory
 * checker finds leaks). */
/* Only the second of two NICs has an address at which a socket can't listen. */
static void a_nic_that_cannot_be_listened_at_is_named(void **state)
{
    struct transport_nic nics[2] = {{.name = "eth0"}, {.name = "eth1"}};
    struct transport_config config = {.nics = nics, .nic_count = 2};
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    struct transport *transport;
    struct tcp *tcp;

    (void)state;
    assert_true(ip_parse("127.0.0.1", nics[0].address.ip));
    assert_true(ip_parse("fe80::1", nics[1].address.ip));
    assert_int_equal(tcp_open(&tcp, "/sys"), 0);
    config.io = tcp_io(tcp);
    assert_int_equal(transport_new(&transport, &config), 0);
    assert_true(transport_listen(transport, 0, handle, &listener) < 0);
    assert_non_null(strstr(transport_why(), "no port to listen on at NIC eth1 ("));
    assert_int_equal(transport->listening_count, 0);
    assert_int_equal(transport_free(transport), TRANSPORT_GONE);
    tcp_close(tcp);
}

static void an_abandoned_connect_leaves_nothing(void **state)
{
    (void)state;
    for (int looks = 1; looks <= 16; looks++) {
        const int before = descriptors();
        uint8_t handle[TRANSPORT_HANDLE_SIZE];
        struct transport_listener *listener;
        struct transport_comm *comm = NULL;
        uint64_t connecting = 0;
        struct pair pair;
        end_open(&pair.sender, "sender", false);
        end_open(&pair.receiver, "receiver", false);
        assert_int_equal(transport_listen(pair.receiver.transport, 0, handle, &listener), 0);
        for (int i = 0; i < looks && comm == NULL; i++) {
            assert_int_equal(
                transport_connect(pair.sender.transport, 0, handle, &connecting, &comm), 0);
            if (i + 1 < looks) {
                serve(&pair);
            }
        }
        if (comm != NULL) {
            transport_close(comm);
        }
        assert_true(descriptors() > before);
        end_close(&pair.sender);
        end_close(&pair.receiver);
        assert_int_equal(descriptors(), before);
    }
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

/* True if it has something to do at once. */
static bool serve_a_while(struct end *end)
{
    struct io *io = &end->trouble->io;
    const struct mono next = transport_serve(end->transport, mono_add(io->now(io), span_ms(1)));

    return !mono_before(io->now(io), next);
}

/* A reset is sent once: a peer whose link is down then doesn't get it. Its kernel drops the connections. The accepting end asks,
 * gets that from the kernel, and keeps nothing. */
static int lose_the_resets(void)
{
    struct pair pair;
    const int silently = 1;
    int hurried = 0;

    pair_open(&pair);
    exchange(&pair, 100000, 100000, true, 1);
    transport_close(pair.out);
    transport_close(pair.in);
    struct lane_set *const *kept = &pair.receiver.transport->sets[0];
    const struct lane_set *gone = pair.sender.transport->sets[0];
    /* Until neither end owes anything, and no longer: then they close. */
    for (int i = 0; i < 5000 && ((*kept)->comm_count > 0 || gone->comm_count > 0); i++) {
        (void)serve_a_while(&pair.sender);
        (void)serve_a_while(&pair.receiver);
    }
    if ((*kept)->comm_count > 0 || gone->comm_count > 0) {
        return 3;
    }
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        if (gone->streams[i] != NULL && setsockopt(gone->streams[i]->conn, IPPROTO_TCP, TCP_REPAIR,
                                                   &silently, sizeof(silently)) < 0) {
            return 77;
        }
    }
    end_close(&pair.sender);
    struct io *io = &pair.receiver.trouble->io; /* something came just before it began to ask */
    const struct mono asks = mono_add((*kept)->lonely, span_ns(SET_LINGER_NS));
    (*kept)->next_look = mono_add(asks, span_ns(LOOK_NS));
    trouble_skipped_ns += mono_sub(asks, io->now(io)).ns + LOOK_NS / 4;
    (void)serve_a_while(&pair.receiver);
    for (int i = 0; i < 2000 && *kept != NULL; i++) {
        trouble_skipped_ns += 9 * NS_PER_MS;
        hurried += serve_a_while(&pair.receiver);
    }
    return *kept != NULL ? 4 : hurried > 100 ? 5 : 0; /* nor does it ask all the time */
}

static void a_set_whose_peer_left_unheard_goes(void **state)
{
    (void)state;
    in_own_network("ip link set lo up", lose_the_resets);
}

static size_t allocated(void)
{
    const struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Both ends of a pair with four lanes, and of one more communicator on them. The memory for small messages that are coming isn't
 * counted (slots.c). */
static void a_peer_costs_so_much_memory(void **state)
{
    struct pair pair;

    (void)state;
    end_open(&pair.sender, "sender", false);
    end_open(&pair.receiver, "receiver", false);
    const size_t before = allocated();
    connect_comm(&pair);
    lanes_up(&pair);
    exchange(&pair, 1 << 20, 1 << 20, true, 1);
    const size_t one = allocated();
    struct pair more = pair;
    connect_comm(&more);
    const size_t two = allocated();
    print_message("%zu bytes, %zu for a second communicator\n", one - before, two - one);
    if (!SANITIZED) { /* a sanitizer has another allocator */
        assert_in_range(one - before, 60000, 130000);
        assert_in_range(two - one, 10000, 25000);
    }
    transport_close(more.out);
    transport_close(more.in);
    pair_close(&pair);
}

/* A killed process has lost its lanes before its listener refuses: a peer that connects in between tries again soon, and then
 * less and less often. */
static void a_listener_that_outlives_its_lanes_is_asked_again(void **state)
{
    struct transport_request *receive;
    struct pair pair;
    uint8_t to[8];
    bool done;

    (void)state;
    pair_open(&pair);
    exchange(&pair, 1000, 1000, true, 1);
    assert_int_equal(transport_receive(pair.in, to, sizeof(to), 0, false, NULL, &receive), 0);
    struct transport *t = pair.receiver.transport;
    struct lane_set *set = t->sets[0];
    trouble_slowed = true;
    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        if (set->streams[lane] != NULL) {
            lane_set_lost(set, t->io->now(t->io), lane, LANE_REASON_RESET);
        }
    }
    uint32_t knocks[2] = {0};
    for (int ms = 0; ms < 3000;
         ms++) { /* the sender isn't served: its listener only takes connections */
        trouble_skipped_ns += NS_PER_MS;
        assert_int_equal(transport_test(receive, &done, NULL), 0);
        knocks[ms >= 50] = set->knocks;
    }
    assert_in_range(knocks[0], 3, 8);
    assert_in_range(knocks[1] - knocks[0], 8, 16);
    trouble_slowed = false;
    pair_close(&pair);
}

static void foreign_handles_and_keys_are_named(void **state)
{
    struct pair pair;
    uint8_t handle[TRANSPORT_HANDLE_SIZE], bad[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    struct transport_comm *comm = NULL;
    uint64_t connecting = 0;
    int r = 0;

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
    r = transport_connect(pair.sender.transport, 0, bad, &connecting, &comm);
    assert_int_equal(r, -EBADMSG);
    transport_close_listener(listener);
    end_close(&pair.sender);
    end_close(&pair.receiver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_costs_so_much_memory),
        cmocka_unit_test(the_host_switch_is_obeyed),
        cmocka_unit_test(lanes_without_carrier_are_shown_so),
        cmocka_unit_test(a_page_is_held_from_the_start),
        cmocka_unit_test(lanes_come_back_by_the_path_they_had),
        cmocka_unit_test(the_ceiling_holds),
        cmocka_unit_test(a_pair_of_nics_that_connects_is_found),
        cmocka_unit_test(standbys_tell_nothing_of_the_sets_own_paths),
        cmocka_unit_test(another_nic_is_tried_where_nccls_cannot_connect),
        cmocka_unit_test(nobody_there_is_told_after_all_nics),
        cmocka_unit_test(a_nic_that_cannot_be_listened_at_is_named),
        cmocka_unit_test(an_abandoned_connect_leaves_nothing),
        cmocka_unit_test(comms_share_a_set_and_go),
        cmocka_unit_test(foreign_handles_and_keys_are_named),
        cmocka_unit_test(a_listener_that_outlives_its_lanes_is_asked_again),
        cmocka_unit_test(a_set_whose_peer_left_unheard_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
