/* rdma.c: RDMA devices, their ports, GIDs and keys. platform/rdma reads the same files for programs that use a port. Here each
 * value keeps the reason why it is missing. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "service/inspect/collect.h"

#define DEVICES "/sys/class/infiniband"

enum { GIDS_TRIED = 16 };

static const struct attribute device_files[] = {
    {FACT_RDMA_FIRMWARE, "fw_ver"},
    {FACT_RDMA_BOARD, "board_id"},
    {FACT_RDMA_HCA, "hca_type"},
    {FACT_RDMA_GUID, "node_guid"},
};
static const struct attribute port_files[] = {
    {FACT_PORT_STATE, "state"},
    {FACT_PORT_PHYSICAL, "phys_state"},
    {FACT_PORT_RATE, "rate"},
    {FACT_PORT_LAYER, "link_layer"},
    {FACT_PORT_LID, "lid"},
    {FACT_PORT_SM, "sm_lid"},
    {FACT_PORT_SYMBOLS, "counters/symbol_error"},
    {FACT_PORT_DOWNS, "counters/link_downed"},
    {FACT_PORT_DISCARDS, "counters/port_xmit_discards"},
};

/* A table of a port: its entries are 0, 1, 2, …. A gap means that an entry could not be read. */
static struct names *table_of(struct collector *c, const char *folder)
{
    struct names *names = names_of(c, folder);

    for (int i = 0; i < names->count; i++) {
        char expected[16];
        snprintf(expected, sizeof(expected), "%d", i);
        if (strcmp(names->name[i], expected) != 0) {
            names->count = -EBADMSG;
        }
    }
    return names;
}

static bool is_gid(const char *text)
{
    size_t i = 0;

    for (; text[i] != '\0'; i++) {
        const char ch = text[i];
        if (i % 5 == 4 ? ch != ':' : !((ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'f'))) {
            return false;
        }
    }
    return i == 39;
}

static const char *family(const char *gid)
{
    return strncmp(gid, "0000:0000:0000:0000:0000:ffff:", 30) == 0 ? "ip4"
           : strncmp(gid, "fe80:", 5) == 0                         ? "link"
                                                                   : "ip6";
}

struct gids {
    int error;
    int setting_error; /* of the file with NCCL_IB_GID_INDEX */
    char setting[16];  /* "": not set */
    char table[FACT_VALUE_MAX];
    char addresses[FACT_VALUE_MAX]; /* "3 10.100.0.1, 5 2001:db8::1" */
    char used[64];                  /* the GID that jobs use; "": none */
    int quality;                    /* of the GID in `used` */
};

/* Notes the address of a GID. Link-local addresses are left out: no job uses them. */
static void note_address(struct gids *g, int index, const char *gid)
{
    const bool v4 = strcmp(family(gid), "ip4") == 0;
    const size_t used = strlen(g->addresses);
    char address[INET6_ADDRSTRLEN];
    struct in6_addr bytes;

    if (strcmp(family(gid), "link") == 0) {
        return;
    }
    if (inet_pton(AF_INET6, gid, &bytes) != 1 ||
        inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &bytes.s6_addr[12] : bytes.s6_addr, address,
                  sizeof(address)) == NULL) {
        g->error = -EBADMSG;
        return;
    }
    if (snprintf(g->addresses + used, sizeof(g->addresses) - used, "%s%d %s", used > 0 ? ", " : "",
                 index, address) >= (int)(sizeof(g->addresses) - used)) {
        g->error = -EMSGSIZE;
    }
}

/* NCCL takes the index that is set. Without one it prefers RoCE v2 with an IPv4 address to RoCE v2 with IPv6. */
static void note_gid(struct gids *g, int index, const char *gid, const char *type)
{
    const char *kind = strcmp(type, "RoCE v2") == 0 ? "v2" : "v1", *which = family(gid);
    const size_t used = strlen(g->table);
    char number[16];
    int quality = strcmp(kind, "v2") != 0     ? 0
                  : strcmp(which, "ip4") == 0 ? 2
                  : strcmp(which, "ip6") == 0 ? 1
                                              : 0;

    if (snprintf(g->table + used, sizeof(g->table) - used, "%s%d %s %s", used > 0 ? ", " : "",
                 index, kind, which) >= (int)(sizeof(g->table) - used)) {
        g->error = -EMSGSIZE;
    }
    snprintf(number, sizeof(number), "%d", index);
    if (g->setting[0] != '\0') {
        quality = strcmp(g->setting, number) == 0 ? 3 : 0;
    }
    if (quality > g->quality) {
        g->quality = quality;
        snprintf(g->used, sizeof(g->used), "%d %s %s", index, kind, which);
    }
}

