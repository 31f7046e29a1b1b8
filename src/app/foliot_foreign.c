/* foliot_foreign.c: see foliot_foreign.h. */
#include "app/foliot_foreign.h"

#include <stdlib.h>
#include <string.h>

#include "base/plain.h"

/* Escapes `text`, but keeps newlines and tabs; the caller frees it. NULL: out of memory. */
static char *escaped_lines(const char *text)
{
    char *to = malloc(strlen(text) * 6 + 1), *end = to; /* \u202e: the longest of three bytes */
    if (to == NULL) {
        return NULL;
    }
    while (*text != 0) {
        char shown[16];
        const size_t n = *text == '\n' || *text == '\t' ? 1 : plain_length(text);
        if (n > 0) {
            memcpy(end, text, n);
            end += n;
            text += n;
        } else {
            text += plain_character(text, shown);
            end = stpcpy(end, shown);
        }
    }
    *end = 0;
    return to;
}

static char *escaped(const char *text)
{
    const size_t size = plain_text(text, NULL, 0) + 1;
    char *to = malloc(size);
    if (to != NULL) {
        plain_text(text, to, size);
    }
    return to;
}

/* A string may hold a 0, which would end it when it is printed. */
static void show_string(json_t *string, bool lines)
{
    const char *text = json_string_value(string);
    if (plain_is(text)) {
        return;
    }
    char *to = lines ? escaped_lines(text) : escaped(text);
    (void)json_string_set(string, to != NULL ? to : "?");
    free(to);
}

static void show_keys(json_t *object)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, key, value)
    {
        if (!plain_is(key)) {
            char *to = escaped(key);
            if (to != NULL) {
                (void)json_object_set(object, to, value);
            }
            free(to);
            (void)json_object_del(object, key);
        }
    }
}

void foreign_show(json_t *tree, const char *lines)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_object(tree)) {
        show_keys(tree);
    }
    json_object_foreach(tree, key, value)
    {
        if (json_is_string(value)) {
            show_string(value, lines != NULL && strcmp(key, lines) == 0);
        } else {
            foreign_show(value, lines);
        }
    }
    json_array_foreach(tree, i, value)
    {
        if (json_is_string(value)) {
            show_string(value, false);
        } else {
            foreign_show(value, lines);
        }
    }
}

struct foreign_text foreign_text(const char *text)
{
    struct foreign_text t;
    plain_text(text, t.text, sizeof(t.text));
    return t;
}

/* jansson escapes C0 controls, but no other invisible characters. */
void foreign_print(const json_t *tree, FILE *out)
{
    char *text = json_dumps(tree, JSON_COMPACT | JSON_PRESERVE_ORDER);
    for (const char *s = text; s != NULL && *s != 0;) {
        char shown[16];
        const size_t n = plain_length(s);
        if (n > 0) {
            fwrite(s, 1, n, out);
            s += n;
            continue;
        }
        s += plain_character(s, shown);
        if (shown[1] == 'u') {
            fputs(shown, out);
        } else if (shown[1] == 'U') { /* JSON writes a character beyond 16 bits as a pair */
            const unsigned long code = strtoul(shown + 2, NULL, 16) - 0x10000;
            fprintf(out, "\\u%04lx\\u%04lx", 0xd800 + (code >> 10), 0xdc00 + (code & 0x3ff));
        } else {
            fprintf(out, "\\u%04lx", strtoul(shown + 2, NULL, 16)); /* DEL */
        }
    }
    putc('\n', out);
    free(text);
}
