/* sender.h: the sending end's pool: messages cut into chunks, each with the lanes that carry it, until the receiver's ledger has
 * taken it. A lost lane loses no chunk, and no chunk is resent before that is safe.
 *
 * One for each lane set. A message is cut once, when its first chunk is picked: (message, offset, length) never change, however
 * often a chunk is sent. A chunk is in the pool, on one or more (lane, epoch)s, or taken.
 *
 *   sender_send ──► pool ── sender_next, scheduler picks the lane, sender_bind ──► on a lane
 *                    ▲                                                               │
 *                    ├── sender_on_lane_down (fenced sets: sender_on_fenced) ────────┤
 *                    └── sender_on_suspect, sender_hedge: once more, elsewhere ──────┤
 *            done ◄── sender_on_report(placed)      taken ◄── sender_on_taken ─────┘
 *
 * Flow: chunks of message m may be sent if m < posted (as reported by the receiver; with groups and config.posts: its POST came)
 * and the granted bytes suffice (or no chunk of the comm is in flight, or the message is small). A message of up to
 * LANE_EAGER_SIZE_MAX bytes needs neither if a bounce slot is free (groups: never eager). A message of a single chunk that fits a
 * large slot (sender_slots_hold) needs no posted receive if such a slot is free. A slot belongs to the sender from then until its
 * message is placed.
 *
 * The source must be readable until sender_next_done returns the message. After that, the rest of a half-sent frame on a live
 * lane is filled with zeros (sender_placed): the receiver discards it. The caller copies small messages, and may call the request
 * done at once; the copy must live until sender_next_done.
 *
 * Order: returned chunks first (oldest message), then messages of one chunk, then comms in turn, messages in order. Bounded:
 * SENDER_LANE_CHUNKS on a lane, COMM_REQUESTS_MAX messages for each comm. Memory: sender_new, sender_comm_open (4 kB), a lane's
 * first sender_lane_open (6 kB), the first message of more than 512 KiB in each of a comm's places (1 kB). No other call
 * allocates.
 *
 * The caller holds the set's lock around every call. -EPROTO from on_* functions: the peer reports something impossible (more
 * taken than was sent): treat it like the ledger's BROKEN. sender_bug: a bug of this end, with the same consequence. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/failover/lane_load.h"
#include "wire/lane.h"

#define SENDER_LANE_CHUNKS 128 /* unacknowledged, on each lane */

struct sender;

struct sender_config {
    uint32_t slots; /* the receiver's bounce slots; 0: no eager messages */
    uint32_t large; /* so many of them, the last ones, have LANE_LARGE_SIZE_MAX bytes */
    uint32_t comms; /* open at a time, <= SET_COMMS_MAX */
    /* some lane writes without asking: chunks of any dead lane wait for the receiver's report (sender_on_fenced); no hedges */
    bool fenced;
    bool posts; /* messages wait for their POST, except those that may come early */
};

struct sender_message {
    const uint8_t *source;
    uint32_t size; /* <= LANE_MESSAGE_SIZE_MAX */
    int32_t tag;
    uint64_t cookie; /* returned when done */
};
struct sender_done {
    uint32_t comm;
    uint64_t message, cookie;
};

/* The chunk to send next; it isn't bound to a lane yet. */
struct sender_chunk {
    uint32_t comm;
    uint64_t message, cookie;
    uint32_t offset, length;
    uint32_t size;   /* of the message */
    uint32_t not_on; /* bit k: not on lane k, because it is there already (a hedge) */
    bool eager, resent;
    bool gates;            /* its message has no other chunk left to send */
    struct mono queued;    /* when sender_send was called */
    const uint8_t *source; /* of this chunk's bytes */
    uint64_t address;      /* from POST: the address of its first byte; 0: none */
    struct lane_keys keys; /* from POST */
};

/* The information in an acknowledgement. */
struct sender_acked {
    uint32_t chunks;
    uint64_t bytes;
    struct mono sent; /* when the newest of them was bound; for a round trip */
    uint64_t load;    /* unacknowledged bytes on its lane then, itself included */
    bool alone;       /* its lane was empty: its delay is that of the path, not of a queue */
};

struct sender_lane_info {
    bool open;
    bool held; /* not open, and its chunks wait for the receiver's last report */
    uint32_t epoch;
    uint32_t chunks;      /* unacknowledged */
    uint64_t bytes;       /* of those chunks */
    uint64_t sent, taken; /* chunks, in this epoch */
    struct mono oldest;   /* when the oldest was bound; MONO_NEVER */
    uint32_t oldest_bytes;
};

