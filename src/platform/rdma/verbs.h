/* verbs.h: libibverbs, opened at run time. No program is linked with it: a host without the library has no queue pairs, and
 * this is reported. Functions are looked up by symbol version. Functions of newer libraries may be missing; then calls that
 * need them return -EOPNOTSUPP.
 *
 * Handles name objects of the library. The code that opened an object owns it, and closes it before the object on which it was
 * opened. A queue pair or completion queue may be used by one thread at a time. Only rdma_qp_connect (up to a second, if the
 * neighbour must be resolved first) and rdma_memory_add wait.
 *
 * The reasons are in rdma.md of the design. The numbers of enums are Foliot's own. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "platform/rdma/ports.h"

#define RDMA_NAME_SIZE 64

struct rdma_verbs;
struct rdma_device;
struct rdma_cq;
struct rdma_qp;
struct rdma_memory;

/* library NULL: "libibverbs.so.1". -ENOENT: there is none. -ENOSYS: it lacks a function. `ret_why` has the reason for both. */
MUST_CHECK int rdma_verbs_open(struct rdma_verbs **ret_verbs, const char *library, char *ret_why,
                               size_t size);
struct rdma_verbs *rdma_verbs_close(struct rdma_verbs *v); /* accepts NULL; returns NULL */
/* Names of the first `capacity` devices that the library can open. Returns how many there are. */
MUST_CHECK int rdma_verbs_devices(struct rdma_verbs *v, char (*ret_names)[RDMA_NAME_SIZE],
                                  int capacity);

/* True if a process with registered memory may fork: the NIC still writes to the parent's pages. Else the child may get the
 * pages that the NIC writes to. release: the kernel's, as from uname; from 5.12 on the kernel copies such pages for the child. */
bool rdma_verbs_forks(const struct rdma_verbs *v, const char *release);

/* -ENODEV: no device has this name; else the library's error (-EACCES, -EPERM: no permission for /dev/infiniband). */
MUST_CHECK int rdma_device_open(struct rdma_verbs *v, const char *name,
                                struct rdma_device **ret_device);
/* 0: the device guarantees that it moves no more data for this process. */
int rdma_device_close(struct rdma_device *d);

struct rdma_limits {
    uint32_t qp, sends, sge, cq, cqe, memories, ports;
    bool dmabuf;     /* ibv_reg_dmabuf_mr exists (and works; it may still refuse a GPU) */
    bool cqe_stamps; /* completions can have stamps of the device's clock */
    uint64_t clock_khz;
};
/* Negative: the library's error: the device can't be asked. */
MUST_CHECK int rdma_device_limits(struct rdma_device *d, struct rdma_limits *ret_limits);

/* The library's facts about a port, beyond ports.h. */
struct rdma_port_now {
    uint32_t state;           /* enum rdma_port_state */
    uint32_t active_mtu, mtu; /* bytes; 0: not known */
    uint16_t lid, sm_lid;
    uint8_t lmc, sl;
    bool infiniband, grh_required;
    uint32_t gids, pkeys; /* sizes of the tables */
};
/* Ports count from 1. Negative: the library's error: there is no such port, or it can't be asked. */
MUST_CHECK int rdma_device_port(struct rdma_device *d, uint32_t port,
                                struct rdma_port_now *ret_port);
/* The present index of a GID, by value: indices change. type: enum rdma_gid_type, or RDMA_GID_UNKNOWN for any. -ENOENT. */
MUST_CHECK int rdma_device_gid_index(struct rdma_device *d, uint32_t port, const uint8_t gid[16],
                                     uint32_t type);

/* The port's GIDs without empty entries, at most `capacity`, without names of interfaces. Returns how many. -EOPNOTSUPP: an
 * old library. */
MUST_CHECK int rdma_device_gids(struct rdma_device *d, uint32_t port, struct rdma_gid *ret_gids,
                                int capacity);
/* The GID at an index. -ENOENT: there is none. */
MUST_CHECK int rdma_device_gid(struct rdma_device *d, uint32_t port, uint32_t index,
                               uint8_t ret_gid[16]);
/* The present index of the port's P_Key of this partition (the lower 15 bits); full membership is preferred. partition 0: the
 * best one: the default partition with full membership, else the first with full membership, else the first. -ENOENT. */
MUST_CHECK int rdma_device_pkey_index(struct rdma_device *d, uint32_t port, uint16_t partition);
/* The P_Key at an index, with the bit of full membership. -ENOENT: there is none. */
#define RDMA_PKEY_FULL    0x8000u
#define RDMA_PKEY_DEFAULT 0x7fffu
MUST_CHECK int rdma_device_pkey(struct rdma_device *d, uint32_t port, uint32_t index,
                                uint16_t *ret_pkey);

enum rdma_event_kind {
    RDMA_EVENT_PORT_UP,
    RDMA_EVENT_PORT_DOWN,
    RDMA_EVENT_ADDRESS, /* GIDs, LID, P_Keys or the subnet manager changed: read the port again */
    RDMA_EVENT_QP,      /* a queue pair has failed */
    RDMA_EVENT_CQ,      /* a completion queue has failed: it gets no more completions */
    RDMA_EVENT_DEVICE_GONE,
    RDMA_EVENT_OTHER,
};
struct rdma_event {
    enum rdma_event_kind kind;
    uint32_t port; /* 0: the event is of no port */
    uint32_t qp;   /* its number; 0: of no queue pair */
    uint64_t tag;  /* of the completion queue; only for RDMA_EVENT_CQ */
    int number;    /* the library's number, for people */
};
int rdma_device_command_fd(
    const struct rdma_device *d); /* /dev/infiniband/uverbs*; all its objects depend on it */
