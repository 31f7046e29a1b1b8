/* test_greeting.c: connections to a receiving process, byte by byte: greetings, recorded greetings, and what a sender may send
 * before it is asked. The peers here are plain sockets with the job's key. */
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/endian.h"
#include "own_network.h"
#include "transport/internal.h"
#include "transport/tcp.h"
#include "trouble_io.h"

#define TURNS 600000 /* more than a minute, for events that must happen */

struct end {
    struct tcp *tcp;
    struct trouble trouble;
    struct transport *transport;
    struct transport_listener *listener;
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
};

/* One lane of a sender. */
struct peer {
    int fd;
    uint8_t hello[LANE_HELLO_SIZE], proof[LANE_PROOF_SIZE];
};

static void end_open(struct end *end)
{
    const struct transport_nic nic = {
        .name = "lo", .address = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}};
    struct transport_config config = {.nics = &nic,
                                      .nic_count = 1,
                                      .mode = TRANSPORT_FULL,
                                      .priority = PRIORITY_NORMAL,
                                      .checksum = 2};

    assert_int_equal(tcp_open(&end->tcp, "/sys"), 0);
    end->trouble = (struct trouble){0};
    config.io = trouble_io(&end->trouble, tcp_io(end->tcp));
    assert_int_equal(transport_new(&end->transport, &config), 0);
    assert_int_equal(transport_listen(end->transport, 0, end->handle, &end->listener), 0);
}

static void end_close(struct end *end)
{
    transport_close_listener(end->listener);
    assert_int_equal(transport_free(end->transport), TRANSPORT_GONE);
    tcp_close(end->tcp);
}

static void serve(struct end *end, int turns)
{
    for (int i = 0; i < turns; i++) {
        (void)transport_serve(end->transport, (struct mono){0});
    }
}

/* Serves again, many times: the kernel may need the processor to deliver what was sent. */
static void serve_on(struct end *end, int turn)
{
    serve(end, 1);
    if (turn > 100) {
        (void)usleep(100);
    }
}

static void pass(struct end *end, int64_t ms)
{
    for (int64_t i = 0; i < ms; i += 10) {
        trouble_skipped_ns += 10 * NS_PER_MS;
        serve(end, 1);
    }
}

static uint32_t sets(const struct end *end)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < end->transport->set_count; i++) {
        count += end->transport->sets[i] != NULL;
    }
    return count;
}

