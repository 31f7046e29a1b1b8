/* net.c: the network tables, v6 to v12, with one set of functions.
 *
 * The newest version is complete; older ones lack some functions, or have sizes as int. Receives that the GPU may read before
 * they are reported as done (LL and LL128) are written by the transport in ascending order, from verified bytes only. From v9 on
 * NCCL's early-completion hint shows which they are, unless its user turned the hint off (NCCL_NET_OPTIONAL_RECV_COMPLETION=0).
 * Without a hint their size shows it. No receive is reported early: a receive is done when its bytes are there. No table offers
 * merged NICs (make_merged is NULL), because a set of lanes begins at one NIC. */
#include <string.h>

#include "plugin/plugin.h"

/* Without a hint a receive of up to this size may be of LL (64 KiB a step) or LL128. The buffer of LL128 has 120 words for each
 * of 640 threads, 8 steps in all, which is 600 KiB a step. */
#define STAGED_SIZE_MAX (120 * 640 * 8)
#define EXPORT          __attribute__((visibility("default")))

static char context; /* NCCL needs a pointer that isn't NULL */

/* -- registration, flush, closing: the same in all versions ----------------------------------- */

static enum nccl_result reg_mr(void *comm, void *data, size_t size, int type, void **mhandle)
{
    (void)comm; /* all NICs have it: registration_is_global */
    if (type != NCCL_POINTER_HOST) {
        return NCCL_INVALID_USAGE; /* ptrSupport excludes it */
    }
    *mhandle = plugin_register(data, size);
    return NCCL_SUCCESS;
}

static enum nccl_result reg_mr_int(void *comm, void *data, int size, int type, void **mhandle)
{
    return reg_mr(comm, data, (size_t)size, type, mhandle);
}

static enum nccl_result reg_mr_dma_buf(void *comm, void *data, size_t size, int type,
                                       uint64_t offset, int fd, void **mhandle)
{
    (void)comm;
    return type == NCCL_POINTER_CUDA ? plugin_register_gpu(data, size, offset, fd, mhandle)
                                     : NCCL_INVALID_USAGE;
}

static enum nccl_result dereg_mr(void *comm, void *mhandle)
{
    (void)comm;
    plugin_deregister(mhandle);
    return NCCL_SUCCESS;
}

static enum nccl_result iflush(void *comm, int n, void **data, int *sizes, void **mhandles,
                               void **request)
{
    struct transport_request *out = NULL;
    int r = 0;

    (void)mhandles;
    if (n == 1 && sizes[0] > 0) { /* maxRecvs is 1 */
        r = transport_flush(comm, data[0], (size_t)sizes[0], &out);
    }
    *request = out; /* NULL: memory of this host: the processor sees all bytes already */
    return r == 0 ? NCCL_SUCCESS : plugin_failed(r);
}

static enum nccl_result close_comm(void *comm)
{
    transport_close(comm);
    return NCCL_SUCCESS;
}

static enum nccl_result close_listen(void *listen_comm)
{
    transport_close_listener(listen_comm);
    return NCCL_SUCCESS;
}

/* -- data ------------------------------------------------------------------------------------- */

static enum nccl_result isend(void *comm, void *data, size_t size, int tag, void *mhandle,
                              void *parent, void **request)
{
    struct transport_request *out = NULL;
    const int r = transport_send(comm, data, size, tag, parent, &out);

    (void)mhandle;
    *request = out;
    return r == 0 ? NCCL_SUCCESS : plugin_failed(r);
}

static enum nccl_result irecv(void *comm, int n, void **data, const size_t *sizes, const int *tags,
                              bool staged, void *parent, void **request)
{
    struct transport_request *out = NULL;

    *request = NULL;
    if (n != 1) {
        return NCCL_INVALID_ARGUMENT; /* maxRecvs is 1 */
    }
    int r = transport_receive(comm, data[0], sizes[0], tags != NULL ? tags[0] : 0, staged, parent,
                              &out);
    *request = out;
    return r == 0 ? NCCL_SUCCESS : plugin_failed(r);
}

static enum nccl_result isend_v9(void *comm, void *data, size_t size, int tag, void *mhandle,
                                 void **request)
{
    return isend(comm, data, size, tag, mhandle, NULL, request);
}

static enum nccl_result isend_v8(void *comm, void *data, int size, int tag, void *mhandle,
                                 void **request)
{
    return size < 0 ? NCCL_INVALID_ARGUMENT
                    : isend(comm, data, (size_t)size, tag, mhandle, NULL, request);
}

