/* compaction.c: packs reports into chunks and fine chunks into coarser ones, and deletes old data. It takes a few hosts each
 * second. A thread does the work, because a chunk of 8 NICs takes as long as fifty reports. The loop only stores the results.
 * Interrupted work is found again: the store shows what is missing. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "platform/store/chunk.h"
#include "service/controller/audit/audit.h"
#include "service/controller/audit/past.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/quota.h"
#include "service/controller/history/compaction.h"
#include "service/controller/history/series.h"
#include "service/controller/history/worker.h"

enum {
    TURNS = 120,          /* each host's turn comes once in so many seconds */
    EXPIRE_LIMIT = 200,   /* a second; 2,000 chunks at once blocked the loop for 230 ms */
    EXPIRE_AUDITS = 1000, /* rows of audits, a second */
    SHRINK_PAGES = 16,    /* a second: 11 GB a day */
    FOLD_MAX_VALUES = 64,
    WAITING_MAX = 64,  /* jobs; later turns take the rest */
    STRETCHES_MAX = 6, /* of one host in one turn */
};
#define LEAP_NS  (3600 * NS_PER_S)
#define TRIAL_NS (86400 * NS_PER_S)
#define LATE_NS                                                                                    \
    (2 * 3600 * NS_PER_S) /* after so long a silence a host's last reports are sealed, too */

static int64_t floor_to(int64_t value, int64_t step)
{
    return value - value % step;
}

static int first_at(void *context, int64_t at_ns, const void *body, size_t size)
{
    *(int64_t *)context = at_ns;
    return 1;
}

/* One stretch of time of one host, at one tier. */
struct seal_job {
    struct worker_job job;
    struct controller *c;
    struct fleet_host *h; /* hosts are never freed while the controller runs */
    struct history_host host;
    int64_t now_ns, last_at_ns, committed_at_ns;
    bool late;          /* sealed because the host is silent; reports may be missing */
    unsigned stretches; /* of this turn, with this one */
    int64_t after_ns;   /* earlier reports are sealed, perhaps not committed yet */
    int tier;
    int64_t from_ns, to_ns;
    struct message_buffer packed;
    uint64_t dropped; /* values without room in the chunk */
    bool unbuilt;     /* the chunk can't be built: the stretch is sealed without it */
    int rc;           /* 1: the chunk must be stored */
};

static void begin(struct controller *c, struct fleet_host *h, const struct seal_job *like);

/* A chunk that can't be built is this host's problem, not the store's. */
static int encode(struct seal_job *s, struct series_builder *b)
{
    s->dropped = b->dropped;
    const int r = builder_encode(b, &s->packed);
    s->unbuilt = r == -EINVAL || r == -EMSGSIZE;
    s->packed.size = s->unbuilt ? 0 : s->packed.size;
    return s->unbuilt ? 0 : r;
}

