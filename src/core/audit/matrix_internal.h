/* matrix_internal.h: functions that matrix.c and matrix_sum.c share. */
#pragma once
#include "core/audit/matrix.h"

/* Both NICs are on one leaf: the found one, else the declared one. */
bool matrix_is_near(const struct matrix *m, uint32_t a, uint32_t b);
/* Counts the packets of all NICs, and finds whose fault the losses are. Call it when the leaves are found. */
void matrix_add_up(struct matrix *m);
/* The part of a cell's delay that row and column don't explain; false: there is none. */
bool matrix_residual(const struct matrix *m, uint32_t from, uint32_t to, int64_t *ret_ns);
/* Does this delay, at this receiver, exceed the noise and the clocks' bounds? */
bool matrix_is_late(const struct matrix *m, uint32_t to, int64_t residual_ns);
size_t matrix_scratch_size(const struct matrix *m);
