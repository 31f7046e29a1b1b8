/* matrix.c: the cells of all NICs: they are taken in, and polished. matrix_sum.c adds up the packets that came. */
#include "core/audit/matrix.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/audit/matrix_internal.h"
#include "core/fleet/delay_code.h"

#define COUNT(byte) MATRIX_COUNT(byte)
#define WHY(byte)   ((enum matrix_why)((byte) >> 4))

enum {
    MATRIX_BLOCK = 16, /* columns at a time: their codes fill a line of the cache */
    POLISHES = 3,
    SAMPLE = 64, /* residuals of a row for the spread */
    LEAST_NS = 1000,
    SPREADS = 6,
    BOUNDS = 3,
    LEAF_LEAST = 3, /* so many hosts of a leaf must report that another one's NIC hangs there */
    DRIFT_LEAST = 3 /* so many cells */
};

/* ---- memory ---- */

static uint32_t places(const struct matrix_plan *p)
{
    return p->hosts * p->rails;
}

size_t matrix_size(const struct matrix_plan *plan)
{
    const size_t n = places(plan);
    return n * (sizeof(struct matrix_nic) + 2 * sizeof(int64_t)) +
           (MATRIX_BLOCK + SAMPLE) * n * sizeof(int32_t) + n * n * 4;
}

void matrix_init(struct matrix *m, const struct matrix_plan *plan, void *memory)
{
    const size_t n = places(plan);
    uint8_t *at = memory;
    *m = (struct matrix){.plan = *plan, .count = (uint32_t)n};
    matrix_plan_ready(&m->plan);
    m->nics = (struct matrix_nic *)(void *)at;
    at += n * sizeof(*m->nics);
    m->row = (int64_t *)(void *)at;
    m->column = m->row + n;
    at += 2 * n * sizeof(*m->row);
    m->scratch = (int32_t *)(void *)at;
    at += (MATRIX_BLOCK + SAMPLE) * n * sizeof(*m->scratch);
    m->delay = (int16_t *)(void *)at;
    m->sent = at + n * n * 2;
    m->heard = m->sent + n * n;
    memset(m->delay, 0, n * n * 2);
    memset(m->sent, MATRIX_SILENT << 4, n * n * 2);
    for (size_t i = 0; i < n; i++) {
        m->nics[i] = (struct matrix_nic){.host = (uint32_t)i / plan->rails,
                                         .rail = (uint32_t)i % plan->rails,
                                         .there = true,
                                         .why = MATRIX_SILENT,
                                         .leaf = MATRIX_LEAF_NONE,
                                         .steady_s = MATRIX_STEADY,
                                         .leaf_found = MATRIX_LEAF_NONE};
    }
}

bool matrix_two_hosts(const struct matrix *m, uint32_t a, uint32_t b)
{
    const struct matrix_nic *x = &m->nics[a], *y = &m->nics[b];
    return x->host != y->host && x->there && y->there &&
           (!m->plan.rails_only || x->rail == y->rail);
}

/* Keeps a host's byte only if it makes sense: a reason that exists, and no more packets than the plan has. */
static uint8_t sane(const struct matrix *m, uint8_t told)
{
    if (WHY(told) >= MATRIX_WHY_COUNT) {
        return MATRIX_SILENT << 4;
    }
    return COUNT(told) > m->plan.packets ? (uint8_t)((told & ~MATRIX_PACKETS_MAX) | m->plan.packets)
                                         : told;
}

int matrix_take(struct matrix *m, uint32_t nic, const uint8_t *sent, const uint8_t *heard,
                const int16_t *delay, uint32_t rounds, uint32_t bound_ns)
{
    if (nic >= m->count || rounds != matrix_rounds(&m->plan) || m->nics[nic].told) {
        return -EINVAL;
    }
    m->nics[nic].told = true;
    m->nics[nic].bound_ns = bound_ns;
    for (uint32_t k = 0; k < rounds; k++) {
        const uint32_t other = matrix_partner(&m->plan, k, nic);
        if (other != MATRIX_NONE && matrix_two_hosts(m, nic, other)) {
            const size_t out = (size_t)nic * m->count + other, in = (size_t)other * m->count + nic;
            m->sent[out] = sane(m, sent[k]);
            m->heard[in] = sane(m, heard[k]);
            m->delay[in] = delay[k] >= -DELAY_CODE_MAX && delay[k] <= DELAY_CODE_MAX ? delay[k] : 0;
        }
    }
    return 0;
}

