/* evidence.c: this host's knowledge of paths, as ways and fates for the one inference (core/fleet/locate.h).
 *
 * A path is a chain of boxes (own NIC, routers, the peer's NIC). Packets lost after the bad path's last arrival are evidence
 * against all boxes of the chain. Packets that were *sent after it* and arrived are evidence for them. The state alive is no
 * evidence: paths with a common hole die one after the other. A router that answered a packet with a small hop limit, sent after
 * that moment, proves the chain up to it. For a path with unknown hops only arrivals count, because all its ports may hash into
 * one hole.
 *
 * Routers are one box by their name in the fleet's list. Without names the address counts, and then a router that answers with
 * several addresses looks like several routers. */
#include <string.h>

#include "core/mesh/evidence.h"

#define SUSPECT_LEAST 2
/* paths through one hole had their last arrival within this time */
#define SPREAD_NS (250 * NS_PER_MS)
#define COUNT_MAX 8 /* packets of a path that count at most */
/* one answered packet proves a crossing: it counts as so many */
#define ANSWER_COUNT 2
#define TRIALS_MAX   250
/* for times of other hosts: clocks, and the resolution of reports */
#define TOLD_SLACK (50 * NS_PER_MS)

struct way_box evidence_nic(struct nic_id nic)
{
    return (struct way_box){hash_u64(1, nic.index), {.kind = PLACE_NIC, .number = nic.index}};
}

static struct way_box router_box(const struct router *r)
{
    struct way_box box = {r->number != UINT32_MAX ? hash_u64(hash_u64(2, r->place), r->number)
                                                  : hash_u64(3, r->hash),
                          {.kind = r->place, .number = r->number}};

    memcpy(box.place.address, r->address, sizeof(box.place.address));
    return box;
}

void evidence_chain(const struct mesh *m, const struct mesh_edge *e, uint8_t p, bool goes_out,
                    struct way_chain *ret)
{
    const struct path_out *out = &e->out[p];

    ret->count = 0;
    if (out->hop_count == 0 || p >= e->path_count || (e->unsorted && !goes_out) ||
        discovery_way_astray(out)) {
        return;
    }
    ret->boxes[ret->count++] = evidence_nic(m->nics[e->local].id);
    for (uint32_t hop = 0; hop < out->hop_count; hop++) {
        if (out->hops[hop] == 0) {
            ret->count = 0;
            return;
        }
        ret->boxes[ret->count++] = router_box(&m->routers[out->hops[hop] - 1]);
    }
    ret->boxes[ret->count++] = evidence_nic(e->nic);
}

const struct path_half *evidence_half(const struct mesh_edge *e, uint8_t p,
                                      struct evidence_view view)
{
    return view.out ? &e->out[p].half : &e->in[p].half;
}

static struct path_fates trials_of_delay(const struct slow_watch *w)
{
    /* windows fill one after the other: a delay that has left the baseline already counts as bad */
    const bool bad = w->slow || w->away;

    return (struct path_fates){.sent = bad || w->learned >= SLOW_BASE ? COUNT_MAX : 0,
                               .lost = bad ? COUNT_MAX : 0};
}

static struct path_fates trials_of_loss(const struct path_half *half, struct mono now)
{
    const struct fates f = path_half_recent(half, now);
    const uint32_t scale = f.sent / TRIALS_MAX + 1;

    if (half->state != PATH_ALIVE && half->state != PATH_LOSSY) {
        return (struct path_fates){0, 0}; /* a hole is no gray loss */
    }
    return (struct path_fates){.sent = f.sent / scale, .lost = f.lost / scale};
}

static uint32_t touches(struct mono from, struct mono until)
{
    const int64_t count = mono_sub(until, from).ns / EVIDENCE_TOUCH_NS;

    return count < 0 ? 0 : count < COUNT_MAX ? (uint32_t)count : COUNT_MAX;
}

