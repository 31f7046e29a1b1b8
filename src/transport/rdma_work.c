/* rdma_work.c: see rdma.h: the thread that makes, connects and closes queue pairs. Each of these takes milliseconds; connecting
 * takes up to a second if the neighbour has to be resolved first. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "transport/rdma_private.h"

#define LINGER_LOOK_MS 2
#define RETIRE_LOOK_MS 250
#define PAGE           4096
#define MULTICAST_LID  0xc000 /* from here on; 0xffff is permissive */

/* ---- making ---- */

static int claim_cells(struct queue_pair *q)
{
    const size_t wanted = (size_t)(q->config.sends + q->config.receives) * q->config.cell_size;

    q->cells_size = (wanted + PAGE - 1) / PAGE * PAGE;
    void *cells =
        mmap(NULL, q->cells_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (cells == MAP_FAILED) {
        return -errno;
    }
    q->cells = cells;
    /* A child of fork() would share the pages copy-on-write, and the NIC would go on writing into the parent's old ones. */
    (void)!madvise(q->cells, q->cells_size, MADV_DONTFORK);
    const int r = rdma_memory_add(q->device->handle, q->cells, q->cells_size, false, &q->memory);
    q->key = r == 0 ? rdma_memory_key(q->memory, false) : 0;
    return r;
}

static int post_all(struct queue_pair *q)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < q->config.receives; i++) {
        r = rdma_post(q, i);
    }
    return r;
}

static int make(struct queue_pair *q)
{
    const struct io_qp_config *c = &q->config;
    struct rdma_device *d = q->device->handle;
    const uint32_t requests = c->writes ? 2 * c->sends : c->sends; /* a write before each one */
    const struct rdma_qp_config config = {.port = q->port,
                                          .sends = requests,
                                          .receives = c->receives,
                                          .inline_size = 64,
                                          .pkey_index = q->pkey_index,
                                          .remote_write = c->writes};
    int r = c->writes ? rdma_silencer_start(q->rdma, q->device) : 0;

    r = r == 0 ? claim_cells(q) : r;
    r = r == 0 ? rdma_cq_open(d, requests + c->receives, q->number | (uint64_t)q->generation << 32,
                              &q->cq)
               : r;
    r = r == 0 ? rdma_qp_open(d, q->cq, &config, &q->qp) : r;
    if (r < 0) {
        return r;
    }
    q->inline_size = rdma_qp_inline(q->qp);
    q->own.qp = rdma_qp_number(q->qp);
    return post_all(q);
}

/* Reports why it can't be made, and what the user can do. A device that is gone is reported elsewhere. */
static void tell_unmade(struct queue_pair *q, int error)
{
    struct rlimit limit;

    if (error != -ENOMEM) {
        if (!atomic_load(&q->device->gone)) {
            rdma_trouble_add(q->rdma,
                             "%s makes no queue pair: %s; expected /dev/infiniband/uverbs* to be "
                             "usable and the driver's log to tell more; lanes go over TCP",
                             q->device->name, strerror(-error));
        }
    } else if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        rdma_trouble_add(q->rdma,
                         "%s can't register memory: expected a `ulimit -l` of unlimited, found "
                         "%llu KiB; lanes go over TCP",
                         q->device->name, (unsigned long long)limit.rlim_cur / 1024);
    } else {
        rdma_trouble_add(q->rdma,
                         "%s has no room for another queue pair or its memory; lanes go over TCP",
                         q->device->name);
    }
}

/* ---- connecting ---- */

/* The other end's NIC drops packets of another partition. A peer of an older release doesn't send its P_Key, and the own one may
 * be unreadable. */
static bool at_odds(uint16_t own, uint16_t peer)
{
    return own != 0 && peer != 0 &&
           (((own ^ peer) & ~RDMA_PKEY_FULL) != 0 || ((own | peer) & RDMA_PKEY_FULL) == 0);
}

static int check_peer(const struct queue_pair *q)
{
    static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
    const struct io_qp_end *p = &q->peer;
    const bool own_v4 = memcmp(q->own.gid, v4, sizeof(v4)) == 0;
    const bool peer_v4 = memcmp(p->gid, v4, sizeof(v4)) == 0;

    if (q->infiniband != (p->lid != 0)) {
        rdma_trouble_add(
            q->rdma, "%s is %s, the peer's port is %s: no queue pair joins them; lanes go over TCP",
            q->device->name, q->infiniband ? "InfiniBand" : "RoCE",
            q->infiniband ? "RoCE" : "InfiniBand");
        return -EINVAL;
    }
    if (!q->infiniband && own_v4 != peer_v4) {
        rdma_trouble_add(q->rdma,
                         "%s is reached by IPv%c, the peer's port by IPv%c: no queue pair joins "
                         "them; lanes go over TCP",
                         q->device->name, own_v4 ? '4' : '6', peer_v4 ? '4' : '6');
        return -EINVAL;
    }
    if (q->infiniband && at_odds(q->own.pkey, p->pkey)) {
        rdma_trouble_add(q->rdma,
                         "%s/%u has the P_Key 0x%04x, the peer's port 0x%04x: expected the same "
                         "partition, and 0x8000 (full member) at one end at least; set "
                         "FOLIOT_IB_PKEY on both, or the subnet manager's partitions; lanes go "
                         "over TCP",
                         q->device->name, q->port, q->own.pkey, p->pkey);
        return -EINVAL;
    }
    if (q->infiniband && p->lid >= MULTICAST_LID) { /* its packets would go to all listeners */
        return -EINVAL;
    }
    return p->mtu_shift < 8 || p->mtu_shift > 12 || p->qp == 0 || p->qp > 0xffffff ||
                   p->psn > 0xffffff
               ? -EINVAL
               : 0;
}