struct sender_counters {
    uint64_t messages, chunks, bytes; /* first sends only */
    uint64_t resent, resent_bytes, hedged, eager;
};

/* NULL: out of memory, or the configuration is out of range. */
struct sender *sender_new(const struct sender_config *config);
void sender_free(struct sender *s); /* NULL is allowed */
/* The slots that the peer has for this set: the first `small` ones, and the first `large` ones of the config.large last ones,
 * which are large. Until this call all slots exist, and none is large. */
void sender_slots_granted(struct sender *s, uint32_t small, uint32_t large);
/* The size of the peer's large slots; without this call LANE_LARGE_SIZE_MAX. */
void sender_slots_hold(struct sender *s, uint32_t size);

/* The set is fenced, by the greetings of its first lane: must be called before that lane opens. */
void sender_fence(struct sender *s);
/* The receiver reports the place of each message: sets config.posts when that is known, before a message is sent. */
void sender_posts(struct sender *s);

/* -- lanes. -ESTALE: the epoch is not above the last; -EBUSY: it is open, or its chunks still wait for the fence; -EINVAL;
 * -ENOMEM. */
MUST_CHECK int sender_lane_open(struct sender *s, uint32_t lane, uint32_t epoch);
/* The lane is over. Its chunks return to the pool now: a half-sent frame can't be finished any more (the caller has closed the
 * lane), and the ledger discards repeated chunks. In a fenced set they wait, because a copy of a chunk may complete its message,
 * and a write of it may land later. Idempotent. */
void sender_on_lane_down(struct sender *s, uint32_t lane, uint32_t epoch);
/* The receiver's last report on a lane, in fenced sets only: nothing of its epochs below `below` lands any more, and none of them
 * is opened. The last opened one is `epoch`: the receiver took so many chunks there, and none of a later one. -EPROTO. */
MUST_CHECK int sender_on_fenced(struct sender *s, uint32_t lane, uint32_t below, uint32_t epoch,
                                uint64_t taken);
/* A lane's part of a STATE: the number of taken chunks, and whether that is the final report of a fence. -EPROTO. */
MUST_CHECK int sender_on_state(struct sender *s, struct mono now,
                               const struct lane_state_lane *lane, struct sender_acked *ret_acked);
/* Not in fenced sets: the lane is doubted. Its chunks that are on no undoubted lane may also be sent elsewhere; they stay on this
 * lane, too. Returns the number of chunks. Call it again when another lane becomes usable: then chunks that were put on it since,
 * for lack of a better one, follow. */
uint32_t sender_on_suspect(struct sender *s, uint32_t lane);
/* The doubt was wrong, or is over: chunks in the pool that are also on this lane need no second lane. */
void sender_on_trusted(struct sender *s, uint32_t lane);
void sender_lane_info(const struct sender *s, uint32_t lane, struct sender_lane_info *ret_info);
/* By lane, LANE_MAX of them; valid as long as the sender exists, and always up to date. */
const struct lane_load *sender_loads(const struct sender *s);

/* -- comms. Returns the number for OPEN (>= 0), -ENOBUFS, -ENOMEM, -EINVAL. group_max: from the handle. Chunks are sent after the
 * receiver's first report of it (sender_on_report). */
MUST_CHECK int64_t sender_comm_open(struct sender *s, uint32_t group_max);
/* True if the receiver has reported it. Until then: repeat OPEN on another lane if its own goes down. */
bool sender_comm_confirmed(const struct sender *s, uint32_t comm);
/* True if every message is placed, or if the comm isn't open. */
bool sender_comm_idle(const struct sender *s, uint32_t comm);
/* Comms with messages that aren't done: their number, and the number of each (index < count). Any call may reorder them. */
uint32_t sender_busy_count(const struct sender *s);
uint32_t sender_busy_comm(const struct sender *s, uint32_t index);
/* The numbers of messages that sender_send started, and of placed ones; for CLOSE. Either pointer may be NULL. False: not
 * open. */
bool sender_comm_progress(const struct sender *s, uint32_t comm, uint64_t *ret_sent,
                          uint64_t *ret_placed);
