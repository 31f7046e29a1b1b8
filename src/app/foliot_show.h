/* foliot_show.h: the frame around every command that shows an agent's answer: once, or again and
 * again.
 *
 * show_run() asks the targets, hands their answers to a renderer and returns its exit status; with
 * --json it prints the answers as they came, a line each; with --watch it repeats, redrawing in
 * place on a terminal. */
#pragma once
#include <jansson.h>
#include <libsmartcols/libsmartcols.h>

#include "app/foliot_command.h"

/* answers[i] belongs to options->targets[i] and is NULL where that agent did not answer. Returns an
 * exit status. */
typedef int (*show_render)(const struct options *options, json_t *const answers[], FILE *out);

int show_run(const struct options *options, const char *what, show_render render);

/* Follows the first target: what it has, then each change as soon as the agent knows it. With --json
 * each is a line as it came; else `print` gets it. Returns, with an exit status, when the
 * agent is gone or nobody reads on. */
int show_follow(const struct options *options, const char *what,
                void (*print)(const struct options *options, json_t *answer, FILE *out));

/* A table that is cut to nothing: every column as wide as it needs. NULL-terminated titles; a title
 * that begins with '>' is right-aligned. NULL on lack of memory. */
struct libscols_table *table_new(const char *const titles[]);
struct libscols_line *table_line(struct libscols_table *table);
void table_put(struct libscols_line *line, size_t column, const char *text);
/* The same in a status's own colour. */
void table_put_status(struct libscols_line *line, size_t column, const char *text);
void table_show(struct libscols_table *table, FILE *out); /* prints and frees */

/* The host's name as the answer says it. */
const char *answer_host(const json_t *answer);
