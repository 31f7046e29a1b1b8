/* builder.c: builds columns from reports. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/fleet/delay_code.h"
#include "platform/store/chunk.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/history/series.h"

enum { READER_ARENA = 6 << 20, SERIES_MAX = 65536 };

const struct tier series_tiers[TIER_COUNT] = {
    {CONTROLLER_SLOT_NS, CONTROLLER_SEAL_NS},
    {300 * NS_PER_S, 86400 * NS_PER_S},
    {3600 * NS_PER_S, 16 * 86400 * NS_PER_S},
};

enum fold series_fold(uint32_t metric)
{
    switch (metric) {
    case METRIC_OWD_P50:
    case METRIC_PORT_SPEED:
        return FOLD_MEDIAN;
    case METRIC_LOSS_PPM:
    case METRIC_AGENT_CPU_PPM:
    case METRIC_AGENT_STAMPS_MISSING:
    case METRIC_PORT_RX_BPS:
    case METRIC_PORT_TX_BPS:
        return FOLD_MEAN;
    default: /* the worst of states, bounds and tails; the last of counters */
        return FOLD_MAX;
    }
}

void builder_init(struct series_builder *b, const struct chunk_head *head)
{
    *b = (struct series_builder){.head = *head};
}

void builder_done(struct series_builder *b)
{
    for (size_t i = 0; i < b->count; i++) {
        free(b->series[i].values);
    }
    free(b->series);
    hash_index_done(&b->table);
    *b = (struct series_builder){0};
}

static uint64_t hash_of(const struct chunk_key *k)
{
    return hash_u64(((uint64_t)k->metric << 32) | k->local, ((uint64_t)k->peer << 32) | k->port);
}

static struct chunk_series *find(const struct series_builder *b, const struct chunk_key *k)
{
    for (uint32_t at = hash_index_first(&b->table, hash_of(k)), i;
         (i = hash_index_entry(&b->table, at)) != HASH_INDEX_NONE;
         at = hash_index_next(&b->table, at)) {
        if (chunk_key_compare(&b->series[i].key, k) == 0) {
            return &b->series[i];
        }
    }
    return NULL;
}

static bool grow(struct series_builder *b)
{
    const size_t capacity = b->capacity * 2 + 512;
    struct chunk_series *series = realloc(b->series, capacity * sizeof(*series));
    if (series == NULL) {
        return false;
    }
    b->series = series;
    b->capacity = capacity;
    if (hash_index_room(&b->table, capacity) < 0) {
        return false;
    }
    for (size_t i = 0; i < b->count; i++) {
        hash_index_put(&b->table, hash_of(&b->series[i].key), (uint32_t)i);
    }
    return true;
}

/* The number of series of a NIC or of the host. NULL: too many others have series. */
static uint32_t *count_of(struct series_builder *b, uint32_t local)
{
    uint32_t i = 0;
    while (i < b->local_count && b->locals[i] != local) {
        i++;
    }
    if (i == CHUNK_SECTION_MAX) {
        return NULL;
    }
    if (i == b->local_count) {
        b->locals[b->local_count++] = local;
    }
    return &b->counts[i];
}

void builder_put(struct series_builder *b, const struct chunk_key *key, int64_t at_ns,
                 int64_t value)
{
    const int64_t slot = (at_ns - b->head.from_ns) / b->head.step_ns;
    if (at_ns < b->head.from_ns || slot >= b->head.slot_count || b->failed) {
        return;
    }
    struct chunk_series *series = find(b, key);
    if (series == NULL) {
        uint32_t *count = count_of(b, key->local);
        if (count == NULL || *count == CHUNK_SERIES_MAX || b->count == SERIES_MAX) {
            b->dropped++;
            return;
        }
        if (b->count == b->capacity && !grow(b)) {
            b->failed = true;
            return;
        }
        int64_t *values = malloc(b->head.slot_count * sizeof(*values));
        if (values == NULL) {
            b->failed = true;
            return;
        }
        for (uint32_t i = 0; i < b->head.slot_count; i++) {
            values[i] = CHUNK_NONE;
        }
        series = &b->series[b->count];
        *series = (struct chunk_series){*key, values};
        hash_index_put(&b->table, hash_of(key), (uint32_t)b->count++);
        ++*count;
    }
    series->values[slot] = value;
}

static int compare(const void *a, const void *b)
{
    return chunk_key_compare(&((const struct chunk_series *)a)->key,
                             &((const struct chunk_series *)b)->key);
}

