/* spool.h: reports that the controller has not acknowledged. They are kept in order, in memory and in a file. So neither an
 * outage of the controller nor a restart of the agent loses one.
 *
 * The spool is bounded: if it is full, the oldest reports are dropped and counted. Report numbers go up by one while the file
 * is complete. A crash of the machine may lose the end of the file. Then the numbers jump ahead, so that no number is used for
 * two reports. The file is not synced: it is made for restarts. A crash of the machine may lose the last seconds; the jump of
 * the numbers shows it. If the file can't be written, the spool uses memory only. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define SPOOL_COUNT_MAX 4096
#define SPOOL_BYTES_MAX (8u << 20)
#define SPOOL_LEAP      (1u << 20)

struct spool;

struct spool_report {
    uint64_t number;
    const uint8_t *bytes;
    size_t size;
};

/* boot: id of this boot. A damaged or foreign file is replaced by a new one. path NULL: memory only. -ENOMEM. */
MUST_CHECK int spool_open(const char *path, uint64_t boot, struct spool **ret_spool);
void spool_close(struct spool *s); /* waiting reports stay in the file; s may be NULL */
uint64_t spool_stream(const struct spool *s);
/* The number of the oldest report, or of the next one if there is none. */
uint64_t spool_oldest(const struct spool *s);
size_t spool_count(const struct spool *s);
size_t spool_bytes(const struct spool *s);
/* dropped because the spool was full, since the file was made */
uint64_t spool_lost(const struct spool *s);
/* -EMSGSIZE: larger than the whole spool. -ENOMEM. */
MUST_CHECK int spool_append(struct spool *s, const void *bytes, size_t size);
/* Gets the i-th oldest report; false: there are fewer. */
bool spool_get(const struct spool *s, size_t i, struct spool_report *ret);
/* All reports up to this number are delivered. */
void spool_acknowledge(struct spool *s, uint64_t number);
