/* abi_net.h: the network plugin's tables, v6 to v12, as NCCL 2.13 to 2.32 and RCCL look for them.
 *
 * Declared from the public ABI, not copied. NCCL finds a table by dlsym: the data objects ncclNetPlugin_v6 ... ncclNetPlugin_v12,
 * newest first. A plugin exports those that it supports. The versions differ in this:
 *
 *   v6 -> v7    device handles in connect and accept; getDeviceMr, irecvConsumed
 *   v7 -> v8    regIsGlobal; regMr's size becomes size_t
 *   v8 -> v9    makeVDevice, merged NICs, size limits, forceFlush; sizes of isend and irecv become size_t
 *   v9 -> v10   init gets the profiler's callback, connect a config, isend and irecv a phandle
 *   v10 -> v11  init is called per communicator and gives a context; finalize, setNetAttr
 *   v11 -> v12  eight devices per merged NIC; rail and plane
 *
 * Details. Sizes of test and iflush are int in all versions. name and pciPath belong to the plugin and must exist as long as the
 * process. NCCL clears nothing: fill every field. May be NULL: regMrDmaBuf (unless DMABUF is among ptrSupport), getDeviceMr,
 * irecvConsumed, makeVDevice, setNetAttr. finalize may not. In v10 and before, init is called once for a process and contexts are
 * NULL. */
#pragma once
#include "plugin/abi.h"

/* Given to connect (v10) and init (v11 and later): NCCL_UNDEFINED if no class was chosen. */
struct nccl_net_config {
    int traffic_class;
};

/* A part of the transport on the GPU; a host plugin leaves the pointer NULL. */
struct nccl_device_handle {
    int type, version;
    void *handle;
    size_t size;
    int needs_proxy_progress;
};

/* The devices of one merged NIC. */
struct nccl_merged {
    int count;
    int devices[NCCL_DEVICES_PER_NIC];
};
struct nccl_merged_v12 {
    int count;
    int devices[NCCL_DEVICES_PER_NIC_V12];
};

struct nccl_comm_attributes {
    int32_t peers_max, peers_min, flows_per_peer_max, flows_per_peer_min;
};
struct nccl_net_attributes {
    struct nccl_comm_attributes send, receive;
    uint32_t operations, algorithms, protocols; /* bit masks */
};

struct nccl_net_properties_v6 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int pointer_support;
    int speed_mbps;
    int port;
    float latency_us;
    int comm_max;
    int receive_max;
};

struct nccl_net_properties_v7 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int pointer_support;
    int speed_mbps;
    int port;
    float latency_us;
    int comm_max;
    int receive_max;
    int device_type;
    int device_version;
};

struct nccl_net_properties_v8 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int pointer_support;
    int registration_is_global;
    int speed_mbps;
    int port;
    float latency_us;
    int comm_max;
    int receive_max;
    int device_type;
    int device_version;
};

struct nccl_net_properties_v9 { /* and v10 */
    char *name;
    char *pci_path;
    uint64_t guid;
    int pointer_support;
    int registration_is_global;
    int force_flush;
    int speed_mbps;
    int port;
    float latency_us;
    int comm_max;
    int receive_max;
    int device_type;
    int device_version;
    struct nccl_merged merged;
    size_t p2p_size_max;
    size_t collective_size_max;
};

struct nccl_net_properties_v11 {
    char *name;
    char *pci_path;
    uint64_t guid;
    int pointer_support;
    int registration_is_global;
    int force_flush;
    int speed_mbps;
    int port;
    float latency_us;
    int comm_max;
    int receive_max;
    int device_type;
    int device_version;
    struct nccl_merged merged;
    size_t p2p_size_max;
    size_t collective_size_max;
    int multi_request_max;
};

