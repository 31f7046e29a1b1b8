/* api_inspection.c: audits of the fleet at the API: runs, their outcome by check, the catalogue. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/audit/check_json.h"
#include "service/audit/result_json.h"
#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/audit/perf.h"
#include "service/controller/fleet/fleet.h"

static void put_counts(struct json_writer *j, const uint32_t counts[AUDIT_STATUS_COUNT])
{
    result_write_counts(j, "counts", counts);
}

/* ---- runs ---- */

struct put_run {
    int64_t count, limit, last; /* rows that were put, their limit, the run of the last row */
    struct api_call *call;
    const struct audit_outcome *outcome; /* NULL: only the row's content */
};

static void put_not_read(struct api_call *call, const char *key, const json_t *body)
{
    struct json_writer *j = call->j;
    size_t i;
    json_t *o;
    json_put_array(j, key);
    json_array_foreach(json_object_get(body, "left_out"), i, o)
    {
        const struct fleet_host *h =
            scope_host(call, json_integer_value(json_object_get(o, "host")));
        if (h != NULL) {
            json_put_object(j, NULL);
            json_put_string(j, "host", h->name);
            json_put_string(j, "reason", json_string_value(json_object_get(o, "reason")));
            json_put_string(j, "note", json_string_value(json_object_get(o, "note")));
            json_put_end(j);
        }
    }
    json_put_end(j);
}

/* Counts hosts by their worst status, and for each check the hosts by status. */
static void put_outcome(struct api_call *call, const struct audit_outcome *o)
{
    struct json_writer *j = call->j;
    uint32_t hosts[AUDIT_STATUS_COUNT] = {0};
    for (uint32_t i = 0; i < o->count; i++) {
        if (scope_host(call, o->found[i].host) != NULL) {
            hosts[audit_found_worst(o, &o->found[i], "")]++;
        }
    }
    put_counts(j, hosts);
    json_put_array(j, "checks");
    for (uint32_t k = 0; k < o->check_count; k++) {
        const struct check *check = check_by_id(o->checks[k]);
        uint32_t counts[AUDIT_STATUS_COUNT] = {0};
        for (uint32_t i = 0; i < o->count; i++) {
            const enum audit_status status = audit_mark_status(o->found[i].marks[k]);
            if (status < AUDIT_STATUS_COUNT && scope_host(call, o->found[i].host) != NULL) {
                counts[status]++;
            }
        }
        json_put_object(j, NULL);
        json_put_string(j, "check", o->checks[k]);
        json_put_string(j, "group", check != NULL ? check_group_name(check->group) : NULL);
        json_put_string(j, "part", check != NULL ? check_part_name(check) : NULL);
        put_counts(j, counts);
        json_put_end(j);
    }
    json_put_end(j);
}

/* A tenant sees a host that was switched off only if it sees that host. */
static void put_off(struct api_call *call, const json_t *body)
{
    struct json_writer *j = call->j;
    size_t i;
    json_t *o;
    json_put_array(j, "off");
    json_array_foreach(json_object_get(body, "off"), i, o)
    {
        const char *kind = json_string_value(json_object_get(o, "kind")),
                   *name = json_string_value(json_object_get(o, "name"));
        if (kind == NULL || name == NULL ||
            (strcmp(kind, "host") == 0 && scope_hides(call, name))) {
            continue;
        }
        json_put_object(j, NULL);
        json_put_string(j, "kind", kind);
        json_put_string(j, "name", name);
        json_put_string(j, "by", json_string_value(json_object_get(o, "by")));
        json_put_end(j);
    }
    json_put_end(j);
}

/* Checks that most hosts fail. A tenant doesn't see them, because they depend on other tenants' hosts. */
static void put_suspects(struct api_call *call, const json_t *body)
{
    const json_t *suspect = call->visible == NULL ? json_object_get(body, "suspect") : NULL;
    size_t i;
    json_t *id;
    json_put_array(call->j, "suspect");
    json_array_foreach(suspect, i, id)
    {
        json_put_string(call->j, NULL, json_string_value(id));
    }
    json_put_end(call->j);
}

static uint32_t seen_of(const struct api_call *call, const json_t *hosts)
{
    uint32_t count = 0;
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        count += scope_host(call, json_integer_value(json_array_get(hosts, i))) != NULL;
    }
    return count;
}

