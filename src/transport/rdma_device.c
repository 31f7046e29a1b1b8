/* rdma_device.c: see rdma.h: devices and ports, what happens to them, and completions that were armed. */
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

#define WAKE        UINT32_MAX
#define COMPLETIONS 0x100u /* of a device's epoll data: its armed queues, else its events */
#define UNKNOWN     UINT64_MAX
#define AGAIN_MS    1000 /* between two looks for a device that went */
#define NAMES_MAX   32   /* looked at: of those beyond DEVICE_MAX some are named */

/* ---- what people are told ---- */

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

void rdma_tell(struct queue_pair *q)
{
    struct rdma *r = q->rdma;

    if (!q->armed || q->closing || r->stop) {
        return;
    }
    q->armed = false;
    for (uint32_t i = 0; i < r->event_count; i++) {
        if (r->events[i].tag == q->tag) {
            return;
        }
    }
    ASSERT(r->event_count < PROCESS_QUEUE_PAIRS_MAX); /* one a tag, and closed ones are taken out */
    r->events[r->event_count++] = (struct io_event){.tag = q->tag, .events = IO_IN};
    r->io->kick(r->io);
}

/* ---- devices ---- */

/* Whoever holds one of these keeps the device's queue pairs and their memory: children of fork() must not. */
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
    struct epoll_event completions = {.events = EPOLLIN, .data.u32 = i | COMPLETIONS};

    return epoll_ctl(r->epoll, EPOLL_CTL_ADD, rdma_device_fd(handle), &events) < 0 ||
                   epoll_ctl(r->epoll, EPOLL_CTL_ADD, rdma_device_armed_fd(handle), &completions) <
                       0
               ? -errno
               : 0;
}

/* One that is gone is readable for ever. */
static void unfollow(struct rdma *r, const struct rdma_device *handle)
{
    (void)epoll_ctl(r->epoll, EPOLL_CTL_DEL, rdma_device_fd(handle), NULL);
    (void)epoll_ctl(r->epoll, EPOLL_CTL_DEL, rdma_device_armed_fd(handle), NULL);
}

/* ---- memory ---- */

static void forget(struct memory *m, uint32_t device)
{
    struct rdma_memory *handle = m->handles[device];

    m->handles[device] = NULL;
    __atomic_store_n(&m->keys.local[device], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&m->keys.remote[device], 0, __ATOMIC_RELAXED);
    if (handle != NULL) {
        (void)rdma_memory_remove(handle);
    }
}

void rdma_memory_forget(struct rdma *r, uint32_t device)
{
    for (struct memory *m = device < IO_RDMA_DEVICES ? r->memories : NULL; m != NULL; m = m->next) {
        forget(m, device);
    }
}

/* The device stays while it is held. False: there is none. */
static bool hold(struct rdma *r, uint32_t i, bool gone_too)
{
    struct device *d = &r->devices[i];

    pthread_mutex_lock(&r->lock);
    const bool is =
        i < r->device_count && d->handle != NULL && (gone_too || !atomic_load(&d->gone));
    if (is) {
        atomic_fetch_add(&d->users, 1);
    }
    pthread_mutex_unlock(&r->lock);
    return is;
}

static void let_go(struct rdma *r, uint32_t held)
{
    for (uint32_t i = 0; i < IO_RDMA_DEVICES; i++) {
        if (held >> i & 1) {
            atomic_fetch_sub(&r->devices[i].users, 1);
        }
    }
}

static int add_on(struct rdma *r, uint32_t device, const struct io_rdma_range *range,
                  struct rdma_memory **ret_handle)
{
    struct device *d = &r->devices[device];

    if (!range->gpu) {
        return rdma_memory_add(d->handle, range->data, range->size, true, ret_handle);
    }
    const int error = d->dmabuf ? rdma_memory_add_gpu(d->handle, range->fd, range->offset,
                                                      range->data, range->size, ret_handle)
                                : -EOPNOTSUPP;
    if (error == 0) {
        rdma_gpu_start(r, d);
    }
    return error;
}

