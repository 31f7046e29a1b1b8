/* notify.c: decides who gets which notification and when. Acknowledgements. The view of incidents and alerts for callers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alert/internal.h"

/* ---- saying ----------------------------------------------------------------------------------------------------- */

uint32_t receivers_of(const struct alerts *a, uint32_t severity)
{
    uint32_t receivers = 0;

    for (size_t r = 0; r < a->config.route_count; r++) {
        receivers |= severity >= a->config.routes[r].severity ? a->config.routes[r].receivers : 0;
    }
    return receivers;
}

void incident_say(struct alerts *a, struct incident *c, enum alert_event event, uint32_t receivers,
                  bool page)
{
    if (c->notify && event == ALERT_WORSE) {
        event = c->notify_event; /* the opening or reopening is not sent yet: it covers this news */
    }
    c->notify_receivers = (c->notify ? c->notify_receivers : 0) | receivers;
    c->notify_page = (c->notify && c->notify_page) || page;
    c->notify = true;
    c->notify_event = event;
    c->told_receivers |= receivers;
    if (page) {
        c->repage = MONO_NEVER;
        c->owes_page = false;
        c->pages++;
        a->counters.pages++;
    }
    incident_changed(a, c, true);
}

static void tell_first(struct alerts *a, struct incident *c)
{
    c->told = true;
    c->told_at = a->now;
    for (size_t r = 0; r < ALERT_ROUTE_MAX; r++) {
        c->told_last[r] = a->now;
    }
    incident_say(a, c, ALERT_OPENED, receivers_of(a, c->loud), c->loud == ALERT_PAGE);
}

static void tell_again(struct alerts *a, struct incident *c)
{
    uint32_t repeat = 0, escalate = 0;

    for (size_t r = 0; r < a->config.route_count; r++) {
        const struct alert_route *route = &a->config.routes[r];
        if (c->loud < route->severity) {
            continue;
        }
        while (c->steps[r] < route->step_count &&
               mono_sub(a->now, c->told_at).ns >= route->steps[c->steps[r]].after.ns) {
            escalate |= route->steps[c->steps[r]++].receivers;
        }
        if (route->repeat.ns > 0 && mono_sub(a->now, c->told_last[r]).ns >= route->repeat.ns) {
            repeat |= route->receivers;
            c->told_last[r] = a->now;
        }
    }
    if (escalate != 0) {
        incident_say(a, c, ALERT_ESCALATED, escalate, c->loud == ALERT_PAGE);
    } else if (repeat != 0) {
        incident_say(a, c, ALERT_REPEATED, repeat, false);
    }
}

void incident_told(struct alerts *a, struct incident *c)
{
    if (c->state == INCIDENT_NEW) {
        if (mono_before(a->now, c->due)) {
            return;
        }
        /* a short incident is notified, too */
        if (c->audible > 0 || (c->firing == 0 && c->spoke)) {
            tell_first(a, c);
        }
        c->state = c->firing > 0 ? INCIDENT_OPEN : INCIDENT_QUIET;
        incident_changed(a, c, true);
        return;
    }
    if (!c->told || c->audible == 0) {
        return;
    }
    if (c->loud == ALERT_PAGE && !mono_before(a->now, c->repage)) {
        incident_say(a, c, ALERT_REOPENED, receivers_of(a, c->loud), true);
    }
    if (c->by[0] == '\0') {
        tell_again(a, c);
    }
}

struct mono incident_deadline(const struct alerts *a, const struct incident *c)
{
    struct mono next = c->change_due ? c->change_next : MONO_NEVER;

    if (c->state == INCIDENT_NEW) {
        return mono_min(next, c->due);
    }
    if (c->state == INCIDENT_QUIET) {
        return mono_min(next, c->quiet_until);
    }
    if (c->state != INCIDENT_OPEN || !c->told || c->audible == 0) {
        return next;
    }
    next = c->loud == ALERT_PAGE ? mono_min(next, c->repage) : next;
    for (size_t r = 0; c->by[0] == '\0' && r < a->config.route_count; r++) {
        const struct alert_route *route = &a->config.routes[r];
        if (c->loud >= route->severity && c->steps[r] < route->step_count) {
            next = mono_min(next, mono_add(c->told_at, route->steps[c->steps[r]].after));
        }
        if (c->loud >= route->severity && route->repeat.ns > 0) {
            next = mono_min(next, mono_add(c->told_last[r], route->repeat));
        }
    }
    return next;
}