/* Builds ten minutes, if all reports of it have come and are on the disk. 1: built, 0: nothing to do. */
static int build_fine(struct seal_job *s, struct store *store)
{
    int64_t first = 0;
    int r = store_reports(store, s->host.id, s->after_ns, INT64_MAX, first_at, &first);
    if (r <= 0) {
        return r;
    }
    s->from_ns = floor_to(first, CONTROLLER_SEAL_NS);
    s->to_ns = s->from_ns + CONTROLLER_SEAL_NS;
    s->late = s->committed_at_ns < s->to_ns;
    if (s->late && s->now_ns < s->to_ns + LATE_NS) {
        return 0;
    }
    const struct chunk_head head = {s->from_ns, CONTROLLER_SLOT_NS,
                                    (uint32_t)(CONTROLLER_SEAL_NS / CONTROLLER_SLOT_NS)};
    struct series_builder builder;
    struct report_reader reader;
    builder_init(&builder, &head);
    r = reader_init(&reader, store, &s->host, &builder);
    r = r < 0 ? r : store_reports(store, s->host.id, s->from_ns, s->to_ns, reader_take, &reader);
    r = r < 0 ? r : encode(s, &builder);
    reader_done(&reader);
    builder_done(&builder);
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

/* Adds a finer chunk to the builder of a coarser one. */
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

/* Builds a coarser chunk from finer ones, unless it exists or there are no finer ones. */
static int build_coarse(struct seal_job *s, struct store *store)
{
    const struct tier *t = &series_tiers[s->tier];
    int r = store_chunks(store, s->tier, s->host.id, s->from_ns, s->to_ns, seen, NULL);
    if (r != 0) {
        return r < 0 ? r : 0;
    }
    const struct chunk_head head = {s->from_ns, t->step_ns, (uint32_t)(t->chunk_ns / t->step_ns)};
    struct series_builder builder;
    builder_init(&builder, &head);
    r = store_chunks(store, s->tier - 1, s->host.id, s->from_ns, s->to_ns, fold_chunk, &builder);
    const bool any = builder.count > 0;
    r = r < 0 || !any ? r : encode(s, &builder);
    builder_done(&builder);
    return r < 0 ? r : any && !s->unbuilt;
}

/* ---- jobs of the thread ---- */

static void run_seal(struct worker_job *job, struct store *store)
{
    struct seal_job *s = (struct seal_job *)job;
    s->rc = s->tier == 0 ? build_fine(s, store) : build_coarse(s, store);
}

/* Begins the last whole stretch of each coarser tier, and the stretch before it. */
static void begin_coarse(struct controller *c, struct fleet_host *h)
{
    for (int tier = 1; tier < TIER_COUNT; tier++) {
        const int64_t length = series_tiers[tier].chunk_ns, end = floor_to(h->sealed_ns, length);
        for (int back = 2; back >= 1 && end >= back * length; back--) {
            const struct seal_job coarse = {
                .tier = tier, .from_ns = end - back * length, .to_ns = end - (back - 1) * length};
            begin(c, h, &coarse);
        }
    }
}

static int keep(struct seal_job *s)
{
    const struct store_chunk chunk = {s->tier,  s->host.id,      s->from_ns,
                                      s->to_ns, s->packed.bytes, s->packed.size};
    int r = s->unbuilt ? 0 : store_chunk_put(s->c->store, &chunk);
    if (r == 0 && s->tier == 0) {
        r = store_sealed(s->c->store, s->host.id, s->to_ns);
    }
    if (r == 0) {
        s->c->count.sealed += !s->unbuilt;
        controller_touch(s->c);
    }
    return r;
}

static void end_fine(struct seal_job *s)
{
    struct fleet_host *h = s->h;
    const int64_t day = floor_to(h->sealed_ns, series_tiers[1].chunk_ns);
    h->sealed_ns = s->to_ns;
    if (floor_to(h->sealed_ns, series_tiers[1].chunk_ns) != day) {
        h->coarse_due = true; /* begun after the commit: the thread reads it */
    }
    if (s->stretches < STRETCHES_MAX) { /* after an outage a host has more stretches */
        const struct seal_job next = {.stretches = s->stretches, .after_ns = s->to_ns};
        begin(s->c, h, &next);
    }
}

/* Reports a gap in a host's history that the host caused itself. */
static int tell_of_gap(struct seal_job *s)
{
    char text[160];
    s->c->count.values_dropped += s->dropped;
    s->c->count.unbuilt += s->unbuilt;
    if (s->unbuilt) {
        snprintf(text, sizeof(text),
                 "a chunk of its history is larger than the limit: it is left out");
    } else if (s->dropped > 0) {
        snprintf(text, sizeof(text),
                 "it sends more series than history has room for: %llu values were not kept",
                 (unsigned long long)s->dropped);
    } else {
        return 0;
    }
    return quota_tell(s->c, s->h, "over-quota", text, QUOTA_TOLD_NS, &s->h->history_ns);
}

static void end_seal(struct worker_job *job)
{
    struct seal_job *s = (struct seal_job *)job;
    struct controller *c = s->c;
    s->h->sealing -= s->tier == 0;
    /* the host was silent and has sent a report: sealing now would lose that report */
    const bool void_now = s->late && s->h->last_at_ns != s->last_at_ns;
    if (s->rc >= 0 && !void_now && !c->store_broken) {
        const bool sealed = s->rc == 1;
        s->rc = sealed ? keep(s) : 0;
        s->rc = s->rc < 0 ? s->rc : tell_of_gap(s);
        if (s->rc == 0 && sealed && s->tier == 0) {
            end_fine(s);
        }
    }
    if (s->rc == -ENOMEM) {
        controller_say(
            LOG_WARNING,
            "host %s: out of memory for a chunk of its history; the next turn tries again",
            s->h->name);
    } else if (s->rc < 0 && s->rc != -ECANCELED) {
        controller_store_failed(c, s->rc, "a chunk of history");
    }
    message_buffer_done(&s->packed);
    free(s);
}

static void begin(struct controller *c, struct fleet_host *h, const struct seal_job *like)
{
    struct seal_job *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return; /* the next turn tries again */
    }
    *s = *like;
    s->job = (struct worker_job){.run = run_seal, .done = end_seal};
    s->c = c;
    s->h = h;
    s->host = history_host(c, h);
    s->now_ns = controller_utc_ns();
    s->last_at_ns = h->last_at_ns;
    s->committed_at_ns = h->committed_at_ns;
    s->stretches++;
    s->rc = -ECANCELED;
    h->sealing += s->tier == 0;
    worker_add(c->keeper, &s->job, false);
}

