/* suspect.c: the name for an answer of the inference, and what good paths rule out. */
#include <string.h>

#include "core/mesh/suspect.h"

/* key: the same for one element. */
struct named {
    struct element element;
    uint64_t key;
};

static struct named name_of_box(const struct way_box *box, uint32_t direction)
{
    struct named r = {element_at(&box->place), hash_u64(10, box->key)};

    r.element.direction = direction;
    return r;
}

/* A trunk from the leaf upwards, for both directions of packets. forward: from a to b. */
static struct named name_of_trunk(const struct way_box *a, const struct way_box *b, bool forward)
{
    const bool swap =
        a->place.kind == PLACE_SPINE || (a->place.kind == b->place.kind && a->key > b->key);
    struct named r = {
        .element = {.kind = ELEMENT_TRUNK,
                    .direction = swap != forward ? DIRECTION_OUT : DIRECTION_IN,
                    .a = swap ? b->place : a->place,
                    .b = swap ? a->place : b->place},
        .key = hash_u64(11, a->key < b->key ? hash_u64(a->key, b->key) : hash_u64(b->key, a->key))};

    /* addresses differ between the two sides of a router; its name suffices */
    if (a->place.number != UINT32_MAX && b->place.number != UINT32_MAX) {
        memset(r.element.a.address, 0, 16);
        memset(r.element.b.address, 0, 16);
    }
    return r;
}

static const struct way_box *box_of(const struct way_chain *chain, uint64_t key)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        if (chain->boxes[i].key == key) {
            return &chain->boxes[i];
        }
    }
    return NULL;
}

/* Its direction is that of the bad packets; this view shows nothing about the other direction. Unknown: it isn't on the chain. */
static struct named name_of(const struct way_chain *chain, const struct locate_element *e,
                            struct evidence_view view)
{
    const struct way_box *a = box_of(chain, e->a), *b = box_of(chain, e->b);
    const struct way_box nic = evidence_nic((struct nic_id){(uint32_t)e->a});
    const struct way_box host = {hash_u64(4, e->a), {.kind = PLACE_HOST, .number = (uint32_t)e->a}};

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

static int place_on(const struct way_chain *chain, const struct locate_element *e)
{
    const struct way_box *a = box_of(chain, e->a), *b = box_of(chain, e->b);

    return a && b && e->kind == ELEMENT_TRUNK ? (int)((a < b ? a : b) - chain->boxes)
                                              : (int)chain->count;
}

const struct locate_element *suspect_likeliest(const struct locate_case *c,
                                               const struct way_chain *chain, bool traced)
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

bool suspect_is_one(const struct locate_case *c)
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

/* True if another path lost packets and its way is unknown: it may belong to another fault. */
static bool some_way_unknown(const struct mesh *m, struct evidence_view view)
{
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        const uint8_t count = view.out ? e->path_count : e->peer_path_count;

        for (uint8_t p = 0; e->used && !e->silent && p < count && p < m->config.path_limit; p++) {
            struct way_chain chain;

            evidence_chain(m, e, p, view.out, &chain);
            if (chain.count == 0 &&
                evidence_fates(evidence_half(e, p, view), m->asked.now, m->asked.since, view).lost >
                    0) {
                return true;
            }
        }
    }
    return false;
}

/* A router may treat one flow badly. So a share that is lost on the only path through an element is no proof against it. */
static bool is_flow(const struct locate_case *c)
{
    return c->single && c->share <= EVIDENCE_SHARE_ALL;
}

void suspect_set(const struct mesh *m, struct mesh_location *where, const struct way_chain *chain,
                 const struct locate_case *c, const struct locate_element *first, bool sure,
                 struct evidence_view view)
{
    const struct named best = name_of(chain, first, view);
    const bool named =
        c->state == LOCATE_NAMED || (c->state == LOCATE_ENDED && c->named.ns != MONO_NEVER.ns);
    uint32_t missing = c->total > c->count || is_flow(c) ? 1 : 0;

    sure = sure && !is_flow(c);
    where->key = best.key;
    where->suspect = sure ? best.element : element_unknown();
    if (sure || best.key == 0 || !view.out) {
        return; /* only one of several flows is hurt, or its way is assumed: too little for a list */
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
    /* it is one of these elements only if the inference is sure that no other explanation is nearly as good; a single one would
     * be named */
    missing = !named || where->choice.count == 1 || some_way_unknown(m, view) ? 1 : missing;
    where->choice.total += missing;
}

void suspect_rule_out(const struct mesh *m, const struct mesh_edge *bad, struct mono now,
                      struct mono since, struct evidence_view view, struct mesh_location *where)
{
    const struct nic *nic = &m->nics[bad->local];

    where->rules_out |= nic->carrier_known && nic->carrier ? RULES_OUT_OWN_LINK : 0;
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && !e->silent && p < EDGE_PATH_MAX; p++) {
            const struct path_fates t = evidence_fates(evidence_half(e, p, view), now, since, view);
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
