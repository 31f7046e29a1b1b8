/* api.c: the API's entry: finds a request's caller and route, and whether the caller may use it. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "service/controller/api/api.h"
#include "service/controller/api/live.h"
#include "service/controller/api/page.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/state.h"
#include "service/controller/trust/trust.h"

enum { API_BODY_SMALL = 64 << 10 };
enum { REFUSAL_RATE = 10, REFUSAL_BURST = 50 }; /* wrong tokens, of all clients together */

/* For monitoring and load balancers: it needs no token, and shows nothing secret. */
static void get_health(struct api_call *call)
{
    if (call->c->store_broken) {
        api_error(call, 503, "not-stored", "reports can't be stored at present");
        return;
    }
    json_put_object(call->j, NULL);
    json_put_string(call->j, "status", "ok");
    json_put_end(call->j);
    api_answer(call);
}

static const struct route {
    const char *method, *path; /* a path that ends in '/' takes a name after it */
    enum role role;
    api_route run;
    bool tenants; /* shows a tenant its own part; other routes refuse tenants */
} routes[] = {
    {"GET", "/api/v1/status", ROLE_VIEWER, api_get_status, true},
    {"GET", "/api/v1/hosts", ROLE_VIEWER, api_get_hosts, true},
    {"GET", "/api/v1/hosts/", ROLE_VIEWER, api_get_host, true},
    {"DELETE", "/api/v1/hosts/", ROLE_ADMIN, api_delete_host},
    {"GET", "/api/v1/nics", ROLE_VIEWER, api_get_nics, true},
    {"GET", "/api/v1/links", ROLE_VIEWER, api_get_links, true},
    {"GET", "/api/v1/paths", ROLE_VIEWER, api_get_paths, true},
    {"GET", "/api/v1/latency", ROLE_VIEWER, api_get_latency, true},
    {"GET", "/api/v1/findings", ROLE_VIEWER, api_get_findings, true},
    {"GET", "/api/v1/events", ROLE_VIEWER, api_get_events, true},
    {"GET", "/api/v1/events/stream", ROLE_VIEWER, api_get_event_stream, true},
    {"GET", "/api/v1/series", ROLE_VIEWER, api_get_series, true},
    {"GET", "/api/v1/alerts", ROLE_VIEWER, api_get_alerts, true},
    {"GET", "/api/v1/alert-rules", ROLE_VIEWER, api_get_alert_rules, true},
    {"GET", "/api/v1/incidents", ROLE_VIEWER, api_get_incidents, true},
    {"GET", "/api/v1/incidents/", ROLE_VIEWER, api_get_incident, true},
    {"POST", "/api/v1/incidents/", ROLE_OPERATOR, api_post_incident},
    {"GET", "/api/v1/silences", ROLE_VIEWER, api_get_silences},
    {"POST", "/api/v1/silences", ROLE_OPERATOR, api_post_silence},
    {"DELETE", "/api/v1/silences/", ROLE_OPERATOR, api_delete_silence},
    {"GET", "/api/v1/jobs", ROLE_VIEWER, api_get_jobs, true},
    {"GET", "/api/v1/jobs/", ROLE_VIEWER, api_get_job, true},
    {"GET", "/api/v1/savings", ROLE_VIEWER, api_get_savings, true},
    {"GET", "/api/v1/config", ROLE_VIEWER, api_get_config},
    {"GET", "/api/v1/config/versions", ROLE_VIEWER, api_get_config_versions},
    {"POST", "/api/v1/config", ROLE_ADMIN, api_post_config},
    {"POST", "/api/v1/config/rollback", ROLE_ADMIN, api_post_config_rollback},
    {"POST", "/api/v1/config/observe", ROLE_OPERATOR, api_post_config_observe},
    {"GET", "/api/v1/levels", ROLE_VIEWER, api_get_levels},
    {"GET", "/api/v1/measurements", ROLE_VIEWER, api_get_measurements},
    {"GET", "/api/v1/measurements/", ROLE_VIEWER, api_get_measurement},
    {"POST", "/api/v1/measurements", ROLE_OPERATOR, api_post_measurement},
    {"DELETE", "/api/v1/measurements/", ROLE_OPERATOR, api_delete_measurement},
    {"GET", "/api/v1/topology", ROLE_VIEWER, api_get_topology},
    {"GET", "/api/v1/fabric", ROLE_VIEWER, api_get_fabric},
    {"GET", "/api/v1/topology/versions", ROLE_VIEWER, api_get_topology_versions},
    {"POST", "/api/v1/topology", ROLE_ADMIN, api_post_topology},
    {"GET", "/api/v1/tokens", ROLE_ADMIN, api_get_tokens},
    {"POST", "/api/v1/tokens", ROLE_ADMIN, api_post_token},
    {"DELETE", "/api/v1/tokens/", ROLE_ADMIN, api_delete_token},
    {"POST", "/api/v1/join-tokens", ROLE_ADMIN, api_post_join_token},
    {"GET", "/api/v1/rotation", ROLE_ADMIN, api_get_rotation},
    {"POST", "/api/v1/rotation", ROLE_ADMIN, api_post_rotation},
    {"GET", "/api/v1/audit", ROLE_ADMIN, api_get_audit},
    {"GET", "/api/v1/audit/runs", ROLE_VIEWER, api_get_audit_runs, true},
    {"POST", "/api/v1/audit/runs", ROLE_OPERATOR, api_post_audit_run},
    {"GET", "/api/v1/audit/runs/", ROLE_VIEWER, api_get_audit_run, true},
    {"DELETE", "/api/v1/audit/runs/", ROLE_OPERATOR, api_delete_audit_run},
    {"GET", "/api/v1/audit/hosts/", ROLE_VIEWER, api_get_audit_host, true},
    {"GET", "/api/v1/audit/checks", ROLE_VIEWER, api_get_audit_checks, true},
    {"GET", "/api/v1/audit/cost", ROLE_VIEWER, api_get_audit_cost, true},
    {"GET", "/api/v1/audit/baselines", ROLE_VIEWER, api_get_audit_baselines, true},
    {"POST", "/api/v1/audit/baselines", ROLE_ADMIN, api_post_audit_baseline},
    {"DELETE", "/api/v1/audit/baselines/", ROLE_ADMIN, api_delete_audit_baseline},
    {"POST", "/api/v1/sign-in", ROLE_NONE, api_post_sign_in},
    {"POST", "/api/v1/sign-in/codes", ROLE_VIEWER, api_post_sign_in_code, true},
    {"GET", "/healthz", ROLE_NONE, get_health},
    {"GET", "/metrics", ROLE_VIEWER, api_get_metrics, true},
};

