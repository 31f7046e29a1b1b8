/* queue_pair.c: see verbs.h: registered memory, completion queues, queue pairs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "platform/rdma/library.h"
#include "platform/rdma/verbs.h"

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

int rdma_memory_add_gpu(struct rdma_device *d, int fd, uint64_t offset, void *address, size_t size,
                        struct rdma_memory **ret_memory)
{
    struct rdma_memory *m = d->verbs->reg_dmabuf_mr != NULL ? calloc(1, sizeof(*m)) : NULL;

    if (m == NULL) {
        return d->verbs->reg_dmabuf_mr == NULL ? -EOPNOTSUPP : -ENOMEM;
    }
    errno = 0;
    m->verbs = d->verbs;
    m->mr = d->verbs->reg_dmabuf_mr(d->pd, offset, size, (uintptr_t)address, fd,
                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                        IBV_ACCESS_REMOTE_READ);
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

int rdma_cq_open(struct rdma_device *d, uint32_t entries, uint64_t tag, struct rdma_cq **ret_cq)
{
    struct rdma_cq *cq = calloc(1, sizeof(*cq));

    if (cq == NULL) {
        return -ENOMEM;
    }
    errno = 0;
    cq->verbs = d->verbs;
    cq->cq = d->verbs->create_cq(d->context, (int)entries, (void *)(uintptr_t)tag, d->channel, 0);
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

int rdma_cq_arm(struct rdma_cq *cq)
{
    errno = 0;
    return failed(ibv_req_notify_cq(cq->cq, 0));
}

int rdma_device_armed_fd(const struct rdma_device *d)
{
    return d->channel->fd;
}

int rdma_device_armed(struct rdma_device *d, uint64_t *ret_tag)
{
    struct ibv_cq *cq = NULL;
    void *tag = NULL;

    errno = 0;
    if (d->verbs->get_cq_event(d->channel, &cq, &tag) != 0) {
        return errno == EAGAIN || errno == EINTR ? -EAGAIN : no_memory_or(-EIO);
    }
    *ret_tag = (uintptr_t)tag;
    d->verbs->ack_cq_events(cq, 1);
    return 0;
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
            .number = (uint8_t)wc[i].status,
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
                               .pkey_index = config->pkey_index,
                               .port_num = (uint8_t)config->port,
                               .qp_access_flags =
                                   (config->remote_write ? IBV_ACCESS_REMOTE_WRITE : 0) |
                                   (config->remote_read ? IBV_ACCESS_REMOTE_READ : 0)};
    struct rdma_qp *qp = calloc(1, sizeof(*qp));

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
    int r = failed(d->verbs->modify_qp(
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

uint32_t rdma_qp_inline(const struct rdma_qp *qp)
{
    return qp->inline_size;
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

    memcpy(attr.ah_attr.grh.dgid.raw, path->gid, sizeof(path->gid));
    errno = 0;
    int r = failed(qp->verbs->modify_qp(qp->qp, &attr,
                                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                            IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
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
    struct ibv_send_wr second = {
        .wr_id = tag,
        .sg_list = &from[0],
        .num_sge = send->size > 0, /* for some devices a piece of 0 bytes means 2 GiB */
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED | (is_inline ? IBV_SEND_INLINE : 0)};
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

int rdma_qp_move(struct rdma_qp *qp, uint64_t tag, const struct rdma_piece *own, uint64_t there,
                 uint32_t remote_key, bool read)
{
    struct ibv_sge here = {.addr = (uintptr_t)own->from, .length = own->size, .lkey = own->key};
    struct ibv_send_wr request = {.wr_id = tag,
                                  .sg_list = &here,
                                  .num_sge = 1,
                                  .opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                                  .send_flags = IBV_SEND_SIGNALED},
                       *bad = NULL;

    request.wr.rdma.remote_addr = there;
    request.wr.rdma.rkey = remote_key;
    errno = 0;
    const int r = failed(ibv_post_send(qp->qp, &request, &bad));
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
