/* matrix_internal.h: what matrix.c and matrix_sum.c share. */
#pragma once
#include "core/audit/matrix.h"

/* Is the cell one to be measured? */
bool matrix_two_hosts(const struct matrix *m, uint32_t a, uint32_t b);
/* Both on one leaf: found, else declared. */
bool matrix_is_near(const struct matrix *m, uint32_t a, uint32_t b);
/* Counts of all NICs, and whose what was lost is. After the leaves were found. */
void matrix_add_up(struct matrix *m);
