/* shim.c: makes the network difficult, by LD_PRELOAD: everything here may happen with a real kernel. CONFORMANCE_SHIM is a list
 * of
 *
 *   short     reads and writes move a part of the bytes
 *   again     EAGAIN and EINTR by chance (EAGAIN on non-blocking sockets only)
 *   reset=N   every Nth call on a stream socket breaks its connection (ECONNRESET in both directions)
 *   flip=N    every Nth read has a flipped bit
 *   port=A-B  only connections with such a port at either end
 *
 * Only TCP sockets are touched. */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t send(int fd, const void *data, size_t size, int flags);
ssize_t recv(int fd, void *data, size_t size, int flags);

static struct {
    bool known, cut, again;
    unsigned reset, flip, port_low, port_high;
} wish;
static atomic_uint calls;

static void read_wish(void)
{
    const char *text = getenv("CONFORMANCE_SHIM");

    wish.known = true;
    if (text != NULL) {
        const char *reset = strstr(text, "reset="), *flip = strstr(text, "flip=");
        wish.cut = strstr(text, "short") != NULL;
        wish.again = strstr(text, "again") != NULL;
        wish.reset = reset != NULL ? (unsigned)strtoul(reset + 6, NULL, 10) : 0;
        wish.flip = flip != NULL ? (unsigned)strtoul(flip + 5, NULL, 10) : 0;
        const char *port = strstr(text, "port=");
        char *dash = NULL;
        wish.port_low = port != NULL ? (unsigned)strtoul(port + 5, &dash, 10) : 0;
        wish.port_high =
            port != NULL && *dash == '-' ? (unsigned)strtoul(dash + 1, NULL, 10) : 65535;
    }
}

static unsigned port_of(const struct sockaddr_storage *address)
{
    return ntohs(address->ss_family == AF_INET6
                     ? ((const struct sockaddr_in6 *)(const void *)address)->sin6_port
                     : ((const struct sockaddr_in *)(const void *)address)->sin_port);
}

static bool is_meant(int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t own_size = sizeof(own), peer_size = sizeof(peer);

    if (wish.port_low == 0) {
        return true;
    }
    if (getsockname(fd, (struct sockaddr *)&own, &own_size) < 0 ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_size) < 0) {
        return false;
    }
    return (port_of(&own) >= wish.port_low && port_of(&own) <= wish.port_high) ||
           (port_of(&peer) >= wish.port_low && port_of(&peer) <= wish.port_high);
}

static bool is_tcp(int fd)
{
    int protocol = 0;
    socklen_t size = sizeof(protocol);

    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
           protocol == IPPROTO_TCP;
}