static void dial(const struct end *end, struct peer *peer)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(end->transport->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(peer->fd >= 0);
    assert_int_equal(connect(peer->fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(fcntl(peer->fd, F_SETFL, O_NONBLOCK), 0);
}

static void hello_make(const struct end *end, struct peer *peer, uint64_t context, uint16_t lane,
                       uint8_t newest)
{
    const struct lane_hello hello = {
        .newest = newest,
        .lowest = 1,
        .lane = lane,
        .lanes = 4,
        .epoch = 1,
        .own_context = context,
        .peer_context = end->transport->nics[0].context,
        .set = context + 1,
        .own_address = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
        .nonce = "a sender's nonce",
        .host = "h",
        .nic = "lo"};

    lane_hello_encode(peer->hello, &hello, end->transport->nonce, end->transport->key);
}

static void put(const struct peer *peer, const void *bytes, size_t size)
{
    assert_int_equal(send(peer->fd, bytes, size, MSG_NOSIGNAL), size);
}

/* Gets so many bytes from the receiver. 0: it closed the connection instead, -1: it wrote nothing. */
static ssize_t get(struct end *end, const struct peer *peer, void *bytes, size_t size)
{
    ssize_t n = -1;

    for (int i = 0; i < TURNS && n < (ssize_t)size && n != 0; i++) {
        serve_on(end, i);
        n = recv(peer->fd, bytes, size, MSG_PEEK);
    }
    return n > 0 ? recv(peer->fd, bytes, size, 0) : n;
}

/* HELLO_OK came: sends its PROOF. */
static void prove(struct end *end, struct peer *peer)
{
    struct lane_hello answer;
    uint8_t bytes[LANE_HELLO_SIZE];

    assert_int_equal(get(end, peer, bytes, sizeof(bytes)), sizeof(bytes));
    assert_int_equal(lane_hello_decode(bytes, sizeof(bytes), peer->hello + 72, end->transport->key,
                                       &answer, NULL),
                     LANE_ERROR_NONE);
    assert_true(answer.answer && answer.newest == LANE_VERSION);
    lane_proof_encode(peer->proof, peer->hello, answer.nonce, end->transport->key, false);
    put(peer, peer->proof, sizeof(peer->proof));
}

static void greet(struct end *end, struct peer *peer, uint64_t context, uint16_t lane)
{
    hello_make(end, peer, context, lane, LANE_VERSION);
    dial(end, peer);
    put(peer, peer->hello, sizeof(peer->hello));
    prove(end, peer);
}

static void assert_refused(struct end *end, const struct peer *peer, enum lane_no reason)
{
    struct lane_refusal refusal;
    uint8_t bytes[LANE_NO_SIZE];

    assert_int_equal(get(end, peer, bytes, sizeof(bytes)), sizeof(bytes));
    assert_int_equal(lane_refusal_decode(bytes, sizeof(bytes), &refusal), LANE_ERROR_NONE);
    assert_int_equal(refusal.reason, reason);
}

/* While its set lives, a (lane, epoch) is valid once. After the set was dropped, too, because the answer has another nonce. */
static void a_recorded_greeting_is_worth_nothing(void **state)
{
    uint8_t bytes[LANE_HELLO_SIZE];
    struct peer peer;
    struct end end;

    (void)state;
    end_open(&end);
    greet(&end, &peer, 10, 0);
    assert_int_equal(get(&end, &peer, bytes, 1), 1); /* its NICs: it is accepted as a lane */
    assert_int_equal(sets(&end), 1);
    close(peer.fd);
    pass(&end, 3000);
    assert_int_equal(sets(&end), 0);
    struct peer thief = peer;
    dial(&end, &thief);
    put(&thief, thief.hello, sizeof(thief.hello));
    assert_int_equal(get(&end, &thief, bytes, sizeof(bytes)), sizeof(bytes));
    assert_int_equal(sets(&end), 0);
    put(&thief, thief.proof, sizeof(thief.proof));
    assert_refused(&end, &thief, LANE_NO_KEY);
    assert_int_equal(sets(&end), 0);
    assert_int_equal(end.transport->pending_count, 0);
    close(thief.fd);
    end_close(&end);
}

/* Each recorded greeting holds one descriptor for a while, and nothing that others may need. */
static void a_stranger_without_proof_is_let_go(void **state)
{
    struct peer thieves[40], twin, peer;
    struct end end;

    (void)state;
    end_open(&end);
    for (uint16_t i = 0; i < ARRAY_COUNT(thieves); i++) {
        hello_make(&end, &thieves[i], 100 + i / 4, i % 4, LANE_VERSION);
        dial(&end, &thieves[i]);
        put(&thieves[i], thieves[i].hello, LANE_HELLO_SIZE);
        for (int k = 0; k < TURNS && end.transport->pending_count <= i; k++) {
            serve_on(&end, k);
        }
    }
    serve(&end, 10);
    assert_int_equal(end.transport->pending_count, ARRAY_COUNT(thieves));
    twin = thieves[0];
    dial(&end, &twin);
    put(&twin, twin.hello, LANE_HELLO_SIZE);
    assert_refused(&end, &twin, LANE_NO_LANE);
    greet(&end, &peer, 10, 0);
    for (int k = 0; k < TURNS && sets(&end) == 0; k++) {
        serve_on(&end, k);
    }
    assert_int_equal(sets(&end), 1);
    pass(&end, 6000);
    assert_int_equal(end.transport->pending_count, 0);
    assert_int_equal(end.transport->sockets, 1);
    for (uint16_t i = 0; i < ARRAY_COUNT(thieves); i++) {
        close(thieves[i].fd);
    }
    close(twin.fd);
    close(peer.fd);
    end_close(&end);
}

/* A process of the version before sends only a HELLO. */
static void older_versions_greet_as_ever(void **state)
{
    uint8_t bytes[LANE_HELLO_SIZE + LANE_NICS_SIZE];
    struct lane_nics nics;
    struct peer peer;
    struct end end;

    (void)state;
    end_open(&end);
    for (uint8_t version = LANE_VERSION_LOWEST; version < 4; version++) {
        hello_make(&end, &peer, version, 0, version);
        dial(&end, &peer);
        put(&peer, peer.hello, sizeof(peer.hello));
        assert_int_equal(get(&end, &peer, bytes, sizeof(bytes)), sizeof(bytes));
        assert_int_equal(bytes[1], version);
        assert_int_equal(sets(&end), version);
        assert_int_equal(lane_nics_decode(bytes + LANE_HELLO_SIZE, LANE_NICS_SIZE, &nics),
                         LANE_ERROR_NONE);
        assert_true(nics.small_slots == 0 && nics.large_slots == 0);
        close(peer.fd);
    }
    end_close(&end);
}

/* Opens a communicator and sends into that slot. */
static void send_early(struct end *end, struct peer *peer, uint8_t slot, uint32_t size)
{
    static uint8_t payload[LANE_LARGE_SIZE_MAX];
    const struct lane_open open = {.group_max = 1,
                                   .cookie = le64_get(end->handle + HANDLE_COOKIE_OFFSET)};
    const struct lane_chunk chunk = {.flags = LANE_CHUNK_EAGER,
                                     .slot = slot,
                                     .grid = size <= LANE_EAGER_SIZE_MAX ? 13 : 16,
                                     .epoch = 1,
                                     .length = size,
                                     .size = size};
    uint8_t bytes[LANE_OPEN_SIZE + LANE_CHUNK_SIZE];

    lane_open_encode(bytes, &open);
    lane_chunk_encode(bytes + LANE_OPEN_SIZE, &chunk, LANE_VERSION);
    put(peer, bytes, sizeof(bytes));
    put(peer, payload, size);
    serve(end, 20);
}

static size_t slot_memory(const struct end *end)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < end->transport->set_count; i++) {
        const struct lane_set *set = end->transport->sets[i];
        if (set != NULL && set->slots != NULL) {
            /* only the used part of a huge page counts */
            bytes += set->large_shift == 0 ? malloc_usable_size(set->slots)
                                           : LANE_SMALL_SLOTS * (size_t)LANE_EAGER_SIZE_MAX +
                                                 ((size_t)LANE_LARGE_SLOTS << set->large_shift);
        }
    }
    return bytes;
}

