/* rdma_memory.c: see rdma.h: memory that devices may read and write, registered with each of them. A device that comes back has
 * lost the registrations: the worker registers them again, one range at a time, with new keys. A large range takes seconds, and
 * offers of queue pairs live for five. So none is begun while offers are open, except for half of the time in the long run. */
#include <errno.h>
#include <stdlib.h>

#include "transport/descriptor.h"
#include "transport/rdma_private.h"

#define HOLD_NS (10 * NS_PER_S) /* as long as an offer lives at the answering end */

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

static void learn(struct memory *m, uint32_t device, struct rdma_memory *handle)
{
    m->handles[device] = handle;
    __atomic_store_n(&m->keys.local[device], rdma_memory_key(handle, false), __ATOMIC_RELAXED);
    __atomic_store_n(&m->keys.remote[device], rdma_memory_key(handle, true), __ATOMIC_RELAXED);
}

void rdma_memory_forget(struct rdma *r, uint32_t device)
{
    for (struct memory *m = device < IO_RDMA_DEVICES ? r->memories : NULL; m != NULL; m = m->next) {
        forget(m, device);
        m->asked &= ~(1u << device);
    }
}

void rdma_memory_done(struct memory *m)
{
    if (m->range.fd >= 0) {
        descriptor_copy_close(m->range.fd);
    }
    free(m);
}

/* A GPU's memory is registered by its descriptor, which the caller closes. A copy of it is kept for devices that come back. A
 * process that may have no more copies continues without: a device that comes back later doesn't get this range. */
static struct memory *make_memory(const struct io_rdma_range *range)
{
    struct memory *m = calloc(1, sizeof(*m));

    if (m != NULL) {
        m->range = *range;
        m->range.fd = range->gpu ? descriptor_copy(range->fd) : -1;
    }
    return m;
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

static void list_memory(struct rdma *r, struct memory *m)
{
    const uint32_t asked = m->asked;

    pthread_mutex_lock(&r->memory_lock);
    m->next = r->memories;
    m->at = &r->memories;
    if (m->next != NULL) {
        m->next->at = &m->next;
    }
    r->memories = m;
    pthread_mutex_unlock(&r->memory_lock);
    /* A device that came back meanwhile has read the list already. */
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->device_count && i < IO_RDMA_DEVICES; i++) {
        if (r->devices[i].handle != NULL && (asked >> i & 1) == 0) {
            atomic_store(&r->memory_due, true);
            rdma_wake(r);
        }
    }
    pthread_mutex_unlock(&r->lock);
}

/* The library is called without a lock: so a driver that doesn't return stops nobody else. */
int rdma_memory_new(struct io_rdma *rdma, const struct io_rdma_range *range,
                    struct io_rdma_memory **ret_memory)
{
    struct rdma *r = rdma->driver;
    struct memory *m = make_memory(range);
    uint32_t held = 0;
    int error = -ENODEV;

    if (m == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < IO_RDMA_DEVICES; i++) {
        struct rdma_memory *handle;
        if (!hold(r, i, false)) {
            continue;
        }
        held |= 1u << i;
        const int one = add_on(r, i, range, &handle);
        if (one == 0) {
            learn(m, i, handle);
        }
        error = error != 0 ? one : 0;
    }
    m->asked = held;
    if (error == 0) {
        *ret_memory = &m->keys;
        list_memory(r, m);
    }
    let_go(r, held); /* a device that went meanwhile finds it in the list */
    if (error < 0) {
        rdma_memory_done(m);
    }
    return error;
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
    m->leaving = true;
    for (uint32_t i = 0; i < IO_RDMA_DEVICES; i++) {
        if (hold(r, i, true)) {
            held |= 1u << i;
        } else { /* it is being closed */
            forget(m, i);
        }
    }
    pthread_mutex_unlock(&r->memory_lock);
    for (uint32_t i = 0; i < IO_RDMA_DEVICES; i++) {
        if (m->range.gpu && (held >> i & 1) != 0) {
            rdma_gpu_drain(&r->devices[i]);
        }
        forget(m, i);
    }
    let_go(r, held);
    pthread_mutex_lock(&r->memory_lock);
    m->left = true;
    const bool busy = m->busy;
    pthread_mutex_unlock(&r->memory_lock);
    if (!busy) {
        rdma_memory_done(m);
    }
}

