/* rdma_trace.c: see io_rdma.h, choose(): finds the source ports of RoCE that lead over the same routers. The worker asks once for
 * a pair of NICs, which takes a quarter of a second. Datagrams to RoCE's port whose TTL ends at a router take the path of a queue
 * pair's packets with that source port. No privilege is needed: the kernel gives a socket the answers to its own datagrams.
 *
 * None of them may reach the peer's NIC, which would count it as a damaged packet. So a scout goes first, to a port that nobody
 * uses, and only hops at which a router answered the scout are asked.
 *
 * A process asks for a few pairs at once, and then for one a second: routers answer rarely, and others want answers, too. The
 * queue pairs of the other pairs have ports by chance.
 *
 * IPv6: a queue pair's label is also the header's flow label, by which routers may spread. So a datagram has the label of its
 * port. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/errqueue.h>
#include <linux/in6.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>

#include "base/ip.h"
#include "transport/descriptor.h"
#include "transport/rdma_private.h"

#define ROCE_PORT      4791
#define SCOUT_PORT     33434 /* the port that traceroute uses */
#define LABEL_MASK     0x3fffu
#define QUIET_MS       50 /* after this time without an answer none is expected any more; */
#define QUIET_LEAST_MS 5
#define QUIET_TIMES    4 /* after the first answer: this multiple of the slowest one's time */
#define GOOD_NS        (60 * NS_PER_S) /* how long a trace is valid; */
/* the same once a queue pair of that pair of NICs has failed */
#define STALE_NS NS_PER_S
#define BURST    4
#define MAGIC    0x464f4c50u

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};
struct asker {
    int fd; /* -1: none */
    bool v4, answered, arrived;
    uint8_t router[16];
    union address to;
    socklen_t to_size;
};
struct payload {
    uint32_t magic, hop;
};

/* ---- sockets ---- */

/* Returns its size. */
static socklen_t address_of(const uint8_t ip[16], uint16_t port, union address *ret)
{
    *ret = (union address){.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}};
    if (ip_is_v4(ip)) {
        ret->v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&ret->v4.sin_addr, ip + 12, 4);
        return sizeof(ret->v4);
    }
    memcpy(&ret->v6.sin6_addr, ip, 16);
    return sizeof(ret->v6);
}

/* The kernel lets a program choose labels if it asks. If not, the kernel chooses, and only the ports are right. */
static void use_label(int fd, uint16_t port, struct sockaddr_in6 *to)
{
    const uint32_t label = htonl(port & LABEL_MASK);
    const int one = 1;
    struct in6_flowlabel_req ask = {.flr_label = label,
                                    .flr_action = IPV6_FL_A_GET,
                                    .flr_share = IPV6_FL_S_ANY,
                                    .flr_flags = IPV6_FL_F_CREATE};

    memcpy(&ask.flr_dst, &to->sin6_addr, sizeof(ask.flr_dst));
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &ask, sizeof(ask)) == 0 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, &one, sizeof(one)) == 0) {
        to->sin6_flowinfo = label;
    }
}

static bool set_up(int fd, const struct rdma_trace *t, uint16_t from_port, union address *to)
{
    const bool v4 = ip_is_v4(t->from);
    const int one = 1, tos = t->traffic_class;

    (void)!setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, t->device, (socklen_t)strlen(t->device));
    (void)!setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, &tos,
                      sizeof(tos));
    if (!v4 && from_port != 0) {
        use_label(fd, from_port, &to->v6);
    }
    return setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_RECVERR : IPV6_RECVERR, &one,
                      sizeof(one)) == 0;
}

/* The socket isn't connected. Linux gives the packets of a connected socket a random hash. A router that is a name space of this
 * machine would choose the path by that hash, not by the ports. */
static void open_one(const struct rdma_trace *t, uint16_t from_port, uint16_t to_port,
                     struct asker *ret)
{
    union address from, to;
    const socklen_t size = address_of(t->from, from_port, &from);
    const int fd = descriptor_socket(from.any.sa_family, SOCK_DGRAM, 0);

