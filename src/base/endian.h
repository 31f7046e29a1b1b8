/* endian.h: integers in byte buffers, little endian, at any alignment. The caller checks the bounds: fixed layouts check their
 * size once, before the first field. */
#pragma once
#include <stdint.h>

static inline uint16_t le16_get(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t le32_get(const uint8_t *p)
{
    return (uint32_t)le16_get(p) | (uint32_t)le16_get(p + 2) << 16;
}
static inline uint64_t le64_get(const uint8_t *p)
{
    return (uint64_t)le32_get(p) | (uint64_t)le32_get(p + 4) << 32;
}
static inline void le16_put(uint8_t *p, uint16_t value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
}
static inline void le32_put(uint8_t *p, uint32_t value)
{
    le16_put(p, (uint16_t)value);
    le16_put(p + 2, (uint16_t)(value >> 16));
}
static inline void le64_put(uint8_t *p, uint64_t value)
{
    le32_put(p, (uint32_t)value);
    le32_put(p + 4, (uint32_t)(value >> 32));
}
