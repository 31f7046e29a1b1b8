/* pacing.c: see pacing.h. */
#include "core/traffic/pacing.h"

void pacing_init(struct pacing *p, struct mono now, double rate, double burst)
{
    *p = (struct pacing){.rate = rate, .burst = burst, .credit = burst, .at = now};
}

static double credit_at(const struct pacing *p, struct mono now)
{
    const int64_t ns = mono_sub(now, p->at).ns;
    const double credit = p->credit + (ns > 0 ? p->rate * (double)ns : 0);

    return credit < p->burst ? credit : p->burst;
}

void pacing_rate(struct pacing *p, struct mono now, double rate)
{
    p->credit = credit_at(p, now);
    p->at = now;
    p->rate = rate;
}

void pacing_spend(struct pacing *p, struct mono now, uint32_t bytes)
{
    p->credit = credit_at(p, now) - (p->rate > 0 ? bytes : 0);
    p->at = now;
}

bool pacing_take(struct pacing *p, struct mono now, uint32_t bytes)
{
    if (p->rate <= 0) {
        return true;
    }
    p->credit = credit_at(p, now);
    p->at = now;
    if (p->credit <= 0) {
        return false;
    }
    /* it may fall below zero by less than one chunk, which is paid back before the next one */
    p->credit -= bytes;
    return true;
}

struct mono pacing_deadline(const struct pacing *p, struct mono now)
{
    const double credit = p->rate > 0 ? credit_at(p, now) : 1;

    return credit > 0 ? now : mono_add(now, span_ns((int64_t)(-credit / p->rate) + 1));
}
