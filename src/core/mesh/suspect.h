/* suspect.h: the name of a case's element (suspect.c), for a path in question and for faults that are reported by themselves. */
#pragma once
#include "core/mesh/evidence.h"

/* The element to report first. Of several trunks: the first one behind the last router that answered; without a trace, the router
 * that they share. */
const struct locate_element *suspect_likeliest(const struct locate_case *c,
                                               const struct way_chain *chain, bool traced);
/* True if it is one element in both directions: from one end they look alike. A host with one NIC counts as that NIC. */
bool suspect_is_one(const struct locate_case *c);
/* Sets the name if it is certain, otherwise the possible elements. */
void suspect_set(const struct mesh *m, struct mesh_location *where, const struct way_chain *chain,
                 const struct locate_case *c, const struct locate_element *first, bool sure,
                 struct evidence_view view);
void suspect_rule_out(const struct mesh *m, const struct mesh_edge *bad, struct mono now,
                      struct mono since, struct evidence_view view, struct mesh_location *where);
