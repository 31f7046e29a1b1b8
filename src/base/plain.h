/* plain.h: makes foreign text safe for a terminal, a log line or a table.
 *
 * Hosts, switches and tenants choose names and give reasons. Such text may hold escape sequences that clear a screen, newlines
 * that forge a line, and marks that change the reading direction. Visible valid UTF-8 stays unchanged. All else is escaped: \n
 * \r \t, \x1b for other control characters and for bytes that are no UTF-8, \u202e for C1 controls, separators of lines and
 * paragraphs, bidi controls and characters without width. A backslash is not escaped: the result is for people, not for
 * parsers. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 sequence at `text`, which ends with a 0; 0: there is none (overlong forms and surrogates are invalid). */
size_t utf8_length(const char *text);
/* Bytes of the character at `text` if it can be shown unchanged; 0 if it must be escaped. */
size_t plain_length(const char *text);
/* True if no character needs an escape. */
bool plain_is(const char *text);
/* Writes the escape of the character or byte at `text`; returns how many bytes of `text` it replaces. */
size_t plain_character(const char *text, char to[16]);
/* Writes `text` with its escapes into `to`, terminated by a 0; cut between characters if it doesn't fit. Returns the whole size
 * without the 0, like snprintf. */
size_t plain_text(const char *text, char *to, size_t size);
