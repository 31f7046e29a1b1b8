/* series.c: one series over a range, from all tiers and from reports that aren't sealed yet. Each value comes from the finest
 * tier that has it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "platform/store/chunk.h"
#include "service/controller/history/series.h"

#define UNSEALED_NS_MAX (26 * 3600 * NS_PER_S)

struct gather {
    const struct series_query *query;
    struct series_result *result;
    double *sums;
    uint32_t *counts;
    int8_t *tiers; /* the tier of each slot's value; TIER_COUNT: no value */
    int tier;
    int64_t covered_ns;
    struct message_buffer scratch;
};

static void add(struct gather *g, int64_t at_ns, int64_t length_ns, int64_t value)
{
    const struct series_query *q = g->query;
    for (int64_t at = at_ns; at < at_ns + length_ns; at += q->step_ns) {
        const int64_t slot = (at - g->result->from_ns) / q->step_ns;
        if (at < g->result->from_ns || slot < 0 || (size_t)slot >= g->result->count) {
            continue;
        }
        int64_t *v = &g->result->values[slot];
        if (g->tiers[slot] != g->tier) { /* the slot has a value of a coarser tier */
            g->tiers[slot] = (int8_t)g->tier;
            g->sums[slot] = 0;
            g->counts[slot] = 0;
            *v = CHUNK_NONE;
        }
        g->sums[slot] += (double)value;
        g->counts[slot]++;
        if (series_fold(q->key.metric) == FOLD_MAX) {
            *v = *v == CHUNK_NONE || value > *v ? value : *v;
        } else {
            *v = (int64_t)(g->sums[slot] / g->counts[slot] + (g->sums[slot] < 0 ? -0.5 : 0.5));
        }
    }
}

static int each_chunk(void *context, int64_t from_ns, const void *body, size_t size)
{
    struct gather *g = context;
    struct chunk_head head;
    int64_t values[CHUNK_SLOT_MAX];
    const int r = chunk_column(body, size, &g->query->key, &g->scratch, &head, values);
    if (r < 0) {
        /* -ENOENT: the chunk lacks the series; -EBADMSG: it is damaged: a gap */
        return r == -ENOMEM ? r : 0;
    }
    for (uint32_t k = 0; k < head.slot_count; k++) {
        if (values[k] != CHUNK_NONE) {
            add(g, head.from_ns + k * head.step_ns, head.step_ns, values[k]);
        }
    }
    const int64_t end = head.from_ns + head.slot_count * head.step_ns;
    g->covered_ns = end > g->covered_ns ? end : g->covered_ns;
    return 0;
}

static int gather_chunks(struct store *store, struct gather *g)
{
    const struct series_query *q = g->query;
    const bool old = q->from_ns < q->now_ns - q->keep_fine_ns;
    int64_t from = q->from_ns;
    int r = 0;
    for (int tier = TIER_COUNT - 1; tier >= 0 && r >= 0; tier--) {
        const bool fits = q->step_ns >= series_tiers[tier].step_ns;
        if (tier > 0 && !fits && !old) {
            continue;
        }
        g->tier = tier;
        g->covered_ns = 0;
        r = store_chunks(store, tier, q->host.id, from, q->to_ns, each_chunk, g);
        if (fits && g->covered_ns > from) {
            from = g->covered_ns; /* this tier is fine enough: finer ones need only the rest */
        }
    }
    return r;
}

static int first_at(void *context, int64_t at_ns, const void *body, size_t size)
{
    *(int64_t *)context = at_ns;
    return 1;
}

static int gather_reports(struct store *store, struct gather *g)
{
    const struct series_query *q = g->query;
    struct series_builder builder;
    struct report_reader reader;
    const int64_t now = q->now_ns;
    int64_t from = q->from_ns, first = now;
    /* unsealed reports are of the last hours, or of a host that was away for as long as agents keep reports */
    from = from > now - UNSEALED_NS_MAX ? from : now - UNSEALED_NS_MAX;
    int r = store_reports(store, q->host.id, from, q->to_ns, first_at, &first);
    if (r <= 0) {
        return r; /* no reports */
    }
    from = first;
    r = reader_init(&reader, store, &q->host, &builder);
    reader.only = &q->key;
    g->tier = -1;
    for (int64_t at = from - from % CONTROLLER_SEAL_NS; at < q->to_ns && at <= now && r >= 0;
         at += CONTROLLER_SEAL_NS) {
        const struct chunk_head head = {at, CONTROLLER_SLOT_NS,
                                        (uint32_t)(CONTROLLER_SEAL_NS / CONTROLLER_SLOT_NS)};
        builder_init(&builder, &head);
        r = store_reports(store, q->host.id, at, at + CONTROLLER_SEAL_NS, reader_take, &reader);
        for (size_t i = 0; i < builder.count; i++) {
            for (uint32_t k = 0; k < head.slot_count; k++) {
                if (builder.series[i].values[k] != CHUNK_NONE) {
                    add(g, at + k * head.step_ns, head.step_ns, builder.series[i].values[k]);
                }
            }
        }
        builder_done(&builder);
    }
    reader_done(&reader);
    return r;
}

int series_read(struct store *store, const struct series_query *q, struct series_result *ret)
{
    const int64_t from = q->from_ns - q->from_ns % q->step_ns;
    const size_t count = (size_t)((q->to_ns - from + q->step_ns - 1) / q->step_ns);
    struct series_result result = {from, q->step_ns, count, malloc((count + 1) * sizeof(int64_t))};
    struct gather g = {.query = q,
                       .result = &result,
                       .sums = calloc(count + 1, sizeof(double)),
                       .counts = calloc(count + 1, sizeof(uint32_t)),
                       .tiers = malloc(count + 1)};
    int r = result.values == NULL || g.sums == NULL || g.counts == NULL || g.tiers == NULL ? -ENOMEM
                                                                                           : 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        result.values[i] = CHUNK_NONE;
        g.tiers[i] = TIER_COUNT;
    }
    /* a chunk that is sealed meanwhile then counts once, not twice */
    r = r < 0 ? r : store_snapshot(store);
    r = r < 0 ? r : gather_chunks(store, &g);
    r = r < 0 ? r : gather_reports(store, &g);
    store_snapshot_end(store);
    message_buffer_done(&g.scratch);
    free(g.sums);
    free(g.counts);
    free(g.tiers);
    if (r < 0) {
        free(result.values);
        return r;
    }
    *ret = result;
    return 0;
}