bool alerts_next_action(struct alerts *a, struct alert_action *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (a->heartbeat) {
        a->heartbeat = false;
        ret->kind = ALERT_ACTION_NOTIFY;
        ret->event = ALERT_HEARTBEAT;
        ret->receivers = a->config.heartbeat_receivers;
        ret->sequence = ++a->heartbeat_sequence;
        ret->incident.cause = "";
        ret->incident.text = "foliot's alerting is alive";
        return true;
    }
    if (a->queue_head == NONE) {
        return false;
    }
    struct incident *c = &a->incidents[a->queue_head];
    ASSERT(c->queued && c->state != INCIDENT_FREE);
    incident_direct(a, c);
    text_of_incident(a, c);
    incident_show(a, c, &ret->incident);
    if (c->notify) {
        c->notify = false;
        ret->kind = ALERT_ACTION_NOTIFY;
        ret->event = c->notify_event;
        ret->receivers = c->notify_receivers;
        ret->page = c->notify_page;
        ret->sequence = ++c->sequence;
        c->notify_page = false;
        a->counters.notifications++;
        return true;
    }
    ret->kind = ALERT_ACTION_INCIDENT;
    ret->sequence = c->sequence;
    c->change_due = false;
    c->queued = false;
    a->queue_head = c->queue_next;
    if (a->queue_head == NONE) {
        a->queue_tail = NONE;
    }
    return true;
}

/* ---- acknowledging, restoring ----------------------------------------------------------------------------------- */

static struct incident *find_open(struct alerts *a, uint64_t id)
{
    for (uint32_t k = 0; k < a->incident_max; k++) {
        if (a->incidents[k].id == id && incident_is_open(&a->incidents[k])) {
            return &a->incidents[k];
        }
    }
    return NULL;
}

int alerts_acknowledge(struct alerts *a, struct mono now, uint64_t incident, const char *by)
{
    struct incident *c = find_open(a, incident);

    if (c == NULL) {
        return -ENOENT;
    }
    a->now = now;
    snprintf(c->by, sizeof(c->by), "%s", by[0] != '\0' ? by : "somebody");
    c->acknowledged = now;
    if (c->told) {
        incident_say(a, c, ALERT_ACKNOWLEDGED, c->told_receivers, false);
    }
    incident_changed(a, c, true);
    return 0;
}

int alerts_restore(struct alerts *a, struct mono now, const struct alert_restore *r)
{
    struct incident *c = NULL;

    a->now = now;
    for (uint32_t k = 1; k < a->incident_max && c == NULL; k++) {
        c = a->incidents[k].state == INCIDENT_FREE ? &a->incidents[k] : NULL;
    }
    uint32_t element = c == NULL             ? NONE
                       : r->choice.count > 0 ? element_take_as(a, &r->choice.one_of[0])
                                             : element_take(a, &r->element, r->cause);
    if (c == NULL || element == NONE) {
        return -ENOSPC;
    }
    memset(c, 0, sizeof(*c));
    c->id = r->id;
    c->state = INCIDENT_QUIET;
    c->severity = r->severity;
    /* The worst alerts may have been silenced, or may not be back yet. They are notified when they are audible. */
    const bool page_due = r->severity == ALERT_PAGE && (r->pages == 0 || r->owes_page);
    c->loud = !r->told ? ALERT_INFO : page_due ? ALERT_WARNING : r->severity;
    c->sequence = r->sequence;
    c->pages = r->pages;
    c->since = r->since;
    c->created = c->changed = c->change_next = c->told_at = now;
    c->told = r->told;
    c->owes_page = r->told && r->owes_page;
    c->told_receivers = r->told ? receivers_of(a, r->severity) : 0;
    c->cause = element;
    c->first = NONE;
    c->repage = MONO_NEVER;
    c->quiet_until = mono_add(now, span_ns(RESTORED_NS));
    /* its evidence comes again, which is no news */
    memset(c->rules_seen, 0xff, sizeof(c->rules_seen));
    c->news = 1U << 16;
    for (size_t k = 0; k < ALERT_ROUTE_MAX; k++) {
        c->told_last[k] = now;
    }
    snprintf(c->by, sizeof(c->by), "%s", r->acknowledged_by != NULL ? r->acknowledged_by : "");
    snprintf(c->text, sizeof(c->text), "%s", r->text);
    c->unknown = r->choice.count > 0;
    c->proven = !c->unknown;
    c->choice = r->choice;
    c->choice_host = ALERT_NO_ID;
    snprintf(c->called, sizeof(c->called), "%s", r->cause);
    a->elements[element].owner = (uint32_t)(c - a->incidents);
    a->next_incident = r->id >= a->next_incident ? r->id + 1 : a->next_incident;
    a->counters.incidents_open++;
    return 0;
}

