/* arena.h: where the core's memory comes from: the heap, or one block that can be copied out whole.
 *
 * core/ allocates by calloc and free as everybody does; the build renames those two calls to
 * arena_calloc and arena_free. As long as no arena is in use they are the heap's. With an arena in
 * use, everything that a node consists of lies in one block at an address that is the same in every
 * process: so the block is the node, can be written to a file at any moment, and mapped again
 * elsewhere, pointers and all, to go on from there. That is what makes a recording of the last
 * minutes replayable bit for bit, although it doesn't reach back to the node's birth.
 *
 * What lies in it must not point outside of it: no function pointers, no constants of the program,
 * no borrowed arrays. */
#pragma once
#include "base/bug.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARENA_ADDRESS  0x2f0000000000ULL
#define ARENA_SIZE_MAX (256ULL << 20) /* of address space; memory is taken as it is used */

/* Maps the arena, empty, and uses it from now on. -EEXIST, -ENOMEM: something else lies there; the
 * heap goes on being used. One per process. */
MUST_CHECK int arena_open(void);
/* Maps one with this content instead. -EINVAL: that isn't one. */
MUST_CHECK int arena_open_copy(const void *bytes, size_t size);
/* Unmaps: everything in it is gone. */
void arena_close(void);
bool arena_is_open(void);
/* The used part, from ARENA_ADDRESS on. */
size_t arena_size(void);

void *arena_calloc(size_t count, size_t size); /* NULL: no memory */
void arena_free(void *memory);                 /* from either; NULL is fine */
