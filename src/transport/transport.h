/* transport.h: messages between processes, over lanes that may come and go.
 *
 * A sender connects to a listener by the handle that the listener wrote. Then it sends messages for which the receiver has posted
 * buffers, in posting order. Each message arrives whole, once and in its own buffer, over any lanes that are alive. While one
 * path is left, no fault is visible to the caller.
 *
 *     receiver                                   sender
 *     transport_listen() -> handle  ~~(NCCL's bootstrap)~~>
 *     transport_accept()  until it gives a comm  transport_connect() until it gives a comm
 *     transport_receive() -> request             transport_send() -> request
 *     transport_test() until done                transport_test() until done
 *     transport_close()                          transport_close()
 *
 * Nothing here blocks. Calls may come from any thread, also from two threads for one comm. A comm must not be used while or after
 * it is closed. One housekeeping thread (or, without it, transport_serve()) does everything that can't wait for the next call.
 *
 * Errors: 0 or -errno. A request that failed keeps failing; the comm is then good for closing only.
 *   -ECONNABORTED  the peer is gone or was not reached for `patience`: transport_why() names it
 *   -EPROTONOSUPPORT  it has no version in common with us, or is another program
 *   -EKEYREJECTED  it doesn't have the key in our handle: another job's
 *   -EMSGSIZE      a message is longer than the buffer posted: this communicator fails, no other
 *   -EBADMSG       its messages contradict what was agreed
 *   -ECANCELED     memory of a request was removed before it was done: this communicator fails, no other
 *   -ECHILD        this is a child of fork(), the communicator its parent's
 *   -ENOTRECOVERABLE  a bug of ours was found: everything is fenced, nothing is delivered any more
 *   -EMFILE, -ENOMEM, ... of the system
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/limits.h"
#include "transport/io.h"
#include "transport/io_rdma.h"

#define TRANSPORT_HANDLE_SIZE 128
#define WHY_TEXT              192
/* outstanding per comm; with more, *ret_request is NULL */
#define TRANSPORT_REQUEST_MAX 32
#define TRANSPORT_BYTES_MAX   (1ull << 30) /* of one message */

struct transport;
struct transport_listener;
struct transport_comm;
struct transport_request;

enum transport_mode {
    TRANSPORT_OBSERVE,  /* one lane, which measures; nothing is moved */
    TRANSPORT_FAILOVER, /* lanes and failover; no repath, pacing, priority */
    TRANSPORT_FULL,
};
/* What is left after transport_free(). */
enum transport_rest {
    TRANSPORT_GONE,   /* everything is freed */
    TRANSPORT_PAYS,   /* config.ended will be called: until then the io must stay */
    TRANSPORT_IN_USE, /* comms are open, or a driver is in a call: the io must stay */
};
enum transport_level {
    /* once for each failure, names host, NIC and process: NCCL keeps it as the last error */
    TRANSPORT_WARN,
    TRANSPORT_INFO, /* a lane was lost, or came back */
    TRANSPORT_TRACE,
};

struct transport_nic {
    char name[16];
    struct io_address address; /* port 0 */
    bool bind_device;          /* leave by this device, whatever the routes are */
};

