/* stream.c: a lane's connection: frames queued and written, frames and payload read.
 *
 * Writing: control frames go between chunks, never into one. A chunk's payload is written from the caller's message. If that
 * message was placed over another lane meanwhile, or the peer closed its communicator, the memory may have other data: the rest
 * of the frame is zeros, which the receiver throws away. If a communicator is closed for any other reason, its lane is closed,
 * too (comm.c): so zeros never reach a buffer.
 *
 * Reading: one call reads the rest of the present chunk, directly to its place, and the beginning of what follows: the next
 * header after a large chunk, many whole messages after a small one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/internal.h"

#define LARGE_CHUNK 4096 /* after one of these only a header is read along; */
/* the same from this machine: a second copy costs less than a second call */
#define LARGE_HERE   32768
#define SCRATCH_HERE (LARGE_HERE + 512)
#define REPORTS_HERE 8
#define JUST_NOW_NS  (10 * NS_PER_US)

static const uint8_t zeros[65536];

struct stream *stream_new(int conn, uint32_t epoch)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (stream != NULL) {
        stream->kind = &lane_tcp;
        stream->conn = conn;
        stream->epoch = epoch;
    }
    return stream;
}

void stream_free(struct stream *stream)
{
    if (stream != NULL) {
        free(stream->staging);
        free(stream->fetched);
        free(stream->qp);
        free(stream);
    }
}

/* -- writing ---------------------------------------------------------------------------------- */

bool stream_control(struct stream *stream, const uint8_t *bytes, size_t size)
{
    if (stream->control_begin == stream->control_end) {
        stream->control_begin = stream->control_end = 0;
    }
    if (stream->control_end + size > sizeof(stream->control) && stream->control_begin > 0) {
        memmove(stream->control, stream->control + stream->control_begin,
                (size_t)(stream->control_end - stream->control_begin));
        stream->control_end = (uint16_t)(stream->control_end - stream->control_begin);
        stream->control_begin = 0;
    }
    if (stream->control_end + size > sizeof(stream->control)) {
        return false;
    }
    memcpy(stream->control + stream->control_end, bytes, size);
    stream->control_end = (uint16_t)(stream->control_end + size);
    return true;
}

void stream_chunk(struct stream *stream, const struct sender_chunk *chunk,
                  const struct lane_chunk *header, uint8_t version)
{
    lane_chunk_encode(stream->head, header, version);
    stream->head_left = LANE_CHUNK_SIZE;
    stream->payload = chunk->source;
    stream->payload_left = chunk->length;
    stream->payload_comm = chunk->comm;
    stream->payload_message = chunk->message;
    stream->payload_void = false;
}

static bool payload_is_void(const struct lane_set *set, const struct stream *stream)
{
    return stream->payload_void ||
           sender_placed(set->sender, stream->payload_comm, stream->payload_message);
}

/* The message's memory is still the sender's, or nobody reads it any more. */
static bool payload_stands(const struct lane_set *set, const struct stream *stream)
{
    return stream->payload_left == 0 || payload_is_void(set, stream) ||
           sender_source_needed(set->sender, stream->payload_comm, stream->payload_message);
}

/* Where the rest of the payload may be read. */
static const uint8_t *payload_source(const struct lane_set *set, const struct stream *stream,
                                     uint32_t *ret_size)
{
    *ret_size = stream->payload_left;
    if (!payload_is_void(set, stream)) {
        return stream->payload;
    }
    *ret_size = *ret_size < sizeof(zeros) ? *ret_size : (uint32_t)sizeof(zeros);
    return zeros;
}

/* The next data to write: at most three pieces, in the order in which the peer must get them. */
static int gather(const struct lane_set *set, struct stream *stream, struct iovec parts[3])
{
    const bool begun = stream->head_left < LANE_CHUNK_SIZE && stream_chunk_waits(stream);
    uint32_t size = 0;
    int count = 0;

    if (!begun && stream->control_end > stream->control_begin) {
        parts[count++] = (struct iovec){stream->control + stream->control_begin,
                                        (size_t)(stream->control_end - stream->control_begin)};
    }
    if (stream->head_left > 0) {
        parts[count++] =
            (struct iovec){stream->head + LANE_CHUNK_SIZE - stream->head_left, stream->head_left};
    }
    if (stream->payload_left > 0) {
        const uint8_t *source = payload_source(set, stream, &size);
        parts[count++] = (struct iovec){(void *)(uintptr_t)source, size};
    }
    if (begun && size == stream->payload_left && stream->control_end > stream->control_begin) {
        parts[count++] = (struct iovec){stream->control + stream->control_begin,
                                        (size_t)(stream->control_end - stream->control_begin)};
    }
    return count;
}

