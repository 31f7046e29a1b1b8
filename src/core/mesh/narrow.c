/* narrow.c: finds links that take longer for a packet than before. Their rate is a fraction of the former one: lanes are lost, or
 * a NIC's slot has fewer. Nothing is lost, and without load nobody notices.
 *
 * Pairs with gaps that both ends know are kept. When many of one direction agree on a gap (gaps.h), each pair is a trial: wide or
 * narrow (spread.h), also those from before the gap was known. The inference finds the element that all wide pairs share and no
 * narrow one crosses; there is one for outgoing pairs and one for incoming pairs (fault.c). It can't see links that carry a probe
 * faster than its sender sends the pair. */
#include <math.h>

#include "core/mesh/evidence.h"

static uint64_t way_of(struct mesh_edge *e, uint8_t path, bool out)
{
    return hash_u64(hash_u64(e->generation, path_half_of(e, path, out)->port),
                    e->out[path].signature);
}

static struct spread_watch *watch_of(struct mesh_edge *e, uint8_t path, bool out)
{
    return &path_half_of(e, path, out)->spread;
}

static void tell(struct mesh *m, const struct spread_pair *pair, bool out)
{
    const struct gaps *g = &m->gaps[out ? 0 : 1];
    const int edge = (int)(pair->path / m->config.path_limit);
    const uint8_t path = (uint8_t)(pair->path % m->config.path_limit);
    struct mesh_edge *e = &m->edges[edge];
    double slow_ns;

    if (!e->used || pair->way != way_of(e, path, out)) {
        return;
    }
    const enum spread spread = spread_weigh(watch_of(e, path, out), gaps_judge(g, pair, &slow_ns));
    if (spread != SPREAD_NOTHING) {
        const uint32_t worth = spread == SPREAD_WIDE ? spread_worth(pair, slow_ns, g->least_ns) : 1;

        for (uint32_t i = 0; i < worth; i++) {
            mesh_tell_pair(m, edge, path, out, pair->at, spread == SPREAD_WIDE);
        }
    }
}

/* True if that host's pairs are judged by this gap. A host with a gap of its own doesn't use the gap of all. */
static bool is_for(const struct gaps *g, const struct gap *gap, uint32_t host)
{
    return gap->host == GAPS_ALL ? !gaps_has_own(g, host) : gaps_is_host(gap, host);
}

/* Renews the trials of paths that use the gap: earlier ones were judged by another gap, or by none. For other paths, only pairs
 * that came while no gap was known are added. */
static void tell_all(struct mesh *m, const struct gap *gap, bool out)
{
    const struct gaps *g = &m->gaps[out ? 0 : 1];
    const struct spread_pair *pair;

    for (uint32_t number = 0; number < m->locate_numbers - TRACE_ANSWERS; number++) {
        struct mesh_edge *e = &m->edges[number / m->config.path_limit];

        if (is_for(g, gap, e->host.index)) {
            locate_trials_clear(m->pairs[out ? 0 : 1], number);
            watch_of(e, (uint8_t)(number % m->config.path_limit), out)->close = 0;
        }
    }
    for (uint32_t i = 0; (pair = gaps_pair(g, i)) != NULL; i++) {
        if (pair->at.ns >= gap->since.ns &&
            (is_for(g, gap, pair->host) || pair->at.ns > m->pairs_told[out ? 0 : 1].ns)) {
            tell(m, pair, out);
        }
    }
}

/* A case that may not be reported keeps no gap. A case from one host alone doesn't fix it, because that host's stamps may be bad.
 * Incoming pairs have stamps of this host. */
static enum gaps_hold hold_of(const struct mesh *m, bool out, uint32_t number, bool *ret_explained)
{
    const struct locate *l = m->pairs[out ? 0 : 1];
    enum gaps_hold hold = GAPS_FREE;

    *ret_explained = false;
    for (uint32_t i = 0; i < locate_case_count(l); i++) {
        const struct locate_case *c = locate_case_get(l, i);
        const bool named = c->named.ns != MONO_NEVER.ns && (c->witnesses > 1 || !out);

        if (mesh_may_be_narrow(m, c, out)) {
            hold = named ? GAPS_FIXED : hold == GAPS_FIXED ? hold : GAPS_KEEP;
            *ret_explained = *ret_explained || locate_explains(l, c, number);
        }
    }
    return hold;
}

void mesh_on_pair(struct mesh *m, struct mono now, int edge, uint8_t path,
                  enum finding_direction direction, int64_t sent_ns, int64_t heard_ns,
                  int64_t owd_ns)
{
    struct mesh_edge *e = &m->edges[edge];
    const bool out = direction == DIRECTION_OUT;
    struct gaps *g = &m->gaps[out ? 0 : 1];
    struct spread_pair pair;
    bool explained;

    if (!e->used || path >= m->config.path_limit || e->peer_late || mesh_is_late(m, now)) {
        return;
    }
    struct path_half *half = path_half_of(e, path, out);
    if (half->state != PATH_ALIVE) {
        return;
    }
    const uint32_t number = evidence_number(m, edge, path);
    const uint64_t way = way_of(e, path, out);
    const enum gaps_hold hold = hold_of(m, out, number, &explained);
    const double usual_ns = fmax((double)sent_ns, half->spread.usual_ns);
    const bool keep = explained || gaps_is_slow(g, now, e->host.index, usual_ns, (double)heard_ns);
    if (!spread_add(&half->spread, now, way, sent_ns, heard_ns, owd_ns, keep, &pair)) {
        return;
    }
    pair.way = way;
    pair.path = number;
    pair.host = e->host.index;
    spread_wait(&e->clock_off, now, out, &pair);
    gaps_add(g, &e->gaps_share[out ? 0 : 1], &pair, explained || hold == GAPS_FREE);
    const struct gap *gap = gaps_look(g, now, hold);
    if (gap) {
        tell_all(m, gap, out);
    } else if (gaps_known(g)) {
        tell(m, &pair, out);
    }
    if (gaps_known(g)) {
        m->pairs_told[out ? 0 : 1] = now;
    }
}
