/* locate.c: what bad paths share: the one inference (core/fleet/locate.h) over what this host knows of its own paths.
 *
 * A path is a chain of boxes (own NIC, routers, the peer's NIC). What it lost since the bad path's last word is evidence
 * against all on the chain; what came and was *sent after* that, is evidence for it. That a path is called alive is none:
 * paths that share a hole die one after the other. A router that answered a packet with a small hop limit, sent after the
 * last word, proves the chain up to it. Of a path whose hops aren't known nothing but what came counts: its ports may all
 * hash into one hole.
 *
 * Routers are one box by their name in the fleet's list; without names by address, and then a router that answers with
 * several addresses looks like several. */
#include <string.h>

#include "core/fleet/locate.h"
#include "core/mesh/internal.h"

#define CHAIN_MAX        (MESH_HOP_MAX + 2)
#define TOUCH_NS         (200 * NS_PER_MS) /* between packets of a path */
#define SUSPECT_LEAST    2
#define ACK_NS           (300 * NS_PER_MS) /* from a packet to its echo, at most */
#define SPREAD_NS        (250 * NS_PER_MS) /* paths with one hole have their last word within it */
#define COUNT_MAX        8                 /* packets of a path that count */
#define ANSWER_COUNT     2      /* one answered packet proves a crossing: as many as that */
#define SHARE_ALL        0.9    /* who loses more than that of all its paths loses all */
#define BACKGROUND       0.0025 /* half of what a good path may lose */
#define TRIALS_MAX       250
#define STANDS_NS        (TOUCH_NS + ACK_NS) /* the fate of a path's next packet is known then */
#define TOLD_SLACK       (50 * NS_PER_MS) /* of others' times: clocks, and how coarsely they are told */
#define FULL_NUMBER      0x80000000u      /* of faults that full packets tell */
#define NARROW_NUMBER    0x40000000u      /* that pairs tell which go out */
#define NARROW_IN_NUMBER 0xc0000000u      /* and which come in */

struct box {
    uint64_t key;
    struct place place;
};
struct chain {
    struct box boxes[CHAIN_MAX];
    uint32_t count; /* 0: hops unknown */
};

static struct box nic_box(struct nic_id nic)
{
    return (struct box){hash_u64(1, nic.index), {.kind = PLACE_NIC, .number = nic.index}};
}

static struct box router_box(const struct router *r)
{
    struct box box = {r->number != UINT32_MAX ? hash_u64(hash_u64(2, r->place), r->number)
                                              : hash_u64(3, r->hash),
                      {.kind = r->place, .number = r->number}};

    memcpy(box.place.address, r->address, sizeof(box.place.address));
    return box;
}

/* The boxes of own path p. What comes in on path p is taken to go the same way: with named routers
 * both ends sort their paths alike (discovery.c), and a silent router in between makes the chain
 * unusable either way. Ports that nobody chose aren't sorted: of those only what goes out is known. */
static void chain_of(const struct mesh *m, const struct mesh_edge *e, uint8_t p, bool goes_out,
                     struct chain *ret)
{
    const struct path_out *out = &e->out[p];

    ret->count = 0;
    if (out->hop_count == 0 || p >= e->path_count || (e->unsorted && !goes_out)) {
        return;
    }
    ret->boxes[ret->count++] = nic_box(m->nics[e->local].id);
    for (uint32_t hop = 0; hop < out->hop_count; hop++) {
        if (out->hops[hop] == 0) {
            ret->count = 0;
            return;
        }
        ret->boxes[ret->count++] = router_box(&m->routers[out->hops[hop] - 1]);
    }
    ret->boxes[ret->count++] = nic_box(e->nic);
}

/* What is asked: which direction, and whether of death, of loss or of delay. */
struct view {
    bool out, loss, slow;
};

static const struct path_half *half_of(const struct mesh_edge *e, uint8_t p, struct view view)
{
    return view.out ? &e->out[p].half : &e->in[p].half;
}

/* ---- evidence ------------------------------------------------------------------------------- */

/* Packets of a path since the moment, whose fate is known. */
struct trials {
    uint32_t sent, lost;
};

static struct trials trials_of_delay(const struct slow_watch *w)
{
    /* windows fill one after the other: what is away already is as bad */
    const bool bad = w->slow || w->away;

    return (struct trials){.sent = bad || w->learned >= SLOW_BASE ? COUNT_MAX : 0,
                           .lost = bad ? COUNT_MAX : 0};
}

static struct trials trials_of_loss(const struct path_half *half, struct mono now)
{
    const struct fates f = path_half_recent(half, now);
    const uint32_t scale = f.sent / TRIALS_MAX + 1;

    if (half->state != PATH_ALIVE && half->state != PATH_LOSSY) {
        return (struct trials){0, 0}; /* a hole is no gray loss */
    }
    return (struct trials){.sent = f.sent / scale, .lost = f.lost / scale};
}

