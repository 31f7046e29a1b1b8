/* rdma.c: see rdma.h: the table of functions. */
#include "transport/rdma.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "transport/descriptor.h"
#include "transport/rdma_private.h"

#define OF_RECEIVE ((uint64_t)1 << 32) /* bit of a request's tag, above its cell */
#define NO_TAG     UINT64_MAX          /* never armed: no event has this tag */

static struct queue_pair *get(struct io_rdma *rdma, int qp)
{
    struct rdma *r = rdma->driver;

    ASSERT(qp >= 0 && qp < PROCESS_QUEUE_PAIRS_MAX && r->slots[qp] != NULL);
    return r->slots[qp];
}

void rdma_wake(struct rdma *r)
{
    const uint64_t one = 1;

    (void)!write(r->work, &one, sizeof(one));
}

/* ---- life ---- */

static int qp_open(struct io_rdma *rdma, const struct io_qp_config *config, int *ret_qp)
{
    struct rdma *r = rdma->driver;
    struct queue_pair *q = calloc(1, sizeof(*q));
    uint32_t i = PROCESS_QUEUE_PAIRS_MAX;

    if (q == NULL) {
        return -ENOMEM;
    }
    *q = (struct queue_pair){.rdma = r, .config = *config, .state = QP_MAKE, .tag = NO_TAG};
    snprintf(q->device_name, sizeof(q->device_name), "%s",
             config->device != NULL ? config->device : "");
    q->config.device = q->device_name;
    r->io->random(r->io, &q->own.psn, sizeof(q->own.psn));
    q->own.psn &= 0xffffff;
    pthread_mutex_lock(&r->lock);
    /* closed ones count as long as they hold memory */
    if (r->pair_count < PROCESS_QUEUE_PAIRS_MAX) {
        for (i = 0; r->slots[i] != NULL;) {
            i++;
        }
        r->pair_count++;
        q->number = i;
        q->generation = ++r->generations[i];
        r->slots[i] = q;
        rdma_wake(r);
    }
    pthread_mutex_unlock(&r->lock);
    if (i == PROCESS_QUEUE_PAIRS_MAX) {
        free(q);
        return -ENOSPC;
    }
    *ret_qp = (int)i;
    return 0;
}

static int qp_opened(struct io_rdma *rdma, int qp, struct io_qp_end *ret_own,
                     struct io_qp_cells *ret_cells)
{
    struct queue_pair *q = get(rdma, qp);
    int r = -EAGAIN;

    pthread_mutex_lock(&q->rdma->lock);
    if (q->state == QP_FAILED) {
        r = q->error;
        q->answered = false;
    } else if (q->state != QP_MAKE) {
        r = 0;
        q->answered = q->answered && q->state == QP_READY;
        *ret_own = q->own;
        ret_cells->send = q->cells;
        ret_cells->receive = q->cells + (size_t)q->config.sends * q->config.cell_size;
        const size_t device = (size_t)(q->device - q->rdma->devices);
        ret_cells->device = device < IO_RDMA_DEVICES ? (uint32_t)device : IO_RDMA_DEVICES;
    }
    pthread_mutex_unlock(&q->rdma->lock);
    return r;
}

static int qp_connect(struct io_rdma *rdma, int qp, const struct io_qp_end *peer,
                      const struct io_qp_timeouts *timeouts)
{
    struct queue_pair *q = get(rdma, qp);

    pthread_mutex_lock(&q->rdma->lock);
    ASSERT(q->state == QP_MADE);
    q->peer = *peer;
    q->timeouts = *timeouts;
    q->state = QP_CONNECT;
    rdma_wake(q->rdma);
    pthread_mutex_unlock(&q->rdma->lock);
    return 0;
}

static int qp_connected(struct io_rdma *rdma, int qp)
{
    struct queue_pair *q = get(rdma, qp);

    pthread_mutex_lock(&q->rdma->lock);
    const int r = q->state == QP_READY ? 0 : q->state == QP_FAILED ? q->error : -EAGAIN;
    q->answered = q->answered && r == -EAGAIN;
    pthread_mutex_unlock(&q->rdma->lock);
    return r;
}

static void forget_events(struct rdma *r, uint64_t tag)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < r->event_count; i++) {
        if (r->events[i].tag != tag) {
            r->events[kept++] = r->events[i];
        }
    }
    r->event_count = kept;
}

