/* link_monitor.c: rtnetlink with libmnl. */
#include "platform/netlink/link_monitor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "platform/sysfs/sysfs.h"

enum { BUFFER_SIZE = 32768, ANSWER_WAIT_MS = 200 };

struct slot {
    struct link_interface now;
    char wanted[IF_NAMESIZE];
    bool mac_known, seen; /* seen: in the present dump */
    unsigned changes;
};

struct link_monitor {
    struct mnl_socket *events;  /* multicast */
    struct mnl_socket *request; /* requests and their answers */
    int ioctl_fd;
    uint32_t sequence;
    unsigned count;
    struct slot slots[HOST_NIC_MAX];
    _Alignas(struct nlmsghdr) uint8_t buffer[BUFFER_SIZE];
};

/* ---- messages ---- */

struct attributes {
    const struct nlattr *by_type[IFLA_MAX + 1];
};

static int keep_attribute(const struct nlattr *attribute, void *data)
{
    struct attributes *a = data;
    const unsigned type = mnl_attr_get_type(attribute);
    if (type <= IFLA_MAX) {
        a->by_type[type] = attribute;
    }
    return MNL_CB_OK;
}

static bool has(const struct attributes *a, unsigned type, size_t size_min)
{
    return a->by_type[type] != NULL && mnl_attr_get_payload_len(a->by_type[type]) >= size_min;
}

static uint32_t u32_of(const struct attributes *a, unsigned type, uint32_t fallback)
{
    return has(a, type, 4) ? mnl_attr_get_u32(a->by_type[type]) : fallback;
}

static bool name_of(const struct attributes *a, char name[IF_NAMESIZE])
{
    memset(name, 0, IF_NAMESIZE);
    if (a->by_type[IFLA_IFNAME] == NULL) {
        return false;
    }
    const size_t size = mnl_attr_get_payload_len(a->by_type[IFLA_IFNAME]);
    memcpy(name, mnl_attr_get_payload(a->by_type[IFLA_IFNAME]),
           size < IF_NAMESIZE ? size : IF_NAMESIZE - 1);
    return name[0] != 0;
}

static const uint8_t *mac_of(const struct attributes *a)
{
    static const uint8_t zero[6];
    for (unsigned i = 0; i < 2; i++) {
        const unsigned type = i == 0 ? IFLA_PERM_ADDRESS : IFLA_ADDRESS;
        if (has(a, type, 6) && memcmp(mnl_attr_get_payload(a->by_type[type]), zero, 6) != 0) {
            return mnl_attr_get_payload(a->by_type[type]);
        }
    }
    return NULL;
}

/* Finds the slot of a link message: by index. Else a slot whose device is gone: by MAC, then by name. */
static struct slot *slot_for(struct link_monitor *m, int index, const char *name,
                             const uint8_t *mac)
{
    for (unsigned i = 0; i < m->count; i++) {
        if (m->slots[i].now.index == index) {
            return &m->slots[i];
        }
    }
    for (unsigned i = 0; i < m->count; i++) {
        struct slot *s = &m->slots[i];
        if (s->now.index == 0 && s->mac_known && mac != NULL && memcmp(s->now.mac, mac, 6) == 0) {
            return s;
        }
    }
    for (unsigned i = 0; i < m->count; i++) {
        struct slot *s = &m->slots[i];
        if (s->now.index == 0 && (strcmp(s->now.name, name) == 0 || strcmp(s->wanted, name) == 0)) {
            return s;
        }
    }
    return NULL;
}

static void read_counters(struct link_interface *now, const struct attributes *a)
{
    struct rtnl_link_stats64 stats;
    if (!has(a, IFLA_STATS64, offsetof(struct rtnl_link_stats64, multicast))) {
        return;
    }
    memset(&stats, 0, sizeof(stats));
    const size_t size = mnl_attr_get_payload_len(a->by_type[IFLA_STATS64]);
    memcpy(&stats, mnl_attr_get_payload(a->by_type[IFLA_STATS64]),
           size < sizeof(stats) ? size : sizeof(stats));
    now->rx_packets = stats.rx_packets;
    now->tx_packets = stats.tx_packets;
    now->rx_bytes = stats.rx_bytes;
    now->tx_bytes = stats.tx_bytes;
    now->rx_errors = stats.rx_errors;
    now->tx_errors = stats.tx_errors;
    now->rx_drops = stats.rx_dropped;
    now->tx_drops = stats.tx_dropped;
}