static uint32_t touches(struct mono from, struct mono until)
{
    const int64_t count = mono_sub(until, from).ns / TOUCH_NS;

    return count < 0 ? 0 : count < COUNT_MAX ? (uint32_t)count : COUNT_MAX;
}

static struct trials trials_of_death(const struct path_half *half, struct mono now,
                                     struct mono since, struct view view)
{
    /* it may have begun just before the next packet of the bad path, and this one's may have been on its way then */
    const struct mono sent_after =
        mono_add(since, span_ns(TOUCH_NS + (view.out ? ACK_NS : OVERDUE_NS)));

    if (half->state == PATH_DEAD || half->state == PATH_SUSPECT) {
        const struct mono last = half->heard.ns == MONO_NEVER.ns ? since : half->heard;
        const uint32_t lost = touches(last, now);
        if (half->state == PATH_SUSPECT && lost < SUSPECT_LEAST) {
            return (struct trials){0, 0}; /* it may just be late: of many paths some always are */
        }
        return (struct trials){.sent = lost > 0 ? lost : 1, .lost = lost > 0 ? lost : 1};
    }
    if (half->state == PATH_ALIVE && half->heard.ns != MONO_NEVER.ns &&
        half->heard.ns >= sent_after.ns) {
        return (struct trials){.sent = 1 + touches(sent_after, half->heard)};
    }
    return (struct trials){0, 0}; /* its last packets may have come before */
}

static struct trials trials_of(const struct path_half *half, struct mono now, struct mono since,
                               struct view view)
{
    return view.slow   ? trials_of_delay(&half->watch)
           : view.loss ? trials_of_loss(half, now)
                       : trials_of_death(half, now, since, view);
}

static uint8_t kind_of(const struct box *box)
{
    return box->place.kind == PLACE_LEAF    ? ELEMENT_LEAF
           : box->place.kind == PLACE_SPINE ? ELEMENT_SPINE
                                            : ELEMENT_ROUTER;
}

/* Up to box `last` of the chain; to its end when that is the peer's NIC. */
static struct locate_route route_of(const struct mesh *m, const struct mesh_edge *e,
                                    const struct chain *chain, uint32_t last, struct view view)
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

static uint32_t number_of(const struct mesh *m, int edge, uint8_t p)
{
    return (uint32_t)edge * m->config.path_limit + p;
}

static void tell(struct locate *l, uint32_t number, const struct locate_route *route,
                 struct mono now, struct trials t)
{
    locate_path_set(l, number, route);
    locate_on_trials(l, number, now, t.sent, t.lost);
}

/* Routers answered packets of ours that were sent after the moment. */
static void tell_answers(const struct mesh *m, struct locate *l, struct mono now, struct mono since)
{
    uint32_t number = (uint32_t)m->edge_capacity * m->config.path_limit;
    const struct view out = {.out = true};

    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            const struct path_out *path = &e->out[p];
            struct chain chain;
            const int last = trace_reached(path, now);
            const bool bad = path->half.state == PATH_DEAD || path->half.state == PATH_SUSPECT;

            /* it was asked when a packet of its own was overdue */
            if (!bad || last < 0 || mono_sub(path->trace_began, since).ns < TOUCH_NS / 2 ||
                number == m->locate_numbers) {
                continue;
            }
            chain_of(m, e, p, true, &chain);
            if (chain.count > 0) {
                const struct locate_route route = route_of(m, e, &chain, (uint32_t)last + 1, out);
                tell(l, number++, &route, now, (struct trials){.sent = ANSWER_COUNT});
            }
        }
    }
}

/* ---- what other hosts tell ------------------------------------------------------------------ */

static void chain_of_told(const struct mesh *m, const struct told_path *t, struct chain *ret)
{
    ret->count = 0;
    ret->boxes[ret->count++] = nic_box(t->from);
    for (uint32_t hop = 0; hop < t->hop_count; hop++) {
        ret->boxes[ret->count++] = router_box(&m->routers[t->hops[hop] - 1]);
    }
    if (!t->answered) {
        ret->boxes[ret->count++] = nic_box(t->to);
    }
}

/* Its way is its host's word, whoever heard what came by it. */
static struct locate_route route_of_told(const struct mesh *m, const struct told_path *t)
{
    struct chain chain;
    struct locate_route r = {.from_host = t->host,
                             .from = t->from,
                             .to_host = t->answered ? HOST_NONE : t->to_host,
                             .to = t->answered ? NIC_NONE : t->to,
                             .teller = t->host,
                             .box_count = t->hop_count};

    chain_of_told(m, t, &chain);
    for (uint32_t i = 0; i < r.box_count; i++) {
        const struct box *box = &chain.boxes[i + 1];
        r.boxes[i] = (struct locate_box){.key = box->key, .kind = kind_of(box)};
    }
    return r;
}

