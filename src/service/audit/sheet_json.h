/* sheet_json.h: a sheet as JSON, and back:
 *
 *   {"version":1,"kind":"audit-facts","host":"gpu-17","at_utc_ns":…,"left_out":0,
 *    "facts":[{"fact":"os.kernel","section":"os","subject":"","value":"6.1.0-28-amd64","source":"/proc/sys/kernel/osrelease"},
 *             {"fact":"pci.mrrs","section":"pcie","subject":"0000:3b:00.0","state":"no_permission","value":"…","source":"…"}]}
 *
 * A controller adds "was": {"at_utc_ns":…,"facts":[…]} and "accepted": {"run":"…","at_utc_ns":…,"facts":[…]}
 * (core/audit/past.h). A fact without "state" has a value. Facts that this release does not know are left out. */
#pragma once
#include <jansson.h>

#include "core/audit/fact.h"
#include "platform/json/json.h"

void sheet_write(struct json_writer *j, const struct sheet *s);
/* -EINVAL: it is no sheet; ret_why has the reason. -ENOMEM. Texts are copied. Sheets beside it own their memory; sheet_free()
 * of this sheet frees them. */
int sheet_read(const json_t *tree, struct sheet *ret_sheet, const char **ret_why);
