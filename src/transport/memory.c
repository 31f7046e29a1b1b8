/* memory.c: memory that NICs may read and write: a list of page-aligned ranges, each registered once, however many ask. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "transport/internal.h"

#define PAGE       4096u
#define RANGES_MAX 4096
#define END_MS     200 /* that a transport's end waits for a driver */

struct transport_memory {
    struct transport_memory *next;
    uintptr_t begin, end;
    uint32_t users;
    bool gpu;
    uint32_t busy; /* copies and reads that are under way; under the lock */
    struct io_rdma_memory *keys;
};

/* The newest that holds the range. */
static struct transport_memory *find(struct transport *t, uintptr_t begin, uintptr_t end)
{
    struct transport_memory *m = t->memories;

    while (m != NULL && (begin < m->begin || end > m->end)) {
        m = m->next;
    }
    return m;
}

/* Only equal ranges share a registration: one inside a larger one would keep that alive when its memory is given back. */
static struct transport_memory *find_equal(struct transport *t, uintptr_t begin, uintptr_t end)
{
    struct transport_memory *m = t->memories;

    while (m != NULL && (begin != m->begin || end != m->end)) {
        m = m->next;
    }
    return m;
}

/* One more user of a range that is registered, if it is. Under the lock. */
static struct transport_memory *use_equal(struct transport *t, uintptr_t begin, uintptr_t end)
{
    struct transport_memory *m = find_equal(t, begin, end);

    if (m != NULL) {
        m->users++;
    }
    return m;
}

/* Of those who registered the same range at the same time the first one's counts. NULL: no room. Under the lock. */
static struct transport_memory *list(struct transport *t, struct transport_memory *m)
{
    struct transport_memory *other = use_equal(t, m->begin, m->end);

    if (other != NULL || t->memory_count == RANGES_MAX) {
        return other;
    }
    m->next = t->memories;
    t->memories = m;
    t->memory_count++;
    __atomic_fetch_add(&t->gpu_count, m->gpu, __ATOMIC_SEQ_CST);
    return m;
}

/* A driver that doesn't return from it holds no lock: lanes ask for the keys of other memory meanwhile. */
static int add(struct transport *t, const struct io_rdma_range *range,
               struct transport_memory **ret_memory)
{
    const uintptr_t begin = (uintptr_t)range->data, end = begin + range->size;
    struct transport_memory *m = calloc(1, sizeof(*m)), *listed;

    if (m == NULL) {
        return -ENOMEM;
    }
    *m = (struct transport_memory){.begin = begin, .end = end, .users = 1, .gpu = range->gpu};
    const int r = t->rdma->memory_add(t->rdma, range, &m->keys);
    if (r < 0) {
        free(m);
        return r;
    }
    pthread_mutex_lock(&t->memory_lock);
    listed = list(t, m);
    pthread_mutex_unlock(&t->memory_lock);
    if (listed != m) {
        t->rdma->memory_remove(t->rdma, m->keys);
        free(m);
    }
    *ret_memory = listed;
    return listed != NULL ? 0 : -ENOMEM;
}

static int add_or_use(struct transport *t, const struct io_rdma_range *range,
                      struct transport_memory **ret_memory)
{
    const uintptr_t begin = (uintptr_t)range->data;

    __atomic_fetch_add(&t->memory_calls, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&t->memory_lock);
    *ret_memory = use_equal(t, begin, begin + range->size);
    pthread_mutex_unlock(&t->memory_lock);
    const int r = *ret_memory != NULL ? 0 : add(t, range, ret_memory);
    __atomic_fetch_sub(&t->memory_calls, 1, __ATOMIC_SEQ_CST);
    return r;
}

int transport_memory_add(struct transport *t, void *data, size_t size,
                         struct transport_memory **ret_memory)
{
    const uintptr_t begin = (uintptr_t)data / PAGE * PAGE,
                    end = ((uintptr_t)data + size + PAGE - 1) / PAGE * PAGE;
    const struct io_rdma_range range = {.data = (void *)begin, .size = end - begin};

    *ret_memory = NULL;
    return !t->config.direct || size == 0 ? 0 : add_or_use(t, &range, ret_memory);
}

bool transport_takes_gpus(const struct transport *t)
{
    return t->config.gpu;
}

/* As it was exported: its pages aren't ours to round to. */
int transport_memory_add_gpu(struct transport *t, void *data, size_t size, int fd, uint64_t offset,
                             struct transport_memory **ret_memory)
{
    const struct io_rdma_range range = {
        .data = data, .size = size, .gpu = true, .fd = fd, .offset = offset};

