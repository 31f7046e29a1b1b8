/* arena.h: the source of the core's memory: the heap, or one block that can be copied out as a whole.
 *
 * core/ allocates with calloc and free as usual; the build renames those two calls to arena_calloc and arena_free. Without an
 * arena they use the heap. With an arena, all parts of a node are in one block at an address that is the same in every process.
 * So the block is the node: it can be written to a file at any moment, mapped elsewhere with all its pointers, and continued
 * there. So a recording of the last minutes can be replayed bit for bit, although it doesn't reach back to the node's start.
 *
 * The memory in it must not point outside of it: no function pointers, no constants of the program, no borrowed arrays. */
#pragma once
#include "base/bug.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARENA_ADDRESS  0x2f0000000000ULL
#define ARENA_SIZE_MAX (256ULL << 20) /* of address space; memory is taken when it is used */

/* Maps an empty arena, and uses it from now on. -EEXIST, -ENOMEM: something else is at that address; the heap is still used. One
 * for each process. */
MUST_CHECK int arena_open(void);
/* Maps an arena with this content instead. -EINVAL: the bytes aren't one. */
MUST_CHECK int arena_open_copy(const void *bytes, size_t size);
/* Unmaps it: all its content is lost. */
void arena_close(void);
bool arena_is_open(void);
/* The used part, from ARENA_ADDRESS on. */
size_t arena_size(void);

void *arena_calloc(size_t count, size_t size); /* NULL: out of memory */
void arena_free(void *memory);                 /* from either; NULL is allowed */
