/* reach.c: see reach.h. */
#include "service/agent/reach.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"

#define AGAIN_NS   (300 * NS_PER_MS)
#define PATIENT_NS (2 * NS_PER_S)

enum { TRIES = 3, SHORT_SIZE = 32, UDP_HEADER = 8, PACKET_MAX = 65535 };

static void end(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

static bool is_four(const struct reach_peer *p)
{
    return p->to.ss_family == AF_INET;
}

static int set(const struct reach_peer *p, int fd, int four, int six, int value)
{
    return setsockopt(fd, is_four(p) ? IPPROTO_IP : IPPROTO_IPV6, is_four(p) ? four : six, &value,
                      sizeof(value));
}

static int error_of(int fd)
{
    int error = 0;
    socklen_t size = sizeof(error);

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 ? errno : error;
}

/* True if a router or a filter sent the error by ICMP, and not the peer by TCP. */
static bool is_by_icmp(int fd)
{
    char control[256], data[64];
    struct iovec part = {data, sizeof(data)};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};

    if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
        return false;
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
        struct sock_extended_err e;
        if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
            (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
            memcpy(&e, CMSG_DATA(c), sizeof(e));
            return e.ee_origin == SO_EE_ORIGIN_ICMP || e.ee_origin == SO_EE_ORIGIN_ICMP6;
        }
    }
    return false;
}

/* ---- a connection ---- */

static void told(struct reach_peer *p, int error, bool by_icmp)
{
    if (error == 0 || (error == ECONNREFUSED && !by_icmp)) {
        snprintf(p->reached, sizeof(p->reached), "reached");
    } else if (error == ETIMEDOUT) {
        snprintf(p->reached, sizeof(p->reached), "silent");
    } else {
        snprintf(p->reached, sizeof(p->reached), "refused: %s",
                 error == ECONNREFUSED ? "by a filter" : strerror(error));
    }
    end(&p->tcp);
}