/* The reason why a stage was not begun. It may tell how many other hosts there are, so a tenant doesn't see it. */
static void put_why_not(struct api_call *call, const json_t *body, const char *key)
{
    const char *why = call->visible == NULL ? json_string_value(json_object_get(body, key)) : NULL;
    json_put_string(call->j, key, why != NULL && why[0] != 0 ? why : NULL);
}

/* The tests' progress while they run, and their results afterwards. */
static void put_tests(struct api_call *call, const json_t *body, const struct audit_run *run)
{
    struct json_writer *j = call->j;
    json_put_bool(j, "bandwidth", json_is_true(json_object_get(body, "bandwidth")));
    json_put_bool(j, "nccl", json_is_true(json_object_get(body, "nccl")));
    put_why_not(call, body, "tests_why");
    if (run != NULL && run->state == AUDIT_TESTING && call->visible == NULL) {
        json_put_uint(j, "tests_done", run->perf->done);
        json_put_uint(j, "tests_planned", run->perf->tests);
    }
    api_put_audit_tests(call, json_object_get(body, "tests"));
}

static void put_stage(struct json_writer *j, const char *stage, json_int_t done, json_int_t of)
{
    if (of <= 0) { /* the stage was not run, or a tenant may not see it */
        json_put_null(j, stage);
        return;
    }
    json_put_object(j, stage);
    json_put_int(j, "done", done);
    json_put_int(j, "of", of);
    json_put_end(j);
}

/* How far each stage of an ended run came. */
static void put_covered(struct api_call *call, const json_t *body, uint32_t hosts)
{
    struct json_writer *j = call->j;
    const json_t *is = call->visible == NULL ? json_object_get(body, "covered") : NULL, *o;
    uint32_t unread = 0;
    size_t i;
    json_array_foreach(json_object_get(body, "left_out"), i, o)
    {
        unread += scope_host(call, json_integer_value(json_object_get(o, "host"))) != NULL;
    }
    json_put_object(j, "covered");
    put_stage(j, "sheets", hosts - unread, hosts);
    put_stage(j, "cells", json_integer_value(json_object_get(is, "cells")),
              json_integer_value(json_object_get(is, "cells_of")));
    put_stage(j, "tests", json_integer_value(json_object_get(is, "tests")),
              json_integer_value(json_object_get(is, "tests_of")));
    json_put_end(j);
}

static int put_row(void *context, const struct store_audit_run *row)
{
    struct put_run *p = context;
    struct api_call *call = p->call;
    struct json_writer *j = call->j;
    const struct audit_run *run = audit_in_memory(call->c, row->id);
    json_t *body = json_loads(row->body, 0, NULL);
    const uint32_t hosts = seen_of(call, json_object_get(body, "hosts"));
    /* a tenant sees no run of other tenants' hosts only */
    if (call->visible != NULL && hosts == 0) {
        json_decref(body);
        return 0;
    }
    p->count++;
    p->last = row->id;
    const char *why = json_string_value(json_object_get(body, "why"));
    const bool runs = run != NULL, saved = run == NULL || run == call->c->audits->running;
    why = saved ? why : "its results are not stored yet: the store can't be written";
    char id[24];
    uint32_t waits = 0;
    for (uint32_t i = 0; runs && i < run->count; i++) {
        waits += run->members[i].waits && scope_host(call, run->members[i].host) != NULL;
    }
    snprintf(id, sizeof(id), "%lld", (long long)row->id);
    json_put_object(j, NULL);
    json_put_string(j, "run", id);
    json_put_string(j, "state",
                    runs ? audit_state_name(saved ? run->state : AUDIT_JUDGING)
                         : json_string_value(json_object_get(body, "state")));
    json_put_string(j, "who", json_string_value(json_object_get(body, "who")));
    json_put_string(j, "why", why != NULL && why[0] != 0 ? why : NULL);
    json_put_int(j, "started_utc_ns", json_integer_value(json_object_get(body, "started_utc_ns")));
    json_put_int_if(j, "ended_utc_ns", row->ended_ns != 0, row->ended_ns);
    json_put_bool(j, "whole", json_is_true(json_object_get(body, "whole")));
    json_put_uint(j, "hosts", hosts);
    json_put_uint(j, "unanswered", waits);
    json_put_uint(j, "look", runs && run->second ? 2 : 1);
    api_put_audit_left(call, runs && saved ? run : NULL);
    json_put_bool(j, "matrix", json_is_true(json_object_get(body, "matrix")));
    put_why_not(call, body, "matrix_why");
    put_tests(call, body, runs ? run : NULL);
    if (row->ended_ns != 0) {
        put_covered(call, body, hosts);
    } else {
        json_put_null(j, "covered");
    }
    put_not_read(call, "not_read", body);
    put_not_read(call, "left_out", body); /* its name in earlier releases */
    put_off(call, body);
    put_suspects(call, body);
    if (p->outcome != NULL) {
        put_outcome(call, p->outcome);
    }
    json_put_end(j);
    json_decref(body);
    return p->count == p->limit ? 1 : 0;
}

