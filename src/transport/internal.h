/* internal.h: what the files of src/transport share: sets, streams, comms, and the rules for access to them.
 *
 *   transport   one per process (or per simulated host): listener, registry of sets, housekeeping
 *   set         the lanes between two contexts; its lock guards all that is in it. One end connects them, either may send:
 *               its sender has what it sends, its ledger what it receives (core/failover/halves.h)
 *   stream      one lane of a set: its connection and the bytes on their way in and out (stream.h, lane_kind.h)
 *   comm        one of NCCL's, on a set; its requests (comm.h)
 *
 * Locks, in the order in which they may be taken: transport.lock (registry) → set.lock → transport.listen_lock (listeners and
 * what they have to accept); set.lock → own_nic.credit_lock; set.lock → transport.copies_lock. Sets and comms are freed by the
 * housekeeping alone. */
#pragma once
#include <pthread.h>
#include <stdarg.h>

#include "base/limits.h"
#include "core/failover/halves.h"
#include "core/failover/watch.h"
#include "core/traffic/credit.h"
#include "core/traffic/detector.h"
#include "core/traffic/gain.h"
#include "core/traffic/goodput.h"
#include "core/traffic/pacing.h"
#include "core/traffic/priority.h"
#include "core/traffic/repath.h"
#include "core/traffic/scheduler.h"
#include "stats/histogram.h"
#include "stats/least.h"
#include "transport/comm.h"
#include "transport/descriptor.h"
#include "transport/lane_kind.h"
#include "transport/memory.h"
#include "transport/stream.h"
#include "transport/transport.h"
#include "wire/handle.h"
#include "wire/job_page.h"
#include "wire/lane.h"
#include "wire/lane_nics.h"
#include "wire/lane_qp.h"

#define SCRATCH_SIZE                                                                               \
    16384 /* what one read takes beyond a chunk: many small messages come at once */
#define READ_BYTES_MAX (1 << 20) /* read from one lane before others have their turn */
#define NOTSENT_BYTES  (1 << 18)
/* for a message whose sender waits for nothing else: it has the time */
#define COPY_ALONE_MAX (1 << 17)
#define COPY_IDLE_MAX  (1 << 18) /* to this machine, if the process awaits nothing at all */
#define COPY_HERE_MAX  (1 << 16) /* of a message to this machine that is copied */
#define COPY_PLACES    32        /* of COPY_HERE_MAX: a process has so many for copies */
/* copies larger than LANE_EAGER_SIZE_MAX that a set has at a time */
#define COPIES_MAX (4 * LANE_LARGE_SLOTS)
#define COPY_CELL_SIZE                                                                             \
    (8192 + 256) /* for lanes over queue pairs: 8 KiB of payload and its headers */
/* at most this between two looks of the watch, while the set is polled */
#define LOOK_NS 500000
#define REPORT_NS                                                                                  \
    (200 * NS_PER_US) /* a report that its sender may wait for is sent within this time */
#define EMPTY_NS 2000 /* after all lanes had nothing: large messages take longer than this */
/* a lane that brought something within this time is looked at each time */
#define BUSY_NS     1000000
#define UNPOLLED_NS 1000000 /* a set that is not polled for so long: the housekeeping serves it */
#define POLLED_NS                                                                                  \
    10000000 /* until the next check whether the set is polled: it takes the polling thread's time */
#define CARRIER_NS    10000000
#define HANDSHAKE_NS  (1 * NS_PER_S)
#define PENDING_MAX   64 /* connections without a proof of the key so far, */
#define PENDING_MIN   8  /* or a sixteenth of what the process may open; and a quarter of that */
#define SETS_MAX      16384
#define COMM_PLACES   64             /* of a set's comms, by number */
#define SET_LINGER_NS (1 * NS_PER_S) /* a set without comms keeps its lanes for the next comm */
#define WHY_SIZE      320
#define PEER_TEXT     192

/* A NIC of the peer. */
struct peer_nic {
    struct io_address address; /* with its listener's port; 0: not known */
    char name[LANE_NIC_SIZE];
};

/* Delays of the last seconds by stage, in units of SPREAD_UNIT_NS, within an eighth. */
#define SPREAD_UNIT_NS 64
#define SPREAD_SHAPE   ((struct histogram_shape){3, 24, sizeof(uint16_t)})
enum lane_stage { STAGE_QUEUED, STAGE_OWD, STAGE_CONSUMED, STAGE_COUNT };
struct lane_spread {
    struct mono halved_at;
    struct {
        struct histogram head;
        uint16_t counters[HISTOGRAM_BUCKETS(3, 24)];
    } stages[STAGE_COUNT];
};

#define DELAY_BUCKET_NS (5 * NS_PER_S) /* of floors */

/* What a lane's chunks show of its path and of both hosts. Receiving end. */
struct lane_delay {
    struct least floor_ns; /* of one-way delays */
    uint32_t owd_ns;       /* of the last chunk */
    uint32_t clock;        /* state of both clocks: delays with different ones can't be compared */
    uint32_t bound_ns;     /* of both clocks together; or IO_HALF_UNKNOWN */
    uint64_t chunks, bytes, resent;
    double owd_mean_ns, queued_mean_ns, consumed_mean_ns; /* gain 1/16 */
    uint32_t owd_ns_max;
    struct lane_spread *spread; /* from the first chunk on; NULL: no memory */
};