/* Reads the setting for all jobs: it decides which index they use. */
static void read_setting(struct collector *c, struct gids *g)
{
    static const char key[] = "NCCL_IB_GID_INDEX=";
    const int r = collect_file(c, "/etc/nccl.conf");
    char *cursor = NULL;

    g->setting_error = r < 0 && state_of(r) != FACT_ABSENT ? r : 0;
    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        if (strncmp(line, key, strlen(key)) == 0) {
            snprintf(g->setting, sizeof(g->setting), "%s", line + strlen(key));
        }
    }
}

/* Unused entries have the address zero; their type can't be read. */
static void put_gids(struct collector *c, const char *port, const char *folder)
{
    struct gids g = {0};
    char path[SYSFS_PATH_SIZE], gid[64], type[32];
    struct names *gids = table_of(c, sysfs_path(path, "%s/gids", folder)),
                 *types = table_of(c, sysfs_path(path, "%s/gid_attrs/types", folder));

    read_setting(c, &g);

    g.error = gids->count < 0               ? gids->count
              : types->count < 0            ? types->count
              : types->count != gids->count ? -EBADMSG
                                            : 0;
    for (int i = 0; g.error == 0 && i < gids->count; i++) {
        int r = collect_line(c, sysfs_path(path, "%s/gids/%d", folder, i), gid, sizeof(gid));
        if (r >= 0 && !is_gid(gid)) {
            r = -EBADMSG;
        }
        if (r >= 0 && strspn(gid, "0:") == strlen(gid)) {
            continue;
        }
        if (r >= 0) {
            r = collect_line(c, sysfs_path(path, "%s/gid_attrs/types/%d", folder, i), type,
                             sizeof(type));
        }
        if (r >= 0 && strcmp(type, "RoCE v2") != 0 && strcmp(type, "IB/RoCE v1") != 0) {
            r = -EBADMSG;
        }
        g.error = r < 0 ? r : 0;
        if (r >= 0) {
            note_gid(&g, i, gid, type);
        }
        if (r >= 0 && strcmp(type, "RoCE v2") == 0) {
            note_address(&g, i, gid);
        }
    }
    free(gids);
    free(types);
    sysfs_path(path, "%s/gid*/*", folder);
    if (g.error < 0) {
        put_error(c, FACT_PORT_GIDS, port, g.error, path);
        put_error(c, FACT_PORT_GID, port, g.error, path);
        put_error(c, FACT_PORT_ADDRESSES, port, g.error, path);
        return;
    }
    put(c, FACT_PORT_ADDRESSES, port, g.addresses, path);
    put(c, FACT_PORT_GIDS, port, g.table, path);
    if (g.setting_error < 0) {
        put_error(c, FACT_PORT_GID, port, g.setting_error, "/etc/nccl.conf");
    } else {
        put(c, FACT_PORT_GID, port, g.used[0] != '\0' ? g.used : "none", path);
    }
}

static void put_keys(struct collector *c, const char *port, const char *folder)
{
    char path[SYSFS_PATH_SIZE], text[FACT_VALUE_MAX] = "";
    struct names *keys = table_of(c, sysfs_path(path, "%s/pkeys", folder));
    /* tables have 1, 16, 64 or 128 entries; with another number an entry could not be read */
    int r = keys->count < 0 ? keys->count : (keys->count & (keys->count - 1)) != 0 ? -EBADMSG : 0;
    size_t used = 0;

    for (int i = 0; r == 0 && i < keys->count; i++) {
        int64_t key;
        r = collect_number(c, sysfs_path(path, "%s/pkeys/%d", folder, i), &key);
        if (r == 0 && key != 0 && used + 8 < sizeof(text)) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s0x%04x",
                                     used > 0 ? " " : "", (unsigned)(key & 0xffff));
        }
    }
    free(keys);
    sysfs_path(path, "%s/pkeys/*", folder);
    if (r < 0) {
        put_error(c, FACT_PORT_PKEYS, port, r, path);
    } else {
        put(c, FACT_PORT_PKEYS, port, text, path);
    }
}

