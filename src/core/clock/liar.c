/* liar.c: finds peers that must not be believed. A parked peer is a liar (or broken), or the edge to it is asymmetric: its other
 * neighbours can tell. If more edges are parked than liars_max allows, that is reported, and the worst ones are replaced. */
#include "core/clock/clock_private.h"

#include <math.h>
#include <string.h>

#define SUSPECT_S 1.0
/* For a peer that denies being core. An honest peer that is off by x times the limit of a lie sees that within -2 ln(1 - 1/x) s,
 * because levels are means over 2 s. A second later it moves back (REGROUP_S), and denies being core for a moment. Others see it
 * come within 2 ln x s. Together that is at most 7.1 s for x from 1.06 to 20. A peer that is further off, with stamps of 5 ns,
 * stepped, which is found at once. A peer that is nearer is moved by its filter meanwhile. */
#define DENIER_S     7.5
#define FALSE_RATE_S 2.0 /* rates from stamps are computed once a second: so much is two results */
#define LIAR_NS      8.0
#define LIAR_MARGIN  1.5  /* times the parking limit */
#define LIAR_SIGMAS  6.0  /* of the distance by which honest clocks stray */
#define EDGE_NS      25.0 /* a smaller one isn't worth a report */
#define EDGE_S       10.0
#define PEER_AGE_NS  (20 * NS_PER_S) /* a peer that has just joined may still be acquiring */
#define LIAR_ODDS    9.2             /* log 10^4 */
#define EDGE_ODDS    -9.2
#define ASK_AGAIN_NS (NS_PER_S / 2)
#define OPINION_NS   (3 * NS_PER_S)
#define FORGET_S     3.0
#define HUSH_S       3.0 /* nearly no packet came in time */
#define CROWDED_S    5.0
#define REPLACE_NS   (2500 * NS_PER_MS)

static bool runs_falsely(const struct clock_edge *e)
{
    return e->false_s >= FALSE_RATE_S;
}

/* 1: the peer isn't believed, because each of its live edges is parked or out of gate, or it makes an impossible claim. 0: it is
 * believed. -1: nothing is measured. ret_denies: it doesn't claim to be core. */
static int disbelief(const struct clock *c, uint32_t peer, double *ret_level, int *ret_edge,
                     bool *ret_denies)
{
    int live = 0, against = 0;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (!e->used || e->config.peer != peer || !edge_usable(c, e)) {
            continue;
        }
        const bool out = e->out_since_s >= 1;
        const bool waits =
            e->hush_s >= HUSH_S || e->packets_out > e->packets_in_gate + e->packets_alike;
        const bool false_rate = runs_falsely(e);
        const bool held = out ? edge_held_up(e) : e->parked && (edge_held_up(e) || edge_covered(e));
        if (!false_rate && (e->unsure || (held && !consensus_boasts(e)) ||
                            (e->silent && (e->parked ? waits : out)))) {
            continue; /* its packets wait, which is no lie */
        }
        if ((!e->level_known && !out && !false_rate) || e->returned ||
            c->now.ns - e->tracking_since.ns < PEER_AGE_NS) {
            continue;
        }
        live++;
        against += out || e->parked || consensus_boasts(e) || false_rate;
        *ret_denies = !e->peer.core;
        *ret_level = out ? e->raw_ns : e->level_ns;
        *ret_edge = i;
    }
    return live == 0 ? -1 : against == live;
}

struct clock_answer clock_answer(const struct clock *c, uint32_t about)
{
    struct clock_answer answer = {.about = about, .from = c->config.member};
    int edge = -1;
    bool denies;
    const int against = disbelief(c, about, &answer.level_ns, &edge, &denies);

    answer.known = against >= 0 && c->phase == CLOCK_TRACK && c->narrow && c->regroup_s == 0 &&
                   2 * c->parked <= c->live;
    answer.parked = against == 1;
    return answer;
}

static struct suspect *suspect_of(struct clock *c, uint32_t peer, bool make)
{
    struct suspect *free_slot = NULL;

