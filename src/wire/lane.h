/* lane.h: the protocol of two processes of a job over a lane: every frame, to bytes and back.
 *
 * A lane is a byte stream (or a queue of sends) that carries frames without gaps, little endian, u8 type first; a CHUNK is
 * followed by its payload. Control frames are *state, not events*: cumulative, idempotent; they may be lost, come twice, or come
 * on another lane than expected.
 *
 *   sender ── HELLO ─────────────────► receiver     the sender of the first communicator connects
 *          ◄── HELLO_OK | HELLO_NO ──
 *          ── PROOF ─────────────────►              version 4; the following frames don't wait
 *          ── OPEN(comm) ────────────►              one per communicator, over any lane of the set
 *          ── CHUNK … CHUNK … ───────►
 *          ◄── STATE ────────────────               what was taken, placed, posted; lanes' states
 *          ◄── POST ─────────────────               where and with which tag a message goes: groups, RC
 *          ◄─► PING, PONG, CLOSE ────►
 *
 * From version 4 on frames go both ways: either end opens communicators and sends on them, and each numbers its own
 * (core/failover/halves.h).
 *
 * CHUNK, 64 bytes + payload            STATE, 48 bytes + 32 per lane
 *   0 u8  type                           0 u8  type
 *   1 u8  flags (enum lane_chunk_flag)   1 u8  lanes that follow, <= LANE_MAX
 *   2 u16 lane                           2 u16 active senders here (version 1: 0)
 *   4 u32 epoch                          4 u32 sequence, grows with each STATE of this end
 *   8 u32 comm                           8 u64 placed: messages below are complete
 * 12 i32 tag                           16 u64 posted: messages below have a buffer 16 u64 message                       24 u64
 * granted: total bytes of chunks 24 u32 offset                        32 i64 now, fleet ns 28 u32 length
 * 40 u32 comm, or LANE_COMM_NONE: then 8-31 are 0 32 u32 message's size                44 u32 crc32c of bytes 0-43 and of all
 * lanes 36 u32 posted -> sent, ns (v1: 0)    per lane: 40 i64 sent at, fleet ns               0 u16 lane       2 u8 state    3 u8
 * reason 48 u32 its half-width, ns              4 u32 epoch      8 u64 chunks taken 52 u8  buffer in its group            16 u32
 * owd, least of the last 10 s (v1: 0), ns 53 u8  bounce slot                    20 u32 owd, last (v1: 0), ns 54 u8  grid: log2 of
 * chunk size       24 u32 fenced below (before v5: 0)   28 u32 0 55 u8  0 56 u32 crc32c of the payload          POST, 56 bytes 60
 * u32 crc32c of bytes 0-59            0 u8  type       1 u8 index    2 u8 count    3 u8 keys
 *                                         4 u32 comm       8 u64 group's first message
 * OPEN, 64 bytes                         16 u64 address   24 u32 size   28 i32 tag
 *   0 u8  type    1 u8 group_max         32 u32 rkey[4]   48 u8 device[4]   52 u32 crc32c of 0-51
 *   2 u8  class   3 u8 0   4 u32 comm
 *   8 u64 cookie: that of the handle     PING, PONG, 40 bytes
 * 16 u64 job    24 u32 rank  28 u32 0    0 u8  type   1 u8 0   2 u16 lane   4 u32 epoch 32 u64 * 3: 0  56 u32 0  60 u32 crc    8
 * u32 sequence       12 u32 half-width of sent, ns
 *                                        16 i64 sent           24 i64 received (PING: 0)
 * CLOSE, 32 bytes                        32 u32 half-width of received (PING: 0)
 *   0 u8  type    1 u8 flags             36 u32 crc
 *   2 u8  reason  3 u8 0   4 u32 comm
 *   8 u64 messages in total             HELLO_NO, 32 bytes, the same in every version
 * 16 u64 placed                          0 u8 type  1 u8 newest  2 u8 lowest  3 u8 reason 24 u32 0      28 u32 crc
 * 4 u32 magic   8 u64 context of the end that refuses
 *                                        16 u64 0      24 u32 0  28 u32 crc
 * HELLO, HELLO_OK, 256 bytes; bytes 0-7 are the same in every version
 *   0 u8  type    1 u8 newest version (HELLO_OK: the one agreed)    2 u8 lowest    3 u8 flags
 *   4 u32 magic   8 u16 lane   10 u16 lanes in the set   12 u32 epoch
 * 16 u64 own context   24 u64 peer's context   32 u64 set (HELLO_OK: 0) 40 u8[16] own NIC's address (IPv4 mapped)    56 u8[16]
 * peer's NIC's 72 u8[16] own nonce   88 char[48] host   136 char[16] NIC   152 u32 pid   156 u32 rank 160-203: 0 204 u32 last
 * epoch and 208 u64 chunks taken of it, in fenced sets (before v5: 0)   216-239: 0 240 u8[16] SipHash-2-4-128 under the job's key
 * over the other end's nonce, then bytes 0-239
 *
 * PROOF, 64 bytes
 *   0 u8  type    1 u8 1 if the set is fenced (before v5: 0)   2 u16 lane   4 u32 epoch   8 u64 set   16-47: 0
 * 48 u8[16] SipHash-2-4-128 under the connection's key over bytes 0-47. That key is
 *     SipHash-2-4-128 under the job's key over HELLO_OK's nonce and the whole HELLO
 *
 * What is proven: HELLO's tag covers the handle's nonce, HELLO_OK's that of the HELLO, and PROOF's that of HELLO_OK, which is
 * drawn for this connection. So no recorded frame is valid for another listener, another HELLO or another connection. The
 * receiver makes no lane, and no set, before the PROOF. The sender doesn't wait: OPEN and chunks follow the PROOF at once. Up to
 * version 3 there is no PROOF: a recorded HELLO is valid again once its set is forgotten. In all versions a (lane, epoch) is
 * accepted once (core/failover/ledger.h). Frames after that are not authenticated one by one.
 *
 * Versions: HELLO has the newest and the lowest version of its sender. The answer has the agreed one, the highest common version;
 * all following frames are encoded in it. Version 1 lacks the fields marked v1. In versions 1 and 2 an eager message has at most
 * LANE_EAGER_SIZE_MAX bytes. From version 4 on a sender may use the bounce slots that the receiver's NICS names
 * (wire/lane_nics.h), before version 4 all. From version 5 on a set may be fenced (core/failover/ledger.h), if both ends want
 * that: HELLO_OK and PROOF have the wish. From version 6 on the receiver of a fenced set reports by POST where each message goes,
 * and a message without a bounce slot waits for that. From version 7 on POST names the receiver's device of each key; before, key
 * k is the k-th device's (48-51: 0). From version 8 on NICS has the size of a large bounce slot: at most a whole chunk. From
 * version 9 on QP (lane_qp.h) has a P_Key.
 *
 * Trust: all decoders are total. For any bytes the result is an error with nothing set, or a struct in which each field is in
 * range and consistent with the others (a chunk is on its message's grid). Only the ledger can tell whether the frame was
 * expected. Cost: about 20 ns for a CHUNK, 25 for a STATE with one lane. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/limits.h"
#include "base/time.h"

#define LANE_VERSION        9  /* newest version of this release */
#define LANE_VERSION_LOWEST 1  /* oldest version of this release */
#define LANE_BOTH_VERSION   4  /* from here on both ends of a set may send */
#define LANE_FENCE_VERSION  5  /* from here on a set may be fenced */
#define LANE_POST_VERSION   6  /* from here on the messages of fenced sets wait for their POST */
#define LANE_KEYS_VERSION   7  /* from here on POST names the devices of its keys */
#define LANE_SLOTS_VERSION  8  /* from here on NICS has the size of a large bounce slot */
#define LANE_PKEY_VERSION   9  /* from here on QP has the P_Key of its writer's port */
#define LANE_POST_KEYS      4  /* keys in a POST at most */
#define LANE_DEVICES_MAX    16 /* devices of a receiver whose keys are sent */
#define LANE_LARGE_SLOTS    4  /* the last of a set's bounce slots have, from version 3 on, */
#define LANE_LARGE_SIZE_MAX (1u << 16) /* this size, for messages of one chunk */
#define LANE_SMALL_SLOTS    (LANE_EAGER_SLOTS_MAX - LANE_LARGE_SLOTS) /* the others, 0 and up */
#define LANE_MAGIC          0x4e414c46u                               /* "FLAN" */
#define LANE_KEY_SIZE       16
#define LANE_NONCE_SIZE     16
#define LANE_HOST_SIZE      48 /* with the 0 at its end */
#define LANE_NIC_SIZE       16
#define LANE_COMM_NONE      UINT32_MAX
#define LANE_RANK_UNKNOWN   UINT32_MAX
#define LANE_BOUND_UNKNOWN  UINT32_MAX
#define LANE_OWD_UNKNOWN    UINT32_MAX

