/* document.c: see document.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "service/controller/controller.h"
#include "service/controller/history/document.h"

int document_load(struct controller *c, const char *name, json_t **ret_root)
{
    char *text = NULL;
    size_t size = 0;
    const int r = store_get(c->store, name, &text, &size);

    *ret_root = r < 0 ? NULL : json_loadb(text, size, 0, NULL);
    free(text);
    return r < 0 ? r : *ret_root == NULL ? -EUCLEAN : 0;
}

int document_save(struct controller *c, const char *name, struct json_writer *j)
{
    const char *text = NULL;
    size_t size = 0;
    int r = json_writer_finish(j, &text, &size);

    r = r < 0 ? r : store_put(c->store, name, text, size);
    json_writer_done(j);
    return r;
}

void document_words(const json_t *o, const char *key, char *ret, size_t size)
{
    const char *text = json_string_value(json_object_get(o, key));

    snprintf(ret, size, "%s", text != NULL ? text : "");
}