/* This breaks nothing: packets have the smaller size. */
static void tell_mtu(const struct queue_pair *q, uint32_t theirs)
{
    if (q->mtu != theirs) {
        rdma_trouble_add(
            q->rdma,
            "%s/%u has an RDMA MTU of %u, a peer's port one of %u, and packets between "
            "them have %u bytes: expected the same at both ends (RoCE: set the MTU of "
            "both interfaces, 4200 or more for 4096)",
            q->device->name, q->port, q->mtu, theirs, q->mtu < theirs ? q->mtu : theirs);
    }
}

/* handle: q->qp, which fence() may take away meanwhile. It isn't destroyed before the worker is done. */
static int connect_pair(const struct queue_pair *q, struct rdma_qp *handle)
{
    const struct io_qp_end *p = &q->peer;
    const uint32_t theirs = 1u << p->mtu_shift;
    struct rdma_path path = {.lid = p->lid,
                             .global = q->grh || memcmp(q->own.gid, p->gid, 8) != 0,
                             .own_gid_index = q->gid_index,
                             .path_bits = q->path_bits,
                             .sl = q->config.sl != 0 ? q->config.sl - 1 : p->sl,
                             .traffic_class = q->config.traffic_class,
                             .flow_label = q->infiniband ? 0 : io_roce_label(q->config.path),
                             .mtu = q->mtu < theirs ? q->mtu : theirs,
                             .qp = p->qp,
                             .psn = p->psn};
    const struct rdma_timeouts timeouts = {.timeout = q->timeouts.timeout,
                                           .retries = q->timeouts.retries,
                                           .rnr_timer = q->timeouts.rnr_timer,
                                           .rnr_retries = q->timeouts.rnr_retries};
    const int index = rdma_device_gid_index(q->device->handle, q->port, q->own.gid,
                                            q->infiniband ? RDMA_GID_UNKNOWN : RDMA_GID_ROCE_V2);

    memcpy(path.gid, p->gid, sizeof(path.gid));
    if (index < 0 && !q->infiniband) {
        return index; /* the address has moved away since */
    }
    path.own_gid_index = index < 0 ? 0 : (uint8_t)index;
    tell_mtu(q, theirs);
    return rdma_qp_connect(handle, q->own.psn, &path, &timeouts);
}

/* ---- closing ---- */

/* If the device can't guarantee that no data moves any more, the cells are never freed. Called without the lock. */
static void destroy(struct queue_pair *q)
{
    bool safe = !q->unsafe;

    if (q->ending != NULL) { /* no thread came to destroy it */
        q->qp = q->ending;
    }
    if (q->qp != NULL) {
        safe = rdma_qp_close(q->qp) == 0 && safe;
    }
    if (q->cq != NULL) {
        (void)rdma_cq_close(q->cq);
    }
    if (q->memory != NULL) {
        safe = rdma_memory_remove(q->memory) == 0 && safe;
    }
    safe = safe || (q->device != NULL && rdma_device_removed(q->rdma, q->device));
    if (q->cells != NULL && safe) {
        munmap(q->cells, q->cells_size);
    }
    if (q->device != NULL) {
        atomic_fetch_sub(&q->device->users, 1);
    }
    free(q);
}

/* Takes completions, and drops them. */
static void drain(struct queue_pair *q)
{
    struct rdma_done done[STASH];
    int count;

    for (int i = 0; i < q->stash_count; i++) {
        q->sends_out -= q->sends_out > 0 && (q->stash[q->stash_at + i].tag >> 32) == 0;
    }
    q->stash_count = 0;
    while ((count = rdma_cq_poll(q->cq, done, STASH)) > 0) {
        for (int i = 0; i < count; i++) {
            q->sends_out -= q->sends_out > 0 && (done[i].tag >> 32) == 0;
            q->linger = q->linger && done[i].status == RDMA_OK;
        }
    }
    q->linger = q->linger && count == 0;
}

