/* internal.h: what the files of src/transport share: sets, streams, comms, and who may touch them when.
 *
 *   transport   one per process (or per simulated host): listener, registry of sets, housekeeping
 *   set         the lanes between two contexts; its lock guards all that is in it. One end connects them, either may send:
 *               what it sends is its sender's, what it receives its ledger's (core/failover/halves.h)
 *   stream      one lane of a set: its connection and the bytes on their way in and out (stream.h, lane_kind.h)
 *   comm        one of NCCL's, on a set; its requests (comm.h)
 *
 * Locks, in the order in which they may be taken: transport.lock (registry) → set.lock → transport.listen_lock
 * (listeners and what they have to accept); set.lock → own_nic.credit_lock; set.lock → transport.copies_lock.
 * Sets and comms are freed by the housekeeping alone. */
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
    16384 /* what one read takes beyond a chunk: small messages come many at once */
#define READ_BYTES_MAX (1 << 20) /* of one lane, before others have their turn */
#define NOTSENT_BYTES  (1 << 18)
#define COPY_ALONE_MAX (1 << 17) /* of one where its sender waits for nothing else: it is idle */
#define COPY_IDLE_MAX  (1 << 18) /* to this machine where its process awaits nothing at all */
#define COPY_HERE_MAX  (1 << 16) /* of a message to this machine that is copied; of more than */
#define COPY_PLACES    32        /* of COPY_HERE_MAX: a process has so many for copies */
#define COPIES_MAX     (4 * LANE_LARGE_SLOTS) /* LANE_EAGER_SIZE_MAX so many at a time of a set */
#define COPY_CELL_SIZE                                                                             \
    (8192 + 256)            /* of lanes over queue pairs: 8 KiB of payload and its headers */
#define LOOK_NS     500000  /* between two looks of the watch at most, while somebody polls */
#define EMPTY_NS    2000    /* after all lanes had nothing: large messages don't come in no time */
#define BUSY_NS     1000000 /* a lane that brought something so recently is looked at each time */
#define UNPOLLED_NS 1000000 /* nobody polls a set: the housekeeping serves it */
#define POLLED_NS                                                                                  \
    10000000 /* until it looks again whether somebody does: it takes a processor from who polls */
#define CARRIER_NS    10000000
#define HANDSHAKE_NS  (1 * NS_PER_S)
#define PENDING_MAX   64 /* connections that haven't shown the key yet, */
#define PENDING_MIN   8  /* or a sixteenth of what the process may open; and a quarter of that */
#define SETS_MAX      16384
#define COMM_PLACES   64             /* of a set's comms, by number */
#define SET_LINGER_NS (1 * NS_PER_S) /* a set without comms keeps its lanes for the next */
#define WHY_SIZE      320
#define PEER_TEXT     192

/* A NIC of the peer. */
struct peer_nic {
    struct io_address address; /* with its listener's port; 0 not known */
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

/* What the chunks of a lane say of its path and of both hosts. Receiving end. */
struct lane_delay {
    struct least floor_ns; /* of one-way delays */
    uint32_t owd_ns;       /* last */
    uint32_t clock;        /* how both clocks stood: delays of different ones don't compare */
    uint32_t bound_ns;     /* of both clocks together; IO_HALF_UNKNOWN */
    uint64_t chunks, bytes, resent;
    double owd_mean_ns, queued_mean_ns, consumed_mean_ns; /* gain 1/16 */
    uint32_t owd_ns_max;
    struct lane_spread *spread; /* from the first chunk on; NULL without memory */
};

/* Which path a lane takes is moved by this. Sending end. */
struct traffic {
    struct detector detector;
    struct repath repath;
    struct gain gain;
    int from, to; /* a move on its way; -1: none */
    bool asked;   /* it is the peer's that sends over `from`; or ours, that asked for it */
    uint32_t from_epoch;
    bool drained;     /* the old lane takes nothing new */
    uint32_t retired; /* lanes that moved away and aren't gone yet */
    uint32_t moves;   /* lanes that left their path for another, ever */
    struct mono began, judged, fed[LANE_MAX];
};

#define YIELD_SIZE_MIN 12 /* log2 of the smallest chunks that are told apart */
#define YIELD_SIZES    (LANE_CHUNK_SHIFT_MAX - YIELD_SIZE_MIN + 1)

/* A job of low priority gives way to others on each path. Sending end. */
struct yield {
    uint32_t paced; /* bit k: lane k is aside */
    struct goodput goodput;
    struct yield_lane {
        struct priority priority;
        struct pacing pacing; /* aside */
    } lanes[LANE_MAX];
    struct yield_floor {
        struct least owd_ns, life_ns; /* life: sent, and its report back */
    } floors[YIELD_SIZES];            /* by a chunk's size */
};

struct own_nic;
struct lane_set {
    struct transport *transport;
    pthread_mutex_t lock;
    uint32_t index;            /* in transport.sets */
    bool connects;             /* its lanes; else the peer does */
    struct mono began, joined; /* joined: the first lane came up */
    uint32_t
        nic; /* our own that its lanes use; who connects: of own_context, or one that reaches the peer */
    uint64_t own_context, peer_context;
    uint64_t number; /* of who connects. Contexts stay, a set may begin anew */
    bool
        remade; /* who accepts: it was forgotten here once, and the peer has received from what was sent on it */
    uint8_t key[LANE_KEY_SIZE], nonce[LANE_NONCE_SIZE]; /* who connects: from the handle */
    uint8_t version;                                    /* agreed; 0: not yet */
    bool fenced; /* agreed: no chunk leaves a dead lane before the receiver's last word on it */
    bool lanes_added;
    struct peer_nic peers[WATCH_NIC_MAX];
    uint32_t peer_count;
    char host[LANE_HOST_SIZE], peer_device[LANE_NIC_SIZE];
    uint32_t pid;
    uint16_t carried[HOST_NIC_MAX]; /* by our NIC; bit k: a lane was up between it and peers[k] */
    struct {                        /* who connects, until its first lane is up: first_nic.c */
        uint32_t tried, unrouted; /* bit k: over NIC k, in vain, in this round; no route from it */
        uint32_t refusals;        /* bit k: over NIC k we were told that nobody listens */
        uint32_t rounds;          /* over all of our NICs */
        bool told;                /* the kernel told that nic doesn't reach */
        struct mono since;        /* over nic */
        struct mono unrouted_since; /* over none is there a route; 0: there may be one */
    } first;
    int knock; /* connection to the peer's listener, -1: none */
    uint32_t knocks, knock_pair;
    struct mono next_knock;
    int64_t knock_ns; /* from the last knock to that; 0: none was due yet */

