/* rates.c: finds maps with a rate that stamps exclude. The rate of theta on an edge follows from both maps and from the relative
 * rate of the two raw clocks, which stamps alone bound (drift.h). A clock may change its rate, and its map follows. Then older
 * stamps contradict the map, until drift_judge() finds that they contradict the newer stamps. That happens when they differ by
 * more than twice the premise on rates. So an honest peer's rate stands out by at most that on its own edge, and by as much on
 * the others that it is compared with. The own rate is the same in all of them and drops out. */
#include "core/clock/clock_private.h"

#include <math.h>

#include "stats/sample.h"

/* The rate of theta by the present maps, if the peer's raw clock runs faster than the own one by `drift`. */
static double rate_of_theta(const struct clock *c, const struct clock_edge *e, double drift)
{
    return (1 + e->peer.map.y) * (1 + drift) - (1 + c->map.y);
}

void rates_of_theta(const struct clock *c, const struct clock_edge *e, double *ret_lower,
                    double *ret_upper)
{
    const double change = bound_rate_change(c);

    *ret_lower = rate_of_theta(c, e, e->drift.low) - change;
    *ret_upper = rate_of_theta(c, e, e->drift.high) + change;
}

struct rate {
    double lower, upper;
};

/* All edges to a peer are between the same two clocks. False: none of them shows a rate. */
static bool rate_of_peer(const struct clock *c, int leader, struct rate *ret)
{
    bool known = false;

    *ret = (struct rate){-INFINITY, INFINITY};
    for (int i = leader; i >= 0; i = c->edges[i].next_of_peer) {
        const struct clock_edge *e = &c->edges[i];
        double lower, upper;
        if (edge_usable(c, e) && !e->config.witness && !e->returned) {
            rates_of_theta(c, e, &lower, &upper);
            ret->lower = fmax(ret->lower, lower);
            ret->upper = fmin(ret->upper, upper);
            known = true;
        }
    }
    return known;
}

/* More than half of the peers' rates lie below its upper end, and more than half above its lower end. */
static struct rate rate_of_most(struct clock *c)
{
    int count = 0;
    struct rate rate;

    for (int i = 0; i < c->capacity; i++) {
        if (c->edges[i].used && c->edges[i].leader == i && rate_of_peer(c, i, &rate)) {
            sample_insert(c->values, (size_t)count, rate.lower);
            sample_insert(c->weights, (size_t)count, rate.upper);
            count++;
        }
    }
    return count == 0 ? (struct rate){-INFINITY, INFINITY}
                      : (struct rate){c->values[count - 1 - count / 2], c->weights[count / 2]};
}

/* The excess of the rate over what most peers show, if no change of a clock can be the reason; 0: none. */
static double beyond(const struct clock *c, struct rate rate, struct rate most)
{
    const double margin = 2 * bound_rate_change(c);

    if (rate.lower - margin > most.upper) {
        return rate.lower - most.upper;
    }
    return rate.upper + margin < most.lower ? rate.upper - most.lower : 0;
}

void rates_tick(struct clock *c, double dt_s)
{
    const struct rate most = c->narrow ? rate_of_most(c) : (struct rate){-INFINITY, INFINITY};
    struct rate rate;

    for (int i = 0; i < c->capacity; i++) {
        if (!c->edges[i].used || c->edges[i].leader != i) {
            continue;
        }
        const double off = rate_of_peer(c, i, &rate) ? beyond(c, rate, most) : 0;
        for (int k = i; k >= 0; k = c->edges[k].next_of_peer) {
            struct clock_edge *e = &c->edges[k];
            e->false_rate = off;
            e->false_s = off != 0 ? e->false_s + dt_s : 0;
        }
    }
}
