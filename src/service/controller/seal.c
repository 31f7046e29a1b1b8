/* seal.c: reports into chunks, fine chunks into coarser ones, and what is old goes. A few hosts each
 * second, so that nobody waits. Whatever is interrupted is found again by looking at what is there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "service/controller/series.h"

enum {
    TURNS = 120, /* each host is looked at once in so many seconds */
    EXPIRE_LIMIT = 2000,
    FOLD_MAX_VALUES = 64,
};
#define LATE_NS                                                                                    \
    (2 * 3600 * NS_PER_S) /* a host silent for so long: its last reports are sealed too */

static int64_t floor_to(int64_t value, int64_t step)
{
    return value - value % step;
}

static int first_at(void *context, int64_t at_ns, const void *body, size_t size)
{
    *(int64_t *)context = at_ns;
    return 1;
}

/* One stretch of ten minutes, if all of it has come. 1: sealed, 0: nothing to do. */
static int seal_host(struct controller *c, struct fleet_host *h, int64_t now)
{
    int64_t first = 0;
    if (now < h->sealed_ns + CONTROLLER_SEAL_NS) {
        return 0;
    }
    int r = store_reports(c->store, h->id, 0, INT64_MAX, first_at, &first);
    if (r <= 0) {
        return r;
    }
    const int64_t from = floor_to(first, CONTROLLER_SEAL_NS), to = from + CONTROLLER_SEAL_NS;
    if (h->last_at_ns < to && now < to + LATE_NS) {
        return 0;
    }
    const struct chunk_head head = {from, CONTROLLER_SLOT_NS,
                                    (uint32_t)(CONTROLLER_SEAL_NS / CONTROLLER_SLOT_NS)};
    struct series_builder builder;
    struct report_reader reader;
    builder_init(&builder, &head);
    r = reader_init(&reader, c, h, &builder);
    r = r < 0 ? r : store_reports(c->store, h->id, from, to, reader_take, &reader);
    r = r < 0 ? r : builder_encode(&builder, &c->packed);
    if (r == 0) {
        const struct store_chunk chunk = {0, h->id, from, to, c->packed.bytes, c->packed.size};
        r = store_chunk_put(c->store, &chunk);
        r = r < 0 ? r : store_sealed(c->store, h->id, to);
    }
    reader_done(&reader);
    builder_done(&builder);
    if (r == 0) {
        h->sealed_ns = to;
        c->count.sealed++;
        controller_touch(c);
    }
    return r < 0 ? r : 1;
}

/* ---- folding ---- */

static int compare_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t fold(enum fold how, int64_t *values, size_t count)
{
    double sum = 0;
    if (how == FOLD_MEDIAN || how == FOLD_MAX) {
        qsort(values, count, sizeof(values[0]), compare_value);
        return values[how == FOLD_MAX ? count - 1 : count / 2];
    }
    for (size_t i = 0; i < count; i++) {
        sum += (double)values[i];
    }
    return (int64_t)(sum / (double)count + 0.5);
}

/* A finer chunk into the builder of a coarser one. */
static int fold_chunk(void *context, int64_t from_ns, const void *body, size_t size)
{
    struct series_builder *b = context;
    struct chunk *chunk = NULL;
    int64_t values[FOLD_MAX_VALUES];
    const int r = chunk_decode(body, size, NULL, &chunk);
    if (r < 0) {
        return r == -ENOMEM ? r : 0;
    }
    const struct chunk_head *head = chunk_head(chunk);
    for (size_t i = 0; i < chunk_series_count(chunk); i++) {
        const struct chunk_series *s = chunk_series_get(chunk, i);
        for (uint32_t k = 0; k < head->slot_count;) {
            const int64_t at = head->from_ns + k * head->step_ns,
                          end = floor_to(at, b->head.step_ns) + b->head.step_ns;
            size_t count = 0;
            for (; k < head->slot_count && head->from_ns + k * head->step_ns < end; k++) {
                if (s->values[k] != CHUNK_NONE && count < FOLD_MAX_VALUES) {
                    values[count++] = s->values[k];
                }
            }
            if (count > 0) {
                builder_put(b, &s->key, at, fold(series_fold(s->key.metric), values, count));
            }
        }
    }
    chunk_free(chunk);
    return b->failed ? -ENOMEM : 0;
}

