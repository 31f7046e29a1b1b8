/* lane_tcp.c: lanes that are TCP connections. */
#include "transport/internal.h"

static ssize_t tcp_send(struct lane_set *set, struct stream *stream, const struct iovec *parts,
                        int count)
{
    struct io *io = set->transport->io;

    return io->send(io, stream->conn, parts, count);
}

static ssize_t tcp_receive(struct lane_set *set, struct stream *stream, const struct iovec *parts,
                           int count, struct io_stamp *ret_stamp)
{
    struct io *io = set->transport->io;

    return io->receive(io, stream->conn, parts, count, ret_stamp);
}

static void tcp_end(struct lane_set *set, struct stream *stream, bool reset)
{
    struct io *io = set->transport->io;

    if (stream->conn >= 0) {
        io->close(io, stream->conn, reset);
    }
}

static void tcp_info(const struct lane_set *set, const struct stream *stream, struct io_info *ret)
{
    struct io *io = set->transport->io;

    io->info(io, stream->conn, ret);
}

static int tcp_arm(struct lane_set *set, uint32_t lane, uint32_t events)
{
    struct io *io = set->transport->io;

    return io->arm(io, set->streams[lane]->conn, (uint64_t)set->index * LANE_MAX + lane, events);
}

const struct lane_kind lane_tcp = {.name = "tcp",
                                   .flush = stream_flush_bytes,
                                   .read = stream_read_bytes,
                                   .send = tcp_send,
                                   .receive = tcp_receive,
                                   .end = tcp_end,
                                   .info = tcp_info,
                                   .arm = tcp_arm};
