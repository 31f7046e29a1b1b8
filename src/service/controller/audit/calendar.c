/* calendar.c: work that needs no request. audit.yaml is read when it changes. Audits of the fleet begin by its calendar. Hosts
 * that return are audited. It also keeps the age of the newest audit, for alerts and metrics. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "service/controller/audit/audit.h"

/* after a start hosts need this time to connect before the calendar's audit */
#define SETTLE_NS (120 * NS_PER_S)

/* ---- audit.yaml ---- */

const char *audit_settings_path(const struct controller *c)
{
    return c->config.audit[0] != 0             ? c->config.audit
           : access(AUDIT_SETTINGS, R_OK) == 0 ? AUDIT_SETTINGS
                                               : NULL;
}

/* Identifies the file's state: changes with the file and its time. */
static int64_t stamp_of(const char *path)
{
    struct stat s;
    if (path == NULL || stat(path, &s) < 0) {
        return 1;
    }
    return ((int64_t)s.st_mtim.tv_sec * NS_PER_S + s.st_mtim.tv_nsec) ^
           (int64_t)((uint64_t)s.st_ino << 20) ^ s.st_size;
}

void audit_settings_look(struct controller *c)
{
    struct audits *a = c->audits;
    const char *path = audit_settings_path(c);
    const int64_t stamp = stamp_of(path);
    struct config_error error = {""};
    struct audit_file *file = stamp != a->file_stamp ? calloc(1, sizeof(*file)) : NULL;
    if (file == NULL) { /* unchanged; if out of memory: tried again in a second */
        return;
    }
    a->file_stamp = stamp;
    if (audit_file_load(path, file, &error) < 0) {
        controller_say(LOG_ERR, "audits: %s; the old settings stay in force", error.text);
        free(file);
        return;
    }
    if (a->in_force != NULL) {
        audit_file_done(a->in_force);
        free(a->in_force);
    }
    a->in_force = file;
}

/* ---- the calendar ---- */

static void mind_calendar(struct controller *c)
{
    struct audits *a = c->audits;
    const int64_t every = a->in_force != NULL ? a->in_force->every_ns : 0,
                  settle = every < SETTLE_NS ? every : SETTLE_NS, utc = controller_utc_ns();
    struct config_error error = {""};
    if (every == 0 || a->running != NULL || a->refused || a->in_force->fleet_off != NULL ||
        c->host_count == 0 || mono_sub(controller_mono(), a->since).ns < settle ||
        (a->attempt_ns != 0 && a->attempt_ns <= utc && utc - a->attempt_ns < every)) {
        return;
    }
    if (audit_begin(c, &(struct audit_wish){.who = "the calendar", .matrix = a->in_force->matrix},
                    &error) < 0) {
        controller_say(LOG_ERR, "the calendar's audit can't begin: %s",
                       error.text[0] != 0 ? error.text : "out of memory");
        a->attempt_ns = utc; /* the next try is at the calendar's next time */
    }
}

/* After a boot a host is young, and some failures appear only later. So its audit waits until it is no longer young. */
void audit_absence(struct controller *c, const struct fleet_host *h, bool silent)
{
    const struct audits *a = c->audits;
    const struct mono now = controller_mono();
    const int64_t least = a != NULL && a->in_force != NULL ? a->in_force->returns_ns : 0;
    struct audit_known *known = least > 0 ? audit_known_of(c, h) : NULL;
    if (known == NULL) {
        return;
    }
    struct audit_absence *absence = &known->absence;
    if (silent) {
        *absence = (struct audit_absence){.since = now, .boot = h->boot};
        return;
    }
    const bool was_away = absence->since.ns != 0 && mono_sub(now, absence->since).ns >= least;
    const double young_s = h->boot != absence->boot ? a->in_force->settings.young_s : 0;
    absence->since.ns = 0;
    absence->due.ns = was_away ? now.ns + (int64_t)(young_s * (double)NS_PER_S) : 0;
}

