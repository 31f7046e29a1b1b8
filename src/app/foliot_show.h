/* foliot_show.h: shows an agent's answer, once or repeatedly. All such commands use it.
 *
 * show_run() asks the targets, passes their answers to a renderer and returns the renderer's exit status. With --json it prints
 * each answer unchanged, one a line. With --watch it repeats; on a terminal it redraws in place. */
#pragma once
#include <jansson.h>
#include <libsmartcols/libsmartcols.h>

#include "app/foliot_command.h"

/* answers[i] belongs to options->targets[i]; NULL: that agent did not answer. Returns an exit status. */
typedef int (*show_render)(const struct options *options, json_t *const answers[], FILE *out);

int show_run(const struct options *options, const char *what, show_render render);

/* Follows the first target: prints its present state, then each change when the agent reports it. With --json each is printed
 * unchanged, one a line; otherwise `print` gets it. Returns an exit status when the agent ends the connection or nobody reads the
 * output. */
int show_follow(const struct options *options, const char *what,
                void (*print)(const struct options *options, json_t *answer, FILE *out));

/* A table that is never cut: each column is as wide as its content. NULL ends the titles; a title that begins with '>' is
 * right-aligned. NULL if memory is lacking. */
struct libscols_table *table_new(const char *const titles[]);
struct libscols_line *table_line(struct libscols_table *table);
void table_put(struct libscols_line *line, size_t column, const char *text);
/* The same, in the status's own colour. */
void table_put_status(struct libscols_line *line, size_t column, const char *text);
void table_show(struct libscols_table *table, FILE *out); /* prints and frees */

/* The name of the host in the answer. */
const char *answer_host(const json_t *answer);