static void qp_close(struct io_rdma *rdma, int qp, bool linger)
{
    struct queue_pair *q = get(rdma, qp);
    struct rdma *r = q->rdma;

    pthread_mutex_lock(&r->lock);
    q->closing = true;
    q->linger = linger && q->state == QP_READY;
    q->closed = r->io->now(r->io);
    if (!linger && q->state == QP_READY) {
        rdma_trace_doubt(r, q);
    }
    forget_events(r, q->tag);
    r->slots[qp] = NULL;
    rdma_retire(q);
    pthread_mutex_unlock(&r->lock);
}

/* ---- data ---- */

static int qp_send(struct io_rdma *rdma, int qp, uint32_t cell, uint32_t size,
                   const struct io_rdma_write *write)
{
    struct queue_pair *q = get(rdma, qp);

    ASSERT(cell < q->config.sends && size <= q->config.cell_size);
    const struct rdma_piece piece = {.from = q->cells + (size_t)cell * q->config.cell_size,
                                     .size = size,
                                     .key = size <= q->inline_size ? 0 : q->key};
    const struct rdma_piece first = {.from = write != NULL ? write->from : NULL,
                                     .size = write != NULL ? write->size : 0,
                                     .key = write != NULL ? write->key : 0};
    const int r = q->qp == NULL ? -EIO
                  : write == NULL
                      ? rdma_qp_send(q->qp, cell, NULL, 0, 0, &piece)
                      : rdma_qp_send(q->qp, cell, &first, write->to, write->remote_key, &piece);
    q->sends_out += r == 0;
    return r;
}

static int qp_silence(struct io_rdma *rdma, int qp)
{
    struct queue_pair *q = get(rdma, qp);

    pthread_mutex_lock(&q->rdma->lock);
    if (q->state != QP_MAKE && q->qp != NULL) { /* else the worker is about to set it */
        rdma_silence_ask(q);
    }
    pthread_mutex_unlock(&q->rdma->lock);
    return 0;
}

/* Its completions may still be polled. */
static int qp_fence(struct io_rdma *rdma, int qp, bool wait)
{
    struct queue_pair *q = get(rdma, qp);
    struct rdma *r = q->rdma;

    pthread_mutex_lock(&r->lock);
    if (q->state != QP_MAKE && q->qp != NULL) {
        q->ending = q->qp;
        q->qp = NULL;
        atomic_store(&q->over, true);
        rdma_silence_ask(q);
    }
    bool ended = q->ending == NULL;
    pthread_mutex_unlock(&r->lock);
    if (wait && !ended) {
        ended = rdma_silence_await(q);
    }
    if (!ended) {
        if (wait) {
            rdma_trouble_add(r,
                             "%s doesn't end a queue pair: expected its driver to answer within "
                             "%d ms (look at its log); until it does, it may write into memory "
                             "that was given back",
                             q->device->name, FENCE_MS);
        }
        return -EAGAIN;
    }
    q->unsafe = q->unsafe && !rdma_device_removed(r, q->device);
    return q->unsafe ? -EIO : 0;
}

int rdma_post(struct queue_pair *q, uint32_t cell)
{
    ASSERT(cell < q->config.receives);
    return rdma_qp_receive(q->qp, OF_RECEIVE | cell,
                           q->cells + (size_t)(q->config.sends + cell) * q->config.cell_size,
                           q->config.cell_size, q->key);
}

static int qp_receive(struct io_rdma *rdma, int qp, uint32_t cell)
{
    struct queue_pair *q = get(rdma, qp);

    return q->qp != NULL ? rdma_post(q, cell) : -EIO;
}

static enum io_qp_status status_of(enum rdma_status status)
{
    static const enum io_qp_status all[] = {
        [RDMA_OK] = IO_QP_OK,           [RDMA_FLUSHED] = IO_QP_FLUSHED,
        [RDMA_RETRIES] = IO_QP_RETRIES, [RDMA_RNR_RETRIES] = IO_QP_RNR,
        [RDMA_ACCESS] = IO_QP_REFUSED,  [RDMA_LOCAL] = IO_QP_BROKEN,
        [RDMA_FATAL] = IO_QP_BROKEN};

    return all[status];
}

static int take(struct queue_pair *q, struct rdma_done *ret_done, int capacity)
{
    if (q->stash_count > 0) {
        const int count = q->stash_count < capacity ? q->stash_count : capacity;
        memcpy(ret_done, q->stash + q->stash_at, (size_t)count * sizeof(*ret_done));
        q->stash_at += count;
        q->stash_count -= count;
        return count;
    }
    return rdma_cq_poll(q->cq, ret_done, capacity);
}

