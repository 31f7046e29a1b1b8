/* cache.h: prefetches memory that will be read soon. It changes nothing else. */
#pragma once
#include <stddef.h>

#define CACHE_LINE 64

static inline void cache_fetch(const void *memory, size_t size)
{
    for (size_t at = 0; at < size; at += CACHE_LINE) {
        __builtin_prefetch((const char *)memory + at);
    }
}
