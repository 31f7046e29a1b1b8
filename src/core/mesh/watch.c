/* watch.c: decides whether a shifted delay is caused by the path.
 *
 * The receiver judges. A clock error, its own or the sender's, shifts the other direction by the opposite amount. A queue at the
 * sender's port shifts both directions alike, once the sender's clock followed it. The own clock, and a queue at the own port,
 * also shift packets from other peers. So the other direction and other peers' paths must both be unchanged; if either is
 * unknown, nothing is reported. The remaining causes lie between the sender's stamp and the fabric's last port. */
#include <math.h>

#include "stats/sample.h"

#include "core/mesh/internal.h"

#define WATCH_OTHERS 4  /* at least so many paths of other peers */
#define WATCH_MAX    64 /* and at most so many, for the median */

/* Sorts in place. */
static double median_of(double *values, uint32_t count)
{
    sample_sort(values, count);
    return sample_median(values, count);
}

/* The median shift of this edge's delays to the peer. */
static bool back_shift(const struct mesh_edge *e, struct mono now, struct mono since,
                       double *ret_shift)
{
    double shifts[EDGE_PATH_MAX];
    uint32_t count = 0;

    for (uint8_t p = 0; p < e->path_count; p++) {
        count += slow_shift(&e->out[p].half.watch, now, since, &shifts[count]);
    }
    if (count == 0) {
        return false;
    }
    *ret_shift = median_of(shifts, count);
    return true;
}

/* The median shift of delays from other peers to the same NIC. */
static bool others_shift(const struct mesh *m, struct mono now, struct mono since,
                         const struct mesh_edge *e, double *ret_shift)
{
    double shifts[WATCH_MAX];
    uint32_t count = 0;
    const int first = (int)e->local * m->config.edge_limit;

    for (int edge = first; edge < first + m->config.edge_limit; edge++) {
        const struct mesh_edge *other = &m->edges[edge];

        for (uint8_t p = 0; other->used && other != e && p < m->config.path_limit; p++) {
            if (count < WATCH_MAX && other->in[p].half.state == PATH_ALIVE) {
                count += slow_shift(&other->in[p].half.watch, now, since, &shifts[count]);
            }
        }
    }
    if (count < WATCH_OTHERS) {
        return false;
    }
    *ret_shift = median_of(shifts, count);
    return true;
}

/* By baselines from before the shift began. */
static bool is_the_path(const struct mesh *m, struct mono now, const struct mesh_edge *e,
                        const struct slow_watch *w, double *ret_back)
{
    const double shift = w->median - w->base;
    double others;

    return back_shift(e, now, w->left, ret_back) && others_shift(m, now, w->left, e, &others) &&
           fabs(*ret_back) < shift / 4 && fabs(others) < shift / 4;
}

/* Ports were chosen anew: the shift isn't over while another path of the two NICs takes the slow way. */
static bool lasts_elsewhere(const struct mesh *m, struct mono now, const struct mesh_edge *e,
                            const struct slow_watch *w)
{
    for (uint8_t p = 0; p < m->config.path_limit; p++) {
        if (&e->in[p].half.watch != w && slow_elsewhere(w, now, &e->in[p].half.watch)) {
            return true;
        }
    }
    return false;
}

static void tell(struct mesh *m, struct mono now, int edge, uint8_t path, double back,
                 int64_t bound_ns)
{
    const struct slow_watch *w = &m->edges[edge].in[path].half.watch;

    mesh_verdict_push(m, (struct mesh_verdict){.kind = w->slow ? MESH_PATH_SLOW : MESH_PATH_PACE,
                                               .edge = edge,
                                               .path = path,
                                               .direction = DIRECTION_IN,
                                               .since = w->slow ? w->left : now,
                                               .before_ns = (int64_t)w->base,
                                               .after_ns = (int64_t)w->median,
                                               .other_ns = (int64_t)back,
                                               .bound_ns = bound_ns});
}

/* Handles paths that the peer no longer uses: no packet on them can show the end. */
static void end_unheard(struct mesh *m, struct mono now, int edge, int64_t bound_ns)
{
    struct mesh_edge *e = &m->edges[edge];

    for (uint8_t p = 0; p < m->config.path_limit; p++) {
        struct slow_watch *w = &e->in[p].half.watch;

        if (slow_unheard(w, now) && !lasts_elsewhere(m, now, e, w)) {
            w->slow = false;
            tell(m, now, edge, p, 0, bound_ns);
        }
    }
}

void mesh_watch_delay(struct mesh *m, struct mono now, int edge, uint8_t path,
                      enum finding_direction direction, int64_t owd_ns, int64_t bound_ns)
{
    struct mesh_edge *e = &m->edges[edge];
    double back = 0;

    if (!e->used || path >= m->config.path_limit) {
        return;
    }
    struct path_half *half = path_half_of(e, path, direction == DIRECTION_OUT);
    struct slow_watch *w = &half->watch;
    if (bound_ns < 0 || e->peer_late || mesh_is_late(m, now)) {
        slow_pause(w, now);
        return;
    }
    enum slow_change change = slow_add(w, now, half->port, owd_ns, (double)bound_ns);
    if (direction == DIRECTION_OUT) {
        return; /* the receiver judges the packets that this host sends */
    }
    end_unheard(m, now, edge, bound_ns);
    if (change == SLOW_ENDED && w->count >= SLOW_RING && lasts_elsewhere(m, now, e, w)) {
        w->slow = true;
        return;
    }
    if (change == SLOW_LIKELY) {
        if (half->state != PATH_ALIVE || !is_the_path(m, now, e, w, &back)) {
            return;
        }
        slow_begin(w);
    }
    if (change != SLOW_SAME) {
        tell(m, now, edge, path, back, bound_ns);
    }
}