    struct watch *watch;
    struct sender *sender; /* NULL: nothing was ever sent from here */
    struct scheduler scheduler;
    struct scheduler_choice seen; /* what the watch said of the lanes, good until then */
    struct mono seen_until;
    struct traffic traffic;
    struct least
        back_ns; /* the time that reports take to us, by two hosts' clocks: may be negative */
    struct yield yield;
    struct ledger *ledger;            /* NULL: nothing ever came */
    uint8_t small_slots, large_slots; /* of ours: bounce slots that the peer's sender may use */
    uint8_t large_shift;              /* the large ones hold so much, as NICS tells it */
    uint8_t peer_small_slots, peer_large_slots; /* of the peer's: those that our sender may use */
    uint8_t peer_large_shift;
    uint8_t *slots;            /* memory of ours, while they are used */
    struct mono slots_at;      /* when they were last */
    bool slots_touched;        /* since then */
    struct least slot_copy_ns; /* of a whole large one */
    struct stream *streams[LANE_MAX];
    uint32_t present; /* bit k: streams[k] is there */
    struct {
        uint8_t own, peer; /* in transport.nics, in peers */
        bool standby;
        uint8_t tries; /* to connect, in a row, in vain */
        bool was_up;   /* over this pair */
        bool strayed;  /* a standby that isn't on one of the best pairs */
        uint16_t port; /* its last connection's: its path */
    } lane_nics[LANE_MAX];
    struct {
        struct mono
            again; /* a queue pair is offered then; who accepts: an offer is answered from then on */
        uint32_t attempts;
        uint8_t fails; /* in a row */
        bool unlucky;  /* the last path that was chosen brought nothing, or not for long */
    } pair_tries[LANE_MAX];
    bool pairs_mute;                  /* it was told that they bring nothing */
    uint32_t sequence, peer_sequence; /* of STATE */

    struct transport_comm *comms;
    struct transport_comm *by_number[COMM_PLACES];
    uint32_t comm_count;
    bool had_comms;
    uint32_t opening,
        parting_comms;  /* of them: not open yet; closed above or released, not yet freed */
    struct mono lonely; /* since when it has none */
    bool leaving;       /* CLOSE for all was sent or heard */
    int error;          /* every request gets it */
    bool gpu_failed;    /* bytes of a receive couldn't be stored: no receive is done any more */
    char why[WHY_SIZE];

