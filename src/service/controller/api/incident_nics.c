/* incident_nics.c: the NICs that open incidents are about, by the places of their elements. */
#include "service/controller/api/incident_nics.h"

#include <stdlib.h>

#include "service/controller/api/api.h"
#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"

static uint64_t key_of(uint32_t place_kind, uint32_t number)
{
    return (uint64_t)place_kind << 32 | number;
}

static bool accuses(const struct incident_nic *i)
{
    return i->kind == ELEMENT_NIC || i->kind == ELEMENT_HOST;
}

static void add(struct incident_nics *to, const struct alert_incident *i, const struct element *e,
                uint32_t one_of)
{
    const struct place *places[] = {&e->a, &e->b};
    for (size_t k = 0; k < ARRAY_COUNT(places); k++) {
        if (places[k]->kind == PLACE_NIC || places[k]->kind == PLACE_HOST) {
            to->list[to->count++] =
                (struct incident_nic){.place = key_of(places[k]->kind, places[k]->number),
                                      .incident = i->id,
                                      .kind = e->kind,
                                      .direction = e->direction,
                                      .one_of = one_of};
        }
    }
}

/* Sorts by place. At one place those that accuse come first, of those the surest, of those the oldest. */
static int compare(const void *x, const void *y)
{
    const struct incident_nic *a = x, *b = y;
    return a->place != b->place       ? (a->place < b->place ? -1 : 1)
           : accuses(a) != accuses(b) ? (accuses(a) ? -1 : 1)
           : a->one_of != b->one_of   ? (a->one_of < b->one_of ? -1 : 1)
                                      : (a->incident > b->incident) - (a->incident < b->incident);
}

bool incident_nics_collect(struct api_call *call, struct incident_nics *ret)
{
    const struct alerts *engine = alerting_engine(call->c->alerting);
    struct alert_incident i;
    size_t open = 0;
    *ret = (struct incident_nics){0};
    for (size_t cursor = 0; alerts_next_incident(engine, &cursor, &i);) {
        open += alerting_is_open(&i);
    }
    if (open == 0) {
        return true;
    }
    ret->list = calloc(open, 2 * (1 + ELEMENT_ONE_OF) * sizeof(*ret->list));
    if (ret->list == NULL) {
        return false;
    }
    for (size_t cursor = 0; alerts_next_incident(engine, &cursor, &i);) {
        if (alerting_is_open(&i) && scope_sees_incident(call, &i)) {
            add(ret, &i, &i.element, 1);
            for (uint32_t k = 0; k < i.choice.count; k++) {
                add(ret, &i, &i.choice.one_of[k], i.choice.total);
            }
        }
    }
    qsort(ret->list, ret->count, sizeof(*ret->list), compare);
    return true;
}

void incident_nics_done(struct incident_nics *of)
{
    free(of->list);
    *of = (struct incident_nics){0};
}

/* The first entry at a place. */
static const struct incident_nic *find(const struct incident_nics *of, uint64_t place)
{
    size_t low = 0, high = of->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (of->list[middle].place < place) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < of->count && of->list[low].place == place ? &of->list[low] : NULL;
}

const struct incident_nic *incident_nics_accused(const struct incident_nics *of,
                                                 const struct fleet_nic *n)
{
    const struct incident_nic *own = find(of, key_of(PLACE_NIC, n->id)),
                              *hosts = find(of, key_of(PLACE_HOST, n->host->index));
    const bool by_own = own != NULL && accuses(own), by_host = hosts != NULL && accuses(hosts);
    return by_own && by_host ? (hosts->one_of < own->one_of ? hosts : own)
           : by_own          ? own
           : by_host         ? hosts
                             : NULL;
}

bool incident_nics_named(const struct incident_nics *of, const struct fleet_nic *n)
{
    return find(of, key_of(PLACE_NIC, n->id)) != NULL ||
           find(of, key_of(PLACE_HOST, n->host->index)) != NULL;
}