void api_error(struct api_call *call, unsigned status, const char *code, const char *format, ...)
{
    char message[500];
    const char *text = NULL;
    size_t size = 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    json_writer_reset(call->j);
    json_put_object(call->j, NULL);
    json_put_object(call->j, "error");
    json_put_string(call->j, "code", code);
    json_put_string(call->j, "message", message);
    json_put_end(call->j);
    json_put_end(call->j);
    call->answered = true;
    if (json_writer_finish(call->j, &text, &size) < 0) {
        http_answer_text(call->request, 503, "out of memory");
        return;
    }
    const bool later = status == 429 || status == 503;
    const struct http_header_field fields[] = {{"Cache-Control", "no-store"},
                                               {"X-Content-Type-Options", "nosniff"},
                                               {status == 401         ? "WWW-Authenticate"
                                                : call->allow[0] != 0 ? "Allow"
                                                : later               ? "Retry-After"
                                                                      : NULL,
                                                status == 401         ? "Bearer"
                                                : call->allow[0] != 0 ? call->allow
                                                                      : HTTP_RETRY_S},
                                               {NULL, NULL}};
    http_answer(call->request, status, "application/json", text, size, fields);
}

static uint64_t tag_of(const char *bytes, size_t size)
{
    uint64_t h = 0xcbf29ce484222325ULL ^ size;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
        h ^= h >> 29;
    }
    for (; size > 0; bytes++, size--) {
        h = (h ^ (uint8_t)*bytes) * 0x100000001b3ULL;
    }
    return h ^ h >> 32;
}

void api_answer_bytes(struct api_call *call, const char *type, const void *bytes, size_t size)
{
    const char *known = http_header(call->request, "If-None-Match");
    char tag[32];
    call->answered = true;
    /* a weak tag: of the content, whatever its compression */
    snprintf(tag, sizeof(tag), "W/\"%016llx\"", (unsigned long long)tag_of(bytes, size));
    const struct http_header_field fields[] = {{"ETag", tag},
                                               {"Cache-Control", "no-cache, private"},
                                               {"X-Content-Type-Options", "nosniff"},
                                               {NULL, NULL}};
    if (known != NULL && strcmp(known + (strncmp(known, "W/", 2) == 0 ? 2 : 0), tag + 2) == 0) {
        http_answer(call->request, 304, NULL, "", 0, fields);
    } else {
        http_answer(call->request, 200, type, bytes, size, fields);
    }
}

