/* lane_kind.h: how the frames and chunks of one lane travel: the border between the code that decides and the code that carries.
 *
 * Above it are sender, ledger, watch, scheduler, detector (core/): they get facts and don't depend on how a lane carries. Below
 * it is everything that uses a socket. A stream points to its kind; all calls are made under the set's lock.
 *
 * Data to be written is queued in the stream, for any kind (stream_control, stream_chunk): that needs no table. Every lane is
 * connected and greeted over TCP (out_lane.c, greeting.c). If both ends have queue pairs it then continues as a lane_copy
 * (lane_offer.c). */
#pragma once
#include "transport/stream.h"

struct lane_kind {
    const char *name; /* for people */

    /* Writes the queued data: 0: all of it; -EAGAIN; or why the connection is over. */
    int (*flush)(struct lane_set *set, struct stream *stream);
    /* Reads and handles what is there, up to READ_BYTES_MAX. Returns the number of bytes, or why the connection is over (-EPIPE:
     * its end; -EPROTO, -EBADMSG: wrong data). */
    ssize_t (*read)(struct lane_set *set, uint32_t lane, struct mono now);

    /* For lanes that carry bytes in order (stream_flush_bytes, stream_read_bytes): the number of bytes taken or read; -EAGAIN: no
     * room, or no data; 0 read: the peer ended it. *ret_stamp (may be NULL): when the last of them arrived. */
    ssize_t (*send)(struct lane_set *set, struct stream *stream, const struct iovec *parts,
                    int count);
    ssize_t (*receive)(struct lane_set *set, struct stream *stream, const struct iovec *parts,
                       int count, struct io_stamp *ret_stamp);

    /* For lanes whose data lands in our memory directly; NULL: we read all data, so the lane is silent when it is closed.
     * silence: from now on nothing of ours leaves, and what arrives is dropped. silent: nothing that came before lands any more,
     * and what landed is counted; false: ask again. It must become true in time, whatever the state of the connection is. */
    void (*silence)(struct lane_set *set, struct stream *stream);
    bool (*silent)(struct lane_set *set, uint32_t lane);
    /* The connection is over at this end. reset: data that is sent but not delivered is dropped, and the peer is told. */
    void (*end)(struct lane_set *set, struct stream *stream, bool reset);
    /* What the other end's kernel or NIC has acknowledged, even if its process has no processor. */
    void (*info)(const struct lane_set *set, const struct stream *stream, struct io_info *ret);
    /* One event, once, to the housekeeping, for sets that are not polled. */
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
