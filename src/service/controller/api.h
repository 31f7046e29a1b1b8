/* api.h: what the API's files share: a request with its caller, arguments, pages, answers.
 *
 * docs/openapi.yaml says what each route takes and gives. Adding a route: one line in api.c's table
 * and a function. */
#pragma once
#include <jansson.h>

#include "service/controller/controller.h"
#include "service/controller/worker.h"

#define API_PAGE_DEFAULT 100
#define API_PAGE_MAX     1000
#define API_ALLOW_SIZE   40

enum role { ROLE_NONE, ROLE_VIEWER, ROLE_OPERATOR, ROLE_ADMIN };

struct api_call {
    struct controller *c;
    struct http_request *request;
    struct json_writer *j; /* empty */
    char who[64];          /* the token's name */
    int64_t token;         /* its number; 0: none was asked for */
    enum role role;
    const char *scope;          /* patterns of hosts that it sees; empty: all */
    uint8_t *visible;           /* by host index; NULL: all */
    char *host_ids;             /* the same for the store: "[1,5]"; NULL: all */
    const char *rest;           /* of the path, after the route's prefix */
    json_t *body;               /* of POST; NULL */
    char allow[API_ALLOW_SIZE]; /* of a method that isn't there: those that are */
    bool answered;              /* or will be, by whoever set it */
};
typedef void (*api_route)(struct api_call *call);

/* ---- scope.c: a tenant's token sees its own hosts, and what lies between them ---- */
bool scope_good(const char *scope);
bool scope_sees_name(const char *scope, const char *name);
MUST_CHECK int scope_open(struct api_call *call, const char *scope);
void scope_close(struct api_call *call);
bool api_sees(const struct api_call *call,
              const struct fleet_host *h); /* NULL: no host's; not a tenant's */
bool api_sees_nic(const struct api_call *call, uint32_t nic);
/* host: as the store numbers it; body: the detail. */
bool scope_sees_finding(const struct controller *c, const char *scope, int64_t host,
                        const char *body);
bool scope_sees_event(const struct controller *c, const char *scope, const char *kind, int64_t host,
                      const char *body);
bool scope_sees_alert(void *call, const struct alert *a); /* call: struct api_call */
bool scope_sees_incident(void *call, const struct alert_incident *i);