void api_answer(struct api_call *call)
{
    const char *text = NULL;
    size_t size = 0;
    const int r = json_writer_finish(call->j, &text, &size);
    if (r < 0) {
        call->answered = true;
        http_answer_text(call->request, r == -ENOSPC ? 413 : 503, "the answer is too large");
        return;
    }
    api_answer_bytes(call, "application/json", text, size);
}

/* ---- arguments ---- */

bool api_number(struct api_call *call, const char *name, int64_t min, int64_t max, int64_t *value)
{
    const char *text = http_query(call->request, name);
    char *end = NULL;
    if (text == NULL) {
        return true;
    }
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    if (*text == 0 || *end != 0 || errno != 0 || n < min || n > max) {
        api_error(call, 400, "bad-argument", "%s: expected a number from %lld to %lld", name,
                  (long long)min, (long long)max);
        return false;
    }
    *value = n;
    return true;
}

bool api_host(struct api_call *call, const char *name, struct fleet_host **ret_host)
{
    const char *text = http_query(call->request, name);
    *ret_host = text != NULL ? fleet_find_host(call->c, text) : NULL;
    *ret_host = api_sees(call, *ret_host) ? *ret_host : NULL;
    if (text != NULL && *ret_host == NULL) {
        api_error(call, 404, "no-such-host", "%s: no such host", name);
        return false;
    }
    return true;
}

bool api_page(struct api_call *call, int64_t *ret_limit, int64_t *ret_cursor)
{
    *ret_limit = API_PAGE_DEFAULT;
    *ret_cursor = 0;
    return api_number(call, "limit", 1, API_PAGE_MAX, ret_limit) &&
           api_number(call, "cursor", 0, INT64_MAX, ret_cursor);
}

void api_put_next(struct json_writer *j, bool more, int64_t next)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)next);
    json_put_string(j, "next", more ? text : NULL);
}

bool api_audit(struct api_call *call, const char *what, const char *detail)
{
    struct controller *c = call->c;
    const struct store_audit audit = {.at_ns = controller_utc_ns(),
                                      .who = call->who,
                                      .what = what,
                                      .detail = detail,
                                      .source = http_peer(call->request)};
    int r = store_audit_put(c->store, &audit);
    r = r < 0 ? r : store_commit(c->store);
    state_committed(c, r == 0);
    ingest_answer_waiting(c, r);
    if (r < 0) {
        api_error(call, 503, "not-stored", "%s: can't be stored: %s", what, strerror(-r));
        return false;
    }
    const char *from = http_peer(call->request);
    const struct journal_field fields[] = {
        {"FOLIOT_WHAT", what}, {"FOLIOT_WHO", call->who}, {"FOLIOT_SOURCE", from}, {NULL, NULL}};
    controller_note(LOG_NOTICE, fields, "audit: %s: %s, by %s from %s", what, detail, call->who,
                    from);
    return true;
}

/* ---- the entry ---- */

static enum role role_of(const char *word)
{
    return strcmp(word, "admin") == 0      ? ROLE_ADMIN
           : strcmp(word, "operator") == 0 ? ROLE_OPERATOR
           : strcmp(word, "viewer") == 0   ? ROLE_VIEWER
                                           : ROLE_NONE;
}

/* NULL: the token is not known. */
static struct token *who(struct controller *c, const struct http_request *request)
{
    const char *header = http_header(request, "Authorization");
    if (header == NULL || strncasecmp(header, "Bearer fla_", 11) != 0) {
        return NULL;
    }
    return token_find(c, header + 11, strlen(header + 11), false, false);
}

static bool too_many_refusals(struct controller *c)
{
    c->count.api_refused++;
    return !allowance_take(&c->strangers, REFUSAL_RATE, REFUSAL_BURST, controller_mono());
}

void api_refuse_stranger(struct api_call *call, const char *code, const char *words)
{
    const bool many = too_many_refusals(call->c);
    api_error(call, many ? 429 : 401, many ? "too-often" : code, "%s",
              many ? "too many wrong tokens: wait" : words);
}

