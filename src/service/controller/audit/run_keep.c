/* run_keep.c: keeps an audit in the store from its first second on. So a controller that starts again continues it. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>

#include "base/plain.h"
#include "service/controller/audit/matrix.h"
#include "service/controller/audit/perf.h"
#include "service/controller/audit/run.h"
#include "service/controller/fleet/state.h"

/* ---- into the store ---- */

static void put_members(struct json_writer *j, const struct audit_run *run)
{
    json_put_array(j, "hosts");
    for (uint32_t i = 0; i < run->count; i++) {
        if (run->members[i].asked) {
            json_put_int(j, NULL, run->members[i].host);
        }
    }
    json_put_end(j);
    json_put_array(j, "left_out");
    for (uint32_t i = 0; i < run->count; i++) {
        const struct audit_member *m = &run->members[i];
        if (m->asked && m->missing != REASON_NONE) {
            json_put_object(j, NULL);
            json_put_int(j, "host", m->host);
            json_put_string(j, "reason", audit_reason_name(m->missing));
            json_put_string(j, "note", m->note);
            json_put_end(j);
        }
    }
    json_put_end(j);
}

static void put_counts(struct json_writer *j, const struct audit_outcome *o)
{
    uint32_t counts[AUDIT_STATUS_COUNT] = {0};
    for (uint32_t i = 0; i < o->count; i++) {
        counts[audit_found_worst(o, &o->found[i], "")]++;
    }
    json_put_object(j, "counts");
    for (int k = 0; k < AUDIT_STATUS_COUNT; k++) {
        json_put_uint(j, audit_status_name(k), counts[k]);
    }
    json_put_end(j);
}

static void put_suspects(struct json_writer *j, const struct audit_outcome *o)
{
    json_put_array(j, "suspect");
    for (uint32_t i = 0; i < o->check_count; i++) {
        if (o->suspect[i]) {
            json_put_string(j, NULL, o->checks[i]);
        }
    }
    json_put_end(j);
}

static void put_one_off(struct json_writer *j, const char *kind, const char *name, const char *by)
{
    if (by != NULL) {
        json_put_object(j, NULL);
        json_put_string(j, "kind", kind);
        json_put_string(j, "name", name);
        json_put_string(j, "by", by);
        json_put_end(j);
    }
}

/* Lists what is switched off, so that readers don't take a skip for a pass. */
static void put_off(struct json_writer *j, const struct audit_file *f)
{
    json_put_array(j, "off");
    for (uint32_t i = 0; f != NULL && i < CATALOGUE_COUNT; i++) {
        put_one_off(j, "check", check_at(i)->id, f->checks[i].off);
    }
    for (int cost = 0; f != NULL && cost < COST_COUNT; cost++) {
        put_one_off(j, "class", check_cost_name(cost), f->settings.class_off[cost]);
    }
    for (uint32_t i = 0; f != NULL && i < f->settings.hosts_off_count; i++) {
        put_one_off(j, "host", f->settings.hosts_off[i].host, f->settings.hosts_off[i].by);
    }
    json_put_end(j);
}

/* How much of the matrix and of the tests was done. */
static void put_covered(struct json_writer *j, const struct audit_covered *is)
{
    json_put_object(j, "covered");
    json_put_uint(j, "cells", is->cells);
    json_put_uint(j, "cells_of", is->cells_of);
    json_put_uint(j, "tests", is->tests);
    json_put_uint(j, "tests_of", is->tests_of);
    json_put_end(j);
}

static int put_run(struct controller *c, const struct audit_run *run, const struct audit_outcome *o)
{
    struct json_writer j;
    const char *text = NULL;
    size_t size = 0;
    json_writer_init(&j, 16 << 20);
    json_put_object(&j, NULL);
    json_put_string(&j, "state", audit_state_name(run->state));
    json_put_uint(&j, "number", run->number);
    json_put_string(&j, "who", run->who);
    json_put_string(&j, "why", run->why);
    json_put_int(&j, "started_utc_ns", run->started_ns);
    json_put_bool(&j, "matrix", run->wants_matrix);
    json_put_uint(&j, "family", run->family);
    json_put_string(&j, "matrix_why", run->matrix_why);
    json_put_bool(&j, "bandwidth", run->wants_perf);
    json_put_bool(&j, "nccl", run->wants_nccl);
    json_put_string(&j, "tests_why", run->perf_why);
    if (run->perf != NULL && run->state != AUDIT_TESTING) {
        audit_perf_write(run->perf, &j);
    }
    json_put_bool(&j, "whole", run->whole);
    json_put_bool(&j, "stopping", run->stopping);
    if (run->ended_ns != 0) {
        put_covered(&j, &run->covered);
    }
    put_members(&j, run);
    json_put_array(&j, "checks");
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        json_put_string(&j, NULL, check_at(i)->id);
    }
    json_put_end(&j);
    if (o != NULL) {
        put_counts(&j, o);
        put_suspects(&j, o);
    }
    put_off(&j, c->audits->in_force);
    json_put_end(&j);
    int r = json_writer_finish(&j, &text, &size);
    r = r < 0 ? r
              : store_audit_run_put(c->store,
                                    &(struct store_audit_run){run->id, run->ended_ns, text});
    json_writer_done(&j);
    controller_touch(c);
    return r;
}

