/* pacing.h: a token bucket: how much may leave now, for a lane or a queue pair. Plain struct; rate in bytes per ns, 0: no
 * limit. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

struct pacing {
    double rate;
    double credit; /* in bytes; may be negative by one chunk */
    double burst;
    struct mono at;
};

/* burst: bytes that may leave at once after a pause, >= one chunk. */
void pacing_init(struct pacing *p, struct mono now, double rate, double burst);
void pacing_rate(struct pacing *p, struct mono now, double rate);
/* So much was sent, allowed or not: it is paid back before anything else is sent. */
void pacing_spend(struct pacing *p, struct mono now, uint32_t bytes);
/* True: send `bytes` (they are subtracted). False: not before pacing_deadline. */
bool pacing_take(struct pacing *p, struct mono now, uint32_t bytes);
struct mono pacing_deadline(const struct pacing *p, struct mono now);
