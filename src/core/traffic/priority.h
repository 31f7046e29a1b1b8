/* priority.h: jobs that share links: who yields, by how much, without asking anybody.
 *
 * A job of low priority takes what the others leave (as LEDBAT, RFC 6817: by delay). It alone yields; whom to doesn't matter, and
 * nobody tells it. Per lane, for each path has its own neighbours: what it may have on its way is a window of so many chunks,
 * and once in a chunk's life, from the queueing delay q of one that was sent since the last change,
 *
 *   q <= target                                one chunk more, up to 1.5 beyond goodput * life
 *   q > target                                 half of them
 *   q > 2 target, or one chunk is too much     aside: one chunk now and then (priority_rate), until one finds q <= target
 *
 * target = max(five chunks at the set's best goodput (goodput.h), half the least life of such a chunk, 20 us): what our own lanes
 * on one link make each other wait doesn't send us aside. Not from the scheduler's rates: they are of short times, and many times
 * what a link carries for long.
 *
 * A window, and not a rate: it falls by itself while a queue grows, before anything is heard of that; and what the kernel has
 * taken can't be held back, so there must be little of it. Aside at once: where a queue lasts as long as a few round trips, the
 * other's whole collective would be over before many small steps had made room. Back at once, too: one chunk at a time is nearly
 * all that a short path can carry, and the first that waits sends us aside again.
 *
 * Aside: 5 % of that goodput for all lanes together, or a chunk in 200 ms on each: nobody starves, and that the other is gone is
 * soon noticed.
 *
 * Plain struct, one per lane; no allocation. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/time.h"

enum priority_class { PRIORITY_LOW, PRIORITY_NORMAL, PRIORITY_HIGH, PRIORITY_COUNT };

#define PRIORITY_WINDOW_MAX 1024 /* chunks; no limit */

struct priority {
    uint32_t window; /* chunks; 0: aside */
    double rate;     /* bytes per ns, aside */
    uint32_t over;   /* samples above the target in a row, with a window of one */
    struct mono changed;
    struct bug_note bug;
};

/* What an acknowledgement says of a lane. */
struct priority_sample {
    struct mono sent;    /* the chunk that it speaks of */
    int64_t queue_ns;    /* its delay above the least of all lanes between these NICs */
    int64_t life_ns_min; /* from there until its report came, at the least, of late */
    double goodput;      /* best of all lanes together (goodput.h); 0: not known */
    uint32_t chunk;
    uint32_t lanes; /* of that set */
};

void priority_init(struct priority *p, struct mono now);
/* DSCP where the network allows marking: CS1, default, AF41. */
uint8_t priority_dscp(enum priority_class class);
void priority_on_delay(struct priority *p, struct mono now, const struct priority_sample *sample);
/* Chunks that may be on their way; 0: as priority_rate says. */
uint32_t priority_window(const struct priority *p);
/* For pacing: bytes per ns, 0: no limit. */
double priority_rate(const struct priority *p);
const struct bug_note *priority_bug(const struct priority *p);
