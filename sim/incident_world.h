/* incident_world.h: a fabric with black holes, as a controller hears of it: hosts report what arrives over which way, and each
 * makes something of its own of what it misses. The brain (core/brain/brain.h) weighs it with the rules that come with Foliot,
 * and has to tell one incident a fault, with its name. The judge knows the faults, and shares no rule with what it judges. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/brain/brain.h"

struct incident_world_config {
    uint64_t seed;
    uint32_t hosts, seconds;
    uint32_t faults;                     /* at once, at most */
    const struct brain_witness *witness; /* of the brain, from its birth; NULL: nobody */
};

struct incident_world_result {
    uint64_t faults, judged; /* judged: that lasted long enough */
    uint64_t incidents;
    uint64_t wrong;     /* told, and nothing of that name is at fault */
    uint64_t doubled;   /* two open ones for one fault, once it is settled */
    uint64_t forgotten; /* none with its name by then */
    uint64_t trace;     /* of all answers: the same seed has the same */
    char first[240];    /* the first of these, in words */
};

struct incident_world_result incident_world_run(const struct incident_world_config *config);