    struct mono next_look;
    struct mono empty_at;        /* when all lanes that are due had nothing to read */
    bool any_dead;               /* some stream waits to be closed */
    enum transport_mode mode;    /* as carried out here */
    uint8_t only;                /* OBSERVE: the lane that carries */
    uint32_t lane_turn;          /* of lane_set_any_lane */
    uint32_t polls, empty_polls; /* of them, since the last that brought something */
    uint64_t reads;              /* that brought something */
    struct lane_delay delays[LANE_MAX];
    struct {
        uint64_t chunks, bytes, resent;
        uint64_t written; /* bytes that a NIC wrote to their place */
    } sent[LANE_MAX];
    uint32_t generation;   /* no two sets of a process have the same */
    int64_t unsynced_base; /* taken off delays between unsynchronised clocks; INT64_MIN: none yet */
    bool standbys_added;
    struct mono standby_home; /* standbys on lesser pairs of NICs look for better ones then */
    struct span standby_gap;
    bool standbys_late;   /* saved; when no lane is left they are opened */
    uint32_t turned_away; /* who accepts: lanes that were, once */
    uint32_t lanes;       /* that it began with */
    uint32_t refusals;    /* in a row */
    struct mono refused_since;
    uint32_t parted;
    struct mono parted_at; /* MONO_NEVER: there is a way */
    int64_t parted_ns;
    uint8_t failed_for[LANE_MAX]; /* enum lane_reason: why a lane that was in use failed last */
    uint32_t large;               /* requests in flight of more than LANE_EAGER_SIZE_MAX */
    uint32_t copies_used;         /* sending: places in transport.copies, as bits */
    uint32_t sends_awaited;       /* sends without a copy that aren't placed */
    uint32_t awaited;             /* requests that aren't done: whoever made them polls the set */
    bool unattended;              /* atomic: it has something to write, and nobody polls it */
    /* receiving: what the sender hasn't been told yet, and when it must be at the latest */
    bool posts_left;                 /* some POST found no room */
    bool report_urgent, report_soon; /* now; when nothing more comes at once */
    bool report_posted; /* after a look in vain: a receive, to one that isn't waiting */
    bool peer_keeps;    /* as its last chunk told: none of its requests waits for a report */
    uint32_t report_chunks, report_eager, report_copied, report_bytes;
    bool whole; /* messages of up to LANE_LARGE_SIZE_MAX bytes come as one chunk: lanes are fast */
    struct mono report_by, reported_at; /* the next one at the latest; the last one */
    uint8_t hot;       /* the lane that brought a chunk last (which only sends: anything) */
    int64_t polled_ns; /* atomic: last call from above */
    bool posted; /* to a queue pair, since such a call ended: some devices do the work in it */
    /* receiving: incast control; what came since the NIC was told last, what each comm may have on its way */
    struct credit_arrivals arrived;
    struct least floor_ns; /* of one-way delays by all lanes over the set's own NICs; */
    uint32_t floor_clock;  /* how both clocks stood */
    uint32_t credit_interval;
    uint32_t peer_receivers; /* that the peer has data for; 0: not told */
    struct mono peer_receivers_at;
    int64_t fan_time;  /* sending: it was counted then */
    uint32_t fan_told; /* what STATE told last of how many we have data for, and when */
    struct mono fan_told_at;
    uint64_t window;
    struct mono rtt_asked;
    struct mono deadline; /* housekeeping's alone: it comes back then, */
    struct mono served;   /* for it was here at this time */
    bool stirred;         /* housekeeping's alone: an event came */
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
    } last;    /* that was handed over: its OPEN may come to a set that forgot it */
    int error; /* somebody else's plugin came, by name */
    char why[WHY_SIZE];
};

/* -- the process */

/* A connection that somebody opened and that hasn't introduced itself. */
struct pending {
    int conn;
    struct io_address local, peer;
    uint8_t bytes[LANE_HELLO_SIZE], proof[LANE_PROOF_SIZE];
    uint32_t size; /* of what it is about to say: HELLO, then PROOF */
    struct mono until;
    bool greeted;    /* it showed the key, and was answered: what is below is known */
    uint8_t version; /* agreed */
    struct lane_hello hello;
    uint32_t nic;        /* our own that it is for */
    bool fenced;         /* as its PROOF told */
    uint32_t last_epoch; /* of the lane, opened at our end; what we took of it: for our answer */
    uint64_t last_taken;
    uint8_t nonce[LANE_NONCE_SIZE]; /* of our answer */
};

struct own_nic {
    struct transport_nic config;
    uint64_t context;
    int carrier;
    uint32_t downs;
    pthread_mutex_t credit_lock; /* the last in the order: nothing is locked under it */
    struct credit credit;
    /* Sets that have something to send, by times of FAN_NS: of the present one, and of the last */
    int64_t fan_time;
    uint32_t fan_now, fan_last;
    uint32_t receivers; /* atomic: the larger of both */
};

/* agent_page.c: a file of the agent's, mapped. */
struct follow {
    const void *memory; /* NULL: there is none */
    size_t size;
    uint64_t inode;
    struct mono next; /* to look whether the path names another file by now */
};

/* mesh.c: pairs of NICs that the host's agent calls dead. */
#define MESH_DEAD_MAX 64
struct mesh_view {
    struct follow file; /* the housekeeping's, as all down to written_at */
    int64_t written;    /* by the agent, when looked last */
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
    uint32_t forks; /* descriptor_forks() where it was made */

