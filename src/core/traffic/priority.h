/* priority.h: jobs that share links: which one yields, and by how much, without any negotiation.
 *
 * A job of low priority takes what the others leave (like LEDBAT, RFC 6817: by delay). Only that job yields; which traffic it
 * yields to doesn't matter, and no message is needed. It works for each lane separately, because each path has other neighbours.
 * The lane may have a window of so many chunks in flight. Once in a chunk's life, from the queueing delay q of a chunk that was
 * sent since the last change:
 *
 *   q <= target                                one chunk more, up to 1.5 beyond goodput * life
 *   q > target                                 half of them
 *   q > 2 target, or one chunk is too much     aside: one chunk now and then (priority_rate), until one finds q <= target
 *
 * target = max(five chunks at the set's best goodput (goodput.h), half the least life of such a chunk, 20 us). So the waits that
 * the set's own lanes cause each other on one link don't send it aside. The scheduler's rates aren't used: they are of short
 * times, and many times what a link carries for long.
 *
 * It is a window, not a rate: a window falls by itself while a queue grows, before any report of that. And bytes in the kernel
 * can't be held back, so there must be few of them. It goes aside at once: if a queue lasts only a few round trips, the other
 * job's whole collective would be over before many small steps had made room. It comes back at once, too: one chunk at a time is
 * nearly all that a short path can carry, and the first chunk that waits sends it aside again.
 *
 * Aside: 5 % of that goodput for all lanes together, or a chunk in 200 ms on each. So no job starves, and the end of the other
 * one is soon noticed.
 *
 * Plain struct, one for each lane; no allocation. */
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
    uint32_t over;   /* consecutive samples above the target, with a window of one */
    struct mono changed;
    struct bug_note bug;
};

/* What an acknowledgement shows about a lane. */
struct priority_sample {
    struct mono sent;    /* of the acknowledged chunk */
    int64_t queue_ns;    /* its delay above the least of all lanes between these NICs */
    int64_t life_ns_min; /* the least recent time from there until its report came */
    double goodput;      /* the best of all lanes together (goodput.h); 0: not known */
    uint32_t chunk;
    uint32_t lanes; /* of that set */
};

void priority_init(struct priority *p, struct mono now);
/* The DSCP if the network allows marking: CS1, default, AF41. */
uint8_t priority_dscp(enum priority_class class);
void priority_on_delay(struct priority *p, struct mono now, const struct priority_sample *sample);
/* Chunks that may be in flight; 0: use priority_rate(). */
uint32_t priority_window(const struct priority *p);
/* For pacing: bytes per ns, 0: no limit. */
double priority_rate(const struct priority *p);
const struct bug_note *priority_bug(const struct priority *p);
