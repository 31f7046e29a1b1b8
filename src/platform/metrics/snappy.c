/* snappy.c: literals and copies. */
#include "platform/metrics/snappy.h"

#include <string.h>

enum { TABLE_BITS = 14, OFFSET_MAX = 65535, COPY_MAX = 64, MATCH_MIN = 4 };

size_t snappy_bound(size_t size)
{
    return 32 + size + size / 6;
}

static uint32_t load(const uint8_t *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

static uint32_t slot(uint32_t word)
{
    return word * 0x1e35a7bdU >> (32 - TABLE_BITS);
}

static uint8_t *put_literal(uint8_t *to, const uint8_t *from, size_t size)
{
    if (size == 0) {
        return to;
    }
    const size_t n = size - 1;
    const unsigned more = n < 60 ? 0 : n < 1u << 8 ? 1 : n < 1u << 16 ? 2 : n < 1u << 24 ? 3 : 4;
    *to++ = (uint8_t)((more == 0 ? n : 59 + more) << 2);
    for (unsigned i = 0; i < more; i++) {
        *to++ = (uint8_t)(n >> (8 * i));
    }
    memcpy(to, from, size);
    return to + size;
}

static uint8_t *put_copy(uint8_t *to, size_t offset, size_t size)
{
    while (size > 0) {
        const size_t n = size < COPY_MAX ? size : COPY_MAX;
        *to++ = (uint8_t)((n - 1) << 2 | 2);
        *to++ = (uint8_t)offset;
        *to++ = (uint8_t)(offset >> 8);
        size -= n;
    }
    return to;
}

size_t snappy_pack(const uint8_t *bytes, size_t size, uint8_t *ret)
{
    uint32_t table[1 << TABLE_BITS]; /* last position of a word + 1 */
    uint8_t *to = ret;
    size_t done = 0, at = 0;
    memset(table, 0, sizeof(table));
    size_t n = size;
    for (; n >= 0x80; n >>= 7) {
        *to++ = (uint8_t)(n | 0x80);
    }
    *to++ = (uint8_t)n;
    while (at + MATCH_MIN <= size) {
        const uint32_t word = load(bytes + at), h = slot(word);
        const size_t before = table[h];
        table[h] = (uint32_t)at + 1;
        if (before == 0 || at - (before - 1) > OFFSET_MAX || load(bytes + before - 1) != word) {
            at += 1 + (at - done) / 64; /* the longer nothing matches, the larger the steps */
            continue;
        }
        const size_t offset = at - (before - 1);
        size_t length = MATCH_MIN;
        while (at + length < size && bytes[at + length] == bytes[at + length - offset]) {
            length++;
        }
        to = put_literal(to, bytes + done, at - done);
        to = put_copy(to, offset, length);
        at += length;
        done = at;
    }
    return (size_t)(put_literal(to, bytes + done, size - done) - ret);
}