    pthread_mutex_t lock;
    struct lane_set
        *sets[SETS_MAX]; /* read without the lock by the housekeeping, which alone frees */
    uint32_t set_count;  /* highest index used + 1 */
    uint32_t sockets;    /* atomic: of lanes, both directions, and of who is about to be one */
    size_t slot_bytes;   /* atomic: promised to all sets' senders */
    uint32_t parting;    /* atomic: of them, those that are to go */
    uint32_t trim_turn;
    uint64_t comm_ids;
    uint32_t generations;
    pthread_mutex_t memory_lock; /* nothing of ours is locked under it */
    struct transport_memory **memories;
    uint32_t memory_count, memory_capacity;
    uint64_t memory_numbers;
    uint32_t gpu_count;                   /* atomic: of them, memory of GPUs */
    uint64_t gpu_copied[IO_RDMA_DEVICES]; /* atomic: pieces that we had a device copy there */
    uint32_t memory_calls;                /* atomic: to add or remove some, that haven't returned */
    struct transport_summary past;        /* of sets that are gone */
    struct transport_comm *connecting;    /* by next_ready: not yet returned by transport_connect */
    uint64_t active[SETS_MAX / 64];       /* atomic bits: the housekeeping must look after these */
    uint32_t awaited;    /* atomic: requests that aren't done, of all sets: somebody polls */
    uint64_t unattended; /* atomic bits, by index modulo 64: the next call serves these as well */

    pthread_mutex_t copies_lock; /* nothing is locked under it */
    uint8_t *copies;       /* of messages of more than LANE_EAGER_SIZE_MAX; NULL: none lately */
    bool copies_whole;     /* in huge pages: a set with a peer here has copies there */
    uint32_t copies_used;  /* places of COPY_HERE_MAX in there, as bits */
    struct mono copies_at; /* one was taken last */

    pthread_mutex_t listen_lock;
    struct transport_listener *listeners;
    int listening[HOST_NIC_MAX]; /* one an address of ours, all on one port */
    uint32_t listening_count;    /* 0: not yet */
    uint16_t port;

    /* housekeeping only */
    struct pending **pending;
    uint32_t pending_count, pending_capacity;
    struct mono next_carrier;
    struct job_page_memory *page; /* NULL: there is none */
    char page_path[256];
    int page_fd; /* locked: we live */
    uint32_t page_count;
    uint32_t page_cut; /* bit k: NIC k had no carrier when it was written last */
    struct mono started, next_page;
    int64_t first_fault_ns; /* atomic: when a lane in use failed first; 0: none did */
    struct follow host_switch;
    int mode; /* atomic: enum transport_mode, by now */
    struct mesh_view mesh;
    struct mono listen_again; /* no descriptors left: not before then */
    pthread_t thread;
    bool running;
    int stop;    /* atomic */
    int leaving; /* atomic: transport_free began: idle sets go at once */
    int alone;   /* atomic: transport_free is over; the thread pays what is owed and ends it */
    int64_t sleeping_until; /* atomic */
};

/* -- lane_set.c, peer.c: what both ends have in common */

int lane_set_new(struct transport *t, bool connects, uint32_t nic, uint64_t peer_context,
                 struct lane_set **ret_set);
/* Frames go both ways over it, and either end may send. */
static inline bool lane_set_both(const struct lane_set *set)
{
    return set->version >= LANE_BOTH_VERSION;
}
/* The peer wants to connect one as well, which it began before it knew of this: this one is enough. */
bool lane_set_stays(const struct lane_set *set, struct mono now);
/* There is a communicator that neither end has closed. */
bool lane_set_used(const struct lane_set *set, struct mono now);
/* The half that nobody needed so far. -ENOMEM. */
MUST_CHECK int lane_set_add_sender(struct lane_set *set, struct mono now);
MUST_CHECK int lane_set_add_ledger(struct lane_set *set);
/* The sender learns how many bounce slots the peer has: up to version 3 by that; then by NICS, before a communicator is
 * confirmed. */
void lane_set_grant(struct lane_set *set);
/* The lane is good for both halves. rtt < 0: not measured. What halves_lane_open returns. */
MUST_CHECK int lane_set_open_lane(struct lane_set *set, struct mono now, uint32_t lane,
                                  uint32_t epoch, struct span rtt);