    for (int i = 0; i < SUSPECTS; i++) {
        struct suspect *s = &c->suspects[i];
        if (s->used && s->peer == peer) {
            return s;
        }
        if (!s->used && free_slot == NULL) {
            free_slot = s;
        }
    }
    if (make && free_slot != NULL) {
        *free_slot = (struct suspect){.used = true, .peer = peer};
        return free_slot;
    }
    return NULL;
}

void clock_on_answer(struct clock *c, struct nic_time now, const struct clock_answer *a)
{
    struct suspect *s = suspect_of(c, a->about, false);

    c->now = now;
    if (s == NULL) {
        return;
    }
    struct opinion *o = s->opinions;
    while (o < s->opinions + s->asked && o->from != a->from) {
        o++;
    }
    if (o == s->opinions + ARRAY_COUNT(s->opinions)) {
        return;
    }
    s->asked += o == s->opinions + s->asked;
    ASSERT(s->asked > 0 && s->asked <= (int)ARRAY_COUNT(s->opinions));
    *o = (struct opinion){.from = a->from, .at = now, .known = a->known, .against = a->parked};
}

/* The present weight of the answers: log odds of a lie against an asymmetric edge. */
static double weigh(const struct clock *c, const struct suspect *s, int *ret_against,
                    int *ret_asked)
{
    /* the rate at which an honest peer's edge is parked: assumed equal to ours */
    const double usual = fmin(0.6, fmax(0.1, 0.05 + (double)c->parked / fmax(1, c->live)));
    double odds = 0;

    *ret_against = *ret_asked = 0;
    for (int i = 0; i < s->asked; i++) {
        const struct opinion *o = &s->opinions[i];
        if (c->now.ns - o->at.ns > OPINION_NS) {
            continue;
        }
        *ret_asked += 1;
        if (o->known) {
            *ret_against += o->against;
            odds += o->against ? log(0.95 / usual) : log(0.05 / (1 - usual));
        }
    }
    return odds;
}

/* A lie is larger than the stray of honest clocks. It is beyond the parking limit with some margin. It is beyond the peer's own
 * claimed error (which moves nobody). With software stamps it is also beyond the noise of one packet. */
static double lie_limit(const struct clock *c, const struct clock_edge *e)
{
    const double noise = c->config.stamps == CLOCK_STAMPS_SOFTWARE ? noise_sigma_ns(&c->noise) : 0;
    const double stray = fmax(clock_stray_ns(c), e->peer.sqrt_p_ns);

    return fmax(fmax(LIAR_NS, LIAR_SIGMAS * stray), fmax(noise, LIAR_MARGIN * park_limit(c, e)));
}

/* The peer publishes that half of its own edges are off by more than the parking limit here: most of its paths are asymmetric, or
 * it is lost. Either way it is left out, and not called a liar. */
static bool owns_up(const struct clock *c, const struct clock_edge *e)
{
    return e->peer.scale_ns > park_limit(c, e);
}

/* The size of the lie, ns; 0: nothing shows one. */
static double lie_of(const struct clock *c, const struct clock_edge *e, double level)
{
    if (consensus_boasts(e)) {
        return e->peer.sqrt_p_ns;
    }
    if (runs_falsely(e)) { /* the error of its time before its next map is heard */
        return e->false_rate * BOUND_HORIZON_S * 1e9;
    }
    return fabs(level) > lie_limit(c, e) && !owns_up(c, e) ? level : 0;
}

