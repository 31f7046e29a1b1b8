/* foliot_api.h: the parts that commands of the controller share (docs/openapi.yaml): its address, the token, requests one at a
 * time, answers and refusals. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

#include "app/foliot_command.h"
#include "base/bug.h"

struct api {
    const char *command;                      /* the command's name, for messages ("config") */
    const char *url, *authority, *token_path; /* url: see api_init */
    char *token;                              /* NULL: none, over the Unix socket */
    json_t *answer;
    const char
        *lines; /* strings of this key have several lines; NULL: no key has (foliot_foreign.h) */
    int http_status;
    bool silent; /* nothing is printed about a failure: an older controller may not have the path */
    bool stranger; /* the process that listened was not the controller */
    int first;     /* the index of the first word that is no option */
    bool json;     /* print answers unchanged (--json) */
};

/* `own`: the command's options beside --json, --controller, --authority, --token-file and --help; {0} ends the list; may be NULL.
 * Results as of command_read(); argv[a->first] is the first word. */
int api_parse(struct api *a, const struct option_entry *own, int argc, char *argv[]);
/* The entry of an option for a time such as 90min. `to` is an int64_t in nanoseconds. */
bool api_take_span(const char *text, void *to);
#define API_SPAN(name, to)                                                                         \
    {                                                                                              \
        (name), 0, OPTION_OWN, (to), .take = api_take_span,                                        \
                                     .expected = "a time like 90min, 2h or 1d"                     \
    }

/* The address of the controller: FOLIOT_API, else this machine's socket, else http://127.0.0.1:7639. Its forms:
 *     unix:/PATH           a Unix socket; root needs no token there
 *     http://127.0.0.1:N   this machine
 *     https://HOST[:N]     with --authority
 *
 * The token goes nowhere else: not to a program of another user of this machine, and not unencrypted to another machine. */
void api_init(struct api *a, const char *command);
void api_done(struct api *a);
/* Sends a request. Returns an exit status; a->answer has the answer. Other statuses than EXIT_WELL were explained on stderr:
 * EXIT_UNREACHABLE: no answer, or a refusal (401, 403, 429, 5xx); EXIT_USAGE: an unknown object or a wrong request (400, 404);
 * EXIT_NOT_WELL: a conflict (409). */
int api_ask(struct api *a, const char *method, const char *path, const char *body);
/* Fetches all pages of a list into one array, which the caller owns. `path` must have a query already. */
int api_ask_pages(struct api *a, const char *path, json_t **ret_items);
/* The same as api_ask(), with a JSON body. It releases the body. */
int api_ask_json(struct api *a, const char *method, const char *path, json_t *body);
void api_print(const struct api *a); /* Prints the answer unchanged, in one line. */

const char *api_text(const json_t *object, const char *key); /* "-" if the field is missing. */
struct api_number {
    char text[24];
};
/* "-" if the field is missing. */
struct api_number api_number_text(const json_t *object, const char *key);
