/* diff.h: what is another in two sheets of one host. A value that became another; a device, module or service that came or went,
 * as one change and not one for each of its facts. What could not be read in one of both is no change of the machine, and
 * what is never the same twice (part.h: `now`) is none either. */
#pragma once
#include "core/audit/fact.h"

struct fact_change {
    const struct fact *was, *is; /* NULL: it was not there; it is gone */
};
struct sheet_diff {
    const struct sheet *was, *is; /* both finished */
    uint32_t at_was, at_is;       /* 0 at first */
};

/* By fact and subject. false: no more. */
bool sheet_diff_next(struct sheet_diff *d, struct fact_change *ret);
