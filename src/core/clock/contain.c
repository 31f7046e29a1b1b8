/* contain.c: keeps the estimate within the values that stamps alone prove. An edge's hard bounds of offset and rate hold whatever
 * the filter, the paths' delays and the levels derive from the packets. A member outside the bounds of most of its edges has
 * taken a queue for time, as happens behind full queues. It goes back between the bounds. All members move by the least-squares
 * solution, in which each edge and the own estimate weigh the same. So two members that are apart meet in the middle. */
#include "core/clock/clock_private.h"

#include <math.h>

#include "stats/sample.h"

#define CROSSED_NS (300 * NS_PER_MS)
/* consecutive ones: other parts detect a step, and bounds from before it are gone */
#define CONTAIN_TICKS 6
#define ANEW_NS       1e9

struct interval {
    double lower, upper;
};

static struct interval offset_of(const struct clock_edge *e)
{
    return (struct interval){e->map_lower_ns, e->map_upper_ns};
}

static struct interval rate_of(const struct clock_edge *e)
{
    return (struct interval){e->rate_lower, e->rate_upper};
}

/* No queue is so long: the peer's clock began anew, and its headers will soon show that. */
static bool counts(const struct clock *c, const struct clock_edge *e)
{
    return edge_usable(c, e) && e->proven && !e->config.witness && !e->returned &&
           e->false_rate == 0 && e->map_lower_ns < ANEW_NS && e->map_upper_ns > -ANEW_NS;
}

static double middle(struct interval in)
{
    return (in.lower + in.upper) / 2;
}

/* Stamps of a few seconds leave hundreds of ppm open. The middle of such an interval is no measured rate. */
static double nearest(struct interval in)
{
    return in.lower > 0 ? in.lower : in.upper;
}

/* The move of this member after which the bounds of most edges contain zero again; 0: they do already. `place`: the point to
 * choose within the bounds of an edge that don't contain it. */
static double shift_into(const struct clock *c,
                         struct interval (*interval)(const struct clock_edge *),
                         double (*place)(struct interval))
{
    int count = 0, above = 0, below = 0, out = 0;

    for (int i = 0; i < c->capacity; i++) {
        if (counts(c, &c->edges[i])) {
            const struct interval in = interval(&c->edges[i]);
            count++;
            above += in.lower > 0;
            below += in.upper < 0;
        }
    }
    if (2 * above <= count && 2 * below <= count) {
        return 0;
    }
    for (int i = 0; i < c->capacity; i++) {
        const struct interval in = interval(&c->edges[i]);
        if (counts(c, &c->edges[i]) && (2 * above > count ? in.lower > 0 : in.upper < 0)) {
            sample_insert(c->values, (size_t)out++, place(in));
        }
    }
    return c->values[out / 2] * out / (count + 1);
}

void contain_move(struct clock_edge *e, double moved_ns)
{
    e->map_lower_ns += moved_ns;
    e->map_upper_ns += moved_ns;
}

bool contain_allows(const struct clock_edge *e, double theta_ns)
{
    return !e->proven || e->returned ||
           (theta_ns >= e->map_lower_ns && theta_ns <= e->map_upper_ns);
}

double contain_theta(const struct clock_edge *e, double theta_ns)
{
    return e->proven && !e->returned ? fmin(e->map_upper_ns, fmax(e->map_lower_ns, theta_ns))
                                     : theta_ns;
}

/* This member's error, as at least one honest edge proves at either end; an empty interval proves nothing. */
static struct interval member_offset(struct clock *c)
{
    struct interval in = {-INFINITY, INFINITY};

    for (int side = 0; side < 2; side++) {
        int count = 0;
        for (int i = 0; i < c->capacity; i++) {
            const struct clock_edge *e = &c->edges[i];
            if (counts(c, e)) {
                sample_insert(c->values, (size_t)count++,
                              side == 0 ? e->map_upper_ns : -e->map_lower_ns);
            }
        }
        const int liars = c->peers_chosen > 0 ? c->liars_max * count / c->peers_chosen : 0;
        if (count > liars) {
            *(side == 0 ? &in.upper : &in.lower) = side == 0 ? c->values[liars] : -c->values[liars];
        }
    }
    return in;
}

double contain_mean(struct clock *c, double mean_ns)
{
    const struct interval in = member_offset(c);

    return in.lower <= in.upper ? fmin(in.upper, fmax(in.lower, mean_ns)) : mean_ns;
}

static void move_offset(struct clock *c, struct nic_time now, double shift)
{
    const bool known = c->status == CLOCK_SYNCED && fabs(shift) <= c->h_ns;
    const double most = CLOCK_MOVE_NS_MAX;

    if (known) { /* readers were given the map: their line follows */
        shift = fmin(most, fmax(-most, shift));
    } else {
        c->offset_out = 0;
        clock_disrupt(c, span_ns(DISRUPT_NS));
    }
    clock_move(c, now, shift, 0);
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        e->level_ns = contain_theta(e, e->level_ns) - shift;
        e->expected_ns = contain_theta(e, e->expected_ns) - shift;
        contain_move(e, -shift);
    }
    if (!known) {
        line_rejoin(c, now);
    }
}

/* The stamps of most edges contradict the premises of the hard bound: the own clock broke them. While a bound is shown, only
 * recent contradictions count. A bound that isn't shown any more ages by the own clock's possible drift, and rests on that alone.
 * Then all contradictions since count, and half of the edges suffice to doubt it. */
static bool crossed(const struct clock *c)
{
    const int64_t recent = c->now.ns - CROSSED_NS;
    const bool aged = c->h_at.ns < recent;
    const int64_t since = aged ? c->h_at.ns : recent;
    int count = 0, broken = 0;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (edge_usable(c, e) && !e->config.witness && !e->returned) {
            count++;
            broken += e->crossed_at.ns != 0 && e->crossed_at.ns > since;
        }
    }
    return 2 * broken > count || (aged && broken > 0 && 2 * broken >= count);
}

bool contain_tick(struct clock *c, struct nic_time now)
{
    bool moved = false;

    if (c->phase != CLOCK_TRACK || c->step_ticks > 0 || c->apart_ticks > 0) {
        c->offset_out = c->rate_out = 0;
        return false;
    }
    if (c->status == CLOCK_SYNCED && crossed(c)) {
        clock_disrupt(c, span_ns(DISRUPT_NS));
    }
    const double faster = shift_into(c, rate_of, nearest);
    const double ahead = shift_into(c, offset_of, middle);
    c->rate_out = faster != 0 ? c->rate_out + 1 : 0;
    c->offset_out = ahead != 0 ? c->offset_out + 1 : 0;
    if (c->rate_out >= CONTAIN_TICKS) {
        clock_doubt_rate(c);
        const double most = CLOCK_RATE_STEP_MAX;
        clock_move(c, now, 0, fmin(most, fmax(-most, faster)));
        bank_doubt_rate(&c->bank, faster * faster * 1e18);
        moved = true;
    }
    if (c->offset_out >= CONTAIN_TICKS) {
        move_offset(c, now, ahead);
        bank_doubt(&c->bank, 200.0 * 200.0, 0);
        moved = true;
    }
    return moved;
}