static struct path_fates trials_of_death(const struct path_half *half, struct mono now,
                                         struct mono since, struct evidence_view view)
{
    /* the fault may have begun just before the bad path's next packet, and this path's packet may have been in flight then */
    const struct mono sent_after =
        mono_add(since, span_ns(EVIDENCE_TOUCH_NS + (view.out ? EVIDENCE_ACK_NS : OVERDUE_NS)));

    if (half->state == PATH_DEAD || half->state == PATH_SUSPECT) {
        const struct mono last = half->heard.ns == MONO_NEVER.ns ? since : half->heard;
        const uint32_t lost = touches(last, now);
        if (half->state == PATH_SUSPECT && lost < SUSPECT_LEAST) {
            return (struct path_fates){0,
                                       /* it may just be late: among many paths some always are */
                                       0};
        }
        return (struct path_fates){.sent = lost > 0 ? lost : 1, .lost = lost > 0 ? lost : 1};
    }
    if (half->state == PATH_ALIVE && half->since.ns > since.ns &&
        mono_sub(now, half->since).ns < EVIDENCE_FATE_NS) { /* back: the bad one may be, too */
        return (struct path_fates){0, 0};
    }
    if (half->state == PATH_ALIVE && half->heard.ns != MONO_NEVER.ns &&
        half->heard.ns >= sent_after.ns) {
        return (struct path_fates){.sent = 1 + touches(sent_after, half->heard)};
    }
    return (struct path_fates){0, 0}; /* its last packets may have arrived before the fault */
}

struct path_fates evidence_fates(const struct path_half *half, struct mono now, struct mono since,
                                 struct evidence_view view)
{
    return view.slow   ? trials_of_delay(&half->watch)
           : view.loss ? trials_of_loss(half, now)
                       : trials_of_death(half, now, since, view);
}

static uint8_t kind_of(const struct way_box *box)
{
    return box->place.kind == PLACE_LEAF    ? ELEMENT_LEAF
           : box->place.kind == PLACE_SPINE ? ELEMENT_SPINE
                                            : ELEMENT_ROUTER;
}

struct locate_route evidence_route(const struct mesh *m, const struct mesh_edge *e,
                                   const struct way_chain *chain, uint32_t last,
                                   struct evidence_view view)
{
    const struct host_id own = m->config.fleet.peers[m->nics[e->local].peer].host;
    struct locate_route r = {.from_host = own,
                             .from = m->nics[e->local].id,
                             .to_host = HOST_NONE,
                             .to = NIC_NONE,
                             .teller = own};
    const bool whole = chain->count == 0 || last + 1 == chain->count;

    for (uint32_t i = 1; i < chain->count && i <= last && i + 1 < chain->count; i++) {
        r.boxes[r.box_count++] =
            (struct locate_box){.key = chain->boxes[i].key, .kind = kind_of(&chain->boxes[i])};
    }
    if (whole) {
        r.to = e->nic;
        r.to_host = e->host;
        r.teller = view.out ? e->host : own;
    }
    if (!view.out) {
        struct locate_route back = r;

        back.from = r.to;
        back.from_host = r.to_host;
        back.to = r.from;
        back.to_host = r.from_host;
        for (uint32_t i = 0; i < r.box_count; i++) {
            back.boxes[i] = r.boxes[r.box_count - 1u - i];
        }
        return back;
    }
    return r;
}

uint32_t evidence_number(const struct mesh *m, int edge, uint8_t p)
{
    return (uint32_t)edge * m->config.path_limit + p;
}

static void tell(struct locate *l, uint32_t number, const struct locate_route *route,
                 struct mono now, struct path_fates t)
{
    locate_path_set(l, number, route);
    locate_on_trials(l, number, now, t.sent, t.lost);
}