/* The sender's reason comes before the receiver's. A NIC that told nothing has its host's reason. */
static enum matrix_why why_not(const struct matrix *m, uint32_t from, uint32_t to, size_t at)
{
    const enum matrix_why out = WHY(m->sent[at]), in = WHY(m->heard[at]);
    if (out == MATRIX_ALONE ||
        in == MATRIX_ALONE) { /* one of both was told to leave the other out */
        return (enum matrix_why)m->nics[out == MATRIX_ALONE ? to : from].why;
    }
    if (out != MATRIX_FINE) {
        return out == MATRIX_SILENT ? (enum matrix_why)m->nics[from].why : out;
    }
    if (in != MATRIX_FINE) {
        return in == MATRIX_SILENT ? (enum matrix_why)m->nics[to].why : in;
    }
    if (COUNT(m->sent[at]) == 0) {
        return MATRIX_PORT;
    }
    return COUNT(m->heard[at]) > 0 && m->delay[at] == DELAY_CODE_NONE ? MATRIX_CLOCK : MATRIX_FINE;
}

struct matrix_cell matrix_cell_of(const struct matrix *m, uint32_t from, uint32_t to)
{
    const size_t at = (size_t)from * m->count + to;
    if (!matrix_two_hosts(m, from, to)) {
        return (struct matrix_cell){.why = m->nics[from].there && m->nics[to].there &&
                                                   m->nics[from].host == m->nics[to].host
                                               ? MATRIX_SAME_HOST
                                               : MATRIX_ALONE};
    }
    const uint8_t sent = COUNT(m->sent[at]), heard = COUNT(m->heard[at]);
    return (struct matrix_cell){.sent = sent,
                                .heard = heard < sent ? heard : sent,
                                .marked = (m->sent[at] & MATRIX_MARK) != 0,
                                .kept = (m->heard[at] & MATRIX_MARK) != 0,
                                .why = (uint8_t)why_not(m, from, to, at),
                                .delay = m->delay[at]};
}

/* ---- medians ---- */

static void swap(int32_t *a, int32_t *b)
{
    const int32_t c = *a;
    *a = *b;
    *b = c;
}

/* The k-th smallest value. Reorders the values. */
static int32_t select_kth(int32_t *v, uint32_t count, uint32_t k)
{
    int64_t low = 0, high = (int64_t)count - 1;
    while (low < high) {
        const int32_t pivot = v[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot) {
                i++;
            }
            while (v[j] > pivot) {
                j--;
            }
            if (i <= j) {
                swap(&v[i++], &v[j--]);
            }
        }
        if ((int64_t)k <= j) {
            high = j;
        } else if ((int64_t)k >= i) {
            low = i;
        } else {
            break;
        }
    }
    return v[k];
}

static int32_t median(int32_t *values, uint32_t count)
{
    return count > 0 ? select_kth(values, count, (count - 1) / 2) : 0;
}

/* 1.4826 times the median distance from the median. For normal values that is the standard deviation. */
static int64_t spread(int32_t *values, uint32_t count)
{
    const int32_t middle = median(values, count);
    for (uint32_t i = 0; i < count; i++) {
        const int32_t apart = values[i] - middle;
        values[i] = apart < 0 ? -apart : apart;
    }
    return (int64_t)(1.4826 * median(values, count));
}

/* One value of each host: the median of its NICs' values, which follow one another. So a host with many NICs counts once. */
struct voices {
    int32_t *own, *hosts; /* of the present host; of those before it, and of all at the end */
    uint32_t own_count, count, host;
};

/* The second part of the scratch memory is the caller's. */
static struct voices voices_of(const struct matrix *m)
{
    return (struct voices){.own = m->scratch, .hosts = m->scratch + (size_t)2 * m->count};
}

static void voices_end(struct voices *v)
{
    if (v->own_count > 0) {
        v->hosts[v->count++] = median(v->own, v->own_count);
        v->own_count = 0;
    }
}

static void voices_add(struct voices *v, uint32_t host, int32_t value)
{
    if (v->host != host) {
        voices_end(v);
        v->host = host;
    }
    v->own[v->own_count++] = value;
}

static int32_t clip(int64_t ns)
{
    return ns > INT32_MAX / 2      ? INT32_MAX / 2
           : ns < -(INT32_MAX / 2) ? -(INT32_MAX / 2)
                                   : (int32_t)ns;
}

/* ---- leaves ---- */

bool matrix_is_near(const struct matrix *m, uint32_t a, uint32_t b)
{
    const uint16_t leaf = m->nics[a].leaf_now;
    return leaf != MATRIX_LEAF_NONE && leaf == m->nics[b].leaf_now;
}

