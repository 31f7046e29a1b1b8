/* claim.h: a finding that a host reports: it is checked, and its sentence is written again by the controller.
 *
 * A host may report only what it can observe: its own NICs, paths that end at it, another host's clock. The text that it sends
 * is not shown. People read the controller's sentence. It has the reported numbers, names that the controller knows, and the
 * name of the reporting host. */
#pragma once
#include "core/finding/element.h"
#include "service/controller/controller.h"

struct claim {
    /* as reported, but all of its texts are the controller's (in this struct or static) */
    Foliot__V1__Finding finding;
    struct element element;                   /* the suspect; hosts by their index */
    struct element_choice choice;             /* if the suspect is unknown: what it may be */
    char what[256], suspect[160], text[1024]; /* text: the whole sentence */
};

/* since_ns: on the controller's clock. false: this host may not report such a finding. */
MUST_CHECK bool claim_take(const struct controller *c, const struct fleet_host *h,
                           const Foliot__V1__Event *said, int64_t since_ns, struct claim *ret);
/* Writes an object with the fleet's names. */
void claim_put_named(const struct controller *c, struct json_writer *j, const struct element *e);
/* Writes "element", "one_of" and "others" with the fleet's names, and "fault". */
void claim_put_element(const struct controller *c, struct json_writer *j,
                       const struct claim *claim);
