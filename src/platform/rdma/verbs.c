/* verbs.c: see verbs.h. The library's types are seen here and nowhere else. */
#include "platform/rdma/verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Macros around symbols: what they name is looked up by itself. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_get_device_list

/* What is called by name, each with the version since when it is there. Posting and polling go through the context. */
#define NEEDED(X)                                                                                  \
    X("IBVERBS_1.1", struct ibv_device **, get_device_list, (int *))                               \
    X("IBVERBS_1.1", void, free_device_list, (struct ibv_device **))                               \
    X("IBVERBS_1.1", const char *, get_device_name, (struct ibv_device *))                         \
    X("IBVERBS_1.1", struct ibv_context *, open_device, (struct ibv_device *))                     \
    X("IBVERBS_1.1", int, close_device, (struct ibv_context *))                                    \
    X("IBVERBS_1.1", int, query_device, (struct ibv_context *, struct ibv_device_attr *))          \
    X("IBVERBS_1.1", int, query_port, (struct ibv_context *, uint8_t, struct ibv_port_attr *))     \
    X("IBVERBS_1.1", int, query_gid, (struct ibv_context *, uint8_t, int, union ibv_gid *))        \
    X("IBVERBS_1.1", int, get_async_event, (struct ibv_context *, struct ibv_async_event *))       \
    X("IBVERBS_1.1", void, ack_async_event, (struct ibv_async_event *))                            \
    X("IBVERBS_1.1", struct ibv_pd *, alloc_pd, (struct ibv_context *))                            \
    X("IBVERBS_1.1", int, dealloc_pd, (struct ibv_pd *))                                           \
    X("IBVERBS_1.1", struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, int))              \
    X("IBVERBS_1.1", int, dereg_mr, (struct ibv_mr *))                                             \
    X("IBVERBS_1.1", struct ibv_cq *, create_cq,                                                   \
      (struct ibv_context *, int, void *, struct ibv_comp_channel *, int))                         \
    X("IBVERBS_1.1", int, destroy_cq, (struct ibv_cq *))                                           \
    X("IBVERBS_1.1", struct ibv_qp *, create_qp, (struct ibv_pd *, struct ibv_qp_init_attr *))     \
    X("IBVERBS_1.1", int, modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int))                 \
    X("IBVERBS_1.1", int, destroy_qp, (struct ibv_qp *))
#define OPTIONAL(X)                                                                                \
    X("IBVERBS_1.11", ssize_t, query_gid_table,                                                    \
      (struct ibv_context *, struct ibv_gid_entry *, size_t, uint32_t, size_t))                    \
    X("IBVERBS_1.12", struct ibv_mr *, reg_dmabuf_mr,                                              \
      (struct ibv_pd *, uint64_t, size_t, uint64_t, int, int))

#define MEMBER(version, type, name, arguments) type(*name) arguments;
struct rdma_verbs {
    void *library;
    NEEDED(MEMBER)
    OPTIONAL(MEMBER)
};

struct rdma_device {
    struct rdma_verbs *verbs;
    struct ibv_context *context;
    struct ibv_pd *pd;
};
struct rdma_memory {
    struct rdma_verbs *verbs;
    struct ibv_mr *mr;
};
struct rdma_cq {
    struct rdma_verbs *verbs;
    struct ibv_cq *cq;
};
struct rdma_qp {
    struct rdma_verbs *verbs;
    struct ibv_qp *qp;
    uint32_t port, inline_size;
    bool remote_write;
};

/* The library's functions return an errno, or -1 and errno, by their age. */
static int failed(int r)
{
    return r == 0 ? 0 : r > 0 ? -r : errno > 0 ? -errno : -EIO;
}

static int no_memory_or(int fallback)
{
    return errno > 0 ? -errno : fallback;
}

/* ---- the library ---- */

