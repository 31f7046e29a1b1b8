/* matrix_late.c: see matrix_late.h. */
#include "core/audit/matrix_late.h"

#include <string.h>

#include "core/audit/matrix_internal.h"

enum {
    CELL_LIMITS =
        2 /* a cell by itself must exceed this multiple of the limit, which chance doesn't reach */
};

/* The counts of a block. */
struct block {
    uint32_t cells, late;
    bool sure; /* it is late without any one host, too */
};

/* Blocks by leaf. False: no leaf is known, or there are too many for the scratch memory. */
struct blocks {
    struct block *all;
    uint32_t leaves;
};

static bool blocks_of(struct matrix *m, struct blocks *ret)
{
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < m->count; i++) {
        const uint16_t leaf = m->nics[i].leaf_now;
        leaves = leaf != MATRIX_LEAF_NONE && leaf >= leaves ? (uint32_t)leaf + 1 : leaves;
    }
    *ret = (struct blocks){(struct block *)(void *)m->scratch, leaves};
    return leaves > 0 && (uint64_t)leaves * leaves * sizeof(struct block) <= matrix_scratch_size(m);
}

static struct block *block_of(const struct matrix *m, const struct blocks *b, uint32_t from,
                              uint32_t to)
{
    const uint16_t x = m->nics[from].leaf_now, y = m->nics[to].leaf_now;
    return x == MATRIX_LEAF_NONE || y == MATRIX_LEAF_NONE ? NULL
                                                          : &b->all[(size_t)x * b->leaves + y];
}

/* The cells of the block in which this NIC has a part, and the late ones of them. */
static void add_of_nic(const struct matrix *m, uint32_t from_leaf, uint32_t to_leaf, uint32_t nic,
                       uint32_t *cells, uint32_t *late)
{
    for (uint32_t other = 0; other < m->count; other++) {
        for (int way = 0; way < 2; way++) {
            const uint32_t from = way == 0 ? nic : other, to = way == 0 ? other : nic;
            int64_t left;
            if (m->nics[from].leaf_now == from_leaf && m->nics[to].leaf_now == to_leaf &&
                matrix_residual(m, from, to, &left)) {
                (*cells)++;
                *late += matrix_is_late(m, to, left);
            }
        }
    }
}

/* Is it late without any one host, too? The NICs of a host follow one another. */
static bool is_surely_late(const struct matrix *m, uint32_t from_leaf, uint32_t to_leaf,
                           const struct block *b)
{
    for (uint32_t i = 0; i < m->count;) {
        const uint32_t host = m->nics[i].host;
        uint32_t cells = 0, late = 0;
        for (; i < m->count && m->nics[i].host == host; i++) {
            if (m->nics[i].leaf_now == from_leaf || m->nics[i].leaf_now == to_leaf) {
                add_of_nic(m, from_leaf, to_leaf, i, &cells, &late);
            }
        }
        if (2 * (b->late - late) <= b->cells - cells) {
            return false;
        }
    }
    return true;
}

static void count_blocks(const struct matrix *m, const struct blocks *b)
{
    memset(b->all, 0, (size_t)b->leaves * b->leaves * sizeof(*b->all));
    for (uint32_t from = 0; from < m->count; from++) {
        for (uint32_t to = 0; to < m->count; to++) {
            struct block *one = block_of(m, b, from, to);
            int64_t left;
            if (one == NULL || !matrix_residual(m, from, to, &left)) {
                continue;
            }
            one->cells++;
            one->late += matrix_is_late(m, to, left);
        }
    }
    for (uint32_t k = 0; k < b->leaves * b->leaves; k++) {
        struct block *one = &b->all[k];
        one->sure =
            2 * one->late > one->cells && is_surely_late(m, k / b->leaves, k % b->leaves, one);
    }
}

/* Of the blocks between one leaf and the others. */
static void count_of_leaf(const struct blocks *b, uint32_t leaf, bool from, uint32_t *ret_late,
                          uint32_t *ret_blocks)
{
    *ret_late = *ret_blocks = 0;
    for (uint32_t k = 0; k < b->leaves; k++) {
        const struct block *one = &b->all[from ? leaf * b->leaves + k : k * b->leaves + leaf];
        *ret_blocks += k != leaf && one->cells > 0;
        *ret_late += k != leaf && one->sure;
    }
}

static uint32_t find_blocks(const struct blocks *b, struct matrix_late *ret)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < b->leaves * b->leaves && count < MATRIX_LATE_BLOCKS; k++) {
        const struct block *one = &b->all[k];
        if (one->sure) {
            struct matrix_late *l = &ret[count++];
            *l = (struct matrix_late){.block = true,
                                      .from = k / b->leaves,
                                      .to = k % b->leaves,
                                      .late = one->late,
                                      .cells = one->cells};
            count_of_leaf(b, l->from, true, &l->from_late, &l->from_blocks);
            count_of_leaf(b, l->to, false, &l->to_late, &l->to_blocks);
        }
    }
    return count;
}

static struct matrix_late *block_with(const struct matrix *m, struct matrix_late *blocks,
                                      uint32_t count, uint32_t from, uint32_t to)
{
    for (uint32_t k = 0; k < count; k++) {
        if (blocks[k].from == m->nics[from].leaf_now && blocks[k].to == m->nics[to].leaf_now) {
            return &blocks[k];
        }
    }
    return NULL;
}

/* Keeps the latest cells, the latest first; of equal ones the first one found. */
static uint32_t add_cell(struct matrix_late *cells, uint32_t count, const struct matrix_late *is)
{
    uint32_t at = count;
    while (at > 0 && cells[at - 1].ns < is->ns) {
        at--;
    }
    if (at == MATRIX_LATE_CELLS) {
        return count;
    }
    const uint32_t kept = count < MATRIX_LATE_CELLS ? count : (uint32_t)MATRIX_LATE_CELLS - 1;
    memmove(&cells[at + 1], &cells[at], (kept - at) * sizeof(*cells));
    cells[at] = *is;
    return kept + 1;
}

uint32_t matrix_late(struct matrix *m, struct matrix_late ret[static MATRIX_LATE_MOST])
{
    struct blocks b;
    uint32_t blocks = 0, cells = 0;
    if (blocks_of(m, &b)) {
        count_blocks(m, &b);
        blocks = find_blocks(&b, ret);
    }
    for (uint32_t i = 0; i < m->count; i++) {
        for (uint32_t j = 0; j < m->count; j++) {
            int64_t left;
            if (!matrix_residual(m, i, j, &left) || !matrix_is_late(m, j, left)) {
                continue;
            }
            struct matrix_late *of = block_with(m, ret, blocks, i, j);
            if (of != NULL) {
                of->ns += left;
            } else if (left > CELL_LIMITS * m->cell_limit_ns) {
                const struct matrix_late is = {.from = i, .to = j, .ns = left};
                cells = add_cell(ret + blocks, cells, &is);
            }
        }
    }
    for (uint32_t k = 0; k < blocks; k++) {
        ret[k].ns /= ret[k].late;
    }
    return blocks + cells;
}