static void on_gone(struct slot *s)
{
    if (s->now.present) {
        s->changes |= LINK_CHANGE_VANISHED;
    }
    s->now.present = s->now.admin_up = s->now.carrier = false;
    s->now.index = 0;
    s->now.count4 = s->now.count6 = 0;
}

static void on_link(struct link_monitor *m, const struct nlmsghdr *header)
{
    struct attributes a = {0};
    char name[IF_NAMESIZE];
    const struct ifinfomsg *info = mnl_nlmsg_get_payload(header);
    if (mnl_nlmsg_get_payload_len(header) < sizeof(*info) ||
        mnl_attr_parse(header, sizeof(*info), keep_attribute, &a) < 0 || !name_of(&a, name)) {
        return;
    }
    const uint8_t *mac = mac_of(&a);
    struct slot *s = slot_for(m, info->ifi_index, name, mac);
    if (s == NULL) {
        return;
    }
    if (header->nlmsg_type == RTM_DELLINK) {
        /* AF_BRIDGE and similar families send their own DELLINK for a port that still exists */
        if (info->ifi_family == AF_UNSPEC) {
            on_gone(s);
        }
        return;
    }
    struct link_interface before = s->now;
    s->seen = true;
    s->now.index = info->ifi_index;
    s->now.present = true;
    s->now.admin_up = (info->ifi_flags & IFF_UP) != 0;
    s->now.carrier = has(&a, IFLA_CARRIER, 1) ? mnl_attr_get_u8(a.by_type[IFLA_CARRIER]) != 0
                                              : (info->ifi_flags & IFF_RUNNING) != 0;
    s->now.down_count = u32_of(&a, IFLA_CARRIER_DOWN_COUNT, before.down_count);
    s->now.up_count = u32_of(&a, IFLA_CARRIER_UP_COUNT, before.up_count);
    s->now.mtu = u32_of(&a, IFLA_MTU, before.mtu);
    memcpy(s->now.name, name, IF_NAMESIZE);
    if (mac != NULL) {
        memcpy(s->now.mac, mac, 6);
        s->mac_known = true;
    }
    read_counters(&s->now, &a);
    if (!before.present) {
        s->changes |= LINK_CHANGE_RETURNED | LINK_CHANGE_STATE;
    }
    if (before.present && strcmp(before.name, name) != 0) {
        s->changes |= LINK_CHANGE_RENAMED;
    }
    if (before.carrier != s->now.carrier || before.admin_up != s->now.admin_up ||
        before.down_count != s->now.down_count || before.up_count != s->now.up_count) {
        s->changes |= LINK_CHANGE_STATE;
    }
}

static void remove_address(void *list, uint8_t *count, size_t size, const void *address,
                           bool *changed)
{
    for (uint8_t i = 0; i < *count; i++) {
        uint8_t *entry = (uint8_t *)list + i * size;
        if (memcmp(entry, address, size) == 0) {
            memmove(entry, entry + size, (size_t)(*count - i - 1) * size);
            (*count)--;
            *changed = true;
            return;
        }
    }
}

static void add_address(void *list, uint8_t *count, size_t size, const void *address, bool *changed)
{
    for (uint8_t i = 0; i < *count; i++) {
        if (memcmp((uint8_t *)list + i * size, address, size) == 0) {
            return;
        }
    }
    if (*count < LINK_ADDRESS_MAX) {
        memcpy((uint8_t *)list + (size_t)(*count)++ * size, address, size);
        *changed = true;
    }
}

