/* foliot_audit_report.h: results of an audit as files for other programs and for a browser, whoever judged them:
 *
 *   {"title":"audit of 8 hosts", "checks":["cfg.sw.kernel",…],
 *    "hosts":[{"host":"gpu-17", "gate":"fail", "gate_text":"…", "marks":"PPF…"}],
 *    "not_read":[{"host":…, "reason":…, "note":…}], "results":[…]}
 *
 * A mark is the worst of a check's results of that host: F, U, W, P, S, or a blank where it was not judged.
 * `results` has all but what passed or was skipped (service/audit/result_json.h). Names and texts are of hosts: each is
 * escaped where it is written. */
#pragma once
#include <jansson.h>

#include "core/audit/judge.h"

struct audit_files {
    const char *junit, *html; /* NULL: not asked for */
};

/* As above, of sheets that were judged here; the caller's own. NULL: no memory. */
json_t *audit_report_of(const struct audit *a);
/* The source of what a result found; "": it has none. A result that an older release judged has it with its last fact only. */
const char *audit_report_source(const json_t *result);
/* An exit status; what is wrong is printed. A file is whole or not there. */
int audit_report_write(const struct audit_files *files, const json_t *report);
