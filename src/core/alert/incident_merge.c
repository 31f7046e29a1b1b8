/* incident_merge.c: merges incidents. If enough incidents began together and share an element, they become one, and that element
 * is the cause. */
#include <string.h>

#include "core/alert/internal.h"

#define FLEET_PROMOTE 10 /* the least number of incidents that makes the whole fleet a cause */

static bool together(const struct alerts *a, const struct incident *x, const struct incident *y)
{
    const int64_t apart = mono_sub(x->created, y->created).ns;

    return (apart < 0 ? -apart : apart) <= a->config.together.ns;
}

static uint32_t needed(const struct alerts *a, uint32_t element)
{
    return a->elements[element].where.kind == ELEMENT_FLEET && a->config.promote < FLEET_PROMOTE
               ? FLEET_PROMOTE
               : a->config.promote;
}

/* True if x may have the same cause as c, namely that element. An unknown incident does not take in one with a known cause, which
 * may be another fault. */
static bool is_part(const struct alerts *a, const struct incident *x, const struct incident *c,
                    uint32_t element)
{
    return incident_is_open(x) && incident_has(x, element) && together(a, x, c) &&
           (!c->unknown || x->unknown);
}

/* Counts the incidents that share the element. An unknown one does not count for a known one. */
static uint32_t count_sharing(const struct alerts *a, const struct incident *c, uint32_t element)
{
    uint32_t count = 0;

    for (uint32_t k = 0; k < a->incident_max; k++) {
        const struct incident *x = &a->incidents[k];
        count += is_part(a, x, c, element) && x->unknown == c->unknown;
    }
    return count;
}

/* The merged-in alerts fire, and may be audible, while the incident was quiet or silenced. */
static void wake(struct alerts *a, struct incident *into, struct mono due)
{
    if (into->state == INCIDENT_QUIET && into->firing > 0) {
        incident_wake(a, into);
    }
    if (into->state == INCIDENT_OPEN && !into->told && into->audible > 0) {
        into->state = INCIDENT_NEW;
        into->due = due;
    }
}

void incident_absorb(struct alerts *a, struct incident *into, struct incident *c)
{
    const struct mono due = c->state == INCIDENT_NEW ? c->due : a->now;
    const bool woken = into->told && into->loud == ALERT_PAGE;
    const struct incident *told = into->told ? into : c, *other = into->told ? c : into;
    const bool louder =
        told->told && !other->told && other->audible > 0 && other->loud > told->loud;

    while (c->first != NONE) {
        struct instance *i = &a->instances[c->first];
        incident_unlink(a, c, i);
        incident_link(a, into, i);
    }
    ASSERT(c != into && c->firing == 0 && c->audible == 0);
    phase_absorb(a, into, c);
    into->since = mono_min(into->since, c->since);
    into->severity = c->severity > into->severity ? c->severity : into->severity;
    into->loud = c->loud > into->loud ? c->loud : into->loud;
    into->total += c->total;
    into->spoke = into->spoke || c->spoke;
    into->placed = into->placed || c->placed;
    if (into->told || c->told) {
        into->told_at = into->told && c->told ? mono_min(into->told_at, c->told_at)
                        : into->told          ? into->told_at
                                              : c->told_at;
    }
    if (c->told) {
        incident_say(a, c, ALERT_ABSORBED, c->told_receivers, false);
    }
    into->told_receivers |= c->told_receivers;
    into->pages += c->pages;
    into->news += c->news;
    for (size_t k = 0; k < ARRAY_COUNT(into->rules_seen); k++) {
        into->rules_seen[k] |= c->rules_seen[k];
    }
    into->told = into->told || c->told;
    if (c->told && c->loud == ALERT_PAGE && c->pages > 0 && !c->owes_page) {
        into->owes_page = false; /* the other incident's page has woken people */
        into->repage = MONO_NEVER;
    }
    into->owes_page = into->owes_page || (c->owes_page && !woken);
    wake(a, into, due);
    into->repage = into->owes_page ? mono_min(into->repage, c->repage) : into->repage;
    if (louder) {
        incident_say(a, into, ALERT_WORSE, receivers_of(a, into->loud),
                     into->loud == ALERT_PAGE && page_is_new(into));
    }
    incident_owe(a, into);
    if (into->by[0] == '\0' && c->by[0] != '\0') {
        memcpy(into->by, c->by, sizeof(into->by));
        into->acknowledged = c->acknowledged;
    }
    c->merged_into = into->id;
    c->state = INCIDENT_MERGED;
    c->resolved = a->now;
    ASSERT(a->counters.incidents_open > 0);
    a->counters.incidents_open--;
    incident_release(a, c);
    incident_changed(a, c, true);
    a->deadline = mono_min(a->deadline, incident_deadline(a, into));
}

