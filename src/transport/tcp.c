/* tcp.c: the functions of io.h with Linux's sockets. */
#include "transport/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/net_tstamp.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/ip.h"
#include "base/prng.h"
#include "foliot/clock.h"
#include "transport/descriptor.h"
#include "transport/tcp_private.h"

#ifndef TCP_RTO_MIN_US
#define TCP_RTO_MIN_US 45
#endif
#ifndef TCP_DELACK_MAX_US
#define TCP_DELACK_MAX_US 46
#endif
#ifndef SO_TXREHASH
#define SO_TXREHASH 74
#endif
#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif
#define RTO_MIN_US      5000
#define DELACK_MAX_US   1000
#define USER_TIMEOUT_MS 2000
#define LISTEN_BACKLOG  4096
#define PROBES          1 /* probes of a closed window that may have no answer at a moment */
#define KICK_TAG        UINT64_MAX

/* -- addresses -------------------------------------------------------------------------------- */

bool io_address_is_v4(const struct io_address *address)
{
    return ip_is_v4(address->ip);
}

bool io_address_same_ip(const struct io_address *a, const struct io_address *b)
{
    return memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

const char *io_address_text(const struct io_address *address, char text[static IO_ADDRESS_TEXT])
{
    const bool v4 = ip_is_v4(address->ip);
    char ip[IP_TEXT_SIZE];

    snprintf(text, IO_ADDRESS_TEXT, v4 ? "%s:%u" : "[%s]:%u", ip_text(address->ip, ip),
             address->port);
    return text;
}

socklen_t tcp_to_sockaddr(const struct io_address *address, struct sockaddr_storage *ret)
{
    *ret = (struct sockaddr_storage){0};
    if (io_address_is_v4(address)) {
        struct sockaddr_in *in = (struct sockaddr_in *)ret;
        in->sin_family = AF_INET;
        in->sin_port = htons(address->port);
        memcpy(&in->sin_addr, address->ip + 12, 4);
        return sizeof(*in);
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(address->port);
    in6->sin6_scope_id = address->scope;
    memcpy(&in6->sin6_addr, address->ip, 16);
    return sizeof(*in6);
}

bool tcp_from_sockaddr(const struct sockaddr *from, struct io_address *ret)
{
    *ret = (struct io_address){0};
    if (from->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof(in));
        ip_of_v4(ret->ip, &in.sin_addr);
        ret->port = ntohs(in.sin_port);
        return true;
    }
    if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, from, sizeof(in6));
        memcpy(ret->ip, &in6.sin6_addr, 16);
        ret->port = ntohs(in6.sin6_port);
        /* The kernel fills it in for any address of an interface, but it has a meaning only for link-local ones. */
        ret->scope = IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) ? in6.sin6_scope_id : 0;
        return true;
    }
    return false;
}

/* The address of a socket (local) or of its peer. */
static void name_of(int fd, bool peer, struct io_address *ret)
{
    struct sockaddr_storage storage;
    socklen_t size = sizeof(storage);
    const int r = peer ? getpeername(fd, (struct sockaddr *)&storage, &size)
                       : getsockname(fd, (struct sockaddr *)&storage, &size);

    if (r < 0 || !tcp_from_sockaddr((struct sockaddr *)&storage, ret)) {
        *ret = (struct io_address){0};
    }
}

/* -- sockets ---------------------------------------------------------------------------------- */

static void set_int(int fd, int level, int option, int value)
{
    /* each option helps, but none is necessary */
    (void)!setsockopt(fd, level, option, &value, sizeof(value));
}

static void tune(int fd)
{
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_int(fd, SOL_SOCKET, SO_TXREHASH, 0); /* this process itself changes its path */
    set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, USER_TIMEOUT_MS);
    set_int(fd, IPPROTO_TCP, TCP_RTO_MIN_US, RTO_MIN_US);
    set_int(fd, IPPROTO_TCP, TCP_DELACK_MAX_US, DELACK_MAX_US);
    set_int(fd, SOL_SOCKET, SO_TIMESTAMPING,
            SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE);
}

static bool set_reno(int fd)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", sizeof("reno") - 1) == 0;
}

