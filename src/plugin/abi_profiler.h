/* abi_profiler.h: the profiler plugin's tables, v4 to v6, as NCCL 2.27 to 2.30 look for them.
 *
 * Declared from the public ABI, not copied. The data objects are ncclProfiler_v4 ... ncclProfiler_v6. If no profiler is named,
 * NCCL looks for them in the network plugin's library, so one file serves both. Callbacks come from the main thread (API, group
 * and collective events) and from the proxy's progress thread (proxy events): they must not block.
 *
 *   v4 -> v5    the type of a descriptor grows from one byte to eight; init gets the comm's id first; API events
 *   v5 -> v6    copy-engine events
 *
 * Events are linked by `parent`: collective -> proxy operation (peer, channel) -> proxy step. */
#pragma once
#include <stdbool.h>

#include "plugin/abi.h"

/* Bits of the mask that init sets, and the type of a descriptor. */
enum nccl_event {
    NCCL_EVENT_GROUP = 0x1,
    NCCL_EVENT_COLLECTIVE = 0x2,
    NCCL_EVENT_P2P = 0x4,
    NCCL_EVENT_PROXY_OPERATION = 0x8,
    NCCL_EVENT_PROXY_STEP = 0x10,
    NCCL_EVENT_PROXY_CONTROL = 0x20,
    NCCL_EVENT_KERNEL_CHANNEL = 0x40,
    NCCL_EVENT_NET_PLUGIN = 0x80,
    NCCL_EVENT_GROUP_API = 0x100,
    NCCL_EVENT_COLLECTIVE_API = 0x200,
    NCCL_EVENT_P2P_API = 0x400,
    NCCL_EVENT_KERNEL_LAUNCH = 0x800,
    NCCL_EVENT_CE_COLLECTIVE = 0x1000,
    NCCL_EVENT_CE_SYNC = 0x2000,
    NCCL_EVENT_CE_BATCH = 0x4000,
};

/* The states of recordEventState. */
enum nccl_event_state {
    NCCL_STEP_SEND_GPU_WAIT = 8,
    NCCL_STEP_SEND_WAIT = 9,
    NCCL_STEP_RECEIVE_WAIT = 10,
    NCCL_STEP_RECEIVE_FLUSH_WAIT = 11,
    NCCL_STEP_RECEIVE_GPU_WAIT = 12,
    NCCL_CONTROL_IDLE = 13,
    NCCL_CONTROL_ACTIVE = 14,
    NCCL_CONTROL_SLEEP = 15,
    NCCL_CONTROL_WAKEUP = 16,
    NCCL_CONTROL_APPEND = 17,
    NCCL_CONTROL_APPEND_END = 18,
    NCCL_OPERATION_IN_PROGRESS = 19,
    NCCL_STEP_SEND_PEER_WAIT = 20,
    NCCL_NET_PLUGIN_UPDATE = 21,
    NCCL_KERNEL_CHANNEL_STOP = 22,
    NCCL_GROUP_START_API_STOP = 23,
    NCCL_GROUP_END_API_START = 24,
};

union nccl_event_state_arguments {
    struct {
        size_t bytes;
    } step;
    struct {
        int appended;
    } control;
    struct {
        void *data;
    } net_plugin;
    struct {
        uint64_t timer;
    } kernel_channel;
};

struct nccl_event_collective_v4 {
    uint64_t sequence;
    const char *function;
    const void *send_buffer;
    void *receive_buffer;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels, warps;
    const char *algorithm, *protocol;
};
struct nccl_event_collective {
    uint64_t sequence;
    const char *function;
    const void *send_buffer;
    void *receive_buffer;
    size_t count;
    int root;
    const char *datatype;
    uint8_t channels, warps;
    const char *algorithm, *protocol;
    void *parent_group;
};
struct nccl_event_p2p_v4 {
    const char *function;
    void *buffer;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels;
};
struct nccl_event_p2p {
    const char *function;
    void *buffer;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t channels;
    void *parent_group;
};
struct nccl_event_proxy_operation {
    int pid; /* of the process that made the request; not always this one */
    uint8_t channel;
    int peer, steps, chunk_size, is_send;
};
struct nccl_event_proxy_step {
    int step;
};
struct nccl_event_kernel_channel {
    uint8_t channel;
    uint64_t timer;
};
struct nccl_event_net_plugin {
    int64_t id;
    void *data;
};
struct nccl_event_group_api {
    bool graph_captured;
    int depth;
};
struct nccl_event_collective_api {
    const char *function;
    size_t count;
    const char *datatype;
    int root;
    void *stream;
    bool graph_captured;
};
struct nccl_event_p2p_api {
    const char *function;
    size_t count;
    const char *datatype;
    void *stream;
    bool graph_captured;
};
struct nccl_event_kernel_launch {
    void *stream;
};
struct nccl_event_ce_collective { /* v6 */
    uint64_t sequence;
    const char *function;
    const void *send_buffer;
    void *receive_buffer;
    size_t count;
    int root;
    const char *datatype;
    const char *sync_strategy;
    bool flag;
    uint32_t number[3];
    void *stream;
};

