/* foliot_foreign.h: makes text from outside safe to show: answers of agents and controllers, and saved files.
 *
 * A host names its NICs, a tenant names its jobs, an operator gives a reason. All such text may hold escape sequences and
 * newlines. Every command passes it through foreign_show() when it arrives. That function escapes each string of a tree
 * (base/plain.h), so no renderer can forget it. --json leaves the text unchanged: foreign_print() writes invisible characters as
 * \u escapes, which parse to the same text. */
#pragma once
#include <jansson.h>
#include <stdio.h>

/* Escapes all strings and keys in place. Strings of the key `lines` keep their newlines and tabs, because they hold several
 * lines, which the renderer splits. NULL: no such key. */
void foreign_show(json_t *tree, const char *lines);
/* Escapes a string from another source, such as a library's message or a program's output. A long text is cut. */
struct foreign_text {
    char text[1024];
};
struct foreign_text foreign_text(const char *text);
/* Prints JSON in one line, with a newline. */
void foreign_print(const json_t *tree, FILE *out);
