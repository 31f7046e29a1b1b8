/* io_rdma.h: the second half of the transport's outside world: RC queue pairs, in one table. A host without any has no table
 * (transport_config.rdma is NULL).
 *
 * rdma.c fills it from platform/rdma, the simulator with its own. Nothing in src/transport knows a device, a GID's index or a
 * key. Names begin with io_, for platform/rdma has others of the same kind, and rdma.c includes both.
 *
 * A queue pair is a small number that the driver gave, never negative, and not given again before it is closed. Its life:
 *
 *     open ──► opened, until it isn't -EAGAIN ──► choose, likewise ──► connect ──► connected, likewise
 *          ──► send, receive, poll, arm ──► close
 *
 * Each has its own completion queue.
 *
 * What may block. Nothing, but memory_add, memory_remove (a millisecond), fence, where it is told to wait (milliseconds, and
 * a fifth of a second where a driver doesn't answer), and what waits for a device that reads and writes memory of GPUs:
 * microseconds; where it doesn't answer, memory_add, memory_remove, gpu_read and gpu_settle take up to 1 s, and gpu_copy, which
 * asks one device after the other, up to 4 s. A device that doesn't answer is asked no more until it has. A modify to RTR
 * resolves the neighbour in the kernel, up to 1 s where ARP is cold; making a queue pair, a completion queue or registering
 * cells takes milliseconds. A driver does these in a thread of its own, which blocks all signals; open, connect and close only
 * tell it to. So are silence and fence, in a thread for each device: whoever asks for them has a set's lock. The simulator
 * answers late.
 *
 * Threads. Calls come from several threads, but no two at a time with one queue pair. events() and trouble() belong to the
 * housekeeping alone. The driver's threads call nothing of the transport's but now() and kick() of the struct io that it was made
 * with.
 *
 * Cells. A queue pair sends from cells and receives into cells, all of config.cell_size bytes, registered by the driver, who owns
 * their memory: it stays until nothing of the queue pair moves any more, however late after close(). Of our other memory a NIC
 * writes only what was added, over queue pairs with config.writes, and where the peer was told to (POST). Cell k is at
 * base + k * cell_size. Whose it is to read and write:
 *   a send cell     ours, until send(); ours again once its completion was polled, whatever its status
 *   a receive cell  the NIC's from opened() on (all are posted then); ours once a completion with IO_QP_OK names it; the NIC's
 *                   again from receive() on. One that was flushed is nobody's: the NIC may still be writing it
 *
 * Order. Sends complete in the order of their posting, each once. Receives complete in the order in which the peer posted its
 * sends, each once, and take posted cells in the order of their posting. Sends and receives have no order between them. The
 * completion of a send tells that the peer's *NIC* has it, whoever is starved there.
 *
 * Errors. The first completion that isn't IO_QP_OK, or a poll() < 0, tells that the queue pair is over: it sends and takes
 * nothing any more, and only close() is useful. What was posted and has not completed ends as IO_QP_FLUSHED: receives in order
 * of their posting, after all good ones. So the last receive posted, flushed, is the *marker*: nothing lands after it. A poll()
 * may have good completions to tell of first, and tells of these first. A send beyond the cells that the peer has posted waits
 * in the NIC (RNR); who counts cells never meets that.
 *
 * Writes. A send may be preceded by a write into the peer's memory. The peer's completion of the send tells that it is there.
 * Until the send has completed here, the NIC may read what is written from. Silence: after silence() or an error what the
 * peer's NIC has begun to execute goes on, and lands: until the marker. Or until fence() returned 0.
 *
 * A device that is removed takes all its queue pairs with it: poll() gives -ENODEV. Whether there is another later is open()'s
 * to tell. */
#pragma once
#include "base/limits.h"
#include "transport/io.h"

/* One end of a queue pair, for the other: what a frame of the lane carries. */
struct io_qp_end {
    uint8_t gid[16];   /* by value, read now: indices move */
    uint32_t qp, psn;  /* 24 bits each */
    uint16_t lid;      /* InfiniBand; 0: RoCE */
    uint8_t mtu_shift; /* log2 of the port's active MTU, 8..12: both ends use the lesser */
    uint8_t sl;        /* service level: of what is sent to it, by who has chosen none */
    uint16_t pkey;     /* InfiniBand; 0: not told */
};

