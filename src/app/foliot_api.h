/* foliot_api.h: what the commands share that ask the controller (docs/openapi.yaml): where it is, the token, one question
 * at a time, answers and refusals. */
#pragma once
#include <getopt.h>
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
    bool json;     /* answers are printed as they came, not shown */
};

/* What a command takes beside --json, --controller, --authority, --token-file and --help. Each is in the command's usage in
 * foliot.c, with or without a value. A list ends with {0}. */
enum api_option_kind { API_FLAG, API_WORD, API_SPAN };
struct api_option {
    const char *name;
    enum api_option_kind kind;
    void *to; /* bool; const char *; int64_t, ns */
};
#define API_HELPED (-1)
/* 0: argv[optind] is the first word. API_HELPED: the usage was printed, for --help; EXIT_USAGE: what is wrong was. own may be
 * NULL. */
int api_parse(struct api *a, const struct api_option *own, int argc, char *argv[]);

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
