/* incident.c: which alerts have one cause. An alert joins the incident that its candidates name. Several incidents that are
 * one: incident_merge.c. Their elements: incident_elements.c. */
#include <string.h>

#include "core/alert/internal.h"

#define MERGED_NS      (60 * NS_PER_S) /* a merged one stays visible for so long */
#define NEWS_MAX       8               /* links of one incident that are told one by one */
#define CHANGE_STEP_NS (1 * NS_PER_S)  /* counts of a growing incident are passed on so often */

/* ---- making one ------------------------------------------------------------------------------------------------- */

/* Nothing or the oldest that is only kept for its memory. */
static bool is_place(const struct incident *x, const struct incident *best)
{
    const bool over = x->state == INCIDENT_RESOLVED || x->state == INCIDENT_MERGED;

    if (x->queued || (best != NULL && best->state == INCIDENT_FREE)) {
        return false;
    }
    return x->state == INCIDENT_FREE ||
           (over && (best == NULL || mono_before(x->changed, best->changed)));
}

/* kept: of the alert that tells that there is no place. It may have the first one, if there is no other. */
static struct incident *incident_new(struct alerts *a, uint32_t cause, bool kept)
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

    ASSERT(i->incident == NONE && i->state == ALERT_FIRING); /* one alert, one incident */
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

/* The severity there. Hearsay pages nobody before a host of another tenant reports something with the same cause. */
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

/* Something in it was hearsay until this one came. */
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

/* Something in it is a page: one that it owes counts from here, if it doesn't count yet. */
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

/* It became louder: say so, if it was told of already. */
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
    } else if (hearsay) { /* told as something else: no page was of this, or is */
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

/* Evidence of a kind that it didn't have yet; or another link that is down for certain: people hear of it, though
 * nobody is woken by it. The rest of many that follow from one cause only counts. */
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

/* Receivers that were told of it are told that it is back. Under a silence nobody is told until the silence ends. */
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

static void take(struct alerts *a, struct incident *c, struct instance *i)
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
    if (c->common_count == 0) { /* new, or back: it may be part of something larger again */
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
        if (!c->told && c->state == INCIDENT_OPEN) { /* so far all of it was silenced */
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

/* ---- joining ---------------------------------------------------------------------------------------------------- */

/* What is only shown explains nothing that somebody is told of, but of the same thing. What fires now counts, not what was. */
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
            continue; /* it is sure of a part, and nobody is of the whole */
        }
        /* One that was resolved comes back only by what it was itself about. */
        if (c != NULL && (incident_is_open(c) || (k == 0 && c->state == INCIDENT_RESOLVED))) {
            return c;
        }
    }
    return NULL;
}

/* What it is about is what the incident is about, or may be. */
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

/* A figure of a whole rail or fleet that got worse while a switch is down needs no cause of its own (onset NULL: whenever it
 * began); nor does a dead path of which nobody knows more than that it died in the same second. */
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

/* The other way round: the dead paths came first, and it becomes known what they have in common. */
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

/* One that began at that moment and may be what this one is, or may be. */
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

/* It was unknown, and this one is sure which of those that it may be it is. */
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
        take(a, c, i);
        name_unknown(a, c, i);
        incident_promote(a, c);
        gather_unplaced(a, &a->incidents[i->incident]);
    }
}

static void fall_quiet(struct alerts *a, struct incident *c)
{
    c->quiet_until = mono_add(a->now, a->config.keep);
    c->repage = MONO_NEVER;
    if (c->state == INCIDENT_OPEN) {
        c->state = INCIDENT_QUIET;
    }
    a->deadline = mono_min(a->deadline, c->quiet_until);
}

/* The first suspect of all its alerts; NONE: they don't agree. ret_cause: its cause could explain all of them. */
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

/* All that it consists of is now known to come from one thing: one that is finer than what it was taken for, or that has an
 * incident already. */
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
        incident_loudness(a, into); /* what two tenants' hosts tell may have come together */
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
        element_hold(a, before); /* its number must mean the same after the release */
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
    const bool other = i->cause_count == 0 || i->causes[0] != before ||
                       (!fits && !i->unplaced); /* it knows better than when it joined */
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
                    incident_absorb(a, into, c); /* it was this all along */
                    if (into->told && into->state == INCIDENT_NEW) {
                        incident_tell_larger(a, into);
                    }
                } else {
                    fall_quiet(a, c);
                }
            } else {
                incident_refine(a, c);
            }
        }
    }
    if (i->incident != NONE && other) { /* it may have been the last that disagreed */
        incident_refine(a, &a->incidents[i->incident]);
    }
    if (before != NONE) {
        element_drop(a, before);
    }
    if (i->incident != NONE) { /* it may know which of several it is, or that it is fewer */
        name_unknown(a, &a->incidents[i->incident], i);
        incident_weigh(a, &a->incidents[i->incident]);
    }
    if (i->incident != NONE && incident_direct(a, &a->incidents[i->incident])) {
        incident_changed(a, &a->incidents[i->incident], true);
    }
}

void incident_leave(struct alerts *a, struct instance *i)
{
    if (i->incident == NONE) {
        return;
    }
    struct incident *c = &a->incidents[i->incident];
    if (c->firing == 1) {
        text_of_incident(a, c); /* the last words of it, while its last alert is there */
    }
    incident_unlink(a, c, i);
    phase_leave(a, c, i);
    if (c->firing == 0) {
        fall_quiet(a, c);
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
                   a->counters.incidents_open > 0); /* nobody is silent about an alert */
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
