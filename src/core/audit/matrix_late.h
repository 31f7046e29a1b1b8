/* matrix_late.h: what is late in a matrix and is no NIC's own: delays that row and column don't explain.
 *
 * A block is all cells from the NICs of one leaf to those of another. One is late by more than half of its cells, also without
 * those of any one host, so no host's word makes it late: a leaf, a spine or a trunk is. A cell that is late by itself is
 * one host's word; the worst few are told, as warnings, for which no second matrix is measured. */
#pragma once
#include "core/audit/matrix.h"

struct matrix_late {
    bool block;
    uint32_t from, to;    /* NICs; of a block leaves, by number */
    uint32_t late, cells; /* of a block */
    int64_t ns; /* later than row and column have it; of a block the mean of its late cells */
    uint32_t from_late,
        from_blocks; /* of a block: of all from its first leaf to others, and of all to its second */
    uint32_t to_late, to_blocks;
};
enum { MATRIX_LATE_BLOCKS = 64, MATRIX_LATE_CELLS = 8 };
#define MATRIX_LATE_MOST (MATRIX_LATE_BLOCKS + MATRIX_LATE_CELLS)
/* Of a matrix that was judged: blocks first. Returns how many. */
uint32_t matrix_late(struct matrix *m, struct matrix_late ret[static MATRIX_LATE_MOST]);
