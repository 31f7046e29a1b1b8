/* perf_result.c: what hosts report of their tests, and what follows. If memory could not be measured, that doesn't explain why
 * other tests are missing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/audit/perf_internal.h"
#include "stats/sample.h"

#define WORK_NS 10000 /* unit of perf_result.work */

enum perf_outcome perf_missing(const struct perf *p, uint32_t host)
{
    enum perf_outcome worst = PERF_NOT_RUN;
    for (uint32_t step = 0; step < p->step_count; step++) {
        const enum perf_outcome is = (enum perf_outcome)perf_result_at(p, step, host)->outcome;
        const bool alone = p->steps[step].kind == PERF_MEMORY && is == PERF_FAILED;
        worst = is > worst && !alone ? is : worst;
    }
    return worst;
}

/* The host reported nothing of its last test, and others of that step did report: it died on the way, or can't be heard. */
static bool fell_silent(const struct perf *p, uint32_t host)
{
    uint32_t step = p->step_count;
    while (step > 0 && perf_result_at(p, step - 1, host)->outcome == PERF_NOT_RUN) {
        step--;
    }
    if (step == 0 || perf_result_at(p, step - 1, host)->outcome != PERF_SILENT) {
        return false;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        const uint8_t outcome = perf_result_at(p, step - 1, i)->outcome;
        if (outcome != PERF_NOT_RUN && outcome != PERF_SILENT) {
            return true;
        }
    }
    return false;
}

/* Such a host would end the tests of all others. */
void perf_find_gone(struct perf *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        const enum perf_outcome missing = perf_missing(p, i);
        p->gone[i] = p->gone[i] || missing == PERF_REFUSED || missing == PERF_BUSY ||
                     missing == PERF_PREEMPTED || fell_silent(p, i);
    }
}

void perf_leave(struct perf *p, uint32_t host)
{
    for (uint32_t step = 0; step < p->step_count; step++) {
        struct perf_result *r = perf_result_at(p, step, host);
        r->outcome = r->outcome == PERF_SILENT ? PERF_REFUSED : r->outcome;
    }
    p->gone[host] = 1;
}

struct perf_group perf_group_of(struct perf *p, uint32_t step, uint32_t group)
{
    struct perf_group g = {.outcome = PERF_NOT_RUN};
    double *rates = p->scratch, *busy = p->scratch + p->count;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct perf_result *r = perf_result_at(p, step, i);
        if (perf_part_of(p, step, i)->group == group) {
            busy[g.count] = r->busy;
            rates[g.count++] = r->rate;
            g.wrong += r->wrong > 0;
            g.outcome = r->outcome > g.outcome ? r->outcome : g.outcome;
        }
    }
    sample_sort(rates, g.count);
    sample_sort(busy, g.count);
    g.rate = g.outcome == PERF_DONE ? rates[g.count / 2] : -1;
    g.busy = g.count > 0 ? busy[(g.count - 1) / 2] : 0;
    return g;
}

/* ---- pairs ---- */

bool perf_is_measured(const struct perf *p, uint32_t host, uint32_t nic)
{
    return perf_nic_at(p, host, nic)->tried > 0;
}

bool perf_note_pair(struct perf *p, uint32_t step, uint32_t a, uint32_t b)
{
    const struct perf_result *of[2] = {perf_result_at(p, step, a), perf_result_at(p, step, b)};
    const uint32_t hosts[2] = {a, b};
    if (of[0]->outcome != PERF_DONE || of[1]->outcome != PERF_DONE) {
        return false;
    }
    for (int k = 0; k < 2; k++) {
        struct perf_nic *nic = perf_nic_at(p, hosts[k], p->steps[step].nic);
        if (nic->tried < PERF_PARTNERS) {
            nic->partners[nic->tried++] = hosts[1 - k];
            nic->wrong += of[0]->wrong > 0 || of[1]->wrong > 0;
        }
    }
    return true;
}

