/* diff.h: the changes between two sheets of one host. A change is a value that differs, or a device, module or service that came
 * or went; that is one change, not one for each of its facts. A fact that could not be read in one of the sheets is no change of
 * the machine. A fact that differs with each look (part.h: `now`) is no change either. */
#pragma once
#include "core/audit/fact.h"

struct fact_change {
    const struct fact *was, *is; /* NULL: it was not there before; it is gone now */
};
struct sheet_diff {
    const struct sheet *was, *is; /* both finished */
    uint32_t at_was, at_is;       /* 0 at first */
};

/* The next change, by fact and subject. false: no more. */
bool sheet_diff_next(struct sheet_diff *d, struct fact_change *ret);