struct nccl_net_properties_v12 {
    char *name;
    char *pci_path;             /* sysfs path, or NULL */
    uint64_t guid;              /* same guid and port: same physical port */
    int pointer_support;        /* enum nccl_pointer, or-ed */
    int registration_is_global; /* an mhandle serves all communicators of the device */
    int force_flush;
    int speed_mbps;
    int port;
    float latency_us;
    int comm_max;
    int receive_max; /* of one grouped receive */
    int device_type;
    int device_version;
    struct nccl_merged_v12 merged;
    size_t p2p_size_max;
    size_t collective_size_max;
    int multi_request_max;
    int16_t rail, plane; /* NCCL_UNDEFINED if not known: 0 is a valid number */
};

struct nccl_net_v6 {
    const char *name;
    enum nccl_result (*init)(nccl_logger logger);
    enum nccl_result (*devices)(int *count);
    enum nccl_result (*get_properties)(int device, struct nccl_net_properties_v6 *properties);
    enum nccl_result (*listen)(int device, void *handle, void **listen_comm);
    enum nccl_result (*connect)(int device_index, void *handle, void **send_comm);
    enum nccl_result (*accept)(void *listen_comm, void **receive_comm);
    enum nccl_result (*reg_mr)(void *comm, void *data, int size, int type, void **mhandle);
    enum nccl_result (*reg_mr_dma_buf)(void *comm, void *data, size_t size, int type,
                                       uint64_t offset, int fd, void **mhandle);
    enum nccl_result (*dereg_mr)(void *comm, void *mhandle);
    enum nccl_result (*isend)(void *send_comm, void *data, int size, int tag, void *mhandle,
                              void **request);
    enum nccl_result (*irecv)(void *receive_comm, int n, void **data, int *sizes, int *tags,
                              void **mhandles, void **request);
    enum nccl_result (*iflush)(void *receive_comm, int n, void **data, int *sizes, void **mhandles,
                               void **request);
    enum nccl_result (*test)(void *request, int *done, int *sizes);
    enum nccl_result (*close_send)(void *send_comm);
    enum nccl_result (*close_receive)(void *receive_comm);
    enum nccl_result (*close_listen)(void *listen_comm);
};

struct nccl_net_v7 {
    const char *name;
    enum nccl_result (*init)(nccl_logger logger);
    enum nccl_result (*devices)(int *count);
    enum nccl_result (*get_properties)(int device, struct nccl_net_properties_v7 *properties);
    enum nccl_result (*listen)(int device, void *handle, void **listen_comm);
    enum nccl_result (*connect)(int device_index, void *handle, void **send_comm,
                                struct nccl_device_handle **device);
    enum nccl_result (*accept)(void *listen_comm, void **receive_comm,
                               struct nccl_device_handle **device);
    enum nccl_result (*reg_mr)(void *comm, void *data, int size, int type, void **mhandle);
    enum nccl_result (*reg_mr_dma_buf)(void *comm, void *data, size_t size, int type,
                                       uint64_t offset, int fd, void **mhandle);
    enum nccl_result (*dereg_mr)(void *comm, void *mhandle);
    enum nccl_result (*isend)(void *send_comm, void *data, int size, int tag, void *mhandle,
                              void **request);
    enum nccl_result (*irecv)(void *receive_comm, int n, void **data, int *sizes, int *tags,
                              void **mhandles, void **request);
    enum nccl_result (*iflush)(void *receive_comm, int n, void **data, int *sizes, void **mhandles,
                               void **request);
    enum nccl_result (*test)(void *request, int *done, int *sizes);
    enum nccl_result (*close_send)(void *send_comm);
    enum nccl_result (*close_receive)(void *receive_comm);
    enum nccl_result (*close_listen)(void *listen_comm);
    enum nccl_result (*get_device_mr)(void *comm, void *mhandle, void **device_pointer);
    enum nccl_result (*receive_consumed)(void *receive_comm, int n, void *request);
};

