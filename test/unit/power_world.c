/* power_world.c: writes reports, cursors, events and chunks as ingest.c and compaction.c do. After each cut the file must have
 * everything that was committed, and all or nothing of the commit that was under way. */
#include "power_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/prng.h"
#include "platform/store/store.h"
#include "power_disk.h"

enum { LIVES = 50, CHUNK_REPORTS = 20 };

/* Reports are numbered 1, 2, …: report n has at_ns n and an event of its own with at_ns n, and the host's cursor is n. */
struct world {
    struct store *store, *helper;
    int64_t host, written, committed, sealed; /* numbers of reports */
    int64_t doubt; /* what `committed` is, if the commit under way got there; 0: none was */
    uint64_t prng;
    char folder[64], path[96];
    struct power_world_result *result;
};

static uint64_t draw(struct world *w, uint64_t below)
{
    w->prng = hash_u64(w->prng, 11);
    return w->prng % below;
}

static bool wrong(struct world *w, const char *what, int64_t found, int64_t expected)
{
    if (w->result->words[0] == 0) {
        snprintf(w->result->words, sizeof(w->result->words),
                 "after cut %llu: %s: %lld, expected %lld", (unsigned long long)w->result->cuts,
                 what, (long long)found, (long long)expected);
    }
    return false;
}

/* ---- writing ---- */

static int write_report(struct world *w)
{
    static uint8_t body[3000];
    char text[64];
    const int64_t n = w->written + 1;
    memset(body, (int)(n & 0xff), sizeof(body));
    snprintf(text, sizeof(text), "{\"report\":%lld}", (long long)n);
    const struct store_event event = {
        .at_ns = n, .host = w->host, .kind = "link", .word = "up", .body = text};
    int r = store_report_put(w->store, w->host, n, body, 500 + draw(w, 2500));
    r = r < 0 ? r : store_event_put(w->store, &event, NULL);
    r = r < 0 ? r : store_host_cursor(w->store, w->host, 7, (uint64_t)n);
    w->written += r == 0;
    return r;
}

/* Turns the oldest CHUNK_REPORTS reports into one chunk. */
static int seal(struct world *w)
{
    static const uint8_t body[9000] = {1};
    const int64_t from = w->sealed, to = from + CHUNK_REPORTS;
    const struct store_chunk chunk = {0, w->host, from + 1, to + 1, body, sizeof(body)};
    int r = store_chunk_put(w->store, &chunk);
    r = r < 0 ? r : store_sealed(w->store, w->host, to + 1);
    w->sealed += r == 0 ? CHUNK_REPORTS : 0;
    w->result->seals += r == 0;
    return r;
}

/* Writes something large and removes it. Its space is given back. */
static int shrink(struct world *w)
{
    static const uint8_t bulk[100000] = {1};
    int r =
        draw(w, 6) == 0 ? store_put(w->store, "bulk", bulk, draw(w, 2) == 0 ? 1 : sizeof(bulk)) : 0;
    r = r < 0 ? r : store_shrink(w->store, 4);
    w->result->given_back += r > 0 ? (uint64_t)r : 0;
    return r < 0 ? r : 0;
}

static int commit(struct world *w)
{
    w->doubt = w->written;
    const int r = store_commit(w->store);
    if (r == 0) {
        w->committed = w->written;
        w->doubt = 0;
        w->result->commits++;
    }
    return r;
}

static int transaction(struct world *w)
{
    int r = 0;
    for (uint64_t n = 1 + draw(w, 12); n > 0 && r == 0; n--) {
        r = write_report(w);
    }
    if (r == 0 && w->written - w->sealed > 3 * CHUNK_REPORTS && draw(w, 4) == 0) {
        r = seal(w);
    }
    r = r < 0 ? r : shrink(w);
    r = r < 0 ? r : commit(w);
    if (r == 0 && draw(w, 8) == 0) {
        const bool helps = draw(w, 2) == 0;
        r = store_checkpoint(helps ? w->helper : w->store);
        w->result->checkpoints += r == 0;
    }
    return r;
}

/* ---- checks ---- */

struct seen {
    int64_t first, last, count;
};

static int see_report(void *context, int64_t at_ns, const void *body, size_t size)
{
    struct seen *s = context;
    const uint8_t *bytes = body;
    s->first = s->count == 0 ? at_ns : s->first;
    if (s->count > 0 && at_ns != s->last + 1) {
        return -EBADMSG; /* one is missing, or exists twice */
    }
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != (uint8_t)at_ns) {
            return -EBADMSG;
        }
    }
    s->last = at_ns;
    s->count++;
    return 0;
}

static int see_chunk(void *context, int64_t from_ns, const void *body, size_t size)
{
    struct seen *s = context;
    if (from_ns != s->count * CHUNK_REPORTS + 1) {
        return -EBADMSG;
    }
    s->count++;
    return 0;
}

static int see_event(void *context, const struct store_event *e)
{
    struct seen *s = context;
    s->count++;
    return e->at_ns == s->count ? 0 : -EBADMSG;
}

static int see_host(void *context, const struct store_host *h)
{
    ((struct seen *)context)->last = (int64_t)h->number;
    ((struct seen *)context)->first = h->id;
    return 0;
}

