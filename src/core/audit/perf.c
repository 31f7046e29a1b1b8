/* perf.c: pairs, then rings of all, then the search. */
#include "core/audit/perf.h"

#include <errno.h>
#include <string.h>

#include "stats/sample.h"

enum { SEARCHED_LEAST = 4 /* of fewer nobody is known to be good */ };

static const char *const outcome_names[PERF_OUTCOME_COUNT] = {
    "not-run", "done", "silent", "failed", "refused", "busy", "preempted"};

const char *perf_outcome_name(enum perf_outcome outcome)
{
    return outcome < PERF_OUTCOME_COUNT ? outcome_names[outcome] : "not-run";
}

uint32_t perf_lanes(uint32_t row)
{
    return 1u << row % PERF_LANES_COUNT;
}

/* ---- memory ---- */

static size_t aligned(size_t size)
{
    return (size + 15) & ~(size_t)15;
}

size_t perf_size(uint32_t hosts)
{
    const size_t n = hosts;
    return aligned(n * PERF_STEPS_MAX * sizeof(struct perf_part)) +
           aligned(n * PERF_STEPS_MAX * sizeof(struct perf_result)) +
           3 * aligned(n * sizeof(uint32_t)) + aligned(n * sizeof(double)) +
           aligned(n * HOST_NIC_MAX * sizeof(double)) +
           aligned(n * HOST_NIC_MAX * sizeof(uint32_t)) +
           aligned(n * PERF_ROWS * sizeof(struct perf_result)) + aligned(search_size(hosts));
}

static void *claim(char **at, size_t size)
{
    void *place = *at;
    memset(place, 0, size);
    *at += aligned(size);
    return place;
}

/* ---- steps ---- */

static struct perf_part *part_of(const struct perf *p, uint32_t step, uint32_t host)
{
    return &p->parts[(size_t)step * p->count + host];
}

static struct perf_result *result_of(const struct perf *p, uint32_t step, uint32_t host)
{
    return &p->results[(size_t)step * p->count + host];
}

static uint32_t add_step(struct perf *p, const struct perf_step *step)
{
    const uint32_t number = p->step_count++;
    p->steps[number] = *step;
    for (uint32_t i = 0; i < p->count; i++) {
        *part_of(p, number, i) = (struct perf_part){PERF_NOBODY, 0};
        *result_of(p, number, i) = (struct perf_result){.outcome = PERF_NOT_RUN};
    }
    return number;
}

static void put(struct perf *p, uint32_t step, uint32_t host, uint32_t group, uint32_t rank)
{
    *part_of(p, step, host) = (struct perf_part){group, rank};
    result_of(p, step, host)->outcome = PERF_SILENT; /* until it tells */
}

struct perf_role perf_role_of(const struct perf *p, uint32_t step, uint32_t host)
{
    const struct perf_part *own = part_of(p, step, host);
    struct perf_role role = {.rank = own->rank};
    for (uint32_t i = 0; own->group != PERF_NOBODY && i < p->count; i++) {
        const struct perf_part *other = part_of(p, step, i);
        role.ranks += other->group == own->group;
        role.leader = other->group == own->group && other->rank == 0 ? i : role.leader;
    }
    return role;
}

/* Hosts that have the NIC, leaf by leaf, those of one leaf in the order of names. Returns how many. */
static uint32_t order_by_leaf(struct perf *p, uint32_t nic)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct perf_host *h = &p->hosts[i];
        uint32_t at = n;
        if (!h->there || nic >= h->nics) {
            continue;
        }
        for (; at > 0 && p->hosts[p->order[at - 1]].leaf[nic] > h->leaf[nic]; at--) {
            p->order[at] = p->order[at - 1];
        }
        p->order[at] = i;
        n++;
    }
    return n;
}

/* Who is left over makes the last pair three. */
static void add_pairs(struct perf *p, uint32_t nic, enum perf_kind kind)
{
    const uint32_t n = order_by_leaf(p, nic), pairs = n / 2;
    if (pairs == 0) {
        return;
    }
    const uint32_t step = add_step(
        p, &(struct perf_step){.kind = (uint8_t)kind, .lanes = PERF_PAIR_LANES, .nic = nic});
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t group = k == 2 * pairs           ? pairs - 1
                               : kind == PERF_PAIR_NEAR ? k / 2
                                                        : k % pairs;
        const uint32_t rank = k == 2 * pairs ? 2 : kind == PERF_PAIR_NEAR ? k % 2 : k / pairs;
        put(p, step, p->order[k], group, rank);
    }
}

static void plan_pairs(struct perf *p)
{
    p->plans = 1;
    for (uint32_t nic = 0; nic < HOST_NIC_MAX; nic++) {
        add_pairs(p, nic, PERF_PAIR_NEAR);
        add_pairs(p, nic, PERF_PAIR_FAR);
    }
}

