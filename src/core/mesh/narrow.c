/* narrow.c: does a link take longer for a packet than it did? Its rate is a fraction of what it was: lanes are gone, or a
 * NIC's slot has fewer. Nothing is lost, and without load nobody notices.
 *
 * Each pair whose gaps both ends know is a trial: of its path's own kind (spread.h), wide or narrow. Which element all wide
 * pairs share, and no narrow one crosses, is for the inference to tell: one for what goes out, one for what comes in
 * (fault.c). What it can't see: links that carry a probe faster than its sender sends the pair. */
#include "core/mesh/internal.h"

void mesh_on_pair(struct mesh *m, struct mono now, int edge, uint8_t path,
                  enum finding_direction direction, int64_t sent_ns, int64_t heard_ns,
                  int64_t owd_ns)
{
    struct mesh_edge *e = &m->edges[edge];
    const bool out = direction == DIRECTION_OUT;

    if (!e->used || path >= m->config.path_limit || e->peer_late || mesh_is_late(m, now)) {
        return;
    }
    struct path_half *half = out ? &e->out[path].half : &e->in[path].half;
    if (half->brief_count <= 0 || half->state != PATH_ALIVE) {
        return; /* how fast it can be isn't known */
    }
    const uint64_t way = hash_u64(hash_u64(e->generation, half->port), e->out[path].signature);
    const enum spread spread =
        spread_add(&half->spread, way, sent_ns, heard_ns, owd_ns - half->brief_min);
    if (spread != SPREAD_NOTHING) {
        mesh_tell_pair(m, edge, path, out, now, spread == SPREAD_WIDE);
    }
}
