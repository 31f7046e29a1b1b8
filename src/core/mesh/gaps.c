/* gaps.c: see gaps.h. */
#include "core/mesh/gaps.h"

#include <math.h>
#include <stddef.h>

#define LOOK_NS    (20 * NS_PER_MS)
#define REFRESH_NS (100 * NS_PER_MS)
#define LOOK_ROW   16
#define CHANGE_NS  NS_PER_S
#define UNNAMED_NS (300 * NS_PER_S)
#define HOST_BITS  0x7fffffffu

static bool known(const struct gap *gap)
{
    return gap->slow_ns > 0;
}

void gaps_add(struct gaps *g, struct gaps_share *share, const struct spread_pair *pair,
              bool explained)
{
    g->ring[g->count++ % GAPS_RING] = *pair;
    if (!spread_is_wide(pair)) {
        return;
    }
    if (mono_sub(pair->at, share->start).ns >= NS_PER_S) {
        *share = (struct gaps_share){.start = pair->at};
    }
    if (share->count < GAPS_EDGE) {
        share->count++;
        g->wide[g->wide_count++ % GAPS_WIDE] = (struct gaps_wide){.at = pair->at,
                                                                  .heard_ns = pair->heard_ns,
                                                                  .host = pair->host & HOST_BITS,
                                                                  .explained = explained};
    }
}

static uint32_t kept(const struct gaps *g)
{
    return g->count < GAPS_RING ? (uint32_t)g->count : GAPS_RING;
}

const struct spread_pair *gaps_pair(const struct gaps *g, uint32_t index)
{
    return index < kept(g) ? &g->ring[(g->count - kept(g) + index) % GAPS_RING] : NULL;
}

/* The newest first, within GAPS_NS; NULL: no more. */
static const struct gaps_wide *wide_of(const struct gaps *g, struct mono now, uint32_t index)
{
    if (index >= GAPS_WIDE || index >= g->wide_count) {
        return NULL;
    }
    const struct gaps_wide *w = &g->wide[(g->wide_count - 1 - index) % GAPS_WIDE];

    return mono_sub(now, w->at).ns <= GAPS_NS ? w : NULL;
}

/* A full ring may cover less time than GAPS_NS. */
static double held_ns(const struct gaps *g, struct mono now)
{
    if (g->wide_count < GAPS_WIDE) {
        return GAPS_NS;
    }
    const int64_t held = mono_sub(now, g->wide[g->wide_count % GAPS_WIDE].at).ns;

    return fmax(1, fmin(GAPS_NS, (double)held));
}

/* The pairs to look at: all, those of one host, or all but those of one host. */
struct whose {
    uint32_t host; /* GAPS_ALL */
    bool others;
};

static bool is_of(struct whose whose, const struct gaps_wide *w)
{
    return whose.host == GAPS_ALL || (w->host == whose.host) != whose.others;
}

struct agreement {
    uint32_t alike, explained;
    double sum, odds; /* logarithm, against chance */
    struct mono since;
};

/* In the covered time: the number that the surrounding pairs predict. */
static double chance_of(const struct gaps *g, struct mono now, double gap_ns, struct whose whose)
{
    const double width = 2 * (SPREAD_ALIKE_NS + SPREAD_ALIKE * gap_ns),
                 around = fmax(1, (GAPS_NEAR - 1 / GAPS_NEAR) * gap_ns - width);
    const struct gaps_wide *w;
    uint32_t near = 1;

    for (uint32_t i = 0; (w = wide_of(g, now, i)) != NULL; i++) {
        near += w->heard_ns < gap_ns * GAPS_NEAR && w->heard_ns * GAPS_NEAR > gap_ns &&
                is_of(whose, w) && !spread_alike(w->heard_ns, gap_ns);
    }
    return near * width / around;
}

/* The time since which their agreement is most unlikely to be chance: one or two may be from before the link was slow. */
static struct agreement agreement_of(const struct gaps *g, struct mono now, double gap_ns,
                                     struct whose whose)
{
    const double rate = chance_of(g, now, gap_ns, whose) / held_ns(g, now);
    struct agreement best = {.alike = 0}, a = {.alike = 0};
    const struct gaps_wide *w;

