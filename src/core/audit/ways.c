/* ways.c: ways are cut into links, and each link is judged by all ways over it. */
#include "core/audit/ways.h"

#include <stdlib.h>
#include <string.h>

#include "stats/sample.h"

#define SLOW   0.8 /* perf.h: PERF_SLOW */
#define UNEVEN 0.5 /* share of a NIC's ways; one of three spines may be slow, with silent routers */

enum {
    WAYS_OF_HOST = 12 * HOST_NIC_MAX,
    WAYS_MAX = 12 * 8192, /* for so many NICs */
    LINKS_OF_WAY = PATH_HOP_MAX - 1,
    MARGIN = 3 /* votes: a host has two for a trunk, one for each direction */
};

/* The link from hop `at` of a way to the next hop; hops count from 0. */
struct way_link {
    const struct way *way;
    const char *from, *to;
    uint32_t hop; /* number of the hop `to`, from 1, as in way.narrow */
};

/* For one link: one host's reports about NICs, at one end of a pair or the other. */
struct way_word {
    uint32_t nics, slow;
    bool voted; /* it reported that the link is narrow */
};

static size_t room(uint32_t hosts)
{
    const size_t wanted = (size_t)hosts * WAYS_OF_HOST;
    return wanted < WAYS_MAX ? wanted : WAYS_MAX;
}

static size_t aligned(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

size_t ways_size(uint32_t hosts)
{
    return aligned(room(hosts) * sizeof(struct way)) +
           aligned(room(hosts) * LINKS_OF_WAY * sizeof(struct way_link)) +
           aligned(room(hosts) * sizeof(double)) + aligned(hosts * sizeof(struct way_word));
}

void ways_init(struct ways *w, uint32_t hosts, void *memory)
{
    char *at = memory;
    *w = (struct ways){.all = memory, .capacity = (uint32_t)room(hosts), .hosts = hosts};
    at += aligned(room(hosts) * sizeof(*w->all));
    w->links = (struct way_link *)(void *)at;
    at += aligned(room(hosts) * LINKS_OF_WAY * sizeof(*w->links));
    w->rates = (double *)(void *)at;
    at += aligned(room(hosts) * sizeof(*w->rates));
    w->words = (struct way_word *)(void *)at;
    memset(w->words, 0, hosts * sizeof(*w->words));
}

void ways_add(struct ways *w, const struct way *way)
{
    if (way->rate >= 0 && way->hop_count <= PATH_HOP_MAX && way->host < w->hosts &&
        way->partner < w->hosts) {
        w->left_out += w->count == w->capacity;
        if (w->count < w->capacity) {
            w->all[w->count++] = *way;
        }
    }
}

static int by_link(const void *a, const void *b)
{
    const struct way_link *x = a, *y = b;
    const int r = strcmp(x->from, y->from);
    return r != 0 ? r : strcmp(x->to, y->to);
}

static bool same_nic(const struct way *a, const struct way *b)
{
    return a->host == b->host && a->nic == b->nic;
}

static int by_link_and_nic(const void *a, const void *b)
{
    const struct way *x = ((const struct way_link *)a)->way, *y = ((const struct way_link *)b)->way;
    const int r = by_link(a, b);
    return r != 0               ? r
           : x->host != y->host ? (x->host > y->host) - (x->host < y->host)
                                : (x->nic > y->nic) - (x->nic < y->nic);
}

static uint32_t cut(struct ways *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        const struct way *way = &w->all[i];
        for (uint32_t hop = 1; way->rate > 0 && hop < way->hop_count; hop++) {
            if (strcmp(way->hops[hop - 1], "-") != 0 && strcmp(way->hops[hop], "-") != 0) {
                w->links[n++] = (struct way_link){way, way->hops[hop - 1], way->hops[hop], hop + 1};
            }
        }
    }
    qsort(w->links, n, sizeof(*w->links), by_link_and_nic);
    return n;
}

