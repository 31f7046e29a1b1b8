/* matrix_late.h: lateness in a matrix that is no NIC's own: delays that row and column don't explain.
 *
 * A block is all cells from the NICs of one leaf to those of another. A block is late if more than half of its cells are, also
 * without the cells of any one host. So no single host's report makes it late: the cause is a leaf, a spine or a trunk. A single
 * late cell is one host's report: the worst few are shown as warnings, and no second matrix is measured for them. */
#pragma once
#include "core/audit/matrix.h"

struct matrix_late {
    bool block;
    uint32_t from, to;    /* NICs; for a block the numbers of leaves */
    uint32_t late, cells; /* for a block: its late cells, and all */
    int64_t ns; /* lateness beyond row and column; for a block the mean of its late cells */
    uint32_t from_late,
        /* for a block: late blocks and all blocks from its first leaf, and those to its second leaf */
        from_blocks;
    uint32_t to_late, to_blocks;
};
enum { MATRIX_LATE_BLOCKS = 64, MATRIX_LATE_CELLS = 8 };
#define MATRIX_LATE_MOST (MATRIX_LATE_BLOCKS + MATRIX_LATE_CELLS)
/* m: judged. Blocks come first. Returns the number of entries. */
uint32_t matrix_late(struct matrix *m, struct matrix_late ret[static MATRIX_LATE_MOST]);