    for (uint32_t i = 0; (w = wide_of(g, now, i)) != NULL; i++) {
        if (!is_of(whose, w) || !spread_alike(w->heard_ns, gap_ns)) {
            continue;
        }
        a.alike++;
        a.explained += w->explained;
        a.sum += w->heard_ns;
        a.since = w->at;
        const double expected = rate * fmax((double)mono_sub(now, w->at).ns, GAPS_ONCE_NS);
        a.odds = a.alike > expected ? a.alike * log(a.alike / expected) - (a.alike - expected) : 0;
        best = a.odds > best.odds ? a : best;
    }
    return best;
}

static bool stands_out(const struct agreement *a)
{
    return a->alike >= GAPS_LEAST && a->odds > GAPS_ODDS;
}

static bool is_explained(const struct agreement *a)
{
    return 2 * a->explained > a->alike;
}

/* The host with more than half of the pairs that agree, if there is one. */
static uint32_t host_of_most(const struct gaps *g, struct mono now, double gap_ns)
{
    const struct gaps_wide *w;
    uint32_t host = 0, more = 0;

    for (uint32_t i = 0; (w = wide_of(g, now, i)) != NULL; i++) {
        if (spread_alike(w->heard_ns, gap_ns)) {
            host = more == 0 ? w->host : host;
            more = more == 0 || w->host == host ? more + 1 : more - 1;
        }
    }
    return host;
}

/* True if the others still agree: bad stamps of one host make no agreement of all. */
static bool second_agrees(const struct gaps *g, struct mono now, double gap_ns)
{
    const struct whose others = {.host = host_of_most(g, now, gap_ns), .others = true};
    const struct agreement a = agreement_of(g, now, gap_ns, others);

    return a.alike >= 2 && a.odds > GAPS_SECOND;
}

#define LOW_MOST (GAPS_BAD + GAPS_RING / GAPS_LOW + 1)

/* Pairs in the order of their gaps: up to the quantile, at most LOW_MOST. */
struct lows {
    const struct spread_pair *pairs[LOW_MOST];
    uint32_t kept, count; /* count: of all pairs that were looked at */
};

/* Without those of one host; GAPS_ALL: of all. Nearly no pair is among the lowest few. */
static void lows_of(const struct gaps *g, uint32_t without, struct lows *ret)
{
    const struct spread_pair *p;

    ret->kept = ret->count = 0;
    for (uint32_t i = 0; (p = gaps_pair(g, i)) != NULL; i++) {
        if (without != GAPS_ALL && p->host == without) {
            continue;
        }
        ret->count++;
        uint32_t at = ret->kept < LOW_MOST ? ret->kept++ : LOW_MOST;
        if (at == LOW_MOST && p->heard_ns < ret->pairs[LOW_MOST - 1]->heard_ns) {
            at--;
        }
        if (at == LOW_MOST) {
            continue;
        }
        for (; at > 0 && ret->pairs[at - 1]->heard_ns > p->heard_ns; at--) {
            ret->pairs[at] = ret->pairs[at - 1];
        }
        ret->pairs[at] = p;
    }
    const uint32_t quantile = GAPS_BAD + ret->count / GAPS_LOW + 1;
    ret->kept = quantile < ret->kept ? quantile : ret->kept;
}

static uint32_t host_of_lows(const struct lows *lows)
{
    uint32_t host = GAPS_ALL, most = 0;

    for (uint32_t i = 0; i < lows->kept; i++) {
        uint32_t of = 0;

        for (uint32_t k = 0; k < lows->kept; k++) {
            of += lows->pairs[k]->host == lows->pairs[i]->host;
        }
        host = of > most ? lows->pairs[i]->host : host;
        most = of > most ? of : most;
    }
    return host;
}

