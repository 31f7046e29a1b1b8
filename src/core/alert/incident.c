/* incident.c: the life of an incident: created, joined by alerts, more severe, quiet, over. incident_group.c decides which alerts
 * have one cause. incident_merge.c merges incidents. incident_elements.c has their elements. */
#include <string.h>

#include "core/alert/internal.h"

#define MERGED_NS (60 * NS_PER_S) /* a merged incident stays visible for so long */
/* so many further links of one incident are notified one by one */
#define NEWS_MAX 8
/* the shortest time between two updates of a growing incident's counts */
#define CHANGE_STEP_NS (1 * NS_PER_S)

/* ---- making one ------------------------------------------------------------------------------------------------- */

/* True if the place is free, or if its resolved incident is older than `best`. */
static bool is_place(const struct incident *x, const struct incident *best)
{
    const bool over = x->state == INCIDENT_RESOLVED || x->state == INCIDENT_MERGED;

    if (x->queued || (best != NULL && best->state == INCIDENT_FREE)) {
        return false;
    }
    return x->state == INCIDENT_FREE ||
           (over && (best == NULL || mono_before(x->changed, best->changed)));
}

struct incident *incident_new(struct alerts *a, uint32_t cause, bool kept)
{
    struct incident *c = NULL;

    for (uint32_t k = 1; k < a->incident_max; k++) {
        c = is_place(&a->incidents[k], c) ? &a->incidents[k] : c;
    }
    c = c == NULL && kept && is_place(&a->incidents[0], NULL) ? &a->incidents[0] : c;
    if (c == NULL) {
        return NULL;
    }
    if (c->state != INCIDENT_FREE) {
        incident_release(a, c);
    }
    memset(c, 0, sizeof(*c));
    c->id = a->next_incident++;
    c->state = INCIDENT_NEW;
    c->cause = c->first = NONE;
    c->created = c->changed = c->change_next = a->now;
    c->quiet_until = c->repage = MONO_NEVER;
    incident_set_cause(a, c, cause);
    a->counters.incidents_open++;
    return c;
}

void incident_link(struct alerts *a, struct incident *c, struct instance *i)
{
    const uint32_t at = (uint32_t)(i - a->instances);

    /* an alert belongs to at most one incident */
    ASSERT(i->incident == NONE && i->state == ALERT_FIRING);
    i->incident = incident_number(a, c);
    i->sibling_before = NONE;
    i->sibling_after = c->first;
    if (c->first != NONE) {
        a->instances[c->first].sibling_before = at;
    }
    c->first = at;
    c->firing++;
    c->unsure += instance_is_unsure(i);
    c->audible += !i->silenced;
}

void incident_unlink(struct alerts *a, struct incident *c, struct instance *i)
{
    if (i->sibling_before != NONE) {
        a->instances[i->sibling_before].sibling_after = i->sibling_after;
    } else {
        c->first = i->sibling_after;
    }
    if (i->sibling_after != NONE) {
        a->instances[i->sibling_after].sibling_before = i->sibling_before;
    }
    i->incident = i->sibling_before = i->sibling_after = NONE;
    ASSERT(c->firing > 0 && c->audible <= c->firing && c->audible >= !i->silenced);
    c->firing--;
    c->unsure -= instance_is_unsure(i);
    c->audible -= !i->silenced;
}

static uint64_t tenant_of(const struct alerts *a, uint32_t host)
{
    return a->config.fleet.tenant != NULL ? a->config.fleet.tenant(a->config.fleet.context, host)
                                          : host;
}

/* The host that reported it; ALERT_NO_ID: none did. A path that is no longer measured counts as a report of its host. */
static uint32_t word_of(const struct alerts *a, const struct instance *i)
{
    return i->said_by == ALERT_NO_ID && a->rules[i->rule].scope == ALERT_PER_PATH ? i->host
                                                                                  : i->said_by;
}

