/* foliot_status.c: `foliot status` and `foliot findings`: this host's health, and its faults. */
#include <inttypes.h>
#include <string.h>

#include "app/foliot_api.h"
#include "app/foliot_client.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"

static void print_finding(const json_t *finding, FILE *out)
{
    const bool open = field_true(finding, "open");
    const char *fault = json_string_value(json_object_get(finding, "fault"));
    int64_t since;

    fprintf(out, "%s%s%s  %s\n", colour_begin(out, open ? COLOUR_BAD : COLOUR_DIM),
            open ? "OPEN  " : "closed", colour_end(out), field_string(finding, "text"));
    if (field_get(finding, "since_fleet_ns", &since)) {
        fprintf(out, "        %sfleet time %" PRId64 "%s%s%s\n", colour_begin(out, COLOUR_DIM),
                since, fault != NULL ? ", fault " : "", fault != NULL ? fault : "",
                colour_end(out));
    }
}

static void print_controller(FILE *out, const json_t *c)
{
    const char *trouble = json_string_value(json_object_get(c, "trouble"));
    if (json_is_object(c)) {
        fprintf(out, "  control   %s: %s%s%s; %s reports wait\n",
                json_string_value(json_object_get(c, "address")),
                json_is_true(json_object_get(c, "connected")) ? "connected" : "not connected",
                trouble != NULL ? ", " : "", trouble != NULL ? trouble : "",
                field_integer(c, "reports_waiting").text);
    }
}

static void status_of_one(const json_t *answer, FILE *out)
{
    const json_t *clock = json_object_get(answer, "clock"), *mesh = json_object_get(answer, "mesh");
    const json_t *links = json_object_get(answer, "links"), *cost = json_object_get(answer, "cost");
    const json_t *config = json_object_get(answer, "config"),
                 *findings = json_object_get(answer, "findings");
    const char *status = field_string(clock, "status"), *why = field_string(clock, "why");
    const size_t open = json_array_size(findings);
    int64_t uptime = 0;

    (void)field_get(answer, "uptime_ns", &uptime);
    fprintf(out, "%s%s%s  foliot-agent %s, pid %s, up %s\n", colour_begin(out, COLOUR_BOLD),
            answer_host(answer), colour_end(out), field_string(answer, "agent_version"),
            field_integer(answer, "agent_pid").text, text_age(uptime).text);
    fprintf(out, "  clock     %s%s%s", colour_begin(out, colour_of_status(status)), status,
            colour_end(out));
    fprintf(out, "  ± %s surely, ± %s most likely; %s of %s edges, %s parked%s%s\n",
            field_ns(clock, "hard_ns").text, field_ns(clock, "statistical_ns").text,
            field_integer(clock, "edges_live").text, field_integer(clock, "edges_chosen").text,
            field_integer(clock, "edges_parked").text, *why != '\0' ? "; " : "", why);
    fprintf(out, "  timeline  %s, epoch %s, UTC %s\n", field_text(clock, "timeline").text,
            field_integer(clock, "epoch").text,
            field_true(clock, "utc_known") ? "known" : "unknown");
    fprintf(out, "  mesh      %s peers, %s paths, %s bad; coverage %s\n",
            field_integer(mesh, "peers").text, field_integer(mesh, "paths").text,
            field_integer(mesh, "paths_bad").text, field_text(mesh, "coverage").text);
    fprintf(out, "  links     %s of %s up, %s flaps within the past hour\n",
            field_integer(links, "nics_up").text, field_integer(links, "nics").text,
            field_integer(links, "flaps_hour").text);
    print_controller(out, json_object_get(answer, "controller"));
    fprintf(out, "  cost      %s of a core, %.1f MiB; %s packets out, %s in, %s bad\n",
            field_ppm(cost, "cpu_ppm").text,
            (double)json_integer_value(json_object_get(cost, "memory_bytes")) / 1048576.0,
            field_integer(cost, "packets_sent").text, field_integer(cost, "packets_received").text,
            field_integer(cost, "packets_bad").text);
    if (*field_string(config, "error") != '\0') {
        fprintf(out, "  config    %s%s%s: refused; the old configuration stays\n",
                colour_begin(out, COLOUR_BAD), field_string(config, "error"), colour_end(out));
    }
    if (open == 0) {
        fprintf(out, "  findings  %snone open%s\n", colour_begin(out, COLOUR_GOOD),
                colour_end(out));
        return;
    }
    fprintf(out, "  findings  %s%zu open%s\n", colour_begin(out, COLOUR_BAD), open,
            colour_end(out));
    for (size_t i = 0; i < open; i++) {
        fputs("  ", out);
        print_finding(json_array_get(findings, i), out);
    }
}

static bool is_well(const json_t *answer)
{
    return strcmp(field_string(json_object_get(answer, "clock"), "status"), "SYNCED") == 0 &&
           json_array_size(json_object_get(answer, "findings")) == 0;
}

