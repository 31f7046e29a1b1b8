/* blame.h: is a job slow because of the network? What its ranks say of their lanes and messages, in one answer.
 *
 * A lane that the network took is evidence; so is a message that waits longer between hosts than at both of them. "no" takes
 * evidence, too: every rank is heard, no lane is down, and messages' time is known and goes elsewhere. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define BLAME_WAIT_NS  50000            /* less above the least delay is no wait to speak of */
#define BLAME_FAULT_NS (600 * NS_PER_S) /* a fault is held against the network for so long */
#define BLAME_FLOW_MAX 4096             /* more don't move a median */

enum blame {
    BLAME_UNHEARD, /* unknown: no rank, or not every one, is heard */
    BLAME_UNTIMED, /* unknown: no flow's delay is known */
    BLAME_NOT,     /* no */
    BLAME_LOADED,  /* yes: nothing is broken, messages wait in the network all the same */
    BLAME_HURT,    /* yes: it took lanes a short while ago; they carry again, or others do */
    BLAME_BROKEN,  /* yes: it took lanes, or a rank has no way left to a peer */
};

struct blame_signals {
    uint32_t ranks, ranks_heard; /* ranks 0: nobody says how many there are */
    uint32_t ranks_parted, lanes_down;
    uint32_t faults; /* lanes that the network took within the last minutes */
    uint32_t flows;  /* of which the delay is known; the rest are medians over them: */
    int64_t network_ns, floor_ns, sender_ns,
        receiver_ns; /* floor: the least that the network took */
};

enum blame blame_judge(const struct blame_signals *s);

/* ---- what its ranks tell, one after the other ---- */

struct blame_flow {
    bool sending, active;
    bool down;                                             /* its lane is, or is about to be */
    uint32_t network_ns, floor_ns, sender_ns, receiver_ns; /* network_ns 0: not known */
};
struct blame_book {
    struct blame_signals signals;
    uint32_t network[BLAME_FLOW_MAX], floor[BLAME_FLOW_MAX], sender[BLAME_FLOW_MAX],
        receiver[BLAME_FLOW_MAX];
};
/* ranks: that it has; faults: lanes that the network took lately, the last one so long ago. */
void blame_begin(struct blame_book *b, uint32_t ranks, uint32_t faults, struct span ago);
/* One that is heard; parted: no way is left to a peer. */
void blame_on_rank(struct blame_book *b, bool parted);
/* True: it is the first whose lane is down. */
bool blame_on_flow(struct blame_book *b, const struct blame_flow *f);
enum blame blame_end(struct blame_book *b); /* the medians are in b->signals then */

const char *blame_answer(enum blame blame); /* "yes", "no", "unknown" */
const char *
blame_word(enum blame blame); /* "broken", "hurt", "loaded", "well", "untimed", "unheard" */
