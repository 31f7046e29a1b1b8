/* run.h: shared by the files of a run; only for controller/audit. */
#pragma once
#include "service/controller/audit/audit.h"

/* Reads audit.yaml. -EINVAL: it is refused; `error` has the reason. */
MUST_CHECK int audit_run_settings(const struct controller *c, struct audit_file **ret,
                                  struct config_error *error);
void audit_run_settings_free(struct audit_file *settings);
/* Fills the members: all hosts of the fleet. */
MUST_CHECK int audit_run_fill(const struct controller *c, struct audit_run *run);
/* From now on all members with `waits` are asked for a sheet. */
void audit_run_look(struct controller *c, struct audit_run *run);
/* Notes why a host gives no sheet. */
void audit_run_leave_out(struct audit_member *m, enum audit_reason reason, const char *note);
/* Plan the matrix of all NICs, or the tests. False: there is no plan; the run has the reason. */
bool audit_run_plan_matrix(struct controller *c, struct audit_run *run);
bool audit_run_plan_tests(struct controller *c, struct audit_run *run);
/* Looks once more at hosts with a failure. The run owns failures and settings from now on. */
void audit_run_look_again(struct controller *c, struct audit_run *run,
                          const struct audit_judged *j);
void audit_run_judge(struct controller *c, struct audit_run *run);
/* The hosts that are not tested are known now: the run goes on. It owns the settings from now on. */
void audit_run_gated(struct controller *c, struct audit_run *run, const struct audit_judged *j);
/* Ends a stopped run: all results so far are on the disk, and are judged. */
void audit_run_cut(struct controller *c, struct audit_run *run);
/* Ends a stopped run that can't be judged, without results. */
void audit_run_give_up(struct controller *c, struct audit_run *run);
/* The results of the ended run are on the disk. */
void audit_run_end_kept(struct controller *c);
/* Writes the run into the open transaction, after every change. Errors of the store are logged. */
void audit_run_save(struct controller *c, const struct audit_run *run,
                    const struct audit_outcome *o);
