/* foliot_links.c: `foliot links`: ports of NICs, their flaps and errors; with --watch each event when it happens. */
#include <string.h>

#include "app/foliot_client.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"

static const char *state_of(const json_t *nic)
{
    if (!field_true(nic, "present")) {
        return "gone";
    }
    if (!field_true(nic, "carrier")) {
        return "down";
    }
    return field_true(nic, "damped") ? "flapping" : "up";
}

static void put_nic(struct libscols_table *table, const json_t *answer, const json_t *nic)
{
    struct libscols_line *line = table_line(table);
    int64_t now, since, value;

    table_put(line, 0, answer_host(answer));
    table_put(line, 1, field_integer(nic, "nic").text);
    table_put(line, 2, field_string(nic, "name"));
    table_put_status(line, 3, state_of(nic));
    if (field_get(answer, "now_mono_ns", &now) && field_get(nic, "since_mono_ns", &since)) {
        table_put(line, 4, text_age(now - since).text);
    }
    table_put(line, 5, field_get(nic, "speed_bps", &value) ? text_rate(value).text : "–");
    table_put(line, 6, field_string(nic, "stamps"));
    table_put(line, 7, field_integer(nic, "carrier_down_count").text);
    table_put(line, 8, field_integer(nic, "flaps_minute").text);
    table_put(line, 9, field_integer(nic, "flaps_hour").text);
    table_put(line, 10, field_integer(nic, "flaps_day").text);
    struct cell cell = text_format("%s/%s", field_integer(nic, "rx_errors").text,
                                   field_integer(nic, "tx_errors").text);
    table_put(line, 11, cell.text);
    cell = text_format("%s/%s", field_integer(nic, "rx_dropped").text,
                       field_integer(nic, "tx_dropped").text);
    table_put(line, 12, cell.text);
    cell = text_format("%s %s", field_string(nic, "switch"), field_string(nic, "switch_port"));
    table_put(line, 13, strcmp(cell.text, " ") != 0 ? cell.text : "–");
}

/* The first fault of the port, else its state. */
static const char *verbs_state(const json_t *port)
{
    const json_t *first = json_array_get(json_object_get(port, "troubles"), 0);

    return first != NULL ? field_string(first, "trouble") : field_string(port, "state");
}

static void put_verbs_port(struct libscols_table *table, const json_t *answer, const json_t *port)
{
    struct libscols_line *line = table_line(table);
    int64_t now, since, value;

    table_put(line, 0, answer_host(answer));
    table_put(
        line, 1,
        text_format("%s/%s", field_string(port, "device"), field_integer(port, "port").text).text);
    table_put(line, 2, field_string(port, "interface"));
    table_put(line, 3, field_string(port, "link"));
    table_put_status(line, 4, verbs_state(port));
    if (field_get(answer, "now_mono_ns", &now) && field_get(port, "since_mono_ns", &since)) {
        table_put(line, 5, text_age(now - since).text);
    }
    table_put(line, 6, field_get(port, "rate_bps", &value) ? text_rate(value).text : "–");
    table_put(line, 7, field_integer(port, "mtu").text);
    table_put(line, 8,
              field_get(port, "lid", &value) ? text_format("LID %lld", (long long)value).text
              : field_get(port, "gid_index", &value)
                  ? text_format("%lld: %s", (long long)value, field_string(port, "gid")).text
                  : "–");
    table_put(line, 9, field_integer(port, "downs").text);
    table_put(line, 10, field_integer(port, "cable_errors").text);
}

