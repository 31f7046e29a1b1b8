/* job_content.c: the content of simulated jobs' messages, from a seed alone. */
#include <string.h>

#include "sim/job_private.h"

uint32_t content_size(uint64_t seed, uint32_t max)
{
    uint32_t limit = max;

    switch (seed & 15) {
    case 0:
        return (uint32_t)(seed >> 8) % 3 == 0 ? 0 : 1 + (uint32_t)(seed >> 16) % 8;
    case 1:
    case 2:
    case 3:
        limit = 256;
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        limit = 8192;
        break;
    case 8:
        return max < 8193 ? max : 8191 + (uint32_t)(seed >> 16) % 3; /* sizes around the limit */
    case 9:
        break;
    default:
        limit = 131072;
        break;
    }
    limit = limit < max ? limit : max;
    return (uint32_t)((seed >> 16) % limit) + 1;
}

void content_make(uint8_t *bytes, uint32_t size, uint64_t seed)
{
    uint32_t i = 0;

    for (; i + 8 <= size; i += 8, seed += 0x9e3779b97f4a7c15ULL) {
        memcpy(bytes + i, &seed, 8);
    }
    memcpy(bytes + i, &seed, size - i);
}

bool content_is(const uint8_t *bytes, uint32_t size, uint64_t seed)
{
    uint64_t wrong = 0, word;
    uint32_t i = 0;

    for (; i + 8 <= size; i += 8, seed += 0x9e3779b97f4a7c15ULL) {
        memcpy(&word, bytes + i, 8);
        wrong |= word ^ seed;
    }
    return wrong == 0 && memcmp(bytes + i, &seed, size - i) == 0;
}

bool content_is_pattern(const uint8_t *bytes, size_t size, uint8_t pattern)
{
    return size == 0 || (bytes[0] == pattern && memcmp(bytes, bytes + 1, size - 1) == 0);
}
