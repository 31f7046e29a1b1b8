/* goodput.h: the rate of arrivals at the peer, over times that are long enough to be reliable.
 *
 * The scheduler's rates are over the lives of single chunks. They are good to choose between lanes, but often far above what a
 * path carries for long, because reports come in bunches. Here only bytes count that the receiver reported, in windows of at
 * least 20 ms and four lives of a chunk. The largest window is remembered; in 14 s without a limit it is forgotten by half.
 *
 * One for each lane set, at the sender's end; plain struct. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

struct goodput {
    double best; /* bytes per ns; 0: not known yet */
    uint64_t bytes;
    struct mono began; /* of the present window */
};

void goodput_init(struct goodput *g, struct mono now);
/* life: of the newest chunk, until its report came. limited: this end sent less than the path would carry. */
void goodput_on_arrived(struct goodput *g, struct mono now, uint64_t bytes, struct span life,
                        bool limited);