/* False: not known. matrix_take leaves out the codes of pairs of one host. */
static bool delay_at(const struct matrix *m, uint32_t from, uint32_t to, int64_t *ret_ns)
{
    const int16_t code = m->delay[(size_t)from * m->count + to];
    *ret_ns = delay_decode(code);
    return code != DELAY_CODE_NONE;
}

/* The median of all pairs of that kind, from codes: codes ascend with delays. */
static int64_t median_of_kind(const struct matrix *m, bool near)
{
    static const int middle = DELAY_CODE_MAX;
    uint32_t counts[2 * DELAY_CODE_MAX + 1];
    uint64_t all = 0, sum = 0;
    memset(counts, 0, sizeof(counts));
    for (uint32_t i = 0; i < m->count; i++) {
        for (uint32_t j = 0; j < m->count; j++) {
            const int16_t code = m->delay[(size_t)i * m->count + j];
            if (code != DELAY_CODE_NONE && matrix_is_near(m, i, j) == near) {
                counts[middle + code]++;
                all++;
            }
        }
    }
    for (int code = -middle; all > 0 && code <= middle; code++) {
        sum += counts[middle + code];
        if (2 * sum >= all) {
            return delay_decode(code);
        }
    }
    return INT64_MIN;
}

/* The NICs of one leaf. */
struct members {
    const int32_t *nics;
    uint32_t count;
};

static struct members members_at(const struct matrix *m, const int32_t *by_leaf, uint32_t count,
                                 uint32_t first)
{
    struct members all = {by_leaf + first, 1};
    while (first + all.count < count &&
           m->nics[all.nics[all.count]].leaf == m->nics[all.nics[0]].leaf) {
        all.count++;
    }
    return all;
}

static bool is_before(const struct matrix *m, int32_t a, int32_t b)
{
    const uint16_t x = m->nics[a].leaf, y = m->nics[b].leaf;
    return x != y ? x < y : a < b;
}

static void sift(const struct matrix *m, int32_t *heap, uint32_t at, uint32_t count)
{
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(m, heap[child], heap[child + 1])) {
            child++;
        }
        if (!is_before(m, heap[at], heap[child])) {
            return;
        }
        swap(&heap[at], &heap[child]);
    }
}

/* NICs with a declared leaf, ordered by leaf and then by number: so a leaf's members are found without a search. Returns how
 * many. */
static uint32_t sort_by_leaf(const struct matrix *m, int32_t *ret_nics)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->nics[i].leaf != MATRIX_LEAF_NONE) {
            ret_nics[count++] = (int32_t)i;
        }
    }
    for (uint32_t i = count / 2; i-- > 0;) {
        sift(m, ret_nics, i, count);
    }
    for (uint32_t left = count; left > 1;) {
        swap(&ret_nics[0], &ret_nics[--left]);
        sift(m, ret_nics, 0, left);
    }
    return count;
}

/* The median of both directions between a NIC and the declared NICs of a leaf. The error of a clock cancels in it. */
static bool to_leaf(struct matrix *m, uint32_t nic, const struct members *leaf, int64_t *ret_ns)
{
    struct voices v = voices_of(m);
    for (uint32_t i = 0; i < leaf->count; i++) {
        const uint32_t j = (uint32_t)leaf->nics[i];
        int64_t out, in;
        if (delay_at(m, nic, j, &out) && delay_at(m, j, nic, &in)) {
            voices_add(&v, m->nics[j].host, clip((out + in) / 2));
        }
    }
    voices_end(&v);
    *ret_ns = median(v.hosts, v.count);
    return v.count >= LEAF_LEAST;
}

static void find_leaf(struct matrix *m, uint32_t nic, const int32_t *by_leaf, uint32_t count)
{
    int64_t least = INT64_MAX, second = INT64_MAX, own = INT64_MAX;
    uint16_t nearest = MATRIX_LEAF_NONE;
    struct members members;
    for (uint32_t i = 0; i < count; i += members.count) {
        const uint16_t leaf = m->nics[by_leaf[i]].leaf;
        int64_t ns;
        members = members_at(m, by_leaf, count, i);
        if (!to_leaf(m, nic, &members, &ns)) {
            continue;
        }
        own = leaf == m->nics[nic].leaf ? ns : own;
        if (ns < least) {
            second = least;
            least = ns;
            nearest = leaf;
        } else if (ns < second) {
            second = ns;
        }
    }
    const int64_t gap = m->far_ns - m->near_ns;
    if (own != INT64_MAX && second != INT64_MAX && second - least > gap / 2) {
        m->nics[nic].leaf_found = nearest;
    }
}

