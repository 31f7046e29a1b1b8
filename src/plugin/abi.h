/* abi.h: the parts of the ABI that NCCL and RCCL share for any plugin: results, log levels, the limits of the network ABI.
 *
 * Declared from the public ABI (symbol names, offsets, sizes, values), not copied from any header. LP64 only. The tables are in
 * plugin/abi_net.h and plugin/abi_profiler.h. Both check sizes and offsets by static asserts, so that a mistake is a build error
 * and not a crash in somebody's job. */
#pragma once
#include <stddef.h>
#include <stdint.h>

_Static_assert(sizeof(void *) == 8 && sizeof(long) == 8, "the plugin ABI is declared for LP64");

#define NCCL_HANDLE_SIZE         128 /* of a connect handle, v5 and later; all bytes are carried */
#define NCCL_REQUEST_MAX         32 /* outstanding per communicator, times maxRecvs (NCCL 2.19 and later) */
#define NCCL_NET_SIZE_MAX_V8     (1ll << 30) /* largest message, v8 and earlier */
#define NCCL_NET_SIZE_MAX        (1ll << 40) /* v9 and later */
#define NCCL_DEVICES_PER_NIC     4           /* of a merged NIC, v9 to v11 */
#define NCCL_DEVICES_PER_NIC_V12 8
#define NCCL_UNDEFINED           (-1) /* no traffic class, rail or plane was chosen */
/* The value of *request when irecv is called for data that the GPU polls for itself: the plugin may report the request as done at
 * once. v9 and later; NULL otherwise. */
#define NCCL_OPTIONAL_COMPLETION ((void *)0x1)

/* ncclResult_t. An enum argument is an int. */
enum nccl_result {
    NCCL_SUCCESS = 0,
    NCCL_UNHANDLED_CUDA_ERROR = 1,
    NCCL_SYSTEM_ERROR = 2,
    NCCL_INTERNAL_ERROR = 3,
    NCCL_INVALID_ARGUMENT = 4,
    NCCL_INVALID_USAGE = 5,
    NCCL_REMOTE_ERROR = 6, /* a peer is gone: a plugin that gives up returns this */
    NCCL_IN_PROGRESS = 7,
    NCCL_TIMEOUT = 8, /* NCCL 2.30 and later */
};
_Static_assert(sizeof(enum nccl_result) == 4, "an int in every table");

/* Kinds of memory: bits of ptrSupport, the `type` of regMr. RCCL uses the same for HIP. */
enum nccl_pointer {
    NCCL_POINTER_HOST = 0x1,
    NCCL_POINTER_CUDA = 0x2,
    NCCL_POINTER_DMABUF = 0x4,
};

/* netDeviceType; a plugin that runs on the host returns HOST, version 0. */
enum nccl_device_type {
    NCCL_DEVICE_HOST = 0,
    NCCL_DEVICE_UNPACK = 1,
};

enum nccl_log_level {
    NCCL_LOG_NONE = 0,
    NCCL_LOG_VERSION = 1,
    NCCL_LOG_WARN = 2, /* only this level reaches ncclGetLastError */
    NCCL_LOG_INFO = 3,
    NCCL_LOG_ABORT = 4,
    NCCL_LOG_TRACE = 5,
};

/* Bits of a log line's subsystems. */
enum nccl_log_flag {
    NCCL_LOG_INIT = 0x1,
    NCCL_LOG_NET = 0x10,
    NCCL_LOG_ENV = 0x80,
    NCCL_LOG_PROXY = 0x400,
    NCCL_LOG_PROFILE = 0x4000,
    NCCL_LOG_DESTROY = 0x10000,
};
#define NCCL_LOG_ALL (~0ul)

/* Given to init; may be called from any thread. */
typedef void (*nccl_logger)(int level, unsigned long flags, const char *file, int line,
                            const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Given to init from v10 on. `parent` is isend's or irecv's phandle and never NULL. Set *event to NULL before Start. If it stays
 * NULL, skip the other calls. */
enum nccl_profile_type {
    NCCL_PROFILE_START = 0,
    NCCL_PROFILE_STOP = 1,
    NCCL_PROFILE_UPDATE = 2,
    NCCL_PROFILE_UPDATE_AND_STOP = 3,
};
typedef enum nccl_result (*nccl_profiler_callback)(void **event, int type, void *parent,
                                                   int64_t plugin_id, void *data);
