/* matrix_again.h: of whom a second matrix is: hosts that a first one doubts, measured afresh before anybody fails.
 *
 * What one matrix found may have been a moment: a processor that others had, a clock that was settling. So whoever would fail is
 * measured once more, and the fresh rows alone decide. It needs partners that nobody doubts: some on each leaf that is in
 * question, and four times as many as are doubted in all, so that medians are theirs. */
#pragma once
#include "core/audit/matrix_late.h"

/* Both by host of the grid. m: judged; late: of it. Returns how many hosts it is of; 0: none is doubted. */
uint32_t matrix_again(const struct matrix *m, const bool *doubted, const struct matrix_late *late,
                      uint32_t late_count, bool *ret_hosts);
