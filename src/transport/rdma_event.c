/* rdma_event.c: see rdma.h: events of devices: completions that were armed, ports that go down, the end of a queue pair, of a
 * completion queue, of a device. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "transport/rdma_private.h"

#define WAKE    UINT32_MAX
#define LOOK_MS 1000 /* between two looks for a device that is gone */

/* ---- events for the caller ---- */

static void tell(struct rdma *r, uint64_t tag)
{
    for (uint32_t i = 0; i < r->event_count; i++) {
        if (r->events[i].tag == tag) {
            return;
        }
    }
    /* at most one for each tag, and those of closed ones are removed */
    ASSERT(r->event_count <= PROCESS_QUEUE_PAIRS_MAX);
    r->events[r->event_count++] = (struct io_event){.tag = tag, .events = IO_IN};
    r->io->kick(r->io);
}

void rdma_tell(struct queue_pair *q)
{
    if (q->armed && !q->closing && !q->rdma->stop) {
        q->armed = false;
        tell(q->rdma, q->tag);
    }
}

/* ---- ports ---- */

static struct nic_port *port_of(struct rdma *r, const uint8_t ip[16], const char *name)
{
    uint32_t i = 0;

    while (i < r->port_count &&
           (memcmp(r->ports[i].ip, ip, 16) != 0 || strcmp(r->ports[i].name, name) != 0)) {
        i++;
    }
    return i < r->port_count ? &r->ports[i] : NULL;
}

static void set_down(struct rdma *r, struct nic_port *p, bool down)
{
    if (p->down == down) {
        return;
    }
    p->down = down;
    p->downs += down;
    if (!r->stop) {
        tell(r, IO_TAG_LINKS);
    }
}

/* port 0: all of them. */
static void set_port(struct rdma *r, struct device *d, uint32_t port, bool down)
{
    for (uint32_t i = 0; i < PORT_COUNT; i++) {
        d->down[i] = port == 0 || i == port ? down : d->down[i];
    }
    for (uint32_t i = 0; i < r->port_count; i++) {
        if (r->ports[i].device == d && (port == 0 || r->ports[i].port == port)) {
            set_down(r, &r->ports[i], down);
        }
    }
}

void rdma_port_seen(struct rdma *r, const struct queue_pair *q, uint32_t events)
{
    struct nic_port *p = port_of(r, q->config.nic.ip, q->device_name);
    struct device *d = q->device;

    if (events == d->port_events) {
        set_port(r, d, q->port, false);
    }
    if (p == NULL && r->port_count < HOST_NIC_MAX) {
        p = &r->ports[r->port_count++];
        memcpy(p->ip, q->config.nic.ip, sizeof(p->ip));
        memcpy(p->name, q->device_name, sizeof(p->name));
    }
    if (p != NULL) {
        p->device = d;
        p->port = q->port;
        set_down(r, p, d->down[q->port % PORT_COUNT]);
    }
}

int rdma_carrier(struct io_rdma *rdma, const struct io_address *nic, const char *device,
                 uint32_t *ret_downs)
{
    struct rdma *r = rdma->driver;
    int up = -ENODEV;

    pthread_mutex_lock(&r->lock);
    const struct nic_port *p = port_of(r, nic->ip, device);
    if (p != NULL) {
        up = !p->down;
        *ret_downs = p->downs;
    }
    pthread_mutex_unlock(&r->lock);
    return up;
}

static void on_port(struct rdma *r, struct device *d, uint32_t port, bool down)
{
    if (down && atomic_load(&d->gone)) {
        return; /* it would never report that the port is up again */
    }
    d->port_events++;
    set_port(r, d, port, down);
}

/* ---- the watching thread ---- */

/* The descriptor of a device that is gone is readable for ever. */
static void unfollow(struct rdma *r, const struct rdma_device *handle)
{
    (void)epoll_ctl(r->epoll, EPOLL_CTL_DEL, rdma_device_fd(handle), NULL);
    (void)epoll_ctl(r->epoll, EPOLL_CTL_DEL, rdma_device_armed_fd(handle), NULL);
}

static void lose(struct rdma *r, struct device *d)
{
    if (atomic_exchange(&d->gone, true)) {
        return;
    }
    unfollow(r, d->handle);
    on_port(r, d, 0, false); /* the interface's own events show whether it stays */
    rdma_trouble_add(r, "RDMA device %s is gone: its lanes are made anew elsewhere", d->name);
    for (uint32_t i = 0; i < PROCESS_QUEUE_PAIRS_MAX; i++) {
        if (r->slots[i] != NULL && r->slots[i]->device == d) {
            rdma_tell(r->slots[i]);
        }
    }
}

/* The queue pair whose completion queue has that tag; NULL: it is closed. */
static struct queue_pair *of_tag(const struct rdma *r, uint64_t tag)
{
    struct queue_pair *q = r->slots[(uint32_t)tag % PROCESS_QUEUE_PAIRS_MAX];

    return q != NULL && q->generation == (uint32_t)(tag >> 32) ? q : NULL;
}

static void on_completions(struct rdma *r, struct device *d)
{
    uint64_t tag;
    int error = -EAGAIN;

    while (d->handle != NULL && (error = rdma_device_armed(d->handle, &tag)) == 0) {
        struct queue_pair *q = of_tag(r, tag);
        if (q != NULL) {
            rdma_tell(q);
        }
    }
    if (error != -EAGAIN) {
        lose(r, d);
    }
}

static void end_pair(struct queue_pair *q)
{
    if (q != NULL) {
        atomic_store(&q->over, true);
        rdma_tell(q);
    }
}

static struct queue_pair *of_number(const struct rdma *r, const struct device *d, uint32_t qp)
{
    for (uint32_t i = 0; i < PROCESS_QUEUE_PAIRS_MAX; i++) {
        if (r->slots[i] != NULL && r->slots[i]->device == d && r->slots[i]->own.qp == qp &&
            !atomic_load(&r->slots[i]->over)) { /* else the device may have used its number again */
            return r->slots[i];
        }
    }
    return NULL;
}

static void on_event(struct rdma *r, struct device *d)
{
    struct rdma_event event;
    int error = -EAGAIN;

    while (d->handle != NULL && (error = rdma_device_event(d->handle, &event)) == 0) {
        switch (event.kind) {
        case RDMA_EVENT_DEVICE_GONE:
            lose(r, d);
            break;
        case RDMA_EVENT_QP:
            end_pair(of_number(r, d, event.qp));
            break;
        case RDMA_EVENT_CQ:
            end_pair(of_tag(r, event.tag));
            break;
        case RDMA_EVENT_PORT_UP:
        case RDMA_EVENT_PORT_DOWN:
            on_port(r, d, event.port, event.kind == RDMA_EVENT_PORT_DOWN);
            break;
        /* each new queue pair looks the address up; existing ones fail if theirs is gone */
        case RDMA_EVENT_ADDRESS:
        case RDMA_EVENT_OTHER:
            break;
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
        const int count = epoll_wait(r->epoll, ready, 2 * DEVICE_MAX, LOOK_MS);
        pthread_mutex_lock(&r->lock);
        for (int i = 0; i < count; i++) {
            if (ready[i].data.u32 == WAKE) {
                continue;
            }
            struct device *d = &r->devices[ready[i].data.u32 & 0xff];
            if ((ready[i].data.u32 & RDMA_COMPLETIONS) != 0) {
                on_completions(r, d);
            } else {
                on_event(r, d);
            }
        }
        rdma_devices_look(r);
        stop = r->stop;
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}
