/* arena.c: blocks are cut off the end; freed blocks are kept in a list. */
#include "base/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA_MAGIC 0x314e455241464fULL

struct block {     /* the head before each returned memory */
    uint64_t size; /* of the returned memory, a multiple of 16 */
    uint64_t next; /* in the list of free ones; 0: the last */
};

struct arena {
    uint64_t magic, used, free_first, reserved;
};

static struct arena *in_use; /* the only arena of the process */

static int map(void)
{
    if (in_use != NULL) {
        return -EEXIST;
    }
    void *wanted = (void *)(uintptr_t)ARENA_ADDRESS;
    void *memory = mmap(wanted, ARENA_SIZE_MAX, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory == MAP_FAILED) {
        return -errno;
    }
    if (memory != wanted) { /* a kernel that doesn't know the flag */
        munmap(memory, ARENA_SIZE_MAX);
        return -EEXIST;
    }
    in_use = memory;
    return 0;
}

int arena_open(void)
{
    const int r = map();
    if (r == 0) {
        *in_use = (struct arena){.magic = ARENA_MAGIC, .used = sizeof(struct arena)};
    }
    return r;
}

int arena_open_copy(const void *bytes, size_t size)
{
    struct arena head;
    if (size < sizeof(head) || size > ARENA_SIZE_MAX) {
        return -EINVAL;
    }
    memcpy(&head, bytes, sizeof(head));
    if (head.magic != ARENA_MAGIC || head.used != size) {
        return -EINVAL;
    }
    const int r = map();
    if (r == 0) {
        memcpy(in_use, bytes, size);
    }
    return r;
}

void arena_close(void)
{
    if (in_use != NULL) {
        munmap(in_use, ARENA_SIZE_MAX);
        in_use = NULL;
    }
}

bool arena_is_open(void)
{
    return in_use != NULL;
}

size_t arena_size(void)
{
    return in_use != NULL ? (size_t)in_use->used : 0;
}

static struct block *block_at(uint64_t offset)
{
    return (struct block *)(void *)((uint8_t *)in_use + offset);
}

/* A free block that fits without wasting more than half; blocks are rarely freed. */
static struct block *take_free(uint64_t size)
{
    for (uint64_t *link = &in_use->free_first; *link != 0; link = &block_at(*link)->next) {
        struct block *b = block_at(*link);
        if (b->size >= size && b->size <= 2 * size) {
            *link = b->next;
            return b;
        }
    }
    return NULL;
}

void *arena_calloc(size_t count, size_t size)
{
    if (in_use == NULL) {
        return calloc(count, size);
    }
    if (size != 0 && count > ARENA_SIZE_MAX / size) {
        return NULL;
    }
    const uint64_t bytes = ((uint64_t)count * size + 15) / 16 * 16;
    struct block *b = take_free(bytes);
    if (b != NULL) {
        memset(b + 1, 0, bytes);
    } else {
        if (ARENA_SIZE_MAX - in_use->used < bytes + sizeof(*b)) {
            return NULL;
        }
        b = block_at(in_use->used); /* new pages are zero already */
        b->size = bytes;
        in_use->used += bytes + sizeof(*b);
    }
    b->next = 0;
    return b + 1;
}

void arena_free(void *memory)
{
    const uint64_t offset = (uint64_t)((uintptr_t)memory - (uintptr_t)in_use);
    if (in_use == NULL || memory == NULL || offset >= ARENA_SIZE_MAX) {
        free(memory);
        return;
    }
    struct block *b = (struct block *)memory - 1;
    b->next = in_use->free_first;
    in_use->free_first = offset - sizeof(*b);
}