static void find_leaves(struct matrix *m)
{
    int32_t *by_leaf = m->scratch + (size_t)m->count; /* medians use the memory before this */
    const uint32_t known = sort_by_leaf(m, by_leaf);
    for (uint32_t i = 0; i < m->count; i++) {
        m->nics[i].leaf_now = m->nics[i].leaf;
    }
    m->near_ns = median_of_kind(m, true);
    m->far_ns = median_of_kind(m, false);
    m->leaves_told = known > 0 && m->nics[by_leaf[0]].leaf != m->nics[by_leaf[known - 1]].leaf &&
                     m->near_ns != INT64_MIN && m->far_ns != INT64_MIN &&
                     m->far_ns - m->near_ns > m->near_ns / 8;
    for (uint32_t i = 0; m->leaves_told && i < m->count; i++) {
        if (m->nics[i].leaf != MATRIX_LEAF_NONE) {
            find_leaf(m, i, by_leaf, known);
        }
    }
    for (uint32_t i = 0; i < m->count; i++) {
        const uint16_t found = m->nics[i].leaf_found;
        m->nics[i].leaf_now = found != MATRIX_LEAF_NONE ? found : m->nics[i].leaf;
    }
    if (m->leaves_told) { /* some NICs hang elsewhere: compute the constants again */
        m->near_ns = median_of_kind(m, true);
        m->far_ns = median_of_kind(m, false);
    }
}

/* ---- polish ---- */

static int64_t constant(const struct matrix *m, uint32_t from, uint32_t to)
{
    const int64_t ns = matrix_is_near(m, from, to) ? m->near_ns : m->far_ns;
    return ns == INT64_MIN ? 0 : ns;
}

static void polish_rows(struct matrix *m)
{
    for (uint32_t i = 0; i < m->count; i++) {
        uint32_t count = 0;
        int64_t ns;
        for (uint32_t j = 0; j < m->count; j++) {
            if (delay_at(m, i, j, &ns)) {
                m->scratch[count++] = clip(ns - constant(m, i, j) - m->column[j]);
            }
        }
        m->row[i] = median(m->scratch, count);
    }
}

static void polish_columns(struct matrix *m)
{
    for (uint32_t first = 0; first < m->count; first += MATRIX_BLOCK) {
        const uint32_t width =
            m->count - first < MATRIX_BLOCK ? m->count - first : (uint32_t)MATRIX_BLOCK;
        uint32_t count[MATRIX_BLOCK] = {0};
        for (uint32_t i = 0; i < m->count; i++) {
            for (uint32_t k = 0; k < width; k++) {
                int64_t ns;
                if (delay_at(m, i, first + k, &ns)) {
                    m->scratch[(size_t)k * m->count + count[k]++] =
                        clip(ns - constant(m, i, first + k) - m->row[i]);
                }
            }
        }
        for (uint32_t k = 0; k < width; k++) {
            m->column[first + k] = median(m->scratch + (size_t)k * m->count, count[k]);
        }
    }
}

/* Moves what all rows have in common into the constants. Returns the spread. */
static int64_t centre(struct matrix *m, int64_t *effects)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        if (m->nics[i].delay_known) {
            m->scratch[count++] = clip(effects[i]);
        }
    }
    const int64_t middle = median(m->scratch, count);
    for (uint32_t i = 0; i < m->count; i++) {
        effects[i] -= m->nics[i].delay_known ? middle : effects[i];
    }
    return spread(m->scratch, count);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool matrix_residual(const struct matrix *m, uint32_t from, uint32_t to, int64_t *ret_ns)
{
    int64_t ns;
    if (!delay_at(m, from, to, &ns)) {
        return false;
    }
    *ret_ns = ns - constant(m, from, to) - m->row[from] - m->column[to];
    return true;
}

bool matrix_is_late(const struct matrix *m, uint32_t to, int64_t residual_ns)
{
    return residual_ns > m->cell_limit_ns && residual_ns > BOUNDS * (int64_t)m->nics[to].bound_ns;
}

size_t matrix_scratch_size(const struct matrix *m)
{
    return (size_t)(MATRIX_BLOCK + SAMPLE) * m->count * sizeof(*m->scratch);
}

