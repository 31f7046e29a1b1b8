/* baseline.h: what is measured now, against what the same host had when a person accepted an audit (sheet.accepted). */
#pragma once
#include "core/audit/judge.h"

/* Of the check's results from `from` on. A host is worse than it was by more than matters (the check's limit), than hosts
 * differed from each other then (six spreads), than its own runs differ (three deviations), and than three bounds of the clocks.
 * It fails if most hosts of its kind are as they were; else it is a warning, for what they share has changed. Where too few
 * hosts are there to compare it with each other, it passes by what it was. */
void baseline_settle(struct audit *a, const struct check *c, uint32_t from);

/* What is measured otherwise in two sheets of one host: by more than matters, than its runs differ, and than its clocks err. */
struct measured_change {
    const struct check *check;
    const char *subject;
    char was[64], is[64]; /* for people */
};
struct measured_diff {
    const struct sheet *was, *is;
    uint32_t check, at; /* 0 at first */
};
bool measured_diff_next(struct measured_diff *d, struct measured_change *ret);
