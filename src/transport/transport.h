/* transport.h: messages between processes, over lanes that may come and go.
 *
 * A sender connects to a listener by the handle that the listener wrote, and then sends messages that the
 * receiver has posted buffers for, in posting order. Each message arrives whole, once and in its own
 * buffer, over whichever lanes are alive; while one path is left, no fault is seen up here.
 *
 *     receiver                                   sender
 *     transport_listen() -> handle  ~~(NCCL's bootstrap)~~>
 *     transport_accept()  until it gives a comm  transport_connect() until it gives a comm
 *     transport_receive() -> request             transport_send() -> request
 *     transport_test() until done                transport_test() until done
 *     transport_close()                          transport_close()
 *
 * Nothing here blocks. Calls may come from any thread, two threads on one comm included; a comm must
 * not be used while or after it is closed. One housekeeping thread (or, without it, transport_serve()) does
 * what can't wait for the next call.
 *
 * Errors: 0 or -errno. A request that failed keeps failing; the comm is then good for closing only.
 *   -ECONNABORTED  the peer is gone or was not reached for `patience`: transport_why() names it
 *   -EPROTONOSUPPORT  it speaks no version of ours, or isn't ours at all
 *   -EKEYREJECTED  it doesn't hold the key in our handle: another job's
 *   -EMSGSIZE      a message is longer than the buffer posted: this communicator fails, no other
 *   -EBADMSG       its messages contradict what was agreed
 *   -ECANCELED     memory of a request was removed before it was done: this communicator fails, no other
 *   -ECHILD        this is a child of fork(), the communicator its parent's
 *   -ENOTRECOVERABLE  a bug of ours was found: everything is fenced, nothing is delivered any more
 *   -EMFILE, -ENOMEM, ... of the system */
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
#define TRANSPORT_REQUEST_MAX 32           /* outstanding per comm; more: *ret_request = NULL */
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
/* What transport_free() left. */
enum transport_rest {
    TRANSPORT_GONE,   /* all of it is gone */
    TRANSPORT_PAYS,   /* config.ended will be called: until then the io must live on */
    TRANSPORT_IN_USE, /* comms are open, or a driver is in a call: the io must live on */
};
enum transport_level {
    TRANSPORT_WARN, /* once per failure, names host, NIC and process: NCCL keeps it as the last error */
    TRANSPORT_INFO, /* a lane was lost, came back */
    TRANSPORT_TRACE,
};

struct transport_nic {
    char name[16];
    struct io_address address; /* port 0 */
    bool bind_device;          /* leave by this device whatever the routes say */
};

struct transport_config {
    struct io *io;
    struct io_rdma *rdma;             /* queue pairs; NULL: there are none */
    const struct transport_nic *nics; /* copied */
    uint32_t nic_count;
    enum transport_mode mode;
    uint32_t lanes;       /* per set: 1..LANE_ACTIVE_MAX; 0: 4 */
    uint32_t sockets;     /* of all lanes, about; 0: 16,384 */
    uint32_t standbys;    /* per set, over other NICs, if there are any */
    struct span patience; /* 0: 60 s */
    uint8_t checksum;     /* 0: headers only, 1: payload to other machines, 2: all payload */
    bool no_credit;       /* no incast control */
    /* Sets whose both ends want it are fenced (core/failover/ledger.h), as lanes that write unasked will need. Until there
     * are any: for tests. */
    bool fenced;
    /* The large slots of all sets hold a whole chunk, as those of peers on this machine do (slots.c): for tests. */
    bool large_early;
    /* Lanes over queue pairs write right to registered memory, if both ends want it; their sets are fenced. */
    bool direct;
    /* And to memory of GPUs, which nobody else touches then (transport_memory_add_gpu). */
    bool gpu;
    bool no_repath;               /* lanes stay on the paths that they drew */
    uint8_t priority;             /* 0 low, 1 normal, 2 high */
    uint8_t traffic_class;        /* of TCP connections: DSCP << 2; 0: unmarked */
    uint8_t pair_class;           /* of queue pairs: DSCP << 2, and two bits of ECN; 0: unmarked */
    uint8_t pair_sl;              /* likewise: 1 + the service level; 0: the ports' */
    uint16_t port_low, port_high; /* of the listener; 0: any */
    uint8_t
        version; /* of lanes' frames, at most; 0: the newest. Lower ones play an older release in tests */
    const char *switch_file; /* the host's ceiling (wire/switch_page.h); NULL: none. Must stay */
    const char *mesh_file;   /* the agent's verdicts (wire/mesh_page.h); NULL: none. Must stay */
    const char *page_folder; /* of the job page (wire/job_page.h); NULL: none. Must stay */
    const char *job;         /* its name for people; NULL: none. Must stay */
    uint32_t rank, ranks;    /* of the job, for people; ranks 0: not known */
    bool thread;             /* false: the caller calls transport_serve() */
    /* One line for people; may be called from any thread, with locks held: must not call back. */
    void (*say)(void *context, enum transport_level level, const char *text);
    void *say_context;
    /* transport_free() returned TRANSPORT_PAYS, and now that is over: TRANSPORT_GONE or TRANSPORT_IN_USE, as of that. Called
     * by the thread. NULL: nothing is owed beyond transport_free(). */
    void (*ended)(void *context, enum transport_rest rest);
    void *ended_context;
};

/* -EINVAL: no NIC, or more NICs or lanes than there may be; -ENOMEM; -EAGAIN: no thread can be had. */
MUST_CHECK int transport_new(struct transport **ret_transport,
                             const struct transport_config *config);