void compaction_some(struct controller *c)
{
    const int64_t now = controller_utc_ns();
    const struct seal_job fine = {0};
    for (uint32_t n = c->host_count / TURNS + 1; n > 0 && c->host_count > 0; n--) {
        if (worker_waiting(c->keeper) >= WAITING_MAX) {
            return;
        }
        struct fleet_host *h = c->hosts[c->seal_turn++ % c->host_count];
        if (!h->sealing && h->coarse_due) {
            h->coarse_due = false;
            begin_coarse(c, h);
        }
        if (!h->sealing && now >= h->sealed_ns + CONTROLLER_SEAL_NS) {
            begin(c, h, &fine);
        }
    }
}

/* A clock that is years ahead would delete history for good. So nothing is deleted for a day after the clock leapt, or if the
 * store ends long before now. */
static bool clock_is_trusted(struct controller *c, int64_t utc_ns, struct mono now)
{
    const bool first = c->expire.seen_utc_ns == 0;
    const int64_t newest = first ? store_newest_ns(c->store) : 0,
                  leapt = !first
                              ? (utc_ns - c->expire.seen_utc_ns) - mono_sub(now, c->expire.seen).ns
                          : newest != 0 ? utc_ns - newest
                                        : 0;
    c->expire.seen = now;
    c->expire.seen_utc_ns = utc_ns;
    if (leapt > (first ? TRIAL_NS : LEAP_NS) || leapt < -LEAP_NS) {
        c->expire.not_before = mono_add(now, span_ns(TRIAL_NS));
        controller_say(
            LOG_WARNING,
            "%s %lld h %s: nothing is deleted from history for a day, because the clock may be "
            "wrong",
            first ? "the store ends" : "the clock leapt",
            (long long)(llabs(leapt) / (3600 * NS_PER_S)),
            first ? (leapt > 0 ? "ago" : "ahead") : (leapt > 0 ? "on" : "back"));
    }
    return !mono_before(now, c->expire.not_before);
}

/* Only a new audit makes rows old. With 10,000 hosts a call takes 0.1 s even if nothing is deleted, so it isn't called each
 * minute. */
static int expire_audits(struct controller *c, int64_t utc_ns)
{
    if (!c->expire.audits) {
        return 0;
    }
    const int r =
        store_audit_expire(c->store, utc_ns - AUDIT_KEEP_NS, utc_ns - AUDIT_PAST_NS, EXPIRE_AUDITS);
    c->expire.audits = r < 0 || r >= EXPIRE_AUDITS;
    return r;
}

void compaction_expire(struct controller *c)
{
    const int64_t now = controller_utc_ns();
    const int64_t keep[TIER_COUNT] = {c->config.keep_fine_ns, c->config.keep_middle_ns,
                                      c->config.keep_coarse_ns};
    const struct mono mono = controller_mono();
    int r = 0, gone = 0;
    if (!clock_is_trusted(c, now, mono) || mono_before(mono, c->expire.due)) {
        return;
    }
    for (int tier = 0; tier < TIER_COUNT && r >= 0; tier++) {
        r = store_chunks_expire(c->store, tier, now - keep[tier], EXPIRE_LIMIT);
        gone += r > 0 ? r : 0;
    }
    r = r < 0 ? r : store_events_expire(c->store, now - c->config.keep_events_ns, EXPIRE_LIMIT);
    gone += r > 0 ? r : 0;
    r = r < 0 ? r : expire_audits(c, now);
    gone += r > 0 ? r : 0;
    r = r < 0 ? r : store_shrink(c->store, SHRINK_PAGES);
    gone += r > 0 ? r : 0;
    c->expire.due = mono_add(mono, span_s(gone > 0 ? 1 : 60));
    if (r < 0) {
        controller_store_failed(c, r, "retention");
    } else if (store_dirty(c->store)) {
        controller_touch(c);
    }
}
