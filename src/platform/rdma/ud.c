/* ud.c: see ud.h. */
#include "platform/rdma/ud.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "platform/rdma/library.h"

#define CELLS 64 /* receives */
#define SENDS 16
#define WAYS  64
/* Bytes before the payload: a global route header, or undefined bytes. */
#define HEAD 40
/* Of any port: no packet is longer than a receive buffer, which would be an error on some devices. */
#define MTU_MOST   4096
#define BATCH      16
#define LEAVES_NS  5000000
#define SEND_MARK  (1ULL << 32) /* marks tags of sends */
#define STAMP_MOST 10000000000  /* ns: an older stamp is not from this clock */
/* A driver may need a second to resolve a neighbour. At most this share of the time is spent on it. */
#define WAY_SHARE      100
#define STOOD_STILL_NS 1000000

struct way {
    struct ibv_ah *handle; /* NULL: unused */
    uint8_t gid[16];
    uint16_t lid;
    struct rdma_ud_way way;
    uint64_t used;
};
struct cell {
    uint8_t bytes[HEAD + MTU_MOST];
};
struct came {
    uint32_t cell, size, from_qp;
    struct rdma_span when;
};
struct sent {
    bool waits;
    int64_t given_ns;
    struct rdma_span left;
};

struct rdma_ud {
    struct rdma_device *device;
    struct rdma_ud_config config;
    struct rdma_ud_address own;
    struct ibv_cq *cq;
    struct ibv_cq_ex *cq_ex; /* the same queue, if it has stamps; else NULL */
    uint64_t clock_khz;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct {
        struct cell in[CELLS];
        uint8_t out[SENDS][RDMA_UD_SIZE];
    } * memory;
    struct came came[CELLS]; /* a ring: completions that were seen and not taken */
    uint32_t came_head, came_count;
    struct sent sent[SENDS];
    struct way ways[WAYS];
    uint64_t turn;
    int64_t empty_ns;      /* packets that were not seen by then came later */
    int64_t rest_until_ns; /* no address handle is made before this time */
    bool broken;
};

static int64_t now_ns(const struct rdma_ud *u)
{
    return u->config.now_ns(u->config.context);
}

/* ---- completions ---- */

struct done {
    uint64_t tag, stamp;
    enum ibv_wc_status status;
    bool receive;
    uint32_t size, from_qp;
};

/* Converts a stamp to the caller's clock. The device's clock is read between two readings of the caller's clock. The device's
 * rate is within 200 ppm of the caller's. False: not known. */
static bool place(struct rdma_ud *u, uint64_t stamp, struct rdma_span *ret)
{
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    const int64_t before = now_ns(u);
    const int r = ibv_query_rt_values_ex(u->device->context, &values);
    const int64_t after = now_ns(u);
    /* drivers return ticks, in tv_nsec */
    const uint64_t now =
        (uint64_t)values.raw_clock.tv_sec * 1000000000 + (uint64_t)values.raw_clock.tv_nsec;
    const double age_ns = (double)(int64_t)(now - stamp) * 1e6 / (double)u->clock_khz;

    if (r != 0 || (values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK) == 0 || age_ns < 0 ||
        age_ns > STAMP_MOST) {
        return false;
    }
    /* both readings are rounded down to ticks */
    const int64_t tick = 1000000 / (int64_t)u->clock_khz;
    const int64_t age = (int64_t)age_ns, error = 2 + tick + age / 5000;
    *ret = (struct rdma_span){before - age - error, after - age + error, true};
    return true;
}

static void book(struct rdma_ud *u, const struct done *d, int64_t looked_ns)
{
    struct rdma_span when = {u->empty_ns, looked_ns, false}, stamped;
    const uint32_t index = (uint32_t)d->tag % (d->receive ? CELLS : SENDS);
    struct sent *s = &u->sent[(uint32_t)d->tag % SENDS];

    if (d->status != IBV_WC_SUCCESS) {
        u->broken = true;
        return;
    }
    if (!d->receive) {
        when.earliest_ns = s->given_ns;
    }
    if (u->cq_ex != NULL && place(u, d->stamp, &stamped) && stamped.earliest_ns <= when.latest_ns &&
        stamped.latest_ns >= when.earliest_ns) {
        when = (struct rdma_span){
            stamped.earliest_ns > when.earliest_ns ? stamped.earliest_ns : when.earliest_ns,
            stamped.latest_ns < when.latest_ns ? stamped.latest_ns : when.latest_ns, true};
    }
    if (!d->receive) {
        s->waits = false;
        s->left = when;
    } else if (d->size >= HEAD && u->came_count < CELLS) {
        u->came[(u->came_head + u->came_count++) % CELLS] =
            (struct came){index, d->size - HEAD, d->from_qp, when};
    }
}

