/* saved.c: saves the known ways of an edge over a restart. */
#include <string.h>

#include "core/mesh/hops.h"

bool mesh_save_edge(const struct mesh *m, int edge, struct mesh_saved_edge *ret_saved)
{
    const struct mesh_edge *e = &m->edges[edge];

    memset(ret_saved, 0, sizeof(*ret_saved));
    if (!e->used) {
        return false;
    }
    ret_saved->local = m->nics[e->local].id;
    ret_saved->peer = e->nic;
    ret_saved->path_count = e->path_count;
    for (uint8_t p = 0; p < e->path_count; p++) {
        const struct path_out *out = &e->out[p];

        ret_saved->ports[p] = out->half.port;
        ret_saved->hop_counts[p] = out->hop_count;
        for (uint8_t hop = 0; hop < out->hop_count; hop++) {
            if (out->hops[hop] != 0) {
                memcpy(ret_saved->hops[p][hop], m->routers[out->hops[hop] - 1].address, 16);
            }
        }
    }
    return true;
}

void mesh_restore_edge(struct mesh *m, struct mono now, const struct mesh_saved_edge *saved)
{
    static const uint8_t none[16];
    struct mesh_edge *e = NULL;

    (void)now;
    for (uint32_t local = 0; local < m->config.nic_count; local++) {
        const int edge = nic_id_equal(m->nics[local].id, saved->local)
                             ? mesh_edge_find(m, local, saved->peer)
                             : -1;
        e = edge >= 0 ? &m->edges[edge] : e;
    }
    if (!e || saved->path_count < 1 || saved->path_count > m->config.path_limit) {
        return;
    }
    for (uint32_t p = 0; p < saved->path_count; p++) {
        if ((uint32_t)(saved->ports[p] - m->config.port_base) >= MESH_PORT_COUNT ||
            saved->hop_counts[p] > MESH_HOP_MAX) {
            return;
        }
    }
    e->path_count = (uint8_t)saved->path_count;
    for (uint8_t p = 0; p < e->path_count; p++) {
        struct path_out *out = &e->out[p];

        out->half.port = saved->ports[p];
        out->hop_count = saved->hop_counts[p];
        for (uint8_t hop = 0; hop < out->hop_count; hop++) {
            out->hops[hop] = memcmp(saved->hops[p][hop], none, 16) != 0
                                 ? (uint16_t)mesh_router(m, saved->hops[p][hop])
                                 : 0;
        }
        out->signature = out->hop_count > 0 ? hops_signature(m, out->hops) : 0;
    }
}
