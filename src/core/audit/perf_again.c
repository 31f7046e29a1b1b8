/* perf_again.c: pairs that are tested again. A cohort is the NICs at one place of hosts of one kind. A NIC that is further off
 * than most of its cohort meets others of the cohort, a new one each time. Beside them, in the same step, pairs from the cohort's
 * middle run. Only these tests are judged, over all candidates of the run. A NIC without a test that was done, or whose partners
 * all had wrong values, meets one more partner. So does a slow one that has no cohort. */
#include <math.h>
#include <string.h>

#include "core/audit/perf_internal.h"
#include "stats/sample.h"

enum { FIRST_PARTNERS = 3 /* a NIC that had so many without a retest gets no more */ };

static const struct perf_cohort *cohort_of(const struct perf *p, uint32_t host, uint32_t nic)
{
    const uint32_t kind = p->hosts[host].kind;
    return kind < PERF_KINDS_MAX && p->cohorts[kind][nic].known ? &p->cohorts[kind][nic] : NULL;
}

double perf_usual(const struct perf *p, uint32_t host, uint32_t nic)
{
    const struct perf_cohort *c = cohort_of(p, host, nic);
    return c != NULL ? c->best.middle : p->usual[nic];
}

uint32_t perf_cohort(const struct perf *p, uint32_t host, uint32_t nic)
{
    const struct perf_cohort *c = cohort_of(p, host, nic);
    return c != NULL ? c->best.count : 0;
}

bool perf_looks_bad(const struct perf *p, uint32_t host, uint32_t nic)
{
    const struct perf_nic *n = perf_nic_at(p, host, nic);
    const bool slow =
        n->verdict == PERF_NOT_COMPARED
            ? n->rate < (1 - p->practical) * perf_usual(p, host, nic)
            : n->verdict != PERF_ALIKE && n->verdict != PERF_UNTOLD && n->verdict != PERF_CLEARED;
    return slow || n->tried == 0 || (n->wrong > 0 && n->wrong == n->tried);
}

/* ---- the screen ---- */

static bool is_of(const struct perf *p, uint32_t host, uint32_t nic, uint32_t kind)
{
    return p->hosts[host].kind == kind && nic < p->hosts[host].nics;
}

static bool is_screened(const struct perf *p, uint32_t host, uint32_t nic)
{
    return perf_nic_at(p, host, nic)->verdict == PERF_SCREENED;
}

static double *half_of_scratch(const struct perf *p)
{
    return p->scratch + (size_t)PERF_SCRATCH / 2 * p->count;
}

/* The rates with the best of their partners, by the lower of both reports, into the scratch. */
static uint32_t take_best(struct perf *p, uint32_t kind, uint32_t nic)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct perf_nic *is = perf_nic_at(p, i, nic);
        if (is_of(p, i, nic, kind) && is->tried > 0) {
            p->scratch[n++] = is->sure;
        }
    }
    return n;
}

/* A slow NIC makes its partners look slow, too. Of a few NICs, half may look slow for that reason. A quarter of them are taken as
 * good. */
static bool is_doubted(const struct perf *p, uint32_t host, uint32_t nic)
{
    const struct perf_nic *n = perf_nic_at(p, host, nic);
    const uint32_t kind = p->hosts[host].kind;
    const double upper = kind < PERF_KINDS_MAX ? p->cohorts[kind][nic].upper : p->usual[nic];
    return n->rate < (1 - p->practical) * upper || n->tried == 0 ||
           (n->wrong > 0 && n->wrong == n->tried);
}

/* Retests are single tests; the best of several is steadier than one of them. Tests of doubted NICs are left out, because they
 * show faults. */
