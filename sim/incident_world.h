/* incident_world.h: a fabric with black holes, as a controller hears of it: hosts report what arrives over which way, and each
 * makes something of its own of what it misses. The brain (core/brain/brain.h) weighs it with the rules that come with Foliot,
 * and has to tell one incident a fault, with its name; who only sees a fault has to be ok. Now and then some hosts try a
 * configuration, so that a recording has that too. The judge knows the faults, and shares no rule with what it judges. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/brain/brain.h"

struct incident_world_config {
    uint64_t seed;
    uint32_t hosts, seconds;
    uint32_t faults; /* at once, at most */
    bool
        turns; /* each recovers in part before it is over: one direction of it, or it loses a share from then on */
    const struct brain_witness *witness; /* of the brain, from its birth; NULL: nobody */
};

struct incident_world_result {
    uint64_t faults, judged; /* judged: that lasted long enough */
    uint64_t incidents;
    uint64_t wrong;     /* told, and nothing of that name is at fault */
    uint64_t doubled;   /* two open ones for one fault, once it is settled */
    uint64_t forgotten; /* none with its name by then */
    uint64_t anew;   /* the one that was told was over, or another one, while its fault went on */
    uint64_t unwell; /* hosts that were not ok then, and only see it */
    uint64_t trials, taken_back; /* of configurations; those that were good for nobody */
    uint64_t trace;              /* of all answers: the same seed has the same */
    char first[240];             /* the first of these, in words */
};

struct incident_world_result incident_world_run(const struct incident_world_config *config);
