/* snappy.h: Snappy's block format, packing only: what Prometheus' remote write asks for.
 *
 * Greedy, one hash table, copies of at most 64 bytes from at most 64 KiB back: a third to a tenth of
 * samples with their labels, at some hundred MB/s. Format: github.com/google/snappy,
 * format_description.txt. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* The most that `size` bytes can become. */
size_t snappy_bound(size_t size);
/* How many were written; ret has room for snappy_bound(size). size below 2^32. */
size_t snappy_pack(const uint8_t *bytes, size_t size, uint8_t *ret);
