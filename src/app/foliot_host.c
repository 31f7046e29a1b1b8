/* foliot_host.c: `foliot host`: the fleet's members, from the controller.
 *
 * It calls the controller's API (docs/openapi.yaml) with a token from FOLIOT_TOKEN or a file. It prints answers as a table;
 * with --json it prints them unchanged. */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_foreign.h"
#include "app/foliot_measure.h"
#include "app/foliot_text.h"
#include "base/time.h"
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

/* Fetches all pages; with --json it prints one object with all items. */
static int list(struct api *c)
{
    json_t *all;
    const int status = api_ask_pages(c, "/api/v1/hosts?limit=1000", &all);
    if (status == EXIT_WELL && c->json) {
        json_t *whole = json_pack("{s:O,s:n}", "items", all, "next");
        foreign_print(whole, stdout);
        json_decref(whole);
    } else if (status == EXIT_WELL) {
        size_t i;
        json_t *h;
        printf("%-24s %-8s %-6s %-10s %12s %11s %10s %9s  %s\n", "HOST", "HEALTH", "HEARD", "CLOCK",
               "BOUND ns", "NICS UP", "DEAD PATHS", "FINDS", "AGENT");
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
        api_print(c);
    } else if (status == EXIT_WELL) {
        printf(format, api_text(c->answer, key));
    }
    return status;
}

/* ---- rotation ---- */

static void print_rotation(const json_t *answer)
{
    const json_t *a = json_object_get(answer, "authority"),
                 *k = json_object_get(answer, "fleet_key");
    size_t i;
    json_t *host;
    printf("authority: good until %s; ", field_time(a, "not_after_utc_ns").text);
    if (json_is_true(json_object_get(a, "rotating"))) {
        printf("the old one is trusted too, until %s hosts have left it:",
               api_number_text(a, "hosts_left_count").text);
        json_array_foreach(json_object_get(a, "hosts_left"), i, host)
        {
            printf(" %s", json_string_value(host));
        }
        putchar('\n');
    } else {
        puts("no other authority is trusted");
    }
    printf("fleet key: %s", api_number_text(k, "id").text);
    if (json_is_integer(json_object_get(k, "next_id"))) {
        printf("; %s is used from %s on", api_number_text(k, "next_id").text,
               field_time(k, "next_used_utc_ns").text);
        printf(", the old one ends at %s", field_time(k, "old_ends_utc_ns").text);
    }
    printf("; %s hosts have an older file\n", api_number_text(k, "hosts_behind").text);
}

static int rotate(struct api *c, const char *what, const char *after, bool finish)
{
    char *end = NULL;
    const long long number = after != NULL ? strtoll(after, &end, 10) : 600;
    const long long unit = end == NULL || *end == 0 || strcmp(end, "s") == 0 ? 1
                           : strcmp(end, "min") == 0                         ? 60
                           : strcmp(end, "h") == 0                           ? 3600
                                                                             : 0;
    if (number < 1 || unit == 0) {
        fprintf(stderr,
                "foliot host rotate: --after: expected a time like 90s, 10min or 1h, found '%s'\n",
                foreign_text(after).text);
        return EXIT_USAGE;
    }
    if (what != NULL && strcmp(what, "authority") != 0 && strcmp(what, "fleet-key") != 0) {
        fprintf(stderr, "foliot host rotate: expected authority or fleet-key, found '%s'\n",
                foreign_text(what).text);
        return EXIT_USAGE;
    }
    const int status = what == NULL
                           ? api_ask(c, "GET", "/api/v1/rotation", NULL)
                           : api_ask_json(c, "POST", "/api/v1/rotation",
                                          json_pack("{s:s, s:I, s:b}", "what", what, "after_s",
                                                    (json_int_t)(number * unit), "finish", finish));
    if (status == EXIT_WELL && c->json) {
        api_print(c);
    } else if (status == EXIT_WELL) {
        print_rotation(c->answer);
    }
    return status;
}

struct wishes {
    const char *uses, *after, *seconds;
    bool finish;
};

static int run(struct api *c, int argc, char **argv, const struct wishes *w)
{
    char path[128], body[64];
    if (argc == 1 && strcmp(argv[0], "list") == 0) {
        return list(c);
    }
    if (argc == 2 && strcmp(argv[0], "remove") == 0) {
        if (!tls_name_good(argv[1])) {
            fprintf(stderr,
                    "foliot host remove: expected a host's name (a-z, 0-9, . and -), found '%s'\n",
                    foreign_text(argv[1]).text);
            return EXIT_USAGE;
        }
        snprintf(path, sizeof(path), "/api/v1/hosts/%s", argv[1]);
        return print_answer(c, api_ask(c, "DELETE", path, NULL),
                            "host %s is no longer a member: its certificate is refused\n",
                            "removed");
    }
    if (argc == 1 && strcmp(argv[0], "token") == 0) {
        if (strspn(w->uses, "0123456789") != strlen(w->uses) ||
            w->uses[strspn(w->uses, "0")] == 0) {
            fprintf(stderr,
                    "foliot host token: --uses: expected a whole number above 0, found '%s'\n",
                    foreign_text(w->uses).text);
            return EXIT_USAGE;
        }
        snprintf(body, sizeof(body), "{\"uses\":%.10s}", w->uses);
        return print_answer(c, api_ask(c, "POST", "/api/v1/join-tokens", body),
                            "foliot-agent join ADDRESS %s\n", "token");
    }
    if (argc >= 1 && argc <= 2 && strcmp(argv[0], "rotate") == 0) {
        return rotate(c, argc == 2 ? argv[1] : NULL, w->after, w->finish);
    }
    if (argc == 2 && strcmp(argv[0], "check") == 0) {
        return measure_host_check(c, argv[1], w->seconds);
    }
    return command_wrong_words("host", argc, argv);
}

int command_host(int argc, char *argv[])
{
    struct wishes wishes = {.uses = "1"};
    struct api api;
    api_init(&api, "host");
    const int r =
        api_parse(&api,
                  (const struct option_entry[]){{"uses", 0, OPTION_TEXT, &wishes.uses},
                                                {"after", 0, OPTION_TEXT, &wishes.after},
                                                {"finish", 0, OPTION_FLAG, &wishes.finish},
                                                {"seconds", 0, OPTION_TEXT, &wishes.seconds},
                                                {0}},
                  argc, argv);
    if (r != 0) {
        return r == COMMAND_HELPED ? EXIT_WELL : r;
    }
    const int status = run(&api, argc - api.first, argv + api.first, &wishes);
    api_done(&api);
    return status;
}