/* Moves lanes to other paths. Sending end. */
struct traffic {
    struct detector detector;
    struct repath repath;
    struct gain gain;
    int from, to; /* the present move; -1: none */
    bool asked;   /* the peer, which sends over `from`, asked for it; or we asked the peer */
    uint32_t from_epoch;
    bool drained;     /* the old lane takes nothing new */
    uint32_t retired; /* lanes that moved away and aren't closed yet */
    uint32_t moves;   /* the number of lanes that left their path for another so far */
    struct mono began, judged, fed[LANE_MAX];
};

#define YIELD_SIZE_MIN 12 /* log2 of the smallest size of chunks that is distinguished */
#define YIELD_SIZES    (LANE_CHUNK_SHIFT_MAX - YIELD_SIZE_MIN + 1)

/* A job of low priority gives way to others on each path. Sending end. */
struct yield {
    uint32_t paced; /* bit k: lane k is paced aside */
    struct goodput goodput;
    struct yield_lane {
        struct priority priority;
        struct pacing pacing; /* for a lane that is aside */
    } lanes[LANE_MAX];
    struct yield_floor {
        struct least owd_ns, life_ns; /* life: from sending to its report */
    } floors[YIELD_SIZES];            /* by a chunk's size */
};

struct own_nic;
struct lane_set {
    struct transport *transport;
    pthread_mutex_t lock;
    uint32_t index;            /* in transport.sets */
    bool connects;             /* this end connects its lanes; else the peer does */
    struct mono began, joined; /* joined: when the first lane came up */
    /* the own NIC that its lanes use; for the connecting end: of own_context, or one that reaches the peer */
    uint32_t nic;
    uint64_t own_context, peer_context;
    uint64_t number; /* given by the connecting end. Contexts stay, but a set may begin anew */
    /* accepting end: the set was forgotten here once, and the peer has received data that was sent on it */
    bool remade;
    uint8_t key[LANE_KEY_SIZE], nonce[LANE_NONCE_SIZE]; /* connecting end: from the handle */
    uint8_t version;                                    /* agreed; 0: not yet */
    bool fenced; /* agreed: no chunk leaves a dead lane before the receiver's last count of it */
    bool lanes_added;
    struct peer_nic peers[WATCH_NIC_MAX];
    uint32_t peer_count;
    char host[LANE_HOST_SIZE], peer_device[LANE_NIC_SIZE];
    uint32_t pid;
    uint16_t carried[HOST_NIC_MAX]; /* by own NIC; bit k: a lane was up between it and peers[k] */
    /* for the connecting end, until its first lane is up: first_nic.c */
    struct {
        /* bit k: NIC k was tried in vain in this round; it has no route */
        uint32_t tried, unrouted;
        uint32_t refusals;          /* bit k: over NIC k the answer was that nobody listens */
        uint32_t rounds;            /* rounds over all own NICs */
        bool told;                  /* the kernel reported that nic doesn't reach the peer */
        struct mono since;          /* since when nic is used */
        struct mono unrouted_since; /* since when no NIC has a route; 0: one may have */
    } first;
    int knock; /* connection to the peer's listener, -1: none */
    uint32_t knocks, knock_pair;
    struct mono next_knock;
    int64_t knock_ns; /* time from the last knock to that one; 0: none was due yet */

    struct watch *watch;
    struct sender *sender; /* NULL: nothing was ever sent from here */
    struct scheduler scheduler;
    struct scheduler_choice seen; /* the watch's word on the lanes, valid until then */
    struct mono seen_until;
    struct traffic traffic;
    struct least back_ns; /* time that reports take to us, by two hosts' clocks: may be negative */
    struct yield yield;
    struct ledger *ledger;            /* NULL: nothing ever came */
    uint8_t small_slots, large_slots; /* our bounce slots that the peer's sender may use */
    uint8_t large_shift;              /* log2 of the large ones' size, as NICS has it */
    /* the peer's bounce slots that our sender may use */
    uint8_t peer_small_slots, peer_large_slots;
    uint8_t peer_large_shift;
    uint8_t *slots;            /* our memory, while they are used */
    struct mono slots_at;      /* last use */
    bool slots_touched;        /* since then */
    struct least slot_copy_ns; /* for a whole large slot */
    struct stream *streams[LANE_MAX];
    uint32_t present; /* bit k: streams[k] exists */
    struct {
        uint8_t own, peer; /* indices in transport.nics and in peers */
        bool standby;
        uint8_t tries; /* attempts to connect that failed in a row */
        bool was_up;   /* over this pair */
        bool strayed;  /* a standby that isn't on one of the best pairs */
        uint16_t port; /* of its last connection: its path */
    } lane_nics[LANE_MAX];
    struct {
        /* when a queue pair is offered; for the accepting end: from then on an offer is answered */
        struct mono again;
        uint32_t attempts;
        uint8_t fails; /* in a row */
        bool unlucky;  /* the last chosen path brought nothing, or not for long */
    } pair_tries[LANE_MAX];
    bool pairs_mute;                  /* it was reported once that they bring nothing */
    uint32_t sequence, peer_sequence; /* of STATE */