void api_get_audit_runs(struct api_call *call)
{
    struct put_run p = {.call = call};
    int64_t cursor;
    if (!api_page(call, &p.limit, &cursor)) {
        return;
    }
    json_put_object(call->j, NULL);
    json_put_array(call->j, "items");
    const int r = store_audit_runs(call->c->store, cursor, INT_MAX, put_row, &p);
    if (r < 0) {
        api_store_error(call, r);
        return;
    }
    char next[24];
    snprintf(next, sizeof(next), "%lld", (long long)p.last);
    json_put_end(call->j);
    json_put_string(call->j, "next", p.count == p.limit ? next : NULL);
    json_put_end(call->j);
    api_answer(call);
}

/* Finds the first run that this token sees. A tenant sees no audits of other tenants' hosts only. */
static int first_seen(void *context, const struct store_audit_run *row)
{
    struct put_run *p = context;
    json_t *body = p->call->visible != NULL ? json_loads(row->body, 0, NULL) : NULL;
    const bool seen =
        p->call->visible == NULL || seen_of(p->call, json_object_get(body, "hosts")) > 0;
    p->last = seen ? row->id : 0;
    json_decref(body);
    return seen ? 1 : 0;
}

static int first_id(void *context, const struct store_audit_run *row)
{
    int64_t *id = context;
    *id = *id == 0 ? row->id : *id;
    return 0;
}

int64_t api_audit_named(struct api_call *call, const char *name)
{
    struct put_run p = {.call = call};
    char *end = NULL;
    int64_t id = 0;
    int r = 0;
    if (strcmp(name, "latest") == 0) {
        r = store_audit_runs(call->c->store, 0, INT_MAX, first_seen, &p);
        return r < 0 ? 0 : p.last;
    } else if (strcmp(name, "baseline") == 0) {
        r = store_audit_accepted(call->c->store, first_id, &id);
    } else {
        errno = 0;
        id = strtoll(name, &end, 10);
        id = *end == 0 && errno == 0 && id > 0 ? id : 0;
    }
    r = r < 0 || id == 0 ? r : store_audit_run_get(call->c->store, id, first_seen, &p);
    return r < 0 ? 0 : p.last;
}

/* The run that the path names; *ret_what: the part after it, "" or "results". 0: no such run; the error was answered. */
static int64_t run_of(struct api_call *call, const char **ret_what)
{
    const char *slash = strchr(call->rest, '/');
    const size_t length = slash != NULL ? (size_t)(slash - call->rest) : strlen(call->rest);
    char text[24];
    *ret_what = slash != NULL ? slash + 1 : "";
    snprintf(text, sizeof(text), "%.*s", (int)(length < 20 ? length : 20), call->rest);
    const int64_t id = api_audit_named(call, text);
    if (id == 0) {
        api_error(call, 404, "no-such-audit", "no such audit: GET /api/v1/audit/runs has them");
        return 0;
    }
    return id;
}

static void answer_run(struct api_call *call, int64_t id)
{
    struct put_run p = {.call = call};
    const struct audit_run *run = audit_in_memory(call->c, id);
    int r = run != NULL ? 0 : audit_outcome_get(call->c, id, &p.outcome);
    json_writer_reset(call->j);
    r = r < 0 ? r : store_audit_run_get(call->c->store, id, put_row, &p);
    if (r < 0) {
        api_store_error(call, r);
    } else {
        api_answer(call);
    }
}

