/* rdma_gpu.c: see rdma.h: memory of GPUs. Only a device can reach it. Each device has a queue pair that is connected to itself.
 * With it the device copies between a GPU's memory and a cell of ours, and reads what it wrote. A read pushes the device's
 * earlier writes before it: PCI Express orders them so. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "transport/rdma_private.h"

#define CELL_SIZE (1u << 17)
#define REQUESTS  64
#define READ_SIZE 8
#define ANSWER_NS NS_PER_S /* the time in which a device must complete our request */
#define AGAIN_NS  NS_PER_S
#define COPY_NS                                                                                    \
    (2 * ANSWER_NS) /* after this no other device is tried: the waiting caller has a set's lock */
#define SPINS 64    /* polls between two looks at the clock */

/* ---- a queue pair with itself ---- */

/* A port's path to itself: its first GID that a router carries, of RoCE v2; on InfiniBand its LID. */
static int own_path(struct rdma_device *d, uint32_t port, struct rdma_path *ret_path)
{
    struct rdma_port ports = {.port = port, .layer = RDMA_LAYER_ETHERNET};
    struct rdma_port_now now;
    int r = rdma_device_port(d, port, &now);

    if (r < 0 || now.state != RDMA_PORT_ACTIVE) {
        return r < 0 ? r : -ENETDOWN;
    }
    *ret_path = (struct rdma_path){
        .lid = now.lid, .global = now.grh_required, .mtu = now.active_mtu, .sl = now.sl};
    if (now.infiniband) {
        return now.lid == 0 ? -ENETDOWN : rdma_device_gid(d, port, 0, ret_path->gid);
    }
    r = rdma_device_gids(d, port, ports.gids, RDMA_GID_MAX);
    ports.gid_count = r > 0 ? (uint32_t)r : 0;
    const struct rdma_gid *gid = r < 0 ? NULL : rdma_gid_choose(&ports, NULL);
    if (gid == NULL) {
        return r < 0 ? r : -EADDRNOTAVAIL;
    }
    memcpy(ret_path->gid, gid->gid, sizeof(ret_path->gid));
    ret_path->own_gid_index = (uint8_t)gid->index;
    return 0;
}

static int connect_on(struct device *d, uint32_t port, struct rdma_cq *cq, struct rdma_qp **ret_qp)
{
    static const struct rdma_timeouts timeouts = {
        .timeout = 14, .retries = 6, .rnr_timer = 12, .rnr_retries = 7};
    const int pkey = rdma_device_pkey_index(d->handle, port, 0);
    const struct rdma_qp_config config = {.port = port,
                                          .sends = REQUESTS,
                                          .receives = 1,
                                          .pkey_index = pkey > 0 ? (uint16_t)pkey : 0,
                                          .remote_write = true,
                                          .remote_read = true};
    struct rdma_path path;
    struct rdma_qp *qp;
    int r = own_path(d->handle, port, &path);

    r = r == 0 ? rdma_qp_open(d->handle, cq, &config, &qp) : r;
    if (r < 0) {
        return r;
    }
    path.qp = rdma_qp_number(qp);
    r = rdma_qp_connect(qp, 0, &path, &timeouts);
    if (r < 0) {
        (void)rdma_qp_close(qp);
        return r;
    }
    *ret_qp = qp;
    return 0;
}

