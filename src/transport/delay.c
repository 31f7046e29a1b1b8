/* delay.c: the in-band one-way delay of every chunk: its path's, told apart from both hosts' own slowness.
 *
 *   posted ──► sent ───────► received ──► consumed
 *     sender's host   the network   receiver's host
 *
 * Each chunk brings "posted to sent" and the fleet time at which it was handed to the kernel; the kernel's stamp
 * of its last byte ends the network's part, the moment at which its bit was set the last. Between clocks
 * that nobody synchronised, a constant is taken off: then only differences mean something, and
 * bound_ns says so. */
#include "transport/internal.h"

#define BUCKET_NS     (5 * NS_PER_S)
#define GAIN          (1.0 / 16)
#define UNSYNCED_SEEN NS_PER_MS /* the first delay of an unsynchronised pair is called this */

static uint32_t clamp_ns(int64_t ns)
{
    return ns < 0 ? 0 : ns < UINT32_MAX - 1 ? (uint32_t)ns : UINT32_MAX - 1;
}

static void smooth(double *mean, double value, bool first)
{
    *mean = first ? value : *mean + (value - *mean) * GAIN;
}

void delay_on_chunk(struct set *set, struct mono now, uint32_t lane, const struct lane_chunk *chunk,
                    const struct io_stamp *stamp)
{
    struct lane_delay *delay = &set->delays[lane];
    const bool synced =
        chunk->sent_bound_ns != LANE_BOUND_UNKNOWN && stamp->half_ns != IO_HALF_UNKNOWN;
    const uint32_t clock = synced ? stamp->epoch | 1 : 0;
    const bool first = delay->chunks == 0;
    struct io *io = set->transport->io;
    int64_t ns = stamp->at.ns - chunk->sent.ns;

    delay->chunks++;
    delay->bytes += chunk->length;
    delay->resent += (chunk->flags & LANE_CHUNK_RESENT) != 0;
    smooth(&delay->queued_mean_ns, chunk->queued_ns, first);
    smooth(&delay->consumed_mean_ns, (double)clamp_ns(io->stamp(io).at.ns - stamp->at.ns), first);
    if (!synced) {
        if (set->unsynced_base == INT64_MIN) {
            set->unsynced_base = ns - UNSYNCED_SEEN;
        }
        ns -= set->unsynced_base;
    }
    if (first || delay->clock != clock || now.ns - delay->bucket_at.ns >= 2 * BUCKET_NS) {
        delay->floor_ns[0] = delay->floor_ns[1] = INT64_MAX;
        delay->bucket_at = now;
        delay->clock = clock;
    } else if (now.ns - delay->bucket_at.ns >= BUCKET_NS) {
        delay->floor_ns[1] = delay->floor_ns[0];
        delay->floor_ns[0] = INT64_MAX;
        delay->bucket_at = now;
    }
    delay->floor_ns[0] = ns < delay->floor_ns[0] ? ns : delay->floor_ns[0];
    delay->owd_ns = clamp_ns(ns);
    delay->owd_ns_max = delay->owd_ns > delay->owd_ns_max ? delay->owd_ns : delay->owd_ns_max;
    delay->bound_ns =
        synced ? clamp_ns((int64_t)chunk->sent_bound_ns + stamp->half_ns) : IO_HALF_UNKNOWN;
    smooth(&delay->owd_mean_ns, delay->owd_ns, first);
}

void delay_report(const struct set *set, uint32_t lane, struct lane_state_lane *ret)
{
    const struct lane_delay *delay = &set->delays[lane];
    const int64_t floor =
        delay->floor_ns[0] < delay->floor_ns[1] ? delay->floor_ns[0] : delay->floor_ns[1];

    ret->owd_ns = ret->owd_min_ns = LANE_OWD_UNKNOWN;
    if (!set->sending && delay->chunks > 0 && set->version >= 2) {
        ret->owd_ns = delay->owd_ns;
        ret->owd_min_ns = clamp_ns(floor);
    }
}