/* It ends here: what this host heard of it itself. NULL: it doesn't, or nothing is known. */
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

static struct trials trials_of_told(const struct told_path *t, struct mono since)
{
    const struct mono sent_after = mono_add(since, span_ns(TOUCH_NS + ACK_NS + TOLD_SLACK));

    if (t->answered) {
        return (struct trials){.sent = t->heard.ns != MONO_NEVER.ns &&
                                               mono_sub(t->heard, since).ns >= TOUCH_NS / 2
                                           ? ANSWER_COUNT
                                           : 0};
    }
    if (t->lost > 0) {
        return (struct trials){.sent = t->lost, .lost = t->lost};
    }
    if (t->heard.ns != MONO_NEVER.ns && t->heard.ns >= sent_after.ns) {
        return (struct trials){.sent = 1 + touches(sent_after, t->heard)};
    }
    return (struct trials){0, 0};
}

static void tell_told(const struct mesh *m, struct locate *l, struct mono now, struct mono since)
{
    const struct view in = {.out = false};

    for (uint32_t i = 0; i < TOLD_MAX; i++) {
        const struct told_path *t = digest_told(m, now, i);
        const struct path_half *own = t ? heard_here(m, t) : NULL;
        const struct trials trials = own ? trials_of(own, now, since, in)
                                     : t ? trials_of_told(t, since)
                                         : (struct trials){0, 0};

        if (t && trials.sent > 0) {
            const struct locate_route route = route_of_told(m, t);
            tell(l, m->locate_numbers + i, &route, now, trials);
        }
    }
}

bool mesh_is_told_to_send(const struct mesh *m, struct mono now, struct nic_id nic,
                          struct mono since)
{
    for (uint32_t i = 0; i < TOLD_MAX; i++) {
        const struct told_path *t = digest_told(m, now, i);

        if (t && nic_id_equal(t->from, nic) && !t->answered && t->lost == 0 &&
            trials_of_told(t, since).sent > 0) {
            return true;
        }
    }
    return false;
}

static int told_number(const struct mesh *m, struct mono now, struct nic_id from, struct nic_id to,
                       uint8_t path)
{
    for (uint32_t i = 0; i < TOLD_MAX; i++) {
        const struct told_path *t = digest_told(m, now, i);
        if (t && !t->answered && t->path == path && nic_id_equal(t->from, from) &&
            nic_id_equal(t->to, to)) {
            return (int)i;
        }
    }
    return -1;
}

/* All that this host knows since the moment, once for all that ask at a time. wide: and what others tell. */
static void tell_all(struct mesh *m, struct mono now, struct mono since, struct view view,
                     bool wide)
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
    for (uint32_t i = 0; i < m->locate_numbers + (wide ? TOLD_MAX : 0); i++) {
        locate_trials_clear(l, i); /* its way is the same, mostly */
    }
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        const uint8_t count = view.out ? e->path_count : e->peer_path_count;

        for (uint8_t p = 0; e->used && !e->silent && p < count && p < m->config.path_limit; p++) {
            const struct trials t = trials_of(half_of(e, p, view), now, since, view);
            struct chain chain;

            chain_of(m, e, p, view.out, &chain);
            if (view.loss && !discovery_way_holds(&e->out[p])) {
                continue; /* gathered for long, and partly on other ways */
            }
            if (t.sent > 0 && (chain.count > 0 || t.lost == 0)) {
                const struct locate_route route = route_of(m, e, &chain, chain.count - 1, view);
                tell(l, number_of(m, edge, p), &route, now, t);
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
        struct chain chain;

        chain_of(m, e, p, true, &chain);
        if (chain.count == 0 || (chain.count > 3 && e->path_count < 2)) {
            return false;
        }
    }
    return e->discovered;
}

/* ---- answers -------------------------------------------------------------------------------- */

/* key: alike for what is one thing. */
struct named {
    struct element element;
    uint64_t key;
};

static struct named name_of_box(const struct box *box, uint32_t direction)
{
    struct named r = {element_at(&box->place), hash_u64(10, box->key)};

    r.element.direction = direction;
    return r;
}

/* A trunk from the leaf upwards, whichever way the packets went: forward, from a to b. */
static struct named name_of_trunk(const struct box *a, const struct box *b, bool forward)
{
    const bool swap =
        a->place.kind == PLACE_SPINE || (a->place.kind == b->place.kind && a->key > b->key);
    struct named r = {
        .element = {.kind = ELEMENT_TRUNK,
                    .direction = swap != forward ? DIRECTION_OUT : DIRECTION_IN,
                    .a = swap ? b->place : a->place,
                    .b = swap ? a->place : b->place},
        .key = hash_u64(11, a->key < b->key ? hash_u64(a->key, b->key) : hash_u64(b->key, a->key))};

