/* plan.h: a plan of an audit as a host gets it from its controller: a matrix of all NICs (matrix_part.h), or tests of bandwidth
 * and of collectives (perf_offer.h).
 *
 * Each answer of the controller has a plan, the name alone of one that the host knows, or none. What another one or none comes
 * after ends. Each plan has a greater name than all before it: one that was sent again, was late or recorded begins nothing, and
 * so each is carried out once at most. A plan is for one version of the fleet's list of NICs, and begins at a fleet time to come.
 * Sans-I/O, no memory. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define PLAN_NONE     UINT32_MAX
#define PLAN_AHEAD_NS (120 * NS_PER_S)
/* So long a plan goes on without the controller's word: beats, and this. */
#define PLAN_BEATS    3
#define PLAN_QUIET_NS (2 * NS_PER_S)

/* What a host knows of itself and of the fleet. */
struct plan_host {
    uint64_t fleet_version;
    bool in_step; /* it has fleet time: now_ns */
    int64_t now_ns;
    const uint32_t *members; /* numbers of all NICs of the fleet, ascending */
    uint32_t member_count;
    const uint32_t *own; /* numbers of its own, at most HOST_NIC_MAX */
    uint32_t own_count;
};
/* Index of that number; PLAN_NONE: it is no member's; no own NIC's. */
uint32_t plan_find_member(const struct plan_host *h, uint32_t nic);
uint32_t plan_find_own(const struct plan_host *h, uint32_t nic);
/* Why this host can't begin it, in words; NULL: it can. */
const char *plan_wrong(const struct plan_host *h, uint64_t fleet_version, int64_t begin_ns);

/* All zero: it knows none. */
struct plan_hold {
    uint64_t name; /* of the plan that was taken or refused last */
    bool held;     /* it was taken, and is not over: the caller's */
    struct mono heard;
};
struct plan_heard {
    bool ends;   /* what is held */
    bool begins; /* this one: taken or refused, its name is known from now on */
};
/* The controller's answer. name: 0: it has none of this kind. whole: the plan itself, not its name alone. */
struct plan_heard plan_hear(struct plan_hold *p, uint64_t name, bool whole, struct mono now);
/* Nobody could end what is held. */
bool plan_is_alone(const struct plan_hold *p, uint32_t beat_ms, struct mono now);