/* {"error":{"code":…,"message":…}} */
void api_error(struct api_call *call, unsigned status, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Of somebody without a good token: 401, or 429 where many come. */
void api_refuse_stranger(struct api_call *call, const char *code, const char *words);
/* What the writer holds; an ETag is made of it, 304 when the caller has it already. */
void api_answer(struct api_call *call);
/* An argument as a number: false: it isn't one, and that was answered. A missing one leaves *value.
 */
MUST_CHECK bool api_number(struct api_call *call, const char *name, int64_t min, int64_t max,
                           int64_t *value);
/* A host by an argument: true with NULL: not asked for. false: no such host, answered. */
MUST_CHECK bool api_host(struct api_call *call, const char *name, struct fleet_host **ret_host);
/* Refuses arguments that aren't of the NULL-ended list? No: unknown ones are ignored, as in any
 * version N-1. limit and cursor of a page: */
MUST_CHECK bool api_page(struct api_call *call, int64_t *ret_limit, int64_t *ret_cursor);
/* The same for bytes that aren't JSON. */
void api_answer_bytes(struct api_call *call, const char *type, const void *bytes, size_t size);

/* What the history thread does for a request; first member of what more it needs. In `done`, api_task_back says
 * whether somebody still waits for the answer. */
struct api_task {
    struct worker_job job;
    struct controller *c;
    int64_t token;
    struct http_request *request; /* the loop's; NULL: its reader is gone */
};
/* Zeroed; NULL: too many wait, answered. */
MUST_CHECK void *api_task_new(struct api_call *call, size_t size);
void api_task_begin(struct api_call *call, struct api_task *task);
MUST_CHECK bool api_task_back(struct api_task *task);
void api_store_error(struct api_call *call, int r);

/* ---- api_rows.c ---- */
/* Events or findings as the history thread finds them, shown by the loop. First member of what a route keeps meanwhile;
 * the route fills in a filter, on_event or on_finding, more, finish. */
struct api_rows {
    struct api_task task;
    struct api_call call; /* for what follows: the first one is over */
    struct json_writer json;
    struct store_event_filter events;
    struct store_finding_filter findings;
    /* One row; > 0: no more are wanted, < 0: an error. NULL: findings are looked for. */
    int (*on_event)(struct api_rows *rows, const struct store_event *e);
    int (*on_finding)(struct api_rows *rows, const struct store_finding *f);
    bool (*more)(struct api_rows *rows);    /* after all rows: look again, by a changed filter? */
    void (*finish)(struct api_rows *rows);  /* answers */
    void (*on_free)(struct api_rows *rows); /* may be NULL */
    /* its own */
    char scope[TOKEN_SCOPE_SIZE], *kind, *word, *hosts;
    struct row **list;
    size_t count, capacity;
    int rc;
};
/* Zeroed but for its own; NULL: answered. */
MUST_CHECK void *api_rows_new(struct api_call *call, size_t size);
/* Owns rows from now on; the scope is the caller's. */
void api_rows_begin(struct api_call *call, struct api_rows *rows);

/* ---- api_limit.c: of one token ---- */
/* false: it asks too often or for too much; answered. */
MUST_CHECK bool api_limit_admits(struct api_call *call, struct token *token);
MUST_CHECK bool api_limit_task(struct api_call *call); /* the same for the history thread */
void api_limit_task_begins(struct controller *c, int64_t token);
void api_limit_task_ends(struct controller *c, int64_t token, int64_t took_ns);
void api_limit_worked(struct controller *c, int64_t token, int64_t took_ns); /* the loop */

/* Writes to the audit trail; false: it couldn't be stored, answered. */
MUST_CHECK bool api_audit(struct api_call *call, const char *what, const char *detail);

/* ---- api_fleet.c ---- */
void api_get_status(struct api_call *call);
void api_get_hosts(struct api_call *call);
void api_get_host(struct api_call *call);
void api_get_nics(struct api_call *call);
void api_get_links(struct api_call *call);
void api_get_paths(struct api_call *call);
const char *api_path_word(uint32_t state);

/* ---- api_latency.c ---- */
void api_get_latency(struct api_call *call);

/* ---- api_history.c ---- */
void api_get_findings(struct api_call *call);
void api_get_events(struct api_call *call);
void api_get_series(struct api_call *call);

/* ---- api_stream.c ---- */
void api_get_event_stream(struct api_call *call);
void api_stream_gone(struct controller *c, const struct http_request *request); /* if it is one */

/* ---- api_sign_in.c ---- */
void api_post_sign_in_code(struct api_call *call);
void api_post_sign_in(struct api_call *call);

/* ---- api_admin.c ---- */
void api_delete_host(struct api_call *call);
void api_get_tokens(struct api_call *call);
void api_post_token(struct api_call *call);
void api_delete_token(struct api_call *call);
void api_post_join_token(struct api_call *call);
void api_get_audit(struct api_call *call);

/* ---- api_alert.c ---- */
void api_get_alerts(struct api_call *call);
void api_get_alert_rules(struct api_call *call);
void api_get_incidents(struct api_call *call);
void api_get_incident(struct api_call *call);
void api_post_incident(struct api_call *call);
void api_get_silences(struct api_call *call);
void api_post_silence(struct api_call *call);
void api_delete_silence(struct api_call *call);

/* ---- api_job.c ---- */
void api_get_jobs(struct api_call *call);
void api_get_job(struct api_call *call);
void api_get_savings(struct api_call *call);

/* ---- api_config.c ---- */
void api_get_config(struct api_call *call);
void api_get_config_versions(struct api_call *call);
void api_post_config(struct api_call *call);
void api_post_config_rollback(struct api_call *call);
void api_post_config_observe(struct api_call *call);

/* ---- api_level.c ---- */
void api_get_levels(struct api_call *call);

/* ---- api_measure.c ---- */
void api_get_measurements(struct api_call *call);
void api_get_measurement(struct api_call *call);
void api_post_measurement(struct api_call *call);
void api_delete_measurement(struct api_call *call);

/* ---- api_rotate.c ---- */
void api_get_rotation(struct api_call *call);
void api_post_rotation(struct api_call *call);

/* ---- api_fabric.c ---- */
void api_get_fabric(struct api_call *call);

/* ---- api_topology.c ---- */
void api_get_topology(struct api_call *call);
void api_get_topology_versions(struct api_call *call);
void api_post_topology(struct api_call *call);

/* ---- metrics.c ---- */
void api_get_metrics(struct api_call *call);