/* One end of a path reports alone. About the end of another tenant its report is hearsay, as a finding may be. */
static bool is_hearsay(const struct alerts *a, const struct incident *c, const struct instance *i)
{
    const struct alert_rule *rule = &a->rules[i->rule];
    const bool value = rule->scope == ALERT_PER_PATH && rule->condition != ALERT_ON_FINDING;
    const uint32_t accused = value ? element_host(a, &a->elements[c->cause].where) : ALERT_NO_ID;
    const uint32_t by = word_of(a, i);

    return i->hearsay || (accused != ALERT_NO_ID && by != ALERT_NO_ID &&
                          tenant_of(a, accused) != tenant_of(a, by));
}

/* The alert's severity in that incident. Hearsay pages nobody until a host of another tenant reports something with the same
 * cause. */
static uint32_t severity_in(const struct alerts *a, const struct incident *c,
                            const struct instance *i)
{
    const uint32_t severity = a->rules[i->rule].severity;

    if (severity < ALERT_PAGE || !is_hearsay(a, c, i)) {
        return severity;
    }
    for (uint32_t at = c->first; at != NONE; at = a->instances[at].sibling_after) {
        const uint32_t other = word_of(a, &a->instances[at]);
        if (other != ALERT_NO_ID && tenant_of(a, other) != tenant_of(a, word_of(a, i))) {
            return severity;
        }
    }
    return ALERT_PAGE - 1;
}

/* True if this alert is the first from another tenant, so that hearsay in the incident is now confirmed. */
static bool confirms(const struct alerts *a, const struct incident *c, const struct instance *i)
{
    const uint32_t by = word_of(a, i);

    for (uint32_t at = by != ALERT_NO_ID ? c->first : NONE; at != NONE;
         at = a->instances[at].sibling_after) {
        const struct instance *other = &a->instances[at];
        if (!other->silenced && a->rules[other->rule].severity == ALERT_PAGE &&
            tenant_of(a, word_of(a, other)) != tenant_of(a, by)) {
            return true;
        }
    }
    return false;
}

/* The incident has a page-level alert: a page that it owes counts from here, if it doesn't count yet. */
static void owe(const struct alerts *a, struct incident *c)
{
    if (c->owes_page && c->repage.ns == MONO_NEVER.ns) {
        c->repage = mono_add(a->now, a->config.repage);
    }
}

void incident_owe(const struct alerts *a, struct incident *c)
{
    for (uint32_t at = c->owes_page ? c->first : NONE; at != NONE && c->repage.ns == MONO_NEVER.ns;
         at = a->instances[at].sibling_after) {
        const struct instance *i = &a->instances[at];
        if (!i->silenced && severity_in(a, c, i) == ALERT_PAGE) {
            owe(a, c);
        }
    }
}

/* The severity rose. If the incident was already notified, a notification is sent. */
static void grow_louder(struct alerts *a, struct incident *c, uint32_t severity)
{
    if (severity == ALERT_PAGE) {
        owe(a, c);
    }
    c->severity = severity > c->severity ? severity : c->severity;
    c->spoke = true;
    if (c->told && severity > c->loud) {
        c->loud = severity;
        incident_say(a, c, ALERT_WORSE, receivers_of(a, severity),
                     severity == ALERT_PAGE && page_is_new(c));
    }
    c->loud = severity > c->loud ? severity : c->loud;
}

void incident_loudness(struct alerts *a, struct incident *c)
{
    uint32_t severity = 0, loud = 0;
    bool hearsay = false;

    for (uint32_t at = c->first; at != NONE; at = a->instances[at].sibling_after) {
        const struct instance *i = &a->instances[at];
        const uint32_t here = severity_in(a, c, i);
        hearsay = hearsay || is_hearsay(a, c, i);
        severity = here > severity ? here : severity;
        loud = !i->silenced && here > loud ? here : loud;
    }
    if (c->first != NONE && !c->told) {
        c->severity = severity;
        c->loud = loud;
    } else if (hearsay) { /* it was notified with another cause: what was a page is hearsay now */
        c->severity = severity < c->severity ? severity : c->severity;
        if (loud < c->loud) {
            c->loud = loud;
            c->pages = 0;
            a->counters.pages -= c->notify && c->notify_page;
            c->notify_page = false;
        } else if (loud > c->loud) {
            grow_louder(a, c, loud);
        }
    }
}

