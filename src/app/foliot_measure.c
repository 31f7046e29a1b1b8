/* foliot_measure.c: `foliot host check` and `foliot mesh --full`: starts a measurement by the controller, shows its progress,
 * and prints its results. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/foliot_foreign.h"
#include "app/foliot_measure.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"

#define LOOK_MS 300
enum { BAR = 30, TABLE_NIC_MAX = 16, WORST_SHOWN = 10 };

/* ---- progress ---- */

/* Only on a terminal: scripts get the results alone. */
static void show_progress(const json_t *m)
{
    const int64_t all = json_integer_value(json_object_get(m, "packets")),
                  sent = json_integer_value(json_object_get(m, "packets_sent"));
    const int done = all > 0 ? (int)(sent * BAR / all) : 0;
    char bar[BAR + 1];
    for (int i = 0; i < BAR; i++) {
        bar[i] = i < done ? '#' : '.';
    }
    bar[BAR] = 0;
    fprintf(stderr, "\r[%s] %3d %%  %lld of %lld probes, about %lld s more ", bar,
            all > 0 ? (int)(sent * 100 / all) : 0, (long long)sent, (long long)all,
            (long long)(json_integer_value(json_object_get(m, "left_ns")) / 1000000000));
}

/* Waits until it is over; api->answer has the last answer. */
static int follow(struct api *api)
{
    const bool bar = isatty(STDERR_FILENO) && !api->json;
    const struct timespec pause = {0, LOOK_MS * 1000000L};
    char path[64];
    int status = EXIT_WELL;
    snprintf(path, sizeof(path), "/api/v1/measurements/%s",
             api_number_text(api->answer, "id").text);
    while (status == EXIT_WELL && strcmp(api_text(api->answer, "state"), "running") == 0) {
        if (bar) {
            show_progress(api->answer);
        }
        nanosleep(&pause, NULL);
        status = api_ask(api, "GET", path, NULL);
    }
    if (bar) {
        fprintf(stderr, "\r%*s\r", BAR + 60, "");
    }
    return status;
}

static void print_left_out(const json_t *m)
{
    size_t i;
    json_t *h;
    json_array_foreach(json_object_get(m, "skipped"), i, h)
    {
        printf("  not asked: %s\n", json_string_value(h));
    }
    json_array_foreach(json_object_get(m, "hosts"), i, h)
    {
        if (json_is_string(json_object_get(h, "trouble"))) {
            printf("  not completely measured: %s: %s\n", api_text(h, "host"),
                   api_text(h, "trouble"));
        }
    }
}

/* ---- the host check ---- */

static void print_check(const json_t *m)
{
    const char *answer = api_text(m, "answer");
    size_t i;
    json_t *r;
    const enum colour colour = strcmp(answer, "yes") == 0  ? COLOUR_GOOD
                               : strcmp(answer, "no") == 0 ? COLOUR_BAD
                                                           : COLOUR_WARN;
    printf("%s%s%s: %s\n", colour_begin(stdout, colour), answer, colour_end(stdout),
           api_text(m, "sentence"));
    json_array_foreach(json_object_get(m, "reasons"), i, r)
    {
        printf("  %-8s %s\n", api_text(r, "result"), api_text(r, "text"));
    }
    print_left_out(m);
    printf("  %s of %s paths measured, %s probes on each, by %zu hosts; the clocks' bound on a "
           "delay: %s\n",
           api_number_text(m, "paths_measured").text, api_number_text(m, "paths_all").text,
           api_number_text(m, "packets_per_path").text,
           json_array_size(json_object_get(m, "hosts")), field_ns(m, "bound_ns").text);
}

int measure_host_check(struct api *api, const char *host, const char *seconds)
{
    json_t *body = json_pack("{s:s, s:s}", "kind", "host-check", "host", host);
    if (seconds != NULL) {
        char *end = NULL;
        const long n = strtol(seconds, &end, 10);
        if (*end != 0 || n < 1) {
            json_decref(body);
            fprintf(stderr, "foliot host check: --seconds: expected a number from 1 to 60\n");
            return EXIT_USAGE;
        }
        json_object_set_new(body, "seconds", json_integer(n));
    }
    int status = api_ask_json(api, "POST", "/api/v1/measurements", body);
    status = status == EXIT_WELL ? follow(api) : status;
    if (status != EXIT_WELL) {
        return status;
    }
    if (api->json) {
        api_print(api);
    } else {
        print_check(api->answer);
    }
    return strcmp(api_text(api->answer, "answer"), "yes") == 0 ? EXIT_WELL : EXIT_NOT_WELL;
}

/* ---- the full matrix ---- */

static const char *label(const json_t *nics, int64_t id)
{
    static char text[2][140];
    static int turn;
    size_t i;
    json_t *n;
    turn = !turn;
    snprintf(text[turn], sizeof(text[0]), "%lld", (long long)id);
    json_array_foreach(nics, i, n)
    {
        if (json_integer_value(json_array_get(n, 0)) == id) {
            snprintf(text[turn], sizeof(text[0]), "%.63s/%.15s",
                     json_string_value(json_array_get(n, 1)),
                     json_string_value(json_array_get(n, 2)));
        }
    }
    return text[turn];
}

