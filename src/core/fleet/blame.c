/* blame.c: decides whether a job is slow because of the network. */
#include "core/fleet/blame.h"

#include <stdlib.h>

#include "base/bug.h"

enum blame blame_judge(const struct blame_signals *s)
{
    const int64_t wait_ns = s->network_ns - s->floor_ns;

    if (s->ranks_parted > 0 || s->lanes_down > 0) {
        return BLAME_BROKEN; /* whatever the silent ranks would report */
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

/* ---- collection ---- */

void blame_begin(struct blame_book *b, uint32_t ranks, uint32_t faults, struct span ago)
{
    b->signals =
        (struct blame_signals){.ranks = ranks, .faults = ago.ns <= BLAME_FAULT_NS ? faults : 0};
}

void blame_on_rank(struct blame_book *b, bool parted)
{
    b->signals.ranks_heard++;
    b->signals.ranks_parted += parted;
}

bool blame_on_flow(struct blame_book *b, const struct blame_flow *f)
{
    struct blame_signals *s = &b->signals;

    if (f->sending) {
        return f->down && s->lanes_down++ == 0;
    }
    if (f->active && f->network_ns != 0 && s->flows < BLAME_FLOW_MAX) {
        b->network[s->flows] = f->network_ns;
        b->floor[s->flows] = f->floor_ns;
        b->sender[s->flows] = f->sender_ns;
        b->receiver[s->flows] = f->receiver_ns;
        s->flows++;
    }
    return false;
}

static int by_size(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

    return (a > b) - (a < b);
}

static int64_t median(uint32_t *values, uint32_t count)
{
    qsort(values, count, sizeof(values[0]), by_size);
    return count > 0 ? values[count / 2] : 0;
}

enum blame blame_end(struct blame_book *b)
{
    struct blame_signals *s = &b->signals;

    s->network_ns = median(b->network, s->flows);
    s->floor_ns = median(b->floor, s->flows);
    s->sender_ns = median(b->sender, s->flows);
    s->receiver_ns = median(b->receiver, s->flows);
    return blame_judge(s);
}
