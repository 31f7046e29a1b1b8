/* verbs.h: libibverbs, opened at run time. Nothing is linked with it: a host without the library has no queue pairs, and says
 * so. Its functions are looked up by symbol version; those that only newer libraries have may be missing, and what needs them
 * then answers -EOPNOTSUPP.
 *
 * Handles name what the library made; each is owned by who opened it and closed before what it was opened on. One thread a
 * queue pair and a completion queue at a time. Nothing here waits but rdma_qp_connect (up to a second where the neighbour has
 * to be resolved first) and rdma_memory_add.
 *
 * rdma.md of the design has the reasons; the numbers of enums are ours. */
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

/* library: NULL: "libibverbs.so.1". -ENOENT: there is none. -ENOSYS: it lacks a function. Both with the reason in `ret_why`. */
MUST_CHECK int rdma_verbs_open(struct rdma_verbs **ret_verbs, const char *library, char *ret_why,
                               size_t size);
struct rdma_verbs *rdma_verbs_close(struct rdma_verbs *v); /* NULL is fine; returns NULL */
/* Names of the first `capacity` devices that the library can open; how many there are. */
MUST_CHECK int rdma_verbs_devices(struct rdma_verbs *v, char (*ret_names)[RDMA_NAME_SIZE],
                                  int capacity);

/* A process with registered memory may fork: the NIC goes on writing to the parent's pages. Else the child may get the ones that
 * the NIC writes. release: of the kernel, as uname tells it; from 5.12 on it copies such pages for the child. */
bool rdma_verbs_forks(const struct rdma_verbs *v, const char *release);

/* -ENODEV: no device of this name; else what the library told (-EACCES, -EPERM: /dev/infiniband isn't for us). */
MUST_CHECK int rdma_device_open(struct rdma_verbs *v, const char *name,
                                struct rdma_device **ret_device);
/* 0: the device swears that nothing of ours moves any more. */
int rdma_device_close(struct rdma_device *d);

struct rdma_limits {
    uint32_t qp, sends, sge, cq, cqe, memories, ports;
    bool dmabuf;     /* ibv_reg_dmabuf_mr is there (and answers; a GPU may still be refused) */
    bool cqe_stamps; /* completions can carry the device's clock */
    uint64_t clock_khz;
};
/* What the library answers, negative: the device can't be asked. */
MUST_CHECK int rdma_device_limits(struct rdma_device *d, struct rdma_limits *ret_limits);

/* What the library tells of a port beyond ports.h. */
struct rdma_port_now {
    uint32_t state;           /* enum rdma_port_state */
    uint32_t active_mtu, mtu; /* bytes; 0: not told */
    uint16_t lid, sm_lid;
    uint8_t lmc, sl;
    bool infiniband, grh_required;
    uint32_t gids, pkeys; /* sizes of the tables */
};
/* Ports count from 1. What the library answers, negative: there is no such port, or it can't be asked. */
MUST_CHECK int rdma_device_port(struct rdma_device *d, uint32_t port,
                                struct rdma_port_now *ret_port);
/* The present index of a GID, by value: indices move. type: enum rdma_gid_type, or RDMA_GID_UNKNOWN for any. -ENOENT. */
MUST_CHECK int rdma_device_gid_index(struct rdma_device *d, uint32_t port, const uint8_t gid[16],
                                     uint32_t type);

/* The port's GIDs but empty entries, at most `capacity`, without interfaces' names; how many. -EOPNOTSUPP: an old library. */
MUST_CHECK int rdma_device_gids(struct rdma_device *d, uint32_t port, struct rdma_gid *ret_gids,
                                int capacity);
/* The GID at an index. -ENOENT: there is none. */
MUST_CHECK int rdma_device_gid(struct rdma_device *d, uint32_t port, uint32_t index,
                               uint8_t ret_gid[16]);
/* The present index of the port's P_Key of this partition (the lower 15 bits), full membership before limited. 0: of whichever is
 * best: the default partition's as a full member, else the first as a full member, else the first. -ENOENT. */
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
    RDMA_EVENT_QP,      /* a queue pair is dead */
    RDMA_EVENT_CQ,      /* a completion queue is: nothing of it is told any more */
    RDMA_EVENT_DEVICE_GONE,
    RDMA_EVENT_OTHER,
};
struct rdma_event {
    enum rdma_event_kind kind;
    uint32_t port; /* 0: of no port */
    uint32_t qp;   /* its number; 0: of none */
    uint64_t tag;  /* the completion queue's; RDMA_EVENT_CQ only */
    int number;    /* the library's own, for people */
};
int rdma_device_command_fd(
    const struct rdma_device *d); /* of /dev/infiniband/uverbs*: owns all that is made on it */
int rdma_device_fd(const struct rdma_device *d); /* readable when there is an event */
/* -EAGAIN: none. */
MUST_CHECK int rdma_device_event(struct rdma_device *d, struct rdma_event *ret_event);

