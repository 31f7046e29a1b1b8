/* foliot_api.h: what the commands share that ask the controller (docs/openapi.yaml): where it is, the token, one question
 * at a time, answers and refusals. */
#pragma once
#include <jansson.h>
#include <stdbool.h>

#include "app/foliot_command.h"
#include "base/bug.h"

struct api {
    const char *command;                      /* "config", for messages */
    const char *url, *authority, *token_path; /* url: see api_init */
    char *token;                              /* NULL: none, on the Unix socket */
    json_t *answer;
    const char
        *lines; /* this key's strings are of several lines; NULL: none's (foliot_foreign.h) */
    int http_status;
    bool stranger; /* who listened wasn't the controller */
    int first;     /* the first word of the command line that is no option */
    bool json;     /* answers are printed as they came, not shown */
};

/* `own`: what the command takes beside --json, --controller, --authority, --token-file and --help; ends with {0}, may be NULL. As
 * command_read: 0: argv[a->first] is the first word. */
int api_parse(struct api *a, const struct option_entry *own, int argc, char *argv[]);
/* An entry for a time such as 90min, into int64_t of nanoseconds. */
bool api_take_span(const char *text, void *to);
#define API_SPAN(name, to)                                                                         \
    {                                                                                              \
        (name), 0, OPTION_OWN, (to), .take = api_take_span,                                        \
                                     .expected = "a time like 90min, 2h or 1d"                     \
    }

/* Where the controller is: FOLIOT_API, else this machine's socket, else http://127.0.0.1:7639. Its forms:
 *     unix:/PATH           a Unix socket; root needs no token there
 *     http://127.0.0.1:N   this machine
 *     https://HOST[:N]     with --authority
 * A token goes to nobody else: not to a program of another user of this machine, and not in the clear to another one. */
void api_init(struct api *a, const char *command);
void api_done(struct api *a);
/* An exit status; the answer is in a->answer. Else said on stderr: EXIT_UNREACHABLE: nobody answers, or not to this token
 * (401, 403, 429, 5xx); EXIT_USAGE: what was asked for isn't there or isn't right (400, 404);
 * EXIT_NOT_WELL: something is in the way (409). */
int api_ask(struct api *a, const char *method, const char *path, const char *body);
/* All pages of a list, into one array that the caller owns. `path` has a query already. */
int api_ask_pages(struct api *a, const char *path, json_t **ret_items);
/* The same with a JSON body, which is given up. */
int api_ask_json(struct api *a, const char *method, const char *path, json_t *body);
void api_print(const struct api *a); /* the answer as it came, in one line */

const char *api_text(const json_t *object, const char *key); /* "-": not there */
struct api_number {
    char text[24];
};
struct api_number api_number_text(const json_t *object, const char *key); /* "-": not there */
