/* api_inspection_diff.c: what is another in two audits: facts of hosts that are in both, and statuses of their checks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/diff.h"
#include "service/audit/sheet.h"
#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/audit/audit.h"
#include "service/controller/fleet/fleet.h"

enum { DIFF_JSON_MAX = 64 << 20, DIFF_CHANGES_MAX = 20000 };

struct diff_host {
    int64_t host, was_ns, is_ns;
    char name[TLS_NAME_MAX + 1];
};
struct diff_job {
    struct api_task task;
    struct diff_host *hosts;
    uint32_t count, changes;
    struct json_writer json;
    int rc;
};

static void put_change(struct json_writer *j, const char *host, const struct fact_change *c)
{
    const struct fact *any = c->is != NULL ? c->is : c->was;
    json_put_object(j, NULL);
    json_put_string(j, "host", host);
    json_put_string(j, "fact", fact_name(any->id));
    json_put_string(j, "subject", any->subject);
    json_put_string(j, "was", c->was != NULL && c->was->state == FACT_VALUE ? c->was->value : NULL);
    json_put_string(j, "is", c->is != NULL && c->is->state == FACT_VALUE ? c->is->value : NULL);
    json_put_end(j);
}

static int diff_one(struct diff_job *k, struct store *store, const struct diff_host *h)
{
    struct sheet *was = NULL, *is = NULL;
    struct fact_change change;
    int r = audit_sheet(store, h->host, h->name, h->was_ns, &was);
    r = r < 0 ? r : audit_sheet(store, h->host, h->name, h->is_ns, &is);
    struct sheet_diff diff = {.was = was, .is = is};
    while (r == 0 && k->changes < DIFF_CHANGES_MAX && sheet_diff_next(&diff, &change)) {
        put_change(&k->json, h->name, &change);
        k->changes++;
    }
    sheet_free(was);
    sheet_free(is);
    return r;
}

static void run_diff(struct worker_job *job, struct store *store)
{
    struct diff_job *k = (struct diff_job *)job;
    k->rc = 0;
    json_put_array(&k->json, "facts");
    for (uint32_t i = 0; i < k->count && k->rc == 0; i++) {
        k->rc = diff_one(k, store, &k->hosts[i]);
    }
    json_put_end(&k->json);
    json_put_bool(&k->json, "cut", k->changes == DIFF_CHANGES_MAX);
    json_put_end(&k->json);
}

static void end_diff(struct worker_job *job)
{
    struct diff_job *k = (struct diff_job *)job;
    struct api_call call = {.c = k->task.c, .request = k->task.request, .j = &k->json};
    if (api_task_back(&k->task)) {
        if (k->rc == 0) {
            api_answer(&call);
        } else {
            json_writer_reset(&k->json);
            api_store_error(&call, k->rc);
        }
    }
    json_writer_done(&k->json);
    free(k->hosts);
    free(k);
}

/* The mark of a check that another release may have at another place. */
static char mark_of(const struct audit_outcome *o, const struct audit_found *f, const char *check)
{
    for (uint32_t i = 0; i < o->check_count; i++) {
        if (strcmp(o->checks[i], check) == 0) {
            return f->marks[i];
        }
    }
    return ' ';
}

static void put_results(struct json_writer *j, const char *host, const struct audit_outcome *was,
                        const struct audit_found *before, const struct audit_outcome *is,
                        const struct audit_found *after)
{
    for (uint32_t i = 0; i < is->check_count; i++) {
        const enum audit_status a = audit_mark_status(mark_of(was, before, is->checks[i])),
                                b = audit_mark_status(after->marks[i]);
        if (a != b && a < AUDIT_STATUS_COUNT && b < AUDIT_STATUS_COUNT) {
            json_put_object(j, NULL);
            json_put_string(j, "host", host);
            json_put_string(j, "check", is->checks[i]);
            json_put_string(j, "was", audit_status_name(a));
            json_put_string(j, "is", audit_status_name(b));
            json_put_end(j);
        }
    }
}

static const struct audit_found *find(const struct audit_outcome *o, int64_t host)
{
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->found[i].host == host) {
            return &o->found[i];
        }
    }
    return NULL;
}

/* Results now, facts in the thread. */
static void fill(struct api_call *call, struct diff_job *k, const struct audit_outcome *was,
                 const struct audit_outcome *is)
{
    json_put_array(&k->json, "results");
    for (uint32_t i = 0; i < is->count; i++) {
        const struct audit_found *after = &is->found[i], *before = find(was, after->host);
        const struct fleet_host *h = fleet_host_by_id(call->c, after->host);
        if (h == NULL || !api_sees(call, h) || before == NULL || before->at_ns == 0 ||
            after->at_ns == 0) {
            continue;
        }
        put_results(&k->json, h->name, was, before, is, after);
        struct diff_host *d = &k->hosts[k->count++];
        *d = (struct diff_host){after->host, before->at_ns, after->at_ns, ""};
        snprintf(d->name, sizeof(d->name), "%s", h->name);
    }
    json_put_end(&k->json);
    json_put_uint(&k->json, "hosts", k->count);
}

void api_answer_audit_diff(struct api_call *call, int64_t id)
{
    const char *with = http_query(call->request, "with");
    const struct audit_outcome *was = NULL, *is = NULL;
    const int64_t other = with != NULL ? api_audit_named(call, with) : 0;
    if (with == NULL) {
        api_error(call, 400, "bad-argument", "with: expected the other audit");
        return;
    }
    int r = other > 0 ? audit_outcome_get(call->c, other, &was) : -ENOENT;
    if (r == -ENOENT) {
        api_error(call, 404, "no-such-audit", "no such audit: %s", with);
        return;
    }
    r = r < 0 ? r : audit_outcome_get(call->c, id, &is); /* the other is kept beside it */
    if (r < 0) {
        api_store_error(call, r);
        return;
    }
    struct diff_job *k = api_task_new(call, sizeof(*k));
    if (k == NULL) {
        return;
    }
    k->task.job = (struct worker_job){.run = run_diff, .done = end_diff};
    k->rc = -ECANCELED;
    k->hosts = calloc(is->count + 1, sizeof(*k->hosts));
    if (k->hosts == NULL) {
        free(k);
        api_error(call, 503, "memory", "out of memory");
        return;
    }
    json_writer_init(&k->json, DIFF_JSON_MAX);
    json_put_object(&k->json, NULL);
    fill(call, k, was, is);
    api_task_begin(call, &k->task);
}
