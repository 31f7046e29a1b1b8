/* foliot_mesh.c: `foliot mesh`: the one-way delays of all paths as a heat map, and the worst paths by name.
 *
 * A cell is the slowest path from the row's NIC to the column's NIC. The table shows RTT/2 after the two one-way delays: a
 * ping would report it for both directions. The column HIDDEN is each direction's difference from it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_measure.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"
#include "stats/sample.h"

#define MAP_NIC_MAX 256 /* a terminal can't show more; the table of the worst paths remains */
#define WORST_SHOWN 8
#define SLOW_RATIO  2.5 /* times the median: stands out */

enum cell_state {
    CELL_EMPTY,
    CELL_UNKNOWN,
    CELL_ALIVE,
    CELL_LOSSY,
    CELL_DEAD,
};

struct map_cell {
    enum cell_state state;
    unsigned dead, paths;
    double owd_us; /* NAN: none */
};

struct map_nic {
    int64_t index;
    char label[TARGET_NAME_MAX * 2];
    bool local; /* its own agent answered */
};

struct map {
    size_t count;
    struct map_nic nics[MAP_NIC_MAX];
    struct map_cell cells[MAP_NIC_MAX][MAP_NIC_MAX]; /* [from][to] */
    double median_us;
    bool full; /* more NICs than fit */
};

/* One path, as a line of the table. */
struct path_row {
    const json_t *answer, *edge, *path;
    double badness;
};

static size_t map_find(struct map *map, int64_t index, const char *host, const char *name,
                       bool local)
{
    size_t i;

    for (i = 0; i < map->count && map->nics[i].index != index; i++) {
    }
    if (i == map->count) {
        if (map->count == MAP_NIC_MAX) {
            map->full = true;
            return SIZE_MAX;
        }
        map->count++;
        map->nics[i] = (struct map_nic){.index = index};
        snprintf(map->nics[i].label, sizeof(map->nics[i].label), "%.60s/%.60s", host, name);
    }
    map->nics[i].local = map->nics[i].local || local;
    return i;
}

static enum cell_state state_of(const json_t *direction)
{
    const char *state = field_string(direction, "state");

    return strcmp(state, "dead") == 0    ? CELL_DEAD
           : strcmp(state, "lossy") == 0 ? CELL_LOSSY
           : strcmp(state, "alive") == 0 ? CELL_ALIVE
                                         : CELL_UNKNOWN;
}

static double owd_of(const json_t *direction, const char *name)
{
    int64_t ns;

    return field_get(direction, name, &ns) ? (double)ns / 1e3 : NAN;
}

static void cell_add(struct map_cell *cell, const json_t *direction)
{
    const enum cell_state state = state_of(direction);
    const double owd_us = owd_of(direction, "owd_ns_p50");

    if (!json_is_object(direction)) {
        return; /* no path that way yet */
    }
    if (state > cell->state) {
        cell->state = state;
    }
    cell->dead += state == CELL_DEAD;
    cell->paths++;
    if (isnan(cell->owd_us) || owd_us > cell->owd_us) {
        cell->owd_us = owd_us;
    }
}

/* The sender's report of a direction replaces the receiver's, so the map is filled in two passes. */
static void map_add_edge(struct map *map, const json_t *answer, const json_t *edge, bool own)
{
    const json_t *paths = json_object_get(edge, "paths");
    int64_t local = -1, peer = -1;
    struct map_cell worst = {.owd_us = NAN};

    if (!field_get(edge, "local_nic", &local) || !field_get(edge, "peer_nic", &peer)) {
        return;
    }
    size_t from = map_find(map, local, answer_host(answer), field_string(edge, "local_name"), true);
    size_t to = map_find(map, peer, field_string(edge, "peer_host"),
                         field_string(edge, "peer_name"), false);
    if (from == SIZE_MAX || to == SIZE_MAX) {
        return;
    }
    for (size_t i = 0; i < json_array_size(paths); i++) {
        cell_add(&worst, json_object_get(json_array_get(paths, i), own ? "out" : "in"));
    }
    if (own) {
        map->cells[from][to] = worst;
    } else if (map->cells[to][from].state <= CELL_UNKNOWN) {
        map->cells[to][from] = worst;
    }
}