/* n bytes of gather()'s pieces were taken. */
static void took(struct stream *stream, size_t n)
{
    const bool begun = stream->head_left < LANE_CHUNK_SIZE && stream_chunk_waits(stream);
    const size_t control = (size_t)(stream->control_end - stream->control_begin);
    size_t part;

    stream->bytes_out += n;
    if (!begun) {
        part = n < control ? n : control;
        stream->control_begin = (uint16_t)(stream->control_begin + part);
        n -= part;
    }
    part = n < stream->head_left ? n : stream->head_left;
    stream->head_left = (uint8_t)(stream->head_left - part);
    n -= part;
    part = n < stream->payload_left ? n : stream->payload_left;
    if (part > 0) { /* else there may be no payload */
        stream->payload += part;
    }
    stream->payload_left -= (uint32_t)part;
    n -= part;
    if (begun) {
        stream->control_begin = (uint16_t)(stream->control_begin + n);
    }
}

int stream_flush_bytes(struct lane_set *set, struct stream *stream)
{
    while (!stream_idle(stream)) {
        struct iovec parts[3];
        size_t wanted = 0;
        if (!payload_stands(set, stream)) {
            lane_set_fail(
                set, -ENOTRECOVERABLE,
                "a bug of Foliot's own: a message was forgotten that a lane still writes");
            return -EPROTO;
        }
        const int count = gather(set, stream, parts);
        for (int i = 0; i < count; i++) {
            wanted += parts[i].iov_len;
        }
        const ssize_t n = stream->kind->send(set, stream, parts, count);
        if (n < 0) {
            stream->blocked = n == -EAGAIN;
            return (int)n;
        }
        took(stream, (size_t)n);
        if ((size_t)n < wanted) {
            stream->blocked = true;
            return -EAGAIN;
        }
    }
    stream->blocked = false;
    return 0;
}

/* -- reading ---------------------------------------------------------------------------------- */

static int handle_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
                        size_t size)
{
    const int r = lane_set_frame(set, now, lane, frame, size);

    if (r != -ENOENT) {
        return r;
    }
    return set->streams[lane]->shaken && halves_of_frame(frame[0]) == HALF_LEDGER
               ? in_frame(set, now, lane, frame, size)
               : out_frame(set, now, lane, frame, size);
}

/* Copies payload that was read along with a header to its place. */
static int place_payload(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *bytes,
                         size_t size, const struct io_stamp *stamp, size_t *ret_used)
{
    uint8_t *to;
    uint32_t left;
    int r = in_target(set, lane, &to, &left);

    if (r < 0) {
        return r;
    }
    left = left < size ? left : (uint32_t)size;
    if (to != NULL) {
        memcpy(to, bytes, left);
    }
    *ret_used = left;
    return in_got(set, now, lane, to, left, stamp);
}

/* Handles all whole frames in `bytes`; *ret_used: the number of bytes handled. */
static int handle_bytes(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *bytes,
                        size_t size, const struct io_stamp *stamp, size_t *ret_used)
{
    struct stream *stream = set->streams[lane];
    size_t used = 0;
    int r = 0;

    while (r == 0 && used < size) {
        if (stream->reading) {
            size_t part = 0;
            r = place_payload(set, now, lane, bytes + used, size - used, stamp, &part);
            used += part;
            continue;
        }
        if (size - used < 2) {
            break;
        }
        const size_t whole = bytes[used] == LANE_NICS ? LANE_NICS_SIZE
                             : bytes[used] == LANE_QP ? LANE_QP_SIZE
                                                      : lane_frame_size(bytes + used, size - used);
        if (whole == 0) {
            r = -EPROTO;
            break;
        }
        if (size - used < whole) {
            break;
        }
        r = handle_frame(set, now, lane, bytes + used, whole);
        used += whole;
        if (r == 0 && stream->reading && stream->chunk.length == 0) {
            r = in_got(set, now, lane, NULL, 0, stamp);
        }
    }
    *ret_used = used;
    return r;
}

/* A header; the peer's reports about our data come in front of it. From this machine they ride with most chunks, one for each
 * communicator. */
static size_t ahead_small(const struct lane_set *set)
{
    const size_t reports = set->scheduler.one_way ? REPORTS_HERE : 1;

    return LANE_CHUNK_SIZE +
           (set->sender != NULL ? reports * LANE_STATE_HEAD_SIZE + LANE_STATE_LANE_SIZE : 0);
}

