/* incident_phase.c: what an incident was before: a link is dead, and loses a share then. One fault in its phases is one
 * incident, and its sentence tells those that are over. */
#include "core/alert/internal.h"

/* Of one kind of finding: who suspects something else is told by another rule, and it is no other phase. */
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
    return mono_before(p->since, p->left); /* else its alerts were found to belong elsewhere */
}
