/* ledger.h: the receiver's book: which byte of which message counts. It alone makes delivery
 * exactly once.
 *
 * One ledger per lane set at its receiving end. Chunks of a message may come over any lane, several
 * times, half, late by a day, or after the message is done and its memory belongs to somebody else.
 * For each the ledger says where its bytes may go. The whole argument is
 * docs/decisions/002-exactly-once.md; its rules:
 *
 *   - A chunk is free, claimed by one lane's reading of it, or set. Set is final.
 *   - Bytes go to a posted buffer only while the chunk's bit is clear, by its one claimant, or by
 *     one copy of verified bytes from staging. What was asked is valid until the lock is released:
 *     ask again before each further read (ledger_target).
 *   - A bit is set after the whole chunk was verified. A message is done when all bits are set;
 *     message and comm numbers are never used again, so nothing that comes later can touch its
 *     buffer.
 *   - A lane that goes down loses its claim; (lane, epoch) never comes back, epoch + 1 may.
 *
 * The caller holds the set's lock from ledger_begin or ledger_target until the bytes that it then
 * read are in place and ledger_got or ledger_end was called (a "turn"), and around every other
 * call. Memory:
 *   staging   one buffer per lane, 1 << LANE_CHUNK_SHIFT_MAX bytes, the caller's; written by that lane only
 *   slots     bounce slots of LANE_EAGER_SIZE_MAX bytes, the last of LANE_LARGE_SIZE_MAX or more (ledger_slots_hold), numbered,
 *             the caller's
 *   buffers   NCCL's, from ledger_post until the request is done (ledger_next_done) or its comm closed
 * The ledger only does arithmetic with addresses; it neither reads nor writes what they point to.
 *
 *   header whole ──► ledger_begin ──► target ─┐
 *        ┌── read some bytes there ◄──────────┤ until left == 0; each time a new turn may have begun
 *        └─► ledger_got ──► ledger_target ────┘
 *            ledger_end(crc fits?) ──► maybe a copy to make, now; then ledger_next_done, ledger_next_report
 *
 * RC queue pairs write unasked: there the fence is the queue pair, and ledger_on_written books a
 * chunk whose header's SEND completed. A set that may have such lanes is `fenced`: the end of each of its lanes, of whatever
 * kind, is told as final (lane_state_lane.fenced_below), again and again until the sender is known to have heard; and
 * what is copied goes by way of staging, so that no half-read chunk lies on bytes that a WRITE made true.
 *
 * Errors: LEDGER_LANE_DOWN means that the peer said what it must not, or bytes were damaged: close
 * that lane, the rest goes on. LEDGER_BROKEN is final: an invariant does not hold (ledger_bug says
 * which) or the peer insists on nonsense: fence every lane, answer every request with
 * ncclInternalError, deliver nothing more.
 *
 * Cost: about 20 ns a chunk. Memory: ledger_new claims all but comms; ledger_comm_open claims about
 * 120 bytes per message in flight (COMM_REQUESTS_MAX * 2 * group_max of them), and ledger_post 500 for
 * the first receive of more than 512 KiB in each of those places; nothing else allocates. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/limits.h"
#include "base/time.h"
#include "wire/lane.h"

struct ledger;

struct ledger_config {
    uint32_t slots; /* bounce slots, <= LANE_EAGER_SLOTS_MAX; 0: no eager messages */
    uint32_t large; /* so many of them, the last, hold LANE_LARGE_SIZE_MAX bytes */
    uint32_t comms; /* open at a time, <= SET_COMMS_MAX */
    bool fenced;    /* lanes may write unasked (LEDGER_WRITES) */
    /* When a report (STATE) is due after something new; defaults in brackets if 0. */
    uint32_t report_chunks;   /* [2] */
    uint32_t report_bytes;    /* [256 KiB] */
    struct span report_delay; /* [500 us] */
    struct span fence_repeat; /* [2 ms], doubling to 100 ms: a fence's report, until it is heard */
    struct span
        report_repeat; /* [10 ms], doubling to 100 ms: again, while a posted receive waits in vain */
};

enum ledger_verdict {
    LEDGER_OK,
    LEDGER_LANE_DOWN,
    LEDGER_BROKEN,
};

/* Where the next bytes of a lane's present chunk go. */
enum ledger_place {
    LEDGER_BUFFER,  /* the posted buffer itself */
    LEDGER_STAGING, /* the lane's own staging buffer */
    LEDGER_SLOT,    /* a bounce slot */
    LEDGER_BIN,     /* nowhere: read and forget; no checksum needed */
};
struct ledger_target {
    enum ledger_place place;
    uint8_t slot;  /* LEDGER_SLOT: its number */
    uint8_t *to;   /* LEDGER_BUFFER: where exactly */
    uint32_t at;   /* LEDGER_STAGING, LEDGER_SLOT: offset in there */
    uint32_t left; /* bytes still to come of this chunk */
};