/* Audits all hosts that are due in one audit: hosts of a rack return together. */
static void mind_returns(struct controller *c)
{
    const struct audits *a = c->audits;
    const struct mono now = controller_mono();
    struct audit_wish wish = {.who = "its return"};
    struct config_error error = {""};
    bool *hosts = NULL;
    uint32_t count = 0;
    if (a->running != NULL || a->refused || a->in_force == NULL || a->in_force->fleet_off != NULL) {
        return;
    }
    for (uint32_t i = 0; i < c->host_count && i < a->known_count; i++) {
        struct mono *due = &a->known[i].absence.due;
        hosts = hosts == NULL && due->ns != 0 ? calloc(c->host_count, sizeof(*hosts)) : hosts;
        if (hosts == NULL || due->ns == 0 || mono_before(now, *due)) {
            /* not due, or out of memory */
            continue;
        }
        due->ns = 0;
        hosts[i] = c->hosts[i]->member && a->in_force->returns_ns > 0;
        count += hosts[i];
    }
    wish.hosts = hosts;
    if (count > 0 && audit_begin(c, &wish, &error) < 0) {
        controller_say(LOG_ERR, "the audit of %u hosts that are back can't begin: %s", count,
                       error.text[0] != 0 ? error.text : "out of memory");
    }
    free(hosts);
}

void audit_second(struct controller *c)
{
    if (c->audits != NULL) {
        audit_settings_look(c);
        audit_mind_switches(c);
        audit_save_end(c);
        mind_calendar(c);
        mind_returns(c);
        audit_mind_left(c);
        audit_watch(c);
    }
}

/* ---- what is known ---- */

double audit_age(const struct controller *c)
{
    const struct audits *a = c->audits;
    const int64_t every = a->in_force != NULL ? a->in_force->every_ns : 0;
    if (every == 0) {
        return -1;
    }
    const int64_t age = a->summary.run != 0 ? controller_utc_ns() - a->summary.ended_ns
                                            : mono_sub(controller_mono(), a->since).ns;
    return (double)age / (double)every;
}

double audit_suspects(const struct controller *c)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        count += c->audits->summary.suspect[i];
    }
    return c->audits->summary.run != 0 ? (double)count : -1;
}

double audit_offs(const struct controller *c)
{
    return c->audits->in_force != NULL ? (double)audit_file_off_count(c->audits->in_force) : -1;
}

void audit_summarise(struct controller *c, const struct audit_run *run,
                     const struct audit_outcome *o)
{
    struct audit_summary *s = &c->audits->summary;
    *s = (struct audit_summary){
        .run = run->id, .started_ns = run->started_ns, .ended_ns = run->ended_ns};
    for (uint32_t k = 0; k < o->check_count; k++) {
        const struct check *check = check_by_id(o->checks[k]);
        for (uint32_t i = 0; check != NULL && i < o->count; i++) {
            const enum audit_status status = audit_mark_status(o->found[i].marks[k]);
            if (status < AUDIT_STATUS_COUNT) {
                s->counts[check_number(check)][status]++;
            }
        }
        if (check != NULL) {
            s->suspect[check_number(check)] = o->suspect[k];
        }
    }
}

/* ---- over a restart ---- */

struct past {
    struct audits *audits;
    struct audit_run newest; /* the newest one that finished */
    json_t *suspect;
};

static int look_back(void *context, const struct store_audit_run *row)
{
    struct past *p = context;
    json_t *body = json_loads(row->body, 0, NULL);
    const char *state = json_string_value(json_object_get(body, "state"));
    const int64_t started = json_integer_value(json_object_get(body, "started_utc_ns"));
    if (json_is_true(json_object_get(body, "whole"))) {
        p->audits->attempt_ns = p->audits->attempt_ns == 0 ? started : p->audits->attempt_ns;
        if (p->newest.id == 0 && state != NULL &&
            strcmp(state, audit_state_name(AUDIT_DONE)) == 0) {
            p->newest.id = row->id;
            p->newest.started_ns = started;
            p->newest.ended_ns = row->ended_ns;
            p->suspect = json_incref(json_object_get(body, "suspect"));
        }
    }
    json_decref(body);
    return 0;
}

int audit_calendar_open(struct controller *c)
{
    enum { LOOK_BACK = 256 };
    struct past p = {.audits = c->audits};
    const struct audit_outcome *o = NULL;
    c->audits->since = controller_mono();
    audit_settings_look(c);
    int r = store_audit_runs(c->store, 0, LOOK_BACK, look_back, &p);
    r = r < 0 || p.newest.id == 0 ? r : audit_outcome_get(c, p.newest.id, &o);
    if (o != NULL) {
        audit_summarise(c, &p.newest, o);
    }
    for (size_t i = 0; o != NULL && i < json_array_size(p.suspect); i++) {
        const char *id = json_string_value(json_array_get(p.suspect, i));
        const struct check *check = id != NULL ? check_by_id(id) : NULL;
        if (check != NULL) {
            c->audits->summary.suspect[check_number(check)] = true;
        }
    }
    json_decref(p.suspect);
    return r;
}
