/* sandwich.c: converts CLOCK_REALTIME stamps to CLOCK_MONOTONIC_RAW, with the sandwiches around them. */
#include "platform/timestamp/source.h"

#include <stdlib.h>

enum {
    /* how much REALTIME's rate against RAW may change between two sandwiches */
    SLEW_PPM = 500,
    AHEAD_NS = 20 * 1000 * 1000, /* a stamp may be this much after the last sandwich */
};

static const struct sandwich *nth_last(const struct sandwich_ring *ring, uint64_t n)
{
    return &ring->ring[(ring->count - 1 - n) % SANDWICH_RING];
}

/* Rate of REALTIME against RAW between two sandwiches, minus 1. */
static double rate_between(const struct sandwich *a, const struct sandwich *b)
{
    const int64_t raw = b->raw_ns - a->raw_ns;
    return raw <= 0 ? 0 : (double)(b->realtime_ns - a->realtime_ns - raw) / (double)raw;
}

void sandwich_add(struct sandwich_ring *ring, const struct sandwich *s)
{
    ring->jump_ns = 0;
    if (ring->count > 0) {
        const struct sandwich *last = nth_last(ring, 0);
        const int64_t elapsed = s->raw_ns - last->raw_ns;
        const int64_t jump = s->realtime_ns - last->realtime_ns - elapsed;
        /* a slew of 10 % is allowed (adjtimex tick); more is a step */
        if (llabs(jump) > SANDWICH_JUMP_NS + elapsed / 10) {
            ring->jump_ns = jump;
            ring->count = 0; /* earlier stamps can't be converted any more */
        }
    }
    ring->ring[ring->count++ % SANDWICH_RING] = *s;
}

bool sandwich_convert(const struct sandwich_ring *ring, int64_t realtime_ns, int64_t *ret_raw_ns,
                      uint32_t *ret_error_ns)
{
    const uint64_t kept = ring->count < SANDWICH_RING ? ring->count : SANDWICH_RING;
    if (kept == 0) {
        return false;
    }
    const struct sandwich *after = nth_last(ring, 0);
    int64_t distance = realtime_ns - after->realtime_ns;
    if (distance >= 0 || kept == 1) { /* outside: only the rate at the last sandwich is used */
        if (llabs(distance) > AHEAD_NS) {
            return false;
        }
        *ret_raw_ns = after->raw_ns + distance;
        *ret_error_ns = (uint32_t)(after->width_ns / 2 + llabs(distance) * SLEW_PPM / 1000000 + 1);
        return true;
    }
    uint64_t n = 1;
    const struct sandwich *before = nth_last(ring, n);
    while (before->realtime_ns > realtime_ns) {
        if (++n >= kept) {
            return false; /* too old */
        }
        after = before;
        before = nth_last(ring, n);
    }
    const double rate = rate_between(before, after);
    const double change =
        n + 1 < kept ? rate - rate_between(nth_last(ring, n + 1), before) : SLEW_PPM * 1e-6;
    const int64_t from_after = after->realtime_ns - realtime_ns;
    const int64_t from_before = realtime_ns - before->realtime_ns;
    const int64_t nearest = from_after < from_before ? from_after : from_before;
    const int64_t width = after->width_ns > before->width_ns ? after->width_ns : before->width_ns;
    /* starts from the nearer end: so the doubles stay small, and a wide sandwich that is far away has least effect */
    if (from_after < from_before) {
        *ret_raw_ns = after->raw_ns - from_after + (int64_t)((double)from_after * rate);
    } else {
        *ret_raw_ns = before->raw_ns + from_before - (int64_t)((double)from_before * rate);
    }
    *ret_error_ns =
        (uint32_t)(width / 2 + 1 + (int64_t)((change < 0 ? -change : change) * (double)nearest));
    return true;
}