static enum nccl_result irecv_v10(void *comm, int n, void **data, size_t *sizes, int *tags,
                                  void **mhandles, void **parents, void **request)
{
    const bool staged = *request == NCCL_OPTIONAL_COMPLETION ||
                        (plugin_unhinted() && n == 1 && sizes[0] <= STAGED_SIZE_MAX);

    (void)mhandles;
    return irecv(comm, n, data, sizes, tags, staged, parents != NULL ? parents[0] : NULL, request);
}

static enum nccl_result irecv_v9(void *comm, int n, void **data, size_t *sizes, int *tags,
                                 void **mhandles, void **request)
{
    return irecv_v10(comm, n, data, sizes, tags, mhandles, NULL, request);
}

static enum nccl_result irecv_v8(void *comm, int n, void **data, int *sizes, int *tags,
                                 void **mhandles, void **request)
{
    const size_t size = n == 1 && sizes[0] > 0 ? (size_t)sizes[0] : 0;

    (void)mhandles;
    return irecv(comm, n, data, &size, tags, size <= STAGED_SIZE_MAX, NULL, request);
}

static enum nccl_result test(void *request, int *done, int *sizes)
{
    bool is_done = false;
    size_t size = 0;
    const int r = transport_test(request, &is_done, &size);

    *done = is_done;
    if (is_done && sizes != NULL) {
        sizes[0] = (int)size;
    }
    return r == 0 ? NCCL_SUCCESS : plugin_failed(r);
}

/* -- devices ---------------------------------------------------------------------------------- */

/* Fields that all versions have, under the same names. */
#define FILL(properties, nic)                                                                      \
    do {                                                                                           \
        (properties)->name = (nic).name;                                                           \
        (properties)->pci_path = (nic).pci_path;                                                   \
        (properties)->guid = (nic).guid;                                                           \
        (properties)->pointer_support =                                                            \
            NCCL_POINTER_HOST | (plugin_takes_gpus() ? NCCL_POINTER_DMABUF : 0);                   \
        (properties)->speed_mbps = (nic).speed_mbps;                                               \
        (properties)->port = 0;                                                                    \
        (properties)->latency_us = 0;                                                              \
        (properties)->comm_max = PROCESS_COMMS_MAX;                                                \
        (properties)->receive_max = 1;                                                             \
    } while (0)
#define DESCRIBE(version, more)                                                                    \
    static enum nccl_result properties_v##version(int device,                                      \
                                                  struct nccl_net_properties_v##version *p)        \
    {                                                                                              \
        struct nic_description nic;                                                                \
        const enum nccl_result result = plugin_describe(device, &nic);                             \
        if (result == NCCL_SUCCESS) {                                                              \
            memset(p, 0, sizeof(*p));                                                              \
            FILL(p, nic);                                                                          \
            more;                                                                                  \
        }                                                                                          \
        return result;                                                                             \
    }

static void merged_v9(struct nccl_merged *to, const struct nccl_merged_v12 *from)
{
    to->count = from->count < NCCL_DEVICES_PER_NIC ? from->count : NCCL_DEVICES_PER_NIC;
    for (int i = 0; i < to->count; i++) {
        to->devices[i] = from->devices[i];
    }
}

#define SIZES(p)                                                                                   \
    (p)->registration_is_global = 1;                                                               \
    (p)->p2p_size_max = TRANSPORT_BYTES_MAX;                                                       \
    (p)->collective_size_max = TRANSPORT_BYTES_MAX

DESCRIBE(6, (void)0)
DESCRIBE(7, (void)0)
DESCRIBE(8, p->registration_is_global = 1)
DESCRIBE(9, SIZES(p); merged_v9(&p->merged, &nic.merged))
DESCRIBE(11, SIZES(p); merged_v9(&p->merged, &nic.merged); p->multi_request_max = 1)
DESCRIBE(12, SIZES(p); p->merged = nic.merged; p->multi_request_max = 1; p->rail = NCCL_UNDEFINED;
         p->plane = NCCL_UNDEFINED)

/* -- life and connections, by version --------------------------------------------------------- */

static enum nccl_result init_v10(nccl_logger logger, nccl_profiler_callback profiler)
{
    (void)profiler;
    return plugin_init(logger);
}

static enum nccl_result init_v11(void **ret_context, uint64_t comm_id,
                                 struct nccl_net_config *config, nccl_logger logger,
                                 nccl_profiler_callback profiler)
{
    (void)comm_id;
    (void)config;
    (void)profiler;
    *ret_context = &context;
    return plugin_init(logger);
}

static enum nccl_result finalize(void *ours)
{
    (void)ours;
    plugin_finalize();
    return NCCL_SUCCESS;
}

