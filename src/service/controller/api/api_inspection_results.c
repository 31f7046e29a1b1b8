/* api_inspection_results.c: results of an audit, of all its hosts, in pages. Tenants don't get everything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/audit/audit.h"
#include "service/controller/fleet/fleet.h"

struct filter_of {
    bool status[AUDIT_STATUS_COUNT];
    const char *check;
    const struct fleet_host *host;
    int64_t limit, cursor, at;
    bool more;
    int64_t
        from; /* of results: the first one of the host at the cursor, then where the next page begins */
};

/* A cursor holds a host and the number of one of its results, so that the hosts before it are not read again. */
enum { RESULT_BITS = 24 };

static bool read_statuses(struct api_call *call, struct filter_of *f)
{
    const char *text = http_query(call->request, "status");
    for (int k = 0; k < AUDIT_STATUS_COUNT; k++) {
        f->status[k] = text == NULL ? k < AUDIT_PASS : strcmp(text, audit_status_name(k)) == 0;
    }
    return true;
}

/* True if the result may be about another host. Results of older releases have no `peer`, so they may be. */
static bool names_unseen(const struct api_call *call, const struct check *check,
                         const json_t *result)
{
    const json_t *peer = json_object_get(result, "peer");
    const bool pair =
        check != NULL && (check->each == FACT_EDGE || check->each == FACT_LANE ||
                          check->each == FACT_MATRIX_PATH || check->each == FACT_MATRIX_LATE);
    return check == NULL || (pair && peer == NULL) ||
           (json_is_string(peer) && scope_hides(call, json_string_value(peer)));
}

void api_hide_audit_result(const struct api_call *call, json_t *result)
{
    const char *id = json_string_value(json_object_get(result, "check")),
               *status = json_string_value(json_object_get(result, "status")),
               *reason = json_string_value(json_object_get(result, "reason"));
    if (call->visible == NULL || id == NULL || status == NULL) {
        return;
    }
    const struct check *check = check_by_id(id);
    if (strcmp(status, audit_status_name(AUDIT_UNKNOWN)) != 0 ||
        (reason != NULL && strcmp(reason, audit_reason_name(REASON_NO_MAJORITY)) == 0)) {
        json_object_set_new(result, "note", json_string(""));
    }
    json_object_set_new(result, "cohort", json_integer(0));
    if (json_object_get(result, "basis") == NULL) { /* older releases kept both in one sentence */
        json_object_set_new(result, "expected", json_string(""));
    }
    json_object_set_new(result, "basis", json_string(""));
    json_object_set_new(result, "baseline", json_null());
    if (names_unseen(call, check, result)) {
        json_object_set_new(result, "subject", json_string(""));
        json_object_set_new(result, "device", json_null());
        json_object_set_new(result, "peer", json_null());
        json_object_set_new(result, "source", json_null());
        json_object_set_new(result, "evidence", json_array());
    }
}

/* True if the host may have a wanted result. Its marks have the worst status of each check, so most hosts need not be read. */
static bool may_have(const struct audit_outcome *o, const struct audit_found *found,
                     const struct filter_of *f)
{
    unsigned mildest = 0;
    for (unsigned k = 0; k < AUDIT_STATUS_COUNT; k++) {
        mildest = f->status[k] ? k : mildest;
    }
    for (uint32_t i = 0; i < o->check_count; i++) {
        if ((f->check == NULL || strcmp(o->checks[i], f->check) == 0) &&
            (unsigned)audit_mark_status(found->marks[i]) <= mildest) {
            return true;
        }
    }
    return false;
}

static void put_results_of(struct api_call *call, const struct audit_found *found,
                           struct filter_of *f)
{
    json_t *results = json_loadb(found->results, found->size, 0, NULL), *result;
    size_t i;
    json_array_foreach(results, i, result)
    {
        const char *check = json_string_value(json_object_get(result, "check")),
                   *status = json_string_value(json_object_get(result, "status"));
        bool wanted = false;
        for (int k = 0; k < AUDIT_STATUS_COUNT; k++) {
            wanted = wanted ||
                     (f->status[k] && status != NULL && strcmp(status, audit_status_name(k)) == 0);
        }
        if (!wanted || (f->check != NULL && (check == NULL || strcmp(check, f->check) != 0)) ||
            (int64_t)i < f->from) {
            continue;
        }
        if (f->at == f->limit) {
            f->more = true;
            f->from = (int64_t)i;
            break;
        }
        f->at++;
        api_hide_audit_result(call, result);
        char *text = json_dumps(result, JSON_COMPACT);
        if (text != NULL) {
            json_put_raw(call->j, NULL, text);
            free(text);
        }
    }
    json_decref(results);
}

void api_answer_audit_results(struct api_call *call, int64_t id)
{
    struct filter_of f = {.check = http_query(call->request, "check")};
    const struct audit_outcome *o = NULL;
    struct fleet_host *host = NULL;
    if (!api_page(call, &f.limit, &f.cursor) || !api_host(call, "host", &host) ||
        !read_statuses(call, &f)) {
        return;
    }
    if (f.check != NULL && check_by_id(f.check) == NULL) {
        api_error(call, 404, "no-such-check",
                  "check: no such check: /api/v1/audit/checks has them all");
        return;
    }
    const int r = audit_outcome_get(call->c, id, &o);
    if (r < 0) {
        api_store_error(call, r);
        return;
    }
    json_put_object(call->j, NULL);
    json_put_array(call->j, "items");
    uint32_t at = (uint32_t)(f.cursor >> RESULT_BITS);
    f.from = f.cursor & ((1 << RESULT_BITS) - 1);
    for (; at < o->count && !f.more; at++) {
        const struct fleet_host *h = scope_host(call, o->found[at].host);
        if (h != NULL && (host == NULL || h == host) && may_have(o, &o->found[at], &f)) {
            put_results_of(call, &o->found[at], &f);
        }
        f.from = f.more ? f.from : 0;
    }
    json_put_end(call->j);
    char next[24];
    snprintf(next, sizeof(next), "%lld", (long long)(at - 1) << RESULT_BITS | (long long)f.from);
    json_put_string(call->j, "next", f.more ? next : NULL);
    json_put_end(call->j);
    api_answer(call);
}
