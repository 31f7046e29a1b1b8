/* locate_liar.c: finds a host with reports that fit nothing. Its reports about paths that end at it are weighed against two
 * explanations: the fabric's, which all other hosts' reports made, and one in which each of its paths has its own loss. If the
 * second one is better by more than chance and its own cost, the host's reports are left out for a while: they neither accuse nor
 * acquit. A host may be right alone about its own elements: if a fault of those explains its reports, nothing is left out. */
#include <math.h>

#include "core/fleet/locate_private.h"

#define LIAR_WINDOW 2                   /* 1.6 s */
#define LIAR_COST   (12 + LOCATE_LIMIT) /* as rare as that, and as certain as a name */
#define LIAR_PATH   2.0                 /* for each path with a share of its own */
#define LIAR_NEXT   3.0                 /* so many times worse than any other host */
#define LIAR_NS     (5 * NS_PER_S)
#define WORDS       64

struct word {
    struct host_id host;
    double astray;
};

/* The share that the path loses by the explanation. */
static double share_of(const struct locate *l, const struct explanation *x, const struct path *p)
{
    double clean = 1 - locate_null(l);

    for (uint32_t i = 0; i < x->count; i++) {
        for (uint32_t k = 0; k < p->element_count; k++) {
            clean *= p->elements[k] == x->elements[i] ? 1 - x->shares[i] : 1;
        }
    }
    return fmin(0.9999, 1 - clean);
}

static void astray(struct locate *l, const struct explanation *x, uint32_t path, struct word *words,
                   uint32_t *count)
{
    const struct path *p = &l->paths[path];
    const double null = locate_null(l);
    uint32_t i = 0;

    locate_count(l, path);
    const double sent = l->sent[path], lost = l->lost[path];
    if (sent <= 0) {
        return;
    }
    const double own = locate_gain(lost, sent, lost / sent, null),
                 all = locate_gain(lost, sent, share_of(l, x, p), null);
    while (i < *count && !host_id_equal(words[i].host, p->route.teller)) {
        i++;
    }
    if (i == WORDS) {
        return;
    }
    if (i == *count) {
        words[(*count)++] = (struct word){.host = p->route.teller};
    }
    words[i].astray += fmax(0, (own - all) / l->dispersion - LIAR_PATH);
}

/* Over all paths that lost something or should have. */
static uint32_t words_of(struct locate *l, const struct explanation *x, struct word *words)
{
    uint32_t count = 0, seen = 0;

    for (uint32_t i = 0; i < l->lossy_count; i++) {
        astray(l, x, l->lossy[i], words, &count);
        l->mask[l->lossy[i]] = 1;
        l->touched[seen++] = l->lossy[i];
    }
    for (uint32_t i = 0; i < x->count; i++) {
        const struct suspect *e = &l->suspects[x->elements[i]];

        for (uint32_t k = 0; k < e->count; k++) {
            const uint32_t path = l->crossings[e->first + k];
            if (l->mask[path] == 0) {
                astray(l, x, path, words, &count);
                l->mask[path] = 1;
                l->touched[seen++] = path;
            }
        }
    }
    for (uint32_t i = 0; i < seen; i++) {
        l->mask[l->touched[i]] = 0;
    }
    return count;
}

bool locate_liar_find(struct locate *l, struct mono now)
{
    struct word words[WORDS], most = {.host = HOST_NONE};
    struct explanation x;
    double next = 0;

    if (l->config.one_word || l->muted.index != HOST_NONE.index) {
        return false;
    }
    locate_window_begin(l, now, LIAR_WINDOW, HOST_NONE);
    locate_explain(l, &x);
    const uint32_t count = words_of(l, &x, words);
    for (uint32_t i = 0; i < count; i++) {
        if (words[i].astray > most.astray) {
            next = most.astray;
            most = words[i];
        } else {
            next = fmax(next, words[i].astray);
        }
    }
    if (most.astray < LIAR_COST || most.astray < LIAR_NEXT * next ||
        host_id_equal(most.host, l->config.own)) {
        return false;
    }
    l->muted = most.host;
    l->muted_until = mono_add(now, span_ns(LIAR_NS));
    return true;
}