static void find_single(struct perf *p, uint32_t kind, uint32_t nic)
{
    struct perf_cohort *c = &p->cohorts[kind][nic];
    double *values = p->scratch;
    uint32_t n = 0;
    for (uint32_t step = 0; step < p->step_count; step++) {
        for (uint32_t i = 0;
             p->steps[step].kind == PERF_PAIR && p->steps[step].nic == nic && i < p->count; i++) {
            const struct perf_part *part = perf_part_at(p, step, i);
            const uint32_t other = part->ranks == 2 && part->rank == 1 ? part->leader : i;
            const struct perf_result *r = perf_result_at(p, step, i),
                                     *its = perf_result_at(p, step, other);
            if (other != i && is_of(p, i, nic, kind) && is_of(p, other, nic, kind) &&
                !is_doubted(p, i, nic) && !is_doubted(p, other, nic) && r->outcome == PERF_DONE &&
                its->outcome == PERF_DONE) {
                values[n++] = fmin(r->rate, its->rate);
            }
        }
    }
    const struct outlier_rule rule = {
        .practical = p->practical * c->upper, .floor = PERF_FLOOR * c->upper, .low = true};
    c->single = outlier_cohort_init(&c->one, &rule, values, n, half_of_scratch(p));
}

static void look_at(struct perf *p, uint32_t nic)
{
    for (uint32_t kind = 0; kind < PERF_KINDS_MAX; kind++) {
        const uint32_t n = take_best(p, kind, nic);
        sample_sort(p->scratch, n);
        p->cohorts[kind][nic].upper = n > 0 ? sample_quantile(p->scratch, n, 0.75) : 0;
        if (n > 0) {
            find_single(p, kind, nic);
        }
    }
}

void perf_look_at_pairs(struct perf *p)
{
    for (uint32_t nic = 0; nic < HOST_NIC_MAX; nic++) {
        look_at(p, nic);
    }
}

/* The plan was the repetition of tests that had failed. */
void perf_look_at_repeated(struct perf *p)
{
    for (uint32_t nic = 0; nic < HOST_NIC_MAX; nic++) {
        if ((p->missed & 1u << nic) != 0) {
            look_at(p, nic);
        }
    }
    p->missed = 0;
}

static void find_cohort(struct perf *p, uint32_t kind, uint32_t nic)
{
    struct perf_cohort *c = &p->cohorts[kind][nic];
    double *sorted = half_of_scratch(p);
    const uint32_t n = take_best(p, kind, nic);
    memcpy(sorted, p->scratch, n * sizeof(*sorted));
    sample_sort(sorted, n);
    const double middle = n > 0 ? sample_median(sorted, n) : 0;
    const struct outlier_rule rule = {
        .practical = p->practical * middle, .floor = PERF_FLOOR * middle, .low = true};
    c->known = middle > 0 && outlier_cohort_init(&c->best, &rule, p->scratch, n, sorted);
    if (!c->single) {
        c->one = c->best;
    }
    c->one.rule = c->best.rule;
}

/* Names the NICs that are further off than most, after each one that looked slow had one more partner. */
static void screen(struct perf *p)
{
    for (uint32_t kind = 0; kind < PERF_KINDS_MAX; kind++) {
        for (uint32_t nic = 0; nic < HOST_NIC_MAX; nic++) {
            find_cohort(p, kind, nic);
        }
    }
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t nic = 0; nic < p->hosts[i].nics; nic++) {
            struct perf_nic *is = perf_nic_at(p, i, nic);
            const struct perf_cohort *c = cohort_of(p, i, nic);
            if (c != NULL && is->tried > 0) {
                const bool candidate = outlier_is_candidate(&c->best, is->rate);
                is->verdict = candidate                                            ? PERF_SCREENED
                              : is->rate < c->best.middle - c->best.rule.practical ? PERF_UNTOLD
                                                                                   : PERF_ALIKE;
                p->candidates += candidate;
            }
        }
    }
}

/* ---- a plan ---- */

enum distance {
    ANY,
    NEAR,
    FAR
}; /* on one leaf, or not: the pairs beside a candidate have the same distance */

#define ANY_KIND UINT32_MAX

/* A step that is being planned. */
struct again {
    struct perf *p;
    uint32_t nic, kind, n; /* n: hosts in p->order */
    uint32_t step, groups; /* step: PERF_NOBODY: there is none yet */
    enum perf_kind of;
};

static bool is_busy(const struct again *a, uint32_t host)
{
    return a->step != PERF_NOBODY && perf_part_at(a->p, a->step, host)->group != PERF_NOBODY;
}

static bool is_free(const struct again *a, uint32_t host)
{
    return !a->p->gone[host] && !is_busy(a, host);
}

