/* fake_pair.c: queue pairs of the fake library. If both are in one process, a request is executed when it is posted. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_internal.h"

enum { HELD = 64 };

struct held {
    uint8_t *to;
    uint8_t *bytes;
    size_t size;
    bool gpu;
};

struct stuck {
    struct pair *pair;
    struct ibv_send_wr request;
    struct ibv_sge from;
};

struct pair pairs[QPS];
static struct stuck stuck[HELD];
static struct held held[HELD];
static unsigned held_count;
static pthread_t lander;
static bool late_runs;

/* ---- writes that are acknowledged before they are in memory ---- */

static unsigned held_of(bool gpu)
{
    unsigned count = 0;

    for (unsigned i = 0; i < held_count; i++) {
        count += held[i].gpu == gpu;
    }
    return count;
}

/* Puts all writes but the newest `kept` into memory: those to a GPU, or those to the host. */
static void land(bool gpu, unsigned kept)
{
    unsigned most = held_of(gpu);

    for (unsigned i = 0; most > kept && i < held_count;) {
        if (held[i].gpu != gpu) {
            i++;
            continue;
        }
        memcpy(held[i].to, held[i].bytes, held[i].size);
        free(held[i].bytes);
        memmove(held + i, held + i + 1, (--held_count - i) * sizeof(held[0]));
        most--;
    }
}

void fake_land(unsigned kept)
{
    land(false, kept);
}

static void *land_late(void *nothing)
{
    const struct timespec late = {.tv_sec = control->lies / 1000,
                                  .tv_nsec = control->lies % 1000 * 1000000L};

    nanosleep(&late, NULL);
    pthread_mutex_lock(&fake_lock);
    fake_land(0);
    pthread_mutex_unlock(&fake_lock);
    return nothing;
}

void fake_polled(const struct ibv_wc *wc, int count, bool empty)
{
    for (int i = 0; control->after_return && i < count; i++) {
        if (wc[i].status == IBV_WC_WR_FLUSH_ERR) {
            fake_land(0);
        }
    }
    if (control->lies > 0 && count > 0 && empty && wc[count - 1].status == IBV_WC_WR_FLUSH_ERR &&
        !late_runs) {
        late_runs = pthread_create(&lander, NULL, land_late, NULL) == 0;
    }
}

bool fake_write(const struct pair *p, uint32_t key, uint8_t *to, const void *from, uint32_t size)
{
    const struct memory *m = fake_memory(p, key, to, size, IBV_ACCESS_REMOTE_WRITE);

    if (m == NULL) {
        return false;
    }
    const bool gpu = m->exported != NULL;
    const int lag = gpu ? control->gpu_lag : control->lag;
    __atomic_add_fetch(&control->writes, 1, __ATOMIC_SEQ_CST);
    if (lag > 0 && held_count < HELD) {
        held[held_count] =
            (struct held){.to = fake_at(m, to), .bytes = malloc(size), .size = size, .gpu = gpu};
        memcpy(held[held_count++].bytes, from, size);
        land(gpu, (unsigned)lag);
    } else {
        land(gpu, 0); /* in their order */
        memcpy(fake_at(m, to), from, size);
    }
    return true;
}

/* Executes a read: all earlier writes are in memory by then. */
static bool read_there(const struct pair *p, uint32_t key, const uint8_t *from, uint8_t *to,
                       uint32_t size)
{
    const struct memory *m = fake_memory(p, key, from, size, IBV_ACCESS_REMOTE_READ);

    if (m == NULL) {
        return false;
    }
    __atomic_add_fetch(&control->gpu_reads, m->exported != NULL, __ATOMIC_SEQ_CST);
    land(m->exported != NULL, 0);
    memcpy(to, fake_at(m, from), size);
    return true;
}

void fake_flush(struct pair *p)
{
    p->attr.qp_state = IBV_QPS_ERR;
    if (control->lies == 0 && !control->after_return) {
        fake_land(0);
    }
    p->cq->flush_ns = control->marker_us > 0 ? wire_now_ns() + control->marker_us * 1000LL : 0;
    if (p->device->wire) {
        wire_flush(p);
    }
    while (!control->no_flush && p->count > 0) {
        const unsigned at = control->disorder ? (p->head + p->count - 1) % DEPTH : p->head;
        fake_complete(p, p->receives[at].tag, IBV_WC_WR_FLUSH_ERR, 0, 0);
        p->head = control->disorder ? p->head : (p->head + 1) % DEPTH;
        p->count--;
    }
}

