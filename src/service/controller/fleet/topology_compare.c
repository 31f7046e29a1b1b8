/* topology_compare.c: compares the declared topology with what is seen. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/topology.h"

#define NONE UINT32_MAX

const char *difference_word(enum difference_kind kind)
{
    static const char *const words[] = {"missing-host", "silent-host",    "undeclared-host",
                                        "missing-nic",  "undeclared-nic", "wrong-rail",
                                        "wrong-leaf",   "miscabled",      "no-link"};
    return words[kind];
}

void topology_view_done(struct topology_view *v)
{
    free(v->seen);
    free(v->of_nic);
    free(v->differences);
    *v = (struct topology_view){0};
}

/* NULL: out of memory; `failed` is set. */
static struct difference *add(struct topology_view *v, enum difference_kind kind, const char *host,
                              const char *nic, uint32_t id)
{
    if (v->count == v->capacity) {
        const size_t capacity = v->capacity * 2 + 16;
        struct difference *larger = realloc(v->differences, capacity * sizeof(*larger));
        if (larger == NULL) {
            v->failed = true;
            return NULL;
        }
        v->differences = larger;
        v->capacity = capacity;
    }
    struct difference *d = &v->differences[v->count++];
    *d = (struct difference){.kind = kind, .host = host, .nic = nic, .id = id};
    return d;
}

static void fill(struct difference *d, const char *declared, const char *found, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
static void fill(struct difference *d, const char *declared, const char *found, const char *format,
                 ...)
{
    va_list arguments;
    if (d == NULL) {
        return;
    }
    snprintf(d->declared, sizeof(d->declared), "%s", declared);
    snprintf(d->found, sizeof(d->found), "%s", found);
    va_start(arguments, format);
    vsnprintf(d->text, sizeof(d->text), format, arguments);
    va_end(arguments);
}

/* ---- where a NIC is seen ---- */

/* Finds the leaf to whose NICs most one-switch paths of this NIC lead. votes: one entry per leaf, all 0 before and after. */
static uint32_t see_nic(const struct controller *c, const struct topology_view *v,
                        const struct fleet_nic *nic, uint32_t *votes)
{
    const struct topology *t = &c->declared->now;
    const struct fleet_host *h = nic->host;
    const uint32_t declared = v->of_nic[nic->id] != NONE ? t->nics[v->of_nic[nic->id]].leaf : NONE;
    uint32_t seen = NONE;
    for (uint32_t pass = 0; pass < 2; pass++) { /* pass 0 counts, pass 1 clears */
        for (uint32_t k = 0; k < h->hop_count; k++) {
            const struct fabric_way *p = &h->hops[k];
            const bool known = p->local == nic->id && p->hops == 1 &&
                               fleet_find_nic(c, p->peer) != NULL && v->of_nic[p->peer] != NONE;
            const uint32_t leaf = known ? t->nics[v->of_nic[p->peer]].leaf : NONE;
            if (leaf == NONE) {
                continue;
            }
            votes[leaf] = pass == 0 ? votes[leaf] + 1 : 0;
            const uint32_t best = seen != NONE ? votes[seen] : 0;
            if (pass == 0 && (votes[leaf] > best || (votes[leaf] == best && leaf == declared))) {
                seen = leaf;
            }
        }
    }
    return seen;
}

static void see(const struct controller *c, struct topology_view *v, uint32_t *votes)
{
    for (uint32_t id = 0; id < c->nic_count; id++) {
        const struct fleet_nic *n = fleet_find_nic(c, id);
        if (n != NULL && n->host->member) {
            v->seen[id] = see_nic(c, v, n, votes);
        }
    }
}

/* ---- one after the other ---- */

static const struct topology_host *declared_host(const struct topology *t, const char *name)
{
    for (uint32_t i = 0; i < t->host_count; i++) {
        if (strcmp(t->hosts[i].name, name) == 0) {
            return &t->hosts[i];
        }
    }
    return NULL;
}

static const struct fleet_nic *nic_named(const struct controller *c, const struct fleet_host *h,
                                         const char *name)
{
    for (uint32_t i = 0; i < h->nic_count; i++) {
        if (strcmp(c->nics[h->nics[i]]->name, name) == 0) {
            return c->nics[h->nics[i]];
        }
    }
    return NULL;
}

static void compare_nic(const struct controller *c, struct topology_view *v,
                        const struct topology_nic *d, const struct fleet_nic *n)
{
    const struct topology *t = &c->declared->now;
    const char *host = n->host->name;
    const char *leaf = d->leaf != NONE ? t->leaves[d->leaf].name : "";
    char declared[24], found[24], wanted[140], heard[140];
    if (d->rail >= 0 && (uint32_t)d->rail != n->rail) {
        snprintf(declared, sizeof(declared), "rail %d", d->rail);
        snprintf(found, sizeof(found), "rail %u", n->rail);
        fill(add(v, DIFFERENCE_WRONG_RAIL, host, d->name, n->id), declared, found,
             "%s/%s is declared on %s and joined as %s: its peers are chosen for the wrong rail; "
             "foliot host remove, then join it with its NICs in the right order",
             host, d->name, declared, found);
    }
    if (d->leaf != NONE && n->leaf[0] != 0 && strcmp(n->leaf, leaf) != 0) {
        fill(add(v, DIFFERENCE_WRONG_LEAF, host, d->name, n->id), leaf, n->leaf,
             "%s/%s is declared at %s and joined as hanging on %s: one of the two is a mistake",
             host, d->name, leaf, n->leaf);
    }
    const bool said = n->neighbour[0] != 0 && d->leaf != NONE;
    const bool elsewhere = said && strcmp(n->neighbour, leaf) != 0 &&
                           topology_find(t->leaves, t->leaf_count, n->neighbour) < t->leaf_count;
    const bool other_port = said && strcmp(n->neighbour, leaf) == 0 && d->port[0] != 0 &&
                            strcmp(n->neighbour_port, d->port) != 0;
    if (elsewhere || other_port) {
        snprintf(wanted, sizeof(wanted), "%s%s%s", leaf, d->port[0] != 0 ? " port " : "", d->port);
        snprintf(heard, sizeof(heard), "%s port %s", n->neighbour, n->neighbour_port);
        fill(add(v, DIFFERENCE_MISCABLED, host, d->name, n->id), wanted, heard,
             "%s/%s is declared at %s, but the switch at its cable reports that it is %s: its "
             "cable is plugged in there",
             host, d->name, wanted, heard);
    } else if (d->leaf != NONE && !said && v->seen[n->id] != NONE && v->seen[n->id] != d->leaf) {
        const char *seen = t->leaves[v->seen[n->id]].name;
        fill(
            add(v, DIFFERENCE_MISCABLED, host, d->name, n->id), leaf, seen,
            "%s/%s is declared at %s, and one switch away from NICs of %s: suspected: its cable is "
            "plugged into %s; look there",
            host, d->name, leaf, seen, seen);
    }
    if (n->reported && n->state != FOLIOT__V1__PORT_STATE__PORT_UP &&
        n->state != FOLIOT__V1__PORT_STATE__PORT_UNKNOWN) {
        fill(add(v, DIFFERENCE_NO_LINK, host, d->name, n->id), "a link", "none",
             "%s/%s is declared%s%s%s%s and has no link; suspected: its cable or that port", host,
             d->name, leaf[0] != 0 ? " at " : "", leaf, d->port[0] != 0 ? " port " : "", d->port);
    }
}

static void compare_host(const struct controller *c, struct topology_view *v,
                         const struct topology_host *d, struct mono now)
{
    const struct topology *t = &c->declared->now;
    const struct fleet_host *h = fleet_find_host(c, d->name);
    if (h == NULL || !h->member) {
        fill(add(v, DIFFERENCE_MISSING_HOST, d->name, NULL, NONE), "a host", "no member",
             "%s is declared (line %u) and is no member: foliot-agent join", d->name, d->line);
        return;
    }
    const enum freshness f = fleet_freshness(c, h, now);
    if (f == FRESHNESS_NEVER || f == FRESHNESS_STALE) {
        fill(add(v, DIFFERENCE_SILENT_HOST, h->name, NULL, NONE), "a host", freshness_word(f),
             "%s is declared and a member, but has sent no current report", h->name);
    }
    for (uint32_t i = d->first; i < d->first + d->count; i++) {
        const struct fleet_nic *n = nic_named(c, h, t->nics[i].name);
        if (n == NULL) {
            fill(add(v, DIFFERENCE_MISSING_NIC, h->name, t->nics[i].name, NONE), "a NIC", "none",
                 "%s/%s is declared, and %s joined without it", h->name, t->nics[i].name, h->name);
        } else {
            compare_nic(c, v, &t->nics[i], n);
        }
    }
}

static void find_undeclared(const struct controller *c, struct topology_view *v)
{
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        if (!h->member) {
            continue;
        }
        if (declared_host(&c->declared->now, h->name) == NULL) {
            fill(add(v, DIFFERENCE_UNDECLARED_HOST, h->name, NULL, NONE), "nothing", "a host",
                 "%s is a member and isn't declared", h->name);
            continue;
        }
        for (uint32_t k = 0; k < h->nic_count; k++) {
            const struct fleet_nic *n = c->nics[h->nics[k]];
            if (v->of_nic[n->id] == NONE) {
                fill(add(v, DIFFERENCE_UNDECLARED_NIC, h->name, n->name, n->id), "nothing", "a NIC",
                     "%s/%s takes part and isn't declared", h->name, n->name);
            }
        }
    }
}