    struct transport_comm *comms;
    struct transport_comm *by_number[COMM_PLACES];
    uint32_t comm_count;
    bool had_comms;
    uint32_t opening, parting_comms; /* not open yet; closed above or released, but not freed */
    struct mono lonely;              /* since when it has none */
    bool leaving;                    /* CLOSE for all was sent or received */
    int error;                       /* the error of every request */
    bool gpu_failed; /* bytes of a receive couldn't be stored: no receive is done any more */
    char why[WHY_SIZE];

    struct mono next_look;
    struct mono empty_at;        /* when no lane that was due had anything to read */
    bool any_dead;               /* some stream must be closed */
    enum transport_mode mode;    /* the mode that is in effect here */
    uint8_t only;                /* OBSERVE: the lane that carries */
    uint32_t lane_turn;          /* for lane_set_any_lane */
    uint32_t polls, empty_polls; /* polls of it since the last that brought something */
    uint64_t reads;              /* that brought something */
    struct lane_delay delays[LANE_MAX];
    struct {
        uint64_t chunks, bytes, resent;
        uint64_t written; /* bytes that a NIC wrote to their place */
    } sent[LANE_MAX];
    uint32_t generation; /* unique in the process */
    /* subtracted from delays between unsynchronised clocks; INT64_MIN: none yet */
    int64_t unsynced_base;
    bool standbys_added;
    struct mono standby_home; /* when standbys on lesser pairs of NICs look for better ones */
    struct span standby_gap;
    bool standbys_late;   /* saved: they are opened when no lane is left */
    uint32_t turned_away; /* accepting end: lanes that were refused once */
    uint32_t lanes;       /* the number with which it began */
    uint32_t refusals;    /* in a row */
    struct mono refused_since;
    uint32_t parted;
    struct mono parted_at; /* MONO_NEVER: there is a path */
    int64_t parted_ns;
    uint8_t failed_for[LANE_MAX]; /* enum lane_reason: why each lane that was in use failed last */
    uint32_t large;               /* requests in flight of more than LANE_EAGER_SIZE_MAX */
    uint32_t copies_used;         /* for a sender: places in transport.copies, as bits */
    uint32_t sends_awaited;       /* sends without a copy that aren't placed yet */
    uint32_t awaited;             /* requests that aren't done: their owners poll the set */
    bool unattended;              /* atomic: it has something to write, and is not polled */
    /* for a receiver: what must be reported to the sender, and the latest time for it */
    bool posts_left;                 /* some POST found no room */
    bool report_urgent, report_soon; /* now; when nothing more comes at once */
    bool report_posted; /* after a look in vain: a receive, for a sender that isn't waiting */
    bool peer_keeps;    /* by its last chunk: none of its requests waits for a report */
    uint32_t report_chunks, report_eager, report_copied, report_bytes;
    bool whole; /* messages that fit a large slot come as one chunk: lanes are fast */
    /* the latest time of the next one; the time of the last one */
    struct mono report_by, reported_at;
    /* the lane that brought the last chunk (for a set that only sends: anything) */
    uint8_t hot;
    int64_t polled_ns; /* atomic: last call from above */
    /* since such a call ended, something was posted to a queue pair: some devices do their work in such calls */
    bool posted;
    /* for a receiver: incast control: arrivals since the NIC's count, and the window of each comm */
    struct credit_arrivals arrived;
    struct least floor_ns; /* of one-way delays, over all lanes between the set's own NICs; */
    uint32_t floor_clock;  /* state of both clocks */
    uint32_t credit_interval;
    uint32_t peer_receivers; /* for which the peer has data; 0: not reported */
    struct mono peer_receivers_at;
    int64_t fan_time;  /* for a sender: the time of the count */
    uint32_t fan_told; /* the number in the last STATE, and its time */
    struct mono fan_told_at;
    uint64_t window;
    struct mono rtt_asked;
    struct mono deadline; /* only for the housekeeping: when it comes back, */
    struct mono served;   /* and when it was here last */
    bool stirred;         /* only for the housekeeping: an event came */
};

struct transport_listener {
    struct transport *transport;
    struct transport_listener *next;
    uint64_t cookie;
    uint32_t nic;
    struct transport_comm *ready, **ready_end;
    struct {
        uint64_t context, set;
        uint32_t comm;
        bool any, connects;
    } last;    /* it was handed over: its OPEN may come to a set that forgot it */
    int error; /* another plugin's program connected, with its name */
    char why[WHY_SIZE];
};

/* -- the process */

/* A connection that was accepted and hasn't introduced itself. */
struct pending {
    int conn;
    struct io_address local, peer;
    uint8_t bytes[LANE_HELLO_SIZE], proof[LANE_PROOF_SIZE];
    uint32_t size; /* bytes of what comes next: HELLO, then PROOF */
    struct mono until;
    bool greeted;    /* it proved the key, and was answered: the fields below are known */
    uint8_t version; /* agreed */
    struct lane_hello hello;
    uint32_t nic;        /* the own NIC that it is for */
    bool fenced;         /* by its PROOF */
    uint32_t last_epoch; /* of the lane, opened at this end; what was taken of it: for the answer */
    uint64_t last_taken;
    uint8_t nonce[LANE_NONCE_SIZE]; /* of the answer */
};

struct own_nic {
    struct transport_nic config;
    uint64_t context;
    int carrier;
    uint32_t downs;
    pthread_mutex_t credit_lock; /* the last in the order: no lock is taken under it */
    struct credit credit;
    /* Sets that have something to send, by periods of FAN_NS: of the present period, and of the last one. */
    int64_t fan_time;
    uint32_t fan_now, fan_last;
    uint32_t receivers; /* atomic: the larger of both */
};