static void on_address(struct link_monitor *m, const struct nlmsghdr *header)
{
    struct attributes a = {0};
    const struct ifaddrmsg *info = mnl_nlmsg_get_payload(header);
    if (mnl_nlmsg_get_payload_len(header) < sizeof(*info) ||
        mnl_attr_parse(header, sizeof(*info), keep_attribute, &a) < 0) {
        return;
    }
    const unsigned type = a.by_type[IFA_LOCAL] != NULL ? IFA_LOCAL : IFA_ADDRESS;
    for (unsigned i = 0; i < m->count; i++) {
        struct link_interface *now = &m->slots[i].now;
        if (now->index != (int)info->ifa_index || now->index == 0) {
            continue;
        }
        bool changed = false;
        void (*change)(void *, uint8_t *, size_t, const void *, bool *) =
            header->nlmsg_type == RTM_NEWADDR ? add_address : remove_address;
        if (info->ifa_family == AF_INET && has(&a, type, 4)) {
            change(now->addresses4, &now->count4, 4, mnl_attr_get_payload(a.by_type[type]),
                   &changed);
        } else if (info->ifa_family == AF_INET6 && has(&a, type, 16)) {
            change(now->addresses6, &now->count6, 16, mnl_attr_get_payload(a.by_type[type]),
                   &changed);
        }
        m->slots[i].changes |= changed ? LINK_CHANGE_ADDRESS : 0;
    }
}

void link_monitor_feed(struct link_monitor *m, const struct nlmsghdr *header)
{
    switch (header->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
        on_link(m, header);
        break;
    case RTM_NEWADDR:
    case RTM_DELADDR:
        on_address(m, header);
        break;
    default:
        break;
    }
}

/* ---- sockets ---- */

