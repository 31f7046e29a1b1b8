/* incident_split.c: splits an incident that turns out to be several. For example, two trunks of a spine die. The incident is
 * called the spine until all hosts have reported which paths still work through it. */
#include "core/alert/internal.h"

/* The number of different suspects of its alerts, at most `most`. */
static uint32_t suspects(const struct alerts *a, const struct incident *c, uint32_t most)
{
    uint32_t found[ALERT_CAUSE_MAX], count = 0;

    for (uint32_t at = c->first; at != NONE && count < most && count < ALERT_CAUSE_MAX;
         at = a->instances[at].sibling_after) {
        bool known = false;

        for (uint32_t k = 0; k < count; k++) {
            known = known || found[k] == a->instances[at].causes[0];
        }
        found[count] = a->instances[at].causes[0];
        count += !known;
    }
    return count;
}

static bool is_scattered(const struct alerts *a, const struct incident *c)
{
    if (c->unsure > 0 || c->firing < 2 || !incident_is_open(c)) {
        return false;
    }
    for (uint32_t at = c->first; at != NONE; at = a->instances[at].sibling_after) {
        const struct instance *i = &a->instances[at];

        if (a->rules[i->rule].condition != ALERT_ON_FINDING || i->cause_count == 0 ||
            i->causes[0] == c->cause ||
            element_rank(a, i->causes[0]) >= element_rank(a, c->cause)) {
            return false;
        }
    }
    /* the cause is an element that several share, and now too few share it */
    return !c->promoted || suspects(a, c, a->config.promote) < a->config.promote;
}

/* The first alert whose suspect has no incident: the incident continues with that suspect. NULL: all have one. */
static const struct instance *heir_of(const struct alerts *a, const struct incident *c)
{
    for (uint32_t at = c->first; at != NONE; at = a->instances[at].sibling_after) {
        if (a->elements[a->instances[at].causes[0]].owner == NONE) {
            return &a->instances[at];
        }
    }
    return NULL;
}

/* An alert of the incident about another element; NONE: no more. */
static uint32_t next_other(const struct alerts *a, const struct incident *c, uint32_t element)
{
    uint32_t at = incident_is_open(c) ? c->first : NONE;

    while (at != NONE && a->instances[at].causes[0] == element) {
        at = a->instances[at].sibling_after;
    }
    return at;
}

/* If no alert is left, the incident is merged into that one. */
static void dissolve(struct alerts *a, struct incident *c, uint32_t into)
{
    if (c->firing == 0 && incident_is_open(c) && into != NONE && into != incident_number(a, c)) {
        incident_absorb(a, &a->incidents[into], c);
        if (a->incidents[into].told && a->incidents[into].state == INCIDENT_NEW) {
            incident_tell_larger(a, &a->incidents[into]);
        }
    }
}

void incident_split(struct alerts *a, struct incident *c)
{
    if (!is_scattered(a, c)) {
        return;
    }
    const struct instance *heir = heir_of(a, c);
    const uint32_t element = heir != NULL ? heir->causes[0] : NONE;
    uint32_t at, into = NONE;

    incident_clear_elements(a, c);
    c->promoted = false;
    if (heir != NULL) {
        incident_set_cause(a, c, element);
    }
    for (uint32_t k = 0; heir != NULL && k < instance_shared(heir); k++) {
        incident_add_element(a, c, heir->causes[k]);
    }
    for (uint32_t n = c->firing; n > 0 && (at = next_other(a, c, element)) != NONE; n--) {
        struct instance *i = &a->instances[at];

        incident_unlink(a, c, i);
        c->total--;
        incident_group(a, i, true);
        a->counters.incidents_dropped += i->incident == NONE;
        into = i->incident;
    }
    dissolve(a, c, into);
    if (incident_is_open(c) && c->told && c->audible > 0) {
        incident_say(a, c, ALERT_WORSE, receivers_of(a, c->loud), false);
    }
    if (incident_is_open(c)) {
        incident_changed(a, c, true);
    }
}
