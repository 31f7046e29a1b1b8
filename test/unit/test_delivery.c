/* test_delivery.c: an adversary against delivery: networks that are down for longer than the patience, peers that restart,
 * numbers that run far. Two transports in one process, whose sockets and clocks the test controls. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/internal.h"
#include "transport/tcp.h"

#define STEPS_MAX 20000
#define STRANGERS 1000000 /* their connections' numbers begin here */
#define LATE      300000 /* bytes of a message whose sender waits until it is placed: none is copied */

/* ---- a network that can be cut -------------------------------------------------------------- */

static struct io *real; /* either of the two: the functions are the same */
static bool cut;
static bool second; /* both have a second NIC, on which another program refuses all connections */
static size_t most = SIZE_MAX; /* larger writes hang */
static bool strangers;         /* they connect again and again, and send nothing */
static int64_t skipped_ns;

static struct mono now_skipped(struct io *io)
{
    return mono_add(real->now(io), span_ns(skipped_ns));
}
static int wait_skipped(struct io *io, struct mono until, struct io_event *ret, int capacity)
{
    return real->wait(io, mono_add(until, span_ns(-skipped_ns)), ret, capacity);
}
static int connect_cut(struct io *io, const struct io_connect *connect_to, int *ret_conn)
{
    if (second && (connect_to->from.ip[15] != 1 || connect_to->to.ip[15] != 1)) {
        return -ECONNREFUSED;
    }
    return cut ? -EHOSTUNREACH : real->connect(io, connect_to, ret_conn);
}
static ssize_t send_cut(struct io *io, int conn, const struct iovec *parts, int count)
{
    size_t size = 0;

    for (int i = 0; i < count; i++) {
        size += parts[i].iov_len;
    }
    return cut ? -ETIMEDOUT : size > most ? -EAGAIN : real->send(io, conn, parts, count);
}
static ssize_t receive_cut(struct io *io, int conn, const struct iovec *parts, int count,
                           struct io_stamp *ret_stamp)
{
    return cut                 ? -ETIMEDOUT
           : conn >= STRANGERS ? -EAGAIN
                               : real->receive(io, conn, parts, count, ret_stamp);
}
static int accept_strangers(struct io *io, int listener, int *ret_conn,
                            struct io_address *ret_local, struct io_address *ret_peer)
{
    static int count;

    if (strangers && ++count % 2000 != 0) {
        *ret_local = *ret_peer = (struct io_address){.port = 1};
        *ret_conn = STRANGERS + count;
        return 0;
    }
    return real->accept(io, listener, ret_conn, ret_local, ret_peer);
}
static int arm_strangers(struct io *io, int conn, uint64_t tag, uint32_t events)
{
    return conn >= STRANGERS ? 0 : real->arm(io, conn, tag, events);
}
static void close_strangers(struct io *io, int conn, bool reset)
{
    if (conn < STRANGERS) {
        real->close(io, conn, reset);
    }
}

struct end {
    struct tcp *tcp;
    struct io real, io;
    struct transport *transport;
};

static void end_open(struct end *end)
{
    const struct transport_nic nics[] = {
        {.name = "lo", .address = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}},
        {.name = "lo", .address = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2}}}};
    const struct transport_config config = {.io = &end->io,
                                            .nics = nics,
                                            .nic_count = second ? 2 : 1,
                                            .standbys = second ? 1 : 0,
                                            .mode = TRANSPORT_FULL,
                                            .priority = PRIORITY_NORMAL,
                                            .checksum = 2};

    assert_int_equal(tcp_open(&end->tcp, "/sys"), 0);
    end->io = end->real = *tcp_io(end->tcp);
    real = &end->real;
    end->io.now = now_skipped;
    end->io.wait = wait_skipped;
    end->io.connect = connect_cut;
    end->io.send = send_cut;
    end->io.receive = receive_cut;
    end->io.accept = accept_strangers;
    end->io.arm = arm_strangers;
    end->io.close = close_strangers;
    assert_int_equal(transport_new(&end->transport, &config), 0);
}

static void end_close(struct end *end)
{
    assert_int_equal(transport_free(end->transport), TRANSPORT_GONE);
    tcp_close(end->tcp);
}

static struct end a, b; /* a sends, b receives */

static void open_both(void)
{
    cut = false;
    most = SIZE_MAX;
    strangers = false;
    end_open(&a);
    end_open(&b);
}

static void serve(int64_t skip_ns)
{
    skipped_ns += skip_ns;
    (void)transport_serve(a.transport, (struct mono){0});
    (void)transport_serve(b.transport, (struct mono){0});
}

