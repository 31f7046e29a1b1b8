/* sheet.c: see sheet.h. */
#include "service/audit/sheet.h"

#include <stdlib.h>

struct sheet *sheet_new(void)
{
    struct sheet *s = calloc(1, sizeof(*s));

    if (s == NULL) {
        return NULL;
    }
    s->facts = calloc(SHEET_FACTS_MAX, sizeof(*s->facts));
    s->text = malloc(SHEET_TEXT_MAX);
    s->capacity = SHEET_FACTS_MAX;
    s->text_size = SHEET_TEXT_MAX;
    s->host = "";
    return s->facts != NULL && s->text != NULL ? s : sheet_free(s);
}

void sheet_done(struct sheet *s)
{
    sheet_free((struct sheet *)(uintptr_t)s->was);
    sheet_free((struct sheet *)(uintptr_t)s->accepted);
    free(s->facts);
    free(s->text);
}

struct sheet *sheet_free(struct sheet *s)
{
    if (s != NULL) {
        sheet_done(s);
        free(s);
    }
    return NULL;
}

void sheet_shrink(struct sheet *s)
{
    struct fact *facts = realloc(s->facts, (s->count + 1) * sizeof(*facts));

    s->facts = facts != NULL ? facts : s->facts;
    s->capacity = s->count;
}