struct nccl_net_v8 {
    const char *name;
    enum nccl_result (*init)(nccl_logger logger);
    enum nccl_result (*devices)(int *count);
    enum nccl_result (*get_properties)(int device, struct nccl_net_properties_v8 *properties);
    enum nccl_result (*listen)(int device, void *handle, void **listen_comm);
    enum nccl_result (*connect)(int device_index, void *handle, void **send_comm,
                                struct nccl_device_handle **device);
    enum nccl_result (*accept)(void *listen_comm, void **receive_comm,
                               struct nccl_device_handle **device);
    enum nccl_result (*reg_mr)(void *comm, void *data, size_t size, int type, void **mhandle);
    enum nccl_result (*reg_mr_dma_buf)(void *comm, void *data, size_t size, int type,
                                       uint64_t offset, int fd, void **mhandle);
    enum nccl_result (*dereg_mr)(void *comm, void *mhandle);
    enum nccl_result (*isend)(void *send_comm, void *data, int size, int tag, void *mhandle,
                              void **request);
    enum nccl_result (*irecv)(void *receive_comm, int n, void **data, int *sizes, int *tags,
                              void **mhandles, void **request);
    enum nccl_result (*iflush)(void *receive_comm, int n, void **data, int *sizes, void **mhandles,
                               void **request);
    enum nccl_result (*test)(void *request, int *done, int *sizes);
    enum nccl_result (*close_send)(void *send_comm);
    enum nccl_result (*close_receive)(void *receive_comm);
    enum nccl_result (*close_listen)(void *listen_comm);
    enum nccl_result (*get_device_mr)(void *comm, void *mhandle, void **device_pointer);
    enum nccl_result (*receive_consumed)(void *receive_comm, int n, void *request);
};

struct nccl_net_v9 {
    const char *name;
    enum nccl_result (*init)(nccl_logger logger);
    enum nccl_result (*devices)(int *count);
    enum nccl_result (*get_properties)(int device, struct nccl_net_properties_v9 *properties);
    enum nccl_result (*listen)(int device, void *handle, void **listen_comm);
    enum nccl_result (*connect)(int device_index, void *handle, void **send_comm,
                                struct nccl_device_handle **device);
    enum nccl_result (*accept)(void *listen_comm, void **receive_comm,
                               struct nccl_device_handle **device);
    enum nccl_result (*reg_mr)(void *comm, void *data, size_t size, int type, void **mhandle);
    enum nccl_result (*reg_mr_dma_buf)(void *comm, void *data, size_t size, int type,
                                       uint64_t offset, int fd, void **mhandle);
    enum nccl_result (*dereg_mr)(void *comm, void *mhandle);
    enum nccl_result (*isend)(void *send_comm, void *data, size_t size, int tag, void *mhandle,
                              void **request);
    enum nccl_result (*irecv)(void *receive_comm, int n, void **data, size_t *sizes, int *tags,
                              void **mhandles, void **request);
    enum nccl_result (*iflush)(void *receive_comm, int n, void **data, int *sizes, void **mhandles,
                               void **request);
    enum nccl_result (*test)(void *request, int *done, int *sizes);
    enum nccl_result (*close_send)(void *send_comm);
    enum nccl_result (*close_receive)(void *receive_comm);
    enum nccl_result (*close_listen)(void *listen_comm);
    enum nccl_result (*get_device_mr)(void *comm, void *mhandle, void **device_pointer);
    enum nccl_result (*receive_consumed)(void *receive_comm, int n, void *request);
    enum nccl_result (*make_merged)(int *device, struct nccl_merged *merged);
};

