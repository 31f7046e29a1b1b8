/* net.c: interfaces of devices, bonds, routes, neighbours. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "service/inspect/collect.h"

#define NET   "/sys/class/net"
#define ROUTE "/proc/net/route"

enum { ROUTES_MAX = 1024, NEIGHBOURS_MAX = 512 };

struct route {
    char net[32];
    unsigned long to, mask, metric;
    bool direct; /* no gateway: the interface's own subnet */
};
struct routes {
    int error, count;
    struct route all[ROUTES_MAX];
};

static const struct attribute files[] = {
    {FACT_NET_STATE, "operstate"},
    {FACT_NET_CARRIER, "carrier"},
    {FACT_NET_SPEED, "speed"},
    {FACT_NET_MTU, "mtu"},
    {FACT_NET_DOWNS, "carrier_down_count"},
};

/* "eth0  0001A8C0  00000000  0001  0  0  100  00FFFFFF  0 0 0": numbers in network byte order. */
static void read_routes(struct collector *c, struct routes *r)
{
    char *cursor = NULL, *line;

    r->count = 0;
    r->error = collect_file(c, ROUTE);
    if (r->error < 0) {
        return;
    }
    line = next_line(c, &cursor);
    r->error = line == NULL || strncmp(line, "Iface", 5) != 0 ? -EBADMSG : 0;
    while (r->error == 0 && (line = next_line(c, &cursor)) != NULL) {
        struct route *one = &r->all[r->count];
        unsigned long gateway, flags;
        if (r->count == ROUTES_MAX ||
            sscanf(line, "%31s %lx %lx %lx %*d %*d %lu %lx", one->net, &one->to, &gateway, &flags,
                   &one->metric, &one->mask) != 6) {
            r->error = -EBADMSG;
            return;
        }
        one->direct = gateway == 0;
        r->count += (flags & 1) != 0; /* RTF_UP */
    }
}

static void put_default(struct collector *c, const struct routes *r)
{
    const struct route *best = NULL;

    for (int i = 0; i < r->count; i++) {
        if (r->all[i].mask == 0 && (best == NULL || r->all[i].metric < best->metric)) {
            best = &r->all[i];
        }
    }
    if (r->error < 0) {
        put_error(c, FACT_NET_ROUTE, "", r->error, ROUTE);
    } else {
        put(c, FACT_NET_ROUTE, "", best != NULL ? best->net : "none", ROUTE);
    }
}

/* Lists the other interfaces that have a subnet of this interface as their own. */
static void put_shared(struct collector *c, const struct routes *r, const char *net)
{
    char text[256] = "";
    size_t used = 0;

    if (r->error < 0) {
        put_error(c, FACT_NET_SHARED, net, r->error, ROUTE);
        return;
    }
    for (int i = 0; i < r->count; i++) {
        for (int k = 0; k < r->count; k++) {
            const struct route *a = &r->all[i], *b = &r->all[k];
            if (a->direct && b->direct && a->mask != 0 && a->to == b->to && a->mask == b->mask &&
                strcmp(a->net, net) == 0 && strcmp(b->net, net) != 0 && used + 33 < sizeof(text)) {
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
                                         used > 0 ? " " : "", b->net);
            }
        }
    }
    put(c, FACT_NET_SHARED, net, text, ROUTE);
}

/* The kernel uses the larger value: the interface's or that of "all". */
static void put_larger(struct collector *c, enum fact_id id, const char *net, const char *file)
{
    char path[SYSFS_PATH_SIZE];
    int64_t own = 0, all = 0;
    int r = collect_number(c, sysfs_path(path, "/proc/sys/net/ipv4/conf/all/%s", file), &all);

    if (r == 0) {
        r = collect_number(c, sysfs_path(path, "/proc/sys/net/ipv4/conf/%s/%s", net, file), &own);
    }
    if (r < 0) {
        put_error(c, id, net, r, path);
    } else {
        put_number(c, id, net, own > all ? own : all, path);
    }
}

/* True if a processor of list a ("0-3,8") is in list b, too. */
static bool lists_meet(const char *a, const char *b)
{
    for (const char *x = a; *x != '\0';) {
        unsigned from, to;
        int n = 0;
        if (sscanf(x, "%u-%u%n", &from, &to, &n) != 2 || n == 0) {
            if (sscanf(x, "%u%n", &from, &n) != 1) {
                return false;
            }
            to = from;
        }
        for (const char *y = b; *y != '\0';) {
            unsigned low, high;
            int m = 0;
            if (sscanf(y, "%u-%u%n", &low, &high, &m) != 2 || m == 0) {
                if (sscanf(y, "%u%n", &low, &m) != 1) {
                    return false;
                }
                high = low;
            }
            if (from <= high && low <= to) {
                return true;
            }
            y += m + (y[m] == ',');
        }
        x += n + (x[n] == ',');
    }
    return false;
}

