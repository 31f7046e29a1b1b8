/* pack.h: packing for recordings: numbers as varints, and words packed against earlier words. Decoding is total. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define PACK_VARINT_MAX 10
/* The most bytes that pack_words writes for this many words. */
#define PACK_WORDS_MAX(words) (((words) + 7) / 8 + (words)*PACK_VARINT_MAX)

uint64_t pack_signed(int64_t value); /* numbers near 0 of either sign become small */
int64_t unpack_signed(uint64_t value);
/* Writes at most PACK_VARINT_MAX bytes; returns their number. */
size_t pack_varint(uint8_t *bytes, uint64_t value);
/* Returns the bytes used; -ENODATA: they end too early; -EPROTO: no varint. */
MUST_CHECK long unpack_varint(const uint8_t *bytes, size_t size, uint64_t *ret);
/* Writes a bit map of the words that differ from last, then the differences. last becomes the words. */
size_t pack_words(uint64_t *last, const uint64_t *words, size_t count, uint8_t *bytes);
/* Reads into last. Returns the bytes used, or an error of unpack_varint; then last may be half written. */
MUST_CHECK long unpack_words(uint64_t *last, size_t count, const uint8_t *bytes, size_t size);
