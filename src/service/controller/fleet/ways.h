/* ways.h: converts what hosts report about switches on their paths, and about those paths, for the fabric
 * (core/fleet/fabric.h). */
#pragma once
#include "core/fleet/fabric.h"
#include "service/controller/controller.h"

MUST_CHECK int ways_open(struct controller *c);
void ways_close(struct controller *c);
/* The first switch of a NIC's outgoing packets; NULL: not known. */
const char *ways_first_switch(const struct controller *c, const struct fleet_nic *nic);
/* Finds the switches of a host's paths. `ways` has one entry per path, in the order of the table. An inconsistent table names
 * no switches. */
void ways_name(struct controller *c, struct fleet_host *h, const Foliot__V1__PathTable *table,
               struct fabric_way *ways);
/* Called with each new table of a host, after ways_name(). Logs once if the table contradicts other hosts about the owner of
 * an address. */
void ways_contradict(struct controller *c, struct fleet_host *h);
/* Updates the state of trunks. It is at most one report interval old. */
void ways_look(struct controller *c);
