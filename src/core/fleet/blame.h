/* blame.h: is a job slow because of the network? What its ranks say of their lanes and messages, in one answer.
 *
 * A lane that the network took is evidence; so is a message that waits longer between hosts than at both of them. "no" takes
 * evidence, too: every rank is heard, no lane is down, and messages' time is known and goes elsewhere. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define BLAME_WAIT_NS 50000 /* less above the least delay is no wait to speak of */

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
const char *blame_answer(enum blame blame); /* "yes", "no", "unknown" */
const char *
blame_word(enum blame blame); /* "broken", "hurt", "loaded", "well", "untimed", "unheard" */