#define LANE_HELLO_SIZE      256
#define LANE_NO_SIZE         32
#define LANE_PROOF           0xccu /* after enum lane_frame and NICS */
#define LANE_PROOF_SIZE      64
#define LANE_OPEN_SIZE       64
#define LANE_CHUNK_SIZE      64 /* of the header */
#define LANE_STATE_HEAD_SIZE 48
#define LANE_STATE_LANE_SIZE 32
#define LANE_STATE_SIZE_MAX  (LANE_STATE_HEAD_SIZE + LANE_MAX * LANE_STATE_LANE_SIZE)
#define LANE_POST_SIZE       56
#define LANE_PING_SIZE       40
#define LANE_CLOSE_SIZE      32
#define LANE_FRAME_SIZE_MAX  LANE_STATE_SIZE_MAX /* without payload */

/* First byte. The values are unlikely, so that a foreign protocol is recognised; no handle's cookie begins with one
 * (wire/handle.h). */
enum lane_frame {
    LANE_HELLO = 0xc1,
    LANE_HELLO_OK,
    LANE_HELLO_NO,
    LANE_OPEN,
    LANE_CHUNK,
    LANE_STATE,
    LANE_POST,
    LANE_PING,
    LANE_PONG,
    LANE_CLOSE,
};

enum lane_error {
    LANE_ERROR_NONE,
    LANE_ERROR_SHORT, /* fewer bytes than the frame has */
    LANE_ERROR_TYPE,  /* not the frame that was expected, or no frame at all */
    LANE_ERROR_MAGIC,
    LANE_ERROR_VERSION,  /* no common version */
    LANE_ERROR_CRC,      /* damaged */
    LANE_ERROR_TAG,      /* the sender doesn't have the key, or the frame was replayed */
    LANE_ERROR_RESERVED, /* a bit or byte that must be 0 */
    LANE_ERROR_RANGE,    /* a field out of range, or inconsistent with another */
    LANE_ERROR_COUNT
};

