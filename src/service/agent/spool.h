/* spool.h: reports that the controller has not acknowledged: kept in order, in memory and in a file,
 * so that neither an outage of the controller nor a restart of the agent loses one.
 *
 * Bounded: when it is full the oldest go, counted. Numbers go up by one for as long as the file is
 * whole; after a crash of the machine, which may have taken its tail, they leap, so that a number is
 * never used for two reports. Not synced: the file is for restarts; a crash of the machine may cost
 * its last seconds, and says so by the leap. Where the file can't be written memory goes on. */
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

/* boot: this boot's name. A damaged or foreign file is begun anew. path NULL: memory only. -ENOMEM. */
MUST_CHECK int spool_open(const char *path, uint64_t boot, struct spool **ret_spool);
void spool_close(struct spool *s); /* what waits stays in the file; NULL is fine */
uint64_t spool_stream(const struct spool *s);
/* The number of the oldest report, or of the next one if there is none. */
uint64_t spool_oldest(const struct spool *s);
size_t spool_count(const struct spool *s);
size_t spool_bytes(const struct spool *s);
uint64_t spool_lost(const struct spool *s); /* given up for room, since the file was begun */
/* -EMSGSIZE: larger than all the room. -ENOMEM. */
MUST_CHECK int spool_append(struct spool *s, const void *bytes, size_t size);
/* The i-th oldest; false: there are fewer. */
bool spool_get(const struct spool *s, size_t i, struct spool_report *ret);
/* Those up to this number are delivered. */
void spool_acknowledge(struct spool *s, uint64_t number);
