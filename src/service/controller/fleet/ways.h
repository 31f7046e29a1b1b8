/* ways.h: what hosts tell of the switches on their ways, and of the paths over them, for the fabric (core/fleet/fabric.h). */
#pragma once
#include "core/fleet/fabric.h"
#include "service/controller/controller.h"

MUST_CHECK int ways_open(struct controller *c);
void ways_close(struct controller *c);
/* The switch that a NIC's own packets pass first; NULL: not known. */
const char *ways_first_switch(const struct controller *c, const struct fleet_nic *nic);
/* The switches of a host's ways, in the order of the table, into `ways`, one for each; a table that isn't consistent names
 * none. */
void ways_name(struct controller *c, struct fleet_host *h, const Foliot__V1__PathTable *table,
               struct fabric_way *ways);
/* With each of a host's tables, told before: people hear, once, of one that contradicts others about whose address it is. */
void ways_contradict(struct controller *c, struct fleet_host *h);
/* What is on the trunks: as it is now, or was at most a report's interval ago. */
void ways_look(struct controller *c);
