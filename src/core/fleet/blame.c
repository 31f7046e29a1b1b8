/* blame.c: is it the network? */
#include "core/fleet/blame.h"

#include "base/bug.h"

enum blame blame_judge(const struct blame_signals *s)
{
    const int64_t wait_ns = s->network_ns - s->floor_ns;

    if (s->ranks_parted > 0 || s->lanes_down > 0) {
        return BLAME_BROKEN; /* whatever the ranks say that aren't heard */
    }
    if (s->faults > 0) {
        return BLAME_HURT;
    }
    if (s->ranks_heard == 0 || s->ranks_heard < s->ranks) {
        return BLAME_UNHEARD;
    }
    if (s->flows == 0) {
        return BLAME_UNTIMED;
    }
    return wait_ns >= BLAME_WAIT_NS && wait_ns > s->sender_ns + s->receiver_ns ? BLAME_LOADED
                                                                               : BLAME_NOT;
}

const char *blame_answer(enum blame blame)
{
    return blame >= BLAME_LOADED ? "yes" : blame == BLAME_NOT ? "no" : "unknown";
}

const char *blame_word(enum blame blame)
{
    static const char *const words[] = {"unheard", "untimed", "well", "loaded", "hurt", "broken"};
    ASSERT((unsigned)blame < ARRAY_COUNT(words));
    return words[blame];
}
