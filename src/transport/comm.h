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
    size_t size; /* that came or went */
    size_t room; /* as asked for */
    struct mono posted;
    void *parent;
    const void *data;        /* its memory: `room` bytes, until it is done; NULL: a flush */
    struct gpu_flush *flush; /* it waits for a GPU to see bytes; NULL: it is a message's */
};

/* A message on its way out: who waits for it, and the copy of a small one. */
struct outgoing {
    bool used;
    struct transport_request *request; /* NULL: done already */
    uint8_t *copy;                     /* of up to LANE_EAGER_SIZE_MAX; a larger one is the set's */
    uint32_t copy_size;
    uint32_t places;  /* of the set's copies, as bits; 0: none */
    bool gpu;         /* the message lies in memory of a GPU */
    uint8_t *fetched; /* what lay there: of a small message; NULL: none */
};

enum comm_state {
    COMM_OPENING, /* sender: until the receiver reported it; receiver: until accepted */
    COMM_OPEN,
    COMM_CLOSING, /* closed above; what is owed to the peer isn't paid yet */
};

struct transport_comm {
    struct lane_set *set;
    struct transport_comm *next;       /* of the set */
    struct transport_comm *next_place; /* of those at its number's place */
    struct transport_comm *next_ready; /* of the listener */
    uint64_t id;                       /* of the connecting side, for transport_connect's state */
    uint64_t cookie;
    uint32_t number;
    enum comm_state state;
    bool sending;
    bool released;                       /* nothing owed any more: housekeeping may free it */
    bool book_closed;                    /* ledger or sender have forgotten it */
    bool close_heard;                    /* the peer's CLOSE came */
    bool told;                           /* CLOSE was written at least once */
    bool abort;                          /* closed with requests in flight: owes nobody */
    struct mono close_next, close_until; /* until: an abort is told so long */
    struct span close_gap;
    struct mono opened_at;             /* sending: OPEN was written last */
    uint32_t opened_on;                /* bit k: OPEN was written to lane k's present epoch */
    uint64_t posted_told;              /* receiving: how many receives the sender knows of, */
    uint64_t posts_told;               /* and has been told the place of, in this round, */
    bool posts_left;                   /* which found no room for the others; */
    struct mono posts_at;              /* all that it still needed then */
    uint64_t last_placed, last_posted; /* receiving: when it was closed */
    uint64_t arrived;                  /* receiving: bytes, when they were counted last */
    struct mono arrived_at;            /* and when that had grown */
    int error;
    char *why;     /* NULL: the set's, or nothing to be said */
    uint32_t used; /* bit k: requests[k] */
    struct transport_request requests[TRANSPORT_REQUEST_MAX];
    struct outgoing outgoing[COMM_REQUESTS_MAX]; /* sending */
    struct {
        uint64_t written, asked, ticket; /* chunks; of them, those before its last read */
        struct mono at;                  /* of that read */
    } gpu[IO_RDMA_DEVICES];              /* receiving: by that device */
};

/* Each direction has its own numbers. */
struct transport_comm *comm_find(const struct lane_set *set, bool sending, uint32_t number);
struct transport_comm *comm_new(struct lane_set *set, bool sending, uint32_t number);
/* Pays what closed comms owe; frees nothing. Under the lock. */
void comm_closings(struct lane_set *set, struct mono now);
void comm_on_close(struct lane_set *set, struct mono now, uint32_t lane,
                   const struct lane_close *close);
/* "It isn't here (any more)": to a peer that speaks of what we don't know, lest it wait for ever. flags: LANE_CLOSE_ABORT:
 * whatever it thinks of it; 0: if it still waits for something. */
void comm_unknown(struct lane_set *set, uint32_t lane, bool sending, uint32_t number,
                  uint8_t flags);
/* What closed comms still owe is owed no more: the transport ends. */
void comm_write_off(struct lane_set *set, struct mono now);
/* Says why a call about it failed with that error. Under the lock. */
void comm_why(const struct transport_comm *comm, int error);
/* The first reason stays. */
void comm_blame(struct transport_comm *comm, int error, const char *why);
/* Its requests end with that error, and their memory is its owner's when this returns. The peer hears of it when it is closed. */
void comm_give_up(struct transport_comm *comm, struct mono now, int error, const char *why);
/* When comm_closings has something to do again. */
struct mono comm_deadline(const struct lane_set *set);
/* Nobody finds it by its number any more, and its memory is gone. */
void comm_free(struct transport_comm *comm);
