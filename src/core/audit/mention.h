/* mention.h: finds the sheets of the fleet that have a fact with this text, without a walk over all of them. */
#pragma once
#include "core/audit/judge.h"

/* The most mentions that there can be: the facts of these kinds in all sheets. */
uint32_t audit_mention_room(const struct audit *a);
/* Fills `a->mentions` from its sheets. */
void audit_mentions_find(struct audit *a);
/* FACT_NET_SWITCH by the switch's name (its value), FACT_NET_ADDRESS by the address (its subject); in the order of the sheets.
 * NULL, 0: no sheet has it. */
const struct audit_mention *audit_mentions_of(const struct audit *a, enum fact_id id,
                                              const char *text, uint32_t *ret_count);