static void take_pair(struct perf *p, uint32_t step, uint32_t a, uint32_t b)
{
    const double rates[2] = {perf_result_at(p, step, a)->rate, perf_result_at(p, step, b)->rate};
    const double busy = fmin(perf_result_at(p, step, a)->busy, perf_result_at(p, step, b)->busy);
    const bool first = rates[0] > rates[1];
    if (!perf_note_pair(p, step, a, b)) {
        return;
    }
    for (int k = 0; k < 2; k++) {
        struct perf_nic *nic = perf_nic_at(p, k == 0 ? a : b, p->steps[step].nic);
        nic->busy = nic->tried == 1 || rates[!first] > nic->rate ? busy : nic->busy;
        nic->rate = fmax(nic->rate, rates[!first]);
        nic->sure = fmax(nic->sure, rates[first]);
    }
}

/* The median of all NICs at that place of their hosts, each by the reports of both ends of a test. None carries more than the
 * best of these, because that is one host's report alone. */
static void find_usual(struct perf *p, uint32_t nic)
{
    double *rates = p->scratch;
    size_t n = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct perf_nic *is = perf_nic_at(p, i, nic);
        if (is->tried > 0) {
            rates[n++] = is->sure;
        }
    }
    sample_sort(rates, n);
    p->usual[nic] = n > 0 ? sample_median(rates, n) : -1;
    for (uint32_t i = 0; i < p->count; i++) {
        struct perf_nic *is = perf_nic_at(p, i, nic);
        is->rate = n > 0 && is->rate > rates[n - 1] ? rates[n - 1] : is->rate;
    }
}

void perf_take_pairs(struct perf *p)
{
    for (uint32_t step = 0; step < p->step_count; step++) {
        for (uint32_t i = 0; i < p->count; i++) {
            const struct perf_part *part = perf_part_of(p, step, i);
            if (p->steps[step].kind == PERF_PAIR && part->ranks == 2 && part->rank == 1) {
                take_pair(p, step, part->leader, i);
            }
        }
    }
    for (uint32_t nic = 0; nic < HOST_NIC_MAX; nic++) {
        find_usual(p, nic);
    }
}

/* At least two of them are different hosts. */
static bool met_two(const struct perf_nic *nic)
{
    for (uint32_t k = 1; k < nic->tried; k++) {
        if (nic->partners[k] != nic->partners[0]) {
            return true;
        }
    }
    return false;
}

enum perf_truth perf_truth_of(const struct perf *p, uint32_t host)
{
    enum perf_truth worst = PERF_UNTRIED;
    for (uint32_t k = 0; k < HOST_NIC_MAX; k++) {
        const struct perf_nic *nic = perf_nic_at(p, host, k);
        const enum perf_truth is = nic->tried == 0           ? PERF_UNTRIED
                                   : nic->wrong < nic->tried ? PERF_RIGHT
                                   : met_two(nic)            ? PERF_WRONG
                                                             : PERF_UNSURE;
        worst = worst == PERF_WRONG || (is != PERF_WRONG && worst > is) ? worst : is;
    }
    return worst;
}

/* ---- rings ---- */

/* For the hosts that were in it. Other hosts keep their earlier result. */
static void take_row(struct perf *p, uint32_t step, const struct perf_group *all)
{
    const uint32_t row = p->steps[step].row;
    p->together[row] = (struct perf_together){all->outcome, all->count, all->rate, all->busy};
    for (uint32_t i = 0; i < p->count; i++) {
        struct perf_result *to = &p->rows[(size_t)row * p->count + i];
        if (perf_part_of(p, step, i)->group == PERF_NOBODY) {
            continue;
        }
        *to = *perf_result_at(p, step, i);
        to->late = 0;
        if (to->outcome == PERF_DONE && all->outcome != PERF_DONE) {
            to->outcome = PERF_FAILED;
            snprintf(to->words, sizeof(to->words), "a test beside it: %s",
                     perf_outcome_name((enum perf_outcome)all->outcome));
        } else if (to->outcome == PERF_DONE) {
            to->rate = all->rate; /* one rate for all */
        }
    }
    if (all->outcome == PERF_DONE && all->rate > p->best) {
        p->best = all->rate;
        p->best_row = row;
    }
}

/* The host whose work before a meeting was the longest, and longer than the median by more than chance. Of fewer than three hosts
 * none is late. */
