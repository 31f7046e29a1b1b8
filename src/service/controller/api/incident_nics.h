/* incident_nics.h: the NICs that open incidents are about. The list is made once for an answer, and has only what its reader
 * may see. Then a NIC costs two searches in a short list. */
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
    uint32_t one_of;          /* 1: it is the cause; n: it is one of n possible causes */
};
struct incident_nics {
    struct incident_nic *list; /* sorted by place, surer ones first */
    size_t count;
};

/* false: out of memory. */
bool incident_nics_collect(struct api_call *call, struct incident_nics *ret);
void incident_nics_done(struct incident_nics *of);
/* The open incident that accuses the NIC or its host, or may accuse it. NULL: none. */
const struct incident_nic *incident_nics_accused(const struct incident_nics *of,
                                                 const struct fleet_nic *n);
/* True if the NIC or its host is a place of any element of an open incident. The ends of a path count, too. */
bool incident_nics_named(const struct incident_nics *of, const struct fleet_nic *n);