/* Lets so long pass. Neither has anything to do. */
static void pass(int64_t ns)
{
    for (; ns > 0; ns -= 10 * NS_PER_MS) {
        serve(10 * NS_PER_MS);
    }
}

static void connect_comm(struct transport_comm **ret_out, struct transport_comm **ret_in)
{
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    uint64_t state = 0;

    *ret_out = *ret_in = NULL;
    assert_int_equal(transport_listen(b.transport, 0, handle, &listener), 0);
    for (int i = 0; i < STEPS_MAX && (*ret_out == NULL || *ret_in == NULL); i++) {
        if (*ret_out == NULL) {
            assert_int_equal(transport_connect(a.transport, 0, handle, &state, ret_out), 0);
        }
        if (*ret_in == NULL) {
            assert_int_equal(transport_accept(listener, ret_in), 0);
        }
        serve(i > 200 ? NS_PER_MS : 0);
    }
    assert_non_null(*ret_out);
    assert_non_null(*ret_in);
    transport_close_listener(listener);
}

/* Runs until it is done, has failed, or has waited for longer than allowed. */
static int outcome(struct transport_request *request, int64_t most_ns)
{
    const int64_t until = now_skipped(&a.io).ns + most_ns;
    bool done = false;
    int r = 0;

    for (int i = 0; r == 0 && !done && now_skipped(&a.io).ns < until; i++) {
        r = transport_test(request, &done, NULL);
        serve(i > 200 ? 2 * NS_PER_MS : 0);
    }
    return done ? 0 : r != 0 ? r : -EINPROGRESS;
}

static void exchange(struct transport_comm *out, struct transport_comm *in, uint8_t byte,
                     size_t size)
{
    uint8_t *from = malloc(size), *to = calloc(1, size);
    struct transport_request *send = NULL, *receive = NULL;

    memset(from, byte, size);
    assert_int_equal(transport_receive(in, to, size, 0, false, NULL, &receive), 0);
    assert_int_equal(transport_send(out, from, size, 0, NULL, &send), 0);
    assert_int_equal(outcome(receive, 5 * NS_PER_S), 0);
    assert_int_equal(outcome(send, 5 * NS_PER_S), 0);
    assert_memory_equal(from, to, size);
    free(from);
    free(to);
}

static void close_both(struct transport_comm *out, struct transport_comm *in)
{
    transport_close(out);
    transport_close(in);
    pass(3 * NS_PER_S);
    end_close(&a);
    end_close(&b);
}

/* ---- the attacks ---------------------------------------------------------------------------- */

/* The sender gives a communicator up while nothing gets through, and drops the whole set. Its receiver still waits, with a posted
 * buffer. A new one to the same process has the same contexts and begins at 0 again: it must not be taken for the old one. */
static void a_new_set_is_not_the_old_one(void **state)
{
    struct transport_comm *old_out, *old_in, *out, *in;
    struct transport_request *receive = NULL, *send = NULL;
    static uint8_t old_buffer[LATE];

    (void)state;
    open_both();
    connect_comm(&old_out, &old_in);
    memset(old_buffer, 0xee, sizeof(old_buffer));
    assert_int_equal(
        transport_receive(old_in, old_buffer, sizeof(old_buffer), 0, false, NULL, &receive), 0);
    pass(50 * NS_PER_MS);
    cut = true;
    assert_int_equal(transport_send(old_out, old_buffer, sizeof(old_buffer), 0, NULL, &send), 0);
    transport_close(old_out);
    pass(5 * NS_PER_S);
    cut = false;
    connect_comm(&out, &in);
    exchange(out, in, 0x55, sizeof(old_buffer));
    for (size_t i = 0; i < sizeof(old_buffer); i++) {
        assert_int_equal(old_buffer[i], 0xee);
    }
    transport_close(old_in);
    close_both(out, in);
}

/* The network is down for less than the patience. Where there never was a lane another program refuses: no peer is dead. */
static void strangers_refusals_tell_nothing(void **state)
{
    struct transport_comm *out, *in;
    struct transport_request *receive = NULL, *send = NULL;
    static uint8_t from[LATE], to[LATE];

    (void)state;
    second = true;
    open_both();
    connect_comm(&out, &in);
    exchange(out, in, 1, 20000);
    cut = true;
    assert_int_equal(transport_receive(in, to, sizeof(to), 0, false, NULL, &receive), 0);
    assert_int_equal(transport_send(out, from, sizeof(from), 0, NULL, &send), 0);
    assert_int_equal(outcome(send, 5 * NS_PER_S), -EINPROGRESS);
    cut = false;
    assert_int_equal(outcome(send, 10 * NS_PER_S), 0);
    assert_int_equal(outcome(receive, 10 * NS_PER_S), 0);
    close_both(out, in);
    second = false;
}

