/* fleet_world.h: the controller's world, drawn from a seed: hosts that report, fall silent, lose cables, see dead trunks and
 * accuse each other, and controllers that take over. It drives core/fleet/fleet.h as the controller does, and compares the
 * brain's answers with the truth, by rules of its own. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct fleet_world_config {
    uint64_t seed;
    uint32_t hosts, seconds;
    uint32_t faults; /* about so many at a time */
};

struct fleet_world_result {
    uint64_t events, faults, checks;
    /* wrong answers: a state that isn't true, a healthy host shown as ill, or an ill one as well */
    uint64_t wrong;
    uint64_t doubled;   /* reported twice */
    uint64_t forgotten; /* not reported in time */
    uint64_t trace;     /* of all answers: the same seed gives the same */
    char first[160];    /* the first of these, in words */
};

struct fleet_world_result fleet_world_run(const struct fleet_world_config *config);