static void judge(struct clock *c, struct suspect *s, double level, int edge)
{
    int against, asked;
    const double odds = weigh(c, s, &against, &asked);
    const double lie = lie_of(c, &c->edges[edge], level);

    if (s->named || s->asymmetric) {
        return;
    }
    if (odds > LIAR_ODDS && 2 * against >= asked && lie != 0) {
        s->named = true;
        s->edge = edge;
        clock_push(c, (struct clock_action){.kind = CLOCK_ACTION_LIAR,
                                            .edge = edge,
                                            .peer = s->peer,
                                            .value_ns = lie,
                                            .against = against,
                                            .asked = asked});
    } else if (odds < EDGE_ODDS && s->parked_s > EDGE_S && !runs_falsely(&c->edges[edge]) &&
               fabs(level) > 2 * park_limit(c, &c->edges[edge]) && fabs(level) > EDGE_NS) {
        s->asymmetric = true;
        s->edge = edge;
        clock_push(c, (struct clock_action){.kind = CLOCK_ACTION_ASYMMETRY,
                                            .edge = edge,
                                            .peer = s->peer,
                                            .value_ns = level});
    }
}

static void forget(struct clock *c, struct suspect *s)
{
    if (s->named || s->asymmetric) {
        clock_push(c, (struct clock_action){
                          .kind = CLOCK_ACTION_CLEARED, .edge = s->edge, .peer = s->peer});
    }
    s->used = false;
}

/* Suspects without any edge left: nobody would look at them again. */
static void forget_strangers(struct clock *c)
{
    for (int i = 0; i < SUSPECTS; i++) {
        struct suspect *s = &c->suspects[i];
        bool peer = false;
        for (int k = 0; k < c->capacity && s->used && !peer; k++) {
            peer = c->edges[k].used && c->edges[k].config.peer == s->peer;
        }
        if (s->used && !peer) {
            forget(c, s);
        }
    }
}

static void watch_peer(struct clock *c, struct nic_time now, double dt_s, uint32_t peer)
{
    double level = 0;
    int edge = -1;
    bool denies = false;
    const int against = disbelief(c, peer, &level, &edge, &denies);
    struct suspect *s = suspect_of(c, peer, against == 1);

    if (s == NULL) {
        return;
    }
    if (against != 1) {
        s->parked_s -= dt_s;
        if (s->parked_s < -FORGET_S) {
            forget(c, s);
        }
        return;
    }
    s->parked_s = fmax(0, s->parked_s) + dt_s;
    if (s->parked_s <= (denies ? DENIER_S : SUSPECT_S)) {
        return;
    }
    if (!s->named && !s->asymmetric &&
        (s->asked_at.ns == 0 || now.ns - s->asked_at.ns > ASK_AGAIN_NS)) {
        s->asked_at = now;
        clock_push(c,
                   (struct clock_action){
                       .kind = CLOCK_ACTION_QUERY, .edge = edge, .peer = peer, .value_ns = level});
    }
    judge(c, s, level, edge);
}

/* Replaces the worst parked edges by others of the list. */
static void replace_worst(struct clock *c, struct nic_time now)
{
    int worst = -1;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (e->used && !e->replacing && edge_against(e) &&
            (worst < 0 || fabs(e->level_ns) > fabs(c->edges[worst].level_ns))) {
            worst = i;
        }
    }
    if (worst >= 0) {
        c->edges[worst].replacing = true;
        clock_push(c, (struct clock_action){.kind = CLOCK_ACTION_REPLACE,
                                            .edge = worst,
                                            .peer = c->edges[worst].config.peer});
    }
}

void liar_tick(struct clock *c, struct nic_time now, double dt_s)
{
    int against = 0;

    forget_strangers(c);
    if (!c->narrow) {
        return;
    }
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (e->used && edge_usable(c, e) && edge_against(e)) {
            against++;
        }
    }
    if (2 * against <= c->live) { /* otherwise this member is more likely wrong */
        for (int i = 0; i < c->capacity; i++) {
            if (c->edges[i].used && c->edges[i].leader == i) {
                watch_peer(c, now, dt_s, c->edges[i].config.peer);
            }
        }
    }
    c->crowded_s = against > c->liars_max ? c->crowded_s + dt_s : 0;
    if (c->crowded_s > CROWDED_S && now.ns - c->replaced_at.ns > REPLACE_NS) {
        c->replaced_at = now;
        replace_worst(c, now);
    }
}