struct transport_config {
    struct io *io;
    struct io_rdma *rdma;             /* queue pairs; NULL: there are none */
    const struct transport_nic *nics; /* copied */
    uint32_t nic_count;
    enum transport_mode mode;
    uint32_t lanes;       /* per set: 1..LANE_ACTIVE_MAX; 0: 4 */
    uint32_t sockets;     /* approximate limit for all lanes; 0: 16,384 */
    uint32_t standbys;    /* per set, over other NICs, if there are any */
    struct span patience; /* 0: 60 s */
    uint8_t checksum;     /* 0: headers only, 1: payload to other machines, 2: all payload */
    bool no_credit;       /* no incast control */
    /* Sets whose both ends want it are fenced (core/failover/ledger.h), as lanes that write directly need. This flag is for tests
     * of fenced sets without such lanes. */
    bool fenced;
    /* For tests: the large slots of all sets hold a whole chunk, like those for peers on this machine (slots.c). */
    bool large_early;
    /* Lanes over queue pairs write directly to registered memory, if both ends want it; their sets are fenced. */
    bool direct;
    /* The same for memory of GPUs, which then nobody else touches (transport_memory_add_gpu). */
    bool gpu;
    bool no_repath;               /* lanes stay on their first paths */
    uint8_t priority;             /* 0 low, 1 normal, 2 high */
    uint8_t traffic_class;        /* of TCP connections: DSCP << 2; 0: unmarked */
    uint8_t pair_class;           /* of queue pairs: DSCP << 2, and two bits of ECN; 0: unmarked */
    uint8_t pair_sl;              /* for queue pairs: 1 + the service level; 0: the ports' level */
    uint16_t port_low, port_high; /* for the listener; 0: any */
    /* the highest version of lanes' frames; 0: the newest. In tests lower ones act as an older release */
    uint8_t version;
    /* the host's ceiling (wire/switch_page.h); NULL: none. Must stay valid */
    const char *switch_file;
    /* the agent's verdicts (wire/mesh_page.h); NULL: none. Must stay valid */
    const char *mesh_file;
    const char *page_folder; /* for the job page (wire/job_page.h); NULL: none. Must stay valid */
    const char *job;         /* its name for people; NULL: none. Must stay valid */
    uint32_t rank, ranks;    /* in the job, for people; ranks 0: not known */
    bool thread;             /* false: the caller calls transport_serve() */
    /* One line for people. It may be called from any thread, with locks held: it must not call back. */
    void (*say)(void *context, enum transport_level level, const char *text);
    void *say_context;
    /* transport_free() returned TRANSPORT_PAYS, and that is over now: `rest` is TRANSPORT_GONE or TRANSPORT_IN_USE. The thread
     * calls it. NULL: debts end with transport_free(). */
    void (*ended)(void *context, enum transport_rest rest);
    void *ended_context;
};

/* -EINVAL: no NIC, or too many NICs or lanes; -ENOMEM; -EAGAIN: the thread could not be started. */
MUST_CHECK int transport_new(struct transport **ret_transport,
                             const struct transport_config *config);
/* Waits for the debts of closed comms, at most TRANSPORT_END_MS. If there are debts left and config.ended is set, the
 * housekeeping thread continues alone until they are paid, the peer closes, or isn't heard for the patience; at its end it calls
 * config.ended. Without config.ended the debts are lost. Comms that are still open (a process that exits meanwhile) fail from now
 * on, and their memory stays. The transport stays, too, if a driver doesn't return from transport_memory_add() or _remove()
 * (TRANSPORT_IN_USE). Accepts NULL. In a child of fork() it does nothing (TRANSPORT_IN_USE). */
#define TRANSPORT_END_MS 200
enum transport_rest transport_free(struct transport *transport);
/* The process exits, and its threads may be in any call. Waits for debts, for at most that time, and tells all peers that this
 * end leaves. It frees nothing: later calls fail, and the io must stay. */
void transport_leave(struct transport *transport, int64_t ms);

/* Never blocks on a peer. handle: opaque; the caller brings it to the sender. */
MUST_CHECK int transport_listen(struct transport *transport, uint32_t nic,
                                uint8_t handle[static TRANSPORT_HANDLE_SIZE],
                                struct transport_listener **ret_listener);
void transport_close_listener(struct transport_listener *listener);
/* 0 with *ret_comm NULL: not yet, call again. */
MUST_CHECK int transport_accept(struct transport_listener *listener,
                                struct transport_comm **ret_comm);
/* The same. *state (0 at first) is kept between the calls. After an error or a comm it is 0. */
MUST_CHECK int transport_connect(struct transport *transport, uint32_t nic,
                                 const uint8_t handle[static TRANSPORT_HANDLE_SIZE],
                                 uint64_t *state, struct transport_comm **ret_comm);

