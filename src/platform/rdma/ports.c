/* ports.c: see ports.h. */
#include "platform/rdma/ports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/rdma/internal.h"

#define DEVICES        "/sys/class/infiniband"
#define GID_TABLE_MAX  1024 /* entries read per port */
#define PKEY_TABLE_MAX 1024

/* Reads a small number of a port; returns `none` if there is none. */
static int64_t number(const struct sysfs *s, const char *folder, const char *file, int64_t none)
{
    char path[SYSFS_PATH_SIZE];
    int64_t value;

    return sysfs_number(s, sysfs_path(path, "%s/%s", folder, file), &value) == 0 ? value : none;
}

static void text(const struct sysfs *s, const char *folder, const char *file, char *ret,
                 size_t size)
{
    char path[SYSFS_PATH_SIZE];

    if (sysfs_text(s, sysfs_path(path, "%s/%s", folder, file), ret, size) < 0) {
        ret[0] = 0;
    }
}

/* Reads `size` bytes of hexadecimal digits, with colons between groups of four digits. */
static bool read_hex(const char *from, uint8_t *ret, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned byte;
        int end = 0;
        if (i > 0 && i % 2 == 0 && *from++ != ':') {
            return false;
        }
        if (sscanf(from, "%2x%n", &byte, &end) != 1 || end != 2) {
            return false;
        }
        ret[i] = (uint8_t)byte;
        from += 2;
    }
    return *from == 0;
}

static uint64_t read_guid(const struct sysfs *s, const char *device)
{
    char line[64];
    uint8_t bytes[8];
    uint64_t guid = 0;

    text(s, device, "node_guid", line, sizeof(line));
    if (!read_hex(line, bytes, sizeof(bytes))) {
        return 0;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        guid = guid << 8 | bytes[i];
    }
    return guid;
}

/* Reads lines like "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)". */
static void read_rate(const struct sysfs *s, const char *folder, struct rdma_port *port)
{
    char line[64];
    double gigabits = 0;
    unsigned width = 0;

    text(s, folder, "rate", line, sizeof(line));
    if (sscanf(line, "%lf Gb/sec (%uX", &gigabits, &width) >= 1 && gigabits > 0 && gigabits < 1e6) {
        port->rate_mbps = (uint32_t)(gigabits * 1000 + 0.5);
        port->width = width;
    }
}

static enum rdma_gid_type gid_type(const char *word, uint32_t layer)
{
    return strcmp(word, "RoCE v2") == 0      ? RDMA_GID_ROCE_V2
           : strcmp(word, "IB/RoCE v1") != 0 ? RDMA_GID_UNKNOWN
           : layer == RDMA_LAYER_INFINIBAND  ? RDMA_GID_IB
           : layer == RDMA_LAYER_ETHERNET    ? RDMA_GID_ROCE_V1
                                             : RDMA_GID_UNKNOWN;
}

/* An empty entry is all zero. On Ethernet its type can't be read then (EINVAL). */
static void read_gids(const struct sysfs *s, const char *folder, struct rdma_port *port)
{
    static const uint8_t none[16];
    char path[SYSFS_PATH_SIZE], line[64];
    int r = 0;

    for (int i = 0; r >= 0 && i < GID_TABLE_MAX; i++) {
        struct rdma_gid gid = {.index = (uint16_t)i};
        r = sysfs_text(s, sysfs_path(path, "%s/gids/%d", folder, i), line, sizeof(line));
        if (r < 0 || !read_hex(line, gid.gid, sizeof(gid.gid)) ||
            memcmp(gid.gid, none, sizeof(none)) == 0) {
            continue;
        }
        if (port->gid_count == RDMA_GID_MAX) {
            port->gids_left_out++;
            continue;
        }
        sysfs_path(path, "%s/gid_attrs/types/%d", folder, i);
        gid.type =
            (uint8_t)(sysfs_text(s, path, line, sizeof(line)) < 0 ? RDMA_GID_UNKNOWN
                                                                  : gid_type(line, port->layer));
        sysfs_path(path, "%s/gid_attrs/ndevs/%d", folder, i);
        if (sysfs_text(s, path, gid.if_name, sizeof(gid.if_name)) < 0) {
            gid.if_name[0] = 0;
        }
        port->gids[port->gid_count++] = gid;
    }
}

