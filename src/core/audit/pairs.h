/* pairs.h: whose fault it is where hosts judge each other by pairs; of core/audit alone.
 *
 * A pair that fails tells of one of its two ends, or of what lies between. A neighbour that takes no packet of full size,
 * or none at all, would fail everybody who sends it some: a drain of all hosts round one. So the results of a check of pairs
 * (CHECK_PAIRS) are laid side by side. An interface of which most neighbours find the same, two hosts or more, has the fault: it
 * fails, and what they found of it is a warning. Who finds the same of most of its own neighbours is no witness, for the fault
 * may be its own. Where what lies between has many pairs nobody can tell, and all fail.
 *
 * A pair is half the other host's word. So an interface fails by pairs with two hosts, by its own results as by others'. One host
 * alone is a warning, and where no other one was tried nobody knows. */
#pragma once
#include "core/audit/rule.h"

/* Results from `from` on are of check c. Uses the audit's items. */
void pairs_settle(struct audit *a, const struct check *c, uint32_t from);
