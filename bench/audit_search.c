/* audit_search.c: the number of rounds of tests to find what makes a set of hosts slow: audit_search HOSTS SEEDS. Simulated: a
 * test's rate is that of its slowest part (a bad host: 80 %) with normal noise of 2.5 %, and is slow below 90 %. Prints one
 * line of JSON: the most rounds of all seeds and their mean, for one bad host, for three, for two that are slow only together,
 * and for one that is suspected before; and what was named wrongly. */
#include <stdio.h>
#include <stdlib.h>

#include "base/bug.h"
#include "base/prng.h"
#include "core/audit/search.h"

#define NOISE 0.025
#define SLOW  0.8
#define LIMIT 0.9

struct world {
    uint32_t bad[3], bad_count;
    bool together;  /* bad[0] and bad[1] are slow only together */
    bool suspected; /* bad[0] came last to meetings: the search begins with it */
};

struct sums {
    uint32_t most, wrong, missed;
    double rounds;
};

static enum search_answer ask(const struct world *w, const struct search *s,
                              const struct search_test *t, struct prng *g)
{
    const struct search_range ranges[] = {t->one, t->other};
    uint32_t met = 0;
    for (int r = 0; r < 2; r++) {
        for (uint32_t i = 0; i < ranges[r].count; i++) {
            for (uint32_t k = 0; k < w->bad_count; k++) {
                met += s->order[ranges[r].first + i] == w->bad[k];
            }
        }
    }
    for (uint32_t k = 0; k < w->bad_count; k++) {
        met += t->partner == w->bad[k];
    }
    const bool bad = w->together ? met == 2 : met > 0;
    return t->one.count + t->other.count + (t->partner != SEARCH_NONE) < 2 ? SEARCH_UNKNOWN
           : (bad ? SLOW : 1) * (1 + NOISE * prng_normal(g)) < LIMIT       ? SEARCH_SLOW
                                                                           : SEARCH_FAST;
}

static uint32_t named_right(const struct world *w, const struct search_named *n)
{
    for (uint32_t k = 0; k < w->bad_count; k++) {
        if (!w->together && n->with == SEARCH_NONE && n->member == w->bad[k]) {
            return 1;
        }
    }
    return w->together && ((n->member == w->bad[0] && n->with == w->bad[1]) ||
                           (n->member == w->bad[1] && n->with == w->bad[0]));
}

static void play(const struct world *w, uint32_t hosts, void *memory, struct prng *g,
                 struct sums *sums)
{
    struct search s;
    struct search_test tests[2 * SEARCH_SETS_MAX];
    uint8_t answers[2 * SEARCH_SETS_MAX];
    uint32_t n, right = 0;
    search_init(&s, hosts, memory);
    if (w->suspected) {
        search_know_good(&s, w->bad[0] == 0);
        search_begin_with(&s, w->bad, 1);
    }
    while ((n = search_round(&s, tests)) > 0) {
        for (uint32_t i = 0; i < n; i++) {
            answers[i] = (uint8_t)ask(w, &s, &tests[i], g);
        }
        search_results(&s, tests, answers);
    }
    for (uint32_t i = 0; i < s.named_count; i++) {
        const uint32_t good = named_right(w, &s.named[i]);
        right += good;
        sums->wrong += !good;
    }
    sums->missed += (w->together ? 1 : w->bad_count) - right;
    sums->most = s.rounds > sums->most ? s.rounds : sums->most;
    sums->rounds += s.rounds;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"host", "three", "pair", "suspect"};
    const uint32_t hosts = argc == 3 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0,
                   seeds = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    void *memory = hosts >= 8 && seeds > 0 ? malloc(search_size(hosts)) : NULL;
    uint32_t wrong = 0;
    if (memory == NULL) {
        fputs("usage: audit_search HOSTS SEEDS\n", stderr);
        return 2;
    }
    printf("{");
    for (size_t kind = 0; kind < ARRAY_COUNT(names); kind++) {
        struct sums sums = {0};
        for (uint32_t seed = 1; seed <= seeds; seed++) {
            struct prng g;
            static const uint32_t bad[] = {1, 3, 2, 1};
            struct world w = {
                .bad_count = bad[kind], .together = kind == 2, .suspected = kind == 3};
            prng_init(&g, seed);
            for (uint32_t k = 0; k < w.bad_count;
                 k++) { /* a third of the hosts each; no host is in two of them */
                w.bad[k] = k * (hosts / 3) + (uint32_t)prng_below(&g, hosts / 3);
            }
            play(&w, hosts, memory, &g, &sums);
        }
        printf("\"%s\":%u,\"%s_mean\":%.2f,\"%s_missed\":%u,", names[kind], sums.most, names[kind],
               sums.rounds / seeds, names[kind], sums.missed);
        wrong += sums.wrong;
    }
    printf("\"wrong\":%u,\"seeds\":%u}\n", wrong, seeds);
    free(memory);
    return 0;
}