static void add_trunk(struct ways *w, const struct way_link *link, double rate, uint32_t votes)
{
    const bool turned = strcmp(link->from, link->to) > 0;
    const char *ends[2] = {turned ? link->to : link->from, turned ? link->from : link->to};
    for (uint32_t i = 0; i < w->trunk_count; i++) {
        struct way_trunk *t = &w->trunks[i];
        if (strcmp(t->ends[0], ends[0]) == 0 && strcmp(t->ends[1], ends[1]) == 0) {
            t->rate = rate > t->rate ? rate : t->rate;
            t->votes += votes;
            return;
        }
    }
    w->left_out += w->trunk_count == WAYS_TRUNKS_MAX;
    if (w->trunk_count < WAYS_TRUNKS_MAX) {
        w->trunks[w->trunk_count++] = (struct way_trunk){{ends[0], ends[1]}, rate, votes, false};
    }
}

bool way_is_slow(const struct way *way)
{
    return way->share < SLOW;
}

/* Both hosts of a pair report about a NIC: one has the ways of its packets, the other one their speed. */
static void tell(struct ways *w, const struct way *way, bool slow)
{
    struct way_word *const ends[] = {&w->words[way->host], &w->words[way->partner]};
    for (int k = 0; k < 2; k++) {
        ends[k]->nics++;
        ends[k]->slow += slow;
    }
}

/* Would it be slow without everything that any one host reported? Clears the reports. */
static bool holds_without_any(struct ways *w, const struct way_link *links, uint32_t count,
                              uint32_t nics, uint32_t slow)
{
    bool holds = 4 * slow >= 3 * nics;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t ends[] = {links[i].way->host, links[i].way->partner};
        for (int k = 0; k < 2; k++) {
            struct way_word *own = &w->words[ends[k]];
            holds = holds && slow > own->slow && 4 * (slow - own->slow) >= 3 * (nics - own->nics);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        w->words[links[i].way->host] = w->words[links[i].way->partner] = (struct way_word){0};
    }
    return holds;
}

/* Judges the ways over one link, NIC by NIC. A host has one vote, however many of its NICs report that the link is narrow. */
static void judge_link(struct ways *w, const struct way_link *links, uint32_t count)
{
    uint32_t votes = 0, nics = 0, slow = 0;
    for (uint32_t from = 0, to; from < count; from = to) {
        struct way_word *own = &w->words[links[from].way->host];
        bool all = true;
        w->rates[nics] = 0;
        for (to = from; to < count && same_nic(links[from].way, links[to].way); to++) {
            const struct way *way = links[to].way;
            const bool narrow = way_is_slow(way) && way->narrow == links[to].hop;
            all = all && way_is_slow(way);
            w->rates[nics] = way->rate > w->rates[nics] ? way->rate : w->rates[nics];
            votes += narrow && !own->voted;
            own->voted = own->voted || narrow;
        }
        tell(w, links[from].way, all);
        nics++;
        slow += all;
    }
    sample_sort(w->rates, nics);
    if (holds_without_any(w, links, count, nics, slow)) {
        add_trunk(w, &links[0], sample_median(w->rates, nics), votes);
    }
}

bool way_is_seen(const struct way *way)
{
    bool seen = way->hop_count > 1;
    for (uint32_t hop = 0; hop < way->hop_count; hop++) {
        seen = seen && strcmp(way->hops[hop], "-") != 0;
    }
    return seen;
}

static bool crosses(const struct way *way, const struct way_trunk *trunk)
{
    for (uint32_t hop = 1; hop < way->hop_count; hop++) {
        const char *from = way->hops[hop - 1], *to = way->hops[hop];
        if ((strcmp(from, trunk->ends[0]) == 0 && strcmp(to, trunk->ends[1]) == 0) ||
            (strcmp(to, trunk->ends[0]) == 0 && strcmp(from, trunk->ends[1]) == 0)) {
            return true;
        }
    }
    return false;
}

