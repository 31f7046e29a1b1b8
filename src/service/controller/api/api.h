/* api.h: what the API's files share: a request with its caller, arguments, pages, answers.
 *
 * docs/openapi.yaml describes each route. Adding a route: one line in api.c's table and a function. */
#pragma once
#include <jansson.h>

#include "service/controller/controller.h"
#include "service/controller/history/worker.h"

#define API_PAGE_DEFAULT 100
#define API_PAGE_MAX     1000
#define API_ALLOW_SIZE   40

struct incident_nics;

enum role { ROLE_NONE, ROLE_VIEWER, ROLE_OPERATOR, ROLE_ADMIN };

struct api_call {
    struct controller *c;
    struct http_request *request;
    struct json_writer *j; /* empty */
    char who[64];          /* the token's name */
    int64_t token;         /* its number; 0: without a token */
    enum role role;
    const char *scope;          /* patterns of hosts that it sees; empty: all */
    uint8_t *visible;           /* by host index; NULL: all */
    char *host_ids;             /* the same for the store: "[1,5]"; NULL: all */
    const char *rest;           /* of the path, after the route's prefix */
    json_t *body;               /* of POST; NULL */
    char allow[API_ALLOW_SIZE]; /* after 405: the methods that the path takes */
    bool answered;              /* or somebody has taken over the answer */
};
typedef void (*api_route)(struct api_call *call);

/* {"error":{"code":…,"message":…}} */
void api_error(struct api_call *call, unsigned status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* For a caller without a valid token: 401, or 429 if many such requests come. */
void api_refuse_stranger(struct api_call *call, const char *code, const char *words);
/* Answers with the writer's content and an ETag; with 304 if the caller has that content. */
void api_answer(struct api_call *call);
/* Reads an argument as a number. false: it is no number, and the error was answered. *value stays if the argument is missing. */
MUST_CHECK bool api_number(struct api_call *call, const char *name, int64_t min, int64_t max,
                           int64_t *value);
/* Reads an argument as a host. true with NULL: it is missing. false: no such host; the error was answered. */
MUST_CHECK bool api_host(struct api_call *call, const char *name, struct fleet_host **ret_host);
/* Reads limit and cursor, the arguments of a page. false: the error was answered. */
MUST_CHECK bool api_page(struct api_call *call, int64_t *ret_limit, int64_t *ret_cursor);
/* Puts `next` of a page; null for the last page. */
void api_put_next(struct json_writer *j, bool more, int64_t next);
/* One of a host's ports, as /api/v1/links shows it (api_nic.c). */
void api_put_link(struct api_call *call, const struct incident_nics *incidents,
                  const struct fleet_nic *n, struct mono now);
/* As api_answer(), for bytes that aren't JSON. */
void api_answer_bytes(struct api_call *call, const char *type, const void *bytes, size_t size);

/* A request's work for the history thread; the first member of a struct with what the work needs. In `done`, api_task_back()
 * returns whether somebody still waits for the answer. */
struct api_task {
    struct worker_job job;
    struct controller *c;
    int64_t token;
    void (*done)(struct worker_job *job); /* the task's own function */
    struct http_request *request;         /* only the loop uses it; NULL: the client has gone */
};
/* Zeroed. NULL: too many tasks wait; the error was answered. */
MUST_CHECK void *api_task_new(struct api_call *call, size_t size);
void api_task_begin(struct api_call *call, struct api_task *task);
MUST_CHECK bool api_task_back(struct api_task *task);
/* In `done`: answers with the JSON that the thread wrote, or with the store's error, if somebody waits. */
void api_task_answer(struct api_task *task, struct json_writer *j, int r);
void api_store_error(struct api_call *call, int r);

/* ---- api_limit.c: limits of one token ---- */
/* false: it asks too often or for too much; the error was answered. */
MUST_CHECK bool api_limit_admits(struct api_call *call, struct token *token);
MUST_CHECK bool api_limit_task(struct api_call *call); /* the same for the history thread */
void api_limit_task_begins(struct controller *c, int64_t token);
void api_limit_task_ends(struct controller *c, int64_t token, int64_t took_ns);
void api_limit_worked(struct controller *c, int64_t token, int64_t took_ns); /* the loop */
/* whether it has time of the loop left */
bool api_limit_works(struct controller *c, int64_t token);

/* Writes to the audit trail. false: that failed; the error was answered. */
MUST_CHECK bool api_audit(struct api_call *call, const char *what, const char *detail);

const char *api_path_word(uint32_t state); /* api_fleet.c */
/* does nothing for other requests */
void api_stream_gone(struct controller *c, const struct http_request *request);
