/* fault.h: each fault gets one name in the whole fleet. The paths in all hosts' reports go to core/fleet/inquiry. Its answers
 * are given to the findings that they explain. */
#pragma once
#include "core/alert/alert.h"
#include "service/controller/controller.h"

struct store_finding;

MUST_CHECK int fault_open(struct controller *c);
void fault_close(struct controller *c);
/* A host has reported its paths, as they were at h->paths_at_ns. */
void fault_on_paths(struct controller *c, const struct fleet_host *h);
/* Called with each report and each second: continues for a few milliseconds. */
void fault_run(struct controller *c);
/* True after a start, until all hosts have reported again. Then names from before the start are valid. */
bool fault_recalls(const struct controller *c);
/* If the reports of all hosts explain a finding of a dead or lossy path, its suspect is that element. named: its name from
 * before the start; NULL: none. */
void fault_place(struct controller *c, const struct fleet_host *h, struct alert_finding *f,
                 const struct element *named);
/* Writes a finding's name into the open transaction, or that it has none (placed: false). The next start reads it. If the
 * store refuses it, it is tried again. */
void fault_keep_name(struct controller *c, const struct fleet_host *h,
                     const struct alert_finding *f, bool placed);
/* ok: the names are on the disk. Else a rollback removed them, and they are stored again. */
void fault_committed(struct controller *c, bool ok);
