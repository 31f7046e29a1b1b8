/* spread.c: see spread.h. */
#include "core/mesh/spread.h"

#include <math.h>

/* A low quantile: frames spread, and what was pushed together is left out. A mean would climb, for what is learned is
 * bounded by it. */
static void learn(struct spread_watch *w, double heard)
{
    const double off = heard - w->usual_ns;

    if (w->learned == 0) {
        w->usual_ns = heard;
    } else if (w->learned < SPREAD_LEARN) {
        w->usual_ns += off < 0 ? off / 2 : off / 16;
    } else {
        w->usual_ns += off < 0 ? off / 8 : off / 64;
    }
    w->learned += w->learned < SPREAD_LEARN;
}

/* Frames that a pair may have waited for, in probes. Wide ones may be a large frame apart, by the closeness of this pair: then
 * such frames pushed it together, and it must count beside them. */
static int64_t frames_most(const struct spread_watch *w, int64_t sent_ns, int64_t heard_ns)
{
    const bool large = heard_ns < sent_ns && w->apart_ns > SPREAD_BEYOND * (double)heard_ns;

    return large ? SPREAD_LARGE : SPREAD_FRAMES;
}

enum spread spread_add(struct spread_watch *w, uint64_t way, int64_t sent_ns, int64_t heard_ns,
                       int64_t wait_ns)
{
    const double sent = (double)sent_ns, heard = (double)heard_ns;

    if (w->way != way) {
        *w = (struct spread_watch){.way = way};
    }
    if (sent_ns <= 0 || heard_ns <= 0 || wait_ns / frames_most(w, sent_ns, heard_ns) > heard_ns) {
        return SPREAD_NOTHING;
    }
    const double usual = fmax(sent, w->usual_ns);
    const bool wide = heard > SPREAD_WIDER * usual;
    const bool sure = heard > SPREAD_SURE * usual;
    if (w->learned < SPREAD_LEARN || (!wide && heard >= sent)) {
        learn(w, heard);
    }
    if (w->learned < SPREAD_LEARN) {
        return SPREAD_NOTHING;
    }
    if (!wide) {
        w->wide_ns = 0;
        return SPREAD_NARROW;
    }
    const double before = w->wide_ns;
    w->apart_ns += before > 0 ? (heard - w->apart_ns) / 4 : heard - w->apart_ns;
    w->wide_ns = before > 0 ? fmin(before, heard) : heard;
    return wide && (sure || (before > 0 && fabs(heard - before) <= SPREAD_AGREE * before))
               ? SPREAD_WIDE
               : SPREAD_NOTHING;
}