static int compare_nic(const void *a, const void *b)
{
    const struct map_nic *x = a, *y = b;

    return (x->index > y->index) - (x->index < y->index);
}

static void map_median(struct map *map)
{
    double *values = malloc(sizeof(double) * (map->count * map->count + 1));
    size_t n = 0;

    map->median_us = NAN;
    for (size_t i = 0; values != NULL && i < map->count; i++) {
        for (size_t k = 0; k < map->count; k++) {
            if (!isnan(map->cells[i][k].owd_us)) {
                values[n++] = map->cells[i][k].owd_us;
            }
        }
    }
    if (n > 0) {
        qsort(values, n, sizeof(*values), sample_order);
        map->median_us = sample_median(values, n);
    }
    free(values);
}

static void map_fill(struct map *map, const struct options *options, json_t *const answers[])
{
    /* NICs first, in the order of their numbers: rows and columns stay in place while watching */
    for (size_t i = 0; i < options->target_count; i++) {
        const json_t *edges = json_object_get(answers[i], "edges");
        for (size_t k = 0; k < json_array_size(edges); k++) {
            map_add_edge(map, answers[i], json_array_get(edges, k), true);
        }
    }
    qsort(map->nics, map->count, sizeof(*map->nics), compare_nic);
    for (size_t i = 0; i < MAP_NIC_MAX; i++) {
        for (size_t k = 0; k < MAP_NIC_MAX; k++) {
            map->cells[i][k] = (struct map_cell){.owd_us = NAN};
        }
    }
    for (int own = 1; own >= 0; own--) {
        for (size_t i = 0; i < options->target_count; i++) {
            const json_t *edges = json_object_get(answers[i], "edges");
            for (size_t k = 0; k < json_array_size(edges); k++) {
                map_add_edge(map, answers[i], json_array_get(edges, k), own);
            }
        }
    }
    map_median(map);
}

/* 256-colour backgrounds, from calm to hot. */
static int heat(double ratio)
{
    static const int steps[] = {22, 28, 64, 100, 136, 166, 160, 196};
    const double level = ratio > 1 ? log2(ratio) * 2 : 0;
    const size_t last = sizeof(steps) / sizeof(steps[0]) - 1;

    return steps[level < (double)last ? (size_t)level : last];
}

static void print_cell(const struct map *map, const struct map_cell *cell, FILE *out)
{
    const double ratio = map->median_us > 0 ? cell->owd_us / map->median_us : 1;
    const bool slow = ratio > SLOW_RATIO, colour = colour_wanted(out);
    const char *mark = cell->state == CELL_LOSSY ? "~" : slow && !colour ? "!" : "";
    char text[32];

    if (cell->state == CELL_EMPTY) {
        fputs("     .", out);
        return;
    }
    if (cell->state == CELL_DEAD) {
        snprintf(text, sizeof(text), cell->dead == cell->paths ? "DEAD" : "%u/%uX", cell->dead,
                 cell->paths);
        fprintf(out, " %s%5s%s", colour ? "\033[1;97;41m" : "", text, colour ? "\033[0m" : "");
        return;
    }
    if (isnan(cell->owd_us)) {
        snprintf(text, sizeof(text), "?%s", mark);
    } else if (cell->owd_us >= 9999) {
        snprintf(text, sizeof(text), "%.0fm%s", cell->owd_us / 1e3, mark);
    } else {
        snprintf(text, sizeof(text), "%.*f%s", cell->owd_us < 99.5 ? 1 : 0, cell->owd_us, mark);
    }
    if (colour && !isnan(ratio)) {
        fprintf(out, " \033[%s48;5;%dm%5s\033[0m", slow ? "1;97;" : "", heat(ratio), text);
    } else {
        fprintf(out, " %5s", text);
    }
}

