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

#include "app/foliot_command.h"
#include "app/foliot_show.h"
#include "platform/http/client.h"
#include "platform/tls/tls.h"

#define API_DEFAULT   "http://127.0.0.1:7639"
#define TOKEN_DEFAULT "/etc/foliot/token"
enum { ANSWER_MAX = 256 << 20, TIMEOUT_MS = 30000 };

struct call {
    const char *api, *authority;
    char *token;
    json_t *answer;
    int status; /* an exit status */
};

static void on_answer(void *context, const struct http_result *r)
{
    struct call *c = context;
    json_error_t error;
    if (r->error < 0) {
        fprintf(stderr, "foliot host: %s: %s\n", c->api, r->words);
        c->status = EXIT_UNREACHABLE;
        return;
    }
    c->answer = json_loadb(r->body, r->size, 0, &error);
    if (r->status != 200) {
        const char *text =
            json_string_value(json_object_get(json_object_get(c->answer, "error"), "message"));
        fprintf(stderr, "foliot host: the controller answers %u: %s\n", r->status,
                text != NULL ? text : "?");
        c->status = EXIT_NOT_WELL;
    } else {
        c->status = c->answer != NULL ? EXIT_WELL : EXIT_UNREACHABLE;
    }
}

static int ask(struct call *c, const char *method, const char *path, const char *body)
{
    char url[512], bearer[300];
    snprintf(url, sizeof(url), "%s%s", c->api, path);
    snprintf(bearer, sizeof(bearer), "Authorization: Bearer %s", c->token);
    const char *const headers[] = {bearer, "Content-Type: application/json", NULL};
    const struct http_call call = {.url = url,
                                   .authority = c->authority,
                                   .headers = headers,
                                   .method = method,
                                   .body = body,
                                   .size = body != NULL ? strlen(body) : 0,
                                   .answer_max = ANSWER_MAX,
                                   .timeout_ms = TIMEOUT_MS};
    json_decref(c->answer);
    c->answer = NULL;
    c->status = EXIT_UNREACHABLE;
    const int r = http_call_now(&call, on_answer, c);
    if (r < 0) {
        fprintf(stderr, "foliot host: %s: %s\n", url, strerror(-r));
    }
    return r < 0 ? EXIT_UNREACHABLE : c->status;
}

/* ---- list ---- */

static const char *text_at(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text != NULL ? text : "-";
}

static void number_at(const json_t *o, const char *key, char ret[24])
{
    const json_t *v = json_object_get(o, key);
    if (json_is_integer(v)) {
        snprintf(ret, 24, "%lld", (long long)json_integer_value(v));
    } else {
        snprintf(ret, 24, "-");
    }
}

static void print_host(const json_t *h)
{
    const json_t *clock = json_object_get(h, "clock");
    char bound[24], up[24], nics[24], dead[24], findings[24];
    number_at(clock, "hard_ns", bound);
    number_at(h, "nics_up", up);
    number_at(h, "nics", nics);
    number_at(h, "paths_dead", dead);
    number_at(h, "findings_open", findings);
    printf("%-24s %-8s %-6s %-10s %12s %5s/%-5s %10s %9s  %s\n", text_at(h, "name"),
           text_at(h, "health"), text_at(h, "freshness"), text_at(clock, "status"), bound, up, nics,
           dead, findings, text_at(json_object_get(h, "agent"), "version"));
}

/* All pages; with --json one object with all items. */
static int list(struct call *c, bool json)
{
    json_t *all = json_array();
    char path[128] = "/api/v1/hosts?limit=1000";
    int status = EXIT_WELL;
    for (bool more = true; more && status == EXIT_WELL;) {
        status = ask(c, "GET", path, NULL);
        const char *next = json_string_value(json_object_get(c->answer, "next"));
        json_array_extend(all, json_object_get(c->answer, "items"));
        more = next != NULL;
        snprintf(path, sizeof(path), "/api/v1/hosts?limit=1000&cursor=%.20s", more ? next : "0");
    }
    if (status == EXIT_WELL && json) {
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

static int print_answer(struct call *c, int status, bool json, const char *format, const char *key)
{
    if (status == EXIT_WELL && json) {
        json_dumpf(c->answer, stdout, JSON_COMPACT);
        putchar('\n');
    } else if (status == EXIT_WELL) {
        printf(format, text_at(c->answer, key));
    }
    return status;
}

/* A token's file holds the token and a newline. */
static char *read_token(const char *path)
{
    const char *given = getenv("FOLIOT_TOKEN");
    char *text = NULL;
    if (given != NULL) {
        return strdup(given);
    }
    const int r = tls_read_file(path, &text);
    if (r < 0) {
        fprintf(stderr,
                "foliot host: %s: expected a token of the controller's API, found: %s. Give one by "
                "FOLIOT_TOKEN or --token-file\n",
                path, strerror(-r));
        return NULL;
    }
    text[strcspn(text, " \r\n")] = 0;
    return text;
}

static int run(struct call *c, int argc, char **argv, bool json, const char *uses)
{
    char path[128], body[64];
    if (argc == 1 && strcmp(argv[0], "list") == 0) {
        return list(c, json);
    }
    if (argc == 2 && strcmp(argv[0], "remove") == 0 && tls_name_good(argv[1])) {
        snprintf(path, sizeof(path), "/api/v1/hosts/%s", argv[1]);
        return print_answer(c, ask(c, "DELETE", path, NULL), json,
                            "host %s is no member any more: its certificate is refused\n",
                            "removed");
    }
    if (argc == 1 && strcmp(argv[0], "token") == 0) {
        snprintf(body, sizeof(body), "{\"uses\":%.10s}", uses);
        return print_answer(c, ask(c, "POST", "/api/v1/join-tokens", body), json,
                            "foliot-agent join ADDRESS %s\n", "token");
    }
    command_usage(command_find("host"), stderr);
    return EXIT_USAGE;
}

int command_host(int argc, char *argv[])
{
    static const struct option table[] = {{"json", no_argument, NULL, 'j'},
                                          {"controller", required_argument, NULL, 'c'},
                                          {"authority", required_argument, NULL, 'a'},
                                          {"token-file", required_argument, NULL, 't'},
                                          {"uses", required_argument, NULL, 'u'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    const char *given = getenv("FOLIOT_API"), *token_path = TOKEN_DEFAULT, *uses = "1";
    struct call c = {.api = given != NULL ? given : API_DEFAULT};
    bool json = false;
    optind = 1;
    for (int o; (o = getopt_long(argc, argv, "h", table, NULL)) != -1;) {
        switch (o) {
        case 'j':
            json = true;
            break;
        case 'c':
            c.api = optarg;
            break;
        case 'a':
            c.authority = optarg;
            break;
        case 't':
            token_path = optarg;
            break;
        case 'u':
            uses = optarg;
            break;
        case 'h':
            command_usage(command_find("host"), stdout);
            return EXIT_WELL;
        default:
            return EXIT_USAGE;
        }
    }
    c.token = optind < argc ? read_token(token_path) : strdup("");
    const int status =
        c.token == NULL ? EXIT_UNREACHABLE : run(&c, argc - optind, argv + optind, json, uses);
    json_decref(c.answer);
    tls_wipe(c.token);
    return status;
}