static bool look_up(struct rdma_verbs *v, const char *name, const char *version, void *ret_function)
{
    char symbol[64];
    void *found;

    snprintf(symbol, sizeof(symbol), "ibv_%s", name);
    found = dlvsym(v->library, symbol, version);
    if (found == NULL) { /* two have a name that begins with an underscore */
        snprintf(symbol, sizeof(symbol), "_ibv_%s", name);
        found = dlvsym(v->library, symbol, version);
    }
    memcpy(ret_function, &found, sizeof(found));
    return found != NULL;
}

static const char *look_up_all(struct rdma_verbs *v)
{
#define LOOK(version, type, name, arguments)                                                       \
    if (!look_up(v, #name, version, &v->name)) {                                                   \
        return "ibv_" #name;                                                                       \
    }
    NEEDED(LOOK)
#undef LOOK
#define LOOK(version, type, name, arguments) (void)look_up(v, #name, version, &v->name);
    OPTIONAL(LOOK)
#undef LOOK
    return NULL;
}

int rdma_verbs_open(struct rdma_verbs **ret_verbs, const char *library, char *ret_why, size_t size)
{
    const char *name = library != NULL ? library : "libibverbs.so.1";
    struct rdma_verbs *v = calloc(1, sizeof(*v));

    if (v == NULL) {
        snprintf(ret_why, size, "out of memory");
        return -ENOMEM;
    }
    v->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (v->library == NULL) {
        snprintf(ret_why, size, "%s", dlerror());
        free(v);
        return -ENOENT;
    }
    const char *missing = look_up_all(v);
    if (missing != NULL) {
        snprintf(ret_why, size, "%s has no function %s", name, missing);
        rdma_verbs_close(v);
        return -ENOSYS;
    }
    *ret_verbs = v;
    return 0;
}

struct rdma_verbs *rdma_verbs_close(struct rdma_verbs *v)
{
    if (v != NULL) {
        dlclose(v->library);
        free(v);
    }
    return NULL;
}

int rdma_verbs_devices(struct rdma_verbs *v, char (*ret_names)[RDMA_NAME_SIZE], int capacity)
{
    int count = 0;
    struct ibv_device **list = v->get_device_list(&count);

    if (list == NULL) {
        return errno == ENOSYS ? 0 : no_memory_or(-EIO); /* ENOSYS: the kernel has no RDMA */
    }
    for (int i = 0; i < count && i < capacity; i++) {
        snprintf(ret_names[i], RDMA_NAME_SIZE, "%s", v->get_device_name(list[i]));
    }
    v->free_device_list(list);
    return count <= capacity ? count : -E2BIG;
}

/* ---- devices ---- */

static struct ibv_context *open_named(struct rdma_verbs *v, const char *name)
{
    int count = 0;
    struct ibv_device **list = v->get_device_list(&count);
    struct ibv_context *context = NULL;

    if (list == NULL) {
        return NULL;
    }
    errno = ENODEV;
    for (int i = 0; i < count; i++) {
        if (strcmp(v->get_device_name(list[i]), name) == 0) {
            errno = 0;
            context = v->open_device(list[i]);
            break;
        }
    }
    const int why = errno;
    v->free_device_list(list);
    errno = why;
    return context;
}

int rdma_device_open(struct rdma_verbs *v, const char *name, struct rdma_device **ret_device)
{
    struct rdma_device *d = calloc(1, sizeof(*d));
    int r = -ENOMEM;

    if (d == NULL) {
        return r;
    }
    d->verbs = v;
    d->context = open_named(v, name);
    if (d->context == NULL) {
        r = no_memory_or(-EIO);
        free(d);
        return r;
    }
    d->pd = v->alloc_pd(d->context);
    const int flags = d->pd != NULL ? fcntl(d->context->async_fd, F_GETFL) : -1;
    if (flags < 0 || fcntl(d->context->async_fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        r = no_memory_or(-EIO);
        (void)rdma_device_close(d);
        return r;
    }
    *ret_device = d;
    return 0;
}

int rdma_device_close(struct rdma_device *d)
{
    int r = d->pd != NULL ? failed(d->verbs->dealloc_pd(d->pd)) : 0;

    if (d->verbs->close_device(d->context) != 0 && r == 0) {
        r = no_memory_or(-EIO);
    }
    free(d);
    return r;
}

int rdma_device_limits(struct rdma_device *d, struct rdma_limits *ret_limits)
{
    struct ibv_device_attr attr = {0};
    struct ibv_device_attr_ex more = {0};
    const int r = failed(d->verbs->query_device(d->context, &attr));

    if (r < 0) {
        return r;
    }
    *ret_limits = (struct rdma_limits){.qp = (uint32_t)attr.max_qp,
                                       .sends = (uint32_t)attr.max_qp_wr,
                                       .sge = (uint32_t)attr.max_sge,
                                       .cq = (uint32_t)attr.max_cq,
                                       .cqe = (uint32_t)attr.max_cqe,
                                       .memories = (uint32_t)attr.max_mr,
                                       .ports = attr.phys_port_cnt};
    /* The header's own function falls back on a symbol: it would have to be linked. */
    struct verbs_context *extended = verbs_get_ctx(d->context);
    if (extended != NULL &&
        extended->sz >= sizeof(*extended) - offsetof(struct verbs_context, query_device_ex) &&
        extended->query_device_ex != NULL &&
        extended->query_device_ex(d->context, NULL, &more, sizeof(more)) == 0) {
        ret_limits->cqe_stamps = more.completion_timestamp_mask != 0;
        ret_limits->clock_khz = more.hca_core_clock;
    }
    if (d->verbs->reg_dmabuf_mr != NULL) {
        /* A descriptor that isn't one: whoever can, tells that it is bad. */
        errno = 0;
        struct ibv_mr *mr = d->verbs->reg_dmabuf_mr(d->pd, 0, 4096, 0, -1, 0);
        ret_limits->dmabuf = mr == NULL && errno == EBADF;
        if (mr != NULL) {
            (void)d->verbs->dereg_mr(mr);
        }
    }
    return 0;
}

/* enum ibv_mtu: 1 is 256 bytes, 5 is 4096. */
static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

int rdma_device_port(struct rdma_device *d, uint32_t port, struct rdma_port_now *ret_port)
{
    struct ibv_port_attr attr = {0};
    const int r =
        port > UINT8_MAX ? -EINVAL : failed(d->verbs->query_port(d->context, (uint8_t)port, &attr));

    if (r < 0) {
        return r;
    }
    *ret_port =
        (struct rdma_port_now){.state = attr.state,
                               .active_mtu = mtu_bytes(attr.active_mtu),
                               .mtu = mtu_bytes(attr.max_mtu),
                               .lid = attr.lid,
                               .sm_lid = attr.sm_lid,
                               .lmc = attr.lmc,
                               .sl = attr.sm_sl,
                               .infiniband = attr.link_layer != IBV_LINK_LAYER_ETHERNET,
                               .grh_required = attr.link_layer == IBV_LINK_LAYER_ETHERNET ||
                                               (attr.flags & IBV_QPF_GRH_REQUIRED) != 0,
                               .gids = attr.gid_tbl_len > 0 ? (uint32_t)attr.gid_tbl_len : 0,
                               .pkeys = attr.pkey_tbl_len};
    return 0;
}

static int index_in_table(struct rdma_device *d, uint32_t port, const uint8_t gid[16],
                          uint32_t type)
{
    static const uint32_t types[] = {[IBV_GID_TYPE_IB] = RDMA_GID_IB,
                                     [IBV_GID_TYPE_ROCE_V1] = RDMA_GID_ROCE_V1,
                                     [IBV_GID_TYPE_ROCE_V2] = RDMA_GID_ROCE_V2};
    struct ibv_gid_entry *entries = calloc(1024, sizeof(*entries));
    ssize_t count = -ENOMEM;
    int found = -ENOENT;

    if (entries != NULL) {
        count = d->verbs->query_gid_table(d->context, entries, 1024, 0, sizeof(*entries));
    }
    for (ssize_t i = 0; i < count && found < 0; i++) {
        const uint32_t has = entries[i].gid_type < sizeof(types) / sizeof(types[0])
                                 ? types[entries[i].gid_type]
                                 : RDMA_GID_UNKNOWN;
        if (entries[i].port_num == port && memcmp(entries[i].gid.raw, gid, 16) == 0 &&
            (type == RDMA_GID_UNKNOWN || type == has)) {
            found = (int)entries[i].gid_index;
        }
    }
    free(entries);
    return count < 0 ? (int)count : found;
}

int rdma_device_gid_index(struct rdma_device *d, uint32_t port, const uint8_t gid[16],
                          uint32_t type)
{
    struct rdma_port_now now;
    union ibv_gid one;

    if (d->verbs->query_gid_table != NULL) {
        return index_in_table(d, port, gid, type);
    }
    if (type != RDMA_GID_UNKNOWN) { /* an old library: types are told by ports.h only */
        return -EOPNOTSUPP;
    }
    const int r = rdma_device_port(d, port, &now);
    for (uint32_t i = 0; r == 0 && i < now.gids; i++) {
        if (d->verbs->query_gid(d->context, (uint8_t)port, (int)i, &one) == 0 &&
            memcmp(one.raw, gid, 16) == 0) {
            return (int)i;
        }
    }
    return r < 0 ? r : -ENOENT;
}

int rdma_device_fd(const struct rdma_device *d)
{
    return d->context->async_fd;
}

static enum rdma_event_kind kind_of(const struct ibv_async_event *event, bool *ret_of_port,
                                    bool *ret_of_qp)
{
    *ret_of_port = *ret_of_qp = false;
    switch (event->event_type) {
    case IBV_EVENT_PORT_ACTIVE:
        *ret_of_port = true;
        return RDMA_EVENT_PORT_UP;
    case IBV_EVENT_PORT_ERR:
        *ret_of_port = true;
        return RDMA_EVENT_PORT_DOWN;
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
        *ret_of_port = true;
        return RDMA_EVENT_ADDRESS;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        *ret_of_qp = true;
        return RDMA_EVENT_QP;
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        *ret_of_qp = true;
        return RDMA_EVENT_OTHER;
    case IBV_EVENT_DEVICE_FATAL:
        return RDMA_EVENT_DEVICE_GONE;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_WQ_FATAL:
    default:
        return RDMA_EVENT_OTHER;
    }
}

int rdma_device_event(struct rdma_device *d, struct rdma_event *ret_event)
{
    struct ibv_async_event event;
    bool of_port, of_qp;

    errno = 0;
    if (d->verbs->get_async_event(d->context, &event) != 0) {
        return errno == EAGAIN || errno == EINTR ? -EAGAIN : no_memory_or(-EIO);
    }
    *ret_event = (struct rdma_event){.kind = kind_of(&event, &of_port, &of_qp),
                                     .number = (int)event.event_type};
    ret_event->port = of_port ? (uint32_t)event.element.port_num : 0;
    ret_event->qp = of_qp && event.element.qp != NULL ? event.element.qp->qp_num : 0;
    d->verbs->ack_async_event(&event);
    return 0;
}

/* ---- memory, completion queues ---- */

int rdma_memory_add(struct rdma_device *d, void *from, size_t size, bool remote_write,
                    struct rdma_memory **ret_memory)
{
    struct rdma_memory *m = calloc(1, sizeof(*m));

    if (m == NULL) {
        return -ENOMEM;
    }
    errno = 0;
    m->verbs = d->verbs;
    m->mr = d->verbs->reg_mr(d->pd, from, size,
                             IBV_ACCESS_LOCAL_WRITE | (remote_write ? IBV_ACCESS_REMOTE_WRITE : 0));
    if (m->mr == NULL) {
        free(m);
        return no_memory_or(-EIO);
    }
    *ret_memory = m;
    return 0;
}

int rdma_memory_remove(struct rdma_memory *m)
{
    const int r = failed(m->verbs->dereg_mr(m->mr));

    free(m);
    return r;
}

uint32_t rdma_memory_key(const struct rdma_memory *m, bool remote)
{
    return remote ? m->mr->rkey : m->mr->lkey;
}

int rdma_cq_open(struct rdma_device *d, uint32_t entries, struct rdma_cq **ret_cq)
{
    struct rdma_cq *cq = calloc(1, sizeof(*cq));

    if (cq == NULL) {
        return -ENOMEM;
    }
    errno = 0;
    cq->verbs = d->verbs;
    cq->cq = d->verbs->create_cq(d->context, (int)entries, NULL, NULL, 0);
    if (cq->cq == NULL) {
        free(cq);
        return no_memory_or(-EIO);
    }
    *ret_cq = cq;
    return 0;
}

int rdma_cq_close(struct rdma_cq *cq)
{
    const int r = failed(cq->verbs->destroy_cq(cq->cq));

    free(cq);
    return r;
}

static enum rdma_status status_of(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_SUCCESS:
        return RDMA_OK;
    case IBV_WC_WR_FLUSH_ERR:
        return RDMA_FLUSHED;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
        return RDMA_RETRIES;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return RDMA_RNR_RETRIES;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
        return RDMA_ACCESS;
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_MW_BIND_ERR:
        return RDMA_LOCAL;
    default:
        return RDMA_FATAL;
    }
}

int rdma_cq_poll(struct rdma_cq *cq, struct rdma_done *ret_done, int capacity)
{
    struct ibv_wc wc[16];
    const int count = ibv_poll_cq(cq->cq, capacity < 16 ? capacity : 16, wc);

    if (count < 0) {
        return -EIO;
    }
    for (int i = 0; i < count; i++) {
        const bool good = wc[i].status == IBV_WC_SUCCESS;
        ret_done[i] = (struct rdma_done){
            .tag = wc[i].wr_id,
            .qp = wc[i].qp_num,
            .status = status_of(wc[i].status),
            .receive = good && (wc[i].opcode & IBV_WC_RECV) != 0,
            .bytes = good && (wc[i].opcode & IBV_WC_RECV) != 0 ? wc[i].byte_len : 0,
            .vendor = good ? 0 : wc[i].vendor_err};
    }
    return count;
}

/* ---- queue pairs ---- */

int rdma_qp_open(struct rdma_device *d, struct rdma_cq *cq, const struct rdma_qp_config *config,
                 struct rdma_qp **ret_qp)
{
    struct ibv_qp_init_attr init = {.send_cq = cq->cq,
                                    .recv_cq = cq->cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = config->sends,
                                            .max_recv_wr = config->receives,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = config->inline_size}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = (uint8_t)config->port,
                               .qp_access_flags =
                                   config->remote_write ? IBV_ACCESS_REMOTE_WRITE : 0};
    struct rdma_qp *qp = calloc(1, sizeof(*qp));
    int r;

    if (qp == NULL) {
        return -ENOMEM;
    }
    errno = 0;
    *qp = (struct rdma_qp){
        .verbs = d->verbs, .port = config->port, .remote_write = config->remote_write};
    qp->qp = d->verbs->create_qp(d->pd, &init);
    if (qp->qp == NULL) {
        free(qp);
        return no_memory_or(-EIO);
    }
    qp->inline_size = init.cap.max_inline_data;
    r = failed(d->verbs->modify_qp(
        qp->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    if (r < 0) {
        (void)rdma_qp_close(qp);
        return r;
    }
    *ret_qp = qp;
    return 0;
}

uint32_t rdma_qp_number(const struct rdma_qp *qp)
{
    return qp->qp->qp_num;
}

static enum ibv_mtu mtu_number(uint32_t bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && mtu_bytes(mtu + 1) <= bytes) {
        mtu++;
    }
    return mtu;
}

int rdma_qp_connect(struct rdma_qp *qp, uint32_t own_psn, const struct rdma_path *path,
                    const struct rdma_timeouts *timeouts)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = mtu_number(path->mtu),
                               .dest_qp_num = path->qp,
                               .rq_psn = path->psn & 0xffffff,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = timeouts->rnr_timer,
                               .ah_attr = {.dlid = path->lid,
                                           .sl = path->sl,
                                           .src_path_bits = path->path_bits,
                                           .is_global = path->global,
                                           .port_num = (uint8_t)qp->port,
                                           .grh = {.flow_label = path->flow_label,
                                                   .sgid_index = path->own_gid_index,
                                                   .hop_limit = 64,
                                                   .traffic_class = path->traffic_class}}};
    int r;

    memcpy(attr.ah_attr.grh.dgid.raw, path->gid, sizeof(path->gid));
    errno = 0;
    r = failed(qp->verbs->modify_qp(qp->qp, &attr,
                                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                        IBV_QP_MIN_RNR_TIMER));
    if (r < 0) {
        return r;
    }
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = timeouts->timeout,
                                .retry_cnt = timeouts->retries,
                                .rnr_retry = timeouts->rnr_retries,
                                .sq_psn = own_psn & 0xffffff,
                                .max_rd_atomic = 1};
    return failed(qp->verbs->modify_qp(qp->qp, &attr,
                                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                           IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                           IBV_QP_MAX_QP_RD_ATOMIC));
}

