/* alert_invariant.c: conditions that must hold for the engine's memory between any two calls: sums agree, lists end, holds are
 * counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "alert_invariant.h"
#include "core/alert/internal.h"

struct sums {
    uint32_t *uses, *incidents; /* for each element */
    uint32_t *active;           /* for each rule */
    uint32_t firing, pending, open, queued;
};

static void check_instances(const struct alerts *a, struct sums *s)
{
    uint32_t before = NONE;

    for (uint32_t at = a->instance_head; at != NONE; at = a->instances[at].after) {
        const struct instance *i = &a->instances[at];
        uint32_t found = a->instance_hash.heads[i->key & a->instance_hash.mask];
        while (found != NONE && found != at) {
            found = a->instances[found].chain;
        }
        assert_int_equal(found, at);
        assert_int_equal(i->before, before);
        assert_true(i->id > 0 && i->id < a->next_alert);
        assert_true(i->state == ALERT_FIRING || i->state == ALERT_PENDING);
        assert_true(i->rule < a->rule_count + BUILT_IN_RULES);
        assert_false(mono_before(a->now, i->since));
        assert_true(i->state == ALERT_FIRING || i->incident == NONE);
        s->firing += i->state == ALERT_FIRING;
        s->pending += i->state == ALERT_PENDING;
        s->active[i->rule]++;
        for (uint32_t k = 0; k < i->cause_count; k++) {
            s->uses[i->causes[k]]++;
        }
        before = at;
    }
    assert_int_equal(s->firing, a->counters.firing);
    assert_int_equal(s->pending, a->counters.pending);
    for (uint32_t r = 0; r < a->rule_count + BUILT_IN_RULES; r++) {
        assert_int_equal(s->active[r], a->rule_states[r].active);
    }
}

/* Checks an incident's alerts, in both directions of the list. */
static void check_members(const struct alerts *a, const struct incident *c)
{
    uint32_t firing = 0, audible = 0, before = NONE;

    for (uint32_t at = c->first; at != NONE; at = a->instances[at].sibling_after) {
        const struct instance *i = &a->instances[at];
        assert_int_equal(i->state, ALERT_FIRING);
        assert_int_equal(i->incident, incident_number(a, c));
        assert_int_equal(i->sibling_before, before);
        firing++;
        audible += !i->silenced;
        before = at;
    }
    assert_int_equal(c->firing, firing);
    assert_int_equal(c->audible, audible);
    assert_true(c->total >= firing || !incident_is_open(c));
}

static void check_incident(const struct alerts *a, const struct incident *c, struct sums *s)
{
    check_members(a, c);
    for (uint32_t k = 0; k < c->common_count; k++) {
        s->uses[c->common[k]]++;
        s->incidents[c->common[k]]++;
        for (uint32_t n = 0; n < k; n++) {
            assert_int_not_equal(c->common[n], c->common[k]);
        }
    }
    if (c->cause != NONE) {
        s->uses[c->cause]++;
    }
    s->queued += c->queued;
    if (!incident_is_open(c)) {
        assert_int_equal(c->common_count, 0);
        assert_int_equal(c->firing, 0);
        assert_true(c->cause == NONE || c->state == INCIDENT_RESOLVED);
        return;
    }
    assert_true(c->id > 0 && c->id < a->next_incident);
    s->open++;
    assert_int_not_equal(c->cause, NONE);
    assert_int_not_equal(a->elements[c->cause].owner, NONE);
    assert_true(c->firing > 0 || c->quiet_until.ns != MONO_NEVER.ns);
    assert_true(c->firing == 0 || c->state != INCIDENT_QUIET);
    assert_true(c->loud <= c->severity);
    assert_false(mono_before(incident_deadline(a, c), a->deadline));
}

static void check_elements(const struct alerts *a, const struct sums *s)
{
    for (uint32_t e = 0; e < a->element_max; e++) {
        const struct cause_element *x = &a->elements[e];
        if (s->uses[e] == 0 && x->uses == 0) {
            continue;
        }
        assert_int_equal(x->uses, s->uses[e]);
        assert_int_equal(x->incidents, s->incidents[e]);
        uint32_t found = a->element_hash.heads[x->key & a->element_hash.mask];
        while (found != NONE && found != e) {
            found = a->elements[found].next;
        }
        assert_int_equal(found, e);
        if (x->owner != NONE) {
            const struct incident *c = &a->incidents[x->owner];
            assert_true(incident_is_open(c) || c->state == INCIDENT_RESOLVED);
            assert_int_equal(c->cause, e);
        }
    }
}

void alert_invariant(const struct alerts *a)
{
    const size_t rules = a->rule_count + BUILT_IN_RULES;
    struct sums s = {.uses = calloc(a->element_max, sizeof(*s.uses)),
                     .incidents = calloc(a->element_max, sizeof(*s.incidents)),
                     .active = calloc(rules, sizeof(*s.active))};
    uint32_t queued = 0;

    assert_true(s.uses != NULL && s.incidents != NULL && s.active != NULL);
    check_instances(a, &s);
    for (uint32_t k = 0; k < a->incident_max; k++) {
        if (a->incidents[k].state != INCIDENT_FREE) {
            check_incident(a, &a->incidents[k], &s);
        }
    }
    check_elements(a, &s);
    assert_int_equal(s.open, a->counters.incidents_open);
    for (uint32_t at = a->queue_head; at != NONE; at = a->incidents[at].queue_next) {
        assert_true(a->incidents[at].queued);
        queued++;
    }
    assert_int_equal(queued, s.queued);
    assert_false(mono_before(a->sweep_due, a->deadline));
    free(s.uses);
    free(s.incidents);
    free(s.active);
}
