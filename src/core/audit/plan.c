/* plan.c: see plan.h. */
#include "core/audit/plan.h"

#include <stddef.h>

uint32_t plan_find_member(const struct plan_host *h, uint32_t nic)
{
    uint32_t low = 0, high = h->member_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (h->members[middle] < nic) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < h->member_count && h->members[low] == nic ? low : PLAN_NONE;
}

uint32_t plan_find_own(const struct plan_host *h, uint32_t nic)
{
    uint32_t i = 0;
    while (i < h->own_count && h->own[i] != nic) {
        i++;
    }
    return i < h->own_count ? i : PLAN_NONE;
}

const char *plan_wrong(const struct plan_host *h, uint64_t fleet_version, int64_t begin_ns)
{
    return fleet_version != h->fleet_version
               ? "it is for another version of the fleet's list than this host has"
           : !h->in_step                          ? "this host has no fleet time"
           : begin_ns <= h->now_ns                ? "it has begun already"
           : begin_ns - PLAN_AHEAD_NS > h->now_ns ? "it begins too far ahead"
                                                  : NULL;
}

struct plan_heard plan_hear(struct plan_hold *p, uint64_t name, bool whole, struct mono now)
{
    const struct plan_heard heard = {.ends = p->held && name != p->name,
                                     .begins = whole && name > p->name};
    p->heard = now;
    p->name = heard.begins ? name : p->name;
    return heard;
}

bool plan_is_alone(const struct plan_hold *p, uint32_t beat_ms, struct mono now)
{
    return p->held &&
           mono_sub(now, p->heard).ns > (int64_t)PLAN_BEATS * beat_ms * NS_PER_MS + PLAN_QUIET_NS;
}
