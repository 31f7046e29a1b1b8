/* sheet.h: sheets that own their memory. */
#pragma once
#include "core/audit/fact.h"

struct sheet *sheet_new(void);    /* NULL: out of memory */
void sheet_done(struct sheet *s); /* frees facts, texts, and the sheets beside it */
/* also frees the sheets beside it; accepts NULL, returns NULL */
struct sheet *sheet_free(struct sheet *s);
/* Gives back the unused memory of the array of facts: a thousand sheets are kept. No fact can be added after this. */
void sheet_shrink(struct sheet *s);
