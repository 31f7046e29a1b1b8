/* fake_record.c: devices of the fake library from a recording of `foliot selftest rdma --record`. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_internal.h"

static enum ibv_mtu mtu_number(unsigned bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && 128u << (mtu + 1) <= bytes) {
        mtu++;
    }
    return mtu;
}

static struct recorded
    recordings[DEVICES]; /* static: nothing else points to them when the library is closed */

static struct device *device_named(const char *name)
{
    for (int i = 0; i < device_count; i++) {
        if (strcmp(devices[i].device.name, name) == 0) {
            return &devices[i];
        }
    }
    if (device_count == DEVICES) {
        return NULL;
    }
    struct device *d = &devices[device_count];
    *d = (struct device){.recorded = &recordings[device_count]};
    snprintf(d->device.name, sizeof(d->device.name), "%s", name);
    device_count++;
    return d;
}

/* The number after that word; 0 without the word. */
static long long value(const char *text, const char *word)
{
    char wanted[64];
    const char *at;

    snprintf(wanted, sizeof(wanted), "%s ", word);
    at = strstr(text, wanted);
    while (at != NULL && at != text && at[-1] != ' ') { /* the end of another word */
        at = strstr(at + 1, wanted);
    }
    return at != NULL ? strtoll(at + strlen(wanted), NULL, 0) : 0;
}

static void take_limits(struct recorded *r, const char *text)
{
    r->attr = (struct ibv_device_attr){.max_qp = (int)value(text, "qp"),
                                       .max_qp_wr = (int)value(text, "sends"),
                                       .max_sge = (int)value(text, "sge"),
                                       .max_cq = (int)value(text, "cq"),
                                       .max_cqe = (int)value(text, "cqe"),
                                       .max_mr = (int)value(text, "memories"),
                                       .phys_port_cnt = (uint8_t)value(text, "ports")};
    r->dmabuf = value(text, "dmabuf") != 0;
    r->stamps = value(text, "stamps") != 0;
    r->clock_khz = (uint64_t)value(text, "clock_khz");
}

static void take_port(struct recorded_port *p, const char *text)
{
    p->is = true;
    p->attr.state = (enum ibv_port_state)value(text, "state");
    p->attr.active_mtu = mtu_number((unsigned)value(text, "active_mtu"));
    p->attr.max_mtu = mtu_number((unsigned)value(text, "mtu"));
    p->attr.lmc = (uint8_t)value(text, "lmc");
    p->attr.sm_sl = (uint8_t)value(text, "sl");
    p->attr.gid_tbl_len = (int)value(text, "gids");
    p->attr.pkey_tbl_len = (uint16_t)value(text, "pkeys");
    p->attr.link_layer =
        value(text, "infiniband") != 0 ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
    p->attr.flags =
        value(text, "grh") != 0 && value(text, "infiniband") != 0 ? IBV_QPF_GRH_REQUIRED : 0;
}

static void take_gid(struct recorded_port *p, unsigned port, unsigned index, const char *text)
{
    static const struct {
        const char *word;
        uint32_t type;
    } types[] = {{"InfiniBand ", IBV_GID_TYPE_IB},
                 {"RoCE v1 ", IBV_GID_TYPE_ROCE_V1},
                 {"RoCE v2 ", IBV_GID_TYPE_ROCE_V2}};
    struct ibv_gid_entry e = {.gid_index = index, .port_num = port};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        const size_t length = strlen(types[i].word);
        if (strncmp(text, types[i].word, length) == 0 && p->gid_count < RECORDED_GIDS &&
            inet_pton(AF_INET6, text + length, e.gid.raw) == 1) {
            e.gid_type = types[i].type;
            p->gids[p->gid_count++] = e;
        }
    }
}

/* The most frequent status of requests to a peer in error: neither success nor a flush. */
static int dead_status(const char *text)
{
    int status, used, most = 0;
    unsigned count, most_count = 0;

    for (; sscanf(text, "%d:%u %n", &status, &count, &used) == 2; text += used) {
        if (status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR && count > most_count) {
            most = status;
            most_count = count;
        }
    }
    return most;
}

static void take_fence(const char *what, const char *text)
{
    if (strcmp(what, "rounds") == 0) {
        const bool late = value(text, "moved_after_marker") > 0;
        control->lies = late ? 5 : 0;
        control->after_return = value(text, "moved_after_return") > 0;
        control->lag = late || control->after_return ? 4 : 0;
        control->disorder = value(text, "out_of_order") > 0;
        control->no_flush =
            value(text, "no_marker") > 0 && value(text, "no_marker") == value(text, "made");
    } else if (strcmp(what, "ns") == 0) {
        control->connect_ms = (int)(value(text, "connect_p50") / 2 / 1000000);
        control->marker_us = (int)(value(text, "marker_p50") / 1000);
    } else if (strcmp(what, "sends") == 0) {
        control->dead_status = dead_status(text);
    }
}

static void take_line(const char *path, const char *text)
{
    char name[IBV_SYSFS_NAME_MAX], rest[64];
    unsigned port, index;

    if (sscanf(path, "/verbs/%63[^/]/%63[^\t]", name, rest) != 2) {
        return;
    }
    struct device *d = device_named(name);
    if (d == NULL) {
        return;
    }
    if (strcmp(rest, "limits") == 0) {
        take_limits(d->recorded, text);
        return;
    }
    char what[64] = "";
    if (sscanf(rest, "ports/%u/%63s", &port, what) != 2 || port == 0 || port > RECORDED_PORTS) {
        return;
    }
    struct recorded_port *p = &d->recorded->ports[port - 1];
    if (strcmp(what, "now") == 0) {
        take_port(p, text);
        d->roce = d->roce || p->attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    } else if (strcmp(what, "lid") == 0) {
        p->attr.lid = (uint16_t)strtoul(text, NULL, 0);
    } else if (strcmp(what, "sm_lid") == 0) {
        p->attr.sm_lid = (uint16_t)strtoul(text, NULL, 0);
    } else if (sscanf(what, "gids/%u", &index) == 1) {
        take_gid(p, port, index, text);
    } else if (strncmp(what, "fence/", 6) == 0) {
        take_fence(what + 6, text);
    }
}

void record_devices(const char *file)
{
    FILE *in = fopen(file, "re");
    char line[4096];

    while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
        char *tab = strchr(line, '\t');
        line[strcspn(line, "\n")] = 0;
        if (tab != NULL) {
            *tab = 0;
            take_line(line, tab + 1);
        }
    }
    if (in == NULL) {
        abort(); /* the test has no file of its own */
    }
    fclose(in);
}

const struct recorded_port *record_port(const struct device *d, int port)
{
    const struct recorded_port *p =
        port >= 1 && port <= RECORDED_PORTS ? &d->recorded->ports[port - 1] : NULL;

    return p != NULL && p->is ? p : NULL;
}
