/* api_inspection_diff.c: the differences between two audits: facts of hosts that are in both, and statuses of their checks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/baseline.h"
#include "core/audit/diff.h"
#include "service/audit/sheet.h"
#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/audit/past.h"
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
    bool tenant;
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

/* Compares the measurements of both times, and puts differences that matter. A very old audit has no measurements. */
static int diff_measured(struct diff_job *k, struct store *store, const struct diff_host *h)
{
    struct sheet *was = NULL, *is = NULL;
    struct measured_change change;
    int r = audit_past_sheet(store, h->host, h->was_ns, h->was_ns, fact_is_measured, &was);
    r = r < 0 ? r : audit_past_sheet(store, h->host, h->is_ns, h->is_ns, fact_is_measured, &is);
    const bool both = r == 0 && was != NULL && is != NULL && was->at_utc_ns == h->was_ns &&
                      is->at_utc_ns == h->is_ns;
    struct measured_diff diff = {.was = was, .is = is};
    while (both && k->changes < DIFF_CHANGES_MAX && measured_diff_next(&diff, &change)) {
        if (k->tenant && change.check->each == FACT_EDGE) { /* the subject names another host */
            continue;
        }
        json_put_object(&k->json, NULL);
        json_put_string(&k->json, "host", h->name);
        json_put_string(&k->json, "check", change.check->id);
        json_put_string(&k->json, "subject", change.subject);
        json_put_string(&k->json, "was", change.was);
        json_put_string(&k->json, "is", change.is);
        json_put_end(&k->json);
        k->changes++;
    }
    sheet_free(was);
    sheet_free(is);
    return r;
}

static int diff_one(struct diff_job *k, struct store *store, const struct diff_host *h)
{
    struct sheet *was = NULL, *is = NULL;
    struct fact_change change;
    int r = audit_sheet_other(store, h->host, h->was_ns, h->is_ns, &was);
    r = r < 0 ? r : audit_sheet_other(store, h->host, h->is_ns, h->was_ns, &is);
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
    json_put_array(&k->json, "measured");
    for (uint32_t i = 0; i < k->count && k->rc == 0; i++) {
        k->rc = diff_measured(k, store, &k->hosts[i]);
    }
    json_put_end(&k->json);
    json_put_bool(&k->json, "cut", k->changes == DIFF_CHANGES_MAX);
    json_put_end(&k->json);
}

static void end_diff(struct worker_job *job)
{
    struct diff_job *k = (struct diff_job *)job;
    api_task_answer(&k->task, &k->json, k->rc);
    json_writer_done(&k->json);
    free(k->hosts);
    free(k);
}

/* For each check of this run its place in the other run; CHECKS_MAX: the other run does not have it. Places differ between
 * releases. */
static void places_of(const struct audit_outcome *was, const struct audit_outcome *is,
                      uint32_t ret_places[static CHECKS_MAX])
{
    for (uint32_t i = 0; i < is->check_count; i++) {
        uint32_t at = 0;
        while (at < was->check_count && strcmp(was->checks[at], is->checks[i]) != 0) {
            at++;
        }
        ret_places[i] = at < was->check_count ? at : CHECKS_MAX;
    }
}

static void put_results(struct json_writer *j, const char *host, const uint32_t *places,
                        const struct audit_found *before, const struct audit_outcome *is,
                        const struct audit_found *after)
{
    for (uint32_t i = 0; i < is->check_count; i++) {
        const char mark = places[i] < CHECKS_MAX ? before->marks[places[i]] : ' ';
        const enum audit_status a = audit_mark_status(mark), b = audit_mark_status(after->marks[i]);
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

/* Searches from the last place on: hosts mostly have the same order in both runs. */
static const struct audit_found *find(const struct audit_outcome *o, int64_t host, uint32_t *at)
{
    for (uint32_t i = 0; i < o->count; i++) {
        const uint32_t k = (*at + i) % o->count;
        if (o->found[k].host == host) {
            *at = k + 1;
            return &o->found[k];
        }
    }
    return NULL;
}

/* Takes results now; the thread reads facts. */
static void fill(struct api_call *call, struct diff_job *k, const struct audit_outcome *was,
                 const struct audit_outcome *is)
{
    uint32_t places[CHECKS_MAX], at = 0;
    places_of(was, is, places);
    json_put_array(&k->json, "results");
    for (uint32_t i = 0; i < is->count; i++) {
        const struct audit_found *after = &is->found[i], *before = find(was, after->host, &at);
        const struct fleet_host *h = fleet_host_by_id(call->c, after->host);
        if (h == NULL || !api_sees(call, h) || before == NULL || before->at_ns == 0 ||
            after->at_ns == 0) {
            continue;
        }
        put_results(&k->json, h->name, places, before, is, after);
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
    r = r < 0 ? r : audit_outcome_get(call->c, id, &is); /* the first outcome stays in memory */
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
    k->tenant = call->visible != NULL;
    json_writer_init(&k->json, DIFF_JSON_MAX);
    json_put_object(&k->json, NULL);
    fill(call, k, was, is);
    api_task_begin(call, &k->task);
}
