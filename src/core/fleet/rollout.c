/* rollout.c: the canaries' verdict. */
#include "core/fleet/rollout.h"

#include <stddef.h>

#include "base/bug.h"

enum rollout_verdict rollout_judge(const struct rollout_facts *f, const char **ret_why)
{
    ASSERT(f->watch.ns >= 0 && f->confirmed <= f->hosts);
    const char *why = f->hosts == 0      ? "no canary is a member any more"
                      : f->refused > 0   ? "a canary refused it"
                      : f->restarted > 0 ? "an agent of a canary started anew"
                      : f->silent > 0    ? "a canary fell silent"
                      : f->worse > 0     ? "a canary's health got worse"
                      : f->alerted > 0   ? "an alert fires on a canary that wasn't there before"
                      : f->age.ns < f->watch.ns ? NULL
                      : f->confirmed < f->hosts ? "a canary never said that it is in force"
                                                : NULL;
    if (why != NULL) {
        *ret_why = why;
        return ROLLOUT_BAD;
    }
    return f->age.ns < f->watch.ns ? ROLLOUT_WAIT : ROLLOUT_GOOD;
}

uint32_t rollout_count(uint32_t hosts, double percent)
{
    const double exact = (double)hosts * percent / 100;
    uint32_t count = (uint32_t)exact;
    count += (double)count < exact;
    return hosts == 0 ? 0 : count < 1 ? 1 : count > hosts ? hosts : count;
}