struct nccl_net_v10 {
    const char *name;
    enum nccl_result (*init)(nccl_logger logger, nccl_profiler_callback profiler);
    enum nccl_result (*devices)(int *count);
    enum nccl_result (*get_properties)(int device, struct nccl_net_properties_v9 *properties);
    enum nccl_result (*listen)(int device, void *handle, void **listen_comm);
    enum nccl_result (*connect)(int device_index, struct nccl_net_config *config, void *handle,
                                void **send_comm, struct nccl_device_handle **device);
    enum nccl_result (*accept)(void *listen_comm, void **receive_comm,
                               struct nccl_device_handle **device);
    enum nccl_result (*reg_mr)(void *comm, void *data, size_t size, int type, void **mhandle);
    enum nccl_result (*reg_mr_dma_buf)(void *comm, void *data, size_t size, int type,
                                       uint64_t offset, int fd, void **mhandle);
    enum nccl_result (*dereg_mr)(void *comm, void *mhandle);
    enum nccl_result (*isend)(void *send_comm, void *data, size_t size, int tag, void *mhandle,
                              void *phandle, void **request);
    enum nccl_result (*irecv)(void *receive_comm, int n, void **data, size_t *sizes, int *tags,
                              void **mhandles, void **phandles, void **request);
    enum nccl_result (*iflush)(void *receive_comm, int n, void **data, int *sizes, void **mhandles,
                               void **request);
    enum nccl_result (*test)(void *request, int *done, int *sizes);
    enum nccl_result (*close_send)(void *send_comm);
    enum nccl_result (*close_receive)(void *receive_comm);
    enum nccl_result (*close_listen)(void *listen_comm);
    enum nccl_result (*get_device_mr)(void *comm, void *mhandle, void **device_pointer);
    enum nccl_result (*receive_consumed)(void *receive_comm, int n, void *request);
    enum nccl_result (*make_merged)(int *device, struct nccl_merged *merged);
};

struct nccl_net_v11 {
    const char *name;
    enum nccl_result (*init)(void **context, uint64_t comm_id, struct nccl_net_config *config,
                             nccl_logger logger, nccl_profiler_callback profiler);
    enum nccl_result (*devices)(int *count);
    enum nccl_result (*get_properties)(int device, struct nccl_net_properties_v11 *properties);
    enum nccl_result (*listen)(void *context, int device, void *handle, void **listen_comm);
    enum nccl_result (*connect)(void *context, int device_index, void *handle, void **send_comm,
                                struct nccl_device_handle **device);
    enum nccl_result (*accept)(void *listen_comm, void **receive_comm,
                               struct nccl_device_handle **device);
    enum nccl_result (*reg_mr)(void *comm, void *data, size_t size, int type, void **mhandle);
    enum nccl_result (*reg_mr_dma_buf)(void *comm, void *data, size_t size, int type,
                                       uint64_t offset, int fd, void **mhandle);
    enum nccl_result (*dereg_mr)(void *comm, void *mhandle);
    enum nccl_result (*isend)(void *send_comm, void *data, size_t size, int tag, void *mhandle,
                              void *phandle, void **request);
    enum nccl_result (*irecv)(void *receive_comm, int n, void **data, size_t *sizes, int *tags,
                              void **mhandles, void **phandles, void **request);
    enum nccl_result (*iflush)(void *receive_comm, int n, void **data, int *sizes, void **mhandles,
                               void **request);
    enum nccl_result (*test)(void *request, int *done, int *sizes);
    enum nccl_result (*close_send)(void *send_comm);
    enum nccl_result (*close_receive)(void *receive_comm);
    enum nccl_result (*close_listen)(void *listen_comm);
    enum nccl_result (*get_device_mr)(void *comm, void *mhandle, void **device_pointer);
    enum nccl_result (*receive_consumed)(void *receive_comm, int n, void *request);
    enum nccl_result (*make_merged)(int *device, struct nccl_merged *merged);
    enum nccl_result (*finalize)(void *context);
    enum nccl_result (*set_attributes)(void *context, struct nccl_net_attributes *attributes);
};

