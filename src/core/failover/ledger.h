/* ledger.h: the receiver's record of the bytes of each message that count. It alone makes delivery exactly once.
 *
 * One ledger for each lane set, at its receiving end. Chunks of a message may come over any lane, several times, partly, a day
 * late, or after the message is done and its memory belongs to the program again. For each chunk the ledger decides where its
 * bytes may go. The proof is in docs/decisions/002-exactly-once.md; its rules:
 *
 *   - A chunk is free, claimed by one lane that reads it, or set. Set is final.
 *   - Bytes go to a posted buffer only while the chunk's bit is clear: from its one claimant, or by one copy of verified bytes
 *     from staging. The answer is valid until the lock is released: ask again before each further read (ledger_target).
 *   - A bit is set after the whole chunk was verified. A message is done when all bits are set. Message and comm numbers are
 *     never reused, so a later chunk can't touch its buffer.
 *   - A lane that goes down loses its claim; (lane, epoch) never comes back, epoch + 1 may.
 *
 * The caller holds the set's lock from ledger_begin or ledger_target until the bytes that it then reads are in place and
 * ledger_got or ledger_end was called (a "turn"), and around every other call. Memory:
 *   staging   one buffer for each lane, 1 << LANE_CHUNK_SHIFT_MAX bytes, the caller's; only that lane writes to it
 *   slots     bounce slots of LANE_EAGER_SIZE_MAX bytes, the last ones of LANE_LARGE_SIZE_MAX or more (ledger_slots_hold),
 *             numbered, the caller's
 *   buffers   NCCL's, from ledger_post until the request is done (ledger_next_done) or its comm is closed
 *
 * The ledger only computes with addresses; it never reads or writes the memory behind them.
 *
 *   header whole ──► ledger_begin ──► target ─┐
 *        ┌── read some bytes there ◄──────────┤ until left == 0; each time a new turn may have begun
 *        └─► ledger_got ──► ledger_target ────┘
 *            ledger_end(crc fits?) ──► perhaps a copy to make, now; then ledger_next_done, ledger_next_report
 *
 * RC queue pairs write without asking. There the fence is the queue pair, and ledger_on_written records a chunk after its
 * header's SEND has completed. A set that may have such lanes is `fenced`. In it, the end of each lane, of any kind, is reported
 * as final (lane_state_lane.fenced_below), repeatedly until the sender is known to have got it. Copied bytes pass through
 * staging, so that no half-read chunk overwrites bytes that a WRITE has made valid.
 *
 * Errors: LEDGER_LANE_DOWN: the peer sent something forbidden, or bytes were damaged. Close that lane; all else goes on.
 * LEDGER_BROKEN is final: an invariant does not hold (ledger_bug has it), or the peer repeats nonsense. Fence every lane, answer
 * every request with ncclInternalError, and deliver nothing more.
 *
 * Cost: about 20 ns a chunk. Memory: ledger_new claims all except comms. ledger_comm_open claims about 120 bytes for each message
 * in flight (COMM_REQUESTS_MAX * 2 * group_max of them), and ledger_post 500 for the first receive of more than 512 KiB in each
 * of those places. No other call allocates. */
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
    uint32_t large; /* so many of them, the last ones, have LANE_LARGE_SIZE_MAX bytes */
    uint32_t comms; /* open at a time, <= SET_COMMS_MAX */
    bool fenced;    /* lanes may write without asking (LEDGER_WRITES) */
    /* When a report (STATE) is due after a change; 0: the default in brackets. */
    uint32_t report_chunks;   /* [2] */
    uint32_t report_bytes;    /* [256 KiB] */
    struct span report_delay; /* [500 us] */
    /* [2 ms], doubling to 100 ms: the report of a fence is repeated until it is heard */
    struct span fence_repeat;
    struct span
        report_repeat; /* [10 ms], doubling to 100 ms: repeats while a posted receive gets nothing */
};

enum ledger_verdict {
    LEDGER_OK,
    LEDGER_LANE_DOWN,
    LEDGER_BROKEN,
};

/* The destination of the next bytes of a lane's present chunk. */
enum ledger_place {
    LEDGER_BUFFER,  /* the posted buffer itself */
    LEDGER_STAGING, /* the lane's own staging buffer */
    LEDGER_SLOT,    /* a bounce slot */
    LEDGER_BIN,     /* nowhere: read and discard; no checksum needed */
};
struct ledger_target {
    enum ledger_place place;
    uint8_t slot;  /* LEDGER_SLOT: its number */
    uint8_t *to;   /* LEDGER_BUFFER: the address */
    uint32_t at;   /* LEDGER_STAGING, LEDGER_SLOT: offset in there */
    uint32_t left; /* remaining bytes of this chunk */
};