/* It may be a partner, or run beside a candidate. */
static bool is_good(const struct again *a, uint32_t host)
{
    return (a->kind == ANY_KIND || a->p->hosts[host].kind == a->kind) && is_free(a, host) &&
           !(a->of == PERF_PAIR ? is_doubted(a->p, host, a->nic)
                                : perf_looks_bad(a->p, host, a->nic));
}

static enum distance apart(const struct again *a, uint32_t one, uint32_t other)
{
    return a->p->hosts[one].leaf[a->nic] == a->p->hosts[other].leaf[a->nic] ? NEAR : FAR;
}

static bool is_retest_of(const struct again *a, uint32_t step)
{
    return a->p->steps[step].kind == PERF_RETEST && a->p->steps[step].nic == a->nic;
}

/* A test of these two was done. */
static bool has_met(const struct again *a, uint32_t host, uint32_t other)
{
    const struct perf_nic *nic = perf_nic_at(a->p, host, a->nic);
    for (uint32_t k = 0; k < nic->tried && k < PERF_PARTNERS; k++) {
        if (nic->partners[k] == other) {
            return true;
        }
    }
    return false;
}

/* How often a test of these two was planned, with this plan. */
static uint32_t times_asked(const struct again *a, uint32_t host, uint32_t other)
{
    const struct perf_nic *nic = perf_nic_at(a->p, host, a->nic);
    uint32_t times = 0;
    for (uint32_t k = 0; k < nic->asked_count; k++) {
        times += nic->asked[k] == other;
    }
    return times;
}

static void put_pair(struct again *a, uint32_t one, uint32_t other)
{
    if (a->step == PERF_NOBODY) {
        a->step = perf_add_pair_step(a->p, a->of, a->nic);
        a->groups = 0;
    }
    perf_put(a->p, a->step, one, a->groups, 0);
    perf_put(a->p, a->step, other, a->groups++, 1);
}

/* First by the fewest tests with it, then one of its leaf: a fault of the host shows there, too. */
static uint32_t find_partner(const struct again *a, uint32_t host, enum distance wanted)
{
    uint32_t best = PERF_NOBODY, at = 0, least = UINT32_MAX;
    while (a->p->order[at] != host) {
        at++;
    }
    for (uint32_t k = 1; k < a->n && least > 0; k++) {
        const uint32_t other = a->p->order[(at + k) % a->n];
        const enum distance is = apart(a, host, other);
        if (!is_good(a, other) || (wanted != ANY && wanted != is)) {
            continue;
        }
        const uint32_t rank = 2 * times_asked(a, host, other) + (is == FAR);
        best = rank < least ? other : best;
        least = rank < least ? rank : least;
    }
    return best;
}

/* A candidate's retests: those that were made, and those of this plan. */
static uint32_t count_retests(const struct again *a, uint32_t host)
{
    uint32_t count = perf_nic_at(a->p, host, a->nic)->retest.count;
    for (uint32_t step = 0; step < a->p->step_count; step++) {
        count += is_retest_of(a, step) && perf_part_at(a->p, step, host)->group != PERF_NOBODY;
    }
    return count;
}

static bool wants_retest(const struct again *a, uint32_t host)
{
    const struct perf_nic *nic = perf_nic_at(a->p, host, a->nic);
    return a->p->hosts[host].kind == a->kind && nic->verdict == PERF_SCREENED && is_free(a, host) &&
           outlier_undecided(&a->p->cohorts[a->kind][a->nic].one, &nic->retest, a->p->candidates) &&
           count_retests(a, host) < OUTLIER_RETESTS_MOST;
}

/* Of the candidates that have a partner, the one with the fewest retests. */
static uint32_t next_candidate(const struct again *a, enum distance wanted, uint32_t *ret_partner)
{
    uint32_t best = PERF_NOBODY, least = UINT32_MAX;
    for (uint32_t k = 0; k < a->n; k++) {
        const uint32_t host = a->p->order[k];
        const uint32_t count = wants_retest(a, host) ? count_retests(a, host) : UINT32_MAX;
        const uint32_t partner = count < least ? find_partner(a, host, wanted) : PERF_NOBODY;
        if (partner != PERF_NOBODY) {
            best = host;
            least = count;
            *ret_partner = partner;
        }
    }
    return best;
}

