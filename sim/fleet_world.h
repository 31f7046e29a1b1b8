/* fleet_world.h: the controller's world: hosts that report, fall silent, lose cables, see dead trunks and accuse each other, and
 * controllers that take over; all of it by a seed. It drives core/fleet/fleet.h as the controller does, and judges what the brain
 * tells by the truth, with rules of its own. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct fleet_world_config {
    uint64_t seed;
    uint32_t hosts, seconds;
    uint32_t faults; /* at once, about */
};

struct fleet_world_result {
    uint64_t events, faults, checks;
    uint64_t wrong;     /* told what isn't, or a healthy host shown as ill, or an ill one as well */
    uint64_t doubled;   /* told twice */
    uint64_t forgotten; /* not told in time */
    uint64_t trace;     /* of all that was told: the same seed has the same */
    char first[160];    /* the first of these, in words */
};

struct fleet_world_result fleet_world_run(const struct fleet_world_config *config);