static void map_nics(const struct controller *c, struct topology_view *v)
{
    const struct topology *t = &c->declared->now;
    for (uint32_t i = 0; i < t->host_count; i++) {
        const struct fleet_host *h = fleet_find_host(c, t->hosts[i].name);
        for (uint32_t k = 0; h != NULL && h->member && k < t->hosts[i].count; k++) {
            const struct fleet_nic *n = nic_named(c, h, t->nics[t->hosts[i].first + k].name);
            if (n != NULL) {
                v->of_nic[n->id] = t->hosts[i].first + k;
            }
        }
    }
}

int topology_compare(const struct controller *c, struct topology_view *ret)
{
    const struct topology *t = &c->declared->now;
    struct topology_view v = {0};
    uint32_t *votes = calloc(t->leaf_count + 1, sizeof(*votes));
    v.seen = malloc((c->nic_count + 1) * sizeof(*v.seen));
    v.of_nic = malloc((c->nic_count + 1) * sizeof(*v.of_nic));
    if (votes == NULL || v.seen == NULL || v.of_nic == NULL) {
        free(votes);
        topology_view_done(&v);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < c->nic_count; i++) {
        v.seen[i] = v.of_nic[i] = NONE;
    }
    map_nics(c, &v);
    see(c, &v, votes);
    free(votes);
    for (uint32_t i = 0; i < t->host_count; i++) {
        compare_host(c, &v, &t->hosts[i], controller_mono());
    }
    if (t->host_count > 0) {
        find_undeclared(c, &v);
    }
    if (v.failed) {
        topology_view_done(&v);
        return -ENOMEM;
    }
    *ret = v;
    return 0;
}
