/* wave.c: see wave.h. */
#include "core/fleet/wave.h"

#include <stddef.h>

#include "base/limits.h"
#include "core/fleet/delay_code.h"

static uint32_t size_of(const struct wave_plan *plan)
{
    const uint32_t fit = MEASURE_PACKET_MAX / (plan->ports * plan->packets);

    return fit < MEASURE_PAIR_MAX ? fit : MEASURE_PAIR_MAX;
}

static int64_t takes_ns(const struct wave_plan *plan, uint32_t pairs)
{
    return (int64_t)pairs * plan->ports * plan->packets * NS_PER_S / plan->rate + NS_PER_S;
}

uint32_t wave_next(struct wave_asker *a, const struct wave_plan *plan, uint32_t run,
                   struct mono now)
{
    if (a->wave == 0 && a->next < a->count) {
        const uint32_t left = a->count - a->next, most = size_of(plan);

        a->wave = left < most ? left : most;
        a->run = run;
        a->wave_sent = 0;
        a->until = mono_add(now, span_ns(takes_ns(plan, a->wave) + WAVE_PATIENCE_NS));
    }
    return a->wave;
}

void wave_on_progress(struct wave_asker *a, const struct wave_plan *plan, uint32_t packets)
{
    const uint32_t all = a->wave * plan->ports * plan->packets;

    a->wave_sent = packets < all ? packets : all;
}

void wave_on_done(struct wave_asker *a)
{
    a->next += a->wave;
    a->wave = 0;
}

void wave_give_up(struct wave_asker *a)
{
    a->next = a->count;
    a->wave = 0;
}

bool wave_is_late(const struct wave_asker *a, struct mono now)
{
    return a->wave > 0 && mono_before(a->until, now);
}

uint64_t wave_packets(const struct wave_asker *a, const struct wave_plan *plan)
{
    return (uint64_t)a->next * plan->ports * plan->packets + (a->wave > 0 ? a->wave_sent : 0);
}

struct span wave_left(const struct wave_asker *a, const struct wave_plan *plan, struct span beat)
{
    const uint32_t pairs = a->count - a->next, size = size_of(plan);
    const int64_t waves = (pairs + size - 1) / size;

    if (pairs == 0) {
        return span_ns(0);
    }
    return span_ns(takes_ns(plan, pairs) -
                   (a->wave > 0 ? (int64_t)a->wave_sent * NS_PER_S / plan->rate : 0) +
                   waves * beat.ns);
}

static int16_t code(int32_t value)
{
    return value > DELAY_CODE_MAX || value < -DELAY_CODE_MAX ? DELAY_CODE_NONE : (int16_t)value;
}

struct wave_row wave_row(const struct wave_plan *plan, const struct wave_told *told)
{
    const uint32_t sent = told->sent < plan->packets ? told->sent : plan->packets;
    const uint32_t answered = told->answered < sent ? told->answered : sent;
    const bool known = told->lost >= 0 && (uint32_t)told->lost <= sent && answered > 0;

    return (struct wave_row){.p50 = code(told->p50),
                             .p99 = code(told->p99),
                             .sent = (uint16_t)sent,
                             .answered = (uint16_t)answered,
                             .lost = known ? (uint16_t)told->lost : 0,
                             .lost_known = known,
                             .measured = sent > 0};
}

const char *wave_unfit(const struct wave_host *h)
{
    return !h->member                                        ? "it is no member any more"
           : h->freshness == FRESHNESS_NEVER || !h->reported ? "it was not heard yet"
           : h->freshness == FRESHNESS_STALE                 ? "it is silent"
           : !h->able ? "its agent is too old to measure on demand: update it"
           : !h->timed
               ? "its clock is not in step with the fleet: one-way delays would mean nothing"
               : NULL;
}