/* Two NICs that are nearest to the middle, and have the same distance as the candidate and its partner. */
static bool find_beside(const struct again *a, enum distance wanted, uint32_t ret[2])
{
    const double middle = a->p->cohorts[a->kind][a->nic].best.middle;
    double least = INFINITY;
    for (uint32_t k = 0; k < a->n; k++) {
        const uint32_t one = a->p->order[k], first = wanted == FAR ? a->n / 2 : 1;
        for (uint32_t m = 0; is_good(a, one) && m + 1 < a->n; m++) {
            const uint32_t other = a->p->order[(k + (first + m - 1) % (a->n - 1) + 1) % a->n];
            if (!is_good(a, other) || apart(a, one, other) != wanted) {
                continue;
            }
            const double off = fmax(fabs(perf_nic_at(a->p, one, a->nic)->rate - middle),
                                    fabs(perf_nic_at(a->p, other, a->nic)->rate - middle));
            if (off < least) {
                ret[0] = one;
                ret[1] = other;
                least = off;
            }
            /* the first one at that distance: with many hosts, trying all pairs takes too long */
            break;
        }
    }
    return least < INFINITY;
}

static uint32_t count_free(const struct again *a, bool (*is)(const struct again *, uint32_t))
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < a->n; k++) {
        count += is(a, a->p->order[k]);
    }
    return count;
}

/* Adds pairs beside the first candidate, as long as each other candidate still has a partner. */
static void put_beside(struct again *a, enum distance wanted, const uint32_t first[2])
{
    const uint32_t good = count_free(a, is_good), others = count_free(a, wants_retest);
    const uint32_t room = good > others ? (good - others) / 2 : 0;
    uint32_t pair[2];
    put_pair(a, first[0], first[1]);
    for (uint32_t k = 0; k < room && k + 1 < OUTLIER_CONTROLS; k++) {
        if (!find_beside(a, wanted, pair)) {
            return;
        }
        put_pair(a, pair[0], pair[1]);
    }
}

/* Retests of one kind. A candidate without a pair beside it is not tested. */
static void put_retests(struct again *a)
{
    const struct again before = *a;
    uint32_t partner = PERF_NOBODY, beside[2] = {0}, host = next_candidate(a, ANY, &partner);
    if (host == PERF_NOBODY) {
        return;
    }
    const enum distance wanted = apart(a, host, partner);
    put_pair(a, host, partner);
    if (!find_beside(a, wanted, beside) && !find_beside(a, wanted == NEAR ? FAR : NEAR, beside)) {
        perf_take_back(a->p, a->step, host);
        perf_take_back(a->p, a->step, partner);
        a->p->step_count -= before.step == PERF_NOBODY;
        *a = before;
        return;
    }
    put_beside(a, wanted, beside);
    while ((host = next_candidate(a, wanted, &partner)) != PERF_NOBODY) {
        put_pair(a, host, partner);
    }
}

static void add_retests(struct perf *p, uint32_t nic)
{
    struct again a = {.p = p, .nic = nic, .n = perf_order_by_leaf(p, nic), .of = PERF_RETEST};
    for (uint32_t k = 0; k < PERF_RETESTS; k++) {
        a.step = PERF_NOBODY;
        for (a.kind = 0; a.kind < PERF_KINDS_MAX; a.kind++) {
            if (p->cohorts[a.kind][nic].known) {
                put_retests(&a);
            }
        }
        if (a.step != PERF_NOBODY) {
            perf_end_step(p, a.step);
            a.n = perf_order_by_leaf(p, nic); /* it used the same memory */
        }
    }
}

/* Adds a test for each doubted NIC, with a NIC that is not doubted and that it has not met. */
static void add_doubted(struct perf *p, uint32_t nic)
{
    struct again a = {.p = p,
                      .nic = nic,
                      .n = perf_order_by_leaf(p, nic),
                      .of = PERF_PAIR,
                      .kind = ANY_KIND,
                      .step = PERF_NOBODY};
    for (uint32_t k = 0; k < a.n; k++) {
        const uint32_t host = p->order[k];
        if (is_free(&a, host) && is_doubted(p, host, nic) &&
            perf_nic_at(p, host, nic)->tried < FIRST_PARTNERS) {
            const uint32_t other = find_partner(&a, host, ANY);
            if (other != PERF_NOBODY && !has_met(&a, host, other)) {
                put_pair(&a, host, other);
            }
        }
    }
    if (a.step != PERF_NOBODY) {
        perf_end_step(p, a.step);
    }
}