/* A low quantile, without the host that has most of the pairs below it. */
static double least_of(const struct gaps *g)
{
    struct lows all, rest;

    lows_of(g, GAPS_ALL, &all);
    if (all.kept == 0) {
        return 0;
    }
    lows_of(g, host_of_lows(&all), &rest);
    return rest.kept > 0 ? rest.pairs[rest.kept - 1]->heard_ns : all.pairs[all.kept - 1]->heard_ns;
}

bool gaps_known(const struct gaps *g)
{
    bool r = known(&g->all);

    for (uint32_t i = 0; i < GAPS_HOSTS; i++) {
        r = r || known(&g->of_host[i]);
    }
    return r;
}

bool gaps_is_host(const struct gap *gap, uint32_t host)
{
    return gap->host == (host & HOST_BITS);
}

static const struct gap *gap_of(const struct gaps *g, uint32_t host)
{
    for (uint32_t i = 0; i < GAPS_HOSTS; i++) {
        if (known(&g->of_host[i]) && gaps_is_host(&g->of_host[i], host)) {
            return &g->of_host[i];
        }
    }
    return known(&g->all) ? &g->all : NULL;
}

bool gaps_has_own(const struct gaps *g, uint32_t host)
{
    const struct gap *gap = gap_of(g, host);

    return gap && gap != &g->all;
}

bool gaps_is_slow(const struct gaps *g, struct mono now, uint32_t host, double usual_ns,
                  double heard_ns)
{
    const struct gap *gap = gap_of(g, host);

    return gap && mono_sub(now, gap->since).ns < UNNAMED_NS && heard_ns > SPREAD_WIDER * usual_ns &&
           spread_alike(heard_ns, gap->slow_ns);
}

double gaps_of(const struct gaps *g, uint32_t host)
{
    const struct gap *gap = gap_of(g, host);

    return gap ? gap->slow_ns : 0;
}

enum spread gaps_judge(const struct gaps *g, const struct spread_pair *pair, double *ret_slow_ns)
{
    const struct gap *own = gap_of(g, pair->host);
    uint32_t gaps = 0, narrow = 0;

    *ret_slow_ns = own ? own->slow_ns : 0;
    const enum spread by_own = own ? spread_judge(pair, own->slow_ns, g->least_ns) : SPREAD_NOTHING;
    if (by_own != SPREAD_NARROW && by_own != SPREAD_NOTHING) {
        return by_own;
    }
    for (uint32_t i = 0; i <= GAPS_HOSTS; i++) {
        const struct gap *gap = i < GAPS_HOSTS ? &g->of_host[i] : &g->all;

        if (known(gap)) {
            gaps++;
            narrow += spread_judge(pair, gap->slow_ns, g->least_ns) == SPREAD_NARROW;
        }
    }
    return gaps > 0 && narrow == gaps ? SPREAD_NARROW : SPREAD_NOTHING;
}

static struct whose whose_of(const struct gap *gap)
{
    return (struct whose){.host = gap->host};
}

static bool is_cold(const struct gap *gap, struct mono now)
{
    return mono_sub(now, gap->stood_out).ns > GAPS_NS;
}

static void gap_refresh(struct gaps *g, struct gap *gap, struct mono now, enum gaps_hold hold)
{
    if (!known(gap)) {
        return;
    }
    const struct agreement a = agreement_of(g, now, gap->slow_ns, whose_of(gap));

    if (stands_out(&a)) {
        gap->stood_out = now;
        gap->held = is_explained(&a);
    } else if (is_cold(gap, now) && (hold == GAPS_FREE || !gap->held)) {
        gap->slow_ns = 0;
    }
}

static void refresh(struct gaps *g, struct mono now, enum gaps_hold hold)
{
    if (!gaps_known(g) || mono_sub(now, g->refreshed).ns < REFRESH_NS) {
        return;
    }
    g->refreshed = now;
    g->least_ns = least_of(g);
    gap_refresh(g, &g->all, now, hold);
    for (uint32_t i = 0; i < GAPS_HOSTS; i++) {
        gap_refresh(g, &g->of_host[i], now, hold);
    }
}