/* The states of a lane, for both ends (core/failover/lane.h decides, STATE reports). */
enum lane_state {
    LANE_CONNECTING,
    LANE_TRIAL, /* up again; carries a little until it is trusted */
    LANE_ACTIVE,
    LANE_SUSPECT, /* no progress while others make some: no new chunk except one probe */
    /* takes no new chunk, and ends when it is empty: its successor has another path */
    LANE_DRAINING,
    LANE_DOWN,
    LANE_CLOSED, /* for good */
    LANE_STATE_COUNT
};
/* Why a lane left ACTIVE. */
enum lane_reason {
    LANE_REASON_NONE,
    LANE_REASON_CARRIER,  /* a NIC's link is down */
    LANE_REASON_RESET,    /* connection reset, ended, or refused; CQ error */
    LANE_REASON_TIMEOUT,  /* no progress */
    LANE_REASON_DAMAGED,  /* a checksum didn't fit */
    LANE_REASON_LOSS,     /* the kernel resends too much */
    LANE_REASON_PEER,     /* the other end reports it */
    LANE_REASON_HINT,     /* the probe mesh reports it */
    LANE_REASON_PROTOCOL, /* a frame that must not come */
    LANE_REASON_REPATH,   /* moved to another path */
    LANE_REASON_CLOSE,
    LANE_REASON_BUG, /* a bug of ours: everything is fenced */
    LANE_REASON_COUNT
};