/* Adds answers of routers to own packets that were sent after the moment. */
static void tell_answers(const struct mesh *m, struct locate *l, struct mono now, struct mono since)
{
    uint32_t number = (uint32_t)m->edge_capacity * m->config.path_limit;
    const struct evidence_view out = {.out = true};

    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            const struct path_out *path = &e->out[p];
            struct way_chain chain;
            const int last = trace_reached(path, now);
            const bool bad = path->half.state == PATH_DEAD || path->half.state == PATH_SUSPECT;

            /* the trace began when a packet of the path itself was overdue */
            if (!bad || last < 0 || mono_sub(path->trace_began, since).ns < EVIDENCE_TOUCH_NS / 2 ||
                number == m->locate_numbers) {
                continue;
            }
            evidence_chain(m, e, p, true, &chain);
            if (chain.count > 0) {
                const struct locate_route route =
                    evidence_route(m, e, &chain, (uint32_t)last + 1, out);
                tell(l, number++, &route, now, (struct path_fates){.sent = ANSWER_COUNT});
            }
        }
    }
}

/* ---- reports of other hosts ------------------------------------------------------------------ */

void evidence_told_chain(const struct mesh *m, const struct told_path *t, struct way_chain *ret)
{
    ret->count = 0;
    ret->boxes[ret->count++] = evidence_nic(t->from);
    for (uint32_t hop = 0; hop < t->hop_count; hop++) {
        ret->boxes[ret->count++] = router_box(&m->routers[t->hops[hop] - 1]);
    }
    if (!t->answered) {
        ret->boxes[ret->count++] = evidence_nic(t->to);
    }
}

/* The way as the path's host reports it, whichever host received the packets. */
static struct locate_route route_of_told(const struct mesh *m, const struct told_path *t)
{
    struct way_chain chain;
    struct locate_route r = {.from_host = t->host,
                             .from = t->from,
                             .to_host = t->answered ? HOST_NONE : t->to_host,
                             .to = t->answered ? NIC_NONE : t->to,
                             .teller = t->host,
                             .box_count = t->hop_count};

    evidence_told_chain(m, t, &chain);
    for (uint32_t i = 0; i < r.box_count; i++) {
        const struct way_box *box = &chain.boxes[i + 1];
        r.boxes[i] = (struct locate_box){.key = box->key, .kind = kind_of(box)};
    }
    return r;
}

/* This host's own observations of a path that ends here. NULL: it doesn't end here, or nothing is known. */
static const struct path_half *heard_here(const struct mesh *m, const struct told_path *t)
{
    for (uint32_t local = 0; local < m->config.nic_count && !t->answered; local++) {
        const int edge =
            nic_id_equal(m->nics[local].id, t->to) ? mesh_edge_find(m, local, t->from) : -1;
        if (edge >= 0 && t->path < m->config.path_limit &&
            (m->edges[edge].in[t->path].half.state == PATH_ALIVE ||
             m->edges[edge].in[t->path].half.state == PATH_DEAD)) {
            return &m->edges[edge].in[t->path].half;
        }
    }
    return NULL;
}

static struct path_fates trials_of_told(const struct told_path *t, struct mono since)
{
    const struct mono sent_after =
        mono_add(since, span_ns(EVIDENCE_TOUCH_NS + EVIDENCE_ACK_NS + TOLD_SLACK));

    if (t->answered) {
        return (struct path_fates){.sent =
                                       t->heard.ns != MONO_NEVER.ns &&
                                               mono_sub(t->heard, since).ns >= EVIDENCE_TOUCH_NS / 2
                                           ? ANSWER_COUNT
                                           : 0};
    }
    if (t->lost > 0) {
        return (struct path_fates){.sent = t->lost, .lost = t->lost};
    }
    if (t->heard.ns != MONO_NEVER.ns && t->heard.ns >= sent_after.ns) {
        return (struct path_fates){.sent = 1 + touches(sent_after, t->heard)};
    }
    return (struct path_fates){0, 0};
}