int builder_encode(struct series_builder *b, struct message_buffer *ret)
{
    if (b->failed) {
        return -ENOMEM;
    }
    qsort(b->series, b->count, sizeof(b->series[0]), compare);
    return chunk_encode(&b->head, b->series, b->count, ret);
}

/* ---- reports ---- */

struct history_host history_host(const struct controller *c, const struct fleet_host *h)
{
    struct history_host copy = {.id = h->id};
    for (uint32_t i = 0; i < h->nic_count; i++) {
        if (fleet_find_nic(c, h->nics[i]) != NULL) {
            copy.nics[copy.nic_count++] = h->nics[i];
        }
    }
    return copy;
}

static bool has_nic(const struct history_host *h, uint32_t nic)
{
    uint32_t i = 0;
    while (i < h->nic_count && h->nics[i] != nic) {
        i++;
    }
    return i < h->nic_count;
}

int reader_init(struct report_reader *r, struct store *store, const struct history_host *host,
                struct series_builder *builder)
{
    *r = (struct report_reader){.store = store, .host = host, .builder = builder};
    for (size_t i = 0; i < ARRAY_COUNT(r->before); i++) {
        r->before[i].nic = UINT32_MAX;
    }
    const int rc = message_arena_init(&r->arena, READER_ARENA);
    return rc < 0 ? rc : message_arena_init(&r->table_arena, READER_ARENA);
}

void reader_done(struct report_reader *r)
{
    message_buffer_done(&r->raw);
    message_buffer_done(&r->table_raw);
    message_arena_done(&r->arena);
    message_arena_done(&r->table_arena);
}

static int take_table(void *context, int64_t at_ns, const void *body, size_t size)
{
    struct report_reader *r = context;
    message_arena_reset(&r->table_arena);
    if (message_unpack(body, size, MESSAGE_REPORT_UNPACKED, &r->table_raw) == 0) {
        r->table = message_decode(&r->table_arena, &foliot__v1__path_table__descriptor,
                                  r->table_raw.bytes, r->table_raw.size);
    }
    return 0;
}

static void put(struct report_reader *r, uint32_t metric, uint32_t local, uint32_t peer,
                uint32_t port, int64_t at_ns, int64_t value)
{
    const struct chunk_key key = {metric, local, peer, port};
    if (r->only == NULL || chunk_key_compare(&key, r->only) == 0) {
        builder_put(r->builder, &key, at_ns, value);
    }
}

static void take_paths(struct report_reader *r, const Foliot__V1__PathRollup *m, int64_t at_ns)
{
    if (m->generation != r->table_generation || r->table == NULL) {
        r->table = NULL;
        r->table_generation = m->generation;
        if (store_table_get(r->store, r->host->id, m->generation, take_table, r) < 0) {
            r->table = NULL;
        }
    }
    const Foliot__V1__PathTable *t = r->table;
    if (t == NULL || t->n_local != m->n_owd_p50 || t->n_peer != t->n_local ||
        t->n_port != t->n_local || m->n_owd_p99 != t->n_local ||
        (m->n_loss_ppm != 0 && m->n_loss_ppm != t->n_local) ||
        (m->n_state != 0 && m->n_state != t->n_local)) {
        return;
    }
    for (size_t i = 0; i < t->n_local; i++) {
        const uint32_t local = t->local[i], peer = t->peer[i], port = t->port[i];
        if (r->only != NULL ? r->only->local != local || r->only->peer != peer
                            : !has_nic(r->host, local)) {
            continue;
        }
        struct fleet_path p;
        fleet_path_measured(&p, m->n_state != 0 ? m->state[i] : 1, m->owd_p50[i], m->owd_p99[i],
                            m->n_loss_ppm != 0 ? m->loss_ppm[i] : 0);
        if (p.p50 != DELAY_CODE_NONE) {
            put(r, METRIC_OWD_P50, local, peer, port, at_ns, p.p50);
        }
        if (p.p99 != DELAY_CODE_NONE) {
            put(r, METRIC_OWD_P99, local, peer, port, at_ns, p.p99);
        }
        if (fleet_path_loss_ppm(&p) >= 0) {
            put(r, METRIC_LOSS_PPM, local, peer, port, at_ns, p.loss_ppm);
        }
        put(r, METRIC_PATH_STATE, local, peer, port, at_ns, p.state);
    }
}