static int take_plain(struct rdma_ud *u, struct done *ret)
{
    struct ibv_wc wc[BATCH];
    const int count = ibv_poll_cq(u->cq, BATCH, wc);

    for (int i = 0; i < count; i++) {
        ret[i] = (struct done){.tag = wc[i].wr_id,
                               .status = wc[i].status,
                               .receive = (wc[i].wr_id & SEND_MARK) == 0,
                               .size = wc[i].byte_len,
                               .from_qp = wc[i].src_qp};
    }
    return count;
}

static int take_stamped(struct rdma_ud *u, struct done *ret)
{
    struct ibv_poll_cq_attr attr = {0};
    struct ibv_cq_ex *cq = u->cq_ex;
    int count = 0, r = ibv_start_poll(cq, &attr);

    if (r != 0) {
        return r == ENOENT ? 0 : -1;
    }
    while (r == 0) {
        const bool good = cq->status == IBV_WC_SUCCESS, receive = (cq->wr_id & SEND_MARK) == 0;
        ret[count++] = (struct done){.tag = cq->wr_id,
                                     .status = cq->status,
                                     .receive = receive,
                                     .stamp = good ? ibv_wc_read_completion_ts(cq) : 0,
                                     .size = good && receive ? ibv_wc_read_byte_len(cq) : 0,
                                     .from_qp = good && receive ? ibv_wc_read_src_qp(cq) : 0};
        r = count < BATCH ? ibv_next_poll(cq) : ENOENT;
    }
    ibv_end_poll(cq);
    return r == ENOENT ? count : -1;
}

/* Polls once. -EIO: the queue is broken. */
static int look(struct rdma_ud *u)
{
    struct done done[BATCH];
    const int64_t before = now_ns(u);
    const int count = u->cq_ex != NULL ? take_stamped(u, done) : take_plain(u, done);
    const int64_t after = now_ns(u);

    u->broken = u->broken || count < 0;
    for (int i = 0; i < count; i++) {
        book(u, &done[i], after);
    }
    if (count < BATCH) { /* these were all completions at the time of the poll's beginning */
        u->empty_ns = before;
    }
    return u->broken ? -EIO : 0;
}

/* ---- opening ---- */

static int open_cq(struct rdma_ud *u)
{
    struct rdma_limits limits = {0};
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    struct rdma_device *d = u->device;
    struct ibv_cq_init_attr_ex init = {.cqe = CELLS + SENDS,
                                       .cq_context = (void *)(uintptr_t)u->config.tag,
                                       .channel = d->channel,
                                       .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_SRC_QP |
                                                   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};

    if (rdma_device_limits(d, &limits) == 0 && limits.cqe_stamps && limits.clock_khz > 0 &&
        ibv_query_rt_values_ex(d->context, &values) == 0) {
        u->clock_khz = limits.clock_khz;
        u->cq_ex = ibv_create_cq_ex(d->context, &init);
        u->cq = u->cq_ex != NULL ? ibv_cq_ex_to_cq(u->cq_ex) : NULL;
    }
    errno = 0;
    if (u->cq == NULL) {
        u->cq = d->verbs->create_cq(d->context, CELLS + SENDS, init.cq_context, d->channel, 0);
    }
    return u->cq != NULL ? 0 : no_memory_or(-EIO);
}

