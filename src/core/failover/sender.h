/* sender.h: the sending end's pool: messages cut into chunks, each on the lanes that carry it,
 * until the receiver's ledger has taken it. Nothing is lost with a lane; nothing is resent before
 * it may be.
 *
 * One per lane set. A message is cut once, when its first chunk is picked: (message, offset,
 * length) never change, however often a chunk is sent. A chunk is in the pool, on one or more
 * (lane, epoch)s, or taken.
 *
 *   sender_send ──► pool ── sender_next, scheduler picks the lane, sender_bind ──► on a lane
 *                    ▲                                                               │
 *                    ├── sender_on_lane_down (fenced sets: sender_on_fenced) ────────┤
 *                    └── sender_on_suspect, sender_hedge: once more, elsewhere ──────┤
 *            done ◄── sender_on_report(placed)      taken ◄── sender_on_taken ─────┘
 *
 * Flow: chunks of message m go if m < posted (as the receiver reported; with groups and config.posts: its
 * POST came) and the bytes granted suffice (or none of the comm's chunks is on its way, or the
 * message is small); a message of up to LANE_EAGER_SIZE_MAX bytes needs neither if a bounce slot is
 * free (groups: never eager), and one of a single chunk that a large one holds (sender_slots_hold) needn't be
 * posted if such a one is. A slot is the sender's from then until its message is placed.
 *
 * The source must be readable until sender_next_done names the message. After that, what a live
 * lane still owes of a half-sent frame is filled with zeros (sender_placed): the receiver bins it.
 * Small messages are copied by the caller, who may call the request done at once; the copy lives
 * until sender_next_done.
 *
 * Order: returned chunks first (oldest message), then messages that fit one chunk, then comms in
 * turn, messages in order. Bounded: SENDER_LANE_CHUNKS on a lane, COMM_REQUESTS_MAX messages per
 * comm. Memory: sender_new, sender_comm_open (4 kB), a lane's first sender_lane_open (6 kB), the first
 * message of more than 512 KiB in each of a comm's places (1 kB); nothing else allocates.
 *
 * The caller holds the set's lock around every call. -EPROTO from on_* functions: the peer claims
 * what it can't know (more taken than was sent): treat like the ledger's BROKEN. sender_bug: our
 * own fault, the same. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/failover/lane_load.h"
#include "wire/lane.h"

#define SENDER_LANE_CHUNKS 128 /* unacknowledged, per lane */

struct sender;

struct sender_config {
    uint32_t slots; /* the receiver's bounce slots; 0: no eager messages */
    uint32_t large; /* so many of them, the last, hold LANE_LARGE_SIZE_MAX bytes */
    uint32_t comms; /* open at a time, <= SET_COMMS_MAX */
    bool fenced;    /* some lane writes unasked: chunks of a dead lane of any kind wait for the
                       receiver's word (sender_on_fenced); no hedges */
    bool posts;     /* messages wait for their POST, but those that may come early */
};

struct sender_message {
    const uint8_t *source;
    uint32_t size; /* <= LANE_MESSAGE_SIZE_MAX */
    int32_t tag;
    uint64_t cookie; /* handed back when done */
};
struct sender_done {
    uint32_t comm;
    uint64_t message, cookie;
};

/* What should go next; not yet bound to a lane. */
struct sender_chunk {
    uint32_t comm;
    uint64_t message, cookie;
    uint32_t offset, length;
    uint32_t size;   /* of the message */
    uint32_t not_on; /* bit k: not on lane k, it is there already (a hedge) */
    bool eager, resent;
    bool gates;            /* its message has no other chunk left to send */
    struct mono queued;    /* when sender_send was called */
    const uint8_t *source; /* of this chunk */
    uint64_t address;      /* from POST: where its first byte goes; 0 without */
    struct lane_keys keys; /* from POST */
};

/* What an acknowledgement was worth. */
struct sender_acked {
    uint32_t chunks;
    uint64_t bytes;
    struct mono sent; /* when the last of them was bound; for a round trip */
    uint64_t load;    /* unacknowledged on its lane then, it included */
    bool alone;       /* it found its lane empty: its delay is the path's, not a queue's */
};

