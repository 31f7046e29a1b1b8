/* pairs.h: finds whose fault it is when hosts judge each other by pairs; of core/audit alone.
 *
 * A pair fails because of one of its two ends, or because of something between them. A neighbour that takes no packet of full
 * size, or none at all, would fail every host that sends to it: all hosts round one would be drained. So the results of a check
 * of pairs (CHECK_PAIRS) are compared. If most neighbours of an interface find the failure, at least two hosts, that interface
 * has the fault: it fails, and the neighbours' results of it become warnings. A host that finds the failure with most of its own
 * neighbours is no witness: the fault may be its own. If a part between the ends has many pairs, the fault can't be placed, and
 * all fail.
 *
 * Half of a pair is the other host's report. So an interface fails only by pairs with two hosts, by its own results as by those
 * of others. A failure with one host is a warning. If no other host was tried, the result is unknown. */
#pragma once
#include "core/audit/rule.h"

/* The results from `from` on are those of check c. It uses the audit's items. */
void pairs_settle(struct audit *a, const struct check *c, uint32_t from);
