/* incident_world.h: a fabric with black holes, as a controller sees it: hosts report which packets arrive over which way, and
 * guess elements from those that they miss. The brain (core/brain/brain.h) weighs that by Foliot's built-in rules. It must open
 * one incident for each fault, with its name, and a host that only sees a fault must be ok. Now and then some hosts try a
 * configuration, so that a recording has that, too. The judge has the true faults, and shares no rule with the brain. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/brain/brain.h"

struct incident_world_config {
    uint64_t seed;
    uint32_t hosts, seconds;
    uint32_t faults; /* the most at once */
    /* each fault recovers in part before it is over: in one direction, or it loses only a share from then on */
    bool turns;
    const struct brain_witness *witness; /* for the brain, from its start; NULL: none */
};

struct incident_world_result {
    uint64_t faults, judged; /* judged: faults that lasted long enough */
    uint64_t incidents;
    uint64_t wrong;     /* incidents without a fault of that name */
    uint64_t doubled;   /* two open incidents for one fault, once it is settled */
    uint64_t forgotten; /* faults without an incident of their name by then */
    uint64_t anew;      /* the fault's incident was over, or another one, while the fault lasted */
    uint64_t unwell;    /* hosts that were not ok then, and only see the fault */
    uint64_t trials, taken_back; /* of configurations; those with the verdict ROLLOUT_BAD */
    uint64_t trace;              /* over all answers: equal seeds have equal values */
    char first[240];             /* the first violation, in words */
};

struct incident_world_result incident_world_run(const struct incident_world_config *config);
