/* fake.c: a libibverbs.so.1 for tests, with two devices: fake0 is RoCE (v1 and v2 GIDs), fake1 is
 * InfiniBand (LID, LMC). See fake.h. */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_get_device_list

enum { DEVICES = 2, GIDS = 6, QPS = 64, DEPTH = 256, HELD = 64 };

struct queue {
    struct ibv_cq cq;
    struct ibv_wc done[4 * DEPTH];
    unsigned head, count, capacity;
};
struct receive {
    uint64_t tag;
    void *to;
    uint32_t size;
};
struct pair {
    struct ibv_qp qp;
    struct ibv_qp_attr attr;
    struct queue *cq;
    struct receive receives[DEPTH];
    unsigned head, count, capacity, inline_size;
    int access;
    bool used;
};
struct memory {
    struct ibv_mr mr;
    int access;
    struct memory *next;
};
struct held {
    uint8_t *to;
    uint8_t *bytes;
    size_t size;
};

static struct ibv_device devices[DEVICES];
static struct pair pairs[QPS];
static struct memory *memories;
static struct held held[HELD];
static unsigned held_count;
static struct fake_control control;
static int events[2] = {-1, -1};
/* Posting, polling and the change of a queue pair's state may come from several threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t lander;
static bool late_runs;

/* ---- what a test does ---- */

struct fake_control *fake_control(void);
struct fake_control *fake_control(void)
{
    return &control;
}

void fake_event(int event, int port, uint32_t qp);
void fake_event(int event, int port, uint32_t qp)
{
    struct ibv_async_event e = {.event_type = (enum ibv_event_type)event};

    if (qp != 0) {
        e.element.qp = &pairs[qp % QPS].qp;
    } else {
        e.element.port_num = port;
    }
    if (write(events[1], &e, sizeof(e)) != sizeof(e)) {
        abort();
    }
}

/* All but the newest `kept` writes land. */
static void land(unsigned kept)
{
    while (held_count > kept) {
        memcpy(held[0].to, held[0].bytes, held[0].size);
        free(held[0].bytes);
        memmove(held, held + 1, --held_count * sizeof(held[0]));
    }
}

static void *land_late(void *nothing)
{
    const struct timespec late = {.tv_nsec = control.lies * 1000000L};

    nanosleep(&late, NULL);
    pthread_mutex_lock(&lock);
    land(0);
    pthread_mutex_unlock(&lock);
    return nothing;
}

static void from_environment(void) __attribute__((constructor));
static void from_environment(void)
{
    const char *lag = getenv("FOLIOT_FAKE_VERBS_LAG");

    control.lag = lag != NULL ? atoi(lag) : 0;
    const char *lies = getenv("FOLIOT_FAKE_VERBS_LIES");
    control.lies = lies != NULL ? atoi(lies) : 0;
}

/* Whether this call is to fail; sets errno. */
static bool refused(const char *function)
{
    __atomic_add_fetch(&control.calls, 1, __ATOMIC_RELAXED);
    if (control.gone) {
        errno = ENODEV;
        return true;
    }
    if (control.refuse != NULL && strcmp(control.refuse, function) == 0 && control.refuse_nth > 0 &&
        --control.refuse_nth == 0) {
        errno = control.refuse_errno;
        return true;
    }
    return false;
}

/* ---- devices ---- */

struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **list =
        refused("get_device_list") ? NULL : calloc(DEVICES + 1, sizeof(struct ibv_device *));

    if (list != NULL && control.no_list) {
        free(list);
        errno = ENOSYS;
        return NULL;
    }
    for (int i = 0; list != NULL && i < DEVICES; i++) {
        strcpy(devices[i].name, i == 0 ? "fake0" : "fake1");
        list[i] = &devices[i];
    }
    if (list != NULL) {
        *count = DEVICES;
    }
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

static void complete(struct pair *p, uint64_t tag, int status, int opcode, uint32_t bytes)
{
    struct queue *q = p->cq;
    struct ibv_wc wc = {.wr_id = tag,
                        .status = (enum ibv_wc_status)status,
                        .opcode = (enum ibv_wc_opcode)opcode,
                        .byte_len = bytes,
                        .qp_num = p->qp.qp_num};

    if (control.status != 0 && status == IBV_WC_SUCCESS) {
        memset(&wc, 0xa5, sizeof(wc)); /* in an error only these count */
        wc.wr_id = tag;
        wc.qp_num = p->qp.qp_num;
        wc.status = (enum ibv_wc_status)control.status;
        control.status = 0;
        p->attr.qp_state = IBV_QPS_ERR;
    }
    if (q->count < q->capacity) {
        q->done[(q->head + q->count++) % (4 * DEPTH)] = wc;
    }
}