static void find_late(struct perf *p, uint32_t row, uint32_t meeting)
{
    struct perf_result *rows = &p->rows[(size_t)row * p->count];
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        if (rows[i].outcome == PERF_DONE && meeting < rows[i].arrivals) {
            p->scratch[count++] = rows[i].work[meeting];
        }
    }
    sample_sort(p->scratch, count);
    if (count < 3 || (p->scratch[count - 1] - p->scratch[count / 2]) * WORK_NS <= PERF_LATE_NS) {
        return;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        rows[i].late += rows[i].outcome == PERF_DONE && meeting < rows[i].arrivals &&
                        rows[i].work[meeting] == p->scratch[count - 1];
    }
}

/* The test is slow, but would not be without the time that processors may have taken. */
static bool is_excused(const struct perf *p, double rate, double busy)
{
    return rate >= PERF_SLOW * p->expected * (1 - busy);
}

void perf_take_rings(struct perf *p)
{
    for (uint32_t step = 0; step < p->step_count; step++) {
        const struct perf_group all = perf_group_of(p, step, 0);
        take_row(p, step, &all);
        for (uint32_t k = 0; k < PERF_ARRIVALS; k++) {
            find_late(p, p->steps[step].row, k);
        }
    }
    p->slow = p->best >= 0 && p->best < PERF_SLOW * p->expected;
    p->excused = p->slow && is_excused(p, p->best, p->together[p->best_row].busy);
}

uint32_t perf_row_wrong(const struct perf *p, uint32_t row)
{
    uint32_t hosts = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct perf_result *r = &p->rows[(size_t)row * p->count + i];
        hosts += r->outcome == PERF_DONE && r->wrong > 0;
    }
    return hosts;
}

/* ---- the search ---- */

static bool is_of_one(const struct search_test *t)
{
    return t->one.count == 1 && t->other.count == 0;
}

/* For a host and its partner, if no good hosts run beside them: each may have waited for the other one, which had no
 * processor. */
static double busy_of(const struct perf *p, const struct search_test *t, double most)
{
    if (!is_of_one(t) || t->partner == SEARCH_NONE) {
        return most;
    }
    const uint32_t host = p->ring[1][p->search.order[t->one.first]],
                   partner = p->ring[1][t->partner];
    const double its = perf_result_at(p, 0, partner)->busy;
    return p->beside_count > 0 ? its : fmin(its + perf_result_at(p, 0, host)->busy, 1);
}

static uint8_t answer_of(struct perf *p, const struct search_test *t, const struct perf_group *is)
{
    if (is->outcome != PERF_DONE) {
        return SEARCH_UNKNOWN;
    }
    if (is->rate >= PERF_SLOW * p->expected) {
        return SEARCH_FAST;
    }
    const bool excused = is_excused(p, is->rate, busy_of(p, t, is->busy));
    p->excused += excused;
    return excused ? SEARCH_UNKNOWN : SEARCH_SLOW;
}

/* Half or more of the pairs of good hosts were slow. */
static bool is_spoiled(struct perf *p)
{
    uint32_t seen = 0, slow = 0;
    for (uint32_t k = 0; k < p->beside_count; k++) {
        const struct perf_group is = perf_group_of(p, 0, p->test_count + k);
        seen += is.outcome == PERF_DONE;
        slow += is.outcome == PERF_DONE && is.rate < PERF_SLOW * p->expected;
    }
    return slow > 0 && 2 * slow >= seen;
}

void perf_take_search(struct perf *p)
{
    uint8_t answers[2 * SEARCH_SETS_MAX];
    const bool spoiled = is_spoiled(p);
    for (uint32_t g = 0; g < p->test_count; g++) {
        const struct search_test *t = &p->tests[g];
        const struct perf_group is = perf_group_of(p, 0, g);
        answers[g] = answer_of(p, t, &is);
        if (spoiled && answers[g] == SEARCH_SLOW) {
            answers[g] = SEARCH_UNKNOWN;
            p->excused++;
        }
        if (answers[g] == SEARCH_SLOW && is_of_one(t)) {
            p->named_rate[p->ring[1][p->search.order[t->one.first]]] = is.rate;
        }
    }
    search_results(&p->search, p->tests, answers);
}
