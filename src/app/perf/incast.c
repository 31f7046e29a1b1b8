/* incast.c: the senders, and the receiver that counts packets. */
#include "app/perf/incast.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/perf/udp.h"
#include "core/audit/perf.h"

enum {
    PAYLOAD = 1400,
    HEADERS = 42, /* of Ethernet, IPv4 and UDP */
    BATCH = 32,
    ROOM = 4 << 20,
    ECT0 = 2, /* the two bits of ECN: the sender understands marks */
    MARKED = 3,
    QUIET_MS = 100 /* the receiver waits so long after the senders' end */
};

_Static_assert(PAYLOAD + HEADERS == PERF_INCAST_BYTES, "as an audit counts them");

struct card {
    /* for ranks of older releases, which send to the address that rank 0 gives */
    uint8_t address[16];
    uint16_t port; /* in network byte order; 0: this rank has none */
    uint16_t reserved;
};

struct incast {
    int fd, family;
    /* rank 0: the address is the plan's, the port is what rank 0 reported */
    struct sockaddr_storage receiver;
    char payload[BATCH][PAYLOAD];
    char control[BATCH][CMSG_SPACE(sizeof(int))];
    struct iovec vector[BATCH];
    struct mmsghdr message[BATCH];
};

static int open_socket(struct incast *x, const char *nic, bool receives, int tos, struct card *card)
{
    const int one = 1, room = ROOM, level = x->family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
    struct sockaddr_storage own = {0};
    socklen_t size = sizeof(own);
    const int r = udp_address(nic, x->family, &own);

    if (r < 0) {
        return r;
    }
    /* the interface may have several addresses; the others use this one */
    own = receives ? x->receiver : own;
    x->fd = socket(x->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (x->fd < 0) {
        return -errno;
    }
    *udp_port(&own) = 0;
    setsockopt(x->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    if (setsockopt(x->fd, level, x->family == AF_INET ? IP_TOS : IPV6_TCLASS, &tos, sizeof(tos)) <
            0 ||
        setsockopt(x->fd, level, x->family == AF_INET ? IP_RECVTOS : IPV6_RECVTCLASS, &one,
                   sizeof(one)) < 0 ||
        bind(x->fd, (struct sockaddr *)&own, udp_size(x->family)) < 0 ||
        getsockname(x->fd, (struct sockaddr *)&own, &size) < 0) {
        return -errno;
    }
    card->port = *udp_port(&own);
    memcpy(card->address, udp_bytes(&own), x->family == AF_INET ? 4 : 16);
    return 0;
}

static int find_receiver(struct incast *x, const struct card *told)
{
    if (told->port == 0) {
        return -ENOTCONN;
    }
    *udp_port(&x->receiver) = told->port;
    return connect(x->fd, (struct sockaddr *)&x->receiver, udp_size(x->family)) < 0 ? -errno : 0;
}

static void prepare(struct incast *x, bool receives)
{
    for (int i = 0; i < BATCH; i++) {
        x->vector[i] = (struct iovec){x->payload[i], PAYLOAD};
        x->message[i].msg_hdr =
            (struct msghdr){.msg_iov = &x->vector[i],
                            .msg_iovlen = 1,
                            .msg_control = receives ? x->control[i] : NULL,
                            .msg_controllen = receives ? sizeof(x->control[i]) : 0};
    }
}

static uint64_t send_until(struct incast *x, int64_t until_ns)
{
    uint64_t sent = 0;

    prepare(x, false);
    while (perf_now_ns() < until_ns) {
        struct pollfd p = {x->fd, POLLOUT, 0};
        const int n = sendmmsg(x->fd, x->message, BATCH, MSG_NOSIGNAL);
        sent += n > 0 ? (uint64_t)n : 0;
        if (n < BATCH) {
            (void)poll(&p, 1, 1);
        }
    }
    return sent;
}

static bool is_marked(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        int class = 0;
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
            return (*CMSG_DATA(c) & MARKED) == MARKED;
        }
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            memcpy(&class, CMSG_DATA(c), sizeof(class));
            return (class & MARKED) == MARKED;
        }
    }
    return false;
}

static void receive_until(struct incast *x, int64_t until_ns, struct incast_found *found)
{
    int64_t first = 0, last = 0, now;

    while ((now = perf_now_ns()) < until_ns) {
        struct pollfd p = {x->fd, POLLIN, 0};
        prepare(x, true);
        const int n = recvmmsg(x->fd, x->message, BATCH, MSG_DONTWAIT, NULL);
        for (int i = 0; i < n; i++) {
            found->came++;
            found->marked += is_marked(&x->message[i].msg_hdr);
        }
        if (n > 0) {
            first = first == 0 ? now : first;
            last = now;
        } else {
            (void)poll(&p, 1, 1);
        }
    }
    found->rate =
        last > first ? (double)found->came * (PAYLOAD + HEADERS) * 1e9 / (double)(last - first) : 0;
}

/* A rank that can't take part still meets the others, so that they need not wait for it. */
int incast_test(struct meet *m, const char *nic, const char *receiver, int run_ms, int dscp,
                struct incast_found *ret)
{
    struct incast *x = calloc(1, sizeof(*x));
    struct card mine = {0}, *cards = calloc((size_t)m->ranks, sizeof(*cards));
    struct incast_found own = {0}, *all = calloc((size_t)m->ranks, sizeof(*all));
    int r = x == NULL || cards == NULL || all == NULL ? -ENOMEM : 0;

    if (r == 0) {
        x->fd = -1;
        r = udp_parse(receiver, &x->receiver);
        x->family = x->receiver.ss_family;
        r = r < 0 ? r : open_socket(x, nic, m->rank == 0, dscp << 2 | ECT0, &mine);
        mine.port = r < 0 ? 0 : mine.port;
        int met = meet_exchange(m, &mine, sizeof(mine), cards);
        r = r < 0 || met < 0 || m->rank == 0 ? r : find_receiver(x, &cards[0]);
        met = met < 0 ? met : meet_barrier(m);
        const int64_t until_ns = perf_now_ns() + run_ms * 1000000LL;
        if (r == 0 && met == 0 && m->rank > 0) {
            own.sent = send_until(x, until_ns);
        } else if (r == 0 && met == 0) {
            receive_until(x, until_ns + QUIET_MS * 1000000LL, &own);
        }
        met = met < 0 ? met : meet_exchange(m, &own, sizeof(own), all);
        r = met < 0 ? met : r;
    }
    for (int i = 0; r == 0 && i < m->ranks; i++) {
        all[0].sent += i > 0 ? all[i].sent : 0;
    }
    if (r == 0) {
        *ret = all[0];
    }
    if (x != NULL && x->fd >= 0) {
        close(x->fd);
    }
    free(x);
    free(cards);
    free(all);
    return r;
}