/* Draws a fault for this call. -1 with errno: the call fails. */
static int64_t trouble(int fd)
{
    uint64_t x = atomic_fetch_add(&calls, 1) + 1;
    const uint64_t call = x;

    if (!wish.known) {
        read_wish();
    }
    if (!is_tcp(fd) || !is_meant(fd)) {
        return 0;
    }
    x = (x ^ (uint64_t)getpid() << 20) * 0x9e3779b97f4a7c15ull;
    x ^= x >> 29;
    if (wish.reset > 0 && call % wish.reset == 0) {
        const struct linger hard = {1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
        shutdown(fd, SHUT_RDWR);
        errno = ECONNRESET;
        return -1;
    }
    if (wish.again && x % 7 == 0) {
        errno = x % 14 == 0 ? EINTR : EAGAIN;
        return -1;
    }
    return 1 + (int64_t)(x >> 33);
}

/* Copies the first `most` bytes of a vector; returns the number of its parts. */
static int cut(struct iovec *to, const struct iovec *from, size_t count, size_t most)
{
    int n = 0;

    for (size_t i = 0; i < count && i < 64 && most > 0; i++) {
        to[n] = from[i];
        to[n].iov_len = to[n].iov_len < most ? to[n].iov_len : most;
        most -= to[n++].iov_len;
    }
    return n;
}

static size_t portion(int64_t draw, size_t size)
{
    if (!wish.cut || draw <= 0 || size < 2) {
        return size;
    }
    return draw % 3 == 0 ? 1 + (size_t)draw % 9 : 1 + (size_t)draw % size;
}

static size_t size_of(const struct iovec *iov, size_t count)
{
    size_t size = 0;

    for (size_t i = 0; i < count; i++) {
        size += iov[i].iov_len;
    }
    return size;
}

static void maybe_flip(int fd, const struct iovec *iov, ssize_t n)
{
    static atomic_uint reads;

    if (wish.flip > 0 && n > 64 && is_tcp(fd) &&
        atomic_fetch_add(&reads, 1) % wish.flip == wish.flip - 1) {
        ((char *)iov[0].iov_base)[iov[0].iov_len / 2 < (size_t)n ? iov[0].iov_len / 2 : 0] ^= 16;
    }
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    static __typeof__(&sendmsg) real;
    const int64_t draw = trouble(fd);
    struct msghdr copy = *message;
    struct iovec iov[64];

    if (real == NULL) {
        real = REAL(sendmsg);
    }
    if (draw < 0) {
        return -1;
    }
    copy.msg_iov = iov;
    copy.msg_iovlen = (size_t)cut(iov, message->msg_iov, message->msg_iovlen,
                                  portion(draw, size_of(message->msg_iov, message->msg_iovlen)));
    return real(fd, &copy, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    static __typeof__(&recvmsg) real;
    const int64_t draw = trouble(fd);
    const struct iovec *asked = message->msg_iov;
    const size_t count = message->msg_iovlen;
    struct iovec iov[64];

    if (real == NULL) {
        real = REAL(recvmsg);
    }
    if (draw < 0 && (flags & MSG_ERRQUEUE) == 0) {
        return -1;
    }
    message->msg_iov = iov;
    message->msg_iovlen = (size_t)cut(iov, asked, count, portion(draw, size_of(asked, count)));
    ssize_t n = real(fd, message, flags);
    maybe_flip(fd, asked, n);
    message->msg_iov = (struct iovec *)asked;
    message->msg_iovlen = count;
    return n;
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
    struct iovec iov = {(void *)(uintptr_t)data, size};
    const struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    return sendmsg(fd, &message, flags);
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
    struct iovec iov = {data, size};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    return recvmsg(fd, &message, flags);
}

#define PLAIN(name, argument, type)                                                                \
    ssize_t name(int fd, type data, size_t size)                                                   \
    {                                                                                              \
        static __typeof__(&name) real;                                                             \
        const int64_t draw = trouble(fd);                                                          \
        if (real == NULL) {                                                                        \
            real = REAL(name);                                                                     \
        }                                                                                          \
        return draw < 0 ? -1 : real(fd, data, draw > 0 ? portion(draw, size) : size);              \
    }
ssize_t write(int fd, const void *data, size_t size);
ssize_t read(int fd, void *data, size_t size);
PLAIN(write, data, const void *)
PLAIN(read, data, void *)

ssize_t writev(int fd, const struct iovec *iov, int count)
{
    static __typeof__(&writev) real;
    const int64_t draw = trouble(fd);
    struct iovec part[64];

    if (real == NULL) {
        real = REAL(writev);
    }
    return draw < 0
               ? -1
               : real(fd, part,
                      cut(part, iov, (size_t)count, portion(draw, size_of(iov, (size_t)count))));
}

ssize_t readv(int fd, const struct iovec *iov, int count)
{
    static __typeof__(&readv) real;
    const int64_t draw = trouble(fd);
    struct iovec part[64];

    if (real == NULL) {
        real = REAL(readv);
    }
    return draw < 0
               ? -1
               : real(fd, part,
                      cut(part, iov, (size_t)count, portion(draw, size_of(iov, (size_t)count))));
}