/* How much to read before the place is known: payload of a chunk must then be copied once more. After a large chunk another one
 * is likely, and then the same number of calls brings it to its place. */
static size_t ahead(const struct lane_set *set, const struct stream *stream)
{
    if (set->ledger == NULL || set->large == 0) {
        return SCRATCH_SIZE;
    }
    return stream->chunk.length > (set->scheduler.one_way ? LARGE_HERE : LARGE_CHUNK)
               ? ahead_small(set)
           : set->scheduler.one_way ? SCRATCH_HERE
                                    : SCRATCH_SIZE;
}

/* From this machine: data that comes now can't be older than the last read in vain, so its stamp shows no more than the clock. A
 * stamp makes each read in vain more expensive. */
static bool came_just_now(const struct lane_set *set, const struct stream *stream, struct mono now)
{
    return set->scheduler.one_way && mono_sub(now, stream->dry_at).ns < JUST_NOW_NS;
}

/* One system call. Returns bytes read; 0: no more; -errno. *ret_drained: it returned less than there was room for, and this is
 * the only lane that carries; with other lanes another look would be worth it. */
static ssize_t read_once(struct lane_set *set, uint32_t lane, struct mono now, bool *ret_drained)
{
    struct stream *stream = set->streams[lane];
    uint8_t scratch[LANE_FRAME_SIZE_MAX + SCRATCH_HERE];
    struct iovec parts[2];
    struct io_stamp stamp = {.half_ns =
                                 IO_HALF_UNKNOWN}; /* no chunk may come yet: no stamp is needed */
    uint8_t *to = NULL;
    uint32_t left = 0;
    size_t carried = stream->part_size, payload = 0, room = 0, used;
    int count = 0;

    /* carried is 0: a header was complete, and all bytes after it are placed */
    if (stream->reading) {
        const int r = in_target(set, lane, &to, &left);
        if (r < 0) {
            return r;
        }
        if (slots_wait(set, stream, now)) {
            return 0;
        }
        if (to == NULL) {
            left = left < SCRATCH_SIZE ? left : SCRATCH_SIZE;
            parts[count++] = (struct iovec){scratch, left};
        } else {
            parts[count++] = (struct iovec){to, left};
            parts[count++] = (struct iovec){scratch, ahead(set, stream)};
        }
    } else {
        memcpy(scratch, stream->part, carried);
        parts[count++] = (struct iovec){scratch + carried, ahead(set, stream)};
    }
    for (int i = 0; i < count; i++) {
        room += parts[i].iov_len;
    }
    const bool stamped = set->ledger != NULL && !came_just_now(set, stream, now);
    const ssize_t n = stream->kind->receive(set, stream, parts, count, stamped ? &stamp : NULL);
    if (n <= 0) {
        stream->dry_at = n == -EAGAIN ? now : stream->dry_at;
        return n == 0 ? -EPIPE : n == -EAGAIN ? 0 : n;
    }
    stream->dry_at.ns = INT64_MIN / 2;
    if (set->ledger != NULL && !stamped) {
        struct io *io = set->transport->io;
        stamp = io->stamp(io);
    }
    *ret_drained = set->scheduler.one_way && (size_t)n < room;
    if (stream->reading) {
        payload = (size_t)n < left ? (size_t)n : left;
        const int r = in_got(set, now, lane, to, (uint32_t)payload, &stamp);
        if (r < 0 || to == NULL) {
            return r < 0 ? r : n;
        }
    }
    carried += (size_t)n - payload;
    const int r = handle_bytes(set, now, lane, scratch, carried, &stamp, &used);
    if (r < 0) {
        return r;
    }
    stream->part_size = (uint16_t)(carried - used);
    memcpy(stream->part, scratch + used, stream->part_size);
    return n;
}

ssize_t stream_read_bytes(struct lane_set *set, uint32_t lane, struct mono now)
{
    bool drained = false;
    ssize_t all = 0;

    while (all < READ_BYTES_MAX) {
        const ssize_t n = read_once(set, lane, now, &drained);
        if (n < 0) {
            return n;
        }
        if (n == 0) {
            break;
        }
        all += n;
        /* The rest of a chunk follows at once, because its sender is writing it. A small chunk was most likely all there was:
         * latency matters more than certainty. */
        if (!set->streams[lane]->reading && (drained || n < SCRATCH_SIZE / 4)) {
            break;
        }
    }
    return all;
}
