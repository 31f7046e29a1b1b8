/* report.h: decides whether a report is accepted: exactly once, and in order (proto/foliot.proto).
 *
 * The cursor is the controller's stored position in one host's stream. Total: every cursor and report has a verdict. */
#pragma once
#include <stdint.h>

struct report_cursor {
    uint64_t stream; /* 0: none yet */
    uint64_t number; /* the last accepted one */
};

enum report_verdict {
    REPORT_TAKE,
    REPORT_TAKE_GAP,  /* accepted; reports in between are lost: the agent no longer has them */
    REPORT_DUPLICATE, /* accepted before: acknowledge it again */
    REPORT_AHEAD,     /* refused: the agent has earlier reports, and must send those first */
    REPORT_BAD,       /* stream or number 0, or below the agent's oldest */
};

/* oldest: the number of the oldest report that the agent still has. An accepted report moves the cursor; ret_missing (may be
 * NULL): the number of lost reports before it. */
enum report_verdict report_judge(struct report_cursor *cursor, uint64_t stream, uint64_t number,
                                 uint64_t oldest, uint64_t *ret_missing);
