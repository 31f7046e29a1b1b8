/* incident_world.h: a fabric with black holes, from a controller's view: hosts report the packets that arrive on each path,
 * and each host suspects an element of its own. The brain (core/brain/brain.h) judges the reports with the rules that come
 * with Foliot. It must report one incident for each fault, with the fault's name. A host that only observes a fault must be
 * ok. Now and then some hosts try a configuration, so that recordings contain that, too. The judge has the faults, and shares
 * no rule with the brain. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/brain/brain.h"

struct incident_world_config {
    uint64_t seed;
    uint32_t hosts, seconds;
    uint32_t faults;                     /* at most so many at a time */
    const struct brain_witness *witness; /* a witness of the brain from its start; NULL: none */
};

struct incident_world_result {
    uint64_t faults, judged; /* judged: those that lasted long enough */
    uint64_t incidents;
    uint64_t wrong;              /* incidents that name an element without a fault */
    uint64_t doubled;            /* faults with two open incidents, once they have settled */
    uint64_t forgotten;          /* faults without an incident of their name by then */
    uint64_t unwell;             /* hosts that only observe the fault, and were not ok then */
    uint64_t trials, taken_back; /* of configurations; those that were bad for all */
    uint64_t trace;              /* of all answers: the same seed gives the same */
    char first[240];             /* the first of these, in words */
};

struct incident_world_result incident_world_run(const struct incident_world_config *config);