/* Bytes that the caller must copy in the same turn, before its next call to the ledger. */
struct ledger_copy {
    bool wanted;
    bool ordered; /* by ascending stores of 8 bytes: a program already polls the buffer */
    bool staging; /* from the start of `lane`'s staging buffer; false: from bounce slot `slot` */
    uint8_t slot;
    uint8_t lane;
    uint8_t *to; /* NULL: from staging to bounce slot `slot` */
    uint32_t size;
};

/* The way in which a lane delivers chunks. */
enum ledger_way {
    /* this end reads them, in turns: TCP, and queue pairs that send into this end's memory */
    LEDGER_READS,
    /* its NIC may also write the posted buffer without asking; in fenced sets only */
    LEDGER_WRITES,
};

/* One receive: a group of buffers, each for one message. */
struct ledger_buffer {
    uint8_t *data;
    uint32_t size; /* the message may be shorter */
    int32_t tag;   /* used only if group_max > 1 */
};
struct ledger_receive {
    uint64_t cookie; /* returned when done */
    uint32_t count;  /* 1..group_max */
    /* unverified bytes must not become visible in the buffer (early-completion hint, GPU polls) */
    bool staged;
    struct ledger_buffer buffers[COMM_GROUP_MAX];
};
struct ledger_done {
    uint32_t comm;
    uint64_t cookie;
    uint32_t count;
    uint32_t sizes[COMM_GROUP_MAX]; /* bytes that arrived in each buffer */
};

/* A message that is larger than its posted receive. */
struct ledger_misfit {
    uint32_t comm;
    uint64_t message;
    uint32_t size, room;
};

struct ledger_counters {
    uint64_t chunks, bytes;    /* of chunks that set a bit */
    uint64_t binned, staged;   /* chunks that were read and discarded; chunks through staging */
    uint64_t eager_early;      /* messages that came before the receive was posted */
    uint64_t damaged, refused; /* wrong checksums; forbidden frames */
    uint64_t resent;           /* with LANE_CHUNK_RESENT */
};

/* NULL: out of memory, or the configuration is out of range. */
struct ledger *ledger_new(const struct ledger_config *config);
void ledger_free(struct ledger *l); /* NULL is allowed */
/* The set is fenced, by the greetings of its first lane: must be called before that lane opens. */
void ledger_fence(struct ledger *l);
/* The size of a large slot; without this call LANE_LARGE_SIZE_MAX. */
void ledger_slots_hold(struct ledger *l, uint32_t size);

/* -- lanes. A lane starts closed. ledger_lane_open: a HELLO for (lane, epoch) was authenticated. -ESTALE: the epoch was used
 * already, or is older. -EBUSY: the lane is still open: call ledger_lane_down first (a new epoch means that the peer has given up
 * the old one). -EINVAL: no such lane, or a way that such a set doesn't have. */
MUST_CHECK int ledger_lane_open(struct ledger *l, uint32_t lane, uint32_t epoch,
                                enum ledger_way way);
/* (lane, epoch) is over, for any reason: its claim ends. The caller never reads from it again, and none of its bytes land any
 * more: a lane that writes is silent, and its writes are recorded. Idempotent; an older epoch is ignored. */
void ledger_lane_down(struct ledger *l, uint32_t lane, uint32_t epoch);
/* A greeting for `epoch` came: no older one can be opened any more, however late its greeting comes. The lane must be down. */
void ledger_lane_bar(struct ledger *l, uint32_t lane, uint32_t epoch);
/* Fenced sets: the lane's state in the peer's STATE. In use: the peer has got the fence of earlier epochs. Down, and not open
 * here: a greeting in flight comes too late, and the peer is told so. Closed: the peer asks no more. */
void ledger_lane_heard(struct ledger *l, uint32_t lane, uint32_t epoch, enum lane_state state);
/* The number of CHUNK frames that were fully taken on the lane's newest epoch. Each has its bit set (or its comm is closed). */
uint64_t ledger_lane_taken(const struct ledger *l, uint32_t lane, uint32_t *ret_epoch);

/* -- comms, numbered by the sender, never twice. -EALREADY: that number was opened before (a repeated OPEN): do nothing, or
 * report again if it is open. Numbers 4096 below the highest count as opened. -EINVAL: out of range; -ENOBUFS: config.comms are
 * open; -ENOMEM. */
MUST_CHECK int ledger_comm_open(struct ledger *l, uint32_t comm, uint32_t group_max);
/* All its receives are void, and its buffers belong to the caller again when this returns; later chunks for it are discarded. */
void ledger_comm_close(struct ledger *l, uint32_t comm);
/* True if everything posted is done, or if the comm isn't open. */
/* True if a bounce slot is filling or full. */
bool ledger_slots_used(const struct ledger *l);
bool ledger_comm_idle(const struct ledger *l, uint32_t comm);
/* The comm's progress; either pointer may be NULL. False: not open. */
bool ledger_comm_progress(const struct ledger *l, uint32_t comm, uint64_t *ret_placed,
                          uint64_t *ret_posted);
