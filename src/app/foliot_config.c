/* foliot_config.c: `foliot config`: shows, compares and applies the fleet's configuration, tries it on some hosts first, and
 * takes it back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/foliot_api.h"
#include "app/foliot_foreign.h"
#include "app/foliot_text.h"
#include "base/time.h"

enum { TEXT_MAX = 16384 };

struct config_call {
    struct api api;
    const char *canary, *watch, *why;
    bool wait;
};

/* "-": standard input. The caller frees the text. NULL: the error was printed. */
static char *read_file(const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *text = calloc(1, TEXT_MAX + 2);
    size_t size = 0;
    if (file == NULL || text == NULL) {
        fprintf(stderr, "foliot config: %s: expected a readable file, found: %s\n", path,
                strerror(errno));
        free(text);
        return NULL;
    }
    size = fread(text, 1, TEXT_MAX + 1, file);
    if (file != stdin) {
        fclose(file);
    }
    if (size > TEXT_MAX) {
        fprintf(stderr, "foliot config: %s: expected at most %d bytes, found more\n", path,
                TEXT_MAX);
        free(text);
        return NULL;
    }
    return text;
}

/* ---- show and compare ---- */

static void print_version(const json_t *v, const char *what)
{
    printf("# version %s, %s: by %s at %s%s%s; runs on %s hosts\n",
           api_number_text(v, "version").text, what, api_text(v, "who"),
           field_time(v, "at_utc_ns").text, json_is_string(json_object_get(v, "why")) ? ": " : "",
           json_is_string(json_object_get(v, "why")) ? api_text(v, "why") : "",
           api_number_text(v, "hosts").text);
}

static void print_trial(const json_t *trial)
{
    size_t i;
    json_t *host;
    print_version(json_object_get(trial, "version"), "being tried");
    printf("#   until %s by", field_time(trial, "until_utc_ns").text);
    json_array_foreach(json_object_get(trial, "hosts"), i, host)
    {
        if (i < 8) {
            printf(" %s", json_string_value(host) != NULL ? json_string_value(host) : "?");
        }
    }
    printf("%s; %s of %zu run it\n", i > 8 ? " …" : "", api_number_text(trial, "confirmed").text,
           json_array_size(json_object_get(trial, "hosts")));
}

static int show(struct config_call *c)
{
    const int status = api_ask(&c->api, "GET", "/api/v1/config", NULL);
    const json_t *a = c->api.answer, *active = json_object_get(a, "active"),
                 *trial = json_object_get(a, "trial");
    if (status != EXIT_WELL) {
        return status;
    }
    if (c->api.json) {
        api_print(&c->api);
        return status;
    }
    if (json_is_true(json_object_get(a, "observe"))) {
        printf("# OBSERVE since %s by %s: jobs only measure, on %s hosts so far\n",
               field_time(a, "observe_since_utc_ns").text, api_text(a, "observe_by"),
               api_number_text(a, "hosts_observing").text);
    }
    if (json_is_object(trial)) {
        print_trial(trial);
    }
    if (json_is_true(json_object_get(a, "rolled_back"))) {
        puts("# the controller took the last version back: see foliot config history");
    }
    printf("# %s hosts do not have it yet, %s refuse it\n", api_number_text(a, "hosts_behind").text,
           api_number_text(a, "hosts_refusing").text);
    if (json_is_object(active)) {
        print_version(active, "in force");
        fputs(api_text(active, "text"), stdout);
    } else {
        puts("# no configuration has been applied: each host uses its own file");
    }
    return status;
}

static int history(struct config_call *c)
{
    const int status = api_ask(&c->api, "GET", "/api/v1/config/versions", NULL);
    size_t i;
    json_t *v;
    if (status != EXIT_WELL || c->api.json) {
        if (status == EXIT_WELL) {
            api_print(&c->api);
        }
        return status;
    }
    printf("%-8s %-10s %-30s %-16s %6s  %s\n", "VERSION", "STATE", "AT", "BY", "HOSTS", "WHY");
    json_array_foreach(json_object_get(c->api.answer, "items"), i, v)
    {
        const bool ended = json_is_string(json_object_get(v, "ended_why"));
        printf("%-8s %-10s %-30s %-16s %6s  %s%s%s\n", api_number_text(v, "version").text,
               api_text(v, "state"), field_time(v, "at_utc_ns").text, api_text(v, "who"),
               api_number_text(v, "hosts").text, api_text(v, "why"), ended ? "; " : "",
               ended ? api_text(v, "ended_why") : "");
    }
    return status;
}

