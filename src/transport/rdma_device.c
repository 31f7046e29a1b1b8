/* rdma_device.c: see rdma.h: devices that come and go, and the port that carries an address. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/descriptor.h"
#include "transport/rdma_private.h"

#define UNKNOWN  UINT64_MAX
#define LMC_MAX  7
#define AGAIN_MS 1000 /* between two looks for a device that is gone */
/* names to look at: of the devices beyond DEVICE_MAX some are named in a message */
#define NAMES_MAX 32

/* ---- messages for people ---- */

void rdma_trouble_add(struct rdma *r, const char *format, ...)
{
    char text[TROUBLE_SIZE];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&r->trouble_lock);
    uint32_t i = 0;
    while (i < r->trouble_count && strcmp(r->troubles[i], text) != 0) {
        i++;
    }
    if (i == r->trouble_count && i < TROUBLE_MAX) {
        memcpy(r->troubles[r->trouble_count++], text, sizeof(text));
    }
    pthread_mutex_unlock(&r->trouble_lock);
}

/* ---- devices ---- */

/* A process with one of these descriptors keeps the device's queue pairs and their memory alive: children of fork() must not. */
static void list_descriptors(const struct rdma_device *handle, void (*each)(int fd))
{
    each(rdma_device_command_fd(handle));
    each(rdma_device_fd(handle));
    each(rdma_device_armed_fd(handle));
}

static void close_handle(struct rdma_device *handle)
{
    list_descriptors(handle, descriptor_forget);
    (void)rdma_device_close(handle);
}

static int follow(struct rdma *r, uint32_t i, const struct rdma_device *handle)
{
    struct epoll_event events = {.events = EPOLLIN, .data.u32 = i};
    struct epoll_event completions = {.events = EPOLLIN, .data.u32 = i | RDMA_COMPLETIONS};

    return epoll_ctl(r->epoll, EPOLL_CTL_ADD, rdma_device_fd(handle), &events) < 0 ||
                   epoll_ctl(r->epoll, EPOLL_CTL_ADD, rdma_device_armed_fd(handle), &completions) <
                       0
               ? -errno
               : 0;
}

/* ---- devices that come and go ---- */

/* Another device of the same name has another folder. 0: there is none; UNKNOWN: it can't be read. */
static uint64_t folder_number(const struct rdma *r, const struct device *d)
{
    char path[512];
    struct stat is;

    snprintf(path, sizeof(path), "%s/class/infiniband/%s", r->sysfs, d->name);
    return stat(path, &is) == 0 ? (uint64_t)is.st_ino : errno == ENOENT ? 0 : UNKNOWN;
}

bool rdma_device_removed(const struct rdma *r, const struct device *d)
{
    const bool was = d->folder_number != 0 && d->folder_number != UNKNOWN;
    const uint64_t now = was && atomic_load(&d->gone) ? folder_number(r, d) : UNKNOWN;

    return now != UNKNOWN && now != d->folder_number;
}

/* Called without the lock, while nobody uses the device. */
static int open_device(struct rdma *r, uint32_t i, struct rdma_device **ret_handle,
                       uint32_t *ret_ports)
{
    struct device *d = &r->devices[i];
    struct rdma_limits limits;
    struct rdma_device *handle;
    int error = rdma_device_open(r->verbs, d->name, &handle);

    if (error < 0) {
        return error;
    }
    rdma_gpu_stop(r, d); /* if the former device is removed now, none of its data moves any more */
    d->folder_number = folder_number(r, d);
    list_descriptors(handle, descriptor_add);
    error = rdma_device_limits(handle, &limits);
    error = error == 0 ? follow(r, i, handle) : error;
    if (error < 0) {
        close_handle(handle);
        return error;
    }
    d->dmabuf = limits.dmabuf;
    *ret_handle = handle;
    *ret_ports = limits.ports;
    return 0;
}

