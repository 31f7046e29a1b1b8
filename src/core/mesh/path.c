/* path.c: liveness as a table, and the test for gray loss. */
#include "core/mesh/path.h"

#include <math.h>

#include "base/bug.h"

/* Rows: state; columns in the order of enum path_event:
 *                     HEARD          REVIVED      OVERDUE       PROVEN     SILENCE       LATE LOSS
 * END */
static const uint8_t transitions[PATH_STATE_COUNT][PATH_EVENT_COUNT] = {
    [PATH_UNKNOWN] = {PATH_ALIVE, PATH_ALIVE, PATH_UNKNOWN, PATH_DEAD, PATH_UNKNOWN, PATH_UNKNOWN,
                      PATH_UNKNOWN, PATH_UNKNOWN},
    [PATH_ALIVE] = {PATH_ALIVE, PATH_ALIVE, PATH_SUSPECT, PATH_DEAD, PATH_UNKNOWN, PATH_ALIVE,
                    PATH_LOSSY, PATH_ALIVE},
    /* late: what looked overdue may have been ours */
    [PATH_SUSPECT] = {PATH_ALIVE, PATH_ALIVE, PATH_SUSPECT, PATH_DEAD, PATH_UNKNOWN, PATH_ALIVE,
                      PATH_LOSSY, PATH_SUSPECT},
    /* a lossy path is overdue now and then: only proof makes it dead */
    [PATH_LOSSY] = {PATH_LOSSY, PATH_LOSSY, PATH_LOSSY, PATH_DEAD, PATH_UNKNOWN, PATH_LOSSY,
                    PATH_LOSSY, PATH_ALIVE},
    /* one packet that came through proves little: REVIVED counts some. Silence of the peer leaves
     * the verdict, which was proven; only new evidence takes it back */
    [PATH_DEAD] = {PATH_DEAD, PATH_ALIVE, PATH_DEAD, PATH_DEAD, PATH_UNKNOWN, PATH_DEAD, PATH_DEAD,
                   PATH_DEAD},
};

enum path_state path_next(enum path_state state, enum path_event event)
{
    ASSERT((unsigned)state < PATH_STATE_COUNT && (unsigned)event < PATH_EVENT_COUNT);
    return (enum path_state)transitions[state][event];
}

const char *path_state_word(enum path_state state)
{
    static const char *const words[PATH_STATE_COUNT] = {"unknown", "alive", "suspect", "lossy",
                                                        "dead"};

    return (unsigned)state < PATH_STATE_COUNT ? words[state] : "unknown";
}

enum path_event loss_test_pair(struct loss_test *test, bool lost)
{
    if (lost) {
        test->score += log(LOSS_BAD / LOSS_GOOD);
        test->clean = 0;
    } else {
        test->score += log((1 - LOSS_BAD) / (1 - LOSS_GOOD));
        test->score = test->score < 0 ? 0 : test->score;
        test->clean++;
    }
    /* kept from growing, so that the end of a long loss is seen soon */
    test->score = test->score > LOSS_LIMIT * 1.2 ? LOSS_LIMIT * 1.2 : test->score;
    if (!test->lossy && test->score >= LOSS_LIMIT) {
        test->lossy = true;
        return PATH_LOSS;
    }
    if (test->lossy && test->clean >= LOSS_END_PAIRS) {
        test->lossy = false;
        test->score = 0;
        return PATH_LOSS_END;
    }
    return PATH_EVENT_COUNT;
}