static void put_interrupts(struct collector *c, const char *net)
{
    char path[SYSFS_PATH_SIZE], near[256], where[256];
    int64_t node = -1, far = 0;
    struct names *irqs = names_of(c, sysfs_path(path, NET "/%s/device/msi_irqs", net));
    int r = irqs->count < 0 ? irqs->count : 0;

    if (r == 0) {
        r = collect_number(c, sysfs_path(path, NET "/%s/device/numa_node", net), &node);
    }
    if (r == 0 && node >= 0) {
        r = collect_line(c, sysfs_path(path, "/sys/devices/system/node/node%d/cpulist", (int)node),
                         near, sizeof(near));
    }
    for (int i = 0; r >= 0 && node >= 0 && i < irqs->count; i++) {
        r = collect_line(c, sysfs_path(path, "/proc/irq/%s/effective_affinity_list", irqs->name[i]),
                         where, sizeof(where));
        if (r < 0 && state_of(r) == FACT_ABSENT &&
            !sysfs_there(c->tree, sysfs_path(path, "/proc/irq/%s", irqs->name[i]))) {
            r = 0; /* the device has this interrupt, but does not use it */
        } else {
            far += r > 0 && !lists_meet(where, near);
        }
    }
    if (r < 0) {
        put_error(c, FACT_NET_IRQS, net, r, path);
        put_error(c, FACT_NET_IRQS_FAR, net, r, path);
    } else {
        sysfs_path(path, "/proc/irq/%s/effective_affinity_list",
                   irqs->count == 1 ? irqs->name[0] : "*");
        put_number(c, FACT_NET_IRQS, net, irqs->count, path);
        put_number(c, FACT_NET_IRQS_FAR, net, far, path);
    }
    free(irqs);
}

static void put_clock(struct collector *c, const char *net)
{
    char path[SYSFS_PATH_SIZE];
    struct names *clocks = names_of(c, sysfs_path(path, NET "/%s/device/ptp", net));

    if (clocks->count < 0 && state_of(clocks->count) != FACT_ABSENT) {
        put_error(c, FACT_NET_PHC, net, clocks->count, path);
    } else {
        put(c, FACT_NET_PHC, net, clocks->count > 0 ? clocks->name[0] : "none", path);
    }
    free(clocks);
}

/* Members whose link is down. */
static void put_bond(struct collector *c, const char *bond)
{
    char path[SYSFS_PATH_SIZE], members[1024], status[32], down[256] = "", *at = members;
    int r =
        collect_line(c, sysfs_path(path, NET "/%s/bonding/slaves", bond), members, sizeof(members));
    size_t used = 0;

    put(c, FACT_BOND, bond, bond, NET);
    put_file(c, FACT_BOND_MODE, bond, sysfs_path(path, NET "/%s/bonding/mode", bond));
    for (char *member; r > 0 && (member = strsep(&at, " ")) != NULL;) {
        if (member[0] == '\0') {
            continue;
        }
        r = collect_line(c, sysfs_path(path, NET "/%s/bonding_slave/mii_status", member), status,
                         sizeof(status));
        r = r == 0 ? -EBADMSG : r;
        if (r > 0 && strcmp(status, "up") != 0 && used + 33 < sizeof(down)) {
            used += (size_t)snprintf(down + used, sizeof(down) - used, "%s%s", used > 0 ? " " : "",
                                     member);
        }
    }
    if (r <= 0) {
        put_error(c, FACT_BOND_DOWN, bond, r < 0 ? r : -EBADMSG, path);
    } else {
        put(c, FACT_BOND_DOWN, bond, used > 0 ? down : "none", NET "/*/bonding_slave/mii_status");
    }
}

static void put_interface(struct collector *c, const struct routes *routes, const char *net)
{
    char path[SYSFS_PATH_SIZE], address[SYSFS_NAME_SIZE];

    put(c, FACT_NET, net, net, NET);
    put_attributes(c, files, ARRAY_COUNT(files), net, sysfs_path(path, NET "/%s", net));
    const int r =
        collect_link(c, sysfs_path(path, NET "/%s/device", net), address, sizeof(address));
    if (r < 0) {
        put_error(c, FACT_NET_PCI, net, r, path);
    } else {
        put(c, FACT_NET_PCI, net, address, path);
    }
    put_clock(c, net);
    put_interrupts(c, net);
    put_shared(c, routes, net);
    put_larger(c, FACT_NET_ARP_IGNORE, net, "arp_ignore");
    put_larger(c, FACT_NET_ARP_ANNOUNCE, net, "arp_announce");
    put_larger(c, FACT_NET_RP_FILTER, net, "rp_filter");
}