/* The same before the first lane: NCCL's NIC has no route for a while, and over the other NIC another program refuses. */
static void strangers_refusals_tell_nothing_of_a_peer_not_yet_reached(void **state)
{
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    struct transport_comm *out = NULL, *in = NULL;
    struct transport_listener *listener;
    uint64_t connecting = 0;

    (void)state;
    second = true;
    open_both();
    assert_int_equal(transport_listen(b.transport, 0, handle, &listener), 0);
    cut = true;
    for (int i = 0; i < STEPS_MAX && (out == NULL || in == NULL); i++) {
        cut = i < 10000; /* ms */
        if (out == NULL) {
            assert_int_equal(transport_connect(a.transport, 0, handle, &connecting, &out), 0);
        }
        if (in == NULL) {
            assert_int_equal(transport_accept(listener, &in), 0);
        }
        serve(NS_PER_MS);
    }
    assert_non_null(out);
    assert_non_null(in);
    transport_close_listener(listener);
    exchange(out, in, 1, 20000);
    close_both(out, in);
    second = false;
}

/* One report has two communicators' last messages. Another report has that the second one is complete, and is lost with its lane.
 * There is no lane when it would be repeated. */
static void what_was_placed_is_said_again(void **state)
{
    const struct ledger_config config = {.comms = 2};
    struct ledger *ledger = ledger_new(&config);
    struct lane_report report;
    const struct mono now = {NS_PER_S};
    int lane;

    (void)state;
    assert_non_null(ledger);
    assert_int_equal(ledger_lane_open(ledger, 0, 1, LEDGER_READS), 0);
    assert_int_equal(ledger_comm_open(ledger, 0, 1), 0);
    while (ledger_next_report(ledger, now, &report, &lane)) {
    }
    ledger_lane_down(ledger, 0, 1);
    while (ledger_next_report(ledger, now, &report, &lane)) {
        assert_int_equal(lane, -1); /* it reaches no peer */
    }
    assert_int_equal(ledger_lane_open(ledger, 0, 2, LEDGER_READS), 0);
    assert_true(ledger_next_report(ledger, now, &report, &lane));
    assert_int_equal(report.comm, 0);
    ledger_free(ledger);
}

/* If a communicator's receive was too small, no slot stays taken: the sender uses its slots for others. */
static void a_misfit_frees_its_slots(void **state)
{
    const struct ledger_config config = {.comms = 2, .slots = 4};
    const struct mono now = {1};
    struct ledger *ledger = ledger_new(&config);
    uint8_t to[10];
    const struct ledger_receive receive = {.count = 1, .buffers = {{.data = to, .size = 10}}};
    struct lane_chunk chunk = {.flags = LANE_CHUNK_EAGER,
                               .epoch = 1,
                               .grid = LANE_CHUNK_SHIFT_MIN,
                               .size = 20,
                               .length = 20};
    struct ledger_target target;
    struct ledger_copy copy;
    uint64_t first;

    (void)state;
    assert_non_null(ledger);
    assert_int_equal(ledger_lane_open(ledger, 0, 1, LEDGER_READS), 0);
    for (uint32_t comm = 0; comm < 2; comm++) {
        assert_int_equal(ledger_comm_open(ledger, comm, 1), 0);
    }
    for (uint32_t k = 0; k < 2; k++) { /* two come early, and the first is too large */
        chunk.message = chunk.slot = k;
        assert_int_equal(ledger_begin(ledger, now, 0, 1, &chunk, &target), LEDGER_OK);
        assert_int_equal(ledger_got(ledger, 0, 1, 20), LEDGER_OK);
        assert_int_equal(ledger_end(ledger, now, 0, 1, true, &copy), LEDGER_OK);
    }
    assert_true(ledger_slots_used(ledger));
    assert_int_equal(ledger_post(ledger, now, 0, &receive, &first, &copy), -EMSGSIZE);
    assert_false(ledger_slots_used(ledger));
    chunk.comm = 1;
    for (uint32_t k = 0; k < 2; k++) {
        chunk.message = chunk.slot = k;
        assert_int_equal(ledger_begin(ledger, now, 0, 1, &chunk, &target), LEDGER_OK);
        assert_int_equal(ledger_got(ledger, 0, 1, 20), LEDGER_OK);
        assert_int_equal(ledger_end(ledger, now, 0, 1, true, &copy), LEDGER_OK);
    }
    ledger_free(ledger);
}