static void print_header(const struct map *map, FILE *out)
{
    fprintf(out, "%16s", "from \\ to");
    for (size_t i = 0; i < map->count; i++) {
        fprintf(out, " %5lld", (long long)map->nics[i].index);
    }
    fputc('\n', out);
}

static void print_row(const struct map *map, size_t row, bool arriving, FILE *out)
{
    char label[32];

    snprintf(label, sizeof(label), "%.11s %s%3lld", map->nics[row].label, arriving ? "<" : "",
             (long long)map->nics[row].index);
    fprintf(out, "%16s", label);
    for (size_t i = 0; i < map->count; i++) {
        print_cell(map, arriving ? &map->cells[i][row] : &map->cells[row][i], out);
    }
    fputc('\n', out);
}

static void print_map(const struct map *map, const struct options *options, FILE *out)
{
    if (map->full) {
        fprintf(out, "more than %d NICs: no map; ask a single host, or use --json\n", MAP_NIC_MAX);
        return;
    }
    fprintf(out, "one-way delay in us of the slowest path, row to column%s; median %s\n",
            colour_wanted(out) ? "" : " (! slow, ~ lossy, 1/4X: one of four dead)",
            isnan(map->median_us) ? "not known" : text_us((int64_t)(map->median_us * 1e3)).text);
    print_header(map, out);
    for (size_t i = 0; i < map->count; i++) {
        if (map->nics[i].local) {
            print_row(map, i, false, out);
        }
    }
    if (options->target_count > 1) {
        return;
    }
    for (size_t i = 0; i < map->count; i++) { /* one agent also measures the way back */
        if (map->nics[i].local) {
            print_row(map, i, true, out);
        }
    }
}

static int compare_badness(const void *a, const void *b)
{
    const struct path_row *x = a, *y = b;

    return (x->badness < y->badness) - (x->badness > y->badness);
}

static double badness(const json_t *path)
{
    const json_t *out = json_object_get(path, "out"), *in = json_object_get(path, "in");
    const double a = owd_of(out, "owd_ns_p50"), b = owd_of(in, "owd_ns_p50");
    const int state = (int)(state_of(out) > state_of(in) ? state_of(out) : state_of(in));

    return (state > (int)CELL_ALIVE ? 1e12 * state : 0) + fmax(isnan(a) ? 0 : a, isnan(b) ? 0 : b);
}

/* An edge of which both ends answered is listed once, at the lower index. */
static bool listed_elsewhere(const struct map *map, const json_t *edge)
{
    int64_t local, peer;

    if (!field_get(edge, "local_nic", &local) || !field_get(edge, "peer_nic", &peer) ||
        local < peer) {
        return false;
    }
    for (size_t i = 0; i < map->count; i++) {
        if (map->nics[i].index == peer) {
            return map->nics[i].local;
        }
    }
    return false;
}

static size_t collect_paths(const struct map *map, const struct options *options,
                            json_t *const answers[], struct path_row *rows, size_t capacity)
{
    size_t count = 0;

    for (size_t i = 0; i < options->target_count; i++) {
        const json_t *edges = json_object_get(answers[i], "edges");
        for (size_t k = 0; k < json_array_size(edges); k++) {
            const json_t *edge = json_array_get(edges, k), *paths = json_object_get(edge, "paths");
            if (listed_elsewhere(map, edge)) {
                continue;
            }
            for (size_t p = 0; p < json_array_size(paths); p++) {
                const json_t *path = json_array_get(paths, p);
                if (count < capacity) {
                    rows[count] = (struct path_row){answers[i], edge, path, badness(path)};
                }
                count++;
            }
        }
    }
    return count;
}

/* "10.1.0.1 10.2.0.3" */
static struct cell hops_of(const json_t *path)
{
    const json_t *hops = json_object_get(path, "hops");
    struct cell cell = {""};
    size_t used = 0;