/* As many peers as would have taken 94 MiB, each with messages that were not asked for. */
static void slots_of_many_peers_have_a_ceiling(void **state)
{
    enum { PEERS = 200 };
    struct transport_comm *comms[PEERS];
    struct peer peers[PEERS];
    struct end end;

    (void)state;
    end_open(&end);
    for (uint32_t i = 0; i < PEERS; i++) {
        uint8_t bytes[LANE_NICS_SIZE];
        struct lane_nics nics;
        greet(&end, &peers[i], 1000 + i, 0);
        assert_int_equal(get(&end, &peers[i], bytes, sizeof(bytes)), sizeof(bytes));
        assert_int_equal(lane_nics_decode(bytes, sizeof(bytes), &nics), LANE_ERROR_NONE);
        assert_true(nics.small_slots > 0 && (i > 0 || nics.large_slots == LANE_LARGE_SLOTS));
        send_early(&end, &peers[i], nics.small_slots - 1, LANE_EAGER_SIZE_MAX);
        if (nics.large_slots > 0) {
            assert_int_equal(nics.small_slots, LANE_SMALL_SLOTS);
        }
        comms[i] = NULL;
        for (int k = 0; k < TURNS && (comms[i] == NULL || end.transport->sets[i]->slots == NULL);
             k++) {
            serve_on(&end, k);
            if (comms[i] == NULL) {
                assert_int_equal(transport_accept(end.listener, &comms[i]), 0);
            }
        }
        assert_non_null(comms[i]);
    }
    assert_int_equal(sets(&end), PEERS);
    assert_in_range(slot_memory(&end), PROCESS_SLOT_BYTES_MAX / 2 - (1 << 20),
                    PROCESS_SLOT_BYTES_MAX + PEERS * 16); /* malloc's rounding */
    /* If a peer uses more than it was given, it loses its lane, and no memory is touched. */
    send_early(&end, &peers[PEERS - 1], LANE_SMALL_SLOTS, LANE_LARGE_SIZE_MAX);
    for (int k = 0; k < TURNS && end.transport->sets[PEERS - 1]->streams[0] != NULL; k++) {
        serve_on(&end, k);
    }
    assert_null(end.transport->sets[PEERS - 1]->streams[0]);
    for (uint32_t i = 0; i < PEERS; i++) {
        transport_close(comms[i]);
        close(peers[i].fd);
    }
    pass(&end, 3000);
    assert_int_equal(end.transport->slot_bytes, 0);
    end_close(&end);
}