/* ---- within the process ---- */

/* A number on the wire is a device's: another device may have the same number. */
bool fake_loops(const struct pair *p)
{
    const struct ibv_ah_attr *ah = &p->attr.ah_attr;
    const struct device *d = p->device;

    return p->attr.dest_qp_num == p->qp.qp_num &&
           (!d->wire || (d->roce ? memcmp(ah->grh.dgid.raw, d->ip, sizeof(d->ip)) == 0
                                 : ah->dlid >> 2 == d->ip[15]));
}

static struct pair *peer_of(struct pair *p)
{
    if (fake_loops(p)) {
        return p;
    }
    for (int i = 0; i < QPS; i++) {
        if (pairs[i].used && pairs[i].qp.qp_num == p->attr.dest_qp_num) {
            return &pairs[i];
        }
    }
    return NULL;
}

/* Executes a request. Returns its status for the requester. */
static int execute(struct pair *p, const struct ibv_send_wr *w)
{
    struct pair *peer = peer_of(p);
    const void *from = (const void *)(uintptr_t)w->sg_list->addr;

    if ((w->send_flags & IBV_SEND_INLINE) == 0) {
        const struct memory *m = fake_memory(p, w->sg_list->lkey, from, w->sg_list->length, 0);
        if (m == NULL) {
            return IBV_WC_LOC_PROT_ERR;
        }
        from = fake_at(m, from);
    }
    if ((peer == p ? control->no_loopback : control->drop) || peer == NULL ||
        peer->attr.qp_state < IBV_QPS_RTR || peer->attr.qp_state == IBV_QPS_ERR ||
        (peer != p && /* it isn't known what NICs check in packets to the same queue pair */
         !fake_hears(fake_pkey(p->device, p->attr.pkey_index),
                     fake_pkey(peer->device, peer->attr.pkey_index)))) {
        return peer != NULL && control->dead_status != 0 ? control->dead_status
                                                         : IBV_WC_RETRY_EXC_ERR;
    }
    if (w->opcode == IBV_WR_RDMA_WRITE) {
        return (peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0 &&
                       fake_write(peer, w->wr.rdma.rkey,
                                  (uint8_t *)(uintptr_t)w->wr.rdma.remote_addr, from,
                                  w->sg_list->length)
                   ? IBV_WC_SUCCESS
                   : IBV_WC_REM_ACCESS_ERR;
    }
    if (w->opcode == IBV_WR_RDMA_READ) {
        return (peer->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) != 0 &&
                       read_there(peer, w->wr.rdma.rkey,
                                  (const uint8_t *)(uintptr_t)w->wr.rdma.remote_addr,
                                  (uint8_t *)(uintptr_t)from, w->sg_list->length)
                   ? IBV_WC_SUCCESS
                   : IBV_WC_REM_ACCESS_ERR;
    }
    if (peer->count == 0) {
        return IBV_WC_RNR_RETRY_EXC_ERR;
    }
    struct receive *r = &peer->receives[peer->head];
    if (r->size < w->sg_list->length) {
        return IBV_WC_REM_INV_REQ_ERR;
    }
    memcpy(r->to, from, w->sg_list->length);
    peer->head = (peer->head + 1) % DEPTH;
    peer->count--;
    fake_complete(peer, r->tag, IBV_WC_SUCCESS, IBV_WC_RECV, w->sg_list->length);
    return IBV_WC_SUCCESS;
}

static bool is_stuck(const struct pair *p)
{
    return fake_loops(p) && control->stuck[0] != 0 &&
           (strcmp(control->stuck, "*") == 0 ||
            strcmp(control->stuck, p->device->device.name) == 0) &&
           control->stuck_count < HELD;
}

static void keep_stuck(struct pair *p, const struct ibv_send_wr *w)
{
    struct stuck *s = &stuck[control->stuck_count++];

    *s = (struct stuck){.pair = p, .request = *w, .from = *w->sg_list};
}

/* Called before the pair is destroyed. */
static void move_stuck(struct pair *p)
{
    for (int i = 0; i < control->stuck_count;) {
        if (stuck[i].pair != p) {
            i++;
            continue;
        }
        stuck[i].request.sg_list = &stuck[i].from;
        (void)execute(p, &stuck[i].request);
        stuck[i] = stuck[--control->stuck_count];
    }
}

static void post_here(struct pair *p, const struct ibv_send_wr *w)
{
    if (p->attr.qp_state == IBV_QPS_RTS && is_stuck(p)) {
        keep_stuck(p, w);
        return;
    }
    const bool flushed = p->attr.qp_state == IBV_QPS_ERR;
    const int status = flushed                           ? IBV_WC_WR_FLUSH_ERR
                       : p->attr.qp_state != IBV_QPS_RTS ? IBV_WC_LOC_QP_OP_ERR
                       : p->ud                           ? fake_execute_datagram(p, w)
                                                         : execute(p, w);

    if (status != IBV_WC_SUCCESS || (w->send_flags & IBV_SEND_SIGNALED) != 0) {
        fake_complete(p, w->wr_id, status,
                      w->opcode == IBV_WR_SEND        ? IBV_WC_SEND
                      : w->opcode == IBV_WR_RDMA_READ ? IBV_WC_RDMA_READ
                                                      : IBV_WC_RDMA_WRITE,
                      0);
    }
    if (status != IBV_WC_SUCCESS && !flushed) {
        fake_flush(p);
    }
}

/* ---- verbs ---- */

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *w, struct ibv_send_wr **bad)
{
    struct pair *p = pair_of(qp);
    int r = 0;

    if (fake_refused(p->device, "post_send")) {
        *bad = w;
        return errno;
    }
    pthread_mutex_lock(&fake_lock);
    for (; r == 0 && w != NULL; w = w->next) {
        *bad = w;
        if (p->device->wire && !fake_loops(p)) {
            r = p->ud ? wire_post_datagram(p, w) : wire_post(p, w);
        } else {
            post_here(p, w);
        }
    }
    pthread_mutex_unlock(&fake_lock);
    return r;
}

