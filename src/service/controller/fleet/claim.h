/* claim.h: a finding as a host reports it, checked, and put into our own words.
 *
 * A host may report only what it can observe: its own NICs, paths of which it is one end, another host's clock. What it
 * writes isn't shown: people read our sentence, out of its numbers and of names that we know, and who reported it. */
#pragma once
#include "core/finding/element.h"
#include "service/controller/controller.h"

struct claim {
    Foliot__V1__Finding finding;  /* as reported; every text of it ours, in here or static */
    struct element element;       /* the suspect, its hosts by their index */
    struct element_choice choice; /* of an unknown one: what it may be */
    char what[256], suspect[160], text[1024]; /* text: the whole sentence */
};

/* since_ns: on our clock. false: it isn't the host's to report. */
MUST_CHECK bool claim_take(const struct controller *c, const struct fleet_host *h,
                           const Foliot__V1__Event *said, int64_t since_ns, struct claim *ret);
/* An object, with the fleet's names. */
void claim_put_named(const struct controller *c, struct json_writer *j, const struct element *e);
/* "element", "one_of" and "others", with the fleet's names; "fault". */
void claim_put_element(const struct controller *c, struct json_writer *j,
                       const struct claim *claim);
