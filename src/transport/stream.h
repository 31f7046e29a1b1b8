/* stream.h: one lane's connection: data that waits to be written, data that was read, and its state. A lane of any kind has one
 * (lane_kind.h). */
#pragma once
#include "base/limits.h"
#include "core/failover/ledger.h"
#include "transport/io.h"
#include "wire/lane.h"

#define CONTROL_SIZE 1536 /* control frames that wait to be written */

struct lane_kind;
struct lane_set;
struct sender_chunk;

struct stream {
    const struct lane_kind *kind;
    int conn; /* -1: none */
    /* lane_copy: the queue pair that it uses, or will use; NULL: its connection */
    struct lane_pair *qp;
    uint32_t epoch;
    bool connecting; /* not connected yet; then waiting for HELLO_OK */
    bool shaken;     /* both ends have introduced themselves: frames may pass */
    bool joined;     /* from HELLO */
    uint8_t armed;   /* events that are armed */
    bool blocked;    /* the kernel took less than we had */
    /* no new chunk: waiting data is written first, then the stream moves to its queue pair */
    bool held;
    bool dead; /* nothing is read or written any more: lane_set_act must close it */
    /* dead, and told to be silent: until it is, its end is reported to nobody as final */
    bool fencing;
    uint8_t own_nic, peer_nic;
    struct io_address local, peer;
    struct mono began;              /* of connecting, for the round trip */
    uint8_t nonce[LANE_NONCE_SIZE]; /* of the own HELLO */
    /* out: control frames between chunks; header and payload of the chunk that is being written */
    uint8_t control[CONTROL_SIZE];
    uint16_t control_begin, control_end;
    uint8_t head[LANE_CHUNK_SIZE];
    uint8_t head_left; /* 0: no header waits */
    const uint8_t *payload;
    uint32_t payload_left;
    uint32_t payload_comm;
    uint64_t payload_message;
    bool payload_void; /* nobody reads the rest: its message is placed, or the peer closed */
    /* in: the beginning of an incomplete frame; the chunk that is being read */
    uint8_t part[LANE_FRAME_SIZE_MAX];
    uint16_t part_size;
    bool reading; /* a chunk's payload */
    uint32_t got; /* bytes of it */
    uint32_t crc;
    enum ledger_place place;
    struct mono chunk_at; /* when its header came */
    int64_t looks;        /* since then, while the rest stays in the socket */
    struct lane_chunk chunk;
    uint8_t *staging; /* 1 << LANE_CHUNK_SHIFT_MAX bytes, allocated when needed */
    uint8_t *fetched; /* as many bytes: the chunk that is being written, from a GPU's memory */
    uint64_t bytes_out;
    uint64_t acked;      /* by the peer's kernel, at the last question */
    uint64_t doubted_at; /* bytes_out at that time: the doubt ends when all of them have arrived */
    struct mono read_at; /* when bytes came last */
    struct mono dry_at;  /* when a read last found nothing; long ago: when a read found something */
    struct mono hedge_asked;
    bool ended;   /* by the peer, in order */
    bool parting; /* too many connections: it must close */
};

/* A lane over TCP, until it is changed to another kind. */
struct stream *stream_new(int conn, uint32_t epoch);
void stream_free(struct stream *stream);
/* Is there room for a control frame of that size? The next one queues it. */
bool stream_control(struct stream *stream, const uint8_t *bytes, size_t size);
/* The chunk is written next, after the control frames that wait. Otherwise the stream must be idle. */
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
/* It can take a whole chunk now. */
static inline bool stream_room(const struct stream *stream)
{
    return !stream->blocked && !stream->held && stream_idle(stream);
}
/* lane_kind.flush and read for lanes that carry bytes in order. */
int stream_flush_bytes(struct lane_set *set, struct stream *stream);
ssize_t stream_read_bytes(struct lane_set *set, uint32_t lane, struct mono now);