/* The library is called under no lock: a driver that doesn't return stops nobody else. */
int rdma_memory_new(struct io_rdma *rdma, const struct io_rdma_range *range,
                    struct io_rdma_memory **ret_memory)
{
    struct rdma *r = rdma->driver;
    struct memory *m = calloc(1, sizeof(*m));
    uint32_t held = 0;
    int error = -ENODEV;

    if (m == NULL) {
        return -ENOMEM;
    }
    m->gpu = range->gpu;
    m->data = range->data;
    m->size = range->size;
    for (uint32_t i = 0; i < IO_RDMA_DEVICES; i++) {
        if (!hold(r, i, false)) {
            continue;
        }
        held |= 1u << i;
        const int one = add_on(r, i, range, &m->handles[i]);
        if (one == 0) {
            m->keys.local[i] = rdma_memory_key(m->handles[i], false);
            m->keys.remote[i] = rdma_memory_key(m->handles[i], true);
        }
        error = error != 0 ? one : 0;
    }
    if (error == 0) {
        pthread_mutex_lock(&r->memory_lock);
        m->next = r->memories;
        m->at = &r->memories;
        if (m->next != NULL) {
            m->next->at = &m->next;
        }
        r->memories = m;
        pthread_mutex_unlock(&r->memory_lock);
    }
    let_go(r, held); /* a device that went meanwhile finds it in the list */
    if (error < 0) {
        free(m);
        return error;
    }
    *ret_memory = &m->keys;
    return 0;
}

void rdma_memory_free(struct io_rdma *rdma, struct io_rdma_memory *memory)
{
    struct rdma *r = rdma->driver;
    struct memory *m = (struct memory *)(void *)memory;
    uint32_t held = 0;

    pthread_mutex_lock(&r->memory_lock);
    *m->at = m->next;
    if (m->next != NULL) {
        m->next->at = m->at;
    }
    for (uint32_t i = 0; i < IO_RDMA_DEVICES; i++) {
        if (hold(r, i, true)) {
            held |= 1u << i;
        } else { /* it is being closed */
            forget(m, i);
        }
    }
    pthread_mutex_unlock(&r->memory_lock);
    for (uint32_t i = 0; i < IO_RDMA_DEVICES; i++) {
        if (m->gpu && (held >> i & 1) != 0) {
            rdma_gpu_drain(&r->devices[i]);
        }
        forget(m, i);
    }
    let_go(r, held);
    free(m);
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

/* Without the lock, and nobody uses it. */
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
    rdma_gpu_stop(r, d); /* if the one before it is removed now, nothing of that moves any more */
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

/* A host with virtual functions has more than are used. */
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
        rdma_trouble_add(r, "RDMA device %s is back", d->name);
    }
}

/* A device that is gone is closed when nobody uses it, then looked for. Under the lock, which it lets go meanwhile. */
static void look_at_gone(struct rdma *r)
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

/* The interface beside an InfiniBand port has that name (IPoIB). */
static bool has_interface(const struct rdma *r, const char *device, const char *interface)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/class/infiniband/%s/device/net/%s", r->sysfs, device,
             interface);
    return interface[0] != 0 && access(path, F_OK) == 0;
}

static bool take_port(struct queue_pair *q, uint32_t port, const struct rdma_port_now *now,
                      const uint8_t gid[16], int index)
{
    const uint32_t paths = now->infiniband ? 1u << now->lmc : 1;

    q->port = port;
    q->gid_index = (uint8_t)index;
    q->infiniband = now->infiniband;
    q->grh = now->grh_required;
    q->mtu = now->active_mtu;
    q->path_bits = (uint8_t)(q->config.path % paths);
    memcpy(q->own.gid, gid, 16);
    /* the peer sends to the LID of this path: the way back is chosen, too */
    q->own.lid = now->infiniband ? (uint16_t)(now->lid + (q->config.path >> 8) % paths) : 0;
    q->own.sl = now->sl;
    for (q->own.mtu_shift = 8; 1u << (q->own.mtu_shift + 1) <= now->active_mtu;) {
        q->own.mtu_shift++;
    }
    return true;
}

