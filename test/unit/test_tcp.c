/* test_tcp.c: the transport's requests to Linux's sockets, with the real kernel. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bug.h"
#include "own_network.h"
#include "transport/io.h"
#include "transport/tcp.h"

#ifndef SO_TXREHASH
#define SO_TXREHASH 74
#endif

#define LOOPBACK(last)                                                                             \
    ((struct io_address){.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = (last)}})

/* Connections from one address to two others, while there is only one free port: a port is taken for a pair of ends, not for an
 * address. Otherwise a rank with thousands of peers would run out of ports. 0: it works. */
static int connect_by_one_port(void)
{
    struct io_connect to = {.from = LOOPBACK(1)};
    struct tcp *tcp;
    int listener, conn;

    if (tcp_open(&tcp, "/sys") < 0) {
        return 2;
    }
    struct io *io = tcp_io(tcp);
    for (uint8_t peer = 2; peer < 6; peer++) {
        to.to = LOOPBACK(peer);
        if (io->listen(io, &to.to, 30000, 30000, &listener, &to.to.port) < 0) {
            return 2;
        }
        if (io->connect(io, &to, &conn) < 0) {
            return 3;
        }
    }
    return 0;
}

static void peers_share_a_port(void **state)
{
    (void)state;
    in_own_network("ip link set lo up && echo 40000 40000 > /proc/sys/net/ipv4/ip_local_port_range",
                   connect_by_one_port);
}

static void assert_no_rehash(int fd)
{
    socklen_t size = sizeof(int);
    int value = -1;

    if (getsockopt(fd, SOL_SOCKET, SO_TXREHASH, &value, &size) < 0 && errno == ENOPROTOOPT) {
        skip(); /* before Linux 5.19 */
    }
    assert_int_equal(value, 0);
}

/* Two ends of one connection over the loopback. */
struct ends {
    struct tcp *tcp;
    int listener, conn, accepted;
    struct io_address peer; /* the accepting end's */
};

static void ends_open(struct ends *e, struct io_connect *to)
{
    struct io_address local;

    assert_int_equal(tcp_open(&e->tcp, "/sys"), 0);
    struct io *io = tcp_io(e->tcp);
    assert_int_equal(io->listen(io, &to->to, 0, 0, &e->listener, &to->to.port), 0);
    assert_int_equal(io->connect(io, to, &e->conn), 0);
    struct pollfd connected = {.fd = e->conn, .events = POLLOUT}; /* a busy kernel answers later */
    assert_int_equal(poll(&connected, 1, 60000), 1);
    assert_int_equal(send(e->conn, "x", 1, 0), 1); /* the listener waits for that */
    e->accepted = -EAGAIN;
    for (int i = 0; i < 60000 && e->accepted < 0; i++) {
        if (io->accept(io, e->listener, &e->accepted, &local, &e->peer) < 0) {
            e->accepted = -EAGAIN;
            usleep(1000);
        }
    }
    assert_true(e->accepted >= 0);
}

static void ends_close(struct ends *e)
{
    struct io *io = tcp_io(e->tcp);

    io->close(io, e->conn, true);
    io->close(io, e->accepted, true);
    io->close(io, e->listener, true);
    tcp_close(e->tcp);
}

/* Linux draws a new flow label after a timeout, and with it another path. But a lane's path is our choice. Both ends send. */
static void the_kernel_moves_no_lane(void **state)
{
    struct io_connect to = {.from = LOOPBACK(1), .to = LOOPBACK(1)};
    struct ends e;

    (void)state;
    ends_open(&e, &to);
    assert_no_rehash(e.conn);
    assert_no_rehash(e.accepted);
    ends_close(&e);
}

static int option(int fd, int level, int name)
{
    socklen_t size = sizeof(int);
    int value = -1;

    assert_int_equal(getsockopt(fd, level, name, &value, &size), 0);
    return value;
}

/* Both ends send: the accepting end uses the same class, queue and congestion control as the connecting end. */
static void the_accepting_end_sends_as_the_connecting_end(void **state)
{
    struct io_connect to = {.from = LOOPBACK(1),
                            .to = LOOPBACK(1),
                            .notsent = 4711,
                            .traffic_class = 0x68,
                            .here = true};
    struct ends e;

    (void)state;
    ends_open(&e, &to);
    to.to = e.peer;
    tcp_io(e.tcp)->carry(tcp_io(e.tcp), e.accepted, &to);
    for (int i = 0; i < 2; i++) {
        const int fd = i == 0 ? e.conn : e.accepted;
        char control[16] = "";
        socklen_t size = sizeof(control);

        assert_int_equal(option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 4711);
        assert_int_equal(option(fd, IPPROTO_IP, IP_TOS), 0x68);
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, &size), 0);
        assert_string_equal(control, "reno");
    }
    ends_close(&e);
}

/* 0: neither end of a connection is paced by a rate of bbr, although bbr is the host's default. 77: it can't be. */
static int no_end_has_bbr(void)
{
    FILE *file = fopen("/proc/sys/net/ipv4/tcp_congestion_control", "r");
    char bbr[4] = "";

    if (file == NULL || fread(bbr, 1, 3, file) != 3 || strcmp(bbr, "bbr") != 0) {
        return 77;
    }
    (void)fclose(file);
    struct io_connect to = {.from = LOOPBACK(1), .to = LOOPBACK(1)};
    struct ends e;
    int paced = 0;

    ends_open(&e, &to);
    for (int i = 0; i < 2; i++) {
        char control[16] = "";
        socklen_t size = sizeof(control);
        paced |= getsockopt(i == 0 ? e.conn : e.accepted, IPPROTO_TCP, TCP_CONGESTION, control,
                            &size) < 0 ||
                 strncmp(control, "bbr", 3) == 0;
    }
    ends_close(&e);
    return paced;
}