/* For any peers, in any number. */
static void shares_of_slots_add_up(void **state)
{
    size_t promised = 0;
    uint8_t small, large;

    (void)state;
    for (int i = 0; i < 16384; i++) {
        slots_share(promised, &small, &large);
        promised += small * LANE_EAGER_SIZE_MAX + large * LANE_LARGE_SIZE_MAX;
        assert_true(promised <= PROCESS_SLOT_BYTES_MAX);
        assert_true(i >= 64 || (small == LANE_SMALL_SLOTS && large == LANE_LARGE_SLOTS));
        assert_true(i >= 1000 || small > 0);
    }
}

/* 0 if it is reported in time and by name: this host has no route to the address in the handle. */
static int connect_without_a_route(void)
{
    const struct transport_nic nic = {
        .name = "v0", .address = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 10, 9, 0, 1}}};
    struct transport_config config = {
        .nics = &nic, .nic_count = 1, .mode = TRANSPORT_FULL, .priority = PRIORITY_NORMAL};
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    struct transport_comm *comm = NULL;
    struct handle words;
    uint64_t connecting = 0;
    struct end end = {0};
    int r = 0;

    if (tcp_open(&end.tcp, "/sys") < 0) {
        return 2;
    }
    config.io = trouble_io(&end.trouble, tcp_io(end.tcp));
    if (transport_new(&end.transport, &config) < 0 ||
        transport_listen(end.transport, 0, handle, &listener) < 0 ||
        handle_decode(handle, &words) != LANE_ERROR_NONE) {
        return 2;
    }
    memcpy(words.address + 4, (const uint8_t[]){10, 7, 0, 2}, 4); /* of another network */
    words.context++;
    handle_encode(handle, &words);
    const int64_t begin = trouble_skipped_ns;
    while (r == 0 && trouble_skipped_ns - begin < 20 * NS_PER_S) {
        trouble_skipped_ns += 10 * NS_PER_MS;
        r = transport_connect(end.transport, 0, handle, &connecting, &comm);
        (void)transport_serve(end.transport, (struct mono){0});
    }
    fprintf(stderr, "%d after %.1f s: %s\n", r, (double)(trouble_skipped_ns - begin) / 1e9,
            transport_why());
    return r == -ENETUNREACH && strstr(transport_why(), "no route from NIC v0") != NULL ? 0 : 3;
}

/* Not after the patience, as if the peer might come back. */
static void a_peer_without_a_route_is_told(void **state)
{
    (void)state;
    in_own_network("ip link add v0 type veth peer v1 && ip link set v0 up && ip link set v1 up && "
                   "ip address add 10.9.0.1/24 dev v0",
                   connect_without_a_route);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recorded_greeting_is_worth_nothing),
        cmocka_unit_test(a_stranger_without_proof_is_let_go),
        cmocka_unit_test(older_versions_greet_as_ever),
        cmocka_unit_test(slots_of_many_peers_have_a_ceiling),
        cmocka_unit_test(shares_of_slots_add_up),
        cmocka_unit_test(a_peer_without_a_route_is_told),
    };
    const struct rlimit files = {4096, 4096};

    (void)setrlimit(RLIMIT_NOFILE, &files);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