/* -ENOMEM where `ulimit -l` is too small. */
MUST_CHECK int rdma_memory_add(struct rdma_device *d, void *from, size_t size, bool remote_write,
                               struct rdma_memory **ret_memory);
/* Memory of a GPU, which the processor doesn't touch: `size` bytes from `offset` on of what its driver exported (a DMA-BUF; the
 * descriptor may be closed afterwards), at the GPU's own address. Others may read it, too. -EOPNOTSUPP: the library can't. */
MUST_CHECK int rdma_memory_add_gpu(struct rdma_device *d, int fd, uint64_t offset, void *address,
                                   size_t size, struct rdma_memory **ret_memory);
int rdma_memory_remove(struct rdma_memory *m);
uint32_t rdma_memory_key(const struct rdma_memory *m, bool remote);

/* For `entries` completions. -ENOMEM, also where `ulimit -l` is too small; -EIO. */
MUST_CHECK int rdma_cq_open(struct rdma_device *d, uint32_t entries, uint64_t tag,
                            struct rdma_cq **ret_cq);
/* After its queue pairs. 0, or what the library answers, negative: one still uses it. */
int rdma_cq_close(struct rdma_cq *cq);
/* The next completion is told by rdma_device_armed(), once: one that is there already isn't, so poll again afterwards. */
MUST_CHECK int rdma_cq_arm(struct rdma_cq *cq);
int rdma_device_armed_fd(const struct rdma_device *d); /* readable when there is one to tell of */
/* Whose: its tag. -EAGAIN: none. */
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
    uint64_t tag; /* of the request; when status isn't RDMA_OK nothing else is valid but `qp` */
    uint32_t qp;  /* number of the queue pair */
    enum rdma_status status;
    uint8_t number; /* of the status: the library's own, for people */
    bool receive;
    uint32_t bytes;  /* received */
    uint32_t vendor; /* the vendor's error, for people */
};
/* How many; -EIO: the queue is broken. */
MUST_CHECK int rdma_cq_poll(struct rdma_cq *cq, struct rdma_done *ret_done, int capacity);

struct rdma_qp_config {
    uint32_t port, sends, receives, inline_size;
    uint16_t pkey_index;
    bool remote_write, remote_read;
};
/* RC, in INIT: receives may be posted. */
MUST_CHECK int rdma_qp_open(struct rdma_device *d, struct rdma_cq *cq,
                            const struct rdma_qp_config *config, struct rdma_qp **ret_qp);
uint32_t rdma_qp_number(const struct rdma_qp *qp);
uint32_t rdma_qp_inline(const struct rdma_qp *qp); /* bytes: what the device gave */

/* The way to the other end. */
struct rdma_path {
    uint8_t gid[16]; /* of the peer */
    uint16_t lid;    /* of the peer; InfiniBand */
    bool global;     /* with a global route header: RoCE always */
    uint8_t own_gid_index, path_bits, sl, traffic_class;
    uint32_t flow_label; /* RoCE v2: decides the source port, so the path */
    uint32_t mtu;        /* bytes, of the path */
    uint32_t qp, psn;    /* the peer's */
};
struct rdma_timeouts {
    uint8_t timeout; /* 4.096 us × 2^n; a queue pair gives up after (retries + 1) of them */
    uint8_t retries;
    uint8_t rnr_timer, rnr_retries;
};
/* To RTS. */
MUST_CHECK int rdma_qp_connect(struct rdma_qp *qp, uint32_t own_psn, const struct rdma_path *path,
                               const struct rdma_timeouts *timeouts);
/* To ERR. What is being executed goes on: only the flush of a receive that was posted before tells that it is over. */
MUST_CHECK int rdma_qp_silence(struct rdma_qp *qp);
/* 0: nothing of it moves any more. */
int rdma_qp_close(struct rdma_qp *qp);

struct rdma_piece {
    const void *from;
    uint32_t size, key; /* key: local; 0: inline */
};
/* A WRITE (NULL: none) to `to`/`remote_key`, then a signalled SEND, by one doorbell. -EAGAIN: the queue is full. */
MUST_CHECK int rdma_qp_send(struct rdma_qp *qp, uint64_t tag, const struct rdma_piece *write,
                            uint64_t to, uint32_t remote_key, const struct rdma_piece *send);
/* A WRITE to `there`, or a READ from it, alone and signalled. -EAGAIN: the queue is full. */
MUST_CHECK int rdma_qp_move(struct rdma_qp *qp, uint64_t tag, const struct rdma_piece *own,
                            uint64_t there, uint32_t remote_key, bool read);
MUST_CHECK int rdma_qp_receive(struct rdma_qp *qp, uint64_t tag, void *to, uint32_t size,
                               uint32_t key);