/* An Ethernet port: the address is one of its GIDs, of RoCE v2. */
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
    return take_port(q, port, now, ip, index);
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
    return rdma_device_gid(d->handle, port, 0, gid) == 0 && take_port(q, port, now, gid, 0);
}

/* The device lies beside that interface, and no port has its address: any other device is some other NIC's. */
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

int rdma_port_find(struct rdma *r, struct queue_pair *q)
{
    for (uint32_t i = 0; i < r->device_count; i++) {
        struct device *d = &r->devices[i];
        if (d->handle == NULL || atomic_load(&d->gone)) {
            continue;
        }
        const uint32_t ports = d->ports;
        atomic_fetch_add(&d->users, 1);
        pthread_mutex_unlock(&r->lock);
        const bool found = find_on(r, q, d, ports);
        pthread_mutex_lock(&r->lock);
        if (found) {
            q->device = d;
            return 0;
        }
        atomic_fetch_sub(&d->users, 1);
    }
    return -ENODEV;
}

/* ---- the watching thread ---- */

static void lose(struct rdma *r, struct device *d)
{
    if (atomic_exchange(&d->gone, true)) {
        return;
    }
    unfollow(r, d->handle);
    rdma_trouble_add(r, "RDMA device %s is gone: its lanes are made anew elsewhere", d->name);
    for (uint32_t i = 0; i < PROCESS_QUEUE_PAIRS_MAX; i++) {
        if (r->slots[i] != NULL && r->slots[i]->device == d) {
            rdma_tell(r->slots[i]);
        }
    }
}

static void on_completions(struct rdma *r, struct device *d)
{
    uint64_t tag;
    int error = -EAGAIN;

    while (d->handle != NULL && (error = rdma_device_armed(d->handle, &tag)) == 0) {
        struct queue_pair *q = r->slots[(uint32_t)tag % PROCESS_QUEUE_PAIRS_MAX];
        if (q != NULL && q->generation == (uint32_t)(tag >> 32)) {
            rdma_tell(q);
        }
    }
    if (error != -EAGAIN) {
        lose(r, d);
    }
}

static void on_event(struct rdma *r, struct device *d)
{
    struct rdma_event event;
    int error = -EAGAIN;

    while (d->handle != NULL && (error = rdma_device_event(d->handle, &event)) == 0) {
        if (event.kind == RDMA_EVENT_DEVICE_GONE) {
            lose(r, d);
        }
        for (uint32_t i = 0; event.kind == RDMA_EVENT_QP && i < PROCESS_QUEUE_PAIRS_MAX; i++) {
            struct queue_pair *q = r->slots[i];
            if (q != NULL && q->device == d && q->own.qp == event.qp) {
                atomic_store(&q->over, true);
                rdma_tell(q);
            }
        }
    }
    if (error != -EAGAIN) {
        lose(r, d);
    }
}

void *rdma_watch(void *rdma)
{
    struct rdma *r = rdma;
    struct epoll_event ready[2 * DEVICE_MAX];
    bool stop = false;

    while (!stop) {
        const int count = epoll_wait(r->epoll, ready, 2 * DEVICE_MAX, AGAIN_MS);
        pthread_mutex_lock(&r->lock);
        for (int i = 0; i < count; i++) {
            if (ready[i].data.u32 == WAKE) {
                continue;
            }
            struct device *d = &r->devices[ready[i].data.u32 & 0xff];
            if ((ready[i].data.u32 & COMPLETIONS) != 0) {
                on_completions(r, d);
            } else {
                on_event(r, d);
            }
        }
        look_at_gone(r);
        stop = r->stop;
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}
