/* lane_pair.h: a lane's queue pair, or one that is being made. lane_copy.c carries bytes over it, and lane_offer.c agrees on it
 * with the peer. Under the set's lock. */
#pragma once
#include "transport/io_rdma.h"
#include "transport/memory.h"
#include "transport/stream.h"
#include "wire/lane_qp.h"

/* 67 ms, and a queue pair gives up after seven of them. The watch has judged long before; a pause of less than 0.4 s does no
 * harm. */
#define QP_TIMEOUT    14
#define QP_TIMEOUT_NS (4096LL << QP_TIMEOUT)

enum pair_step {
    PAIR_OPENING,    /* the driver makes it */
    PAIR_OFFERED,    /* at the connecting end: the peer is asked */
    PAIR_CONNECTING, /* the driver connects it */
    PAIR_PROVING,    /* a cell must arrive there, and one must come */
    PAIR_UP,         /* proven: the stream continues over it, in each direction after SWITCH */
};

/* A cell that came and isn't read completely. */
struct pair_cell {
    uint32_t cell, size;
    struct io_stamp stamp;
};

struct lane_pair {
    int qp; /* the driver's number */
    enum pair_step step;
    bool answers;  /* the peer offered it */
    bool direct;   /* both ends write: it is fenced before its lane is over */
    bool routed;   /* its path is decided; */
    uint32_t path; /* chosen to share as little as possible with others' paths; 0: left to chance */
    bool said;     /* this end's frame of this step is queued */
    uint32_t attempt;
    struct mono until, up_at;
    struct io_qp_end own, peer;
    struct io_qp_cells cells;
    uint32_t count;     /* of ours, to send from and to receive into */
    uint32_t out_count; /* the peer's, to receive into */
    uint32_t out_size;  /* the largest cell that we send */
    int error;          /* why it is over; 0: it isn't */
    struct {            /* the completion that showed it; status IO_QP_OK: none */
        enum io_qp_status status;
        uint8_t number;
        uint32_t vendor;
    } broke;
    bool probed, ended; /* the peer's PROBE came; the peer's END came */
    bool in;            /* the incoming data is read from it */
    bool tcp_done;      /* the peer's kernel has all data that was sent over TCP */
    /* of stream.bytes_out: data from there on is written to it; UINT64_MAX: none */
    uint64_t out_at;
    /* cells sent: total, completed, given back by the peer. Cell `sent % count` is the next one. */
    uint32_t sent, completed, returned;
    uint32_t sizes[LANE_QP_CELLS_MAX]; /* bytes of the stream in each */
    struct mono sent_at[LANE_QP_CELLS_MAX];
    struct {
        bool is;
        uint32_t comm;
        uint64_t message;
    } writes[LANE_QP_CELLS_MAX]; /* the writes that go before them */
    uint8_t device_told,
        /* the device whose keys in POST are for the peer's end, from 1 on; the device by number */
        peer_device;
    uint64_t acked; /* bytes of the stream that the peer's NIC has */
    int64_t rtt_ns, rtt_var_ns, rtt_ns_min;
    struct mono acked_at;
    /* cells that came: given back in total; the part of it that the peer was sent */
    uint32_t freed, told;
    struct pair_cell ready[LANE_QP_CELLS_MAX];
    uint32_t ready_first, ready_count;
    uint32_t read;         /* bytes of the first one */
    struct io_stamp stamp; /* of the bytes that were read last */
    /* the end of a direct one */
    uint32_t posted, flushed; /* receives that the NIC has; those that were flushed */
    bool marked;              /* nothing of it leaves the NIC any more; */
    bool silent;              /* and all of it is in its place */
    struct gpu_wait settling;
    struct mono silence_at;
    /* the TCP connection, once no data passes over it */
    struct mono tether_at; /* the last look */
    struct mono fin_at;    /* when the peer ended it; 0: not yet */
};

/* Takes completions; afterwards qp->error shows whether it is over. */
void lane_pair_poll(struct lane_set *set, struct stream *stream);
/* Sends a cell without bytes of the stream. False: no room now. */
bool lane_pair_say(struct lane_set *set, struct stream *stream, enum lane_cell kind, uint32_t size);
/* The UDP source port of this end's packets; 0: it isn't RoCE. */
uint16_t lane_pair_port(const struct stream *stream);
static inline bool lane_pair_writes(const struct stream *stream, const struct lane_pair *qp)
{
    return stream->bytes_out >= qp->out_at;
}
