/* sheet.h: a sheet in memory of its own. */
#pragma once
#include "core/audit/fact.h"

struct sheet *sheet_new(void);             /* NULL: no memory */
void sheet_done(struct sheet *s);          /* what it has: facts, texts, those beside it */
struct sheet *sheet_free(struct sheet *s); /* with those beside it; accepts NULL, returns NULL */
/* Memory that holds its facts and no more: a thousand sheets are kept. Nothing can be added. */
void sheet_shrink(struct sheet *s);