static void read_pkeys(const struct sysfs *s, const char *folder, struct rdma_port *port)
{
    char file[32];

    for (int i = 0; i < RDMA_PKEY_MAX; i++) {
        snprintf(file, sizeof(file), "pkeys/%d", i);
        const int64_t key = number(s, folder, file, -1);
        if (key < 0) {
            break;
        }
        port->pkeys[port->pkey_count++] = (uint16_t)key;
    }
}

/* RoCE: the interface of a GID. InfiniBand: the interface of the device whose dev_port is the port's number - 1. */
static void find_interface(const struct sysfs *s, struct rdma_port *port)
{
    char names[8][SYSFS_NAME_SIZE], path[SYSFS_PATH_SIZE];
    int64_t mtu;

    for (uint32_t i = 0; port->if_name[0] == 0 && i < port->gid_count; i++) {
        memcpy(port->if_name, port->gids[i].if_name, sizeof(port->if_name));
    }
    int count = sysfs_names(s, sysfs_path(path, DEVICES "/%s/device/net", port->device), names, 8);
    for (int i = 0; port->if_name[0] == 0 && i < count; i++) {
        sysfs_path(path, DEVICES "/%s/device/net/%s", port->device, names[i]);
        if (number(s, path, "dev_port", 0) == port->port - 1 && strlen(names[i]) < IF_NAMESIZE) {
            memcpy(port->if_name, names[i], strlen(names[i]) + 1);
        }
    }
    if (port->if_name[0] != 0 &&
        sysfs_number(s, sysfs_path(path, "/sys/class/net/%s/mtu", port->if_name), &mtu) == 0 &&
        mtu > 0 && mtu <= UINT32_MAX) {
        port->mtu = (uint32_t)mtu;
    }
}

bool rdma_port_read(const struct sysfs *s, const struct rdma_port_name *name, struct rdma_port *ret)
{
    char top[SYSFS_PATH_SIZE], folder[SYSFS_PATH_SIZE], path[SYSFS_PATH_SIZE], layer[32];
    struct rdma_port port = {.port = name->port};

    if (sysfs_path(top, DEVICES "/%s", name->device) == NULL ||
        sysfs_path(folder, "%s/ports/%u", top, name->port) == NULL) {
        return false;
    }
    memcpy(port.device, name->device, sizeof(port.device));
    text(s, folder, "link_layer", layer, sizeof(layer));
    port.layer = strcmp(layer, "InfiniBand") == 0 ? RDMA_LAYER_INFINIBAND
                 : strcmp(layer, "Ethernet") == 0 ? RDMA_LAYER_ETHERNET
                                                  : RDMA_LAYER_UNKNOWN;
    port.node_guid = read_guid(s, top);
    text(s, top, "fw_ver", port.firmware, sizeof(port.firmware));
    text(s, top, "board_id", port.board, sizeof(port.board));
    port.virtual_function = sysfs_there(s, sysfs_path(path, "%s/device/physfn", top));
    /* state and phys_state are like "4: ACTIVE": only the number is used */
    text(s, folder, "state", path, sizeof(path));
    port.state = (uint32_t)strtoul(path, NULL, 10);
    text(s, folder, "phys_state", path, sizeof(path));
    port.phys_state = (uint32_t)strtoul(path, NULL, 10);
    read_rate(s, folder, &port);
    port.lid = (uint16_t)number(s, folder, "lid", 0);
    port.sm_lid = (uint16_t)number(s, folder, "sm_lid", 0);
    port.lmc = (uint8_t)number(s, folder, "lid_mask_count", 0);
    port.sm_sl = (uint8_t)number(s, folder, "sm_sl", 0);
    read_gids(s, folder, &port);
    read_pkeys(s, folder, &port);
    find_interface(s, &port);
    rdma_counters_read(s, folder, port.counters);
    *ret = port;
    return sysfs_there(s, folder);
}

