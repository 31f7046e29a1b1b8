/* pack.h: what recordings are packed with: numbers as varints, and words against the last ones alike. Decoding is total. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define PACK_VARINT_MAX 10
/* The most that pack_words writes for so many words. */
#define PACK_WORDS_MAX(words) (((words) + 7) / 8 + (words)*PACK_VARINT_MAX)

uint64_t pack_signed(int64_t value); /* small ones of either sign stay small */
int64_t unpack_signed(uint64_t value);
/* Writes at most PACK_VARINT_MAX bytes; returns how many. */
size_t pack_varint(uint8_t *bytes, uint64_t value);
/* Returns the bytes used; -ENODATA: they end too early; -EPROTO: no varint. */
MUST_CHECK long unpack_varint(const uint8_t *bytes, size_t size, uint64_t *ret);
/* A bit map of the words that differ from last, then the differences; last becomes the words. */
size_t pack_words(uint64_t *last, const uint64_t *words, size_t count, uint8_t *bytes);
/* Into last. Returns the bytes used, or as unpack_varint; last may be half written then. */
MUST_CHECK long unpack_words(uint64_t *last, size_t count, const uint8_t *bytes, size_t size);
