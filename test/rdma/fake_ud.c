/* fake_ud.c: the fake library's datagrams, in one process and on the wire, its addresses, and completions with stamps. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fake_internal.h"

/* ---- completions with stamps, by a clock that is independent of the host's ---- */

enum { TICKS_KHZ = 125000 };

uint64_t fake_ticks(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return 0x123456789abULL + (uint64_t)t.tv_sec * TICKS_KHZ * 1000 +
           (uint64_t)t.tv_nsec * TICKS_KHZ / 1000000;
}

static int next_poll(struct ibv_cq_ex *cq)
{
    struct queue *q = (struct queue *)cq;
    int r = ENOENT;

    pthread_mutex_lock(&fake_lock);
    if (q->count > 0) {
        q->taken = q->done[q->head];
        q->taken_stamp = q->stamps[q->head];
        q->head = (q->head + 1) % DONE;
        q->count--;
        cq->wr_id = q->taken.wr_id;
        cq->status = q->taken.status;
        r = 0;
    }
    pthread_mutex_unlock(&fake_lock);
    return r;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
    (void)attr;
    return fake_refused(context_of(cq->context)->device, "poll_cq") ? EIO : next_poll(cq);
}

static void end_poll(struct ibv_cq_ex *cq)
{
    (void)cq;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
    return ((struct queue *)cq)->taken.byte_len;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
    return ((struct queue *)cq)->taken.src_qp;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
    return ((struct queue *)cq)->taken_stamp;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *init)
{
    struct queue *q = fake_refused(context_of(context)->device, "create_cq_ex")
                          ? NULL
                          : (struct queue *)ibv_create_cq(context, (int)init->cqe, init->cq_context,
                                                          init->channel, 0);

    if (q == NULL) {
        return NULL;
    }
    q->ex.start_poll = start_poll;
    q->ex.next_poll = next_poll;
    q->ex.end_poll = end_poll;
    q->ex.read_byte_len = read_byte_len;
    q->ex.read_src_qp = read_src_qp;
    q->ex.read_completion_ts = read_completion_ts;
    return &q->ex;
}

static int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
    if (fake_refused(context_of(context)->device, "query_rt_values")) {
        return errno;
    }
    values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    values->raw_clock = (struct timespec){.tv_nsec = (long)fake_ticks()};
    return 0;
}

static int query_device_ex(struct ibv_context *context,
                           const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size)
{
    (void)input;
    memset(attr, 0, size);
    attr->completion_timestamp_mask = UINT64_MAX;
    attr->hca_core_clock = TICKS_KHZ;
    return ibv_query_device(context, &attr->orig_attr);
}

void fake_stamping(struct verbs_context *verbs)
{
    verbs->create_cq_ex = create_cq_ex;
    verbs->query_rt_values = query_rt_values;
    verbs->query_device_ex = query_device_ex;
}

/* ---- datagrams within the process ---- */

/* The bytes of the header are garbage: no program may rely on them. */
void fake_datagram(struct pair *p, uint32_t from_qp, uint32_t key, const void *bytes, uint32_t size)
{
    const struct receive *r = &p->receives[p->head];

    if (!p->ud || key != p->attr.qkey || p->attr.qp_state < IBV_QPS_RTR ||
        p->attr.qp_state > IBV_QPS_RTS || p->count == 0 || r->size < FAKE_HEAD + size ||
        fake_memory(p, r->key, r->to, r->size, IBV_ACCESS_LOCAL_WRITE) == NULL) {
        return;
    }
    memset(r->to, 0xa5, FAKE_HEAD);
    memcpy((uint8_t *)r->to + FAKE_HEAD, bytes, size);
    p->head = (p->head + 1) % DEPTH;
    p->count--;
    fake_complete_from(p, r->tag, IBV_WC_SUCCESS, IBV_WC_RECV, FAKE_HEAD + size, from_qp);
}

/* Complete as soon as it is sent, also without a receiver. */
int fake_execute_datagram(const struct pair *p, const struct ibv_send_wr *w)
{
    const struct address *to = (const struct address *)w->wr.ud.ah;
    const void *from = (const void *)(uintptr_t)w->sg_list->addr;

    if (fake_memory(p, w->sg_list->lkey, from, w->sg_list->length, 0) == NULL) {
        return IBV_WC_LOC_PROT_ERR;
    }
    for (int i = 0; i < QPS && !control->drop; i++) {
        if (pairs[i].used && pairs[i].ud && pairs[i].qp.qp_num == w->wr.ud.remote_qpn &&
            fake_hears(fake_pkey(p->device, p->attr.pkey_index),
                       fake_pkey(pairs[i].device, pairs[i].attr.pkey_index)) &&
            memcmp(to->attr.grh.dgid.raw + 12, pairs[i].device->ip + 12, 4) == 0) {
            fake_datagram(&pairs[i], p->qp.qp_num, w->wr.ud.remote_qkey, from, w->sg_list->length);
        }
    }
    return IBV_WC_SUCCESS;
}

/* ---- on the wire ---- */

/* rdma-core's ibv_flow_label_to_udp_sport. */
uint16_t wire_port_of_label(uint32_t label)
{
    return (uint16_t)(((label & 0x3fff) ^ (label >> 14)) | 0xc000);
}

