/* host_leaf.c: compares the NICs' clocks with the host's clock by brackets. The median over the NICs carries fleet time to the
 * host. */
#include "core/clock/host_leaf.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/bug.h"

/* (10 ppb per root second)^2, in ns^2/s^3: for both clocks */
#define WANDER2     (10e-9 * 10e-9 * 1e18)
#define WANDER2_MAX (1e5 * WANDER2)
/* at least this share of a bracket's noise is not visible in its width */
#define OTHER_NOISE    0.1
#define BRACKET_NS_MAX (1 * NS_PER_MS)
#define JUMP_NS        100e3
#define LINE_JUMP_NS   1e6
#define DISRUPT_NS     (300 * NS_PER_MS)
#define BROKE_NS       (250 * NS_PER_MS) /* two brackets of each NIC */

void host_leaf_init(struct host_leaf *leaf, double rate_limit_ppm, double rate_drift_ppb_s)
{
    memset(leaf, 0, sizeof(*leaf));
    leaf->rate_limit = (rate_limit_ppm > 0 ? rate_limit_ppm : 2) * 1e-6;
    leaf->rate_drift = (rate_drift_ppb_s > 0 ? rate_drift_ppb_s : 100) * 1e-9;
}

static void start(struct host_leaf_nic *n, struct mono r, int64_t offset_ns, double width_ns)
{
    n->seen = true;
    n->r = r;
    n->nic_minus_ns = n->origin_ns = offset_ns;
    n->fraction = 0;
    n->rate = 0;
    n->p00 = width_ns * width_ns / 12 + 1;
    n->p01 = 0;
    n->p11 = 1e5 * 1e5; /* ns/s: 100 ppm */
    n->lower_ns = -width_ns / 2;
    n->upper_ns = width_ns / 2;
    drift_init(&n->drift);
    n->noise2 = width_ns * width_ns / 12 + 1;
    n->wander2 = WANDER2;
    n->surprise = 0;
    n->least_ns = width_ns;
    n->excess2 = 0;
    n->before_count = 0;
}

/* Moves the filter's origin to `r`. State: offset in ns, rate in ns/s. Both clocks may have changed their rates by `limit` since
 * the brackets. */
static void predict(struct host_leaf_nic *n, struct mono r, double limit)
{
    const double t = (double)(r.ns - n->r.ns) * 1e-9;

    if (t <= 0) {
        return;
    }
    n->lower_ns += ((n->drift.low - 2 * limit) * 1e9 - n->rate) * t;
    n->upper_ns += ((n->drift.high + 2 * limit) * 1e9 - n->rate) * t;
    const double moved = n->fraction + n->rate * t;
    const double whole = floor(moved);
    n->nic_minus_ns += (int64_t)whole;
    n->fraction = moved - whole;
    n->p00 += t * (2 * n->p01 + t * n->p11) + n->wander2 * t * t * t / 3;
    n->p01 += t * n->p11 + n->wander2 * t * t / 2;
    n->p11 += n->wander2 * t;
    n->r = r;
}

/* Learns the scatter of brackets. A bracket's width only bounds its error (a read of 700 ns can be right to 10 ns). The second
 * difference of three neighbouring brackets shows the scatter itself, because wander is negligible over a tenth of a second. */
static void learn_noise(struct host_leaf_nic *n, struct mono middle, double offset, double width)
{
    const double first = (double)(n->before_at[1].ns - n->before_at[0].ns);
    const double second = (double)(middle.ns - n->before_at[1].ns);

    if (n->before_count >= 2 && second < 1.5 * first && first < 1.5 * second && second < 5e8) {
        const double share = second / first;
        const double d2 = (offset - n->before[1]) - share * (n->before[1] - n->before[0]);
        const double unit = 1 + (1 + share) * (1 + share) + share * share;
        const double gain = n->before_count < 50 ? 1.0 / n->before_count : 0.02;
        n->noise2 += gain * (fmin(d2 * d2 / unit, width * width / 12) - n->noise2);
        n->noise2 = fmax(n->noise2, 1);
    }
    n->before_count += n->before_count < 1000;
    n->before[0] = n->before[1];
    n->before_at[0] = n->before_at[1];
    n->before[1] = offset;
    n->before_at[1] = middle;
}