static void put_host(struct libscols_table *table, const char *host, const json_t *answer)
{
    const json_t *clock = json_object_get(answer, "clock"), *mesh = json_object_get(answer, "mesh");
    const json_t *links = json_object_get(answer, "links"), *cost = json_object_get(answer, "cost");
    struct libscols_line *line = table_line(table);

    table_put(line, 0, host);
    if (answer == NULL) {
        table_put_status(line, 1, "gone");
        return;
    }
    table_put_status(line, 1, field_string(clock, "status"));
    table_put(line, 2, field_ns(clock, "hard_ns").text);
    table_put(line, 3, field_ns(clock, "statistical_ns").text);
    table_put(line, 4, field_integer(clock, "edges_live").text);
    table_put(line, 5, field_integer(mesh, "paths").text);
    table_put(line, 6, field_integer(mesh, "paths_bad").text);
    table_put(line, 7, field_integer(links, "nics_up").text);
    table_put(line, 8, field_integer(links, "flaps_hour").text);
    table_put(line, 9, field_ppm(cost, "cpu_ppm").text);
    struct cell open = text_format("%zu", json_array_size(json_object_get(answer, "findings")));
    table_put(line, 10, open.text);
}

static int status_of_fleet(const struct options *options, json_t *const answers[], FILE *out)
{
    static const char *const titles[] = {"HOST",     ">CLOCK", ">HARD ±", ">LIKELY ±",
                                         ">EDGES",   ">PATHS", ">BAD",    ">UP",
                                         ">FLAPS/H", ">CPU",   ">OPEN",   NULL};
    struct libscols_table *table = table_new(titles);
    int status = EXIT_WELL;

    if (table == NULL) {
        return EXIT_UNREACHABLE;
    }
    for (size_t i = 0; i < options->target_count; i++) {
        put_host(table, options->targets[i].name, answers[i]);
        if (answers[i] == NULL || !is_well(answers[i])) {
            status = EXIT_NOT_WELL;
        }
    }
    table_show(table, out);
    for (size_t i = 0; i < options->target_count; i++) {
        const json_t *findings = json_object_get(answers[i], "findings");
        for (size_t k = 0; k < json_array_size(findings); k++) {
            print_finding(json_array_get(findings, k), out);
        }
    }
    return status;
}

static int render_status(const struct options *options, json_t *const answers[], FILE *out)
{
    if (options->target_count > 1) {
        return status_of_fleet(options, answers, out);
    }
    status_of_one(answers[0], out);
    return is_well(answers[0]) ? EXIT_WELL : EXIT_NOT_WELL;
}

int command_status(int argc, char *argv[])
{
    struct options options;
    int status = options_parse(&options, command_find("status"), argc, argv);

    if (status == 0 && !options.help) {
        status = show_run(&options, "status", render_status);
    }
    options_done(&options);
    return status;
}

static int render_findings(const struct options *options, json_t *const answers[], FILE *out)
{
    size_t open = 0, all = 0;

    for (size_t i = 0; i < options->target_count; i++) {
        const json_t *findings = json_object_get(answers[i], "findings");
        for (size_t k = 0; k < json_array_size(findings); k++) {
            const json_t *finding = json_array_get(findings, k);
            open += field_true(finding, "open");
            all++;
            print_finding(finding, out);
        }
    }
    if (all == 0) {
        fprintf(out, "%snothing found%s\n", colour_begin(out, COLOUR_GOOD), colour_end(out));
    }
    return open == 0 ? EXIT_WELL : EXIT_NOT_WELL;
}

/* Prints a line when a finding is raised, changed or closed. */
static void print_change(const struct options *options, json_t *answer, FILE *out)
{
    (void)options;
    if (strcmp(field_string(answer, "kind"), "finding") == 0) {
        print_finding(answer, out);
    }
}

/* Prints all open findings of the fleet, from the controller. */
static int findings_of_fleet(int argc, char *argv[])
{
    struct api api;
    size_t i;
    json_t *finding;

    api_init(&api, "findings");
    const int r = api_parse(&api, NULL, argc, argv);
    if (r != 0) {
        return r == COMMAND_HELPED ? EXIT_WELL : r;
    }
    int status = api_ask(&api, "GET", "/api/v1/findings?open=true&limit=1000", NULL);
    if (status == EXIT_WELL && api.json) {
        api_print(&api);
    } else if (status == EXIT_WELL) {
        const json_t *items = json_object_get(api.answer, "items");
        json_array_foreach(items, i, finding)
        {
            printf("%sOPEN%s  %s: %s\n", colour_begin(stdout, COLOUR_BAD), colour_end(stdout),
                   api_text(finding, "host"),
                   field_string(json_object_get(finding, "detail"), "text"));
        }
        if (json_array_size(items) == 0) {
            printf("%snothing found%s\n", colour_begin(stdout, COLOUR_GOOD), colour_end(stdout));
        }
        status = json_array_size(items) == 0 ? EXIT_WELL : EXIT_NOT_WELL;
    }
    api_done(&api);
    return status;
}

int command_findings(int argc, char *argv[])
{
    struct options options;

    if (options_mean_fleet(argc, argv, false)) {
        return findings_of_fleet(argc, argv);
    }
    int status = options_parse(&options, command_find("findings"), argc, argv);

    if (status == 0 && !options.help) {
        status = options.watch && options.target_count == 1
                     ? show_follow(&options, "findings", print_change)
                     : show_run(&options, "findings", render_findings);
    }
    options_done(&options);
    return status;
}