/* Waits for what closed comms still owe, but no longer than TRANSPORT_END_MS. If something is owed then and config.ended
 * is there, the housekeeping thread goes on alone until it is paid, the peer closes, or isn't heard for the patience; its
 * last act is to call config.ended. Without, it is lost. Comms that are still open (a process that exits under them)
 * fail from now on, and their memory is left alone; so is the transport where a driver doesn't return from
 * transport_memory_add() or _remove() (TRANSPORT_IN_USE). NULL is fine. In a child of fork() it only forgets. */
#define TRANSPORT_END_MS 200
enum transport_rest transport_free(struct transport *transport);
/* The process exits, and threads above may be in any call: waits for what is owed, no longer than so many ms, and takes leave
 * of all peers. Frees nothing: calls that come still fail, and the io must live on. */
void transport_leave(struct transport *transport, int64_t ms);

/* Never blocks on a peer. handle: opaque, to be carried to the sender. */
MUST_CHECK int transport_listen(struct transport *transport, uint32_t nic,
                                uint8_t handle[static TRANSPORT_HANDLE_SIZE],
                                struct transport_listener **ret_listener);
void transport_close_listener(struct transport_listener *listener);
/* 0 with *ret_comm NULL: not yet, call again. */
MUST_CHECK int transport_accept(struct transport_listener *listener,
                                struct transport_comm **ret_comm);
/* The same; between the calls *state (0 at first) remembers. After an error or a comm it is 0. */
MUST_CHECK int transport_connect(struct transport *transport, uint32_t nic,
                                 const uint8_t handle[static TRANSPORT_HANDLE_SIZE],
                                 uint64_t *state, struct transport_comm **ret_comm);

/* 0 with *ret_request NULL: not now, call again with the same arguments. `data` belongs to the transport until
 * the request is done. parent: passed through to the telemetry. */
MUST_CHECK int transport_send(struct transport_comm *comm, const void *data, size_t size, int tag,
                              void *parent, struct transport_request **ret_request);
/* staged: whoever reads the buffer may look at it before the request is done (NCCL's LL protocol): it
 * is written in ascending order from verified bytes only. */
MUST_CHECK int transport_receive(struct transport_comm *comm, void *data, size_t size, int tag,
                                 bool staged, void *parent, struct transport_request **ret_request);
/* Bytes of receives that are done, which lie in memory of a GPU: it sees them once this request is done. *ret_request NULL: it
 * does now (memory of this host). */
MUST_CHECK int transport_flush(struct transport_comm *comm, const void *data, size_t size,
                               struct transport_request **ret_request);
/* Done: the request is gone, and *ret_size (may be NULL) is how many bytes came. */
MUST_CHECK int transport_test(struct transport_request *request, bool *ret_done, size_t *ret_size);
/* Gives the comm up. What it owes its peer is paid in the background; requests still in flight are
 * cancelled at once, and no byte lands in their buffers after this returns. */
void transport_close(struct transport_comm *comm);
/* NICs may read and write it from now on, if the transport writes directly: messages of both directions that lie in it as a whole
 * may go without a copy. Takes up to milliseconds. It must stay until it was removed as often as it was added. *ret_memory NULL:
 * it has no bytes. */
struct transport_memory;
MUST_CHECK int transport_memory_add(struct transport *transport, void *data, size_t size,
                                    struct transport_memory **ret_memory);
/* The same where no NIC takes it: messages are copied, and it is known when it is removed. */
MUST_CHECK int transport_memory_note(struct transport *transport, void *data, size_t size,
                                     struct transport_memory **ret_memory);
/* Memory of a GPU, as its driver exported it: `size` bytes at `data`, the GPU's address for them, which begin at `offset` of the
 * DMA-BUF `fd`; that may be closed afterwards. Messages that lie in it are written and read by NICs alone. -EOPNOTSUPP: no NIC
 * takes it. */
MUST_CHECK int transport_memory_add_gpu(struct transport *transport, void *data, size_t size,
                                        int fd, uint64_t offset,
                                        struct transport_memory **ret_memory);
/* Whether there is a NIC that might. */
bool transport_takes_gpus(const struct transport *transport);
/* The transport's own; NULL is fine. After the last time nobody reads or writes it: a communicator with a request there that
 * isn't done fails (-ECANCELED), unless the request's memory is registered by another range as well. */
void transport_memory_remove(struct transport *transport, struct transport_memory *memory);

/* What the transport went through, all in all: for the paragraph at a job's end. */
struct transport_summary {
    uint64_t bytes_out, bytes_in, chunks_out, chunks_in;
    uint64_t resent;  /* of chunks_out: once more, on another lane */
    uint64_t written; /* of bytes_out: written by the NIC right to their place */
    uint32_t failovers, parted;
    int64_t parted_ns; /* with no way to a peer left */
    int64_t ran_ns;    /* since the transport was made */
    int64_t saved_ns;  /* since a lane in use failed first; 0: none did */
    /* The lane with the largest mean delay above its floor, both ends named; "": none measured. */
    char slowest[2 * WHY_TEXT];
    int64_t slowest_ns;
};
/* May be called at any time, from any thread. */
void transport_summary(struct transport *transport, struct transport_summary *ret);

/* Why the last call of this thread that failed did. */
const char *transport_why(void);

/* Without a thread: waits for events until that moment and serves; when to call again at the latest. */
struct mono transport_serve(struct transport *transport, struct mono until);