int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *w, struct ibv_recv_wr **bad)
{
    struct pair *p = pair_of(qp);
    const bool no = fake_refused(p->device, "post_recv");
    const int why = errno;

    pthread_mutex_lock(&fake_lock);
    const bool full = p->count == p->capacity;
    if (no || full) {
        *bad = w;
    } else if (p->attr.qp_state == IBV_QPS_ERR && !control->no_flush) {
        fake_complete(p, w->wr_id, IBV_WC_WR_FLUSH_ERR, 0, 0);
    } else {
        p->receives[(p->head + p->count++) % DEPTH] =
            (struct receive){.tag = w->wr_id,
                             .to = (void *)(uintptr_t)w->sg_list->addr,
                             .size = w->sg_list->length,
                             .key = w->sg_list->lkey};
    }
    pthread_mutex_unlock(&fake_lock);
    return no && why == ENODEV ? ENODEV : no || full ? ENOMEM : 0;
}

static struct pair *unused(void)
{
    for (int i = 0; i < QPS; i++) {
        if (!pairs[i].used) {
            return &pairs[i];
        }
    }
    return NULL;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    static uint32_t number = 0x11; /* given out in rising order */
    struct device *device = context_of(pd->context)->device;
    struct pair *p = NULL;

    if (fake_refused(device, "create_qp")) {
        return NULL;
    }
    pthread_mutex_lock(&fake_lock);
    p = unused();
    if (p == NULL || init->cap.max_recv_wr > DEPTH || init->cap.max_send_wr > DEPTH ||
        (init->qp_type != IBV_QPT_RC && init->qp_type != IBV_QPT_UD)) {
        pthread_mutex_unlock(&fake_lock);
        errno = ENOMEM;
        return NULL;
    }
    memset(p, 0, sizeof(*p));
    p->used = true;
    p->ud = init->qp_type == IBV_QPT_UD;
    p->device = device;
    p->cq = (struct queue *)init->send_cq;
    p->capacity = init->cap.max_recv_wr;
    p->sends = init->cap.max_send_wr;
    p->in_fd = p->out_fd = -1;
    init->cap.max_inline_data = init->cap.max_inline_data > 128 ? 128 : init->cap.max_inline_data;
    p->qp = (struct ibv_qp){.context = pd->context,
                            .qp_num = number++,
                            .qp_type = init->qp_type,
                            .send_cq = init->send_cq,
                            .recv_cq = init->recv_cq};
    const int r = device->wire ? wire_open(p) : 0;
    p->used = r == 0;
    __atomic_add_fetch(&control->open, r == 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&fake_lock);
    errno = -r;
    return r == 0 ? &p->qp : NULL;
}

