/* incident_phase.c: the earlier phases of an incident, such as a link that was dead and now loses a share. All phases of one
 * fault are one incident, and its sentence names those that are over. */
#include "core/alert/internal.h"

/* True if both rules are about the same kind of finding. A finding with another suspect may fall under another rule; that is no
 * other phase. */
static bool is_same(const struct alerts *a, uint32_t x, uint32_t y)
{
    return x == y || (a->rules[x].findings & a->rules[y].findings) != 0;
}

static struct phase *phase_of(const struct alerts *a, struct incident *c, uint32_t rule)
{
    for (uint32_t k = 0; k < c->phase_count; k++) {
        if (is_same(a, c->phases[k].rule, rule)) {
            return &c->phases[k];
        }
    }
    return NULL;
}

void phase_enter(const struct alerts *a, struct incident *c, const struct instance *i)
{
    struct phase *p = phase_of(a, c, i->rule);

    if (p != NULL) {
        p->since = mono_min(p->since, i->since);
    } else if (c->phase_count < PHASE_MAX) {
        c->phases[c->phase_count++] =
            (struct phase){.rule = i->rule, .since = i->since, .left = i->since};
    }
}

void phase_leave(const struct alerts *a, struct incident *c, const struct instance *i)
{
    struct phase *p = phase_of(a, c, i->rule);

    if (p != NULL) {
        p->left = a->now;
    }
}

void phase_absorb(const struct alerts *a, struct incident *into, const struct incident *c)
{
    for (uint32_t k = 0; k < c->phase_count; k++) {
        const struct phase *p = &c->phases[k];
        struct phase *own = phase_of(a, into, p->rule);

        if (own != NULL) {
            own->since = mono_min(own->since, p->since);
            own->left = mono_before(own->left, p->left) ? p->left : own->left;
        } else if (into->phase_count < PHASE_MAX) {
            into->phases[into->phase_count++] = *p;
        }
    }
}

bool phase_is_past(const struct alerts *a, const struct incident *c, const struct phase *p)
{
    for (uint32_t at = c->first; at != NONE; at = a->instances[at].sibling_after) {
        if (is_same(a, a->instances[at].rule, p->rule)) {
            return false;
        }
    }
    return mono_before(p->since, p->left); /* otherwise its alerts moved to another incident */
}