/* A host with virtual functions has more devices than are used. */
static void tell_left_out(struct rdma *r, char (*names)[RDMA_NAME_SIZE], int count)
{
    const int named = count < NAMES_MAX ? count : NAMES_MAX;
    char text[TROUBLE_SIZE / 2] = "";
    size_t used = 0;
    int told = DEVICE_MAX;

    for (; told < named && used + strlen(names[told]) + 3 < sizeof(text); told++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
                                 told > DEVICE_MAX ? ", " : "", names[told]);
    }
    if (told < count) {
        snprintf(text + used, sizeof(text) - used, " and %d more", count - told);
    }
    rdma_trouble_add(r, "this host has %d RDMA devices, and the first %d are used: not %s", count,
                     DEVICE_MAX, text);
}

int rdma_devices_open(struct rdma *r, char *ret_why, size_t size)
{
    char names[NAMES_MAX][RDMA_NAME_SIZE];
    int count = rdma_verbs_devices(r->verbs, names, NAMES_MAX);
    uint32_t open = 0;

    if (count <= 0) {
        snprintf(ret_why, size,
                 count == 0 ? "this host has no RDMA device" : "RDMA devices can't be listed: %s",
                 strerror(-count));
        return count == 0 ? -ENODEV : count;
    }
    if (count > DEVICE_MAX) {
        tell_left_out(r, names, count);
        count = DEVICE_MAX;
    }
    for (int i = 0; i < count; i++) {
        memcpy(r->devices[r->device_count].name, names[i], RDMA_NAME_SIZE);
        struct device *d = &r->devices[r->device_count];
        pthread_mutex_init(&d->gpu.lock, NULL);
        const int error = open_device(r, r->device_count++, &d->handle, &d->ports);
        open += error == 0;
        if (error < 0) {
            snprintf(ret_why, size,
                     "%s can't be opened: %s; expected /dev/infiniband/uverbs* to be readable and "
                     "writable",
                     names[i], strerror(-error));
            rdma_trouble_add(r, "%s", ret_why);
        }
    }
    return open > 0 ? 0 : -ENODEV;
}

void rdma_devices_close(struct rdma *r)
{
    for (uint32_t i = 0; i < r->device_count; i++) {
        rdma_memory_forget(r, i);
        rdma_gpu_stop(r, &r->devices[i]);
        pthread_mutex_destroy(&r->devices[i].gpu.lock);
        if (r->devices[i].handle != NULL) {
            close_handle(r->devices[i].handle);
        }
    }
}

static void close_device(struct rdma *r, struct device *d, struct mono now)
{
    struct rdma_device *handle = d->handle;

    d->handle = NULL;
    d->again = mono_add(now, span_ms(AGAIN_MS));
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_lock(&r->memory_lock);
    rdma_memory_forget(r, (uint32_t)(d - r->devices));
    pthread_mutex_unlock(&r->memory_lock);
    rdma_gpu_stop(r, d);
    close_handle(handle);
    pthread_mutex_lock(&r->lock);
}

static void reopen_device(struct rdma *r, uint32_t i, struct mono now)
{
    struct device *d = &r->devices[i];
    struct rdma_device *handle;
    uint32_t ports;

    d->again = mono_add(now, span_ms(AGAIN_MS));
    pthread_mutex_unlock(&r->lock);
    const int error = open_device(r, i, &handle, &ports);
    pthread_mutex_lock(&r->lock);
    if (error == 0) {
        d->handle = handle;
        d->ports = ports;
        d->again = (struct mono){0};
        atomic_store(&d->gone, false);
        atomic_store(&r->memory_due, true);
        rdma_wake(r);
        rdma_trouble_add(r, "RDMA device %s is back", d->name);
    }
}

/* A device that is gone is closed when nobody uses it; then a new one is looked for. Under the lock, which it releases
 * meanwhile. */
void rdma_devices_look(struct rdma *r)
{
    for (uint32_t i = 0; i < r->device_count && !r->stop; i++) {
        struct device *d = &r->devices[i];
        const struct mono now = r->io->now(r->io);
        if (d->handle != NULL && atomic_load(&d->gone) && atomic_load(&d->users) == 0) {
            close_device(r, d, now);
        } else if (d->handle == NULL && d->again.ns != 0 && now.ns >= d->again.ns) {
            reopen_device(r, i, now);
        }
    }
}

/* ---- which port carries an address ---- */