/* Finds the cells that row and column don't explain. */
static void find_late_cells(struct matrix *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        const uint32_t step = m->count > SAMPLE ? m->count / SAMPLE : 1;
        for (uint32_t j = i % step, taken = 0; j < m->count && taken < SAMPLE; j += step) {
            int64_t left;
            if (matrix_residual(m, i, j, &left)) {
                m->scratch[count++] = clip(left);
                taken++;
            }
        }
    }
    m->cell_limit_ns = larger(LEAST_NS, SPREADS * spread(m->scratch, count));
    for (uint32_t i = 0; i < m->count; i++) {
        for (uint32_t j = 0; j < m->count; j++) {
            int64_t left;
            if (matrix_residual(m, i, j, &left)) {
                const bool late = matrix_is_late(m, j, left);
                m->nics[i].late_cells += late;
                m->nics[j].late_cells += late;
            }
        }
    }
}

/* For each NIC the median, over the other hosts, of the cells that it sends (out) or gets. All cells that one NIC gets are its
 * own host's report. So if a NIC is later than these, its own host alone reports it. */
static void find_plain(struct matrix *m, bool out, int32_t *ret_plain)
{
    for (uint32_t i = 0; i < m->count; i++) {
        struct voices v = voices_of(m);
        for (uint32_t j = 0; j < m->count; j++) {
            const uint32_t from = out ? i : j, to = out ? j : i;
            int64_t ns;
            if (delay_at(m, from, to, &ns)) {
                voices_add(&v, m->nics[j].host, clip(ns - constant(m, from, to)));
            }
        }
        voices_end(&v);
        ret_plain[i] = median(v.hosts, v.count);
    }
}

/* A NIC's lateness by the other hosts' reports, without the host to which it is latest. */
static int64_t late_by_two(struct matrix *m, uint32_t nic, bool out, const int32_t *plain,
                           uint32_t *ret_hosts)
{
    struct voices v = voices_of(m);
    for (uint32_t j = 0; j < m->count; j++) {
        const uint32_t from = out ? nic : j, to = out ? j : nic;
        int64_t ns;
        if (delay_at(m, from, to, &ns)) {
            voices_add(&v, m->nics[j].host, clip(ns - constant(m, from, to) - plain[j]));
        }
    }
    voices_end(&v);
    *ret_hosts = v.count;
    if (v.count > 1) {
        (void)select_kth(v.hosts, v.count, v.count - 1); /* the latest value is now the last one */
    }
    return median(v.hosts, v.count > 1 ? v.count - 1 : v.count);
}

/* The report of one other host makes no NIC late. */
static void doubt_late(struct matrix *m, bool out)
{
    int32_t *plain = m->scratch + (size_t)4 * m->count; /* voices use the memory before this */
    bool known = false;
    for (uint32_t i = 0; i < m->count; i++) {
        struct matrix_nic *n = &m->nics[i];
        int64_t *late = out ? &n->out_ns : &n->in_ns;
        if (*late <= m->limit_ns) {
            continue;
        }
        if (!known) {
            find_plain(m, !out, plain);
            known = true;
        }
        uint32_t hosts;
        const int64_t surely = late_by_two(m, i, out, plain, &hosts);
        n->late_by_one = n->late_by_one || hosts == 1;
        *late = surely < *late ? surely : *late;
    }
}

static void polish(struct matrix *m)
{

    for (uint32_t i = 0; i < m->count; i++) {
        m->row[i] = m->column[i] = 0;
    }
    for (int k = 0; k < POLISHES; k++) {
        polish_rows(m);
        polish_columns(m);
    }
    const int64_t rows = centre(m, m->row), columns = centre(m, m->column);
    m->limit_ns = larger(LEAST_NS, SPREADS * larger(rows, columns));
    for (uint32_t i = 0; i < m->count; i++) {
        m->nics[i].out_ns = m->row[i];
        m->nics[i].in_ns = m->column[i];
    }
    doubt_late(m, true);
    doubt_late(m, false);
    find_late_cells(m);
}

/* ---- all of it ---- */

/* The median change of all cells of a row (out) or column; false: too few cells are in both. */
static bool change_of(struct matrix *m, const struct matrix *before, uint32_t nic, bool out,
                      int64_t *ret_ns)
{
    uint32_t count = 0;
    for (uint32_t j = 0; j < m->count; j++) {
        int64_t now, then;
        if (delay_at(m, out ? nic : j, out ? j : nic, &now) &&
            delay_at(before, out ? nic : j, out ? j : nic, &then)) {
            m->scratch[count++] = clip(now - then);
        }
    }
    *ret_ns = median(m->scratch, count);
    return count >= DRIFT_LEAST;
}