    /* addresses differ by the side that was asked from; a name says enough */
    if (a->place.number != UINT32_MAX && b->place.number != UINT32_MAX) {
        memset(r.element.a.address, 0, 16);
        memset(r.element.b.address, 0, 16);
    }
    return r;
}

static const struct box *box_of(const struct chain *chain, uint64_t key)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        if (chain->boxes[i].key == key) {
            return &chain->boxes[i];
        }
    }
    return NULL;
}

/* Its direction is that of the bad packets: of the other one this view tells nothing. Unknown: it isn't on the chain. */
static struct named name_of(const struct chain *chain, const struct locate_element *e,
                            struct view view)
{
    const struct box *a = box_of(chain, e->a), *b = box_of(chain, e->b);
    const struct box nic = nic_box((struct nic_id){(uint32_t)e->a});
    const struct box host = {hash_u64(4, e->a), {.kind = PLACE_HOST, .number = (uint32_t)e->a}};

    if (e->kind == ELEMENT_NIC) {
        const bool own = nic.key == chain->boxes[0].key;
        return name_of_box(&nic, own == view.out ? DIRECTION_OUT : DIRECTION_IN);
    }
    if (e->kind == ELEMENT_HOST) {
        return name_of_box(&host, DIRECTION_NONE);
    }
    if (e->kind == ELEMENT_TRUNK && a && b) {
        return name_of_trunk(a < b ? a : b, a < b ? b : a, view.out);
    }
    if (e->kind != ELEMENT_UNKNOWN && e->kind != ELEMENT_TRUNK && a) {
        return name_of_box(a, DIRECTION_NONE);
    }
    return (struct named){element_unknown(), 0};
}

static int place_on(const struct chain *chain, const struct locate_element *e)
{
    const struct box *a = box_of(chain, e->a), *b = box_of(chain, e->b);

    return a && b && e->kind == ELEMENT_TRUNK ? (int)((a < b ? a : b) - chain->boxes)
                                              : (int)chain->count;
}

/* What is told first. Of several trunks the first behind the last router that answered; where none was asked, the router that
 * they share. */
static const struct locate_element *likeliest(const struct locate_case *c,
                                              const struct chain *chain, bool traced)
{
    const struct locate_element *best = &c->elements[0];

    for (uint32_t i = 1; i < c->count && best->kind != ELEMENT_NIC; i++) {
        const struct locate_element *e = &c->elements[i];
        const bool router =
            e->kind == ELEMENT_SPINE || e->kind == ELEMENT_LEAF || e->kind == ELEMENT_ROUTER;

        if (traced ? place_on(chain, e) < place_on(chain, best)
                   : router && best->kind == ELEMENT_TRUNK) {
            best = e;
        }
    }
    return best;
}

/* One thing, whatever its directions: from one end they look alike. A host with one NIC is that NIC. */
static bool one_thing(const struct locate_case *c)
{
    const struct locate_element *first = &c->elements[0];

    for (uint32_t i = 1; i < c->count; i++) {
        const struct locate_element *e = &c->elements[i];
        const bool turned = e->kind == ELEMENT_TRUNK && e->a == first->b && e->b == first->a;

        if (first->kind == ELEMENT_NIC && e->kind == ELEMENT_HOST) {
            continue;
        }
        if (e->kind != first->kind || (!turned && (e->a != first->a || e->b != first->b))) {
            return false;
        }
    }
    return c->count == c->total;
}

/* A path that lost, too, and of which nobody knows what it crosses: it may tell of something else. */
static bool some_way_unknown(const struct mesh *m, struct view view)
{
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        const uint8_t count = view.out ? e->path_count : e->peer_path_count;

        for (uint8_t p = 0; e->used && !e->silent && p < count && p < m->config.path_limit; p++) {
            struct chain chain;

            chain_of(m, e, p, view.out, &chain);
            if (chain.count == 0 &&
                trials_of(half_of(e, p, view), m->asked.now, m->asked.since, view).lost > 0) {
                return true;
            }
        }
    }
    return false;
}

/* The name, if it is sure; else what it may be. */
static void set_suspect(const struct mesh *m, struct mesh_location *where,
                        const struct chain *chain, const struct locate_case *c,
                        const struct locate_element *first, bool sure, struct view view)
{
    const struct named best = name_of(chain, first, view);
    const bool named =
        c->state == LOCATE_NAMED || (c->state == LOCATE_ENDED && c->named.ns != MONO_NEVER.ns);
    uint32_t missing = c->total > c->count ? 1 : 0;

    where->key = best.key;
    where->suspect = sure ? best.element : element_unknown();
    if (sure || best.key == 0 || !view.out) {
        return; /* only this one of several flows is hurt; or its way is presumed: too little for a list */
    }
    element_choice_add(&where->choice, &best.element);
    for (uint32_t i = 0; i < c->count; i++) {
        const struct named other = name_of(chain, &c->elements[i], view);

        if (other.key == 0) {
            missing = 1;
        } else {
            element_choice_add(&where->choice, &other.element);
        }
    }
    /* it is one of them only where the inference is sure that nothing else does nearly as well; one alone would be named */
    missing = !named || where->choice.count == 1 || some_way_unknown(m, view) ? 1 : missing;
    where->choice.total += missing;
}