/* Communicators come and go for weeks; one stays. */
static void numbers_run_far(void **state)
{
    const struct ledger_config receiving = {.comms = SET_COMMS_MAX};
    const struct sender_config sending = {.comms = SET_COMMS_MAX};
    struct ledger *ledger = ledger_new(&receiving);
    struct sender *sender = sender_new(&sending);

    (void)state;
    assert_int_equal(sender_comm_open(sender, 1), 0);
    assert_int_equal(ledger_comm_open(ledger, 0, 1), 0);
    for (int i = 0; i < 20000; i++) {
        const int64_t number = sender_comm_open(sender, 1);
        assert_true(number > 0);
        if (i % 7 != 3) { /* else it was given up before a request for it */
            assert_int_equal(ledger_comm_open(ledger, (uint32_t)number, 1), 0);
            assert_int_equal(ledger_comm_open(ledger, (uint32_t)number, 1), -EALREADY);
            ledger_comm_close(ledger, (uint32_t)number);
            assert_int_equal(ledger_comm_open(ledger, (uint32_t)number, 1), -EALREADY);
        }
        sender_comm_close(sender, (uint32_t)number);
    }
    ledger_free(ledger);
    sender_free(sender);
}

/* The receiver gave its communicator up while nothing got through, and doesn't repeat that when the network is back. Other
 * communicators keep the lanes alive. The sender must not wait for ever. */
static void who_was_forgotten_is_told(void **state)
{
    const bool sender_forgets = *(const bool *)*state;
    struct transport_comm *out, *in, *lost_out, *lost_in;
    struct transport_request *receive = NULL, *send = NULL;
    static uint8_t from[LATE], to[LATE];

    open_both();
    connect_comm(&out, &in);
    connect_comm(&lost_out, &lost_in);
    exchange(out, in, 1, 20000);
    exchange(lost_out, lost_in, 2, 20000);
    cut = true;
    assert_int_equal(transport_receive(lost_in, to, sizeof(to), 0, false, NULL, &receive), 0);
    assert_int_equal(transport_send(lost_out, from, sizeof(from), 0, NULL, &send), 0);
    transport_close(sender_forgets ? lost_out : lost_in);
    pass(5 * NS_PER_S);
    cut = false;
    exchange(out, in, 3, 20000);
    assert_int_equal(outcome(sender_forgets ? receive : send, 90 * NS_PER_S), -ECONNABORTED);
    transport_close(sender_forgets ? lost_in : lost_out);
    exchange(out, in, 4, 20000);
    close_both(out, in);
}

/* The same, with the set's only communicator: the whole set is dropped, and made again when the lanes come back. */
static void who_was_forgotten_with_its_set_is_told(void **state)
{
    struct transport_comm *out, *in;
    struct transport_request *receive = NULL, *send = NULL;
    static uint8_t from[LATE], to[LATE];

    (void)state;
    open_both();
    connect_comm(&out, &in);
    exchange(out, in, 1, 20000);
    cut = true;
    assert_int_equal(transport_receive(in, to, sizeof(to), 0, false, NULL, &receive), 0);
    assert_int_equal(transport_send(out, from, sizeof(from), 0, NULL, &send), 0);
    transport_close(in);
    pass(5 * NS_PER_S);
    cut = false;
    assert_int_equal(outcome(send, 90 * NS_PER_S), -ECONNABORTED);
    transport_close(out);
    connect_comm(&out, &in);
    exchange(out, in, 5, 20000);
    close_both(out, in);
}

/* A scanner holds as many connections open as possible, and sends nothing. */
static void strangers_keep_nobody_out(void **state)
{
    struct transport_comm *out, *in;
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    struct sockaddr_in address = {0};
    socklen_t address_size = sizeof(address);

    (void)state;
    open_both();
    assert_int_equal(transport_listen(b.transport, 0, handle, &listener), 0);
    assert_int_equal(b.transport->listening_count, 1);
    assert_int_equal(
        getsockname(b.transport->listening[0], (struct sockaddr *)&address, &address_size), 0);
    assert_int_equal(address.sin_family, AF_INET); /* the NIC's address, not the wildcard */
    assert_int_equal(ntohl(address.sin_addr.s_addr), INADDR_LOOPBACK);
    strangers = true;
    connect_comm(&out, &in);
    exchange(out, in, 6, 20000);
    assert_in_range(b.transport->pending_count, 1, 16); /* all from one address */
    strangers = false;
    pass(1100 * NS_PER_MS);
    assert_int_equal(b.transport->pending_count, 0);
    transport_close_listener(listener);
    close_both(out, in);
}

