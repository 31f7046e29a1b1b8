/* sender_internal.h: what the sender's files share. */
#pragma once
#include "core/failover/chunk_bits.h"
#include "core/failover/places.h"
#include "core/failover/sender.h"

#define COMM_WINDOW COMM_REQUESTS_MAX

/* A chunk's bit in `sent`: needs no sending (now); in `taken`: the receiver has it. So the pool is what
 * is clear in `sent`, and returning a chunk is clearing its bit: nothing to queue, nothing to bound. */
struct out_message {
    uint64_t number;
    bool used;
    bool eager;
    uint8_t slot;
    uint8_t grid;   /* 0: not cut yet */
    uint8_t buffer; /* in its group */
    bool matched;   /* its buffer is known (POST) */
    const uint8_t *source;
    uint32_t size;
    int32_t tag;
    uint64_t cookie;
    struct mono queued;
    uint32_t chunks, fresh; /* chunks below fresh were sent at least once */
    uint32_t first_clear;   /* no clear bit of `sent` below */
    uint32_t returned;      /* clear bits of `sent` below fresh */
    uint64_t address;       /* from POST */
    struct lane_keys keys;
    struct chunk_bits sent, taken;
};

struct post {
    bool known, matched;
    struct lane_post post;
};

struct out_comm {
    uint32_t number, group_max;
    uint32_t place; /* in sender.open */
    bool confirmed;
    bool peer_closed;
    uint32_t sequence;                       /* of the last report */
    uint64_t placed, posted, granted, count; /* count: messages so far */
    uint64_t started;                        /* bytes sent for the first time */
    uint32_t on_lanes;                       /* chunks on lanes, each as often as it is on one */
    uint64_t cursor;                         /* messages below are wholly sent once */
    uint64_t done;                           /* messages below were handed out as done */
    uint32_t returned;                       /* chunks that came back, in all its messages */
    struct out_message messages[COMM_WINDOW];
    struct post *posts; /* COMM_WINDOW * 2 * group_max, by message number; NULL: needs none */
};

struct entry {
    uint32_t comm;
    uint32_t index;
    uint64_t message;
    uint32_t bytes;
    bool asking;   /* how the lane is: the message doesn't count on it */
    bool doubled;  /* may be on another lane, too */
    uint32_t load; /* bytes on the lane then, it included */
    bool alone;
    struct mono bound;
};

struct out_lane {
    bool open;
    bool held;    /* fenced sets: down, waits for its fence */
    bool doubted; /* what is on it is on no lane that counts */
    uint32_t epoch;
    uint64_t sent, taken;
    struct lane_load *load; /* in sender.loads */
    uint32_t head;
    struct entry *entries; /* SENDER_LANE_CHUNKS, from its first epoch on */
};

struct sender {
    struct sender_config config;
    struct out_lane lanes[LANE_MAX];
    struct lane_load loads[LANE_MAX];
    uint32_t places;         /* for comms, doubled as they come */
    struct out_comm **comms; /* by number modulo places */
    struct out_comm *
        *open;           /* the same ones, comm_count of them; first the busy ones: those whose */
    uint32_t busy_count; /* messages aren't all done. Nobody looks at empty places or idle comms */
    uint32_t next_comm, comm_count, turn;
    uint32_t slots_used; /* bit k */
    uint32_t small,
        large;     /* that the peer has: numbers from 0 and from config.slots - config.large */
    uint32_t hold; /* bytes, a large one */
    uint32_t slot_comm[LANE_EAGER_SLOTS_MAX];
    uint32_t returned; /* chunks, in all comms */
    uint32_t unsent;   /* messages not yet wholly sent once */
    uint64_t pending;  /* bytes on no lane and not taken */
    uint32_t done_turn;
    uint64_t undone; /* messages placed and not yet handed out */
    struct sender_counters counters;
    struct bug_note bug;
};

struct out_comm *sender_comm_find(const struct sender *s, uint32_t number);
struct out_message *sender_message(struct out_comm *c, uint64_t number);
/* The chunk goes back to the pool. False: it is there, or needs no sending any more. */
bool sender_return(struct sender *s, const struct entry *entry);
/* It needs no sending any more: out of the pool, if it is there. */
void sender_withdraw(struct sender *s, const struct entry *entry);
/* Bytes of that chunk. */
static inline uint32_t chunk_length(const struct out_message *m, uint32_t index)
{
    const uint64_t offset = (uint64_t)index << m->grid;

    return (uint32_t)(m->size - offset < 1u << m->grid ? m->size - offset : 1u << m->grid);
}
