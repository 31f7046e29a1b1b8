/* foliot_doctor.c: `foliot doctor` and `foliot selftest clock`: checks this host's setup, and whether the clock's bound is
 * honest.
 *
 * Doctor's own checks work without an agent, so that they can report why there is none. The agent's answer adds what only the
 * agent can measure. Each check prints what it expected, what it found and what to do. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/foliot_client.h"
#include "app/foliot_foreign.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"
#include "platform/sysfs/sysfs.h"
#include "platform/timestamp/source.h"

#define CONFIG_PATH "/etc/foliot/agent.yaml"

static void add_check(json_t *checks, const char *check, const char *result, const char *expected,
                      const char *found, const char *advice)
{
    json_t *entry = json_pack("{s:s, s:s, s:s, s:s, s:s}", "check", check, "result", result,
                              "expected", expected, "found", found, "advice", advice);

    if (entry != NULL) {
        json_array_append_new(checks, entry);
    }
}

static void check_clocksource(json_t *checks)
{
    char name[64] = "";
    const bool good =
        sysfs_text(NULL, "/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
                   sizeof(name)) > 0 &&
        !clocksource_is_slow(name);

    add_check(
        checks, "clocksource", good ? "ok" : "warn", "tsc (arch_sys_counter on arm64)",
        name[0] != '\0' ? name : "unknown",
        good
            ? ""
            : "reading this clock is slow or coarse: dmesg has the reason why the kernel left tsc");
}

/* An agent that answers has a configuration, perhaps in another file. */
static void check_config(json_t *checks, bool answers)
{
    char found[256];
    struct stat status;

    if (stat(CONFIG_PATH, &status) < 0) {
        snprintf(found, sizeof(found), CONFIG_PATH ": %s", strerror(errno));
        add_check(checks, "configuration", answers ? "skip" : "warn", CONFIG_PATH, found,
                  answers ? ""
                          : "write it (man foliot-agent.yaml) or start the agent with --config");
        return;
    }
    add_check(checks, "configuration", "ok", CONFIG_PATH, "there", "");
}

static void check_agent_found(json_t *checks, const struct target *target, int r)
{
    char found[256];

    snprintf(found, sizeof(found), "%.120s: %.100s", target->path,
             r == 0 ? "answers" : strerror(-r));
    add_check(checks, "agent", r == 0 ? "ok" : "fail", "an agent that answers", found,
              r == 0         ? ""
              : r == -EACCES ? "run as root or as a member of group foliot"
                             : "systemctl start foliot-agent; journalctl -u foliot-agent has the "
                               "reason for its end");
}

/* Checks only whether an interface is up. The agent checks whether events of NICs come late, and whether a NIC's queue hides a
 * standing queue. */
static void check_interfaces(json_t *checks)
{
    struct if_nameindex *interfaces = if_nameindex();
    char path[SYSFS_PATH_SIZE], state[32], found[64];
    int up = 0, all = 0;

    for (const struct if_nameindex *i = interfaces; i != NULL && i->if_index != 0; i++) {
        sysfs_path(path, "/sys/class/net/%s/operstate", i->if_name);
        if (strcmp(i->if_name, "lo") != 0 && sysfs_text(NULL, path, state, sizeof(state)) > 0) {
            all++;
            up += strcmp(state, "up") == 0;
        }
    }
    if (interfaces != NULL) {
        if_freenameindex(interfaces);
    }
    snprintf(found, sizeof(found), "%d of %d up", up, all);
    add_check(checks, "interfaces", up > 0 ? "ok" : "warn", "a network interface that is up", found,
              up > 0 ? "" : "see ip link");
}

static void check_versions(json_t *checks, const json_t *answer)
{
    const char *version = field_string(answer, "agent_version");
    char found[128];

    if (*version == '\0') {
        return;
    }
    snprintf(found, sizeof(found), "agent %.50s, foliot " FOLIOT_VERSION, version);
    add_check(checks, "version", strcmp(version, FOLIOT_VERSION) == 0 ? "ok" : "warn",
              "agent and command of one version", found,
              strcmp(version, FOLIOT_VERSION) == 0
                  ? ""
                  : "systemctl restart foliot-agent after an upgrade");
}

static bool is_good(const json_t *check)
{
    const char *result = field_string(check, "result");

    return strcmp(result, "ok") == 0 || strcmp(result, "skip") == 0;
}

/* A warning counts, as in `foliot audit`. */
static int status_of(const json_t *checks)
{
    for (size_t i = 0; i < json_array_size(checks); i++) {
        if (!is_good(json_array_get(checks, i))) {
            return EXIT_NOT_WELL;
        }
    }
    return EXIT_WELL;
}

static void print_checks(const json_t *checks, const char *host, FILE *out)
{
    if (*host != '\0') {
        fprintf(out, "%s%s%s\n", colour_begin(out, COLOUR_BOLD), host, colour_end(out));
    }
    for (size_t i = 0; i < json_array_size(checks); i++) {
        const json_t *check = json_array_get(checks, i);
        const char *result = field_string(check, "result"), *advice = field_string(check, "advice");
        fprintf(out, "%s%-4s%s  %-14s %s", colour_begin(out, colour_of_status(result)), result,
                colour_end(out), field_string(check, "check"), field_string(check, "found"));
        if (!is_good(check)) {
            fprintf(out, " (expected: %s)\n      %s", field_string(check, "expected"), advice);
        }
        fputc('\n', out);
    }
}