static void count_explained(const struct mesh *m, const struct locate_case *c, struct view view,
                            struct mesh_location *where)
{
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        uint32_t paths = 0;

        for (uint8_t p = 0; e->used && !e->silent && p < m->config.path_limit; p++) {
            paths += trials_of(half_of(e, p, view), m->asked.now, m->asked.since, view).lost > 0 &&
                     locate_explains(m->locate, c, number_of(m, edge, p));
        }
        where->paths += paths;
        where->edges += paths > 0;
    }
}

static void rule_out(const struct mesh *m, const struct mesh_edge *bad, struct mono now,
                     struct mono since, struct view view, struct mesh_location *where)
{
    const struct nic *nic = &m->nics[bad->local];

    where->rules_out |= nic->carrier_known && nic->carrier ? RULES_OUT_OWN_LINK : 0;
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && !e->silent && p < EDGE_PATH_MAX; p++) {
            const struct trials t = trials_of(half_of(e, p, view), now, since, view);
            if (t.sent == 0 || t.lost > 0) {
                continue;
            }
            where->rules_out |= RULES_OUT_OWN_HOST;
            where->rules_out |= e->local == bad->local ? RULES_OUT_OWN_NIC : 0;
            where->rules_out |= host_id_equal(e->host, bad->host) ? RULES_OUT_PEER_HOST : 0;
            where->rules_out |= nic_id_equal(e->nic, bad->nic) ? RULES_OUT_PEER_NIC : 0;
        }
    }
}

/* By what this host saw itself. */
static void locate_alone(struct mesh *m, struct mono now, int edge, uint8_t path, struct view view,
                         struct mesh_location *ret_location)
{
    const struct mesh_edge *e = &m->edges[edge];
    struct locate_case answer;
    struct chain chain;

    chain_of(m, e, path, view.out, &chain);
    if (chain.count == 0) {
        return; /* any element may be it */
    }
    tell_all(m, now, half_of(e, path, view)->since, view, false);
    if (!locate_answer(m->locate, now, BACKGROUND, number_of(m, edge, path), &answer)) {
        return;
    }
    const bool sure =
        answer.state == LOCATE_NAMED && one_thing(&answer) &&
        (view.out || (answer.elements[0].kind == ELEMENT_NIC && answer.share > SHARE_ALL));
    set_suspect(m, ret_location, &chain, &answer,
                likeliest(&answer, &chain,
                          view.out && !view.loss && !view.slow && e->out[path].trace_rounds > 0),
                sure, view);
    if (ret_location->key != 0) {
        count_explained(m, &answer, view, ret_location);
    }
}

/* The last words that hosts told, of two hosts, the latest first; and whether there is a third. */
struct last_words {
    struct host_id hosts[2];
    struct mono heard[2];
    bool more;
};

/* A path's last word before what began about then: who was heard for longer went another way first. */
static void note_began(struct mono since, struct mono heard, struct host_id host,
                       struct last_words *w)
{
    const bool first = host_id_equal(w->hosts[0], host), second = host_id_equal(w->hosts[1], host);

    if (heard.ns == MONO_NEVER.ns || mono_sub(heard, since).ns > TOUCH_NS + ACK_NS) {
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

/* Of three hosts or more the second latest host's: no single one moves it alone. */
static struct mono began_of(const struct last_words *w)
{
    return w->heard[0].ns == INT64_MIN ? MONO_NEVER : w->more ? w->heard[1] : w->heard[0];
}

/* The last word before it of all paths that lost by it, and how many end here. */
static void explained_by_all(const struct mesh *m, struct mono now, struct mono since,
                             const struct locate_case *c, struct mesh_location *where)
{
    const struct view out = {.out = true};
    const struct host_id own = m->config.fleet.peers[m->nics[0].peer].host;
    struct last_words words = {{HOST_NONE, HOST_NONE}, {{INT64_MIN}, {INT64_MIN}}, false};

    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        bool any = false;

        for (uint8_t p = 0; e->used && !e->silent && p < m->config.path_limit; p++) {
            const struct path_half *half = &e->out[p].half;
            const int told = e->in[p].half.state == PATH_DEAD
                                 ? told_number(m, now, e->nic, m->nics[e->local].id, p)
                                 : -1;
            const bool in =
                told >= 0 && locate_explains(m->wide, c, m->locate_numbers + (uint32_t)told);

            if (trials_of(half, m->asked_wide.now, m->asked_wide.since, out).lost > 0 &&
                locate_explains(m->wide, c, number_of(m, edge, p))) {
                note_began(since, half->heard, own, &words);
                where->paths++;
                any = true;
            }
            where->paths += in;
            any = any || in;
        }
        where->edges += any;
    }
    for (uint32_t i = 0; i < TOLD_MAX; i++) {
        const struct told_path *t = digest_told(m, now, i);

        if (t && t->lost > 0 && locate_explains(m->wide, c, m->locate_numbers + i)) {
            note_began(since, t->heard, t->host, &words);
        }
    }
    where->began = began_of(&words);
}

/* Others' paths that are well must have been so while this one was dead. A hole that ended a moment ago lets packets through
 * that cross it: they would clear what is at fault. So a name must stand until a later packet of this path was lost, too.
 * However rarely it is looked at: if it came since, it died anew. */
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
    return mono_sub(now, w->at).ns >= STANDS_NS;
}