/* Evidence by a rule that the incident did not have yet, or another link that is certainly down: a notification is sent, without
 * a page. Further alerts from one cause are only counted. */
static void tell_news(struct alerts *a, struct incident *c, const struct instance *i)
{
    const uint64_t links =
        1ULL << FINDING_LINK_DOWN | 1ULL << FINDING_LINK_FLAPPING | 1ULL << FINDING_NIC_GONE;
    const bool known = (c->rules_seen[i->rule / 64] >> i->rule % 64 & 1) != 0;
    const bool fact = (a->rules[i->rule].findings & links) != 0 && i->causes[0] != c->cause;

    c->rules_seen[i->rule / 64] |= 1ULL << i->rule % 64;
    if (c->told && c->state == INCIDENT_OPEN && !i->silenced &&
        (!known || (fact && c->news < NEWS_MAX))) {
        c->news++;
        incident_say(a, c, ALERT_WORSE, receivers_of(a, c->loud), false);
    }
}

/* Tells the receivers of the incident that it is back. Under a silence the notification waits until the silence ends. */
void incident_reopen(struct alerts *a, struct incident *c, struct mono since, bool audible)
{
    a->counters.incidents_open++;
    c->reopened++;
    c->since = since;
    c->resolved = (struct mono){0};
    c->told = c->told && audible;
    c->spoke = audible;
    c->loud = ALERT_INFO;
    c->by[0] = '\0';
    memset(c->steps, 0, sizeof(c->steps));
    c->phase_count = 0;
    c->created = a->now;
    c->state = c->told ? INCIDENT_OPEN : INCIDENT_NEW;
    c->due = a->now;
    if (c->told) {
        c->told_at = a->now;
        incident_say(a, c, ALERT_REOPENED, c->told_receivers, false);
        c->repage = mono_add(a->now, a->config.repage);
    }
    c->owes_page = c->told;
}

void incident_wake(struct alerts *a, struct incident *c)
{
    c->state = INCIDENT_OPEN;
    c->quiet_until = MONO_NEVER;
    c->repage = c->owes_page ? mono_add(a->now, a->config.repage) : MONO_NEVER;
}

void incident_take(struct alerts *a, struct incident *c, struct instance *i)
{
    const struct alert_rule *rule = &a->rules[i->rule];
    const bool fresh = c->total == 0 && c->state == INCIDENT_NEW;

    if (c->state == INCIDENT_RESOLVED) {
        incident_reopen(a, c, i->since, !i->silenced);
    } else if (c->state == INCIDENT_QUIET) {
        incident_wake(a, c);
    }
    c->quiet_until = MONO_NEVER;
    c->placed = c->placed || !i->unplaced;
    if (fresh) {
        c->since = i->since;
        c->due = mono_add(a->now, rule->wait);
    }
    c->since = mono_min(c->since, i->since);
    if (c->common_count == 0) { /* a new or reopened incident may be part of something larger */
        for (uint32_t k = 0; k < instance_shared(i); k++) {
            incident_add_element(a, c, i->causes[k]);
        }
    } else {
        incident_narrow(a, c, i);
    }
    incident_link(a, c, i);
    phase_enter(a, c, i);
    c->total++;
    const uint32_t severity = severity_in(a, c, i);
    if (!i->silenced) {
        grow_louder(a, c, severity);
        if (!c->told && c->state == INCIDENT_OPEN) { /* until now all of it was silenced */
            c->state = INCIDENT_NEW;
            c->due = mono_add(a->now, rule->wait);
        }
    }
    if (c->loud < ALERT_PAGE && confirms(a, c, i)) {
        grow_louder(a, c, ALERT_PAGE);
    }
    tell_news(a, c, i);
    c->severity = severity > c->severity ? severity : c->severity;
    a->deadline = mono_min(a->deadline, incident_deadline(a, c));
    incident_changed(a, c, fresh);
}

