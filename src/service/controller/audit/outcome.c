/* outcome.c: the results of a run. All results are in the store; those that were read lately are in memory. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/audit/audit.h"

static const char marks[] = "FUWPS";

enum audit_status audit_mark_status(char mark)
{
    const char *at = mark != 0 ? strchr(marks, mark) : NULL;
    return at != NULL ? (enum audit_status)(at - marks) : AUDIT_STATUS_COUNT;
}

char audit_status_mark(enum audit_status status)
{
    return marks[status];
}

enum audit_status audit_found_worst(const struct audit_outcome *o, const struct audit_found *f,
                                    const char *prefix)
{
    enum audit_status worst = AUDIT_SKIP;
    for (uint32_t i = 0; i < o->check_count; i++) {
        const enum audit_status status = audit_mark_status(f->marks[i]);
        if (strncmp(o->checks[i], prefix, strlen(prefix)) == 0 && status < worst) {
            worst = status;
        }
    }
    return worst;
}

struct audit_outcome *audit_outcome_new(int64_t run, uint32_t hosts)
{
    struct audit_outcome *o = calloc(1, sizeof(*o));
    if (o == NULL) {
        return NULL;
    }
    o->run = run;
    o->found = calloc(hosts + 1, sizeof(*o->found));
    o->checks = calloc(CHECKS_MAX, sizeof(*o->checks));
    if (o->found == NULL || o->checks == NULL) {
        return audit_outcome_free(o);
    }
    o->check_count = CATALOGUE_COUNT;
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        snprintf(o->checks[i], sizeof(o->checks[i]), "%s", check_at(i)->id);
    }
    return o;
}

struct audit_outcome *audit_outcome_free(struct audit_outcome *o)
{
    for (uint32_t i = 0; o != NULL && o->found != NULL && i < o->count; i++) {
        free(o->found[i].line);
        free(o->found[i].results);
        free(o->found[i].past.packed);
    }
    if (o != NULL) {
        free(o->found);
        free(o->checks);
        free(o);
    }
    return NULL;
}

int audit_outcome_save(struct controller *c, const struct audit_outcome *o)
{
    int r = 0;
    for (uint32_t i = 0; i < o->count && r == 0; i++) {
        const struct audit_found *f = &o->found[i];
        const struct store_audit_host row = {.run = o->run,
                                             .host = f->host,
                                             .at_ns = f->at_ns,
                                             .marks = f->marks,
                                             .gate = audit_status_name(f->gate),
                                             .line = f->line,
                                             .body = f->results,
                                             .size = f->size};
        r = store_audit_host_put(c->store, &row);
        if (r == 0 && f->past.packed != NULL) {
            r = store_part_now_put(c->store, f->host, f->at_ns, f->past.hash, f->past.packed,
                                   f->past.size);
        }
    }
    return r;
}

void audit_outcome_keep(struct controller *c, struct audit_outcome *o)
{
    struct audits *a = c->audits;
    for (uint32_t i = 0; i < o->count; i++) {
        free(o->found[i].past.packed);
        o->found[i].past = (struct audit_past){.packed = NULL};
    }
    audit_outcome_free(a->shown[1]);
    a->shown[1] = a->shown[0];
    a->shown[0] = o;
}

/* ---- out of the store ---- */

static int read_checks(void *context, const struct store_audit_run *run)
{
    struct audit_outcome *o = context;
    json_t *body = json_loads(run->body, 0, NULL);
    const json_t *checks = json_object_get(body, "checks");
    o->check_count = 0;
    for (size_t i = 0; i < json_array_size(checks) && i < CHECKS_MAX; i++) {
        const char *id = json_string_value(json_array_get(checks, i));
        snprintf(o->checks[o->check_count++], sizeof(o->checks[0]), "%s", id != NULL ? id : "");
    }
    json_decref(body);
    return 0;
}

static int read_found(void *context, const struct store_audit_host *row)
{
    struct audit_outcome *o = context;
    struct audit_found *larger = realloc(o->found, (o->count + 1) * sizeof(*larger));
    if (larger == NULL) {
        return -ENOMEM;
    }
    o->found = larger;
    struct audit_found *f = &o->found[o->count];
    *f = (struct audit_found){.host = row->host, .at_ns = row->at_ns, .size = row->size};
    snprintf(f->marks, sizeof(f->marks), "%s", row->marks);
    for (f->gate = 0; f->gate < AUDIT_SKIP && strcmp(audit_status_name(f->gate), row->gate) != 0;) {
        f->gate++;
    }
    f->line = strdup(row->line);
    f->results = malloc(row->size + 1);
    if (f->line == NULL || f->results == NULL) {
        free(f->line);
        free(f->results);
        return -ENOMEM;
    }
    memcpy(f->results, row->body, row->size);
    f->results[row->size] = 0;
    o->count++;
    return 0;
}

int audit_outcome_checks(struct controller *c, int64_t run, struct audit_outcome **ret)
{
    struct audit_outcome *o = audit_outcome_new(run, 0);
    const int r = o == NULL ? -ENOMEM : store_audit_run_get(c->store, run, read_checks, o);
    if (r < 0) {
        audit_outcome_free(o);
        return r;
    }
    *ret = o;
    return 0;
}

int audit_outcome_get(struct controller *c, int64_t run, const struct audit_outcome **ret)
{
    struct audit_outcome **shown = c->audits->shown;
    if (c->audits->came != NULL && c->audits->came->run == run) {
        *ret = c->audits->came;
        return 0;
    }
    for (size_t i = 0; i < ARRAY_COUNT(c->audits->shown); i++) {
        if (shown[i] != NULL && shown[i]->run == run) {
            struct audit_outcome *found = shown[i];
            shown[i] = shown[0]; /* so the other one is freed first */
            shown[0] = found;
            *ret = found;
            return 0;
        }
    }
    struct audit_outcome *o = NULL;
    int r = audit_outcome_checks(c, run, &o);
    r = r < 0 ? r : store_audit_hosts(c->store, run, read_found, o);
    if (r < 0) {
        audit_outcome_free(o);
        return r;
    }
    audit_outcome_keep(c, o);
    *ret = o;
    return 0;
}
