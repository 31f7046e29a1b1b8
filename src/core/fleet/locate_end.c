/* locate_end.c: decides when a case is over, and what is forgotten then. */
#include <math.h>
#include <string.h>

#include "core/fleet/locate_private.h"

#define END_TRIALS 20
#define END_LOSSES 30 /* losses of a gray loss that were expected and did not come */
#define END_LESS   4  /* the same if so many would take longer than any window */

/* True if another named fault is on that path: its losses may belong to that one, which goes on. */
static bool has_another(const struct locate *l, uint32_t index, uint32_t path)
{
    for (uint32_t i = 0; i < l->case_count; i++) {
        uint32_t elements[LOCATE_ONE_OF];
        const struct locate_case *c = &l->cases[i];

        if (i != index && c->state == LOCATE_NAMED &&
            locate_case_crosses(&l->paths[path], elements, locate_case_elements(l, c, elements))) {
            return true;
        }
    }
    return false;
}

static bool has_own_paths(const struct locate *l, uint32_t index, const uint32_t *elements,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct suspect *e = &l->suspects[elements[i]];

        for (uint32_t k = 0; k < e->count; k++) {
            if (!has_another(l, index, l->crossings[e->first + k])) {
                return true;
            }
        }
    }
    return false;
}

/* The time when the case ended, by paths that no other case crosses, if there are any. Their losses are forgotten: they were
 * reported, and must not be found again. */
static void forget_case(struct locate *l, uint32_t index, const uint32_t *elements, uint32_t count,
                        struct mono *ret_low, struct mono *ret_high)
{
    const struct locate_case *c = &l->cases[index];
    const bool own = has_own_paths(l, index, elements, count);
    /* for a share, the first losses are unknown: its case may have opened long after them */
    const struct mono from =
        c->share >= OUTAGE_SHARE
            ? c->began_low
            : mono_add(l->now, span_ns(-locate_window_span(WINDOW_COUNT - 1).ns));

    *ret_low = c->began_high;
    *ret_high = MONO_NEVER;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < count; i++) {
            const struct suspect *e = &l->suspects[elements[i]];

            for (uint32_t k = 0; k < e->count; k++) {
                const uint32_t path = l->crossings[e->first + k];
                const struct path *p = &l->paths[path];

                if (own && has_another(l, index, path)) {
                    continue;
                }
                if (pass == 1) {
                    locate_forget(l, path, from, *ret_low, true);
                } else if (p->lost_first.ns != MONO_NEVER.ns &&
                           p->lost_last.ns >= c->began_low.ns) {
                    *ret_low = p->lost_last.ns > ret_low->ns ? p->lost_last : *ret_low;
                    *ret_high = mono_min(*ret_high, p->ok_after);
                }
            }
        }
    }
}

static void end_case(struct locate *l, uint32_t index, const uint32_t *elements, uint32_t count)
{
    struct locate_case *c = &l->cases[index];
    struct mono low, high;
    struct run run = {.lost = 0};

    if (count > 0) {
        locate_run_find(l, elements[0], l->now, &run);
    }
    forget_case(l, index, elements, count, &low, &high);
    if (locate_is_outage(&run) && run.high.ns != MONO_NEVER.ns) {
        low = run.last;
        high = run.high;
    }
    c->ended_low = low;
    c->ended_high = high.ns == MONO_NEVER.ns || high.ns < low.ns ? low : high;
    c->state = LOCATE_ENDED;
    locate_changed(l, c);
    l->case_count--;
    memmove(c, c + 1, (l->case_count - index) * sizeof(*c));
    memmove(&l->doubted[index], &l->doubted[index + 1],
            (l->case_count - index) * sizeof(l->doubted[0]));
}

/* True if its paths have no reports any more, or had no loss for as long as is remembered. */
static bool is_forgotten(struct locate *l, struct mono now, const struct locate_case *c,
                         const uint32_t *elements, uint32_t count)
{
    uint32_t lost = 0;

    if (now.ns - locate_window_span(WINDOW_COUNT - 1).ns < c->opened.ns) {
        return false;
    }
    locate_window_begin(l, now, WINDOW_COUNT - 1, HOST_NONE);
    for (uint32_t i = 0; i < count && lost == 0; i++) {
        const struct suspect *e = &l->suspects[elements[i]];
        for (uint32_t k = 0; k < e->count && lost == 0; k++) {
            locate_count(l, l->crossings[e->first + k]);
            lost = l->lost[l->crossings[e->first + k]];
        }
    }
    return lost == 0;
}

/* True if enough packets arrived since, compared with its former loss. */
static bool is_over(struct locate *l, struct mono now, const struct locate_case *c,
                    const uint32_t *elements, uint32_t count)
{
    const double wanted =
        fmax(END_TRIALS, (c->share > 0.5 ? 1 : END_LOSSES) / fmax(c->share, 1e-4));

    for (uint32_t window = 1; window < WINDOW_COUNT; window++) {
        double sent = 0, lost = 0;

        if (now.ns - locate_window_span(window).ns < c->began_high.ns) {
            return false;
        }
        locate_window_begin(l, now, window, HOST_NONE);
        for (uint32_t i = 0; i < count; i++) {
            const struct suspect *e = &l->suspects[elements[i]];
            for (uint32_t k = 0; k < e->count; k++) {
                locate_count(l, l->crossings[e->first + k]);
                sent += l->sent[l->crossings[e->first + k]];
                lost += l->lost[l->crossings[e->first + k]];
            }
        }
        if (sent >= wanted || (window + 1 == WINDOW_COUNT && sent >= wanted / END_LESS)) {
            return lost <= fmax(c->share * sent / 5, 2 * l->background * sent);
        }
    }
    return false;
}

void locate_cases_end(struct locate *l, struct mono now)
{
    for (uint32_t i = l->case_count; i > 0; i--) {
        uint32_t elements[LOCATE_ONE_OF];
        const uint32_t count = locate_case_elements(l, &l->cases[i - 1], elements);

        if (count == 0 || is_over(l, now, &l->cases[i - 1], elements, count) ||
            is_forgotten(l, now, &l->cases[i - 1], elements, count)) {
            end_case(l, i - 1, elements, count);
        }
    }
}