void lane_set_free(struct lane_set *set);
/* Drains sockets, writes what may go, looks at the watch, carries out what it says. Under the lock. */
void lane_set_progress(struct lane_set *set, struct mono now, bool all);
/* Something is wrong with the lane: nothing more goes over it; lane_set_act closes it and tells everybody. */
void lane_set_lost(struct lane_set *set, struct mono now, uint32_t lane, enum lane_reason reason);
/* Why a connection is over that said so. */
enum lane_reason set_reason(int r);
void lane_set_act(struct lane_set *set, struct mono now);
/* Serves the sets that have something to write and that nobody polls. No set may be locked by the caller. */
void lane_set_attend(struct transport *t, struct mono now);
/* Does the set want that? Under the lock. */
void lane_set_note_unattended(struct lane_set *set);
/* Up to so much a sender copies once it is written: it doesn't wait for the report, which may go with our next chunk. To
 * this machine that costs less than a report of its own. A peer of an older version waits. */
static inline size_t lane_set_copies(const struct lane_set *set)
{
    return set->scheduler.one_way && lane_set_both(set) ? COPY_HERE_MAX : LANE_EAGER_SIZE_MAX;
}
/* And up to so much where it waits for nothing else. */
static inline size_t lane_set_copies_alone(const struct lane_set *set)
{
    return lane_set_copies(set) * (COPY_ALONE_MAX / COPY_HERE_MAX);
}
/* No larger message is copied, whatever else is on its way. */
static inline size_t lane_set_copies_idle(const struct lane_set *set)
{
    return lane_set_copies(set) == COPY_HERE_MAX ? COPY_IDLE_MAX : lane_set_copies_alone(set);
}
/* Up to so much came from a sender that doesn't wait for our report: it tells that it waits for none. */
static inline size_t lane_set_kept(const struct lane_set *set)
{
    return set->peer_keeps ? SIZE_MAX : LANE_EAGER_SIZE_MAX;
}
/* -- copies.c: what a sender keeps of messages that are done before they are placed ------------ */

/* Room for a copy of a small one, the outgoing's own. */
bool copies_room(struct outgoing *outgoing, size_t size);
/* A chunk is about to be written: if it is its whole message, to this machine, and its request waits, room for a copy, kept
 * until copies_back(). NULL: there is none, or it isn't. One that can't be written yet isn't done: nobody would poll for it. */
struct outgoing *copies_take(struct lane_set *set, struct mono now,
                             const struct sender_chunk *chunk);
/* Makes it, after as much is written as the network takes: the peer reads that meanwhile. The request is done. */
void copies_fill(struct lane_set *set, uint32_t comm, uint64_t message, const uint8_t *data,
                 size_t size, struct outgoing *outgoing);
/* Its message is placed, or its communicator gone. */
void copies_back(struct lane_set *set, struct outgoing *outgoing);
/* Memory that was of no use for a second goes. */
void copies_look(struct transport *t, struct mono now);
/* The set goes. */
void copies_end(struct lane_set *set);
/* The transport goes, or no set uses them. */
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
/* Ends everything on the set with that error; the text says why, for people. */
void lane_set_fail(struct lane_set *set, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same: sender or ledger found a bug of ours. */
void lane_set_fail_bug(struct lane_set *set, const struct bug_note *bug);
/* A frame that both ends understand: PING, PONG, STATE's lanes, CLOSE. -ENOENT: not one of those. */
int lane_set_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
                   size_t size);
/* A connection was made and both ends know each other. */
void lane_set_shaken(struct lane_set *set, struct mono now, uint32_t lane);
/* Our other NICs, for the peer's standbys; the peer's. */
void lane_set_tell_nics(struct lane_set *set, struct stream *stream);
int lane_set_on_nics(struct lane_set *set, struct mono now, const uint8_t *frame, size_t size);
/* An address of this machine: what goes there never leaves by a NIC. */
bool peer_here(const struct transport *t, const struct io_address *peer);
/* The device by which a connection should leave, NULL: as routed. Every other attempt goes as routed, for routes may know
 * better; and so does all to an address of our own, which never leaves by a NIC. */
const char *peer_device(const struct lane_set *set, const struct own_nic *nic,
                        const struct io_address *to, uint32_t attempt);
/* How our bytes leave by a connection between those two. */
struct io_connect peer_connect(const struct transport *t, const struct io_address *from,
                               const struct io_address *to);
/* Whether a refusal between these two NICs tells that the peer's process is gone: a lane was up there, or ought to be. Of
 * other pairs nobody knows who refuses: another host, a firewall, our own kernel. */
bool peer_refuses(const struct lane_set *set, uint32_t own, uint32_t peer);
/* Who accepts, without a lane: is the peer's process still there? */
void lane_set_knock(struct lane_set *set, struct mono now);
/* A lane that frames can be written to, another one each time: what is repeated because it may be lost must not
 * take the same dead path again. -1: none. */
int lane_set_any_lane(struct lane_set *set);
/* Bit k: lane k is a standby, up or not. */
uint32_t lane_set_standbys(const struct lane_set *set);
void lane_set_touch(struct lane_set *set); /* the housekeeping shall look after it */
/* What lands unasked must be silent first: while it isn't, the stream stays, and every turn asks again. */
void lane_set_close_stream(struct lane_set *set, uint32_t lane, bool reset);
bool lane_set_owes(const struct lane_set *set);
/* "host NIC (pid)" of the peer, for people. */
const char *lane_set_peer(const struct lane_set *set, char text[static PEER_TEXT]);