static int qp_poll(struct io_rdma *rdma, int qp, struct io_qp_done *ret_done, int capacity)
{
    struct queue_pair *q = get(rdma, qp);
    struct rdma_done done[STASH];
    struct io_stamp stamp = {.half_ns = IO_HALF_UNKNOWN};

    if (q->cq == NULL) {
        return 0; /* not made yet */
    }
    const int count = take(q, done, capacity < STASH ? capacity : STASH);
    if (count <= 0) {
        return atomic_load(&q->device->gone)        ? -ENODEV
               : count < 0 || atomic_load(&q->over) ? -EIO
                                                    : 0;
    }
    for (int i = 0; i < count; i++) {
        const bool receive = (done[i].tag & OF_RECEIVE) != 0, good = done[i].status == RDMA_OK;
        if (receive && good && stamp.at.ns == 0) {
            stamp = q->rdma->io->stamp(q->rdma->io);
        }
        q->sends_out -= !receive && q->sends_out > 0;
        ret_done[i] = (struct io_qp_done){
            .receive = receive,
            .status = status_of(done[i].status),
            .cell = (uint32_t)done[i].tag,
            .bytes = good ? done[i].bytes : 0,
            .number = done[i].number,
            .vendor = done[i].vendor,
            .stamp = receive && good ? stamp : (struct io_stamp){.half_ns = IO_HALF_UNKNOWN}};
    }
    return count;
}

/* The device doesn't report completions that are there already: so it looks once more. */
static int qp_arm(struct io_rdma *rdma, int qp, uint64_t tag)
{
    struct queue_pair *q = get(rdma, qp);
    struct rdma *r = q->rdma;
    int error = 0;

    pthread_mutex_lock(&r->lock);
    q->tag = tag;
    q->armed = true;
    const bool made = !q->busy && q->cq != NULL && q->state != QP_MAKE && q->state != QP_FAILED;
    if (made && q->stash_count == 0) {
        error = rdma_cq_arm(q->cq);
        q->stash_at = 0;
        const int count = error == 0 ? rdma_cq_poll(q->cq, q->stash, STASH) : 0;
        q->stash_count = count > 0 ? count : 0;
        error = error == 0 && count < 0 ? count : error;
    }
    if (q->stash_count > 0 || error < 0 || q->state == QP_FAILED || atomic_load(&q->over) ||
        (q->device != NULL && atomic_load(&q->device->gone)) || q->answered) {
        rdma_tell(q);
    }
    pthread_mutex_unlock(&r->lock);
    return 0;
}

static int take_events(struct io_rdma *rdma, struct io_event *ret_events, int capacity)
{
    struct rdma *r = rdma->driver;

    pthread_mutex_lock(&r->lock);
    const uint32_t count =
        r->event_count < (uint32_t)capacity ? r->event_count : (uint32_t)capacity;
    memcpy(ret_events, r->events, count * sizeof(*ret_events));
    r->event_count -= count;
    memmove(r->events, r->events + count, r->event_count * sizeof(*ret_events));
    pthread_mutex_unlock(&r->lock);
    return (int)count;
}

static bool take_trouble(struct io_rdma *rdma, char *text, size_t size)
{
    struct rdma *r = rdma->driver;

    pthread_mutex_lock(&r->trouble_lock);
    const bool is = r->trouble_told < r->trouble_count;
    if (is) {
        snprintf(text, size, "%s", r->troubles[r->trouble_told++]);
    }
    pthread_mutex_unlock(&r->trouble_lock);
    return is;
}

/* ---- the driver ---- */

static int start_threads(struct rdma *r)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&r->watcher, NULL, rdma_watch, r);
    if (error == 0) {
        r->threads = 1;
        error = pthread_create(&r->worker, NULL, rdma_work, r);
        r->threads += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

static int init(struct rdma *r)
{
    struct epoll_event wake = {.events = EPOLLIN, .data.u32 = UINT32_MAX};

    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->trouble_lock, NULL);
    pthread_mutex_init(&r->memory_lock, NULL);
    r->forks = descriptor_forks();
    r->epoll = epoll_create1(EPOLL_CLOEXEC);
    r->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->work = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->epoll < 0 || r->wake < 0 || r->work < 0 ||
        epoll_ctl(r->epoll, EPOLL_CTL_ADD, r->wake, &wake) < 0) {
        return -errno;
    }
    return 0;
}

/* Children would take along the pages that a NIC writes, and the parent would read others. The cells are ours: no child gets
 * them. */
static void check_forks(struct rdma *r, const char *release)
{
    struct utsname name = {0};

    (void)uname(&name);
    release = release != NULL ? release : name.release;
    if (rdma_verbs_forks(r->verbs, release)) {
        return;
    }
    r->table.memory_add = NULL;
    r->table.memory_remove = NULL;
    rdma_trouble_add(
        r,
        "NICs don't write directly (FOLIOT_RDMA=direct): expected Linux 5.12 or newer, "
        "or RDMAV_FORK_SAFE=1 in the environment, found %s; lanes copy",
        release);
}

