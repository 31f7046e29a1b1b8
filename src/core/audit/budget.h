/* budget.h: what a host's agent spends on audits in the long run, whoever asks, however often: readings of the machine, and time
 * for tests of bandwidth and of collectives. Packets have their ceilings by the second (base/limits.h).
 *
 * A whole run takes a reading or two of a host, and some minutes of its tests, so that nobody who audits a fleet comes near it.
 * It holds what a controller in wrong hands can cost. Each starts full: an agent that restarts forgets it. */
#pragma once
#include <stdint.h>

#include "base/allowance.h"

/* The next reading is counted and may begin: NULL; else why not, in words. */
const char *budget_read(struct allowance *readings, struct mono now);
/* Why tests that may take so long can't begin, in words; NULL: they can. */
const char *budget_tests_wrong(struct allowance *tests, uint64_t ms, struct mono now);
/* One ran so long. */
void budget_tested(struct allowance *tests, int64_t ns, struct mono now);
