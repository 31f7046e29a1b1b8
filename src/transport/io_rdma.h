/* io_rdma.h: the second half of the transport's outside world: RC queue pairs, in one table. A host without them has no table
 * (transport_config.rdma is NULL).
 *
 * rdma.c fills it from platform/rdma, the simulator with its own. Nothing in src/transport uses a device, a GID's index or a key.
 * Names begin with io_, because platform/rdma has others of the same kind, and rdma.c includes both.
 *
 * A queue pair is a small number that the driver gave, never negative, and not given again before it is closed. Its life:
 *
 *     open ──► opened, until it isn't -EAGAIN ──► choose, likewise ──► connect ──► connected, likewise
 *          ──► send, receive, poll, arm ──► close
 *
 * Each has its own completion queue.
 *
 * Blocking. Calls return at once, with these exceptions: memory_add and memory_remove (a millisecond); fence, if it must wait
 * (milliseconds, or a fifth of a second if a driver doesn't answer); and calls that wait for a device that reads and writes
 * memory of GPUs (microseconds; if it doesn't answer, memory_add, memory_remove, gpu_read and gpu_settle take up to 1 s, and
 * gpu_copy, which asks one device after the other, up to 4 s). A device that doesn't answer is not asked again until it has
 * answered. A modify to RTR resolves the neighbour in the kernel, up to 1 s if ARP is cold. Making a queue pair or a completion
 * queue, and registering cells, takes milliseconds. A driver does these in a thread of its own, which blocks all signals; open,
 * connect and close only give it the task. silence and fence are done in a thread for each device, because their caller has a
 * set's lock. The simulator answers late.
 *
 * Threads. Calls come from several threads, but no two at a time for one queue pair. events() and trouble() are for the
 * housekeeping only. Of the transport the driver's threads call only now() and kick() of the struct io that they were given.
 *
 * Cells. A queue pair sends from cells and receives into cells, all of config.cell_size bytes. The driver registers them and owns
 * their memory, which stays until nothing of the queue pair moves any more, however late after close(). Of our other memory a NIC
 * writes only what was added, over queue pairs with config.writes, and to places that the peer was sent (POST). Cell k is at base
 * + k * cell_size. Access to it:
 *   a send cell     ours, until send(); ours again once its completion was polled, whatever its status
 *   a receive cell  the NIC's from opened() on (all are posted then); ours once a completion with IO_QP_OK names it; the NIC's
 *                   again from receive() on. A cell that was flushed is nobody's: the NIC may still be writing it
 *
 * Order. Sends complete in the order of their posting, each once. Receives complete in the order in which the peer posted its
 * sends, each once, and take posted cells in the order of their posting. Sends and receives have no order between them. The
 * completion of a send shows that the peer's *NIC* has it, even if the peer's process has no processor.
 *
 * Errors. The first completion that isn't IO_QP_OK, or a poll() < 0, shows that the queue pair is over: it sends and takes
 * nothing any more, and only close() is useful. Requests that have not completed end as IO_QP_FLUSHED: receives in order of their
 * posting, after all good ones. So the last receive posted, flushed, is the *marker*: nothing lands after it. A poll() may have
 * good completions first, and returns these first. A send beyond the cells that the peer has posted waits in the NIC (RNR); a
 * sender that counts cells never meets that.
 *
 * Writes. A send may be preceded by a write into the peer's memory. The peer's completion of the send shows that the write has
 * landed. Until the send has completed here, the NIC may read the source of the write. Silence: after silence() or an error,
 * requests that the peer's NIC has begun to execute continue, and land, until the marker, or until fence() returned 0.
 *
 * A device that is removed takes all its queue pairs with it: poll() gives -ENODEV. open() finds out whether there is another one
 * later. */
#pragma once
#include "base/limits.h"
#include "transport/io.h"

/* One end of a queue pair, as sent to the other end in a frame of the lane. */
struct io_qp_end {
    uint8_t gid[16];   /* the GID's value, read now, because indices change */
    uint32_t qp, psn;  /* 24 bits each */
    uint16_t lid;      /* InfiniBand; 0: RoCE */
    uint8_t mtu_shift; /* log2 of the port's active MTU, 8..12: both ends use the smaller one */
    uint8_t sl;        /* service level for data to this end, if the sender has chosen none */
    uint16_t pkey;     /* InfiniBand; 0: not known */
};

