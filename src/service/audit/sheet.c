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

struct sheet *sheet_free(struct sheet *s)
{
    if (s != NULL) {
        free(s->facts);
        free(s->text);
        free(s);
    }
    return NULL;
}
