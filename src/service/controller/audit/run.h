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
/* Of who gives no sheet: why. */
void audit_run_leave_out(struct audit_member *m, enum audit_reason reason, const char *note);
/* The plans of all NICs and of the tests, if they are wanted and there are none yet. False: there is none now, either; the run
 * has why. */
bool audit_run_plan_matrix(struct controller *c, struct audit_run *run);
bool audit_run_plan_tests(struct controller *c, struct audit_run *run);
/* Hosts with a failure are looked at once more. Failures and settings are the run's from here on. */
void audit_run_look_again(struct controller *c, struct audit_run *run,
                          const struct audit_judged *j);
void audit_run_judge(struct controller *c, struct audit_run *run);
/* Who is not tested is known: it goes on. Settings are the run's from here on. */
void audit_run_gated(struct controller *c, struct audit_run *run, const struct audit_judged *j);
/* What there is, is on the disk: it is judged, for the run is to end. */
void audit_run_cut(struct controller *c, struct audit_run *run);
/* It was stopped and can't be judged: it ends without results. */
void audit_run_give_up(struct controller *c, struct audit_run *run);
/* What came of the one that ended is on the disk. */
void audit_run_end_kept(struct controller *c);
/* After every change of the run: into the open transaction. What the store refuses is told. */
void audit_run_save(struct controller *c, const struct audit_run *run,
                    const struct audit_outcome *o);
