/* lane_pair.h: a lane's queue pair, or one in the making: shared by lane_copy.c, which carries bytes over it, and
 * lane_offer.c, which agrees with the peer to do so. Under the set's lock. */
#pragma once
#include "transport/io_rdma.h"
#include "transport/memory.h"
#include "transport/stream.h"
#include "wire/lane_qp.h"

/* 67 ms, and a queue pair gives up after seven of them. Long before, the watch has judged; a pause of less than 0.4 s is ridden
 * out. */
#define QP_TIMEOUT    14
#define QP_TIMEOUT_NS (4096LL << QP_TIMEOUT)

enum pair_step {
    PAIR_OPENING,    /* the driver makes it */
    PAIR_OFFERED,    /* who connected the lane: the peer is asked */
    PAIR_CONNECTING, /* the driver connects it */
    PAIR_PROVING,    /* a cell must go there, and one must come */
    PAIR_UP,         /* proven: the stream goes on over it, in each direction after SWITCH */
};

/* A cell that came and isn't read to its end. */
struct pair_cell {
    uint32_t cell, size;
    struct io_stamp stamp;
};

struct lane_pair {
    int qp; /* the driver's number */
    enum pair_step step;
    bool answers;  /* the peer offered it */
    bool direct;   /* both ends write: it is fenced before its lane is over */
    bool routed;   /* which path it takes is settled; */
    uint32_t path; /* chosen so that it shares as little as can be with others'; 0: by luck */
    bool said;     /* our frame of this step is queued */
    uint32_t attempt;
    struct mono until, up_at;
    struct io_qp_end own, peer;
    struct io_qp_cells cells;
    uint32_t count;     /* of ours, to send from and to receive into */
    uint32_t out_count; /* the peer's to receive into */
    uint32_t out_size;  /* of a cell that we send, at most */
    int error;          /* why it is over; 0: it isn't */
    struct {            /* which completion told so; status IO_QP_OK: none */
        enum io_qp_status status;
        uint8_t number;
        uint32_t vendor;
    } broke;
    bool probed, ended; /* the peer's PROBE came; its END */
    bool in;            /* what comes is read from it */
    bool tcp_done;      /* the peer's kernel has all that went over TCP */
    uint64_t out_at; /* of stream.bytes_out: from there on it is written to it; UINT64_MAX: not */
    /* cells sent: all in all, completed, given back by the peer. Cell `sent % count` is the next */
    uint32_t sent, completed, returned;
    uint32_t sizes[LANE_QP_CELLS_MAX]; /* bytes of the stream in each */
    struct mono sent_at[LANE_QP_CELLS_MAX];
    struct {
        bool is;
        uint32_t comm;
        uint64_t message;
    } writes[LANE_QP_CELLS_MAX]; /* that go before them */
    uint8_t device_told,
        peer_device; /* whose of POST's keys are for the peer's end: from 1, from 0 on */
    uint64_t acked;  /* bytes of the stream: the peer's NIC has them */
    int64_t rtt_ns, rtt_var_ns, rtt_ns_min;
    struct mono acked_at;
    /* cells that came: given back, all in all; of these the peer has been told */
    uint32_t freed, told;
    struct pair_cell ready[LANE_QP_CELLS_MAX];
    uint32_t ready_first, ready_count;
    uint32_t read;         /* of the first one */
    struct io_stamp stamp; /* of what was read last */
    /* the end of a direct one */
    uint32_t posted, flushed; /* receives: with the NIC; flushed */
    bool marked;              /* nothing of it leaves the NIC any more; */
    bool silent;              /* and all is where it belongs */
    struct gpu_wait settling;
    struct mono silence_at;
    /* the TCP connection, once nothing goes over it */
    struct mono tether_at; /* looked at last */
    struct mono fin_at;    /* the peer ended it; 0: not */
};

/* Takes what completed; afterwards qp->error tells whether it is over. */
void lane_pair_poll(struct lane_set *set, struct stream *stream);
/* A cell with nothing of the stream. False: no room now. */
bool lane_pair_say(struct lane_set *set, struct stream *stream, enum lane_cell kind, uint32_t size);
/* The UDP source port of what this end sends over it; 0: it isn't RoCE. */
uint16_t lane_pair_port(const struct stream *stream);
static inline bool lane_pair_writes(const struct stream *stream, const struct lane_pair *qp)
{
    return stream->bytes_out >= qp->out_at;
}
