/* path.c: liveness as a table, the test for gray loss, and the proof of a black hole. */
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
    /* late: the overdue packet may have been missed by this host */
    [PATH_SUSPECT] = {PATH_ALIVE, PATH_ALIVE, PATH_SUSPECT, PATH_DEAD, PATH_UNKNOWN, PATH_ALIVE,
                      PATH_LOSSY, PATH_SUSPECT},
    /* a lossy path is overdue now and then: only proof makes it dead */
    [PATH_LOSSY] = {PATH_LOSSY, PATH_LOSSY, PATH_LOSSY, PATH_DEAD, PATH_UNKNOWN, PATH_LOSSY,
                    PATH_LOSSY, PATH_ALIVE},
    /* one arrival proves little: REVIVED counts several. Silence of the peer keeps a proven verdict; only new evidence changes
     * it */
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
    /* limited, so that the end of a long loss is noticed soon */
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

void loss_share_add(struct loss_share *share, struct mono now, struct span window, double lost,
                    double sent)
{
    ASSERT(window.ns > 0 &&
           sent >= 0); /* otherwise the share grows beyond 1, and proofs take for ever */
    const int64_t age = mono_sub(now, share->at).ns;
    const double keep = age > 0 ? exp(-(double)age / (double)window.ns) : 1;

    share->lost = fmax(0, share->lost * keep + lost);
    share->sent = share->sent * keep + sent;
    share->at = now;
}

double loss_share_get(const struct loss_share *share)
{
    /* a few packets more, so that one lost packet of two isn't half of all */
    return fmin(1, share->lost / (share->sent + 4));
}

double loss_share_most(const struct loss_share *share)
{
    return fmin(1, (share->lost + 2) / (share->sent + 4));
}

static uint32_t losses_in_a_row(double share)
{
    return (uint32_t)ceil(log(PROOF_CHANCE) /
                          log(share < PROOF_SHARE_MAX ? share : PROOF_SHARE_MAX));
}

struct proof_wanted proof_wanted(double share)
{
    ASSERT(share >= 0 && share <= 1); /* a share: its logarithm counts packets */
    if (share <= PROOF_QUIET) {
        return (struct proof_wanted){.packets = PROOF_PACKETS};
    }
    const uint32_t packets = losses_in_a_row(share), epochs = losses_in_a_row(share * PROOF_AGAIN);

    return (struct proof_wanted){
        .packets = packets > PROOF_PACKETS ? packets : PROOF_PACKETS,
        .time = span_ns((epochs < PROOF_EPOCHS ? epochs : PROOF_EPOCHS) * PROOF_EPOCH_NS)};
}

double proof_evidence(double share, int64_t since_ns)
{
    const double p = share < PROOF_SHARE_MAX ? share : PROOF_SHARE_MAX;
    const double alike = since_ns <= 0 ? 1 : exp(-(double)since_ns / PROOF_DRAIN_NS);

    return -log(fmax(PROOF_QUIET, p) * (1 - alike) + alike);
}
