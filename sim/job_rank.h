/* job_rank.h: flows of simulated jobs: what job_rank.c and job_order.c share. */
#pragma once
#include "sim/job_private.h"

#define DEPTH_MAX 16

enum side_state { SIDE_BEGIN, SIDE_OPENING, SIDE_OPEN, SIDE_OVER };

struct slot {
    struct transport_request *request; /* NULL: free */
    uint32_t message;
    uint32_t size, room;
    struct transport_memory *memory; /* NULL: the driver refused it */
    uint8_t *bytes;                  /* size_max + SLACK * 2 */
    uint32_t filled;                 /* number of bytes with `pattern`, while it is free */
    uint8_t pattern;
    bool done;
    int64_t at;
};

struct side {
    enum side_state state;
    struct transport_comm *comm;
    uint64_t connecting;
    uint32_t next;   /* the next message to post */
    uint32_t over;   /* all messages below are done */
    uint32_t rested; /* the rest before that message has begun */
    int64_t not_before;
    struct slot slots[DEPTH_MAX];
};

struct flow {
    uint32_t index, from, to, from_nic, to_nic;
    uint32_t generation; /* of communicators */
    uint32_t before;     /* ring: this flow passes that flow's messages on */
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    bool listening;
    struct transport_listener *listener;
    struct side out, in;
    bool excused; /* one end was given up, killed or cut off */
    bool surplus; /* the receiver posts more receives than there are messages */
    bool over;
    int64_t sent_at[DEPTH_MAX];
};

/* -- job_order.c */
/* True if the sender's next message may go now. Call it only when nothing else holds the message back, because a rest begins
 * with this call. */
bool order_send(struct job_world *w, struct flow *f);
/* True if the receiver may wait for its next message. */
bool order_receive(const struct job_world *w, const struct flow *f);