struct io_qp_config {
    struct io_address nic;    /* of ours, by address: the port that carries it. Looked up now */
    const char *device;       /* its name, for who has no address there */
    uint32_t sends, receives; /* cells */
    uint32_t cell_size;
    uint32_t path; /* what this end sends goes by it: any 32 bits, the same ones the same way */
    /* InfiniBand: of the port's LIDs the one that fewest queue pairs of this process to that peer have: what the peer sends goes
     * by it. luck: by `path`, as that one brought nothing. */
    struct io_address peer;
    bool luck;
    uint8_t traffic_class; /* DSCP << 2, and two bits of ECN; 0: unmarked */
    uint8_t sl;            /* 1 + the service level of what this end sends; 0: the peer's port's */
    uint16_t pkey;         /* InfiniBand: the peer's, where it is told before; else 0 */
    bool writes;           /* both ends may write */
};
/* A chosen path is what the UDP source port has above that one: 14 bits. */
#define IO_ROCE_FIRST_PORT 0xc000u
/* The flow label of a path's packets. The kernel folds a label's 20 bits to a source port's 14: of the same number the same port,
 * IO_ROCE_FIRST_PORT and the label. Label 0 would be luck. */
static inline uint32_t io_roce_label(uint32_t path)
{
    const uint32_t folded = (path ^ path >> 14 ^ path >> 28) & 0x3fff;

    return folded != 0 ? folded : 0x3fff;
}
/* Of other queue pairs to the same NIC: what choose() gave for them. One that is to be left is there twice. */
#define IO_QP_OTHERS (LANE_MAX + 1)
struct io_qp_others {
    uint32_t count, paths[IO_QP_OTHERS];
};
struct io_qp_cells {
    uint8_t *send, *receive; /* cell k at + k * cell_size */
    uint32_t device;         /* whose keys it takes; IO_RDMA_DEVICES: none */
};

/* Memory of ours that NICs may read and write, by device. */
#define IO_RDMA_DEVICES 16
struct io_rdma_memory {
    uint32_t local[IO_RDMA_DEVICES],
        remote[IO_RDMA_DEVICES]; /* keys, atomic; 0: not on that one (any more) */
};
/* What is to be added. */
struct io_rdma_range {
    void *data;
    size_t size;
    bool gpu;        /* a GPU's, of a DMA-BUF: the processor must not touch it */
    int fd;          /* the DMA-BUF's; it may be closed afterwards */
    uint64_t offset; /* in it */
};
struct io_rdma_write {
    const void *from;
    uint32_t size, key; /* of ours, on the queue pair's device */
    uint64_t to;
    uint32_t remote_key;
};
struct io_qp_timeouts {
    uint8_t timeout; /* 4.096 us * 2^n, and a queue pair gives up after retries + 1 of them */
    uint8_t retries;
    uint8_t rnr_timer, rnr_retries;
};

enum io_qp_status {
    IO_QP_OK,
    IO_QP_FLUSHED,
    IO_QP_RETRIES, /* nothing came back from the peer's NIC */
    IO_QP_RNR,     /* the peer had no cell posted */
    IO_QP_REFUSED, /* the peer's NIC refuses it: too long, or no such queue pair */
    IO_QP_BROKEN,  /* all else */
};
struct io_qp_done {
    bool receive;
    enum io_qp_status status;
    uint32_t cell;   /* of the one it was posted with; with any status */
    uint32_t bytes;  /* received, IO_QP_OK only */
    uint8_t number;  /* any other status: the library's own, an enum ibv_wc_status; 0: unknown */
    uint32_t vendor; /* and the vendor's: for people */
    /* Receives, IO_QP_OK only: when it arrived, by the completion's own stamp where the device has one (kernel: true), else when
     * it was polled. */
    struct io_stamp stamp;
};

struct io_rdma {
    void *driver;

    /* Begins to make one. -ENODEV: no usable port carries that address. -ENOSPC: too many. */
    int (*open)(struct io_rdma *rdma, const struct io_qp_config *config, int *ret_qp);
    /* 0: it is made, and its receive cells are posted; -EAGAIN: not yet; else why it won't be (-ENOMEM: `ulimit -l`). */
    int (*opened)(struct io_rdma *rdma, int qp, struct io_qp_end *ret_own,
                  struct io_qp_cells *ret_cells);
    /* Before connect(), and not needed: a path that shares as few routers with the others' as can be known. NULL: nothing is
     * known here. 0: *ret_path is it, and takes the place of config.path; -EAGAIN: routers are asked, for a quarter of a second
     * or so; else nobody knows, and config.path stays. */
    int (*choose)(struct io_rdma *rdma, int qp, const struct io_address *peer,
                  const struct io_qp_others *others, uint32_t *ret_path);
    /* Begins to connect it, once. The end comes from the network: -EINVAL: no end of ours can reach it (another link layer). */
    int (*connect)(struct io_rdma *rdma, int qp, const struct io_qp_end *peer,
                   const struct io_qp_timeouts *timeouts);
    /* 0: it may send, and takes what comes; -EAGAIN: not yet; else why it won't. Whether the peer is reached, nobody knows. */
    int (*connected)(struct io_rdma *rdma, int qp);