/* A known gap gives its place to another one with twice the odds. */
static const struct gap *take(struct gaps *g, struct gap *gap, struct mono now, uint32_t host,
                              const struct agreement *a, enum gaps_hold hold)
{
    if (known(gap) && gap->host == host) {
        const struct agreement old = agreement_of(g, now, gap->slow_ns, whose_of(gap));

        if (a->odds <= 2 * old.odds && !(hold == GAPS_FREE && !stands_out(&old))) {
            return NULL;
        }
    }
    *gap = (struct gap){.slow_ns = a->sum / a->alike,
                        .host = host,
                        .since = a->since,
                        .stood_out = now,
                        .held = is_explained(a)};
    g->changed[1] = g->changed[0];
    g->changed[0] = now;
    g->least_ns = least_of(g);
    return gap;
}

static const struct gap *look_all(struct gaps *g, struct mono now, double heard_ns,
                                  enum gaps_hold hold)
{
    const struct agreement a = agreement_of(g, now, heard_ns, (struct whose){.host = GAPS_ALL});

    if (!stands_out(&a) || !second_agrees(g, now, heard_ns) ||
        (known(&g->all) && hold == GAPS_FIXED && !(is_cold(&g->all, now) && is_explained(&a)))) {
        return NULL;
    }
    const struct gap *taken = take(g, &g->all, now, GAPS_ALL, &a, hold);
    for (uint32_t i = 0; taken && i < GAPS_HOSTS; i++) {
        if (spread_alike(g->of_host[i].slow_ns, taken->slow_ns)) {
            g->of_host[i].slow_ns = 0; /* its host was only the first that met the slow link */
        }
    }
    return taken;
}

/* Its own place, or else a free one. */
static struct gap *place_of(struct gaps *g, uint32_t host)
{
    struct gap *place = NULL;

    for (uint32_t i = 0; i < GAPS_HOSTS; i++) {
        struct gap *gap = &g->of_host[i];

        if (known(gap) && gap->host == host) {
            return gap;
        }
        place = known(gap) ? place : gap;
    }
    return place;
}

static const struct gap *look_host(struct gaps *g, struct mono now, double heard_ns, uint32_t host,
                                   enum gaps_hold hold)
{
    struct gap *place = place_of(g, host);

    if (!place || (known(place) && place->host == host && spread_alike(heard_ns, place->slow_ns))) {
        return NULL;
    }
    const struct agreement a = agreement_of(g, now, heard_ns, (struct whose){.host = host});

    if (!stands_out(&a)) {
        return NULL;
    }
    if (known(&g->all)) {
        const struct agreement all =
            agreement_of(g, now, g->all.slow_ns, (struct whose){.host = host});

        if (a.odds <= 2 * all.odds) {
            return NULL;
        }
    }
    return take(g, place, now, host, &a, hold);
}

/* The next one that does not fit the gap of all. If only the newest pair was used, one host's pairs could always arrive just
 * after all others and displace them. If many wait, some are skipped, so that none waits for long. */
static const struct gaps_wide *next_unknown(struct gaps *g)
{
    if (g->wide_count - g->wide_looked > GAPS_WIDE) {
        g->wide_looked = g->wide_count - GAPS_WIDE;
    }
    g->wide_looked += (g->wide_count - g->wide_looked) / LOOK_ROW;
    while (g->wide_looked < g->wide_count) {
        const struct gaps_wide *w = &g->wide[g->wide_looked++ % GAPS_WIDE];

        if (!spread_alike(w->heard_ns, g->all.slow_ns)) {
            return w;
        }
    }
    return NULL;
}

const struct gap *gaps_look(struct gaps *g, struct mono now, enum gaps_hold hold)
{
    refresh(g, now, hold);
    if (g->wide_looked == g->wide_count || mono_sub(now, g->looked).ns < LOOK_NS ||
        mono_sub(now, g->changed[1]).ns < 2 * CHANGE_NS) {
        return NULL;
    }
    const struct gaps_wide *w = next_unknown(g);
    if (!w) {
        return NULL;
    }
    g->looked = now;
    const struct gap *r = look_all(g, now, w->heard_ns, hold);

    return r ? r : look_host(g, now, w->heard_ns, w->host, hold);
}