static bool can_ask(const struct memory *m)
{
    return !m->busy && (!m->range.gpu || m->range.fd >= 0);
}

/* A range with a device that wasn't asked for it. Under memory_lock. */
static struct memory *next_due(const struct rdma *r, uint32_t open, uint32_t *ret_device)
{
    struct memory *m = r->memories;

    while (m != NULL && (!can_ask(m) || (open & ~m->asked) == 0)) {
        m = m->next;
    }
    if (m != NULL) {
        *ret_device = (uint32_t)__builtin_ctz(open & ~m->asked);
    }
    return m;
}

/* The range that is busy. */
static void ask_again(struct rdma *r, struct memory *m, uint32_t device)
{
    struct rdma_memory *handle = NULL;
    const bool held = hold(r, device, false);

    if (held && add_on(r, device, &m->range, &handle) < 0) {
        handle = NULL;
    }
    pthread_mutex_lock(&r->memory_lock);
    m->busy = false;
    m->asked |= held ? 1u << device : 0;
    const bool left = m->left, leaving = m->leaving;
    if (handle != NULL && !leaving) {
        learn(m, device, handle);
    }
    pthread_mutex_unlock(&r->memory_lock);
    if (handle != NULL && leaving) { /* its keys were sent to nobody */
        (void)rdma_memory_remove(handle);
    }
    if (left) {
        rdma_memory_done(m);
    }
    if (held) {
        let_go(r, 1u << device);
    }
}

/* True if a queue pair is made and not connected yet: the worker is about to get a task. */
static bool offers_open(const struct rdma *r)
{
    for (uint32_t i = 0; i < PROCESS_QUEUE_PAIRS_MAX; i++) {
        if (r->slots[i] != NULL && r->slots[i]->state == QP_MADE) {
            return true;
        }
    }
    return false;
}

int rdma_memory_wait_ms(struct rdma *r)
{
    if (r->stop || !atomic_load(&r->memory_due)) {
        return -1;
    }
    if (!offers_open(r)) {
        return 0;
    }
    const struct mono now = r->io->now(r->io);
    if (r->memory_hold.ns == 0) {
        r->memory_hold = mono_add(now, span_ns(HOLD_NS));
    }
    const int64_t left = mono_sub(r->memory_hold, now).ns;
    return left > 0 ? 1 + (int)(left / NS_PER_MS) : 0;
}

bool rdma_memory_look(struct rdma *r)
{
    uint32_t open = 0, device = 0;

    if (rdma_memory_wait_ms(r) != 0 || !atomic_exchange(&r->memory_due, false)) {
        return false;
    }
    const struct mono began = r->io->now(r->io);
    for (uint32_t i = 0; i < r->device_count && i < IO_RDMA_DEVICES; i++) {
        const struct device *d = &r->devices[i];
        open |= d->handle != NULL && !atomic_load(&d->gone) ? 1u << i : 0;
    }
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_lock(&r->memory_lock);
    struct memory *m = next_due(r, open, &device);
    if (m != NULL) {
        m->busy = true;
    }
    pthread_mutex_unlock(&r->memory_lock);
    if (m != NULL) {
        ask_again(r, m, device);
        atomic_store(&r->memory_due, true); /* there may be others */
    }
    pthread_mutex_lock(&r->lock);
    if (r->stop) { /* rdma_close() may have returned without the worker: io is gone */
        return m != NULL;
    }
    const struct mono now = r->io->now(r->io);
    r->memory_hold = m != NULL ? mono_add(now, mono_sub(now, began)) : (struct mono){0};
    return m != NULL;
}