static int open_memory(struct rdma_ud *u)
{
    u->memory =
        mmap(NULL, sizeof(*u->memory), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (u->memory == MAP_FAILED) {
        u->memory = NULL;
        return -ENOMEM;
    }
    errno = 0;
    u->mr = u->device->verbs->reg_mr(u->device->pd, u->memory, sizeof(*u->memory),
                                     IBV_ACCESS_LOCAL_WRITE);
    return u->mr != NULL ? 0 : no_memory_or(-EIO);
}

static int post_receive(struct rdma_ud *u, uint32_t cell)
{
    struct ibv_sge into = {.addr = (uintptr_t)&u->memory->in[cell],
                           .length = sizeof(struct cell),
                           .lkey = u->mr->lkey};
    struct ibv_recv_wr request = {.wr_id = cell, .sg_list = &into, .num_sge = 1}, *bad = NULL;

    errno = 0;
    return failed(ibv_post_recv(u->qp, &request, &bad));
}

/* Uses the default partition, also as a limited member, because all agents are in it. If the port is not in it: its best
 * partition. The first entry of a table may be empty. */
static uint16_t partition_of(struct rdma_device *d, uint32_t port)
{
    int index = rdma_device_pkey_index(d, port, RDMA_PKEY_DEFAULT);

    index = index >= 0 ? index : rdma_device_pkey_index(d, port, 0);
    return (uint16_t)(index > 0 ? index : 0);
}

static int open_qp(struct rdma_ud *u)
{
    struct rdma_device *d = u->device;
    struct ibv_qp_init_attr init = {
        .send_cq = u->cq,
        .recv_cq = u->cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = SENDS, .max_recv_wr = CELLS, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = partition_of(d, u->config.port),
                               .port_num = (uint8_t)u->config.port,
                               .qkey = u->config.key};

    errno = 0;
    u->qp = d->verbs->create_qp(d->pd, &init);
    if (u->qp == NULL) {
        return no_memory_or(-EIO);
    }
    int r = failed(d->verbs->modify_qp(
        u->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    for (uint32_t i = 0; i < CELLS && r == 0; i++) {
        r = post_receive(u, i);
    }
    attr.qp_state = IBV_QPS_RTR;
    r = r == 0 ? failed(d->verbs->modify_qp(u->qp, &attr, IBV_QP_STATE)) : r;
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = 1};
    return r == 0 ? failed(d->verbs->modify_qp(u->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN)) : r;
}

int rdma_ud_open(struct rdma_device *d, const struct rdma_ud_config *config,
                 struct rdma_ud **ret_ud)
{
    struct rdma_port_now port;
    struct rdma_ud *u = calloc(1, sizeof(*u));

    if (u == NULL) {
        return -ENOMEM;
    }
    u->device = d;
    u->config = *config;
    int r = rdma_device_port(d, config->port, &port);
    if (r == 0) {
        r = rdma_device_gid_index(d, config->port, config->gid, config->gid_type);
        r = r > 0 ? 0 : r;
    }
    r = r == 0 ? open_cq(u) : r;
    r = r == 0 ? open_memory(u) : r;
    r = r == 0 ? open_qp(u) : r;
    if (r < 0) {
        (void)rdma_ud_close(u);
        return r;
    }
    u->own =
        (struct rdma_ud_address){.lid = port.infiniband ? port.lid : 0, /* meaningless for RoCE */
                                 .global = !port.infiniband || port.grh_required,
                                 .qp = u->qp->qp_num,
                                 .key = config->key};
    memcpy(u->own.gid, config->gid, sizeof(u->own.gid));
    u->empty_ns = now_ns(u);
    *ret_ud = u;
    return 0;
}

struct rdma_ud *rdma_ud_close(struct rdma_ud *u)
{
    if (u == NULL) {
        return NULL;
    }
    const struct rdma_verbs *v = u->device->verbs;
    bool safe = true;
    if (u->qp != NULL) {
        safe = v->destroy_qp(u->qp) == 0;
    }
    for (int i = 0; i < WAYS; i++) {
        if (u->ways[i].handle != NULL) {
            (void)v->destroy_ah(u->ways[i].handle);
        }
    }
    if (u->mr != NULL) {
        safe = v->dereg_mr(u->mr) == 0 && safe;
    }
    if (u->cq != NULL) {
        (void)v->destroy_cq(u->cq);
    }
    if (u->memory != NULL && safe) {
        /* otherwise the device may still write there, so the memory is never freed */
        (void)munmap(u->memory, sizeof(*u->memory));
    }
    free(u);
    return NULL;
}

void rdma_ud_address(const struct rdma_ud *u, struct rdma_ud_address *ret_own)
{
    *ret_own = u->own;
}

bool rdma_ud_device_stamps(const struct rdma_ud *u)
{
    return u->cq_ex != NULL;
}

/* ---- sending ---- */

/* The GID's index is looked up for each address handle, because indices change. */
static int make_way(struct rdma_ud *u, struct way *w)
{
    const int index =
        rdma_device_gid_index(u->device, u->config.port, u->config.gid, u->config.gid_type);
    struct ibv_ah_attr attr = {.dlid = w->lid,
                               .sl = w->way.sl,
                               .is_global = u->own.global,
                               .port_num = (uint8_t)u->config.port,
                               .grh = {.flow_label = w->way.flow_label,
                                       .sgid_index = (uint8_t)(index > 0 ? index : 0),
                                       .hop_limit = 64,
                                       .traffic_class = w->way.traffic_class}};

    if (index < 0) {
        return index;
    }
    memcpy(attr.grh.dgid.raw, w->gid, sizeof(w->gid));
    const int64_t before = now_ns(u);
    errno = 0;
    w->handle = u->device->verbs->create_ah(u->device->pd, &attr);
    const int r = w->handle != NULL ? 0 : no_memory_or(-EIO);
    const int64_t after = now_ns(u);
    if (after - before > STOOD_STILL_NS) {
        u->rest_until_ns = after + (WAY_SHARE - 1) * (after - before);
    }
    return r;
}

/* -EAGAIN: there is no handle, and the caller waited for the last one not long ago. So a neighbour that does not answer costs
 * no more than that. */
static int find_way(struct rdma_ud *u, const struct rdma_ud_address *to,
                    const struct rdma_ud_way *way, struct ibv_ah **ret_handle)
{
    const uint16_t lid = u->own.lid != 0 ? to->lid : 0;
    struct way *oldest = &u->ways[0];

    for (int i = 0; i < WAYS; i++) {
        struct way *w = &u->ways[i];
        if (w->handle != NULL && w->lid == lid && memcmp(w->gid, to->gid, 16) == 0 &&
            w->way.traffic_class == way->traffic_class && w->way.sl == way->sl &&
            w->way.flow_label == way->flow_label) {
            w->used = ++u->turn;
            *ret_handle = w->handle;
            return 0;
        }
        oldest = w->used < oldest->used ? w : oldest;
    }
    if (now_ns(u) < u->rest_until_ns) {
        return -EAGAIN;
    }
    struct way made = {.lid = lid, .way = *way};
    memcpy(made.gid, to->gid, sizeof(made.gid));
    const int r = make_way(u, &made);
    if (r < 0) {
        return r;
    }
    if (oldest->handle != NULL) {
        (void)u->device->verbs->destroy_ah(oldest->handle);
    }
    *oldest = made;
    oldest->used = ++u->turn;
    *ret_handle = oldest->handle;
    return 0;
}

static int post(struct rdma_ud *u, struct ibv_ah *handle, const struct rdma_ud_address *to,
                uint32_t slot, uint32_t size)
{
    struct ibv_sge from = {
        .addr = (uintptr_t)u->memory->out[slot], .length = size, .lkey = u->mr->lkey};
    struct ibv_send_wr request = {
        .wr_id = SEND_MARK | slot,
        .sg_list = &from,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.ud = {.ah = handle, .remote_qpn = to->qp, .remote_qkey = to->key}};
    struct ibv_send_wr *bad = NULL;

    errno = 0;
    const int r = failed(ibv_post_send(u->qp, &request, &bad));
    return r == -ENOMEM ? -EAGAIN : r;
}

int rdma_ud_send(struct rdma_ud *u, const struct rdma_ud_address *to, const struct rdma_ud_way *way,
                 const void *bytes, uint32_t size, struct rdma_span *ret_left)
{
    struct ibv_ah *handle = NULL;
    uint32_t slot = 0;

    if (size > RDMA_UD_SIZE) {
        return -EMSGSIZE;
    }
    int r = u->broken ? -EIO : find_way(u, to, way, &handle);
    if (r < 0) {
        return r;
    }
    while (slot < SENDS && u->sent[slot].waits) {
        slot++;
    }
    if (slot == SENDS) {
        return look(u) < 0 ? -EIO : -EAGAIN;
    }
    memcpy(u->memory->out[slot], bytes, size);
    struct sent *s = &u->sent[slot];
    *s = (struct sent){.waits = true, .given_ns = now_ns(u)};
    r = post(u, handle, to, slot, size);
    if (r < 0) {
        s->waits = false;
        return r;
    }
    while (s->waits) {
        if (look(u) < 0) {
            return -EIO;
        }
        if (s->waits && now_ns(u) - s->given_ns > LEAVES_NS) {
            return -ETIME;
        }
    }
    *ret_left = s->left;
    return 0;
}

/* ---- receiving ---- */

int rdma_ud_receive(struct rdma_ud *u, struct rdma_ud_packet *ret_packet)
{
    if (u->came_count == 0 && look(u) < 0) {
        return -EIO;
    }
    while (u->came_count > 0) {
        const struct came c = u->came[u->came_head];
        const bool fits = c.size <= RDMA_UD_SIZE;
        u->came_head = (u->came_head + 1) % CELLS;
        u->came_count--;
        if (fits) {
            ret_packet->size = c.size;
            ret_packet->from_qp = c.from_qp;
            ret_packet->came = c.when;
            memcpy(ret_packet->bytes, u->memory->in[c.cell].bytes + HEAD, c.size);
        }
        if (post_receive(u, c.cell) < 0) {
            u->broken = true;
            return -EIO;
        }
        if (fits) {
            return 0;
        }
    }
    return -EAGAIN;
}

int rdma_ud_arm(struct rdma_ud *u)
{
    errno = 0;
    return failed(ibv_req_notify_cq(u->cq, 0));
}
