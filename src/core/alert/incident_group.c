/* incident_group.c: finds alerts with one cause. An alert joins the incident that one of its candidates names. It moves when its
 * finding gets more exact. */
#include "core/alert/internal.h"

/* True if the incident has only `info` alerts and this alert is more severe. Then the incident takes it in only if both are about
 * the same element. Alerts that fire now count; if none fires, the incident's severity does. */
static bool is_only_shown(const struct alerts *a, const struct incident *c,
                          const struct instance *i)
{
    uint32_t severity = c->first == NONE ? c->severity : ALERT_INFO;

    for (uint32_t at = c->first; at != NONE && severity == ALERT_INFO;
         at = a->instances[at].sibling_after) {
        severity = a->rules[a->instances[at].rule].severity;
    }
    return severity == ALERT_INFO && a->rules[i->rule].severity > ALERT_INFO &&
           c->cause != i->causes[0];
}

static struct incident *incident_of_cause(struct alerts *a, const struct instance *i)
{
    for (uint32_t k = 0; k < instance_shared(i); k++) {
        const uint32_t owner = a->elements[i->causes[k]].owner;
        struct incident *c = owner != NONE ? &a->incidents[owner] : NULL;
        if (c != NULL && is_only_shown(a, c, i)) {
            continue;
        }
        if (c != NULL && k > 0 && c->unknown && c->promoted && !instance_is_unsure(i)) {
            /* the alert is sure of a part, and the incident is only a guess at the whole */
            continue;
        }
        /* A resolved incident is reopened only by an alert about its own cause. */
        if (c != NULL && (incident_is_open(c) || (k == 0 && c->state == INCIDENT_RESOLVED))) {
            return c;
        }
    }
    return NULL;
}

/* True if the alert's element is the incident's cause, or a possible one. */
static bool is_about(const struct incident *c, const struct instance *i)
{
    const uint32_t count = i->candidates > 0 ? i->candidates : i->cause_count > 0 ? 1 : 0;

    for (uint32_t k = 0; k < count; k++) {
        if (i->causes[k] == c->cause) {
            return true;
        }
    }
    return false;
}

void incident_await(struct alerts *a, const struct instance *i)
{
    struct incident *c = incident_of_cause(a, i);

    if (c != NULL && c->state == INCIDENT_QUIET && (c->total == 0 || is_about(c, i))) {
        const struct mono until = mono_add(a->now, a->config.keep);
        c->quiet_until = mono_before(c->quiet_until, until) ? until : c->quiet_until;
    }
}

static bool is_of_fabric(const struct alerts *a, const struct incident *c)
{
    const uint32_t kind = incident_is_open(c) ? a->elements[c->cause].where.kind : ELEMENT_UNKNOWN;

    return kind == ELEMENT_TRUNK || (kind >= ELEMENT_LEAF && kind <= ELEMENT_ROUTER);
}

static bool same_onset(const struct mono x, const struct mono y)
{
    const int64_t apart = mono_sub(x, y).ns;

    return (apart < 0 ? -apart : apart) <= SAME_ONSET_NS;
}

/* An incident of a switch or trunk. A worse figure of a whole rail or fleet joins it at any time (onset NULL). A dead path
 * without a suspect joins it if both began at the same time. */
static struct incident *incident_of_fabric(struct alerts *a, const struct mono *onset)
{
    for (uint32_t k = 0; k < a->incident_max; k++) {
        struct incident *c = &a->incidents[k];
        if (is_of_fabric(a, c) && (onset == NULL || same_onset(c->since, *onset))) {
            return c;
        }
    }
    return NULL;
}

/* The opposite order: the dead paths came first, and their common cause becomes known later. */
static void gather_unplaced(struct alerts *a, struct incident *into)
{
    for (uint32_t k = 0; is_of_fabric(a, into) && into->placed && k < a->incident_max; k++) {
        struct incident *c = &a->incidents[k];
        if (c != into && incident_is_open(c) && !c->placed && c->firing > 0 &&
            same_onset(c->since, into->since)) {
            incident_absorb(a, into, c);
        }
    }
    if (into->told && into->state == INCIDENT_NEW) {
        incident_tell_larger(a, into);
    }
}

static bool is_candidate(const struct alerts *a, const struct incident *c, uint32_t element)
{
    for (uint32_t at = c->first; at != NONE; at = a->instances[at].sibling_after) {
        const struct instance *i = &a->instances[at];
        for (uint32_t k = 0; k < i->candidates; k++) {
            if (i->causes[k] == element) {
                return true;
            }
        }
    }
    return false;
}

/* An open unknown incident that began at the same time and has a possible element in common with this alert. */
static struct incident *incident_of_unknown(struct alerts *a, const struct instance *i)
{
    const uint32_t count = i->candidates > 0 ? i->candidates : i->cause_count > 0 ? 1 : 0;

    for (uint32_t k = 0; k < a->incident_max; k++) {
        struct incident *c = &a->incidents[k];
        for (uint32_t n = 0;
             incident_is_open(c) && c->unknown && same_onset(c->since, i->since) && n < count;
             n++) {
            if (is_candidate(a, c, i->causes[n])) {
                return c;
            }
        }
    }
    return NULL;
}

/* The incident was unknown, and this alert is sure of one of its possible elements. */
static void name_unknown(struct alerts *a, struct incident *c, const struct instance *i)
{
    if (c->unknown && !instance_is_unsure(i) && i->causes[0] != c->cause &&
        a->elements[i->causes[0]].owner == NONE && is_candidate(a, c, i->causes[0])) {
        incident_set_cause(a, c, i->causes[0]);
        incident_changed(a, c, true);
    }
}

