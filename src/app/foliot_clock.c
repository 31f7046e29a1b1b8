/* foliot_clock.c: `foliot clock`: the clocks as a table, and their bound over the last two minutes as a small plot. */
#include <math.h>
#include <string.h>

#include "app/foliot_show.h"
#include "app/foliot_text.h"

#define PLOT_ROWS    8
#define PLOT_COLUMNS 120

static void put_member(struct libscols_table *table, const json_t *answer, const json_t *member)
{
    struct libscols_line *line = table_line(table);
    struct cell cell;
    int64_t value;

    table_put(line, 0, answer_host(answer));
    table_put(line, 1, field_string(member, "name"));
    table_put(line, 2, field_string(member, "stamps"));
    table_put_status(line, 3, field_string(member, "status"));
    table_put(line, 4, field_string(member, "state"));
    table_put(line, 5, field_ns(member, "hard_ns").text);
    table_put(line, 6, field_ns(member, "statistical_ns").text);
    if (field_get(member, "rate_ppb", &value)) {
        cell = text_format("%+.3f", (double)value / 1e3);
        table_put(line, 7, cell.text);
    }
    cell = text_format("%s/%s", field_integer(member, "edges_live").text,
                       field_integer(member, "edges_chosen").text);
    table_put(line, 8, cell.text);
    table_put(line, 9, field_integer(member, "edges_parked").text);
    table_put(line, 10, field_ns(member, "scale_ns").text);
    table_put(line, 11,
              field_true(member, "core")    ? "core"
              : field_true(member, "tight") ? "tight"
                                            : "leaf");
    cell = text_format("%s", field_text(member, "guard").text);
    table_put(line, 12, cell.text);
}

struct plot {
    double low, high; /* decades shown */
    size_t columns;
    char grid[PLOT_ROWS][PLOT_COLUMNS];
};

static double sample(const json_t *point, const char *name)
{
    int64_t value;

    return field_get(point, name, &value) && value > 0 ? log10((double)value) : NAN;
}

static void plot_range(struct plot *plot, const json_t *history)
{
    plot->low = INFINITY;
    plot->high = -INFINITY;
    for (size_t i = 0; i < json_array_size(history); i++) {
        const json_t *point = json_array_get(history, i);
        const double values[] = {sample(point, "hard_ns"), sample(point, "statistical_ns")};
        for (int k = 0; k < 2; k++) {
            if (!isnan(values[k])) {
                plot->low = fmin(plot->low, values[k]);
                plot->high = fmax(plot->high, values[k]);
            }
        }
    }
    plot->low = floor(plot->low * 2) / 2;
    plot->high = fmax(ceil(plot->high * 2) / 2, plot->low + 1);
}

static void plot_point(struct plot *plot, size_t column, double value, char mark)
{
    if (!isnan(value)) {
        const double share = (value - plot->low) / (plot->high - plot->low);
        const int row = PLOT_ROWS - 1 - (int)lround(share * (PLOT_ROWS - 1));
        plot->grid[row < 0 ? 0 : row >= PLOT_ROWS ? PLOT_ROWS - 1 : row][column] = mark;
    }
}

/* The plot is logarithmic, because a bound spans five decades while it falls. h hard, s statistical, x not synchronised. */
static void print_plot(const json_t *history, FILE *out)
{
    const size_t count = json_array_size(history), room = (size_t)text_columns(out) - 12;
    struct plot plot;

    plot_range(&plot, history);
    if (count < 2 || !isfinite(plot.low)) {
        return;
    }
    plot.columns = count < PLOT_COLUMNS ? count : PLOT_COLUMNS;
    plot.columns = plot.columns < room ? plot.columns : room;
    memset(plot.grid, ' ', sizeof(plot.grid));
    for (size_t i = 0; i < plot.columns; i++) {
        const json_t *point = json_array_get(history, count - plot.columns + i);
        const char *status = field_string(point, "status");
        if (strcmp(status, "SYNCED") != 0) {
            plot.grid[PLOT_ROWS - 1][i] = 'x';
        }
        plot_point(&plot, i, sample(point, "hard_ns"), 'h');
        plot_point(&plot, i, sample(point, "statistical_ns"), 's');
    }
    fprintf(out,
            "\nbound of the host clock, the last %zu s (log; h = surely within, s = most likely "
            "within, "
            "x = not synchronised)\n",
            plot.columns);
    for (int row = 0; row < PLOT_ROWS; row++) {
        const double share = 1 - (double)row / (PLOT_ROWS - 1);
        const double value = pow(10, plot.low + share * (plot.high - plot.low));
        fprintf(out, "%10s |%.*s\n", text_ns((int64_t)value).text, (int)plot.columns,
                plot.grid[row]);
    }
}

