/* foliot_host.c: `foliot host`: the fleet's members, as the controller knows them.
 *
 * Asks the controller's API (docs/openapi.yaml) with a token out of FOLIOT_TOKEN or a file; answers
 * are printed as a table or, with --json, as they came. */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_api.h"
#include "platform/tls/tls.h"

/* ---- list ---- */

static void print_host(const json_t *h)
{
    const json_t *clock = json_object_get(h, "clock");
    printf("%-24s %-8s %-6s %-10s %12s %5s/%-5s %10s %9s  %s\n", api_text(h, "name"),
           api_text(h, "health"), api_text(h, "freshness"), api_text(clock, "status"),
           api_number_text(clock, "hard_ns").text, api_number_text(h, "nics_up").text,
           api_number_text(h, "nics").text, api_number_text(h, "paths_dead").text,
           api_number_text(h, "findings_open").text,
           api_text(json_object_get(h, "agent"), "version"));
}

/* All pages; with --json one object with all items. */
static int list(struct api *c)
{
    json_t *all = json_array();
    char path[128] = "/api/v1/hosts?limit=1000";
    int status = EXIT_WELL;
    for (bool more = true; more && status == EXIT_WELL;) {
        status = api_ask(c, "GET", path, NULL);
        const char *next = json_string_value(json_object_get(c->answer, "next"));
        json_array_extend(all, json_object_get(c->answer, "items"));
        more = next != NULL;
        snprintf(path, sizeof(path), "/api/v1/hosts?limit=1000&cursor=%.20s", more ? next : "0");
    }
    if (status == EXIT_WELL && c->json) {
        json_t *whole = json_pack("{s:O,s:n}", "items", all, "next");
        json_dumpf(whole, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(whole);
    } else if (status == EXIT_WELL) {
        size_t i;
        json_t *h;
        printf("%-24s %-8s %-6s %-10s %12s %11s %10s %9s  %s\n", "HOST", "HEALTH", "HEARD", "CLOCK",
               "BOUND ns", "NICS UP", "DEAD PATHS", "FINDINGS", "AGENT");
        json_array_foreach(all, i, h)
        {
            print_host(h);
        }
    }
    json_decref(all);
    return status;
}

static int print_answer(struct api *c, int status, const char *format, const char *key)
{
    if (status == EXIT_WELL && c->json) {
        json_dumpf(c->answer, stdout, JSON_COMPACT);
        putchar('\n');
    } else if (status == EXIT_WELL) {
        printf(format, api_text(c->answer, key));
    }
    return status;
}

static int run(struct api *c, int argc, char **argv, const char *uses)
{
    char path[128], body[64];
    if (argc == 1 && strcmp(argv[0], "list") == 0) {
        return list(c);
    }
    if (argc == 2 && strcmp(argv[0], "remove") == 0 && tls_name_good(argv[1])) {
        snprintf(path, sizeof(path), "/api/v1/hosts/%s", argv[1]);
        return print_answer(c, api_ask(c, "DELETE", path, NULL),
                            "host %s is no member any more: its certificate is refused\n",
                            "removed");
    }
    if (argc == 1 && strcmp(argv[0], "token") == 0) {
        snprintf(body, sizeof(body), "{\"uses\":%.10s}", uses);
        return print_answer(c, api_ask(c, "POST", "/api/v1/join-tokens", body),
                            "foliot-agent join ADDRESS %s\n", "token");
    }
    command_usage(command_find("host"), stderr);
    return EXIT_USAGE;
}

int command_host(int argc, char *argv[])
{
    static const struct option table[] = {
        API_OPTIONS, {"uses", required_argument, NULL, 'u'}, {NULL, 0, NULL, 0}};
    const char *uses = "1";
    struct api api;
    api_init(&api, "host");
    optind = 1;
    for (int o; (o = getopt_long(argc, argv, "h", table, NULL)) != -1;) {
        if (o == 'h') {
            command_usage(command_find("host"), stdout);
            return EXIT_WELL;
        }
        if (o == 'u') {
            uses = optarg;
        } else if (!api_option(&api, o, optarg)) {
            return EXIT_USAGE;
        }
    }
    const int status = run(&api, argc - optind, argv + optind, uses);
    api_done(&api);
    return status;
}
