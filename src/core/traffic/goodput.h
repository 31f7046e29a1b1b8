/* goodput.h: how much arrives at the peer, over times long enough to mean it.
 *
 * The scheduler's rates are of single chunks' lives: good to choose between lanes, and often far above what a path carries for
 * long, for reports come in heaps. Here only what the receiver said it has counts, in windows of at least 20 ms and four lives of
 * a chunk, and what is remembered is the most that a window brought, forgotten by half in 14 s in which nothing limited it.
 *
 * One per lane set, sender's end; plain struct. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

struct goodput {
    double best; /* bytes per ns; 0: nothing known yet */
    uint64_t bytes;
    struct mono began; /* of the present window */
};

void goodput_init(struct goodput *g, struct mono now);
/* life: of the newest chunk, until its report came. limited: we ourselves sent less than the path would carry. */
void goodput_on_arrived(struct goodput *g, struct mono now, uint64_t bytes, struct span life,
                        bool limited);
