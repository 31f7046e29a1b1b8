/* comm.h: one of NCCL's communicators on a set, and its requests. Under the set's lock. */
#pragma once
#include "base/limits.h"
#include "base/time.h"
#include "transport/transport.h"
#include "wire/lane.h"

struct lane_set;

struct transport_request {
    struct transport_comm *comm;
    bool done;
    size_t size; /* bytes that came or went */
    size_t room; /* size of the request's buffer */
    struct mono posted;
    void *parent;
    const void *data;        /* its memory: `room` bytes, in use until it is done; NULL: a flush */
    struct gpu_flush *flush; /* a flush that waits until a GPU sees bytes; NULL: a message */
};

/* A message to be sent: its request, and the copy of a small one. */
struct outgoing {
    bool used;
    struct transport_request *request; /* NULL: done already */
    /* of messages of up to LANE_EAGER_SIZE_MAX; copies of larger ones are the set's */
    uint8_t *copy;
    uint32_t copy_size;
    uint32_t places;  /* places of the set's copies, as bits; 0: none */
    bool gpu;         /* the message is in memory of a GPU */
    uint8_t *fetched; /* bytes of a small message from a GPU; NULL: none */
};

enum comm_state {
    COMM_OPENING, /* sender: until the receiver reported it; receiver: until accepted */
    COMM_OPEN,
    COMM_CLOSING, /* closed above; its debt to the peer isn't paid yet */
};

struct transport_comm {
    struct lane_set *set;
    struct transport_comm *next;       /* in the set's list */
    struct transport_comm *next_place; /* in the list of those with the same place by number */
    struct transport_comm *next_ready; /* in the listener's list */
    uint64_t id;                       /* at the connecting side, for transport_connect's state */
    uint64_t cookie;
    uint32_t number;
    enum comm_state state;
    bool sending;
    bool released;                       /* it owes nothing more: housekeeping may free it */
    bool book_closed;                    /* ledger or sender have removed it */
    bool close_heard;                    /* the peer's CLOSE came */
    bool told;                           /* CLOSE was written at least once */
    bool abort;                          /* closed with requests in flight: it owes nothing */
    struct mono close_next, close_until; /* until: so long an abort is repeated */
    struct span close_gap;
    struct mono opened_at; /* for a sender: when OPEN was written last */
    uint32_t opened_on;    /* bit k: OPEN was written to lane k's present epoch */
    /* for a receiver: the number of receives that the sender knows, */
    uint64_t posted_told;
    uint64_t posts_told;               /* and of those whose place it was sent, in this round; */
    bool posts_left;                   /* the others found no room; */
    struct mono posts_at;              /* when the last round began */
    uint64_t last_placed, last_posted; /* for a receiver: the values when it was closed */
    uint64_t arrived;                  /* for a receiver: the bytes at the last count, */
    struct mono arrived_at;            /* and when that count had grown */
    int error;
    char *why;     /* NULL: the set's reason, or none */
    uint32_t used; /* bit k: requests[k] is used */
    struct transport_request requests[TRANSPORT_REQUEST_MAX];
    struct outgoing outgoing[COMM_REQUESTS_MAX]; /* for a sender */
    struct {
        /* chunks that were written; those of them before the last read; that read's ticket */
        uint64_t written, asked, ticket;
        struct mono at;     /* when that read was asked for */
    } gpu[IO_RDMA_DEVICES]; /* for a receiver: by the device that wrote */
};

/* Each direction has its own numbers. */
struct transport_comm *comm_find(const struct lane_set *set, bool sending, uint32_t number);
struct transport_comm *comm_new(struct lane_set *set, bool sending, uint32_t number);
/* Pays the debts of closed comms; frees nothing. Under the lock. */
void comm_closings(struct lane_set *set, struct mono now);
void comm_on_close(struct lane_set *set, struct mono now, uint32_t lane,
                   const struct lane_close *close);
/* Sends CLOSE ("it isn't here any more") to a peer that refers to an unknown comm, so that it doesn't wait for ever. flags:
 * LANE_CLOSE_ABORT: in any case; 0: only if it still waits for something. */
void comm_unknown(struct lane_set *set, uint32_t lane, bool sending, uint32_t number,
                  uint8_t flags);
/* The transport ends: the debts of closed comms are cancelled. */
void comm_write_off(struct lane_set *set, struct mono now);
/* Records why a call about it failed with that error. Under the lock. */
void comm_why(const struct transport_comm *comm, int error);
/* The first reason stays. */
void comm_blame(struct transport_comm *comm, int error, const char *why);
/* Its requests end with that error, and their memory is its owner's when this returns. The peer gets the error when the comm is
 * closed. */
void comm_give_up(struct transport_comm *comm, struct mono now, int error, const char *why);
/* The time at which comm_closings has something to do again. */
struct mono comm_deadline(const struct lane_set *set);
/* It can't be found by its number any more, and its memory is freed. */
void comm_free(struct transport_comm *comm);
