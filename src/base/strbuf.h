/* strbuf.h: appends to a text in memory of fixed size. It never writes beyond that; the text always ends with '\0'. length goes
 * on counting like snprintf, so length >= size means that the text was cut. */
#pragma once
#include <stddef.h>

struct strbuf {
    char *text;
    size_t size, length;
};

/* Begins an empty text of `size` bytes. Size 0 only counts; then text may be NULL. */
struct strbuf strbuf_init(char *text, size_t size);
__attribute__((format(printf, 2, 3))) void strbuf_add(struct strbuf *s, const char *format, ...);