/* By what others told, too: only where what this host saw itself doesn't suffice. What comes in goes the way that its sender
 * told. */
static void locate_with_others(struct mesh *m, struct mono now, int edge, uint8_t path,
                               struct view view, struct mesh_location *ret_location)
{
    const struct mesh_edge *e = &m->edges[edge];
    const struct view out = {.out = true};
    struct mesh_location wide = {.rules_out = ret_location->rules_out};
    const int told = view.out || m->told_until.ns <= now.ns
                         ? -1
                         : told_number(m, now, e->nic, m->nics[e->local].id, path);
    struct locate_case answer;
    struct chain chain;

    if (m->told_until.ns <= now.ns || (!view.out && told < 0)) {
        return;
    }
    if (view.out) {
        chain_of(m, e, path, true, &chain);
    } else {
        chain_of_told(m, &m->told[told], &chain);
    }
    if (chain.count == 0) {
        return;
    }
    tell_all(m, now, half_of(e, path, view)->since, out, true);
    if (!locate_answer(m->wide, now, BACKGROUND,
                       view.out ? number_of(m, edge, path) : m->locate_numbers + (uint32_t)told,
                       &answer)) {
        return;
    }
    set_suspect(m, &wide, &chain, &answer, likeliest(&answer, &chain, true),
                answer.state == LOCATE_NAMED && one_thing(&answer), out);
    const uint32_t was = ret_location->choice.total;
    if (wide.suspect.kind != ELEMENT_UNKNOWN &&
        !stands(m, now, 1 + 2 * number_of(m, edge, path) + !view.out, half_of(e, path, view)->since,
                wide.key)) {
        return;
    }
    if (wide.suspect.kind != ELEMENT_UNKNOWN ||
        (wide.choice.count > 0 && (was == 0 || wide.choice.total < was))) {
        explained_by_all(m, now, half_of(e, path, view)->since, &answer, &wide);
        *ret_location = wide;
    }
}

void mesh_locate(struct mesh *m, struct mono now, int edge, uint8_t path,
                 enum finding_direction direction, bool others, struct mesh_location *ret_location)
{
    const struct mesh_edge *e = &m->edges[edge];
    struct view view = {.out = direction == DIRECTION_OUT};
    const struct path_half *half = half_of(e, path, view);

    memset(ret_location, 0, sizeof(*ret_location));
    ret_location->began = MONO_NEVER;
    view.loss = half->state == PATH_LOSSY;
    view.slow = !view.loss && half->state != PATH_DEAD && half->watch.slow;
    rule_out(m, e, now, half->since, view, ret_location);
    locate_alone(m, now, edge, path, view, ret_location);
    if (others && ret_location->suspect.kind == ELEMENT_UNKNOWN && half->state == PATH_DEAD) {
        locate_with_others(m, now, edge, path, view, ret_location);
    }
}

/* ---- all the time --------------------------------------------------------------------------- */

static void tell_fate(struct mesh *m, struct locate *l, uint64_t *told, int edge, uint8_t path,
                      struct view view, struct mono sent, bool lost)
{
    const struct mesh_edge *e = &m->edges[edge];
    const struct path_out *out = &e->out[path];
    const uint32_t number = number_of(m, edge, path);
    const uint64_t routed = hash_u64(hash_u64(13, e->generation), out->signature);

    if (out->signature == 0 || path >= e->path_count || !discovery_way_holds(out)) {
        return; /* nobody knows what it crosses */
    }
    if (*told != routed) {
        struct chain chain;

        chain_of(m, e, path, view.out, &chain);
        if (chain.count == 0) {
            return;
        }
        const struct locate_route route = route_of(m, e, &chain, chain.count - 1, view);
        locate_path_set(l, number, &route);
        *told = routed;
    }
    locate_on_trial(l, number, sent, lost);
}

