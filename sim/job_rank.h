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
    uint32_t filled;                 /* with `pattern`, while free */
    uint8_t pattern;
    bool done;
    int64_t at;
};

struct side {
    enum side_state state;
    struct transport_comm *comm;
    uint64_t connecting;
    uint32_t next;   /* message to post */
    uint32_t over;   /* messages below are done */
    uint32_t rested; /* the rest before that message was begun */
    int64_t not_before;
    struct slot slots[DEPTH_MAX];
};

struct flow {
    uint32_t index, from, to, from_nic, to_nic;
    uint32_t generation; /* of communicators */
    uint32_t before;     /* ring: whose messages this one passes on */
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    bool listening;
    struct transport_listener *listener;
    struct side out, in;
    bool excused; /* an end was given up, killed, cut off */
    bool surplus; /* the receiver posts more than there will be */
    bool over;
    int64_t sent_at[DEPTH_MAX];
};

/* -- job_order.c */
/* May the sender's next message go now? Asked when nothing else is in its way: a rest begins with the question. */
bool order_send(struct job_world *w, struct flow *f);
/* May the receiver wait for its next one? */
bool order_receive(const struct job_world *w, const struct flow *f);
