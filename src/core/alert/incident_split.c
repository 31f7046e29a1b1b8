/* incident_split.c: one incident that turns out to be several. Two trunks of a spine die, and are called the spine until all
 * hosts have told what still comes through it. */
#include "core/alert/internal.h"

static bool is_scattered(const struct alerts *a, const struct incident *c)
{
    if (c->promoted || c->unsure > 0 || c->firing < 2 || !incident_is_open(c)) {
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
    return true;
}

/* The first of these that has no incident: that is what it goes on as. NONE: all have one. */
static const struct instance *heir_of(const struct alerts *a, const struct incident *c)
{
    for (uint32_t at = c->first; at != NONE; at = a->instances[at].sibling_after) {
        if (a->elements[a->instances[at].causes[0]].owner == NONE) {
            return &a->instances[at];
        }
    }
    return NULL;
}

/* An alert of it that is about something else; NONE: no more. */
static uint32_t next_other(const struct alerts *a, const struct incident *c, uint32_t element)
{
    uint32_t at = incident_is_open(c) ? c->first : NONE;

    while (at != NONE && a->instances[at].causes[0] == element) {
        at = a->instances[at].sibling_after;
    }
    return at;
}

void incident_split(struct alerts *a, struct incident *c)
{
    const struct instance *heir = is_scattered(a, c) ? heir_of(a, c) : NULL;
    uint32_t at;

    if (heir == NULL) {
        return;
    }
    const uint32_t element = heir->causes[0];
    incident_clear_elements(a, c);
    incident_set_cause(a, c, element);
    for (uint32_t k = 0; k < instance_shared(heir); k++) {
        incident_add_element(a, c, heir->causes[k]);
    }
    while ((at = next_other(a, c, element)) != NONE) {
        struct instance *i = &a->instances[at];

        incident_unlink(a, c, i);
        c->total--;
        incident_group(a, i, true);
        a->counters.incidents_dropped += i->incident == NONE;
    }
    if (incident_is_open(c) && c->told && c->audible > 0) {
        incident_say(a, c, ALERT_WORSE, receivers_of(a, c->loud), false);
    }
    incident_changed(a, c, true);
}