static struct memory *memory_of(uint32_t key, const void *at, size_t size, int access)
{
    for (struct memory *m = memories; m != NULL; m = m->next) {
        const uint8_t *begin = m->mr.addr, *first = at;
        if (m->mr.lkey == key && first >= begin && first + size <= begin + m->mr.length &&
            (m->access & access) == access) {
            return m;
        }
    }
    return NULL;
}

/* To ERR: what is held lands before the first flush, unless this device lies. */
static void flush(struct pair *p)
{
    p->attr.qp_state = IBV_QPS_ERR;
    if (control.lies == 0) {
        land(0);
    }
    while (!control.no_flush && p->count > 0) {
        complete(p, p->receives[p->head].tag, IBV_WC_WR_FLUSH_ERR, 0, 0);
        p->head = (p->head + 1) % DEPTH;
        p->count--;
    }
}

static bool write_lands(const struct ibv_send_wr *w)
{
    uint8_t *to = (uint8_t *)(uintptr_t)w->wr.rdma.remote_addr;
    const void *from = (const void *)(uintptr_t)w->sg_list->addr;

    if (memory_of(w->wr.rdma.rkey, to, w->sg_list->length, IBV_ACCESS_REMOTE_WRITE) == NULL) {
        return false;
    }
    if (control.lag > 0 && held_count < HELD) {
        held[held_count] = (struct held){
            .to = to, .bytes = malloc(w->sg_list->length), .size = w->sg_list->length};
        memcpy(held[held_count++].bytes, from, w->sg_list->length);
        land((unsigned)control.lag);
    } else {
        memcpy(to, from, w->sg_list->length);
    }
    return true;
}