/* bbr paces by the rates that it has seen. A report that follows a chunk which this host's device still has counts as such a
 * rate. After ten round trips a chunk leaves at the rate of reports, in 10 to 20 ms. This must be set before a connection exists:
 * a socket that began with bbr is paced for ever. False: the kernel keeps bbr. */
static bool leave_bbr(int fd)
{
    char name[16] = "";
    socklen_t size = sizeof(name) - 1;

    return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) < 0 ||
           strncmp(name, "bbr", 3) != 0 || set_reno(fd) ||
           setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", sizeof("cubic") - 1) == 0;
}

/* Once more when the route is known, because the route may name bbr itself. The first connection that keeps it is reported. */
static void leave_routes_bbr(struct tcp *tcp, int fd, const struct io_address *peer)
{
    int none = TROUBLE_NONE;

    if (!leave_bbr(fd) && __atomic_compare_exchange_n(&tcp->bbr, &none, TROUBLE_NOTED, false,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        tcp->bbr_peer = *peer;
        __atomic_store_n(&tcp->bbr, TROUBLE_NEW, __ATOMIC_RELEASE);
    }
}

/* For the end that sends chunks. */
static void tune_sender(int fd, const struct io_connect *how)
{
    if (how->notsent != 0) {
        set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, (int)how->notsent);
    }
    if (how->here) { /* a copy in memory: there is no path to probe */
        (void)set_reno(fd);
    }
    if (how->traffic_class != 0) {
        set_int(fd, io_address_is_v4(&how->to) ? IPPROTO_IP : IPPROTO_IPV6,
                io_address_is_v4(&how->to) ? IP_TOS : IPV6_TCLASS, how->traffic_class);
    }
}

static int bind_in_range(int fd, const struct io_address *at, uint16_t low, uint16_t high)
{
    const uint32_t count = (uint32_t)(high - low) + 1;
    uint32_t start = 0;

    (void)!getrandom(&start, sizeof(start), GRND_NONBLOCK);
    for (uint32_t i = 0; i < count; i++) {
        struct io_address address = *at;
        struct sockaddr_storage storage;
        address.port = (uint16_t)(low + (start + i) % count);
        const socklen_t size = tcp_to_sockaddr(&address, &storage);
        if (bind(fd, (struct sockaddr *)&storage, size) == 0) {
            return 0;
        }
        if (errno != EADDRINUSE) {
            return -errno;
        }
    }
    return -EADDRINUSE;
}

/* A connection without data is reported a second later, if at all. The NIC may have no address at the moment. */
static int tcp_listen(struct io *io, const struct io_address *at, uint16_t low, uint16_t high,
                      int *ret_conn, uint16_t *ret_port)
{
    const bool v4 = io_address_is_v4(at);
    const int fd = descriptor_socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM, 0);
    struct io_address local;

    (void)io;
    if (fd < 0) {
        return fd;
    }
    set_int(fd, IPPROTO_IP, IP_FREEBIND, 1);
    if (!v4) {
        set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    }
    set_int(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, 1);
    (void)leave_bbr(fd); /* accepted connections inherit it */
    int r = bind_in_range(fd, at, low, high);
    if (r == 0 && listen(fd, LISTEN_BACKLOG) < 0) {
        r = -errno;
    }
    if (r < 0) {
        descriptor_close(fd);
        return r;
    }
    name_of(fd, false, &local);
    *ret_port = local.port;
    *ret_conn = fd;
    return 0;
}

static int tcp_accept(struct io *io, int listener, int *ret_conn, struct io_address *ret_local,
                      struct io_address *ret_peer)
{
    const int fd = descriptor_accept(listener);

    if (fd < 0) {
        /* These are errors of the connection, not of the listener: there may be another connection behind it. */
        return fd == -ECONNABORTED || fd == -EPROTO ? -EINTR : fd;
    }
    name_of(fd, true, ret_peer);
    if (ret_peer->port ==
        0) { /* the peer has given up since: a busy host would only lose time with it */
        descriptor_close(fd);
        return -EINTR;
    }
    tune(fd);
    leave_routes_bbr(io->driver, fd, ret_peer);
    name_of(fd, false, ret_local);
    *ret_conn = fd;
    return 0;
}

