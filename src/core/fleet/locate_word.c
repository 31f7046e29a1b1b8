/* locate_word.c: the hosts behind a name's evidence, and whether the name holds without any one of them. */
#include "core/fleet/locate_private.h"

static void tell(struct tellers *t, struct host_id host, uint32_t lost)
{
    uint32_t i = 0;

    while (i < t->count && !host_id_equal(t->list[i].host, host)) {
        i++;
    }
    if (i == t->count && t->count == TELLERS) {
        return;
    }
    if (i == t->count) {
        t->list[t->count].host = host;
        t->list[t->count++].lost = 0;
    }
    t->list[i].lost += lost;
    for (; i > 0 && t->list[i].lost > t->list[i - 1].lost; i--) {
        const struct host_id swap = t->list[i].host;
        const uint32_t more = t->list[i].lost;
        t->list[i] = t->list[i - 1];
        t->list[i - 1].host = swap;
        t->list[i - 1].lost = more;
    }
}

struct tellers locate_tellers_of(struct locate *l, uint32_t element)
{
    const struct suspect *e = &l->suspects[element];
    struct tellers t = {.count = 0};

    for (uint32_t k = 0; k < e->count; k++) {
        const uint32_t path = l->crossings[e->first + k];

        locate_count(l, path);
        if (l->lost[path] > 0) {
            tell(&t, l->paths[path].route.teller, l->lost[path]);
        }
    }
    return t;
}

/* Adds all other hosts whose reports count: a report without losses may be false, too. */
void locate_tellers_add(struct locate *l, struct tellers *t)
{
    for (uint32_t path = 0; path < l->config.path_limit && t->count < TELLERS; path++) {
        if (l->paths[path].used && l->paths[path].observed) {
            tell(t, l->paths[path].route.teller, 0);
        }
    }
}

/* A host that accuses its own element harms no other host. */
static bool is_own(const struct locate *l, uint32_t element, struct host_id host)
{
    const struct suspect *e = &l->suspects[element];
    const struct locate_route *r = &l->paths[l->crossings[e->first]].route;

    if (e->name.kind == ELEMENT_HOST) {
        return e->name.a == host.index;
    }
    return e->name.kind == ELEMENT_NIC &&
           (r->from.index == e->name.a ? host_id_equal(r->from_host, host)
                                       : host_id_equal(r->to_host, host));
}

bool locate_stands(struct locate *l, const struct explanation *x, uint32_t index,
                   const struct tellers *t)
{
    const struct mono now = l->now;
    const uint32_t window = l->window;
    bool r = true;

    for (uint32_t i = 0; i < t->count && r && !l->config.one_word; i++) {
        const struct host_id host = t->list[i].host;

        r = host_id_equal(host, l->config.own) || is_own(l, x->elements[index], host) ||
            locate_stands_without(l, x, index, host);
    }
    locate_window_begin(l, now, window, HOST_NONE);
    return r;
}