/* 0 with *ret_request NULL: not now, call again with the same arguments. `data` belongs to the transport until the request is
 * done. parent: passed on to the telemetry. */
MUST_CHECK int transport_send(struct transport_comm *comm, const void *data, size_t size, int tag,
                              void *parent, struct transport_request **ret_request);
/* staged: the reader of the buffer may look at it before the request is done (NCCL's LL protocol): so it is written in ascending
 * order from verified bytes only. */
MUST_CHECK int transport_receive(struct transport_comm *comm, void *data, size_t size, int tag,
                                 bool staged, void *parent, struct transport_request **ret_request);
/* Bytes of receives that are done, in memory of a GPU: the GPU sees them once this request is done. *ret_request NULL: they are
 * visible already (memory of this host). */
MUST_CHECK int transport_flush(struct transport_comm *comm, const void *data, size_t size,
                               struct transport_request **ret_request);
/* If it is done, the request is gone, and *ret_size (may be NULL) is the number of bytes that came. */
MUST_CHECK int transport_test(struct transport_request *request, bool *ret_done, size_t *ret_size);
/* Gives the comm up. Its debt to the peer is paid in the background. Requests still in flight are cancelled at once, and no byte
 * lands in their buffers after this returns. */
void transport_close(struct transport_comm *comm);
/* NICs may read and write it from now on, if the transport writes directly: messages of both directions that are completely in it
 * may be sent without a copy. The call takes up to milliseconds. The memory must stay until it was removed as often as it was
 * added. *ret_memory NULL: it has no bytes. */
struct transport_memory;
MUST_CHECK int transport_memory_add(struct transport *transport, void *data, size_t size,
                                    struct transport_memory **ret_memory);
/* The same if no NIC takes it: messages are copied, and the transport learns when it is removed. */
MUST_CHECK int transport_memory_note(struct transport *transport, void *data, size_t size,
                                     struct transport_memory **ret_memory);
/* Memory of a GPU, as its driver exported it: `size` bytes at `data`, the GPU's address, beginning at `offset` of the DMA-BUF
 * `fd`. The caller may close `fd` afterwards. Only NICs write and read messages in it. -EOPNOTSUPP: no NIC takes it. */
MUST_CHECK int transport_memory_add_gpu(struct transport *transport, void *data, size_t size,
                                        int fd, uint64_t offset,
                                        struct transport_memory **ret_memory);
/* True if a NIC may take it. */
bool transport_takes_gpus(const struct transport *transport);
/* The transport's own handle; accepts NULL. After the last removal nothing reads or writes the memory. A communicator with a
 * request there that isn't done fails (-ECANCELED), unless another registered range holds the request's memory as well. */
void transport_memory_remove(struct transport *transport, struct transport_memory *memory);

/* The totals of the transport: for the paragraph at a job's end. */
struct transport_summary {
    uint64_t bytes_out, bytes_in, chunks_out, chunks_in;
    uint64_t resent;  /* of chunks_out: sent once more, on another lane */
    uint64_t written; /* of bytes_out: written by the NIC directly to their place */
    uint32_t failovers, parted;
    int64_t parted_ns; /* time without any way to a peer */
    int64_t ran_ns;    /* since the transport was made */
    int64_t saved_ns;  /* since a lane in use failed first; 0: none did */
    /* The lane with the largest mean delay above its floor, with both ends; "": none was measured. */
    char slowest[2 * WHY_TEXT];
    int64_t slowest_ns;
};
/* May be called at any time, from any thread. */
void transport_summary(struct transport *transport, struct transport_summary *ret);

/* The reason for this thread's last call that failed. */
const char *transport_why(void);

/* Without a thread: waits for events until that moment and serves them. Returns the latest time for the next call. */
struct mono transport_serve(struct transport *transport, struct mono until);