static int doctor_one(const struct options *options, const struct target *target, bool local)
{
    json_t *status_answer = NULL, *answer = NULL, *checks = json_array(), *versions = json_array(),
           *whole;
    int r = client_ask(target->path, "status", options->json, &status_answer);

    if (r == 0) {
        check_versions(versions, status_answer);
        r = client_ask(target->path, "doctor", options->json, &answer);
    }
    if (local) {
        check_config(checks, r == 0);
        check_interfaces(checks);
    }
    if (r != 0) { /* an agent has looked itself */
        check_clocksource(checks);
    }
    check_agent_found(checks, target, r);
    json_array_extend(checks, versions);
    json_array_extend(checks, json_object_get(answer, "checks"));
    const int status = status_of(checks);
    if (options->json) {
        whole = answer != NULL ? json_copy(answer)
                               : json_pack("{s:i, s:s}", "version", 1, "kind", "doctor");
        json_object_set(whole, "checks", checks);
        foreign_print(whole, stdout);
        json_decref(whole);
    } else {
        print_checks(checks, r == 0 ? answer_host(status_answer) : target->name, stdout);
    }
    json_decref(versions);
    json_decref(checks);
    json_decref(answer);
    json_decref(status_answer);
    return status;
}

int command_doctor(int argc, char *argv[])
{
    struct options options;
    int status = options_parse(&options, command_find("doctor"), argc, argv);

    for (size_t i = 0; status != EXIT_USAGE && !options.help && i < options.target_count; i++) {
        const int one = doctor_one(&options, &options.targets[i], options.lab == NULL);
        status = one > status ? one : status;
    }
    options_done(&options);
    return status;
}

static void print_witnesses(const json_t *answer, FILE *out)
{
    static const char *const titles[] = {">NIC",     "PEER",     ">MEAN ERROR",
                                         ">LARGEST", ">SAMPLES", NULL};
    const json_t *witnesses = json_object_get(answer, "witness");
    struct libscols_table *table = table_new(titles);
    struct cell peer;

    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < json_array_size(witnesses); i++) {
        const json_t *witness = json_array_get(witnesses, i);
        struct libscols_line *line = table_line(table);
        peer = text_format("%.40s/%.20s", field_string(witness, "peer_host"),
                           field_integer(witness, "peer_nic").text);
        table_put(line, 0, field_integer(witness, "local_nic").text);
        table_put(line, 1, peer.text);
        table_put(line, 2, field_ns(witness, "error_ns_mean").text);
        table_put(line, 3, field_ns(witness, "error_ns_max").text);
        table_put(line, 4, field_integer(witness, "samples").text);
    }
    table_show(table, out);
}

static int render_selftest(const struct options *options, json_t *const answers[], FILE *out)
{
    int status = EXIT_WELL;

    for (size_t i = 0; i < options->target_count; i++) {
        const json_t *answer = answers[i], *triangles = json_object_get(answer, "triangles");
        const json_t *nics = json_object_get(answer, "nics");
        const char *verdict = field_string(answer, "verdict");
        fprintf(out, "%s: the statistical bound of ± %s is %s%s%s: %s\n", answer_host(answer),
                field_ns(answer, "statistical_ns").text,
                colour_begin(out, colour_of_status(verdict)), verdict, colour_end(out),
                field_text(answer, "why").text);
        fputs("edges measured but not used:\n", out);
        print_witnesses(answer, out);
        fprintf(out, "triangles: %s, residual %s median, %s largest\n",
                field_integer(triangles, "count").text, field_ns(triangles, "residual_ns_p50").text,
                field_ns(triangles, "residual_ns_max").text);
        for (size_t k = 0; k < json_array_size(nics); k++) {
            const json_t *nic = json_array_get(nics, k);
            fprintf(out,
                    "NIC %s: %s stamps, noise %s, %s pure pairs, %s stamps missing, bracket %s\n",
                    field_string(nic, "name"), field_string(nic, "stamps"),
                    field_ns(nic, "sigma_ns").text, field_ppm(nic, "pure_ppm").text,
                    field_integer(nic, "skipped_stamps").text, field_ns(nic, "bracket_ns").text);
        }
        if (strcmp(verdict, "honest") != 0) {
            status = EXIT_NOT_WELL;
        }
    }
    fputs("No such test can find an asymmetry that is the same for all edges of a host.\n", out);
    return status;
}

int command_selftest(int argc, char *argv[])
{
    const struct command *command = command_find("selftest");
    struct options options;

    /* The word takes the place of the command's name, because --help reads it. */
    if (argc >= 2 && strcmp(argv[1], "clock") == 0) {
        argc--;
        argv++;
    } else if (argc >= 2 && strcmp(argv[1], "rdma") == 0) {
        return selftest_rdma(argc - 1, argv + 1);
    } else if (argc < 2 || strcmp(argv[1], "--help") != 0) {
        return command_wrong_words("selftest", argc - 1, argv + 1);
    }
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--nics", 6) == 0) {
            return selftest_nics(argc, argv);
        }
    }
    int status = options_parse(&options, command, argc, argv);
    if (status == 0 && !options.help) {
        status = show_run(&options, "selftest", render_selftest);
    }
    options_done(&options);
    return status;
}