int rdma_port_names(const struct sysfs *s, struct rdma_port_name *ret_names, int capacity)
{
    char devices[RDMA_PORT_MAX][SYSFS_NAME_SIZE], numbers[RDMA_PORT_MAX][SYSFS_NAME_SIZE],
        path[SYSFS_PATH_SIZE];
    const int device_count = sysfs_names(s, DEVICES, devices, RDMA_PORT_MAX);
    int count = 0;

    if (device_count < 0) {
        return device_count == -ENOENT ? 0 : device_count;
    }
    for (int i = 0; i < device_count; i++) {
        const int port_count = sysfs_names(s, sysfs_path(path, DEVICES "/%s/ports", devices[i]),
                                           numbers, RDMA_PORT_MAX);
        for (int k = 0; k < port_count; k++) {
            struct rdma_port_name name = {.port = (uint32_t)strtoul(numbers[k], NULL, 10)};
            if (count == capacity) {
                return -E2BIG;
            }
            memcpy(name.device, devices[i], sizeof(name.device));
            ret_names[count++] = name;
        }
    }
    return count;
}

int rdma_ports_read(const struct sysfs *s, struct rdma_port *ret_ports, int capacity)
{
    struct rdma_port_name names[RDMA_PORT_MAX];
    const int named =
        rdma_port_names(s, names, capacity < RDMA_PORT_MAX ? capacity : RDMA_PORT_MAX);
    int count = 0;

    for (int i = 0; i < named; i++) {
        count += rdma_port_read(s, &names[i], &ret_ports[count]);
    }
    return named < 0 ? named : count;
}

const char *rdma_port_state_name(uint32_t state)
{
    static const char *const names[] = {"unknown", "down",   "init",
                                        "armed",   "active", "active (deferred)"};

    return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

const char *rdma_gid_type_name(uint32_t type)
{
    static const char *const names[] = {"unknown", "InfiniBand", "RoCE v1", "RoCE v2"};

    return type < sizeof(names) / sizeof(names[0]) ? names[type] : "unknown";
}

bool rdma_gid_is_link_local(const struct rdma_gid *gid)
{
    return gid->gid[0] == 0xfe && (gid->gid[1] & 0xc0) == 0x80;
}

bool rdma_gid_ipv4(const struct rdma_gid *gid, uint8_t ret_ip[4])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (memcmp(gid->gid, mapped, sizeof(mapped)) != 0) {
        return false;
    }
    memcpy(ret_ip, gid->gid + 12, 4);
    return true;
}

/* Rates a GID: higher is better; 0: not usable. */
static int worth(const struct rdma_port *port, const struct rdma_gid *gid, const uint8_t *ip)
{
    uint8_t v4[4];

    if (port->layer == RDMA_LAYER_INFINIBAND) {
        return 1;
    }
    if (gid->type != RDMA_GID_ROCE_V2 || rdma_gid_is_link_local(gid)) {
        return 0;
    }
    return ip != NULL               ? memcmp(gid->gid, ip, sizeof(gid->gid)) == 0
           : rdma_gid_ipv4(gid, v4) ? 2
                                    : 1;
}

const struct rdma_gid *rdma_gid_choose(const struct rdma_port *port, const uint8_t *ip)
{
    const struct rdma_gid *best = NULL;
    int most = 0;

    for (uint32_t i = 0; i < port->gid_count; i++) {
        const int w = worth(port, &port->gids[i], ip);
        if (w > most) {
            most = w;
            best = &port->gids[i];
        }
    }
    return best;
}