/* The priorities that are on, from a folder of files 0 … 7. */
static int priorities(struct collector *c, const char *folder, char *text, size_t size)
{
    char path[SYSFS_PATH_SIZE];
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < 8; i++) {
        int64_t on;
        const int r = collect_number(c, sysfs_path(path, "%s/%d", folder, i), &on);
        if (r < 0) {
            return r;
        }
        if (on != 0) {
            used += (size_t)snprintf(text + used, size - used, " %d", i);
        }
    }
    snprintf(text + used, size - used, "%s", used == 0 ? " none" : "");
    return 0;
}

static void put_congestion(struct collector *c, const char *port, const char *net)
{
    char path[SYSFS_PATH_SIZE], np[32], rp[32], text[80], dscp[16];
    int64_t number;
    int r = priorities(c, sysfs_path(path, "/sys/class/net/%s/ecn/roce_np/enable", net), np,
                       sizeof(np));

    if (r == 0) {
        r = priorities(c, sysfs_path(path, "/sys/class/net/%s/ecn/roce_rp/enable", net), rp,
                       sizeof(rp));
    }
    sysfs_path(path, "/sys/class/net/%s/ecn/roce_*/enable/*", net);
    if (r < 0) {
        put_error(c, FACT_PORT_ECN, port, r, path);
    } else {
        snprintf(text, sizeof(text), "np%s, rp%s", np, rp);
        put(c, FACT_PORT_ECN, port, text, path);
    }
    r = collect_number(c, sysfs_path(path, "/sys/class/net/%s/ecn/roce_np/cnp_dscp", net), &number);
    snprintf(dscp, sizeof(dscp), "%d", (int)(r < 0 ? 0 : number));
    if (r == 0) {
        r = collect_number(c, sysfs_path(path, "/sys/class/net/%s/ecn/roce_np/cnp_802p_prio", net),
                           &number);
    }
    sysfs_path(path, "/sys/class/net/%s/ecn/roce_np/cnp_*", net);
    if (r < 0) {
        put_error(c, FACT_PORT_CNP, port, r, path);
    } else {
        snprintf(text, sizeof(text), "DSCP %s, priority %d", dscp, (int)number);
        put(c, FACT_PORT_CNP, port, text, path);
    }
}

/* The interface of the port's first GID that has one. */
static int net_of_gids(struct collector *c, const char *folder, char net[SYSFS_NAME_SIZE],
                       char path[SYSFS_PATH_SIZE])
{
    int r = -ENOENT;

    for (int i = 0; i < GIDS_TRIED && r < 0; i++) {
        r = collect_line(c, sysfs_path(path, "%s/gid_attrs/ndevs/%d", folder, i), net,
                         SYSFS_NAME_SIZE);
    }
    return r < 0 ? r : 0;
}

/* The interface of the port is that of its device. A device with several ports has several interfaces; a software device has
 * none. */
static int net_of(struct collector *c, const char *device, const char *folder,
                  char net[SYSFS_NAME_SIZE], char path[SYSFS_PATH_SIZE])
{
    struct names *nets = names_of(c, sysfs_path(path, DEVICES "/%s/device/net", device));
    const int count = nets->count;

    if (count > 0) {
        snprintf(net, SYSFS_NAME_SIZE, "%s", nets->name[0]);
    }
    free(nets);
    if (count == 1 || (count < 0 && count != -ENOENT)) {
        return count < 0 ? count : 0;
    }
    char first[SYSFS_NAME_SIZE], other[SYSFS_PATH_SIZE];
    if (net_of_gids(c, folder, first, other) == 0) {
        memcpy(net, first, sizeof(first));
        memcpy(path, other, sizeof(other));
        return 0;
    }
    return count > 0 ? 0 : -ENOENT;
}