/* ---- showing ---------------------------------------------------------------------------------------------------- */

static int compare_ids(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

    return a < b ? -1 : a > b;
}

static uint32_t distinct(uint32_t *ids, uint32_t count)
{
    uint32_t found = 0;

    qsort(ids, count, sizeof(*ids), compare_ids);
    for (uint32_t k = 0; k < count; k++) {
        found += k == 0 || ids[k] != ids[k - 1];
    }
    return found;
}

static uint32_t count_of(const struct alerts *a, const struct incident *c, bool links)
{
    uint32_t count = 0;

    for (uint32_t at = c->first; at != NONE; at = a->instances[at].sibling_after) {
        const uint32_t id = links ? a->instances[at].nic : a->instances[at].host;
        if (id != ALERT_NO_ID) {
            a->scratch[count++] = id;
        }
    }
    return distinct(a->scratch, count);
}

void incident_show(const struct alerts *a, const struct incident *c, struct alert_incident *ret)
{
    const struct cause_element *cause = c->cause != NONE ? &a->elements[c->cause] : NULL;

    *ret = (struct alert_incident){
        .id = c->id,
        .merged_into = c->merged_into,
        .state = c->state,
        .severity = c->severity,
        .element = cause != NULL && !c->unknown ? cause->where : element_unknown(),
        .choice = c->unknown ? c->choice : (struct element_choice){0},
        .cause = cause == NULL ? ""
                 : c->unknown  ? c->called
                               : cause->name,
        .since = c->since,
        .changed = c->changed,
        .resolved = c->resolved,
        .alerts_firing = c->firing,
        .alerts_total = c->total,
        .hosts = count_of(a, c, false),
        .links = count_of(a, c, true),
        .sequence = c->sequence,
        .pages = c->pages,
        .reopened = c->reopened,
        .told = c->told,
        .owes_page = c->owes_page,
        .silenced = c->firing > 0 && c->audible == 0,
        .acknowledged_by = c->by[0] != '\0' ? c->by : NULL,
        .acknowledged = c->acknowledged,
        .text = c->text,
    };
    const uint32_t host = cause == NULL ? ALERT_NO_ID : c->unknown ? c->choice_host : cause->host;
    if (host != ALERT_NO_ID) {
        (void)name_of_host(a, host, ret->host, sizeof(ret->host));
    }
}

bool alerts_next_incident(const struct alerts *a, size_t *cursor, struct alert_incident *ret)
{
    while (*cursor < a->incident_max) {
        const struct incident *c = &a->incidents[(*cursor)++];
        if (c->state != INCIDENT_FREE) {
            incident_show(a, c, ret);
            return true;
        }
    }
    return false;
}

bool alerts_find_incident(const struct alerts *a, uint64_t id, struct alert_incident *ret)
{
    for (uint32_t k = 0; k < a->incident_max; k++) {
        if (a->incidents[k].state != INCIDENT_FREE && a->incidents[k].id == id) {
            incident_show(a, &a->incidents[k], ret);
            return true;
        }
    }
    return false;
}

bool alerts_next_alert(const struct alerts *a, size_t *cursor, struct alert *ret)
{
    while (*cursor < a->instance_max) {
        const struct instance *i = &a->instances[(*cursor)++];
        if (i->state == ALERT_FREE) {
            continue;
        }
        *ret = (struct alert){
            .id = i->id,
            .incident = i->incident != NONE ? a->incidents[i->incident].id : 0,
            .rule = i->rule,
            .state = i->state,
            .severity = a->rules[i->rule].severity,
            .silenced = i->silenced,
            .stale = i->stale,
            .since = i->since,
            .fired = i->fired,
            .host = i->host,
            .nic = i->nic,
            .peer = i->peer,
            .port = i->port,
            .job = i->job,
            .value = i->value,
            .rule_name = a->rules[i->rule].name,
            .text = i->text,
        };
        return true;
    }
    return false;
}

void alerts_counters(const struct alerts *a, struct alert_counters *ret)
{
    *ret = a->counters;
}
