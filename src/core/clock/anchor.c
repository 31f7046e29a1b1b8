/* anchor.c: UTC. Members with an upstream measure UTC - F. Each member reports its value, with a bound, to its neighbours. All
 * steer alike and slowly, so the fleet's one timeline approaches UTC without a leader.
 *
 * F is that of the own map. A neighbour's F may differ by as much as its edge's bound, so the bound of its report grows by that.
 * A report counts only if both are on one timeline.
 *
 * A peer's report is its own vote, and only one, whatever member it names, because a forwarded value can be forged. Up to f peers
 * lie. So UTC lies below the (f + 1)-th lowest upper end of all votes and above the (f + 1)-th highest lower end. Fewer than f +
 * 1 votes are worthless. If the fleet's file names peers as anchors, only their votes count, by majority. */
#include "core/clock/clock_private.h"

#include <math.h>

#include "stats/sample.h"

#define AGE_MS_MAX 60000
#define BOUND_MAX  4e9               /* ns: the largest value of 32 bits */
#define WORD_NS    (300 * NS_PER_MS) /* so long, until most stamps of a step have arrived */
#define STEER_MAX  100e-9
#define STEER_S    100.0
/* Fleet time runs at the mean of free oscillators (100 ppm each at worst), and UTC at its own rate. So the bound of an anchor's
 * value grows with every second. */
#define UTC_RATE 200e-6

/* A peer reports UTC against its own F. If it doesn't track, its F has no meaning. */
void anchor_hear(struct clock_edge *e, struct nic_time now, const struct clock_published *heard)
{
    const struct clock_anchor *a = &heard->anchor;

    if (heard->phase < CLOCK_TRACK) {
        e->word_known = false;
    } else if (!e->word_known && a->member != UINT32_MAX && a->age_ms <= AGE_MS_MAX) {
        e->word = *a;
        e->word_at = now;
        e->word_known = true;
    }
}

/* A peer's report counts after its edge has been bounded for a while. A clock that steps reports UTC by its new time before its
 * stamps show the step. anchor_at is the time of the measurement by the own clock. */
static void take_words(struct clock *c, struct nic_time now)
{
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        if (!e->used || !e->word_known) {
            continue;
        }
        if (!e->bounded || e->peer.timeline != c->timeline) {
            e->word_known = false;
        } else if (now.ns - e->word_at.ns >= WORD_NS) {
            e->word_known = false;
            e->anchor_known = true;
            e->anchor = e->word;
            e->anchor_at.ns = e->word_at.ns - (int64_t)e->word.age_ms * NS_PER_MS;
            e->apart_ns = e->w_ns;
            e->utc_at = e->word_at;
            e->utc_ns = clock_map_apply(&c->map, e->utc_at).ns + e->word.utc_minus_ns;
        }
    }
}

void clock_on_utc(struct clock *c, struct nic_time at, int64_t utc_ns, double bound_ns)
{
    c->own_utc_known = bound_ns >= 0 && bound_ns <= BOUND_MAX;
    c->own_utc_ns = utc_ns;
    c->own_utc_bound_ns = bound_ns;
    c->own_utc_at = at;
}

/* By the present map: utc_ns was UTC at a time of the own clock, and F may have changed since. */
static struct clock_anchor anchor_now(const struct clock *c, struct nic_time at, int64_t utc_ns,
                                      double bound_ns)
{
    return (struct clock_anchor){.bound_ns = (uint32_t)ceil(bound_ns),
                                 .utc_minus_ns = utc_ns - clock_map_apply(&c->map, at).ns};
}

/* F has changed. */
void anchor_forget_peers(struct clock *c)
{
    c->utc_known = false;
    for (int i = 0; i < c->capacity; i++) {
        c->edges[i].anchor_known = c->edges[i].word_known = false;
    }
}

struct votes {
    int64_t value[MEMBER_EDGE_MAX + 1], lower[MEMBER_EDGE_MAX + 1], upper[MEMBER_EDGE_MAX + 1],
        age[MEMBER_EDGE_MAX + 1]; /* each in ascending order */
    int count;
};

/* apart_ns: the largest difference between the two members' F. */
static void cast_vote(struct votes *v, struct nic_time now, const struct clock_anchor *a,
                      struct nic_time at, double apart_ns)
{
    const int64_t age = now.ns - at.ns > 0 ? now.ns - at.ns : 0;
    const int64_t half = (int64_t)a->bound_ns + (int64_t)ceil(UTC_RATE * (double)age + apart_ns);
    ASSERT(v->count <= MEMBER_EDGE_MAX); /* one for each host, and the own one */
    const size_t n = (size_t)v->count++;

