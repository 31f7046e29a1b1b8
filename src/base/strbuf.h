/* strbuf.h: appends to a text in memory of fixed size. Nothing is ever written beyond it; the text always ends with
 * '\0'; length goes on counting as snprintf does, so length >= size tells that the text was cut. */
#pragma once
#include <stddef.h>

struct strbuf {
    char *text;
    size_t size, length;
};

/* Begins an empty text of size bytes. Size 0 only counts; text may then be NULL. */
struct strbuf strbuf_init(char *text, size_t size);
__attribute__((format(printf, 2, 3))) void strbuf_add(struct strbuf *s, const char *format, ...);
