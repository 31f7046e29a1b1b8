/* plain.h: text that others wrote, made fit for a terminal, a log line or a table.
 *
 * A host, a switch or a tenant names things and gives reasons. Such text may hold escape sequences that clear a
 * screen, newlines that forge a line, and marks that turn the reading direction. Valid UTF-8 that can be seen is
 * kept as it is. All else is shown: \n \r \t, \x1b for other control characters and for bytes that are no UTF-8,
 * \u202e for C1 controls, separators of lines and paragraphs, bidi controls and what has no width. A backslash
 * stays one: the result is for eyes, not for parsers. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 sequence at `text`, which a 0 ends; 0: there is none (overlong forms and surrogates
 * included). */
size_t utf8_length(const char *text);
/* Bytes of the character at `text` if it can be shown as it is; 0 if it must be escaped. */
size_t plain_length(const char *text);
/* Nothing in it needs an escape. */
bool plain_is(const char *text);
/* The escape of the character or byte at `text`, as words; returns how many bytes of `text` it stands for. */
size_t plain_character(const char *text, char to[16]);
/* Writes `text` with its escapes into `to` and ends it by a 0; cut between characters when it doesn't fit.
 * Returns the size of the whole, without the 0, as snprintf does. */
size_t plain_text(const char *text, char *to, size_t size);