void mesh_tell_trial(struct mesh *m, int edge, uint8_t path, struct mono sent, bool lost)
{
    const struct view out = {.out = true};

    tell_fate(m, m->trials, &m->edges[edge].out[path].routed, edge, path, out, sent, lost);
}

void mesh_tell_full(struct mesh *m, int edge, uint8_t path, struct mono sent, bool lost)
{
    const struct view out = {.out = true};

    tell_fate(m, m->fulls, &m->edges[edge].out[path].full_routed, edge, path, out, sent, lost);
}

void mesh_tell_pair(struct mesh *m, int edge, uint8_t path, bool out, struct mono sent, bool wide)
{
    struct mesh_edge *e = &m->edges[edge];
    struct path_half *half = out ? &e->out[path].half : &e->in[path].half;
    const struct view view = {.out = out};

    tell_fate(m, m->pairs[out ? 0 : 1], &half->spread_routed, edge, path, view, sent, wide);
}

/* One of the case's paths, and how many NIC pairs have some. Packets that a full queue drops are no fault: false. */
static bool case_path(const struct mesh *m, struct mono now, const struct locate_case *c,
                      struct mesh_fault *ret)
{
    const struct locate *l = ret->full_size ? m->fulls : m->trials;
    uint32_t queued = 0, paths = 0;
    struct class_sums classes = {{0}, {0}};

    ret->edge = -1;
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        bool any = false;

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            const uint64_t routed = ret->full_size ? e->out[p].full_routed : e->out[p].routed;
            if (routed == 0 || !locate_explains(l, c, number_of(m, edge, p))) {
                continue;
            }
            if (ret->edge < 0) {
                ret->edge = edge;
                ret->path = p;
            }
            any = true;
            paths++;
            queued += hear_queue_drops(m, now, e, &e->out[p]);
            trial_classes(&e->out[p], now, &classes);
        }
        ret->where.edges += any;
    }
    ret->job_class = !ret->full_size && trial_is_job_class(&classes);
    return ret->edge >= 0 && (ret->hole || 2 * queued <= paths);
}

/* The same of a narrow one, and how far apart its paths' pairs come. */
static bool narrow_path(const struct mesh *m, const struct locate_case *c, struct view view,
                        struct mesh_fault *ret)
{
    double apart = 0, usual = 0;
    uint32_t count = 0;

    ret->edge = -1;
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        bool any = false;

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            const struct path_half *half = half_of(e, p, view);

            if (half->spread_routed == 0 ||
                !locate_explains(m->pairs[view.out ? 0 : 1], c, number_of(m, edge, p))) {
                continue;
            }
            if (ret->edge < 0) {
                ret->edge = edge;
                ret->path = p;
            }
            any = true;
            if (half->spread.wide_ns > 0) {
                apart += half->spread.apart_ns;
                usual += half->spread.usual_ns;
                count++;
            }
        }
        ret->where.edges += any;
    }
    ret->apart_ns = count > 0 ? (int64_t)(apart / count) : 0;
    ret->usual_ns = count > 0 ? (int64_t)(usual / count) : 0;
    return ret->edge >= 0;
}

static bool own_carrier_moved(const struct mesh *m, const struct locate_case *c)
{
    for (uint32_t i = 0; i < m->config.nic_count; i++) {
        const struct nic *nic = &m->nics[i];
        if (c->elements[0].kind == ELEMENT_NIC && c->elements[0].a == nic->id.index &&
            nic->carrier_moved.ns != MONO_NEVER.ns && nic->carrier_moved.ns >= c->began_low.ns) {
            return true; /* the link's own verdict explains it all */
        }
    }
    return false;
}

/* A full queue: an end takes the place of the last beginning, for nobody tells it again. */
static void fault_add(struct mesh *m, const struct mesh_fault *f)
{
    uint32_t at = m->fault_count;

    if (at < FAULT_QUEUE) {
        m->fault_count++;
    } else {
        do {
            if (!f->ended || at == 0) {
                return;
            }
            at--;
        } while (m->faults[(m->fault_head + at) % FAULT_QUEUE].ended);
    }
    m->faults[(m->fault_head + at) % FAULT_QUEUE] = *f;
}

/* An end is told though no own path goes that way any more: who heard the beginning waits for it. */
static void fault_end(struct mesh *m, const struct mesh_fault *f)
{
    if (f->ended) {
        struct mesh_fault end = *f;

        end.edge = -1;
        end.hole = false; /* told with its beginning, where anything is */
        fault_add(m, &end);
    }
}