/* Prints nothing if no host has RDMA. False: a port isn't well. */
static bool show_verbs_ports(const struct options *options, json_t *const answers[], FILE *out)
{
    static const char *const titles[] = {"HOST",       ">PORT",  "INTERFACE",  "LINK",
                                         "STATE",      ">SINCE", ">RATE",      ">MTU",
                                         "GID TO USE", ">DOWNS", ">CABLE ERR", NULL};
    struct libscols_table *table = NULL;
    bool well = true;

    for (size_t i = 0; i < options->target_count; i++) {
        const json_t *ports = json_object_get(answers[i], "verbs_ports");
        for (size_t k = 0; k < json_array_size(ports); k++) {
            const json_t *port = json_array_get(ports, k);
            table = table != NULL ? table : table_new(titles);
            if (table != NULL) {
                put_verbs_port(table, answers[i], port);
            }
            well = well && json_array_size(json_object_get(port, "troubles")) == 0;
        }
    }
    if (table != NULL) {
        table_show(table, out);
    }
    for (size_t i = 0; i < options->target_count && table != NULL; i++) {
        const json_t *ports = json_object_get(answers[i], "verbs_ports");
        for (size_t k = 0; k < json_array_size(ports); k++) {
            const json_t *port = json_array_get(ports, k),
                         *troubles = json_object_get(port, "troubles");
            for (size_t m = 0; m < json_array_size(troubles); m++) {
                const json_t *trouble = json_array_get(troubles, m);
                fprintf(out, "%s %s/%s: %s: %s\n", answer_host(answers[i]),
                        field_string(port, "device"), field_integer(port, "port").text,
                        field_string(trouble, "text"), field_string(trouble, "advice"));
            }
        }
    }
    return well;
}

static void print_event(const json_t *event, FILE *out)
{
    const char *what = field_string(event, "event");
    int64_t at;

    fprintf(out, "%s  %s%-8s%s %s\n", field_get(event, "at_utc_ns", &at) ? text_time(at).text : "–",
            colour_begin(out, colour_of_status(what)), what, colour_end(out),
            field_string(event, "text"));
}

static int render_links(const struct options *options, json_t *const answers[], FILE *out)
{
    static const char *const titles[] = {"HOST",        ">NIC",        "NAME",   "STATE",
                                         ">SINCE",      ">SPEED",      "STAMPS", ">DOWNS",
                                         ">FLAPS/MIN",  ">/HOUR",      ">/DAY",  ">ERR rx/tx",
                                         ">DROP rx/tx", "SWITCH PORT", NULL};
    struct libscols_table *table = table_new(titles);
    int status = EXIT_WELL;

    if (table == NULL) {
        return EXIT_UNREACHABLE;
    }
    for (size_t i = 0; i < options->target_count; i++) {
        const json_t *nics = json_object_get(answers[i], "nics");
        for (size_t k = 0; k < json_array_size(nics); k++) {
            const json_t *nic = json_array_get(nics, k);
            put_nic(table, answers[i], nic);
            if (strcmp(state_of(nic), "up") != 0) {
                status = EXIT_NOT_WELL;
            }
        }
    }
    table_show(table, out);
    if (!show_verbs_ports(options, answers, out)) {
        status = EXIT_NOT_WELL;
    }
    for (size_t i = 0; i < options->target_count; i++) {
        const json_t *events = json_object_get(answers[i], "events");
        const size_t count = json_array_size(events), shown = options->target_count > 1 ? 3 : 10;
        for (size_t k = count > shown ? count - shown : 0; k < count; k++) {
            print_event(json_array_get(events, k), out);
        }
    }
    return status;
}

/* Prints the table once, then one line for each event. */
static void print_change(const struct options *options, json_t *answer, FILE *out)
{
    if (strcmp(field_string(answer, "kind"), "link-event") == 0) {
        print_event(answer, out);
    } else {
        (void)render_links(options, &answer, out);
    }
}

int command_links(int argc, char *argv[])
{
    struct options options;
    int status = options_parse(&options, command_find("links"), argc, argv);

    if (status == 0 && !options.help) {
        status = options.watch && options.target_count == 1
                     ? show_follow(&options, "links", print_change)
                     : show_run(&options, "links", render_links);
    }
    options_done(&options);
    return status;
}