/* NULL: no such route. ret_allow: the methods of the path; "" if there is no such path. */
static const struct route *find_route(const char *method, const char *path, const char **ret_rest,
                                      char ret_allow[API_ALLOW_SIZE])
{
    const bool head = strcmp(method, "HEAD") == 0; /* libmicrohttpd drops the body */
    snprintf(ret_allow, API_ALLOW_SIZE, "%s", page_has(path) ? "GET, HEAD" : "");
    for (size_t i = 0; i < ARRAY_COUNT(routes); i++) {
        const size_t length = strlen(routes[i].path);
        const bool prefix = routes[i].path[length - 1] == '/';
        if (prefix ? strncmp(path, routes[i].path, length) != 0 || path[length] == 0
                   : strcmp(path, routes[i].path) != 0) {
            continue;
        }
        const size_t used = strlen(ret_allow);
        const bool get = strcmp(routes[i].method, "GET") == 0;
        snprintf(ret_allow + used, API_ALLOW_SIZE - used, "%s%s", used > 0 ? ", " : "",
                 get ? "GET, HEAD" : routes[i].method);
        if (head ? get : strcmp(method, routes[i].method) == 0) {
            *ret_rest = path + length;
            ret_allow[0] = 0;
            return &routes[i];
        }
    }
    return NULL;
}

#define NIC_SORTS                                                                                  \
    "|nic|state|since|flaps_hour|flaps_day|speed|receives|sends|errors|rail|leaf|incident|"

#define NIC_PARAMETERS                                                                             \
    "|limit|cursor|host|rail|leaf|state|flaps_hour_min|unwatched|incident|q|sort|order|"

/* The parameters of each path, as in docs/openapi.yaml. Others are refused, because a misspelled filter would filter nothing. */
static const struct parameters {
    const char *path, *names; /* "|a|b|" */
} parameters[] = {
    {"/api/v1/hosts", "|limit|cursor|health|freshness|q|sensors_off|member|"},
    {"/api/v1/nics", NIC_PARAMETERS},
    {"/api/v1/links", NIC_PARAMETERS},
    {"/api/v1/paths", "|limit|cursor|from|to|host|state|"},
    {"/api/v1/latency", "|at|measurement|format|"},
    {"/api/v1/findings", "|limit|cursor|open|host|kind|since_utc_ns|until_utc_ns|"},
    {"/api/v1/events", "|limit|cursor|kind|word|host|after|since_utc_ns|until_utc_ns|"},
    {"/api/v1/events/stream", "|after|"},
    {"/api/v1/series", "|metric|from|to|port|nic|host|step_s|since_utc_ns|until_utc_ns|"},
    {"/api/v1/incidents", "|open|"},
    {"/api/v1/jobs", "|limit|cursor|state|"},
    {"/api/v1/jobs/", "|user|"},
    {"/api/v1/savings", "|restart_minutes|since_utc_ns|until_utc_ns|"},
    {"/api/v1/audit/runs", "|limit|cursor|"},
    {"/api/v1/audit/runs/", "|status|check|host|limit|cursor|with|"},
    {"/api/v1/audit/hosts/", "|age_s|"},
    {"/api/v1/fabric", "|limit|"},
    {"/api/v1/audit", "|limit|cursor|"},
};

/* The values of filters, as in docs/openapi.yaml. Others are refused, because a wrong value would look like an empty fleet. */
static const struct filter {
    const char *path, *name, *values; /* "|a|b|" */
} filters[] = {
    {"/api/v1/hosts", "health", "|unknown|ok|warn|bad|"},
    {"/api/v1/hosts", "freshness", "|never|live|late|stale|"},
    {"/api/v1/hosts", "sensors_off", "|true|"},
    {"/api/v1/hosts", "member", "|any|"},
    {"/api/v1/nics", "state", "|unknown|up|down|gone|"},
    {"/api/v1/nics", "unwatched", "|true|"},
    {"/api/v1/nics", "incident", "|accused|any|"},
    {"/api/v1/links", "state", "|unknown|up|down|gone|"},
    {"/api/v1/links", "unwatched", "|true|"},
    {"/api/v1/links", "incident", "|accused|any|"},
    {"/api/v1/nics", "sort", NIC_SORTS},
    {"/api/v1/nics", "order", "|asc|desc|"},
    {"/api/v1/links", "sort", NIC_SORTS},
    {"/api/v1/links", "order", "|asc|desc|"},
    {"/api/v1/paths", "state", "|unknown|alive|suspect|lossy|dead|"},
    {"/api/v1/findings", "open", "|true|false|"},
    {"/api/v1/events", "kind", "|finding|link|host|job|incident|controller|"},
    {"/api/v1/incidents", "open", "|true|false|"},
    {"/api/v1/audit/runs/", "status", "|fail|unknown|warn|"},
    {"/api/v1/jobs", "state", "|unknown|running|idle|parted|ended|killed|"},
};

