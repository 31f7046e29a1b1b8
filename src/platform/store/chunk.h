/* chunk.h: a time range of many series in one compressed block.
 *
 * It has all series of one host over one time range. Each series is a column of values at equal steps; values may be missing.
 * Columns are grouped into sections by their NIC. A reader that needs one NIC unpacks only its section. Within a column:
 * differences, zigzag, variable length. A constant column takes a few bytes. Sections are zstd frames with a checksum.
 *
 * Bytes: format version, step, start, count; directory; sections. Any bytes are safe to read: -EBADMSG. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "platform/message/message.h"

#define CHUNK_SLOT_MAX    512
#define CHUNK_SERIES_MAX  16384 /* per section */
#define CHUNK_SECTION_MAX 64
#define CHUNK_NONE        INT64_MIN
#define CHUNK_HOST        UINT32_MAX /* as `local`: a series of the host, not of a NIC */

enum chunk_metric {                     /* numbers never change: they are on disks */
                    METRIC_OWD_P50 = 1, /* delay codes */
                    METRIC_OWD_P99 = 2,
                    METRIC_LOSS_PPM = 3,
                    METRIC_PATH_STATE = 4,
                    METRIC_CLOCK_HARD_NS = 16,
                    METRIC_CLOCK_STATISTICAL_NS = 17,
                    METRIC_CLOCK_STATUS = 18,
                    METRIC_AGENT_CPU_PPM = 19,
                    METRIC_AGENT_MEMORY = 20, /* bytes */
                    METRIC_AGENT_REPORTS_LOST = 21,
                    METRIC_AGENT_LATE_TICKS = 22,
                    METRIC_AGENT_BAD_PACKETS = 23,
                    METRIC_AGENT_STAMPS_MISSING = 24, /* ppm */
                    METRIC_PORT_RX_BPS = 32,
                    METRIC_PORT_TX_BPS = 33,
                    METRIC_PORT_STATE = 34,
                    METRIC_PORT_DOWNS = 35, /* carrier-down count */
                    METRIC_PORT_SPEED = 36, /* Mbit/s */
                    METRIC_PORT_RX_ERRORS = 37,
                    METRIC_PORT_TX_ERRORS = 38,
                    METRIC_PORT_RX_DROPS = 39,
                    METRIC_PORT_TX_DROPS = 40,
};

struct chunk_key {
    uint32_t metric, local, peer, port;
};

struct chunk_series {
    struct chunk_key key;
    int64_t *values; /* slot_count values; CHUNK_NONE: missing */
};

struct chunk_head {
    int64_t from_ns, step_ns;
    uint32_t slot_count;
};

/* `series` must be sorted by chunk_key_compare. -ENOMEM, -EINVAL (too many), -EMSGSIZE (a section would be too large to
 * unpack). */
MUST_CHECK int chunk_encode(const struct chunk_head *head, const struct chunk_series *series,
                            size_t count, struct message_buffer *ret);
int chunk_key_compare(const struct chunk_key *a, const struct chunk_key *b);

/* Reads only one series, at a fraction of the cost: no other column is decoded. -ENOENT: the chunk does not have it. The next
 * call reuses `scratch`. */
MUST_CHECK int chunk_column(const void *bytes, size_t size, const struct chunk_key *key,
                            struct message_buffer *scratch, struct chunk_head *ret_head,
                            int64_t ret_values[CHUNK_SLOT_MAX]);

struct chunk; /* one section, or all */
/* local: the section, or NULL for all. -ENOENT: no such section. */
MUST_CHECK int chunk_decode(const void *bytes, size_t size, const uint32_t *local,
                            struct chunk **ret_chunk);
void chunk_free(struct chunk *chunk);
const struct chunk_head *chunk_head(const struct chunk *chunk);
size_t chunk_series_count(const struct chunk *chunk);
const struct chunk_series *chunk_series_get(const struct chunk *chunk, size_t index);