    *ret_memory = NULL;
    return !t->config.gpu ? -EOPNOTSUPP : size == 0 ? -EINVAL : add_or_use(t, &range, ret_memory);
}

/* Nobody finds it any more. Who copies has a device's second at most. */
static void await_copies(struct transport *t, const struct transport_memory *m)
{
    const struct timespec some = {.tv_nsec = 50 * NS_PER_US};
    bool busy = m->gpu;

    while (busy) {
        pthread_mutex_lock(&t->memory_lock);
        busy = m->busy > 0;
        pthread_mutex_unlock(&t->memory_lock);
        if (busy) {
            (void)nanosleep(&some, NULL);
        }
    }
}

static void forget(struct transport *t, struct transport_memory *m)
{
    t->rdma->memory_remove(t->rdma, m->keys);
    free(m);
}

void transport_memory_remove(struct transport *t, struct transport_memory *memory)
{
    struct transport_memory *last = NULL;

    if (memory == NULL) {
        return;
    }
    __atomic_fetch_add(&t->memory_calls, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&t->memory_lock);
    struct transport_memory **at = &t->memories;
    while (*at != NULL && *at != memory) {
        at = &(*at)->next;
    }
    if (*at != NULL && --memory->users == 0) { /* else it is an older transport's */
        last = memory;
        *at = memory->next;
        t->memory_count--;
        __atomic_fetch_sub(&t->gpu_count, memory->gpu, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&t->memory_lock);
    if (last != NULL) {
        await_copies(t, last);
        forget(t, last);
    }
    __atomic_fetch_sub(&t->memory_calls, 1, __ATOMIC_SEQ_CST);
}

bool memory_end(struct transport *t)
{
    const struct timespec some = {.tv_nsec = NS_PER_MS};

    for (int ms = 0; __atomic_load_n(&t->memory_calls, __ATOMIC_SEQ_CST) > 0; ms++) {
        if (ms == END_MS) {
            return false;
        }
        (void)nanosleep(&some, NULL);
    }
    while (t->memories != NULL) {
        struct transport_memory *m = t->memories;
        t->memories = m->next;
        forget(t, m);
    }
    return true;
}

/* Under the lock. NULL: the processor may touch it. */
static struct transport_memory *find_gpus(struct transport *t, const void *data, size_t size)
{
    struct transport_memory *m = find(t, (uintptr_t)data, (uintptr_t)data + size);

    return m != NULL && m->gpu ? m : NULL;
}

struct transport_memory *memory_of_gpu(struct transport *t, const void *data, size_t size)
{
    if (__atomic_load_n(&t->gpu_count, __ATOMIC_SEQ_CST) == 0 || size == 0) {
        return NULL;
    }
    pthread_mutex_lock(&t->memory_lock);
    struct transport_memory *m = find_gpus(t, data, size);
    if (m != NULL) {
        m->busy++;
    }
    pthread_mutex_unlock(&t->memory_lock);
    return m;
}

void memory_of_gpu_end(struct transport *t, struct transport_memory *memory)
{
    if (memory != NULL) {
        pthread_mutex_lock(&t->memory_lock);
        memory->busy--;
        pthread_mutex_unlock(&t->memory_lock);
    }
}

bool memory_is_gpus(struct transport *t, const void *data, size_t size)
{
    if (__atomic_load_n(&t->gpu_count, __ATOMIC_SEQ_CST) == 0 || size == 0) {
        return false;
    }
    pthread_mutex_lock(&t->memory_lock);
    const bool is = find_gpus(t, data, size) != NULL;
    pthread_mutex_unlock(&t->memory_lock);
    return is;
}

struct io_rdma_memory *memory_driven(const struct transport_memory *memory)
{
    return memory->keys;
}

bool memory_keys(struct transport *t, const void *data, size_t size, struct io_rdma_memory *ret)
{
    if (!t->config.direct) {
        return false;
    }
    pthread_mutex_lock(&t->memory_lock);
    const struct transport_memory *m = find(t, (uintptr_t)data, (uintptr_t)data + size);
    for (uint32_t i = 0; m != NULL && i < IO_RDMA_DEVICES; i++) {
        ret->local[i] = __atomic_load_n(&m->keys->local[i], __ATOMIC_RELAXED);
        ret->remote[i] = __atomic_load_n(&m->keys->remote[i], __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&t->memory_lock);
    return m != NULL;
}