static void print_value(const json_t *v)
{
    if (json_is_integer(v)) {
        printf("%lld", (long long)json_integer_value(v));
    } else {
        fputs(json_is_string(v) ? json_string_value(v) : "(as each host has it)", stdout);
    }
}

/* Exit status 1: the file would change something. */
static int diff(struct config_call *c, const char *path)
{
    char *text = read_file(path);
    size_t i;
    json_t *change;
    if (text == NULL) {
        return EXIT_UNREACHABLE;
    }
    int status = api_ask_json(&c->api, "POST", "/api/v1/config",
                              json_pack("{s:s, s:b}", "text", text, "dry_run", 1));
    free(text);
    if (status != EXIT_WELL) {
        return status;
    }
    const json_t *changes = json_object_get(c->api.answer, "changes");
    if (c->api.json) {
        api_print(&c->api);
    } else {
        json_array_foreach(changes, i, change)
        {
            printf("%-12s ", api_text(change, "key"));
            print_value(json_object_get(change, "from"));
            fputs(" -> ", stdout);
            print_value(json_object_get(change, "to"));
            putchar('\n');
        }
    }
    return json_array_size(changes) > 0 ? EXIT_NOT_WELL : EXIT_WELL;
}

/* ---- apply and take back ---- */

/* Reads "5%", "5"; "10min", "30s", "30". -1: another form. */
static double number(const char *text, const char *const *units, const double *factors)
{
    char *end = NULL;
    const double value = strtod(text, &end);
    for (size_t i = 0; units[i] != NULL; i++) {
        if (end != text && strcmp(end, units[i]) == 0 && value >= 0) {
            return value * factors[i];
        }
    }
    return -1;
}

static int say_applied(struct config_call *c)
{
    const json_t *trial = json_object_get(c->api.answer, "trial");
    if (c->api.json) {
        api_print(&c->api);
    } else if (json_is_object(trial)) {
        printf(
            "version %s is on trial on %zu hosts until %s; if they stay well, all hosts get it\n",
            api_number_text(json_object_get(trial, "version"), "version").text,
            json_array_size(json_object_get(trial, "hosts")),
            field_time(trial, "until_utc_ns").text);
    } else {
        printf("version %s is in force: each host gets it with its next report\n",
               api_number_text(json_object_get(c->api.answer, "active"), "version").text);
    }
    return EXIT_WELL;
}

/* Waits for the end of the version's trial. 0: it is in force on all hosts; 1: it was taken back. */
static int wait_for(struct config_call *c)
{
    const json_t *trial = json_object_get(c->api.answer, "trial");
    const long long version =
        json_integer_value(json_object_get(json_object_get(trial, "version"), "version"));
    size_t i;
    json_t *v;
    int status = EXIT_WELL;
    while (status == EXIT_WELL && json_is_object(json_object_get(c->api.answer, "trial"))) {
        sleep(1);
        status = api_ask(&c->api, "GET", "/api/v1/config", NULL);
    }
    status =
        status != EXIT_WELL ? status : api_ask(&c->api, "GET", "/api/v1/config/versions", NULL);
    json_array_foreach(json_object_get(c->api.answer, "items"), i, v)
    {
        if (json_integer_value(json_object_get(v, "version")) == version) {
            const bool back = strcmp(api_text(v, "state"), "taken-back") == 0;
            printf("version %lld %s%s\n", version,
                   back ? "was taken back: " : "is in force on all hosts",
                   back ? api_text(v, "ended_why") : "");
            return back ? EXIT_NOT_WELL : EXIT_WELL;
        }
    }
    return status;
}