/* Bytes to be copied by the caller in the same turn, before it calls the ledger again. */
struct ledger_copy {
    bool wanted;
    bool ordered; /* by ascending stores of 8 bytes: somebody watches the buffer already */
    bool staging; /* from the start of `lane`'s staging buffer, else of bounce slot `slot` */
    uint8_t slot;
    uint8_t lane;
    uint8_t *to; /* NULL: from staging to bounce slot `slot` */
    uint32_t size;
};

/* How a lane brings chunks. */
enum ledger_way {
    LEDGER_READS,  /* we read them, in turns: TCP, queue pairs that send into memory of ours */
    LEDGER_WRITES, /* its NIC may also write the posted buffer unasked; fenced sets only */
};

/* One receive: a group of buffers, each for one message. */
struct ledger_buffer {
    uint8_t *data;
    uint32_t size; /* what arrives may be shorter */
    int32_t tag;   /* only looked at if group_max > 1 */
};
struct ledger_receive {
    uint64_t cookie; /* handed back when done */
    uint32_t count;  /* 1..group_max */
    bool staged; /* no unverified byte may show in the buffer (early-completion hint, GPU polls) */
    struct ledger_buffer buffers[COMM_GROUP_MAX];
};
struct ledger_done {
    uint32_t comm;
    uint64_t cookie;
    uint32_t count;
    uint32_t sizes[COMM_GROUP_MAX]; /* what arrived in each buffer */
};

/* A message that is larger than the receive posted for it. */
struct ledger_misfit {
    uint32_t comm;
    uint64_t message;
    uint32_t size, room;
};

struct ledger_counters {
    uint64_t chunks, bytes;    /* that set a bit */
    uint64_t binned, staged;   /* chunks read in vain; by way of staging */
    uint64_t eager_early;      /* came before the receive was posted */
    uint64_t damaged, refused; /* checksums, frames that must not be */
    uint64_t resent;           /* that carried LANE_CHUNK_RESENT */
};

/* NULL: no memory, or the configuration is out of range. */
struct ledger *ledger_new(const struct ledger_config *config);
void ledger_free(struct ledger *l); /* accepts NULL */
/* The set is fenced, as the greetings of its first lane tell: before that is open. */
void ledger_fence(struct ledger *l);
/* A large slot holds so much; before it is told, LANE_LARGE_SIZE_MAX. */
void ledger_slots_hold(struct ledger *l, uint32_t size);

/* -- lanes. A lane starts closed. ledger_lane_open: a HELLO for (lane, epoch) was authenticated.
 * -ESTALE: an epoch that was there already, or an older one; -EBUSY: the lane still is open: call
 * ledger_lane_down first (a new epoch says that the peer has given up the old one); -EINVAL: no
 * such lane, or no way of such a set. */
MUST_CHECK int ledger_lane_open(struct ledger *l, uint32_t lane, uint32_t epoch,
                                enum ledger_way way);
/* (lane, epoch) is over, whoever says so: its claim lapses. The caller never reads from it again, and nothing of it lands any
 * more: a lane that writes is silent, and what it wrote is booked. Idempotent; an older epoch is ignored. */
void ledger_lane_down(struct ledger *l, uint32_t lane, uint32_t epoch);
/* A greeting for `epoch` came: no older one is opened any more, however late its own comes. The lane must be down. */
void ledger_lane_bar(struct ledger *l, uint32_t lane, uint32_t epoch);
/* Fenced sets: how the peer has the lane, as its STATE tells. In use: it has heard of the fence of the epochs before. Down,
 * and it isn't open here: what is on its way to open it comes too late, and the peer is told so. Closed: it asks no more. */
void ledger_lane_heard(struct ledger *l, uint32_t lane, uint32_t epoch, enum lane_state state);
/* CHUNK frames fully taken on the lane's newest epoch. Each has its bit set (or its comm is
 * closed). */
uint64_t ledger_lane_taken(const struct ledger *l, uint32_t lane, uint32_t *ret_epoch);

/* -- comms, numbered by the sender, never twice. -EALREADY: that number was opened before (an OPEN
 * that came twice): do nothing, or report again if it is open. Numbers 4096 below the highest count as
 * opened. -EINVAL: out of range; -ENOBUFS: config.comms are open; -ENOMEM. */
MUST_CHECK int ledger_comm_open(struct ledger *l, uint32_t comm, uint32_t group_max);
/* All its receives are void, its buffers the caller's again as soon as this returns; whatever still
 * comes for it goes to the bin. */
void ledger_comm_close(struct ledger *l, uint32_t comm);
/* Everything posted is done. True for a comm that isn't open. */
/* Some bounce slot is filling or full. */
bool ledger_slots_used(const struct ledger *l);
bool ledger_comm_idle(const struct ledger *l, uint32_t comm);
/* How far: either may be NULL. False: not open. */
bool ledger_comm_progress(const struct ledger *l, uint32_t comm, uint64_t *ret_placed,
                          uint64_t *ret_posted);