static void tcp_carry(struct io *io, int conn, const struct io_connect *how)
{
    (void)io;
    tune_sender(conn, how);
}

static int connect_by(struct tcp *tcp, const struct io_connect *connect_to, const char *device,
                      int *ret_conn)
{
    struct sockaddr_storage from, to;
    const socklen_t to_size = tcp_to_sockaddr(&connect_to->to, &to);
    const int fd = descriptor_socket(to.ss_family, SOCK_STREAM, 0);

    if (fd < 0) {
        return fd;
    }
    tune(fd);
    (void)leave_bbr(fd);
    tune_sender(fd, connect_to);
    if (device != NULL) {
        (void)!setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, (socklen_t)strlen(device));
    }
    const socklen_t from_size = tcp_to_sockaddr(&connect_to->from, &from);
    if (connect_to->from.port == 0) { /* two connections to different peers may share a port */
        set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    }
    int r = 0;
    if (from.ss_family == to.ss_family && bind(fd, (struct sockaddr *)&from, from_size) < 0) {
        r = -errno;
    }
    if (r == 0 && connect(fd, (struct sockaddr *)&to, to_size) < 0 && errno != EINPROGRESS) {
        r = -errno;
    }
    if (r < 0) {
        descriptor_close(fd);
        return r;
    }
    leave_routes_bbr(tcp, fd, &connect_to->to);
    *ret_conn = fd;
    return 0;
}

static int tcp_connect(struct io *io, const struct io_connect *connect_to, int *ret_conn)
{
    int r = connect_by(io->driver, connect_to, connect_to->device, ret_conn);

    /* The device's own table has no route: the main routes may be better. */
    if (connect_to->device != NULL && (r == -ENETUNREACH || r == -EHOSTUNREACH)) {
        r = connect_by(io->driver, connect_to, NULL, ret_conn);
    }
    return r;
}