static void put_name_servers(struct collector *c)
{
    static const char path[] = "/etc/resolv.conf";
    char text[256] = "", server[64], *cursor = NULL;
    const int r = collect_file(c, path);

    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        const size_t used = strlen(text);
        if (sscanf(line, "nameserver %63s", server) == 1) {
            snprintf(text + used, sizeof(text) - used, "%s%s", used > 0 ? "," : "", server);
        }
    }
    if (r < 0) {
        put_error(c, FACT_NET_NAMESERVER, "", r, path);
    } else {
        put(c, FACT_NET_NAMESERVER, "", text[0] != '\0' ? text : "none", path);
    }
}

void collect_net(struct collector *c)
{
    char path[SYSFS_PATH_SIZE];
    struct routes *routes = calloc(1, sizeof(*routes));
    struct names *nets = names_of(c, NET);
    int found = 0, bonds = 0;

    if (routes == NULL) {
        abort();
    }
    read_routes(c, routes);
    put_default(c, routes);
    put_name_servers(c);
    for (int i = 0; i < nets->count; i++) {
        const char *net = nets->name[i];
        if (sysfs_there(c->tree, sysfs_path(path, NET "/%s/device", net))) {
            put_interface(c, routes, net);
            found++;
        } else if (sysfs_there(c->tree, sysfs_path(path, NET "/%s/bonding", net))) {
            put_attributes(c, files, ARRAY_COUNT(files), net, sysfs_path(path, NET "/%s", net));
            put_bond(c, net);
            bonds++;
        }
    }
    if (found == 0) {
        put_error(c, FACT_NET, "", nets->count < 0 ? nets->count : -ENOENT, NET);
    }
    if (bonds == 0) {
        put_error(c, FACT_BOND, "", nets->count < 0 ? nets->count : -ENOENT, NET);
    }
    free(nets);
    free(routes);
}

/* "10.0.0.1  0x1  0x2  b8:…  *  eth0": 0x2 is complete, 0x4 permanent. */
static void arp(struct collector *c)
{
    static const char path[] = "/proc/net/arp";
    char address[64], net[32], subject[128], *cursor = NULL, *line;
    int r = collect_file(c, path), count = 0;
    unsigned flags;

    line = r < 0 ? NULL : next_line(c, &cursor);
    r = r >= 0 && (line == NULL || strncmp(line, "IP address", 10) != 0) ? -EBADMSG : r;
    while (r >= 0 && count < NEIGHBOURS_MAX && (line = next_line(c, &cursor)) != NULL) {
        if (sscanf(line, "%63s %*s 0x%x %*s %*s %31s", address, &flags, net) != 3) {
            r = -EBADMSG;
            break;
        }
        snprintf(subject, sizeof(subject), "%s %s", address, net);
        put(c, FACT_NET_NEIGHBOUR, subject, (flags & 6) != 0 ? "resolved" : "failed", path);
        count++;
    }
    if (r < 0 || count == 0) {
        /* a missing file is an error, not an empty table */
        put_error(c, FACT_NET_NEIGHBOUR, "", r == -ENOENT ? -EIO : r < 0 ? r : -ENOENT, path);
    }
}

/* "|-- 10.0.0.5" and the line below it "/32 host LOCAL": an address of this host. */
static void addresses(struct collector *c)
{
    static const char path[] = "/proc/net/fib_trie";
    char address[64] = "", *cursor = NULL;
    const int r = collect_file(c, path);
    int count = 0;

    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        const char *at = strstr(line, "|-- ");
        if (at != NULL) {
            snprintf(address, sizeof(address), "%.63s", at + 4);
        } else if (strstr(line, "/32 host LOCAL") != NULL && strncmp(address, "127.", 4) != 0) {
            put(c, FACT_NET_ADDRESS, address, address, path);
            count++;
        }
    }
    if (count == 0) {
        put_error(c, FACT_NET_ADDRESS, "", r < 0 ? r : -ENOENT, path);
    }
}

void collect_neighbours(struct collector *c)
{
    arp(c);
    addresses(c);
}