void audit_run_save(struct controller *c, const struct audit_run *run,
                    const struct audit_outcome *o)
{
    const int r = put_run(c, run, o);
    if (r < 0) {
        controller_store_failed(c, r, "an audit");
    }
}

/* ---- over a restart ---- */

struct resume {
    struct controller *c;
    struct audit_run *run;
    char refused[AUDIT_WORDS_SIZE]; /* why audit.yaml is refused, with the place */
    char stopped[AUDIT_WORDS_SIZE]; /* why the run was stopped before; it must be judged */
};

static struct audit_member *member_of(struct audit_run *run, int64_t host)
{
    for (uint32_t i = 0; i < run->count; i++) {
        if (run->members[i].host == host) {
            return &run->members[i];
        }
    }
    return NULL;
}

static int look_known(void *context, const struct store_look *look)
{
    struct audit_run *run = context;
    struct audit_member *m = member_of(run, look->host);
    if (m != NULL && m->asked && look->at_ns >= run->started_ns) { /* it has answered already */
        m->waits = false;
        m->looked = look->refused[0] == 0;
        m->missing = m->looked ? REASON_NONE : REASON_NO_SOURCE;
        plain_text(look->refused, m->note, sizeof(m->note));
    }
    return 0;
}

static int resume(void *context, const struct store_audit_run *row)
{
    struct resume *o = context;
    struct controller *c = o->c;
    struct config_error error = {""};
    struct audit_run *run = row->ended_ns == 0 ? calloc(1, sizeof(*run)) : NULL;
    json_t *body = json_loads(row->body, 0, NULL);
    const json_t *hosts = json_object_get(body, "hosts"), *who = json_object_get(body, "who");
    if (run != NULL && audit_run_settings(c, &run->settings, &error) < 0) {
        snprintf(o->refused, sizeof(o->refused), "%.150s", error.text);
    }
    if (run == NULL || audit_run_fill(c, run) < 0) {
        audit_run_free(run);
        json_decref(body);
        return 0;
    }
    run->id = row->id;
    run->resumed = true;
    run->started_ns = json_integer_value(json_object_get(body, "started_utc_ns"));
    run->number = (uint32_t)json_integer_value(json_object_get(body, "number")) + 1;
    run->wants_matrix = json_is_true(json_object_get(body, "matrix"));
    run->family = (uint32_t)json_integer_value(json_object_get(body, "family"));
    run->wants_perf = json_is_true(json_object_get(body, "bandwidth"));
    run->wants_nccl = json_is_true(json_object_get(body, "nccl"));
    run->whole = json_is_true(json_object_get(body, "whole"));
    snprintf(run->who, sizeof(run->who), "%s",
             json_string_value(who) ? json_string_value(who) : "");
    for (size_t i = 0; i < json_array_size(hosts); i++) {
        struct audit_member *m = member_of(run, json_integer_value(json_array_get(hosts, i)));
        if (m != NULL) {
            m->asked = m->waits = true;
        }
    }
    if (json_is_true(json_object_get(body, "stopping"))) {
        const char *why = json_string_value(json_object_get(body, "why"));
        snprintf(o->stopped, sizeof(o->stopped), "%s", why != NULL ? why : "");
    }
    json_decref(body);
    o->run = run;
    return 0;
}

static int load_matrix(struct controller *c)
{
    const int r = audit_matrix_load(c->store, &c->audits->matrix);
    return r == -ENOENT ? 0 : r;
}

int audits_open(struct controller *c)
{
    struct resume o = {.c = c};
    c->expire.audits = true; /* the last controller may have ended during the removal */
    c->audits = calloc(1, sizeof(*c->audits));
    int r = c->audits == NULL ? -ENOMEM : audit_known_open(c);
    r = r < 0 ? r : audit_calendar_open(c);
    r = r < 0 ? r : load_matrix(c);
    r = r < 0 ? r : store_audit_runs(c->store, 0, 1, resume, &o);
    r = r < 0 || o.run == NULL ? r : store_looks(c->store, 0, look_known, o.run);
    if (r == 0 && o.run != NULL) {
        controller_say(LOG_NOTICE, "audit %lld goes on", (long long)o.run->id);
        audit_run_look(c, o.run);
        if (o.run->settings != NULL) {
            audit_switch_off(c, o.run, o.run->settings);
        }
        c->audits->running = o.run;
        if (o.refused[0] != 0 || o.stopped[0] != 0) {
            audit_stop(c, o.refused[0] != 0 ? o.refused : o.stopped);
        } else {
            audit_run_save(c, o.run, NULL);
        }
    } else {
        audit_run_free(o.run);
    }
    return r;
}

void audits_close(struct controller *c)
{
    struct audits *a = c->audits;
    if (a != NULL) {
        audit_run_free(a->running);
        audit_run_free(a->ended);
        audit_outcome_free(a->came);
        audit_outcome_free(a->shown[0]);
        audit_outcome_free(a->shown[1]);
        audit_matrix_free(a->matrix);
        audit_run_settings_free(a->in_force);
        free(a->known);
        free(a);
        c->audits = NULL;
    }
}