static int seen(void *context, int64_t at_ns, const void *body, size_t size)
{
    return 1;
}

/* A coarser chunk of [from, from + its length) out of finer ones, unless it is there. */
static int coarsen(struct controller *c, struct fleet_host *h, int tier, int64_t from)
{
    const struct tier *t = &series_tiers[tier];
    const int64_t to = from + t->chunk_ns;
    int r = store_chunks(c->store, tier, h->id, from, to, seen, NULL);
    if (r != 0) {
        return r < 0 ? r : 0;
    }
    const struct chunk_head head = {from, t->step_ns, (uint32_t)(t->chunk_ns / t->step_ns)};
    struct series_builder builder;
    builder_init(&builder, &head);
    r = store_chunks(c->store, tier - 1, h->id, from, to, fold_chunk, &builder);
    if (r == 0 && builder.count > 0) {
        r = builder_encode(&builder, &c->packed);
        const struct store_chunk chunk = {tier, h->id, from, to, c->packed.bytes, c->packed.size};
        r = r < 0 ? r : store_chunk_put(c->store, &chunk);
        c->count.sealed += r == 0;
        controller_touch(c);
    }
    builder_done(&builder);
    return r;
}

/* The last whole stretch of each coarser tier, and the one before it. */
static int coarsen_host(struct controller *c, struct fleet_host *h)
{
    int r = 0;
    for (int tier = 1; tier < TIER_COUNT && r == 0; tier++) {
        const int64_t length = series_tiers[tier].chunk_ns, end = floor_to(h->sealed_ns, length);
        for (int back = 2; back >= 1 && r == 0 && end >= back * length; back--) {
            r = coarsen(c, h, tier, end - back * length);
        }
    }
    return r;
}

void seal_some(struct controller *c)
{
    const int64_t now = controller_utc_ns();
    int r = 0;
    for (uint32_t n = c->host_count / TURNS + 1; n > 0 && c->host_count > 0 && r >= 0; n--) {
        struct fleet_host *h = c->hosts[c->seal_turn++ % c->host_count];
        const int64_t day = floor_to(h->sealed_ns, series_tiers[1].chunk_ns);
        int sealed = 0;
        while (sealed < 6 && (r = seal_host(c, h, now)) > 0) {
            sealed++;
        }
        if (r >= 0 && sealed > 0 && floor_to(h->sealed_ns, series_tiers[1].chunk_ns) != day) {
            r = coarsen_host(c, h);
        }
    }
    if (r < 0) {
        controller_store_failed(c, r, "a chunk of history");
    }
}

void seal_expire(struct controller *c)
{
    const int64_t now = controller_utc_ns();
    const int64_t keep[TIER_COUNT] = {c->config.keep_fine_ns, c->config.keep_middle_ns,
                                      c->config.keep_coarse_ns};
    int r = 0, gone = 0;
    if (now < c->expire_at_ns) {
        return;
    }
    for (int tier = 0; tier < TIER_COUNT && r >= 0; tier++) {
        r = store_chunks_expire(c->store, tier, now - keep[tier], EXPIRE_LIMIT);
        gone += r > 0 ? r : 0;
    }
    r = r < 0 ? r : store_events_expire(c->store, now - c->config.keep_events_ns, EXPIRE_LIMIT);
    gone += r > 0 ? r : 0;
    c->expire_at_ns = now + (gone > 0 ? 1 : 60) * NS_PER_S;
    if (r < 0) {
        controller_store_failed(c, r, "retention");
    } else if (store_dirty(c->store)) {
        controller_touch(c);
    }
}
