/* report.h: is this report taken? Exactly once, in order (proto/foliot.proto).
 *
 * The cursor is what the controller has on its disk of one host. Total: every cursor and every
 * report has a verdict. */
#pragma once
#include <stdint.h>

struct report_cursor {
    uint64_t stream; /* 0: none yet */
    uint64_t number; /* the last one taken */
};

enum report_verdict {
    REPORT_TAKE,
    REPORT_TAKE_GAP,  /* taken; what lies between is lost for ever: the agent no longer has it */
    REPORT_DUPLICATE, /* taken before: acknowledge again */
    REPORT_AHEAD,     /* refused: the agent has what comes before it, and must send that first */
    REPORT_BAD,       /* stream or number 0, or below what the agent says is its oldest */
};

/* oldest: the number of the oldest report that the agent still has. Moves the cursor when it is
 * taken; ret_missing (may be NULL): how many are lost in front of it. */
enum report_verdict report_judge(struct report_cursor *cursor, uint64_t stream, uint64_t number,
                                 uint64_t oldest, uint64_t *ret_missing);
