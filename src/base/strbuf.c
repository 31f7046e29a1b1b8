/* strbuf.c: see strbuf.h. */
#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>

struct strbuf strbuf_init(char *text, size_t size)
{
    if (size > 0) {
        text[0] = '\0';
    }
    return (struct strbuf){.text = text, .size = size};
}

void strbuf_add(struct strbuf *s, const char *format, ...)
{
    const size_t used = s->length < s->size ? s->length : s->size;
    va_list arguments;

    va_start(arguments, format);
    int n = vsnprintf(s->size > 0 ? s->text + used : NULL, s->size - used, format, arguments);
    va_end(arguments);
    if (n > 0) {
        s->length += (size_t)n;
    }
}