/* The number of bytes that have arrived for it, each counted once. False: not open. */
bool ledger_comm_arrived(const struct ledger *l, uint32_t comm, uint64_t *ret_bytes);
/* Incast control: at most `bytes` may be in flight on this comm. UINT64_MAX: no limit (at first). Bytes already in flight are not
 * affected. */
void ledger_comm_window(struct ledger *l, uint32_t comm, uint64_t bytes);

/* -- receives. -EAGAIN: too many in flight (answer *request = NULL); -EINVAL: count or size out of range, comm not open;
 * -EMSGSIZE: the message came early and is larger (ledger_next_misfit); -EIO: the ledger is broken; -ENOMEM: larger than 512 KiB.
 * If the message has come early, *ret_copy is the copy to make, and the receive is done. If a lane is reading it, the lane
 * continues in the buffer, and *ret_copy is about the bytes read so far. ret_first: the number of the group's first message. */
MUST_CHECK int ledger_post(struct ledger *l, struct mono now, uint32_t comm,
                           const struct ledger_receive *receive, uint64_t *ret_first,
                           struct ledger_copy *ret_copy);
/* The POST for a message without a chunk so far; false: it needs none (any more). For group_max > 1 and queue pairs: sent after
 * ledger_post, and again on another lane while true. The caller sets the rkeys. Staged: no address, because nothing is written
 * there. */
bool ledger_post_frame(const struct ledger *l, uint32_t comm, uint64_t message,
                       struct lane_post *ret_post);
/* A comm with a receive that was too small, once: its requests fail, other comms go on. Later chunks for it are discarded; close
 * it. */
bool ledger_next_misfit(struct ledger *l, struct ledger_misfit *ret_misfit);
/* Complete receives, each once; the buffer belongs to the caller again. */
bool ledger_next_done(struct ledger *l, struct ledger_done *ret_done);

/* -- chunks that this end reads. ledger_begin: a whole CHUNK header came on (lane, epoch). For a chunk of 0 bytes, ledger_end
 * follows at once. */
MUST_CHECK enum ledger_verdict ledger_begin(struct ledger *l, struct mono now, uint32_t lane,
                                            uint32_t epoch, const struct lane_chunk *chunk,
                                            struct ledger_target *ret_target);
/* The present destination for the rest of the lane's chunk: it may have become LEDGER_BIN. */
MUST_CHECK enum ledger_verdict ledger_target(struct ledger *l, uint32_t lane, uint32_t epoch,
                                             struct ledger_target *ret_target);
/* So many more bytes were read to the destination from this turn's ledger_begin or ledger_target. */
MUST_CHECK enum ledger_verdict ledger_got(struct ledger *l, uint32_t lane, uint32_t epoch,
                                          uint32_t bytes);
/* The payload is complete. crc_fits: its checksum is right, or it has none; ignored if it was discarded. */
MUST_CHECK enum ledger_verdict ledger_end(struct ledger *l, struct mono now, uint32_t lane,
                                          uint32_t epoch, bool crc_fits,
                                          struct ledger_copy *ret_copy);

/* -- chunks over queue pairs: the header's SEND completed after its WRITE, to the posted buffer, or with EAGER to its slot. */
MUST_CHECK enum ledger_verdict ledger_on_written(struct ledger *l, struct mono now, uint32_t lane,
                                                 uint32_t epoch, const struct lane_chunk *chunk,
                                                 bool crc_fits, struct ledger_copy *ret_copy);

/* -- reports. True: send this STATE now, on *ret_lane, which delivered last (-1: any usable one; LEDGER_EVERY_LANE: on all,
 * because it has the last word on a lane). It has one comm's progress, and each open lane with a changed count. The caller adds
 * states of lanes, delays, time and active senders. It may be lost: cumulative counts come again with the next one, and after
 * ledger_lane_down and ledger_lane_open everything is news again. */
#define LEDGER_EVERY_LANE (-2)
bool ledger_next_report(struct ledger *l, struct mono now, struct lane_report *ret_report,
                        int *ret_lane);
/* The last report may be lost: all cumulative counts are news again. */
void ledger_report_again(struct ledger *l);
/* The time at which ledger_next_report has something, if nothing happens before; in the past if now; MONO_NEVER. */
struct mono ledger_deadline(const struct ledger *l);

/* True after LEDGER_BROKEN: nothing more is delivered. */
bool ledger_broken(const struct ledger *l);
/* The broken invariant; NULL while all hold, or if the peer's frames or the poster broke it. */
const struct bug_note *ledger_bug(const struct ledger *l);
void ledger_counters_get(const struct ledger *l, struct ledger_counters *ret_counters);
