/* sheet_json.h: a sheet as JSON, and back:
 *
 *   {"version":1,"kind":"audit-facts","host":"gpu-17","at_utc_ns":…,"left_out":0,
 *    "facts":[{"fact":"os.kernel","section":"os","subject":"","value":"6.1.0-28-amd64","source":"/proc/sys/kernel/osrelease"},
 *             {"fact":"pci.mrrs","section":"pcie","subject":"0000:3b:00.0","state":"no_permission","value":"…","source":"…"}]}
 *
 * Beside them a controller has "was": {"at_utc_ns":…,"facts":[…]} and "accepted": {"run":"…","at_utc_ns":…,"facts":[…]}
 * (core/audit/past.h). A fact without "state" has a value. What a sheet of another release names and this one does not know is
 * left away. */
#pragma once
#include <jansson.h>

#include "core/audit/fact.h"
#include "platform/json/json.h"

void sheet_write(struct json_writer *j, const struct sheet *s);
/* -EINVAL: it is no sheet; why is in `ret_why`. -ENOMEM. Texts are copied; sheets beside it are in memory of their own, which
 * sheet_free() of this one ends. */
int sheet_read(const json_t *tree, struct sheet *ret_sheet, const char **ret_why);
