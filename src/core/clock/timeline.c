/* timeline.c: decides which timeline this is. A label (the founder, and a hash of founder and time) never carries a value. It
 * only distinguishes timelines that grew separately, and shows which is older. */
#include "core/clock/clock_private.h"

#include <math.h>
#include <stddef.h>

#include "stats/sample.h"

#define YOUNGER_S 3.0

static void adopt(struct clock *c, struct nic_time now, uint64_t timeline, uint32_t founder,
                  uint32_t age_s)
{
    if (c->timeline == timeline) {
        return;
    }
    c->timeline = timeline;
    c->founder = founder;
    c->born.ns = now.ns - (int64_t)age_s * NS_PER_S;
    clock_push(
        c, (struct clock_action){
               .kind = CLOCK_ACTION_TIMELINE, .edge = -1, .timeline = timeline, .epoch = c->epoch});
}

void timeline_found(struct clock *c, struct nic_time now)
{
    const uint64_t name =
        hash_u64((uint64_t)c->config.member + 1, (uint64_t)(now.ns + c->config.wall_minus_ns));

    c->founder = c->config.member;
    c->timeline =
        (name & ~(uint64_t)(FLEET_NIC_MAX - 1)) | (c->config.member & (FLEET_NIC_MAX - 1));
    if (c->timeline == CLOCK_TIMELINE_NONE) {
        c->timeline = FLEET_NIC_MAX;
    }
    c->born = now;
}

/* The label that most live tracking neighbours have, other than our own; and the counts. */
struct vote {
    uint64_t timeline;
    uint32_t founder, age_s;
    int count;
};

static uint32_t median_age(const struct clock *c, uint64_t timeline)
{
    int count = 0;
    double *ages = c->values;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (edge_usable(c, e) && e->peer.timeline == timeline) {
            sample_insert(ages, (size_t)count++, e->peer.timeline_age_s);
        }
    }
    return count > 0 ? (uint32_t)ages[(count - 1) / 2] : 0;
}

static struct vote strongest_other(const struct clock *c, int *ret_own)
{
    struct vote best = {0};

    *ret_own = 0;
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (!edge_usable(c, e) || e->config.witness) {
            continue;
        }
        if (e->peer.timeline == c->timeline) {
            ++*ret_own;
            continue;
        }
        int count = 0;
        for (int j = 0; j < c->capacity; j++) {
            count += edge_usable(c, &c->edges[j]) && c->edges[j].peer.timeline == e->peer.timeline;
        }
        if (count > best.count) {
            best = (struct vote){e->peer.timeline, e->peer.founder, 0, count};
        }
    }
    if (best.count > 0) {
        best.age_s = median_age(c, best.timeline);
    }
    return best;
}

/* Of two labels, unsettled members take that of the smaller founder. A founder that was restarted has founded two timelines: then
 * the smaller label counts, or each would wait for the other. */
static bool smaller(uint32_t founder, uint64_t timeline, uint32_t than_founder, uint64_t than)
{
    return founder != than_founder ? founder < than_founder : timeline < than;
}

/* While unsettled: follows the smallest founder that was heard. */
static void follow_smallest(struct clock *c, struct nic_time now)
{
    const struct clock_edge *best = NULL;
    bool settled_seen = false;

    for (int i = 0; i < c->capacity; i++) {
        settled_seen |= edge_live(c, &c->edges[i]) && c->edges[i].peer.settled;
    }
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (!edge_live(c, e) || e->config.witness || e->peer.timeline == CLOCK_TIMELINE_NONE ||
            (settled_seen && !e->peer.settled)) {
            continue;
        }
        if (best == NULL ||
            smaller(e->peer.founder, e->peer.timeline, best->peer.founder, best->peer.timeline)) {
            best = e;
        }
    }
    if (best != NULL &&
        (smaller(best->peer.founder, best->peer.timeline, c->founder, c->timeline) ||
         (settled_seen && best->peer.timeline != c->timeline))) {
        adopt(c, now, best->peer.timeline, best->peer.founder, best->peer.timeline_age_s);
    }
}

static void settled_change(struct clock *c, struct nic_time now)
{
    int own;
    const struct vote other = strongest_other(c, &own);
    const int live = c->track_peers;

    if (other.count == 0 || live == 0) {
        c->younger_wanted = false;
        return;
    }
    const double own_age = (double)(now.ns - c->born.ns) * 1e-9;
    const bool older = other.age_s > own_age + 1;
    if (older && 2 * other.count >= live) {
        adopt(c, now, other.timeline, other.founder, other.age_s);
        return;
    }
    if (3 * other.count < 2 * live) {
        c->younger_wanted = false;
        return;
    }
    if (!c->younger_wanted) {
        c->younger_wanted = true;
        c->younger_since = now;
    } else if ((double)(now.ns - c->younger_since.ns) * 1e-9 >= YOUNGER_S) {
        c->younger_wanted = false;
        adopt(c, now, other.timeline, other.founder, other.age_s);
    }
}

static bool on_own_label(const struct clock *c, const struct clock_edge *e)
{
    return edge_usable(c, e) && edge_vouches(e) && e->peer.timeline == c->timeline;
}

void timeline_tick(struct clock *c, struct nic_time now)
{
    const int on_label = consensus_peers(c, on_own_label);

    if (!c->settled) {
        follow_smallest(c, now);
        c->settled = c->phase == CLOCK_TRACK && on_label > 0 && 2 * on_label >= c->peers_chosen;
        if (c->settled) {
            c->settled_since = now;
        }
        return;
    }
    settled_change(c, now);
    /* a settled member stays settled with fewer: labels change at once, neighbours come and go */
    c->settled = c->phase >= CLOCK_TRACK &&
                 (4 * on_label >= c->peers_chosen || c->phase == CLOCK_HOLD || clock_awaited(c));
}
