/* latency.c: see latency.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "core/fleet/delay_code.h"
#include "platform/store/chunk.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/latency.h"
#include "service/controller/fleet/ways.h"

enum { RAIL_SIZE = 11 }; /* digits and a newline */

/* Sorts by leaf, host, and number ("leaf2" before "leaf10"). NICs without a known leaf come last. */
static int compare_nic(const void *a, const void *b)
{
    const struct latency_nic *x = a, *y = b;
    const int by_leaf = (x->leaf[0] == 0) != (y->leaf[0] == 0)
                            ? (x->leaf[0] == 0) - (y->leaf[0] == 0)
                            : strverscmp(x->leaf, y->leaf);
    const int by_host = by_leaf != 0 ? by_leaf : strverscmp(x->host, y->host);

    return by_host != 0 ? by_host : (x->id > y->id) - (x->id < y->id);
}

int latency_init(struct latency_matrix *m, const struct controller *c, const uint8_t *visible)
{
    *m = (struct latency_matrix){.id_count = c->nic_count};
    m->nics = calloc(c->nic_count + 1, sizeof(*m->nics));
    m->index_of = malloc((c->nic_count + 1) * sizeof(*m->index_of));
    if (m->nics == NULL || m->index_of == NULL) {
        latency_done(m);
        return -ENOMEM;
    }
    for (uint32_t id = 0; id < c->nic_count; id++) {
        const struct fleet_nic *n = fleet_find_nic(c, id);
        m->index_of[id] = UINT32_MAX;
        if (n != NULL && (visible == NULL || visible[n->host->index])) {
            struct latency_nic *copy = &m->nics[m->nic_count++];
            const char *leaf = n->leaf[0] != 0 ? n->leaf : ways_first_switch(c, n);
            copy->id = id;
            copy->rail = n->rail;
            snprintf(copy->leaf, sizeof(copy->leaf), "%s", leaf != NULL ? leaf : "");
            snprintf(copy->host, sizeof(copy->host), "%s", n->host->name);
            snprintf(copy->name, sizeof(copy->name), "%s", n->name);
        }
    }
    qsort(m->nics, m->nic_count, sizeof(*m->nics), compare_nic);
    for (uint32_t i = 0; i < m->nic_count; i++) {
        m->index_of[m->nics[i].id] = i;
    }
    return 0;
}

void latency_done(struct latency_matrix *m)
{
    free(m->nics);
    free(m->index_of);
    free(m->first);
    free(m->cells);
    *m = (struct latency_matrix){0};
}

/* ---- cells ---- */

static uint32_t index_of(const struct latency_matrix *m, uint32_t id)
{
    return id < m->id_count ? m->index_of[id] : UINT32_MAX;
}

static struct latency_cell *add_cell(struct latency_matrix *m)
{
    if (m->count == m->capacity) {
        const size_t capacity = m->capacity * 2 + 4096;
        struct latency_cell *grown = realloc(m->cells, capacity * sizeof(*grown));
        if (grown == NULL) {
            m->failed = true;
            return NULL;
        }
        m->cells = grown;
        m->capacity = capacity;
    }
    return &m->cells[m->count++];
}