/* -- lane_offer.c: lanes that go on over queue pairs */
/* What is under way goes on; what may be offered is. */
void lane_pair_look(struct lane_set *set, struct mono now);
struct mono lane_pair_deadline(const struct lane_set *set, struct mono now);
int lane_pair_on_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *bytes,
                       size_t size);
/* The lane's stream is about to go: a queue pair that was soon over isn't offered again at once. */
void lane_pair_lost(struct lane_set *set, struct mono now, uint32_t lane);
/* -- lane_copy.c: and whose chunks may be written where POST told */
/* The chunk goes by a write, at once. False: it can't: it goes as bytes. */
bool lane_pair_write(struct lane_set *set, uint32_t lane, const struct sender_chunk *chunk,
                     struct lane_chunk *header);
/* When what is read now arrived. */
const struct io_stamp *lane_pair_stamp(const struct stream *stream);
bool lane_pair_takes_writes(const struct stream *stream);
/* Whose keys it takes; IO_RDMA_DEVICES: nobody's. */
uint32_t lane_pair_device(const struct stream *stream);
/* Something of the communicator's messages is still being read by its NIC, and isn't known to have arrived. */
bool lane_pair_reads(const struct lane_set *set, const struct stream *stream, uint32_t comm);
/* Before this returns nothing lands by way of these lanes (bits) any more, and none of our memory is read. They are over. */
void lane_pair_fence(struct lane_set *set, uint32_t lanes);
/* The set goes. */
void lane_pair_end(struct lane_set *set);

/* -- state.c */
/* STATE of all lanes, of one comm or none, to `lane`, or to all that are connected (-1). */
void lane_set_tell(struct lane_set *set, struct lane_report *report, int lane);
/* Last words in it on lanes that are no more: no later state of them would tell that these were heard. */
void lane_set_heard_fences(struct lane_set *set, const struct lane_report *report);
/* The same, but it isn't written before lane_set_flush(): several go in one call of the
 * kernel's. Returns the lanes that it waits on. */
uint32_t lane_set_say(struct lane_set *set, struct mono now, struct lane_report *report, int lane);
void lane_set_flush(struct lane_set *set, struct mono now, uint32_t lanes);

/* -- out.c, out_lane.c, in.c, in_lane.c: the two ends */

void out_start_lanes(struct lane_set *set, struct mono now);
void out_connect(struct lane_set *set, struct mono now, const struct watch_action *action);
void out_pump(struct lane_set *set, struct mono now);
void out_openings(struct lane_set *set, struct mono now);
/* Connected yet? Then HELLO. */
void out_handshake(struct lane_set *set, struct mono now, uint32_t lane);
/* What the peer answers to HELLO. */
int out_hello(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
              size_t size);
int out_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
              size_t size);
/* STATE, decoded: what was taken and placed. */
void out_on_state(struct lane_set *set, struct mono now, uint32_t lane,
                  const struct lane_report *report);
void out_harvest(struct lane_set *set);
/* Now and then: what hangs on a lane goes once more. */
void out_look(struct lane_set *set, struct mono now);

int in_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
             size_t size);
/* Payload: where the next bytes of the lane's chunk go (NULL: nowhere) and how many are left. */
int in_target(struct lane_set *set, uint32_t lane, uint8_t **ret_to, uint32_t *ret_left);
int in_got(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *at, uint32_t size,
           const struct io_stamp *stamp);
/* STATE, if it is time (all: whatever there is). came: something was read just now. */
void in_reports(struct lane_set *set, struct mono now, bool all, bool came);
/* A chunk is about to be written to that lane: what there is to tell goes in front of it, in one call of the kernel's. */
void in_reports_along(struct lane_set *set, struct mono now, uint32_t lane);
/* A receive was posted: does its sender wait to hear of it? */
void in_posted(struct lane_set *set, struct mono now, struct transport_comm *comm, size_t size);
void in_harvest(struct lane_set *set);
/* A communicator whose receive was too small fails, at both ends, and no other. */
void in_misfit(struct lane_set *set);
/* delay.c: a chunk arrived whole. */
void delay_on_chunk(struct lane_set *set, struct mono now, uint32_t lane,
                    const struct lane_chunk *chunk, const struct io_stamp *stamp);
/* Of the last seconds, ns; JOB_PAGE_NS_NONE: none. */
uint32_t delay_quantile(const struct lane_delay *delay, enum lane_stage stage, double q);
void delay_free(struct lane_set *set);
/* What STATE says of it. */
void delay_report(const struct lane_set *set, uint32_t lane, struct lane_state_lane *ret);
void in_copy(struct lane_set *set, const struct ledger_copy *copy);
/* A HELLO that holds the key: may it become a lane? waiting: others of its set that may, and aren't yet. */
int in_admit(struct transport *t, const struct pending *pending, uint8_t version, uint32_t waiting,
             enum lane_no *ret_no);
