/* hash_index.c: see hash_index.h. */
#include "base/hash_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int hash_index_room(struct hash_index *x, size_t entries)
{
    uint32_t mask = 15, *slots;

    while (mask < 2 * entries) {
        mask = 2 * mask + 1;
    }
    slots = calloc((size_t)mask + 1, sizeof(*slots));
    if (slots == NULL) {
        return -ENOMEM;
    }
    free(x->slots);
    *x = (struct hash_index){slots, mask};
    return 0;
}

void hash_index_done(struct hash_index *x)
{
    free(x->slots);
    *x = (struct hash_index){0};
}

void hash_index_clear(struct hash_index *x)
{
    memset(x->slots, 0, ((size_t)x->mask + 1) * sizeof(*x->slots));
}

void hash_index_put(struct hash_index *x, uint64_t hash, uint32_t entry)
{
    uint32_t at = hash_index_first(x, hash);

    while (x->slots[at] != 0) {
        at = hash_index_next(x, at);
    }
    x->slots[at] = entry + 1;
}