struct nccl_event_descriptor_v4 {
    uint8_t type;
    void *parent;
    int rank;
    union {
        struct nccl_event_collective_v4 collective;
        struct nccl_event_p2p_v4 p2p;
        struct nccl_event_proxy_operation proxy_operation;
        struct nccl_event_proxy_step proxy_step;
        struct nccl_event_kernel_channel kernel_channel;
        struct nccl_event_net_plugin net_plugin;
    };
};

struct nccl_event_descriptor_v5 {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct nccl_event_group_api group_api;
        struct nccl_event_collective_api collective_api;
        struct nccl_event_p2p_api p2p_api;
        struct nccl_event_kernel_launch kernel_launch;
        struct nccl_event_collective collective;
        struct nccl_event_p2p p2p;
        struct nccl_event_proxy_operation proxy_operation;
        struct nccl_event_proxy_step proxy_step;
        struct nccl_event_kernel_channel kernel_channel;
        struct nccl_event_net_plugin net_plugin;
    };
};

struct nccl_event_descriptor_v6 {
    uint64_t type;
    void *parent;
    int rank;
    union {
        struct nccl_event_group_api group_api;
        struct nccl_event_collective_api collective_api;
        struct nccl_event_p2p_api p2p_api;
        struct nccl_event_kernel_launch kernel_launch;
        struct nccl_event_collective collective;
        struct nccl_event_p2p p2p;
        struct nccl_event_proxy_operation proxy_operation;
        struct nccl_event_proxy_step proxy_step;
        struct nccl_event_kernel_channel kernel_channel;
        struct nccl_event_net_plugin net_plugin;
        struct nccl_event_ce_collective ce_collective;
    };
};

struct nccl_profiler_v4 {
    const char *name;
    enum nccl_result (*init)(void **context, int *mask, const char *comm_name, uint64_t comm_hash,
                             int nodes, int ranks, int rank, nccl_logger logger);
    enum nccl_result (*start_event)(void *context, void **event,
                                    struct nccl_event_descriptor_v4 *descriptor);
    enum nccl_result (*stop_event)(void *event);
    enum nccl_result (*record_event_state)(void *event, int state,
                                           union nccl_event_state_arguments *arguments);
    enum nccl_result (*finalize)(void *context);
};

struct nccl_profiler_v5 {
    const char *name;
    enum nccl_result (*init)(void **context, uint64_t comm_id, int *mask, const char *comm_name,
                             int nodes, int ranks, int rank, nccl_logger logger);
    enum nccl_result (*start_event)(void *context, void **event,
                                    struct nccl_event_descriptor_v5 *descriptor);
    enum nccl_result (*stop_event)(void *event);
    enum nccl_result (*record_event_state)(void *event, int state,
                                           union nccl_event_state_arguments *arguments);
    enum nccl_result (*finalize)(void *context);
};

struct nccl_profiler_v6 {
    const char *name;
    enum nccl_result (*init)(void **context, uint64_t comm_id, int *mask, const char *comm_name,
                             int nodes, int ranks, int rank, nccl_logger logger);
    enum nccl_result (*start_event)(void *context, void **event,
                                    struct nccl_event_descriptor_v6 *descriptor);
    enum nccl_result (*stop_event)(void *event);
    enum nccl_result (*record_event_state)(void *event, int state,
                                           union nccl_event_state_arguments *arguments);
    enum nccl_result (*finalize)(void *context);
};

/* -- sizes and offsets, as dumped from the ABI */

