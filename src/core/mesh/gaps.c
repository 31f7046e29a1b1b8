/* gaps.c: see gaps.h. */
#include "core/mesh/gaps.h"

#include <math.h>
#include <stddef.h>

#define LOOK_NS (100 * NS_PER_MS)

void gaps_add(struct gaps *g, const struct spread_pair *pair)
{
    g->ring[g->count++ % GAPS_RING] = *pair;
}

static uint32_t kept(const struct gaps *g)
{
    return g->count < GAPS_RING ? (uint32_t)g->count : GAPS_RING;
}

const struct spread_pair *gaps_pair(const struct gaps *g, uint32_t index)
{
    return index < kept(g) ? &g->ring[(g->count - kept(g) + index) % GAPS_RING] : NULL;
}

struct agreement {
    uint32_t alike;
    double sum, odds; /* ln, against chance */
    struct mono since;
};

/* In GAPS_NS: as many as those around let expect. */
static double chance_of(const struct gaps *g, struct mono now, double gap_ns)
{
    const double width = 2 * (SPREAD_ALIKE_NS + SPREAD_ALIKE * gap_ns),
                 around = (GAPS_NEAR - 1 / GAPS_NEAR) * gap_ns - width;
    const struct spread_pair *p;
    uint32_t near = 1;

    for (uint32_t i = 0; (p = gaps_pair(g, i)) != NULL; i++) {
        near += mono_sub(now, p->at).ns <= GAPS_NS && spread_is_wide(p) &&
                p->heard_ns < gap_ns * GAPS_NEAR && p->heard_ns * GAPS_NEAR > gap_ns &&
                !spread_alike(p->heard_ns, gap_ns);
    }
    return near * width / around;
}

/* Since when they are most unlikely to be alike by chance: one or two may have been before the link was slow. */
static struct agreement agreement_of(const struct gaps *g, struct mono now, double gap_ns)
{
    const double chance = chance_of(g, now, gap_ns);
    struct agreement best = {.alike = 0}, a = {.alike = 0};

    for (uint32_t i = kept(g); i > 0; i--) {
        const struct spread_pair *p = gaps_pair(g, i - 1);
        const int64_t ago = mono_sub(now, p->at).ns;

        if (ago > GAPS_NS) {
            break;
        }
        if (!spread_is_wide(p) || !spread_alike(p->heard_ns, gap_ns)) {
            continue;
        }
        a.alike++;
        a.sum += p->heard_ns;
        a.since = p->at;
        const double expected = chance * fmax((double)ago, GAPS_ONCE_NS) / GAPS_NS;
        a.odds = a.alike > expected ? a.alike * log(a.alike / expected) - (a.alike - expected) : 0;
        best = a.odds > best.odds ? a : best;
    }
    return best;
}

static bool stands_out(const struct agreement *a)
{
    return a->alike >= GAPS_LEAST && a->odds > GAPS_ODDS;
}

static double least_of(const struct gaps *g)
{
    uint32_t low[GAPS_LOW + 1];
    uint32_t count = 0;
    const struct spread_pair *p;

    for (uint32_t i = 0; (p = gaps_pair(g, i)) != NULL; i++) {
        uint32_t at = count <= GAPS_LOW ? count++ : GAPS_LOW + (p->heard_ns >= low[GAPS_LOW]);

        if (at > GAPS_LOW) {
            continue;
        }
        for (; at > 0 && low[at - 1] > p->heard_ns; at--) {
            low[at] = low[at - 1];
        }
        low[at] = p->heard_ns;
    }
    return count > 0 ? low[count - 1] : 0;
}

static void take(struct gaps *g, const struct agreement *a)
{
    g->slow_ns = a->sum / a->alike;
    g->since = a->since;
}

bool gaps_look(struct gaps *g, struct mono now, enum gaps_hold hold)
{
    const struct spread_pair *newest = kept(g) > 0 ? gaps_pair(g, kept(g) - 1) : NULL;
    const bool wide = newest && spread_is_wide(newest);
    struct agreement old = {.alike = 0};
    bool changed = false;

    if (!wide && (g->slow_ns <= 0 || mono_sub(now, g->looked).ns < LOOK_NS)) {
        return false;
    }
    g->looked = now;
    g->least_ns = least_of(g);
    if (hold == GAPS_FIXED) {
        return false;
    }
    if (g->slow_ns > 0) {
        old = agreement_of(g, now, g->slow_ns);
        if (hold == GAPS_FREE && !stands_out(&old)) {
            g->slow_ns = 0;
            old.odds = 0;
            changed = true;
        }
    }
    if (wide && (g->slow_ns <= 0 || !spread_alike(newest->heard_ns, g->slow_ns))) {
        const struct agreement a = agreement_of(g, now, newest->heard_ns);

        if (a.odds > 2 * old.odds && stands_out(&a)) {
            take(g, &a);
            changed = true;
        }
    }
    return changed;
}