/* Bytes that have come for it, each once. False: not open. */
bool ledger_comm_arrived(const struct ledger *l, uint32_t comm, uint64_t *ret_bytes);
/* Incast control: at most `bytes` may be on their way on this comm. UINT64_MAX: no limit (at first).
 * What is on its way already stays so. */
void ledger_comm_window(struct ledger *l, uint32_t comm, uint64_t bytes);

/* -- receives. -EAGAIN: too many in flight (answer *request = NULL); -EINVAL: count or size out of
 * range, comm not open; -EMSGSIZE: the message came early and is larger (ledger_next_misfit); -EIO: the
 * ledger is broken; -ENOMEM: larger than 512 KiB. If the message has come early, *ret_copy says
 * what to copy, and it is done. If a lane is reading it, that goes on in the buffer, and *ret_copy is of what it has read.
 * ret_first: number of the group's first message. */
MUST_CHECK int ledger_post(struct ledger *l, struct mono now, uint32_t comm,
                           const struct ledger_receive *receive, uint64_t *ret_first,
                           struct ledger_copy *ret_copy);
/* The POST for a message whose first chunk hasn't come yet; false: it needs none (any more). For group_max > 1 and queue
 * pairs: sent after ledger_post, and again on another lane while true. rkeys are the caller's. Staged: no address, for
 * nothing is written there. */
bool ledger_post_frame(const struct ledger *l, uint32_t comm, uint64_t message,
                       struct lane_post *ret_post);
/* A comm whose receive was too small, once: its requests fail, the others go on. What still comes for it goes to the
 * bin; close it. */
bool ledger_next_misfit(struct ledger *l, struct ledger_misfit *ret_misfit);
/* Receives that are complete, each once; the buffer is the caller's again. */
bool ledger_next_done(struct ledger *l, struct ledger_done *ret_done);

/* -- chunks that we read. ledger_begin: a CHUNK header came whole on (lane, epoch). For a chunk of 0
 * bytes, ledger_end follows at once. */
MUST_CHECK enum ledger_verdict ledger_begin(struct ledger *l, struct mono now, uint32_t lane,
                                            uint32_t epoch, const struct lane_chunk *chunk,
                                            struct ledger_target *ret_target);
/* Where the rest of the lane's present chunk goes, as of now: it may have become LEDGER_BIN since.
 * */
MUST_CHECK enum ledger_verdict ledger_target(struct ledger *l, uint32_t lane, uint32_t epoch,
                                             struct ledger_target *ret_target);
/* That many more bytes were read to where ledger_begin or ledger_target of this turn said. */
MUST_CHECK enum ledger_verdict ledger_got(struct ledger *l, uint32_t lane, uint32_t epoch,
                                          uint32_t bytes);
/* The payload is whole. crc_fits: its checksum, or true if it has none; not looked at in the bin.
 * */
MUST_CHECK enum ledger_verdict ledger_end(struct ledger *l, struct mono now, uint32_t lane,
                                          uint32_t epoch, bool crc_fits,
                                          struct ledger_copy *ret_copy);

/* -- chunks over queue pairs: the header's SEND completed, its WRITE before it: to the posted
 * buffer, or with EAGER to its slot. */
MUST_CHECK enum ledger_verdict ledger_on_written(struct ledger *l, struct mono now, uint32_t lane,
                                                 uint32_t epoch, const struct lane_chunk *chunk,
                                                 bool crc_fits, struct ledger_copy *ret_copy);

/* -- reports. True: send this STATE now, on *ret_lane, the one that delivered last (-1: any
 * usable; LEDGER_EVERY_LANE: it has the last word on a lane). It has one comm's progress and each open lane whose count is
 * news; the caller adds states of lanes, delays, time and active senders. It may be lost: what is cumulative comes again
 * with the next, and after ledger_lane_down and ledger_lane_open everything is news again. */
#define LEDGER_EVERY_LANE (-2)
bool ledger_next_report(struct ledger *l, struct mono now, struct lane_report *ret_report,
                        int *ret_lane);
/* The last report may not have arrived: all that is cumulative is news again. */
void ledger_report_again(struct ledger *l);
/* When ledger_next_report has something, if nothing else happens before: in the past if now;
 * MONO_NEVER. */
struct mono ledger_deadline(const struct ledger *l);

/* LEDGER_BROKEN was said: nothing more is delivered. */
bool ledger_broken(const struct ledger *l);
/* The broken invariant; NULL while all hold, or if it was broken by what the peer said or by who posted. */
const struct bug_note *ledger_bug(const struct ledger *l);
void ledger_counters_get(const struct ledger *l, struct ledger_counters *ret_counters);
