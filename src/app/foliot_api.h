/* foliot_api.h: what the commands share that ask the controller (docs/openapi.yaml): where it is, the token, one question
 * at a time, answers and refusals. */
#pragma once
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>

#include "app/foliot_command.h"
#include "base/bug.h"

struct api {
    const char *command; /* "config", for messages */
    const char *url, *authority, *token_path;
    char *token;
    json_t *answer;
    const char
        *lines; /* this key's strings are of several lines; NULL: none's (foliot_foreign.h) */
    int http_status;
    bool json; /* answers are printed as they came, not shown */
};

/* --json, --controller, --authority, --token-file, --help: to be put into a command's own table. */
#define API_OPTIONS                                                                                \
    {"json", no_argument, NULL, 'j'}, {"controller", required_argument, NULL, 'c'},                \
        {"authority", required_argument, NULL, 'a'}, {"token-file", required_argument, NULL, 't'}, \
    {                                                                                              \
        "help", no_argument, NULL, 'h'                                                             \
    }

void api_init(struct api *a, const char *command);
void api_done(struct api *a);
/* True: it was one of API_OPTIONS (but help). */
bool api_option(struct api *a, int option, const char *value);
/* An exit status; the answer is in a->answer. A refusal is said on stderr. */
int api_ask(struct api *a, const char *method, const char *path, const char *body);
/* The same with a JSON body, which is given up. */
int api_ask_json(struct api *a, const char *method, const char *path, json_t *body);
void api_print(const struct api *a); /* the answer as it came, in one line */

const char *api_text(const json_t *object, const char *key); /* "-": not there */
struct api_number {
    char text[24];
};
struct api_number api_number_text(const json_t *object, const char *key); /* "-": not there */