static void put_port(struct collector *c, const char *device, const char *number)
{
    char folder[SYSFS_PATH_SIZE], path[SYSFS_PATH_SIZE], port[160], net[SYSFS_NAME_SIZE] = "";

    snprintf(port, sizeof(port), "%s/%s", device, number);
    sysfs_path(folder, DEVICES "/%s/ports/%s", device, number);
    put(c, FACT_PORT, port, port, DEVICES);
    put_attributes(c, port_files, ARRAY_COUNT(port_files), port, folder);
    put_gids(c, port, folder);
    put_keys(c, port, folder);
    put_file(c, FACT_PORT_TOS, port,
             sysfs_path(path, "/sys/kernel/config/rdma_cm/%s/ports/%s/default_roce_tos", device,
                        number));
    const int r = net_of(c, device, folder, net, path);
    if (r == 0) {
        put(c, FACT_PORT_NET, port, net, path);
        put_congestion(c, port, net);
        if (!sysfs_there(c->tree, sysfs_path(path, "/sys/class/net/%s/device", net))) {
            put_file(c, FACT_NET_MTU, net, /* net.c puts those of devices */
                     sysfs_path(path, "/sys/class/net/%s/mtu", net));
        }
    } else {
        put_error(c, FACT_PORT_NET, port, r, path);
    }
}

/* Puts 1 if an entry of the class belongs to the device, else 0. */
static void put_node(struct collector *c, enum fact_id id, const char *device, const char *class)
{
    char path[SYSFS_PATH_SIZE], of[64];
    struct names *nodes = names_of(c, class);
    int r = nodes->count < 0 && state_of(nodes->count) != FACT_ABSENT ? nodes->count : 0;
    int64_t found = 0;

    for (int i = 0; r >= 0 && i < nodes->count; i++) {
        if (strchr(nodes->name[i], '_') != NULL) { /* another file of the class */
            continue;
        }
        r = collect_line(c, sysfs_path(path, "%s/%s/ibdev", class, nodes->name[i]), of, sizeof(of));
        found += r >= 0 && strcmp(of, device) == 0;
    }
    free(nodes);
    sysfs_path(path, "%s/*/ibdev", class);
    if (r < 0) {
        put_error(c, id, device, r, path);
    } else {
        put_number(c, id, device, found > 0, path);
    }
}

static void put_device(struct collector *c, const char *device)
{
    char path[SYSFS_PATH_SIZE], address[SYSFS_NAME_SIZE];

    put(c, FACT_RDMA, device, device, DEVICES);
    put_attributes(c, device_files, ARRAY_COUNT(device_files), device,
                   sysfs_path(path, DEVICES "/%s", device));
    int r =
        collect_link(c, sysfs_path(path, DEVICES "/%s/device", device), address, sizeof(address));
    if (r < 0) {
        put_error(c, FACT_RDMA_PCI, device, r, path);
    } else {
        put(c, FACT_RDMA_PCI, device, address, path);
    }
    put_node(c, FACT_RDMA_VERBS, device, "/sys/class/infiniband_verbs");
    put_node(c, FACT_RDMA_MAD, device, "/sys/class/infiniband_mad");
    struct names *ports = names_of(c, sysfs_path(path, DEVICES "/%s/ports", device));
    for (int i = 0; i < ports->count; i++) {
        put_port(c, device, ports->name[i]);
    }
    if (ports->count <= 0) {
        put_error(c, FACT_PORT, device, ports->count < 0 ? ports->count : -EBADMSG, path);
    }
    free(ports);
}

void collect_rdma(struct collector *c)
{
    struct names *devices = names_of(c, DEVICES);

    for (int i = 0; i < devices->count; i++) {
        put_device(c, devices->name[i]);
    }
    if (devices->count <= 0) {
        const int r = devices->count < 0 ? devices->count : -ENOENT;
        put_error(c, FACT_RDMA, "", r, DEVICES);
        put_error(c, FACT_PORT, "", r, DEVICES);
    }
    free(devices);
}