static bool parameters_good(struct api_call *call, const struct route *route)
{
    const char *names = "|";
    if (route->role == ROLE_NONE ||
        route->run == api_get_metrics) { /* a monitoring system asks, not a client of ours */
        return true;
    }
    for (size_t i = 0; i < ARRAY_COUNT(parameters) && strcmp(route->method, "GET") == 0; i++) {
        names = strcmp(route->path, parameters[i].path) == 0 ? parameters[i].names : names;
    }
    const char *wrong = http_query_wrong(call->request, names);
    if (wrong != NULL) {
        api_error(call, 400, "bad-argument", "%.40s: expected %s%.*s, each once and with a value",
                  wrong, names[1] != 0 ? "one of " : "no parameter",
                  names[1] != 0 ? (int)strlen(names) - 2 : 0, names + 1);
    }
    return wrong == NULL;
}

static bool filters_good(struct api_call *call, const struct route *route)
{
    for (size_t i = 0; i < ARRAY_COUNT(filters); i++) {
        const struct filter *f = &filters[i];
        const char *value =
            strcmp(route->path, f->path) == 0 ? http_query(call->request, f->name) : NULL;
        if (value != NULL && !http_among(f->values, value)) {
            api_error(call, 400, "bad-filter", "%s: expected one of %.*s", f->name,
                      (int)strlen(f->values) - 2, f->values + 1);
            return false;
        }
    }
    return true;
}

/* The fields of each body, as in docs/openapi.yaml. Others are refused: a misspelled field would give a token without its
 * scope or its end, or a dry run that is none. */
static const struct body {
    const char *path, *names; /* "|a|b|" */
    const char *flags;        /* those that are true or false; NULL: none */
} bodies[] = {
    {"/api/v1/incidents/", "|acknowledge|", "|acknowledge|"},
    {"/api/v1/silences", "|rule|host|element|minutes|from_utc_ns|maintenance|why|",
     "|maintenance|"},
    {"/api/v1/config", "|text|why|canary_percent|watch_s|dry_run|", "|dry_run|"},
    {"/api/v1/config/rollback", "|version|", NULL},
    {"/api/v1/config/observe", "|on|", "|on|"},
    {"/api/v1/measurements", "|kind|host|seconds|rail|", NULL},
    {"/api/v1/audit/runs", "|hosts|matrix|bandwidth|nccl|family|", "|matrix|bandwidth|nccl|"},
    {"/api/v1/audit/baselines", "|run|name|", NULL},
    {"/api/v1/topology", "|text|why|", NULL},
    {"/api/v1/tokens", "|name|role|hours|scope|", NULL},
    {"/api/v1/join-tokens", "|uses|hours|name|scope|", NULL},
    {"/api/v1/sign-in", "|code|", NULL},
    {"/api/v1/rotation", "|what|after_s|finish|", "|finish|"},
};

static bool fields_good(struct api_call *call, const struct route *route)
{
    struct body of = {.names = "|"};
    const char *name;
    json_t *value;
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        of = strcmp(route->path, bodies[i].path) == 0 ? bodies[i] : of;
    }
    json_object_foreach(call->body, name, value)
    {
        if (!http_among(of.names, name)) {
            api_error(call, 400, "bad-body", "%.40s: expected %s%.*s", name,
                      of.names[1] != 0 ? "one of " : "no field",
                      of.names[1] != 0 ? (int)strlen(of.names) - 2 : 0, of.names + 1);
            return false;
        }
        if (http_among(of.flags, name) && !json_is_boolean(value)) {
            api_error(call, 400, "bad-body", "%s: expected true or false", name);
            return false;
        }
    }
    return true;
}

