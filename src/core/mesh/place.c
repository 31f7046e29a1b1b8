/* place.c: finds the ways of the ports in use, while one of them is dead and its way isn't known. No ports are chosen then: with
 * other ports the fault would be lost from view. What a dead port's packets can't show follows from the working ports: all begin
 * and end at the same leaves. If the working ones use all spines but one, with enough odds, the dead one uses that spine. */
#include <math.h>
#include <string.h>

#include "core/mesh/hops.h"

#define AGAIN_NS  (2 * NS_PER_S)
#define SPINE_MAX 64
#define ODDS      13.8 /* ln 10^6: the odds that a spine is not left out by chance */

bool place_wanted(const struct mesh_edge *e, struct mono now)
{
    bool dead = false;

    for (uint8_t p = 0; p < e->path_count; p++) {
        dead = dead || e->out[p].half.state == PATH_DEAD;
    }
    return dead && !e->discovered && !e->placed && e->place_next.ns <= now.ns;
}

void place_start(struct discovery *d, const struct mesh *m, const struct mesh_edge *e)
{
    for (int dead = 0; dead < 2; dead++) {
        for (uint8_t p = 0; p < e->path_count; p++) {
            if ((e->out[p].half.state == PATH_DEAD) == dead) {
                d->ports[d->port_count++] = (uint8_t)(e->out[p].half.port - m->config.port_base);
            }
        }
    }
}

/* What all working ways have in common. */
struct ends {
    uint8_t length; /* routers on each; 0: they differ, or none is known */
    uint16_t first, last;
};

static struct ends ends_of(const struct mesh *m, const struct mesh_edge *e,
                           const struct discovery *d)
{
    struct ends r = {0};

    for (uint8_t p = 0; p < e->path_count; p++) {
        const uint16_t *hops = d->hops[e->out[p].half.port - m->config.port_base];
        const uint8_t length = hops_length(hops);

        if (e->out[p].half.state == PATH_DEAD || !hops_complete(hops, length) ||
            length < hops_before_peer(d, length)) {
            continue;
        }
        if (r.length == 0) {
            r = (struct ends){length, hops[0], hops[length - 1]};
        } else if (length != r.length || !hops_same_router(m, hops[0], r.first) ||
                   !hops_same_router(m, hops[length - 1], r.last)) {
            return (struct ends){0};
        }
    }
    return r;
}

/* The spines' numbers in the fleet's list, as bits; 0: it names none, or too many. */
static uint64_t spines_of(const struct mesh_fleet *fleet)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < fleet->router_count; i++) {
        const struct mesh_router *r = &fleet->routers[i];

        if (r->place == PLACE_SPINE && r->number >= SPINE_MAX) {
            return 0;
        }
        all |= r->place == PLACE_SPINE ? 1ull << r->number : 0;
    }
    return all;
}

/* Between two leaves: the spines of this host's working ways, and the number of such ways. */
static uint64_t spines_taken(const struct mesh *m, const struct ends *ends, uint32_t *ret_ways)
{
    uint64_t taken = 0;

    *ret_ways = 0;
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            const struct path_out *out = &e->out[p];
            if (out->half.state != PATH_ALIVE || out->hop_count != 3 ||
                !hops_complete(out->hops, 3) || !hops_same_router(m, out->hops[0], ends->first) ||
                !hops_same_router(m, out->hops[2], ends->last)) {
                continue;
            }
            const struct router *r = &m->routers[out->hops[1] - 1];
            taken |= r->place == PLACE_SPINE && r->number < SPINE_MAX ? 1ull << r->number : 0;
            ++*ret_ways;
        }
    }
    return taken;
}

/* The only spine that no working way between the two leaves uses, if chance is unlikely: k ways miss one of n with probability (1
 * - 1/n)^k. 0: not known. */
static uint16_t only_other(struct mesh *m, const struct ends *ends)
{
    const struct mesh_fleet *fleet = &m->config.fleet;
    const uint64_t all = spines_of(fleet);
    uint32_t ways, spines = 0;
    const uint64_t left = all & ~spines_taken(m, ends, &ways);

    for (uint64_t rest = all; rest != 0; rest &= rest - 1) {
        spines++;
    }
    if (spines < 2 || left == 0 || (left & (left - 1)) != 0 ||
        -log1p(-1.0 / spines) * ways < ODDS) {
        return 0;
    }
    for (uint32_t i = 0; i < fleet->router_count; i++) {
        const struct mesh_router *r = &fleet->routers[i];

        if (r->place == PLACE_SPINE && left == 1ull << r->number) {
            return (uint16_t)mesh_router(m, r->address);
        }
    }
    return 0;
}

/* Places the ports whose middle hop did not answer. */
static void place_others(struct mesh *m, const struct ends *ends)
{
    const uint16_t spine = ends->length == 3 ? only_other(m, ends) : 0;

    for (int edge = 0; spine != 0 && edge < m->edge_capacity; edge++) {
        struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && e->unsorted && p < e->path_count; p++) {
            struct path_out *out = &e->out[p];
            if (out->half.state == PATH_DEAD && out->hop_count == 3 && out->hops[1] == 0 &&
                hops_same_router(m, out->hops[0], ends->first) &&
                hops_same_router(m, out->hops[2], ends->last)) {
                out->hops[1] = spine;
                out->signature = hops_signature(m, out->hops);
            }
        }
    }
}

void place_done(struct mesh *m, struct mono now, int edge, const struct discovery *d)
{
    struct mesh_edge *e = &m->edges[edge];
    const struct ends ends = ends_of(m, e, d);

    e->place_next = mono_add(now, span_ns(AGAIN_NS));
    if (ends.length == 0) {
        return;
    }
    e->unsorted = e->placed = true;
    for (uint8_t p = 0; p < e->path_count; p++) {
        struct path_out *out = &e->out[p];
        const bool dead = out->half.state == PATH_DEAD;

        memcpy(out->hops, d->hops[out->half.port - m->config.port_base], sizeof(out->hops));
        out->astray = (struct mono){0};
        if (dead) {
            out->hops[0] = out->hops[0] != 0 ? out->hops[0] : ends.first;
            out->hops[ends.length - 1] =
                out->hops[ends.length - 1] != 0 ? out->hops[ends.length - 1] : ends.last;
        }
        out->hop_count = hops_length(out->hops) == ends.length ? ends.length : 0;
        out->signature =
            hops_complete(out->hops, out->hop_count) ? hops_signature(m, out->hops) : 0;
        e->placed = e->placed && out->hop_count > 0;
    }
    place_others(m, &ends);
    mesh_verdict_push(
        m, (struct mesh_verdict){
               .kind = MESH_TRACED, .edge = edge, .direction = DIRECTION_OUT, .since = now});
}