/* The noise of one bracket. The excess of its width over the narrowest one was spent in one of the two directions, and it is not
 * known which: its middle may be wrong by so much. Not all noise is of that kind. */
static double noise_of(struct host_leaf_nic *n, double width)
{
    n->least_ns = fmin(width, n->least_ns + 0.01 * (width - n->least_ns));
    const double excess2 = pow(width - n->least_ns, 2);
    const double gain = n->before_count < 50 ? 1.0 / n->before_count : 0.02;

    n->excess2 += gain * (excess2 - n->excess2);
    return n->noise2 * (OTHER_NOISE + (1 - OTHER_NOISE) * (excess2 + 1) / (n->excess2 + 1));
}

/* The innovations of a right filter are independent. If consecutive ones have the same sign, the filter lags behind clocks that
 * wander more than it assumes (heat, a servo). If they alternate, it follows noise. */
static void learn_wander(struct host_leaf_nic *n, double innovation, double expected2)
{
    const double surprise = fmin(3, fmax(-3, innovation / sqrt(expected2)));

    n->wander2 *= exp(0.05 * surprise * n->surprise);
    n->wander2 = fmin(WANDER2_MAX, fmax(WANDER2, n->wander2));
    n->surprise = surprise;
}

/* The read lies within its bracket, whatever the filter predicts, so the filter must stay there, too. False: the bracket
 * contradicts the earlier ones. */
static bool learn_bounds(struct host_leaf_nic *n, const struct host_leaf_bracket *b,
                         double innovation, double width, double change)
{
    drift_add(&n->drift, b->before.ns, b->nic.ns + 1 - b->before.ns, true); /* reads are whole ns */
    drift_add(&n->drift, b->after.ns, b->nic.ns - b->after.ns, false);
    n->lower_ns = fmax(n->lower_ns, innovation - width / 2 - 1);
    n->upper_ns = fmin(n->upper_ns, innovation + width / 2 + 1);
    return drift_judge(&n->drift, b->after.ns, change) && n->lower_ns <= n->upper_ns;
}

bool host_leaf_on_bracket(struct host_leaf *leaf, struct mono now, int nic,
                          const struct host_leaf_bracket *b)
{
    if (nic < 0 || nic >= HOST_NIC_MAX || b->after.ns < b->before.ns ||
        b->after.ns - b->before.ns > BRACKET_NS_MAX) {
        leaf->refused++;
        return false;
    }
    struct host_leaf_nic *n = &leaf->nics[nic];
    const double width = (double)(b->after.ns - b->before.ns);
    const struct mono middle = {b->before.ns + (b->after.ns - b->before.ns) / 2};
    const int64_t offset = b->nic.ns - middle.ns;

    n->used = true;
    if (!n->seen || middle.ns < n->r.ns) {
        start(n, middle, offset, width);
        n->last = middle;
        return false;
    }
    predict(n, middle, leaf->rate_limit);
    const double innovation = (double)(offset - n->nic_minus_ns) - n->fraction;
    if (fabs(innovation) > JUMP_NS + 6 * sqrt(n->p00) ||
        !learn_bounds(n, b, innovation, width, 2 * leaf->rate_limit)) {
        start(n, middle, offset, width); /* the NIC's clock was stepped, or the host's */
        n->broke = n->broke.ns != 0 ? n->broke : now;
        n->last = middle;
        return false;
    }
    learn_noise(n, middle, (double)(offset - n->origin_ns), width);
    const double r = noise_of(n, width);
    ASSERT(n->p00 + r > 0); /* variances: the gains below are shares of them */
    learn_wander(n, innovation, n->p00 + r);
    const double k0 = n->p00 / (n->p00 + r), k1 = n->p01 / (n->p00 + r);
    const double by = fmin(n->upper_ns, fmax(n->lower_ns, k0 * innovation));
    const double moved = n->fraction + by, whole = floor(moved);
    n->lower_ns -= by;
    n->upper_ns -= by;
    n->nic_minus_ns += (int64_t)whole;
    n->fraction = moved - whole;
    n->rate += k1 * innovation;
    n->p11 -= k1 * n->p01;
    n->p01 -= k0 * n->p01;
    n->p00 -= k0 * n->p00;
    n->last = middle;
    return true;
}

