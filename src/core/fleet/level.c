/* level.c: one round of a service level. */
#include "core/fleet/level.h"

#include "base/bug.h"

void level_begin(struct level_state *s)
{
    s->paths = s->unmeasured = s->beyond = 0;
    s->worst = -1;
}

bool level_add(struct level_state *s, const struct level *level, const struct level_path *path)
{
    s->paths++;
    if (path->value < 0) {
        s->unmeasured++;
        return false;
    }
    if (path->value > s->worst) {
        s->worst = path->value;
        s->worst_from = path->from;
        s->worst_to = path->to;
        s->worst_port = path->port;
    }
    if (path->value <= level->limit) {
        return false;
    }
    s->beyond++;
    return true;
}

bool level_end(struct level_state *s, const struct level *level, struct mono now)
{
    ASSERT(s->unmeasured + s->beyond <= s->paths && (s->beyond == 0 || s->worst > level->limit));
    const enum level_verdict is = s->worst < 0    ? LEVEL_UNKNOWN
                                  : s->beyond > 0 ? LEVEL_BROKEN
                                                  : LEVEL_MET;
    if (is != s->next || s->next_since.ns == 0) {
        s->next = is;
        s->next_since = now;
    }
    /* the first verdict of all counts at once, and so does unknown: it is no verdict to hold on to */
    const bool at_once = s->since.ns == 0 || is == LEVEL_UNKNOWN || s->verdict == LEVEL_UNKNOWN;
    if (is == s->verdict && s->since.ns != 0) {
        return false;
    }
    if (!at_once && mono_sub(now, s->next_since).ns < level->hold.ns) {
        return false;
    }
    s->verdict = is;
    s->since = s->next_since;
    return true;
}

const char *level_kind_word(enum level_kind kind)
{
    static const char *const words[] = {"owd_p50", "owd_p99", "loss", "hops"};
    ASSERT((unsigned)kind < ARRAY_COUNT(words));
    return words[kind];
}

const char *level_within_word(enum level_within within)
{
    static const char *const words[] = {"leaf", "pod", "rail", "fleet"};
    ASSERT((unsigned)within < ARRAY_COUNT(words));
    return words[within];
}

const char *level_verdict_word(enum level_verdict verdict)
{
    static const char *const words[] = {"unknown", "met", "broken"};
    ASSERT((unsigned)verdict < ARRAY_COUNT(words));
    return words[verdict];
}
