/* sheet.h: a sheet in memory of its own. */
#pragma once
#include "core/audit/fact.h"

struct sheet *sheet_new(void);             /* NULL: no memory */
struct sheet *sheet_free(struct sheet *s); /* accepts NULL, returns NULL */