static int compare_code(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* paths[0..n) belong to one NIC pair. */
static void put_pair(struct latency_matrix *m, const struct fleet_path *paths, uint32_t n,
                     bool known)
{
    const uint32_t from = index_of(m, paths[0].peer), to = index_of(m, paths[0].local);
    struct latency_cell *cell = from != UINT32_MAX && to != UINT32_MAX ? add_cell(m) : NULL;
    int32_t p50[EDGE_PATH_MAX];
    uint32_t count = 0;
    if (cell == NULL) {
        return;
    }
    *cell = (struct latency_cell){.from = from, .to = to};
    for (uint32_t i = 0; known && i < n; i++) {
        const struct fleet_path *p = &paths[i];
        if (p->p50 != DELAY_CODE_NONE && count < EDGE_PATH_MAX) {
            p50[count++] = p->p50;
        }
        if (p->p99 != DELAY_CODE_NONE && (cell->p99 == DELAY_CODE_NONE || p->p99 > cell->p99)) {
            cell->p99 = p->p99;
        }
        cell->loss_ppm = p->loss_ppm > cell->loss_ppm ? p->loss_ppm : cell->loss_ppm;
        cell->state = p->state > cell->state ? p->state : cell->state;
        cell->paths += cell->paths < UINT8_MAX;
        cell->paths_dead +=
            p->state == FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD && cell->paths_dead < UINT8_MAX;
    }
    qsort(p50, count, sizeof(p50[0]), compare_code);
    cell->p50 = count > 0 ? p50[count / 2] : DELAY_CODE_NONE;
}

void latency_add_pair(struct latency_matrix *m, const struct fleet_path *paths, uint32_t count)
{
    put_pair(m, paths, count, true);
}

/* Paths of one pair are neighbours in the list. */
static void put_paths(struct latency_matrix *m, const struct fleet_path *paths, uint32_t count,
                      bool known)
{
    for (uint32_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && paths[i + n].local == paths[i].local &&
                    paths[i + n].peer == paths[i].peer;
             n++) {
        }
        put_pair(m, paths + i, n, known);
    }
}

void latency_add_host(struct latency_matrix *m, const struct fleet_host *h, bool known)
{
    put_paths(m, h->paths, h->path_count, known);
}

/* ---- an earlier moment ---- */

struct look {
    const struct latency_moment *moment;
    int64_t best_ns, step_ns; /* begin and length of the slot of `paths`; best_ns -1: none */
    struct fleet_path *paths;
    size_t count, capacity;
};

static bool is_path(uint32_t metric)
{
    return metric == METRIC_OWD_P50 || metric == METRIC_OWD_P99 || metric == METRIC_LOSS_PPM ||
           metric == METRIC_PATH_STATE;
}

static int add_value(struct look *l, const struct chunk_key *key, int64_t value)
{
    if (l->count == l->capacity) {
        const size_t capacity = l->capacity * 2 + 1024;
        struct fleet_path *grown = realloc(l->paths, capacity * sizeof(*grown));
        if (grown == NULL) {
            return -ENOMEM;
        }
        l->paths = grown;
        l->capacity = capacity;
    }
    struct fleet_path *p = &l->paths[l->count++];
    *p = (struct fleet_path){.local = key->local, .peer = key->peer, .port = (uint16_t)key->port};
    switch (key->metric) {
    case METRIC_OWD_P50:
        p->p50 = (int32_t)value;
        break;
    case METRIC_OWD_P99:
        p->p99 = (int32_t)value;
        break;
    case METRIC_LOSS_PPM:
        p->loss_ppm = (uint32_t)value;
        break;
    default:
        p->state = (uint8_t)value;
    }
    return 0;
}

/* Takes the last slot, at or before the moment, that has any path of the host. A path that is missing in this slot was not
 * measured then, even if an earlier slot has it. */
static int take_columns(struct look *l, const struct chunk_head *head,
                        const struct chunk_series *series, size_t count)
{
    const int64_t at = l->moment->at_ns,
                  look = head->step_ns > l->moment->look_ns ? 1 : l->moment->look_ns;
    int64_t last = (at - head->from_ns) / head->step_ns, slot = -1;
    last = last < head->slot_count ? last : (int64_t)head->slot_count - 1;
    for (size_t i = 0; i < count; i++) {
        for (int64_t k = last; series[i].key.metric == METRIC_PATH_STATE && k > slot; k--) {
            slot = series[i].values[k] != CHUNK_NONE ? k : slot;
        }
    }
    const int64_t begin = head->from_ns + slot * head->step_ns;
    if (slot < 0 || begin + head->step_ns + look <= at || begin <= l->best_ns) {
        return 0;
    }
    l->best_ns = begin;
    l->step_ns = head->step_ns;
    l->count = 0;
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        if (is_path(series[i].key.metric) && series[i].values[slot] != CHUNK_NONE) {
            r = add_value(l, &series[i].key, series[i].values[slot]);
        }
    }
    return r;
}