/* agent_page.c: a mapped file of the agent's. */
struct follow {
    const void *memory; /* NULL: there is none */
    size_t size;
    uint64_t inode;
    struct mono next; /* when to check whether the path names another file */
};

/* mesh.c: pairs of NICs that the host's agent reports as dead. */
#define MESH_DEAD_MAX 64
struct mesh_view {
    struct follow file; /* the housekeeping's, and so is all down to written_at */
    int64_t written;    /* by the agent, at the last look */
    struct mono written_at;
    uint32_t dead[MESH_DEAD_MAX]; /* atomic: mesh_page_addresses() */
    uint32_t dead_count;          /* atomic */
};

struct transport {
    struct transport_config config;
    struct io *io;
    struct io_rdma *rdma; /* NULL: no queue pairs */
    struct own_nic nics[HOST_NIC_MAX];
    uint8_t key[LANE_KEY_SIZE], nonce[LANE_NONCE_SIZE];
    char host[LANE_HOST_SIZE];
    uint32_t pid;
    uint32_t forks; /* descriptor_forks() when it was made */

    pthread_mutex_t lock;
    /* the housekeeping reads it without the lock, because only the housekeeping frees */
    struct lane_set *sets[SETS_MAX];
    uint32_t set_count; /* highest index in use + 1 */
    /* atomic: of lanes in both directions, and of connections that are about to be one */
    uint32_t sockets;
    size_t slot_bytes; /* atomic: promised to the senders of all sets */
    uint32_t parting;  /* atomic: those that are about to close */
    uint32_t trim_turn;
    uint64_t comm_ids;
    uint32_t generations;
    pthread_mutex_t memory_lock; /* no other lock is taken under it */
    struct transport_memory **memories;
    uint32_t memory_count, memory_capacity;
    uint64_t memory_numbers;
    uint32_t gpu_count;                   /* atomic: those in memory of GPUs */
    uint64_t gpu_copied[IO_RDMA_DEVICES]; /* atomic: pieces that a device copied for us */
    /* atomic: calls to add or remove memory that haven't returned */
    uint32_t memory_calls;
    struct transport_summary past; /* of sets that are gone */
    /* by next_ready: comms that transport_connect has yet to return */
    struct transport_comm *connecting;
    uint64_t active[SETS_MAX / 64]; /* atomic bits: the housekeeping must serve these */
    uint32_t awaited;    /* atomic: requests of all sets that aren't done: somebody polls */
    uint64_t unattended; /* atomic bits, by index modulo 64: the next call serves these as well */

    pthread_mutex_t copies_lock; /* no lock is taken under it */
    uint8_t *copies;       /* of messages of more than LANE_EAGER_SIZE_MAX; NULL: none lately */
    bool copies_whole;     /* in huge pages: a set with a peer on this machine has copies there */
    uint32_t copies_used;  /* its places of COPY_HERE_MAX that are used, as bits */
    struct mono copies_at; /* when one was taken last */

    pthread_mutex_t listen_lock;
    struct transport_listener *listeners;
    int listening[HOST_NIC_MAX]; /* one for each own address, all on one port */
    uint32_t listening_count;    /* 0: not yet */
    uint16_t port;

    /* for the housekeeping only */
    struct pending **pending;
    uint32_t pending_count, pending_capacity;
    struct mono next_carrier;
    struct job_page_memory *page; /* NULL: there is none */
    char page_path[256];
    int page_fd; /* locked while this process lives */
    uint32_t page_count;
    uint32_t page_cut; /* bit k: NIC k had no carrier at the last write */
    struct mono started, next_page;
    int64_t first_fault_ns; /* atomic: when the first lane in use failed; 0: none did */
    struct follow host_switch;
    int mode; /* atomic: the present enum transport_mode */
    struct mesh_view mesh;
    struct mono listen_again; /* there were no descriptors left: try again then */
    pthread_t thread;
    bool running;
    int stop;    /* atomic */
    int leaving; /* atomic: transport_free began: idle sets are closed at once */
    int alone;   /* atomic: transport_free is over; the thread pays the debts and frees it */
    int64_t sleeping_until; /* atomic */
};

/* -- lane_set.c, peer.c: what both ends have in common */

int lane_set_new(struct transport *t, bool connects, uint32_t nic, uint64_t peer_context,
                 struct lane_set **ret_set);
/* Frames pass in both directions, and either end may send. */
static inline bool lane_set_both(const struct lane_set *set)
{
    return set->version >= LANE_BOTH_VERSION;
}
/* The peer began to connect a set before it knew of this one: this one is enough. */
bool lane_set_stays(const struct lane_set *set, struct mono now);
/* There is a communicator that neither end has closed. */
bool lane_set_used(const struct lane_set *set, struct mono now);
/* Adds the half that was not needed so far. -ENOMEM. */
MUST_CHECK int lane_set_add_sender(struct lane_set *set, struct mono now);
MUST_CHECK int lane_set_add_ledger(struct lane_set *set);
/* Gives the sender the number of the peer's bounce slots: up to version 3 by the version; then by NICS, before a communicator is
 * confirmed. */