/* Status of the request at who posted it. */
static int execute(struct pair *p, const struct ibv_send_wr *w)
{
    struct pair *peer = &pairs[p->attr.dest_qp_num % QPS];
    const void *from = (const void *)(uintptr_t)w->sg_list->addr;

    if ((w->send_flags & IBV_SEND_INLINE) == 0 &&
        memory_of(w->sg_list->lkey, from, w->sg_list->length, 0) == NULL) {
        return IBV_WC_LOC_PROT_ERR;
    }
    if (control.drop || !peer->used || peer->qp.qp_num != p->attr.dest_qp_num ||
        peer->attr.qp_state < IBV_QPS_RTR || peer->attr.qp_state == IBV_QPS_ERR) {
        return IBV_WC_RETRY_EXC_ERR;
    }
    if (w->opcode == IBV_WR_RDMA_WRITE) {
        return (peer->access & IBV_ACCESS_REMOTE_WRITE) != 0 && write_lands(w)
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
    complete(peer, r->tag, IBV_WC_SUCCESS, IBV_WC_RECV, w->sg_list->length);
    return IBV_WC_SUCCESS;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *w, struct ibv_send_wr **bad)
{
    struct pair *p = &pairs[qp->qp_num % QPS];

    if (refused("post_send")) {
        *bad = w;
        return errno;
    }
    pthread_mutex_lock(&lock);
    for (; w != NULL; w = w->next) {
        const bool flushed = p->attr.qp_state == IBV_QPS_ERR;
        const int status = flushed                           ? IBV_WC_WR_FLUSH_ERR
                           : p->attr.qp_state != IBV_QPS_RTS ? IBV_WC_LOC_QP_OP_ERR
                                                             : execute(p, w);
        if (status != IBV_WC_SUCCESS || (w->send_flags & IBV_SEND_SIGNALED) != 0) {
            complete(p, w->wr_id, status,
                     w->opcode == IBV_WR_SEND ? IBV_WC_SEND : IBV_WC_RDMA_WRITE, 0);
        }
        if (status != IBV_WC_SUCCESS && !flushed) {
            flush(p);
        }
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *w, struct ibv_recv_wr **bad)
{
    struct pair *p = &pairs[qp->qp_num % QPS];
    const bool no = refused("post_recv");

    pthread_mutex_lock(&lock);
    const bool full = p->count == p->capacity;
    if (no || full) {
        *bad = w;
    } else {
        p->receives[(p->head + p->count++) % DEPTH] = (struct receive){
            .tag = w->wr_id, .to = (void *)(uintptr_t)w->sg_list->addr, .size = w->sg_list->length};
    }
    pthread_mutex_unlock(&lock);
    return control.gone ? ENODEV : no || full ? ENOMEM : 0;
}

static int poll_cq(struct ibv_cq *cq, int capacity, struct ibv_wc *wc)
{
    struct queue *q = (struct queue *)cq;
    int n = 0;

    if (refused("poll_cq")) {
        return -1;
    }
    pthread_mutex_lock(&lock);
    for (; n < capacity && q->count > 0; n++, q->count--) {
        wc[n] = q->done[q->head];
        q->head = (q->head + 1) % (4 * DEPTH);
    }
    if (control.lies > 0 && n > 0 && q->count == 0 && wc[n - 1].status == IBV_WC_WR_FLUSH_ERR &&
        !late_runs) {
        late_runs = pthread_create(&lander, NULL, land_late, NULL) == 0;
    }
    pthread_mutex_unlock(&lock);
    return n;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct verbs_context *v = refused("open_device") ? NULL : calloc(1, sizeof(*v));

    if (v == NULL) {
        return NULL;
    }
    if (events[0] < 0 && pipe2(events, O_CLOEXEC) < 0) {
        free(v);
        return NULL;
    }
    v->sz = sizeof(*v);
    v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    v->context.device = device;
    v->context.async_fd = events[0];
    v->context.ops.post_send = post_send;
    v->context.ops.post_recv = post_recv;
    v->context.ops.poll_cq = poll_cq;
    control.open++;
    return &v->context;
}

int ibv_close_device(struct ibv_context *context)
{
    control.open--;
    const int r = refused("close_device") ? -1 : 0;
    free(verbs_get_ctx(context));
    return r;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    (void)context;
    if (refused("query_device")) {
        return errno;
    }
    *attr = (struct ibv_device_attr){.max_qp = QPS,
                                     .max_qp_wr = DEPTH,
                                     .max_sge = 1,
                                     .max_cq = 8,
                                     .max_cqe = 4 * DEPTH,
                                     .max_mr = 1000,
                                     .phys_port_cnt = 1};
    return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *ret)
{
    const bool roce = context->device == &devices[0];
    const struct ibv_port_attr attr = {.state = IBV_PORT_ACTIVE,
                                       .max_mtu = IBV_MTU_4096,
                                       .active_mtu = roce ? IBV_MTU_1024 : IBV_MTU_4096,
                                       .gid_tbl_len = GIDS,
                                       .pkey_tbl_len = 1,
                                       .lid = roce ? 0 : 0x1c2,
                                       .sm_lid = roce ? 0 : 1,
                                       .lmc = roce ? 0 : 2,
                                       .link_layer = roce ? IBV_LINK_LAYER_ETHERNET
                                                          : IBV_LINK_LAYER_INFINIBAND};

    if (refused("query_port") || port != 1) {
        return control.gone ? ENODEV : EINVAL;
    }
    memcpy(ret, &attr,
           offsetof(struct ibv_port_attr,
                    port_cap_flags2)); /* as much as old programs have room for */
    return 0;
}

/* RoCE: fe80 v1, fe80 v2, 10.1.0.2 v1, nothing, 10.1.0.2 v2. */
static bool gid_at(const struct ibv_context *context, int index, union ibv_gid *gid, uint32_t *type)
{
    const bool roce = context->device == &devices[0];

    memset(gid, 0, sizeof(*gid));
    if (!roce || index < 2) {
        gid->raw[0] = 0xfe;
        gid->raw[1] = 0x80;
        gid->raw[15] = 7;
    } else {
        memcpy(gid->raw,
               (const uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [15] = 2}, 16);
    }
    *type = !roce                      ? IBV_GID_TYPE_IB
            : index == 1 || index == 4 ? IBV_GID_TYPE_ROCE_V2
                                       : IBV_GID_TYPE_ROCE_V1;
    return roce ? index != 3 && index < 5 : index == 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    uint32_t type;

    if (refused("query_gid") || port != 1 || index >= GIDS) {
        errno = EINVAL;
        return -1;
    }
    if (!gid_at(context, index, gid, &type)) {
        memset(gid, 0, sizeof(*gid));
    }
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                             size_t most, uint32_t flags, size_t size)
{
    ssize_t count = 0;

    if (refused("query_gid_table") || flags != 0 || size != sizeof(*entries)) {
        return -EINVAL;
    }
    for (int i = 0; i < GIDS && count < (ssize_t)most; i++) {
        struct ibv_gid_entry e = {.gid_index = (uint32_t)i, .port_num = 1};
        if (gid_at(context, i, &e.gid, &e.gid_type)) {
            entries[count++] = e;
        }
    }
    return count;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    return read(context->async_fd, event, sizeof(*event)) == sizeof(*event) ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    (void)event;
}

/* ---- what is opened on a device ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = refused("alloc_pd") ? NULL : calloc(1, sizeof(*pd));

    if (pd != NULL) {
        pd->context = context;
        control.open++;
    }
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    control.open--;
    free(pd);
    return 0;
}

static struct ibv_mr *memory_add(struct ibv_pd *pd, void *at, size_t size, int access)
{
    static uint32_t key = 0x1000;
    struct memory *m = calloc(1, sizeof(*m));

    if (m == NULL) {
        return NULL;
    }
    *m = (struct memory){.mr = {.context = pd->context, .pd = pd, .addr = at, .length = size},
                         .access = access,
                         .next = memories};
    m->mr.lkey = m->mr.rkey = key++;
    memories = m;
    control.open++;
    return &m->mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t size, int access)
{
    return refused("reg_mr") ? NULL : memory_add(pd, at, size, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t size, uint64_t iova,
                                 int fd, int access)
{
    (void)pd, (void)offset, (void)size, (void)iova, (void)access;
    errno = refused("reg_dmabuf_mr") ? errno : fd < 0 ? EBADF : EOPNOTSUPP;
    return NULL;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    for (struct memory **at = &memories; *at != NULL; at = &(*at)->next) {
        if (&(*at)->mr == mr) {
            struct memory *gone = *at;
            *at = gone->next;
            free(gone);
            control.open--;
            return 0;
        }
    }
    return EINVAL;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *tag,
                             struct ibv_comp_channel *channel, int vector)
{
    struct queue *q = refused("create_cq") || entries > 4 * DEPTH ? NULL : calloc(1, sizeof(*q));

    (void)channel, (void)vector;
    if (q != NULL) {
        q->cq.context = context;
        q->cq.cq_context = tag;
        q->capacity = (unsigned)entries;
        control.open++;
    }
    return q != NULL ? &q->cq : NULL;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    control.open--;
    free(cq);
    return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    static uint32_t number = 0x11; /* given in rising order */
    struct pair *p = &pairs[number % QPS];

    if (refused("create_qp")) {
        return NULL;
    }
    if (p->used || init->cap.max_recv_wr > DEPTH || init->qp_type != IBV_QPT_RC) {
        errno = ENOMEM;
        return NULL;
    }
    memset(p, 0, sizeof(*p));
    p->used = true;
    p->cq = (struct queue *)init->send_cq;
    p->capacity = init->cap.max_recv_wr;
    init->cap.max_inline_data = init->cap.max_inline_data > 128 ? 128 : init->cap.max_inline_data;
    p->qp = (struct ibv_qp){.context = pd->context,
                            .qp_num = number++,
                            .qp_type = IBV_QPT_RC,
                            .send_cq = init->send_cq,
                            .recv_cq = init->recv_cq};
    control.open++;
    return &p->qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    static const enum ibv_qp_state before[] = {
        [IBV_QPS_INIT] = IBV_QPS_RESET, [IBV_QPS_RTR] = IBV_QPS_INIT, [IBV_QPS_RTS] = IBV_QPS_RTR};
    struct pair *p = &pairs[qp->qp_num % QPS];

    if (refused("modify_qp")) {
        return errno;
    }
    if (attr->qp_state == IBV_QPS_ERR) {
        pthread_mutex_lock(&lock);
        flush(p);
        pthread_mutex_unlock(&lock);
        return 0;
    }
    if (attr->qp_state > IBV_QPS_RTS || attr->qp_state == IBV_QPS_RESET ||
        p->attr.qp_state != before[attr->qp_state]) {
        return EINVAL;
    }
    p->attr.qp_state = attr->qp_state;
    p->attr.dest_qp_num = (mask & IBV_QP_DEST_QPN) != 0 ? attr->dest_qp_num : p->attr.dest_qp_num;
    p->access = (mask & IBV_QP_ACCESS_FLAGS) != 0 ? (int)attr->qp_access_flags : p->access;
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    struct pair *p = &pairs[qp->qp_num % QPS];

    if (late_runs) {
        pthread_join(lander, NULL);
        late_runs = false;
    }
    pthread_mutex_lock(&lock);
    land(0);
    p->used = false;
    pthread_mutex_unlock(&lock);
    control.open--;
    return 0;
}
