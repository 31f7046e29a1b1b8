/* ways.c: converts reports for the fabric. */
#include "service/controller/fleet/ways.h"

#include <errno.h>
#include <syslog.h>

#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"

int ways_open(struct controller *c)
{
    c->fabric = fabric_new();
    return c->fabric != NULL ? 0 : -ENOMEM;
}

void ways_close(struct controller *c)
{
    c->fabric = fabric_free(c->fabric);
}

static const char *leaf_beside(const struct fleet_nic *n)
{
    return n == NULL ? "" : n->leaf[0] != 0 ? n->leaf : n->neighbour;
}

/* Number of the switch + 1; 0: none. */
static uint32_t switch_of(struct controller *c, struct fleet_host *h, const char *said,
                          const char *leaf)
{
    bool refused = false;
    const uint32_t number =
        fabric_on_switch(c->fabric, fabric_name_of(said, leaf), &h->switches_named, &refused);
    if (refused && !h->switches_told) {
        h->switches_told = true;
        controller_say(LOG_WARNING,
                       "host %s names more than %d switches that no other host has named: "
                       "the other switches are ignored",
                       h->name, FABRIC_SWITCH_HOST_MAX);
    }
    return number;
}

void ways_name(struct controller *c, struct fleet_host *h, const Foliot__V1__PathTable *t,
               struct fabric_way *ways)
{
    size_t places = 0, at = 0;
    for (size_t i = 0; i < t->n_out_hops; i++) {
        places += t->out_hops[i];
    }
    if (places != t->n_out_router) {
        return;
    }
    for (size_t i = 0; i < t->n_out_hops; at += t->out_hops[i++]) {
        const uint32_t count = t->out_hops[i];
        const struct fleet_nic *own = fleet_find_nic(c, t->out_local[i]);
        if (own == NULL || own->host != h || count > PATH_HOP_MAX) {
            continue;
        }
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t number = t->out_router[at + k];
            const char *said = number > 0 && number <= t->n_router ? t->router[number - 1] : "";
            const struct fleet_nic *beside = k == 0           ? own
                                             : k + 1 == count ? fleet_find_nic(c, t->out_peer[i])
                                                              : NULL;
            const char *leaf = leaf_beside(beside);
            const uint32_t sw = switch_of(c, h, said, leaf);
            const struct fleet_host *namer = leaf[0] != 0 ? beside->host : h;
            ways[i].switches[k] = (uint16_t)sw;
            ways[i].addresses[k] = fabric_on_address(
                c->fabric, sw, said, (struct fabric_teller){h->index, namer->index});
        }
    }
}

void ways_contradict(struct controller *c, struct fleet_host *h)
{
    uint32_t other = 0;
    const uint32_t number = h->switch_lie_told
                                ? 0
                                : fabric_contradicted(c->fabric, h->index, h->hops, h->hop_count,
                                                      &h->switch_looked, &other);
    if (number != 0) {
        h->switch_lie_told = true;
        controller_say(
            LOG_WARNING,
            "only host %s reports that switch %s answers with an address that other hosts "
            "report for %s: this report is ignored",
            h->name, fabric_switch_name(c->fabric, number), fabric_switch_name(c->fabric, other));
    }
}

const char *ways_first_switch(const struct controller *c, const struct fleet_nic *nic)
{
    const struct fleet_host *h = nic->host;
    for (uint32_t i = 0; i < h->hop_count; i++) {
        if (h->hops[i].local == nic->id && h->hops[i].switches[0] != 0) {
            return fabric_switch_name(c->fabric, h->hops[i].switches[0]);
        }
    }
    return NULL;
}

static enum fabric_path_state state_of(const struct fleet_path *p)
{
    switch (p->state) {
    case FOLIOT__V1__PATH_STATE__PATH_STATE_ALIVE:
    case FOLIOT__V1__PATH_STATE__PATH_STATE_SUSPECT:
        return FABRIC_PATH_ALIVE;
    case FOLIOT__V1__PATH_STATE__PATH_STATE_LOSSY:
        return FABRIC_PATH_LOSSY;
    case FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD:
        return FABRIC_PATH_DEAD;
    default:
        return FABRIC_PATH_UNKNOWN;
    }
}

static void look_at(struct controller *c, const struct fleet_path *p)
{
    const enum fabric_path_state state = state_of(p);
    if (fabric_looks_at(c->fabric, state)) {
        const struct fabric_way *way = fleet_way(c, p->peer, p->local, p->port);
        const struct fabric_path path = {state, p->p50, p->p99, p->loss_ppm};
        if (way != NULL) {
            fabric_on_path(c->fabric, way, &path);
        }
    }
}

void ways_look(struct controller *c)
{
    const struct mono now = controller_mono();
    uint64_t paths = 0;
    for (uint32_t i = 0; i < c->host_count; i++) {
        paths += c->hosts[i]->path_count;
    }
    if (!fabric_look(c->fabric, paths, span_ms(c->config.report_ms), now)) {
        return;
    }
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        const bool known = h->member && fleet_current(c, h, now);
        for (uint32_t k = 0; known && k < h->path_count; k++) {
            look_at(c, &h->paths[k]);
        }
    }
}
