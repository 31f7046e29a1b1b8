/* stream.h: one lane's connection: what waits to be written to it, what was read of it, and how it stands. A lane of any
 * kind has one (lane_kind.h). */
#pragma once
#include "base/limits.h"
#include "core/failover/ledger.h"
#include "transport/io.h"
#include "wire/lane.h"

#define CONTROL_SIZE 1536 /* frames that wait to be written */

struct lane_kind;
struct lane_set;
struct sender_chunk;

struct stream {
    const struct lane_kind *kind;
    int conn;             /* -1: none */
    struct lane_pair *qp; /* lane_copy: what it goes over, or shall; NULL: its connection */
    uint32_t epoch;
    bool connecting; /* not connected yet; then waiting for HELLO_OK */
    bool shaken;     /* both ends know each other: frames flow */
    bool joined;     /* as HELLO said */
    uint8_t armed;   /* events */
    bool blocked;    /* the kernel took less than we had */
    bool held;    /* no new chunk: what waits is written first, then it goes over its queue pair */
    bool dead;    /* nothing is read or written any more: waits for lane_set_act to close it */
    bool fencing; /* dead, and told to be silent: until it is, its end is told to nobody as final */
    uint8_t own_nic, peer_nic;
    struct io_address local, peer;
    struct mono began;              /* connecting, for the round trip */
    uint8_t nonce[LANE_NONCE_SIZE]; /* of our HELLO */
    /* out: control frames between chunks; of the chunk being written, header and payload */
    uint8_t control[CONTROL_SIZE];
    uint16_t control_begin, control_end;
    uint8_t head[LANE_CHUNK_SIZE];
    uint8_t head_left; /* 0: no header waits */
    const uint8_t *payload;
    uint32_t payload_left;
    uint32_t payload_comm;
    uint64_t payload_message;
    bool payload_void; /* nobody reads the rest of it: its message is placed, or the peer closed */
    /* in: the beginning of a frame not yet whole; the chunk being read */
    uint8_t part[LANE_FRAME_SIZE_MAX];
    uint16_t part_size;
    bool reading; /* a chunk's payload */
    uint32_t got; /* of it */
    uint32_t crc;
    enum ledger_place place;
    struct mono chunk_at; /* its header came */
    int64_t looks;        /* since then, while the rest stays in the socket */
    struct lane_chunk chunk;
    uint8_t *staging; /* 1 << LANE_CHUNK_SHIFT_MAX bytes, on demand */
    uint8_t *fetched; /* as many: the chunk that is being written, of a GPU's memory */
    uint64_t bytes_out;
    uint64_t acked;      /* by the peer's kernel, when asked last */
    uint64_t doubted_at; /* bytes_out then: when all of them have arrived it is over */
    struct mono read_at; /* last bytes */
    struct mono dry_at;  /* nothing was there when it was read last; long ago: something was */
    struct mono hedge_asked;
    bool ended;   /* by the peer, orderly */
    bool parting; /* too many connections: it is to go */
};

/* A lane over TCP, until it is said to be of another kind. */
struct stream *stream_new(int conn, uint32_t epoch);
void stream_free(struct stream *stream);
/* Whether a control frame of that size fits; then queues it. */
bool stream_control(struct stream *stream, const uint8_t *bytes, size_t size);
/* A chunk is the next to be written, behind the control frames that wait. The stream must be idle but for those. */
void stream_chunk(struct stream *stream, const struct sender_chunk *chunk,
                  const struct lane_chunk *header, uint8_t version);
static inline bool stream_chunk_waits(const struct stream *stream)
{
    return stream->head_left != 0 || stream->payload_left != 0;
}
static inline bool stream_idle(const struct stream *stream)
{
    return !stream_chunk_waits(stream) && stream->control_begin == stream->control_end;
}
/* It takes a whole chunk now. */
static inline bool stream_room(const struct stream *stream)
{
    return !stream->blocked && !stream->held && stream_idle(stream);
}
/* lane_kind.flush and read of lanes that carry bytes in order. */
int stream_flush_bytes(struct lane_set *set, struct stream *stream);
ssize_t stream_read_bytes(struct lane_set *set, uint32_t lane, struct mono now);