static int each_chunk(void *context, int64_t from_ns, const void *body, size_t size)
{
    struct chunk *chunk = NULL;
    int r = chunk_decode(body, size, NULL, &chunk);
    if (r < 0) {
        return r == -ENOMEM ? r : 0; /* a damaged chunk is a gap */
    }
    const size_t count = chunk_series_count(chunk);
    r = count > 0 ? take_columns(context, chunk_head(chunk), chunk_series_get(chunk, 0), count) : 0;
    chunk_free(chunk);
    return r;
}

static int look_in_reports(struct look *l, struct store *store, const struct history_host *host)
{
    const int64_t step = CONTROLLER_SLOT_NS, at = l->moment->at_ns,
                  from = at - at % step - l->moment->look_ns, to = at - at % step + step;
    const struct chunk_head head = {from, step, (uint32_t)((to - from) / step)};
    struct series_builder builder;
    struct report_reader reader;
    builder_init(&builder, &head);
    int r = reader_init(&reader, store, host, &builder);
    r = r < 0 ? r : store_reports(store, host->id, from, to, reader_take, &reader);
    r = r < 0            ? r
        : builder.failed ? -ENOMEM
                         : take_columns(l, &head, builder.series, builder.count);
    reader_done(&reader);
    builder_done(&builder);
    return r;
}

static int compare_path(const void *a, const void *b)
{
    const struct fleet_path *x = a, *y = b;
    return x->local != y->local ? (x->local > y->local) - (x->local < y->local)
           : x->peer != y->peer ? (x->peer > y->peer) - (x->peer < y->peer)
                                : (x->port > y->port) - (x->port < y->port);
}

/* Each entry has one value of a path. Merges the entries of a path into one. */
static void join_values(struct look *l)
{
    size_t n = 0;
    qsort(l->paths, l->count, sizeof(l->paths[0]), compare_path);
    for (size_t i = 0; i < l->count; i++) {
        const struct fleet_path *p = &l->paths[i];
        if (n == 0 || compare_path(&l->paths[n - 1], p) != 0) {
            l->paths[n++] = *p;
            continue;
        }
        struct fleet_path *into = &l->paths[n - 1];
        into->p50 = into->p50 != DELAY_CODE_NONE ? into->p50 : p->p50;
        into->p99 = into->p99 != DELAY_CODE_NONE ? into->p99 : p->p99;
        into->loss_ppm |= p->loss_ppm;
        into->state |= p->state;
    }
    l->count = n;
}

int latency_read_host(struct latency_matrix *m, struct store *store,
                      const struct history_host *host, const struct latency_moment *moment)
{
    struct look l = {.moment = moment, .best_ns = -1};
    const bool old = moment->at_ns < moment->now_ns - moment->keep_fine_ns;
    const int64_t at = moment->at_ns;
    int r = store_snapshot(store);
    r = r < 0 ? r : store_chunks(store, 0, host->id, at - moment->look_ns, at + 1, each_chunk, &l);
    r = r < 0 ? r : look_in_reports(&l, store, host);
    for (int tier = 1; tier < TIER_COUNT && r >= 0 && old && l.best_ns < 0; tier++) {
        r = store_chunks(store, tier, host->id, at, at + 1, each_chunk, &l);
    }
    store_snapshot_end(store);
    if (r >= 0 && l.best_ns >= 0) {
        join_values(&l);
        put_paths(m, l.paths, (uint32_t)l.count, true);
        m->step_ns = l.step_ns > m->step_ns ? l.step_ns : m->step_ns;
    }
    free(l.paths);
    return r < 0 ? r : m->failed ? -ENOMEM : 0;
}

/* ---- order, bytes ---- */

