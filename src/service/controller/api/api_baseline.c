/* api_baseline.c: runs that a person has accepted as good. The newest is the baseline: other runs are compared with it. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/audit/audit.h"
#include "service/controller/fleet/fleet.h"

enum { NAME_SIZE = 64 };

/* Counts the run's hosts that the caller sees, and those of them with measurements of that time; < 0: an error. If the caller
 * sees all hosts, one query counts them. Otherwise the loop would ask 10,000 times for each run. */
static int count_measured(const struct api_call *call, const json_t *hosts, int64_t began_ns,
                          int64_t ended_ns, uint32_t *ret_seen)
{
    int measured = 0;
    if (call->visible == NULL) {
        *ret_seen = (uint32_t)json_array_size(hosts);
        return store_part_now_count(call->c->store, began_ns, ended_ns);
    }
    *ret_seen = 0;
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        const struct fleet_host *h =
            fleet_host_by_id(call->c, json_integer_value(json_array_get(hosts, i)));
        if (api_sees(call, h)) {
            const int r = store_part_now_is(call->c->store, h->id, began_ns, ended_ns);
            if (r < 0) {
                return r;
            }
            measured += r;
            ++*ret_seen;
        }
    }
    return measured;
}

static int put_baseline(void *context, const struct store_audit_run *row)
{
    struct api_call *call = context;
    struct json_writer *j = call->j;
    json_t *body = json_loads(row->body, 0, NULL);
    const json_t *accepted = json_object_get(body, "accepted"),
                 *hosts = json_object_get(body, "hosts");
    const int64_t began_ns = json_integer_value(json_object_get(body, "started_utc_ns"));
    uint32_t seen = 0;
    char id[24];
    const int measured = count_measured(call, hosts, began_ns, row->ended_ns, &seen);
    if (measured < 0) {
        json_decref(body);
        return measured;
    }
    /* a tenant sees no run of other tenants' hosts only */
    if (call->visible != NULL && seen == 0) {
        json_decref(body);
        return 0;
    }
    snprintf(id, sizeof(id), "%lld", (long long)row->id);
    json_put_object(j, NULL);
    json_put_string(j, "run", id);
    json_put_string(j, "name", json_string_value(json_object_get(accepted, "name")));
    json_put_string(j, "who", json_string_value(json_object_get(accepted, "who")));
    json_put_int(j, "accepted_utc_ns", json_integer_value(json_object_get(accepted, "at_utc_ns")));
    json_put_int(j, "started_utc_ns", began_ns);
    json_put_uint(j, "hosts", seen);
    json_put_int(j, "measured", measured);
    json_put_end(j);
    json_decref(body);
    return 0;
}

void api_get_audit_baselines(struct api_call *call)
{
    json_put_object(call->j, NULL);
    json_put_array(call->j, "items");
    const int r = store_audit_accepted(call->c->store, put_baseline, call);
    if (r < 0) {
        api_store_error(call, r);
        return;
    }
    json_put_end(call->j);
    json_put_null(call->j, "next");
    json_put_end(call->j);
    api_answer(call);
}

static int take_row(void *context, const struct store_audit_run *row)
{
    struct store_audit_run *copy = context;
    *copy = *row;
    copy->body = strdup(row->body);
    return copy->body == NULL ? -ENOMEM : 0;
}

/* Stores the run's row with another `accepted`; NULL: without one. false: the error was answered. */
static bool change(struct api_call *call, int64_t id, json_t *accepted)
{
    struct store_audit_run row = {0};
    int r = store_audit_run_get(call->c->store, id, take_row, &row);
    json_t *body = r == 0 ? json_loads(row.body, 0, NULL) : NULL;
    const char *state = json_string_value(json_object_get(body, "state"));
    char *text = NULL;
    bool good = false;
    if (r == -ENOENT) {
        api_error(call, 404, "no-such-audit", "no such audit: GET /api/v1/audit/runs has them");
    } else if (accepted != NULL && (state == NULL || strcmp(state, "done") != 0)) {
        api_error(call, 409, "not-done", "audit %lld is %s: only one that is done can be accepted",
                  (long long)id, state != NULL ? state : "unreadable");
    } else {
        json_object_del(body, "accepted");
        if (accepted != NULL) {
            json_object_set(body, "accepted", accepted);
        }
        text = json_dumps(body, JSON_COMPACT);
        r = r < 0 ? r : text == NULL ? -ENOMEM : 0;
        const struct store_audit_run changed = {row.id, row.ended_ns, text};
        r = r < 0 ? r : store_audit_run_put(call->c->store, &changed);
        controller_touch(call->c);
        good = r == 0;
        if (r < 0) {
            api_store_error(call, r);
        }
    }
    free(text);
    json_decref(body);
    json_decref(accepted);
    free((char *)(uintptr_t)row.body);
    return good;
}

void api_post_audit_baseline(struct api_call *call)
{
    const char *run = json_string_value(json_object_get(call->body, "run")),
               *name = json_string_value(json_object_get(call->body, "name"));
    const int64_t id = run != NULL ? api_audit_named(call, run) : 0;
    char detail[160], plain[NAME_SIZE];
    if (id == 0 || (name != NULL && strlen(name) >= NAME_SIZE)) {
        api_error(call, id == 0 ? 404 : 400, id == 0 ? "no-such-audit" : "bad-body",
                  id == 0 ? "run: expected an audit of GET /api/v1/audit/runs"
                          : "name: at most 63 bytes");
        return;
    }
    plain_text(name != NULL ? name : "", plain, sizeof(plain));
    json_t *accepted = json_pack("{s:s, s:s, s:I}", "name", plain, "who", call->who, "at_utc_ns",
                                 (json_int_t)controller_utc_ns());
    if (accepted == NULL) {
        api_error(call, 503, "memory", "out of memory");
    } else if (change(call, id, accepted)) {
        snprintf(detail, sizeof(detail), "audit %lld as baseline %s", (long long)id, plain);
        if (api_audit(call, "audit.accept", detail)) {
            api_get_audit_baselines(call);
        }
    }
}

void api_delete_audit_baseline(struct api_call *call)
{
    const int64_t id = api_audit_named(call, call->rest);
    char detail[80];
    if (id == 0) {
        api_error(call, 404, "no-such-audit",
                  "no such audit: GET /api/v1/audit/baselines has them");
    } else if (change(call, id, NULL)) {
        snprintf(detail, sizeof(detail), "audit %lld as baseline", (long long)id);
        if (api_audit(call, "audit.unaccept", detail)) {
            api_get_audit_baselines(call);
        }
    }
}