int perf_init(struct perf *p, const struct perf_host *hosts, uint32_t count, bool wants_rings,
              void *memory)
{
    char *at = memory;
    uint32_t there = 0;
    *p = (struct perf){.hosts = hosts, .count = count, .wants_rings = wants_rings, .best = -1};
    p->parts = claim(&at, (size_t)count * PERF_STEPS_MAX * sizeof(*p->parts));
    p->results = claim(&at, (size_t)count * PERF_STEPS_MAX * sizeof(*p->results));
    p->order = claim(&at, count * sizeof(*p->order));
    p->ring[0] = claim(&at, count * sizeof(*p->ring[0]));
    p->ring[1] = claim(&at, count * sizeof(*p->ring[1]));
    p->named_rate = claim(&at, count * sizeof(*p->named_rate));
    p->pair = claim(&at, (size_t)count * HOST_NIC_MAX * sizeof(*p->pair));
    p->tried = claim(&at, (size_t)count * HOST_NIC_MAX * sizeof(*p->tried));
    p->rows = claim(&at, (size_t)count * PERF_ROWS * sizeof(*p->rows));
    p->search_memory = claim(&at, search_size(count));
    for (uint32_t i = 0; i < count; i++) {
        there += hosts[i].there && hosts[i].nics > 0;
    }
    for (uint32_t i = 0; i < count * HOST_NIC_MAX; i++) {
        p->pair[i] = -1;
    }
    plan_pairs(p);
    return there < 2 || p->step_count == 0 ? -ENODATA : 0;
}

void perf_take(struct perf *p, uint32_t step, uint32_t host, const struct perf_result *result)
{
    if (step < p->step_count && host < p->count && part_of(p, step, host)->group != PERF_NOBODY) {
        *result_of(p, step, host) = *result;
    }
}

enum perf_outcome perf_missing(const struct perf *p, uint32_t host)
{
    enum perf_outcome worst = PERF_NOT_RUN;
    for (uint32_t step = 0; step < p->step_count; step++) {
        const enum perf_outcome is = (enum perf_outcome)result_of(p, step, host)->outcome;
        worst = is > worst ? is : worst;
    }
    return worst;
}

/* ---- what pairs come to ---- */

static void take_pairs(struct perf *p)
{
    for (uint32_t step = 0; step < p->step_count; step++) {
        const uint32_t nic = p->steps[step].nic;
        for (uint32_t i = 0; i < p->count; i++) {
            const struct perf_result *r = result_of(p, step, i);
            double *best = &p->pair[(size_t)i * HOST_NIC_MAX + nic];
            if (r->outcome == PERF_DONE) {
                *best = r->rate > *best ? r->rate : *best;
                p->tried[(size_t)i * HOST_NIC_MAX + nic]++;
            }
        }
    }
}

/* The middle of all NICs of that place at their hosts; the sum of those that all hosts have. */
static void find_usual(struct perf *p, double *scratch)
{
    uint32_t common = HOST_NIC_MAX;
    for (uint32_t i = 0; i < p->count; i++) {
        common = p->hosts[i].there && p->hosts[i].nics < common ? p->hosts[i].nics : common;
    }
    p->expected = 0;
    for (uint32_t nic = 0; nic < HOST_NIC_MAX; nic++) {
        size_t n = 0;
        for (uint32_t i = 0; i < p->count; i++) {
            const double rate = p->pair[(size_t)i * HOST_NIC_MAX + nic];
            if (rate >= 0) {
                scratch[n++] = rate;
            }
        }
        sample_sort(scratch, n);
        p->usual[nic] = n > 0 ? sample_median(scratch, n) : -1;
        p->expected += nic < common && n > 0 ? p->usual[nic] : 0;
    }
}

/* ---- rings of all ---- */

static bool was_measured(const struct perf *p, uint32_t host)
{
    for (uint32_t nic = 0; nic < HOST_NIC_MAX; nic++) {
        if (p->pair[(size_t)host * HOST_NIC_MAX + nic] >= 0) {
            return true;
        }
    }
    return false;
}

/* Who was busy or told nothing is left out: it would end the test of all others. */
static bool is_fit(const struct perf *p, uint32_t host)
{
    const enum perf_outcome missing = perf_missing(p, host);
    return p->hosts[host].there && was_measured(p, host) &&
           (missing == PERF_DONE || missing == PERF_SILENT || missing == PERF_FAILED);
}