/* Keeps the attributes of the mask. */
static void keep(struct ibv_qp_attr *own, const struct ibv_qp_attr *attr, int mask)
{
    own->qp_state = attr->qp_state;
    if ((mask & IBV_QP_PKEY_INDEX) != 0) {
        own->pkey_index = attr->pkey_index;
        control->pkey_index = attr->pkey_index;
    }
    if ((mask & IBV_QP_QKEY) != 0) {
        own->qkey = attr->qkey;
    }
    if ((mask & IBV_QP_ACCESS_FLAGS) != 0) {
        own->qp_access_flags = attr->qp_access_flags;
    }
    if ((mask & IBV_QP_AV) != 0) {
        control->sl = attr->ah_attr.sl;
        control->traffic_class = attr->ah_attr.grh.traffic_class;
        control->flow_label = attr->ah_attr.grh.flow_label;
        own->ah_attr = attr->ah_attr;
        own->path_mtu = attr->path_mtu;
        own->dest_qp_num = attr->dest_qp_num;
        own->rq_psn = attr->rq_psn;
        own->min_rnr_timer = attr->min_rnr_timer;
    }
    if ((mask & IBV_QP_TIMEOUT) != 0) {
        own->timeout = attr->timeout;
        own->retry_cnt = attr->retry_cnt;
        own->rnr_retry = attr->rnr_retry;
        own->sq_psn = attr->sq_psn;
    }
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    static const enum ibv_qp_state before[] = {
        [IBV_QPS_INIT] = IBV_QPS_RESET, [IBV_QPS_RTR] = IBV_QPS_INIT, [IBV_QPS_RTS] = IBV_QPS_RTR};
    struct pair *p = pair_of(qp);
    int r = 0;

    if (attr->qp_state == IBV_QPS_ERR) {
        fake_hang("silence");
    }
    if (fake_refused(p->device, "modify_qp")) {
        return errno;
    }
    if (attr->qp_state == IBV_QPS_RTR && control->connect_ms > 0) {
        const struct timespec cold = {.tv_sec = control->connect_ms / 1000,
                                      .tv_nsec = control->connect_ms % 1000 * 1000000L};
        nanosleep(&cold, NULL);
    }
    pthread_mutex_lock(&fake_lock);
    if (attr->qp_state == IBV_QPS_ERR) {
        fake_flush(p);
    } else if (attr->qp_state == IBV_QPS_INIT &&
               (fake_pkey(p->device, attr->pkey_index) & 0x7fff) == 0) {
        r = EINVAL; /* an empty entry of the table */
    } else if (attr->qp_state > IBV_QPS_RTS || attr->qp_state == IBV_QPS_RESET ||
               p->attr.qp_state != before[attr->qp_state]) {
        r = EINVAL;
    } else {
        const struct ibv_qp_attr was = p->attr;
        keep(&p->attr, attr, mask);
        r = attr->qp_state == IBV_QPS_RTR && p->device->wire && !p->ud ? wire_connect(p) : 0;
        p->attr = r == 0 ? p->attr : was;
        p->unacked = p->next = p->end = attr->qp_state == IBV_QPS_RTS ? p->attr.sq_psn : p->end;
    }
    pthread_mutex_unlock(&fake_lock);
    return r;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    struct pair *p = pair_of(qp);

    fake_hang("destroy_qp");
    if (strcmp(control->refuse, "destroy_qp") == 0) {
        return control->refuse_errno;
    }
    if (control->orphans && fake_gone(p->device)) {
        return EIO;
    }
    if (late_runs) {
        pthread_join(lander, NULL);
        late_runs = false;
    }
    pthread_mutex_lock(&fake_lock);
    fake_land(0);
    move_stuck(p);
    if (p->device->wire) {
        wire_close(p);
    }
    p->used = false;
    pthread_mutex_unlock(&fake_lock);
    __atomic_sub_fetch(&control->open, 1, __ATOMIC_SEQ_CST);
    return 0;
}