static int compare_from(const void *a, const void *b)
{
    const struct latency_cell *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Sorts by rows in one pass. The cells are nearly sorted; there are millions, and sorting must not block the loop. */
int latency_order(struct latency_matrix *m)
{
    struct latency_cell *sorted = malloc((m->count + 1) * sizeof(*sorted));
    uint32_t *first = calloc(m->nic_count + 2, sizeof(*first));
    if (sorted == NULL || first == NULL || m->failed) {
        free(sorted);
        free(first);
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->count; i++) {
        first[m->cells[i].to + 2]++;
    }
    for (uint32_t i = 1; i <= m->nic_count; i++) {
        first[i + 1] += first[i];
    }
    for (size_t i = 0; i < m->count; i++) { /* first[row + 1]: index for the row's next cell */
        sorted[first[m->cells[i].to + 1]++] = m->cells[i];
    }
    for (uint32_t i = 0; i < m->nic_count; i++) {
        qsort(sorted + first[i], first[i + 1] - first[i], sizeof(*sorted), compare_from);
    }
    free(m->cells);
    m->cells = sorted;
    m->first = first;
    return 0;
}

static uint8_t *put_text(uint8_t *p, const char *text, char end)
{
    const size_t size = strlen(text);
    memcpy(p, text, size);
    p[size] = (uint8_t)end;
    return p + size + 1;
}

int latency_encode(const struct latency_matrix *m, int version, int64_t at_ns,
                   struct message_buffer *ret)
{
    const size_t cell_size = version == 1 ? LATENCY_CELL_SIZE : LATENCY_CELL_SIZE_2;
    size_t names = 0;
    for (uint32_t i = 0; i < m->nic_count; i++) {
        names += strlen(m->nics[i].host) + strlen(m->nics[i].name) + 2 +
                 (version > 1 ? strlen(m->nics[i].leaf) + 1 + RAIL_SIZE : 0);
    }
    const size_t size =
        LATENCY_HEAD_SIZE + 4 * (2 * (size_t)m->nic_count + 1) + cell_size * m->count + names;
    if (message_buffer_reserve(ret, size) < 0) {
        return -ENOMEM;
    }
    uint8_t *p = ret->bytes;
    memset(p, 0, LATENCY_HEAD_SIZE);
    memcpy(p, version == 1 ? "FLX1" : "FLX2", 4);
    le32_put(p + 4, m->nic_count);
    le32_put(p + 8, (uint32_t)m->count);
    le32_put(p + 12, (uint32_t)(m->step_ns / NS_PER_S));
    le64_put(p + 16, (uint64_t)at_ns);
    p += LATENCY_HEAD_SIZE;
    for (uint32_t i = 0; i < m->nic_count; i++) {
        le32_put(p + 4 * (size_t)i, m->nics[i].id);
    }
    p += 4 * (size_t)m->nic_count;
    for (uint32_t i = 0; i <= m->nic_count; i++) {
        le32_put(p + 4 * (size_t)i, m->first[i]);
    }
    p += 4 * ((size_t)m->nic_count + 1);
    for (size_t i = 0; i < m->count; i++) {
        /* column by column, so that a reader can map each column as an array */
        const struct latency_cell *cell = &m->cells[i];
        le32_put(p + 4 * i, cell->from);
        le16_put(p + 4 * m->count + 2 * i, (uint16_t)cell->p50);
        le16_put(p + 6 * m->count + 2 * i, (uint16_t)cell->p99);
        p[8 * m->count + i] = cell->state;
        if (version > 1) {
            p[9 * m->count + i] = cell->paths;
            p[10 * m->count + i] = cell->paths_dead;
        }
    }
    p += cell_size * m->count;
    char rail[RAIL_SIZE];
    for (uint32_t i = 0; i < m->nic_count; i++) {
        p = put_text(p, m->nics[i].host, '/');
        p = put_text(p, m->nics[i].name, version > 1 ? '\t' : '\n');
        if (version > 1) {
            p = put_text(p, m->nics[i].leaf, '\t');
            snprintf(rail, sizeof(rail), "%u", m->nics[i].rail);
            p = put_text(p, rail, '\n');
        }
    }
    ret->size = (size_t)(p - ret->bytes);
    return 0;
}
