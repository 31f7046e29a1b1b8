/* fault.h: one name a fault for the whole fleet: the paths of all hosts' reports told to core/fleet/inquiry, and its answers
 * given to the findings that they explain. */
#pragma once
#include "core/alert/alert.h"
#include "service/controller/controller.h"

struct store_finding;

MUST_CHECK int fault_open(struct controller *c);
void fault_close(struct controller *c);
/* A host's paths are known as they were at h->paths_at_ns. */
void fault_on_paths(struct controller *c, const struct fleet_host *h);
/* With each report and each second: goes on where it was, for a few milliseconds. */
void fault_run(struct controller *c);
/* After a start, until all hosts have reported again, names of before count. */
bool fault_recalls(const struct controller *c);
/* A finding of a dead or lossy path that is explained by what all hosts report suspects that. named: its name of
 * before the start; NULL: none. */
void fault_place(struct controller *c, const struct fleet_host *h, struct alert_finding *f,
                 const struct element *named);
/* The name that a finding has now, or that it has none (placed false), into the open transaction: the next start knows it.
 * What the store refuses is tried again. */
void fault_keep_name(struct controller *c, const struct fleet_host *h,
                     const struct alert_finding *f, bool placed);
/* Names are on the disk; or a rollback took them, and they are stored again. */
void fault_committed(struct controller *c, bool ok);
