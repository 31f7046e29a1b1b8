/* locate_element.c: the elements of all routes, and the paths through them. They are built anew when routes change: a path with
 * another way is another path. */
#include <string.h>

#include "core/fleet/locate_private.h"

/* ln of the prior probability of a fault. Both directions of an element fail together more often than one alone; many elements at
 * once rarely fail. One path alone is a flow that a router treats badly: the last explanation. */
#define PRIOR_DIRECTION (-9.0)
#define PRIOR_BOTH      (-8.5)
#define PRIOR_HOST      (-9.5)
#define PRIOR_ROUTER    (-10.0)
#define PRIOR_PATH      (-12.0)

static uint64_t name_hash(const struct locate_element *name)
{
    return hash_u64(hash_u64((uint64_t)name->kind << 8 | name->direction, name->a), name->b);
}

static bool name_equal(const struct locate_element *x, const struct locate_element *y)
{
    return x->kind == y->kind && x->direction == y->direction && x->a == y->a && x->b == y->b;
}

bool locate_before(const struct suspect *x, const struct suspect *y)
{
    return x->prior > y->prior ||
           (x->prior >= y->prior && name_hash(&x->name) < name_hash(&y->name));
}

uint64_t locate_case_number(const struct locate_element *name, struct mono began)
{
    return hash_u64(name_hash(name), (uint64_t)(began.ns / NS_PER_S));
}

static double prior_of(const struct locate_element *name)
{
    switch ((enum element_kind)name->kind) {
    case ELEMENT_NIC:
    case ELEMENT_TRUNK:
        return name->direction == DIRECTION_BOTH ? PRIOR_BOTH : PRIOR_DIRECTION;
    case ELEMENT_HOST:
        return PRIOR_HOST;
    case ELEMENT_LEAF:
    case ELEMENT_SPINE:
    case ELEMENT_ROUTER:
        return PRIOR_ROUTER;
    default:
        return PRIOR_PATH;
    }
}

/* The place of that name in the table, or the free place for it. */
static uint32_t place_of(const struct locate *l, const struct locate_element *name)
{
    uint32_t at = (uint32_t)name_hash(name) & l->table_mask;

    while (l->table[at] != 0 && !name_equal(&l->suspects[l->table[at] - 1].name, name)) {
        at = (at + 1) & l->table_mask;
    }
    return at;
}

uint32_t locate_element_find(const struct locate *l, const struct locate_element *name)
{
    return l->table[place_of(l, name)] - 1; /* 0 - 1: NONE */
}

static void cross(struct locate *l, struct path *p, struct locate_element name)
{
    const uint32_t at = place_of(l, &name);

    if (l->table[at] == 0) {
        if (l->element_count == l->config.element_limit) {
            return; /* no room: this element is never named */
        }
        l->suspects[l->element_count] = (struct suspect){
            .name = name,
            .prior = prior_of(&name),
            .atom = (name.kind == ELEMENT_NIC || name.kind == ELEMENT_TRUNK) &&
                    name.direction != DIRECTION_BOTH,
        };
        l->table[at] = ++l->element_count;
    }
    p->elements[p->element_count++] = l->table[at] - 1;
    l->suspects[l->table[at] - 1].count++;
}

static void cross_all(struct locate *l, uint32_t path)
{
    struct path *p = &l->paths[path];
    const struct locate_route *r = &p->route;

    p->element_count = 0;
    cross(l, p, (struct locate_element){ELEMENT_NIC, DIRECTION_OUT, r->from.index, 0});
    cross(l, p, (struct locate_element){ELEMENT_NIC, DIRECTION_IN, r->to.index, 0});
    cross(l, p, (struct locate_element){ELEMENT_NIC, DIRECTION_BOTH, r->from.index, 0});
    cross(l, p, (struct locate_element){ELEMENT_NIC, DIRECTION_BOTH, r->to.index, 0});
    cross(l, p, (struct locate_element){ELEMENT_HOST, DIRECTION_BOTH, r->from_host.index, 0});
    cross(l, p, (struct locate_element){ELEMENT_HOST, DIRECTION_BOTH, r->to_host.index, 0});
    cross(l, p, (struct locate_element){ELEMENT_UNKNOWN, DIRECTION_OUT, path, 0});
    for (uint32_t i = 0; i < r->box_count; i++) {
        const uint64_t a = r->boxes[i].key, b = i + 1 < r->box_count ? r->boxes[i + 1].key : a;

        cross(l, p, (struct locate_element){r->boxes[i].kind, DIRECTION_BOTH, a, 0});
        if (a != b) {
            cross(l, p, (struct locate_element){ELEMENT_TRUNK, DIRECTION_OUT, a, b});
            cross(l, p,
                  (struct locate_element){ELEMENT_TRUNK, DIRECTION_BOTH, a < b ? a : b,
                                          a < b ? b : a});
        }
    }
}

void locate_observe(struct locate *l, uint32_t path, bool observed)
{
    struct path *p = &l->paths[path];
    const uint64_t hash = locate_path_hash(path);

    if (p->observed == observed) {
        return;
    }
    p->observed = observed;
    for (uint32_t i = 0; i < p->element_count && !l->stale; i++) {
        struct suspect *e = &l->suspects[p->elements[i]];
        e->class += observed ? hash : -hash;
        e->observed += observed ? 1 : UINT32_MAX;
    }
}

void locate_elements_build(struct locate *l)
{
    uint32_t first = 0;

    memset(l->table, 0, ((size_t)l->table_mask + 1) * sizeof(*l->table));
    l->element_count = 0;
    for (uint32_t path = 0; path < l->config.path_limit; path++) {
        if (l->paths[path].used) {
            cross_all(l, path);
        }
    }
    for (uint32_t i = 0; i < l->element_count; i++) {
        l->suspects[i].first = first;
        first += l->suspects[i].count;
        l->suspects[i].count = 0;
    }
    for (uint32_t path = 0; path < l->config.path_limit; path++) {
        const struct path *p = &l->paths[path];

        for (uint32_t i = 0; p->used && i < p->element_count; i++) {
            struct suspect *e = &l->suspects[p->elements[i]];
            l->crossings[e->first + e->count++] = path;
            e->class += p->observed ? locate_path_hash(path) : 0;
            e->observed += p->observed;
        }
    }
    l->stale = false;
}
