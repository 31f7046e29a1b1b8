/* drift.c: bounds of a clock's offset over seconds, and the rates that fit between them. */
#include "core/clock/drift.h"

#include <math.h>
#include <string.h>

#define SLOT_NS 1000000000LL
#define SETTLED 3    /* in slots; until then the rate is computed at each call */
#define APART_S 0.02 /* bounds that are closer in time show nothing */

void drift_init(struct drift *d)
{
    memset(d, 0, sizeof(*d));
    d->low = -DRIFT_MOST;
    d->high = DRIFT_MOST;
}

/* Compares two bounds of one second along the rate as far as it is known. Any choice gives a valid bound. */
static bool tighter(const struct drift *d, const struct drift_bound *was, int64_t at_ns,
                    int64_t phi_ns, bool upper)
{
    const double along = (d->low + d->high) / 2 * (double)(at_ns - was->at_ns);
    const double more = (double)(phi_ns - was->phi_ns) - along;

    return upper ? more < 0 : more > 0;
}

void drift_add(struct drift *d, int64_t at_ns, int64_t phi_ns, bool upper)
{
    const int64_t slot = at_ns / SLOT_NS;
    const int index = (int)((uint64_t)slot % DRIFT_SLOTS);

    if (slot < d->slots[index].slot && (d->slots[index].upper.seen || d->slots[index].lower.seen)) {
        return;
    }
    if (d->slots[index].slot != slot) {
        memset(&d->slots[index], 0, sizeof(d->slots[index]));
        d->slots[index].slot = slot;
    }
    struct drift_bound *b = upper ? &d->slots[index].upper : &d->slots[index].lower;
    if (!b->seen || tighter(d, b, at_ns, phi_ns, upper)) {
        *b = (struct drift_bound){at_ns, phi_ns, true};
    }
}

static void narrow(struct drift *d, const struct drift_bound *upper,
                   const struct drift_bound *lower)
{
    const double apart = (double)(upper->at_ns - lower->at_ns);

    if (!upper->seen || !lower->seen || fabs(apart) < APART_S * 1e9) {
        return;
    }
    /* phi(upper) - phi(lower) <= the difference of the bounds */
    const double rate = (double)(upper->phi_ns - lower->phi_ns) / apart;
    if (apart > 0) {
        d->high = fmin(d->high, rate);
    } else {
        d->low = fmax(d->low, rate);
    }
}

bool drift_judge(struct drift *d, int64_t now_ns, double change)
{
    const int64_t slot = now_ns / SLOT_NS;

    if (d->filled >= SETTLED && d->judged == slot) {
        return true;
    }
    d->judged = slot;
    d->filled = 0;
    d->low = -DRIFT_MOST;
    d->high = DRIFT_MOST;
    for (int i = 0; i < DRIFT_SLOTS; i++) {
        if (d->slots[i].slot <= slot - DRIFT_SLOTS) {
            memset(&d->slots[i], 0, sizeof(d->slots[i]));
        }
        d->filled += d->slots[i].upper.seen && d->slots[i].lower.seen;
    }
    for (int i = 0; i < DRIFT_SLOTS; i++) {
        for (int k = 0; k < DRIFT_SLOTS; k++) {
            narrow(d, &d->slots[i].upper, &d->slots[k].lower);
        }
    }
    if (d->low - d->high > 2 * change) {
        drift_init(d);
        return false;
    }
    return true;
}
