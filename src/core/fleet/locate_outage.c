/* locate_outage.c: outages that were over before they could be judged. A window of fixed length also contains much other time, so
 * a trunk that was gone for 100 ms seems to lose a quarter, and its two directions look alike. Here the window is that of the
 * outage: from the first to the last of consecutive lost trials of a candidate.
 *
 * Such a window is chosen by its losses, so the evidence must be stronger: the number of possible windows counts against it. And
 * the element must lose nothing around it; otherwise it is a chance run of a gray loss. */
#include <math.h>

#include "core/fleet/locate_private.h"

#define RUN_LEAST     3   /* trials */
#define WINDOW_AROUND 2   /* 1.6 s */
#define OUTSIDE_MOST  3.0 /* ln-likelihood of losses outside the run */

static bool is_named(const struct locate *l, uint64_t class)
{
    for (uint32_t i = 0; i < l->case_count; i++) {
        if (l->cases[i].state == LOCATE_NAMED && l->cases[i].class == class) {
            return true;
        }
    }
    return false;
}

struct sums {
    double sent, lost;
};

static struct sums sums_of(struct locate *l, uint32_t element)
{
    const struct suspect *e = &l->suspects[element];
    struct sums s = {0};

    for (uint32_t k = 0; k < e->count; k++) {
        const uint32_t path = l->crossings[e->first + k];
        locate_count(l, path);
        s.sent += l->sent[path];
        s.lost += l->lost[path];
    }
    return s;
}

/* True if one of the candidates also has losses outside the run. */
static bool loses_outside(struct locate *l, const struct candidate *candidates,
                          const struct sums *around, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct suspect *e = &l->suspects[candidates[i].element];
        const struct sums in = sums_of(l, candidates[i].element);
        const double lost = around[i].lost - in.lost, sent = around[i].sent - in.sent;

        if (in.lost > 0 && lost > 0 && sent >= lost && !is_named(l, e->class) &&
            locate_gain(lost, sent, lost / sent, locate_null(l)) / l->dispersion > OUTSIDE_MOST) {
            return true;
        }
    }
    return false;
}

bool locate_outage_explain(struct locate *l, struct mono now, struct explanation *x)
{
    struct candidate candidates[CANDIDATE_MAX];
    struct sums around[CANDIDATE_MAX];
    struct mono from = MONO_NEVER, until = MONO_NEVER;
    double choice = 0;

    locate_window_begin(l, now, WINDOW_AROUND, HOST_NONE);
    locate_candidates_find(l);
    const uint32_t count = l->candidate_count;
    for (uint32_t i = 0; i < count; i++) {
        candidates[i] = l->candidates[i];
        around[i] = sums_of(l, candidates[i].element);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct explanation y;
        struct run run;

        locate_run_find(l, candidates[i].element, now, &run);
        if (run.lost < RUN_LEAST) {
            continue;
        }
        l->from = run.first;
        l->until = run.last;
        l->choice = 2 * log(run.known) - log(2);
        locate_window_begin(l, now, WINDOW_OUTAGE, HOST_NONE);
        if (loses_outside(l, candidates, around, count)) {
            continue;
        }
        locate_explain(l, &y);
        locate_explain_margins(l, &y);
        if (locate_decided(&y) > locate_decided(x)) {
            *x = y;
            from = run.first;
            until = run.last;
            choice = l->choice;
        }
    }
    l->from = from;
    l->until = until;
    l->choice = choice;
    return from.ns != MONO_NEVER.ns;
}