static void find_ring(struct perf *p)
{
    const uint32_t n = order_by_leaf(p, 0);
    p->ring_count = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (is_fit(p, p->order[k])) {
            p->ring[1][p->ring_count++] = p->order[k];
        }
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t k = 0; k < p->ring_count; k++) {
            if (p->ring[1][k] == i) {
                p->ring[0][count++] = i;
                break;
            }
        }
    }
}

static void plan_rings(struct perf *p)
{
    p->step_count = 0;
    for (uint32_t row = 0; row < PERF_ROWS; row++) {
        const bool by_leaf = row >= PERF_LANES_COUNT;
        const uint32_t step = add_step(p, &(struct perf_step){.kind = PERF_RING,
                                                              .lanes = (uint8_t)perf_lanes(row),
                                                              .row = (uint8_t)row,
                                                              .by_leaf = by_leaf,
                                                              .nic = PERF_NOBODY});
        for (uint32_t k = 0; k < p->ring_count; k++) {
            put(p, step, p->ring[by_leaf][k], 0, k);
        }
    }
}

/* Of the group that is this host's: done only if all of it are. */
static struct perf_result group_result(const struct perf *p, uint32_t step, uint32_t group)
{
    struct perf_result worst = {.outcome = PERF_NOT_RUN};
    for (uint32_t i = 0; i < p->count; i++) {
        const struct perf_result *r = result_of(p, step, i);
        if (part_of(p, step, i)->group == group && r->outcome > worst.outcome) {
            worst = *r;
        }
    }
    return worst;
}

static void take_rings(struct perf *p)
{
    for (uint32_t step = 0; step < p->step_count; step++) {
        const uint32_t row = p->steps[step].row;
        const struct perf_result all = group_result(p, step, 0);
        for (uint32_t i = 0; i < p->count; i++) {
            struct perf_result *to = &p->rows[(size_t)row * p->count + i];
            *to = *result_of(p, step, i);
            if (to->outcome == PERF_DONE) { /* one figure of all, each host's own words beside it */
                to->outcome = all.outcome;
                memcpy(to->words, all.words, sizeof(to->words));
            }
        }
        if (all.outcome == PERF_DONE && all.rate > p->best) {
            p->best = all.rate;
            p->best_row = row;
        }
    }
    p->slow = p->best >= 0 && p->best < PERF_SLOW * p->expected;
}

/* ---- who makes it slow ---- */

static void put_range(struct perf *p, uint32_t step, uint32_t group, struct search_range range,
                      uint32_t *rank)
{
    for (uint32_t k = 0; k < range.count; k++) {
        put(p, step, p->ring[1][p->search.order[range.first + k]], group, (*rank)++);
    }
}

/* False: the search is over. */
static bool plan_search(struct perf *p)
{
    p->test_count = search_round(&p->search, p->tests);
    p->step_count = 0;
    if (p->test_count == 0) {
        p->searched = true;
        return false;
    }
    const uint32_t step = add_step(p, &(struct perf_step){.kind = PERF_SEARCH,
                                                          .lanes = (uint8_t)perf_lanes(p->best_row),
                                                          .by_leaf = true,
                                                          .nic = PERF_NOBODY});
    for (uint32_t g = 0; g < p->test_count; g++) {
        const struct search_test *t = &p->tests[g];
        uint32_t rank = 0;
        put_range(p, step, g, t->one, &rank);
        put_range(p, step, g, t->other, &rank);
        if (t->partner != SEARCH_NONE) {
            put(p, step, p->ring[1][t->partner], g, rank);
        }
    }
    return true;
}

static void take_search(struct perf *p)
{
    bool slow[2 * SEARCH_SETS_MAX];
    for (uint32_t g = 0; g < p->test_count; g++) {
        const struct search_test *t = &p->tests[g];
        const struct perf_result r = group_result(p, 0, g);
        slow[g] = r.outcome == PERF_DONE && r.rate < PERF_SLOW * p->expected;
        p->unproven += r.outcome != PERF_DONE;
        if (slow[g] && t->one.count == 1) {
            p->named_rate[p->ring[1][p->search.order[t->one.first]]] = r.rate;
        }
    }
    search_results(&p->search, p->tests, slow);
}

bool perf_next(struct perf *p)
{
    if (p->over) {
        return false;
    }
    if (p->plans == 1) {
        take_pairs(p);
        find_usual(p, p->named_rate);
        find_ring(p);
        plan_rings(p);
        p->over = !p->wants_rings || p->ring_count < 2;
    } else if (p->plans == 2) {
        take_rings(p);
        p->over = !p->slow || p->ring_count < SEARCHED_LEAST;
        if (!p->over) {
            search_init(&p->search, p->ring_count, p->search_memory);
            p->over = !plan_search(p);
        }
    } else {
        take_search(p);
        p->over = !plan_search(p);
    }
    p->plans++;
    return !p->over;
}
