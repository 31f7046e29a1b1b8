/* shown.c: which of its facts is shown with a result. */
#include "core/audit/rule.h"

static const struct fact *of_id(const struct audit_result *r, uint16_t id, bool any_state)
{
    for (uint32_t i = 0; i < r->fact_count; i++) {
        const struct fact *f = r->facts[i];
        if (f->id == id && f->source[0] != '\0' && (any_state || f->state == FACT_VALUE)) {
            return f;
        }
    }
    return NULL;
}

const char *judge_counted(struct judging *j, int64_t number)
{
    return judge_format(j, "%lld (%s)", (long long)number,
                        fact_what((enum fact_id)j->check->facts[0]));
}

/* A rule ends at the fact that has no value. So that fact is the last one of the evidence. */
static const struct fact *without_value(const struct audit_result *r)
{
    const struct fact *found = NULL;

    for (uint32_t i = 0; i < r->fact_count; i++) {
        const struct fact *f = r->facts[i];
        found = f->state != FACT_VALUE && f->source[0] != '\0' ? f : found;
    }
    return found;
}

static const struct fact *last(const struct audit_result *r)
{
    for (uint32_t i = r->fact_count; i > 0; i--) {
        if (r->facts[i - 1]->source[0] != '\0') {
            return r->facts[i - 1];
        }
    }
    return NULL;
}

void judge_found_in(struct judging *j, enum fact_id id)
{
    j->result->found_in = of_id(j->result, (uint16_t)id, true);
}

const struct fact *audit_shown(const struct audit_result *r)
{
    const struct fact *found = r->status == AUDIT_UNKNOWN ? without_value(r) : r->found_in;

    for (int any = 0; any < 2; any++) {
        for (int k = 0; found == NULL && k < CHECK_FACTS_MAX && r->check->facts[k] != FACT_COUNT;
             k++) {
            found = of_id(r, r->check->facts[k], any != 0);
        }
    }
    return found != NULL ? found : last(r);
}
