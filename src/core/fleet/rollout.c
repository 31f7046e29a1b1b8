/* rollout.c: the canaries: chosen, watched, judged. */
#include "core/fleet/rollout.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/bug.h"
#include "base/prng.h"

#define WORSE_NS (15 * NS_PER_S) /* a short worsening is allowed: new peers, a clock that settles */

static int compare_lots(const void *a, const void *b)
{
    const struct rollout_lot *x = a, *y = b;

    return x->lot < y->lot ? -1 : x->lot > y->lot;
}

uint32_t rollout_draw(struct rollout_lot *lots, uint32_t count, uint64_t version, double percent)
{
    for (uint32_t i = 0; i < count; i++) {
        lots[i].lot = hash_u64(version, lots[i].id);
    }
    qsort(lots, count, sizeof(*lots), compare_lots);
    return rollout_count(count, percent);
}

static bool is_worse(const struct rollout_facts *facts, struct rollout_canary *k, uint8_t health,
                     struct mono now)
{
    const int64_t moment = WORSE_NS < facts->watch.ns / 3 ? WORSE_NS : facts->watch.ns / 3;

    if (k->health == HEALTH_UNKNOWN || (health != HEALTH_UNKNOWN && health <= k->health)) {
        k->worse = MONO_NEVER;
        return false;
    }
    if (k->worse.ns == MONO_NEVER.ns) {
        k->worse = now;
    }
    return mono_sub(now, k->worse).ns >= moment;
}

bool rollout_on_canary(struct rollout_facts *facts, struct rollout_canary *canary,
                       const struct rollout_host *is, struct mono now)
{
    const bool restarted = is->heard && canary->run != 0 && is->run != canary->run;
    const bool silent = is->freshness == FRESHNESS_STALE;
    const bool worse = is->judged && is_worse(facts, canary, is->health, now);

    facts->hosts++;
    facts->confirmed += canary->confirmed;
    facts->refused += is->refused;
    facts->restarted += restarted;
    facts->silent += silent;
    facts->worse += worse;
    facts->unsure += !is->judged || (!worse && canary->worse.ns != MONO_NEVER.ns);
    facts->alerted += is->alerted;
    return is->refused || restarted || silent || worse || is->alerted;
}

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
                      : f->confirmed < f->hosts ? "a canary never reported that it is in force"
                                                : NULL;
    if (why != NULL) {
        *ret_why = why;
        return ROLLOUT_BAD;
    }
    return f->age.ns < f->watch.ns || f->unsure > 0 ? ROLLOUT_WAIT : ROLLOUT_GOOD;
}

uint32_t rollout_count(uint32_t hosts, double percent)
{
    const double exact = (double)hosts * percent / 100;
    uint32_t count = (uint32_t)exact;
    count += (double)count < exact;
    return hosts == 0 ? 0 : count < 1 ? 1 : count > hosts ? hosts : count;
}
