/* locate.c: finds what one bad path has in common with others: the inference over this host's knowledge, and over other hosts'
 * reports. */
#include <string.h>

#include "core/mesh/suspect.h"

#define BACKGROUND 0.0025 /* half of the loss that a good path may have */

static void count_explained(const struct mesh *m, const struct locate_case *c,
                            struct evidence_view view, struct mesh_location *where)
{
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        uint32_t paths = 0;

        for (uint8_t p = 0; e->used && !e->silent && p < m->config.path_limit; p++) {
            paths +=
                evidence_fates(evidence_half(e, p, view), m->asked.now, m->asked.since, view).lost >
                    0 &&
                locate_explains(m->locate, c, evidence_number(m, edge, p));
        }
        where->paths += paths;
        where->edges += paths > 0;
    }
}

/* A dead path lost all that it was sent, which an element that loses a share doesn't do to one path and not to the next. */
static bool explains_all(const struct locate_case *c, struct evidence_view view)
{
    return view.loss || view.slow || c->share > EVIDENCE_SHARE_ALL;
}

/* From this host's own observations. */
static void locate_alone(struct mesh *m, struct mono now, int edge, uint8_t path,
                         struct evidence_view view, struct mesh_location *ret_location)
{
    const struct mesh_edge *e = &m->edges[edge];
    struct locate_case answer;
    struct way_chain chain;

    evidence_chain(m, e, path, view.out, &chain);
    if (chain.count == 0) {
        return; /* any element is possible */
    }
    evidence_tell_all(m, now, evidence_half(e, path, view)->since, view, false);
    if (!locate_answer(m->locate, now, BACKGROUND, evidence_number(m, edge, path), &answer)) {
        return;
    }
    const bool sure =
        answer.state == LOCATE_NAMED && suspect_is_one(&answer) && explains_all(&answer, view) &&
        (view.out || (answer.elements[0].kind == ELEMENT_NIC && answer.share > EVIDENCE_SHARE_ALL));
    suspect_set(
        m, ret_location, &chain, &answer,
        suspect_likeliest(&answer, &chain,
                          view.out && !view.loss && !view.slow && e->out[path].trace_rounds > 0),
        sure, view);
    if (ret_location->key != 0) {
        count_explained(m, &answer, view, ret_location);
    }
}

/* The last arrivals that hosts reported: those of two hosts, the latest first; and whether there is a third host. */
struct last_words {
    struct host_id hosts[2];
    struct mono heard[2];
    bool more;
};

/* Notes a path's last arrival before the fault, if it is about that time. A path with later arrivals took another way at
 * first. */
static void note_began(struct mono since, struct mono heard, struct host_id host,
                       struct last_words *w)
{
    const bool first = host_id_equal(w->hosts[0], host), second = host_id_equal(w->hosts[1], host);

    if (heard.ns == MONO_NEVER.ns || mono_sub(heard, since).ns > EVIDENCE_FATE_NS) {
        return;
    }
    w->more = w->more || (!first && !second && w->heard[1].ns != INT64_MIN);
    if (heard.ns > w->heard[0].ns) {
        if (!first) {
            w->hosts[1] = w->hosts[0];
            w->heard[1] = w->heard[0];
        }
        w->hosts[0] = host;
        w->heard[0] = heard;
    } else if (!first && heard.ns > w->heard[1].ns) {
        w->hosts[1] = host;
        w->heard[1] = heard;
    }
}

/* With three hosts or more, the value of the second latest host: no single host can move it alone. */
static struct mono began_of(const struct last_words *w)
{
    return w->heard[0].ns == INT64_MIN ? MONO_NEVER : w->more ? w->heard[1] : w->heard[0];
}

/* Finds the last arrival before the fault on all paths that lost through it, and counts those that end here. */
static void explained_by_all(const struct mesh *m, struct mono now, struct mono since,
                             const struct locate_case *c, struct mesh_location *where)
{
    const struct evidence_view out = {.out = true};
    const struct host_id own = m->config.fleet.peers[m->nics[0].peer].host;
    struct last_words words = {{HOST_NONE, HOST_NONE}, {{INT64_MIN}, {INT64_MIN}}, false};

    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        bool any = false;

        for (uint8_t p = 0; e->used && !e->silent && p < m->config.path_limit; p++) {
            const struct path_half *half = &e->out[p].half;
            const int told = e->in[p].half.state == PATH_DEAD
                                 ? evidence_told_number(m, now, e->nic, m->nics[e->local].id, p)
                                 : -1;
            const bool in =
                told >= 0 && locate_explains(m->wide, c, m->locate_numbers + (uint32_t)told);

            if (evidence_fates(half, m->asked_wide.now, m->asked_wide.since, out).lost > 0 &&
                locate_explains(m->wide, c, evidence_number(m, edge, p))) {
                note_began(since, half->heard, own, &words);
                where->paths++;
                any = true;
            }
            where->paths += in;
            any = any || in;
        }
        where->edges += any;
    }
    for (uint32_t i = 0; i < m->told_top; i++) {
        const struct told_path *t = digest_told(m, now, i);

        if (t && t->lost > 0 && locate_explains(m->wide, c, m->locate_numbers + i)) {
            note_began(since, t->heard, t->host, &words);
        }
    }
    where->began = began_of(&words);
}