static int open_socket(struct mnl_socket **ret, unsigned groups)
{
    struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (s == NULL) {
        return -errno;
    }
    if (mnl_socket_bind(s, groups, MNL_SOCKET_AUTOPID) < 0) {
        const int r = -errno;
        mnl_socket_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

int link_monitor_open(struct link_monitor **ret_monitor)
{
    struct link_monitor *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return -ENOMEM;
    }
    m->ioctl_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r = open_socket(&m->events, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
    if (r == 0) {
        r = open_socket(&m->request, 0);
    }
    if (r < 0) {
        link_monitor_close(m);
        return r;
    }
    const int size = 1 << 20;
    setsockopt(mnl_socket_get_fd(m->events), SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    *ret_monitor = m;
    return 0;
}

struct link_monitor *link_monitor_close(struct link_monitor *m)
{
    if (m != NULL) {
        if (m->events != NULL) {
            mnl_socket_close(m->events);
        }
        if (m->request != NULL) {
            mnl_socket_close(m->request);
        }
        if (m->ioctl_fd >= 0) {
            close(m->ioctl_fd);
        }
        free(m);
    }
    return NULL;
}

int link_monitor_watch(struct link_monitor *m, const char *name)
{
    if (m->count == HOST_NIC_MAX) {
        return -ENOSPC;
    }
    struct slot *s = &m->slots[m->count];
    *s = (struct slot){0};
    snprintf(s->wanted, sizeof(s->wanted), "%s", name);
    snprintf(s->now.name, sizeof(s->now.name), "%s", name);
    return (int)m->count++;
}

int link_monitor_fd(const struct link_monitor *m)
{
    return mnl_socket_get_fd(m->events);
}

const struct link_interface *link_monitor_get(const struct link_monitor *m, unsigned slot)
{
    ASSERT(slot < m->count);
    return &m->slots[slot].now;
}

unsigned link_monitor_changes(struct link_monitor *m, unsigned slot)
{
    ASSERT(slot < m->count);
    const unsigned changes = m->slots[slot].changes;
    m->slots[slot].changes = 0;
    return changes;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Processes one datagram. *ret_done: the answer to `sequence` is complete (or an error). */
static int feed_datagram(struct link_monitor *m, size_t size, uint32_t sequence, bool *ret_done)
{
    int left = (int)size;
    for (const struct nlmsghdr *h = (const void *)m->buffer; mnl_nlmsg_ok(h, left);
         h = mnl_nlmsg_next(h, &left)) {
        if (h->nlmsg_type == NLMSG_DONE) {
            *ret_done = true;
        } else if (h->nlmsg_type == NLMSG_ERROR) {
            *ret_done = true;
            const struct nlmsgerr *error = mnl_nlmsg_get_payload(h);
            if (mnl_nlmsg_get_payload_len(h) >= sizeof(error->error) && error->error < 0) {
                return error->error;
            }
        } else {
            link_monitor_feed(m, h);
            if (h->nlmsg_seq == sequence && (h->nlmsg_flags & NLM_F_MULTI) == 0) {
                *ret_done = true;
            }
        }
    }
    return 0;
}

static int ask(struct link_monitor *m, uint16_t type, uint16_t flags, int index)
{
    _Alignas(struct nlmsghdr) uint8_t question[256];
    struct nlmsghdr *h = mnl_nlmsg_put_header(question);
    h->nlmsg_type = type;
    h->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
    h->nlmsg_seq = ++m->sequence;
    if (type == RTM_GETLINK) {
        struct ifinfomsg *info = mnl_nlmsg_put_extra_header(h, sizeof(*info));
        info->ifi_index = index;
    } else {
        mnl_nlmsg_put_extra_header(h, sizeof(struct ifaddrmsg));
    }
    if (mnl_socket_sendto(m->request, h, h->nlmsg_len) < 0) {
        return -errno;
    }
    const int64_t deadline = now_ms() + ANSWER_WAIT_MS;
    for (bool done = false; !done;) {
        const ssize_t n = mnl_socket_recvfrom(m->request, m->buffer, sizeof(m->buffer));
        if (n < 0 && errno == EAGAIN && now_ms() < deadline) {
            continue; /* rtnetlink answers within the call, so this is rare */
        }
        if (n < 0) {
            return -errno;
        }
        const int r = feed_datagram(m, (size_t)n, m->sequence, &done);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* Dumps all interfaces, for slots whose device is missing. */
static int dump_links(struct link_monitor *m)
{
    for (unsigned i = 0; i < m->count; i++) {
        m->slots[i].seen = false;
    }
    const int r = ask(m, RTM_GETLINK, NLM_F_DUMP, 0);
    for (unsigned i = 0; r == 0 && i < m->count; i++) {
        if (!m->slots[i].seen) {
            on_gone(&m->slots[i]);
        }
    }
    return r;
}

static int dump_addresses(struct link_monitor *m)
{
    struct link_interface before[HOST_NIC_MAX];
    unsigned changes[HOST_NIC_MAX];
    for (unsigned i = 0; i < m->count; i++) {
        before[i] = m->slots[i].now;
        changes[i] = m->slots[i].changes;
        m->slots[i].now.count4 = m->slots[i].now.count6 = 0;
    }
    const int r = ask(m, RTM_GETADDR, NLM_F_DUMP, 0);
    for (unsigned i = 0; i < m->count; i++) {
        struct link_interface *now = &m->slots[i].now;
        if (r < 0) {
            *now = before[i];
        }
        const bool same = now->count4 == before[i].count4 && now->count6 == before[i].count6 &&
                          memcmp(now->addresses4, before[i].addresses4,
                                 now->count4 * sizeof(struct in_addr)) == 0 &&
                          memcmp(now->addresses6, before[i].addresses6,
                                 now->count6 * sizeof(struct in6_addr)) == 0;
        m->slots[i].changes = changes[i] | (same ? 0 : LINK_CHANGE_ADDRESS);
    }
    return r;
}

int link_monitor_poll(struct link_monitor *m, bool addresses)
{
    bool missing = false;
    for (unsigned i = 0; i < m->count; i++) {
        struct slot *s = &m->slots[i];
        if (s->now.index == 0) {
            missing = true;
            continue;
        }
        const int r = ask(m, RTM_GETLINK, 0, s->now.index);
        if (r == -ENODEV) {
            on_gone(s);
            missing = true;
        } else if (r < 0) {
            return r;
        }
    }
    const int r = missing ? dump_links(m) : 0;
    return r < 0 || !addresses ? r : dump_addresses(m);
}

int link_monitor_receive(struct link_monitor *m)
{
    for (int i = 0; i < 64; i++) {
        const ssize_t n = mnl_socket_recvfrom(m->events, m->buffer, sizeof(m->buffer));
        if (n < 0) {
            if (errno == ENOBUFS) { /* events were lost: ask for everything again */
                return link_monitor_poll(m, true);
            }
            return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        }
        bool done = false;
        const int r = feed_datagram(m, (size_t)n, 0, &done);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* ---- speed and width ---- */

static uint32_t ethtool_speed(const struct link_monitor *m, const char *name)
{
    _Alignas(8)
        uint8_t memory[sizeof(struct ethtool_link_settings) + 3 * 127 * sizeof(uint32_t)] = {0};
    struct ethtool_link_settings *q = (void *)memory;
    struct ifreq request = {.ifr_data = (void *)q};
    memcpy(request.ifr_name, name, IF_NAMESIZE);
    q->cmd = ETHTOOL_GLINKSETTINGS;
    if (m->ioctl_fd < 0 || ioctl(m->ioctl_fd, SIOCETHTOOL, &request) < 0 ||
        q->link_mode_masks_nwords >= 0) {
        return 0;
    }
    /* the first call returns the number of words of the masks, the second the answer */
    const int8_t words = (int8_t)-q->link_mode_masks_nwords;
    memset(memory, 0, sizeof(memory));
    q->cmd = ETHTOOL_GLINKSETTINGS;
    q->link_mode_masks_nwords = words;
    if (ioctl(m->ioctl_fd, SIOCETHTOOL, &request) < 0 || q->speed == (uint32_t)SPEED_UNKNOWN) {
        return 0;
    }
    return q->speed;
}

/* 0: not known. */
static int64_t told_by_sysfs(const char *name, const char *leaf)
{
    char path[SYSFS_PATH_SIZE];
    int64_t n;

    return sysfs_number(NULL, sysfs_path(path, "/sys/class/net/%s/%s", name, leaf), &n) < 0 ? 0 : n;
}

void link_monitor_look(struct link_monitor *m, unsigned slot)
{
    ASSERT(slot < m->count);
    struct link_interface *now = &m->slots[slot].now;
    if (!now->present) {
        return;
    }
    const uint32_t speed = ethtool_speed(m, now->name);
    const int64_t sysfs_speed = speed != 0 ? speed : told_by_sysfs(now->name, "speed");
    const int64_t width = told_by_sysfs(now->name, "device/current_link_width");
    const uint32_t new_speed = sysfs_speed > 0 ? (uint32_t)sysfs_speed : 0;
    const uint8_t new_width = width > 0 && width < 256 ? (uint8_t)width : 0;
    if (new_speed != now->speed_mbps || new_width != now->width) {
        m->slots[slot].changes |= LINK_CHANGE_STATE;
    }
    now->speed_mbps = new_speed;
    now->width = new_width;
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq request = {.ifr_data = (void *)&driver};
    memcpy(request.ifr_name, now->name, IF_NAMESIZE);
    if (m->ioctl_fd >= 0 && ioctl(m->ioctl_fd, SIOCETHTOOL, &request) == 0) {
        snprintf(now->driver, sizeof(now->driver), "%.31s", driver.driver);
    }
}

bool link_find_address(const struct in_addr *address4, const struct in6_addr *address6,
                       char ret_name[IF_NAMESIZE])
{
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all) < 0) {
        return false;
    }
    for (const struct ifaddrs *a = all; a != NULL && !found; a = a->ifa_next) {
        if (a->ifa_addr == NULL) {
            continue;
        }
        if (a->ifa_addr->sa_family == AF_INET && address4->s_addr != 0) {
            const struct sockaddr_in *in = (const void *)a->ifa_addr;
            found = in->sin_addr.s_addr == address4->s_addr;
        } else if (a->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_UNSPECIFIED(address6)) {
            const struct sockaddr_in6 *in6 = (const void *)a->ifa_addr;
            found = memcmp(&in6->sin6_addr, address6, 16) == 0;
        }
        if (found) {
            snprintf(ret_name, IF_NAMESIZE, "%s", a->ifa_name);
        }
    }
    freeifaddrs(all);
    return found;
}