    for (size_t i = 0; i < json_array_size(hops) && used < sizeof(cell.text) - 1; i++) {
        const char *hop = json_string_value(json_array_get(hops, i));
        used += (size_t)snprintf(cell.text + used, sizeof(cell.text) - used, "%s%s",
                                 i > 0 ? " " : "", hop != NULL ? hop : "*");
    }
    if (json_array_size(hops) == 0) {
        cell = text_format("–");
    }
    return cell;
}

static void put_path(struct libscols_table *table, const struct path_row *row)
{
    const json_t *out = json_object_get(row->path, "out"), *in = json_object_get(row->path, "in");
    const double a = owd_of(out, "owd_ns_p50"), b = owd_of(in, "owd_ns_p50");
    struct libscols_line *line = table_line(table);
    int64_t rtt;

    struct cell cell =
        text_format("%.30s/%.16s <> %.30s/%.16s", answer_host(row->answer),
                    field_string(row->edge, "local_name"), field_string(row->edge, "peer_host"),
                    field_string(row->edge, "peer_name"));
    table_put(line, 0, cell.text);
    cell = text_format("%s:%s", field_integer(row->path, "path").text,
                       field_integer(row->path, "port").text);
    table_put(line, 1, cell.text);
    table_put(line, 2, hops_of(row->path).text);
    table_put(line, 3, field_us(out, "owd_ns_p50").text);
    table_put(line, 4, field_us(out, "owd_ns_p99").text);
    table_put(line, 5, field_us(in, "owd_ns_p50").text);
    table_put(line, 6, field_us(in, "owd_ns_p99").text);
    table_put(line, 7, field_get(row->path, "rtt_ns_p50", &rtt) ? text_us(rtt / 2).text : "–");
    table_put(line, 8, isnan(a) || isnan(b) ? "–" : text_us((int64_t)(fabs(a - b) / 2 * 1e3)).text);
    table_put_status(line, 9, field_string(out, "state"));
    table_put_status(line, 10, field_string(in, "state"));
    cell = text_format("%s/%s", field_ppm(out, "loss_ppm").text, field_ppm(in, "loss_ppm").text);
    table_put(line, 11, cell.text);
}

static int print_paths(const struct map *map, const struct options *options,
                       json_t *const answers[], FILE *out)
{
    static const char *const titles[] = {"NIC PAIR", "PATH:PORT",    "HOPS",   ">OUT p50", ">p99",
                                         ">IN p50",  ">p99",         ">RTT/2", ">HIDDEN",  "OUT",
                                         "IN",       ">LOSS out/in", NULL};
    const size_t capacity = collect_paths(map, options, answers, NULL, 0);
    const size_t shown = options->paths || capacity < WORST_SHOWN ? capacity : WORST_SHOWN;
    struct path_row *rows = calloc(capacity + 1, sizeof(*rows));
    struct libscols_table *table = table_new(titles);
    int status = EXIT_WELL;

    if (rows == NULL || table == NULL) {
        free(rows);
        scols_unref_table(table);
        return EXIT_UNREACHABLE;
    }
    (void)collect_paths(map, options, answers, rows, capacity);
    qsort(rows, capacity, sizeof(*rows), compare_badness);
    for (size_t i = 0; i < shown; i++) {
        put_path(table, &rows[i]);
    }
    if (capacity > 0 && rows[0].badness >= 1e12) {
        status = EXIT_NOT_WELL;
    }
    fprintf(out,
            "\n%s %zu of %zu paths, worst first (HIDDEN: the error of RTT/2, in each direction)\n",
            options->paths ? "all" : "the", shown, capacity);
    table_show(table, out);
    free(rows);
    return status;
}

/* "12.3 us ±0.4 us" */
static struct cell owd_cell(const json_t *direction)
{
    int64_t owd, half;

    return field_get(direction, "owd_ns", &owd) && field_get(direction, "half_ns", &half)
               ? text_format("%s ±%s", text_us(owd).text, text_us(half).text)
               : text_format("–");
}