void incident_group(struct alerts *a, struct instance *i, bool room)
{
    const struct alert_rule *rule = &a->rules[i->rule];
    struct incident *c = incident_of_cause(a, i);

    if (c == NULL && !room) {
        return;
    }
    if (c == NULL && rule->scope >= ALERT_PER_RAIL && rule->condition == ALERT_ON_THRESHOLD) {
        c = incident_of_fabric(a, NULL);
    } else if (c == NULL && i->unplaced) {
        c = incident_of_fabric(a, &i->since);
    }
    if (c == NULL && rule->condition == ALERT_ON_FINDING) {
        c = incident_of_unknown(a, i);
    }
    if (c == NULL && i->cause_count > 0) {
        c = incident_new(a, i->causes[0], rule_has_place(a, i->rule));
    }
    if (c != NULL) {
        incident_take(a, c, i);
        name_unknown(a, c, i);
        incident_promote(a, c);
        gather_unplaced(a, &a->incidents[i->incident]);
    }
}

/* The first suspect, if all its alerts have the same one; else NONE. ret_cause: true if the incident's cause could explain all of
 * them. */
static uint32_t agreed(const struct alerts *a, const struct incident *c, bool *ret_cause)
{
    const struct instance *first = c->first != NONE ? &a->instances[c->first] : NULL;
    const uint32_t element = first != NULL && first->cause_count > 0 ? first->causes[0] : NONE;

    *ret_cause = true;
    for (uint32_t at = c->first; at != NONE && element != NONE;
         at = a->instances[at].sibling_after) {
        const struct instance *i = &a->instances[at];
        bool has = false;
        if (i->cause_count == 0 || i->causes[0] != element) {
            return NONE;
        }
        for (uint32_t k = 0; k < i->cause_count; k++) {
            has = has || i->causes[k] == c->cause;
        }
        *ret_cause = *ret_cause && has;
    }
    return element;
}

/* All its alerts now have the same suspect. That element is finer than the incident's cause, or has an incident already. */
void incident_refine(struct alerts *a, struct incident *c)
{
    bool explains;
    const uint32_t element = agreed(a, c, &explains);
    const uint32_t owner = element != NONE ? a->elements[element].owner : NONE;

    if (element == NONE) {
        incident_split(a, c);
    }
    if (element == NONE || element == c->cause || !incident_is_open(c)) {
        return;
    }
    if (owner != NONE && incident_is_open(&a->incidents[owner])) {
        struct incident *into = &a->incidents[owner];
        incident_absorb(a, into, c);
        incident_loudness(a, into); /* reports of two tenants' hosts may have come together */
        if (into->told && into->state == INCIDENT_NEW) {
            incident_tell_larger(a, into);
        }
        incident_changed(a, into, true);
        return;
    }
    if (owner != NONE || (explains && element_rank(a, element) >= element_rank(a, c->cause))) {
        return;
    }
    incident_clear_elements(a, c);
    incident_set_cause(a, c, element);
    c->promoted = false;
    for (uint32_t k = 0; k < instance_shared(&a->instances[c->first]); k++) {
        incident_add_element(a, c, a->instances[c->first].causes[k]);
    }
    if (c->told && c->audible > 0) {
        incident_say(a, c, ALERT_WORSE, receivers_of(a, c->loud), false);
    }
    incident_changed(a, c, true);
}

void incident_regroup(struct alerts *a, struct instance *i, const struct alert_finding *f)
{
    const uint32_t before = i->cause_count > 0 ? i->causes[0] : NONE;
    const uint32_t old = i->incident;

    if (before != NONE) {
        element_hold(a, before); /* its number must stay valid after the release */
    }
    if (old != NONE) {
        a->incidents[old].unsure -= instance_is_unsure(i);
    }
    causes_release(a, i);
    causes_of_finding(a, i, f);
    if (old != NONE) {
        a->incidents[old].unsure += instance_is_unsure(i);
    }
    bool fits = false;
    for (uint32_t k = 0; old != NONE && k < instance_shared(i); k++) {
        fits = fits || i->causes[k] == a->incidents[old].cause;
    }
    /* the suspect is more exact than when the alert joined */
    const bool other = i->cause_count == 0 || i->causes[0] != before || (!fits && !i->unplaced);
    if (old != NONE && other) {
        struct incident *c = &a->incidents[old];
        if (fits) {
            incident_narrow(a, c, i);
            incident_promote(a, c);
        } else {
            incident_unlink(a, c, i);
            c->total--;
            incident_group(a, i, true);
            a->counters.incidents_dropped += i->incident == NONE;
            if (c->firing == 0 && incident_is_open(c)) {
                if (i->incident != NONE) {
                    struct incident *into = &a->incidents[i->incident];
                    incident_absorb(a, into, c); /* the incident had this cause from the start */
                    if (into->told && into->state == INCIDENT_NEW) {
                        incident_tell_larger(a, into);
                    }
                } else {
                    incident_fall_quiet(a, c);
                }
            } else {
                incident_refine(a, c);
            }
        }
    }
    /* the alert may have been the last one that did not agree */
    if (i->incident != NONE && other) {
        incident_refine(a, &a->incidents[i->incident]);
    }
    if (before != NONE) {
        element_drop(a, before);
    }
    /* the alert may know which of several elements it is, or a shorter list */
    if (i->incident != NONE) {
        name_unknown(a, &a->incidents[i->incident], i);
        incident_weigh(a, &a->incidents[i->incident]);
    }
    if (i->incident != NONE && incident_direct(a, &a->incidents[i->incident])) {
        incident_changed(a, &a->incidents[i->incident], true);
    }
}