    sample_insert_int(v->value, n, a->utc_minus_ns);
    sample_insert_int(v->lower, n, a->utc_minus_ns - half);
    sample_insert_int(v->upper, n, a->utc_minus_ns + half);
    sample_insert_int(v->age, n, age);
}

static bool fresh(struct nic_time now, struct nic_time at)
{
    return now.ns - at.ns <= (int64_t)AGE_MS_MAX * NS_PER_MS;
}

static void cast_own(const struct clock *c, struct nic_time now, struct votes *v)
{
    const struct clock_anchor own =
        anchor_now(c, c->own_utc_at, c->own_utc_ns, c->own_utc_bound_ns);

    cast_vote(v, now, &own, c->own_utc_at, 0);
}

/* Collects one vote for each host, however many clocks and edges it has, and the own vote. */
static void gather_votes(struct clock *c, struct nic_time now, bool named, struct votes *v)
{
    v->count = 0;
    for (int i = 0; i < c->capacity; i++) {
        c->order[i] = -1; /* the newest edge to that host */
    }
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (!e->used || e->config.witness || !e->anchor_known || !fresh(now, e->anchor_at) ||
            (named && !e->config.anchor)) {
            continue;
        }
        int *best = &c->order[e->host_leader];
        *best = *best < 0 || e->anchor_at.ns > c->edges[*best].anchor_at.ns ? i : *best;
    }
    for (int i = 0; i < c->capacity; i++) {
        if (c->order[i] >= 0) {
            const struct clock_edge *e = &c->edges[c->order[i]];
            const struct clock_anchor theirs =
                anchor_now(c, e->utc_at, e->utc_ns, e->anchor.bound_ns);
            cast_vote(v, now, &theirs, e->anchor_at, e->apart_ns);
        }
    }
    if (c->own_utc_known && (!named || c->config.anchor)) {
        cast_own(c, now, v);
    }
}

/* The number of votes that allow UTC to lie from `lower` to `upper`. */
static int agreeing(const struct votes *v, int64_t lower, int64_t upper)
{
    int count = v->count;

    for (int i = 0; i < v->count; i++) {
        count -= (v->lower[i] > upper) + (v->upper[i] < lower);
    }
    return count;
}

/* Combines the votes; `liars` of them may be wrong. If more disagree, the bound is as wide as all of them together. */
static void conclude(struct clock *c, const struct votes *v, int liars)
{
    ASSERT(liars >= 0 && liars < v->count); /* otherwise liars alone would decide */
    int64_t lower = v->lower[v->count - 1 - liars], upper = v->upper[liars];

    if (lower > upper || agreeing(v, lower, upper) < v->count - liars) {
        lower = v->lower[0];
        upper = v->upper[v->count - 1];
    }
    const int64_t middle = v->value[(v->count - 1) / 2];
    c->utc_known = true;
    c->utc_minus_ns = middle < lower ? lower : middle > upper ? upper : middle;
    c->utc_bound_ns = fmax((double)(upper - c->utc_minus_ns), (double)(c->utc_minus_ns - lower));
    c->utc_age_ns = v->age[liars];
    c->steer = fmin(STEER_MAX, fmax(-STEER_MAX, (double)c->utc_minus_ns * 1e-9 / STEER_S));
}

void anchor_tick(struct clock *c, struct nic_time now)
{
    struct votes v;

    c->utc_known = false;
    c->steer = 0;
    c->own_utc_known = c->own_utc_known && fresh(now, c->own_utc_at);
    take_words(c, now);
    gather_votes(c, now, true, &v);
    if (v.count > 0) {
        conclude(c, &v, (v.count - 1) / 2);
        return;
    }
    gather_votes(c, now, false, &v);
    if (v.count > c->liars_max) {
        conclude(c, &v, c->liars_max);
    } else if (c->own_utc_known) {
        v.count = 0;
        cast_own(c, now, &v);
        conclude(c, &v, 0);
    }
}

/* This member's own conclusion, under its own name. */
struct clock_anchor anchor_publish(const struct clock *c)
{
    const double bound = ceil(c->utc_bound_ns - UTC_RATE * (double)c->utc_age_ns);

    if (!c->utc_known || bound > BOUND_MAX) {
        return (struct clock_anchor){.member = UINT32_MAX};
    }
    return (struct clock_anchor){.member = c->config.member,
                                 .bound_ns = (uint32_t)fmax(0, bound),
                                 .utc_minus_ns = c->utc_minus_ns,
                                 .age_ms = (uint32_t)((c->utc_age_ns + NS_PER_MS - 1) / NS_PER_MS)};
}
