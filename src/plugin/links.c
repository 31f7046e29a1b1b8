/* links.c: reads one dump of all links, attribute by attribute. */
#include "plugin/links.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_SIZE 32768

static void copy_text(char to[static 16], const struct rtattr *attribute)
{
    const size_t size = RTA_PAYLOAD(attribute);

    snprintf(to, 16, "%.*s", (int)(size < 15 ? size : 15), (const char *)RTA_DATA(attribute));
}

/* The kernel's macros for these two cast to a stricter alignment, which clang refuses; netlink aligns both to 4. */
static const struct rtattr *next_attribute(const struct rtattr *attribute, int *left)
{
    const int size = RTA_ALIGN(attribute->rta_len);

    *left -= size;
    return (const void *)((const char *)attribute + size);
}

static const struct nlmsghdr *next_message(const struct nlmsghdr *message, int *left)
{
    const int size = (int)NLMSG_ALIGN(message->nlmsg_len);

    *left -= size;
    return (const void *)((const char *)message + size);
}

static void read_info(const struct rtattr *info, struct link *link)
{
    int left = (int)RTA_PAYLOAD(info);

    for (const struct rtattr *a = RTA_DATA(info); RTA_OK(a, left); a = next_attribute(a, &left)) {
        const int type = a->rta_type & NLA_TYPE_MASK;
        if (type == IFLA_INFO_KIND) {
            copy_text(link->kind, a);
        } else if (type == IFLA_INFO_SLAVE_KIND) {
            copy_text(link->port_of, a);
        }
    }
}

static struct link read_link(const struct nlmsghdr *message)
{
    struct link link = {0};
    int left = (int)IFLA_PAYLOAD(message);

    for (const struct rtattr *a = (const void *)((const char *)NLMSG_DATA(message) +
                                                 NLMSG_ALIGN(sizeof(struct ifinfomsg)));
         RTA_OK(a, left); a = next_attribute(a, &left)) {
        const int type = a->rta_type & NLA_TYPE_MASK;
        if (type == IFLA_IFNAME) {
            copy_text(link.name, a);
        } else if (type == IFLA_LINKINFO) {
            read_info(a, &link);
        }
    }
    return link;
}

/* Reads all messages of an answer. True: it was the last one. */
static bool read_answer(const char *bytes, size_t size, struct link *links, int capacity,
                        int *count)
{
    int left = (int)size;

    for (const struct nlmsghdr *m = (const void *)bytes; NLMSG_OK(m, (unsigned)left);
         m = next_message(m, &left)) {
        if (m->nlmsg_type == NLMSG_DONE) {
            return true;
        }
        if (m->nlmsg_type == NLMSG_ERROR) {
            *count = -EIO;
            return true;
        }
        if (m->nlmsg_type == RTM_NEWLINK && *count < capacity) {
            links[(*count)++] = read_link(m);
        }
    }
    return false;
}

int links_read(struct link *ret_links, int capacity)
{
    static _Alignas(struct nlmsghdr) _Thread_local char answer[ANSWER_SIZE];
    struct {
        struct nlmsghdr head;
        struct ifinfomsg body;
    } ask = {.head = {.nlmsg_len = sizeof(ask),
                      .nlmsg_type = RTM_GETLINK,
                      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
             .body = {.ifi_family = AF_UNSPEC}};
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    const struct timeval patience = {.tv_sec = 2};
    int count = 0;
    bool last = false;

    if (fd < 0) {
        return -errno;
    }
    (void)!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (send(fd, &ask, sizeof(ask), 0) != (ssize_t)sizeof(ask)) {
        count = -EIO;
    }
    while (count >= 0 && !last) {
        const ssize_t n = recv(fd, answer, sizeof(answer), 0);
        if (n > 0) {
            last = read_answer(answer, (size_t)n, ret_links, capacity, &count);
        } else if (n == 0 || errno != EINTR) {
            count = -EIO;
        }
    }
    close(fd);
    return count;
}

/* A container's only way out is a veth. It carries, unless it is the host's end of one (a port, or without an address). */
bool links_carries(const struct link *links, int count, const char *name)
{
    static const char *const dead_ends[] = {
        "bridge", "openvswitch", "tun",    "ipip",   "sit",     "gre",  "gretap",    "erspan",
        "ip6gre", "ip6gretap",   "ip6tnl", "vti",    "vti6",    "xfrm", "ip6erspan", "vxlan",
        "geneve", "wireguard",   "dummy",  "ifb",    "bareudp", "gtp",  "nlmon",     "vcan",
        "vxcan",  "vrf",         "lowpan", "batadv", "amt",     "ovpn", "pfcp",
    };

    for (int i = 0; i < count; i++) {
        if (strcmp(links[i].name, name) != 0) {
            continue;
        }
        for (size_t k = 0; k < ARRAY_COUNT(dead_ends); k++) {
            if (strcmp(links[i].kind, dead_ends[k]) == 0) {
                return false;
            }
        }
        return strcmp(links[i].port_of, "bridge") != 0 &&
               strcmp(links[i].port_of, "openvswitch") != 0;
    }
    return true; /* the kernel doesn't report it */
}
