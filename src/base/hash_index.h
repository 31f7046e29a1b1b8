/* hash_index.h: finds the entries of a caller's array by their hash. The array belongs to the caller; the index only holds
 * positions. Open addressing, linear probing, at most half full: a search reads one to two slots.
 *
 *   for (uint32_t at = hash_index_first(&x, hash), i; (i = hash_index_entry(&x, at)) != HASH_INDEX_NONE;
 *        at = hash_index_next(&x, at)) {
 *       if (array[i] is it) ...       entries with other hashes may come, too
 *   }
 *
 * Single entries can't be removed: clear the index (hash_index_clear) and put the remaining ones. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define HASH_INDEX_NONE UINT32_MAX

struct hash_index {
    uint32_t *slots; /* 0: free; otherwise entry + 1 */
    uint32_t mask;
};

/* Makes it empty, with room for `entries`, and releases its former content. -ENOMEM: unchanged. */
MUST_CHECK int hash_index_room(struct hash_index *x, size_t entries);
void hash_index_done(struct hash_index *x); /* also for {0} */
void hash_index_clear(struct hash_index *x);
/* At most as many as there is room for. The same hash may be put more than once. */
void hash_index_put(struct hash_index *x, uint64_t hash, uint32_t entry);

static inline uint32_t hash_index_first(const struct hash_index *x, uint64_t hash)
{
    return (uint32_t)hash & x->mask;
}

static inline uint32_t hash_index_next(const struct hash_index *x, uint32_t at)
{
    return (at + 1) & x->mask;
}

/* HASH_INDEX_NONE: no more. */
static inline uint32_t hash_index_entry(const struct hash_index *x, uint32_t at)
{
    return x->slots != NULL ? x->slots[at] - 1 : HASH_INDEX_NONE;
}