static void call(struct reach_peer *p)
{
    p->tcp = socket(p->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r = p->tcp < 0 ? -errno : set(p, p->tcp, IP_RECVERR, IPV6_RECVERR, 1) < 0 ? -errno : 0;
    if (r == 0 && connect(p->tcp, (const struct sockaddr *)&p->to, p->size) < 0) {
        r = -errno;
    }
    if (r != -EINPROGRESS) {
        told(p, -r, p->tcp >= 0 && is_by_icmp(p->tcp));
    }
}

static void look_at_call(struct reach_peer *p, int64_t now_ns)
{
    struct pollfd f = {.fd = p->tcp, .events = POLLOUT};

    if (p->tcp < 0) {
        return;
    }
    if (poll(&f, 1, 0) == 1) {
        const int error = error_of(p->tcp);
        told(p, error, error != 0 && is_by_icmp(p->tcp));
    } else if (now_ns >= p->end_ns) {
        told(p, ETIMEDOUT, false);
    }
}

/* ---- packets ---- */

static void packets_end(struct reach_peer *p, const char *words)
{
    if (p->full) {
        snprintf(p->path, sizeof(p->path), "full %u %s", p->mtu, words);
    } else {
        snprintf(p->path, sizeof(p->path), "short %s", words);
    }
    end(&p->udp);
}

static bool same_address(const struct sockaddr *x, const struct sockaddr_storage *y)
{
    const struct sockaddr_in *a = (const void *)x, *b = (const void *)y;
    const struct sockaddr_in6 *c = (const void *)x, *d = (const void *)y;

    return x != NULL && x->sa_family == y->ss_family &&
           (y->ss_family == AF_INET ? a->sin_addr.s_addr == b->sin_addr.s_addr
                                    : memcmp(&c->sin6_addr, &d->sin6_addr, 16) == 0);
}

/* MTU of the outgoing interface. The socket's own MTU can't be used: a router may have lowered it. 0: not known. */
static uint32_t mtu_of(const struct reach_peer *p)
{
    struct sockaddr_storage own;
    socklen_t size = sizeof(own);
    struct ifaddrs *all = NULL;
    struct ifreq request = {.ifr_mtu = 0};

    if (getsockname(p->udp, (struct sockaddr *)&own, &size) < 0 || getifaddrs(&all) < 0) {
        return 0;
    }
    for (const struct ifaddrs *a = all; a != NULL && request.ifr_name[0] == '\0'; a = a->ifa_next) {
        if (same_address(a->ifa_addr, &own)) {
            snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", a->ifa_name);
        }
    }
    freeifaddrs(all);
    return request.ifr_name[0] != '\0' && ioctl(p->udp, SIOCGIFMTU, &request) == 0 &&
                   request.ifr_mtu > 0
               ? (uint32_t)request.ifr_mtu
               : 0;
}

/* Packets up to the interface's MTU, never fragmented; path MTUs that a router reported earlier are ignored. */
static bool open_packets(struct reach_peer *p)
{
    p->udp = socket(p->to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return p->udp >= 0 &&
           set(p, p->udp, IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, IP_PMTUDISC_PROBE) == 0 &&
           connect(p->udp, (const struct sockaddr *)&p->to, p->size) == 0;
}

static void begin_packets(struct reach_peer *p)
{
    if (!open_packets(p)) {
        packets_end(p, strerror(errno));
    }
}

/* A short packet has arrived. Packets of full size use a new socket with another port. So a late error about a short packet is
 * not taken for one about a full packet. */
static void begin_full(struct reach_peer *p, int64_t now_ns)
{
    end(&p->udp);
    p->full = true;
    p->tries = 0;
    p->next_ns = now_ns;
    p->mtu = open_packets(p) ? mtu_of(p) : 0;
    if (p->mtu < 576) {
        packets_end(p, "not known");
    }
}

static void send_one(struct reach_peer *p, int64_t now_ns)
{
    static const char zeros[PACKET_MAX];
    const size_t headers =
        UDP_HEADER + (is_four(p) ? sizeof(struct iphdr) : sizeof(struct ip6_hdr));
    const size_t size =
        !p->full ? SHORT_SIZE : (p->mtu < PACKET_MAX ? p->mtu : PACKET_MAX) - headers;

    p->tries++;
    p->next_ns = now_ns + AGAIN_NS;
    if (send(p->udp, zeros, size, MSG_NOSIGNAL) < 0 && errno != EAGAIN && errno != ECONNREFUSED) {
        packets_end(p, strerror(errno));
    }
}

/* ECONNREFUSED means that the peer answered that no program listens: the packet arrived. */
static void look_at_packets(struct reach_peer *p, int64_t now_ns)
{
    struct pollfd f = {.fd = p->udp, .events = POLLIN};
    char answer[16];

    if (p->udp < 0) {
        return;
    }
    const int error = poll(&f, 1, 0) == 1 ? error_of(p->udp) : -1;
    const bool came = error == ECONNREFUSED ||
                      (error == 0 && recv(p->udp, answer, sizeof(answer), MSG_DONTWAIT) >= 0);
    if (came && p->full) {
        packets_end(p, "came");
        return;
    }
    if (came) {
        begin_full(p, now_ns);
        if (p->udp < 0) {
            return;
        }
    } else if (error == EMSGSIZE && p->full) {
        packets_end(p, "too long for a router");
        return;
    } else if (error > 0) {
        packets_end(p, strerror(error));
        return;
    }
    if (now_ns >= p->next_ns && p->tries < TRIES) {
        send_one(p, now_ns);
    } else if (now_ns >= p->next_ns) {
        packets_end(p, "lost");
    }
}

/* ---- all ---- */

void reach_begin(struct agent_reach *r, int64_t now_ns)
{
    for (uint32_t i = 0; i < r->count; i++) {
        struct reach_peer *p = &r->peers[i];
        p->tcp = p->udp = -1;
        p->next_ns = now_ns;
        p->end_ns = now_ns + PATIENT_NS;
        call(p);
        begin_packets(p);
    }
}

bool reach_look(struct agent_reach *r, int64_t now_ns)
{
    bool ended = true;

    for (uint32_t i = 0; i < r->count; i++) {
        struct reach_peer *p = &r->peers[i];
        look_at_call(p, now_ns);
        look_at_packets(p, now_ns);
        ended = ended && p->tcp < 0 && p->udp < 0;
    }
    return ended;
}

void reach_stop(struct agent_reach *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        end(&r->peers[i].tcp);
        end(&r->peers[i].udp);
    }
    r->count = 0;
}

void reach_facts(const struct agent_reach *r, struct sheet *sheet)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const struct reach_peer *p = &r->peers[i];
        const struct fact reached = {.id = FACT_FE_PEER,
                                     .state = FACT_VALUE,
                                     .subject = p->host,
                                     .value = p->reached,
                                     .source = "a TCP connection of the agent"};
        const struct fact path = {.id = FACT_FE_PATH,
                                  .state = FACT_VALUE,
                                  .subject = p->host,
                                  .value = p->path,
                                  .source = "UDP packets of the agent"};
        sheet_add(sheet, &reached);
        sheet_add(sheet, &path);
    }
}
