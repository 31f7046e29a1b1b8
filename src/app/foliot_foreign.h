/* foliot_foreign.h: answers of agents and controllers, and saved files: the text in them is whoever's.
 *
 * A host names its NICs, a tenant its jobs, an operator gives a reason. All of it may hold escape sequences and
 * newlines. Whatever a command shows passes here once, where it comes in: foreign_show() escapes each string of a
 * tree (base/plain.h), so that no renderer can forget it. --json keeps the text as it came: foreign_print() writes
 * what can't be seen as \u escapes, which parse to the same. */
#pragma once
#include <jansson.h>
#include <stdio.h>

/* Escapes all strings and keys in place. Strings of the key `lines` (NULL: none) keep their newlines and tabs: text
 * of several lines, which whoever shows it takes apart. */
void foreign_show(json_t *tree, const char *lines);
/* A string that came otherwise: a library's words, a program's output. Cut when it is long. */
struct foreign_text {
    char text[1024];
};
struct foreign_text foreign_text(const char *text);
/* JSON in one line, with its newline. */
void foreign_print(const json_t *tree, FILE *out);