/* Connections over a route that sets bbr; kept: the kernel doesn't let us change that. 0: they are right. 77: no bbr here. */
static int routes_bbr(bool kept)
{
    struct io_connect to = {.from = LOOPBACK(1), .to = LOOPBACK(1)};
    FILE *file = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "r");
    char text[400] = "";
    struct ends e;
    int wrong = 0;

    if (file == NULL || fgets(text, sizeof(text), file) == NULL || strstr(text, "bbr") == NULL) {
        return 77;
    }
    (void)fclose(file);
    ends_open(&e, &to);
    struct io *io = tcp_io(e.tcp);
    for (int i = 0; i < 2; i++) {
        char control[16] = "";
        socklen_t size = sizeof(control);
        wrong |= getsockopt(i == 0 ? e.conn : e.accepted, IPPROTO_TCP, TCP_CONGESTION, control,
                            &size) < 0 ||
                 (strncmp(control, "bbr", 3) == 0) != kept;
    }
    wrong |= io->trouble(io, text, sizeof(text)) != kept ? 2 : 0;
    wrong |= kept && (strstr(text, "first: 127.0.0.1:") == NULL || strstr(text, "congctl") == NULL)
                 ? 4
                 : 0;
    wrong |= io->trouble(io, text, sizeof(text)) ? 8 : 0; /* once */
    ends_close(&e);
    fprintf(stderr, "kept %d, wrong %d: %s\n", kept, wrong, text);
    return wrong;
}

static int a_route_has_bbr(void)
{
    return routes_bbr(false);
}

static int a_route_locks_bbr(void)
{
    return routes_bbr(true);
}

#define ROUTE_WITH(congctl)                                                                        \
    "ip link set lo up && (modprobe -q tcp_bbr; ip route change table local local 127.0.0.1 dev "  \
    "lo src 127.0.0.1 " congctl " bbr; true)"

/* A route may set bbr for its connections: they change that. If that is not allowed, it is reported, by name and once. */
static void a_routes_bbr_is_left_or_told_of(void **state)
{
    (void)state;
    in_own_network(ROUTE_WITH("congctl"), a_route_has_bbr);
    in_own_network(ROUTE_WITH("congctl lock"), a_route_locks_bbr);
}

static void chunks_are_not_paced_at_the_rate_of_reports(void **state)
{
    (void)state;
    in_own_network("ip link set lo up && (modprobe -q tcp_bbr; "
                   "echo bbr > /proc/sys/net/ipv4/tcp_congestion_control; true)",
                   no_end_has_bbr);
}

static pthread_t main_thread;
static int calm;

static void on_signal(int signal)
{
    (void)signal;
}

static void *disturb(void *none)
{
    (void)none;
    while (!__atomic_load_n(&calm, __ATOMIC_SEQ_CST)) {
        pthread_kill(main_thread, SIGUSR1);
        usleep(1);
    }
    return NULL;
}

/* The listener's queue is full, and new connections are dropped: a signal must not count as a connection. */
static void a_signal_is_no_connection(void **state)
{
    const struct sigaction action = {.sa_handler = on_signal};
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct io_connect to = {.from = LOOPBACK(1), .to = LOOPBACK(1)};
    struct io_address local;
    socklen_t size = sizeof(at);
    struct tcp *tcp;
    pthread_t thread;
    int others[8], conn, wrong = 0;

    (void)state;
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    for (int i = 0; i < 8; i++) {
        others[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(others[i], (struct sockaddr *)&at, sizeof(at));
    }
    assert_int_equal(tcp_open(&tcp, "/sys"), 0);
    struct io *io = tcp_io(tcp);
    to.to.port = ntohs(at.sin_port);
    assert_int_equal(io->connect(io, &to, &conn), 0);
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    main_thread = pthread_self();
    assert_int_equal(pthread_create(&thread, NULL, disturb, NULL), 0);
    for (int i = 0; i < 100000; i++) {
        wrong += io->connected(io, conn, &local) != -EAGAIN;
    }
    __atomic_store_n(&calm, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    assert_int_equal(wrong, 0);
    io->close(io, conn, true);
    tcp_close(tcp);
    for (int i = 0; i < 8; i++) {
        close(others[i]);
    }
    close(listener);
}

/* Its first segment was sent twice, or nothing was answered yet: there is no round-trip time, and none that is very long. */
static void a_round_trip_that_was_not_measured_is_told_as_none(void **state)
{
    struct io_info info;
    struct tcp *tcp;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(tcp_open(&tcp, "/sys"), 0);
    tcp_io(tcp)->info(tcp_io(tcp), fd, &info);
    assert_true(info.known);
    assert_int_equal(info.rtt_ns_min, 0);
    assert_int_equal(info.rtt_ns, 0);
    tcp_close(tcp);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_trip_that_was_not_measured_is_told_as_none),
        cmocka_unit_test(chunks_are_not_paced_at_the_rate_of_reports),
        cmocka_unit_test(a_routes_bbr_is_left_or_told_of),
        cmocka_unit_test(peers_share_a_port),
        cmocka_unit_test(a_signal_is_no_connection),
        cmocka_unit_test(the_kernel_moves_no_lane),
        cmocka_unit_test(the_accepting_end_sends_as_the_connecting_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