#define ABI_EVENT_SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
#define ABI_EVENT_AT(version, member, offset)                                                      \
    _Static_assert(offsetof(struct nccl_event_descriptor_v##version, member) == (offset), #member)
/* Fields that v4 to v6 have in the same place. */
#define ABI_EVENT(version)                                                                         \
    ABI_EVENT_AT(version, type, 0);                                                                \
    ABI_EVENT_AT(version, parent, 8);                                                              \
    ABI_EVENT_AT(version, rank, 16);                                                               \
    ABI_EVENT_AT(version, collective, 24);                                                         \
    ABI_EVENT_AT(version, collective.sequence, 24);                                                \
    ABI_EVENT_AT(version, collective.function, 32);                                                \
    ABI_EVENT_AT(version, collective.send_buffer, 40);                                             \
    ABI_EVENT_AT(version, collective.receive_buffer, 48);                                          \
    ABI_EVENT_AT(version, collective.count, 56);                                                   \
    ABI_EVENT_AT(version, collective.root, 64);                                                    \
    ABI_EVENT_AT(version, collective.datatype, 72);                                                \
    ABI_EVENT_AT(version, collective.channels, 80);                                                \
    ABI_EVENT_AT(version, collective.warps, 81);                                                   \
    ABI_EVENT_AT(version, collective.algorithm, 88);                                               \
    ABI_EVENT_AT(version, collective.protocol, 96);                                                \
    ABI_EVENT_AT(version, p2p.function, 24);                                                       \
    ABI_EVENT_AT(version, p2p.buffer, 32);                                                         \
    ABI_EVENT_AT(version, p2p.datatype, 40);                                                       \
    ABI_EVENT_AT(version, p2p.count, 48);                                                          \
    ABI_EVENT_AT(version, p2p.peer, 56);                                                           \
    ABI_EVENT_AT(version, p2p.channels, 60);                                                       \
    ABI_EVENT_AT(version, proxy_operation.pid, 24);                                                \
    ABI_EVENT_AT(version, proxy_operation.channel, 28);                                            \
    ABI_EVENT_AT(version, proxy_operation.peer, 32);                                               \
    ABI_EVENT_AT(version, proxy_operation.steps, 36);                                              \
    ABI_EVENT_AT(version, proxy_operation.chunk_size, 40);                                         \
    ABI_EVENT_AT(version, proxy_operation.is_send, 44);                                            \
    ABI_EVENT_AT(version, proxy_step.step, 24);                                                    \
    ABI_EVENT_AT(version, kernel_channel.channel, 24);                                             \
    ABI_EVENT_AT(version, kernel_channel.timer, 32);                                               \
    ABI_EVENT_AT(version, net_plugin.id, 24);                                                      \
    ABI_EVENT_AT(version, net_plugin.data, 32)
/* Fields that v5 added. */
#define ABI_EVENT_API(version)                                                                     \
    ABI_EVENT_AT(version, group_api.graph_captured, 24);                                           \
    ABI_EVENT_AT(version, group_api.depth, 28);                                                    \
    ABI_EVENT_AT(version, collective_api.function, 24);                                            \
    ABI_EVENT_AT(version, collective_api.count, 32);                                               \
    ABI_EVENT_AT(version, collective_api.datatype, 40);                                            \
    ABI_EVENT_AT(version, collective_api.root, 48);                                                \
    ABI_EVENT_AT(version, collective_api.stream, 56);                                              \
    ABI_EVENT_AT(version, collective_api.graph_captured, 64);                                      \
    ABI_EVENT_AT(version, p2p_api.stream, 48);                                                     \
    ABI_EVENT_AT(version, p2p_api.graph_captured, 56);                                             \
    ABI_EVENT_AT(version, kernel_launch.stream, 24);                                               \
    ABI_EVENT_AT(version, collective.parent_group, 104);                                           \
    ABI_EVENT_AT(version, p2p.parent_group, 64)

ABI_EVENT(4);
ABI_EVENT(5);
ABI_EVENT(6);
ABI_EVENT_API(5);
ABI_EVENT_API(6);
ABI_EVENT_AT(6, ce_collective.sync_strategy, 80);
ABI_EVENT_AT(6, ce_collective.flag, 88);
ABI_EVENT_AT(6, ce_collective.number, 92);
ABI_EVENT_AT(6, ce_collective.stream, 104);
ABI_EVENT_SIZE(nccl_event_descriptor_v4, 104);
ABI_EVENT_SIZE(nccl_event_descriptor_v5, 112);
ABI_EVENT_SIZE(nccl_event_descriptor_v6, 112);
ABI_EVENT_SIZE(nccl_profiler_v4, 48);
ABI_EVENT_SIZE(nccl_profiler_v5, 48);
ABI_EVENT_SIZE(nccl_profiler_v6, 48);
_Static_assert(sizeof(union nccl_event_state_arguments) == 8, "state arguments");
