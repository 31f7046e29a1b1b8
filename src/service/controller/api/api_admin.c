/* api_admin.c: requests that change something, and the audit trail. Each change is in the audit trail before it is answered. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "service/controller/api/api.h"
#include "service/controller/api/live.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/state.h"
#include "service/controller/trust/tenant.h"
#include "service/controller/trust/trust.h"

/* ---- hosts ---- */

void api_delete_host(struct api_call *call)
{
    struct controller *c = call->c;
    struct fleet_host *h = fleet_find_host(c, call->rest);
    char detail[128];
    if (h == NULL || !h->member) {
        api_error(call, 404, "no-such-host", "no such host");
        return;
    }
    snprintf(detail, sizeof(detail), "host %s", h->name);
    const struct store_event event = {.at_ns = controller_utc_ns(),
                                      .host = h->id,
                                      .kind = "host",
                                      .word = "removed",
                                      .body = "{}"};
    int r = store_commit(c->store); /* other changes that wait are stored first */
    state_committed(c, r == 0);
    ingest_answer_waiting(c, r);
    r = r < 0 ? r : fleet_remove(c, h);
    r = r < 0 ? r : state_event(c, &event);
    if (r < 0) {
        controller_store_failed(c, r, "a host's removal");
        api_error(call, 503, "not-stored", "the host's removal can't be stored: %s", strerror(-r));
        return;
    }
    if (!api_audit(call, "host.remove", detail)) {
        /* memory has the change, the disk has not: restart from the disk */
        c->exit_code = EXIT_FAILURE;
        sd_event_exit(c->loop, EXIT_FAILURE);
        return;
    }
    controller_say(LOG_NOTICE, "host %s is removed by %s", h->name, call->who);
    alarm_on_removed(c, h);
    alarm_run(c);
    json_writer_reset(call->j);
    json_put_object(call->j, NULL);
    json_put_string(call->j, "removed", h->name);
    json_put_end(call->j);
    api_answer(call);
}

/* ---- tokens ---- */

void api_get_tokens(struct api_call *call)
{
    const struct controller *c = call->c;
    struct json_writer *j = call->j;
    json_put_object(j, NULL);
    json_put_array(j, "items");
    for (size_t i = 0; i < c->token_count; i++) {
        const struct token *t = &c->tokens[i];
        json_put_object(j, NULL);
        json_put_int(j, "id", t->id);
        json_put_string(j, "name", t->name);
        json_put_string(j, "role", t->role);
        json_put_string(j, "scope", t->scope[0] != 0 ? t->scope : NULL);
        json_put_int(j, "created_utc_ns", t->created_ns);
        json_put_int_if(j, "expires_utc_ns", t->expires_ns != 0, t->expires_ns);
        json_put_int_if(j, "used_utc_ns", t->used_ns != 0, t->used_ns);
        json_put_int_if(j, "uses_left", strcmp(t->role, "join") == 0, t->uses_left);
        json_put_end(j);
    }
    json_put_end(j);
    json_put_null(j, "next");
    json_put_end(j);
    api_answer(call);
}

/* Memory has the change, the disk has not: reads the tokens again. */
static void reload(struct controller *c)
{
    const int r = tokens_load(c);
    if (r < 0) {
        controller_store_failed(c, r, "a look at the tokens");
    }
}

static void refresh_tenants(struct controller *c)
{
    if (tenant_refresh(c) < 0) {
        controller_say(LOG_WARNING, "out of memory: hosts stay with the tenants that they had");
    }
}

static void make(struct api_call *call, const struct token_wish *wish)
{
    char text[TOKEN_TEXT_SIZE], detail[160 + TOKEN_SCOPE_SIZE];
    int64_t id = 0;
    const int r = token_make(call->c, wish, text, &id);
    if (r == -EEXIST) {
        api_error(call, 409, "name-taken", "a token %s exists: take another name, or revoke it",
                  wish->name);
        return;
    }
    if (r < 0) {
        controller_store_failed(call->c, r, "a token");
        api_error(call, 503, "not-stored", "the token can't be stored: %s", strerror(-r));
        return;
    }
    snprintf(detail, sizeof(detail), "token %lld %s (%s%s%s)", (long long)id, wish->name,
             wish->role, wish->scope != NULL ? ", " : "", wish->scope != NULL ? wish->scope : "");
    if (!api_audit(call, "token.make", detail)) {
        reload(call->c);
        return;
    }
    refresh_tenants(call->c);
    json_writer_reset(call->j);
    json_put_object(call->j, NULL);
    json_put_int(call->j, "id", id);
    json_put_string(call->j, "name", wish->name);
    json_put_string(call->j, "role", wish->role);
    json_put_string(call->j, "scope", wish->scope);
    json_put_string(call->j, "token", text);
    json_put_end(call->j);
    api_answer(call);
}