/* True if the interface beside an InfiniBand port has that name (IPoIB). */
static bool has_interface(const struct rdma *r, const char *device, const char *interface)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/class/infiniband/%s/device/net/%s", r->sysfs, device,
             interface);
    return interface[0] != 0 && access(path, F_OK) == 0;
}

static uint16_t pkey_best(const struct device *d, uint32_t port)
{
    const int index = rdma_device_pkey_index(d->handle, port, 0);

    return (uint16_t)(index > 0 ? index : 0);
}

static bool take_port(struct queue_pair *q, uint32_t port, const struct rdma_port_now *now,
                      const uint8_t gid[16], int index)
{
    q->port = port;
    q->gid_index = (uint8_t)index;
    q->infiniband = now->infiniband;
    q->grh = now->grh_required;
    q->mtu = now->active_mtu;
    memcpy(q->own.gid, gid, 16);
    q->own.lid = now->infiniband ? now->lid : 0; /* the first LID: choose_lid() may change it */
    q->lmc = now->infiniband && now->lmc <= LMC_MAX ? now->lmc : 0;
    q->own.sl = q->config.sl != 0 ? q->config.sl - 1 : now->sl;
    for (q->own.mtu_shift = 8; 1u << (q->own.mtu_shift + 1) <= now->active_mtu;) {
        q->own.mtu_shift++;
    }
    return true;
}

/* For an Ethernet port: the address is one of its GIDs, of RoCE v2. */
static bool roce_port(struct rdma *r, struct queue_pair *q, struct device *d, uint32_t port,
                      const struct rdma_port_now *now)
{
    const uint8_t *ip = q->config.nic.ip;
    int index = rdma_device_gid_index(d->handle, port, ip, RDMA_GID_ROCE_V2);

    if (index == -EOPNOTSUPP) {
        rdma_trouble_add(r,
                         "libibverbs is too old to tell RoCE v2 from v1: expected rdma-core 32 or "
                         "newer; %s/%u gets TCP lanes",
                         d->name, port);
    } else if (index < 0 && rdma_device_gid_index(d->handle, port, ip, RDMA_GID_UNKNOWN) >= 0) {
        rdma_trouble_add(
            r,
            "%s/%u has its address as a GID of RoCE v1 only, which isn't routed: expected RoCE v2 "
            "(cma_roce_mode, or the driver's setting); it gets TCP lanes",
            d->name, port);
    }
    if (index < 0) {
        return false;
    }
    if (now->state != RDMA_PORT_ACTIVE) {
        return false;
    }
    q->pkey_index = pkey_best(d, port);
    return take_port(q, port, now, ip, index);
}

/* The partition is found by its value, because indices differ from port to port, and change. NCCL_IB_PKEY is an index
 * nevertheless. If nothing is set, the peer's partition comes before the best one. If no P_Key can be read, the first one is
 * taken blindly. */
static bool find_partition(struct rdma *r, struct queue_pair *q, const struct device *d,
                           uint32_t port)
{
    const bool by_index = r->partition == 0 && r->pkey_nth != 0;
    const bool open = r->partition == 0 && r->pkey_nth == 0;
    int index = open && q->config.pkey != 0
                    ? rdma_device_pkey_index(d->handle, port, q->config.pkey)
                    : -ENOENT;

    if (index < 0) {
        index = by_index ? r->pkey_nth - 1 : rdma_device_pkey_index(d->handle, port, r->partition);
    }
    if (index >= 0 && rdma_device_pkey(d->handle, port, (uint32_t)index, &q->own.pkey) == 0) {
        q->pkey_index = (uint16_t)index;
        return true;
    }
    if (open) {
        q->own.pkey = q->pkey_index = 0;
        return true;
    }
    if (by_index) {
        rdma_trouble_add(r,
                         "%s/%u has no P_Key at index %d (NCCL_IB_PKEY): expected the partition in "
                         "FOLIOT_IB_PKEY; lanes go over TCP",
                         d->name, port, index);
    } else {
        rdma_trouble_add(r,
                         "%s/%u is no member of partition 0x%04x (FOLIOT_IB_PKEY): expected one of "
                         "the P_Keys in its pkeys folder (/sys/class/infiniband), or the subnet "
                         "manager to make it a member; lanes go over TCP",
                         d->name, port, r->partition);
    }
    return false;
}