/* The socket from which it leaves: the queue pair's own, or one for the label's port, which the caller closes. */
static int socket_of(struct pair *p, const struct ibv_ah_attr *ah, bool *ret_close)
{
    const uint32_t label = ah->grh.flow_label;

    *ret_close = p->device->roce && label != 0 && getenv("FOLIOT_FAKE_VERBS_LABELS") != NULL;
    if (*ret_close) {
        return wire_socket(p->device->ip, wire_port_of_label(label), true);
    }
    if (p->out_fd < 0) { /* like rxe: the port follows from the queue pair's number */
        p->source_port = wire_port_of_label(p->qp.qp_num * 2654435761u >> 12);
        p->out_fd = wire_socket(p->device->ip, p->source_port, true);
    }
    return p->out_fd;
}

int wire_post_datagram(struct pair *p, const struct ibv_send_wr *w)
{
    const struct address *to = (const struct address *)w->wr.ud.ah;
    const uint8_t *from = (const uint8_t *)(uintptr_t)w->sg_list->addr;
    uint8_t ip[16];
    wire_peer(p->device, &to->attr, ip);
    struct wire_place peer = wire_place_of(ip, (uint16_t)w->wr.ud.remote_qpn);
    struct packet header = {.magic = MAGIC,
                            .kind = DATAGRAM,
                            .pkey = fake_pkey(p->device, p->attr.pkey_index),
                            .write = to->attr.grh.traffic_class,
                            .to_qp = w->wr.ud.remote_qpn,
                            .from_qp = p->qp.qp_num,
                            .rkey = w->wr.ud.remote_qkey};
    struct iovec parts[2] = {{.iov_base = &header, .iov_len = sizeof(header)},
                             {.iov_base = (void *)(uintptr_t)from, .iov_len = w->sg_list->length}};
    const struct msghdr message = {
        .msg_name = &peer.address, .msg_namelen = peer.size, .msg_iov = parts, .msg_iovlen = 2};
    int status = IBV_WC_SUCCESS;

    bool closes;

    if (p->attr.qp_state != IBV_QPS_RTS) {
        return EINVAL;
    }
    if (fake_memory(p, w->sg_list->lkey, from, w->sg_list->length, 0) == NULL) {
        status = IBV_WC_LOC_PROT_ERR;
    } else if (!control->drop) {
        const int fd = socket_of(p, &to->attr, &closes);
        if (fd >= 0) {
            wire_mark(fd, p->device->ip, to->attr.grh.traffic_class);
            (void)!sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        if (closes && fd >= 0) {
            close(fd);
        }
    }
    fake_complete(p, w->wr_id, status, IBV_WC_SEND, 0);
    return 0;
}

/* Datagrams that are delivered later. */
static struct late {
    int64_t due_ns;
    uint32_t to_qp, from_qp, key, size;
    uint8_t bytes[512];
} late[64];
static unsigned late_count;

void wire_on_datagram(struct pair *p, const struct packet *h, const uint8_t *bytes, uint32_t size,
                      int64_t now)
{
    if (control->late_ms == 0 || h->write != control->late_class || size > sizeof(late[0].bytes)) {
        fake_datagram(p, h->from_qp, h->rkey, bytes, size);
    } else if (late_count < 64) {
        struct late *l = &late[late_count++];
        *l = (struct late){
            now + control->late_ms * 1000000LL, h->to_qp, h->from_qp, h->rkey, size, {0}};
        memcpy(l->bytes, bytes, size);
    }
}

void wire_read_late(void)
{
    const char *name = getenv("FOLIOT_FAKE_VERBS_LATE");
    FILE *file = name != NULL ? fopen(name, "re") : NULL;
    unsigned class = 0;
    int ms = 0;

    if (file != NULL) {
        if (fscanf(file, "%u %d", &class, &ms) == 2) {
            control->late_class = (uint8_t) class;
            control->late_ms = ms;
        }
        fclose(file);
    }
}

void wire_deliver_late(int64_t now)
{
    while (late_count > 0 && late[0].due_ns <= now) {
        for (int i = 0; i < QPS; i++) {
            if (pairs[i].used && pairs[i].qp.qp_num == late[0].to_qp) {
                fake_datagram(&pairs[i], late[0].from_qp, late[0].key, late[0].bytes, late[0].size);
            }
        }
        memmove(late, late + 1, --late_count * sizeof(late[0]));
    }
}

/* ---- addresses ---- */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    const struct device *d = context_of(pd->context)->device;
    struct address *a = fake_refused(d, "create_ah") ? NULL : calloc(1, sizeof(*a));

    usleep((useconds_t)control->connect_ms * 1000);
    if (a == NULL) {
        return NULL;
    }
    if (d->roce && (!attr->is_global || fake_is_v4(attr->grh.dgid.raw) != fake_is_v4(d->ip))) {
        free(a);
        errno = EINVAL;
        return NULL;
    }
    control->flow_label = attr->grh.flow_label;
    *a = (struct address){.ah = {.context = pd->context, .pd = pd}, .attr = *attr};
    __atomic_add_fetch(&control->open, 1, __ATOMIC_SEQ_CST);
    return &a->ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    free(ah);
    __atomic_sub_fetch(&control->open, 1, __ATOMIC_SEQ_CST);
    return 0;
}