static bool look(struct world *w)
{
    struct seen host = {0}, chunks = {0}, reports = {0}, events = {0};
    char words[256] = "";
    const struct store_event_filter all = {.limit = INT32_MAX};
    int r = store_check(w->store, words);
    if (r < 0) {
        snprintf(w->result->words, sizeof(w->result->words), "after cut %llu: %.180s",
                 (unsigned long long)w->result->cuts, words);
        return false;
    }
    r = store_hosts(w->store, see_host, &host);
    r = r < 0 ? r : store_chunks(w->store, 0, host.first, 0, INT64_MAX, see_chunk, &chunks);
    r = r < 0 ? r : store_reports(w->store, host.first, 0, INT64_MAX, see_report, &reports);
    r = r < 0 ? r : store_events(w->store, &all, see_event, &events);
    if (r < 0) {
        return wrong(w, "reading", r, 0);
    }
    const int64_t there = reports.count > 0 ? reports.last : chunks.count * CHUNK_REPORTS;
    if (reports.count > 0 && reports.first != chunks.count * CHUNK_REPORTS + 1) {
        return wrong(w, "the first report behind the chunks", reports.first,
                     chunks.count * CHUNK_REPORTS + 1);
    }
    if (there != host.last || events.count != there) {
        return wrong(w, "reports, while the cursor or the events say otherwise", there, host.last);
    }
    if (there != w->committed && (w->doubt == 0 || there != w->doubt)) {
        return wrong(w, "the last report", there, w->committed);
    }
    w->result->in_doubt += w->doubt != 0;
    w->result->in_doubt_kept += w->doubt != 0 && there == w->doubt && there != w->committed;
    w->host = host.first;
    w->written = w->committed = there;
    w->sealed = chunks.count * CHUNK_REPORTS;
    w->doubt = 0;
    return true;
}

/* ---- lives ---- */

static void close_all(struct world *w)
{
    store_close(w->helper);
    store_close(w->store);
    w->helper = w->store = NULL;
}

static int open_all(struct world *w)
{
    char words[256] = "";
    const struct store_options own = {.path = w->path, .create = true},
                               helper = {.path = w->path, .helper = true};
    int r = store_open(&own, &w->store, words);
    r = r < 0 ? r : store_open(&helper, &w->helper, words);
    if (r == 0) {
        store_has_helper(w->store);
    } else if (!power_disk_is_off()) {
        snprintf(w->result->words, sizeof(w->result->words), "after cut %llu: opening: %d %.150s",
                 (unsigned long long)w->result->cuts, r, words);
    }
    return r;
}

static int begin(struct world *w)
{
    const struct store_host h = {.name = "h",
                                 .state = STORE_HOST_MEMBER,
                                 .serial = "01",
                                 .serial_before = "",
                                 .pin = "",
                                 .version = "1"};
    int r = store_host_put(w->store, &h, &w->host);
    return r < 0 ? r : store_commit(w->store);
}

/* Lives until the power goes. False: an error was found. */
static bool live(struct world *w, bool first)
{
    power_disk_cut_at(1 + draw(w, draw(w, 8) == 0 ? 2000 : 150));
    int r = open_all(w);
    if (r == 0 && first) {
        power_disk_cut_at(0); /* a store that was never made would need `init` */
        r = begin(w);
        power_disk_cut_at(1 + draw(w, 300));
    }
    while (r == 0) {
        if (draw(w, 40) == 0) { /* no room for a while */
            power_disk_limit(power_disk_bytes() + draw(w, 20000));
        }
        r = transaction(w);
        if (r < 0 && !power_disk_is_off()) {
            power_disk_limit(0);
            if (r != -ENOSPC) {
                return wrong(w, "a write with the power on", r, 0);
            }
            w->result->full++;
            store_rollback(w->store);
            if (w->doubt != 0) { /* refused: it must not be there */
                w->doubt = 0;
            }
            if (!look(w)) {
                return false;
            }
            r = 0;
        }
    }
    if (!power_disk_is_off()) {
        return w->result->words[0] == 0 && wrong(w, "opening", r, 0);
    }
    return true;
}

void power_world_run(uint64_t seed, uint64_t cuts, bool lies, struct power_world_result *ret)
{
    struct world w = {.prng = seed, .result = ret, .folder = "/tmp/foliot-power-XXXXXX"};
    *ret = (struct power_world_result){0};
    if (mkdtemp(w.folder) == NULL) {
        snprintf(ret->words, sizeof(ret->words), "no folder");
        return;
    }
    snprintf(w.path, sizeof(w.path), "%s/s.db",
             w.folder); /* for the lock; everything else is on the test's disk */
    FILE *empty = fopen(w.path, "we");
    bool good = empty != NULL && fclose(empty) == 0;
    while (good && ret->cuts < cuts) {
        power_disk_install(hash_u64(seed, ret->cuts));
        power_disk_lie(lies);
        w.host = w.written = w.committed = w.sealed = w.doubt = 0;
        for (unsigned life = 0; good && life < LIVES && ret->cuts < cuts; life++) {
            good = live(&w, w.host == 0);
            power_disk_limit(0);
            close_all(&w);
            ret->cuts += good;
            if (good) {
                power_disk_restore();
                good = open_all(&w) == 0 && look(&w);
                close_all(&w);
            }
        }
        close_all(&w);
        power_disk_done();
    }
    char lock[128];
    snprintf(lock, sizeof(lock), "%s.lock", w.path);
    unlink(lock);
    unlink(w.path);
    rmdir(w.folder);
}
