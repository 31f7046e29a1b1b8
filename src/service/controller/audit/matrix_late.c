/* matrix_late.c: blocks and cells that are late by themselves (core/audit/matrix_late.h), as facts of hosts. A late block is a
 * fact of the hosts at its first leaf. A late cell is a fact of both hosts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/audit/matrix.h"

/* One line of a host. */
struct audit_late {
    uint32_t row, peer; /* peer UINT32_MAX: no single other host */
    char subject[160], value[128];
};

static const char *leaf_name(const struct audit_matrix *x, uint32_t leaf)
{
    return leaf < x->leaves.count ? x->leaves.names[leaf] : "";
}

static int64_t host_at(const struct audit_matrix *x, uint32_t place)
{
    return x->hosts[place / x->plan.rails];
}

/* True for the same two leaves, or NICs. Compares names and ids, because numbers of leaves and places differ between matrices. */
static bool same(const struct audit_matrix *x, const struct matrix_late *l,
                 const struct audit_matrix *y, const struct matrix_late *k)
{
    if (l->block != k->block) {
        return false;
    }
    if (l->block) {
        return strcmp(leaf_name(x, l->from), leaf_name(y, k->from)) == 0 &&
               strcmp(leaf_name(x, l->to), leaf_name(y, k->to)) == 0;
    }
    return host_at(x, l->from) == host_at(y, k->from) && host_at(x, l->to) == host_at(y, k->to) &&
           x->places[l->from].id == y->places[k->from].id &&
           x->places[l->to].id == y->places[k->to].id;
}

/* Keeps only what the first matrix had, too. The second matrix confirms the first; new findings are chance. */
static void keep_confirmed(struct audit_matrix *x, const struct audit_matrix *first)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->late_count; i++) {
        bool before = false;
        for (uint32_t k = 0; k < first->late_count && !before; k++) {
            before = same(x, &x->late[i], first, &first->late[k]);
        }
        if (before) {
            x->late[kept++] = x->late[i];
        }
    }
    x->late_count = kept;
}

static int add(struct audit_matrix *x, const struct audit_late *l)
{
    struct audit_late *larger = realloc(x->late_lines, (x->late_line_count + 1) * sizeof(*larger));
    if (larger == NULL) {
        return -ENOMEM;
    }
    x->late_lines = larger;
    x->late_lines[x->late_line_count++] = *l;
    return 0;
}

static int add_cell(struct audit_matrix *x, const struct matrix_late *l, bool from)
{
    const uint32_t own = from ? l->from : l->to, other = from ? l->to : l->from;
    struct audit_late line = {.row = own / x->plan.rails, .peer = other / x->plan.rails};
    snprintf(line.subject, sizeof(line.subject), "%s %s %s", x->places[own].name,
             x->names[line.peer], x->places[other].name);
    snprintf(line.value, sizeof(line.value), "later %lld ns %s there, limit %lld", (long long)l->ns,
             from ? "to" : "from", (long long)x->m.cell_limit_ns);
    return add(x, &line);
}

static int add_block(struct audit_matrix *x, const struct matrix_late *l)
{
    struct audit_late line = {.peer = UINT32_MAX};
    uint32_t last = UINT32_MAX;
    int r = 0;
    snprintf(line.subject, sizeof(line.subject), "%s %s", leaf_name(x, l->from),
             leaf_name(x, l->to));
    snprintf(line.value, sizeof(line.value),
             "block %u of %u cells, later %lld ns, of blocks from there %u of %u, to there %u of "
             "%u",
             l->late, l->cells, (long long)l->ns, l->from_late, l->from_blocks, l->to_late,
             l->to_blocks);
    for (uint32_t i = 0; i < x->m.count && r == 0; i++) {
        line.row = i / x->plan.rails;
        if (x->m.nics[i].there && x->m.nics[i].leaf_now == l->from && line.row != last) {
            r = add(x, &line);
            last = line.row;
        }
    }
    return r;
}

int audit_matrix_find_late(struct audit_matrix *x, const struct audit_matrix *first)
{
    int r = 0;
    x->late_count = matrix_late(&x->m, x->late);
    if (first != NULL) {
        keep_confirmed(x, first);
    }
    for (uint32_t i = 0; i < x->late_count && r == 0; i++) {
        const struct matrix_late *l = &x->late[i];
        r = l->block ? add_block(x, l) : add_cell(x, l, true);
        r = r < 0 || l->block ? r : add_cell(x, l, false);
    }
    return r;
}

uint32_t audit_matrix_late_facts(const struct audit_matrix *x, uint32_t row)
{
    uint32_t count = 1;
    for (uint32_t k = 0; k < x->late_line_count; k++) {
        count += x->late_lines[k].row == row;
    }
    return count;
}

/* Without a delay the result is not known: this is no pass. */
void audit_matrix_add_late(const struct audit_matrix *x, uint32_t row, struct sheet *sheet)
{
    struct fact f = {.id = FACT_MATRIX_LATE,
                     .subject = "",
                     .value = "well",
                     .source = "every NIC with every NIC"};
    const uint32_t before = sheet->count;
    bool known = false, measured = false;
    for (uint32_t k = 0; k < x->late_line_count; k++) {
        const struct audit_late *l = &x->late_lines[k];
        if (l->row == row) {
            f.subject = l->subject;
            f.value = l->value;
            f.peer = l->peer != UINT32_MAX ? x->names[l->peer] : NULL;
            sheet->facts[sheet->count++] = f;
        }
    }
    for (uint32_t k = 0; k < x->plan.rails; k++) {
        const struct matrix_nic *n = &x->m.nics[row * x->plan.rails + k];
        known = known || n->delay_known;
        measured = measured || n->cells > n->unmeasured;
    }
    if (sheet->count == before) {
        f.state = known ? FACT_VALUE : FACT_TIMEOUT;
        f.value = known ? f.value : measured ? matrix_why_name(MATRIX_CLOCK) : x->none;
        sheet->facts[sheet->count++] = f;
    }
}
