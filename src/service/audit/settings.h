/* settings.h: audit.yaml: what a site changes of the catalogue. Refused whole, with its place, when it names what isn't there.
 *
 *   version: 1
 *   young: 10min
 *   checks:
 *     cfg.kern.cstate: {warn: 2}
 *     cfg.gpu.count: {declared: "8"}
 *     node.procs: {off: "anna, 2026-11-20: the storage client leaves zombies"}
 *     cfg.mem.swap: {severity: info}
 *   cohorts:
 *     trainers: [gpu-1, "dgx-*"]
 *   every: 1d
 *   returns: 10min
 *   off:
 *     classes: {bandwidth: "anna, 2026-11-20: the fabric is being rebuilt"}
 *     hosts: {gpu-17: "anna, 2026-11-20: on the bench"}
 *     fleet: "anna, 2026-11-20: maintenance" */
#pragma once
#include "core/audit/judge.h"
#include "platform/config/config.h"

struct audit_file {
    struct audit_settings settings;
    struct check_setting checks[CHECKS_MAX];
    int64_t every_ns; /* the controller begins an audit of the fleet so often; 0: only when asked */
    int64_t
        returns_ns; /* and of a host that was silent so long, when it is heard again; 0: never */
    const char *fleet_off; /* by whom and since when no audit of the fleet begins; NULL: they do */
    struct audit_host_off *hosts_off;
    struct audit_cohort *cohorts;
    struct config *config; /* owns the texts */
};

/* path NULL: nothing is changed. -errno: error->text has where and why. */
int audit_file_load(const char *path, struct audit_file *ret_file, struct config_error *error);
void audit_file_done(struct audit_file *f);
/* Checks, classes, hosts and the fleet that are switched off. */
uint32_t audit_file_off_count(const struct audit_file *f);