void lane_set_grant(struct lane_set *set);
/* Opens the lane in both halves. rtt < 0: not measured. Returns what halves_lane_open returns. */
MUST_CHECK int lane_set_open_lane(struct lane_set *set, struct mono now, uint32_t lane,
                                  uint32_t epoch, struct span rtt);
void lane_set_free(struct lane_set *set);
/* Drains sockets, writes what may be written, asks the watch, carries out its actions. Under the lock. */
void lane_set_progress(struct lane_set *set, struct mono now, bool all);
/* Something is wrong with the lane: nothing more is sent over it. lane_set_act closes it and reports it. */
void lane_set_lost(struct lane_set *set, struct mono now, uint32_t lane, enum lane_reason reason);
/* The reason that fits the error of a connection. */
enum lane_reason set_reason(int r);
void lane_set_act(struct lane_set *set, struct mono now);
/* Serves the sets that have something to write and are not polled. The caller must hold no set's lock. */
void lane_set_attend(struct transport *t);
/* Does the set need that? Under the lock. */
void lane_set_note_unattended(struct lane_set *set);
/* Up to this size a sender's message is copied once it is written: then it doesn't wait for the report, which may come with our
 * next chunk. To this machine a copy costs less than a separate report. A message to a peer of an older version waits. */
static inline size_t lane_set_copies(const struct lane_set *set)
{
    return set->scheduler.one_way && lane_set_both(set) ? COPY_HERE_MAX : LANE_EAGER_SIZE_MAX;
}
/* Up to this size if it waits for nothing else. */
static inline size_t lane_set_copies_alone(const struct lane_set *set)
{
    return lane_set_copies(set) * (COPY_ALONE_MAX / COPY_HERE_MAX);
}
/* No larger message is copied in any case. */
static inline size_t lane_set_copies_idle(const struct lane_set *set)
{
    return lane_set_copies(set) == COPY_HERE_MAX ? COPY_IDLE_MAX : lane_set_copies_alone(set);
}
/* Up to this size a sender doesn't wait for our report, and says so. */
static inline size_t lane_set_kept(const struct lane_set *set)
{
    return set->peer_keeps ? SIZE_MAX : LANE_EAGER_SIZE_MAX;
}
/* -- copies.c: a sender's copies of messages that are done before they are placed ------------- */

/* Provides room for the copy of a small message; it belongs to `outgoing`. */
bool copies_room(struct outgoing *outgoing, size_t size);
/* A chunk is about to be written. If it is its whole message, goes to this machine, and its request waits, this provides room for
 * a copy, kept until copies_back(). NULL: there is no room, or no need. If the chunk can't be written yet, it isn't done: nobody
 * would poll for it. */
struct outgoing *copies_take(struct lane_set *set, struct mono now,
                             const struct sender_chunk *chunk);
/* Makes the copy, after as much is written as the network takes: the peer reads that meanwhile. The request is done. */
void copies_fill(struct lane_set *set, uint32_t comm, uint64_t message, const uint8_t *data,
                 size_t size, struct outgoing *outgoing);
/* Its message is placed, or its communicator closed. */
void copies_back(struct lane_set *set, struct outgoing *outgoing);
/* Frees memory that was not used for a second. */
void copies_look(struct transport *t, struct mono now);
/* The set is freed. */
void copies_end(struct lane_set *set);
/* The transport is freed, or no set uses them. */
void copies_free(struct transport *t);
/* A request is done. */
static inline void lane_set_request_done(struct lane_set *set, struct transport_request *request)
{
    if (!request->done) {
        set->awaited--;
        __atomic_fetch_sub(&set->transport->awaited, 1, __ATOMIC_RELAXED);
        request->done = true;
    }
}
/* Ends everything on the set with that error; the text is the reason, for people. */
void lane_set_fail(struct lane_set *set, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same: sender or ledger found a bug of ours. */
void lane_set_fail_bug(struct lane_set *set, const struct bug_note *bug);
/* Handles a frame that both ends understand: PING, PONG, STATE's lanes, CLOSE. -ENOENT: another frame. */
int lane_set_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
                   size_t size);
/* A connection was made, and both ends have introduced themselves. */
void lane_set_shaken(struct lane_set *set, struct mono now, uint32_t lane);
/* Sends the other own NICs, for the peer's standbys; the next one takes the peer's. */
void lane_set_tell_nics(struct lane_set *set, struct stream *stream);
int lane_set_on_nics(struct lane_set *set, struct mono now, const uint8_t *frame, size_t size);
/* True for an address of this machine: such traffic never leaves by a NIC. */
bool peer_here(const struct transport *t, const struct io_address *peer);
/* The device by which a connection should leave, NULL: as routed. Every other attempt is as routed, because routes may be better.
 * All are as routed for an address of this machine, whose traffic never leaves by a NIC. */
const char *peer_device(const struct lane_set *set, const struct own_nic *nic,
                        const struct io_address *to, uint32_t attempt);
/* How a connection between those two should be made. */
struct io_connect peer_connect(const struct transport *t, const struct io_address *from,
                               const struct io_address *to);
/* Does a refusal between these two NICs show that the peer's process is gone? Yes if a lane was up there, or should be. For other
 * pairs the refusal may be from another host, a firewall, or this host's kernel. */
