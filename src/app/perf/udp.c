/* udp.c: addresses of interfaces, for tests over UDP. */
#include "app/perf/udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

int udp_address(const char *nic, int family, struct sockaddr_storage *ret)
{
    struct ifaddrs *all;
    int r = getifaddrs(&all) < 0 ? -errno : -EADDRNOTAVAIL;

    if (r == -EADDRNOTAVAIL) {
        for (const struct ifaddrs *i = all; r < 0 && i != NULL; i = i->ifa_next) {
            const struct sockaddr_in6 *six = (const void *)i->ifa_addr;
            if (i->ifa_addr != NULL && i->ifa_addr->sa_family == family &&
                strcmp(i->ifa_name, nic) == 0 &&
                (family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))) {
                memcpy(ret, i->ifa_addr,
                       family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(*six));
                r = 0;
            }
        }
        freeifaddrs(all);
    }
    return r;
}

int udp_parse(const char *text, struct sockaddr_storage *ret)
{
    *ret = (struct sockaddr_storage){.ss_family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET};
    return inet_pton(ret->ss_family, text, udp_bytes(ret)) == 1 ? 0 : -EINVAL;
}

socklen_t udp_size(int family)
{
    return family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

uint16_t *udp_port(struct sockaddr_storage *s)
{
    return s->ss_family == AF_INET ? &((struct sockaddr_in *)s)->sin_port
                                   : &((struct sockaddr_in6 *)s)->sin6_port;
}

void *udp_bytes(struct sockaddr_storage *s)
{
    return s->ss_family == AF_INET ? (void *)&((struct sockaddr_in *)s)->sin_addr
                                   : (void *)&((struct sockaddr_in6 *)s)->sin6_addr;
}

bool udp_may_be_nic(int family, const uint8_t *own, const uint8_t *told)
{
    struct in6_addr six;

    /* 0.0.0.0/8, 127.0.0.0/8, multicast, and what is above it: broadcast */
    if (family == AF_INET) {
        return told[0] != 0 && told[0] < 224 && (told[0] != 127 || own[0] == 127);
    }
    memcpy(&six, told, sizeof(six));
    return !IN6_IS_ADDR_UNSPECIFIED(&six) && !IN6_IS_ADDR_MULTICAST(&six) &&
           !IN6_IS_ADDR_LINKLOCAL(&six) && !IN6_IS_ADDR_V4MAPPED(&six) &&
           !IN6_IS_ADDR_V4COMPAT(&six) &&
           (!IN6_IS_ADDR_LOOPBACK(&six) || memcmp(own, told, 16) == 0);
}