struct io_qp_config {
    struct io_address nic;    /* of ours: the port that carries this address, looked up now */
    const char *device;       /* its name, if the NIC has no address there */
    uint32_t sends, receives; /* cells */
    uint32_t cell_size;
    uint32_t path; /* the path of this end's data: any 32 bits; equal bits give the same path */
    /* InfiniBand: of the port's LIDs the one that the fewest queue pairs of this process to that peer have: the peer's data uses
     * it. luck: by `path`, because that LID brought nothing. */
    struct io_address peer;
    bool luck;
    uint8_t traffic_class; /* DSCP << 2, and two bits of ECN; 0: unmarked */
    /* 1 + the service level of this end's data; 0: that of the peer's port */
    uint8_t sl;
    uint16_t pkey; /* InfiniBand: the peer's, if it is known before; else 0 */
    bool writes;   /* both ends may write */
};
/* A chosen path is the UDP source port minus that one: 14 bits. */
#define IO_ROCE_FIRST_PORT 0xc000u
/* The flow label of a path's packets. The kernel folds a label's 20 bits to a source port's 14. Equal numbers get equal ports:
 * IO_ROCE_FIRST_PORT plus the label. Label 0 would leave it to chance. */
static inline uint32_t io_roce_label(uint32_t path)
{
    const uint32_t folded = (path ^ path >> 14 ^ path >> 28) & 0x3fff;

    return folded != 0 ? folded : 0x3fff;
}
/* Other queue pairs to the same NIC: the paths that choose() gave them. A path that should be left is listed twice. */
#define IO_QP_OTHERS (LANE_MAX + 1)
struct io_qp_others {
    uint32_t count, paths[IO_QP_OTHERS];
};
struct io_qp_cells {
    uint8_t *send, *receive; /* cell k at + k * cell_size */
    uint32_t device;         /* the device whose keys it takes; IO_RDMA_DEVICES: none */
};

/* Our memory that NICs may read and write, by device. */
#define IO_RDMA_DEVICES 16
struct io_rdma_memory {
    uint32_t local[IO_RDMA_DEVICES],
        remote[IO_RDMA_DEVICES]; /* keys, atomic; 0: not on that device (any more) */
};
/* Memory that should be added. */
struct io_rdma_range {
    void *data;
    size_t size;
    bool gpu;        /* a GPU's, by a DMA-BUF: the processor must not touch it */
    int fd;          /* the DMA-BUF's descriptor; the caller may close it afterwards */
    uint64_t offset; /* in the DMA-BUF */
};
struct io_rdma_write {
    const void *from;
    uint32_t size, key; /* of our memory, on the queue pair's device */
    uint64_t to;
    uint32_t remote_key;
};
struct io_qp_timeouts {
    uint8_t timeout; /* 4.096 us * 2^n; a queue pair gives up after retries + 1 of them */
    uint8_t retries;
    uint8_t rnr_timer, rnr_retries;
};

enum io_qp_status {
    IO_QP_OK,
    IO_QP_FLUSHED,
    IO_QP_RETRIES, /* the peer's NIC didn't answer */
    IO_QP_RNR,     /* the peer had no cell posted */
    IO_QP_REFUSED, /* the peer's NIC refused it: too long, or no such queue pair */
    IO_QP_BROKEN,  /* any other error */
};
struct io_qp_done {
    bool receive;
    enum io_qp_status status;
    uint32_t cell;   /* the cell of the request; with any status */
    uint32_t bytes;  /* received bytes; IO_QP_OK only */
    uint8_t number;  /* any other status: the library's enum ibv_wc_status; 0: unknown */
    uint32_t vendor; /* the vendor's code, for people */
    /* Receives with IO_QP_OK only: when it arrived, by the completion's own stamp if the device has one (kernel: true), else when
     * it was polled. */
    struct io_stamp stamp;
};

struct io_rdma {
    void *driver;

    /* Begins to make one. -ENODEV: no usable port carries that address. -ENOSPC: too many. */
    int (*open)(struct io_rdma *rdma, const struct io_qp_config *config, int *ret_qp);
    /* 0: it is made, and its receive cells are posted; -EAGAIN: not yet; else why it failed (-ENOMEM: `ulimit -l`). */
    int (*opened)(struct io_rdma *rdma, int qp, struct io_qp_end *ret_own,
                  struct io_qp_cells *ret_cells);
    /* Optional, before connect(): a path that shares as few routers as possible with the others' paths. NULL: this driver can't
     * choose. 0: *ret_path takes the place of config.path. -EAGAIN: routers are asked, for about a quarter of a second. Else no
     * path is known, and config.path stays. */
    int (*choose)(struct io_rdma *rdma, int qp, const struct io_address *peer,
                  const struct io_qp_others *others, uint32_t *ret_path);
    /* Begins to connect it, once. `peer` comes from the network: -EINVAL: none of our ports can reach it (another link layer). */
    int (*connect)(struct io_rdma *rdma, int qp, const struct io_qp_end *peer,
                   const struct io_qp_timeouts *timeouts);
    /* 0: it may send, and takes what comes; -EAGAIN: not yet; else why it failed. This doesn't show whether the peer is
     * reached. */
    int (*connected)(struct io_rdma *rdma, int qp);

