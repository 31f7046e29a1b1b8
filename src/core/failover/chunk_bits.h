/* chunk_bits.h: one bit for each chunk of a message. The bits of up to 64 chunks are in place: enough for a message of
 * CHUNK_BITS_SIZE bytes. A longer message needs more; they are allocated when it comes, and kept for the next message in its
 * place. */
#pragma once
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/limits.h"

#define CHUNK_BITS_SIZE (64u << LANE_CHUNK_SHIFT_MIN)
#define CHUNK_BITS_MORE (LANE_MESSAGE_CHUNKS_MAX / 64 - 1)

struct chunk_bits {
    uint64_t few;
    uint64_t *more; /* CHUNK_BITS_MORE words: the chunks from 64 on; NULL: never needed so far */
};

/* Clears all bits, for a message of that size. -ENOMEM: unchanged. */
MUST_CHECK static inline int chunk_bits_begin(struct chunk_bits *bits, uint32_t size)
{
    if (size > CHUNK_BITS_SIZE) {
        if (bits->more == NULL) {
            bits->more = calloc(CHUNK_BITS_MORE, sizeof(*bits->more));
            if (bits->more == NULL) {
                return -ENOMEM;
            }
        }
        memset(bits->more, 0, CHUNK_BITS_MORE * sizeof(*bits->more));
    }
    bits->few = 0;
    return 0;
}

/* The word with the chunk's bit. index: below the message's number of chunks. */
static inline uint64_t *chunk_bits_word(struct chunk_bits *bits, uint32_t index)
{
    return index < 64 ? &bits->few : &bits->more[index / 64 - 1];
}

static inline bool bit_get(const struct chunk_bits *bits, uint32_t index)
{
    return (index < 64 ? bits->few : bits->more[index / 64 - 1]) >> index % 64 & 1;
}

static inline void bit_set(struct chunk_bits *bits, uint32_t index)
{
    *chunk_bits_word(bits, index) |= 1ULL << index % 64;
}

static inline void bit_clear(struct chunk_bits *bits, uint32_t index)
{
    *chunk_bits_word(bits, index) &= ~(1ULL << index % 64);
}