/* For one that is closing. True: it may be freed. */
static bool go_on(struct queue_pair *q, struct mono now)
{
    const int64_t age = mono_sub(now, q->closed).ns;

    if (q->qp == NULL) {
        return true;
    }
    if (q->linger && !q->silent) {
        drain(q);
    }
    if (!q->silent && (!q->linger || q->sends_out == 0 || age >= LINGER_NS)) {
        q->silent = true;
        (void)!rdma_qp_silence(q->qp);
        q->closed = now;
    }
    return q->silent && (mono_sub(now, q->closed).ns >= RETIRE_NS || atomic_load(&q->device->gone));
}

/* ---- the thread ---- */

static struct queue_pair *next_job(struct rdma *r)
{
    for (uint32_t i = 0; i < PROCESS_QUEUE_PAIRS_MAX; i++) {
        struct queue_pair *q = r->slots[i];
        if (q != NULL && (q->state == QP_MAKE || q->state == QP_CONNECT)) {
            return q;
        }
    }
    return NULL;
}

/* Under the lock, which it releases meanwhile. */
static void do_job(struct rdma *r, struct queue_pair *q)
{
    const bool making = q->state == QP_MAKE;

    q->busy = true;
    int error = making ? rdma_port_find(r, q) : check_peer(q);
    if (error == 0) {
        struct rdma_qp *handle = making ? NULL : q->qp;
        pthread_mutex_unlock(&r->lock);
        error = making ? make(q) : handle != NULL ? connect_pair(q, handle) : -ECANCELED;
        pthread_mutex_lock(&r->lock);
        if (error < 0 && making) {
            tell_unmade(q, error);
        }
    }
    q->busy = false;
    /* there is no second try, so -EAGAIN must not reach the caller */
    q->error = error == -EAGAIN ? -EIO : error;
    q->state = error < 0 ? QP_FAILED : making ? QP_MADE : QP_READY;
    q->answered = true;
    rdma_tell(q);
    rdma_silencer_look(q);
    if (q->closing) { /* closed meanwhile */
        rdma_retire(q);
    }
}

void rdma_retire(struct queue_pair *q)
{
    if (q->busy || q->asked || q->in_hand) {
        return;
    }
    q->next = q->rdma->closing;
    q->rdma->closing = q;
    rdma_wake(q->rdma);
}

/* Under the lock, which it releases meanwhile. True: some linger. */
static bool close_some(struct rdma *r)
{
    const struct mono now = r->io->now(r->io);
    bool lingers = false;
    uint32_t gone = 0;

    while (r->closing != NULL) {
        struct queue_pair *q = r->closing;
        r->closing = q->next;
        q->next = r->retired;
        r->retired = q;
    }
    pthread_mutex_unlock(&r->lock);
    for (struct queue_pair **at = &r->retired; *at != NULL;) {
        struct queue_pair *q = *at;
        if (go_on(q, now)) {
            *at = q->next;
            destroy(q);
            gone++;
            continue;
        }
        lingers = lingers || q->linger;
        at = &q->next;
    }
    pthread_mutex_lock(&r->lock);
    r->pair_count -= gone;
    return lingers;
}

/* Under the lock, which it releases meanwhile. ms -1: until it is woken. */
static void sleep_for(struct rdma *r, int ms)
{
    struct pollfd woken = {.fd = r->work, .events = POLLIN};
    uint64_t count;

    pthread_mutex_unlock(&r->lock);
    if (poll(&woken, 1, ms) > 0) {
        (void)!read(r->work, &count, sizeof(count));
    }
    pthread_mutex_lock(&r->lock);
}

static void destroy_all(struct queue_pair *q)
{
    while (q != NULL) {
        struct queue_pair *next = q->next;
        destroy(q);
        q = next;
    }
}

void rdma_end(struct rdma *r)
{
    for (uint32_t i = 0; i < PROCESS_QUEUE_PAIRS_MAX; i++) {
        if (r->slots[i] != NULL) {
            destroy(r->slots[i]);
        }
    }
    destroy_all(r->closing);
    destroy_all(r->retired);
    rdma_devices_close(r);
}

void *rdma_work(void *rdma)
{
    struct rdma *r = rdma;

    pthread_mutex_lock(&r->lock);
    while (!r->stop) {
        const bool lingers = close_some(r);
        const bool broken = rdma_gpu_look(r);
        struct queue_pair *q = r->stop ? NULL : next_job(r);
        if (q != NULL) {
            do_job(r, q);
        } else if (!r->stop && !rdma_memory_look(r) && !rdma_trace_look(r)) {
            const bool closes = r->retired != NULL || r->closing != NULL;
            sleep_for(r, closes && lingers  ? LINGER_LOOK_MS
                         : closes || broken ? RETIRE_LOOK_MS
                                            : rdma_memory_wait_ms(r));
        }
    }
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->watcher, NULL);
    rdma_silencers_end(r);
    rdma_end(r);
    pthread_mutex_lock(&r->lock);
    const bool abandoned = r->abandoned;
    atomic_store(&r->ended, true);
    pthread_mutex_unlock(&r->lock);
    if (abandoned) {
        rdma_free(r);
    }
    return NULL;
}