struct lane_hello {
    bool answer; /* HELLO_OK */
    bool standby;
    /* version 4: its writer has received over the set; a peer without that set has forgotten it */
    bool joined;
    bool fenced;    /* HELLO_OK of version 5: its writer wants a fenced set */
    uint8_t newest; /* HELLO_OK: the version agreed */
    uint8_t lowest;
    uint16_t lane;  /* < LANE_MAX */
    uint16_t lanes; /* the number that the sender wants in the set, <= LANE_MAX */
    uint32_t epoch; /* >= 1 */
    uint64_t own_context, peer_context;
    /* the number of the sender's set between these contexts, never used again; 0: not given */
    uint64_t set;
    uint8_t own_address[16], peer_address[16];
    uint8_t nonce[LANE_NONCE_SIZE];
    char host[LANE_HOST_SIZE],
        nic[LANE_NIC_SIZE]; /* for messages to people; after reading: printable ASCII */
    uint32_t pid, rank;
    /* Fenced sets: the last epoch of this lane that was opened here, and the chunks taken of it. None of its data lands any more,
     * and no epoch below `epoch` is opened any more. */
    uint32_t last_epoch;
    uint64_t last_taken;
};

enum lane_no {
    LANE_NO_VERSION = 1,
    LANE_NO_CONTEXT, /* no such process is here (any more) */
    LANE_NO_KEY,     /* another job's key */
    LANE_NO_LANE,    /* (lane, epoch) was there already, or too many lanes */
    LANE_NO_MODE,    /* this end's plugin is off */
    LANE_NO_FULL,    /* no descriptors or memory: try again */
    /* version 4: both ends began a set at once, and the refusing end's set stays */
    LANE_NO_YOURS,
    LANE_NO_COUNT
};
struct lane_refusal {
    uint8_t newest, lowest; /* versions of the refusing end */
    enum lane_no reason;
    uint64_t context;
};

struct lane_open {
    uint8_t group_max;     /* 1..COMM_GROUP_MAX: the receiver's maxRecvs, as the sender got it */
    uint8_t traffic_class; /* 0 bulk, 1 normal, 2 high */
    uint32_t comm;         /* chosen by the sender, from 0 up, never used again in this set */
    uint64_t cookie;       /* from the handle: which listen it is for */
    uint64_t job;          /* a name for people; 0: not known */
    uint32_t rank;
};

enum lane_chunk_flag {
    LANE_CHUNK_LAST = 1,
    LANE_CHUNK_PAYLOAD_CRC = 2,
    LANE_CHUNK_RESENT = 4, /* telemetry: it was sent before, so its delay is not the path's */
    LANE_CHUNK_EAGER = 8,  /* may come before the receive is posted, into a bounce slot */
    /* Version 4: no request of the sender in this set waits for a report; the sender keeps copies. */
    LANE_CHUNK_KEPT = 16,
    /* Version 6: no payload follows: it was written to the place in POST, before this header was sent. */
    LANE_CHUNK_WRITTEN = 32,
};
struct lane_chunk {
    uint8_t flags; /* encode sets LAST */
    uint8_t buffer, slot, grid;
    uint16_t lane;
    uint32_t epoch;
    uint32_t comm;
    int32_t tag;
    uint64_t message;
    uint32_t offset, length, size;
    uint32_t queued_ns; /* posted -> sent; saturates */
    struct fleet_time sent;
    uint32_t sent_bound_ns; /* half-width; LANE_BOUND_UNKNOWN */
    uint32_t payload_crc;   /* 0 without PAYLOAD_CRC */
};

