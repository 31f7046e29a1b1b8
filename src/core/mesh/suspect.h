/* suspect.h: the name of what a case holds (suspect.c), for a path that is asked about and for what is told by itself. */
#pragma once
#include "core/mesh/evidence.h"

/* What is told first. Of several trunks the first behind the last router that answered; where none was asked, the router that
 * they share. */
const struct locate_element *suspect_likeliest(const struct locate_case *c,
                                               const struct way_chain *chain, bool traced);
/* One thing, whatever its directions: from one end they look alike. A host with one NIC is that NIC. */
bool suspect_is_one(const struct locate_case *c);
/* The name, if it is sure; else what it may be. */
void suspect_set(const struct mesh *m, struct mesh_location *where, const struct way_chain *chain,
                 const struct locate_case *c, const struct locate_element *first, bool sure,
                 struct evidence_view view);
void suspect_rule_out(const struct mesh *m, const struct mesh_edge *bad, struct mono now,
                      struct mono since, struct evidence_view view, struct mesh_location *where);