int rdma_device_fd(const struct rdma_device *d); /* readable if there is an event */
/* -EAGAIN: no event. */
MUST_CHECK int rdma_device_event(struct rdma_device *d, struct rdma_event *ret_event);

/* -ENOMEM, also if `ulimit -l` is too small. */
MUST_CHECK int rdma_memory_add(struct rdma_device *d, void *from, size_t size, bool remote_write,
                               struct rdma_memory **ret_memory);
/* Registers memory of a GPU, which the processor does not access: `size` bytes from `offset` of a DMA-BUF that the GPU's
 * driver exported (the descriptor may be closed afterwards), at the GPU's own address. Peers may read it, too. -EOPNOTSUPP:
 * the library does not support it. */
MUST_CHECK int rdma_memory_add_gpu(struct rdma_device *d, int fd, uint64_t offset, void *address,
                                   size_t size, struct rdma_memory **ret_memory);
int rdma_memory_remove(struct rdma_memory *m);
uint32_t rdma_memory_key(const struct rdma_memory *m, bool remote);

/* For `entries` completions. -ENOMEM, also if `ulimit -l` is too small; -EIO. */
MUST_CHECK int rdma_cq_open(struct rdma_device *d, uint32_t entries, uint64_t tag,
                            struct rdma_cq **ret_cq);
/* Close its queue pairs first. Returns 0, or the library's negative error: it is still in use. */
int rdma_cq_close(struct rdma_cq *cq);
/* rdma_device_armed() reports the next completion, once. Completions that are already there are not reported: poll again after
 * this call. */
MUST_CHECK int rdma_cq_arm(struct rdma_cq *cq);
int rdma_device_armed_fd(const struct rdma_device *d); /* readable if there is a report */
/* Gets the tag of the completion queue. -EAGAIN: none. */
MUST_CHECK int rdma_device_armed(struct rdma_device *d, uint64_t *ret_tag);

enum rdma_status {
    RDMA_OK,
    RDMA_FLUSHED,
    RDMA_RETRIES,
    RDMA_RNR_RETRIES,
    RDMA_ACCESS,
    RDMA_LOCAL,
    RDMA_FATAL
};
struct rdma_done {
    uint64_t tag; /* of the request; if status is not RDMA_OK only this and `qp` are valid */
    uint32_t qp;  /* number of the queue pair */
    enum rdma_status status;
    uint8_t number; /* of the status: the library's number, for people */
    bool receive;
    uint32_t bytes;  /* received */
    uint32_t vendor; /* the vendor's error, for people */
};
/* Returns how many; -EIO: the queue is broken. */
MUST_CHECK int rdma_cq_poll(struct rdma_cq *cq, struct rdma_done *ret_done, int capacity);

struct rdma_qp_config {
    uint32_t port, sends, receives, inline_size;
    uint16_t pkey_index;
    bool remote_write, remote_read;
};
/* Makes an RC queue pair, in INIT: receives may be posted. */
MUST_CHECK int rdma_qp_open(struct rdma_device *d, struct rdma_cq *cq,
                            const struct rdma_qp_config *config, struct rdma_qp **ret_qp);
uint32_t rdma_qp_number(const struct rdma_qp *qp);
uint32_t rdma_qp_inline(const struct rdma_qp *qp); /* bytes that the device allows */

/* The path to the other end. */
struct rdma_path {
    uint8_t gid[16]; /* of the peer */
    uint16_t lid;    /* of the peer; InfiniBand */
    bool global;     /* with a global route header: always for RoCE */
    uint8_t own_gid_index, path_bits, sl, traffic_class;
    uint32_t flow_label; /* RoCE v2: determines the source port, and so the path */
    uint32_t mtu;        /* bytes, of the path */
    uint32_t qp, psn;    /* the peer's */
};
struct rdma_timeouts {
    uint8_t timeout; /* 4.096 us × 2^n; a queue pair gives up after (retries + 1) of these */
    uint8_t retries;
    uint8_t rnr_timer, rnr_retries;
};
/* Moves it to RTS. */
MUST_CHECK int rdma_qp_connect(struct rdma_qp *qp, uint32_t own_psn, const struct rdma_path *path,
                               const struct rdma_timeouts *timeouts);
/* Moves it to ERR. A running operation continues. Only the flush of an earlier posted receive proves that it has ended. */
MUST_CHECK int rdma_qp_silence(struct rdma_qp *qp);
/* 0: it moves no more data. */
int rdma_qp_close(struct rdma_qp *qp);

struct rdma_piece {
    const void *from;
    uint32_t size, key; /* key: the local key; 0: inline */
};
/* Posts a WRITE (NULL: none) to `to`/`remote_key`, then a signalled SEND, with one doorbell. -EAGAIN: the queue is full. */
MUST_CHECK int rdma_qp_send(struct rdma_qp *qp, uint64_t tag, const struct rdma_piece *write,
                            uint64_t to, uint32_t remote_key, const struct rdma_piece *send);
/* Posts only a signalled WRITE to `there`, or a READ from it. -EAGAIN: the queue is full. */
MUST_CHECK int rdma_qp_move(struct rdma_qp *qp, uint64_t tag, const struct rdma_piece *own,
                            uint64_t there, uint32_t remote_key, bool read);
MUST_CHECK int rdma_qp_receive(struct rdma_qp *qp, uint64_t tag, void *to, uint32_t size,
                               uint32_t key);
