/* incident_elements.c: the elements that the alerts of an incident have in common. One of them is its cause. */
#include "base/strbuf.h"
#include "core/alert/internal.h"

bool incident_has(const struct incident *c, uint32_t element)
{
    for (uint32_t k = 0; k < c->common_count; k++) {
        if (c->common[k] == element) {
            return true;
        }
    }
    return false;
}

void incident_add_element(struct alerts *a, struct incident *c, uint32_t element)
{
    if (c->common_count < ALERT_CAUSE_MAX && !incident_has(c, element)) {
        element_hold(a, element);
        a->elements[element].incidents++;
        c->common[c->common_count++] = element;
    }
}

void incident_remove_element(struct alerts *a, struct incident *c, uint32_t k)
{
    const uint32_t element = c->common[k];

    c->common[k] = c->common[--c->common_count];
    ASSERT(a->elements[element].incidents > 0); /* at 0 its place becomes free */
    a->elements[element].incidents--;
    element_drop(a, element);
}

void incident_clear_elements(struct alerts *a, struct incident *c)
{
    while (c->common_count > 0) {
        incident_remove_element(a, c, c->common_count - 1);
    }
}

/* Keeps only elements that could also explain the new alert, and always the cause. */
void incident_narrow(struct alerts *a, struct incident *c, const struct instance *i)
{
    for (uint32_t k = c->common_count; k-- > 0;) {
        bool shared = c->common[k] == c->cause;
        for (uint32_t n = 0; n < instance_shared(i) && !shared; n++) {
            shared = i->causes[n] == c->common[k];
        }
        if (!shared) {
            incident_remove_element(a, c, k);
        }
    }
}

void incident_set_cause(struct alerts *a, struct incident *c, uint32_t element)
{
    const uint32_t before = c->cause;

    element_hold(a, element);
    a->elements[element].owner = incident_number(a, c);
    c->cause = element;
    c->proven = c->proven && before == element;
    if (before != NONE) {
        if (before != element && a->elements[before].owner == incident_number(a, c)) {
            a->elements[before].owner = NONE;
        }
        element_drop(a, before);
    }
}

_Static_assert((DIRECTION_OUT | DIRECTION_IN) == DIRECTION_BOTH, "directions add up");

/* Combines the directions that the alerts report for the cause. An incident without alerts keeps its direction. */
bool incident_direct(struct alerts *a, const struct incident *c)
{
    uint32_t told = DIRECTION_NONE;
    bool any = false;

    for (uint32_t at = c->first; at != NONE; at = a->instances[at].sibling_after) {
        const struct instance *i = &a->instances[at];
        for (uint32_t k = 0; k < i->cause_count; k++) {
            any = any || i->causes[k] == c->cause;
            told |= i->causes[k] == c->cause ? i->directions[k] : DIRECTION_NONE;
        }
    }
    if (c->cause == NONE || !any || a->elements[c->cause].where.direction == told) {
        return false;
    }
    a->elements[c->cause].where.direction = told;
    return true;
}

/* ---- the possible elements ------------------------------------------------------------------------------------------- */

/* The elements that can cause all alerts without a certain suspect. If there are none: those that can cause the first of them. */
struct shared {
    uint32_t elements[ELEMENT_ONE_OF], count, first[ELEMENT_ONE_OF], first_count;
    bool any, others;
};

static void share(struct shared *s, const struct instance *i)
{
    uint32_t kept = 0;

    for (uint32_t k = 0; !s->any && k < i->candidates; k++) {
        s->first[s->first_count++] = s->elements[s->count++] = i->causes[k];
    }
    for (uint32_t k = 0; k < s->count; k++) {
        bool has = false;
        for (uint32_t n = 0; n < i->candidates; n++) {
            has = has || i->causes[n] == s->elements[k];
        }
        s->elements[kept] = s->elements[k];
        kept += has;
    }
    s->count = kept;
    s->any = true;
    s->others = s->others || i->others;
}

static void call(const struct alerts *a, struct incident *c, const struct shared *s)
{
    const uint32_t *elements = s->count > 0 ? s->elements : s->first;
    const uint32_t count = s->count > 0 ? s->count : s->first_count;
    const bool others = s->others || s->count <= 1;
    struct strbuf t = strbuf_init(c->called, sizeof(c->called));

    c->choice = (struct element_choice){.total = others};
    c->choice_host = a->elements[elements[0]].host;
    strbuf_add(&t, "unknown, one of ");
    for (uint32_t k = 0; k < count; k++) {
        const struct cause_element *e = &a->elements[elements[k]];
        const bool last = k > 0 && k + 1 == count && !others;
        strbuf_add(&t, "%s%s", k == 0 ? "" : last ? " and " : ", ", e->name);
        element_choice_add(&c->choice, &e->where);
        c->choice_host = e->host == c->choice_host ? e->host : ALERT_NO_ID;
    }
    strbuf_add(&t, "%s", others ? " and others" : "");
}

void incident_weigh(struct alerts *a, struct incident *c)
{
    struct shared s = {.any = false};
    const bool was = c->unknown;
    bool sure = false;

    if (c->first == NONE) {
        return; /* it keeps its last name */
    }
    for (uint32_t at = c->first; at != NONE && c->unsure > 0 && !sure;
         at = a->instances[at].sibling_after) {
        const struct instance *i = &a->instances[at];
        if (i->candidates > 0) {
            share(&s, i);
        }
        for (uint32_t k = 0; !instance_is_unsure(i) && k < (c->promoted ? i->cause_count : 1u);
             k++) {
            sure = sure || (k < i->cause_count && i->causes[k] == c->cause);
        }
    }
    bool may_be = !s.any;
    for (uint32_t k = 0; k < s.count; k++) {
        may_be = may_be || s.elements[k] == c->cause;
    }
    /* The certain alert may already be over: a link is up again before its paths are. The name stays, unless the remaining alerts
     * can't come from that element. */
    c->proven = c->unsure == 0 || sure || (c->proven && may_be);
    if (!s.any) { /* dead paths without a suspect: only the path itself is known */
        s.first[s.first_count++] = c->cause;
    }
    c->unknown = !c->proven && (s.any || a->elements[c->cause].where.kind != ELEMENT_PATH);
    if (c->unknown) {
        call(a, c, &s);
    } else if (was && c->told &&
               c->audible > 0) { /* receivers of earlier notifications get the name */
        incident_say(a, c, ALERT_WORSE, receivers_of(a, c->loud), false);
    }
}

void incident_release(struct alerts *a, struct incident *c)
{
    incident_clear_elements(a, c);
    if (c->cause != NONE) {
        if (a->elements[c->cause].owner == incident_number(a, c)) {
            a->elements[c->cause].owner = NONE;
        }
        element_drop(a, c->cause);
        c->cause = NONE;
    }
}