static void fault_push(struct mesh *m, struct mono now, const struct locate_case *told, bool full)
{
    const struct view view = {.out = true};
    struct locate_case own = *told, *c = &own;

    if (c->state == LOCATE_ENDED && !full && locate_has_twin(m->trials, c)) {
        c->named =
            MONO_NEVER; /* what they share was gone, and that is none of them: a fabric in parts */
    }
    struct mesh_fault f = {.number = c->serial | (full ? FULL_NUMBER : 0),
                           .full_size = full,
                           .direction = DIRECTION_OUT,
                           .hole = c->share > SHARE_ALL && !full,
                           .named = c->named.ns != MONO_NEVER.ns,
                           .ended = c->state == LOCATE_ENDED,
                           .began = c->began_high,
                           .over = c->state == LOCATE_ENDED ? c->ended_high : MONO_NEVER,
                           .lost = c->lost,
                           .sent = c->sent};
    struct chain chain = {.count = 0};

    if (full && c->share <= SHARE_ALL && !f.ended) {
        return; /* their answers are lost */
    }
    if (!own_carrier_moved(m, c) && case_path(m, now, c, &f)) {
        chain_of(m, &m->edges[f.edge], f.path, true, &chain);
    }
    if (chain.count == 0) {
        fault_end(m, &f);
        return;
    }
    rule_out(m, &m->edges[f.edge], now, c->began_high, view, &f.where);
    set_suspect(m, &f.where, &chain, c, likeliest(c, &chain, false), f.named && one_thing(c), view);
    f.where.paths = c->paths;
    fault_add(m, &f);
}

/* Of what is its own a host can tell only that it receives slowly. What it sends is stamped when its NIC begins with it,
 * which shows nothing of how long that takes, or before it waits behind the job in the NIC, which makes any NIC look slow.
 * What comes in goes a way that is presumed: nothing but the own NIC is told of it. */
static bool may_be_narrow(const struct mesh *m, const struct locate_case *c, bool out)
{
    bool own = false;

    for (uint32_t i = 0; i < m->config.nic_count; i++) {
        own =
            own || (c->elements[0].kind == ELEMENT_NIC && c->elements[0].a == m->nics[i].id.index);
    }
    return out ? !own && c->elements[0].kind != ELEMENT_HOST
               : own && c->elements[0].direction == DIRECTION_IN && one_thing(c);
}

static void narrow_push(struct mesh *m, const struct locate_case *c, bool out)
{
    const struct view view = {.out = out};
    struct mesh_fault f = {.number = c->serial | (out ? NARROW_NUMBER : NARROW_IN_NUMBER),
                           .narrow = true,
                           .direction = out ? DIRECTION_OUT : DIRECTION_IN,
                           .named = c->named.ns != MONO_NEVER.ns,
                           .ended = c->state == LOCATE_ENDED,
                           .began = c->began_high,
                           .over = c->state == LOCATE_ENDED ? c->ended_high : MONO_NEVER,
                           .lost = c->lost,
                           .sent = c->sent};
    struct chain chain = {.count = 0};

    if (may_be_narrow(m, c, out) && narrow_path(m, c, view, &f)) {
        chain_of(m, &m->edges[f.edge], f.path, out, &chain);
    }
    if (chain.count == 0) {
        fault_end(m, &f);
        return;
    }
    set_suspect(m, &f.where, &chain, c, likeliest(c, &chain, false), f.named && one_thing(c), view);
    f.where.paths = c->paths;
    fault_add(m, &f);
}

void mesh_faults_tick(struct mesh *m, struct mono now)
{
    struct locate_case c;

    for (uint32_t d = 0; d < 2; d++) {
        if (locate_deadline(m->pairs[d]).ns <= now.ns) {
            locate_tick(m->pairs[d], now);
            while (locate_next_change(m->pairs[d], &c)) {
                narrow_push(m, &c, d == 0);
            }
        }
    }

    if (locate_deadline(m->trials).ns <= now.ns) {
        locate_tick(m->trials, now);
        while (locate_next_change(m->trials, &c)) {
            fault_push(m, now, &c, false);
        }
    }
    if (locate_deadline(m->fulls).ns <= now.ns) {
        locate_tick(m->fulls, now);
        while (locate_next_change(m->fulls, &c)) {
            fault_push(m, now, &c, true);
        }
    }
}

bool mesh_next_fault(struct mesh *m, struct mesh_fault *ret_fault)
{
    if (m->fault_count == 0) {
        return false;
    }
    *ret_fault = m->faults[m->fault_head];
    m->fault_head = (m->fault_head + 1) % FAULT_QUEUE;
    m->fault_count--;
    return true;
}

bool mesh_outage(struct mesh *m, struct mono now, int edge, uint8_t path, struct mono *ret_began,
                 struct mono *ret_over)
{
    struct outage outage;

    if (!locate_outage(m->trials, now, number_of(m, edge, path), &outage)) {
        return false;
    }
    *ret_began = outage.began_high;
    *ret_over = outage.ended_high;
    return true;
}
