/* incident_nics.h: which NICs open incidents are about (incident_nics.c): collected once for an answer, as its reader may
 * see it; then a look at a NIC costs two searches in a short list. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct api_call;
struct fleet_nic;

struct incident_nic {
    uint64_t place;           /* of a NIC or a host: kind, number */
    uint64_t incident;        /* its number */
    uint32_t kind, direction; /* of the element: enum element_kind, enum finding_direction */
    uint32_t one_of;          /* 1: it is that; n: one of n that it may be */
};
struct incident_nics {
    struct incident_nic *list; /* by place; what is surer first */
    size_t count;
};

/* false: no memory. */
bool incident_nics_collect(struct api_call *call, struct incident_nics *ret);
void incident_nics_done(struct incident_nics *of);
/* That an open incident accuses, or may: the NIC, or its host. NULL: none does. */
const struct incident_nic *incident_nics_accused(const struct incident_nics *of,
                                                 const struct fleet_nic *n);
/* That is a place of any element of an open incident, or whose host is: a path's ends, too. */
bool incident_nics_named(const struct incident_nics *of, const struct fleet_nic *n);