bool host_leaf_nic_broke(struct host_leaf *leaf, struct mono now, int nic)
{
    struct host_leaf_nic *n = &leaf->nics[nic];
    int seen = 0, broke = 0;

    if (n->broke.ns == 0 || now.ns - n->broke.ns < BROKE_NS) {
        return false;
    }
    for (int i = 0; i < HOST_NIC_MAX; i++) {
        const struct host_leaf_nic *other = &leaf->nics[i];
        const bool read = other->seen && other->last.ns >= n->broke.ns;
        seen += read;
        broke += read && other->broke.ns != 0;
    }
    if (seen > 1 && broke == seen) { /* the host's clock broke */
        for (int i = 0; i < HOST_NIC_MAX; i++) {
            leaf->nics[i].broke.ns = 0;
        }
        return false;
    }
    n->broke.ns = 0;
    return true;
}

void host_leaf_on_terms(struct host_leaf *leaf, struct mono now, int nic,
                        const struct clock_terms *terms)
{
    if (nic >= 0 && nic < HOST_NIC_MAX) {
        leaf->nics[nic].used = true;
        leaf->nics[nic].terms = *terms;
    }
}

void host_leaf_on_fault(struct host_leaf *leaf, struct mono now)
{
    for (int i = 0; i < HOST_NIC_MAX; i++) {
        leaf->nics[i].seen = false;
        leaf->nics[i].broke.ns = 0;
    }
    leaf->terms.status = CLOCK_DISRUPTED; /* also before the next tick */
    leaf->disrupted_until.ns = now.ns + DISRUPT_NS;
}

/* One NIC's view of fleet time at host time `r`, as terms on the host's clock. */
static bool opinion(const struct host_leaf *leaf, const struct host_leaf_nic *n, struct mono r,
                    struct clock_terms *ret)
{
    if (!n->used || !n->seen || n->terms.status == CLOCK_UNKNOWN ||
        r.ns - n->last.ns > 2 * NS_PER_S) {
        return false;
    }
    struct host_leaf_nic at = *n;
    predict(&at, r, leaf->rate_limit);
    const struct nic_time nic_now = {r.ns + at.nic_minus_ns};
    const struct clock_line *line = &n->terms.line;
    const int64_t slewed_ns =
        (nic_now.ns < line->until.ns ? nic_now.ns : line->until.ns) - line->r.ns;
    const double moved = line->x_fraction + line->y * (double)(nic_now.ns - line->r.ns) +
                         line->slew * (double)slewed_ns + at.fraction;
    const struct clock_reading reading = clock_terms_read(&n->terms, nic_now);

    *ret = n->terms;
    ret->line.r.ns = r.ns;
    ret->line.x_ns = at.nic_minus_ns + line->x_ns + (int64_t)floor(moved);
    ret->line.x_fraction = moved - floor(moved);
    /* dF/dmono = (1 + y)(1 + rate). Scattered reads may have led the filter to a rate that the brackets exclude. Their remaining
     * range counts until the next read. */
    const double least = fmin(n->drift.low, n->drift.high),
                 most = fmax(n->drift.low, n->drift.high);
    const double change = 2 * leaf->rate_limit;
    const double rate = fmin(most + change, fmax(least - change, at.rate * 1e-9));
    /* The terms hold for a tick. Their rate leads to the future place of the NIC's line, which may still slew. */
    const double left_ns = (double)(line->until.ns - line->r.ns - slewed_ns);
    const double share = fmin(1, left_ns / (double)CLOCK_TICK_NS);
    const double bent_ns = fabs(line->slew) * left_ns * (1 - share);
    const double y = line->y + line->slew * share;
    ret->line.y = y + rate + y * rate;
    ret->rate_limit += fmax(most - rate, rate - least);
    ret->line.slew = 0;
    ret->line.until = ret->line.r;
    const double bracket = fmax(at.upper_ns, -at.lower_ns);
    ret->h_ns = reading.hard_ns < 0 ? -1 : reading.hard_ns + bracket + bent_ns;
    ret->utc_bound_ns += bracket + bent_ns;
    ret->guarded = false;
    ret->shift_ns = bent_ns;
    ret->spread2_ns += at.p00 + pow(n->terms.shift_ns / 6, 2);
    return true;
}

