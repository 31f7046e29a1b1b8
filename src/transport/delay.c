/* delay.c: the in-band one-way delay of every chunk: the path's part, separated from the slowness of both hosts.
 *
 *   posted ──► sent ───────► received ──► consumed
 *     sender's host   the network   receiver's host
 *
 * Each chunk carries the time from "posted" to "sent", and the fleet time at which it was handed to the kernel. The kernel's
 * stamp of its last byte ends the network's part. The moment at which the chunk's bit was set ends the last part. Between clocks
 * that are not synchronised a constant is subtracted: then only differences are meaningful, and bound_ns marks that. */
#include <stdlib.h>

#include "transport/internal.h"

#define GAIN     (1.0 / 16)
#define HALVE_NS (10 * NS_PER_S)
/* Mean, least and most are of every chunk. Quantiles, and values that need another reading of the clock, are of every seventh
 * once there are plenty: seven, so that no rhythm of messages coincides with it. */
#define SAMPLED_ALL   4096
#define SAMPLED_EVERY 7
#define UNSYNCED_SEEN NS_PER_MS /* the first delay of an unsynchronised pair gets this value */

static uint32_t clamp_ns(int64_t ns)
{
    return ns < 0 ? 0 : ns < UINT32_MAX - 1 ? (uint32_t)ns : UINT32_MAX - 1;
}

static void smooth(double *mean, double value, bool first)
{
    *mean = first ? value : *mean + (value - *mean) * GAIN;
}

static void spread_init(struct lane_spread *spread, struct mono now)
{
    spread->halved_at = now;
    for (int i = 0; i < STAGE_COUNT; i++) {
        histogram_init(&spread->stages[i].head, SPREAD_SHAPE);
    }
}

static void spread_add(struct lane_delay *delay, struct mono now, const int64_t ns[STAGE_COUNT])
{
    struct lane_spread *spread = delay->spread;

    if (spread == NULL) {
        spread = delay->spread = malloc(sizeof(*spread));
        if (spread == NULL) {
            return;
        }
        spread_init(spread, now);
    }
    if (now.ns - spread->halved_at.ns >= HALVE_NS) {
        const bool long_ago = now.ns - spread->halved_at.ns >= 4 * HALVE_NS;
        spread->halved_at = now;
        for (int i = 0; i < STAGE_COUNT; i++) {
            if (long_ago) {
                histogram_init(&spread->stages[i].head, SPREAD_SHAPE);
            } else {
                histogram_halve(&spread->stages[i].head);
            }
        }
    }
    for (int i = 0; i < STAGE_COUNT; i++) {
        histogram_add(&spread->stages[i].head, ns[i] / SPREAD_UNIT_NS);
    }
}

uint32_t lane_delay_quantile(const struct lane_delay *delay, enum lane_stage stage, double q)
{
    const int64_t units = delay->spread != NULL
                              ? histogram_quantile(&delay->spread->stages[stage].head, q)
                              : INT64_MIN;

    return units == INT64_MIN ? UINT32_MAX : clamp_ns(units * SPREAD_UNIT_NS);
}

void delay_free(struct lane_set *set)
{
    for (int i = 0; i < LANE_MAX; i++) {
        free(set->delays[i].spread);
        set->delays[i].spread = NULL;
    }
}

void delay_on_chunk(struct lane_set *set, struct mono now, uint32_t lane,
                    const struct lane_chunk *chunk, const struct io_stamp *stamp)
{
    struct lane_delay *delay = &set->delays[lane];
    const bool synced =
        chunk->sent_bound_ns != LANE_BOUND_UNKNOWN && stamp->half_ns != IO_HALF_UNKNOWN;
    const uint32_t clock = synced ? stamp->epoch | 1 : 0;
    const bool first = delay->chunks == 0;
    const bool sampled = delay->chunks < SAMPLED_ALL || delay->chunks % SAMPLED_EVERY == 0;
    int64_t ns = stamp->at.ns - chunk->sent.ns;

    delay->chunks++;
    delay->bytes += chunk->length;
    delay->resent += (chunk->flags & LANE_CHUNK_RESENT) != 0;
    smooth(&delay->queued_mean_ns, chunk->queued_ns, first);
    if (!synced) {
        /* Clocks without steering drift apart: no lane's delay may fall below the values that can be represented. */
        if (set->unsynced_base == INT64_MIN || ns - set->unsynced_base < UNSYNCED_SEEN / 4) {
            set->unsynced_base = ns - UNSYNCED_SEEN;
        }
        ns -= set->unsynced_base;
    }
    if (first || delay->clock != clock) {
        least_init(&delay->floor_ns, now);
        if (delay->spread != NULL && delay->clock != clock) {
            spread_init(delay->spread, now);
        }
        delay->clock = clock;
    }
    least_add(&delay->floor_ns, now, span_ns(DELAY_BUCKET_NS), ns);
    delay->owd_ns = clamp_ns(ns);
    delay->owd_ns_max = delay->owd_ns > delay->owd_ns_max ? delay->owd_ns : delay->owd_ns_max;
    delay->bound_ns =
        synced ? clamp_ns((int64_t)chunk->sent_bound_ns + stamp->half_ns) : IO_HALF_UNKNOWN;
    smooth(&delay->owd_mean_ns, delay->owd_ns, first);
    credit_note(set, now, lane, chunk, stamp, ns);
    if (sampled) {
        struct io *io = set->transport->io;
        const int64_t consumed_ns = clamp_ns(io->stamp(io).at.ns - stamp->at.ns);
        smooth(&delay->consumed_mean_ns, (double)consumed_ns, first);
        spread_add(delay, now, (const int64_t[]){chunk->queued_ns, delay->owd_ns, consumed_ns});
    }
}

void delay_report(const struct lane_set *set, uint32_t lane, struct lane_state_lane *ret)
{
    const struct lane_delay *delay = &set->delays[lane];

    ret->owd_ns = ret->owd_min_ns = LANE_OWD_UNKNOWN;
    if (set->ledger != NULL && delay->chunks > 0 && set->version >= 2) {
        ret->owd_ns = delay->owd_ns;
        ret->owd_min_ns = clamp_ns(least_get(&delay->floor_ns));
    }
}
