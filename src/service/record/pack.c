/* pack.c: varints, and words packed against earlier words. */
#include "service/record/pack.h"

#include <errno.h>
#include <string.h>

uint64_t pack_signed(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

int64_t unpack_signed(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

size_t pack_varint(uint8_t *bytes, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) {
        bytes[n++] = (uint8_t)(value | 0x80);
    }
    bytes[n++] = (uint8_t)value;
    return n;
}

long unpack_varint(const uint8_t *bytes, size_t size, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t n = 0; n < size && n < PACK_VARINT_MAX; n++) {
        value |= (uint64_t)(bytes[n] & 0x7f) << (7 * n);
        if (bytes[n] < 0x80) {
            *ret = value;
            return (long)n + 1;
        }
    }
    return size < PACK_VARINT_MAX ? -ENODATA : -EPROTO;
}

size_t pack_words(uint64_t *last, const uint64_t *words, size_t count, uint8_t *bytes)
{
    uint8_t *map = bytes;
    size_t n = (count + 7) / 8;
    memset(map, 0, n);
    for (size_t i = 0; i < count; i++) {
        if (words[i] != last[i]) {
            map[i / 8] |= (uint8_t)(1u << i % 8);
            n += pack_varint(bytes + n, pack_signed((int64_t)(words[i] - last[i])));
            last[i] = words[i];
        }
    }
    return n;
}

long unpack_words(uint64_t *last, size_t count, const uint8_t *bytes, size_t size)
{
    const uint8_t *map = bytes;
    size_t n = (count + 7) / 8;
    if (size < n) {
        return -ENODATA;
    }
    for (size_t i = 0; i < count; i++) {
        if ((map[i / 8] >> i % 8 & 1) != 0) {
            uint64_t value = 0;
            const long used = unpack_varint(bytes + n, size - n, &value);
            if (used < 0) {
                return used;
            }
            n += (size_t)used;
            last[i] += (uint64_t)unpack_signed(value);
        }
    }
    return (long)n;
}
