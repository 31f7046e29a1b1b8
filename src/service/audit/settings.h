/* settings.h: audit.yaml: a site's changes of the catalogue. If it names something that does not exist, the whole file is
 * refused, with the place.
 *
 *   version: 1
 *   young: 10min
 *   checks:
 *     cfg.kern.cstate: {warn: 2}
 *     cfg.nic.count: {declared: "8"}
 *     cfg.gpu.count: {declared: {trainers: "8", storage: "0"}}
 *     node.procs: {off: "anna, 2026-11-20: the storage client leaves zombies"}
 *     cfg.mem.swap: {severity: info}
 *   cohorts:
 *     trainers: [gpu-1, "dgx-*"]
 *     storage: ["st-*"]
 *   every: 1d
 *   matrix: true
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
    int64_t every_ns; /* interval of the controller's own audits of the fleet; 0: only on request */
    bool matrix;      /* these audits measure every NIC with every NIC */
    int64_t
        returns_ns; /* a host that was silent for this long is audited when it returns; 0: never */
    /* who switched audits of the fleet off, and since when; NULL: they are on */
    const char *fleet_off;
    struct audit_host_off *hosts_off;
    struct audit_cohort *cohorts;
    struct audit_declared *declared; /* of all checks: values by cohort */
    uint32_t declared_count;
    struct config *config; /* owns the texts */
};

/* path NULL: no changes. -errno: error->text has place and reason. */
int audit_file_load(const char *path, struct audit_file *ret_file, struct config_error *error);
void audit_file_done(struct audit_file *f);
/* Number of checks, classes, hosts (and the fleet) that are switched off. */
uint32_t audit_file_off_count(const struct audit_file *f);
