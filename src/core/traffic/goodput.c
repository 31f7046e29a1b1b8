/* goodput.c: see goodput.h. */
#include "core/traffic/goodput.h"

#define WINDOW_NS    (20 * NS_PER_MS)
#define WINDOW_LIVES 4
#define DECAY        0.999 /* of each window */

void goodput_init(struct goodput *g, struct mono now)
{
    *g = (struct goodput){.began = now};
}

void goodput_on_arrived(struct goodput *g, struct mono now, uint64_t bytes, struct span life,
                        bool limited)
{
    const int64_t ns = mono_sub(now, g->began).ns;

    g->bytes += bytes;
    if (ns < WINDOW_NS || ns < WINDOW_LIVES * life.ns) {
        return;
    }
    double rate = (double)g->bytes / (double)ns;
    g->best *= limited ? 1 : DECAY;
    g->best = rate > g->best ? rate : g->best;
    g->bytes = 0;
    g->began = now;
}
