/* audit_outlier.c: finds slow hosts among many, and leaves unlucky ones out: audit_outlier HOSTS SEEDS [FLOOR].
 *
 * Simulated. A measurement is a host's own rate with noise: Student's t of 3 and of 4 degrees, and normal, with a robust
 * spread (1.4826 MAD) of 0.7, 1.5, 2.5 %. Three hosts are 10 % slower; in a second world with the same noise none is. Retests
 * draw again. A disturbance that slows all for a second (2 %) slows a host and its neighbours. Prints one line of JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bug.h"
#include "base/prng.h"
#include "core/audit/outlier.h"

enum { PLANTED = 3, KINDS = 3, SPREADS = 3 };
#define SLOW      0.9
#define MATTERS   0.07
#define FLOOR     0.003
#define TOGETHER  0.02
#define HARD_SEED UINT64_C(0x6f75746c)

static const double spreads[SPREADS] = {0.007, 0.015, 0.025};
static const uint32_t freedoms[KINDS] = {3, 4, 0}; /* 0: normal */
/* 75 % quantiles: dividing by them makes the spreads equal. */
static const double quarters[KINDS] = {0.764892, 0.740697, 0.674490};

struct world {
    uint32_t hosts, planted, kind;
    double spread;
    struct prng prng;
    double *values, *scratch;
    struct outlier_retest *retests;
    struct outlier_case *cases;
    uint32_t *who;
};

struct sums {
    uint64_t tests, wrong, planted, found, candidates, retests;
};

static double noise(struct world *w)
{
    const uint32_t freedom = freedoms[w->kind];
    double squares = 0;
    for (uint32_t i = 0; i < freedom; i++) {
        const double z = prng_normal(&w->prng);
        squares += z * z;
    }
    const double z = prng_normal(&w->prng), t = freedom > 0 ? z / sqrt(squares / freedom) : z;
    return w->spread / 1.4826 / quarters[w->kind] * t;
}

static double rate(struct world *w, uint32_t host)
{
    return (host < w->planted ? SLOW : 1) + noise(w);
}

/* Repeats until it is decided, each time together with others from the middle. */
static void retest(struct world *w, const struct outlier_cohort *c, struct outlier_retest *t,
                   uint32_t host, uint32_t candidates)
{
    *t = (struct outlier_retest){.count = 0};
    while (outlier_undecided(c, t, candidates)) {
        const double all = -TOGETHER * prng_uniform(&w->prng);
        double beside[OUTLIER_CONTROLS];
        for (int k = 0; k < OUTLIER_CONTROLS; k++) {
            beside[k] = 1 + noise(w) + all;
        }
        outlier_add(c, t, rate(w, host) + all, beside, OUTLIER_CONTROLS);
    }
}

static void play(struct world *w, struct sums *sums)
{
    const struct outlier_rule rule = {.practical = MATTERS, .floor = FLOOR, .low = true};
    struct outlier_cohort c;
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->hosts; i++) {
        w->values[i] = rate(w, i);
    }
    const bool known = outlier_cohort_init(&c, &rule, w->values, w->hosts, w->scratch);
    for (uint32_t i = 0; known && i < w->hosts; i++) {
        if (outlier_is_candidate(&c, w->values[i])) {
            w->who[count++] = i;
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        retest(w, &c, &w->retests[k], w->who[k], count);
        w->cases[k] = (struct outlier_case){.cohort = &c, .retest = &w->retests[k]};
        sums->retests += w->retests[k].count;
    }
    outlier_judge(w->cases, count);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t host = w->who[w->cases[k].retest - w->retests];
        sums->found += w->cases[k].worse && host < w->planted;
        sums->wrong += w->cases[k].worse && host >= w->planted;
    }
    sums->tests += w->hosts;
    sums->planted += w->planted;
    sums->candidates += count;
}

int main(int argc, char **argv)
{
    const uint32_t hosts = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000,
                   seeds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 50;
    struct world w = {.hosts = hosts,
                      .values = calloc(hosts, sizeof(double)),
                      .scratch = calloc(hosts, sizeof(double)),
                      .retests = calloc(hosts, sizeof(struct outlier_retest)),
                      .cases = calloc(hosts, sizeof(struct outlier_case)),
                      .who = calloc(hosts, sizeof(uint32_t))};
    struct sums by[SPREADS][KINDS] = {0}, all = {0};

    if (hosts < 100 || w.values == NULL || w.scratch == NULL || w.retests == NULL ||
        w.cases == NULL || w.who == NULL) {
        fputs("audit_outlier: HOSTS (100 or more) SEEDS\n", stderr);
        return 1;
    }
    for (uint32_t seed = 0; seed < seeds; seed++) {
        for (uint32_t s = 0; s < SPREADS; s++) {
            for (w.kind = 0; w.kind < KINDS; w.kind++) {
                w.spread = spreads[s];
                prng_init(&w.prng, hash_u64(HARD_SEED + seed, s * KINDS + w.kind));
                for (w.planted = 0; w.planted <= PLANTED; w.planted += PLANTED) {
                    play(&w, &by[s][w.kind]);
                }
            }
        }
    }
    printf("{\"found\":[");
    for (uint32_t s = 0; s < SPREADS; s++) {
        for (uint32_t k = 0; k < KINDS; k++) {
            const struct sums *is = &by[s][k];
            all.tests += is->tests;
            all.wrong += is->wrong;
            all.candidates += is->candidates;
            all.retests += is->retests;
            printf("%s%s%.2f%s",
                   k > 0   ? ","
                   : s > 0 ? ",["
                           : "[",
                   "", 100 * (double)is->found / (double)is->planted, k + 1 == KINDS ? "]" : "");
        }
    }
    printf("],\"wrong\":%llu,\"tests\":%llu,\"candidates\":%.1f,\"retests\":%.2f}\n",
           (unsigned long long)all.wrong, (unsigned long long)all.tests,
           (double)all.candidates / (2.0 * seeds * SPREADS * KINDS),
           (double)all.retests / (double)all.candidates);
    return 0;
}
