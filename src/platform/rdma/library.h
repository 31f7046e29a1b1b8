/* library.h: only for platform/rdma: libibverbs for verbs.c, queue_pair.c and ud.c. No other file uses its types. */
#pragma once
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* These macros hide symbols that are looked up by name. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_get_device_list

/* The functions that are looked up by name, with the symbol version that has them. Posting and polling go through the context. */
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
    X("IBVERBS_1.1", int, query_pkey, (struct ibv_context *, uint8_t, int, __be16 *))              \
    X("IBVERBS_1.0", struct ibv_comp_channel *, create_comp_channel, (struct ibv_context *))       \
    X("IBVERBS_1.0", int, destroy_comp_channel, (struct ibv_comp_channel *))                       \
    X("IBVERBS_1.1", int, get_cq_event, (struct ibv_comp_channel *, struct ibv_cq **, void **))    \
    X("IBVERBS_1.1", void, ack_cq_events, (struct ibv_cq *, unsigned))                             \
    X("IBVERBS_1.1", struct ibv_pd *, alloc_pd, (struct ibv_context *))                            \
    X("IBVERBS_1.1", int, dealloc_pd, (struct ibv_pd *))                                           \
    X("IBVERBS_1.1", struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, int))              \
    X("IBVERBS_1.1", int, dereg_mr, (struct ibv_mr *))                                             \
    X("IBVERBS_1.1", struct ibv_cq *, create_cq,                                                   \
      (struct ibv_context *, int, void *, struct ibv_comp_channel *, int))                         \
    X("IBVERBS_1.1", int, destroy_cq, (struct ibv_cq *))                                           \
    X("IBVERBS_1.1", struct ibv_qp *, create_qp, (struct ibv_pd *, struct ibv_qp_init_attr *))     \
    X("IBVERBS_1.1", int, modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int))                 \
    X("IBVERBS_1.1", int, destroy_qp, (struct ibv_qp *))                                           \
    X("IBVERBS_1.1", struct ibv_ah *, create_ah, (struct ibv_pd *, struct ibv_ah_attr *))          \
    X("IBVERBS_1.1", int, destroy_ah, (struct ibv_ah *))
#define OPTIONAL(X)                                                                                \
    X("IBVERBS_1.11", ssize_t, query_gid_table,                                                    \
      (struct ibv_context *, struct ibv_gid_entry *, size_t, uint32_t, size_t))                    \
    X("IBVERBS_1.12", struct ibv_mr *, reg_dmabuf_mr,                                              \
      (struct ibv_pd *, uint64_t, size_t, uint64_t, int, int))                                     \
    X("IBVERBS_1.13", enum ibv_fork_status, is_fork_initialized, (void))

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
    struct ibv_comp_channel *channel;
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

/* The library's functions return an errno, or -1 and set errno; it depends on their age. */
static inline int failed(int r)
{
    return r == 0 ? 0 : r > 0 ? -r : errno > 0 ? -errno : -EIO;
}

static inline int no_memory_or(int fallback)
{
    return errno > 0 ? -errno : fallback;
}

static inline uint32_t mtu_bytes(enum ibv_mtu mtu)
{
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}