    *ret = (struct asker){.fd = -1};
    if (fd < 0) {
        return;
    }
    ret->to_size = address_of(t->to, to_port, &to);
    if (!set_up(fd, t, from_port, &to) ||
        bind(fd, &from.any, size) < 0) { /* another program has that port */
        descriptor_close(fd);
        return;
    }
    ret->to = to;
    ret->v4 = from.any.sa_family == AF_INET;
    ret->fd = fd;
}

static void close_one(const struct asker *a)
{
    if (a->fd >= 0) {
        descriptor_close(a->fd);
    }
}

/* The call may return the error of an earlier datagram instead of this one's result: so it is repeated. */
static void send_one(const struct asker *a, int hop)
{
    const struct payload payload = {MAGIC, (uint32_t)hop};

    (void)!setsockopt(a->fd, a->v4 ? IPPROTO_IP : IPPROTO_IPV6, a->v4 ? IP_TTL : IPV6_UNICAST_HOPS,
                      &hop, sizeof(hop));
    for (int tries = 0; tries < 3 && sendto(a->fd, &payload, sizeof(payload), MSG_NOSIGNAL,
                                            &a->to.any, a->to_size) < 0;) {
        tries++;
    }
}

/* ---- answers ---- */

static bool is_answer(const struct asker *a, const struct cmsghdr *c)
{
    return c->cmsg_level == (a->v4 ? IPPROTO_IP : IPPROTO_IPV6) &&
           c->cmsg_type == (a->v4 ? IP_RECVERR : IPV6_RECVERR) &&
           c->cmsg_len >=
               CMSG_LEN(sizeof(struct sock_extended_err) +
                        (a->v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6)));
}

static void take_answer(struct asker *a, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        struct sock_extended_err error;
        union address by;
        if (!is_answer(a, c)) {
            continue;
        }
        memcpy(&error, CMSG_DATA(c), sizeof(error));
        memcpy(&by, CMSG_DATA(c) + sizeof(error), a->v4 ? sizeof(by.v4) : sizeof(by.v6));
        if (error.ee_origin != (a->v4 ? SO_EE_ORIGIN_ICMP : SO_EE_ORIGIN_ICMP6) ||
            by.any.sa_family != (a->v4 ? AF_INET : AF_INET6)) {
            continue;
        }
        a->answered = true;
        a->arrived = error.ee_type == (a->v4 ? ICMP_DEST_UNREACH : ICMP6_DST_UNREACH);
        memset(a->router, 0, sizeof(a->router));
        if (a->v4) {
            a->router[10] = a->router[11] = 0xff;
            memcpy(a->router + 12, &by.v4.sin_addr, 4);
        } else {
            memcpy(a->router, &by.v6.sin6_addr, 16);
        }
    }
}

/* Reads answers for that hop. Some routers quote too little to show the hop. */
static void read_answers(struct asker *a, int hop)
{
    for (int count = 0; count < 8 && !a->answered; count++) {
        struct payload quoted = {0};
        struct iovec part = {&quoted, sizeof(quoted)};
        char control[512];
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control)};
        const ssize_t n = recvmsg(a->fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
        if (n < 0) {
            return;
        }
        if ((size_t)n < sizeof(quoted) || quoted.magic != MAGIC || quoted.hop == (uint32_t)hop) {
            take_answer(a, &message);
        }
    }
}

static int quiet_ms(int64_t slowest_ns)
{
    const int64_t ms = QUIET_TIMES * slowest_ns / NS_PER_MS;

    return slowest_ns == 0 || ms > QUIET_MS ? QUIET_MS
           : ms < QUIET_LEAST_MS            ? QUIET_LEAST_MS
                                            : (int)ms;
}