static int apply(struct config_call *c, const char *path)
{
    static const char *const percents[] = {"%", "", NULL}, *const spans[] = {"s", "min", "h", "",
                                                                             NULL};
    static const double ones[] = {1, 1}, seconds[] = {1, 60, 3600, 1};
    const double percent = c->canary != NULL ? number(c->canary, percents, ones) : 0,
                 watch = c->watch != NULL ? number(c->watch, spans, seconds) : 600;
    if (percent < 0 || percent > 100) {
        fprintf(stderr,
                "foliot config apply: --canary: expected a share from 0%% to 100%%, found '%s'\n",
                foreign_text(c->canary).text);
        return EXIT_USAGE;
    }
    if (watch < 1) {
        fprintf(stderr,
                "foliot config apply: --watch: expected a time like 90s, 10min or 1h, found '%s'\n",
                foreign_text(c->watch).text);
        return EXIT_USAGE;
    }
    char *text = read_file(path);
    if (text == NULL) {
        return EXIT_UNREACHABLE;
    }
    const int status = api_ask_json(&c->api, "POST", "/api/v1/config",
                                    json_pack("{s:s, s:s, s:f, s:f}", "text", text, "why",
                                              c->why != NULL ? c->why : "", "canary_percent",
                                              percent, "watch_s", watch));
    free(text);
    if (status != EXIT_WELL) {
        return status;
    }
    say_applied(c);
    return c->wait && percent > 0 ? wait_for(c) : EXIT_WELL;
}

static int rollback(struct config_call *c, const char *version)
{
    char *end = NULL;
    const long long n = version != NULL ? strtoll(version, &end, 10) : 0;
    if (version != NULL && (*end != 0 || n < 1)) {
        fprintf(stderr, "foliot config rollback: expected a version's number, found '%s'\n",
                foreign_text(version).text);
        return EXIT_USAGE;
    }
    const int status =
        api_ask_json(&c->api, "POST", "/api/v1/config/rollback",
                     n > 0 ? json_pack("{s:I}", "version", (json_int_t)n) : json_object());
    return status != EXIT_WELL ? status : say_applied(c);
}

static int observe(struct config_call *c, const char *word)
{
    const bool on = strcmp(word, "on") == 0;
    if (!on && strcmp(word, "off") != 0) {
        fprintf(stderr, "foliot config observe: expected on or off, found '%s'\n",
                foreign_text(word).text);
        return EXIT_USAGE;
    }
    const int status =
        api_ask_json(&c->api, "POST", "/api/v1/config/observe", json_pack("{s:b}", "on", on));
    if (status == EXIT_WELL && c->api.json) {
        api_print(&c->api);
    } else if (status == EXIT_WELL) {
        puts(on ? "observe: jobs of the whole fleet only measure, as soon as their hosts get "
                  "it (foliot "
                  "config show)"
                : "observe ends: the configuration decides again what jobs may do");
    }
    return status;
}

static int run(struct config_call *c, int argc, char **argv)
{
    const char *what = argc > 0 ? argv[0] : "show";
    if (argc <= 1 && strcmp(what, "show") == 0) {
        return show(c);
    }
    if (argc == 1 && strcmp(what, "history") == 0) {
        return history(c);
    }
    if (argc == 2 && strcmp(what, "diff") == 0) {
        return diff(c, argv[1]);
    }
    if (argc == 2 && strcmp(what, "apply") == 0) {
        return apply(c, argv[1]);
    }
    if (argc <= 2 && strcmp(what, "rollback") == 0) {
        return rollback(c, argc == 2 ? argv[1] : NULL);
    }
    if (argc == 2 && strcmp(what, "observe") == 0) {
        return observe(c, argv[1]);
    }
    return command_wrong_words("config", argc, argv);
}

int command_config(int argc, char *argv[])
{
    struct config_call c = {0};
    api_init(&c.api, "config");
    const int r = api_parse(&c.api,
                            (const struct option_entry[]){{"canary", 0, OPTION_TEXT, &c.canary},
                                                          {"watch", 0, OPTION_TEXT, &c.watch},
                                                          {"why", 0, OPTION_TEXT, &c.why},
                                                          {"wait", 0, OPTION_FLAG, &c.wait},
                                                          {0}},
                            argc, argv);
    if (r != 0) {
        return r == COMMAND_HELPED ? EXIT_WELL : r;
    }
    const int status = run(&c, argc - c.api.first, argv + c.api.first);
    api_done(&c.api);
    return status;
}