void incident_tell_larger(struct alerts *a, struct incident *into)
{
    if (into->state == INCIDENT_NEW) {
        into->state = INCIDENT_OPEN;
    }
    if (into->audible > 0) { /* otherwise all of it is silenced */
        incident_say(a, into, ALERT_WORSE, receivers_of(a, into->loud) | into->told_receivers,
                     into->loud == ALERT_PAGE && into->pages == 0);
    }
}

/* The incident that continues: the one that already has this element as cause, else the one that was notified, else the
 * oldest. */
static struct incident *survivor(struct alerts *a, const struct incident *c, uint32_t element)
{
    const uint32_t owner = a->elements[element].owner;
    struct incident *best = owner != NONE ? &a->incidents[owner] : NULL;

    for (uint32_t k = 0; owner == NONE && k < a->incident_max; k++) {
        struct incident *x = &a->incidents[k];
        if (is_part(a, x, c, element) && (best == NULL || (x->told && !best->told) ||
                                          (x->told == best->told && x->id < best->id))) {
            best = x;
        }
    }
    return best;
}

static void merge(struct alerts *a, struct incident *c, uint32_t element)
{
    struct incident *into = survivor(a, c, element);

    element_hold(a, element); /* the element must survive while its users change */
    for (uint32_t k = 0; k < a->incident_max; k++) {
        struct incident *x = &a->incidents[k];
        if (x != into && is_part(a, x, c, element)) {
            if (into->state == INCIDENT_RESOLVED) {
                incident_reopen(a, into, x->since, x->audible > 0);
            }
            incident_absorb(a, into, x);
        }
    }
    incident_set_cause(a, into, element);
    incident_loudness(a, into);
    into->promoted = true;
    for (uint32_t k = into->common_count; k-- > 0;) {
        if (into->common[k] != element) {
            incident_remove_element(a, into, k);
        }
    }
    incident_add_element(a, into, element);
    element_drop(a, element);
    if (into->told) {
        incident_tell_larger(a, into);
    }
    a->deadline = mono_min(a->deadline, incident_deadline(a, into));
    incident_changed(a, into, true);
}

void incident_promote(struct alerts *a, struct incident *c)
{
    uint32_t best = NONE, most = 0;

    for (uint32_t k = 0; k < c->common_count; k++) {
        const uint32_t e = c->common[k];
        if (e == c->cause || a->elements[e].incidents < 2) {
            continue;
        }
        uint32_t count = count_sharing(a, c, e);
        if (count + 1 == needed(a, e) && !c->told && c->state == INCIDENT_NEW) {
            /* It looks like something larger: wait a little, and then notify all of it at once. */
            const struct mono latest = mono_add(c->created, span_ns(GATHER_MAX_NS));
            c->due = mono_before(c->due, latest) ? latest : c->due;
        }
        if (count >= needed(a, e) &&
            (count > most || (count == most && element_rank(a, e) < element_rank(a, best)))) {
            best = e;
            most = count;
        }
    }
    if (best != NONE) {
        merge(a, c, best);
    }
}
