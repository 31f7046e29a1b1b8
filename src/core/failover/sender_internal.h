/* sender_internal.h: shared by the sender's files. */
#pragma once
#include "core/failover/chunk_bits.h"
#include "core/failover/places.h"
#include "core/failover/sender.h"

#define COMM_WINDOW COMM_REQUESTS_MAX

/* A chunk's bit in `sent`: it needs no sending (now); in `taken`: the receiver has it. So the pool is the set of clear bits in
 * `sent`. Returning a chunk clears its bit: no queue is needed, and no limit. */
struct out_message {
    uint64_t number;
    bool used;
    bool eager;
    uint8_t slot;
    uint8_t grid;   /* 0: not cut yet */
    uint8_t buffer; /* its index in the group */
    bool matched;   /* its buffer is known (from POST) */
    const uint8_t *source;
    uint32_t size;
    int32_t tag;
    uint64_t cookie;
    struct mono queued;
    uint32_t chunks, fresh; /* chunks below fresh were sent at least once */
    uint32_t first_clear;   /* no bit of `sent` below is clear */
    uint32_t returned;      /* number of clear bits of `sent` below fresh */
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
    uint32_t place; /* index in sender.open */
    bool confirmed;
    bool peer_closed;
    uint32_t sequence;                       /* of the last report */
    uint64_t placed, posted, granted, count; /* count: messages so far */
    uint64_t started;                        /* bytes that were sent for the first time */
    uint32_t on_lanes;                       /* chunks on lanes, once for each lane */
    uint64_t cursor;                         /* messages below were sent completely once */
    uint64_t done;                           /* messages below were returned as done */
    uint32_t returned;                       /* returned chunks of all its messages */
    struct out_message messages[COMM_WINDOW];
    struct post *posts; /* COMM_WINDOW * 2 * group_max, by message number; NULL: not needed */
};

struct entry {
    uint32_t comm;
    uint32_t index;
    uint64_t message;
    uint32_t bytes;
    bool asking;   /* it only tests the lane: the message doesn't depend on it */
    bool doubled;  /* it may be on another lane, too */
    uint32_t load; /* bytes on the lane then, itself included */
    bool alone;
    struct mono bound;
};

struct out_lane {
    bool open;
    bool held;    /* fenced sets: it is down and waits for its fence */
    bool doubted; /* some of its chunks are on no undoubted lane */
    uint32_t epoch;
    uint64_t sent, taken;
    struct lane_load *load; /* points into sender.loads */
    uint32_t head;
    struct entry *entries; /* SENDER_LANE_CHUNKS, from its first epoch on */
};

struct sender {
    struct sender_config config;
    struct out_lane lanes[LANE_MAX];
    struct lane_load loads[LANE_MAX];
    uint32_t places;         /* for comms, doubled when needed */
    struct out_comm **comms; /* by number modulo places */
    /* the same comms, comm_count of them; the busy ones come first: those with */
    struct out_comm **open;
    /* messages that aren't done. So empty places and idle comms cost nothing */
    uint32_t busy_count;
    uint32_t next_comm, comm_count, turn;
    uint32_t slots_used;   /* bit k */
    uint32_t small, large; /* of the peer: numbers from 0 and from config.slots - config.large */
    uint32_t hold;         /* bytes of a large one */
    uint32_t slot_comm[LANE_EAGER_SLOTS_MAX];
    uint32_t returned; /* returned chunks of all comms */
    uint32_t unsent;   /* messages that were not yet sent completely once */
    uint64_t pending;  /* bytes that are on no lane and not taken */
    uint32_t done_turn;
    uint64_t undone; /* placed messages that were not returned yet */
    struct sender_counters counters;
    struct bug_note bug;
};

struct out_comm *sender_comm_find(const struct sender *s, uint32_t number);
struct out_message *sender_message(struct out_comm *c, uint64_t number);
/* The chunk goes back to the pool. False: it is there already, or needs no sending any more. */
bool sender_return(struct sender *s, const struct entry *entry);
/* It needs no sending any more: removes it from the pool, if it is there. */
void sender_withdraw(struct sender *s, const struct entry *entry);
/* The number of bytes of that chunk. */
static inline uint32_t chunk_length(const struct out_message *m, uint32_t index)
{
    const uint64_t offset = (uint64_t)index << m->grid;

    return (uint32_t)(m->size - offset < 1u << m->grid ? m->size - offset : 1u << m->grid);
}