static bool body_number(struct api_call *call, const char *key, int64_t max, int64_t *value)
{
    const json_t *v = json_object_get(call->body, key);
    if (v != NULL &&
        (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > max)) {
        api_error(call, 400, "bad-body", "%s: expected a whole number from 1 to %lld", key,
                  (long long)max);
        return false;
    }
    *value = v != NULL ? json_integer_value(v) : *value;
    return true;
}

void api_post_token(struct api_call *call)
{
    const char *name = json_string_value(json_object_get(call->body, "name")),
               *role = json_string_value(json_object_get(call->body, "role"));
    int64_t hours = 0;
    if (name == NULL || strlen(name) == 0 || strlen(name) > 63 || role == NULL ||
        (strcmp(role, "viewer") != 0 && strcmp(role, "operator") != 0 &&
         strcmp(role, "admin") != 0)) {
        api_error(call, 400, "bad-body",
                  "expected name (1 to 63 characters) and role (viewer, operator, admin)");
        return;
    }
    const json_t *wanted = json_object_get(call->body, "scope");
    const char *scope = json_string_value(wanted);
    if ((wanted != NULL && scope == NULL) ||
        (scope != NULL && (scope[0] == 0 || !scope_good(scope) || strcmp(role, "viewer") != 0))) {
        api_error(
            call, 400, "bad-body",
            "scope: expected patterns of hosts (* and ?), separated by commas, and role viewer");
        return;
    }
    if (body_number(call, "hours", 87600, &hours)) {
        make(call, &(struct token_wish){
                       .name = name, .role = role, .scope = scope, .life_s = hours * 3600});
    }
}

void api_post_join_token(struct api_call *call)
{
    const json_t *wanted = json_object_get(call->body, "scope"),
                 *named = json_object_get(call->body, "name");
    const char *scope = json_string_value(wanted), *given = json_string_value(named);
    int64_t hours = 24, uses = 1;
    char name[TOKEN_NAME_SIZE];
    if ((wanted != NULL && (scope == NULL || scope[0] == 0 || !scope_good(scope))) ||
        (named != NULL && (given == NULL || given[0] == 0 || strlen(given) > 63))) {
        api_error(call, 400, "bad-body",
                  "expected name (1 to 63 characters), and scope: patterns of the hosts that may "
                  "join (* and ?), separated by commas");
        return;
    }
    token_free_name(call->c, "join", name);
    if (body_number(call, "hours", 87600, &hours) && body_number(call, "uses", 100000, &uses)) {
        make(call, &(struct token_wish){.name = given != NULL ? given : name,
                                        .role = "join",
                                        .scope = scope,
                                        .life_s = hours * 3600,
                                        .uses = uses});
    }
}

void api_delete_token(struct api_call *call)
{
    char *end = NULL, detail[64];
    const long long id = strtoll(call->rest, &end, 10);
    const int r = *end != 0 ? -ENOENT : token_remove(call->c, id);
    if (r == -ENOENT) {
        api_error(call, 404, "no-such-token", "no such token");
        return;
    }
    snprintf(detail, sizeof(detail), "token %lld", id);
    if (r < 0) {
        controller_store_failed(call->c, r, "a token's end");
        api_error(call, 503, "not-stored", "the token's removal can't be stored: %s", strerror(-r));
        return;
    }
    if (!api_audit(call, "token.remove", detail)) {
        reload(call->c);
        return;
    }
    refresh_tenants(call->c);
    api_watch_streams(call->c); /* a revoked token's streams end before this answer */
    json_writer_reset(call->j);
    json_put_object(call->j, NULL);
    json_put_int(call->j, "removed", id);
    json_put_end(call->j);
    api_answer(call);
}

/* ---- audit ---- */

struct audit_listing {
    struct json_writer *j;
    int64_t count, last;
};

static int put_audit(void *context, const struct store_audit *a)
{
    struct audit_listing *l = context;
    json_put_object(l->j, NULL);
    json_put_int(l->j, "id", a->id);
    json_put_int(l->j, "at_utc_ns", a->at_ns);
    json_put_string(l->j, "who", a->who);
    json_put_string(l->j, "what", a->what);
    json_put_string(l->j, "detail", a->detail);
    json_put_string(l->j, "source", a->source[0] != 0 ? a->source : NULL);
    json_put_end(l->j);
    l->count++;
    l->last = a->id;
    return 0;
}

void api_get_audit(struct api_call *call)
{
    struct audit_listing l = {.j = call->j};
    int64_t limit, cursor;
    char next[24];
    if (!api_page(call, &limit, &cursor)) {
        return;
    }
    json_put_object(call->j, NULL);
    json_put_array(call->j, "items");
    const int r = store_audits(call->c->store, cursor, (int)limit, put_audit, &l);
    if (r < 0) {
        api_error(call, 503, "store", "the audit trail can't be read: %s", strerror(-r));
        return;
    }
    json_put_end(call->j);
    snprintf(next, sizeof(next), "%lld", (long long)l.last);
    json_put_string(call->j, "next", l.count == limit ? next : NULL);
    json_put_end(call->j);
    api_answer(call);
}