/* Most of these NICs had no test that was done. Then none is known to be good, and no good partner can be chosen. */
static bool is_missed(const struct perf *p, uint32_t nic)
{
    uint32_t all = 0, missed = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const bool has = p->hosts[i].there && !p->gone[i] && nic < p->hosts[i].nics;
        all += has;
        missed += has && perf_nic_at(p, i, nic)->tried == 0;
    }
    return all >= 2 && 2 * missed > all;
}

static bool plan_missed(struct perf *p)
{
    for (uint32_t nic = 0; nic < HOST_NIC_MAX; nic++) {
        if (is_missed(p, nic)) {
            perf_add_pairs(p, nic, false);
            p->missed |= 1u << nic;
        }
    }
    p->repeated = true;
    return p->step_count > 0;
}

bool perf_plan_again(struct perf *p)
{
    p->stage = PERF_PAIRS_AGAIN;
    p->step_count = 0;
    if (!p->repeated && plan_missed(p)) {
        return true;
    }
    if (!p->doubted) {
        perf_add_memory_again(p);
    }
    for (uint32_t nic = 0; !p->doubted && nic < HOST_NIC_MAX; nic++) {
        add_doubted(p, nic);
    }
    p->doubted = true;
    if (p->step_count > 0) {
        return true;
    }
    if (!p->screened) {
        screen(p);
        p->screened = true;
    }
    for (uint32_t nic = 0; p->retest_plans < PERF_RETEST_PLANS && nic < HOST_NIC_MAX; nic++) {
        add_retests(p, nic);
    }
    p->retest_plans++;
    return p->step_count > 0;
}

/* ---- results ---- */

/* The rates that both ends of a pair report; false: the test was not done. */
static bool rates_of(const struct perf *p, uint32_t step, const uint32_t pair[2], double ret[2])
{
    bool done = true;
    for (int k = 0; k < 2; k++) {
        const struct perf_result *r = perf_result_at(p, step, pair[k]);
        done = done && r->outcome == PERF_DONE;
        ret[k] = r->rate;
    }
    return done;
}

/* The pair in which this host is the second; false: none. */
static bool pair_at(const struct perf *p, uint32_t step, uint32_t host, uint32_t ret[2])
{
    const struct perf_part *part = perf_part_at(p, step, host);
    ret[0] = part->leader;
    ret[1] = host;
    return part->ranks == 2 && part->rank == 1;
}

/* Only few pairs run here at once; all ran at once before. Each may now be much faster than it was. So the rate of the pairs
 * beside a candidate is taken as usual, and the candidate is judged by its share of it. Returns the factor; 0: they carried
 * nothing, and nobody is judged by them. */
static double scale_beside(const struct outlier_cohort *usual, double *beside, uint32_t count)
{
    sample_sort(beside, count);
    const double middle = count > 0 ? sample_median(beside, count) : 0,
                 scale = middle > 0 ? usual->middle / middle : 0;
    for (uint32_t k = 0; k < count; k++) {
        beside[k] *= scale;
    }
    return scale;
}

/* The differences between the pairs beside, scaled to one test's own noise. First tests run all at once, near pairs and far ones:
 * they vary for other reasons than retests do. */
static void note_noise(struct perf_cohort *c, const double *beside, uint32_t count)
{
    for (uint32_t k = 0; k < count && count >= 2 && c->noise_count < PERF_NOISE_MOST; k++) {
        double others = 0;
        for (uint32_t m = 0; m < count; m++) {
            others += m != k ? beside[m] / (count - 1) : 0;
        }
        c->noise[c->noise_count++] = (beside[k] - others) / sqrt(1 + 1.0 / (count - 1));
    }
}