bool peer_refuses(const struct lane_set *set, uint32_t own, uint32_t peer);
/* Accepting end without a lane: checks whether the peer's process still exists. */
void lane_set_knock(struct lane_set *set, struct mono now);
/* A lane to which frames can be written, another one each time: a frame that is repeated because it may be lost must not take the
 * same dead path again. -1: none. */
int lane_set_any_lane(struct lane_set *set);
/* Bit k: lane k is a standby, up or not. */
uint32_t lane_set_standbys(const struct lane_set *set);
void lane_set_touch(struct lane_set *set); /* the housekeeping must serve it */
/* A lane that is written to directly must be silent first: until it is, the stream stays, and every turn asks again. */
void lane_set_close_stream(struct lane_set *set, uint32_t lane, bool reset);
bool lane_set_owes(const struct lane_set *set);
/* The peer as "host NIC (pid)", for people. */
const char *lane_set_peer(const struct lane_set *set, char text[static PEER_TEXT]);

/* -- lane_offer.c: lanes that go on over queue pairs */
/* Continues what is under way, and offers what may be offered. */
void lane_pair_look(struct lane_set *set, struct mono now);
struct mono lane_pair_deadline(const struct lane_set *set, struct mono now);
int lane_pair_on_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *bytes,
                       size_t size);
/* The lane's stream is about to be closed. A queue pair that ended soon isn't offered again at once. */
void lane_pair_lost(struct lane_set *set, struct mono now, uint32_t lane);
/* -- lane_copy.c: and lanes whose chunks may be written to the places in POST */
/* The chunk is sent by a write, at once. False: it can't be: it is sent as bytes. */
bool lane_pair_write(struct lane_set *set, uint32_t lane, const struct sender_chunk *chunk,
                     struct lane_chunk *header);
/* When the bytes that are read now arrived. */
const struct io_stamp *lane_pair_stamp(const struct stream *stream);
bool lane_pair_takes_writes(const struct stream *stream);
/* The device whose keys it takes; IO_RDMA_DEVICES: none. */
uint32_t lane_pair_device(const struct stream *stream);
/* The NIC still reads some of the communicator's messages, and has no proof of their arrival. */
bool lane_pair_reads(const struct lane_set *set, const struct stream *stream, uint32_t comm);
/* When this returns, nothing lands over these lanes (bits), and none of our memory is read. The lanes are over. */
void lane_pair_fence(struct lane_set *set, uint32_t lanes);
/* The set is freed. */
void lane_pair_end(struct lane_set *set);

/* -- state.c */
/* STATE of all lanes, of one comm or none, to `lane`, or to all that are connected (-1). */
void lane_set_tell(struct lane_set *set, struct lane_report *report, int lane);
/* Last counts of lanes that are closed: no later state would show that these were received. */
void lane_set_heard_fences(struct lane_set *set, const struct lane_report *report);
/* The same, but it is written only by lane_set_flush(): several go in one system call. Returns the lanes that have yet to
 * write. */
uint32_t lane_set_say(struct lane_set *set, struct mono now, struct lane_report *report, int lane);
void lane_set_flush(struct lane_set *set, struct mono now, uint32_t lanes);

/* -- out.c, out_lane.c, in.c, in_lane.c: the two ends */

void out_start_lanes(struct lane_set *set, struct mono now);
void out_connect(struct lane_set *set, struct mono now, const struct watch_action *action);
/* Sends chunks while lanes have room. True: posts took long, so what came since `now` should be read before the next ones. */
bool out_pump(struct lane_set *set, struct mono now);
/* The time from sending a chunk to its report. `now` may be older than the read of the report, or than the chunk: if the time
 * seems negative or less than least_ns, it is taken anew. */
struct span out_life(const struct lane_set *set, struct mono now, struct mono sent,
                     int64_t least_ns);
void out_openings(struct lane_set *set, struct mono now);
/* If it is connected: sends HELLO. */
void out_handshake(struct lane_set *set, struct mono now, uint32_t lane);
/* Takes the peer's answer to HELLO. */
int out_hello(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
              size_t size);
int out_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
              size_t size);
/* STATE, decoded: what was taken and placed. */
void out_on_state(struct lane_set *set, struct mono now, uint32_t lane,
                  const struct lane_report *report);
void out_harvest(struct lane_set *set);
/* Call it now and then: chunks that hang on a lane are sent once more. */
void out_look(struct lane_set *set, struct mono now);

int in_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
             size_t size);
/* Payload: where the next bytes of the lane's chunk belong (NULL: nowhere) and how many are left. */
int in_target(struct lane_set *set, uint32_t lane, uint8_t **ret_to, uint32_t *ret_left);
int in_got(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *at, uint32_t size,
           const struct io_stamp *stamp);
/* Sends STATE, if it is time (all: in any case). came: something was just read. */
void in_reports(struct lane_set *set, struct mono now, bool all, bool came);
/* A chunk is about to be written to that lane: reports go in front of it, in one system call. */
void in_reports_along(struct lane_set *set, struct mono now, uint32_t lane);
/* A receive was posted: does its sender wait for that report? */
void in_posted(struct lane_set *set, struct mono now, struct transport_comm *comm, size_t size);
void in_harvest(struct lane_set *set);
/* A communicator whose receive was too small fails, at both ends, and no other. */
void in_misfit(struct lane_set *set);
/* delay.c: a chunk arrived completely. */
void delay_on_chunk(struct lane_set *set, struct mono now, uint32_t lane,
                    const struct lane_chunk *chunk, const struct io_stamp *stamp);