static void print_edges(const json_t *member, FILE *out)
{
    static const char *const titles[] = {"NIC",    "PEER",      "ROLE",       ">ERROR",
                                         ">LEVEL", ">ALLOWS ±", ">RTT FLOOR", ">PURE",
                                         ">NOISE", "PEER IS",   NULL};
    const json_t *edges = json_object_get(member, "edges");
    struct libscols_table *table = table_new(titles);
    struct cell peer;

    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < json_array_size(edges); i++) {
        const json_t *edge = json_array_get(edges, i);
        struct libscols_line *line = table_line(table);
        peer = text_format("%.40s/%.40s", field_string(edge, "peer_host"),
                           field_string(edge, "peer_name"));
        table_put(line, 0, field_string(edge, "local_name"));
        table_put(line, 1, peer.text);
        table_put(line, 2, field_string(edge, "role"));
        table_put(line, 3, field_ns(edge, "error_ns").text);
        table_put(line, 4, field_ns(edge, "level_ns").text);
        table_put(line, 5, field_ns(edge, "bound_ns").text);
        table_put(line, 6, field_ns(edge, "rtt_floor_ns").text);
        table_put(line, 7, field_ppm(edge, "pure_ppm").text);
        table_put(line, 8, field_ns(edge, "noise_ns").text);
        table_put_status(line, 9, field_string(edge, "peer_state"));
    }
    fprintf(
        out,
        "\nedges of clock %s: the peer's timeline minus this host's, as each edge measures it\n",
        field_string(member, "name"));
    table_show(table, out);
}

static int render_clock(const struct options *options, json_t *const answers[], FILE *out)
{
    static const char *const titles[] = {"HOST",    "CLOCK",     "STAMPS",    "STATUS", "STATE",
                                         ">HARD ±", ">LIKELY ±", ">RATE ppm", ">EDGES", ">PARKED",
                                         ">SCALE",  "BOUND",     "GUARD",     NULL};
    struct libscols_table *table = table_new(titles);
    int status = EXIT_WELL;

    if (table == NULL) {
        return EXIT_UNREACHABLE;
    }
    for (size_t i = 0; i < options->target_count; i++) {
        const json_t *members = json_object_get(answers[i], "members");
        for (size_t k = 0; k < json_array_size(members); k++) {
            put_member(table, answers[i], json_array_get(members, k));
        }
        if (strcmp(field_string(answers[i], "clock_status"), "SYNCED") != 0) {
            status = EXIT_NOT_WELL;
        }
    }
    table_show(table, out);
    if (options->target_count == 1) {
        const json_t *members = json_object_get(answers[0], "members");
        for (size_t k = 0; k < json_array_size(members); k++) {
            const json_t *member = json_array_get(members, k);
            if (*field_string(member, "why") != '\0') {
                fprintf(out, "%s: %s\n", field_string(member, "name"), field_string(member, "why"));
            }
        }
        print_plot(json_object_get(answers[0], "history"), out);
        for (size_t k = 0; k < json_array_size(members); k++) {
            if (json_array_size(json_object_get(json_array_get(members, k), "edges")) > 0) {
                print_edges(json_array_get(members, k), out);
            }
        }
    }
    return status;
}

int command_clock(int argc, char *argv[])
{
    struct options options;
    int status = options_parse(&options, command_find("clock"), argc, argv);

    if (status == 0 && !options.help) {
        status = show_run(&options, "clock", render_clock);
    }
    options_done(&options);
    return status;
}