/* All datagrams end at that hop. Returns when all were answered, or no further answer is expected. */
static void ask(struct asker *askers, uint32_t count, int hop, int64_t *slowest_ns)
{
    struct pollfd polled[PATH_PORTS_MAX];
    const int64_t began = rdma_clock_ns();

    for (uint32_t i = 0; i < count; i++) {
        askers[i].answered = askers[i].arrived = false;
        if (askers[i].fd >= 0) {
            send_one(&askers[i], hop);
        }
    }
    for (;;) {
        uint32_t left = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (askers[i].fd >= 0 && !askers[i].answered) {
                polled[left++] = (struct pollfd){.fd = askers[i].fd}; /* only POLLERR */
            }
        }
        if (left == 0 || poll(polled, left, quiet_ms(*slowest_ns)) <= 0) {
            return;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (askers[i].fd >= 0 && !askers[i].answered) {
                read_answers(&askers[i], hop);
                const int64_t took = askers[i].answered ? rdma_clock_ns() - began : 0;
                *slowest_ns = took > *slowest_ns ? took : *slowest_ns;
            }
        }
    }
}

/* Bit k: a router is at hop k + 1. */
static uint32_t scout(const struct rdma_trace *t, int64_t *slowest_ns)
{
    struct asker one;
    uint32_t hops = 0;
    int silent = 0;

    open_one(t, 0, SCOUT_PORT, &one);
    for (int hop = 1; one.fd >= 0 && hop <= PATH_HOPS_MAX && silent < 2; hop++) {
        ask(&one, 1, hop, slowest_ns);
        if (one.arrived) {
            break;
        }
        silent = one.answered ? 0 : silent + 1;
        hops |= one.answered ? 1u << (hop - 1) : 0;
    }
    close_one(&one);
    return hops;
}

