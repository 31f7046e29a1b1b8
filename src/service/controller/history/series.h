/* series.h: a host's history as columns: built from reports, sealed into chunks, and read again. */
#pragma once
#include "platform/store/chunk.h"
#include "service/controller/controller.h"

#define TIER_COUNT 3

struct tier {
    int64_t step_ns, chunk_ns;
};
extern const struct tier series_tiers[TIER_COUNT];

/* How several values of one metric become one value of a longer step. */
enum fold { FOLD_MEAN, FOLD_MAX, FOLD_MEDIAN };
enum fold series_fold(uint32_t metric);

struct series_builder {
    struct chunk_head head;
    struct chunk_series *series;
    size_t count, capacity;
    struct hash_index table; /* into series */
    /* how many series each NIC, or the host, has */
    uint32_t locals[CHUNK_SECTION_MAX], counts[CHUNK_SECTION_MAX], local_count;
    uint64_t dropped; /* values of series without room; the caller reports them */
    bool failed;
};
void builder_init(struct series_builder *b, const struct chunk_head *head);
void builder_done(struct series_builder *b);
/* Puts a value; the latest value of a slot stays. A NIC has at most as many series as a chunk can hold: the first ones are
 * kept. */
void builder_put(struct series_builder *b, const struct chunk_key *key, int64_t at_ns,
                 int64_t value);
/* The part of a host that its history needs: a copy, for other threads. */
struct history_host {
    int64_t id;
    uint32_t nics[HOST_NIC_MAX], nic_count; /* members only */
};
struct history_host history_host(const struct controller *c, const struct fleet_host *h);

/* Reads all values of reports. The table of a host's paths is fetched once for each generation. */
struct report_reader {
    struct store *store;
    const struct history_host *host;
    struct series_builder *builder;
    const struct chunk_key *only; /* NULL: all */
    struct message_buffer raw;
    struct message_arena arena;
    struct message_buffer table_raw;
    struct message_arena table_arena;
    const Foliot__V1__PathTable *table;
    uint64_t table_generation;
    struct {
        uint32_t nic;
        int64_t at_ns;
        uint64_t rx, tx;
    } before[HOST_NIC_MAX];
};
MUST_CHECK int reader_init(struct report_reader *r, struct store *store,
                           const struct history_host *host, struct series_builder *builder);
void reader_done(struct report_reader *r);
int reader_take(void *context, int64_t at_ns, const void *body, size_t size);
struct series_query {
    struct history_host host;
    struct chunk_key key;
    int64_t from_ns, to_ns, step_ns;
    int64_t now_ns, keep_fine_ns;
};
struct series_result {
    int64_t from_ns, step_ns;
    size_t count;
    int64_t *values; /* CHUNK_NONE: missing; the caller frees */
};
/* Reads committed data. Any thread with its own store may call it. */
MUST_CHECK int series_read(struct store *store, const struct series_query *query,
                           struct series_result *ret);
/* Sorts and encodes the columns. */
MUST_CHECK int builder_encode(struct series_builder *b, struct message_buffer *ret);