/* ---- ends ------------------------------------------------------------------------------------------------------- */

void incident_fall_quiet(struct alerts *a, struct incident *c)
{
    c->quiet_until = mono_add(a->now, a->config.keep);
    c->repage = MONO_NEVER;
    if (c->state == INCIDENT_OPEN) {
        c->state = INCIDENT_QUIET;
    }
    a->deadline = mono_min(a->deadline, c->quiet_until);
}

void incident_leave(struct alerts *a, struct instance *i)
{
    if (i->incident == NONE) {
        return;
    }
    struct incident *c = &a->incidents[i->incident];
    if (c->firing == 1) {
        text_of_incident(a, c); /* the last sentence is made while the last alert still exists */
    }
    incident_unlink(a, c, i);
    phase_leave(a, c, i);
    if (c->firing == 0) {
        incident_fall_quiet(a, c);
    }
    incident_changed(a, c, c->firing == 0);
}

void incident_silence_changed(struct alerts *a, struct instance *i)
{
    if (i->incident == NONE) {
        return;
    }
    struct incident *c = &a->incidents[i->incident];
    if (i->silenced) {
        c->audible--;
    } else {
        c->audible++;
        grow_louder(a, c, severity_in(a, c, i));
        if (!c->told && c->state == INCIDENT_OPEN) {
            c->state = INCIDENT_NEW;
            c->due = a->now;
        }
    }
    incident_changed(a, c, true);
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

void incident_tick(struct alerts *a, struct incident *c)
{
    switch ((enum alert_incident_state)c->state) {
    case INCIDENT_NEW:
    case INCIDENT_OPEN:
        incident_told(a, c);
        break;
    case INCIDENT_QUIET:
        if (!mono_before(a->now, c->quiet_until)) {
            c->state = INCIDENT_RESOLVED;
            c->resolved = a->now;
            incident_clear_elements(a, c);
            ASSERT(c->firing == 0 &&
                   a->counters.incidents_open > 0); /* an open incident must be counted */
            a->counters.incidents_open--;
            if (c->told) {
                incident_say(a, c, ALERT_RESOLVED, c->told_receivers, false);
            }
            incident_changed(a, c, true);
        }
        break;
    case INCIDENT_RESOLVED:
    case INCIDENT_MERGED:
        if (!c->queued && mono_sub(a->now, c->resolved).ns >=
                              (c->state == INCIDENT_MERGED ? MERGED_NS : a->config.reopen.ns)) {
            incident_release(a, c);
            c->state = INCIDENT_FREE;
        }
        break;
    default:
        break;
    }
    if (c->change_due && !mono_before(a->now, c->change_next)) {
        incident_changed(a, c, true);
    }
}

void incident_changed(struct alerts *a, struct incident *c, bool at_once)
{
    incident_weigh(a, c);
    c->changed = a->now;
    c->change_due = true;
    if (!at_once && mono_before(a->now, c->change_next)) {
        a->deadline = mono_min(a->deadline, c->change_next);
        return;
    }
    c->change_next = mono_add(a->now, span_ns(CHANGE_STEP_NS));
    if (!c->queued) {
        c->queued = true;
        c->queue_next = NONE;
        if (a->queue_tail != NONE) {
            a->incidents[a->queue_tail].queue_next = incident_number(a, c);
        } else {
            a->queue_head = incident_number(a, c);
        }
        a->queue_tail = incident_number(a, c);
    }
}