static void take_port(struct report_reader *r, const Foliot__V1__Port *p, int64_t at_ns)
{
    size_t i = 0;
    while (i < HOST_NIC_MAX && r->before[i].nic != p->nic && r->before[i].nic != UINT32_MAX) {
        i++;
    }
    if (i == HOST_NIC_MAX) {
        return;
    }
    const int64_t passed = at_ns - r->before[i].at_ns,
                  rx = controller_rate(r->before[i].rx, p->rx_bytes, passed),
                  tx = controller_rate(r->before[i].tx, p->tx_bytes, passed);
    if (r->before[i].nic == p->nic && rx >= 0 && tx >= 0) {
        put(r, METRIC_PORT_RX_BPS, p->nic, 0, 0, at_ns, rx);
        put(r, METRIC_PORT_TX_BPS, p->nic, 0, 0, at_ns, tx);
    }
    r->before[i].nic = p->nic;
    r->before[i].at_ns = at_ns;
    r->before[i].rx = p->rx_bytes;
    r->before[i].tx = p->tx_bytes;
    put(r, METRIC_PORT_STATE, p->nic, 0, 0, at_ns, p->state);
    put(r, METRIC_PORT_DOWNS, p->nic, 0, 0, at_ns, (int64_t)p->carrier_downs);
    put(r, METRIC_PORT_SPEED, p->nic, 0, 0, at_ns, p->speed_mbps);
    put(r, METRIC_PORT_RX_ERRORS, p->nic, 0, 0, at_ns, (int64_t)p->rx_errors);
    put(r, METRIC_PORT_TX_ERRORS, p->nic, 0, 0, at_ns, (int64_t)p->tx_errors);
    put(r, METRIC_PORT_RX_DROPS, p->nic, 0, 0, at_ns, (int64_t)p->rx_drops);
    put(r, METRIC_PORT_TX_DROPS, p->nic, 0, 0, at_ns, (int64_t)p->tx_drops);
}

static void take_clock(struct report_reader *r, const Foliot__V1__Clock *clock, int64_t at_ns)
{
    put(r, METRIC_CLOCK_STATUS, CHUNK_HOST, 0, 0, at_ns, clock->status);
    if (clock->hard_ns >= 0) {
        put(r, METRIC_CLOCK_HARD_NS, CHUNK_HOST, 0, 0, at_ns, clock->hard_ns);
    }
    if (clock->statistical_ns >= 0) {
        put(r, METRIC_CLOCK_STATISTICAL_NS, CHUNK_HOST, 0, 0, at_ns, clock->statistical_ns);
    }
}

/* The agent's own cost and its failures. */
static void take_cost(struct report_reader *r, const Foliot__V1__Cost *cost, int64_t at_ns)
{
    put(r, METRIC_AGENT_CPU_PPM, CHUNK_HOST, 0, 0, at_ns, cost->cpu_ppm);
    put(r, METRIC_AGENT_MEMORY, CHUNK_HOST, 0, 0, at_ns, (int64_t)cost->memory_bytes);
    put(r, METRIC_AGENT_REPORTS_LOST, CHUNK_HOST, 0, 0, at_ns, (int64_t)cost->reports_lost);
    put(r, METRIC_AGENT_LATE_TICKS, CHUNK_HOST, 0, 0, at_ns, (int64_t)cost->late_ticks);
    put(r, METRIC_AGENT_BAD_PACKETS, CHUNK_HOST, 0, 0, at_ns, (int64_t)cost->packets_bad);
    put(r, METRIC_AGENT_STAMPS_MISSING, CHUNK_HOST, 0, 0, at_ns, cost->stamps_missing_ppm);
}

int reader_take(void *context, int64_t at_ns, const void *body, size_t size)
{
    struct report_reader *r = context;
    message_arena_reset(&r->arena);
    if (message_unpack(body, size, MESSAGE_REPORT_UNPACKED, &r->raw) < 0) {
        return 0;
    }
    const Foliot__V1__Report *m =
        message_decode(&r->arena, &foliot__v1__report__descriptor, r->raw.bytes, r->raw.size);
    if (m == NULL) {
        return 0;
    }
    if (m->clock != NULL) {
        take_clock(r, m->clock, at_ns);
    }
    if (m->cost != NULL) {
        take_cost(r, m->cost, at_ns);
    }
    for (size_t i = 0; i < m->n_ports && i < HOST_NIC_MAX; i++) {
        if (has_nic(r->host, m->ports[i]->nic)) {
            take_port(r, m->ports[i], at_ns);
        }
    }
    if (m->paths != NULL) {
        take_paths(r, m->paths, at_ns);
    }
    return r->builder->failed ? -ENOMEM : 0;
}