/* Some device must take it. This only asks whether it would: there is no GPU's memory yet. */
static void check_gpus(struct rdma *r)
{
    bool some = false;

    for (uint32_t i = 0; i < r->device_count; i++) {
        some = some || (r->devices[i].handle != NULL && r->devices[i].dmabuf);
    }
    if (!some || r->table.memory_add == NULL) {
        rdma_trouble_add(
            r, "memory of GPUs goes by way of the host's (FOLIOT_GPU=dmabuf): expected an "
               "RDMA device, its driver and rdma-core 34 or newer to take DMA-BUFs");
        return;
    }
    r->table.gpu_copy = rdma_gpu_copy;
    r->table.gpu_read = rdma_gpu_read;
    r->table.gpu_done = rdma_gpu_done;
    r->table.gpu_settle = rdma_gpu_settle;
}

int rdma_open(struct rdma **ret_rdma, const struct rdma_config *config, char *ret_why, size_t size)
{
    struct rdma *r = calloc(1, sizeof(*r));

    snprintf(ret_why, size, "out of memory");
    if (r == NULL) {
        return -ENOMEM;
    }
    r->epoll = r->wake = r->work = -1;
    r->io = config->io;
    r->answers = config->answers;
    r->partition = config->partition;
    r->pkey_nth = config->pkey_nth;
    r->table = (struct io_rdma){.driver = r,
                                .open = qp_open,
                                .opened = qp_opened,
                                .choose = rdma_choose,
                                .connect = qp_connect,
                                .connected = qp_connected,
                                .send = qp_send,
                                .receive = qp_receive,
                                .poll = qp_poll,
                                .arm = qp_arm,
                                .close = qp_close,
                                .silence = qp_silence,
                                .fence = qp_fence,
                                .memory_add = rdma_memory_new,
                                .memory_remove = rdma_memory_free,
                                .carrier = rdma_carrier,
                                .events = take_events,
                                .trouble = take_trouble};
    snprintf(r->sysfs, sizeof(r->sysfs), "%s", config->sysfs);
    int error = init(r);
    error = error == 0 ? rdma_verbs_open(&r->verbs, config->library, ret_why, size) : error;
    error = error == 0 ? rdma_devices_open(r, ret_why, size) : error;
    error = error == 0 ? start_threads(r) : error;
    if (error < 0) {
        rdma_close(r);
        return error;
    }
    if (config->direct) {
        check_forks(r, config->release);
    }
    if (config->gpu) {
        check_gpus(r);
    }
    *ret_rdma = r;
    return 0;
}

struct io_rdma *rdma_io(struct rdma *rdma)
{
    return &rdma->table;
}

void rdma_free(struct rdma *r)
{
    r->verbs = rdma_verbs_close(r->verbs);
    if (r->epoll >= 0) {
        close(r->epoll);
    }
    if (r->wake >= 0) {
        close(r->wake);
    }
    if (r->work >= 0) {
        close(r->work);
    }
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->trouble_lock);
    pthread_mutex_destroy(&r->memory_lock);
    while (r->memories != NULL) {
        struct memory *m = r->memories;
        r->memories = m->next;
        rdma_memory_done(m);
    }
    free(r);
}

/* The worker frees all objects of the library, because each such call may block. False: one blocks for too long. */
static bool await_worker(struct rdma *r)
{
    const struct timespec some = {.tv_nsec = NS_PER_MS};

    for (int ms = 0; !atomic_load(&r->ended) && ms < CLOSE_MS; ms++) {
        (void)nanosleep(&some, NULL);
    }
    pthread_mutex_lock(&r->lock);
    r->abandoned = !atomic_load(&r->ended);
    const bool ended = !r->abandoned;
    pthread_mutex_unlock(&r->lock);
    return ended;
}

void rdma_close(struct rdma *r)
{
    const uint64_t one = 1;

    if (r == NULL || r->forks != descriptor_forks()) { /* its threads are the parent's */
        return;
    }
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    rdma_wake(r);
    (void)!write(r->wake, &one, sizeof(one));
    pthread_mutex_unlock(&r->lock);
    const pthread_t worker = r->worker;
    if (r->threads > 1 && !await_worker(r)) { /* from now on the memory is the worker's */
        pthread_detach(worker);
        return;
    }
    if (r->threads > 1) {
        pthread_join(r->worker, NULL);
    } else {
        if (r->threads > 0) {
            pthread_join(r->watcher, NULL);
        }
        rdma_end(r);
    }
    rdma_free(r);
}