void rdma_trace_run(struct rdma_trace *t)
{
    struct asker askers[PATH_PORTS_MAX];
    int64_t slowest_ns = 0;
    const uint32_t hops = scout(t, &slowest_ns), count = hops != 0 ? t->paths.count : 0;

    for (uint32_t i = 0; i < count; i++) {
        open_one(t, t->paths.ports[i], ROCE_PORT, &askers[i]);
    }
    for (uint32_t left = count > 0 ? hops : 0; left != 0; left &= left - 1) {
        const uint32_t hop = (uint32_t)__builtin_ctz(left);
        ask(askers, count, (int)hop + 1, &slowest_ns);
        for (uint32_t i = 0; i < count; i++) {
            if (askers[i].fd >= 0 && askers[i].answered && !askers[i].arrived) {
                paths_on_answer(&t->paths, i, hop, askers[i].router);
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        close_one(&askers[i]);
    }
}

bool rdma_trace_look(struct rdma *r)
{
    for (uint32_t i = 0; i < PATH_PAIRS_MAX; i++) {
        struct rdma_trace *t = &r->traces[i];
        if (t->state == RDMA_TRACE_ASKED) {
            struct rdma_trace mine = *t;
            pthread_mutex_unlock(&r->lock);
            if (r->answers != NULL) {
                r->answers(&mine.paths);
            } else {
                rdma_trace_run(&mine);
            }
            pthread_mutex_lock(&r->lock);
            t->paths = mine.paths; /* a trace that is under way keeps its place */
            t->state = RDMA_TRACE_DONE;
            t->failed = false;
            t->at = r->stop ? t->at : r->io->now(r->io);
            return true;
        }
    }
    return false;
}

/* ---- the choice ---- */

static struct rdma_trace *find(struct rdma *r, const struct queue_pair *q, const uint8_t peer[16])
{
    for (uint32_t i = 0; i < PATH_PAIRS_MAX; i++) {
        struct rdma_trace *t = &r->traces[i];
        if (t->state != RDMA_TRACE_NONE && memcmp(t->from, q->own.gid, 16) == 0 &&
            memcmp(t->to, peer, 16) == 0 && t->traffic_class == q->config.traffic_class) {
            return t;
        }
    }
    return NULL;
}

/* The place of the oldest one. */
static struct rdma_trace *place(struct rdma *r)
{
    struct rdma_trace *oldest = NULL;

    for (uint32_t i = 0; i < PATH_PAIRS_MAX; i++) {
        struct rdma_trace *t = &r->traces[i];
        if (t->state != RDMA_TRACE_ASKED &&
            (oldest == NULL || t->state < oldest->state ||
             (t->state == oldest->state && t->at.ns < oldest->at.ns))) {
            oldest = t;
        }
    }
    return oldest;
}

static bool may_ask(struct rdma *r, struct mono now)
{
    const int64_t full = BURST * NS_PER_S, most = now.ns - full;

    r->traced.ns = r->traced.ns > most ? r->traced.ns : most;
    if (r->traced.ns + NS_PER_S > now.ns) {
        return false;
    }
    r->traced.ns += NS_PER_S;
    return true;
}

/* Random ports, and those that other lanes have: the data about these must be as recent. */
static bool begin(struct rdma *r, const struct queue_pair *q, const uint8_t peer[16],
                  const uint16_t *others, uint32_t count)
{
    uint16_t ports[PATH_PORTS_MAX];
    struct rdma_trace *old = find(r, q, peer), *t = old != NULL ? old : place(r);

    if (t == NULL || !may_ask(r, r->io->now(r->io))) {
        return false;
    }
    *t = (struct rdma_trace){.state = RDMA_TRACE_ASKED, .traffic_class = q->config.traffic_class};
    memcpy(t->from, q->own.gid, 16);
    memcpy(t->to, peer, 16);
    memcpy(t->device, q->device_name, sizeof(t->device));
    r->io->random(r->io, ports, sizeof(ports));
    for (uint32_t i = 0; i < PATH_PORTS_MAX; i++) {
        const uint32_t label = (i < count ? others[i] : ports[i]) & LABEL_MASK;
        ports[i] = (uint16_t)(IO_ROCE_FIRST_PORT | (label != 0 ? label : LABEL_MASK));
    }
    paths_init(&t->paths, ports, PATH_PORTS_MAX);
    rdma_wake(r);
    return true;
}

static bool is_old(const struct rdma_trace *t, struct mono now)
{
    const int64_t age = mono_sub(now, t->at).ns;

    return age > GOOD_NS || (t->failed && age > STALE_NS);
}

int rdma_choose(struct io_rdma *rdma, int qp, const struct io_address *peer,
                const struct io_qp_others *others, uint32_t *ret_path)
{
    struct rdma *r = rdma->driver;
    uint16_t ports[IO_QP_OTHERS];
    int error = -ENODATA;

    pthread_mutex_lock(&r->lock);
    struct queue_pair *q = r->slots[qp];
    struct rdma_trace *t = find(r, q, peer->ip);
    for (uint32_t i = 0; i < others->count && i < IO_QP_OTHERS; i++) {
        ports[i] = (uint16_t)(IO_ROCE_FIRST_PORT | (others->paths[i] & LABEL_MASK));
    }
    if (q->infiniband || ip_is_v4(q->own.gid) != ip_is_v4(peer->ip)) {
        error = -EOPNOTSUPP;
    } else if (t != NULL && t->state == RDMA_TRACE_ASKED) {
        error = -EAGAIN;
    } else if (t == NULL || is_old(t, r->io->now(r->io))) {
        error = begin(r, q, peer->ip, ports, others->count) ? -EAGAIN : -EBUSY;
    } else if (paths_known(&t->paths)) {
        const int port = paths_choose(&t->paths, ports, others->count, q->config.path);
        q->config.path = *ret_path = t->paths.ports[port] & LABEL_MASK;
        error = 0;
    }
    pthread_mutex_unlock(&r->lock);
    return error;
}

void rdma_trace_doubt(struct rdma *r, const struct queue_pair *q)
{
    struct rdma_trace *t = find(r, q, q->peer.gid);

    if (t != NULL) {
        t->failed = true;
    }
}