static void put_class(struct libscols_table *table, const json_t *answer, const json_t *pair,
                      const json_t *class)
{
    struct libscols_line *line = table_line(table);
    const bool job = strcmp(field_string(class, "class"), "job") == 0;
    int64_t tos = 0, sl = 0;

    table_put(line, 0,
              text_format("%.30s/%.16s <> %.30s/%.16s", answer_host(answer),
                          field_string(pair, "local_name"), field_string(pair, "peer_host"),
                          field_string(pair, "peer_name"))
                  .text);
    table_put(
        line, 1,
        text_format("%s/%s", field_string(pair, "device"), field_integer(pair, "port").text).text);
    if (job && field_get(class, "traffic_class", &tos)) {
        char level[16] = "";
        if (field_get(class, "service_level", &sl) && sl > 0) {
            snprintf(level, sizeof(level), ", SL %d", (int)sl);
        }
        table_put(line, 2, text_format("job (DSCP %lld%s)", (long long)tos >> 2, level).text);
    } else {
        table_put(line, 2, "reference");
    }
    table_put(line, 3, owd_cell(json_object_get(class, "out")).text);
    table_put(line, 4, owd_cell(json_object_get(class, "in")).text);
    table_put(
        line, 5,
        text_format("%s/%s", field_string(pair, "stamps"), field_string(pair, "peer_stamps")).text);
    table_put(
        line, 6,
        text_format("%s/%s", field_integer(class, "lost").text, field_integer(class, "asked").text)
            .text);
    table_put_status(line, 7,
                     job && json_is_true(json_object_get(pair, "class_slow")) ? "slow" : "ok");
}

/* Prints probes between queue pairs; nothing if no host has RDMA. False: a class is slower. */
static bool print_queue_pairs(const struct options *options, json_t *const answers[], FILE *out)
{
    static const char *const titles[] = {"RDMA PORT PAIR", "DEVICE", "CLASS", ">OUT", ">IN",
                                         "STAMPS",         ">LOST",  "STATE", NULL};
    struct libscols_table *table = NULL;
    bool well = true;

    for (size_t i = 0; i < options->target_count; i++) {
        const json_t *pairs = json_object_get(answers[i], "queue_pairs");
        for (size_t k = 0; k < json_array_size(pairs); k++) {
            const json_t *pair = json_array_get(pairs, k),
                         *classes = json_object_get(pair, "classes");
            table = table != NULL ? table : table_new(titles);
            for (size_t n = 0; table != NULL && n < json_array_size(classes); n++) {
                put_class(table, answers[i], pair, json_array_get(classes, n));
            }
            well = well && !json_is_true(json_object_get(pair, "class_slow"));
        }
    }
    if (table != NULL) {
        fputs("\nbetween queue pairs (±: the true delay may differ by so much)\n", out);
        table_show(table, out);
    }
    return well;
}

static int render_mesh(const struct options *options, json_t *const answers[], FILE *out)
{
    struct map *map = calloc(1, sizeof(*map));

    if (map == NULL) {
        return EXIT_UNREACHABLE;
    }
    map_fill(map, options, answers);
    if (map->count == 0) {
        fputs("no edge yet: is the peers list empty, or did the agent just start?\n", out);
        free(map);
        return EXIT_NOT_WELL;
    }
    print_map(map, options, out);
    int status = print_paths(map, options, answers, out);
    if (!print_queue_pairs(options, answers, out)) {
        status = status == EXIT_WELL ? EXIT_NOT_WELL : status;
    }
    free(map);
    return status;
}

int command_mesh(int argc, char *argv[])
{
    struct options options;
    if (measure_is_full(argc, argv)) {
        return measure_full(argc, argv);
    }
    int status = options_parse(&options, command_find("mesh"), argc, argv);

    if (status == 0 && !options.help) {
        status = show_run(&options, "mesh", render_mesh);
    }
    options_done(&options);
    return status;
}