struct lane_state_lane {
    uint16_t lane;
    enum lane_state state;
    enum lane_reason reason;
    uint32_t epoch;
    uint64_t taken;
    /* Version 5, else 0: no data of the lane's epochs below lands any more, `taken` is the final count of `epoch`, and no later
     * epoch was opened (core/failover/sender.h, sender_on_fenced) */
    uint32_t fenced_below;
    uint32_t owd_min_ns, owd_ns; /* LANE_OWD_UNKNOWN, as always in version 1 */
};
struct lane_report {
    /* receivers for which its writer has data, by the NIC of the set; 0: not reported */
    uint16_t receivers;
    uint32_t sequence;
    uint32_t comm; /* LANE_COMM_NONE: lanes only */
    uint64_t placed, posted, granted;
    struct fleet_time now;
    uint8_t lane_count;
    struct lane_state_lane lanes[LANE_MAX];
};

/* Keys of a receive's memory, each for one device of the receiver. */
struct lane_keys {
    uint8_t count;                   /* <= LANE_POST_KEYS */
    uint8_t devices[LANE_POST_KEYS]; /* < LANE_DEVICES_MAX */
    uint32_t rkeys[LANE_POST_KEYS];  /* 0: that device has none */
};
struct lane_post {
    uint8_t index, count; /* buffer index < count <= COMM_GROUP_MAX */
    struct lane_keys keys;
    uint32_t comm;
    uint64_t first; /* the group's first message */
    uint64_t address;
    uint32_t size;
    int32_t tag;
};

struct lane_ping {
    bool answer; /* PONG */
    uint16_t lane;
    uint32_t epoch;
    uint32_t sequence;
    struct fleet_time sent, received;
    uint32_t sent_bound_ns, received_bound_ns;
};

enum lane_close_flag {
    LANE_CLOSE_ABORT = 1,  /* requests were in flight: nothing more will come or be asked for */
    LANE_CLOSE_ECHO = 2,   /* an answer to a CLOSE: it needs no answer */
    LANE_CLOSE_SENDER = 4, /* version 4: its writer sends on that comm, else it receives */
};
struct lane_close {
    uint8_t flags;
    enum lane_reason reason;
    uint32_t comm;     /* LANE_COMM_NONE: the process leaves, with all its comms */
    uint64_t messages; /* total number sent (by a sender) or posted (by a receiver) */
    uint64_t placed;
};

/* The key of that device; 0: none was sent. */
static inline uint32_t lane_key_of(const struct lane_keys *keys, uint32_t device)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        if (keys->devices[i] == device) {
            return keys->rkeys[i];
        }
    }
    return 0;
}

/* The size of the frame at `bytes`, without payload, by its first two bytes; 0: not a frame. size must be >= 2. */
size_t lane_frame_size(const uint8_t *bytes, size_t size);

/* Encoders write the frame's whole size. A value out of range is a bug of the caller and is masked, so that no wrong value is
 * sent unnoticed: the peer's decoder refuses it. version: as agreed for the set. */
void lane_chunk_encode(uint8_t bytes[static LANE_CHUNK_SIZE], const struct lane_chunk *chunk,
                       uint8_t version);
/* Returns the size written, <= LANE_STATE_SIZE_MAX. */
size_t lane_report_encode(uint8_t bytes[static LANE_STATE_SIZE_MAX],
                          const struct lane_report *report, uint8_t version);
void lane_post_encode(uint8_t bytes[static LANE_POST_SIZE], const struct lane_post *post,
                      uint8_t version);
void lane_open_encode(uint8_t bytes[static LANE_OPEN_SIZE], const struct lane_open *open);
void lane_ping_encode(uint8_t bytes[static LANE_PING_SIZE], const struct lane_ping *ping);
void lane_close_encode(uint8_t bytes[static LANE_CLOSE_SIZE], const struct lane_close *close);
void lane_refusal_encode(uint8_t bytes[static LANE_NO_SIZE], const struct lane_refusal *refusal);
/* Writes a text of `size` bytes with its 0, for frames. Bytes that aren't printable ASCII become '?', because a reader refuses
 * them. The bytes at `at` are zero before. */