/* It is for a set that is there and fenced: what the lane was before is over at our end, what the peer took of it is known, and
 * what we took is in `pending`. False: what the lane was isn't silent yet. */
bool in_fence(struct transport *t, struct pending *pending);
/* Its HELLO_OK. */
void in_answer(const struct transport *t, const struct pending *pending, uint8_t version,
               uint8_t bytes[static LANE_HELLO_SIZE]);
/* The connection becomes a lane, of a new set if there is none. Both: 0, or -errno and the reason for HELLO_NO. */
int in_attach(struct transport *t, struct pending *pending, uint8_t version, enum lane_no *ret_no);

/* -- post.c: where messages go, before they come: sets whose lanes may write unasked */
static inline bool post_needed(const struct lane_set *set)
{
    return set->fenced && set->version >= LANE_POST_VERSION;
}
/* Queues POST for those receives of the communicator that its sender doesn't know; once more for those that it hasn't begun. */
void post_tell(struct lane_set *set, struct mono now, struct transport_comm *comm, uint32_t lane);
/* A queue pair is on a device whose keys weren't told, or are others by now: all places are told again. */
void post_renew(struct lane_set *set);
/* Those that found no room. Returns the lanes that they wait on. */
uint32_t post_tell_left(struct lane_set *set, struct mono now);

/* -- greeting.c */
/* Who connected says more. True: nothing more is to be expected of it here, its connection is a lane's or refused. */
bool greeting_read(struct transport *t, struct pending *pending);

/* -- slots.c: what comes before it is posted */
/* What one more set may have, if others were promised so much. */
void slots_share(size_t promised, uint8_t *ret_small, uint8_t *ret_large);
/* The set receives, and its version is known; it goes. here: its peer is on this machine. */
void slots_promise(struct lane_set *set, bool here);
void slots_free(struct lane_set *set);
/* What a large one holds. */
static inline uint32_t slots_large_size(const struct lane_set *set)
{
    return set->large_shift != 0 ? 1u << set->large_shift : LANE_LARGE_SIZE_MAX;
}
/* So much was copied out of a slot, since then. */
void slots_copied(struct lane_set *set, struct mono began, uint32_t size);
/* The rest of the stream's chunk stays in the socket for now: its receive may be posted sooner than a copy would take, and then
 * there is none. What comes behind it waits for as many looks as fit into the time of that copy, and not longer than LOOK_NS. */
bool slots_wait(const struct lane_set *set, struct stream *stream, struct mono now);
/* Is there such a slot, and memory for it, if it is needed? -EPROTO; -ENOMEM. */
int slots_ready(struct lane_set *set, uint32_t slot, bool needed);
uint8_t *slots_at(const struct lane_set *set, uint32_t slot);
/* Memory that nothing came to for a while is given back. */
void slots_look(struct lane_set *set, struct mono now);

/* -- transport.c */
/* Something closed above still owes its peer. */
bool transport_owes(struct transport *t);
/* Nobody serves it any more: frees all. False: comms are still in use. */
bool transport_end(struct transport *t);

/* -- serve.c */
void *serve_thread(void *transport);
int serve_listen(struct transport *t);
/* After the thread: leaves all sets, closes what is open. True: comms are still in use, free nothing. keep: no set is freed,
 * others may be looking at them. */
bool serve_end(struct transport *t, bool keep);

/* -- page.c: housekeeping's alone, but for page_open */
void page_open(struct transport *t);
void page_write(struct transport *t, struct mono now);
void page_close(struct transport *t);
/* Adds what the set went through. Set locked. */
void page_sum(const struct lane_set *set, struct mono now, struct transport_summary *sum);

/* -- traffic.c */
void traffic_init(struct lane_set *set, struct mono now);
/* What STATE says of a lane's delay. */
void traffic_on_lane(struct lane_set *set, struct mono now, uint32_t lane,
                     const struct lane_state_lane *seen);
void traffic_look(struct lane_set *set, struct mono now);
/* Who accepts: does it ask the peer to move that lane? And who connects: it is asked. */
bool traffic_asks(const struct lane_set *set, uint32_t lane);
void traffic_on_asked(struct lane_set *set, struct mono now, uint32_t lane, uint32_t epoch);

/* -- yield.c: sending sets */
void yield_init(struct lane_set *set, struct mono now);
/* What STATE says of a lane's delay; acked: of what is new there. */
void yield_on_lane(struct lane_set *set, struct mono now, const struct lane_state_lane *seen,
                   const struct sender_acked *acked);