static void tell_told(const struct mesh *m, struct locate *l, struct mono now, struct mono since)
{
    const struct evidence_view in = {.out = false};

    for (uint32_t i = 0; i < m->told_top; i++) {
        const struct told_path *t = digest_told(m, now, i);
        const struct path_half *own = t ? heard_here(m, t) : NULL;
        const struct path_fates trials = own ? evidence_fates(own, now, since, in)
                                         : t ? trials_of_told(t, since)
                                             : (struct path_fates){0, 0};

        if (t && trials.sent > 0) {
            const struct locate_route route = route_of_told(m, t);
            tell(l, m->locate_numbers + i, &route, now, trials);
        }
    }
}

bool mesh_is_told_to_send(const struct mesh *m, struct mono now, struct nic_id nic,
                          struct mono since)
{
    for (uint32_t i = 0; i < m->told_top; i++) {
        const struct told_path *t = digest_told(m, now, i);

        if (t && nic_id_equal(t->from, nic) && !t->answered && t->lost == 0 &&
            trials_of_told(t, since).sent > 0) {
            return true;
        }
    }
    return false;
}

int evidence_told_number(const struct mesh *m, struct mono now, struct nic_id from,
                         struct nic_id to, uint8_t path)
{
    for (uint32_t i = 0; i < m->told_top; i++) {
        const struct told_path *t = digest_told(m, now, i);
        if (t && !t->answered && t->path == path && nic_id_equal(t->from, from) &&
            nic_id_equal(t->to, to)) {
            return (int)i;
        }
    }
    return -1;
}

void evidence_tell_all(struct mesh *m, struct mono now, struct mono since,
                       struct evidence_view view, bool wide)
{
    struct locate_asked *asked = wide ? &m->asked_wide : &m->asked;
    struct locate *l = wide ? m->wide : m->locate;
    const int64_t apart = mono_sub(asked->since, since).ns;

    if (asked->now.ns == now.ns && asked->out == view.out && asked->loss == view.loss &&
        asked->slow == view.slow && (!wide || asked->told == m->told_version) &&
        apart < SPREAD_NS && apart > -SPREAD_NS) {
        return;
    }
    *asked = (struct locate_asked){now,       since,           view.out,        view.loss,
                                   view.slow, m->told_version, asked->times + 1};
    for (uint32_t i = 0; i < m->locate_numbers + (wide ? m->told_top : 0); i++) {
        locate_trials_clear(l, i); /* most ways have not changed */
    }
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        const uint8_t count = view.out ? e->path_count : e->peer_path_count;

        for (uint8_t p = 0; e->used && !e->silent && p < count && p < m->config.path_limit; p++) {
            const struct path_fates t = evidence_fates(evidence_half(e, p, view), now, since, view);
            struct way_chain chain;

            evidence_chain(m, e, p, view.out, &chain);
            if (view.loss && !discovery_way_holds(&e->out[p])) {
                continue; /* its losses were gathered over a long time, partly on other ways */
            }
            if (t.lost == 0 && !discovery_way_holds(&e->out[p])) {
                chain.count = 0; /* it came some way, maybe not this one */
            }
            if (t.sent > 0 && (chain.count > 0 || t.lost == 0)) {
                const struct locate_route route =
                    evidence_route(m, e, &chain, chain.count - 1, view);
                tell(l, evidence_number(m, edge, p), &route, now, t);
            }
        }
    }
    if (view.out && !view.loss && !view.slow) {
        tell_answers(m, l, now, since);
        if (wide) {
            tell_told(m, l, now, since);
        }
    }
}

bool mesh_ways_known(const struct mesh *m, int edge)
{
    const struct mesh_edge *e = &m->edges[edge];

    for (uint8_t p = 0; p < e->path_count; p++) {
        struct way_chain chain;

        evidence_chain(m, e, p, true, &chain);
        if (chain.count == 0 || (chain.count > 3 && e->path_count < 2)) {
            return false;
        }
    }
    return e->discovered;
}
