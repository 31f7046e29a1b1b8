/* run.h: what the files of a run share; of controller/audit alone. */
#pragma once
#include "service/controller/audit/audit.h"

/* audit.yaml as it is now. -EINVAL: it is refused: error. */
MUST_CHECK int audit_run_settings(const struct controller *c, struct audit_file **ret,
                                  struct config_error *error);
void audit_run_settings_free(struct audit_file *settings);
/* Members: all hosts of the fleet. */
MUST_CHECK int audit_run_fill(const struct controller *c, struct audit_run *run);
/* Whoever waits is asked for a sheet from now on. */
void audit_run_look(struct controller *c, struct audit_run *run);
/* After every change of the run: into the open transaction. What the store refuses is told. */
void audit_run_save(struct controller *c, const struct audit_run *run,
                    const struct audit_outcome *o);
