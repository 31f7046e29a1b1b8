/* credit.c: see credit.h. */
#include "core/traffic/credit.h"

#define BIN_NS    (10 * NS_PER_MS)
#define BUCKET_NS (5 * NS_PER_S)
#define OFF_NS    (100 * NS_PER_MS) /* limits stay that long after queues are gone */

void credit_init(struct credit *c, struct mono now, double link_bytes_per_ns)
{
    *c = (struct credit){.rate_max = link_bytes_per_ns,
                         .rate_known = link_bytes_per_ns > 0,
                         .bin_at = now,
                         .bucket_at = now,
                         .queued_at = now};
}

void credit_on_received(struct credit *c, struct mono now, uint32_t bytes)
{
    const int64_t ns = mono_sub(now, c->bin_at).ns;

    c->bytes += bytes;
    if (ns < BIN_NS) {
        return;
    }
    if (mono_sub(now, c->bucket_at).ns >= BUCKET_NS) {
        c->bins[1] = c->bins[0];
        c->bins[0] = 0;
        c->bucket_at = now;
    }
    const double rate = (double)c->bytes / (double)ns;
    c->bins[0] = rate > c->bins[0] ? rate : c->bins[0];
    if (!c->rate_known) {
        c->rate_max = c->bins[0] > c->bins[1] ? c->bins[0] : c->bins[1];
    }
    c->bytes = 0;
    c->bin_at = now;
}

void credit_on_senders(struct credit *c, struct mono now, uint32_t active, struct span rtt,
                       bool queued)
{
    c->active = active;
    c->rtt_floor_ns = rtt.ns > 0 ? rtt.ns : c->rtt_floor_ns;
    if (queued && active > 1) {
        c->on = true;
        c->queued_at = now;
    } else if (active <= 1 || mono_sub(now, c->queued_at).ns >= OFF_NS) {
        c->on = false;
    }
}

uint64_t credit_window(const struct credit *c, uint32_t chunk)
{
    const double share =
        c->active > 0 ? 2 * c->rate_max * (double)c->rtt_floor_ns / (double)c->active : 0;

    if (!c->on || c->rate_max <= 0) {
        return CREDIT_UNLIMITED;
    }
    return share > 2.0 * chunk ? (uint64_t)share : 2ULL * chunk;
}