static bool parse_body(struct api_call *call, const struct route *route)
{
    size_t size = 0;
    json_error_t error;
    const char *text = http_body(call->request, &size);
    call->body = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(call->body)) {
        api_error(call, 400, "bad-body", "expected a JSON object: %s", error.text);
        return false;
    }
    return fields_good(call, route);
}

/* Root on this machine, or the user that the controller runs as: both could read the store and the keys anyway. A caller with
 * a token has that token's role. */
static const struct token *local_admin(const struct http_request *request)
{
    static const struct token root = {.name = "local root", .role = "admin"},
                              own = {.name = "local controller's user", .role = "admin"};
    uid_t user = 0;
    if (http_header(request, "Authorization") != NULL || http_peer_user(request, &user) < 0) {
        return NULL;
    }
    return user == 0 ? &root : user == geteuid() ? &own : NULL;
}

/* false: answered. */
static bool admit(struct api_call *call, const struct token *token, const struct route *route)
{
    snprintf(call->who, sizeof(call->who), "%s", token->name);
    call->token = token->id;
    call->role = role_of(token->role);
    http_set_known(call->request);
    if (call->role < route->role) {
        call->c->count.api_refused++;
        api_error(call, 403, "not-allowed", "the token's role (%s) is not enough", token->role);
        return false;
    }
    if (token->scope[0] != 0 && !route->tenants) {
        call->c->count.api_refused++;
        api_error(call, 403, "not-allowed", "not for a token with a scope (%s)", token->scope);
        return false;
    }
    if (scope_open(call, token->scope) < 0) {
        api_error(call, 503, "memory", "out of memory");
        return false;
    }
    return true;
}

/* Only an admin may send a large body, and only to declare a topology. Otherwise a stranger could make the server hold
 * megabytes for each connection. */
unsigned api_on_head(void *context, struct http_request *request)
{
    const char *length = http_header(request, "Content-Length");
    if (length == NULL || strtoull(length, NULL, 10) <= API_BODY_SMALL) {
        return 0;
    }
    if (strcmp(http_method(request), "POST") != 0 ||
        strcmp(http_path(request), "/api/v1/topology") != 0) {
        return 413;
    }
    const struct token *token = who(context, request);
    token = token != NULL ? token : local_admin(request);
    return token != NULL && role_of(token->role) >= ROLE_ADMIN ? 0 : 413;
}

static void answer(struct controller *c, struct http_request *request)
{
    struct api_call call = {.c = c, .request = request, .j = &c->json, .who = "-", .scope = ""};
    const struct route *route =
        find_route(http_method(request), http_path(request), &call.rest, call.allow);
    const bool known = call.allow[0] != 0;
    c->count.api_requests++;
    json_writer_reset(&c->json);
    if (route == NULL) {
        api_error(&call, known ? 405 : 404, known ? "bad-method" : "no-such-path",
                  known ? "the path does not take this method"
                        : "no such path: /api/v1/openapi.yaml has them all");
        return;
    }
    const bool open =
        route->role == ROLE_NONE || (route->run == api_get_metrics && c->config.metrics_open);
    struct token *given = open ? NULL : who(c, request);
    const struct token *token = given != NULL || open ? given : local_admin(request);
    if (given != NULL) {
        given->used_ns = controller_utc_ns();
    }
    if (!open && token == NULL) {
        api_refuse_stranger(&call, "no-token", "expected 'Authorization: Bearer fla_…'");
        return;
    }
    if ((given != NULL && !api_limit_admits(&call, given)) ||
        (token != NULL && !admit(&call, token, route))) {
        return;
    }
    journal_about("FOLIOT_WHO", call.who);
    const struct mono before = controller_mono();
    if (parameters_good(&call, route) && filters_good(&call, route) &&
        (strcmp(route->method, "POST") != 0 || parse_body(&call, route))) {
        route->run(&call);
    }
    api_limit_worked(c, call.token, mono_sub(controller_mono(), before).ns);
    scope_close(&call);
    json_decref(call.body);
    ASSERT(call.answered);
}

void api_on_request(void *context, struct http_request *request)
{
    if (!page_answer(request)) {
        journal_about("FOLIOT_SOURCE", http_peer(request));
        answer(context, request);
        journal_about("FOLIOT_SOURCE", NULL);
        journal_about("FOLIOT_WHO", NULL);
    }
}