void api_get_audit_run(struct api_call *call)
{
    const char *what;
    const int64_t id = run_of(call, &what);
    if (id == 0) {
        return;
    }
    if (strcmp(what, "") == 0) {
        answer_run(call, id);
    } else if (strcmp(what, "results") == 0) {
        api_answer_audit_results(call, id);
    } else if (strcmp(what, "nodes") == 0) {
        api_answer_audit_nodes(call, id);
    } else if (strcmp(what, "diff") == 0) {
        api_answer_audit_diff(call, id);
    } else if (strcmp(what, "facts") == 0) {
        api_answer_audit_sheets(call, id);
    } else if (strcmp(what, "matrix") == 0) {
        api_answer_audit_matrix(call, id);
    } else {
        api_error(call, 404, "no-such-path", "no such path: /api/v1/openapi.yaml has them all");
    }
}

/* ---- starting and stopping ---- */

/* Sets a flag by index for each host named. false: the error was answered. */
static bool read_hosts(struct api_call *call, bool **ret_hosts)
{
    const json_t *list = json_object_get(call->body, "hosts");
    const size_t count = json_array_size(list);
    *ret_hosts = NULL;
    if (list == NULL || json_is_null(list)) {
        return true;
    }
    bool *hosts = json_is_array(list) && count > 0 ? calloc(call->c->host_count + 1, 1) : NULL;
    if (hosts == NULL) {
        api_error(call, 400, "bad-body", "hosts: expected a list of names");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        const struct fleet_host *h = name != NULL ? fleet_find_host(call->c, name) : NULL;
        if (h == NULL || !h->member) {
            api_error(call, 404, "no-such-host", "%.63s is no host of this fleet",
                      name != NULL ? name : "-");
            free(hosts);
            return false;
        }
        hosts[h->index] = true;
    }
    *ret_hosts = hosts;
    return true;
}

void api_post_audit_run(struct api_call *call)
{
    struct config_error error = {""};
    bool *hosts;
    char detail[80];
    const json_t *matrix = json_object_get(call->body, "matrix"),
                 *ip = json_object_get(call->body, "family");
    const json_int_t family = json_integer_value(ip);
    const json_t *bandwidth = json_object_get(call->body, "bandwidth"),
                 *nccl = json_object_get(call->body, "nccl");
    if (ip != NULL && (!json_is_integer(ip) || (family != 4 && family != 6))) {
        api_error(call, 400, "bad-body", "family: expected 4 or 6");
        return;
    }
    if (!read_hosts(call, &hosts)) {
        return;
    }
    const struct audit_wish wish = {.hosts = hosts,
                                    .who = call->who,
                                    .matrix = json_is_true(matrix),
                                    .bandwidth = json_is_true(bandwidth),
                                    .nccl = json_is_true(nccl),
                                    .family = (uint32_t)family};
    const int r = audit_begin(call->c, &wish, &error);
    free(hosts);
    if (r == -EBUSY && call->c->audits->running == NULL) {
        api_error(call, 409, "busy",
                  "results of the last audit are not stored yet: the store can't be written");
    } else if (r == -EBUSY) {
        api_error(call, 409, "busy", "audit %lld of %s is under way: one at a time",
                  (long long)call->c->audits->running->id, call->c->audits->running->who);
    } else if (r == -EINVAL) {
        api_error(call, 409, "bad-settings", "%s", error.text);
    } else if (r == -EPERM) {
        api_error(call, 409, "audits-off", "%s", error.text);
    } else if (r < 0) {
        api_error(call, 503, "memory", "out of memory");
    } else {
        const int64_t id = call->c->audits->running->id;
        snprintf(detail, sizeof(detail), "audit %lld", (long long)id);
        if (api_audit(call, "audit.start", detail)) {
            answer_run(call, id);
        }
    }
}

void api_delete_audit_run(struct api_call *call)
{
    const char *what;
    const int64_t id = run_of(call, &what);
    const struct audit_run *run = call->c->audits->running;
    char detail[80], why[100];
    if (id == 0) {
        return;
    }
    if (run == NULL || run->id != id) {
        api_error(call, 409, "ended", "this audit has ended already");
        return;
    }
    snprintf(detail, sizeof(detail), "audit %lld", (long long)id);
    if (api_audit(call, "audit.stop", detail)) {
        snprintf(why, sizeof(why), "%.60s stopped it", call->who);
        audit_stop(call->c, why);
        answer_run(call, id);
    }
}

void api_get_audit_checks(struct api_call *call)
{
    struct json_writer *j = call->j;
    json_put_object(j, NULL);
    json_put_array(j, "items");
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        catalogue_check_put(j, check_at(i));
    }
    json_put_end(j);
    json_put_null(j, "next");
    json_put_end(j);
    api_answer(call);
}
