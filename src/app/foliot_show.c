/* foliot_show.c: asks agents, prints the answers, and repeats that with --watch; and the tables. */
#include "app/foliot_show.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/foliot_client.h"
#include "app/foliot_foreign.h"
#include "app/foliot_text.h"

static volatile sig_atomic_t stopped;

static void on_stop(int number)
{
    stopped = 1;
}

static void catch_stop(void)
{
    struct sigaction action = {.sa_handler = on_stop};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void print_json(const struct options *options, json_t *const answers[])
{
    for (size_t i = 0; i < options->target_count; i++) {
        if (answers[i] != NULL) {
            foreign_print(answers[i], stdout);
        }
    }
}

/* One frame. It is rendered into memory first, so that the terminal never shows half of it. */
static int frame(const struct options *options, const char *what, show_render render, bool redraw)
{
    json_t **answers = calloc(options->target_count, sizeof(json_t *));
    int status = EXIT_UNREACHABLE;

    if (answers == NULL) {
        return EXIT_UNREACHABLE;
    }
    if (redraw) {
        fputs("\033[H", stdout);
    }
    if (client_ask_all(options, what, true, answers) > 0) {
        if (options->json) {
            print_json(options, answers);
            status = EXIT_WELL;
        } else {
            status = render(options, answers, stdout);
        }
    }
    if (redraw) {
        fputs("\033[J", stdout);
    }
    fflush(stdout);
    for (size_t i = 0; i < options->target_count; i++) {
        json_decref(answers[i]);
    }
    free(answers);
    return status;
}

int show_run(const struct options *options, const char *what, show_render render)
{
    const bool redraw = options->watch && !options->json && isatty(STDOUT_FILENO);
    int status;

    if (!options->watch) {
        return frame(options, what, render, false);
    }
    catch_stop();
    if (redraw) {
        fputs("\033[2J", stdout);
    }
    do {
        const struct timespec pause = {options->interval_ms / 1000,
                                       (long)(options->interval_ms % 1000) * 1000000};
        status = frame(options, what, render, redraw);
        if (!redraw && !options->json) {
            putchar('\n');
        }
        if (ferror(stdout)) {
            break;
        }
        nanosleep(&pause, NULL); /* a signal ends the wait early */
    } while (!stopped);
    return status;
}

int show_follow(const struct options *options, const char *what,
                void (*print)(const struct options *options, json_t *answer, FILE *out))
{
    struct client client;
    json_t *answer;
    int r = client_open(&client, options->targets[0].path);

    if (r < 0) {
        client_explain(&options->targets[0], r);
        return EXIT_UNREACHABLE;
    }
    client.raw = options->json;
    r = client_send(&client, "watch", what);
    while (r == 0) {
        r = client_receive(&client, -1, &answer);
        if (r < 0) {
            break;
        }
        if (options->json) {
            foreign_print(answer, stdout);
        } else {
            print(options, answer, stdout);
        }
        json_decref(answer);
        fflush(stdout);
        if (ferror(stdout)) {
            r = -EPIPE;
        }
    }
    client_close(&client);
    if (r != -EPIPE) {
        client_explain(&options->targets[0], r);
    }
    return EXIT_UNREACHABLE;
}

struct libscols_table *table_new(const char *const titles[])
{
    struct libscols_table *table = scols_new_table();

    if (table == NULL) {
        return NULL;
    }
    scols_table_enable_colors(table, colour_wanted(stdout));
    scols_table_enable_nowrap(table, 1);
    scols_table_set_termforce(
        table, SCOLS_TERMFORCE_NEVER); /* no line is cut: a pipe gets the same as a terminal */
    for (size_t i = 0; titles[i] != NULL; i++) {
        const bool right = titles[i][0] == '>';
        if (scols_table_new_column(table, titles[i] + right, 0, right ? SCOLS_FL_RIGHT : 0) ==
            NULL) {
            scols_unref_table(table);
            return NULL;
        }
    }
    return table;
}

struct libscols_line *table_line(struct libscols_table *table)
{
    return scols_table_new_line(table, NULL);
}

void table_put(struct libscols_line *line, size_t column, const char *text)
{
    if (line != NULL) {
        (void)scols_line_set_data(line, column, text);
    }
}

void table_put_status(struct libscols_line *line, size_t column, const char *text)
{
    const char *colour = colour_name(colour_of_status(text));

    table_put(line, column, *text != '\0' ? text : "–");
    struct libscols_cell *cell = line != NULL ? scols_line_get_cell(line, column) : NULL;
    if (cell != NULL && colour != NULL) {
        (void)scols_cell_set_color(cell, colour);
    }
}

void table_show(struct libscols_table *table, FILE *out)
{
    scols_table_set_stream(table, out);
    (void)scols_print_table(table);
    scols_unref_table(table);
}

const char *answer_host(const json_t *answer)
{
    return field_string(answer, "host");
}
