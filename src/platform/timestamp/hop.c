/* hop.c: receives ICMP errors on raw sockets and parses them. */
#include "platform/timestamp/hop.h"
#include "base/ip.h"

#include <errno.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { UDP_HEADER = 8, IP6_HEADER = 40, ICMP_HEADER = 8 };

static uint16_t be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

/* Parses the quoted UDP header and the bytes after it. */
static bool parse_quote(const uint8_t *udp, size_t size, struct hop_answer *a)
{
    if (size < UDP_HEADER) {
        return false;
    }
    a->source_port = be16(udp);
    a->destination_port = be16(udp + 2);
    const size_t payload = size - UDP_HEADER;
    a->quoted = (uint8_t)(payload < sizeof(a->payload) ? payload : sizeof(a->payload));
    memcpy(a->payload, udp + UDP_HEADER, a->quoted);
    return true;
}

bool hop_parse4(const uint8_t *bytes, size_t size, struct hop_answer *ret_answer)
{
    struct hop_answer a = {0};
    if (size < 20 || bytes[0] >> 4 != 4) {
        return false;
    }
    const size_t outer = (size_t)(bytes[0] & 15) * 4;
    if (outer < 20 || size < outer + ICMP_HEADER + 20) {
        return false;
    }
    const uint8_t *icmp = bytes + outer;
    const bool exceeded = icmp[0] == ICMP_TIME_EXCEEDED && icmp[1] == ICMP_EXC_TTL;
    a.unreachable = icmp[0] == ICMP_DEST_UNREACH && icmp[1] == ICMP_PORT_UNREACH;
    a.no_route = icmp[0] == ICMP_DEST_UNREACH &&
                 (icmp[1] == ICMP_NET_UNREACH || icmp[1] == ICMP_HOST_UNREACH);
    const uint8_t *quote = icmp + ICMP_HEADER;
    const size_t quoted = size - outer - ICMP_HEADER;
    const size_t inner = (size_t)(quote[0] & 15) * 4;
    if ((!exceeded && !a.unreachable && !a.no_route) || quote[0] >> 4 != 4 || inner < 20 ||
        quoted < inner || quote[9] != IPPROTO_UDP || (be16(quote + 6) & 0x1fff) != 0) {
        return false;
    }
    ip_of_v4(a.router, bytes + 12);
    ip_of_v4(a.source, quote + 12);
    ip_of_v4(a.destination, quote + 16);
    if (!parse_quote(quote + inner, quoted - inner, &a)) {
        return false;
    }
    *ret_answer = a;
    return true;
}

bool hop_parse6(const uint8_t *bytes, size_t size, const uint8_t router[16],
                struct hop_answer *ret_answer)
{
    struct hop_answer a = {0};
    if (size < ICMP_HEADER + IP6_HEADER) {
        return false;
    }
    const bool exceeded = bytes[0] == ICMP6_TIME_EXCEEDED && bytes[1] == ICMP6_TIME_EXCEED_TRANSIT;
    a.unreachable = bytes[0] == ICMP6_DST_UNREACH && bytes[1] == ICMP6_DST_UNREACH_NOPORT;
    a.no_route = bytes[0] == ICMP6_DST_UNREACH &&
                 (bytes[1] == ICMP6_DST_UNREACH_NOROUTE || bytes[1] == ICMP6_DST_UNREACH_ADDR);
    const uint8_t *quote = bytes + ICMP_HEADER;
    if ((!exceeded && !a.unreachable && !a.no_route) || quote[0] >> 4 != 6 ||
        quote[6] != IPPROTO_UDP) {
        return false;
    }
    memcpy(a.router, router, 16);
    memcpy(a.source, quote + 8, 16);
    memcpy(a.destination, quote + 24, 16);
    if (!parse_quote(quote + IP6_HEADER, size - ICMP_HEADER - IP6_HEADER, &a)) {
        return false;
    }
    *ret_answer = a;
    return true;
}

int hop_open(struct hop_listener *ret_listener)
{
    struct hop_listener h = {-1, -1};
    h.fd4 = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMP);
    if (h.fd4 < 0) {
        return -errno;
    }
    const struct icmp_filter filter4 = {.data =
                                            ~(1u << ICMP_TIME_EXCEEDED | 1u << ICMP_DEST_UNREACH)};
    if (setsockopt(h.fd4, IPPROTO_RAW, ICMP_FILTER, &filter4, sizeof(filter4)) < 0) {
        const int r = -errno;
        close(h.fd4);
        return r;
    }
    h.fd6 = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_ICMPV6);
    if (h.fd6 >= 0) {
        struct icmp6_filter filter6;
        ICMP6_FILTER_SETBLOCKALL(&filter6);
        ICMP6_FILTER_SETPASS(ICMP6_TIME_EXCEEDED, &filter6);
        ICMP6_FILTER_SETPASS(ICMP6_DST_UNREACH, &filter6);
        if (setsockopt(h.fd6, IPPROTO_ICMPV6, ICMP6_FILTER, &filter6, sizeof(filter6)) < 0) {
            close(h.fd6);
            h.fd6 = -1;
        }
    }
    *ret_listener = h;
    return 0;
}

void hop_close(struct hop_listener *h)
{
    if (h->fd4 >= 0) {
        close(h->fd4);
    }
    if (h->fd6 >= 0) {
        close(h->fd6);
    }
    *h = (struct hop_listener){-1, -1};
}

bool hop_next(struct hop_listener *h, struct hop_answer *ret_answer)
{
    uint8_t bytes[576];
    for (int tries = 0; tries < 64; tries++) { /* a flood of ICMP must not block the loop */
        ssize_t n = h->fd4 >= 0 ? recv(h->fd4, bytes, sizeof(bytes), 0) : -1;
        if (n >= 0) {
            if (hop_parse4(bytes, (size_t)n, ret_answer)) {
                return true;
            }
            continue;
        }
        struct sockaddr_in6 from;
        socklen_t size = sizeof(from);
        n = h->fd6 >= 0 ? recvfrom(h->fd6, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size)
                        : -1;
        if (n < 0) {
            return false;
        }
        if (hop_parse6(bytes, (size_t)n, from.sin6_addr.s6_addr, ret_answer)) {
            return true;
        }
    }
    return false;
}