int rdma_qp_silence(struct rdma_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    errno = 0;
    return failed(qp->verbs->modify_qp(qp->qp, &attr, IBV_QP_STATE));
}

int rdma_qp_close(struct rdma_qp *qp)
{
    errno = 0;
    const int r = failed(qp->verbs->destroy_qp(qp->qp));

    free(qp);
    return r;
}

int rdma_qp_send(struct rdma_qp *qp, uint64_t tag, const struct rdma_piece *write, uint64_t to,
                 uint32_t remote_key, const struct rdma_piece *send)
{
    struct ibv_sge from[2] = {
        {.addr = (uintptr_t)send->from, .length = send->size, .lkey = send->key}};
    const bool is_inline = send->key == 0;
    struct ibv_send_wr second = {.wr_id = tag,
                                 .sg_list = &from[0],
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags =
                                     IBV_SEND_SIGNALED | (is_inline ? IBV_SEND_INLINE : 0)};
    struct ibv_send_wr first = {.wr_id = tag,
                                .next = &second,
                                .sg_list = &from[1],
                                .num_sge = 1,
                                .opcode = IBV_WR_RDMA_WRITE};
    struct ibv_send_wr *bad = NULL;

    if (is_inline && send->size > qp->inline_size) {
        return -EMSGSIZE;
    }
    if (write != NULL) {
        from[1] = (struct ibv_sge){
            .addr = (uintptr_t)write->from, .length = write->size, .lkey = write->key};
        first.wr.rdma.remote_addr = to;
        first.wr.rdma.rkey = remote_key;
    }
    errno = 0;
    const int r = failed(ibv_post_send(qp->qp, write != NULL ? &first : &second, &bad));
    return r == -ENOMEM ? -EAGAIN : r;
}

int rdma_qp_receive(struct rdma_qp *qp, uint64_t tag, void *to, uint32_t size, uint32_t key)
{
    struct ibv_sge into = {.addr = (uintptr_t)to, .length = size, .lkey = key};
    struct ibv_recv_wr request = {.wr_id = tag, .sg_list = &into, .num_sge = 1}, *bad = NULL;

    errno = 0;
    const int r = failed(ibv_post_recv(qp->qp, &request, &bad));
    return r == -ENOMEM ? -EAGAIN : r;
}
