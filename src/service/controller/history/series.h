/* series.h: a host's history as columns: built out of reports, sealed into chunks, read again. */
#pragma once
#include "platform/store/chunk.h"
#include "service/controller/controller.h"

#define TIER_COUNT 3

struct tier {
    int64_t step_ns, chunk_ns;
};
extern const struct tier series_tiers[TIER_COUNT];

/* How values of one metric become one: of a longer step. */
enum fold { FOLD_MEAN, FOLD_MAX, FOLD_MEDIAN };
enum fold series_fold(uint32_t metric);

struct series_builder {
    struct chunk_head head;
    struct chunk_series *series;
    size_t count, capacity;
    struct hash_index table; /* into series */
    /* how many series each NIC, or the host, has */
    uint32_t locals[CHUNK_SECTION_MAX], counts[CHUNK_SECTION_MAX], local_count;
    uint64_t dropped; /* values of series that there was no room for: told by whoever builds */
    bool failed;
};
void builder_init(struct series_builder *b, const struct chunk_head *head);
void builder_done(struct series_builder *b);
/* The latest of a slot stays. Of one NIC there are as many series as a chunk can hold: the first ones stay. */
void builder_put(struct series_builder *b, const struct chunk_key *key, int64_t at_ns,
                 int64_t value);
/* What of a host its history needs to know: a copy, for other threads. */
struct history_host {
    int64_t id;
    uint32_t nics[HOST_NIC_MAX], nic_count; /* members only */
};
struct history_host history_host(const struct controller *c, const struct fleet_host *h);

/* Everything that one report holds. The table of its paths is fetched once per generation. */
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
/* Of what is committed; in any thread with a store of its own. */
MUST_CHECK int series_read(struct store *store, const struct series_query *query,
                           struct series_result *ret);
/* Sorted, encoded. */
MUST_CHECK int builder_encode(struct series_builder *b, struct message_buffer *ret);
