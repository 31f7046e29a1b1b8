/* outlier.c: the screen, the chance of retests, and the limit on false verdicts. */
#include "core/audit/outlier.h"

#include <math.h>

#include "base/bug.h"
#include "stats/sample.h"

#define SPREAD_OF_MAD 1.4826
/* Spreads from the middle. A candidate costs a few seconds of one host's time; a member that is not a candidate is never
 * found. */
#define SCREEN 2.5
enum {
    TAILS_LEAST = 200 /* with fewer values the tails can't be seen: they are taken for heavy */
};
/* Of the chance that is allowed, the part of the order. Nine times the last of four, once or twice not: 4e-6, 1e-4, 1e-3. With a
 * fifth of it once is enough for a lone candidate, and the rest loses a quarter. */
#define ORDER_SHARE 0.2

/* Quantiles of Student's t: the ratio of the outer 1 % to the quarter shows the freedom. */
static const struct tails {
    uint32_t freedom;
    double quarter, outer; /* 75 %, 99 % */
} all_tails[] = {{30, 0.6828, 2.4573}, {12, 0.6955, 2.6810}, {8, 0.7064, 2.8965},
                 {6, 0.7176, 3.1427},  {5, 0.7267, 3.3649},  {4, 0.7407, 3.7469},
                 {3, 0.7649, 4.5407}};

/* P(T > t), t >= 0: the finite sums for a whole number of degrees of freedom (Abramowitz and Stegun 26.7.3, 26.7.4). */
static double student_tail(double t, uint32_t freedom)
{
    const double angle = atan(t / sqrt(freedom)), square = cos(angle) * cos(angle);
    double term = freedom % 2 == 0 ? 1 : cos(angle), sum = freedom == 1 ? 0 : term;

    for (uint32_t k = freedom % 2 == 0 ? 2 : 3; k < freedom; k += 2) {
        term *= square * (k - 1) / k;
        sum += term;
    }
    const double inside =
        freedom % 2 == 0 ? sin(angle) * sum : 2 / acos(-1.0) * (angle + sin(angle) * sum);
    return fmax(0.5 * (1 - inside), 1e-12); /* a smaller result of 1 - inside is rounding */
}

/* The probability of at least `least` of `count` events, each with probability p. */
static double binomial_tail(uint32_t count, uint32_t least, double p)
{
    double ways = 1, sum = 0;

    for (uint32_t k = 0; k <= count; k++) {
        sum += k >= least ? ways * pow(p, k) * pow(1 - p, count - k) : 0;
        ways = ways * (count - k) / (k + 1);
    }
    return fmin(sum, 1);
}

static double worse_by(const struct outlier_cohort *c, double value, double than)
{
    return c->rule.low ? than - value : value - than;
}

bool outlier_cohort_init(struct outlier_cohort *c, const struct outlier_rule *rule,
                         const double *values, uint32_t count, double *scratch)
{
    const struct tails *t = &all_tails[sizeof(all_tails) / sizeof(all_tails[0]) - 1];

    if (count < OUTLIER_COHORT_LEAST) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        scratch[i] = values[i];
    }
    sample_sort(scratch, count);
    *c = (struct outlier_cohort){
        .rule = *rule, .count = count, .middle = sample_median(scratch, count)};
    for (uint32_t i = 0; i < count; i++) {
        scratch[i] = fabs(values[i] - c->middle);
    }
    sample_sort(scratch, count);
    c->spread = fmax(SPREAD_OF_MAD * sample_median(scratch, count), rule->floor);
    /* Both sides together: the outer 2 % of distances are the outer 1 % of each side. */
    const double usual = c->spread / SPREAD_OF_MAD, outer = sample_quantile(scratch, count, 0.98);
    for (const struct tails *i = all_tails; i < t && count >= TAILS_LEAST && usual > 0; i++) {
        if (outer <= usual * i->outer / i->quarter) {
            t = i;
            break;
        }
    }
    c->freedom = t->freedom;
    c->scale = fmax(usual / t->quarter, count >= TAILS_LEAST ? outer / t->outer : 0);
    return true;
}

