/* budget.h: limits what a host's agent spends on audits in the long run, whoever asks and however often: readings of the machine,
 * and time for tests of bandwidth and of collectives. Packets have limits by the second (base/limits.h).
 *
 * A whole run takes one or two readings of a host and some minutes of its tests. So nobody who audits a fleet comes near these
 * limits. They bound the damage of a controller in wrong hands. Each budget starts full: an agent that restarts forgets what it
 * spent. */
#pragma once
#include <stdint.h>

#include "base/allowance.h"

/* Counts the next reading. NULL: it may begin; else the reason why not, in words. */
const char *budget_read(struct allowance *readings, struct mono now);
/* NULL: tests of this duration may begin; else the reason why not, in words. */
const char *budget_tests_wrong(struct allowance *tests, uint64_t ms, struct mono now);
/* A test ran for `ns`. */
void budget_tested(struct allowance *tests, int64_t ns, struct mono now);
