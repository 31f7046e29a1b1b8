/* blame.h: decides whether a job is slow because of the network, from the reports of its ranks about lanes and messages.
 *
 * A lane that failed because of the network is evidence. So is a message that waits longer between hosts than at both of them.
 * "no" needs evidence, too: every rank is heard, no lane is down, and messages are known to spend their time elsewhere. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

/* a smaller excess over the least delay is no relevant wait */
#define BLAME_WAIT_NS  50000
#define BLAME_FAULT_NS (600 * NS_PER_S) /* a fault counts against the network for so long */
#define BLAME_FLOW_MAX 4096             /* more flows don't change a median */

enum blame {
    BLAME_UNHEARD, /* unknown: no rank is heard, or not every one */
    BLAME_UNTIMED, /* unknown: no flow's delay is known */
    BLAME_NOT,     /* no */
    BLAME_LOADED,  /* yes: nothing is broken, but messages wait in the network */
    BLAME_HURT,    /* yes: lanes failed a short while ago; they or others carry the traffic again */
    BLAME_BROKEN,  /* yes: lanes are down because of the network, or a rank has no path to a peer */
};

struct blame_signals {
    uint32_t ranks, ranks_heard; /* ranks 0: their number is unknown */
    uint32_t ranks_parted, lanes_down;
    uint32_t faults; /* lanes that failed because of the network within the last minutes */
    uint32_t flows;  /* flows with a known delay; the following values are medians over them: */
    int64_t network_ns, floor_ns, sender_ns, receiver_ns; /* floor: the least time in the network */
};

enum blame blame_judge(const struct blame_signals *s);

/* ---- the reports of its ranks, one after the other ---- */

struct blame_flow {
    bool sending, active;
    /* its lane is down, or is about to fail */
    bool down;
    uint32_t network_ns, floor_ns, sender_ns, receiver_ns; /* network_ns 0: not known */
};
struct blame_book {
    struct blame_signals signals;
    uint32_t network[BLAME_FLOW_MAX], floor[BLAME_FLOW_MAX], sender[BLAME_FLOW_MAX],
        receiver[BLAME_FLOW_MAX];
};
/* ranks: the job's number of ranks; faults: lanes that failed lately because of the network, the last one so long ago. */
void blame_begin(struct blame_book *b, uint32_t ranks, uint32_t faults, struct span ago);
/* A rank that is heard; parted: it has no path to a peer. */
void blame_on_rank(struct blame_book *b, bool parted);
/* True: its lane is the first one that is down. */
bool blame_on_flow(struct blame_book *b, const struct blame_flow *f);
enum blame blame_end(struct blame_book *b); /* afterwards b->signals has the medians */

const char *blame_answer(enum blame blame); /* "yes", "no", "unknown" */
const char *
blame_word(enum blame blame); /* "broken", "hurt", "loaded", "well", "untimed", "unheard" */