/* Working paths of others must have worked while this one was dead. After the end of a hole, packets cross its element and would
 * clear it. So a name must stand until a later packet of this path was lost, too. If a packet came in between, the path died
 * anew, however rarely this function is called. */
static bool stands(struct mesh *m, struct mono now, uint32_t half, struct mono died, uint64_t key)
{
    struct wide_name *w = &m->wide_names[0];

    for (uint32_t i = 0; i < WIDE_MAX && w->half != half; i++) {
        struct wide_name *other = &m->wide_names[i];
        w = other->half == half || other->looked.ns < w->looked.ns ? other : w;
    }
    if (w->half != half || w->died.ns != died.ns || w->key != key) {
        *w = (struct wide_name){.half = half, .died = died, .key = key, .at = now};
    }
    w->looked = now;
    return mono_sub(now, w->at).ns >= EVIDENCE_FATE_NS;
}

/* With others' reports, only if this host's own observations don't suffice. The way of incoming packets is the one that their
 * sender reported. */
static void locate_with_others(struct mesh *m, struct mono now, int edge, uint8_t path,
                               struct evidence_view view, struct mesh_location *ret_location)
{
    const struct mesh_edge *e = &m->edges[edge];
    const struct evidence_view out = {.out = true};
    struct mesh_location wide = {.rules_out = ret_location->rules_out};
    const int told = view.out || m->told_until.ns <= now.ns
                         ? -1
                         : evidence_told_number(m, now, e->nic, m->nics[e->local].id, path);
    struct locate_case answer;
    struct way_chain chain;

    if (m->told_until.ns <= now.ns || (!view.out && told < 0)) {
        return;
    }
    if (view.out) {
        evidence_chain(m, e, path, true, &chain);
    } else {
        evidence_told_chain(m, &m->told[told], &chain);
    }
    if (chain.count == 0) {
        return;
    }
    evidence_tell_all(m, now, evidence_half(e, path, view)->since, out, true);
    if (!locate_answer(m->wide, now, BACKGROUND,
                       view.out ? evidence_number(m, edge, path)
                                : m->locate_numbers + (uint32_t)told,
                       &answer)) {
        return;
    }
    suspect_set(
        m, &wide, &chain, &answer, suspect_likeliest(&answer, &chain, true),
        answer.state == LOCATE_NAMED && suspect_is_one(&answer) && explains_all(&answer, out), out);
    const uint32_t was = ret_location->choice.total;
    if (wide.suspect.kind != ELEMENT_UNKNOWN &&
        !stands(m, now, 1 + 2 * evidence_number(m, edge, path) + !view.out,
                evidence_half(e, path, view)->since, wide.key)) {
        return;
    }
    if (wide.suspect.kind != ELEMENT_UNKNOWN ||
        (wide.choice.count > 0 && (was == 0 || wide.choice.total < was))) {
        explained_by_all(m, now, evidence_half(e, path, view)->since, &answer, &wide);
        *ret_location = wide;
    }
}

void mesh_locate(struct mesh *m, struct mono now, int edge, uint8_t path,
                 enum finding_direction direction, bool others, struct mesh_location *ret_location)
{
    const struct mesh_edge *e = &m->edges[edge];
    struct evidence_view view = {.out = direction == DIRECTION_OUT};
    const struct path_half *half = evidence_half(e, path, view);

    memset(ret_location, 0, sizeof(*ret_location));
    ret_location->began = MONO_NEVER;
    view.loss = half->state == PATH_LOSSY;
    view.slow = !view.loss && half->state != PATH_DEAD && half->watch.slow;
    suspect_rule_out(m, e, now, half->since, view, ret_location);
    locate_alone(m, now, edge, path, view, ret_location);
    if (others && ret_location->suspect.kind == ELEMENT_UNKNOWN && half->state == PATH_DEAD) {
        locate_with_others(m, now, edge, path, view, ret_location);
    }
}