/* Of the last seconds, ns; JOB_PAGE_NS_NONE: none. */
uint32_t lane_delay_quantile(const struct lane_delay *delay, enum lane_stage stage, double q);
void delay_free(struct lane_set *set);
/* The part of STATE with delays. */
void delay_report(const struct lane_set *set, uint32_t lane, struct lane_state_lane *ret);
void in_copy(struct lane_set *set, const struct ledger_copy *copy);
/* May a HELLO with the key become a lane? waiting: other connections of its set that may, and aren't yet. */
int in_admit(struct transport *t, const struct pending *pending, uint8_t version, uint32_t waiting,
             enum lane_no *ret_no);
/* For an existing set that is fenced: the lane's former connection is over at this end, the peer's count of it is known, and ours
 * is in `pending`. False: the former connection isn't silent yet. */
bool in_fence(struct transport *t, struct pending *pending);
/* Makes its HELLO_OK. */
void in_answer(const struct transport *t, const struct pending *pending, uint8_t version,
               uint8_t bytes[static LANE_HELLO_SIZE]);
/* The connection becomes a lane, of a new set if there is none. Both: 0, or -errno and the reason for HELLO_NO. */
int in_attach(struct transport *t, struct pending *pending, uint8_t version, enum lane_no *ret_no);

/* -- post.c: the places of messages, before they come, for sets whose lanes may write directly */
static inline bool post_needed(const struct lane_set *set)
{
    return set->fenced && set->version >= LANE_POST_VERSION;
}
/* Up to this size a message comes before its place is known, if a bounce slot of `slot` bytes holds it. Lanes that write bring a
 * larger one to its place: through cells and a slot it is copied twice, and needs almost twice the packets. */
static inline uint32_t post_early(const struct lane_set *set, uint32_t slot)
{
    const size_t most =
        post_needed(set) && set->transport->config.direct ? lane_set_copies_idle(set) : SIZE_MAX;

    return slot < most ? slot : (uint32_t)most;
}
/* Queues POST for the communicator's receives that its sender doesn't know; once more for those that it hasn't begun. */
void post_tell(struct lane_set *set, struct mono now, struct transport_comm *comm, uint32_t lane);
/* A queue pair is on a device whose keys weren't sent, or have changed: all places are sent again. */
void post_renew(struct lane_set *set);
/* Sends those that found no room. Returns the lanes for which they still wait. */
uint32_t post_tell_left(struct lane_set *set, struct mono now);

/* -- greeting.c */
/* Reads more from a new connection. True: the connection is done here: it is a lane, or was refused. */
bool greeting_read(struct transport *t, struct pending *pending);

/* -- slots.c: room for messages that come before their receive is posted */
/* What one more set may have, if that much is promised to others. */
void slots_share(size_t promised, uint8_t *ret_small, uint8_t *ret_large);
/* The set receives, and its version is known; or the set is freed. here: its peer is on this machine. */
void slots_promise(struct lane_set *set, bool here);
void slots_free(struct lane_set *set);
/* The size of a large one. */
static inline uint32_t slots_large_size(const struct lane_set *set)
{
    return set->large_shift != 0 ? 1u << set->large_shift : LANE_LARGE_SIZE_MAX;
}
/* So much was copied out of a slot, since `began`. */
void slots_copied(struct lane_set *set, struct mono began, uint32_t size);
/* True: the rest of the stream's chunk stays in the socket for now. Its receive may be posted sooner than a copy would take; then
 * there is no copy. The data behind it waits for as many looks as fit into the time of that copy, and at most LOOK_NS. */
bool slots_wait(const struct lane_set *set, struct stream *stream, struct mono now);
/* Does the slot exist, and the memory for it, if it is needed? -EPROTO; -ENOMEM. */
int slots_ready(struct lane_set *set, uint32_t slot, bool needed);
uint8_t *slots_at(const struct lane_set *set, uint32_t slot);
/* Frees memory that was not used for a while. */
void slots_look(struct lane_set *set, struct mono now);

/* -- transport.c */
/* Something that was closed above still owes its peer. */
bool transport_owes(struct transport *t);
/* No thread serves it any more: frees all. False: comms are still in use. */
bool transport_end(struct transport *t);

/* -- serve.c */
void *serve_thread(void *transport);
int serve_listen(struct transport *t);
/* After the thread's end: leaves all sets, closes what is open. True: comms are still in use, and nothing may be freed. keep: no
 * set is freed, because other threads may use them. */
bool serve_end(struct transport *t, bool keep);

/* -- page.c: only for the housekeeping, except page_open */
void page_open(struct transport *t);
void page_write(struct transport *t, struct mono now);
void page_close(struct transport *t);
/* Adds the set's totals. The set is locked. */
void page_sum(const struct lane_set *set, struct mono now, struct transport_summary *sum);

/* -- traffic.c */
void traffic_init(struct lane_set *set, struct mono now);
/* Takes a lane's delay from STATE. */
void traffic_on_lane(struct lane_set *set, struct mono now, uint32_t lane,
                     const struct lane_state_lane *seen);
void traffic_look(struct lane_set *set, struct mono now);
/* Accepting end: does it ask the peer to move that lane? And the connecting end: it is asked. */
bool traffic_asks(const struct lane_set *set, uint32_t lane);
void traffic_on_asked(struct lane_set *set, struct mono now, uint32_t lane, uint32_t epoch);

