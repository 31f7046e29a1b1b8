/* spread.c: see spread.h. */
#include "core/mesh/spread.h"

#include <math.h>

/* A low quantile: frames spread pairs, and pairs that were pushed together are left out. A mean would climb, because it limits
 * what is learned. */
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

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The earlier floor, so that a clock that drifts off doesn't move it. The first pair after a kept one begins no window: at that
 * moment it may be unknown what its path crosses. */
static int64_t floor_add(struct spread_watch *w, struct mono now, int64_t owd_ns, bool keep)
{
    if (keep) {
        w->floor_at = now;
    }
    if (mono_sub(now, w->floor_at).ns > SPREAD_FLOOR_NS) {
        w->floor_before[1] = w->floors > 0 ? w->floor_before[0] : w->floor_now;
        w->floor_before[0] = w->floor_now;
        w->floor_now = owd_ns;
        w->floor_at = now;
        w->floors++;
    }
    w->floor_now = least(w->floor_now, owd_ns);
    return w->floors > 0 ? least(w->floor_before[0], w->floor_before[1]) : w->floor_now;
}

static uint32_t of_ns(double ns)
{
    return (uint32_t)fmin(ns, UINT32_MAX);
}

static int32_t of_wait(int64_t ns)
{
    return (int32_t)fmax(INT32_MIN, fmin((double)ns, INT32_MAX));
}

bool spread_add(struct spread_watch *w, struct mono now, uint64_t way, int64_t sent_ns,
                int64_t heard_ns, int64_t owd_ns, bool keep, struct spread_pair *ret_pair)
{
    const double sent = (double)sent_ns, heard = (double)heard_ns;

    if (w->way != way) {
        *w = (struct spread_watch){.way = way, .floor_at = now, .floor_now = owd_ns};
    }
    if (sent_ns <= 0 || heard_ns <= 0) {
        return false;
    }
    const int64_t wait = owd_ns - floor_add(w, now, owd_ns, keep);
    const double usual = fmax(sent, w->usual_ns);
    if (w->learned < SPREAD_LEARN || (heard <= SPREAD_WIDER * usual && heard >= sent)) {
        learn(w, heard);
    }
    *ret_pair = (struct spread_pair){.at = now,
                                     .sent_ns = of_ns(sent),
                                     .heard_ns = of_ns(heard),
                                     .usual_ns = of_ns(usual),
                                     .wait_ns = of_wait(wait)};
    return w->learned >= SPREAD_LEARN;
}

static void clock_turn(struct spread_clock *c, struct mono now)
{
    const int64_t age = mono_sub(now, c->start).ns;

    if (age < SPREAD_CLOCK_NS) {
        return;
    }
    for (uint32_t d = 0; d < 2; d++) {
        c->known[d][1] = c->known[d][0] && age < 2 * SPREAD_CLOCK_NS;
        c->low[d][1] = c->low[d][0];
        c->known[d][0] = false;
    }
    c->start = now;
}

static bool clock_low(const struct spread_clock *c, uint32_t d, int64_t *ret_low)
{
    if (!c->known[d][0] && !c->known[d][1]) {
        return false;
    }
    *ret_low = !c->known[d][0]   ? c->low[d][1]
               : !c->known[d][1] ? c->low[d][0]
                                 : least(c->low[d][0], c->low[d][1]);
    return true;
}

/* Outgoing pairs bound the clock's error by `low` from above, incoming pairs by minus theirs from below. The value nearest to
 * zero between the two is used. If the bounds cross, the floors are wrong, too. */
void spread_wait(struct spread_clock *c, struct mono now, bool out, struct spread_pair *pair)
{
    const int32_t wait_ns = pair->wait_ns;
    const uint32_t d = out ? 0 : 1;
    int64_t most = 0, low = 0;

    clock_turn(c, now);
    if (!c->known[d][0] || wait_ns < c->low[d][0]) {
        c->known[d][0] = true;
        c->low[d][0] = wait_ns;
    }
    const bool up = clock_low(c, 0, &most), down = clock_low(c, 1, &low);
    low = -low;
    const int64_t off = up && down && low > most ? (low + most) / 2
                        : up && most < 0         ? most
                        : down && low > 0        ? low
                                                 : 0;
    const int64_t taken = out ? off : -off;

    pair->wait_ns = of_wait(wait_ns - taken);
    pair->doubt_ns = up && down && low <= most ? 0 : of_wait(taken);
}

bool spread_is_wide(const struct spread_pair *pair)
{
    return pair->heard_ns > SPREAD_WIDER * pair->usual_ns;
}

bool spread_alike(double a_ns, double b_ns)
{
    return fabs(a_ns - b_ns) <= SPREAD_ALIKE_NS + SPREAD_ALIKE * b_ns;
}

enum spread spread_judge(const struct spread_pair *pair, double slow_ns, double least_ns)
{
    const double heard = pair->heard_ns, sent = pair->sent_ns,
                 there = slow_ns - fmin(least_ns, pair->usual_ns);
    /* closer together than the slow link leaves them: a queue delayed the first packet. If they are even closer than they were
     * sent, the second packet is the faster one */
    const double queue = fmax(0, slow_ns - heard) - fmax(0, sent - heard);

    const double least_wait = SPREAD_WAIT * (there + fmax(0, queue));
    const bool wide = spread_alike(heard, slow_ns) && spread_is_wide(pair);

    const bool waited = pair->wait_ns >= least_wait,
               surely = ((double)pair->wait_ns + pair->doubt_ns >= least_wait) == waited;
    const double most_wait = SPREAD_WAIT * (there + fmax(0, slow_ns - pair->usual_ns));

    if (wide && !surely) {
        return SPREAD_NOTHING;
    }
    if (!waited) {
        return SPREAD_NARROW;
    }
    if (wide) {
        return pair->wait_ns < most_wait ? SPREAD_WIDE : SPREAD_WIDE_LATE;
    }
    return heard <= SPREAD_WIDER * pair->usual_ns ? SPREAD_CLOSE_LATE : SPREAD_NOTHING;
}

uint32_t spread_worth(const struct spread_pair *pair, double slow_ns, double least_ns)
{
    const double there = slow_ns - fmin(least_ns, pair->usual_ns);
    const bool alone = pair->wait_ns <= (2 - SPREAD_WAIT) * there + SPREAD_ALIKE_NS;

    return alone || slow_ns > SPREAD_FAR * pair->usual_ns ? 2 : 1;
}

enum spread spread_weigh(struct spread_watch *w, enum spread spread)
{
    switch (spread) {
    case SPREAD_CLOSE_LATE:
        w->close = w->close + SPREAD_CLOSE < SPREAD_CLOSE_MOST ? w->close + SPREAD_CLOSE
                                                               : SPREAD_CLOSE_MOST;
        return SPREAD_NOTHING;
    case SPREAD_WIDE_LATE:
        if (w->close == 0) {
            return SPREAD_WIDE;
        }
        w->close--;
        return SPREAD_NOTHING;
    default:
        return spread;
    }
}
