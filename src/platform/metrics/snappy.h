/* snappy.h: packs in Snappy's block format, for Prometheus' remote write.
 *
 * Greedy, with one hash table, and copies of at most 64 bytes from at most 64 KiB back. It packs samples with their labels to
 * a third to a tenth, at some hundred MB/s. Format: github.com/google/snappy, format_description.txt. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* The largest packed size of `size` bytes. */
size_t snappy_bound(size_t size);
/* Returns the number of bytes written; ret has room for snappy_bound(size). size must be below 2^32. */
size_t snappy_pack(const uint8_t *bytes, size_t size, uint8_t *ret);