/* A few differences estimate large noise badly, and nobody must fail by that: then the wider of both counts. */
static void take_noise(struct perf *p)
{
    for (uint32_t kind = 0; kind < PERF_KINDS_MAX; kind++) {
        for (uint32_t nic = 0; nic < HOST_NIC_MAX; nic++) {
            struct perf_cohort *c = &p->cohorts[kind][nic];
            struct outlier_cohort fresh;
            double scratch[PERF_NOISE_MOST];
            if (c->noise_count >= PERF_NOISE_LEAST &&
                outlier_cohort_init(&fresh, &c->best.rule, c->noise, c->noise_count, scratch) &&
                (fresh.scale <= PERF_NOISE_SMALL * c->best.rule.practical ||
                 fresh.scale > c->one.scale)) {
                c->one = fresh;
            }
        }
    }
}

static void take_step(struct perf *p, uint32_t step, uint32_t kind)
{
    const uint32_t nic = p->steps[step].nic;
    double beside[OUTLIER_CONTROLS], rates[2];
    uint32_t count = 0, pair[2];
    for (uint32_t i = 0; i < p->count && count < OUTLIER_CONTROLS; i++) {
        if (is_of(p, i, nic, kind) && pair_at(p, step, i, pair) && !is_screened(p, pair[0], nic) &&
            !is_screened(p, pair[1], nic) && rates_of(p, step, pair, rates)) {
            beside[count++] = fmin(rates[0], rates[1]);
        }
    }
    const double scale = scale_beside(&p->cohorts[kind][nic].best, beside, count);
    note_noise(&p->cohorts[kind][nic], beside, scale > 0 ? count : 0);
    for (uint32_t i = 0; i < p->count && scale > 0; i++) {
        if (!is_of(p, i, nic, kind) || !pair_at(p, step, i, pair) ||
            is_screened(p, pair[0], nic) == is_screened(p, pair[1], nic) ||
            !rates_of(p, step, pair, rates)) {
            continue;
        }
        struct perf_nic *is = perf_nic_at(p, pair[!is_screened(p, pair[0], nic)], nic);
        if (is->retest.count < OUTLIER_RETESTS_MOST) {
            outlier_add(&p->cohorts[kind][nic].one, &is->retest, scale * fmax(rates[0], rates[1]),
                        beside, count);
        }
    }
}

void perf_take_retests(struct perf *p)
{
    uint32_t pair[2];
    for (uint32_t step = 0; step < p->step_count; step++) {
        for (uint32_t kind = 0; p->steps[step].kind == PERF_RETEST && kind < PERF_KINDS_MAX;
             kind++) {
            if (p->cohorts[kind][p->steps[step].nic].known) {
                take_step(p, step, kind);
            }
        }
        for (uint32_t i = 0; p->steps[step].kind == PERF_RETEST && i < p->count; i++) {
            if (pair_at(p, step, i, pair)) {
                perf_note_pair(p, step, pair[0], pair[1]);
            }
        }
    }
    take_noise(p);
}

void perf_judge_retests(struct perf *p)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t nic = 0; nic < p->hosts[i].nics; nic++) {
            const struct perf_nic *is = perf_nic_at(p, i, nic);
            if (is->verdict == PERF_SCREENED && is->retest.count >= OUTLIER_RETESTS_LEAST) {
                p->cases[count++] = (struct outlier_case){.cohort = &cohort_of(p, i, nic)->one,
                                                          .retest = &is->retest};
            }
        }
    }
    (void)outlier_judge(p->cases, count);
    for (uint32_t k = 0; k < count; k++) {
        const struct outlier_case *c = &p->cases[k];
        const uint32_t at =
            (uint32_t)((size_t)((const char *)c->retest - (const char *)p->nic) / sizeof(*p->nic));
        struct perf_nic *is = &p->nic[at];
        const double worse = outlier_worse(c->retest);
        is->verdict = c->worse                             ? PERF_SLOWER
                      : worse >= c->cohort->rule.practical ? PERF_UNPROVEN
                                                           : PERF_CLEARED;
        is->rate = fmax(perf_usual(p, at / HOST_NIC_MAX, at % HOST_NIC_MAX) - fmax(worse, 0), 0);
    }
}
