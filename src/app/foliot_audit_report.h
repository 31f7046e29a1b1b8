/* foliot_audit_report.h: results of an audit as files for other programs and for a browser. This program or the controller may
 * have judged them.
 *
 *   {"title":"audit of 8 hosts", "checks":["cfg.sw.kernel",…],
 *    "hosts":[{"host":"gpu-17", "gate":"fail", "gate_text":"…", "marks":"PPF…"}],
 *    "not_read":[{"host":…, "reason":…, "note":…}], "results":[…]}
 *
 * A mark is the worst of a check's results for that host: F, U, W, P, S, or a blank if the check was not judged. `results` lacks
 * those that passed or were skipped (service/audit/result_json.h). Names and texts come from hosts, so each is escaped when it is
 * written. */
#pragma once
#include <jansson.h>

#include "core/audit/judge.h"

struct audit_files {
    const char *junit, *html; /* NULL: not wanted */
};

/* The object above, from sheets that this program judged. The caller owns it. NULL: out of memory. */
json_t *audit_report_of(const struct audit *a);
/* The source of the value that a result found; "": it has none. In results of an older release only the last fact has it. */
const char *audit_report_source(const json_t *result);
/* Returns an exit status; the error was printed. Each file is written whole or not at all. */
int audit_report_write(const struct audit_files *files, const json_t *report);