/* -- yield.c: sending sets */
void yield_init(struct lane_set *set, struct mono now);
/* Takes a lane's delay from STATE; acked: the part that is new. */
void yield_on_lane(struct lane_set *set, struct mono now, const struct lane_state_lane *seen,
                   const struct sender_acked *acked);
/* Bit k: lane k must not carry anything new now. */
uint32_t yield_lanes(struct lane_set *set, struct mono now);
/* The size of a chunk for a job that yields, given the scheduler's size. */
uint32_t yield_chunk_size(const struct lane_set *set, uint32_t size);
void yield_on_sent(struct lane_set *set, struct mono now, uint32_t lane, uint32_t bytes);
/* When one of those may carry again, if something waits. */
struct mono yield_deadline(const struct lane_set *set, struct mono now);

/* -- credit.c: receiving sets */
/* A chunk arrived completely, with that delay. */
void credit_note(struct lane_set *set, struct mono now, uint32_t lane,
                 const struct lane_chunk *chunk, const struct io_stamp *stamp, int64_t owd_ns);
void credit_look(struct lane_set *set, struct mono now);
/* For a sending set: if it has something to send, it counts for the number that receivers are sent. */
void credit_count(struct lane_set *set, struct mono now);
/* The number of peers for which the set's NIC has data, for STATE. It is noted as sent. */
uint16_t credit_receivers(struct lane_set *set, struct mono now);
/* A chunk is about to be written to that lane: a STATE with the number goes first if the peer lacks it, or will soon drop it. */
void credit_tell_along(struct lane_set *set, struct mono now, uint32_t lane);

/* -- standby.c */
/* Starts standbys, once the peer has named its NICs. */
void standby_start(struct lane_set *set, struct mono now);
/* Standbys that can't be made over their NICs try others. */
void standby_look(struct lane_set *set, struct mono now);

/* -- first_nic.c: for the connecting end, until the set's first lane is up */
/* A lane's connection over set->nic was tried: it began (0), or ended with that error. */
void first_nic_on_connect(struct lane_set *set, struct mono now, int r);
/* Another own NIC hasn't been tried: a refusal over this one needn't be from the peer. */
bool first_nic_undecided(const struct lane_set *set);
/* Lanes that can't be made over set->nic try the next NIC. */
void first_nic_look(struct lane_set *set, struct mono now);

/* -- ceiling.c */
uint32_t ceiling_of(const struct transport_config *config);
void ceiling_opened(struct transport *t);
void ceiling_closed(struct transport *t, const struct stream *stream);
/* The number of lanes that a set may have now. */
uint32_t ceiling_lanes(const struct transport *t);
bool ceiling_standbys(const struct transport *t);
/* Are standbys that were saved needed now? */
void ceiling_look(struct lane_set *set, struct mono now);
/* A lane could not be made: 0, or the error with which the set has failed. */
int ceiling_refused(struct lane_set *set, int r);
/* Accepting end: may this one be accepted as well? set: NULL if it would be the first. */
bool ceiling_admits(const struct transport *t, struct lane_set *set, const struct lane_hello *hello,
                    uint32_t waiting);
/* A connection that was counted as opened belongs to no set. */
void ceiling_left(struct transport *t);
/* Connecting end: the peer has too many connections for this lane; or for this existing one. */
void ceiling_turned_away(struct lane_set *set, struct mono now, uint32_t lane);
void ceiling_asked(struct lane_set *set, struct mono now, uint32_t lane, uint32_t epoch);
/* For the housekeeping. */
void ceiling_trim(struct transport *t, struct mono now);

/* -- agent_page.c */
/* For the housekeeping: every 5 s, does the path name another file? True: it does, and the file has at least `least` bytes, of
 * which at most `most` are mapped. */
bool follow_look(struct follow *f, struct mono now, const char *path, size_t least, size_t most);
void follow_end(struct follow *f);

/* -- mesh.c */
/* For the housekeeping: reads what the agent reports now. */
void mesh_look(struct transport *t, struct mono now);
/* Gives the watch a hint about lanes between NICs whose paths are dead. Under the lock. */
void mesh_hint(struct lane_set *set, struct mono now);

/* -- mode.c */
enum transport_mode mode_now(const struct transport *t);
/* For the housekeeping: reads the switch. */
void mode_look(struct transport *t, struct mono now);
/* Applies the mode to the set. Under the lock. */
void mode_apply(struct lane_set *set);
/* The usable lanes that may carry. */
uint32_t mode_lanes(struct lane_set *set, uint32_t usable, uint32_t connected);

/* In a child of fork() our descriptors are closed, and our locks may be held by threads that the child doesn't have. */
static inline bool is_childs(const struct transport *t)
{
    return t->forks != descriptor_forks();
}

/* -- why.c */
/* Returns that error, and records a reason if there is no better one. */
int why_error(int error);
/* Returns -ECHILD, and records the reason. */
int why_child(void);
void why(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The NIC's report of a queue pair that broke, and advice; "": there is no report, or the lane has no queue pair. */
#define LANE_WHY_SIZE 256
const char *why_lane(const struct stream *stream, char text[LANE_WHY_SIZE]);
void say(const struct transport *t, enum transport_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
