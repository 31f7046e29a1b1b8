/* member_kit.h: a member of the consensus, for tests: its time, its peers' headers, a path with a known delay. */
#pragma once
#include <math.h>

#include "core/clock/clock_private.h"

#define DELAY 5000 /* of each path, ns */

static struct nic_time now;
static uint32_t seq; /* number of its peers' maps */

/* All peers track, and are in step. */
static inline void hear(struct clock *c)
{
    const struct clock_published h = {.phase = CLOCK_TRACK,
                                      .settled = true,
                                      .timeline = 77,
                                      .map = {.r = now},
                                      .map_seq = ++seq,
                                      .h_ns = 8000,
                                      .anchor.member = UINT32_MAX};
    for (int i = 0; i < c->edge_count; i++) {
        clock_on_peer(c, now, i, &h);
        c->edges[i].point_at = now;
    }
}

static inline void next_tick(struct clock *c)
{
    now.ns += CLOCK_TICK_NS;
    c->now = now;
    hear(c);
}

static inline struct clock_edge *know_path(struct clock *c, int edge)
{
    struct clock_edge *e = &c->edges[edge];

    e->paths[0] = (struct path){.known = true,
                                .m_ns = DELAY,
                                .info = c->noise.info,
                                .window = now,
                                .low = {INFINITY, INFINITY}};
    e->level_known = true;
    return e;
}