static int tcp_connected(struct io *io, int conn, struct io_address *ret_local)
{
    struct pollfd look = {.fd = conn, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof(error);

    (void)io;
    if (poll(&look, 1, 0) <= 0) { /* a signal doesn't mean that it is connected */
        return -EAGAIN;
    }
    if (getsockopt(conn, SOL_SOCKET, SO_ERROR, &error, &size) < 0) {
        return -errno;
    }
    if (error != 0) {
        return -error;
    }
    name_of(conn, false, ret_local);
    return 0;
}

static ssize_t tcp_send(struct io *io, int conn, const struct iovec *parts, int count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts,
                             .msg_iovlen = (size_t)count};
    const ssize_t n = sendmsg(conn, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

    (void)io;
    return n >= 0 ? n : errno == EINTR || errno == ENOBUFS ? -EAGAIN : -errno;
}

static ssize_t tcp_receive(struct io *io, int conn, const struct iovec *parts, int count,
                           struct io_stamp *ret_stamp)
{
    union {
        char bytes[CMSG_SPACE(3 * sizeof(struct timespec))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts,
                             .msg_iovlen = (size_t)count,
                             .msg_control = ret_stamp != NULL ? control.bytes : NULL,
                             .msg_controllen = ret_stamp != NULL ? sizeof(control.bytes) : 0};
    const ssize_t n = count == 1 && ret_stamp == NULL /* the cheaper call */
                          ? recv(conn, parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT)
                          : recvmsg(conn, &message, MSG_DONTWAIT);
    struct timespec kernel = {0};

    if (n <= 0) {
        return n == 0 ? 0 : errno == EINTR ? -EAGAIN : -errno;
    }
    if (ret_stamp == NULL) {
        return n;
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPING) {
            memcpy(&kernel, CMSG_DATA(c), sizeof(kernel));
        }
    }
    tcp_stamp_of(io->driver, &kernel, ret_stamp);
    return n;
}

static void tcp_close_conn(struct io *io, int conn, bool reset)
{
    (void)io;
    if (reset) {
        /* Disconnecting acts on the connection, not on this descriptor: a child that the application forked may have another one.
         * SO_LINGER 0 is for kernels that refuse. */
        const struct linger linger = {.l_onoff = 1, .l_linger = 0};
        const struct sockaddr none = {.sa_family = AF_UNSPEC};
        (void)!setsockopt(conn, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
        (void)!connect(conn, &none, sizeof(none));
    } else {
        (void)!shutdown(conn, SHUT_WR);
    }
    descriptor_close(conn);
}

/* Nothing is under way, something waits, and the peer would take it. So the host's device queue refused it. TCP treats that as a
 * closed window and would try again after 200 ms, 400 ms, and so on. Setting this option makes it try now. */
static void push_on(int conn, const struct tcp_info *info)
{
    if (info->tcpi_unacked == 0 && info->tcpi_notsent_bytes > 0 &&
        info->tcpi_snd_wnd >= info->tcpi_snd_mss) {
        set_int(conn, IPPROTO_TCP, TCP_NODELAY, 1);
    }
}

/* 0: not measured, for which the kernel has all ones. Saturates at UINT32_MAX: 4.29 s. */
static uint32_t ns_of_us(uint32_t us)
{
    const uint64_t ns = us == UINT32_MAX ? 0 : (uint64_t)us * 1000;

    return ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static void tcp_info(struct io *io, int conn, struct io_info *ret)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);

    (void)io;
    *ret = (struct io_info){0};
    if (getsockopt(conn, IPPROTO_TCP, TCP_INFO, &info, &size) < 0) {
        return;
    }
    push_on(conn, &info);
    ret->known = true;
    ret->segments_out = info.tcpi_segs_out;
    ret->retransmits = info.tcpi_total_retrans;
    ret->bytes_acked = info.tcpi_bytes_acked;
    ret->rtt_ns = ns_of_us(info.tcpi_rtt);
    ret->rtt_ns_min = ns_of_us(info.tcpi_min_rtt);
    ret->rtt_var_ns = ns_of_us(info.tcpi_rttvar);
    ret->resend_ns = (info.tcpi_rto < 4 * 1000 * 1000 ? info.tcpi_rto : 4 * 1000 * 1000) * 1000;
    ret->unacked = info.tcpi_unacked;
    ret->lost = info.tcpi_lost;
    ret->ack_age_ns = (info.tcpi_last_ack_recv + 1ull) * NS_PER_MS;
    ret->backoff = info.tcpi_backoff;
    ret->shut = info.tcpi_snd_wnd < info.tcpi_snd_mss && info.tcpi_probes <= PROBES;
    ret->notsent = info.tcpi_notsent_bytes;
}

static void tcp_pace(struct io *io, int conn, uint64_t bytes_per_s)
{
    (void)io;
    (void)!setsockopt(conn, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_s, sizeof(bytes_per_s));
}

/* -- waiting ---------------------------------------------------------------------------------- */

static int tcp_arm(struct io *io, int conn, uint64_t tag, uint32_t events)
{
    struct tcp *tcp = io->driver;
    struct epoll_event event = {.events = (events & IO_IN ? EPOLLIN | EPOLLRDHUP : 0u) |
                                          (events & IO_OUT ? EPOLLOUT : 0u) | EPOLLONESHOT,
                                .data = {.u64 = tag}};

    ASSERT(tag < IO_TAG_LINKS);
    if (epoll_ctl(tcp->epoll, EPOLL_CTL_MOD, conn, &event) == 0 ||
        (errno == ENOENT && epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, conn, &event) == 0)) {
        return 0;
    }
    return -errno;
}

static int tcp_wait(struct io *io, struct mono until, struct io_event *ret_events, int capacity)
{
    struct tcp *tcp = io->driver;
    struct epoll_event events[64];
    const int64_t now = io->now(io).ns;
    const int64_t left = until.ns == INT64_MAX ? INT64_MAX : until.ns <= now ? 0 : until.ns - now;
    const int max = capacity < (int)ARRAY_COUNT(events) ? capacity : (int)ARRAY_COUNT(events);
    /* Rounded up: waking a little early means waking twice. */
    const int timeout = left == INT64_MAX               ? -1
                        : left <= 0                     ? 0
                        : left > 60 * (int64_t)NS_PER_S ? 60000
                                                        : (int)((left + 999999) / NS_PER_MS);
    const int n = epoll_wait(tcp->epoll, events, max, timeout);
    int count = 0;

    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 == KICK_TAG) {
            uint64_t kicks;
            (void)!read(tcp->kick, &kicks, sizeof(kicks));
            continue;
        }
        if (events[i].data.u64 == IO_TAG_LINKS) {
            tcp_link_drain(tcp);
        }
        ret_events[count++] = (struct io_event){
            .tag = events[i].data.u64,
            .events =
                (events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR) ? IO_IN : 0) |
                (events[i].events & (EPOLLOUT | EPOLLHUP | EPOLLERR) ? IO_OUT : 0)};
    }
    return count;
}