static enum nccl_result listen_v11(void *ours, int device, void *handle, void **listen_comm)
{
    (void)ours;
    return plugin_listen(device, handle, listen_comm);
}

static enum nccl_result connect_v7(int device, void *handle, void **send_comm,
                                   struct nccl_device_handle **on_gpu)
{
    (void)on_gpu;
    return plugin_connect(device, handle, send_comm);
}

static enum nccl_result connect_v10(int device, struct nccl_net_config *config, void *handle,
                                    void **send_comm, struct nccl_device_handle **on_gpu)
{
    (void)config;
    (void)on_gpu;
    return plugin_connect(device, handle, send_comm);
}

static enum nccl_result connect_v11(void *ours, int device, void *handle, void **send_comm,
                                    struct nccl_device_handle **on_gpu)
{
    (void)ours;
    (void)on_gpu;
    return plugin_connect(device, handle, send_comm);
}

static enum nccl_result accept_v7(void *listen_comm, void **receive_comm,
                                  struct nccl_device_handle **on_gpu)
{
    (void)on_gpu;
    return plugin_accept(listen_comm, receive_comm);
}

/* -- the tables ------------------------------------------------------------------------------- */

#define COMMON                                                                                     \
    .name = PLUGIN_NAME, .devices = plugin_devices, .dereg_mr = dereg_mr, .iflush = iflush,        \
    .reg_mr_dma_buf = reg_mr_dma_buf, .test = test, .close_send = close_comm,                      \
    .close_receive = close_comm, .close_listen = close_listen

EXPORT extern const struct nccl_net_v6 ncclNetPlugin_v6;
EXPORT extern const struct nccl_net_v7 ncclNetPlugin_v7;
EXPORT extern const struct nccl_net_v8 ncclNetPlugin_v8;
EXPORT extern const struct nccl_net_v9 ncclNetPlugin_v9;
EXPORT extern const struct nccl_net_v10 ncclNetPlugin_v10;
EXPORT extern const struct nccl_net_v11 ncclNetPlugin_v11;
EXPORT extern const struct nccl_net_v12 ncclNetPlugin_v12;

const struct nccl_net_v6 ncclNetPlugin_v6 = {
    COMMON,
    .init = plugin_init,
    .get_properties = properties_v6,
    .listen = plugin_listen,
    .connect = plugin_connect,
    .accept = plugin_accept,
    .reg_mr = reg_mr_int,
    .isend = isend_v8,
    .irecv = irecv_v8,
};
const struct nccl_net_v7 ncclNetPlugin_v7 = {
    COMMON,
    .init = plugin_init,
    .get_properties = properties_v7,
    .listen = plugin_listen,
    .connect = connect_v7,
    .accept = accept_v7,
    .reg_mr = reg_mr_int,
    .isend = isend_v8,
    .irecv = irecv_v8,
};
const struct nccl_net_v8 ncclNetPlugin_v8 = {
    COMMON,
    .init = plugin_init,
    .get_properties = properties_v8,
    .listen = plugin_listen,
    .connect = connect_v7,
    .accept = accept_v7,
    .reg_mr = reg_mr,
    .isend = isend_v8,
    .irecv = irecv_v8,
};
const struct nccl_net_v9 ncclNetPlugin_v9 = {
    COMMON,
    .init = plugin_init,
    .get_properties = properties_v9,
    .listen = plugin_listen,
    .connect = connect_v7,
    .accept = accept_v7,
    .reg_mr = reg_mr,
    .isend = isend_v9,
    .irecv = irecv_v9,
};
const struct nccl_net_v10 ncclNetPlugin_v10 = {
    COMMON,
    .init = init_v10,
    .get_properties = properties_v9,
    .listen = plugin_listen,
    .connect = connect_v10,
    .accept = accept_v7,
    .reg_mr = reg_mr,
    .isend = isend,
    .irecv = irecv_v10,
};
const struct nccl_net_v11 ncclNetPlugin_v11 = {
    COMMON,
    .init = init_v11,
    .get_properties = properties_v11,
    .listen = listen_v11,
    .connect = connect_v11,
    .accept = accept_v7,
    .reg_mr = reg_mr,
    .isend = isend,
    .irecv = irecv_v10,
    .finalize = finalize,
};
const struct nccl_net_v12 ncclNetPlugin_v12 = {
    COMMON,
    .init = init_v11,
    .get_properties = properties_v12,
    .listen = listen_v11,
    .connect = connect_v11,
    .accept = accept_v7,
    .reg_mr = reg_mr,
    .isend = isend,
    .irecv = irecv_v10,
    .finalize = finalize,
};