/* The receive is shorter than the message: that communicator fails, at both ends, with the reason. Others between the two go
 * on. */
static void too_long_fails_one_communicator(void **state)
{
    const size_t size = *(const size_t *)*state;
    struct transport_comm *out, *in, *other_out, *other_in;
    struct transport_request *receive = NULL, *send = NULL;
    static uint8_t from[LATE], to[LATE];

    open_both();
    connect_comm(&out, &in);
    connect_comm(&other_out, &other_in);
    int r = transport_receive(in, to, size - 1, 0, false, NULL, &receive);
    assert_int_equal(r, 0);
    assert_int_equal(transport_send(out, from, size, 0, NULL, &send), 0);
    assert_int_equal(outcome(receive, 30 * NS_PER_S), -EMSGSIZE);
    assert_non_null(strstr(transport_why(), "came for a receive of"));
    for (int i = 0; i < 100; i++) {
        serve(NS_PER_MS);
    }
    assert_int_equal(transport_send(out, from, 1, 0, NULL, &send), -ECONNABORTED);
    exchange(other_out, other_in, 4, 100000);
    transport_close(other_out);
    transport_close(other_in);
    close_both(out, in);
}

/* Greetings get through, data don't: the path loses all large packets. No end waits for longer than the patience. */
static int descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

/* A connect that was not polled to its end, and the connection at the other end that was not accepted: both are closed with their
 * transports. */
static void what_nobody_finished_goes_at_the_end(void **state)
{
    const int before = descriptors();
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    struct transport_comm *comm = NULL;
    uint64_t connecting = 0;

    (void)state;
    open_both();
    assert_int_equal(transport_listen(b.transport, 0, handle, &listener), 0);
    assert_int_equal(transport_connect(a.transport, 0, handle, &connecting, &comm), 0);
    assert_null(comm);
    for (int i = 0; i < 2000; i++) {
        serve(0);
    }
    end_close(&a);
    end_close(&b);
    assert_int_equal(descriptors(), before);
}

/* As long as a child holds a connection, the peer gets no end of it. */
static void children_hold_no_connections(void **state)
{
    struct transport_comm *out, *in;
    int status;

    (void)state;
    open_both();
    connect_comm(&out, &in);
    const int before = descriptors();
    const pid_t child = fork();
    if (child == 0) {
        struct transport_request *request;
        const int left = descriptors();
        const bool closed = fcntl(a.transport->sets[0]->streams[0]->conn, F_GETFD) < 0;
        const int r = transport_send(out, "", 1, 0, NULL, &request);
        _exit(!(closed && left < before && r == -ECHILD));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    exchange(out, in, 9, 100000);
    close_both(out, in);
}

static void large_packets_lost_are_no_path(void **state)
{
    struct transport_comm *out, *in;
    struct transport_request *receive = NULL, *send = NULL;
    static uint8_t from[LATE], to[LATE];

    (void)state;
    open_both();
    connect_comm(&out, &in);
    most = 1000;
    assert_int_equal(transport_receive(in, to, sizeof(to), 0, false, NULL, &receive), 0);
    assert_int_equal(transport_send(out, from, sizeof(from), 0, NULL, &send), 0);
    assert_int_equal(outcome(send, 90 * NS_PER_S), -ECONNABORTED);
    close_both(out, in);
}

int main(void)
{
    static size_t small = 100, large = 20000;
    static bool yes = true, no = false;

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_set_is_not_the_old_one),
        cmocka_unit_test(strangers_refusals_tell_nothing),
        cmocka_unit_test(strangers_refusals_tell_nothing_of_a_peer_not_yet_reached),
        cmocka_unit_test(what_was_placed_is_said_again),
        cmocka_unit_test(a_misfit_frees_its_slots),
        cmocka_unit_test(numbers_run_far),
        cmocka_unit_test_prestate(who_was_forgotten_is_told, &yes),
        cmocka_unit_test_prestate(who_was_forgotten_is_told, &no),
        cmocka_unit_test(who_was_forgotten_with_its_set_is_told),
        cmocka_unit_test(strangers_keep_nobody_out),
        cmocka_unit_test_prestate(too_long_fails_one_communicator, &small),
        cmocka_unit_test_prestate(too_long_fails_one_communicator, &large),
        cmocka_unit_test(large_packets_lost_are_no_path),
        cmocka_unit_test(what_nobody_finished_goes_at_the_end),
        cmocka_unit_test(children_hold_no_connections),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
