/* ledger_internal.h: shared by the ledger's files. */
#pragma once
#include "core/failover/chunk_bits.h"
#include "core/failover/ledger.h"
#include "core/failover/places.h"

#define COMM_AHEAD  4096                    /* numbers above the lowest one that was not opened */
#define COMM_WINDOW (2 * COMM_REQUESTS_MAX) /* receives from the oldest unfinished to the newest */

/* The destination that a lane reads into. */
enum reading_place {
    READING_NONE,
    READING_BUFFER,  /* holds the chunk's claim */
    READING_STAGING, /* another lane holds the claim, or unverified bytes must not become visible */
    READING_SLOT,    /* holds the slot's claim */
    READING_BIN,
};

struct in_lane {
    bool open;
    uint32_t epoch;
    uint64_t taken;
    enum reading_place place;
    struct lane_chunk chunk; /* the chunk that it reads */
    uint32_t got;            /* of its bytes */
    /* for news: the last reported count */
    uint64_t taken_reported;
    uint32_t unreported_chunks;
    uint64_t unreported_bytes;
    struct mono unreported_since;
    enum ledger_way way;
    uint32_t barred;      /* epochs below are never opened any more */
    struct mono fence_at; /* if bit k of ledger.fences is set: when to report it */
    struct span fence_gap;
};

enum slot_state {
    SLOT_EMPTY,
    SLOT_FILLING, /* claimed by a lane */
    SLOT_FULL,    /* verified: it corresponds to the chunk's bit */
};
struct slot {
    enum slot_state state;
    uint32_t comm;
    uint64_t message;
    uint32_t size;
    int32_t lane; /* the lane that fills it */
};

/* A posted buffer. Entries are numbered like messages: a group of n takes n numbers. With one buffer in each group, entry and
 * message are the same; otherwise the sender decides which message goes to which buffer. */
struct in_message {
    uint64_t number, first;
    uint64_t sender_message; /* the message for this buffer, if seen */
    uint32_t done_mask;      /* in the group's first entry: bit k: message first + k is complete */
    uint8_t group_count;     /* 0: the entry was never used */
    uint8_t index;
    uint8_t grid; /* 0: no chunk seen yet */
    bool staged, complete, seen;
    uint8_t *data;
    uint32_t size; /* of the buffer */
    uint32_t got_size;
    int32_t tag;
    uint32_t chunks, left;
    uint64_t cookie;
    struct chunk_bits bits;
};

struct done {
    uint64_t cookie;
    uint32_t count;
    uint32_t sizes[COMM_GROUP_MAX];
};

struct in_comm {
    uint32_t number, group_max, capacity;
    uint32_t place; /* index in ledger.open */
    uint64_t placed, posted;
    uint64_t unique; /* bytes of chunks that set a bit */
    uint64_t window, granted;
    uint32_t in_flight; /* receives not complete */
    bool misfit;        /* a receive was too small: nothing more is delivered */
    bool news;          /* placed, posted or granted changed since the last report */
    int lane;           /* the lane that delivered last, or -1 */
    struct span repeat;
    struct mono repeat_at;
    uint32_t done_head, done_count;
    struct done done[COMM_WINDOW];
    struct in_message messages[]; /* capacity, by number */
};

struct refused {
    uint32_t comm;
    uint64_t message;
    uint32_t count;
};

struct ledger {
    struct ledger_config config;
    struct in_lane lanes[LANE_MAX];
    uint32_t lanes_open; /* bit k: lanes[k] is open. So closed lanes cost nothing for each chunk */
    struct slot slots[LANE_EAGER_SLOTS_MAX];
    uint32_t slots_used;    /* bit k: slots[k] isn't empty; for most messages all are empty */
    uint32_t slots_hold;    /* bytes of a large one */
    uint32_t places;        /* for comms, doubled when needed */
    struct in_comm **comms; /* at the place of their number, or after it */
    struct in_comm *
        *open; /* the same comms, open_count of them, so that empty places cost nothing */
    uint32_t open_count;
    bool displaced; /* some comm isn't at the place of its number */
    uint32_t comm_floor;
    uint64_t opened[COMM_AHEAD / 64]; /* above the floor, by number modulo the size */
    uint32_t done_total, done_turn;
    bool news;
    struct mono repeat_at; /* no comm's time is earlier */
    uint32_t fences;       /* lanes with a fence that must be reported */
    uint32_t report_turn, sequence;
    bool misfit_news;
    struct ledger_misfit misfit; /* the last one */
    struct refused refused;      /* the message of the last forbidden frame */
    struct ledger_counters counters;
    bool nonsense; /* the broken condition is the fault of the peer or of the poster */
    struct bug_note bug;
};

static inline void slot_become(struct ledger *l, struct slot *s, enum slot_state state)
{
    const uint32_t bit = 1u << (s - l->slots);

    s->state = state;
    l->slots_used = state == SLOT_EMPTY ? l->slots_used & ~bit : l->slots_used | bit;
}

struct in_comm *ledger_comm_find(const struct ledger *l, uint32_t number);
bool ledger_comm_was(const struct ledger *l, uint32_t number);
struct in_message *ledger_message(struct in_comm *c, uint64_t number);
/* A message of that size came for that receive. */
void ledger_misfit_note(struct ledger *l, struct in_comm *c, const struct in_message *m,
                        uint32_t size);
/* True if that message is complete: nothing may be written for it. */
bool ledger_message_done(struct in_comm *c, uint64_t number);
struct slot *ledger_slot_of(struct ledger *l, uint32_t comm, uint64_t message);
void ledger_chunk_set(struct ledger *l, struct in_comm *c, struct in_message *m, uint32_t index,
                      uint32_t length);
/* The lane reads nothing any more: its claims end. */
void ledger_chunk_forget(struct ledger *l, uint32_t lane);
void ledger_report_init(struct ledger *l);
/* ledger_fence_tell: the lane's fence must be reported. ledger_fence_heard: the sender has got it. */
void ledger_fence_tell(struct ledger *l, uint32_t lane);
void ledger_fence_heard(struct ledger *l, uint32_t lane);
/* Everything is news again. */
void ledger_report_all(struct ledger *l);
void ledger_report_chunk(struct ledger *l, struct mono now, uint32_t lane, uint32_t bytes);
void ledger_window_update(struct ledger *l, struct in_comm *c);