void lane_put_text(uint8_t *at, const char *text, size_t size);
/* other_nonce: the handle's for a HELLO, the HELLO's for a HELLO_OK. */
void lane_hello_encode(uint8_t bytes[static LANE_HELLO_SIZE], const struct lane_hello *hello,
                       const uint8_t other_nonce[static LANE_NONCE_SIZE],
                       const uint8_t key[static LANE_KEY_SIZE]);

/* Decoders: bytes beyond the frame are ignored; *ret is set on LANE_ERROR_NONE only. */
MUST_CHECK enum lane_error lane_chunk_decode(const uint8_t *bytes, size_t size, uint8_t version,
                                             struct lane_chunk *ret);
MUST_CHECK enum lane_error lane_report_decode(const uint8_t *bytes, size_t size, uint8_t version,
                                              struct lane_report *ret);
MUST_CHECK enum lane_error lane_post_decode(const uint8_t *bytes, size_t size, uint8_t version,
                                            struct lane_post *ret);
MUST_CHECK enum lane_error lane_open_decode(const uint8_t *bytes, size_t size,
                                            struct lane_open *ret);
MUST_CHECK enum lane_error lane_ping_decode(const uint8_t *bytes, size_t size,
                                            struct lane_ping *ret);
MUST_CHECK enum lane_error lane_close_decode(const uint8_t *bytes, size_t size,
                                             struct lane_close *ret);
MUST_CHECK enum lane_error lane_refusal_decode(const uint8_t *bytes, size_t size,
                                               struct lane_refusal *ret);
/* HELLO or HELLO_OK. Checks size, type, magic and version first, then the tag, then the fields: a stranger only learns that it
 * was refused. On LANE_ERROR_VERSION, *ret_version (may be NULL) has the peer's newest and lowest in ret_version[0], [1]. */
MUST_CHECK enum lane_error lane_hello_decode(const uint8_t *bytes, size_t size,
                                             const uint8_t other_nonce[static LANE_NONCE_SIZE],
                                             const uint8_t key[static LANE_KEY_SIZE],
                                             struct lane_hello *ret, uint8_t ret_version[2]);
/* hello: as it was sent, complete. nonce: HELLO_OK's. Decoding checks that these bytes are the PROOF of that HELLO on that
 * connection. */
void lane_proof_encode(uint8_t bytes[static LANE_PROOF_SIZE],
                       const uint8_t hello[static LANE_HELLO_SIZE],
                       const uint8_t nonce[static LANE_NONCE_SIZE],
                       const uint8_t key[static LANE_KEY_SIZE], bool fenced);
/* *ret_fenced: the flag in it; set on LANE_ERROR_NONE only. */
MUST_CHECK enum lane_error lane_proof_decode(const uint8_t *bytes, size_t size,
                                             const uint8_t hello[static LANE_HELLO_SIZE],
                                             const uint8_t nonce[static LANE_NONCE_SIZE],
                                             const uint8_t key[static LANE_KEY_SIZE],
                                             bool *ret_fenced);
/* The context that a HELLO is for, before any key is known: the listener finds the key by it. */
MUST_CHECK enum lane_error lane_hello_context(const uint8_t *bytes, size_t size,
                                              uint64_t *ret_peer_context);
/* The highest version that both support; 0: none. */
uint8_t lane_version_agree(uint8_t newest, uint8_t lowest);

/* Short English names, for logs and JSON. */
const char *lane_error_name(enum lane_error error);
const char *lane_state_name(enum lane_state state);
const char *lane_reason_name(enum lane_reason reason);
const char *lane_no_name(enum lane_no no);

/* The grid of a message: the chunk size's log2 for a wanted size, within both limits. */
uint8_t lane_grid(uint32_t message_size, uint32_t wanted_chunk_size);
/* The number of chunks of a message; a message of 0 bytes has one, of 0 bytes. */
static inline uint32_t lane_chunk_count(uint32_t message_size, uint8_t grid)
{
    const uint64_t size = message_size;

    return size == 0 ? 1 : (uint32_t)((size + (1u << grid) - 1) >> grid);
}
