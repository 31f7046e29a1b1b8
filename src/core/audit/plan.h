/* plan.h: a plan of an audit as the controller sends it to a host: a matrix of all NICs (matrix_part.h), or tests of bandwidth
 * and of collectives (perf_offer.h).
 *
 * Each answer of the controller has a plan, or only the name of a plan that the host knows, or none. If it has another one or
 * none, the present plan ends. Each plan has a greater name than all before it. So a plan that was sent again, delayed or
 * recorded begins nothing: each is carried out at most once. A plan is for one version of the fleet's list of NICs, and begins at
 * a fleet time in the future. Sans-I/O, no memory. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define PLAN_NONE     UINT32_MAX
#define PLAN_AHEAD_NS (120 * NS_PER_S)
/* A plan goes on without the controller for this long, besides the beats. */
#define PLAN_BEATS    3
#define PLAN_QUIET_NS (2 * NS_PER_S)

/* A host's facts about itself and the fleet. */
struct plan_host {
    uint64_t fleet_version;
    bool in_step; /* it has fleet time: now_ns is valid */
    int64_t now_ns;
    const uint32_t *members; /* numbers of all NICs of the fleet, ascending */
    uint32_t member_count;
    const uint32_t *own; /* its own numbers, at most HOST_NIC_MAX */
    uint32_t own_count;
};
/* The index of that number; PLAN_NONE: no member has it; no own NIC has it. */
uint32_t plan_find_member(const struct plan_host *h, uint32_t nic);
uint32_t plan_find_own(const struct plan_host *h, uint32_t nic);
/* The reason why this host can't begin it, in words; NULL: it can. */
const char *plan_wrong(const struct plan_host *h, uint64_t fleet_version, int64_t begin_ns);

/* All zero: no plan is known. */
struct plan_hold {
    uint64_t name; /* of the plan that was taken or refused last */
    bool held;     /* the caller sets it: the plan was taken, and is not over */
    struct mono heard;
};
struct plan_heard {
    bool ends;   /* the plan that is held ends */
    bool begins; /* this plan begins: taken or refused, its name is known from now on */
};
/* The controller's answer. name: 0: there is no plan of this kind. whole: the answer has the plan itself, not only its name. */
struct plan_heard plan_hear(struct plan_hold *p, uint64_t name, bool whole, struct mono now);
/* No controller could end the plan that is held. */
bool plan_is_alone(const struct plan_hold *p, uint32_t beat_ms, struct mono now);
