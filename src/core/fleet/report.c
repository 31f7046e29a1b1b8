/* report.c: exactly once, in order. */
#include "core/fleet/report.h"

#include <stddef.h>

#include "base/bug.h"

enum report_verdict report_judge(struct report_cursor *cursor, uint64_t stream, uint64_t number,
                                 uint64_t oldest, uint64_t *ret_missing)
{
    uint64_t missing = 0;
    enum report_verdict verdict = REPORT_TAKE;
    if (stream == 0 || number == 0 || number < oldest) {
        return REPORT_BAD;
    }
    if (stream != cursor->stream) {
        if (number != oldest) {
            return REPORT_AHEAD;
        }
        /* the rest of the old stream is lost, and its length is unknown */
        missing = number - 1;
    } else if (number <= cursor->number) {
        return REPORT_DUPLICATE;
    } else if (number != cursor->number + 1) {
        if (number != oldest) {
            return REPORT_AHEAD;
        }
        missing = number - cursor->number - 1;
    }
    /* and the cursor never goes back within a stream: a lower number is a duplicate */
    ASSERT(missing < number);
    verdict = missing > 0 ? REPORT_TAKE_GAP : REPORT_TAKE;
    cursor->stream = stream;
    cursor->number = number;
    if (ret_missing != NULL) {
        *ret_missing = missing;
    }
    return verdict;
}