static int64_t of_cell(const json_t *cell, size_t column)
{
    const json_t *v = json_array_get(cell, column);
    return json_is_integer(v) ? json_integer_value(v) : INT64_MIN;
}

/* Sorts dead pairs first, then by loss, then by delay. */
static int worse(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    const int64_t loss = of_cell(y, 4) - of_cell(x, 4), p50 = of_cell(y, 2) - of_cell(x, 2);
    return loss != 0 ? (loss > 0) - (loss < 0) : (p50 > 0) - (p50 < 0);
}

static void print_table(const json_t *nics, const json_t *cells)
{
    const size_t n = json_array_size(nics);
    printf("median one-way delay in us, from the row's NIC to the column's; . not measured\n%-24s",
           "");
    for (size_t k = 0; k < n; k++) {
        printf(" %8zu", k);
    }
    putchar('\n');
    for (size_t i = 0; i < n; i++) {
        const int64_t from = of_cell(json_array_get(nics, i), 0);
        printf("%2zu %-21s", i, label(nics, from));
        for (size_t k = 0; k < n; k++) {
            const int64_t to = of_cell(json_array_get(nics, k), 0);
            struct cell text = text_format(".");
            size_t c;
            json_t *cell;
            json_array_foreach(cells, c, cell)
            {
                if (of_cell(cell, 0) == from && of_cell(cell, 1) == to) {
                    text = json_is_integer(json_array_get(cell, 2))
                               ? text_format("%.1f", (double)of_cell(cell, 2) * 1e-3)
                               : text_format("dead");
                }
            }
            printf(" %8s", text.text);
        }
        putchar('\n');
    }
}

static int print_matrix(struct api *api, const json_t *m)
{
    const json_t *nics = json_object_get(api->answer, "nics");
    json_t *cells = json_object_get(api->answer, "cells");
    const size_t n = json_array_size(nics), count = json_array_size(cells);
    json_t **sorted = calloc(count + 1, sizeof(json_t *));
    if (sorted == NULL) {
        return EXIT_UNREACHABLE;
    }
    for (size_t i = 0; i < count; i++) {
        sorted[i] = json_array_get(cells, i);
    }
    qsort(sorted, count, sizeof(sorted[0]), worse);
    if (n <= TABLE_NIC_MAX) {
        print_table(nics, cells);
    }
    printf("the worst of %zu:\n", count);
    for (size_t i = 0; i < count && i < WORST_SHOWN; i++) {
        const bool timed = of_cell(sorted[i], 2) != INT64_MIN;
        printf("  %s -> %s: %s, p99 %s, lost %.2f %%\n", label(nics, of_cell(sorted[i], 0)),
               label(nics, of_cell(sorted[i], 1)),
               timed ? text_ns(of_cell(sorted[i], 2)).text : "no delay known",
               timed ? text_ns(of_cell(sorted[i], 3)).text : "-",
               of_cell(sorted[i], 4) >= 0 ? (double)of_cell(sorted[i], 4) * 1e-4 : 0.0);
    }
    print_left_out(m);
    printf("%s of %s pairs measured; the result stays at /api/v1/latency?measurement=%s\n",
           api_number_text(m, "paths_measured").text, api_number_text(m, "paths_all").text,
           api_number_text(m, "id").text);
    free(sorted);
    return strcmp(api_number_text(m, "paths_measured").text,
                  api_number_text(m, "paths_all").text) == 0
               ? EXIT_WELL
               : EXIT_NOT_WELL;
}

static int full(struct api *api, const char *rail)
{
    json_t *body = json_pack("{s:s}", "kind", "matrix");
    char path[64];
    if (rail != NULL) {
        json_object_set_new(body, "rail", json_integer(strtol(rail, NULL, 10)));
    }
    int status = api_ask_json(api, "POST", "/api/v1/measurements", body);
    status = status == EXIT_WELL ? follow(api) : status;
    if (status != EXIT_WELL) {
        return status;
    }
    json_t *m = json_incref(api->answer);
    snprintf(path, sizeof(path), "/api/v1/latency?measurement=%s", api_number_text(m, "id").text);
    status = api_ask(api, "GET", path, NULL);
    if (status == EXIT_WELL && api->json) {
        api_print(api);
    } else if (status == EXIT_WELL) {
        status = print_matrix(api, m);
    }
    json_decref(m);
    return status;
}

bool measure_is_full(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--full") == 0) {
            return true;
        }
    }
    return false;
}

int measure_full(int argc, char *argv[])
{
    const char *rail = NULL;
    bool all = false;
    char *end = NULL;
    struct api api;
    api_init(&api, "mesh");
    const int r =
        api_parse(&api,
                  (const struct option_entry[]){
                      {"full", 0, OPTION_FLAG, &all}, {"rail", 0, OPTION_TEXT, &rail}, {0}},
                  argc, argv);
    if (r != 0) {
        return r == COMMAND_HELPED ? EXIT_WELL : r;
    }
    if (rail != NULL && (strtol(rail, &end, 10) < 0 || end == rail || *end != 0)) {
        fprintf(stderr, "foliot mesh: --rail: expected a number from 0 on, found '%s'\n",
                foreign_text(rail).text);
        return EXIT_USAGE;
    }
    if (api.first < argc) {
        return command_wrong_words("mesh", argc - api.first, argv + api.first);
    }
    const int status = full(&api, rail);
    api_done(&api);
    return status;
}