bool way_is_slow_by(const struct way *way, const struct way_trunk *trunk)
{
    return way->rate > 0 && way_is_slow(way) && crosses(way, trunk);
}

/* It crosses no trunk that may be slow. */
static bool is_beside(const struct ways *w, const struct way *way)
{
    bool beside = way->rate > 0;
    for (uint32_t k = 0; beside && k < w->trunk_count; k++) {
        beside = !crosses(way, &w->trunks[k]);
    }
    return beside;
}

/* Looks at each NIC's ways that cross no slow trunk. For at least half of the NICs, most of these ways are slow as well, or there
 * are none. And without the reports of any one host it is so for at least a third of the rest: so one host's reports can't hide a
 * trunk that stands out. (Half of the rest would be five of eight NICs.) NICs without a known way don't count. */
static bool are_uneven(struct ways *w)
{
    uint32_t nics = 0, uneven = 0;
    for (uint32_t from = 0, to; from < w->count; from = to) {
        uint32_t beside = 0, slow = 0;
        bool known = false;
        for (to = from; to < w->count && same_nic(&w->all[from], &w->all[to]); to++) {
            const bool is = is_beside(w, &w->all[to]);
            known = known || w->all[to].rate > 0;
            beside += is;
            slow += is && way_is_slow(&w->all[to]);
        }
        if (known) {
            const bool one = slow > UNEVEN * beside || beside == 0;
            tell(w, &w->all[from], one);
            nics++;
            uneven += one;
        }
    }
    bool holds = 2 * uneven >= nics;
    for (uint32_t host = 0; host < w->hosts; host++) {
        const struct way_word *own = &w->words[host];
        holds = holds && uneven > own->slow && 3 * (uneven - own->slow) >= nics - own->nics;
        w->words[host] = (struct way_word){0};
    }
    return holds;
}

/* All slow ways of the trunk cross the other one, too. */
static bool covers(const struct ways *w, const struct way_trunk *other,
                   const struct way_trunk *trunk)
{
    for (uint32_t i = 0; i < w->count; i++) {
        if (way_is_slow_by(&w->all[i], trunk) && !way_is_slow_by(&w->all[i], other)) {
            return false;
        }
    }
    return true;
}

static void choose(struct ways *w)
{
    struct way_trunk all[WAYS_TRUNKS_MAX];
    const uint32_t count = w->trunk_count;
    memcpy(all, w->trunks, sizeof(all));
    w->trunk_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool other = false, sure = all[i].votes >= MARGIN;
        for (uint32_t o = 0; o < count; o++) {
            const bool same = o != i && covers(w, &all[o], &all[i]);
            other = other || (same && all[o].votes >= all[i].votes + MARGIN);
            sure = sure && (!same || all[i].votes >= all[o].votes + MARGIN);
        }
        if (!other) {
            all[i].sure = sure;
            w->trunks[w->trunk_count++] = all[i];
        }
    }
}

static void find_shares(struct ways *w)
{
    for (uint32_t from = 0, to; from < w->count; from = to) {
        double best = 0;
        for (to = from; to < w->count && same_nic(&w->all[from], &w->all[to]); to++) {
            best = w->all[to].rate > best ? w->all[to].rate : best;
        }
        for (uint32_t i = from; i < to; i++) {
            w->all[i].share = best > 0 ? w->all[i].rate / best : 0;
        }
    }
}

void ways_judge(struct ways *w)
{
    find_shares(w);
    w->trunk_count = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        w->rates[known] = w->all[i].rate;
        known += w->all[i].rate > 0;
    }
    sample_sort(w->rates, known);
    w->usual = known > 0 ? sample_median(w->rates, known) : 0;
    const uint32_t count = cut(w);
    for (uint32_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && by_link(&w->links[from], &w->links[to]) == 0; to++) {
        }
        judge_link(w, &w->links[from], to - from);
    }
    w->uneven = w->trunk_count > 0 && are_uneven(w);
    w->trunk_count = w->uneven ? 0 : w->trunk_count;
    choose(w);
}