struct nccl_net_v12 {
    const char *name;
    enum nccl_result (*init)(void **context, uint64_t comm_id, struct nccl_net_config *config,
                             nccl_logger logger, nccl_profiler_callback profiler);
    enum nccl_result (*devices)(int *count);
    enum nccl_result (*get_properties)(int device, struct nccl_net_properties_v12 *properties);
    enum nccl_result (*listen)(void *context, int device, void *handle, void **listen_comm);
    enum nccl_result (*connect)(void *context, int device_index, void *handle, void **send_comm,
                                struct nccl_device_handle **device);
    enum nccl_result (*accept)(void *listen_comm, void **receive_comm,
                               struct nccl_device_handle **device);
    enum nccl_result (*reg_mr)(void *comm, void *data, size_t size, int type, void **mhandle);
    enum nccl_result (*reg_mr_dma_buf)(void *comm, void *data, size_t size, int type,
                                       uint64_t offset, int fd, void **mhandle);
    enum nccl_result (*dereg_mr)(void *comm, void *mhandle);
    enum nccl_result (*isend)(void *send_comm, void *data, size_t size, int tag, void *mhandle,
                              void *phandle, void **request);
    enum nccl_result (*irecv)(void *receive_comm, int n, void **data, size_t *sizes, int *tags,
                              void **mhandles, void **phandles, void **request);
    enum nccl_result (*iflush)(void *receive_comm, int n, void **data, int *sizes, void **mhandles,
                               void **request);
    enum nccl_result (*test)(void *request, int *done, int *sizes);
    enum nccl_result (*close_send)(void *send_comm);
    enum nccl_result (*close_receive)(void *receive_comm);
    enum nccl_result (*close_listen)(void *listen_comm);
    enum nccl_result (*get_device_mr)(void *comm, void *mhandle, void **device_pointer);
    enum nccl_result (*receive_consumed)(void *receive_comm, int n, void *request);
    enum nccl_result (*make_merged)(int *device, struct nccl_merged_v12 *merged);
    enum nccl_result (*finalize)(void *context);
    enum nccl_result (*set_attributes)(void *context, struct nccl_net_attributes *attributes);
};

/* -- sizes and offsets, as dumped from the ABI */