struct sender_lane_info {
    bool open;
    bool held; /* not open, and what was on it waits for the receiver's last word */
    uint32_t epoch;
    uint32_t chunks;      /* unacknowledged */
    uint64_t bytes;       /* of those */
    uint64_t sent, taken; /* chunks, this epoch */
    struct mono oldest;   /* when the oldest was bound; MONO_NEVER */
    uint32_t oldest_bytes;
};

struct sender_counters {
    uint64_t messages, chunks, bytes; /* first sends */
    uint64_t resent, resent_bytes, hedged, eager;
};

/* NULL: no memory, or the configuration is out of range. */
struct sender *sender_new(const struct sender_config *config);
void sender_free(struct sender *s); /* accepts NULL */
/* The slots that the peer has for this set: the first `small` ones, and of the config.large last ones, which are large,
 * the first `large`. Until then all are, none of them large. */
void sender_slots_granted(struct sender *s, uint32_t small, uint32_t large);
/* A large slot of the peer's holds so much; before it is told, LANE_LARGE_SIZE_MAX. */
void sender_slots_hold(struct sender *s, uint32_t size);

/* The set is fenced, as the greetings of its first lane tell: before that is open. */
void sender_fence(struct sender *s);
/* The receiver tells where each message goes: config.posts, once that is known; before a message is sent. */
void sender_posts(struct sender *s);

/* -- lanes. -ESTALE: epoch not above the last; -EBUSY: open, or its chunks still wait for the
 * fence; -EINVAL; -ENOMEM. */
MUST_CHECK int sender_lane_open(struct sender *s, uint32_t lane, uint32_t epoch);
/* The lane is over. Its chunks return to the pool now, for a half-sent frame can't be finished
 * by anybody any more (the caller has closed it) and the ledger bins what comes twice. In a fenced set they
 * wait: a copy of the chunk may complete its message, and a write of it land later. Idempotent. */
void sender_on_lane_down(struct sender *s, uint32_t lane, uint32_t epoch);
/* The receiver's last word on a lane, fenced sets only: nothing of its epochs below `below` lands any more, and none of them
 * is opened. The last that was is `epoch`: it took so many there, and nothing of a later one. -EPROTO. */
MUST_CHECK int sender_on_fenced(struct sender *s, uint32_t lane, uint32_t below, uint32_t epoch,
                                uint64_t taken);
/* A lane's part of a STATE: what was taken, and whether that is the fence's last word. -EPROTO. */
MUST_CHECK int sender_on_state(struct sender *s, struct mono now,
                               const struct lane_state_lane *lane, struct sender_acked *ret_acked);
/* Not in fenced sets: the lane is doubted. All that is on it, and on no lane that isn't doubted, may go elsewhere, too; it stays
 * there as well. Returns how many chunks. Say it again when there is a new way: what was put on it since, for want of a
 * better one, follows. */
uint32_t sender_on_suspect(struct sender *s, uint32_t lane);
/* It was a mistake, or is over: what waits in the pool and is on this lane needs no second way. */
void sender_on_trusted(struct sender *s, uint32_t lane);
void sender_lane_info(const struct sender *s, uint32_t lane, struct sender_lane_info *ret_info);
/* By lane, LANE_MAX of them; there while the sender is, and true at any time. */
const struct lane_load *sender_loads(const struct sender *s);

/* -- comms. Returns the number for OPEN (>= 0), -ENOBUFS, -ENOMEM, -EINVAL. group_max: from the
 * handle. Chunks go after the receiver's first report of it (sender_on_report). */
MUST_CHECK int64_t sender_comm_open(struct sender *s, uint32_t group_max);
/* The receiver reported it. False until then: repeat OPEN on another lane if its own goes down. */
bool sender_comm_confirmed(const struct sender *s, uint32_t comm);
/* Every message is placed. True for a comm that isn't open. */
bool sender_comm_idle(const struct sender *s, uint32_t comm);
/* Comms with messages that aren't done: so many, and the number of each (index < count). Any call may reorder them. */
uint32_t sender_busy_count(const struct sender *s);
uint32_t sender_busy_comm(const struct sender *s, uint32_t index);
/* Messages started by sender_send, and placed; for CLOSE. Either may be NULL. False: not open. */
bool sender_comm_progress(const struct sender *s, uint32_t comm, uint64_t *ret_sent,
                          uint64_t *ret_placed);