static bool infiniband_port(struct rdma *r, struct queue_pair *q, struct device *d, uint32_t port,
                            const struct rdma_port_now *now)
{
    uint8_t gid[16];

    if (strcmp(q->device_name, d->name) != 0 && !has_interface(r, d->name, q->device_name)) {
        return false;
    }
    if (now->state != RDMA_PORT_ACTIVE || now->lid == 0) {
        rdma_trouble_add(
            r, "%s/%u is %s: expected an active port with a LID; does a subnet manager run?",
            d->name, port, rdma_port_state_name(now->state));
        return false;
    }
    return rdma_device_gid(d->handle, port, 0, gid) == 0 && find_partition(r, q, d, port) &&
           take_port(q, port, now, gid, 0);
}

/* The device belongs to that interface, but no port has its address. Any other device belongs to another NIC. */
static void tell_no_gid(struct rdma *r, const struct queue_pair *q, const struct device *d)
{
    if (has_interface(r, d->name, q->device_name)) {
        rdma_trouble_add(r,
                         "%s has no GID with the address of %s: expected one of RoCE v2 (is the "
                         "address set, and the interface up?); lanes go over TCP",
                         d->name, q->device_name);
    }
}

static bool find_on(struct rdma *r, struct queue_pair *q, struct device *d, uint32_t ports)
{
    bool roce = false, known = false;

    for (uint32_t port = 1; port <= ports; port++) {
        struct rdma_port_now now;
        if (rdma_device_port(d->handle, port, &now) < 0) {
            continue;
        }
        if (now.infiniband ? infiniband_port(r, q, d, port, &now)
                           : roce_port(r, q, d, port, &now)) {
            return true;
        }
        roce = roce || !now.infiniband;
        known = known ||
                rdma_device_gid_index(d->handle, port, q->config.nic.ip, RDMA_GID_UNKNOWN) >= 0;
    }
    if (roce && !known) {
        tell_no_gid(r, q, d);
    }
    return false;
}

/* A subnet has a path to each LID of a port. The peer's NIC sends to the LID that it is given, and our packets must have that LID
 * as their source: packets with another one are dropped there. Under the lock. */
static void choose_lid(const struct rdma *r, struct queue_pair *q)
{
    const uint32_t lids = 1u << q->lmc, first = q->config.path & (lids - 1);
    uint32_t users[1u << LMC_MAX] = {0}, best = first;

    for (uint32_t i = 0; i < PROCESS_QUEUE_PAIRS_MAX; i++) {
        const struct queue_pair *o = r->slots[i];
        if (o != NULL && o != q && o->device == q->device && o->port == q->port &&
            o->state != QP_FAILED && io_address_same_ip(&o->config.peer, &q->config.peer)) {
            users[o->path_bits & (lids - 1)]++;
        }
    }
    for (uint32_t i = 0; !q->config.luck && i < lids; i++) {
        const uint32_t lid = (first + i) & (lids - 1);
        best = users[lid] < users[best] ? lid : best;
    }
    q->path_bits = (uint8_t)best;
    q->own.lid = (uint16_t)(q->own.lid + best);
}

int rdma_port_find(struct rdma *r, struct queue_pair *q)
{
    for (uint32_t i = 0; i < r->device_count; i++) {
        struct device *d = &r->devices[i];
        if (d->handle == NULL || atomic_load(&d->gone)) {
            continue;
        }
        const uint32_t ports = d->ports, events = d->port_events;
        atomic_fetch_add(&d->users, 1);
        pthread_mutex_unlock(&r->lock);
        const bool found = find_on(r, q, d, ports);
        pthread_mutex_lock(&r->lock);
        if (found) {
            q->device = d;
            if (q->infiniband) {
                choose_lid(r, q);
            }
            rdma_port_seen(r, q, events);
            return 0;
        }
        atomic_fetch_sub(&d->users, 1);
    }
    return -ENODEV;
}
