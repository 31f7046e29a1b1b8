/* foliot_api.c: sends one request to the controller. */
#include "app/foliot_api.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/foliot_foreign.h"
#include "app/foliot_peer.h"
#include "base/paths.h"
#include "platform/http/client.h"
#include "platform/tls/tls.h"

#define API_DEFAULT    "http://127.0.0.1:7639"
#define UNIX           "unix:"
#define SOCKET_DEFAULT UNIX CONTROLLER_SOCKET_PATH
#define TOKEN_DEFAULT  "/etc/foliot/token"
enum { ANSWER_MAX = 256 << 20, TIMEOUT_MS = 30000 };

void api_init(struct api *a, const char *command)
{
    const char *given = getenv("FOLIOT_API");
    /* this user may use the socket; other users need a token and the port */
    const bool local = faccessat(AT_FDCWD, CONTROLLER_SOCKET_PATH, W_OK, AT_EACCESS) == 0;
    *a = (struct api){.command = command,
                      .url = given != NULL ? given
                             : local       ? SOCKET_DEFAULT
                                           : API_DEFAULT,
                      .token_path = TOKEN_DEFAULT};
}

void api_done(struct api *a)
{
    json_decref(a->answer);
    tls_wipe(a->token);
}

static bool is_unix(const struct api *a)
{
    return strncmp(a->url, UNIX, strlen(UNIX)) == 0;
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
    if (r < 0 && is_unix(a)) {
        return 0; /* the controller recognises root by the socket */
    }
    if (r < 0) {
        fprintf(stderr,
                "foliot %s: no token for %s: expected one in FOLIOT_TOKEN or in %s, found: %s\n"
                "  another file: --token-file FILE; another controller: FOLIOT_API; on the "
                "controller's own machine root needs no token\n",
                a->command, foreign_text(a->url).text, a->token_path, strerror(-r));
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
        if (!a->stranger && !a->silent) { /* on_connected() printed the error */
            fprintf(stderr, "foliot %s: %s: %s. Is the controller running?\n", a->command,
                    foreign_text(a->url).text, foreign_text(r->words).text);
        }
        return;
    }
    a->http_status = (int)r->status;
    a->answer = json_loadb(r->body, r->size, 0, &error);
    if (a->answer == NULL && r->status == 200) {
        fprintf(stderr, "foliot %s: the controller's answer can't be read: %s\n", a->command,
                foreign_text(error.text).text);
    }
    if (!a->json || r->status != 200) {
        foreign_show(a->answer, a->lines);
    }
    if (r->status != 200 && !a->silent) {
        const char *text =
            json_string_value(json_object_get(json_object_get(a->answer, "error"), "message"));
        fprintf(stderr, "foliot %s: the controller answers %u: %s\n", a->command, r->status,
                text != NULL ? text : "?");
    }
}

static void say_stranger(const struct api *a, uid_t user)
{
    fprintf(stderr,
            "foliot %s: %s: a token isn't sent there: expected a program of root or of user %u, "
            "found one of user %u. Is the controller running?\n",
            a->command, foreign_text(a->url).text, (unsigned)geteuid(), (unsigned)user);
}

/* Checks the controller's user when the Unix socket is connected. */
static bool on_connected(void *context, int fd)
{
    struct api *a = context;
    uid_t user = 0;

    a->stranger = !peer_is_ours(fd, &user);
    if (a->stranger) {
        say_stranger(a, user);
    }
    return !a->stranger;
}

/* Only the controller may get the token. */
static int check_peer(const struct api *a)
{
    uint16_t port = 0;
    uid_t user = 0;
    const bool no_path = strcmp(a->url, UNIX) == 0;

    if (!no_path && (is_unix(a) || strncmp(a->url, "https://", 8) == 0)) {
        return EXIT_WELL; /* their identity is checked later */
    }
    if (no_path || !peer_is_own_machine(a->url, &port)) {
        fprintf(stderr,
                "foliot %s: %s: a token isn't sent there: expected https://HOST[:PORT] for another "
                "machine, unix:/PATH or http://127.0.0.1:PORT for this one\n",
                a->command, foreign_text(a->url).text);
        return EXIT_USAGE;
    }
    if (peer_listens(port, &user) == -EPERM) {
        say_stranger(a, user);
        return EXIT_UNREACHABLE;
    }
    return EXIT_WELL; /* without a listener nobody gets the token */
}

static int exit_status_of(const struct api *a)
{
    switch (a->http_status) {
    case 200:
        return a->answer != NULL ? EXIT_WELL : EXIT_UNREACHABLE;
    case 409: /* busy: it may work later */
        return EXIT_NOT_WELL;
    case 401:
    case 403:
    case 408:
    case 429:
        return EXIT_UNREACHABLE;
    default:
        return a->http_status >= 400 && a->http_status < 500 ? EXIT_USAGE : EXIT_UNREACHABLE;
    }
}

int api_ask(struct api *a, const char *method, const char *path, const char *body)
{
    char url[512], bearer[300] = "";
    const char *headers[] = {"Content-Type: application/json", bearer, NULL};

    json_decref(a->answer);
    a->answer = NULL;
    a->http_status = 0;
    int status = check_peer(a);
    if (status == EXIT_WELL && read_token(a) < 0) {
        status = EXIT_UNREACHABLE;
    }
    if (status != EXIT_WELL) {
        return status;
    }
    const char *base = is_unix(a) ? "http://localhost" : a->url;
    int size = (int)strlen(base);
    while (size > 0 && base[size - 1] == '/') { /* browsers show the address with a slash */
        size--;
    }
    snprintf(url, sizeof(url), "%.*s%s", size, base, path);
    if (a->token != NULL) {
        snprintf(bearer, sizeof(bearer), "Authorization: Bearer %s", a->token);
    } else {
        headers[1] = NULL;
    }
    const struct http_call call = {.url = url,
                                   .socket = is_unix(a) ? a->url + strlen(UNIX) : NULL,
                                   .check = on_connected,
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
    return r < 0 ? EXIT_UNREACHABLE : exit_status_of(a);
}

int api_ask_pages(struct api *a, const char *path, json_t **ret_items)
{
    char at[400];
    int status = EXIT_WELL;

    *ret_items = json_array();
    snprintf(at, sizeof(at), "%s", path);
    for (bool more = true; more && status == EXIT_WELL;) {
        status = api_ask(a, "GET", at, NULL);
        const char *next = json_string_value(json_object_get(a->answer, "next"));
        json_array_extend(*ret_items, json_object_get(a->answer, "items"));
        more = next != NULL;
        snprintf(at, sizeof(at), "%s&cursor=%.20s", path, more ? next : "0");
    }
    return status;
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