/* Forgets it: sources are the caller's again when this returns. Before, reset the lanes that owe the rest of a frame of a
 * message that isn't placed, unless the peer closed the comm: zeros in there would be taken for the message. */
void sender_comm_close(struct sender *s, uint32_t comm);
/* The receiver closed it (its CLOSE came): bounce slots of messages that were never placed are free
 * again. Without this they stay taken: the receiver may still hold what was sent there. */
void sender_on_peer_close(struct sender *s, uint32_t comm);

/* -- messages. -EAGAIN: COMM_REQUESTS_MAX are in flight (answer *request = NULL); -EINVAL; -ENOMEM: larger than 512 KiB. */
MUST_CHECK int sender_send(struct sender *s, struct mono now, uint32_t comm,
                           const struct sender_message *message, uint64_t *ret_message);
/* The same bytes lie elsewhere now. False: the message is done, or unknown. */
bool sender_source_moved(struct sender *s, uint32_t comm, uint64_t message, const uint8_t *source);
/* Each once, when placed; within a comm in order. Source, copy and slot are free. */
bool sender_next_done(struct sender *s, struct sender_done *ret_done);
/* May the source still be read for this frame? False: it is placed, or its comm forgotten. */
bool sender_source_needed(const struct sender *s, uint32_t comm, uint64_t message);
/* The receiver has it, and throws away whatever still comes of it: what a frame still owes may be zeros. Of a comm that
 * is forgotten nobody knows. */
bool sender_placed(const struct sender *s, uint32_t comm, uint64_t message);

/* -- chunks. sender_next: the same answer until something changes. usable: bit k: lane k could take
 * a chunk; a hedge that is already on all of those is skipped. wanted_size: the chunk size for
 * messages not yet cut (the scheduler's). False: nothing may go now. sender_bind puts exactly that
 * chunk on the lane and fills the header but for times, bound and payload_crc. -EAGAIN: the lane
 * has SENDER_LANE_CHUNKS; -EINVAL: not what sender_next said, or the lane isn't open. */
bool sender_next(struct sender *s, uint32_t usable, uint32_t wanted_size,
                 struct sender_chunk *ret_chunk);
MUST_CHECK int sender_bind(struct sender *s, struct mono now, const struct sender_chunk *chunk,
                           uint32_t lane, struct lane_chunk *ret_header);
/* Not in fenced sets: the lane's oldest unacknowledged chunk, if bound before `before`, on this lane only, and the
 * pool has nothing to send: returns it to the pool as well as leaving it; more: if it goes twice already,
 * the oldest behind it that doesn't. False: none. */
bool sender_hedge(struct sender *s, uint32_t lane, struct mono before, bool more);
/* Not in fenced sets: the newest chunk of the lane is there to ask how that one is, and goes by another as well. False: it does
 * already, or can't. */
bool sender_double(struct sender *s, uint32_t lane);
/* Some chunk waits to be sent, whether it may go by now or not. */
bool sender_waiting(const struct sender *s);
/* Some chunk is on a lane, or came back from one. */
bool sender_on_their_way(const struct sender *s);
/* The receiver's bounce slots that are in use. */
uint32_t sender_slots(const struct sender *s);
/* Bytes not yet on any lane. */
uint64_t sender_pending_bytes(const struct sender *s);

/* -- facts from the receiver's STATE. taken: of that epoch (an older epoch's is ignored). */
MUST_CHECK int sender_on_taken(struct sender *s, struct mono now, uint32_t lane, uint32_t epoch,
                               uint64_t taken, struct sender_acked *ret_acked);
/* The comm's part of a report; older ones than the last seen only count where they say more. Lanes' counts
 * are sender_on_taken's. */
MUST_CHECK int sender_on_report(struct sender *s, struct mono now,
                                const struct lane_report *report);
/* The same from a CLOSE, which has no sequence: what is granted only grows by it. */
MUST_CHECK int sender_on_progress(struct sender *s, struct mono now, uint32_t comm, uint64_t placed,
                                  uint64_t posted, uint64_t granted);
MUST_CHECK int sender_on_post(struct sender *s, const struct lane_post *post);
/* This device of the receiver's refused a key: what was told of its keys is forgotten until it is told again. */
void sender_forget_keys(struct sender *s, uint32_t device);

const struct bug_note *sender_bug(const struct sender *s);
void sender_counters_get(const struct sender *s, struct sender_counters *ret_counters);
