/* settings.h: audit.yaml: what a site changes of the catalogue. Refused whole, with its place, when it names what isn't there.
 *
 *   version: 1
 *   young: 10min
 *   checks:
 *     cfg.kern.cstate: {warn: 2}
 *     cfg.gpu.count: {declared: "8"}
 *     node.procs: {off: "anna, 2026-11-20: the storage client leaves zombies"}
 *     cfg.mem.swap: {severity: info} */
#pragma once
#include "core/audit/judge.h"
#include "platform/config/config.h"

struct audit_file {
    struct audit_settings settings;
    struct check_setting checks[CHECKS_MAX];
    struct config *config; /* owns the texts */
};

/* path NULL: nothing is changed. -errno: error->text has where and why. */
int audit_file_load(const char *path, struct audit_file *ret_file, struct config_error *error);
void audit_file_done(struct audit_file *f);