void matrix_judge(struct matrix *m, const struct matrix *before)
{
    find_leaves(m);
    matrix_add_up(m);
    polish(m);
    for (uint32_t i = 0; before != NULL && before->count == m->count && i < m->count; i++) {
        struct matrix_nic *n = &m->nics[i];
        n->drift_known = change_of(m, before, i, true, &n->drift_out_ns) &&
                         change_of(m, before, i, false, &n->drift_in_ns);
    }
}

/* ---- text ---- */

static enum matrix_why most_missing(const struct matrix_nic *n)
{
    enum matrix_why most = MATRIX_SILENT;
    for (int why = 0; why < MATRIX_WHY_COUNT; why++) {
        most = n->why_not[why] > n->why_not[most] ? (enum matrix_why)why : most;
    }
    return most;
}

const char *matrix_words(const struct matrix *m, uint32_t nic, const char *const *leaf_names,
                         char ret[MATRIX_WORDS_SIZE])
{
    const struct matrix_nic *n = &m->nics[nic];
    int used =
        snprintf(ret, MATRIX_WORDS_SIZE,
                 "cells %u, unmeasured %u, dead_out %u, dead_in %u, partners %u, sent_out %u, "
                 "lost_out %u, sent_in %u, lost_in %u, late_cells %u",
                 n->cells, n->unmeasured, n->own_dead_out, n->own_dead_in, n->partners, n->sent_out,
                 n->own_lost_out, n->sent_in, n->own_lost_in, n->late_cells);
    if (n->alone > 0) {
        used +=
            snprintf(ret + used, (size_t)(MATRIX_WORDS_SIZE - used), ", dead_alone %u", n->alone);
    }
    if (n->shared_lost > 0) {
        used +=
            snprintf(ret + used, (size_t)(MATRIX_WORDS_SIZE - used), ", shared %u", n->shared_lost);
    }
    if (n->pair_lost > 0) {
        used +=
            snprintf(ret + used, (size_t)(MATRIX_WORDS_SIZE - used), ", alone %u", n->pair_lost);
    }
    if (n->marked > 0) {
        used += snprintf(ret + used, (size_t)(MATRIX_WORDS_SIZE - used),
                         ", marked %u, remarked_out %u, remarked_in %u, elsewhere %u, within %u, "
                         "across %u",
                         n->marks_out.came + n->marks_in.came, n->marks_out.own, n->marks_in.own,
                         n->changed_elsewhere, n->changed_within, n->changed_across);
    } else if (m->plan.dscp > 0 && n->rail_out + n->rail_in > 0) {
        used += snprintf(ret + used, (size_t)(MATRIX_WORDS_SIZE - used), ", unmarked %u",
                         n->rail_out + n->rail_in);
    }
    if (m->parted) {
        used += snprintf(ret + used, (size_t)(MATRIX_WORDS_SIZE - used), ", parted");
    }
    if (n->unmeasured > 0) {
        used += snprintf(ret + used, (size_t)(MATRIX_WORDS_SIZE - used), ", why %s",
                         matrix_why_name(most_missing(n)));
    }
    if (n->delay_known) {
        used += snprintf(ret + used, (size_t)(MATRIX_WORDS_SIZE - used),
                         ", out %lld, in %lld, limit %lld, bound %u", (long long)n->out_ns,
                         (long long)n->in_ns, (long long)m->limit_ns, n->bound_ns);
        if (n->late_by_one) {
            used += snprintf(ret + used, (size_t)(MATRIX_WORDS_SIZE - used), ", late_by_one");
        }
        if (n->steady_s != MATRIX_STEADY) {
            used += snprintf(ret + used, (size_t)(MATRIX_WORDS_SIZE - used), ", steady %u",
                             n->steady_s);
        }
    }
    if (n->leaf != MATRIX_LEAF_NONE && n->leaf_found != MATRIX_LEAF_NONE) {
        used +=
            snprintf(ret + used, (size_t)(MATRIX_WORDS_SIZE - used),
                     ", leaf %.60s, declared %.60s, near %lld, far %lld", leaf_names[n->leaf_found],
                     leaf_names[n->leaf], (long long)m->near_ns, (long long)m->far_ns);
    }
    if (n->drift_known) {
        snprintf(ret + used, (size_t)(MATRIX_WORDS_SIZE - used), ", drift_out %lld, drift_in %lld",
                 (long long)n->drift_out_ns, (long long)n->drift_in_ns);
    }
    return ret;
}
