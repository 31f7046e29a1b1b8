/* matrix_internal.h: what matrix.c and matrix_sum.c share. */
#pragma once
#include "core/audit/matrix.h"

/* Both on one leaf: found, else declared. */
bool matrix_is_near(const struct matrix *m, uint32_t a, uint32_t b);
/* Counts of all NICs, and whose what was lost is. After the leaves were found. */
void matrix_add_up(struct matrix *m);
/* What row and column leave of a cell's delay; false: it has none. */
bool matrix_residual(const struct matrix *m, uint32_t from, uint32_t to, int64_t *ret_ns);
/* So much, at this receiver: does it stand out of the noise, and of the clocks' bounds? */
bool matrix_is_late(const struct matrix *m, uint32_t to, int64_t residual_ns);
size_t matrix_scratch_size(const struct matrix *m);