    /* Sends the first `size` bytes of the cell, <= cell_size, 0 too. There is always room in the queue for a free cell. write:
     * goes before it; NULL: none. */
    int (*send)(struct io_rdma *rdma, int qp, uint32_t cell, uint32_t size,
                const struct io_rdma_write *write);
    int (*receive)(struct io_rdma *rdma, int qp, uint32_t cell); /* posts the cell again */
    /* The number of completions; 0: none; -EIO: the queue pair is over, -ENODEV: its device is gone. No system call, because it
     * is called all the time. */
    int (*poll)(struct io_rdma *rdma, int qp, struct io_qp_done *ret_done, int capacity);
    /* Once: when something completes, or the queue pair is over, io->kick() is called and events() gives the tag. If there is
     * something already, at once. From open() on: also when opened() or connected() have an answer. */
    int (*arm)(struct io_rdma *rdma, int qp, uint64_t tag);
    /* The number is free now, and an armed tag gives no event. linger: posted sends are still sent, for up to 2 s; what comes is
     * dropped. Else nothing leaves any more, except what is being executed. */
    void (*close)(struct io_rdma *rdma, int qp, bool linger);

    /* Soon nothing of ours leaves any more, and the peer's NIC is refused. Requests complete as above, up to the marker. */
    int (*silence)(struct io_rdma *rdma, int qp);
    /* 0: nothing lands any more, and nothing is read. -EAGAIN: not yet, ask again; with `wait`: the driver didn't answer in time.
     * -EIO: the device can't guarantee it; it may later. Afterwards the queue pair is good for close() only. */
    int (*fence)(struct io_rdma *rdma, int qp, bool wait);

    /* NULL: no writes. The memory must stay until it is removed. -EOPNOTSUPP: no device takes a GPU's. */
    int (*memory_add)(struct io_rdma *rdma, const struct io_rdma_range *range,
                      struct io_rdma_memory **ret_memory);
    void (*memory_remove)(struct io_rdma *rdma, struct io_rdma_memory *memory);

    /* Memory of GPUs; NULL: no device takes it. A device does what the processor can't, by a queue pair with itself.
     *
     * gpu_copy: between memory that was added and memory of ours, at once. -EIO: no device can. *ret_device: which one did.
     *
     * A write that has completed is on its way to the GPU. A device that reads from there pushes its own writes before the read.
     * So gpu_read: this device reads from the range at that place (NULL: of each GPU's range); then its earlier writes are
     * visible. gpu_done: 0: it has read; -EAGAIN: not yet; else it can't: its writes have arrived after GPU_SETTLE_NS (gpu.c).
     * gpu_settle: both, and waits, for at most that time. */
    int (*gpu_copy)(struct io_rdma *rdma, struct io_rdma_memory *memory, void *gpu, void *own,
                    size_t size, bool to_gpu, uint32_t *ret_device);
    int (*gpu_read)(struct io_rdma *rdma, uint32_t device, struct io_rdma_memory *memory,
                    const void *at, uint64_t *ret_ticket);
    int (*gpu_done)(struct io_rdma *rdma, uint32_t device, uint64_t ticket);
    void (*gpu_settle)(struct io_rdma *rdma, uint32_t device);

    /* The port that carries that NIC: 0: its device reported that it went down; 1: no such report, or it is up again. *ret_downs:
     * how often it went down. -ENODEV: no queue pair was ever made there. NULL: not known. A change gives IO_TAG_LINKS in
     * events(). */
    int (*carrier)(struct io_rdma *rdma, const struct io_address *nic, const char *device,
                   uint32_t *ret_downs);

    /* Armed tags that have something (events: IO_IN); returns how many. */
    int (*events)(struct io_rdma *rdma, struct io_event *ret_events, int capacity);
    /* A message for people, each one once: a port with RoCE v1 only, memlock, a device that went. False: no new one. NULL: never
     * any. */
    bool (*trouble)(struct io_rdma *rdma, char *text, size_t size);
};