#define ABI_SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
#define ABI_AT(type, member, offset)                                                               \
    _Static_assert(offsetof(struct type, member) == (offset), #type "." #member)

ABI_SIZE(nccl_net_config, 4);
ABI_SIZE(nccl_merged, 20);
ABI_SIZE(nccl_merged_v12, 36);
ABI_SIZE(nccl_net_attributes, 44);
ABI_SIZE(nccl_device_handle, 32);
ABI_AT(nccl_net_attributes, receive, 16);
ABI_AT(nccl_net_attributes, operations, 32);

ABI_SIZE(nccl_net_properties_v6, 48);
ABI_AT(nccl_net_properties_v6, name, 0);
ABI_AT(nccl_net_properties_v6, pci_path, 8);
ABI_AT(nccl_net_properties_v6, guid, 16);
ABI_AT(nccl_net_properties_v6, pointer_support, 24);
ABI_AT(nccl_net_properties_v6, speed_mbps, 28);
ABI_AT(nccl_net_properties_v6, port, 32);
ABI_AT(nccl_net_properties_v6, latency_us, 36);
ABI_AT(nccl_net_properties_v6, comm_max, 40);
ABI_AT(nccl_net_properties_v6, receive_max, 44);

ABI_SIZE(nccl_net_properties_v7, 56);
ABI_AT(nccl_net_properties_v7, name, 0);
ABI_AT(nccl_net_properties_v7, pci_path, 8);
ABI_AT(nccl_net_properties_v7, guid, 16);
ABI_AT(nccl_net_properties_v7, pointer_support, 24);
ABI_AT(nccl_net_properties_v7, speed_mbps, 28);
ABI_AT(nccl_net_properties_v7, port, 32);
ABI_AT(nccl_net_properties_v7, latency_us, 36);
ABI_AT(nccl_net_properties_v7, comm_max, 40);
ABI_AT(nccl_net_properties_v7, receive_max, 44);
ABI_AT(nccl_net_properties_v7, device_type, 48);
ABI_AT(nccl_net_properties_v7, device_version, 52);

ABI_SIZE(nccl_net_properties_v8, 64);
ABI_AT(nccl_net_properties_v8, name, 0);
ABI_AT(nccl_net_properties_v8, pci_path, 8);
ABI_AT(nccl_net_properties_v8, guid, 16);
ABI_AT(nccl_net_properties_v8, pointer_support, 24);
ABI_AT(nccl_net_properties_v8, registration_is_global, 28);
ABI_AT(nccl_net_properties_v8, speed_mbps, 32);
ABI_AT(nccl_net_properties_v8, port, 36);
ABI_AT(nccl_net_properties_v8, latency_us, 40);
ABI_AT(nccl_net_properties_v8, comm_max, 44);
ABI_AT(nccl_net_properties_v8, receive_max, 48);
ABI_AT(nccl_net_properties_v8, device_type, 52);
ABI_AT(nccl_net_properties_v8, device_version, 56);

ABI_SIZE(nccl_net_properties_v9, 104);
ABI_AT(nccl_net_properties_v9, name, 0);
ABI_AT(nccl_net_properties_v9, pci_path, 8);
ABI_AT(nccl_net_properties_v9, guid, 16);
ABI_AT(nccl_net_properties_v9, pointer_support, 24);
ABI_AT(nccl_net_properties_v9, registration_is_global, 28);
ABI_AT(nccl_net_properties_v9, force_flush, 32);
ABI_AT(nccl_net_properties_v9, speed_mbps, 36);
ABI_AT(nccl_net_properties_v9, port, 40);
ABI_AT(nccl_net_properties_v9, latency_us, 44);
ABI_AT(nccl_net_properties_v9, comm_max, 48);
ABI_AT(nccl_net_properties_v9, receive_max, 52);
ABI_AT(nccl_net_properties_v9, device_type, 56);
ABI_AT(nccl_net_properties_v9, device_version, 60);
ABI_AT(nccl_net_properties_v9, merged, 64);
ABI_AT(nccl_net_properties_v9, p2p_size_max, 88);
ABI_AT(nccl_net_properties_v9, collective_size_max, 96);

ABI_SIZE(nccl_net_properties_v11, 112);
ABI_AT(nccl_net_properties_v11, name, 0);
ABI_AT(nccl_net_properties_v11, pci_path, 8);
ABI_AT(nccl_net_properties_v11, guid, 16);
ABI_AT(nccl_net_properties_v11, pointer_support, 24);
ABI_AT(nccl_net_properties_v11, registration_is_global, 28);
ABI_AT(nccl_net_properties_v11, force_flush, 32);
ABI_AT(nccl_net_properties_v11, speed_mbps, 36);
ABI_AT(nccl_net_properties_v11, port, 40);
ABI_AT(nccl_net_properties_v11, latency_us, 44);
ABI_AT(nccl_net_properties_v11, comm_max, 48);
ABI_AT(nccl_net_properties_v11, receive_max, 52);
ABI_AT(nccl_net_properties_v11, device_type, 56);
ABI_AT(nccl_net_properties_v11, device_version, 60);
ABI_AT(nccl_net_properties_v11, merged, 64);
ABI_AT(nccl_net_properties_v11, p2p_size_max, 88);
ABI_AT(nccl_net_properties_v11, collective_size_max, 96);
ABI_AT(nccl_net_properties_v11, multi_request_max, 104);

ABI_SIZE(nccl_net_properties_v12, 128);
ABI_AT(nccl_net_properties_v12, name, 0);
ABI_AT(nccl_net_properties_v12, pci_path, 8);
ABI_AT(nccl_net_properties_v12, guid, 16);
ABI_AT(nccl_net_properties_v12, pointer_support, 24);
ABI_AT(nccl_net_properties_v12, registration_is_global, 28);
ABI_AT(nccl_net_properties_v12, force_flush, 32);
ABI_AT(nccl_net_properties_v12, speed_mbps, 36);
ABI_AT(nccl_net_properties_v12, port, 40);
ABI_AT(nccl_net_properties_v12, latency_us, 44);
ABI_AT(nccl_net_properties_v12, comm_max, 48);
ABI_AT(nccl_net_properties_v12, receive_max, 52);
ABI_AT(nccl_net_properties_v12, device_type, 56);
ABI_AT(nccl_net_properties_v12, device_version, 60);
ABI_AT(nccl_net_properties_v12, merged, 64);
ABI_AT(nccl_net_properties_v12, p2p_size_max, 104);
ABI_AT(nccl_net_properties_v12, collective_size_max, 112);
ABI_AT(nccl_net_properties_v12, multi_request_max, 120);
ABI_AT(nccl_net_properties_v12, rail, 124);
ABI_AT(nccl_net_properties_v12, plane, 126);

/* The seventeen slots that all versions have in the same place. */
#define ABI_SLOTS(table)                                                                           \
    ABI_AT(table, name, 0);                                                                        \
    ABI_AT(table, init, 8);                                                                        \
    ABI_AT(table, devices, 16);                                                                    \
    ABI_AT(table, get_properties, 24);                                                             \
    ABI_AT(table, listen, 32);                                                                     \
    ABI_AT(table, connect, 40);                                                                    \
    ABI_AT(table, accept, 48);                                                                     \
    ABI_AT(table, reg_mr, 56);                                                                     \
    ABI_AT(table, reg_mr_dma_buf, 64);                                                             \
    ABI_AT(table, dereg_mr, 72);                                                                   \
    ABI_AT(table, isend, 80);                                                                      \
    ABI_AT(table, irecv, 88);                                                                      \
    ABI_AT(table, iflush, 96);                                                                     \
    ABI_AT(table, test, 104);                                                                      \
    ABI_AT(table, close_send, 112);                                                                \
    ABI_AT(table, close_receive, 120);                                                             \
    ABI_AT(table, close_listen, 128)

ABI_SLOTS(nccl_net_v6);
ABI_SIZE(nccl_net_v6, 136);
ABI_SLOTS(nccl_net_v7);
ABI_SIZE(nccl_net_v7, 152);
ABI_AT(nccl_net_v7, get_device_mr, 136);
ABI_AT(nccl_net_v7, receive_consumed, 144);
ABI_SLOTS(nccl_net_v8);
ABI_SIZE(nccl_net_v8, 152);
ABI_AT(nccl_net_v8, get_device_mr, 136);
ABI_AT(nccl_net_v8, receive_consumed, 144);
ABI_SLOTS(nccl_net_v9);
ABI_SIZE(nccl_net_v9, 160);
ABI_AT(nccl_net_v9, get_device_mr, 136);
ABI_AT(nccl_net_v9, receive_consumed, 144);
ABI_AT(nccl_net_v9, make_merged, 152);
ABI_SLOTS(nccl_net_v10);
ABI_SIZE(nccl_net_v10, 160);
ABI_AT(nccl_net_v10, get_device_mr, 136);
ABI_AT(nccl_net_v10, receive_consumed, 144);
ABI_AT(nccl_net_v10, make_merged, 152);
ABI_SLOTS(nccl_net_v11);
ABI_SIZE(nccl_net_v11, 176);
ABI_AT(nccl_net_v11, get_device_mr, 136);
ABI_AT(nccl_net_v11, receive_consumed, 144);
ABI_AT(nccl_net_v11, make_merged, 152);
ABI_AT(nccl_net_v11, finalize, 160);
ABI_AT(nccl_net_v11, set_attributes, 168);
ABI_SLOTS(nccl_net_v12);
ABI_SIZE(nccl_net_v12, 176);
ABI_AT(nccl_net_v12, get_device_mr, 136);
ABI_AT(nccl_net_v12, receive_consumed, 144);
ABI_AT(nccl_net_v12, make_merged, 152);
ABI_AT(nccl_net_v12, finalize, 160);
ABI_AT(nccl_net_v12, set_attributes, 168);
