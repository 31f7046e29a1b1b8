/* matrix_again.h: the hosts of a second matrix: those that the first one doubts are measured again before anybody fails.
 *
 * The first matrix may have caught a bad moment: another process had the processor, or a clock was settling. So each host that
 * would fail is measured once more, and only the new rows decide. They need partners without doubts: some on each leaf that is in
 * question, and four times as many as doubted hosts in all, so that the medians are the partners'. */
#pragma once
#include "core/audit/matrix_late.h"

/* Arrays are by host of the grid. m: judged. late: its list. Returns the number of hosts in the second matrix; 0: none is
 * doubted. */
uint32_t matrix_again(const struct matrix *m, const bool *doubted, const struct matrix_late *late,
                      uint32_t late_count, bool *ret_hosts);