/* The new line does not continue the old one: this host's clock stood still, or was stepped, while its NICs' clocks ran on. */
static void begin_line(struct host_leaf *leaf, struct mono now, struct clock_terms *chosen)
{
    chosen->epoch = ++leaf->restarts;
    leaf->disrupted_until.ns = now.ns + DISRUPT_NS;
}

/* Time never runs backwards within an epoch: the published line goes to the new line as a clock's own rate may change, or faster
 * to be there within a tick. The difference counts in both bounds. If it is too large for slewing, the line jumps. */
static void meet(struct host_leaf *leaf, struct mono now, struct clock_terms *chosen)
{
    const struct clock_line *old = &leaf->terms.line;
    const int64_t slewed_ns = (now.ns < old->until.ns ? now.ns : old->until.ns) - old->r.ns;
    const double moved =
        old->x_fraction + old->y * (double)(now.ns - old->r.ns) + old->slew * (double)slewed_ns;
    const double gap = (double)(chosen->line.x_ns - old->x_ns) + chosen->line.x_fraction - moved;

    if (fabs(gap) > LINE_JUMP_NS) {
        begin_line(leaf, now, chosen);
        return;
    }
    chosen->line.x_ns = old->x_ns + (int64_t)floor(moved);
    chosen->line.x_fraction = moved - floor(moved);
    const double within = fmin(500e-6, fabs(gap) / (double)CLOCK_TICK_NS);
    const double rate = fmax(leaf->rate_limit, within);
    chosen->line.slew = copysign(rate, gap);
    chosen->line.until.ns = now.ns + (int64_t)fmin((double)CLOCK_TICK_NS, fabs(gap) / rate);
    chosen->shift_ns += fabs(gap);
    chosen->utc_bound_ns += fabs(gap);
    chosen->h_ns += chosen->h_ns >= 0 ? fabs(gap) : 0;
}

/* The median at `r` over the NICs that are SYNCED, or over all if none is. */
void host_leaf_tick(struct host_leaf *leaf, struct mono now)
{
    struct clock_terms opinions[HOST_NIC_MAX];
    int count = 0;

    for (int pass = 0; pass < 2 && count == 0; pass++) {
        for (int i = 0; i < HOST_NIC_MAX; i++) {
            struct clock_terms t;
            if (!opinion(leaf, &leaf->nics[i], now, &t) ||
                (pass == 0 && t.status != CLOCK_SYNCED)) {
                continue;
            }
            int at = count++;
            for (; at > 0 && opinions[at - 1].line.x_ns > t.line.x_ns; at--) {
                opinions[at] = opinions[at - 1];
            }
            opinions[at] = t;
        }
    }
    leaf->have_terms = count > 0;
    if (count == 0) {
        return;
    }
    struct clock_terms chosen = opinions[(count - 1) / 2];
    chosen.epoch = leaf->restarts;        /* a NIC's line that began anew is met like any other */
    if (now.ns < leaf->terms.line.r.ns) { /* it went back */
        begin_line(leaf, now, &chosen);
    } else if (leaf->terms.timeline == chosen.timeline && leaf->terms.line.r.ns != 0) {
        meet(leaf, now, &chosen);
    }
    if (now.ns < leaf->disrupted_until.ns) {
        chosen.status = CLOCK_DISRUPTED;
    }
    leaf->terms = chosen;
}

bool host_leaf_terms(const struct host_leaf *leaf, struct clock_terms *ret_terms)
{
    if (!leaf->have_terms) {
        *ret_terms = (struct clock_terms){.status = CLOCK_UNKNOWN, .h_ns = -1};
        return false;
    }
    *ret_terms = leaf->terms;
    return true;
}

bool host_leaf_nic_now(const struct host_leaf *leaf, struct mono now, int nic,
                       struct nic_time *ret_now)
{
    if (nic < 0 || nic >= HOST_NIC_MAX || !leaf->nics[nic].seen) {
        return false;
    }
    struct host_leaf_nic at = leaf->nics[nic];
    predict(&at, now, 0);
    ret_now->ns = now.ns + at.nic_minus_ns;
    return true;
}

double host_leaf_nic_error_ns(const struct host_leaf *leaf, struct mono now, int nic)
{
    ASSERT(nic >= 0 && nic < HOST_NIC_MAX);
    struct host_leaf_nic at = leaf->nics[nic];
    predict(&at, now, leaf->rate_limit);
    return fmax(at.upper_ns, -at.lower_ns);
}
