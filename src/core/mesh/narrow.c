/* narrow.c: does a link take longer for a packet than it did? Its rate is a fraction of what it was: lanes are gone, or a
 * NIC's slot has fewer. Nothing is lost, and without load nobody notices.
 *
 * Pairs whose gaps both ends know are kept. Once many of one direction agree on a gap (gaps.h), each is a trial: wide or
 * narrow (spread.h), also those that came before that was known. Which element all wide pairs share, and no narrow one
 * crosses, is for the inference to tell: one for what goes out, one for what comes in (fault.c). What it can't see: links
 * that carry a probe faster than its sender sends the pair. */
#include "core/mesh/evidence.h"

static uint64_t way_of(const struct mesh_edge *e, uint8_t path, bool out)
{
    const struct path_half *half = out ? &e->out[path].half : &e->in[path].half;

    return hash_u64(hash_u64(e->generation, half->port), e->out[path].signature);
}

static void tell(struct mesh *m, const struct spread_pair *pair, bool out)
{
    const struct gaps *g = &m->gaps[out ? 0 : 1];
    const int edge = (int)(pair->path / m->config.path_limit);
    const uint8_t path = (uint8_t)(pair->path % m->config.path_limit);
    const enum spread spread = spread_judge(pair, g->slow_ns, g->least_ns);

    if (spread != SPREAD_NOTHING && m->edges[edge].used &&
        pair->way == way_of(&m->edges[edge], path, out)) {
        const bool twice = spread == SPREAD_WIDE && g->slow_ns > NARROW_FAR * pair->usual_ns;

        for (uint32_t i = 0; i < (twice ? 2 : 1); i++) {
            mesh_tell_pair(m, edge, path, out, pair->at, spread == SPREAD_WIDE);
        }
    }
}

/* Another gap: what was told is of the one before. */
static void tell_all(struct mesh *m, bool out)
{
    const struct gaps *g = &m->gaps[out ? 0 : 1];
    const struct spread_pair *pair;

    for (uint32_t number = 0; number < m->locate_numbers - TRACE_ANSWERS; number++) {
        locate_trials_clear(m->pairs[out ? 0 : 1], number);
    }
    for (uint32_t i = 0; g->slow_ns > 0 && (pair = gaps_pair(g, i)) != NULL; i++) {
        if (pair->at.ns >= g->since.ns) {
            tell(m, pair, out);
        }
    }
}

static enum gaps_hold hold_of(const struct locate *l, uint32_t number, bool *ret_explained)
{
    enum gaps_hold hold = GAPS_FREE;

    *ret_explained = false;
    for (uint32_t i = 0; i < locate_case_count(l); i++) {
        const struct locate_case *c = locate_case_get(l, i);
        const bool named = c->named.ns != MONO_NEVER.ns;

        hold = named ? GAPS_FIXED : hold == GAPS_FIXED ? hold : GAPS_KEEP;
        *ret_explained = *ret_explained || locate_explains(l, c, number);
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
    struct path_half *half = out ? &e->out[path].half : &e->in[path].half;
    if (half->state != PATH_ALIVE) {
        return;
    }
    const uint32_t number = evidence_number(m, edge, path);
    const uint64_t way = way_of(e, path, out);
    const enum gaps_hold hold = hold_of(m->pairs[out ? 0 : 1], number, &explained);
    const bool known =
        spread_add(&half->spread, now, way, sent_ns, heard_ns, owd_ns, explained, &pair);
    if (!known) {
        return;
    }
    pair.way = way;
    pair.path = number;
    spread_wait(&e->clock_off, now, out, &pair);
    gaps_add(g, &pair);
    if (gaps_look(g, now, hold)) {
        tell_all(m, out);
    } else if (g->slow_ns > 0) {
        tell(m, &pair, out);
    }
}