    /* The first `size` bytes of the cell, <= cell_size, 0 too. There is always room in the queue for a free cell. write: goes
     * before it; NULL: none. */
    int (*send)(struct io_rdma *rdma, int qp, uint32_t cell, uint32_t size,
                const struct io_rdma_write *write);
    int (*receive)(struct io_rdma *rdma, int qp, uint32_t cell); /* posts it again */
    /* How many; 0: none; -EIO: the queue pair is over, -ENODEV: its device is gone. No system call: it is called all the time. */
    int (*poll)(struct io_rdma *rdma, int qp, struct io_qp_done *ret_done, int capacity);
    /* Once: when something completes, or the queue pair is over, io->kick(), and events() tells the tag. If there is something
     * already, at once. From open() on: also when opened() or connected() have an answer. */
    int (*arm)(struct io_rdma *rdma, int qp, uint64_t tag);
    /* The number is free now, and what is armed isn't told. linger: what was posted is still sent, as long as that takes, up to
     * 2 s; what comes is dropped. Else nothing of it leaves any more, but for what is being executed. */
    void (*close)(struct io_rdma *rdma, int qp, bool linger);

    /* Soon nothing of ours leaves any more, and what the peer's NIC sends is refused. It completes as above, up to the marker. */
    int (*silence)(struct io_rdma *rdma, int qp);
    /* 0: nothing lands any more, and nothing is read. -EAGAIN: not yet, ask again; wait: the driver didn't answer in time.
     * -EIO: the device doesn't swear; it may later. The queue pair is good for close() only. */
    int (*fence)(struct io_rdma *rdma, int qp, bool wait);

    /* NULL: no writes. The memory must stay until it is removed. -EOPNOTSUPP: no device takes a GPU's. */
    int (*memory_add)(struct io_rdma *rdma, const struct io_rdma_range *range,
                      struct io_rdma_memory **ret_memory);
    void (*memory_remove)(struct io_rdma *rdma, struct io_rdma_memory *memory);

    /* Memory of GPUs; NULL: no device takes it. What the processor can't do a device does, by a queue pair with itself.
     *
     * gpu_copy: between memory that was added and memory of ours, at once. -EIO: no device can. *ret_device: which did.
     *
     * A write that has completed is on its way to the GPU; a device that reads from there pushes its own writes before it. So
     * gpu_read: this device reads from the range at that place (NULL: of each GPU's range), after which what it wrote before is
     * seen. gpu_done: 0: it has; -EAGAIN: not yet; else it can't: what was on its way is there after GPU_SETTLE_NS (gpu.c).
     * gpu_settle: both, and waits; for so long at most. */
    int (*gpu_copy)(struct io_rdma *rdma, struct io_rdma_memory *memory, void *gpu, void *own,
                    size_t size, bool to_gpu, uint32_t *ret_device);
    int (*gpu_read)(struct io_rdma *rdma, uint32_t device, struct io_rdma_memory *memory,
                    const void *at, uint64_t *ret_ticket);
    int (*gpu_done)(struct io_rdma *rdma, uint32_t device, uint64_t ticket);
    void (*gpu_settle)(struct io_rdma *rdma, uint32_t device);

    /* The port that carries that NIC: 0: its device said that it went down; 1: not, or that it is up again. *ret_downs: how often
     * it went. -ENODEV: no queue pair was ever made there. NULL: nobody knows. A change is IO_TAG_LINKS of events(). */
    int (*carrier)(struct io_rdma *rdma, const struct io_address *nic, const char *device,
                   uint32_t *ret_downs);

    /* Tags that were armed and have something (events: IO_IN); how many. */
    int (*events)(struct io_rdma *rdma, struct io_event *ret_events, int capacity);
    /* Something that people should know, each once: a port with RoCE v1 only, memlock, a device that went. False: nothing new.
     * NULL: never anything. */
    bool (*trouble)(struct io_rdma *rdma, char *text, size_t size);
};