static int claim_cell(struct device *d)
{
    if (d->gpu.cell != NULL) {
        return 0;
    }
    void *cell = mmap(NULL, CELL_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (cell == MAP_FAILED) {
        return -errno;
    }
    (void)madvise(cell, CELL_SIZE, MADV_DONTFORK);
    const int r = rdma_memory_add(d->handle, cell, CELL_SIZE, false, &d->gpu.cell_memory);
    if (r < 0) {
        munmap(cell, CELL_SIZE);
        return r;
    }
    d->gpu.cell = cell;
    return 0;
}

/* Sends an empty message to itself. So the test whether a device answers isn't done by a copy, whose caller has a set's lock. */
static int ask_itself(const struct device *d, struct rdma_qp *qp)
{
    const uint32_t key = rdma_memory_key(d->gpu.cell_memory, false);
    const struct rdma_piece nothing = {.from = d->gpu.cell, .key = key};
    const int r = rdma_qp_receive(qp, 0, d->gpu.cell, READ_SIZE, key);

    return r == 0 ? rdma_qp_send(qp, 0, NULL, 0, 0, &nothing) : r;
}

/* Nobody else makes one: `making` is set. The library is called without a lock. It tries the next port that can. */
static int make(struct device *d, struct candidate *new)
{
    int r = claim_cell(d);

    r = r == 0 ? rdma_cq_open(d->handle, REQUESTS, UINT32_MAX, &new->cq) : r;
    if (r < 0) {
        return r;
    }
    r = -ENETDOWN;
    for (uint32_t i = 0; r < 0 && i < d->ports; i++) {
        new->port = new->port % d->ports + 1;
        r = connect_on(d, new->port, new->cq, &new->qp);
        if (r == 0 && (r = ask_itself(d, new->qp)) < 0) {
            (void)rdma_qp_close(new->qp);
        }
    }
    if (r < 0) {
        (void)rdma_cq_close(new->cq);
        new->qp = NULL;
        return r;
    }
    new->left = 2; /* one for the receive, one for the send */
    new->until_ns = rdma_clock_ns() + ANSWER_NS;
    return 0;
}

/* 0: it answers; -EAGAIN: not yet. */
static int look_for_answer(struct candidate *new)
{
    struct rdma_done done[2];
    const int count = rdma_cq_poll(new->cq, done, new->left);

    for (int i = 0; i < count; i++) {
        if (done[i].status != RDMA_OK) {
            return -EIO;
        }
    }
    new->left -= count > 0 ? count : 0;
    return count < 0                         ? count
           : new->left == 0                  ? 0
           : rdma_clock_ns() < new->until_ns ? -EAGAIN
                                             : -EIO;
}

static void drop(struct candidate *new)
{
    if (new->qp != NULL) {
        (void)rdma_qp_close(new->qp);
        (void)rdma_cq_close(new->cq);
        new->qp = NULL;
    }
}

/* The former queue pair: its requests under way are lost. */
struct old_pair {
    struct rdma_cq *cq;
    struct rdma_qp *qp;
};
static struct old_pair take_out(struct gpu_pair *g)
{
    const struct old_pair old = {g->cq, g->qp};
    const int64_t now_ns = rdma_clock_ns();

    if (g->posted > g->done) {
        /* All requests between several that broke soon after each other count as lost: no caller waits longer than that. */
        g->lost_after = now_ns - g->lost_ns > 2 * ANSWER_NS ? g->done : g->lost_after;
        g->lost_ns = now_ns;
        g->lost_to = g->done = g->posted;
    }
    g->qp = NULL;
    g->cq = NULL;
    return old;
}

/* Closes the former one, without a lock. False: its requests may still move data, to the GPU or to the cell. */
static bool end_old(const struct rdma *r, struct device *d)
{
    struct gpu_pair *g = &d->gpu;
    bool over = false;

    pthread_mutex_lock(&g->lock);
    g->stale = g->stale || (g->qp != NULL && g->posted > g->done);
    const struct old_pair old = take_out(g);
    pthread_mutex_unlock(&g->lock);
    if (old.qp != NULL) {
        over = rdma_qp_close(old.qp) == 0;
        (void)rdma_cq_close(old.cq);
    }
    over = over || rdma_device_removed(r, d);
    pthread_mutex_lock(&g->lock);
    g->stale = g->stale && !over;
    over = !g->stale;
    pthread_mutex_unlock(&g->lock);
    return over;
}

/* The new one comes into use, or there is none for a while. */
static void end_making(struct rdma *r, struct device *d, int error)
{
    struct gpu_pair *g = &d->gpu;

    if (error < 0) {
        drop(&g->new);
    }
    pthread_mutex_lock(&g->lock);
    g->making = false;
    g->broken = error < 0;
    if (error == 0) {
        g->cq = g->new.cq;
        g->qp = g->new.qp;
        g->new.qp = NULL;
    } else {
        g->again_ns = rdma_clock_ns() + AGAIN_NS;
    }
    pthread_mutex_unlock(&g->lock);
    if (error < 0) {
        rdma_wake(r); /* the worker, which makes it anew, needs the time */
    }
}

/* 0: one is being made, and nobody else makes one; else it isn't, or ended at once. */
static int begin_making(struct rdma *r, struct device *d)
{
    struct gpu_pair *g = &d->gpu;

    pthread_mutex_lock(&g->lock);
    const bool makes = !g->making && (g->qp == NULL || g->broken);
    g->making = g->making || makes;
    g->wanted = true;
    g->rdma = r;
    pthread_mutex_unlock(&g->lock);
    if (!makes) {
        return -EALREADY;
    }
    /* both use the same cell: the former one must be closed first */
    const int error = !end_old(r, d) ? -EBUSY : atomic_load(&d->gone) ? -ENODEV : make(d, &g->new);
    if (error < 0) {
        end_making(r, d, error);
    }
    return error;
}

void rdma_gpu_start(struct rdma *r, struct device *d)
{
    const struct timespec some = {.tv_nsec = 50 * NS_PER_US};
    struct candidate *new = &d->gpu.new;
    int error = begin_making(r, d);

    if (error < 0) {
        return;
    }
    while ((error = look_for_answer(new)) == -EAGAIN) {
        (void)nanosleep(&some, NULL);
    }
    end_making(r, d, error);
}

void rdma_gpu_stop(const struct rdma *r, struct device *d)
{
    struct gpu_pair *g = &d->gpu;
    const bool over = end_old(r, d);

    drop(&g->new);
    pthread_mutex_lock(&g->lock);
    g->wanted = g->broken = false;
    g->making = g->making && !g->proving;
    g->proving = false;
    struct rdma_memory *memory = g->cell_memory;
    uint8_t *cell = g->cell;
    g->cell_memory = NULL;
    g->cell = NULL;
    pthread_mutex_unlock(&g->lock);
    if (memory != NULL && rdma_memory_remove(memory) == 0 && over) {
        munmap(cell, CELL_SIZE);
    }
}

/* Under r->lock, which all sets need; so it must not wait for the pair's lock, which may be held for ANSWER_NS. */
static bool look_at(struct gpu_pair *g, bool *ret_due)
{
    *ret_due = false;
    if (pthread_mutex_trylock(&g->lock) != 0) {
        return true; /* it is looked at again soon */
    }
    const bool broken = g->wanted && g->broken;
    *ret_due = broken && rdma_clock_ns() >= g->again_ns;
    pthread_mutex_unlock(&g->lock);
    return broken;
}

/* For the worker, which waits for no device: it looks at what it began. It does so for a device that is gone, too, because the
 * former pair must be closed. */
static void go_on(struct rdma *r, struct device *d)
{
    const struct timespec some = {.tv_nsec = NS_PER_MS};
    int error = -EAGAIN;

    if (!d->gpu.proving && begin_making(r, d) == 0) {
        d->gpu.proving = true;
        (void)nanosleep(&some, NULL); /* most answer within that */
    }
    if (d->gpu.proving && (error = look_for_answer(&d->gpu.new)) != -EAGAIN) {
        d->gpu.proving = false;
        end_making(r, d, error);
    }
}

bool rdma_gpu_look(struct rdma *r)
{
    bool broken = false, due;

    for (uint32_t i = 0; i < r->device_count && !r->stop; i++) {
        struct device *d = &r->devices[i];
        broken = look_at(&d->gpu, &due) || broken;
        if (due && d->handle != NULL) {
            atomic_fetch_add(&d->users, 1);
            pthread_mutex_unlock(&r->lock);
            go_on(r, d);
            pthread_mutex_lock(&r->lock);
            atomic_fetch_sub(&d->users, 1);
        }
    }
    return broken;
}

/* ---- requests ---- */

/* Under its lock, like all below. */
static int fail(struct gpu_pair *g)
{
    g->broken = true;
    g->stale = g->stale || g->posted > g->done;
    rdma_wake(g->rdma); /* the worker makes it anew */
    return -EIO;
}

static int poll_done(struct gpu_pair *g)
{
    struct rdma_done done[16];
    int count = 16;

    while (count == 16) {
        count = rdma_cq_poll(g->cq, done, 16);
        for (int i = 0; i < count; i++) {
            if (done[i].status != RDMA_OK) {
                return fail(g);
            }
            g->done = done[i].tag; /* in their order */
        }
        g->since_ns = count > 0 ? rdma_clock_ns() : g->since_ns;
    }
    return count < 0 ? fail(g) : 0;
}

static bool usable(const struct device *d)
{
    return d->gpu.qp != NULL && !d->gpu.broken && !atomic_load(&d->gone);
}

/* Waits until at most so many are under way. A device takes some microseconds. */
static int await(struct device *d, uint64_t most)
{
    struct gpu_pair *g = &d->gpu;
    int64_t until_ns = 0;

    for (uint32_t i = 1;; i++) {
        const int r = poll_done(g);
        if (r < 0 || g->posted - g->done <= most) {
            return r;
        }
        if (i % SPINS == 0) {
            const int64_t now_ns = rdma_clock_ns();
            until_ns = until_ns == 0 ? now_ns + ANSWER_NS : until_ns;
            if (now_ns >= until_ns || atomic_load(&d->gone)) {
                return fail(g);
            }
        }
    }
}

static int move(struct rdma *r, uint32_t device, const struct memory *m, const void *gpu,
                uint32_t size, bool read)
{
    struct device *d = &r->devices[device];
    struct gpu_pair *g = &d->gpu;
    const uint32_t key = __atomic_load_n(&m->keys.remote[device], __ATOMIC_RELAXED);

    if (!usable(d) || key == 0) {
        return -EIO;
    }
    const struct rdma_piece own = {
        .from = g->cell, .size = size, .key = rdma_memory_key(g->cell_memory, false)};
    int error = await(d, REQUESTS - 1);
    if (error == 0 && rdma_qp_move(g->qp, g->posted + 1, &own, (uintptr_t)gpu, key, read) < 0) {
        error = fail(g);
    }
    if (error == 0) {
        g->since_ns = g->posted == g->done ? rdma_clock_ns() : g->since_ns;
        g->posted++;
    }
    return error;
}

/* -EINPROGRESS: it has failed, and may still write to the GPU. */
static int copy_by(struct rdma *r, uint32_t device, const struct memory *m, uint8_t *gpu,
                   uint8_t *own, size_t size, bool to_gpu)
{
    struct device *d = &r->devices[device];
    struct gpu_pair *g = &d->gpu;
    bool writes = false;
    int error = 0;

    pthread_mutex_lock(&g->lock);
    for (size_t at = 0; error == 0 && at < size; at += CELL_SIZE) {
        const uint32_t part = (uint32_t)(size - at < CELL_SIZE ? size - at : CELL_SIZE);
        error = !usable(d) ? -EIO : await(d, 0); /* the cell is free */
        if (error == 0 && to_gpu) {
            memcpy(g->cell, own + at, part);
        }
        error = error == 0 ? move(r, device, m, gpu + at, part, !to_gpu) : error;
        writes = error == 0 && to_gpu;
        error = error == 0 ? await(d, 0) : error;
        if (error == 0 && !to_gpu) {
            memcpy(own + at, g->cell, part);
        }
    }
    pthread_mutex_unlock(&g->lock);
    return error < 0 && writes ? -EINPROGRESS : error;
}

/* Waits until a broken one moves no data any more. False: that can't be known. */
static bool await_end(struct rdma *r, struct gpu_pair *g)
{
    const struct timespec some = {.tv_nsec = 50 * NS_PER_US};
    const int64_t until_ns = rdma_clock_ns() + ANSWER_NS;

    rdma_wake(r); /* it couldn't look while the pair was locked */
    for (;;) {
        pthread_mutex_lock(&g->lock);
        const bool stale = g->stale;
        pthread_mutex_unlock(&g->lock);
        if (!stale || rdma_clock_ns() >= until_ns) {
            return !stale;
        }
        (void)nanosleep(&some, NULL);
    }
}

/* Another device is used only when this one writes no more: else it might write into a receive that is done. All devices answered
 * when their pairs were made. */
int rdma_gpu_copy(struct io_rdma *rdma, struct io_rdma_memory *memory, void *gpu, void *own,
                  size_t size, bool to_gpu, uint32_t *ret_device)
{
    struct rdma *r = rdma->driver;
    const struct memory *m = (const struct memory *)(void *)memory;
    const int64_t until_ns = rdma_clock_ns() + COPY_NS;

    for (uint32_t i = 0; i < r->device_count && (i == 0 || rdma_clock_ns() < until_ns); i++) {
        const int error = copy_by(r, i, m, gpu, own, size, to_gpu);
        if (error == 0) {
            *ret_device = i;
            return 0;
        }
        if (error == -EINPROGRESS && !await_end(r, &r->devices[i].gpu)) {
            return -EIO;
        }
    }
    return -EIO;
}

void rdma_gpu_drain(struct device *d)
{
    pthread_mutex_lock(&d->gpu.lock);
    if (usable(d)) {
        (void)await(d, 0);
    }
    pthread_mutex_unlock(&d->gpu.lock);
}

/* Reads READ_SIZE bytes of one range from `at` on, fewer at its end. */
static int read_from(struct rdma *r, uint32_t device, const struct memory *m, const uint8_t *at)
{
    const size_t left = m->range.size - (size_t)(at - (const uint8_t *)m->range.data);

    return move(r, device, m, at, (uint32_t)(left < READ_SIZE ? left : READ_SIZE), true);
}

int rdma_gpu_read(struct io_rdma *rdma, uint32_t device, struct io_rdma_memory *memory,
                  const void *at, uint64_t *ret_ticket)
{
    struct rdma *r = rdma->driver;
    int error = device < r->device_count ? 0 : -ENODEV;

    if (error < 0) {
        return error;
    }
    struct gpu_pair *g = &r->devices[device].gpu;
    pthread_mutex_lock(&r->memory_lock);
    pthread_mutex_lock(&g->lock);
    if (memory != NULL) {
        error = read_from(r, device, (const struct memory *)(void *)memory, at);
    }
    for (const struct memory *m = memory == NULL ? r->memories : NULL; error == 0 && m != NULL;
         m = m->next) {
        if (m->range.gpu && __atomic_load_n(&m->keys.remote[device], __ATOMIC_RELAXED) != 0) {
            error = read_from(r, device, m, m->range.data);
        }
    }
    *ret_ticket = g->posted;
    pthread_mutex_unlock(&g->lock);
    pthread_mutex_unlock(&r->memory_lock);
    return error;
}

int rdma_gpu_done(struct io_rdma *rdma, uint32_t device, uint64_t ticket)
{
    struct rdma *r = rdma->driver;
    struct device *d = &r->devices[device];
    struct gpu_pair *g = &d->gpu;

    pthread_mutex_lock(&g->lock);
    int error = usable(d) ? poll_done(g) : -EIO;
    if (error == 0 && ticket > g->done && rdma_clock_ns() - g->since_ns > ANSWER_NS) {
        error = fail(g);
    }
    if (ticket <= g->done && !(ticket > g->lost_after && ticket <= g->lost_to)) {
        error = 0;
    } else if (error == 0) {
        error = ticket <= g->lost_to ? -EIO : -EAGAIN;
    }
    pthread_mutex_unlock(&g->lock);
    return error;
}

/* If it can't read, its writes have arrived when the time is over. */
void rdma_gpu_settle(struct io_rdma *rdma, uint32_t device)
{
    const struct timespec some = {.tv_nsec = 20 * NS_PER_US};
    const int64_t until_ns = rdma_clock_ns() + ANSWER_NS;
    uint64_t ticket;
    const bool reads = rdma_gpu_read(rdma, device, NULL, NULL, &ticket) == 0;

    while (rdma_clock_ns() < until_ns && !(reads && rdma_gpu_done(rdma, device, ticket) == 0)) {
        (void)nanosleep(&some, NULL);
    }
}
