/* foliot_api.c: one question to the controller. */
#include "app/foliot_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_foreign.h"
#include "platform/http/client.h"
#include "platform/tls/tls.h"

#define API_DEFAULT   "http://127.0.0.1:7639"
#define TOKEN_DEFAULT "/etc/foliot/token"
enum { ANSWER_MAX = 256 << 20, TIMEOUT_MS = 30000 };

void api_init(struct api *a, const char *command)
{
    const char *given = getenv("FOLIOT_API");
    *a = (struct api){.command = command,
                      .url = given != NULL ? given : API_DEFAULT,
                      .token_path = TOKEN_DEFAULT};
}

void api_done(struct api *a)
{
    json_decref(a->answer);
    tls_wipe(a->token);
}

bool api_option(struct api *a, int option, const char *value)
{
    switch (option) {
    case 'j':
        a->json = true;
        return true;
    case 'c':
        a->url = value;
        return true;
    case 'a':
        a->authority = value;
        return true;
    case 't':
        a->token_path = value;
        return true;
    default:
        return false;
    }
}

/* A token's file holds the token and a newline. */
static int read_token(struct api *a)
{
    const char *given = getenv("FOLIOT_TOKEN");
    int r = 0;
    if (a->token != NULL) {
        return 0;
    }
    if (given != NULL) {
        a->token = strdup(given);
        r = a->token == NULL ? -ENOMEM : 0;
    } else {
        r = tls_read_file(a->token_path, &a->token);
    }
    if (r < 0) {
        fprintf(stderr,
                "foliot %s: %s: expected a token of the controller's API, found: %s. Give one by "
                "FOLIOT_TOKEN or --token-file\n",
                a->command, a->token_path, strerror(-r));
        return r;
    }
    a->token[strcspn(a->token, " \r\n")] = 0;
    return 0;
}

static void on_answer(void *context, const struct http_result *r)
{
    struct api *a = context;
    json_error_t error;
    if (r->error < 0) {
        fprintf(stderr, "foliot %s: %s: %s\n", a->command, a->url, foreign_text(r->words).text);
        return;
    }
    a->http_status = (int)r->status;
    a->answer = json_loadb(r->body, r->size, 0, &error);
    if (!a->json || r->status != 200) {
        foreign_show(a->answer, a->lines);
    }
    if (r->status != 200) {
        const char *text =
            json_string_value(json_object_get(json_object_get(a->answer, "error"), "message"));
        fprintf(stderr, "foliot %s: the controller answers %u: %s\n", a->command, r->status,
                text != NULL ? text : "?");
    }
}

int api_ask(struct api *a, const char *method, const char *path, const char *body)
{
    char url[512], bearer[300];
    const char *const headers[] = {bearer, "Content-Type: application/json", NULL};
    json_decref(a->answer);
    a->answer = NULL;
    a->http_status = 0;
    if (read_token(a) < 0) {
        return EXIT_UNREACHABLE;
    }
    snprintf(url, sizeof(url), "%s%s", a->url, path);
    snprintf(bearer, sizeof(bearer), "Authorization: Bearer %s", a->token);
    const struct http_call call = {.url = url,
                                   .authority = a->authority,
                                   .headers = headers,
                                   .method = method,
                                   .body = body,
                                   .size = body != NULL ? strlen(body) : 0,
                                   .answer_max = ANSWER_MAX,
                                   .timeout_ms = TIMEOUT_MS};
    const int r = http_call_now(&call, on_answer, a);
    explicit_bzero(bearer, sizeof(bearer));
    if (r < 0) {
        fprintf(stderr, "foliot %s: %s: %s\n", a->command, url, strerror(-r));
    }
    return r < 0 || a->http_status == 0                 ? EXIT_UNREACHABLE
           : a->http_status != 200 || a->answer == NULL ? EXIT_NOT_WELL
                                                        : EXIT_WELL;
}

int api_ask_json(struct api *a, const char *method, const char *path, json_t *body)
{
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    const int status = text != NULL ? api_ask(a, method, path, text) : EXIT_UNREACHABLE;
    free(text);
    json_decref(body);
    return status;
}

void api_print(const struct api *a)
{
    foreign_print(a->answer, stdout);
}

const char *api_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "-";
}

struct api_number api_number_text(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    struct api_number n = {"-"};
    if (json_is_integer(v)) {
        snprintf(n.text, sizeof(n.text), "%lld", (long long)json_integer_value(v));
    }
    return n;
}
