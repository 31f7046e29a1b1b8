/* baseline.h: compares a measurement with the same host's measurement in an audit that a person accepted (sheet.accepted). */
#pragma once
#include "core/audit/judge.h"

/* Settles the check's results from `from` on. A host is worse than it was if the change exceeds all of these: the check's limit,
 * six spreads of the hosts then, three deviations of its own runs, three bounds of the clocks. It fails if most hosts of its kind
 * are as they were. Else it is a warning: something shared has changed. If there are too few hosts to compare with each other, a
 * host passes if it is as it was. */
void baseline_settle(struct audit *a, const struct check *c, uint32_t from);

/* A measurement that differs between two sheets of one host. The difference exceeds the check's limit, the deviation of its runs
 * and the error of its clocks. */
struct measured_change {
    const struct check *check;
    const char *subject;
    char was[64], is[64]; /* text for people */
};
struct measured_diff {
    const struct sheet *was, *is;
    uint32_t check, at; /* 0 at first */
};
bool measured_diff_next(struct measured_diff *d, struct measured_change *ret);
