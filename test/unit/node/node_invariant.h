/* node_invariant.h: conditions that must hold for a node's memory between any two calls: sums agree, numbers are known. */
#pragma once

#include "core/clock/clock_private.h"
#include "core/node/internal.h"

/* The text of the first broken condition; NULL: all hold. */
static inline const char *node_invariant(const struct node *n)
{
    const uint32_t count = (uint32_t)mesh_edge_capacity(n->mesh) * n->config.path_limit * 2u;
    uint32_t waiting = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct bad_path *b = &n->bad[i];
        waiting += b->waiting;
        if (b->waiting && (b->kind == FINDING_NONE || b->incident != 0)) {
            return "a path waits that isn't bad, or has its finding";
        }
        if (b->kind == FINDING_NONE && b->incident != 0) {
            return "a good path has a finding";
        }
    }
    if (waiting != n->bad_waiting) {
        return "the paths that wait aren't as many as counted";
    }
    if (waiting > 0 && n->incident_due.ns == MONO_NEVER.ns) {
        return "paths wait, and nobody will look at them";
    }
    for (uint32_t k = 0; k < n->open_count; k++) {
        const struct open_finding *o = &n->open[k];
        uint32_t paths = 0;
        for (uint32_t i = 0; i < count; i++) {
            paths += n->bad[i].incident == o->finding.number;
        }
        if (o->paths != paths) {
            return "an incident hasn't as many paths as it counts";
        }
        if (o->finding.number == 0 || o->finding.number > n->finding_number) {
            return "a finding's number was never given";
        }
        if (k > 0 && o->finding.number <= n->open[k - 1].finding.number) {
            return "open findings aren't in the order of their numbers";
        }
        if (!o->said && o->say.ns == MONO_NEVER.ns && o->finding.kind != FINDING_PEER_SILENT) {
            /* a silent peer's may be reported by another one of its cause */
            return "a finding is never said";
        }
    }
    int in_clocks = 0;
    for (int edge = 0; edge < mesh_edge_capacity(n->mesh); edge++) {
        const struct edge_link *link = &n->links[edge];
        if (link->generation == 0) {
            continue;
        }
        if (link->member < 0 || (uint32_t)link->member >= n->member_count) {
            return "an edge belongs to no member";
        }
        const struct clock *clock = n->members[link->member].clock;
        if (link->clock_edge >= 0 && (clock == NULL || !clock->edges[link->clock_edge].used)) {
            return "an edge is not in the clock that it was given to";
        }
        in_clocks += link->clock_edge >= 0;
    }
    for (uint32_t i = 0; i < n->member_count; i++) {
        const struct clock *clock = n->members[i].clock;
        for (int edge = 0; clock != NULL && edge < clock->capacity; edge++) {
            in_clocks -= clock->edges[edge].used;
        }
    }
    if (in_clocks != 0) {
        return "a clock has an edge that is no more";
    }
    if (n->queue_count > FINDING_QUEUE || n->queue_head >= FINDING_QUEUE) {
        return "the queue is longer than it can be";
    }
    return node_deadline(n).ns <= n->now.ns ? "the deadline is past" : NULL;
}