bool outlier_is_candidate(const struct outlier_cohort *c, double value)
{
    const double worse = worse_by(c, value, c->middle);

    return worse > SCREEN * c->spread && worse >= c->rule.practical / 2;
}

void outlier_add(const struct outlier_cohort *c, struct outlier_retest *t, double own,
                 double *beside, uint32_t count)
{
    ASSERT(count > 0 && t->count < OUTLIER_RETESTS_MOST);
    sample_sort(beside, count);
    /* The variance of a mean of two. For more values it is a median's: larger than a mean's by half of pi. */
    const double share = count <= 2 ? 1.0 / count : acos(-1.0) / 2 / count;
    t->width = fmax(t->width, sqrt(1 + share));
    sample_insert(t->worse, t->count++, worse_by(c, own, sample_median(beside, count)));
    t->last += worse_by(c, own, beside[c->rule.low ? 0 : count - 1]) > 0;
    t->beside = t->count == 1 || count < t->beside ? count : t->beside;
}

/* Of two in the middle the lower one: then more than half are at least as bad. */
double outlier_worse(const struct outlier_retest *t)
{
    return t->count > 0 ? t->worse[(t->count - 1) / 2] : 0;
}

/* It is like the others, and was the last of them so often. Looked at once, after all retests. */
static double chance_of_order(const struct outlier_retest *t)
{
    return t->count < OUTLIER_RETESTS_MOST
               ? 1
               : binomial_tail(t->count, t->last, 1.0 / (t->beside + 1));
}

double outlier_chance(const struct outlier_cohort *c, const struct outlier_retest *t)
{
    enum { LOOKS = OUTLIER_RETESTS_MOST - OUTLIER_RETESTS_LEAST + 1 };
    const double worse = outlier_worse(t);

    if (t->count < OUTLIER_RETESTS_LEAST || worse <= 0) {
        return 1;
    }
    const double one = c->scale > 0 ? student_tail(worse / (c->scale * t->width), c->freedom) : 0,
                 by_size = LOOKS * binomial_tail(t->count, t->count - (t->count - 1) / 2, one);
    return fmin(fmin(by_size / (1 - ORDER_SHARE), chance_of_order(t) / ORDER_SHARE), 1);
}

bool outlier_undecided(const struct outlier_cohort *c, const struct outlier_retest *t,
                       uint32_t candidates)
{
    if (t->count < OUTLIER_RETESTS_LEAST) {
        return true;
    }
    const double worse = outlier_worse(t);
    const bool alike = worse < c->rule.practical / 2,
               sure =
                   worse >= c->rule.practical &&
                   outlier_chance(c, t) <= OUTLIER_FALSE_SHARE / (candidates > 0 ? candidates : 1);
    return !alike && !sure && t->count < OUTLIER_RETESTS_MOST;
}

/* Sorts by chance, ascending. There are few candidates. */
static void sort_cases(struct outlier_case *cases, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const struct outlier_case is = cases[i];
        uint32_t at = i;
        for (; at > 0 && cases[at - 1].chance > is.chance; at--) {
            cases[at] = cases[at - 1];
        }
        cases[at] = is;
    }
}

uint32_t outlier_judge(struct outlier_case *cases, uint32_t count)
{
    uint32_t accepted = 0, worse = 0;

    for (uint32_t i = 0; i < count; i++) {
        cases[i].chance = outlier_chance(cases[i].cohort, cases[i].retest);
    }
    sort_cases(cases, count);
    for (uint32_t i = 0; i < count; i++) {
        accepted = cases[i].chance <= OUTLIER_FALSE_SHARE * (i + 1) / count ? i + 1 : accepted;
    }
    for (uint32_t i = 0; i < count; i++) {
        cases[i].worse =
            i < accepted && outlier_worse(cases[i].retest) >= cases[i].cohort->rule.practical;
        worse += cases[i].worse;
    }
    return worse;
}