/* Bit k: lane k must not carry anything new now. */
uint32_t yield_lanes(struct lane_set *set, struct mono now);
/* Of the scheduler's size of a chunk, what a job that yields may make of it. */
uint32_t yield_chunk_size(const struct lane_set *set, uint32_t size);
void yield_on_sent(struct lane_set *set, struct mono now, uint32_t lane, uint32_t bytes);
/* When one of those may again, if something waits. */
struct mono yield_deadline(const struct lane_set *set, struct mono now);

/* -- credit.c: receiving sets */
/* A chunk arrived whole, so long after it was sent. */
void credit_note(struct lane_set *set, struct mono now, uint32_t lane,
                 const struct lane_chunk *chunk, const struct io_stamp *stamp, int64_t owd_ns);
void credit_look(struct lane_set *set, struct mono now);
/* Sending sets: whether it has something to send counts for what receivers are told. */
void credit_count(struct lane_set *set, struct mono now);
/* For how many peers there is data by the set's NIC, as STATE tells it. Noted as told. */
uint16_t credit_receivers(struct lane_set *set, struct mono now);
/* A chunk is about to be written to that lane: the number goes in front of it if the peer doesn't know it, or not for long. */
void credit_tell_along(struct lane_set *set, struct mono now, uint32_t lane);

/* -- standby.c */
/* Standbys, once the peer has named its NICs. */
void standby_start(struct lane_set *set, struct mono now);
/* Those that can't be made over their NICs try others. */
void standby_look(struct lane_set *set, struct mono now);

/* -- first_nic.c: who connects, until the set's first lane is up */
/* A lane's connection over set->nic was tried: it began (0), or it ended with that error. */
void first_nic_on_connect(struct lane_set *set, struct mono now, int r);
/* Another NIC of ours hasn't been tried: what this one was told needn't be the peer's word. */
bool first_nic_undecided(const struct lane_set *set);
/* Lanes that can't be made over set->nic try the next. */
void first_nic_look(struct lane_set *set, struct mono now);

/* -- ceiling.c */
uint32_t ceiling_of(const struct transport_config *config);
void ceiling_opened(struct transport *t);
void ceiling_closed(struct transport *t, const struct stream *stream);
/* How many lanes a set may have now. */
uint32_t ceiling_lanes(const struct transport *t);
bool ceiling_standbys(const struct transport *t);
/* Standbys that were saved are needed now? */
void ceiling_look(struct lane_set *set, struct mono now);
/* A lane could not be had: 0, or the error that the set has failed with. */
int ceiling_refused(struct lane_set *set, int r);
/* Who accepts: may this one come as well? set: NULL if it is to be the first. */
bool ceiling_admits(const struct transport *t, struct lane_set *set, const struct lane_hello *hello,
                    uint32_t waiting);
/* One that was counted as opened is none of a set's. */
void ceiling_left(struct transport *t);
/* Who connects: the peer has too many connections for this lane; for this one that there is. */
void ceiling_turned_away(struct lane_set *set, struct mono now, uint32_t lane);
void ceiling_asked(struct lane_set *set, struct mono now, uint32_t lane, uint32_t epoch);
/* Housekeeping's. */
void ceiling_trim(struct transport *t, struct mono now);

/* -- agent_page.c */
/* Housekeeping's: every 5 s, is the path's file another one by now? True: it is, and at least so long, and mapped, so much of
 * it at most. */
bool follow_look(struct follow *f, struct mono now, const char *path, size_t least, size_t most);
void follow_end(struct follow *f);

/* -- mesh.c */
/* Housekeeping's: what the agent says now. */
void mesh_look(struct transport *t, struct mono now);
/* Tells the watch of lanes between NICs whose ways are dead. Under the lock. */
void mesh_hint(struct lane_set *set, struct mono now);

/* -- mode.c */
enum transport_mode mode_now(const struct transport *t);
/* Housekeeping's: asks the switch. */
void mode_look(struct transport *t, struct mono now);
/* The set does as the mode says. Under the lock. */
void mode_apply(struct lane_set *set);
/* Which of the usable lanes may carry. */
uint32_t mode_lanes(struct lane_set *set, uint32_t usable, uint32_t connected);

/* In a child of fork(): our descriptors are closed there, and our locks may be held by threads that it doesn't have. */
static inline bool is_childs(const struct transport *t)
{
    return t->forks != descriptor_forks();
}

/* -- why.c */
/* That error, and says why where nobody knows better. */
int why_error(int error);
/* -ECHILD, and says why. */
int why_child(void);
void why(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What the NIC said of a queue pair that broke, and what to do; "": it said nothing, or the lane has none. */
#define LANE_WHY_SIZE 256
const char *why_lane(const struct stream *stream, char text[LANE_WHY_SIZE]);
void say(const struct transport *t, enum transport_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
