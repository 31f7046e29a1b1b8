/* result_json.h: one result as JSON, with the facts that it is based on. */
#pragma once
#include "core/audit/judge.h"
#include "platform/json/json.h"

void result_write(struct json_writer *j, const struct audit *a, const struct audit_result *r);
/* Writes {"fail":1,"unknown":0,…} */
void result_write_counts(struct json_writer *j, const char *key,
                         const uint32_t counts[static AUDIT_STATUS_COUNT]);