/* Forgets the comm: its sources belong to the caller again when this returns. Before that, reset lanes that still owe a part of a
 * frame of an unplaced message, unless the peer closed the comm: zeros in that frame would be taken for the message. */
void sender_comm_close(struct sender *s, uint32_t comm);
/* The receiver closed it (its CLOSE came): bounce slots of messages that were never placed are free again. Without this they stay
 * taken, because the receiver may still hold their content. */
void sender_on_peer_close(struct sender *s, uint32_t comm);

/* -- messages. -EAGAIN: COMM_REQUESTS_MAX are in flight (answer *request = NULL); -EINVAL; -ENOMEM: larger than 512 KiB. */
MUST_CHECK int sender_send(struct sender *s, struct mono now, uint32_t comm,
                           const struct sender_message *message, uint64_t *ret_message);
/* The same bytes are at another address now. False: the message is done, or unknown. */
bool sender_source_moved(struct sender *s, uint32_t comm, uint64_t message, const uint8_t *source);
/* Each message once, when placed; in order within a comm. Source, copy and slot are free. */
bool sender_next_done(struct sender *s, struct sender_done *ret_done);
/* True if the source is still needed for this frame. False: the message is placed, or its comm forgotten. */
bool sender_source_needed(const struct sender *s, uint32_t comm, uint64_t message);
/* True if the receiver has the message and discards later bytes of it: the rest of a frame may be zeros. False for a forgotten
 * comm. */
bool sender_placed(const struct sender *s, uint32_t comm, uint64_t message);

/* -- chunks. sender_next: the same answer until something changes. usable: bit k: lane k could take a chunk; a hedge that is
 * already on all of those is skipped. wanted_size: the chunk size for messages not yet cut (the scheduler's). False: nothing may
 * be sent now. sender_bind puts exactly that chunk on the lane and fills in the header except times, bound and payload_crc.
 * -EAGAIN: the lane has SENDER_LANE_CHUNKS; -EINVAL: not the chunk of sender_next, or the lane isn't open. */
bool sender_next(struct sender *s, uint32_t usable, uint32_t wanted_size,
                 struct sender_chunk *ret_chunk);
MUST_CHECK int sender_bind(struct sender *s, struct mono now, const struct sender_chunk *chunk,
                           uint32_t lane, struct lane_chunk *ret_header);
/* Not in fenced sets: hedges the lane's oldest unacknowledged chunk, if it was bound before `before`, is on this lane only, and
 * the pool has nothing to send: it returns to the pool and stays on the lane. more: if it is on two lanes already, the oldest
 * later one that isn't. False: none. */
bool sender_hedge(struct sender *s, uint32_t lane, struct mono before, bool more);
/* Not in fenced sets: the lane's newest chunk only tests that lane, and is sent over another one, too. False: it is already, or
 * can't be. */
bool sender_double(struct sender *s, uint32_t lane);
/* True if a chunk waits to be sent, even if it may not be sent now. */
bool sender_waiting(const struct sender *s);
/* True if a chunk is on a lane, or came back from one. */
bool sender_on_their_way(const struct sender *s);
/* Number of the receiver's bounce slots in use. */
uint32_t sender_slots(const struct sender *s);
/* Bytes that are on no lane yet. */
uint64_t sender_pending_bytes(const struct sender *s);

/* -- facts from the receiver's STATE. taken: for that epoch (an older epoch's is ignored). */
MUST_CHECK int sender_on_taken(struct sender *s, struct mono now, uint32_t lane, uint32_t epoch,
                               uint64_t taken, struct sender_acked *ret_acked);
/* The comm's part of a report. Reports older than the newest one only count if their numbers are higher. The counts of lanes are
 * for sender_on_taken. */
MUST_CHECK int sender_on_report(struct sender *s, struct mono now,
                                const struct lane_report *report);
/* The same from a CLOSE, which has no sequence: it can only increase the granted bytes. */
MUST_CHECK int sender_on_progress(struct sender *s, struct mono now, uint32_t comm, uint64_t placed,
                                  uint64_t posted, uint64_t granted);
MUST_CHECK int sender_on_post(struct sender *s, const struct lane_post *post);
/* This device of the receiver refused a key: the reported keys are forgotten until they are reported again. */
void sender_forget_keys(struct sender *s, uint32_t device);

const struct bug_note *sender_bug(const struct sender *s);
void sender_counters_get(const struct sender *s, struct sender_counters *ret_counters);
