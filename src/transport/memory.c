/* memory.c: registered memory: ranges in the order of their beginnings. Equal ranges are registered once, however many callers
 * ask. NICs may read and write the ranges that have keys; these are whole pages. For the others only the time of their removal is
 * known. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transport/internal.h"

#define PAGE       4096u
#define RANGES_MIN 64  /* room at first; it doubles when it is full */
#define END_MS     200 /* so long a transport's end waits for a driver */

struct transport_memory {
    uintptr_t begin, end;
    uintptr_t reach; /* the furthest end of this range and of all before it in the list */
    uint64_t number; /* newer ranges have larger numbers */
    uint32_t users;
    bool gpu;
    bool leaving;                /* its last user is removing it: nothing new begins on it */
    uint32_t busy;               /* copies and reads under way; under the lock */
    struct io_rdma_memory *keys; /* NULL: no NIC has it */
};

/* The index of the first range that begins after that. */
static uint32_t after(const struct transport *t, uintptr_t begin)
{
    uint32_t low = 0, high = t->memory_count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (t->memories[middle]->begin <= begin) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The newest range that holds these bytes: of those with keys, or of all; with those that are leaving, or without. If ranges lie
 * side by side, as buffers do, the first one that is looked at is the right one, or there is none. */
static struct transport_memory *find(const struct transport *t, const void *data, size_t size,
                                     bool with_keys, bool leaving)
{
    const uintptr_t begin = (uintptr_t)data, end = begin + size;
    struct transport_memory *found = NULL;

    for (uint32_t i = after(t, begin); i > 0 && t->memories[i - 1]->reach >= end; i--) {
        struct transport_memory *m = t->memories[i - 1];
        if (m->end >= end && (leaving || !m->leaving) && (!with_keys || m->keys != NULL) &&
            (found == NULL || m->number > found->number)) {
            found = m;
        }
    }
    return found;
}

/* Only equal ranges share a registration: a range inside a larger one would keep the larger one alive after its memory is
 * removed. */
static struct transport_memory *find_equal(const struct transport *t, uintptr_t begin,
                                           uintptr_t end, bool with_keys)
{
    for (uint32_t i = after(t, begin); i > 0 && t->memories[i - 1]->begin == begin; i--) {
        struct transport_memory *m = t->memories[i - 1];
        if (m->end == end && !m->leaving && with_keys == (m->keys != NULL)) {
            return m;
        }
    }
    return NULL;
}

/* Adds a user to a range, if it is registered. Under the lock. */
static struct transport_memory *use_equal(struct transport *t, uintptr_t begin, uintptr_t end,
                                          bool with_keys)
{
    struct transport_memory *m = find_equal(t, begin, end, with_keys);

    if (m != NULL) {
        m->users++;
    }
    return m;
}

/* Computes `reach` again, from that index on until nothing changes. */
static void reach_again(struct transport *t, uint32_t from)
{
    uintptr_t reach = from > 0 ? t->memories[from - 1]->reach : 0;

    for (uint32_t i = from; i < t->memory_count; i++) {
        struct transport_memory *m = t->memories[i];
        reach = m->end > reach ? m->end : reach;
        if (m->reach == reach) {
            return;
        }
        m->reach = reach;
    }
}

static bool has_place(struct transport *t)
{
    if (t->memory_count < t->memory_capacity) {
        return true;
    }
    const uint32_t capacity = t->memory_capacity > 0 ? t->memory_capacity * 2 : RANGES_MIN;
    struct transport_memory **list =
        t->memory_capacity < PROCESS_MEMORY_RANGES_MAX
            ? realloc(t->memories, capacity * sizeof(struct transport_memory *))
            : NULL;
    if (list == NULL) {
        return false;
    }
    t->memories = list;
    t->memory_capacity = capacity;
    return true;
}

/* If several threads registered the same range at the same time, the first registration counts. NULL: no room. Under the lock. */
static struct transport_memory *list(struct transport *t, struct transport_memory *m)
{
    struct transport_memory *other = use_equal(t, m->begin, m->end, m->keys != NULL);
    const uint32_t at = after(t, m->begin);

    if (other != NULL || !has_place(t)) {
        return other;
    }
    memmove(&t->memories[at + 1], &t->memories[at],
            (t->memory_count - at) * sizeof(struct transport_memory *));
    t->memories[at] = m;
    t->memory_count++;
    m->number = ++t->memory_numbers;
    reach_again(t, at);
    __atomic_fetch_add(&t->gpu_count, m->gpu, __ATOMIC_SEQ_CST);
    return m;
}

static void forget(struct transport *t, struct transport_memory *m)
{
    if (m->keys != NULL) {
        t->rdma->memory_remove(t->rdma, m->keys);
    }
    free(m);
}

/* The driver is called without a lock, because it may not return: lanes ask for the keys of other memory meanwhile. */
static int add(struct transport *t, const struct io_rdma_range *range, bool with_keys,
               struct transport_memory **ret_memory)
{
    const uintptr_t begin = (uintptr_t)range->data, end = begin + range->size;
    struct transport_memory *m = calloc(1, sizeof(*m)), *listed;

    if (m == NULL) {
        return -ENOMEM;
    }
    *m = (struct transport_memory){.begin = begin, .end = end, .users = 1, .gpu = range->gpu};
    const int r = with_keys ? t->rdma->memory_add(t->rdma, range, &m->keys) : 0;
    if (r < 0) {
        free(m);
        return r;
    }
    pthread_mutex_lock(&t->memory_lock);
    listed = list(t, m);
    pthread_mutex_unlock(&t->memory_lock);
    if (listed != m) {
        forget(t, m);
    }
    *ret_memory = listed;
    return listed != NULL ? 0 : -ENOMEM;
}

static int add_or_use(struct transport *t, const struct io_rdma_range *range, bool with_keys,
                      struct transport_memory **ret_memory)
{
    const uintptr_t begin = (uintptr_t)range->data;

    __atomic_fetch_add(&t->memory_calls, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&t->memory_lock);
    *ret_memory = use_equal(t, begin, begin + range->size, with_keys);
    pthread_mutex_unlock(&t->memory_lock);
    const int r = *ret_memory != NULL ? 0 : add(t, range, with_keys, ret_memory);
    __atomic_fetch_sub(&t->memory_calls, 1, __ATOMIC_SEQ_CST);
    return r;
}

int transport_memory_add(struct transport *t, void *data, size_t size,
                         struct transport_memory **ret_memory)
{
    const uintptr_t begin = (uintptr_t)data / PAGE * PAGE,
                    end = ((uintptr_t)data + size + PAGE - 1) / PAGE * PAGE;
    const struct io_rdma_range range = {.data = (void *)begin, .size = end - begin};

    if (!t->config.direct) {
        return transport_memory_note(t, data, size, ret_memory);
    }
    *ret_memory = NULL;
    return size == 0 ? 0 : add_or_use(t, &range, true, ret_memory);
}

int transport_memory_note(struct transport *t, void *data, size_t size,
                          struct transport_memory **ret_memory)
{
    const struct io_rdma_range range = {.data = data, .size = size};

    *ret_memory = NULL;
    return size == 0 ? 0 : add_or_use(t, &range, false, ret_memory);
}

bool transport_takes_gpus(const struct transport *t)
{
    return t->config.gpu;
}

/* The range is kept as it was exported: its pages can't be rounded by us. */
int transport_memory_add_gpu(struct transport *t, void *data, size_t size, int fd, uint64_t offset,
                             struct transport_memory **ret_memory)
{
    const struct io_rdma_range range = {
        .data = data, .size = size, .gpu = true, .fd = fd, .offset = offset};

    *ret_memory = NULL;
    return !t->config.gpu ? -EOPNOTSUPP
           : size == 0    ? -EINVAL
                          : add_or_use(t, &range, true, ret_memory);
}

/* True if the request's memory is in this range, and in no other registered one. */
static bool loses(struct transport *t, const struct transport_memory *m,
                  const struct transport_request *request)
{
    const uintptr_t begin = (uintptr_t)request->data;

    if (request->done || request->data == NULL || begin >= m->end ||
        m->begin >= begin + request->room) {
        return false;
    }
    pthread_mutex_lock(&t->memory_lock);
    const bool other = find(t, request->data, request->room, false, false) != NULL;
    pthread_mutex_unlock(&t->memory_lock);
    return !other;
}

/* The set is locked. */
static void give_up_in(struct lane_set *set, const struct transport_memory *m)
{
    struct transport *t = set->transport;

    for (struct transport_comm *comm = set->awaited > 0 ? set->comms : NULL; comm != NULL;
         comm = comm->next) {
        uint32_t left = comm->used;
        while (left != 0 && !loses(t, m, &comm->requests[__builtin_ctz(left)])) {
            left &= left - 1;
        }
        if (left != 0) {
            comm_give_up(comm, t->io->now(t->io), -ECANCELED,
                         "memory was given back while a message was on its way to it or from it: "
                         "expected it to stay until the request is done");
            lane_set_act(set, t->io->now(t->io));
            lane_set_touch(set);
        }
    }
}

/* A caller that aborts removes memory under requests that aren't done, frees it, and closes the communicators last. From here on
 * nothing touches the memory. If no request is awaited, there is nothing to do. */
static void give_up(struct transport *t, const struct transport_memory *m)
{
    if (__atomic_load_n(&t->awaited, __ATOMIC_SEQ_CST) == 0) {
        return;
    }
    pthread_mutex_lock(&t->lock); /* no set is freed meanwhile */
    for (uint32_t i = 0; i < t->set_count; i++) {
        struct lane_set *set = t->sets[i];
        if (set != NULL) {
            pthread_mutex_lock(&set->lock);
            give_up_in(set, m);
            pthread_mutex_unlock(&set->lock);
        }
    }
    pthread_mutex_unlock(&t->lock);
}

/* The range can't be found any more. A copy takes at most a device's second. */
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

/* Removes a user: was it the last? The range stays in the list then, for code that asks whether the processor may touch
 * memory. */
static bool is_last(struct transport *t, struct transport_memory *m)
{
    pthread_mutex_lock(&t->memory_lock);
    m->leaving = --m->users == 0;
    const bool last = m->leaving;
    pthread_mutex_unlock(&t->memory_lock);
    return last;
}

static void unlist(struct transport *t, const struct transport_memory *m)
{
    pthread_mutex_lock(&t->memory_lock);
    uint32_t at = after(t, m->begin) - 1;
    while (t->memories[at] != m) {
        at--;
    }
    t->memory_count--;
    memmove(&t->memories[at], &t->memories[at + 1],
            (t->memory_count - at) * sizeof(struct transport_memory *));
    reach_again(t, at);
    __atomic_fetch_sub(&t->gpu_count, m->gpu, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&t->memory_lock);
}

void transport_memory_remove(struct transport *t, struct transport_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    __atomic_fetch_add(&t->memory_calls, 1, __ATOMIC_SEQ_CST);
    if (is_last(t, memory)) {
        give_up(t, memory);
        unlist(t, memory);
        await_copies(t, memory);
        forget(t, memory);
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
    while (t->memory_count > 0) {
        forget(t, t->memories[--t->memory_count]);
    }
    free(t->memories);
    t->memories = NULL;
    return true;
}

/* Under the lock. NULL: the processor may touch it. */
static struct transport_memory *find_gpus(struct transport *t, const void *data, size_t size)
{
    struct transport_memory *m = find(t, data, size, false, true);

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
    const struct transport_memory *m = find(t, data, size, true, false);
    for (uint32_t i = 0; m != NULL && i < IO_RDMA_DEVICES; i++) {
        ret->local[i] = __atomic_load_n(&m->keys->local[i], __ATOMIC_RELAXED);
        ret->remote[i] = __atomic_load_n(&m->keys->remote[i], __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&t->memory_lock);
    return m != NULL;
}