static void tcp_kick(struct io *io)
{
    struct tcp *tcp = io->driver;
    const uint64_t one = 1;

    (void)!write(tcp->kick, &one, sizeof(one));
}

/* -- messages for people ---------------------------------------------------------------------- */

static bool tcp_trouble(struct io *io, char *text, size_t size)
{
    struct tcp *tcp = io->driver;
    int noted = TROUBLE_NEW;
    char peer[IO_ADDRESS_TEXT];

    if (!__atomic_compare_exchange_n(&tcp->bbr, &noted, TROUBLE_TOLD, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        return false;
    }
    snprintf(
        text, size,
        "the kernel keeps congestion control bbr on connections (first: %s): large messages "
        "may go at a tenth of the link's rate. Take 'congctl bbr' off the route (ip route), or "
        "add reno to net.ipv4.tcp_allowed_congestion_control",
        io_address_text(&tcp->bbr_peer, peer));
    return true;
}

/* -- open, close ------------------------------------------------------------------------------ */

static void tcp_random(struct io *io, void *bytes, size_t size)
{
    struct tcp *tcp = io->driver;

    if (getrandom(bytes, size, 0) == (ssize_t)size) {
        return;
    }
    /* For a call that a signal interrupted, or a kernel from before 2014. */
    const int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const bool good = fd >= 0 && read(fd, bytes, size) == (ssize_t)size;
    if (fd >= 0) {
        close(fd);
    }
    __atomic_store_n(&tcp->weak_random, !good, __ATOMIC_RELAXED);
}

int tcp_open(struct tcp **ret_tcp, const char *sysfs)
{
    struct tcp *tcp = calloc(1, sizeof(*tcp));
    int r = 0;

    if (tcp == NULL) {
        return -ENOMEM;
    }
    tcp->io = (struct io){.driver = tcp,
                          .now = tcp_now,
                          .stamp = tcp_stamp,
                          .random = tcp_random,
                          .listen = tcp_listen,
                          .accept = tcp_accept,
                          .carry = tcp_carry,
                          .connect = tcp_connect,
                          .connected = tcp_connected,
                          .send = tcp_send,
                          .receive = tcp_receive,
                          .close = tcp_close_conn,
                          .info = tcp_info,
                          .pace = tcp_pace,
                          .arm = tcp_arm,
                          .wait = tcp_wait,
                          .kick = tcp_kick,
                          .carrier = tcp_carrier,
                          .trouble = tcp_trouble};
    snprintf(tcp->sysfs, sizeof(tcp->sysfs), "%s", sysfs);
    tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
    tcp->link = -1;
    tcp->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (tcp->epoll < 0 || tcp->kick < 0) {
        r = -errno;
    } else {
        struct epoll_event event = {.events = EPOLLIN, .data = {.u64 = KICK_TAG}};
        r = epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, tcp->kick, &event) < 0 ? -errno : 0;
    }
    if (r < 0) {
        tcp_close(tcp);
        return r;
    }
    tcp_clock_init(tcp);
    tcp_link_open(tcp);
    *ret_tcp = tcp;
    return 0;
}

struct io *tcp_io(struct tcp *tcp)
{
    return &tcp->io;
}

void tcp_close(struct tcp *tcp)
{
    if (tcp == NULL) {
        return;
    }
    if (tcp->epoll >= 0) {
        close(tcp->epoll);
    }
    if (tcp->kick >= 0) {
        close(tcp->kick);
    }
    tcp_link_close(tcp);
    free(tcp);
}
