/* lane_kind.h: how the frames and chunks of one lane travel: the seam between what decides and what carries.
 *
 * Above it are sender, ledger, watch, scheduler, detector (core/): they are told facts and don't know what carries a lane.
 * Below it is whatever knows a socket. A stream points to its kind; all calls are made under the set's lock.
 *
 * What is to be written is queued in the stream whatever its kind (stream_control, stream_chunk): no table is asked for that.
 * Every lane is connected and greeted over TCP (out_lane.c, greeting.c). Where both ends have queue pairs it then goes on as a
 * lane_copy (lane_offer.c). */
#pragma once
#include "transport/stream.h"

struct lane_kind {
    const char *name; /* for people */

    /* Writes what waits: 0 all of it, -EAGAIN, or why the connection is over. */
    int (*flush)(struct lane_set *set, struct stream *stream);
    /* Reads and handles what is there, up to READ_BYTES_MAX; the number of bytes, or why the connection is over (-EPIPE: its
     * end; -EPROTO, -EBADMSG: what came is wrong). */
    ssize_t (*read)(struct lane_set *set, uint32_t lane, struct mono now);

    /* Lanes that carry bytes in order (stream_flush_bytes, stream_read_bytes): bytes taken, or got; -EAGAIN: no room, nothing
     * there; 0 got: the peer ended it. *ret_stamp (may be NULL): when the last of them arrived. */
    ssize_t (*send)(struct lane_set *set, struct stream *stream, const struct iovec *parts,
                    int count);
    ssize_t (*receive)(struct lane_set *set, struct stream *stream, const struct iovec *parts,
                       int count, struct io_stamp *ret_stamp);

    /* For what lands in our memory unasked; NULL: we read all that comes, so it is silent when it is closed. silence: from now on
     * nothing of ours leaves, and what arrives is dropped. silent: nothing that came before lands any more, and what landed is
     * booked; false: ask again. It must come true in time, whatever the connection is like. */
    void (*silence)(struct lane_set *set, struct stream *stream);
    bool (*silent)(struct lane_set *set, uint32_t lane);
    /* The connection is over at this end. reset: nothing sent and not yet delivered arrives any more, and the peer is told. */
    void (*end)(struct lane_set *set, struct stream *stream, bool reset);
    /* What the other end's kernel or NIC has acknowledged, whoever has no processor there. */
    void (*info)(const struct lane_set *set, const struct stream *stream, struct io_info *ret);
    /* One event, once, to the housekeeping, for sets that nobody polls. */
    int (*arm)(struct lane_set *set, uint32_t lane, uint32_t events);
};

extern const struct lane_kind lane_tcp, lane_copy;

static inline int stream_flush(struct lane_set *set, struct stream *stream)
{
    return stream->kind->flush(set, stream);
}
static inline ssize_t stream_read(struct lane_set *set, uint32_t lane, struct stream *stream,
                                  struct mono now)
{
    return stream->kind->read(set, lane, now);
}
