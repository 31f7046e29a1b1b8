/* hops.c: see hops.h. */
#include "core/mesh/hops.h"

#include <string.h>

uint64_t hops_signature(const struct mesh *m, const uint16_t *hops)
{
    uint64_t signature = 0;

    for (uint32_t i = 0; i < MESH_HOP_MAX; i++) {
        if (hops[i] != 0) {
            signature = hash_u64(signature + i + 1, m->routers[hops[i] - 1].hash);
        }
    }
    return signature;
}

uint8_t hops_length(const uint16_t *hops)
{
    uint8_t length = 0;

    for (uint8_t i = 0; i < MESH_HOP_MAX; i++) {
        length = hops[i] != 0 ? (uint8_t)(i + 1) : length;
    }
    return length;
}

bool hops_complete(const uint16_t *hops, uint8_t length)
{
    for (uint8_t i = 0; i < length; i++) {
        if (hops[i] == 0) {
            return false;
        }
    }
    return length > 0;
}

uint8_t hops_before_peer(const struct discovery *d, uint8_t least)
{
    const uint8_t count = d->reached > 0 ? (uint8_t)(d->reached - 1) : (uint8_t)(least + 1);

    return count < least ? least : count < MESH_HOP_MAX ? count : MESH_HOP_MAX;
}

/* True if they are equal wherever both are known. */
static bool list_same(const uint16_t *a, const uint16_t *b)
{
    for (uint32_t i = 0; i < MESH_HOP_MAX; i++) {
        if (a[i] != b[i] && a[i] != 0 && b[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Ports with distinct, complete lists. Returns their number. */
uint32_t hops_distinct_ports(const struct discovery *d, uint32_t port_end, uint8_t *ret_ports,
                             uint32_t limit)
{
    uint32_t count = 0;
    uint8_t longest = 0;

    for (uint32_t port = 0; port < port_end; port++) {
        const uint8_t length = hops_length(d->hops[port]);
        longest = length > longest ? length : longest;
    }
    for (uint32_t port = 0; port < port_end && count < limit; port++) {
        bool fresh = hops_length(d->hops[port]) == longest && longest > 0;

        for (uint32_t i = 0; i < count && fresh; i++) {
            fresh = !list_same(d->hops[port], d->hops[ret_ports[i]]);
        }
        if (fresh) {
            ret_ports[count++] = (uint8_t)port;
        }
    }
    return count;
}

static bool goes_between(const struct mesh *m, const struct path_out *out, const uint16_t *hops,
                         uint8_t length)
{
    return out->hop_count == length && hops_complete(out->hops, length) &&
           hops_same_router(m, out->hops[0], hops[0]) &&
           hops_same_router(m, out->hops[length - 1], hops[length - 1]);
}

uint32_t hops_ways_between(const struct mesh *m, const uint16_t *hops, uint8_t length)
{
    uint64_t ways[EDGE_PATH_MAX];
    uint32_t count = 0;

    for (int edge = 0; edge < m->edge_capacity && hops_complete(hops, length); edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && e->discovered && p < e->path_count; p++) {
            bool fresh = count < EDGE_PATH_MAX && goes_between(m, &e->out[p], hops, length);

            for (uint32_t i = 0; i < count && fresh; i++) {
                fresh = ways[i] != e->out[p].signature;
            }
            if (fresh) {
                ways[count++] = e->out[p].signature;
            }
        }
    }
    return count;
}

/* If routers have names, both ends order their paths alike. Then path k mostly uses the same switch in both directions. */
static uint64_t list_order(const struct mesh *m, const uint16_t *hops)
{
    uint64_t order = 0;

    for (uint32_t i = 0; i < MESH_HOP_MAX; i++) {
        const struct router *r = hops[i] != 0 ? &m->routers[hops[i] - 1] : NULL;
        if (r && r->place == PLACE_SPINE) {
            return r->number;
        }
        order = r ? (order ^ r->hash) | 1ull << 40 : order;
    }
    return order;
}

void hops_sort_ports(const struct mesh *m, const struct discovery *d, uint8_t *ports,
                     uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint8_t port = ports[i];
        const uint64_t order = list_order(m, d->hops[port]);
        uint32_t at = i;

        for (; at > 0 && list_order(m, d->hops[ports[at - 1]]) > order; at--) {
            ports[at] = ports[at - 1];
        }
        ports[at] = port;
    }
}

bool hops_same_router(const struct mesh *m, uint32_t a, uint32_t b)
{
    const struct router *x = &m->routers[a - 1], *y = &m->routers[b - 1];

    return a == b || (x->number != UINT32_MAX && x->number == y->number && x->place == y->place);
}
