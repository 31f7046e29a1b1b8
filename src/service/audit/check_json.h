/* check_json.h: a check of the catalogue as JSON: `foliot audit checks --json` and the API write the same. */
#pragma once
#include "core/audit/check.h"
#include "platform/json/json.h"

enum { CHECK_COMPARES_SIZE = 64 };

/* "rule, other hosts": what the check compares with. */
const char *check_compares(const struct check *c, char text[CHECK_COMPARES_SIZE]);
/* "passive, its test bandwidth": its cost class, and the class of the test that an audit makes for it. */
const char *check_costs(const struct check *c, char text[CHECK_COMPARES_SIZE]);
/* An object without a key. */
void catalogue_check_put(struct json_writer *j, const struct check *c);
