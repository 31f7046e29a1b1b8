/* traffic_socket.c: opens sockets across namespaces. A socket stays in the namespace where it was made. */
#include "lab/traffic_socket.h"

#include "lab/machine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DATAGRAM_SIZE   1400
#define CONNECT_WAIT_MS 3000
#define DSCP_CS6        0xc0

static socklen_t address_of(const struct traffic_link *l, const struct traffic_nic *nic,
                            uint16_t port, struct sockaddr_storage *ret)
{
    char text[LAB_TEXT_SIZE];
    memset(ret, 0, sizeof(*ret));
    if (l->ipv6) {
        struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
        lab_address6(nic->host, nic->nic, text);
        inet_pton(AF_INET6, text, &a.sin6_addr);
        memcpy(ret, &a, sizeof(a));
        return sizeof(a);
    }
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    lab_address4(nic->host, nic->nic, text);
    inet_pton(AF_INET, text, &a.sin_addr);
    memcpy(ret, &a, sizeof(a));
    return sizeof(a);
}

static int set_int(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* Opens a socket that is bound to one end of the link. */
static int open_bound(const struct traffic_link *l, const struct traffic_nic *nic, uint16_t port,
                      int *ret_fd)
{
    struct sockaddr_storage a;
    char space[64];
    lab_space(l->lab, NODE_HOST, nic->host, space);
    int r = machine_enter_network(space);
    if (r < 0) {
        return r;
    }
    int fd = socket(l->ipv6 ? AF_INET6 : AF_INET,
                    (l->udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    socklen_t size = address_of(l, nic, port, &a);
    r = set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (r == 0 && l->high_class) {
        r = l->ipv6 ? set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, DSCP_CS6)
                    : set_int(fd, IPPROTO_IP, IP_TOS, DSCP_CS6);
    }
    if (r == 0 && bind(fd, (struct sockaddr *)&a, size) < 0) {
        r = -errno;
    }
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

/* Uses cubic: it takes the rate that pacing allows, and does not probe for more, as BBR does. */
static int tune_stream(int out, double rate_bps)
{
    /* The socket is closed by a reset, so that the next run may use the same ports at once. */
    struct linger linger = {.l_onoff = 1};
    int r = setsockopt(out, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) < 0 ? -errno : 0;
    r = r == 0 ? set_int(out, IPPROTO_TCP, TCP_NODELAY, 1) : r;
    if (setsockopt(out, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5) < 0) {
        (void)setsockopt(out, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    }
    if (r == 0 && rate_bps > 0) {
        uint64_t rate = (uint64_t)(rate_bps / 8.0);
        /* The buffer holds 40 ms, so that the flow wakes the loop some 50 times a second. */
        double room = rate_bps / 8.0 * 0.04;
        r = setsockopt(out, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)) < 0 ? -errno : 0;
        if (r == 0) {
            r = set_int(out, SOL_SOCKET, SO_SNDBUF, room < 65536 ? 65536 : (int)room);
        }
    }
    return r;
}

static int await(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    int n = poll(&p, 1, CONNECT_WAIT_MS);
    return n < 0 ? -errno : n == 0 ? -ETIMEDOUT : 0;
}

static int connect_stream(const struct traffic_link *l, int out, int listener, int *ret_in)
{
    struct sockaddr_storage to;
    socklen_t size = address_of(l, l->sink, l->sink_port, &to);
    if (connect(out, (struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS) {
        return -errno;
    }
    int r = await(listener, POLLIN);
    if (r < 0) {
        return r;
    }
    int in = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (in < 0) {
        return -errno;
    }
    r = await(out, POLLOUT);
    if (r == 0) {
        /* Wakes the loop for many bytes, not for each packet. At the end of a job few bytes come, so then one byte suffices. */
        r = set_int(in, SOL_SOCKET, SO_RCVLOWAT, l->ends ? 1 : l->rate_bps > 0 ? 16384 : 65536);
    }
    if (r < 0) {
        close(in);
        return r;
    }
    *ret_in = in;
    return 0;
}

static int open_stream(struct traffic_link *l, int *ret_out, int *ret_in)
{
    int out = -1, listener = -1;
    int r = open_bound(l, l->sink, l->sink_port, &listener);
    if (r == 0 && listen(listener, 1) < 0) {
        r = -errno;
    }
    if (r == 0) {
        r = open_bound(l, l->source, l->source_port, &out);
    }
    if (r == 0) {
        r = tune_stream(out, l->rate_bps);
    }
    if (r == 0) {
        r = connect_stream(l, out, listener, ret_in);
    }
    if (listener >= 0) {
        close(listener);
    }
    if (r < 0) {
        if (out >= 0) {
            close(out);
        }
        return r;
    }
    *ret_out = out;
    return 0;
}

static int open_datagram(struct traffic_link *l, int *ret_out, int *ret_in)
{
    int out = -1, in = -1;
    struct sockaddr_storage to;
    socklen_t size = address_of(l, l->sink, l->sink_port, &to);
    int r = open_bound(l, l->sink, l->sink_port, &in);
    if (r == 0) {
        r = open_bound(l, l->source, l->source_port, &out);
    }
    if (r == 0 && connect(out, (struct sockaddr *)&to, size) < 0) {
        r = -errno;
    }
    if (r == 0) {
        r = set_int(out, SOL_UDP, UDP_SEGMENT, DATAGRAM_SIZE);
    }
    if (r == 0) {
        r = set_int(in, SOL_UDP, UDP_GRO, 1);
    }
    if (r == 0) {
        r = set_int(in, SOL_SOCKET, SO_RCVBUF, 4 << 20);
    }
    if (r < 0) {
        if (out >= 0) {
            close(out);
        }
        if (in >= 0) {
            close(in);
        }
        return r;
    }
    *ret_out = out;
    *ret_in = in;
    return 0;
}

int traffic_link_open(struct traffic_link *link, int *ret_out, int *ret_in)
{
    int r = link->udp ? open_datagram(link, ret_out, ret_in) : open_stream(link, ret_out, ret_in);
    if (r == 0 && link->source_port == 0) {
        struct sockaddr_in6 a = {0};
        socklen_t size = sizeof(a);
        if (getsockname(*ret_out, (struct sockaddr *)&a, &size) == 0) {
            link->source_port = ntohs(a.sin6_port); /* at the same place as in sockaddr_in */
        }
    }
    return r;
}
